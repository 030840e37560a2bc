"""Parts of plans made in Python: topologies and workloads with few arguments, flows in memory."""

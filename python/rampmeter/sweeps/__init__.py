"""Sweeps: the runs of a plan at many points, here or on a cluster, as one Parquet dataset."""

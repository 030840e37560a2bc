"""A Ray cluster of two nodes on this machine, for as long as standard input is open.

Started as a separate process, so that nothing of Ray is in the process of the tests. Prints the
cluster's address and that of its client server.
"""

import sys

from ray.cluster_utils import Cluster

NODE = {
    "num_cpus": 1,
    "object_store_memory": 80 << 20,
    "node_ip_address": "127.0.0.1",
    "include_dashboard": False,
    "include_log_monitor": False,
}


def main(client_port: int) -> None:
    """Starts the cluster, waits, and shuts it down."""
    head = {**NODE, "ray_client_server_port": client_port}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        cluster.add_node(**NODE, wait=True)
        sys.stdout.write(f"{cluster.address} 127.0.0.1:{client_port}\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]))

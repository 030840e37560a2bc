"""A leaf-spine of Linux network namespaces, for real processes with real sockets.

>>> from rampmeter.testbed import Fabric, Shape
>>> shape = Shape(racks=2, hosts_per_rack=4, spines=2, access_bps=100_000_000)
>>> str(shape.address(5))
'10.77.1.6'
>>> with Fabric(shape) as fabric:  # doctest: +SKIP
...     server = fabric.run(0, ["iperf3", "--server", "--one-off"])
...     fabric.run(5, ["iperf3", "--client", str(shape.address(0))]).wait()
...     print(fabric.port_counters()["t0:h0"])
"""

from rampmeter.testbed.command import TestbedError, enter_user_namespace, is_privileged
from rampmeter.testbed.delay import Delays
from rampmeter.testbed.fabric import Fabric
from rampmeter.testbed.queueing import N_PRIORITIES, Counters, tos
from rampmeter.testbed.shape import Link, Port, Shape

__all__ = [
    "N_PRIORITIES",
    "Counters",
    "Delays",
    "Fabric",
    "Link",
    "Port",
    "Shape",
    "TestbedError",
    "enter_user_namespace",
    "is_privileged",
    "tos",
]

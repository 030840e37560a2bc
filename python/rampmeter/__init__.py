"""Proactive datacenter transports, simulated.

>>> import rampmeter as rm
>>> r = rm.run(
...     topology=rm.leaf_spine(racks=9, hosts_per_rack=16, spines=4),
...     transport=rm.DcPim(r=4, k=4),
...     workload=rm.imc10(load=0.6, flows=10_000),
...     seed=1,
... )  # doctest: +SKIP
>>> r.flows  # an Arrow table: arrival, source, destination, size, completion  # doctest: +SKIP
>>> r.plot.slowdown_by_size().savefig("slowdown.png")  # doctest: +SKIP
"""

from rampmeter._core import VERSION as __version__
from rampmeter._core import PlanError, ResultError, convert, distribution_mean, distributions
from rampmeter.api import run
from rampmeter.plan import Plan
from rampmeter.results import Run
from rampmeter.spec import (
    AllToAll,
    Cosy,
    DcPim,
    Deadlines,
    Dumbbell,
    Fabric,
    Fastpass,
    FatTree,
    Ideal,
    Incast,
    LeafSpine,
    Measure,
    Permutation,
    PFabric,
    PHost,
    RunOptions,
    Star,
    TopologyFile,
    Trace,
    all_to_all,
    data_mining,
    dumbbell,
    fat_tree,
    imc10,
    leaf_spine,
    star,
    web_search,
)

__all__ = [
    "AllToAll",
    "Cosy",
    "DcPim",
    "Deadlines",
    "Dumbbell",
    "Fabric",
    "Fastpass",
    "FatTree",
    "Ideal",
    "Incast",
    "LeafSpine",
    "Measure",
    "PFabric",
    "PHost",
    "Permutation",
    "Plan",
    "PlanError",
    "ResultError",
    "Run",
    "RunOptions",
    "Star",
    "TopologyFile",
    "Trace",
    "__version__",
    "all_to_all",
    "convert",
    "data_mining",
    "distribution_mean",
    "distributions",
    "dumbbell",
    "fat_tree",
    "imc10",
    "leaf_spine",
    "run",
    "star",
    "web_search",
]

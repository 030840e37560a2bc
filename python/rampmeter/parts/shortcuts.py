"""Shortcuts for topologies and workloads."""

from rampmeter.plan.base import Sizes
from rampmeter.plan_tables import AllToAll, Dumbbell, FatTree, LeafSpine, Pod, Star


def leaf_spine(
    racks: int = 9,
    hosts_per_rack: int = 16,
    spines: int = 4,
    *,
    rails: int | None = None,
    access_gbps: float | None = None,
    core_gbps: float | None = None,
) -> LeafSpine:
    """Returns a leaf-spine topology; by default the 144 hosts of dcPIM's evaluation.

    With `rails`, a rack has that number of leaf switches, and its hosts a link to each of them.
    """
    return LeafSpine(
        racks=racks,
        hosts_per_rack=hosts_per_rack,
        spines=spines,
        rails=rails,
        access_gbps=access_gbps,
        core_gbps=core_gbps,
    )


def fat_tree(
    k: int,
    *,
    pods: int | None = None,
    access_gbps: float | None = None,
    core_gbps: float | None = None,
) -> FatTree:
    """Returns a fat-tree of k-port switches, k even, with k pods or fewer."""
    return FatTree(k=k, pods=pods, access_gbps=access_gbps, core_gbps=core_gbps)


def star(hosts: int, *, access_gbps: float | None = None) -> Star:
    """Returns a star: all hosts at one switch."""
    return Star(hosts=hosts, access_gbps=access_gbps)


def dumbbell(
    hosts_per_side: int, *, access_gbps: float | None = None, core_gbps: float | None = None
) -> Dumbbell:
    """Returns a dumbbell: two switches with hosts, and one link between them."""
    return Dumbbell(hosts_per_side=hosts_per_side, access_gbps=access_gbps, core_gbps=core_gbps)


def pod(k: int, *, gbps: float | None = None, cable_spread_ns: float | None = None) -> Pod:
    """Returns a pod of a fat-tree of k-port switches, k even."""
    return Pod(k=k, gbps=gbps, cable_spread_ns=cable_spread_ns)


def all_to_all(sizes: Sizes, load: float, flows: int) -> AllToAll:
    """Returns Poisson arrivals between all pairs; `sizes` is a distribution's name or a table."""
    return AllToAll(sizes=sizes, load=load, flows=flows)


def imc10(load: float, flows: int = 100_000) -> AllToAll:
    """Returns the all-to-all IMC10 workload (Benson et al., IMC 2010)."""
    return all_to_all("imc10", load, flows)


def web_search(load: float, flows: int = 100_000) -> AllToAll:
    """Returns the all-to-all Web Search workload (DCTCP, SIGCOMM 2010)."""
    return all_to_all("web-search", load, flows)


def data_mining(load: float, flows: int = 100_000) -> AllToAll:
    """Returns the all-to-all Data Mining workload (VL2, SIGCOMM 2009)."""
    return all_to_all("data-mining", load, flows)

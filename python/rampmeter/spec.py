"""The parts of a plan as types: topologies, fabrics, transports, workloads.

Each is a frozen dataclass whose fields are the keys of its table, with `_` for `-`. A field that
is `None` is left out, so that the simulator's default holds. Values are checked by the simulator,
which says where, what was expected and what came.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import ClassVar, TypeAlias

from rampmeter.toml import Table, TomlValue, plain

Sizes: TypeAlias = str | Mapping[str, int | str | PathLike[str]]
"""A distribution's name, or `{"fixed": 71_540}`, or `{"cdf": "sizes.txt", "unit": "packets"}`."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One table of a plan."""

    TAG: ClassVar[tuple[str, str] | None] = None

    def table(self) -> dict[str, TomlValue]:
        """The keys that are set, as the plan spells them."""
        table: dict[str, TomlValue] = dict([self.TAG]) if self.TAG else {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                argument = f"{type(self).__name__}({field.name}=...)"
                table[field.name.replace("_", "-")] = _plain(value, argument)
        return table


def table_of(name: str, part: object) -> Table:
    """A table of a plan from a part or a mapping; raises `TypeError` for anything else."""
    if isinstance(part, Part):
        return part.table()
    if isinstance(part, Mapping):
        return {str(key): _plain(value, f"{name}: {key}") for key, value in part.items()}
    raise TypeError(f"{name}: expected a part of a plan or a mapping, got {_kind(part)}")


def _plain(value: object, argument: str) -> TomlValue:
    """A value as plans have it; errors call it `argument`."""
    if isinstance(value, Part):
        return value.table()
    if isinstance(value, Mapping):
        return {str(k): _plain(v, argument) for k, v in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(item, argument) for item in value]
    try:
        return plain(value)
    except TypeError:
        expected = "expected a number, a text, or a list or mapping of such"
        raise TypeError(f"{argument}: {expected}, got {_kind(value)}") from None


def _kind(value: object) -> str:
    """What an error says of a value: its type, since a table would fill the screen."""
    return f"a value of type {type(value).__module__}.{type(value).__qualname__}"


@dataclass(frozen=True, kw_only=True)
class Topology(Part):
    """What every topology has. Rates are in Gbit/s, delays in nanoseconds."""

    access_gbps: float | None = None
    propagation_ns: float | None = None
    switch_ns: float | None = None
    host_ns: float | None = None


@dataclass(frozen=True, kw_only=True)
class LeafSpine(Topology):
    """Two tiers: every rack's switch is joined to every spine. The defaults are dcPIM's setup."""

    TAG = ("kind", "leaf-spine")
    racks: int = 9
    hosts_per_rack: int = 16
    spines: int = 4
    rails: int | None = None
    """Leaf switches of a rack, to each of which every host of it has a link."""
    core_gbps: float | None = None


@dataclass(frozen=True, kw_only=True)
class FatTree(Topology):
    """Three tiers of k-port switches, with k^2/4 hosts in each pod."""

    TAG = ("kind", "fat-tree")
    k: int
    pods: int | None = None
    """Pods; k if left out."""
    core_gbps: float | None = None


@dataclass(frozen=True, kw_only=True)
class Star(Topology):
    """All hosts at one switch."""

    TAG = ("kind", "star")
    hosts: int


@dataclass(frozen=True, kw_only=True)
class Dumbbell(Topology):
    """Two switches with hosts, and one link between them."""

    TAG = ("kind", "dumbbell")
    hosts_per_side: int
    core_gbps: float | None = None


@dataclass(frozen=True, kw_only=True)
class Pod(Part):
    """A pod of a fat-tree of k-port switches: k/2 racks of k/2 hosts, and k/2 switches above."""

    TAG = ("kind", "pod")
    k: int
    gbps: float | None = None
    """Rate of all links."""
    propagation_ns: float | None = None
    switch_ns: float | None = None
    host_ns: float | None = None
    cable_spread_ns: float | None = None
    """By how much links of hosts and arbiters have more propagation at most."""


@dataclass(frozen=True, kw_only=True)
class TopologyFile(Part):
    """A topology from a file of nodes and links."""

    TAG = ("kind", "file")
    file: str | PathLike[str]


@dataclass(frozen=True, kw_only=True)
class Fabric(Part):
    """Buffers, spraying and switching."""

    buffer_bytes: int | None = None
    shared_buffer_bytes: int | None = None
    alpha: float | None = None
    overflow: str | None = None
    spray: str | None = None
    drop_unscheduled_above_bytes: int | None = None
    switching: str | None = None
    cut_through_bytes: int | None = None
    unscheduled: str | None = None
    interface: str | None = None
    express_bytes: int | None = None
    slot_bytes: int | None = None
    trim_bytes: int | None = None
    trim_choice: str | None = None
    header_ratio: int | None = None
    header_queue_bytes: int | None = None
    header_overflow: str | None = None
    pfc: Table | None = None
    """Priority flow control: the keys of `fabric.pfc`."""


@dataclass(frozen=True, kw_only=True)
class Transport(Part):
    """A transport that plans know as `name`, with the keys of its table in `options`.

    `rampmeter.transports` has a class for each transport of the package. This one also takes those
    of a core of one's own:

    >>> Transport(name="stop-and-wait", options={"timeout-ns": 60_000}).table()
    {'name': 'stop-and-wait', 'timeout-ns': 60000}
    """

    SYMBOLS: ClassVar[Mapping[str, str]] = {}
    """Fields that are short for others, such as the paper's `r` for `rounds`."""

    name: str
    preset: str | None = None
    """Where the values of keys come from that are left out."""
    options: Table | None = None
    """Further keys, as plans spell them."""

    def table(self) -> dict[str, TomlValue]:
        """The transport table."""
        table = super().table()
        table.pop("options", None)
        for symbol, key in self.SYMBOLS.items():
            if symbol in table:
                if key in table:
                    raise ValueError(f"expected one of {symbol} and {key}, got both")
                table[key] = table.pop(symbol)
        return table | dict(self.options or {})


@dataclass(frozen=True, kw_only=True)
class Deadlines(Part):
    """Exponential deadlines for all flows, none shorter than some multiple of its ideal."""

    mean_us: float
    at_least_ideals: float | None = None


@dataclass(frozen=True, kw_only=True)
class AllToAll(Part):
    """Poisson arrivals between all pairs of hosts. `load` is of every host, headers included."""

    TAG = ("pattern", "all-to-all")
    sizes: Sizes
    load: float
    flows: int | None = None
    until_us: float | None = None


@dataclass(frozen=True, kw_only=True)
class Permutation(Part):
    """Poisson arrivals; every host sends to one other and receives from one."""

    TAG = ("pattern", "permutation")
    sizes: Sizes
    load: float
    flows: int | None = None
    until_us: float | None = None


@dataclass(frozen=True, kw_only=True)
class Incast(Part):
    """`fan` senders to one receiver, all at once, `rounds` times."""

    TAG = ("pattern", "incast")
    fan: int
    hub: int | None = None
    flow_bytes: int | None = None
    total_bytes: int | None = None
    start_us: float | None = None
    period_us: float | None = None
    rounds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Trace(Part):
    """Flows from a file: CSV or Parquet, with arrival, source, destination and size."""

    TAG = ("pattern", "trace")
    file: str | PathLike[str]
    format: str | None = None
    sort: bool | None = None
    flows: int | None = None
    until_us: float | None = None


@dataclass(frozen=True, kw_only=True)
class Measure(Part):
    """Which flows the statistics of the summary count."""

    warmup_flows: int | str | None = None
    finished_before_arrival: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(Part):
    """When a run ends, and what it records."""

    drain_us: float | None = None
    sample_us: float | None = None
    paranoid: bool | None = None
    capture: str | None = None
    capture_hosts: Sequence[int] | None = None
    capture_packets: int | None = None
    links: bool | None = None
    trace: str | None = None
    trace_from_us: float | None = None
    trace_until_us: float | None = None
    trace_events: int | None = None
    trace_hosts: Sequence[int] | None = None
    trace_switches: Sequence[int] | None = None
    paths: bool | None = None


def leaf_spine(
    racks: int = 9,
    hosts_per_rack: int = 16,
    spines: int = 4,
    *,
    rails: int | None = None,
    access_gbps: float | None = None,
    core_gbps: float | None = None,
) -> LeafSpine:
    """A leaf-spine topology; without arguments the 144 hosts of dcPIM's evaluation.

    With `rails`, a rack has so many leaf switches, and its hosts a link to each of them.
    """
    return LeafSpine(
        racks=racks,
        hosts_per_rack=hosts_per_rack,
        spines=spines,
        rails=rails,
        access_gbps=access_gbps,
        core_gbps=core_gbps,
    )


def fat_tree(k: int, *, pods: int | None = None, access_gbps: float | None = None) -> FatTree:
    """A fat-tree of k-port switches, k even, with k pods or fewer."""
    return FatTree(k=k, pods=pods, access_gbps=access_gbps)


def star(hosts: int, *, access_gbps: float | None = None) -> Star:
    """All hosts at one switch."""
    return Star(hosts=hosts, access_gbps=access_gbps)


def dumbbell(
    hosts_per_side: int, *, access_gbps: float | None = None, core_gbps: float | None = None
) -> Dumbbell:
    """Two switches with hosts, and one link between them."""
    return Dumbbell(hosts_per_side=hosts_per_side, access_gbps=access_gbps, core_gbps=core_gbps)


def pod(k: int, *, gbps: float | None = None, cable_spread_ns: float | None = None) -> Pod:
    """A pod of a fat-tree of k-port switches, k even."""
    return Pod(k=k, gbps=gbps, cable_spread_ns=cable_spread_ns)


def all_to_all(sizes: Sizes, load: float, flows: int) -> AllToAll:
    """Poisson arrivals between all pairs; `sizes` is a distribution's name or a table."""
    return AllToAll(sizes=sizes, load=load, flows=flows)


def imc10(load: float, flows: int = 100_000) -> AllToAll:
    """The all-to-all IMC10 workload (Benson et al., IMC 2010)."""
    return all_to_all("imc10", load, flows)


def web_search(load: float, flows: int = 100_000) -> AllToAll:
    """The all-to-all Web Search workload (DCTCP, SIGCOMM 2010)."""
    return all_to_all("web-search", load, flows)


def data_mining(load: float, flows: int = 100_000) -> AllToAll:
    """The all-to-all Data Mining workload (VL2, SIGCOMM 2009)."""
    return all_to_all("data-mining", load, flows)

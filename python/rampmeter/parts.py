"""Further parts of a plan as types: traffic patterns, own topologies, faults, clocks, loads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rampmeter.spec import Part, Sizes
from rampmeter.toml import Table, TomlValue

Hosts: TypeAlias = range | Mapping[str, int]
"""Hosts with consecutive numbers: `range(4, 8)`, or a mapping as plans have it."""


def hosts_table(hosts: Hosts) -> Mapping[str, int]:
    """Hosts as plans have them; raises `ValueError` for a range with gaps.

    >>> hosts_table(range(4, 8))
    {'first': 4, 'count': 4}
    """
    if not isinstance(hosts, range):
        return hosts
    if hosts.step != 1:
        raise ValueError(f"expected hosts with consecutive numbers, got {hosts!r}")
    return {"first": hosts.start, "count": len(hosts)}


@dataclass(frozen=True, kw_only=True)
class Pattern(Part):
    """What traffic patterns have: the run of arrivals ends at whichever comes first."""

    flows: int | None = None
    until_us: float | None = None

    def table(self) -> dict[str, TomlValue]:
        """The keys that are set; ranges of hosts are tables."""
        table = super().table()
        for name in ("hosts", "peers", "senders", "receivers"):
            hosts: Hosts | None = getattr(self, name, None)
            if hosts is not None:
                table[name] = dict(hosts_table(hosts))
        return table


@dataclass(frozen=True, kw_only=True)
class RackLocal(Pattern):
    """Poisson arrivals with a load within racks and another one between them."""

    TAG = ("pattern", "rack-local")
    sizes: Sizes
    local_load: float
    remote_load: float
    hosts_per_rack: int | None = None


@dataclass(frozen=True, kw_only=True)
class IncastOverlay(Pattern):
    """Poisson arrivals between all pairs, and incasts beside them."""

    TAG = ("pattern", "incast-overlay")
    sizes: Sizes
    load: float
    incast_load: float | None = None
    fan_in: int | None = None
    incast_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Rounds(Pattern):
    """What happens in rounds: `rounds` of them, the first at `start_us`, one every `period_us`."""

    start_us: float | None = None
    period_us: float | None = None
    rounds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Outcast(Rounds):
    """One sender to `fan` receivers, all at once."""

    TAG = ("pattern", "outcast")
    fan: int
    hub: int | None = None
    peers: Hosts | None = None
    flow_bytes: int | None = None
    total_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Shuffle(Rounds):
    """Every sender to every receiver, all at once."""

    TAG = ("pattern", "shuffle")
    senders: Hosts
    receivers: Hosts
    flow_bytes: int


@dataclass(frozen=True, kw_only=True)
class Dense(Pattern):
    """Every host to every other, all at once."""

    TAG = ("pattern", "dense")
    flow_bytes: int
    start_us: float | None = None


@dataclass(frozen=True, kw_only=True)
class SkewedAllToAll(Rounds):
    """Every host to every other, with shares of `host_bytes` that fall with the receiver's rank."""

    TAG = ("pattern", "skewed-all-to-all")
    host_bytes: int
    skew: float
    hosts: Hosts | None = None


@dataclass(frozen=True, kw_only=True)
class Mix(Pattern):
    """Several workloads at once; each is a tenant."""

    TAG = ("pattern", "mix")
    parts: Sequence[Part | Table]


@dataclass(frozen=True, kw_only=True)
class Link(Part):
    """A link of an own topology, between nodes such as `h0` and `s0`."""

    between: tuple[str, str]
    gbps: float
    propagation_ns: float


@dataclass(frozen=True, kw_only=True)
class Links(Part):
    """A topology of which every link is given."""

    TAG = ("kind", "links")
    hosts: int
    switches: int
    links: Sequence[Link | Table]
    switch_ns: float | None = None
    host_ns: float | None = None


@dataclass(frozen=True, kw_only=True)
class Clocks(Part):
    """How far the clocks of hosts start apart, and drift."""

    offset_us: float | None = None
    drift_ppm: float | None = None


@dataclass(frozen=True, kw_only=True)
class LinkFault(Part):
    """What one link does to packets, as probabilities; `link` is such as `h0-s0`."""

    link: str | int
    loss: float | None = None
    duplicate: float | None = None
    reorder: float | None = None
    delay_us: float | None = None


@dataclass(frozen=True, kw_only=True)
class Outage(Part):
    """A link, switch, host or arbiter that is away for a while, or for good without `until_us`."""

    from_us: float
    until_us: float | None = None
    link: str | int | None = None
    switch: int | None = None
    host: int | None = None
    arbiter: int | None = None


@dataclass(frozen=True, kw_only=True)
class Faults(Part):
    """What links do to packets, as probabilities, and what fails when."""

    loss: float | None = None
    duplicate: float | None = None
    reorder: float | None = None
    delay_us: float | None = None
    links: Sequence[LinkFault | Table] | None = None
    outages: Sequence[Outage | Table] | None = None
    rerouting_us: float | None = None


@dataclass(frozen=True, kw_only=True)
class Load(Part):
    """The full packets that loads count, instead of those of the transport."""

    payload_bytes: int
    header_bytes: int

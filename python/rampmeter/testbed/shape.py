"""The topology of a testbed: nodes, links, addresses and routes, all before it is built.

The link of host `slot` of rack `r` is a /30: the host has 10.77.r.(4 slot + 2), its leaf
10.77.r.(4 slot + 1). The link of rack `r` and spine `s` is 10.78.r.(4 s)/30. So a rack is one /24
for all other racks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Interface
from typing import Final

from rampmeter.testbed.command import TestbedError

MTUS: Final = (1500, 9000)
"""Ethernet's, and jumbo frames: the same rate for a sixth of the packets."""

ETHERNET_BYTES: Final = 14
"""The frame header that queues count on top of an IP packet."""

PORTS_MAX: Final = 64
"""Maximum number of hosts of a rack, and of spines: a /24 holds 64 subnets of /30."""

RACKS_MAX: Final = 256
"""Maximum number of racks: the third byte of an address has their number."""

RATE_MIN_BPS: Final = 1_000_000
"""Minimum rate. Below it a packet needs over 12 ms."""

BUFFER_FRAMES: Final = 50
"""Default buffer in full frames."""


class ShapeError(TestbedError):
    """A field of a shape that cannot be built."""

    def __init__(self, name: str, expected: str, got: int) -> None:
        super().__init__(f"{name}: expected {expected}, got {got}")
        self.name = name
        """The field."""
        self.expected = expected
        self.got = got


@dataclass(frozen=True)
class Port:
    """One end of a link: an interface of a node, and the queues in front of it."""

    node: str
    """`h3` (host 3), `t0` (the switch on top of rack 0) or `s1` (spine 1)."""
    interface: str
    """`eth0` of a host; on a switch the node at the other end."""
    address: IPv4Interface
    rate_bps: int

    @property
    def name(self) -> str:
        """Name in counters, such as `t0:h3`."""
        return f"{self.node}:{self.interface}"

    @property
    def mac(self) -> str:
        """A locally administered address that contains the IPv4 address."""
        return ":".join(f"{byte:02x}" for byte in b"\x02\x00" + self.address.packed)


@dataclass(frozen=True)
class Link:
    """Two ports that face each other; the lower one is that of the host, or else of the leaf."""

    lower: Port
    upper: Port

    def ports(self) -> tuple[Port, Port]:
        """Returns both ends."""
        return self.lower, self.upper


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A leaf-spine. Rates count Ethernet frames without preamble and checksum.

    Hosts are numbered rack by rack; arbiters are hosts of rack 0 whose numbers follow all others.
    """

    racks: int
    hosts_per_rack: int
    spines: int
    access_bps: int
    """Rate between a host and its leaf, in each direction."""
    core_bps: int | None = None
    """Rate between a leaf and a spine, in each direction; `access_bps` by default."""
    buffer_bytes: int | None = None
    """Capacity of each of a port's eight queues, rounded down to full frames; 50 by default."""
    mtu: int = 1500
    n_arbiters: int = 0
    arbiter_bps: int | None = None
    """Rate between an arbiter and its leaf, in each direction; `access_bps` by default."""

    def __post_init__(self) -> None:
        self._expect("racks", self.racks, 1, RACKS_MAX)
        self._expect("hosts_per_rack", self.hosts_per_rack, 1, PORTS_MAX)
        self._expect("spines", self.spines, 1 if self.racks > 1 else 0, PORTS_MAX)
        self._expect("n_arbiters", self.n_arbiters, 0, PORTS_MAX - self.hosts_per_rack)
        for name in ("access_bps", "core_bps", "arbiter_bps"):
            self._expect(name, getattr(self, name), RATE_MIN_BPS)
        self._expect("buffer_bytes", self.buffer_bytes, self.frame_bytes)
        if self.mtu not in MTUS:
            raise ShapeError("mtu", f"one of {MTUS}", self.mtu)

    @staticmethod
    def _expect(name: str, value: int | None, minimum: int, maximum: int | None = None) -> None:
        if value is None:
            return
        if value < minimum or (maximum is not None and value > maximum):
            bound = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
            raise ShapeError(name, bound, value)

    @property
    def n_hosts(self) -> int:
        """Number of hosts, without arbiters."""
        return self.racks * self.hosts_per_rack

    @property
    def arbiters(self) -> range:
        """The host numbers of the arbiters."""
        return range(self.n_hosts, self.n_hosts + self.n_arbiters)

    @property
    def frame_bytes(self) -> int:
        """Length of a full packet on a link, in bytes."""
        return self.mtu + ETHERNET_BYTES

    @property
    def queue_frames(self) -> int:
        """Maximum number of packets in a queue."""
        if self.buffer_bytes is None:
            return BUFFER_FRAMES
        return self.buffer_bytes // self.frame_bytes

    def rack(self, host: int) -> int:
        """Returns the rack of a host or arbiter."""
        return self._place(host)[0]

    def address(self, host: int) -> IPv4Address:
        """Returns the address of a host or arbiter.

        >>> str(Shape(racks=2, hosts_per_rack=2, spines=1, access_bps=10**7).address(3))
        '10.77.1.6'
        """
        return self._access(host, 2).ip

    def access_link(self, host: int) -> Link:
        """Returns the link of a host or arbiter."""
        rack, _ = self._place(host)
        rate_bps = self.access_bps
        if host in self.arbiters and self.arbiter_bps is not None:
            rate_bps = self.arbiter_bps
        return Link(
            Port(f"h{host}", "eth0", self._access(host, 2), rate_bps),
            Port(f"t{rack}", f"h{host}", self._access(host, 1), rate_bps),
        )

    def nodes(self) -> list[str]:
        """Returns the names of hosts, arbiters, leaves and spines."""
        return [
            *(f"h{host}" for host in range(self.n_hosts + self.n_arbiters)),
            *(f"t{rack}" for rack in range(self.racks)),
            *(f"s{spine}" for spine in range(self.spines)),
        ]

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The links of hosts and arbiters by number, then those of leaves and spines."""
        hosts = range(self.n_hosts + self.n_arbiters)
        return (*map(self.access_link, hosts), *self._core_links())

    def routes(self, node: str) -> list[str]:
        """Returns the routes of a node, as arguments of `ip route add`.

        Packets to a host whose link is down are dropped at its leaf without notice, as on a wire.
        They cause no error at their sender.
        """
        number = int(node[1:])
        match node[0]:
            case "h":
                return [f"default via {self._access(number, 1).ip}"]
            case "t":
                nexthops = "".join(
                    f" nexthop via {self._core(number, spine, 2).ip}"
                    for spine in range(self.spines)
                )
                others = [rack for rack in range(self.racks) if rack != number]
                own = f"blackhole {_rack_network(number)}"
                return [own, *(_rack_network(rack) + nexthops for rack in others)]
            case _:
                return [
                    f"{_rack_network(rack)} via {self._core(rack, number, 1).ip}"
                    for rack in range(self.racks)
                ]

    def _core_links(self) -> Iterator[Link]:
        rate_bps = self.access_bps if self.core_bps is None else self.core_bps
        for rack in range(self.racks):
            for spine in range(self.spines):
                yield Link(
                    Port(f"t{rack}", f"s{spine}", self._core(rack, spine, 1), rate_bps),
                    Port(f"s{spine}", f"t{rack}", self._core(rack, spine, 2), rate_bps),
                )

    def _place(self, host: int) -> tuple[int, int]:
        """Returns a host's rack and its place there; arbiters follow the hosts of rack 0."""
        self._expect("host", host, 0, self.n_hosts + self.n_arbiters - 1)
        if host in self.arbiters:
            return 0, self.hosts_per_rack + host - self.n_hosts
        return divmod(host, self.hosts_per_rack)

    def _access(self, host: int, end: int) -> IPv4Interface:
        rack, slot = self._place(host)
        return IPv4Interface(f"10.77.{rack}.{4 * slot + end}/30")

    @staticmethod
    def _core(rack: int, spine: int, end: int) -> IPv4Interface:
        return IPv4Interface(f"10.78.{rack}.{4 * spine + end}/30")


def _rack_network(rack: int) -> str:
    return f"10.77.{rack}.0/24"

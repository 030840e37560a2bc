"""Fabric of network namespaces, which is always removed.

The kernel switches packets: leaves and spines are namespaces that forward IPv4, a leaf chooses a
spine by the hash of addresses and ports. Every port is shaped and has eight strict priorities
(`queueing`). Addresses of neighbours are fixed, since ARP during a run would affect it.

A packet of many segments that is forwarded as one would delay a higher priority for its whole
length. So devices accept one segment per packet (`gso_max_segs`): TCP makes no larger ones, and
those of `UDP_SEGMENT` are split when they are sent. Receiving devices of this kind coalesce none by
default. The host's own queue still counts a `UDP_SEGMENT` packet as one: a program that depends on
priorities must not send several segments in one call.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any, Final

from rampmeter.testbed import command, delay, process
from rampmeter.testbed.command import TestbedError
from rampmeter.testbed.queueing import Counters, parse_counters, queue_commands
from rampmeter.testbed.shape import Link, Port, Shape

TX_QUEUE_PACKETS: Final = 1000
"""The kernel's default; no packet is queued there, since every port has separate queues."""

SYSCTLS: Final = {
    "ipv4/conf/all/rp_filter": 0,
    "ipv4/conf/default/rp_filter": 0,
    "ipv6/conf/all/disable_ipv6": 1,
    "ipv6/conf/default/disable_ipv6": 1,
}
"""Settings of every node: packets may return by another path, and no node sends by itself."""

SWITCH_SYSCTLS: Final = {"ipv4/ip_forward": 1, "ipv4/fib_multipath_hash_policy": 1}
"""Settings of leaves and spines: forwarding, and the choice of the path by ports too."""

NAME: Final = re.compile(r"rm(?P<pid>\d+)\.(?P<ticks>\d+)\.\d+-[hts]\d+")
"""A namespace: its maker (number and start of the process), the number of the fabric, the node."""


class Fabric:
    """A leaf-spine that exists while its `with` block runs; several may exist at a time."""

    _serials = count()

    def __init__(self, shape: Shape, congestion_control: str | None = None) -> None:
        """Prepares a fabric; `congestion_control` applies to both ends of TCP connections."""
        self.shape = shape
        self._control = congestion_control
        pid = os.getpid()
        self.tag = f"{pid}.{process.start_ticks(pid)}.{next(self._serials)}"
        """Part of this fabric's namespaces' names that no other fabric has."""
        self._started: list[subprocess.Popen[Any]] = []
        self._signals = ExitStack()

    def __enter__(self) -> "Fabric":
        """Builds it; raises `TestbedError` and removes all of it if that fails."""
        command.require_privilege()
        try:
            self._signals.enter_context(process.sigterm_raises())
            self._build()
        except BaseException:
            self._take_down()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Ends all processes in it and removes it."""
        self._take_down()

    @classmethod
    def sweep(cls) -> list[str]:
        """Removes namespaces of killed fabrics; returns their names."""
        command.require_privilege()
        orphans = [name for name in _namespaces() if _is_orphan(name)]
        with process.held_signals():
            _remove(orphans)
        return orphans

    def run(self, host: int, argv: Sequence[str], **popen: Any) -> "subprocess.Popen[Any]":
        """Starts a process on a host; it is ended with the fabric if it still runs."""
        node = self.shape.access_link(host).lower.node
        enter = [command.tool("ip"), "netns", "exec", self.namespace(node)]
        self._started = [started for started in self._started if started.poll() is None]
        started = subprocess.Popen([*enter, *argv], **popen)
        self._started.append(started)
        return started

    def set_link(self, host: int, *, up: bool) -> None:
        """Sets a host's link down or up. If it is down, the host has no carrier."""
        link = self.shape.access_link(host)
        port = link.upper
        lines = [f"link set {port.interface} {'up' if up else 'down'}"]
        if up:
            # A device loses its neighbours when it is set down.
            lines += self._neighbours([link], port.node)
        command.ip(lines, self.namespace(port.node))

    def set_path_mtu(self, host: int, mtu: int) -> None:
        """Limits a host's cable to packets of `mtu` bytes; the host is not notified."""
        port = self.shape.access_link(host).upper
        command.ip([f"link set {port.interface} mtu {mtu}"], self.namespace(port.node))

    def port_counters(self) -> dict[str, tuple[Counters, ...]]:
        """Returns the packets sent and dropped, by port (such as `t0:h3`) and priority."""
        tc = command.tool("tc")
        counters = {}
        for node in self.shape.nodes():
            shown = command.run([tc, "-n", self.namespace(node), "-s", "-j", "qdisc", "show"])
            for interface, of_port in parse_counters(shown).items():
                counters[f"{node}:{interface}"] = of_port
        return counters

    def tcp_counters(self, host: int) -> dict[str, int]:
        """Returns the counters of a host's kernel TCP since the fabric was built.

        Names are those of `/proc/net/snmp` and `/proc/net/netstat`, such as `RetransSegs` and
        `TCPTimeouts`.
        """
        files = [f"/proc/net/{name}" for name in ("snmp", "netstat")]
        enter = [command.tool("ip"), "netns", "exec", self.namespace(f"h{host}")]
        lines = command.run([*enter, "cat", *files]).splitlines()
        counters: dict[str, int] = {}
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            if names.startswith(("Tcp:", "TcpExt:")):
                pairs = zip(names.split()[1:], values.split()[1:], strict=True)
                counters |= {name: int(value) for name, value in pairs}
        return counters

    def delays(self, a: int, b: int) -> delay.Delays:
        """Measures the delay of a small packet of the highest priority from `a` to `b` and back.

        The path has no load, unless other programs use the fabric.
        """
        return delay.measure(self.run, self.shape, a, b)

    def namespace(self, node: str) -> str:
        """Returns the name of a node's network namespace, as for `ip netns exec`."""
        return f"rm{self.tag}-{node}"

    def _build(self) -> None:
        nodes = self.shape.nodes()
        ports: dict[str, list[Port]] = {node: [] for node in nodes}
        for link in self.shape.links:
            for port in link.ports():
                ports[port.node].append(port)
        command.ip(f"netns add {self.namespace(node)}" for node in nodes)
        for node in nodes:
            # This precedes the links, which inherit their settings.
            self._set_sysctls(node)
        command.ip(self._link_command(link) for link in self.shape.links)
        for node in nodes:
            command.tc(self._queue_commands(ports[node]), self.namespace(node))
            command.ip(self._address_commands(node, ports[node]), self.namespace(node))

    def _set_sysctls(self, node: str) -> None:
        settings = SYSCTLS if node.startswith("h") else SYSCTLS | SWITCH_SYSCTLS
        # A kernel without IPv6 has no such settings, and needs none.
        script = "".join(
            f"[ ! -e /proc/sys/net/{key} ] || echo {value} > /proc/sys/net/{key} || exit\n"
            for key, value in settings.items()
        )
        command.run([command.tool("ip"), "netns", "exec", self.namespace(node), "sh", "-c", script])

    def _link_command(self, link: Link) -> str:
        return f"link add {self._end(link.lower)} type veth peer {self._end(link.upper)}"

    def _end(self, port: Port) -> str:
        return (
            f"name {port.interface} address {port.mac} mtu {self.shape.mtu}"
            f" txqueuelen {TX_QUEUE_PACKETS} gso_max_segs 1 netns {self.namespace(port.node)}"
        )

    def _queue_commands(self, ports: Iterable[Port]) -> Iterator[str]:
        for port in ports:
            yield from queue_commands(port, self.shape)

    def _address_commands(self, node: str, ports: Iterable[Port]) -> Iterator[str]:
        yield "link set lo up"
        for port in ports:
            yield f"address add {port.address} dev {port.interface}"
            yield f"link set {port.interface} up"
        yield from self._neighbours(self.shape.links, node)
        # It is set by route, since a namespace may not choose any as its default.
        has_control = self._control is not None and node.startswith("h")
        end = f" congctl {self._control}" if has_control else ""
        for route in self.shape.routes(node):
            yield f"route add {route}{end}"

    @staticmethod
    def _neighbours(links: Iterable[Link], node: str) -> Iterator[str]:
        for link in links:
            for own, other in (link.ports(), link.ports()[::-1]):
                if own.node == node:
                    yield (
                        f"neighbour replace {other.address.ip} lladdr {other.mac}"
                        f" dev {own.interface} nud permanent"
                    )

    def _take_down(self) -> None:
        with self._signals, process.held_signals():
            own = [self.namespace(node) for node in self.shape.nodes()]
            there = set(_namespaces())
            # A process that was started just now may not be in its namespace yet.
            for started in self._started:
                started.terminate()
            try:
                _remove([name for name in own if name in there])
            finally:
                for started in self._started:
                    started.wait(process.KILL_SECONDS)


def _namespaces() -> list[str]:
    if not process.NAMESPACES.is_dir():
        return []
    return sorted(entry.name for entry in process.NAMESPACES.iterdir())


def _is_orphan(name: str) -> bool:
    """Returns true if the process that made the fabric of a namespace has ended."""
    match = NAME.fullmatch(name)
    return match is not None and process.start_ticks(int(match["pid"])) != int(match["ticks"])


def _remove(names: Sequence[str]) -> None:
    """Ends the processes of namespaces, then deletes these."""
    if not names:
        return
    try:
        process.end_all(names)
    finally:
        try:
            command.ip_each(f"netns delete {name}" for name in names)
        except TestbedError:
            # Two concurrent sweeps see the same ones.
            if not set(names).isdisjoint(_namespaces()):
                raise

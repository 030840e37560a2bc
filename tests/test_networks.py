"""Nodes with several networks: all are used, and a failed one is avoided and used again."""

import itertools
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from rampmeter.hosts import Message, Port, SendError, Ticket
from rampmeter.testbed.command import ip

from .nodes import RAMPD, Network, free_ports, needs_rampd, needs_root, number_of, text

TIMEOUT: Final = 30.0
LEFT: Final = 3.0
"""Maximum time in seconds until nodes leave a failed network, on a busy machine."""

Sent = tuple[int, Ticket]


pytestmark = needs_rampd


class TwoNetworks(Network):
    """Nodes with two addresses each, on loopback or in namespaces."""

    def __init__(self, folder: Path, transport: str, rate: int = 200) -> None:
        super().__init__(folder, transport, rtt_us=1_000)
        self.rate = rate
        self.lists: list[list[str]] = []
        for node in range(2):
            (port,) = free_ports(1)
            self.lists.append([f"127.0.{rail}.{node + 1}:{port}" for rail in range(2)])
        self.namespaces: list[str] = []

    def _configure(self, node: int) -> Path:
        file = super()._configure(node)
        written = file.read_text()
        for address, several in zip(self.addresses, self.lists, strict=True):
            written = written.replace(f'address = "{address}"', f"address = {several}")
        file.write_text(written)
        return file

    def start(self, node: int, **_: Any) -> None:
        """Starts a node, in its namespace if it has one."""
        argv = [RAMPD, "node", str(self._configure(node))]
        if self.namespaces:
            argv = ["ip", "netns", "exec", self.namespaces[node], *argv]
        with (self.folder / f"{node}.log").open("ab") as log:
            self.processes[node] = subprocess.Popen(argv, stderr=log)

    def rails(self, node: int) -> list[dict[str, Any]]:
        """Returns the status of a node's networks to the other."""
        rails: list[dict[str, Any]] = self.status(node)["peers"][0]["rails"]
        return rails

    def wait_for_states(self, node: int, *states: str, timeout: float = TIMEOUT) -> None:
        """Waits until the networks of a node are in these states."""

        def holds(status: dict[str, Any]) -> bool:
            return [rail["state"] for rail in status["peers"][0]["rails"]] == list(states)

        self.wait_for(node, holds, timeout)


@contextmanager
def running(network: TwoNetworks) -> Iterator[tuple[Port, Port]]:
    """Starts two connected nodes, and a program at each."""
    try:
        for node in range(2):
            network.start(node)
        with network.port(0) as a, network.port(1) as b:
            for node in range(2):
                network.wait_for_states(node, "up", "up")
            yield a, b
        network.stop()
    finally:
        for process in network.processes.values():
            process.kill()
            process.wait()


def sent_over(network: TwoNetworks, between: Callable[[], None]) -> list[int]:
    """Returns the bytes that node 0 sends over each network during `between`."""

    def bytes_sent() -> list[int]:
        # The status is updated every second.
        time.sleep(1.2)
        return [rail["bytes-sent"] for rail in network.rails(0)]

    before = bytes_sent()
    between()
    return [now - then for now, then in zip(bytes_sent(), before, strict=True)]


@pytest.mark.parametrize("transport", ["dcpim", "tcp"])
def test_both_networks_carry_a_fair_share(tmp_path: Path, transport: str) -> None:
    network = TwoNetworks(tmp_path, transport)
    with running(network) as (a, b):

        def exchange() -> None:
            for n in range(100):
                ticket = a.send(1, text(n))
                assert number_of(b.receive(TIMEOUT)) == n
                ticket.result(TIMEOUT)

        first, second = sent_over(network, exchange)
        # Of 100 messages with a network each, a standard deviation is 5; with dcPIM packets choose.
        assert 0.3 < first / (first + second) < 0.7, (first, second)
        received = [rail["bytes-received"] for rail in network.rails(1)]
        assert min(received) > 0.25 * sum(received), received
        assert "127.0.1.2" in network.rails(0)[1]["address"]


def test_a_message_of_a_transport_with_one_path_stays_on_one_network(tmp_path: Path) -> None:
    network = TwoNetworks(tmp_path, "tcp")
    with running(network) as (a, b):

        def send() -> None:
            ticket = a.send(1, text(1, 2_000_000))
            assert number_of(b.receive(TIMEOUT)) == 1
            ticket.result(TIMEOUT)

        sent = sent_over(network, send)
        # The other has hellos and answers only.
        assert max(sent) > 2_000_000
        assert min(sent) < 100_000, sent


def test_lists_of_addresses_are_checked(tmp_path: Path) -> None:
    network = TwoNetworks(tmp_path, "dcpim")

    def check(*nodes: int) -> str:
        argv = [RAMPD, "check", *(str(tmp_path / f"{node}.toml") for node in nodes)]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        return done.stdout + done.stderr

    files = [network._configure(node) for node in range(2)]
    good = check(0, 1)
    assert "good" in good
    assert ", ".join(network.lists[0]) in good
    whole = files[1].read_text()
    one = whole.replace(str(network.lists[1]), f'"{network.lists[1][0]}"')
    files[1].write_text(one)
    expected = "peer[1].address: expected 2, as many as peer 0 has, got 1 in the list"
    assert expected in check(1)
    files[1].write_text(one.replace(str(network.lists[0]), f'"{network.lists[0][0]}"'))
    assert "the number of addresses in peer.address: expected that of " in check(0, 1)
    files[1].write_text(whole.replace("127.0.1.1", "127.0.1.9"))
    assert "[[peer]]: expected that of " in check(0, 1)
    files[1].write_text(whole.replace(str(network.lists[1]), "[]"))
    assert "expected an address or more, got an empty list" in check(1)
    files[1].write_text(whole.replace("[node]\n", '[node]\ndatapath = "xdp"\ninterface = "lo"\n'))
    assert "node.datapath: expected udp, if peers have several addresses" in check(1)


def test_a_running_node_accepts_other_addresses_but_no_other_number(
    tmp_path: Path,
) -> None:
    network = TwoNetworks(tmp_path, "dcpim")
    with running(network) as (a, b):
        # Node 1 is to be probed at an unused address of its second network.
        whole = list(network.lists)
        (port,) = free_ports(1)
        network.lists[1] = [whole[1][0], f"127.0.1.2:{port}"]
        network._configure(0)
        network.processes[0].send_signal(1)
        network.wait_for_states(0, "up", "down")
        for n in range(20):
            ticket = a.send(1, text(n))
            assert number_of(b.receive(TIMEOUT)) == n
            ticket.result(TIMEOUT)
        network.lists = list(whole)
        network._configure(0)
        network.processes[0].send_signal(1)
        network.wait_for_states(0, "up", "up")
        network.lists = [addresses[:1] for addresses in whole]
        network._configure(0)
        network.processes[0].send_signal(1)
        time.sleep(0.5)
        assert len(network.rails(0)) == 2
    log = (tmp_path / "0.log").read_text()
    assert "the number of addresses of a peer" in log
    assert "rail-down" in log
    assert "network to peer is up again" in log


@pytest.fixture
def cables() -> Iterator[list[str]]:
    """Yields two hosts with two cables between them: their namespaces."""
    tag = f"rmnet{time.monotonic_ns()}"
    names = [f"{tag}-{end}" for end in ("a", "b")]
    a, b = names
    try:
        ip(f"netns add {name}" for name in names)
        ip(
            f"link add eth{rail} netns {a} type veth peer name eth{rail} netns {b}"
            for rail in range(2)
        )
        for node, name in enumerate(names):
            lines = ["link set lo up"]
            for rail in range(2):
                lines.append(f"addr add 10.7{rail}.0.{node + 1}/24 dev eth{rail}")
                lines.append(f"link set eth{rail} up")
            ip(lines, name)
        yield names
    finally:
        ip(f"netns del {name}" for name in names)


def in_cables(folder: Path, transport: str, cables: list[str]) -> TwoNetworks:
    """Returns a network whose nodes are in namespaces."""
    network = TwoNetworks(folder, transport)
    network.namespaces = cables
    network.lists = [[f"10.7{rail}.0.{node + 1}:7300" for rail in range(2)] for node in range(2)]
    return network


class Stream:
    """Messages from one node to the other, a few in flight at any time."""

    def __init__(self, a: Port, b: Port) -> None:
        self._a = a
        self._b = b
        self._numbers = itertools.count()
        self._sent: list[Sent] = []
        self.arrived: list[int] = []
        self.gap = 0.0

    def _take(self, message: Message) -> None:
        self.arrived.append(number_of(message))

    def run(self, seconds: float) -> None:
        """Sends for `seconds`; records the longest time in which nothing arrived."""
        ends = time.monotonic() + seconds
        latest, self.gap = time.monotonic(), 0.0
        while (now := time.monotonic()) < ends:
            while len(self._sent) - len(self.arrived) < 8:
                number = next(self._numbers)
                self._sent.append((number, self._a.send(1, text(number))))
            try:
                self._take(self._b.receive(0.05))
                latest = time.monotonic()
            except TimeoutError:
                self.gap = max(self.gap, now - latest)

    def end(self) -> None:
        """Checks that all messages have arrived once, and that their sender is notified."""
        while len(self.arrived) < len(self._sent):
            self._take(self._b.receive(TIMEOUT))
        assert sorted(self.arrived) == [number for number, _ in self._sent]
        for _, ticket in self._sent:
            try:
                ticket.result(TIMEOUT)
            except SendError as error:
                pytest.fail(f"a message was lost: {error.reason}")


@needs_root
@pytest.mark.parametrize(
    "transport",
    ["dcpim", *(pytest.param(name, marks=pytest.mark.long) for name in ("phost", "homa", "tcp"))],
)
@pytest.mark.parametrize(
    "way",
    ["address", *(pytest.param(way, marks=pytest.mark.long) for way in ("carrier", "silent"))],
)
def test_no_message_is_lost_when_a_network_fails(
    tmp_path: Path, cables: list[str], transport: str, way: str
) -> None:
    """A cable is pulled, loses all packets without a notice, or a host loses its address there."""
    network = in_cables(tmp_path, transport, cables)

    def break_cable() -> None:
        if way == "carrier":
            ip(["link set eth1 down"], cables[1])
            return
        if way == "address":
            ip(["addr del 10.71.0.1/24 dev eth1"], cables[0])
            return
        for node, name in enumerate(cables):
            # No host has this hardware address.
            to = f"10.71.0.{2 - node} lladdr 02:00:00:00:00:99 dev eth1 nud permanent"
            ip([f"neigh replace {to}"], name)

    def mend_cable() -> None:
        if way == "carrier":
            ip(["link set eth1 up"], cables[1])
            return
        if way == "address":
            ip(["addr add 10.71.0.1/24 dev eth1"], cables[0])
            return
        for node, name in enumerate(cables):
            ip([f"neigh del 10.71.0.{2 - node} dev eth1"], name)

    with running(network) as (a, b):
        stream = Stream(a, b)
        first, second = sent_over(network, lambda: stream.run(2.0))
        assert min(first, second) > 0.25 * (first + second), (first, second)
        break_cable()
        stream.run(LEFT)
        gap = stream.gap
        for node in range(2):
            network.wait_for_states(node, "up", "down", timeout=LEFT)
        assert gap < LEFT
        n_arrived = len(stream.arrived)
        first, second = sent_over(network, lambda: stream.run(2.0))
        assert len(stream.arrived) > n_arrived + 20
        # The other has hellos and answers only.
        assert second < 0.1 * first, (first, second)
        mend_cable()
        stream.run(LEFT)
        for node in range(2):
            network.wait_for_states(node, "up", "up", timeout=LEFT)
        first, second = sent_over(network, lambda: stream.run(2.0))
        assert min(first, second) > 0.25 * (first + second), (first, second)
        stream.end()
        assert network.rails(0)[1]["failures"] >= 1


@needs_root
def test_the_smallest_mtu_of_networks_limits_packets(tmp_path: Path, cables: list[str]) -> None:
    network = in_cables(tmp_path, "phost", cables)
    for name in cables:
        ip(["link set eth1 mtu 1300"], name)
    with running(network) as (a, b):
        tickets = [a.send(1, text(n, 200_000)) for n in range(5)]
        assert {number_of(b.receive(TIMEOUT)) for _ in tickets} == set(range(5))
        for ticket in tickets:
            ticket.result(TIMEOUT)
        found = range(1_300 - 8, 1_300 + 1)
        network.wait_for(0, lambda status: status["peers"][0]["path-mtu"] in found, 3 * TIMEOUT)
        # The remaining network carries whole packets.
        ip(["link set eth1 down"], cables[1])
        network.wait_for_states(0, "up", "down")
        network.wait_for(0, lambda status: status["peers"][0]["path-mtu"] is None)


@needs_root
def test_nodes_connect_if_a_network_is_down_from_the_start(
    tmp_path: Path, cables: list[str]
) -> None:
    for dead in range(2):
        network = in_cables(tmp_path, "dcpim", cables)
        ip([f"link set eth{dead} down"], cables[1])
        try:
            for node in range(2):
                network.start(node)
            with network.port(0) as a, network.port(1) as b:
                ticket = a.send(1, text(1))
                assert number_of(b.receive(TIMEOUT)) == 1
                ticket.result(TIMEOUT)
                states = ["down" if rail == dead else "up" for rail in range(2)]
                network.wait_for_states(0, *states)
            network.stop()
        finally:
            for process in network.processes.values():
                process.kill()
                process.wait()
            ip([f"link set eth{dead} up"], cables[1])

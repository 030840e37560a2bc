"""The daemon as a process: started, killed, restarted, disconnected, and not read from."""

import itertools
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rampmeter.hosts import SendError
from rampmeter.testbed import Fabric, Shape
from tests import nodes
from tests.nodes import (
    BUSY_US,
    LATE,
    RAMPD,
    SERVICE,
    TIMEOUT,
    Start,
    arrivals,
    described,
    free_ports,
    needs_rampd,
    needs_root,
    number_of,
    outcome,
    text,
)

pytestmark = needs_rampd
network_of = nodes.network_of


def test_nodes_may_be_started_in_any_order(network_of: Start) -> None:
    network = network_of("dcpim")
    network.start(0)
    with network.port(0) as a:
        early = a.send(1, text(1))
        time.sleep(0.3)
        network.start(1)
        with network.port(1) as b:
            assert number_of(b.receive(TIMEOUT)) == 1
            early.result(TIMEOUT)
            b.send(0, text(2)).result(TIMEOUT)
            assert number_of(a.receive(TIMEOUT)) == 2
    network.stop()


def test_nodes_of_rampd_init_send_a_message(network_of: Start) -> None:
    network = network_of("dcpim")
    (port,) = free_ports(1)
    folder = network.folder / "nodes"
    argv = [RAMPD, "init", "nodes", "--port", str(port)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=network.folder)
    starts = [line.split() for line in done.stdout.splitlines() if line.startswith("  rampd")]
    for node, (_, *arguments) in enumerate(starts):
        process = subprocess.Popen([RAMPD, *arguments], cwd=network.folder)
        network.processes[node] = process
    network.folder = folder
    with network.port(0) as a, network.port(1) as b:
        ticket = a.send(1, text(1))
        assert number_of(b.receive(TIMEOUT)) == 1
        ticket.result(TIMEOUT)
    network.stop()


@pytest.mark.parametrize("transport", ["dcpim", "phost"])
def test_a_node_that_is_killed_under_load_loses_messages_and_doubles_none(
    network_of: Start, transport: str
) -> None:
    network = network_of(transport)
    network.start(0)
    network.start(1)
    delivered: list[int] = []
    with network.port(0) as a:
        b = network.port(1)
        before = [a.send(1, text(n)) for n in range(40)]
        delivered += [number_of(b.receive(TIMEOUT)) for _ in range(5)]
        network.kill(1)
        network.start(1)
        with network.port(1) as b:
            after = [a.send(1, text(n)) for n in range(100, 120)]
            outcomes = [outcome(ticket) for ticket in before + after]
            # By now the sender has the node's new incarnation.
            last = [a.send(1, text(n)) for n in range(200, 220)]
            assert {outcome(ticket) for ticket in last} == {"completed"}
            while True:
                try:
                    delivered.append(number_of(b.receive(0.5)))
                except TimeoutError:
                    break
    assert len(set(delivered)) == len(delivered)
    assert set(outcomes) <= {"completed", "peer-restarted", "refused"}
    # Messages submitted after the node's return, and not failed by its restart, have arrived.
    finished = {n for n, o in zip(range(100, 120), outcomes[40:], strict=True) if o == "completed"}
    assert finished | set(range(200, 220)) <= set(delivered)
    network.stop()


def test_hosts_switch_to_the_standby_and_back(network_of: Start) -> None:
    network = network_of("fastpass", arbiters=2)
    for node in range(4):
        network.start(node)
    with network.port(0) as a, network.port(1) as b:
        for round_, arbiter in enumerate([None, 2, 3]):
            if arbiter is not None:
                network.kill(arbiter)
            # While the first arbiter is down, the standby serves; then the first is up alone.
            if arbiter == 3:
                network.start(2)
            tickets = [a.send(1, text(10 * round_ + n)) for n in range(10)]
            got = {number_of(b.receive(TIMEOUT)) for _ in range(10)}
            assert got == {10 * round_ + n for n in range(10)}
            assert {outcome(ticket) for ticket in tickets} == {"completed"}
    network.stop()


def test_a_stalled_receiver_slows_its_own_senders_only(
    network_of: Start,
) -> None:
    network = network_of("phost")
    network.start(0)
    network.start(1)
    with network.port(0) as a, network.port(1, receive=200_000) as b:
        held = [a.send(1, text(n)) for n in range(20)]
        # Messages the other way pass.
        for n in range(10):
            b.send(0, text(n)).result(TIMEOUT)
            assert number_of(a.receive(TIMEOUT)) == n
        assert sum(ticket.is_over for ticket in held) <= 5
        assert {number_of(b.receive(TIMEOUT)) for _ in range(20)} == set(range(20))
        assert {outcome(ticket) for ticket in held} == {"completed"}
    network.stop()


def test_a_service_manager_may_open_the_socket(network_of: Start) -> None:
    network = network_of("phost")
    path = str(network.socket(1))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(path)
        listening.listen(16)
        network.start(0)
        network.start(1, listening=listening)
        with network.port(0) as sender:
            with network.port(1) as receiver:
                ticket = sender.send(1, b"one", SERVICE)
                assert receiver.receive(TIMEOUT).data == b"one"
                ticket.result(TIMEOUT)
            network.kill(1)
            # Programs that attach while it is away wait at the manager's socket.
            with ThreadPoolExecutor(1) as pool:
                coming = pool.submit(network.port, 1)
                network.start(1, listening=listening)
                with coming.result(TIMEOUT) as receiver:
                    # A message to the earlier incarnation fails.
                    outcomes = (outcome(sender.send(1, b"two", SERVICE)) for _ in range(5))
                    assert "completed" in outcomes
                    assert receiver.receive(TIMEOUT).data == b"two"
        network.stop()
        assert Path(path).exists(), "the socket is the manager's"


def test_a_key_is_changed_without_a_break(network_of: Start) -> None:
    network = network_of("phost")
    network.start(0)
    network.start(1)
    numbers = itertools.count()
    with network.port(0) as a, network.port(1) as b:

        def both_ways() -> None:
            for source, sink, dst in ((a, b, 1), (b, a, 0)):
                sent = list(itertools.islice(numbers, 5))
                tickets = [source.send(dst, text(n)) for n in sent]
                assert {number_of(sink.receive(TIMEOUT)) for _ in sent} == set(sent)
                assert {outcome(ticket) for ticket in tickets} == {"completed"}

        both_ways()
        network.change_key(0, both_ways)
        network.change_key(1, both_ways)
        # Packets of a stranger with the old key are dropped: node 0 has the new one only.
        network.kill(1)
        network.private[1], wrong = "1.key", network.keys[1]
        network.keys[1] = [network._keygen("1.key")]
        network.start(1)
        network.keys[1] = wrong
        time.sleep(0.5)
        assert outcome(a.send(1, text(99))) == "unreachable"
    network.processes[0].send_signal(signal.SIGTERM)
    network.processes.pop(0).wait(TIMEOUT)
    assert "unauthenticated-packets" in (network.folder / "0.log").read_text()


def test_status_has_peers_and_differences_of_their_configuration(network_of: Start) -> None:
    network = network_of("phost")
    network.addresses[1] = network.addresses[1].replace("127.0.0.1", "localhost")
    network.network_keys[1] = "data-rtt-us = 2000"
    network.start(0)
    network.start(1)
    with network.port(0) as a, network.port(1) as b:
        assert outcome(a.send(1, text(5, 200_000))) == "completed"
        assert number_of(b.receive(TIMEOUT)) == 5
        for node in (0, 1):
            status = network.wait_for(node, lambda status: status["peers"][0]["rtt-us"])
            assert [service["service"] for service in status["services"]] == [SERVICE]
            (peer,) = status["peers"]
            assert peer["node"] == 1 - node
            assert "network.data-rtt-us" in peer["differing-keys"]
            assert "network.rate-mbps" not in peer["differing-keys"]
            assert 0 < peer["rtt-us"] < 1e6
            assert peer["last-received-s-ago"] < TIMEOUT
        assert network.status(0)["counters"]["messages_completed"] == 1
        argv = [RAMPD, "status", str(network.folder / "0.toml")]
        shown = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        assert shown.startswith("node 0 (host, phost) at 127.0.0.1:")
        assert "network.data-rtt-us" in shown
        # The socket of programs has that of the status next to it.
        for socket in ("0.sock", "0.status"):
            argv = [RAMPD, "status", str(network.folder / socket)]
            shown = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
            assert shown.startswith("node 0 (host, phost) at 127.0.0.1:")
    for node in (0, 1):
        log = (network.folder / f"{node}.log").read_text()
        assert log.count("peer-settings") == 1
        assert "network.data-rtt-us" in log
    network.kill(0)
    argv = [RAMPD, "status", str(network.folder / "0.toml")]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "0.status: the node does not answer" in done.stderr


@pytest.mark.parametrize("transport", ["dcpim", "phost", "homa", "tcp"])
def test_rates_and_peers_change_without_a_loss(network_of: Start, transport: str) -> None:
    network = network_of(transport)
    network.start(0)
    network.start(1)
    numbers = itertools.count()
    with network.port(0) as a, network.port(1) as b:

        def with_messages_in_flight(change: Callable[[], None]) -> None:
            """Has messages in flight during a change."""
            sent = list(itertools.islice(numbers, 50))
            tickets = [a.send(1, text(n)) for n in sent]
            change()
            assert {number_of(b.receive(TIMEOUT)) for _ in sent} == set(sent)
            assert {outcome(ticket) for ticket in tickets} == {"completed"}

        network.rate = 400
        with_messages_in_flight(network.reload)
        for node in (0, 1):
            network.wait_for(node, lambda status: status["rate-mbps"] == 400)
        # A third host.
        network.add()
        network.n_hosts = 3
        with_messages_in_flight(network.reload)
        network.start(2)
        with network.port(2) as c:
            for port in (a, b):
                ticket = port.send(2, text(1_000))
                assert number_of(c.receive(TIMEOUT)) == 1_000
                assert outcome(ticket) == "completed"
        # It moves.
        network.kill(2)
        (port_of_2,) = free_ports(1)
        network.addresses[2] = f"127.0.0.1:{port_of_2}"
        with_messages_in_flight(network.reload)
        network.start(2)
        with network.port(2) as c:
            # A message to the earlier incarnation fails.
            assert "completed" in (outcome(a.send(2, text(1_001))) for _ in range(5))
            assert number_of(c.receive(TIMEOUT)) == 1_001
        # A key that needs a restart changes nothing, and is reported.
        network.network_keys = {0: "mtu = 1400", 1: "mtu = 1400"}
        network.rate = 100
        with_messages_in_flight(network.reload)
        assert network.status(0)["rate-mbps"] == 400
        # A host that has ended.
        network.network_keys = {}
        network.rate = 200
        network.kill(2)
        network.processes.pop(2, None)
        network.addresses.pop()
        network.keys.pop()
        network.n_hosts = 2
        with_messages_in_flight(network.reload)
        status = network.wait_for(0, lambda status: status["rate-mbps"] == 200)
        assert [peer["node"] for peer in status["peers"]] == [1]
        with pytest.raises(SendError, match="unknown"):
            a.send(2, b"x").result(TIMEOUT)
    log = (network.folder / "0.log").read_text()
    assert "network.mtu, spray-ports or segmentation-offload: changes need a restart" in log


def test_bounds_are_those_of_the_state_machine_and_are_met(network_of: Start) -> None:
    network = network_of("cosy", rtt_us=BUSY_US)
    network.start(0)
    network.start(1)
    completed = []
    with network.port(0) as a, network.port(1) as b:
        described_bounds = described(network, 0)
        for size, name in ((1_000, "bound-of-1-kb-us"), (128_000, "bound-of-128-kb-us")):
            bound_s = a.bound(size)
            assert bound_s is not None
            assert abs(bound_s * 1e6 - described_bounds[name]) <= 0.1
        for n in range(25):
            data = text(n, 8 + 1600 * n)
            start = time.monotonic()
            ticket = a.send(1, data)
            assert ticket.bound is not None
            assert ticket.bound == a.bound(len(data))
            if outcome(ticket) == "completed":
                completed.append(n)
            assert time.monotonic() - start <= ticket.bound + LATE
        assert len(completed) > 12
        delivered = arrivals(b)
        assert len(set(delivered)) == len(delivered)
        assert set(completed) <= set(delivered)
    network.stop()


@pytest.mark.parametrize("lower", ["phost", "dcpim"])
def test_promised_and_best_effort_messages_share_a_node(network_of: Start, lower: str) -> None:
    keys = f'best-effort = {{ name = "{lower}" }}'
    network = network_of("cosy", rtt_us=BUSY_US, keys=keys)
    network.start(0)
    network.start(1)
    with network.port(0) as a, network.port(1) as b:
        bound_s = a.bound(1_000)
        assert bound_s is not None
        assert abs(bound_s * 1e6 - described(network, 0)["bound-of-1-kb-us"]) <= 0.1
        best_effort = [a.send(1, text(n), tenant=1 + n % 3) for n in range(1000, 1030)]
        assert all(ticket.bound is None for ticket in best_effort)
        completed = set()
        for n in range(20):
            start = time.monotonic()
            ticket = a.send(1, text(n, 8 + 1600 * n))
            assert ticket.bound is not None
            assert ticket.bound == a.bound(8 + 1600 * n)
            if outcome(ticket) == "completed":
                completed.add(n)
            assert time.monotonic() - start <= ticket.bound + LATE
        assert len(completed) > 10
        delivered = arrivals(b)
        assert {outcome(ticket) for ticket in best_effort} == {"completed"}
        delivered += arrivals(b)
    assert len(set(delivered)) == len(delivered)
    assert completed | set(range(1000, 1030)) <= set(delivered)
    network.stop()


def test_transports_without_bounds_report_none(network_of: Start) -> None:
    network = network_of("phost")
    network.start(0)
    with network.port(0) as a:
        assert a.bound(1_000) is None
        assert a.send(0, text(1)).bound is None
    network.stop()


@needs_root
def test_a_link_that_is_down_for_a_while_delays_or_fails_messages(network_of: Start) -> None:
    shape = Shape(racks=1, hosts_per_rack=2, spines=0, access_bps=200_000_000)
    network = network_of("dcpim")
    with Fabric(shape) as fabric:
        network.fabric = fabric
        network.addresses = [f"{shape.address(host)}:7300" for host in range(2)]
        network.start(0)
        network.start(1)
        with network.port(0) as a, network.port(1) as b:
            a.send(1, text(0)).result(TIMEOUT)
            number_of(b.receive(TIMEOUT))
            tickets = [a.send(1, text(n, 400_000)) for n in range(1, 11)]
            fabric.set_link(1, up=False)
            time.sleep(2)
            fabric.set_link(1, up=True)
            outcomes = [outcome(ticket) for ticket in tickets]
            arrived = set()
            while True:
                try:
                    arrived.add(number_of(b.receive(0.5)))
                except TimeoutError:
                    break
            # The network recovers once the kernel has detected the change.
            assert "completed" in (outcome(a.send(1, text(n))) for n in range(11, 16))
        # Transports abort after their attempts; messages reported as completed have arrived.
        assert set(outcomes) <= {"completed", "unreachable"}
        completed = {n for n, o in zip(range(1, 11), outcomes, strict=True) if o == "completed"}
        assert completed <= arrived


@needs_root
def test_a_path_that_carries_less_than_is_configured_is_found(network_of: Start) -> None:
    shape = Shape(racks=1, hosts_per_rack=2, spines=0, access_bps=200_000_000)
    network = network_of("phost", rtt_us=1_000)
    with Fabric(shape) as fabric:
        network.fabric = fabric
        network.addresses = [f"{shape.address(host)}:7300" for host in range(2)]
        fabric.set_path_mtu(1, 1_300)
        network.start(0)
        network.start(1)
        with network.port(0) as a, network.port(1) as b:
            tickets = [a.send(1, text(n, 200_000)) for n in range(5)]
            arrived = {number_of(b.receive(TIMEOUT)) for _ in range(5)}
            assert arrived == set(range(5))
            assert {outcome(ticket) for ticket in tickets} == {"completed"}
            # Until then the MTU that every path carries.
            found = range(1_300 - 8, 1_300 + 1)
            network.wait_for(0, lambda status: status["peers"][0]["path-mtu"] in found, 3 * TIMEOUT)
            # A virtual cable carries no longer packets in the other direction either.
            network.wait_for(1, lambda status: status["peers"][0]["path-mtu"] in found, 3 * TIMEOUT)
        network.stop()
    assert "path-mtu" in (network.folder / "0.log").read_text()

"""Limits of nodes: idle connections, programs that never read, deep queues, many peers."""

import fcntl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from rampmeter.hosts import Port
from tests import nodes
from tests.nodes import (
    ARBITERS,
    RAMPD,
    SERVICE,
    TICKS,
    TIMEOUT,
    Network,
    connect,
    needs_rampd,
    number_of,
    outcome,
    say,
    text,
)
from tools.hosts.soak import sample

pytestmark = [
    pytest.mark.long,
    needs_rampd,
]
network_of = nodes.network_of
Start = Callable[..., Network]


def test_idle_connections_do_not_block_attachment(network_of: Start) -> None:
    network = network_of("phost")
    network.start(0)
    network.port(0).close()
    silent = [connect(network.socket(0)) for _ in range(64)]
    took = []
    try:
        for _ in range(20):
            began = time.monotonic()
            network.port(0).close()
            took.append(time.monotonic() - began)
    finally:
        for one in silent:
            one.close()
    say(f"20 programs attach next to 64 idle connections, the slowest in {max(took):.3f} s")
    assert max(took) < 5.0


HOLD_BACK: Final = (
    *("dcpim", "phost", "pfabric", "fastpass", "homa", "sird"),
    *("tcp", "dctcp", "pias", "hyline", "capton", "fastpod"),
)


def beside_a_program_that_never_reads(
    network_of: Start, transport: str, waiting: int, size: int
) -> float:
    """Returns the rate of messages to a program that reads, while others wait for a stalled one.

    It is a share of their rate alone. The best of three measurements counts, as other work on the
    machine delays any of them.
    """
    n_arbiters = ARBITERS.get(transport, 0)
    network = network_of(transport, n_arbiters)
    for node in range(2 + n_arbiters):
        network.start(node)
    with (
        network.port(0) as a,
        network.port(1) as b,
        Port(network.socket(1), 8, depth=16, receive=100_000),
        Port(network.socket(0), 9, depth=65_536) as c,
    ):

        def rate(first: int) -> float:
            """Returns the rate of 50 messages to a program that reads, in Mbit/s; 20 s at most."""
            began = time.monotonic()
            tickets = [a.send(1, text(n)) for n in range(first, first + 50)]
            for _ in range(50):
                number_of(b.receive(max(0.1, began + 20.0 - time.monotonic())))
            assert {outcome(ticket) for ticket in tickets} == {"completed"}
            return 50 * 40_000 * 8 / (time.monotonic() - began) / 1e6

        alone = rate(0)
        stuck = [c.send(1, bytes(size), service=8) for _ in range(waiting)]
        # Unscheduled packets are sent once, and take their share of the link until then. The
        # duration depends on the processors: the node's own rate shows when it is over.
        time.sleep(2.0)
        network.wait_for(0, lambda status: status["sent-mbps"] < network.rate / 10, 4 * TIMEOUT)
        loaded = 0.0
        for attempt in range(3):
            loaded = max(loaded, rate(100 + 50 * attempt))
            if loaded > alone / 2:
                break
        say(f"{transport}: {alone:.0f} Mbit/s alone, {loaded:.0f} next to {waiting} queued ones")
        assert sum(ticket.is_over for ticket in stuck) < 20
    return loaded / alone


@pytest.mark.parametrize("transport", HOLD_BACK)
def test_a_stalled_receiver_does_not_slow_other_flows(network_of: Start, transport: str) -> None:
    assert beside_a_program_that_never_reads(network_of, transport, 1_000, 20_000) > 1 / 4


@pytest.mark.parametrize("transport", ["dcpim", "phost", "tcp"])
def test_many_messages_that_wait_cost_others_nothing(network_of: Start, transport: str) -> None:
    assert beside_a_program_that_never_reads(network_of, transport, 30_000, 2_000) > 1 / 4


MEGABYTES: Final = ("dcpim", "phost", "pfabric", "tcp", "dctcp", "pias", "homa", "sird")


@pytest.mark.parametrize("transport", MEGABYTES)
def test_a_message_of_megabytes_completes(network_of: Start, transport: str) -> None:
    network = network_of(transport)
    network.start(0)
    network.start(1)
    with network.port(0) as a, network.port(1) as b:
        began = time.monotonic()
        ticket = a.send(1, text(1, 2_000_000))
        assert number_of(b.receive(5.0)) == 1
        assert outcome(ticket) == "completed"
        say(f"{transport}: 2 MB in {time.monotonic() - began:.2f} s")
    network.stop()


def test_a_second_start_keeps_the_socket_of_a_running_node(network_of: Start) -> None:
    network = network_of("phost")
    network.start(0)
    network.port(0).close()
    network.socket(0).with_name("0.sock.lock").unlink()
    argv = [RAMPD, "node", str(network.folder / "0.toml")]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=10)
    assert done.returncode == 1, done.stderr
    network.port(0).close()
    network.stop()


def test_a_lock_that_another_process_holds_is_named(network_of: Start) -> None:
    network = network_of("phost")
    file = network._configure(0)
    lock = network.socket(0).with_name("0.sock.lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        argv = [RAMPD, "node", str(file)]
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=10)
    assert done.returncode == 1
    assert "0.sock" in done.stderr
    network.start(0)
    network.port(0).close()


@pytest.mark.parametrize(
    ("change", "command", "message"),
    [
        (("{socket}", "{folder}/nowhere/0.sock"), "node", "nowhere/0.sock: No such file"),
        (("{socket}", "{folder}/" + "a" * 200), "check", "at most 107 bytes"),
        (("127.0.0.1", "10.88.77.66"), "node", "10.88.77.66"),
        (("127.0.0.1", "0.0.0.0"), "check", "the address of one host, got 0.0.0.0"),
        (("rtt-us = 500", "rtt-us = 0"), "check", "control-rtt-us: expected a number from 0.1"),
        (("rate-mbps = 200", "rate-mbps = 0"), "check", "rate-mbps: expected a number from 0.1"),
        (("0.key", "nothing.key"), "node", "nothing.key"),
    ],
)
def test_configurations_that_cannot_work_are_refused(
    network_of: Start, change: tuple[str, str], command: str, message: str
) -> None:
    network = network_of("dcpim")
    file = network._configure(0)
    names = {"socket": str(network.socket(0)), "folder": str(network.folder)}
    old, new = (each.format(**names) for each in change)
    good = file.read_text()
    assert old in good
    file.write_text(good.replace(old, new, 1))
    argv = [RAMPD, command, str(file)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=10)
    assert done.returncode in (1, 2)
    assert message in done.stderr


def test_500_peers_cost_little(tmp_path: Path) -> None:
    (first,) = nodes.free_ports(1)
    peers = "".join(
        f'[[peer]]\nid = {n}\naddress = "127.{1 + n // 250}.0.{1 + n % 250}:{first}"\n'
        for n in range(501)
    )
    file = tmp_path / "0.toml"
    file.write_text(
        f'[node]\nid = 0\nclock = "monotonic"\nsocket = "{tmp_path}/0.sock"\n'
        '[network]\nsecurity = "none"\nrate-mbps = 1000\ncontrol-rtt-us = 500\n'
        f'[transport]\nname = "dcpim"\n{peers}'
    )
    with (tmp_path / "0.log").open("wb") as log:
        process = subprocess.Popen([RAMPD, "node", str(file)], stderr=log)
    try:
        time.sleep(1.0)

        def used() -> float:
            stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(stat[11]) + int(stat[12])) / TICKS

        before, began = used(), time.monotonic()
        time.sleep(3.0)
        share = (used() - before) / (time.monotonic() - began)
        memory = sample(process.pid).memory_kib
        say(f"500 peers: {memory} KiB, {100 * share:.1f} % of a processor")
        assert process.poll() is None
        assert memory < 64_000
        assert share < 0.2
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("n", [10_000, 20_000, 40_000])
@pytest.mark.parametrize("transport", ["dcpim", "phost"])
def test_deep_queues_of_short_messages_drain(network_of: Start, transport: str, n: int) -> None:
    network = network_of(transport)
    network.rate = 1_000
    network.start(0)
    network.start(1)
    network.port(0).close()
    network.port(1).close()
    depth = 65_536
    with (
        Port(network.socket(0), SERVICE, depth=depth) as a,
        Port(network.socket(1), SERVICE, depth=depth) as b,
    ):
        a.send(1, text(n, 200)).result(TIMEOUT)
        b.receive(TIMEOUT)
        began = time.monotonic()
        tickets = [a.send(1, text(number, 200)) for number in range(n)]
        seen = {number_of(b.receive(TIMEOUT)) for _ in range(n)}
        assert {outcome(ticket) for ticket in tickets} == {"completed"}
        took = time.monotonic() - began
        say(f"{transport}: {n} messages of 200 B in {took:.1f} s, {1e6 * took / n:.0f} us each")
        assert seen == set(range(n))
    network.stop()

"""Nodes that pause with traffic in flight, as a virtual machine does: nothing fails."""

import signal
import time

import pytest

from rampmeter.hosts import Port, Ticket
from tests import nodes
from tests.nodes import ARBITERS, TIMEOUT, Network, Start, needs_rampd, number_of, outcome, text
from tools.hosts.stress import TRANSPORTS

pytestmark = [
    pytest.mark.long,
    needs_rampd,
]
network_of = nodes.network_of

PAUSE_S = 0.5
N = 60
SIZE = 100_000
"""60 messages of 100 KB take 0.24 s at the 200 Mbit/s of the nodes."""


def pause(network: Network, node: int, sent: list[Ticket], for_s: float = PAUSE_S) -> None:
    """Pauses a node while messages are in flight."""
    process = network.processes[node]
    process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(for_s)
        in_flight = sum(not ticket.is_over for ticket in sent)
    finally:
        process.send_signal(signal.SIGCONT)
    assert in_flight > 0, "the node paused when all was over"


def send_across_a_pause(network: Network, node: int, a: Port, b: Port, first: int) -> None:
    """Sends messages from `a` to `b`, of which a few have arrived when a node pauses."""
    sent = [a.send(1, text(n, SIZE)) for n in range(first, first + N)]
    received = [number_of(b.receive(TIMEOUT)) for _ in range(5)]
    pause(network, node, sent)
    received += [number_of(b.receive(TIMEOUT)) for _ in range(N - len(received))]
    assert sorted(received) == list(range(first, first + N))
    assert {outcome(ticket) for ticket in sent} == {"completed"}


@pytest.mark.parametrize("rtt_us", [50, 300])
@pytest.mark.parametrize("transport", [name for name in TRANSPORTS if name != "cosy"])
def test_a_node_that_pauses_fails_no_message(
    network_of: Start, transport: str, rtt_us: int
) -> None:
    """The receiver's node pauses, then the sender's, then that of an arbiter if there are any."""
    n_arbiters = ARBITERS.get(transport, 0)
    network = network_of(transport, n_arbiters, rtt_us=rtt_us)
    network.unreachable_after_ms = 10_000
    nodes = range(network.n_hosts + n_arbiters)
    for node in nodes:
        network.start(node)
    with network.port(0) as a, network.port(1) as b:
        a.send(1, text(0)).result(TIMEOUT)
        assert number_of(b.receive(TIMEOUT)) == 0
        for paused in (1, 0, *nodes[network.n_hosts :][:1]):
            send_across_a_pause(network, paused, a, b, 1_000 * (1 + paused))
        with pytest.raises(TimeoutError):
            b.receive(0.2)
    network.stop()


@pytest.mark.parametrize(
    ("transport", "for_s", "outcomes"),
    [
        ("dcpim", 8.0, {"completed"}),
        ("tcp", 8.0, {"completed"}),
        ("dcpim", 14.0, {"completed", "unreachable"}),
        ("homa", 14.0, {"completed", "unreachable"}),
    ],
)
def test_messages_fail_in_pauses_above_the_default_limit_only(
    network_of: Start, transport: str, for_s: float, outcomes: set[str]
) -> None:
    """The default of `unreachable-after-ms` is 10 s. The node works again after either pause."""
    network = network_of(transport)
    network.unreachable_after_ms = 10_000
    for node in (0, 1):
        network.start(node)
    with network.port(0) as a, network.port(1) as b:
        sent = [a.send(1, text(n, SIZE)) for n in range(N)]
        assert number_of(b.receive(TIMEOUT)) in range(N)
        pause(network, 1, sent, for_s)
        found = {outcome(ticket) for ticket in sent}
        # On a busy machine none may be complete before the pause.
        assert found <= outcomes
        assert ("unreachable" in found) == ("unreachable" in outcomes)
        later = a.send(1, text(N))
        assert outcome(later) == "completed"
    network.stop()


@pytest.mark.parametrize("transport", [name for name in TRANSPORTS if name != "cosy"])
def test_messages_to_a_stopped_node_fail_after_the_configured_time(
    network_of: Start, transport: str
) -> None:
    n_arbiters = ARBITERS.get(transport, 0)
    network = network_of(transport, n_arbiters)
    network.unreachable_after_ms = 2_000
    for node in range(network.n_hosts + n_arbiters):
        network.start(node)
    with network.port(0) as a, network.port(1) as b:
        a.send(1, text(0)).result(TIMEOUT)
        assert number_of(b.receive(TIMEOUT)) == 0
        network.processes[1].send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            sent = [a.send(1, text(n, size)) for n, size in enumerate((80, 400_000), start=1)]
            assert {outcome(ticket) for ticket in sent} == {"unreachable"}
            assert 1.9 < time.monotonic() - began < 4.0
        finally:
            network.processes[1].send_signal(signal.SIGCONT)
    network.stop()


@pytest.mark.parametrize("paused", [0, 1])
def test_cosy_reports_each_outcome_and_continues(network_of: Start, paused: int) -> None:
    """It promises bounds shorter than the pause, so messages in flight may fail, once each."""
    network = network_of("cosy", rtt_us=nodes.BUSY_US)
    network.unreachable_after_ms = 10_000
    for node in (0, 1):
        network.start(node)
    with network.port(0) as a, network.port(1) as b:
        sent = {n: a.send(1, text(n)) for n in range(N)}
        received = [number_of(b.receive(TIMEOUT))]
        pause(network, paused, list(sent.values()))
        outcomes = {n: outcome(ticket) for n, ticket in sent.items()}
        received += nodes.arrivals(b)
        assert len(set(received)) == len(received)
        assert set(outcomes.values()) <= {"completed", "rejected", "unreachable"}
        assert {n for n, fate in outcomes.items() if fate == "completed"} <= set(received)
        later = {n: a.send(1, text(n)) for n in range(N, N + 5)}
        assert "completed" in {outcome(ticket) for ticket in later.values()}
    network.stop()

"""Attacks on real hosts and loads that once found a fault: docs/project/hosts-review.md cites them.

Everything is on the loopback interface. Numbers of speed are printed (`pytest -rP`), and bounded
loosely only: machines that run tests are busy.
"""

import os
import random
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from rampmeter.hosts import Port
from tests import nodes, wire
from tests.nodes import (
    SERVICE,
    TICKS,
    TIMEOUT,
    Network,
    connect,
    needs_rampd,
    needs_root,
    number_of,
    outcome,
    say,
    text,
)
from tests.wire import Flood, Forger, Frame, Lives, Recorder, envelope, protected
from tools.hosts.soak import Sample, sample

pytestmark = [
    pytest.mark.long,
    needs_rampd,
]
network_of = nodes.network_of
Start = Callable[..., Network]
NOBODY: Final = 65_534


class Bare(Network):
    """Nodes without keys, whose packets anybody can forge."""

    def _configure(self, node: int) -> Path:
        file = super()._configure(node)
        lines = [line for line in file.read_text().splitlines() if "-key" not in line]
        at = lines.index("[network]") + 1
        lines.insert(at, 'security = "none"')
        file.write_text("\n".join(lines) + "\n")
        return file


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Callable[[str], Bare]]:
    """Yields a function that makes a network without keys; processes of a failed test are ended."""
    made: list[Bare] = []

    def make(transport: str) -> Bare:
        made.append(Bare(tmp_path, transport))
        return made[-1]

    yield make
    for network in made:
        for process in network.processes.values():
            process.kill()
            process.wait()


def address(network: Network, node: int) -> tuple[str, int]:
    """Returns a node's address for data; the next port is for control."""
    host, port = network.addresses[node].split(":")
    return host, int(port)


def ports(network: Network) -> set[int]:
    """Returns the ports of both nodes."""
    return {address(network, node)[1] + more for node in range(2) for more in (0, 1)}


def state(network: Network, node: int) -> Sample:
    """Returns the memory and the descriptors of a node."""
    return sample(network.processes[node].pid)


def processor_s(network: Network, node: int) -> float:
    """Returns the processor time of a node in seconds."""
    stat = Path(f"/proc/{network.processes[node].pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / TICKS


def start_both(network: Network) -> None:
    """Starts two nodes whose packets are as short as the path carries, each a datagram."""
    network.network_keys = dict.fromkeys((0, 1), "segmentation-offload = false")
    for node in (0, 1):
        network.start(node)


def exchange(a: Port, b: Port, numbers: range, size: int = 40_000) -> None:
    """Sends messages from one program to the other, and checks that all arrive."""
    tickets = [a.send(1, text(n, size)) for n in numbers]
    assert {number_of(b.receive(TIMEOUT)) for _ in numbers} == set(numbers)
    assert {outcome(ticket) for ticket in tickets} == {"completed"}


def counted(status: dict[str, Any], *names: str) -> int:
    """Returns the sum of counters of a node, which it updates once a second."""
    return sum(status["counters"].get(name, 0) for name in names)


def nothing_comes(port: Port, seconds: float = 0.5) -> bool:
    """Returns true if no message arrives for a while."""
    try:
        port.receive(seconds)
    except TimeoutError:
        return True
    return False


def recorded_lives(frames: list[Frame]) -> dict[int, Lives]:
    """Returns each source node's latest envelope that has the incarnations of both ends."""
    found = [Lives.of(frame.datagram) for frame in frames if len(frame.datagram) >= 28]
    return {lives.src: lives for lives in found if lives.dst_life}


@needs_root
@pytest.mark.parametrize("transport", ["dcpim", "phost"])
def test_floods_of_unknown_senders_do_not_affect_traffic(network_of: Start, transport: str) -> None:
    network = network_of(transport)
    start_both(network)
    ends = [address(network, node) for node in (0, 1)]
    rng = random.Random(1)
    lives = Lives(2, 0, 1, 1, 1)

    def strange(n: int) -> Frame:
        random_lives = lives._replace(
            src_life=rng.getrandbits(32) | 1, dst_life=rng.getrandbits(32)
        )
        kinds = (
            lambda: envelope(random_lives, wire.HELLO, n % 2**32),
            lambda: envelope(random_lives, wire.HERE, n % 2**32),
            lambda: envelope(random_lives, wire.CONTROL, n % 4) + rng.randbytes(20),
            lambda: envelope(random_lives, 5, n % 65_536, protection=wire.BARE) + rng.randbytes(96),
            lambda: rng.randbytes(rng.randrange(200)),
        )
        return Frame(ends[0], (ends[1][0], ends[1][1] + n % 2), protected(kinds[n % 5]()))

    def messages(a: Port, b: Port, first: int) -> float:
        began = time.monotonic()
        n = first
        while time.monotonic() - began < 1.5:
            exchange(a, b, range(n, n + 4))
            n += 4
        return (n - first) * 40_000 * 8 / (time.monotonic() - began) / 1e6

    with network.port(0) as a, network.port(1) as b:
        quiet = messages(a, b, 0)
        before = state(network, 1)
        with Flood(20_000, strange) as flood:
            began = time.monotonic()
            beset = messages(a, b, 100_000)
            rate = flood.sent / (time.monotonic() - began)
        grown = state(network, 1).memory_kib - before.memory_kib
        say(f"{transport}: {quiet:.0f} Mbit/s, {beset:.0f} beset by {rate:.0f} packets/s")
        assert nothing_comes(b, 0.1)
    assert grown < 16_000, f"{grown} KiB"
    assert rate > 1_000
    network.stop()


@needs_root
@pytest.mark.parametrize("transport", ["dcpim", "phost"])
def test_recorded_packets_deliver_nothing_again(network_of: Start, transport: str) -> None:
    network = network_of(transport)
    start_both(network)
    with network.port(0) as a:
        with Recorder(ports(network)) as recorder, network.port(1) as b, Forger() as forger:
            exchange(a, b, range(20))
            time.sleep(0.1)
            frames = list(recorder.frames)
            assert len(frames) > 20 * 40_000 // 1_500
            for frame in frames:
                forger.send(frame)
            assert nothing_comes(b)
            exchange(a, b, range(20, 25))
        network.wait_for(
            1, lambda status: counted(status, "replayed_packets", "unknown_session_packets") > 0
        )
        network.kill(1)
        network.start(1)
        with network.port(1) as b, Forger() as forger:
            for frame in frames:
                forger.send(frame)
            assert nothing_comes(b)
            # A message to the earlier incarnation fails.
            assert "completed" in (outcome(a.send(1, text(n))) for n in range(30, 35))
            assert number_of(b.receive(TIMEOUT)) in range(30, 35)
    network.stop()


def forgeries(lives: Lives, rng: random.Random) -> Iterator[bytes]:
    """Yields packets of all kinds with the right incarnations, of messages in flight and later."""
    for number in (*range(8), 65_536, 65_537, 131_072, 2**32 - 1):
        for protection in (wire.BARE, wire.CHECKSUM, wire.SEALED):
            for kind in (wire.CONTROL, wire.REFUSED, wire.CORRUPT):
                for code in range(13):
                    front = envelope(lives, kind, number, protection=protection)
                    yield front + bytes([code]) + rng.randbytes(rng.randrange(40))
            for kind in (wire.DATA, wire.WITH_DIGEST):
                for size in (1, 8, 1_000, 2**32 - 1):
                    more = (0, size) + (0,) * (kind == wire.WITH_DIGEST)
                    front = envelope(
                        lives, kind, number, protection=protection, service=SERVICE, more=more
                    )
                    yield front + bytes([3]) + rng.randbytes(12) + bytes(8)


@needs_root
@pytest.mark.parametrize("transport", ["dcpim", "phost", "homa", "tcp"])
def test_forged_packets_with_the_right_incarnations_change_nothing(
    network_of: Start, transport: str
) -> None:
    network = network_of(transport)
    start_both(network)
    ends = [address(network, node) for node in (0, 1)]
    rng = random.Random(2)
    with network.port(0) as a, network.port(1) as b, Forger() as forger:
        with Recorder(ports(network)) as recorder:
            exchange(a, b, range(5))
            time.sleep(0.1)
        lives = recorded_lives(recorder.frames)
        assert set(lives) == {0, 1}

        def forge(src: int) -> int:
            n = 0
            for datagram in forgeries(lives[src], rng):
                for more in (0, 1):
                    host, port = ends[1 - src]
                    forger.send(Frame(ends[src], (host, port + more), protected(datagram)))
                    n += 1
            return n

        before = state(network, 1).memory_kib
        n_forged = forge(0) + forge(1)
        exchange(a, b, range(10, 30))
        assert nothing_comes(b)
        # An answer that is forged while the receiver is stopped completes nothing.
        network.processes[1].send_signal(signal.SIGSTOP)
        try:
            ticket = a.send(1, text(99))
            forge(1)
            with pytest.raises(TimeoutError):
                ticket.result(0.3)
        finally:
            network.processes[1].send_signal(signal.SIGCONT)
        assert number_of(b.receive(TIMEOUT)) == 99
        assert outcome(ticket) == "completed"
        assert nothing_comes(b)
        names = (
            "unauthenticated_packets",
            "unknown_session_packets",
            "malformed_packets",
            "unknown_incarnation_packets",
            "replayed_packets",
        )
        network.wait_for(1, lambda status: counted(status, *names) > n_forged / 10)
        assert state(network, 1).memory_kib - before < 16_000
    network.stop()


@needs_root
@pytest.mark.parametrize("transport", ["dcpim", "phost", "sird"])
def test_small_packets_without_keys_cost_little_memory(
    bare: Callable[[str], Bare], transport: str
) -> None:
    network = bare(transport)
    start_both(network)
    ends = [address(network, node) for node in (0, 1)]
    rng = random.Random(3)
    with Recorder(ports(network)) as recorder, network.port(0) as a, network.port(1) as b:
        exchange(a, b, range(3))
        time.sleep(0.1)
    # No program is attached any more. Numbers of packets and sizes are at their maximum.
    lives = recorded_lives(recorder.frames)[0]
    before = state(network, 1).memory_kib
    with Forger() as forger:
        for n in range(3_000):
            code = 1 + n % 12
            numbers = b"".join(
                rng.choice((0, 1, 7, 4_000_000_000, 2**32 - 1)).to_bytes(4, "big") for _ in range(8)
            )
            front = (
                envelope(lives, wire.CONTROL, n)
                if n % 2
                else envelope(lives, wire.DATA, n, service=SERVICE, more=(0, 2**32 - 1))
            )
            datagram = protected(front + bytes([code]) + numbers[: rng.randrange(8, 33)])
            forger.send(Frame(ends[0], ends[1], datagram))
            if n % 100 == 0:
                time.sleep(0.005)
    time.sleep(0.5)
    assert network.processes[1].poll() is None
    grown = state(network, 1).memory_kib - before
    say(f"{transport}: {grown} KiB after 3000 packets")
    assert grown < 64_000, f"{grown} KiB"


@needs_root
@pytest.mark.parametrize("transport", ["dcpim", "phost"])
def test_a_pair_works_after_packets_with_flipped_bits_and_right_checksums(
    bare: Callable[[str], Bare], transport: str
) -> None:
    network = bare(transport)
    start_both(network)
    rng = random.Random(4)
    with network.port(0) as a, network.port(1) as b:
        with Recorder(ports(network)) as recorder:
            exchange(a, b, range(20))
            time.sleep(0.1)
        frames = [frame for frame in recorder.frames if len(frame.datagram) > 32]
        with Forger() as forger:
            for n in range(12_000):
                frame = rng.choice(frames)
                short = frame.datagram[: min(len(frame.datagram) - 4, 80)]
                bits = int.from_bytes(short, "big") ^ 1 << rng.randrange(8 * len(short))
                changed = protected(bits.to_bytes(len(short), "big"))
                forger.send(frame._replace(datagram=changed))
                if n % 200 == 0:
                    time.sleep(0.01)
        time.sleep(0.2)
        tickets = [a.send(1, text(n, 400_000)) for n in range(100, 120)]
        began = time.monotonic()
        until = began + 30.0
        while time.monotonic() < until and not all(ticket.is_over for ticket in tickets):
            with suppress(TimeoutError):
                b.receive(0.01)
            with suppress(TimeoutError):
                a.receive(0.01)
        completed = sum(ticket.is_over and ticket.failure is None for ticket in tickets)
        took = time.monotonic() - began
        say(f"{transport}: of 20 messages afterwards {completed} complete in {took:.1f} s")
        assert all(network.processes[node].poll() is None for node in (0, 1))
        # Without keys changed packets are not recognised: some messages may suffer.
        assert completed >= 10


@needs_root
def test_a_flood_of_new_messages_takes_a_time_that_grows_with_their_number(
    bare: Callable[[str], Bare],
) -> None:
    network = bare("phost")
    start_both(network)
    ends = [address(network, node) for node in (0, 1)]
    with Recorder(ports(network)) as recorder, network.port(0) as a, network.port(1) as b:
        exchange(a, b, range(3))
        time.sleep(0.1)
    lives = recorded_lives(recorder.frames)[0]
    took = []
    with Forger() as forger:
        for first in (1_000, 21_000, 41_000):
            began = processor_s(network, 1)
            for flow in range(first, first + 20_000):
                # RTS: flow, slot, size, no deadline, tenant, not repeated.
                numbers = flow.to_bytes(4, "big") * 2 + (1 << 20).to_bytes(8, "big")
                body = b"\x01" + numbers + b"\xff" * 8 + bytes(3)
                datagram = protected(envelope(lives, wire.CONTROL, flow) + body)
                forger.send(Frame(ends[0], (ends[1][0], ends[1][1] + 1), datagram))
                if flow % 100 == 0:
                    time.sleep(0.002)
            time.sleep(0.3)
            took.append(processor_s(network, 1) - began)
    say(f"processor time of 20 000 new messages, three times: {took} s")
    assert network.processes[1].poll() is None
    assert took[2] < 10 * max(took[0], 0.1), took
    network.wait_for(1, lambda status: counted(status, "packets_received") > 3_000)


def test_a_program_on_the_port_of_a_node_is_not_trusted(network_of: Start) -> None:
    network = network_of("phost")
    network.start(0)
    host, port = address(network, 1)
    with network.port(0) as a, socket.socket(type=socket.SOCK_DGRAM) as impostor:
        impostor.bind((host, port))
        impostor.settimeout(0.2)
        ticket = a.send(1, text(1))
        ends = time.monotonic() + 1.0
        n_received = 0
        while time.monotonic() < ends:
            try:
                datagram, sender = impostor.recvfrom(65_536)
            except TimeoutError:
                continue
            n_received += 1
            assert text(1)[:64] not in datagram
            lives = Lives.of(datagram)
            mine = lives._replace(src=1, dst=0, src_life=7, dst_life=lives.src_life)
            for kind in range(12):
                impostor.sendto(protected(envelope(mine, kind)), sender)
                impostor.sendto(protected(envelope(mine, kind)), address(network, 0))
        assert n_received > 0
        assert not ticket.is_over
    # The node receives the message after its start.
    network.start(1)
    with network.port(0) as a, network.port(1) as b:
        assert "completed" in (outcome(a.send(1, text(n))) for n in range(2, 7))
        assert number_of(b.receive(TIMEOUT)) in range(1, 7)


def as_nobody(act: Callable[[], None]) -> int:
    """Does something as another user; returns 0 if it can, else the error's number."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            act()
        except OSError as error:
            os._exit(error.errno or 255)
        except BaseException:
            os._exit(254)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_the_mode_of_the_socket_limits_attachment(network_of: Start) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        network = network_of("phost")
        network.folder = Path(folder)
        for node in range(2):
            network._keygen(f"{node}.key")
            network.keys[node] = [network._keygen(f"{node}.key")]
        umask = os.umask(0o007)
        try:
            network.start(0)
        finally:
            os.umask(umask)
        network.port(0).close()
        path = network.socket(0)
        assert path.stat().st_mode & 0o777 == 0o770
        assert as_nobody(lambda: connect(path).close()) == 13
        path.chmod(0o777)
        assert as_nobody(lambda: connect(path).close()) == 0
        network.stop()

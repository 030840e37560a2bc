"""Programs in Python that send to one another through two nodes in another process."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rampmeter.hosts import (
    FAILURES,
    AsyncPort,
    AttachError,
    FullError,
    NodeGoneError,
    Port,
    SendError,
)

ROOT = Path(__file__).parents[1]
SERVICE = 7
TIMEOUT = 20.0


@pytest.fixture(scope="session")
def daemon_program() -> str:
    """Returns the test daemon, built if need be."""
    given = os.environ.get("RAMPMETER_TEST_DAEMON")
    if given is not None:
        return given
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("no cargo to build the test daemon with")
    build = [cargo, "build", "-q", "--locked", "-p", "rampmeter-ring", "--example", "daemon"]
    build.append("--message-format=json")
    lines = subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    built = [json.loads(line).get("executable") for line in lines.splitlines()]
    return next(str(path) for path in built if path)


Daemon = subprocess.Popen[bytes]
StartDaemon = Callable[[], Daemon]


@pytest.fixture
def start(daemon_program: str, tmp_path: Path) -> Iterator[StartDaemon]:
    """Yields a function that starts two nodes with the sockets `node0.sock` and `node1.sock`."""
    started: list[Daemon] = []

    def start() -> Daemon:
        pipe = subprocess.PIPE
        daemon = subprocess.Popen([daemon_program, tmp_path], stdin=pipe, stdout=pipe)
        started.append(daemon)
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == b"ready\n"
        return daemon

    yield start
    for daemon in started:
        daemon.kill()
        daemon.communicate()


@pytest.fixture
def nodes(start: StartDaemon, tmp_path: Path) -> list[Path]:
    start()
    return [tmp_path / "node0.sock", tmp_path / "node1.sock"]


def test_messages_arrive_and_have_outcomes(nodes: list[Path]) -> None:
    kinds: list[bytes | bytearray | memoryview] = [b"x", bytearray(b"array"), memoryview(b"view")]
    with Port(nodes[0], SERVICE) as a, Port(nodes[1], SERVICE) as b:
        for data in [*kinds, bytes(range(256)) * 1000]:
            ticket = a.send(1, data, deadline=0.01, tenant=3)
            message = b.receive(TIMEOUT)
            assert (message.source, message.data, len(message)) == (0, bytes(data), len(data))
            ticket.result(TIMEOUT)
            assert ticket.is_over
        assert a.send(1, b"nobody", service=99).number == 4
        with pytest.raises(SendError, match="refused") as error:
            a.send(1, b"nobody", service=99).result(TIMEOUT)
        assert error.value.reason == "refused"
        with pytest.raises(TimeoutError):
            b.receive(0.01)


def test_sending_waits_for_buffer_space(nodes: list[Path]) -> None:
    with Port(nodes[0], SERVICE, depth=4, send=8192) as a, Port(nodes[1], SERVICE) as b:
        tickets = [a.send(1, bytes([n]) * 3000) for n in range(50)]
        got = sorted(b.receive(TIMEOUT).data[0] for _ in range(50))
        assert got == list(range(50))
        for ticket in tickets:
            ticket.result(TIMEOUT)
        with pytest.raises(ValueError, match="at most 8192 bytes"):
            a.send(1, bytes(8193))


def test_unread_messages_pause_senders(nodes: list[Path]) -> None:
    with Port(nodes[0], SERVICE) as a, Port(nodes[1], SERVICE, receive=8192) as b:
        tickets = [a.send(1, bytes(4096)) for _ in range(3)]
        unread = [b.receive(TIMEOUT) for _ in range(2)]
        with pytest.raises(TimeoutError):
            b.receive(0.1)
        unread.clear()
        assert len(b.receive(TIMEOUT)) == 4096
        for ticket in tickets:
            ticket.result(TIMEOUT)


def test_threads_share_a_port(nodes: list[Path]) -> None:
    """Each thread receives the outcomes of its messages, whichever thread takes them."""

    def send(port: Port) -> int:
        for n in range(50):
            port.send(1, bytes([n]), SERVICE).result(TIMEOUT)
        return 50

    def receive(port: Port) -> int:
        for _ in range(100):
            port.receive(TIMEOUT)
        return 100

    with Port(nodes[0], SERVICE) as a, Port(nodes[1], SERVICE) as b, ThreadPoolExecutor(6) as pool:
        received = [pool.submit(receive, b) for _ in range(2)]
        sent = [pool.submit(send, a) for _ in range(4)]
        assert sum(each.result(TIMEOUT) for each in sent + received) == 400


def test_a_child_cannot_use_the_port_of_its_parent(nodes: list[Path]) -> None:
    with Port(nodes[0], SERVICE) as port:
        with warnings.catch_warnings():
            # This process may have threads; the child does nothing that needs them.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                port.send(1, b"x")
            except RuntimeError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_refusals_have_reasons(nodes: list[Path], tmp_path: Path) -> None:
    with Port(nodes[0], SERVICE):
        with pytest.raises(AttachError, match="service 7 is taken"):
            Port(nodes[0], SERVICE)
        with pytest.raises(AttachError, match="depth of 1 to 65536"):
            Port(nodes[0], 8, depth=0)
    port = Port(nodes[0], SERVICE)
    port.close()
    with pytest.raises(ValueError, match="closed"):
        port.send(1, b"late")
    with Port(nodes[0], SERVICE) as port, pytest.raises(ValueError, match="a deadline of 0"):
        port.send(1, b"x", deadline=-1.0)
    with pytest.raises(AttachError, match="no node listens"):
        Port(tmp_path / "nothing", SERVICE)


def test_wrong_arguments_are_named(nodes: list[Path]) -> None:
    with pytest.raises(ValueError, match=r"^service: expected a whole number from 0 to 65535, got"):
        Port(nodes[0], -1)
    with Port(nodes[0], SERVICE) as port:
        calls: dict[str, Callable[[], object]] = {
            "service": lambda: port.send(1, b"x", service=70_000),
            "dst": lambda: port.send("one", b"x"),  # type: ignore[arg-type]
            "tenant": lambda: port.send(1, b"x", tenant=-1),
            "timeout": lambda: port.receive(timeout="a"),  # type: ignore[arg-type]
        }
        for name, call in calls.items():
            with pytest.raises(ValueError, match=f"^{name}: expected a (whole )?number"):
                call()


def test_the_death_of_the_node_is_seen(start: StartDaemon, tmp_path: Path) -> None:
    daemon = start()
    port = Port(tmp_path / "node0.sock", SERVICE)
    receiver = Port(tmp_path / "node1.sock", SERVICE, receive=4096)
    receiver.send(1, bytes(4096)).result(TIMEOUT)
    ticket = port.send(1, bytes(4096))
    daemon.kill()
    with pytest.raises(SendError, match="node-gone"):
        ticket.result(TIMEOUT)
    assert list(port) == []
    with pytest.raises(NodeGoneError):
        port.send(1, b"late")
    with pytest.raises(AttachError):
        Port(tmp_path / "node0.sock", SERVICE)
    start()
    Port(tmp_path / "node0.sock", SERVICE).close()


def test_interrupts_end_waiting(nodes: list[Path]) -> None:
    with Port(nodes[0], SERVICE) as port:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        start = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            port.receive()
        assert time.monotonic() - start < 5.0


def test_asyncio_sends_and_receives(nodes: list[Path]) -> None:
    async def run() -> None:
        config = {"depth": 16, "send": 65536}
        async with AsyncPort(nodes[0], SERVICE, **config) as a, AsyncPort(nodes[1], SERVICE) as b:

            async def collect() -> list[int]:
                numbers = []
                async for message in b:
                    numbers.append(int(message.data[:8]))
                    if len(numbers) == 200:
                        break
                return sorted(numbers)

            collected = asyncio.create_task(collect())
            sends = [a.send(1, f"{n:08}".encode() * 200) for n in range(200)]
            await asyncio.gather(*sends)
            assert await collected == list(range(200))
            with pytest.raises(SendError, match="unknown-peer"):
                await a.send(9, b"nobody")
            with pytest.raises(ValueError, match="at most"):
                await a.send(1, bytes(65537))
            held = asyncio.create_task(b.receive())
            await a.send(1, b"last")
            assert (await held).data == b"last"
            waiting = asyncio.create_task(b.receive())
            await asyncio.sleep(0)
            b.close()
            with pytest.raises(NodeGoneError):
                await waiting

    asyncio.run(asyncio.wait_for(run(), TIMEOUT))


def test_asyncio_sees_the_death_of_the_node(start: StartDaemon, tmp_path: Path) -> None:
    async def run() -> None:
        daemon = start()
        async with AsyncPort(tmp_path / "node0.sock", SERVICE) as port:
            ends = asyncio.create_task(anext(aiter(port), None))
            lost = asyncio.create_task(port.send(1, bytes(32 << 20), service=SERVICE))
            await asyncio.sleep(0)
            daemon.kill()
            with pytest.raises(SendError):
                await lost
            assert await ends is None

    asyncio.run(asyncio.wait_for(run(), TIMEOUT))


def test_a_full_port_without_messages_in_flight_is_an_error(nodes: list[Path]) -> None:
    with Port(nodes[0], SERVICE, send=0) as port, pytest.raises((FullError, ValueError)):
        port.send(1, b"x")


def test_failures_have_the_same_texts_in_c_and_python() -> None:
    source = (ROOT / "crates/capi/src/lib.rs").read_text(encoding="utf-8")
    in_c = dict(re.findall(r'RM_([A-Z_]+) => c"([^"]+)"', source))
    assert {name.lower().replace("_", "-"): text for name, text in in_c.items()} == FAILURES
    assert str(SendError("refused", 3, 7)) == (
        "the message to node 3, service 7, failed: refused: "
        "no program there receives messages of this service or size"
    )


def test_the_description_of_the_c_library_has_the_version_of_the_package() -> None:
    description = (ROOT / "crates/capi/rampmeter.pc").read_text(encoding="utf-8")
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert f"Version: {version}\n" in description

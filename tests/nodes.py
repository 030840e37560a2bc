"""Nodes on loopback or in namespaces, for the tests that start them."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from rampmeter.hosts import AttachError, Message, Port, SendError, Ticket
from rampmeter.testbed import Fabric, TestbedError, is_privileged
from rampmeter.testbed.experiment import find_rampd

SERVICE = 7
TIMEOUT = 30.0


try:
    RAMPD = find_rampd()
except TestbedError:
    RAMPD = ""
"""Path of the daemon; empty if it is not built."""
needs_rampd = pytest.mark.skipif(not RAMPD, reason="rampd is not built: make build")
needs_root = pytest.mark.skipif(
    not is_privileged(), reason="needs root for namespaces and raw packets"
)

PORTS: Final = itertools.count(12_000 + 2 * (os.getpid() * 7_919 % 10_000), 2)
"""Ports outside Linux's range of ephemeral ports: free ones stay free until they are used."""


def free_ports(n: int) -> list[int]:
    """Returns unused ports, of which the next one is free too."""
    return list(itertools.islice(filter(_is_free_pair, PORTS), n))


def _is_free_pair(port: int) -> bool:
    try:
        for each in (port, port + 1):
            with socket.socket(type=socket.SOCK_DGRAM) as one:
                one.bind(("127.0.0.1", each))
    except OSError:
        return False
    return True


class Network:
    """Nodes of one configuration, on loopback or in namespaces."""

    def __init__(
        self, folder: Path, transport: str, arbiters: int = 0, rtt_us: int = 500, keys: str = ""
    ) -> None:
        self.folder = folder
        self._transport = transport
        self._keys = keys
        self._rtt_us = rtt_us
        self._n = 2 + arbiters
        self.n_hosts = 2
        self.rate = 200
        self.unreachable_after_ms = 500
        self.network_keys: dict[int, str] = {}
        self.addresses: list[str] = []
        self.keys: list[list[str]] = []
        self.private: list[str] = []
        for _ in range(self._n):
            self.add()
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.fabric: Fabric | None = None

    def _keygen(self, file: str) -> str:
        argv = [RAMPD, "keygen", str(self.folder / file)]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    def add(self) -> int:
        """Adds a node; returns its number."""
        node, (port,) = len(self.addresses), free_ports(1)
        self.addresses.append(f"127.0.0.1:{port}")
        self.keys.append([self._keygen(f"{node}.key")])
        self.private.append(f"{node}.key")
        return node

    def status(self, node: int) -> dict[str, Any]:
        """Returns the output of `rampd status`."""
        argv = [RAMPD, "status", "--json", str(self.folder / f"{node}.toml")]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        status: dict[str, Any] = json.loads(done.stdout)
        return status

    def wait_for(
        self, node: int, predicate: Callable[[dict[str, Any]], bool], timeout: float = TIMEOUT
    ) -> dict[str, Any]:
        """Waits for the first status that satisfies `predicate`, and returns it."""
        ends = time.monotonic() + timeout
        while not predicate(status := self.status(node)):
            assert time.monotonic() < ends, status
            time.sleep(0.1)
        return status

    def reload(self) -> None:
        """Writes all configurations, and has all nodes read them."""
        for node, process in self.processes.items():
            self._configure(node)
            process.send_signal(signal.SIGHUP)
        time.sleep(0.3)

    def change_key(self, node: int, after_each: Callable[[], None]) -> None:
        """Changes the key of a node, as the documentation describes."""
        old, new = self.keys[node][0], self._keygen(f"{node}.next.key")
        self.keys[node] = [old, new]
        self.reload()
        after_each()
        self.private[node] = f"{node}.next.key"
        self.reload()
        after_each()
        self.keys[node] = [new]
        self.reload()
        after_each()

    def _configure(self, node: int) -> Path:
        peers = "".join(
            f'[[peer]]\nid = {n}\naddress = "{address}"\n'
            f"arbiter = {str(n >= self.n_hosts).lower()}\n"
            f"public-key = {self.keys[n]}\n"
            for n, address in enumerate(self.addresses)
        )
        file = self.folder / f"{node}.toml"
        file.write_text(
            f'[node]\nid = {node}\nclock = "monotonic"\nsocket = "{self.socket(node)}"\n'
            f'private-key = "{self.private[node]}"\n'
            f"[network]\nrate-mbps = {self.rate}\ncontrol-rtt-us = {self._rtt_us}\n"
            f"unreachable-after-ms = {self.unreachable_after_ms}\n"
            f"{self.network_keys.get(node, '')}\n"
            f'[transport]\nname = "{self._transport}"\n{self._keys}\n{peers}'
        )
        return file

    def start(self, node: int, *, listening: socket.socket | None = None) -> None:
        """Starts a node or an arbiter, as a service manager that has opened its socket does."""
        file = self._configure(node)
        argv = [RAMPD, "arbiter" if node >= self.n_hosts else "node", str(file)]
        if listening is not None:
            script = f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&{listening.fileno()}'
            argv = ["bash", "-c", script, "bash", *argv]
            with (self.folder / f"{node}.log").open("ab") as log:
                pass_fds = [listening.fileno()]
                self.processes[node] = subprocess.Popen(argv, stderr=log, pass_fds=pass_fds)
            return
        log = (self.folder / f"{node}.log").open("ab")
        with log:
            if self.fabric is None:
                self.processes[node] = subprocess.Popen(argv, stderr=log)
            else:
                self.processes[node] = self.fabric.run(node, argv, stderr=log)

    def kill(self, node: int) -> None:
        """Kills a node without notice."""
        process = self.processes.pop(node)
        process.kill()
        process.wait()

    def socket(self, node: int) -> Path:
        """Returns the socket to which programs attach."""
        return self.folder / f"{node}.sock"

    def port(self, node: int, receive: int = 8 << 20) -> Port:
        """Attaches to a node that may still be starting."""
        until = time.monotonic() + TIMEOUT
        while True:
            try:
                return Port(self.socket(node), SERVICE, depth=64, receive=receive)
            except AttachError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def stop(self) -> None:
        """Ends all processes."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            assert process.wait(TIMEOUT) == 0


Start = Callable[..., Network]


@pytest.fixture
def network_of(tmp_path: Path) -> Iterator[Start]:
    """Yields a function that makes a network; processes of a failed test are ended."""
    made: list[Network] = []

    def make(transport: str, arbiters: int = 0, rtt_us: int = 500, keys: str = "") -> Network:
        made.append(Network(tmp_path, transport, arbiters, rtt_us, keys))
        return made[-1]

    yield make
    for network in made:
        for process in network.processes.values():
            process.kill()
            process.wait()


def text(number: int, size: int = 40_000) -> bytes:
    """Returns a message that contains its number."""
    return number.to_bytes(8, "big") * (size // 8)


def number_of(message: Message) -> int:
    """Returns the number of a message; fails if a byte of it was altered."""
    number = int.from_bytes(message.data[:8], "big")
    assert message.data == text(number, len(message))
    return number


def outcome(ticket: Ticket) -> str:
    """Returns the outcome of a message."""
    try:
        ticket.result(TIMEOUT)
    except SendError as error:
        return error.reason
    return "completed"


BUSY_US: Final = 50_000
"""Round trip in cosy's configuration if others use all processors."""
LATE: Final = 0.5
"""Seconds in which programs that are ready get a processor."""


def described(network: Network, node: int) -> dict[str, float]:
    """Returns the numbers that `rampd check` derives, by name."""
    argv = [RAMPD, "--json", "check", str(network.folder / f"{node}.toml")]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    derived: dict[str, float] = json.loads(text)["configurations"][0]["derived"]
    return derived


def arrivals(port: Port) -> list[int]:
    """Returns the messages that arrive until none arrives for a while."""
    numbers = []
    while True:
        try:
            numbers.append(number_of(port.receive(LATE)))
        except TimeoutError:
            return numbers


TICKS: Final = os.sysconf("SC_CLK_TCK")


def say(text: str) -> None:
    """Prints a number that no test judges."""
    sys.stdout.write(f"{text}\n")


def connect(path: Path) -> socket.socket:
    """Opens a connection to a node, and sends nothing."""
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.connect(str(path))
    return one


ARBITERS: Final = {"fastpass": 2, "capton": 1, "hyline": 1, "fastpod": 1}

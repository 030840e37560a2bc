"""Four nodes in network namespaces, their kills and restarts, and messages between them.

Common parts of `soak` and `stress`: the namespaces with a faulty cable between them, the
configurations of nodes, and messages that identify their sender and reveal changes.
"""

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from rampmeter.hosts import AttachError, Port
from rampmeter.testbed.command import run, tool
from rampmeter.testbed.process import end_all

N_NODES: Final = 4
HEADER: Final = struct.Struct(">QIIQI")
"""Incarnation of the sender, number, size, time of sending in ns, checksum of the rest."""
START_S: Final = 5.0
"""Maximum start-up time of a node in seconds, on a busy machine."""
FLIPS: Final = Path(__file__).with_name("flips.py")


def encode_message(incarnation: int, number: int, size: int) -> bytes:
    """Makes a message of `size` bytes, or as many as its header has."""
    body = random.Random(incarnation ^ number).randbytes(max(0, size - HEADER.size))
    return HEADER.pack(incarnation, number, size, time.monotonic_ns(), zlib.crc32(body)) + body


def decode_message(data: bytes) -> tuple[int, int, int, bool]:
    """Returns incarnation, number and time of sending of a message, and true if it is unchanged."""
    if len(data) < HEADER.size:
        return 0, 0, 0, False
    incarnation, number, size, sent_ns, checksum = HEADER.unpack_from(data)
    body = data[HEADER.size :]
    is_whole = max(size, HEADER.size) == len(data) and zlib.crc32(body) == checksum
    return incarnation, number, sent_ns, is_whole


def attach(socket: Path, service: int, receive: int = 64 << 20) -> Port:
    """Attaches to a node that may still be starting."""
    until = time.monotonic() + 20
    while True:
        try:
            return Port(socket, service, receive=receive)
        except AttachError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


@dataclass(frozen=True)
class NodeNamespace:
    """A namespace in which nodes run: the command that runs a program there, and its address."""

    within: list[str]
    address: str


@contextmanager
def namespaces(names: Sequence[str]) -> Iterator[list[list[str]]]:
    """Creates network namespaces; yields the command that runs a program in each."""
    ip = tool("ip")
    try:
        for name in names:
            run([ip, "netns", "add", name])
            run([ip, "-netns", name, "link", "set", "lo", "up"])
        yield [[ip, "netns", "exec", name] for name in names]
    finally:
        try:
            end_all(names)
        finally:
            for name in names:
                subprocess.run([ip, "netns", "del", name], check=False, capture_output=True)


@contextmanager
def one_host(tag: str) -> Iterator[list[NodeNamespace]]:
    """Creates a namespace in which all nodes use the loopback interface."""
    with namespaces([f"{tag}-{os.getpid()}-a"]) as (within,):
        yield [NodeNamespace(within, "127.0.0.1")]


@contextmanager
def cable(
    rampd: str,
    faults: Sequence[str],
    tag: str,
    flips: Sequence[str] = (),
    log: IO[bytes] | None = None,
) -> Iterator[list[NodeNamespace]]:
    """Creates two namespaces with a faulty cable between them.

    `faults` are options of `rampd middlebox`, and `flips` of `flips.py`, which lengthens the cable
    if there are any. Both write their actions to `log`.
    """
    ip = tool("ip")
    names = [f"{tag}-{os.getpid()}-{end}" for end in ("a", "m", "b")]
    boxes: list[subprocess.Popen[bytes]] = []
    with namespaces(names) as (a, middle, b):
        for end, far, address in ((names[0], "left", 1), (names[2], "right", 2)):
            far_end = ["peer", "name", far, "netns", names[1]]
            run([ip, "-netns", end, "link", "add", "eth0", "type", "veth", *far_end])
            run([ip, "-netns", end, "address", "add", f"10.99.0.{address}/24", "dev", "eth0"])
            run([ip, "-netns", end, "link", "set", "eth0", "up"])
            run([ip, "-netns", names[1], "link", "set", far, "up"])
        box = [rampd, "middlebox", "left", "right", *faults]
        if flips:
            box[3] = "near"
            far_end = ["peer", "name", "far", "netns", names[1]]
            run([ip, "-netns", names[1], "link", "add", "near", "type", "veth", *far_end])
            for end in ("near", "far"):
                run([ip, "-netns", names[1], "link", "set", end, "up"])
            flipper = [sys.executable, "-P", str(FLIPS)]
            for within in (a, b):
                run([*within, *flipper, "--whole", "eth0"])
            boxes.append(subprocess.Popen([*middle, *flipper, "far", "right", *flips], stderr=log))
        boxes.append(subprocess.Popen([*middle, *box], stderr=log))
        try:
            yield [NodeNamespace(a, "10.99.0.1"), NodeNamespace(b, "10.99.0.2")]
        finally:
            for process in boxes:
                process.send_signal(signal.SIGTERM)
            for process in boxes:
                try:
                    process.wait(2)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


@dataclass
class Cluster:
    """Nodes, with arbiters after them, and their keys. Each place has as many of them."""

    out: Path
    transport: str
    rampd: str
    places: list[NodeNamespace]
    n_arbiters: int = field(default=0, kw_only=True)
    is_encrypted: bool = field(default=True, kw_only=True)
    control_rtt_us: int = field(default=1_000, kw_only=True)
    keys: list[list[str]] = field(default_factory=list, kw_only=True)
    private: list[str] = field(default_factory=list, kw_only=True)
    nodes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict, kw_only=True)

    def keygen(self, file: str) -> str:
        """Makes a private key; returns the public one."""
        done = subprocess.run(
            [self.rampd, "keygen", str(self.out / file)], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def prepare(self) -> None:
        """Makes the first keys."""
        for node in range(N_NODES + self.n_arbiters):
            self.private.append(f"{node}.key")
            self.keys.append([self.keygen(f"{node}.key")])

    def place(self, node: int) -> NodeNamespace:
        """Returns the namespace of a node; arbiters are in the last one."""
        return self.places[min(node, N_NODES - 1) * len(self.places) // N_NODES]

    def configure(self, node: int) -> Path:
        """Writes the configuration of a node."""
        peers = "".join(
            f'[[peer]]\nid = {n}\naddress = "{self.place(n).address}:{7300 + 10 * n}"\n'
            f"arbiter = {json.dumps(n >= N_NODES)}\n"
            + (f"public-key = {json.dumps(self.keys[n])}\n" if self.is_encrypted else "")
            for n in range(N_NODES + self.n_arbiters)
        )
        file = self.out / f"{node}.toml"
        new = file.with_suffix(".new")
        new.write_text(
            f'[node]\nid = {node}\nclock = "monotonic"\nsocket = "{self.socket(node)}"\n'
            + (f'private-key = "{self.private[node]}"\n' if self.is_encrypted else "")
            + f"[network]\nrate-mbps = 1000\ncontrol-rtt-us = {self.control_rtt_us}\n"
            # Failures follow kills within the time in which they count as explained.
            + "unreachable-after-ms = 1000\n"
            + ("" if self.is_encrypted else 'security = "none"\n')
            + f'[transport]\nname = "{self.transport}"\n{peers}',
            encoding="utf-8",
        )
        # A node that starts must not read a partial file.
        new.replace(file)
        return file

    def socket(self, node: int) -> Path:
        """Returns the socket where programs attach."""
        return self.out / f"{node}.sock"

    def start_node(self, node: int) -> None:
        """Starts a node or an arbiter."""
        role = "arbiter" if node >= N_NODES else "node"
        argv = [*self.place(node).within, self.rampd, role, str(self.configure(node))]
        with (self.out / f"{node}.log").open("ab") as log:
            self.nodes[node] = subprocess.Popen(argv, stderr=log)

    def wait_until_up(self, node: int) -> None:
        """Waits until a started node answers `rampd status`, for a limited time."""
        ends = time.monotonic() + START_S
        while time.monotonic() < ends and self.nodes[node].poll() is None:
            with socket.socket(socket.AF_UNIX) as asking:
                try:
                    asking.connect(str(self.out / f"{node}.status"))
                except OSError:
                    time.sleep(0.01)
                else:
                    return

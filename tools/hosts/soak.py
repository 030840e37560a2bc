"""Nodes under kills, loss, slow readers and new keys, for a configurable time.

    python -m tools.hosts.soak out --minutes 60 --transport dcpim

Four encrypted nodes, a program at each that sends messages of 1 B to 1 MB to the others. Nodes 0
and 1 are in one network namespace, 2 and 3 in another; the cable between loses, doubles and
reorders frames (`rampd middlebox`). Programs and nodes are killed (SIGKILL) and restarted, except
node 0. Node 0 changes its key as the documentation describes. A program at node 1 receives one
message per second, and has many queued. Needs root, or user namespaces.

Every message has a sender, a number and a checksum. Every program logs sent and received messages
and outcomes. The logs are compared at the end. The soak fails (exit code 1) if:

- a message arrived twice or changed;
- a message was reported as completed and never received by a program that survived;
- several failed as unreachable though all programs and nodes survived;
- node 0's memory or descriptors grew;
- fewer than one message per second was received.
"""

import argparse
import itertools
import json
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rampmeter.hosts import AttachError, FullError, NodeGoneError, SendError, Ticket
from rampmeter.testbed.command import TestbedError, enter_user_namespace
from rampmeter.testbed.experiment import find_rampd
from tools.hosts.cluster import (
    N_NODES,
    Cluster,
    attach,
    cable,
    decode_message,
    encode_message,
)

SERVICE: Final = 7
SLOW_SERVICE: Final = 8
SIZE_MAX: Final = 1_000_000
SMALL: Final = 1_000
"""Maximum size of messages that count in latencies, in bytes."""
SLOW_SIZE: Final = 20_000
SLOW_DEPTH: Final = 256
GAP_S: Final = 0.05
"""Mean pause between two messages of a program."""
DRAIN_S: Final = 10.0
GRACE_S: Final = 15.0
"""Seconds after a death in which messages may fail because of it."""


class Program:
    """A program at a node that sends, receives and logs.

    A line is a letter (`S` sends, `R` has received, `O` has the outcome), the time in s, the
    incarnation of the message's sender, its number, and more.
    """

    def __init__(self, node: int, socket: Path, log: Path, seed: int, ends_at: float) -> None:
        self.node = node
        self.rng = random.Random(seed)
        self.incarnation = random.SystemRandom().getrandbits(63)
        self.numbers = itertools.count()
        self.ends_at = ends_at
        self.port = attach(socket, SERVICE)
        self.log = log.open("a", buffering=1, encoding="utf-8")
        self.sent: deque[tuple[int, Ticket]] = deque()

    def write(self, letter: str, incarnation: int, number: int, *more: object) -> None:
        """Writes a line."""
        print(letter, f"{time.monotonic():.6f}", incarnation, number, *more, file=self.log)

    def run(self) -> None:
        """Runs until the end, or until the node has ended."""
        due = time.monotonic()
        while (now := time.monotonic()) < self.ends_at + DRAIN_S:
            if now < self.ends_at and now >= due:
                due = max(due, now - 1.0) + self.rng.expovariate(1 / GAP_S)
                self.send()
            wake = due if now < self.ends_at else now + 0.1
            self.receive(max(0.0, min(0.1, wake - now)))
            self.log_outcomes()

    def send(self) -> None:
        """Sends due messages: one to any node, and one to the slow reader from node 0."""
        dst = self.rng.choice([n for n in range(N_NODES) if n != self.node])
        size = round(SIZE_MAX ** self.rng.random())
        self.submit(dst, SERVICE, size)
        if self.node == 0 and len(self.sent) < SLOW_DEPTH:
            self.submit(1, SLOW_SERVICE, SLOW_SIZE)

    def submit(self, dst: int, service: int, size: int) -> None:
        """Sends a message, which is logged before it is sent."""
        number = next(self.numbers)
        self.write("S", self.incarnation, number, dst, service, size)
        try:
            ticket = self.port.send(dst, encode_message(self.incarnation, number, size), service)
        except FullError:
            self.write("O", self.incarnation, number, "full")
        else:
            self.sent.append((number, ticket))

    def receive(self, timeout: float) -> None:
        """Receives a message, if one arrives in time."""
        try:
            message = self.port.receive(timeout)
        except TimeoutError:
            return
        incarnation, number, sent_ns, is_whole = decode_message(bytes(message.data))
        delay_us = (time.monotonic_ns() - sent_ns) / 1e3
        self.write("R", incarnation, number, len(message.data), f"{delay_us:.0f}", int(is_whole))

    def log_outcomes(self) -> None:
        """Logs the reported outcomes."""
        for _ in range(len(self.sent)):
            number, ticket = self.sent.popleft()
            if ticket.is_over:
                self.write("O", self.incarnation, number, ticket.failure or "completed")
            else:
                self.sent.append((number, ticket))


def read_slowly(socket: Path, log: Path, ends_at: float) -> None:
    """Receives one message per second."""
    port = attach(socket, SLOW_SERVICE, receive=1 << 20)
    with log.open("a", buffering=1, encoding="utf-8") as lines:
        while time.monotonic() < ends_at:
            time.sleep(1.0)
            try:
                data = bytes(port.receive(0.1).data)
            except TimeoutError:
                continue
            incarnation, number, _, is_whole = decode_message(data)
            now = time.monotonic()
            print("R", f"{now:.6f}", incarnation, number, len(data), 0, int(is_whole), file=lines)


@dataclass
class SoakCluster(Cluster):
    """Nodes and programs, with the kills and their times."""

    ends_at: float
    seed: int
    programs: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    kills: list[tuple[float, int]] = field(default_factory=list)
    """Times at which a node, or its program, was killed."""
    starts: int = 0
    slow: "subprocess.Popen[bytes] | None" = None

    def start_program(self, node: int) -> None:
        """Starts the program of a node."""
        self.starts += 1
        more = [str(node), str(self.seed + self.starts), str(self.ends_at)]
        self.programs[node] = self.role("program", node, *more)

    def role(self, role: str, node: int, *more: str) -> "subprocess.Popen[bytes]":
        """Starts this file in a role."""
        argv = [sys.executable, "-m", __name__ if __name__ != "__main__" else MODULE, role]
        argv += [str(self.socket(node)), str(self.out / f"{role}-{node}.txt"), *more]
        with (self.out / f"{role}-{node}.log").open("ab") as log:
            return subprocess.Popen(argv, stderr=log)

    def kill(self, process: "subprocess.Popen[bytes]", node: int) -> None:
        """Kills a process of a node, and records the time."""
        process.kill()
        process.wait()
        self.kills.append((time.monotonic(), node))

    def kill_all(self) -> None:
        """Kills all nodes and programs."""
        for process in [*self.nodes.values(), *self.programs.values(), self.slow]:
            if process is not None:
                process.kill()
                process.wait()

    def reload(self) -> None:
        """Makes all nodes read their configurations, once restarted ones have started."""
        for node, process in self.nodes.items():
            self.configure(node)
            self.wait_until_up(node)
            process.send_signal(signal.SIGHUP)

    def change_key(self) -> Iterator[None]:
        """Changes the key of node 0, in three steps."""
        name = f"0.{self.starts}.{time.monotonic_ns()}.key"
        old, new = self.keys[0][0], self.keygen(name)
        self.keys[0] = [old, new]
        self.reload()
        yield
        self.private[0] = name
        self.reload()
        yield
        self.keys[0] = [new]
        self.reload()
        yield

    def restart_ended(self) -> None:
        """Restarts ended processes: programs end with their node."""
        for node, process in self.programs.items():
            if process.poll() is not None:
                self.start_program(node)
        if self.slow is None or self.slow.poll() is not None:
            self.slow = self.role("slow", 1, str(self.ends_at))


@dataclass(frozen=True)
class Sample:
    """Memory and descriptors of node 0 at an instant."""

    at: float
    memory_kib: int
    descriptors: int


def sample(pid: int) -> Sample:
    """Measures a process: its private memory, and its descriptors."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    lines = dict(line.split(":", 1) for line in status.splitlines())
    memory = int(lines["RssAnon"].split()[0])
    return Sample(time.monotonic(), memory, len(list(Path(f"/proc/{pid}/fd").iterdir())))


def inject_faults(cluster: SoakCluster, minutes: float) -> list[Sample]:
    """Kills, restarts and changes keys until the end; returns samples of node 0."""
    rng = random.Random(cluster.seed)
    samples: list[Sample] = []
    steps: Iterator[None] = iter(())
    began = last = time.monotonic()
    while (now := time.monotonic()) < cluster.ends_at:
        time.sleep(1.0)
        cluster.restart_ended()
        for node, process in cluster.nodes.items():
            if process.poll() is not None:
                raise TestbedError(f"node {node} has ended: see {cluster.out / f'{node}.log'}")
        if rng.random() < 1 / 15:
            node = rng.randrange(N_NODES)
            cluster.kill(cluster.programs[node], node)
            cluster.start_program(node)
        if rng.random() < 1 / 45:
            node = rng.randrange(1, N_NODES)
            cluster.kill(cluster.nodes[node], node)
            time.sleep(0.5)
            cluster.start_node(node)
        if rng.random() < 1 / 60:
            steps = itertools.chain(steps, cluster.change_key())
        next(steps, None)
        samples.append(sample(cluster.nodes[0].pid))
        if now - last > 60:
            last = now
            one = samples[-1]
            done = (now - began) / 60
            sys.stderr.write(
                f"soak: {done:.0f} of {minutes:g} minutes, {len(cluster.kills)} killed, node 0 has "
                f"{one.memory_kib} KiB and {one.descriptors} descriptors\n"
            )
    return samples


@dataclass
class SoakLog:
    """The log lines of all programs."""

    sent: dict[tuple[int, int], tuple[float, int, int, int]] = field(default_factory=dict)
    """By incarnation and number: time, destination node and service, and bytes."""
    outcomes: dict[tuple[int, int], tuple[float, str]] = field(default_factory=dict)
    received: Counter[tuple[int, int]] = field(default_factory=Counter)
    changed: int = 0
    delays: list[tuple[float, float]] = field(default_factory=list)
    """Time of receipt of a small message, and its latency in microseconds."""

    def read(self, file: Path) -> None:
        """Reads a program's lines; the last one of an incarnation may be incomplete."""
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                letter, at, incarnation, number, *more = line.split(" ")
                key, when = (int(incarnation), int(number)), float(at)
                if letter == "S":
                    self.sent[key] = (when, int(more[0]), int(more[1]), int(more[2]))
                elif letter == "O":
                    self.outcomes[key] = (when, more[0])
                else:
                    self.received[key] += 1
                    self.changed += int(more[2]) != 1
                    if int(more[0]) <= SMALL:
                        self.delays.append((when, float(more[1])))
            except (ValueError, IndexError):
                continue


def judge(ledger: SoakLog, cluster: SoakCluster) -> dict[str, Any]:
    """Compares sent messages, outcomes and receipts."""

    def has_died(node: int, since: float, until: float) -> bool:
        return any(of == node and since <= at <= until + GRACE_S for at, of in cluster.kills)

    outcomes = Counter(outcome for _, outcome in ledger.outcomes.values())
    lost = unexplained = 0
    for key, (at, outcome) in ledger.outcomes.items():
        sent_at, dst, service, _ = ledger.sent[key]
        if outcome == "completed" and not ledger.received[key]:
            # A slow reader has queued messages when the soak ends.
            is_held = service == SLOW_SERVICE
            lost += not is_held and not has_died(dst, sent_at - GRACE_S, at)
        if outcome == "unreachable":
            unexplained += not has_died(dst, sent_at - GRACE_S, at)
    return {
        "sent": len(ledger.sent),
        "received": sum(ledger.received.values()),
        "outcomes": dict(sorted(outcomes.items())),
        "killed": len(cluster.kills),
        "twice": sum(n > 1 for n in ledger.received.values()),
        "changed": ledger.changed,
        "from unknown senders": sum(key not in ledger.sent for key in ledger.received),
        "completed and not received": lost,
        "unreachable without a kill": unexplained,
    }


def quarters(values: Sequence[tuple[float, float]], began: float, ends: float) -> list[list[float]]:
    """Splits values by quarter of the time."""
    parts: list[list[float]] = [[], [], [], []]
    for at, value in values:
        parts[min(3, max(0, int(4 * (at - began) / (ends - began))))].append(value)
    return parts


def growth(samples: Sequence[Sample], began: float, ends: float) -> dict[str, list[float]]:
    """Medians of node 0's memory and descriptors, by quarter."""
    read: dict[str, Callable[[Sample], float]] = {
        "memory (KiB)": lambda one: one.memory_kib,
        "descriptors": lambda one: one.descriptors,
    }
    return {
        name: [
            statistics.median(part) if part else 0.0
            for part in quarters([(one.at, of(one)) for one in samples], began, ends)
        ]
        for name, of in read.items()
    }


def violations(found: dict[str, Any], flat: dict[str, list[float]]) -> list[str]:
    """Lists the violations."""
    bad = ("twice", "changed", "from unknown senders", "completed and not received")
    lines = [f"{name}: {found[name]}" for name in bad if found[name]]
    # All attempts of a message may be lost, since 1 % of frames are.
    if found["unreachable without a kill"] > max(2, found["sent"] / 10_000):
        lines.append(f"unreachable without a kill: {found['unreachable without a kill']}")
    # The node's tables grow in the first quarter.
    memory, descriptors = flat["memory (KiB)"], flat["descriptors"]
    if memory[3] > 1.25 * memory[1] + 4_096:
        lines.append(f"memory grows: {memory} KiB by quarter")
    if descriptors[3] > descriptors[1] + 8:
        lines.append(f"descriptors grow: {descriptors} by quarter")
    return lines


def idleness(found: dict[str, Any], minutes: float) -> list[str]:
    """Reports a run with hardly any messages, since programs that end at once violate no rule."""
    expected = int(minutes * 60)
    received = found["received"]
    return [f"expected at least {expected} messages received, got {received}"] * (
        received < expected
    )


def soak(out: Path, transport: str, minutes: float, seed: int, faults: Sequence[str]) -> int:
    """Runs the soak test; returns the exit code."""
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for file in [*out.glob("*.txt"), *out.glob("*.log")]:
        file.unlink()
    rampd = find_rampd()
    with ExitStack() as stack:
        places = stack.enter_context(cable(rampd, faults, "soak"))
        began = time.monotonic()
        cluster = SoakCluster(out, transport, rampd, places, began + 60 * minutes, seed)
        cluster.prepare()
        for node in range(N_NODES):
            cluster.start_node(node)
        for node in range(N_NODES):
            cluster.start_program(node)
        stack.callback(cluster.kill_all)
        samples = inject_faults(cluster, minutes)
        time.sleep(DRAIN_S + 2)
        for process in cluster.nodes.values():
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(30) for process in cluster.nodes.values()]
    ledger = SoakLog()
    for file in sorted(out.glob("*.txt")):
        ledger.read(file)
    found, flat = judge(ledger, cluster), growth(samples, began, cluster.ends_at)
    parts = quarters(ledger.delays, began, cluster.ends_at)
    delays = [
        [round(statistics.quantiles(part, n=100)[q]) if len(part) > 1 else 0 for q in (49, 98)]
        for part in parts
    ]
    bad = violations(found, flat) + [f"a node ended with code {code}" for code in codes if code]
    bad += idleness(found, minutes)
    result = {
        "transport": transport,
        "minutes": minutes,
        "seed": seed,
        **found,
        "by quarter": {**flat, "p50 and p99 of small messages (us)": delays},
        "violations": bad,
    }
    (out / "soak.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 1 if bad else 0


MODULE: Final = "tools.hosts.soak"
FAULTS: Final = ("--loss", "0.01", "--duplicate", "0.01", "--reorder", "0.05")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the soak test, or one of its programs."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["program"]:
        socket, log, node, seed, ends_at = argv[1:]
        try:
            Program(int(node), Path(socket), Path(log), int(seed), float(ends_at)).run()
        except (NodeGoneError, SendError, AttachError):
            return 3
        return 0
    if argv[:1] == ["slow"]:
        socket, log, ends_at = argv[1:]
        try:
            read_slowly(Path(socket), Path(log), float(ends_at))
        except (NodeGoneError, AttachError):
            return 3
        return 0
    parser = argparse.ArgumentParser(prog=MODULE, description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="folder for logs and the result, soak.json")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--transport", default="dcpim")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    try:
        enter_user_namespace(sys.orig_argv)
        return soak(args.out, args.transport, args.minutes, args.seed, FAULTS)
    except TestbedError as error:
        sys.stderr.write(f"soak: {error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())

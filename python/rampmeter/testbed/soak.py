"""Nodes under kills, loss, slow readers and new keys, for as long as is asked.

    python -m rampmeter.testbed.soak out --minutes 60 --transport dcpim

Four encrypted nodes, a program at each that sends messages of 1 B to 1 MB to the others. Nodes 0
and 1 are in one network namespace, 2 and 3 in another; the cable between loses, doubles and
reorders frames (`rampd middlebox`). Programs and nodes are killed (SIGKILL) and started again,
except node 0. Node 0 changes its key as the documentation describes. A program at node 1 receives
one message per second, and has many queued. Needs root, or user namespaces.

Every message has a sender, a number and a checksum. Every program logs sent and received messages
and outcomes, and the logs are compared at the end. The soak fails (exit code 1) if:

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
from rampmeter.testbed.cluster import N_NODES, Cluster, attach, cable, packed, unpacked
from rampmeter.testbed.command import TestbedError, enter_user_namespace
from rampmeter.testbed.experiment import find_rampd

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
        self.life = random.SystemRandom().getrandbits(63)
        self.numbers = itertools.count()
        self.ends_at = ends_at
        self.port = attach(socket, SERVICE)
        self.log = log.open("a", buffering=1, encoding="utf-8")
        self.sent: deque[tuple[int, Ticket]] = deque()

    def write(self, letter: str, life: int, number: int, *more: object) -> None:
        """Write a line."""
        print(letter, f"{time.monotonic():.6f}", life, number, *more, file=self.log)

    def run(self) -> None:
        """Run until the end, or until the node is gone."""
        due = time.monotonic()
        while (now := time.monotonic()) < self.ends_at + DRAIN_S:
            if now < self.ends_at and now >= due:
                due = max(due, now - 1.0) + self.rng.expovariate(1 / GAP_S)
                self.send()
            wake = due if now < self.ends_at else now + 0.1
            self.take(max(0.0, min(0.1, wake - now)))
            self.hear()

    def send(self) -> None:
        """Send due messages: one to any node, and one to the slow reader from node 0."""
        dst = self.rng.choice([n for n in range(N_NODES) if n != self.node])
        size = round(SIZE_MAX ** self.rng.random())
        self.submit(dst, SERVICE, size)
        if self.node == 0 and len(self.sent) < SLOW_DEPTH:
            self.submit(1, SLOW_SERVICE, SLOW_SIZE)

    def submit(self, dst: int, service: int, size: int) -> None:
        """Send a message, which is logged before it is sent."""
        number = next(self.numbers)
        self.write("S", self.life, number, dst, service, size)
        try:
            ticket = self.port.send(dst, packed(self.life, number, size), service)
        except FullError:
            self.write("O", self.life, number, "full")
        else:
            self.sent.append((number, ticket))

    def take(self, timeout: float) -> None:
        """Receive a message, if one arrives in time."""
        try:
            message = self.port.receive(timeout)
        except TimeoutError:
            return
        life, number, sent_ns, is_whole = unpacked(bytes(message.data))
        delay_us = (time.monotonic_ns() - sent_ns) / 1e3
        self.write("R", life, number, len(message.data), f"{delay_us:.0f}", int(is_whole))

    def hear(self) -> None:
        """Log the outcomes that are known."""
        for _ in range(len(self.sent)):
            number, ticket = self.sent.popleft()
            if ticket.is_over:
                self.write("O", self.life, number, ticket.failure or "completed")
            else:
                self.sent.append((number, ticket))


def read_slowly(socket: Path, log: Path, ends_at: float) -> None:
    """Receive one message per second."""
    port = attach(socket, SLOW_SERVICE, receive=1 << 20)
    with log.open("a", buffering=1, encoding="utf-8") as lines:
        while time.monotonic() < ends_at:
            time.sleep(1.0)
            try:
                data = bytes(port.receive(0.1).data)
            except TimeoutError:
                continue
            life, number, _, is_whole = unpacked(data)
            now = time.monotonic()
            print("R", f"{now:.6f}", life, number, len(data), 0, int(is_whole), file=lines)


@dataclass
class Bed(Cluster):
    """Nodes and programs, with the deaths and their times."""

    ends_at: float
    seed: int
    programs: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    deaths: list[tuple[float, int]] = field(default_factory=list)
    """Times at which a node, or its program, was killed."""
    starts: int = 0
    slow: "subprocess.Popen[bytes] | None" = None

    def start_program(self, node: int) -> None:
        """Start the program of a node."""
        self.starts += 1
        more = [str(node), str(self.seed + self.starts), str(self.ends_at)]
        self.programs[node] = self.role("program", node, *more)

    def role(self, role: str, node: int, *more: str) -> "subprocess.Popen[bytes]":
        """Start this file in a role of its own."""
        argv = [sys.executable, "-m", __name__ if __name__ != "__main__" else MODULE, role]
        argv += [str(self.socket(node)), str(self.out / f"{role}-{node}.txt"), *more]
        with (self.out / f"{role}-{node}.log").open("ab") as log:
            return subprocess.Popen(argv, stderr=log)

    def kill(self, process: "subprocess.Popen[bytes]", node: int) -> None:
        """Kill a process of a node, and record the time."""
        process.kill()
        process.wait()
        self.deaths.append((time.monotonic(), node))

    def end(self) -> None:
        """Kill everything."""
        for process in [*self.nodes.values(), *self.programs.values(), self.slow]:
            if process is not None:
                process.kill()
                process.wait()

    def reload(self) -> None:
        """Have all nodes read their configurations, once those that have just started are up."""
        for node, process in self.nodes.items():
            self.configure(node)
            self.wait_until_up(node)
            process.send_signal(signal.SIGHUP)

    def change_key(self) -> Iterator[None]:
        """Give node 0 a new key, in three steps."""
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

    def revive(self) -> None:
        """Start ended processes again: programs end with their node."""
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
    """Measure a process: its private memory, and its descriptors."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    lines = dict(line.split(":", 1) for line in status.splitlines())
    memory = int(lines["RssAnon"].split()[0])
    return Sample(time.monotonic(), memory, len(list(Path(f"/proc/{pid}/fd").iterdir())))


def act(bed: Bed, minutes: float) -> list[Sample]:
    """Kill, revive and change keys until the end; returns samples of node 0."""
    rng = random.Random(bed.seed)
    samples: list[Sample] = []
    steps: Iterator[None] = iter(())
    began = last = time.monotonic()
    while (now := time.monotonic()) < bed.ends_at:
        time.sleep(1.0)
        bed.revive()
        for node, process in bed.nodes.items():
            if process.poll() is not None:
                raise TestbedError(f"node {node} has ended: {bed.out / f'{node}.log'} says why")
        if rng.random() < 1 / 15:
            node = rng.randrange(N_NODES)
            bed.kill(bed.programs[node], node)
            bed.start_program(node)
        if rng.random() < 1 / 45:
            node = rng.randrange(1, N_NODES)
            bed.kill(bed.nodes[node], node)
            time.sleep(0.5)
            bed.start_node(node)
        if rng.random() < 1 / 60:
            steps = itertools.chain(steps, bed.change_key())
        next(steps, None)
        samples.append(sample(bed.nodes[0].pid))
        if now - last > 60:
            last = now
            one = samples[-1]
            done = (now - began) / 60
            sys.stderr.write(
                f"soak: {done:.0f} of {minutes:g} minutes, {len(bed.deaths)} killed, node 0 has "
                f"{one.memory_kib} KiB and {one.descriptors} descriptors\n"
            )
    return samples


@dataclass
class Ledger:
    """The log lines of all programs."""

    sent: dict[tuple[int, int], tuple[float, int, int, int]] = field(default_factory=dict)
    """By incarnation and number: time, destination node and service, and bytes."""
    outcomes: dict[tuple[int, int], tuple[float, str]] = field(default_factory=dict)
    taken: Counter[tuple[int, int]] = field(default_factory=Counter)
    changed: int = 0
    delays: list[tuple[float, float]] = field(default_factory=list)
    """Time of receipt of a small message, and its latency in microseconds."""

    def read(self, file: Path) -> None:
        """Read a program's lines; the last one of an incarnation may be incomplete."""
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                letter, at, life, number, *more = line.split(" ")
                key, when = (int(life), int(number)), float(at)
                if letter == "S":
                    self.sent[key] = (when, int(more[0]), int(more[1]), int(more[2]))
                elif letter == "O":
                    self.outcomes[key] = (when, more[0])
                else:
                    self.taken[key] += 1
                    self.changed += int(more[2]) != 1
                    if int(more[0]) <= SMALL:
                        self.delays.append((when, float(more[1])))
            except (ValueError, IndexError):
                continue


def judge(ledger: Ledger, bed: Bed) -> dict[str, Any]:
    """Compare sent messages, outcomes and receipts."""

    def has_died(node: int, since: float, until: float) -> bool:
        return any(of == node and since <= at <= until + GRACE_S for at, of in bed.deaths)

    outcomes = Counter(outcome for _, outcome in ledger.outcomes.values())
    lost = unexplained = 0
    for key, (at, outcome) in ledger.outcomes.items():
        sent_at, dst, service, _ = ledger.sent[key]
        if outcome == "completed" and not ledger.taken[key]:
            # A slow reader has queued messages when the soak ends.
            is_held = service == SLOW_SERVICE
            lost += not is_held and not has_died(dst, sent_at - GRACE_S, at)
        if outcome == "unreachable":
            unexplained += not has_died(dst, sent_at - GRACE_S, at)
    return {
        "sent": len(ledger.sent),
        "taken": sum(ledger.taken.values()),
        "outcomes": dict(sorted(outcomes.items())),
        "killed": len(bed.deaths),
        "twice": sum(n > 1 for n in ledger.taken.values()),
        "changed": ledger.changed,
        "of nobody": sum(key not in ledger.sent for key in ledger.taken),
        "completed and not taken": lost,
        "unreachable among the living": unexplained,
    }


def quarters(values: Sequence[tuple[float, float]], began: float, ends: float) -> list[list[float]]:
    """Split values by quarter of the time."""
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
    """List the violations."""
    bad = ("twice", "changed", "of nobody", "completed and not taken")
    said = [f"{name}: {found[name]}" for name in bad if found[name]]
    # All attempts of a message may be lost: 1 % of frames are.
    if found["unreachable among the living"] > max(2, found["sent"] / 10_000):
        said.append(f"unreachable among the living: {found['unreachable among the living']}")
    # The node's tables grow in the first quarter.
    memory, descriptors = flat["memory (KiB)"], flat["descriptors"]
    if memory[3] > 1.25 * memory[1] + 4_096:
        said.append(f"memory grows: {memory} KiB by quarter")
    if descriptors[3] > descriptors[1] + 8:
        said.append(f"descriptors grow: {descriptors} by quarter")
    return said


def idleness(found: dict[str, Any], minutes: float) -> list[str]:
    """Report a run in which hardly anything was sent: programs that end at once violate nothing."""
    expected = int(minutes * 60)
    taken = found["taken"]
    return [f"expected {expected} messages taken at least, got {taken}"] * (taken < expected)


def soak(out: Path, transport: str, minutes: float, seed: int, faults: Sequence[str]) -> int:
    """Run it; returns the exit code."""
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for file in [*out.glob("*.txt"), *out.glob("*.log")]:
        file.unlink()
    rampd = find_rampd()
    with ExitStack() as stack:
        places = stack.enter_context(cable(rampd, faults, "soak"))
        began = time.monotonic()
        bed = Bed(out, transport, rampd, places, began + 60 * minutes, seed)
        bed.prepare()
        for node in range(N_NODES):
            bed.start_node(node)
        for node in range(N_NODES):
            bed.start_program(node)
        stack.callback(bed.end)
        samples = act(bed, minutes)
        time.sleep(DRAIN_S + 2)
        for process in bed.nodes.values():
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(30) for process in bed.nodes.values()]
    ledger = Ledger()
    for file in sorted(out.glob("*.txt")):
        ledger.read(file)
    found, flat = judge(ledger, bed), growth(samples, began, bed.ends_at)
    parts = quarters(ledger.delays, began, bed.ends_at)
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


MODULE: Final = "rampmeter.testbed.soak"
FAULTS: Final = ("--loss", "0.01", "--duplicate", "0.01", "--reorder", "0.05")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the soak, or one of its programs."""
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

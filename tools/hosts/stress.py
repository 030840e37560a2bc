"""Stress test that accounts for every message of many programs, under kills and network faults.

    python -m tools.hosts.stress out --all
    python -m tools.hosts.stress out --transport dcpim --transport phost --minutes 2

Four nodes with three programs each, which send messages of 1 B to 8 MB to one another (all orders
of magnitude alike). Programs and nodes are killed (SIGKILL) and restarted. A run is of one
transport and one kind:

| kind | the network | packets are |
|---|---|---|
| `clean` | the loopback interface | encrypted |
| `mild` | 1 % loss, 1 % doubled, 5 % reordered, 0.5 % with a flipped bit | encrypted |
| `harsh` | 2 % loss, 2 % doubled, 1 % with a flipped bit | encrypted |
| `double` | as `mild`; two bits flip, and the checksum of UDP stays right | not encrypted |
| `sealed` | as `double` | encrypted |

In all kinds except `clean`, nodes 0 and 1 are in one network namespace, and 2 and 3 in another. The
faults are those of the cable between: `rampd middlebox`, and `flips.py` behind it. Needs root, or
user namespaces.

Programs log submitted messages, outcomes and receipts (`ledger`). A run fails if a message was
lost, doubled or corrupt, had two outcomes or none, or failed though neither end was killed nearby.
A finished run is stored; another call with the same arguments continues with the next one.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from rampmeter.testbed.command import TestbedError, enter_user_namespace
from rampmeter.testbed.experiment import find_rampd
from rampmeter.testbed.process import sigterm_raises
from tools.hosts.cluster import (
    N_NODES,
    Cluster,
    NodeNamespace,
    cable,
    one_host,
)
from tools.hosts.ledger import VIOLATIONS, MessageLedger, Verdict
from tools.hosts.stress_program import SERVICES

MODULE: Final = "tools.hosts.stress"
PROGRAM: Final = "tools.hosts.stress_program"
PROGRAM_GAP_S: Final = 1.5
"""Mean pause between two kills of programs."""
NODE_GAP_S: Final = 4.0
"""Mean pause between two kills of nodes."""
DOWN_S: Final = 0.3
"""Time for which a killed node is down, in seconds."""
SETTLE_S: Final = 30.0
"""Maximum time for messages that are in flight at the end, in seconds."""
QUIET_S: Final = 1.5
"""Time in seconds without an arrival after which a run with all outcomes has ended."""
ARBITERS_MAX: Final = 4
TRANSPORTS: Final = (
    "dcpim",
    "phost",
    "pfabric",
    "fastpass",
    "cosy",
    "tcp",
    "dctcp",
    "pias",
    "capton",
    "hyline",
    "fastpod",
    "homa",
    "sird",
)
"""Transports that run between hosts."""
BUSY_US: Final = {"cosy": 50_000}
"""`control-rtt-us` of transports for which it must fit a busy host (docs)."""
ABORTS: Final = {"cosy": ("unreachable",)}
"""Failures of transports that abort within a bound, if packets are lost or hosts are busy."""


@dataclass(frozen=True)
class FaultKind:
    """Faults of the network of a run."""

    faults: tuple[str, ...] | None = None
    """Options of `rampd middlebox`; none if nodes use the loopback interface."""
    flips: tuple[str, ...] = ()
    is_encrypted: bool = True


MILD: Final = ("--loss", "0.01", "--duplicate", "0.01", "--reorder", "0.05")
HARSH: Final = ("--loss", "0.02", "--duplicate", "0.02")
KINDS: Final = {
    "clean": FaultKind(),
    "mild": FaultKind(MILD, ("--chance", "0.005")),
    "harsh": FaultKind(HARSH, ("--chance", "0.01")),
    "double": FaultKind(MILD, ("--chance", "0.005", "--double"), is_encrypted=False),
    "sealed": FaultKind(MILD, ("--chance", "0.005", "--double")),
}
ROWS: Final = ("clean", "mild", "harsh", "double")
"""The kinds of `--all`."""


@dataclass
class StressCluster(Cluster):
    """Nodes and programs, and the kills."""

    seed: int
    programs: dict[tuple[int, int], subprocess.Popen[bytes]] = field(default_factory=dict)
    n_started: int = 0
    n_killed: int = 0
    ended_nodes: list[str] = field(default_factory=list)
    """Nodes that ended without a kill."""

    def file(self, name: str) -> Path:
        """Returns a file next to the logs of programs."""
        return self.out / "ledger" / name

    def ledger(self) -> MessageLedger:
        """Reads the logs."""
        return MessageLedger.of(sorted((self.out / "ledger").glob("*.txt")))

    def start(self) -> None:
        """Starts all nodes and programs."""
        (self.out / "ledger").mkdir()
        self.file("driver.txt").touch()
        if self.is_encrypted:
            self.prepare()
        for node in reversed(range(N_NODES + self.n_arbiters)):
            self.start_node(node)
        for node in range(N_NODES):
            for service in SERVICES:
                self.start_program(node, service)

    def start_program(self, node: int, service: int) -> None:
        """Starts a program of a node."""
        self.n_started += 1
        log = self.file(f"{node}-{service}-{self.n_started}.txt")
        argv = [sys.executable, "-m", PROGRAM, str(self.socket(node)), str(log)]
        argv += [str(node), str(service), str(self.seed + self.n_started)]
        with (self.out / "programs.log").open("ab") as errors:
            self.programs[node, service] = subprocess.Popen(argv, stderr=errors)

    def kill(self, process: "subprocess.Popen[bytes]", node: int, service: int) -> None:
        """Kills a node or a program, and records the time."""
        with self.file("driver.txt").open("a", encoding="utf-8") as lines:
            lines.write(f"K {time.monotonic():.6f} {node} {service}\n")
        process.kill()
        process.wait()
        self.n_killed += 1

    def kill_program(self, rng: random.Random) -> None:
        """Kills any program, and restarts it."""
        node, service = rng.choice(list(self.programs))
        self.kill(self.programs[node, service], node, service)
        self.start_program(node, service)

    def kill_node(self, rng: random.Random) -> None:
        """Kills any host's node, and restarts it."""
        node = rng.randrange(N_NODES)
        self.kill(self.nodes[node], node, -1)
        time.sleep(DOWN_S)
        self.start_node(node)

    def restart_ended(self) -> None:
        """Restarts programs that have ended with their node, and nodes that ended by themselves."""
        for (node, service), program in list(self.programs.items()):
            if program.poll() is not None:
                self.start_program(node, service)
        for node, process in list(self.nodes.items()):
            if process.poll() is not None:
                self.ended_nodes.append(f"node {node} ended with {process.returncode}")
                self.start_node(node)

    def wait_until_idle(self) -> None:
        """Waits until all submitted messages have an outcome and no more arrive."""
        self.file("stop").touch()
        until = time.monotonic() + SETTLE_S
        seen, quiet_since = -1, time.monotonic()
        while (now := time.monotonic()) < until:
            ledger = self.ledger()
            living = {
                incarnation for incarnation in ledger.places if incarnation not in ledger.ends
            }
            living -= {incarnation for incarnation in living if ledger.is_dead(incarnation)}
            n_open = sum(key[0] in living and key not in ledger.outcomes for key in ledger.sent)
            n_seen = sum(file.stat().st_size for file in (self.out / "ledger").glob("*.txt"))
            if n_seen != seen or n_open:
                seen, quiet_since = n_seen, now
            elif now - quiet_since >= QUIET_S:
                break
            time.sleep(0.3)

    def stop(self) -> list[int]:
        """Stops programs and nodes; returns the nodes' exit codes."""
        self.file("quit").touch()
        for program in self.programs.values():
            program.wait(30)
        for process in self.nodes.values():
            process.send_signal(signal.SIGTERM)
        return [self.nodes[node].wait(30) for node in sorted(self.nodes)]

    def kill_all(self) -> None:
        """Kills all nodes and programs."""
        for process in [*self.nodes.values(), *self.programs.values()]:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Run:
    """A transport, a kind, and a duration."""

    transport: str
    kind: str
    minutes: float
    messages: int | None
    seed: int

    def folder(self, out: Path) -> Path:
        """Returns the folder of its results."""
        return out / self.kind / self.transport

    def result(self, out: Path) -> dict[str, Any] | None:
        """Returns the result, if it was finished with the same arguments."""
        try:
            result = json.loads((self.folder(out) / "result.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        is_same = all(result.get(key) == value for key, value in asdict(self).items())
        return dict(result) if is_same else None


def n_arbiters(rampd: str, transport: str, folder: Path) -> int:
    """Returns the number of arbiters that a transport has between hosts."""
    for n in range(ARBITERS_MAX + 1):
        place = NodeNamespace([], "127.0.0.1")
        cluster = Cluster(folder, transport, rampd, [place], n_arbiters=n, is_encrypted=False)
        argv = [rampd, "check", str(cluster.configure(0))]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        if done.returncode == 0:
            return n
    raise TestbedError(f"{transport}: {done.stderr.strip()}")


def arrivals(rate_s: float, rng: random.Random, now: float) -> Iterator[float]:
    """Yields times of a Poisson process."""
    while True:
        now += rng.expovariate(1 / rate_s)
        yield now


def inject_faults(cluster: StressCluster, run: Run, say: "Progress") -> None:
    """Kills and restarts until the run's duration or number of submitted messages is reached."""
    rng = random.Random(run.seed)
    began = time.monotonic()
    until = began + 60 * run.minutes
    acts = {cluster.kill_program: PROGRAM_GAP_S, cluster.kill_node: NODE_GAP_S}
    due = {act: arrivals(gap, rng, began + 1.0) for act, gap in acts.items()}
    next_due = {act: next(times) for act, times in due.items()}
    n_sent = 0
    while (now := time.monotonic()) < until:
        time.sleep(0.2)
        cluster.restart_ended()
        for act, at in next_due.items():
            if now >= at:
                act(rng)
                next_due[act] = max(next(due[act]), now)
        n_sent = n_submitted(cluster)
        say(f"{now - began:3.0f} s, {n_sent} messages, {cluster.n_killed} killed")
        if run.messages is not None and n_sent >= run.messages:
            return


def n_submitted(cluster: StressCluster) -> int:
    """Counts the messages submitted so far."""
    logs = (cluster.out / "ledger").glob("*.txt")
    return sum(log.read_bytes().count(b"\nS ") for log in logs)


class Progress:
    """Progress on standard error: a line that changes on a terminal, else one a run."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.number = 0
        self.what = ""
        self.is_terminal = sys.stderr.isatty()

    def begin(self, run: Run) -> None:
        """Continues with the next run."""
        self.number += 1
        self.what = f"stress: {self.number} of {self.total}: {run.transport} {run.kind}: "

    def __call__(self, text: str) -> None:
        """Shows the progress of the run, on a terminal."""
        if self.is_terminal:
            sys.stderr.write(f"\r\x1b[K{self.what}{text}")
            sys.stderr.flush()

    def finish(self, text: str) -> None:
        """Prints the outcome of the run."""
        self("")
        sys.stderr.write(f"{chr(13) if self.is_terminal else ''}{self.what}{text}\n")


def execute(run: Run, out: Path, rampd: str, say: Progress) -> dict[str, Any]:
    """Executes a run; returns its result, which is in its folder too."""
    folder = run.folder(out)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kind = KINDS[run.kind]
    with ExitStack() as stack:
        if kind.faults is None:
            places = stack.enter_context(one_host("stress"))
        else:
            log = stack.enter_context((folder / "cable.log").open("wb"))
            seeds = ("--seed", str(run.seed))
            places = stack.enter_context(
                cable(rampd, (*kind.faults, *seeds), "stress", (*kind.flips, *seeds), log)
            )
        n = n_arbiters(rampd, run.transport, folder)
        cluster = StressCluster(
            folder,
            run.transport,
            rampd,
            places,
            run.seed * 1_000,
            n_arbiters=n,
            is_encrypted=kind.is_encrypted,
            control_rtt_us=BUSY_US.get(run.transport, 1_000),
        )
        stack.callback(cluster.kill_all)
        cluster.start()
        inject_faults(cluster, run, say)
        cluster.wait_until_idle()
        codes = cluster.stop()
    verdict = cluster.ledger().judge(ABORTS.get(run.transport, ()))
    result = {
        **asdict(run),
        **verdict.counts(),
        "killed": cluster.n_killed,
        **violation_details(verdict),
    }
    ended = [f"node {node} stopped with {code}" for node, code in enumerate(codes) if code]
    result["ended-nodes"] = cluster.ended_nodes + ended
    file = folder / "result.json"
    file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return result


def violation_details(verdict: Verdict) -> dict[str, Any]:
    """Returns all messages with violations."""
    return {
        "failures": dict(sorted(verdict.explained.items())),
        "wrong": {
            "lost": verdict.lost,
            "doubled": verdict.doubled,
            "corrupt": verdict.corrupt,
            "two-outcomes": verdict.two_outcomes,
            "unexplained": verdict.unexplained,
            "unreported": verdict.unreported,
            "crashed": verdict.crashed,
        },
    }


COLUMNS: Final = {
    "sent": "sent",
    "killed": "kills",
    "failed": "failed",
    "lost": "lost",
    "doubled": "twice",
    "corrupt": "bad",
    "two-outcomes": "2 ends",
    "unexplained": "unexpl",
    "unreported": "0 ends",
    "crashed": "crash",
}


def table(results: Sequence[dict[str, Any]]) -> str:
    """Returns a table of the counts: a part for each kind, a row for each transport."""
    lines = []
    for kind in dict.fromkeys(result["kind"] for result in results):
        head = "".join(f"{title:>7}" for title in COLUMNS.values())
        lines += ["", f"{kind:<9}{head}"]
        for result in results:
            if result["kind"] == kind:
                cells = "".join(f"{result[name]:>7}" for name in COLUMNS)
                lines.append(f"{result['transport']:<9}{cells}")
    return "\n".join(lines[1:]) + "\n"


def is_bad(result: dict[str, Any]) -> bool:
    """Returns true if a violation happened, or nothing was sent."""
    return (
        any(result[name] for name in VIOLATIONS)
        or bool(result["ended-nodes"])
        or not result["received"]
    )


def stress(out: Path, runs: Sequence[Run]) -> int:
    """Executes the runs that have no result; returns the exit code."""
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    rampd, say, results = find_rampd(), Progress(len(runs)), []
    with sigterm_raises():
        for run in runs:
            say.begin(run)
            result = run.result(out)
            note = "kept, " if result is not None else ""
            if result is None:
                result = execute(run, out, rampd, say)
            results.append(result)
            wrong = [f"{result[name]} {name}" for name in VIOLATIONS if result[name]]
            found = ", ".join(wrong + result["ended-nodes"]) or "nothing wrong"
            say.finish(f"{note}{result['sent']} messages, {found}")
            text = json.dumps(results, indent=2) + "\n"
            (out / "stress.json").write_text(text, encoding="utf-8")
            (out / "stress.txt").write_text(table(results), encoding="utf-8")
    sys.stdout.write(table(results))
    return 1 if any(map(is_bad, results)) else 0


def parse(argv: Sequence[str]) -> tuple[Path, list[Run]]:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog=MODULE, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="folder for ledgers and results")
    parser.add_argument("--transport", action="append", choices=TRANSPORTS, help="may be repeated")
    parser.add_argument("--all", action="store_true", help="all transports")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="may be repeated")
    parser.add_argument("--minutes", type=float, default=1.0, help="of a run, at most (1)")
    parser.add_argument("--messages", type=int, help="end a run after N submitted messages")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    if bool(args.transport) == args.all:
        parser.error("expected --transport or --all")
    kinds, transports = args.kind or ROWS, args.transport or TRANSPORTS
    more = (args.minutes, args.messages, args.seed)
    return args.out, [Run(name, kind, *more) for kind in kinds for name in transports]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stress test."""
    out, runs = parse(sys.argv[1:] if argv is None else argv)
    try:
        enter_user_namespace(sys.orig_argv)
        return stress(out, runs)
    except TestbedError as error:
        sys.stderr.write(f"stress: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nstress: interrupted; the same command continues after the last run\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())

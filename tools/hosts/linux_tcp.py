"""TCP's state machine compared with the kernel's TCP, and DCTCP with marks, on the same flows.

    python -m tools.hosts.linux_tcp out --rampd target/release/rampd

Hosts are network namespaces at one switch, or two racks with an over-subscribed core (`--racks 2`);
all queues drop at their tail. Every arm sends the same flows at the same times, each on a separate
connection. `kernel` is the kernel's Cubic; `cubic` is the state machine over UDP with the kernel's
settings (`LINUX`). `dctcp` is the same with DCTCP and ports that mark. Arms run one after the
other, seed by seed. A flow's time is from its program's request, before the handshake, until its
last byte has been read.

Use `--realtime` on a machine with other load. Otherwise the state machine, which is a process,
waits for the processor for milliseconds, and the kernel's TCP does not.

Needs root (CAP_BPF and CAP_NET_ADMIN) and Linux 6.6 or later.
"""

import argparse
import csv
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rampmeter.analysis.confidence import Interval, interval
from rampmeter.plan.plan import Plan
from rampmeter.testbed.command import enter_user_namespace
from rampmeter.testbed.experiment import Options, run_testbed
from rampmeter.testbed.marking import BINS_PER_FRAME, PortDelays
from rampmeter.text.toml import Table, dumps

LINUX: Final[Table] = {
    # HyStart; no faster growth beyond the window before a loss; delayed acknowledgements
    # (TCP_DELACK_MIN); probes two ticks later (TCP_TIMEOUT_MIN); a timeout of 200 ms at least
    # (TCP_RTO_MIN), of 1 s before there is a sample (TCP_TIMEOUT_INIT), of 120 s at most.
    "slow-start-exit": "ack-train",
    "reno-catch-up": False,
    "probe-slack-us": 8_000,
    "segments-per-ack": 2,
    "ack-delay-us": 40_000,
    "rto-min-us": 200_000,
    "rto-initial-us": 1_000_000,
    "rto-max-us": 120_000_000,
}
"""The kernel's behaviour as keys of `transport`; the rest is as in the preset."""

ARMS: Final = ("kernel", "cubic", "dctcp")

CLASSES: Final = (
    ("up to 100 kB", 0, 100_000),
    ("to 1 MB", 100_000, 1_000_000),
    ("to 10 MB", 1_000_000, 10_000_000),
    ("longer", 10_000_000, 1 << 40),
    ("all", 0, 1 << 40),
)
"""Flows by size: above the first and up to the second number of bytes."""

PACKET_BYTES: Final = 1514
"""A full packet in a queue."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The settings that all arms share."""

    hosts: int = 4
    """Number of hosts in all racks together."""
    racks: int = 1
    rate_mbps: float = 100.0
    core_mbps: float = 100.0
    """Rate of the link of each rack to the one spine."""
    load: float = 0.5
    """Load of hosts' links."""
    sizes: str = "web-search"
    """Size distribution of a plan, by name, or one number of bytes for all flows."""
    flows: int = 300
    queue: int = 100
    """Queue size of each port in full packets."""
    mark_above: int = 20
    """Full packets above which ports mark in the arm `dctcp`."""
    realtime: bool = False
    """True if hosts have precedence over all other work of this machine."""

    def plan(self, arm: str, seed: int) -> Plan:
        """Returns the plan of an arm."""
        transport: Table = {"name": "tcp", "congestion-control": "cubic", **LINUX}
        if arm == "dctcp":
            transport = {"name": "dctcp", **LINUX, "slow-start-exit": "never"}
        fabric: Table = {"buffer-bytes": self.queue * PACKET_BYTES}
        if arm == "dctcp":
            fabric = {**fabric, "ecn-bytes": self.mark_above * PACKET_BYTES}
        table: Table = {
            "seed": seed,
            "topology": {
                "kind": "leaf-spine",
                "racks": self.racks,
                "hosts-per-rack": self.hosts // self.racks,
                "spines": 1,
                "access-gbps": self.rate_mbps / 1e3,
                "core-gbps": self.core_mbps / 1e3,
            },
            "fabric": fabric,
            "transport": transport,
            "workload": {
                "pattern": "all-to-all",
                "sizes": {"fixed": int(self.sizes)} if self.sizes.isdigit() else self.sizes,
                "load": self.load,
                "flows": self.flows,
            },
        }
        return Plan(dumps(table))


@dataclass(frozen=True)
class ArmResult:
    """Results of one arm for the flows of one seed."""

    times: dict[int, tuple[int, float]]
    """Size in bytes and time in seconds of each flow that arrived, by its number."""
    flows: int
    counts: dict[str, float]
    """Drops, marks and counters of senders."""

    def mean_s(self, low: int, high: int) -> float:
        """Returns the mean time of the flows of a size class; NaN without any."""
        times = [time for size, time in self.times.values() if low < size <= high]
        return math.fsum(times) / len(times) if times else math.nan


def run_arm(setting: Setting, arm: str, seed: int, out: Path) -> ArmResult:
    """Runs an arm with the flows of a seed; its files are in the folder `out`."""
    plan = setting.plan(arm, seed)
    kernel = ("--congestion-control", "cubic", "--connection-per-message")
    options = Options(kernel if arm == "kernel" else (), realtime=setting.realtime, watches=True)
    run_testbed(plan, out, "tcp" if arm == "kernel" else "rampd", None, options)
    return read_result(out, arm)


def read_result(out: Path, arm: str) -> ArmResult:
    """Returns the result of an arm from its folder."""
    with (out / "hosts.csv").open(encoding="utf-8", newline="") as file:
        sizes = {int(row["flow"]): int(row["size_bytes"]) for row in csv.DictReader(file)}
    at: dict[str, dict[int, int]] = {"submitted": {}, "delivered": {}}
    for log in (out / "nodes").glob("*.csv"):
        with log.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["what"] in at:
                    at[row["what"]][int(row["flow"])] = int(row["time_ps"])
    submitted, delivered = at["submitted"], at["delivered"]
    times = {flow: (sizes[flow], (end - submitted[flow]) / 1e12) for flow, end in delivered.items()}
    return ArmResult(times, len(sizes), _counts(out, arm))


def _counts(out: Path, arm: str) -> dict[str, float]:
    ports = json.loads((out / "ports.json").read_text(encoding="utf-8"))
    waits = json.loads((out / "waits.json").read_text(encoding="utf-8"))
    counts: dict[str, float] = {
        "drops at hosts": _drops(ports, hosts=True),
        "drops at switches": _drops(ports, hosts=False),
        "packets": sum(sum(of["counts"]) for name, of in waits.items() if _is_host(name)),
        "marks": sum(of["marks"] for of in waits.values()),
    }
    counts |= _waits({name: of for name, of in waits.items() if not _is_host(name)})
    if arm == "kernel":
        tcp = json.loads((out / "tcp.json").read_text(encoding="utf-8"))
        return counts | {
            "retransmitted segments": tcp["RetransSegs"],
            "timeouts": tcp["TCPTimeouts"],
            "recoveries": tcp["TCPSackRecovery"] + tcp["TCPRenoRecovery"],
            "probes": tcp["TCPLossProbes"],
            "cuts undone": tcp["TCPFullUndo"] + tcp["TCPPartialUndo"] + tcp["TCPDSACKUndo"],
            "slow starts ended by trains": tcp["TCPHystartTrainDetect"],
            "slow starts ended by delay": tcp["TCPHystartDelayDetect"],
        }
    text = "".join(log.read_text(encoding="utf-8") for log in (out / "nodes").glob("*.log"))
    names = ("timeouts", "recoveries", "probes", "echoes")
    return counts | {name: _sum_counter(text, f"transport {name}") for name in names}


def _sum_counter(text: str, name: str) -> int:
    """Returns the sum of a counter over the last lines of all nodes."""
    plain = re.sub(r"\x1b\[\d*m", "", text)
    return sum(int(value) for value in re.findall(rf" {name} value=(\d+)", plain))


def _is_host(port: str) -> bool:
    return port.startswith("h")


def _drops(ports: Mapping[str, Any], *, hosts: bool) -> int:
    return sum(of["drops"] for name, q in ports.items() if _is_host(name) == hosts for of in q)


def _waits(ports: Mapping[str, Any]) -> dict[str, float]:
    """Returns the time of packets at the ports of switches, in full packets: mean and quantiles."""
    waits = [PortDelays(of["marks"], tuple(of["counts"]), of["bin_ns"]) for of in ports.values()]
    frame_ns = BINS_PER_FRAME * waits[0].bin_ns
    same = [of for of in waits if of.bin_ns == waits[0].bin_ns]
    total = sum(same[1:], same[0])
    of_frames = 1e9 / frame_ns
    return {
        "wait, mean": total.mean_s() * of_frames,
        "wait, p50": total.quantile_s(0.5) * of_frames,
        "wait, p99": total.quantile_s(0.99) * of_frames,
    }


def compare(
    setting: Setting, out: Path, seeds: Iterable[int], arms: Sequence[str]
) -> dict[str, list[ArmResult]]:
    """Runs all arms with the flows of every seed; results by arm, in the order of seeds."""
    results: dict[str, list[ArmResult]] = {arm: [] for arm in arms}
    for turn, seed in enumerate(seeds):
        for arm in arms if turn % 2 == 0 else arms[::-1]:
            folder = out / f"{arm}-{seed}"
            result = run_arm(setting, arm, seed, folder)
            results[arm].append(result)
            late = result.flows - len(result.times)
            sys.stderr.write(f"{arm}, seed {seed}: {len(result.times)} flows, {late} missing\n")
    return results


def table(results: Mapping[str, Sequence[ArmResult]]) -> str:
    """Returns mean times by size with 95 % intervals over seeds, and counters, as Markdown."""
    arms = list(results)
    first = arms[0]
    ratios = [f"{arm} / {first}" for arm in arms[1:]]
    lines = [
        "| mean time, ms | flows | " + " | ".join([*arms, *ratios]) + " |",
        "|---" * (2 + len(arms) + len(ratios)) + "|",
    ]
    for name, low, high in CLASSES:
        means = {arm: [of.mean_s(low, high) for of in results[arm]] for arm in arms}
        n = sum(low < size <= high for of in results[first] for size, _ in of.times.values())
        cells = [interval(1e3 * mean for mean in means[arm]).text(1) for arm in arms]
        cells += [str(_ratio(means[arm], means[first])) for arm in arms[1:]]
        lines.append(f"| {name} | {n} | " + " | ".join(cells) + " |")
    lines += ["", "| sum over seeds | " + " | ".join(arms) + " |", "|---" * (1 + len(arms)) + "|"]
    missing = [sum(of.flows - len(of.times) for of in results[arm]) for arm in arms]
    lines.append("| flows that did not arrive | " + " | ".join(map(str, missing)) + " |")
    counts = [name for arm in arms for name in results[arm][0].counts]
    for name in dict.fromkeys(counts):
        cells = [_cell(name, results[arm]) for arm in arms]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(name: str, results: Sequence[ArmResult]) -> str:
    if name not in results[0].counts:
        return "-"
    values = [of.counts[name] for of in results]
    if name.startswith("wait"):
        return f"{math.fsum(values) / len(values):.1f} packets"
    return f"{sum(values):.0f}"


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Returns the ratio of means, seed by seed. Each mean covers the flows delivered in its arm."""
    return interval(our / their for our, their in zip(ours, theirs, strict=True))


def main() -> None:
    """Runs the comparison from the command line."""
    preset = Setting()
    parser = argparse.ArgumentParser(prog="tools.hosts.linux_tcp", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rampd", type=Path, help="the daemon; the one that is installed")
    parser.add_argument("--seeds", type=int, default=3, help="from 1 on")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    for name, value in vars(preset).items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, type=type(value), default=value)
    args = parser.parse_args()
    if args.seeds < 1:
        parser.error(f"--seeds: expected 1 or more, got {args.seeds}")
    if args.racks < 1 or args.hosts % args.racks:
        parser.error(f"--hosts: expected a multiple of --racks ({args.racks}), got {args.hosts}")
    if args.rampd is not None:
        os.environ["RAMPMETER_RAMPD"] = str(args.rampd.resolve())
    enter_user_namespace(sys.orig_argv)
    setting = Setting(**{name: getattr(args, name) for name in vars(preset)})
    results = compare(setting, args.out, range(1, args.seeds + 1), args.arms)
    sys.stdout.write(table(results) + "\n")


if __name__ == "__main__":
    main()

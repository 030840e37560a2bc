"""Every transport in networks that differ from those of its paper: a table and its bounds.

Each situation is one plan that differs from `base` in one respect. It has 32 hosts if not noted
otherwise. `python -m tests.situations` runs all transports in all situations on all cores. It
prints the mean slowdown of each, or the time of the last flow's end over that in which links could
have carried the bytes. It ends with status 1 if one exceeds its bound. Bounds have a margin for
other seeds, not for a protocol that stalls. A timeout in a healthy network, or a retransmission of
most of the traffic, breaks them.
"""

import argparse
import json
import math
import os
import sys
import tomllib
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import rampmeter as rm

from .situation_bounds import BOUNDS, CAUSES, LOSES, SHARE_SENT_AGAIN_MAX

FLOWS = 2000
TRANSPORTS = (
    *("ideal", "dcpim", "phost", "pfabric", "fastpass", "cosy", "tcp", "dctcp", "pias"),
    *("capton", "hyline", "fastpod", "ndp", "homa", "homa-aeolus", "sird", "hpcc"),
)

PAYLOAD = 1460
HEADER = 40
ACCESS_BYTES_PER_US = 12_500

LONG_BYTES = 50_000_000
SHORT_BYTES = 20_000
SHORT_FLOWS = 10_000

Plan = dict[str, dict[str, Any]]
Columns = dict[str, list[float] | list[int]]


def _base() -> Plan:
    """Returns the plan of the situation `base`: IMC10 at load 0.6 with full bisection."""
    return {
        "topology": {
            **{"kind": "leaf-spine", "racks": 4, "hosts-per-rack": 8, "spines": 2},
            **{"access-gbps": 100.0, "core-gbps": 400.0},
            **{"propagation-ns": 200.0, "switch-ns": 450.0, "host-ns": 450.0},
        },
        "workload": {"pattern": "all-to-all", "sizes": "imc10", "load": 0.6, "flows": FLOWS},
        "transport": {},
        "run": {"drain-us": 10_000_000.0},
        "faults": {},
        "clocks": {},
    }


def _scaled(rate: float, delay: float) -> Callable[[Plan], None]:
    """Returns a change that multiplies rates and delays."""

    def change(plan: Plan) -> None:
        for key in ("access-gbps", "core-gbps"):
            plan["topology"][key] *= rate
        for key in ("propagation-ns", "switch-ns", "host-ns"):
            plan["topology"][key] *= delay

    return change


def _set(table: str, **values: Any) -> Callable[[Plan], None]:
    """Returns a change that sets keys of a table; `_` in their names means `-`."""
    return lambda plan: plan[table].update({k.replace("_", "-"): v for k, v in values.items()})


def _packet(mtu: int) -> Callable[[Plan], None]:
    return _set("transport", payload_bytes=mtu - 40)


def _oversubscribed(plan: Plan) -> None:
    """A 4:1 core whose links carry 0.62 of their capacity."""
    plan["topology"]["core-gbps"] = 100.0
    plan["workload"]["load"] = 0.2


def _failing(plan: Plan) -> None:
    """A link of the core fails permanently; switches detect it after 100 us."""
    plan["faults"] = {
        "outages": [{"link": "s0-s4", "from-us": 200.0}],
        "rerouting-us": 100.0,
    }


def _fat_tree(plan: Plan) -> None:
    plan["topology"] = {"kind": "fat-tree", "k": 4} | {
        key: plan["topology"][key]
        for key in ("access-gbps", "propagation-ns", "switch-ns", "host-ns")
    }


def _dumbbell(plan: Plan) -> None:
    """Eight hosts send 20 MB each to eight others through one link as fast as theirs."""
    delays = {key: plan["topology"][key] for key in ("propagation-ns", "switch-ns", "host-ns")}
    plan["topology"] = {"kind": "dumbbell", "hosts-per-side": 8, "access-gbps": 100.0} | delays
    plan["topology"]["core-gbps"] = 100.0
    sides = {"senders": {"first": 0, "count": 8}, "receivers": {"first": 8, "count": 8}}
    plan["workload"] = {"pattern": "shuffle", "flow-bytes": 2_500_000, "rounds": 1} | sides


PAIR_BYTES = 625_000
MIXED_SHORT_FLOWS = 500


def _narrow_dumbbell(plan: Plan) -> None:
    """The dumbbell with a core of a quarter of the rate of a host's link."""
    _dumbbell(plan)
    plan["topology"]["core-gbps"] = 25.0


def _all_pairs_and_short(seed: int) -> Columns:
    """Returns 625 KB from each of 8 hosts to each of 8 others, and short flows at load 0.3."""
    rng = np.random.default_rng(seed)
    gap_us = 4 * SHORT_BYTES / ACCESS_BYTES_PER_US / 0.3
    arrivals = 1 + np.cumsum(rng.exponential(gap_us, MIXED_SHORT_FLOWS))
    pairs = [(src, dst) for src in range(8) for dst in range(8, 16)]
    return {
        "arrival_us": [1.0] * len(pairs) + arrivals.tolist(),
        "src": [src for src, _ in pairs] + rng.integers(0, 8, MIXED_SHORT_FLOWS).tolist(),
        "dst": [dst for _, dst in pairs] + rng.integers(8, 16, MIXED_SHORT_FLOWS).tolist(),
        "size_bytes": [PAIR_BYTES] * len(pairs) + [SHORT_BYTES] * MIXED_SHORT_FLOWS,
    }


def _incast(plan: Plan) -> None:
    """All 31 others send 100 KB to one host at once."""
    plan["workload"] = {"pattern": "incast", "fan": 31, "flow-bytes": 100_000, "rounds": 1}


def _failing_wide(plan: Plan) -> None:
    """Fails the same link in a core with capacity for the load of the failed link."""
    _failing(plan)
    plan["topology"]["core-gbps"] = 800.0


def _two_rates(plan: Plan) -> None:
    """Hosts of 100 and 25 Gbit/s in turn, at load 0.6 of the slow ones."""
    ends = [(f"h{n}", f"s{n // 8}", (100.0, 25.0)[n % 2]) for n in range(32)]
    ends += [(f"s{rack}", f"s{spine}", 400.0) for rack in range(4) for spine in (4, 5)]
    links = [{"between": [a, b], "gbps": rate, "propagation-ns": 200.0} for a, b, rate in ends]
    delays = {key: plan["topology"][key] for key in ("switch-ns", "host-ns")}
    plan["topology"] = {"kind": "links", "hosts": 32, "switches": 6, "links": links} | delays


def _large_incast(plan: Plan) -> None:
    """200 of 224 hosts send 100 KB to one host at once."""
    plan["topology"] |= {"racks": 7, "hosts-per-rack": 32, "spines": 8}
    plan["workload"] = {"pattern": "incast", "fan": 200, "flow-bytes": 100_000, "rounds": 1}


def _two_long_flows(seed: int) -> Columns:
    """Returns two flows of 1 GB to one host; all three are in separate racks."""
    return {"arrival_us": [1, 1], "src": [8, 16], "dst": [0, 0], "size_bytes": [10**9] * 2}


def _long_and_short(seed: int) -> Columns:
    """Returns one flow of 50 MB, and 20 KB flows of 30 hosts to its destination at load 0.85."""
    rng = np.random.default_rng(seed)
    wire_bytes = SHORT_BYTES + math.ceil(SHORT_BYTES / PAYLOAD) * HEADER
    gap_us = wire_bytes / ACCESS_BYTES_PER_US / 0.85
    arrivals = 1 + np.cumsum(rng.exponential(gap_us, SHORT_FLOWS))
    sources = rng.integers(2, 32, SHORT_FLOWS)
    return {
        "arrival_us": [1.0, *arrivals.tolist()],
        "src": [1, *sources.tolist()],
        "dst": [0] * (SHORT_FLOWS + 1),
        "size_bytes": [LONG_BYTES] + [SHORT_BYTES] * SHORT_FLOWS,
    }


@dataclass(frozen=True)
class Situation:
    """A change of the base plan, and its measurement."""

    name: str
    change: Callable[[Plan], None] = lambda plan: None
    flows: Callable[[int], Columns] | None = None
    """Returns the flows of a seed, instead of the plan's workload."""
    up_to_bytes: float = math.inf
    """Size of the longest flow that counts for the mean slowdown."""
    is_end: bool = False
    """Measures the end of the last flow: over the time in which one link carries all packets."""


SITUATIONS = (
    Situation("base"),
    Situation("0.9", _set("workload", load=0.9)),
    Situation("WS 0.8", _set("workload", load=0.8, sizes="web-search", flows=1500)),
    Situation("r10", _scaled(0.1, 10.0)),
    Situation("r400", _scaled(4.0, 0.25)),
    Situation("25G", _scaled(0.25, 1.0)),
    Situation("400G", _scaled(4.0, 1.0)),
    Situation("10 RTT", _scaled(1.0, 10.0)),
    Situation("4096 B", _packet(4096)),
    Situation("9000 B", _packet(9000)),
    Situation("tree", _fat_tree),
    Situation("4:1", _oversubscribed),
    Situation("fail", _failing),
    Situation("loss", _set("faults", loss=0.001)),
    Situation("clocks", _set("clocks", offset_us=0.2)),
    Situation("incast", _incast),
    Situation("dumbbell", _dumbbell),
    Situation("25G core", _narrow_dumbbell, flows=_all_pairs_and_short, is_end=True),
    Situation("mixed", _dumbbell, flows=_all_pairs_and_short, up_to_bytes=SHORT_BYTES),
    Situation("25+100G", _two_rates),
    Situation("fail 800", _failing_wide),
    Situation("200:1", _large_incast, is_end=True),
    Situation("1 GB", flows=_two_long_flows, is_end=True),
    Situation("short", flows=_long_and_short, up_to_bytes=SHORT_BYTES),
    Situation("long", flows=_long_and_short, is_end=True),
)


def cause(transport: str, name: str) -> str | None:
    """Returns the cause of a wide bound."""
    keys = ((transport, name), (transport, "*"), ("*", name))
    return next((CAUSES[key] for key in keys if key in CAUSES), None)


def bounds() -> dict[tuple[str, str], float]:
    """Returns the bounds by transport and situation."""
    found: dict[tuple[str, str], float] = {}
    for block in BOUNDS.strip().split("\n\n"):
        head, *rows = (line.split() for line in block.splitlines())
        names = {s.name.replace(" ", "-"): s.name for s in SITUATIONS}
        for row in rows:
            cells = zip(head[1:], row[1:], strict=True)
            found |= {(row[0], names[name]): float(bound) for name, bound in cells if bound != "-"}
    return found


@dataclass(frozen=True)
class JobOutcome:
    """Result of one transport in one situation."""

    mean: float
    """Mean slowdown, or the end of the last flow over that of a link without gaps."""
    p99: float
    undelivered: int
    sent_again: float
    """Retransmitted payload bytes over those of the messages."""
    error: str = ""


def scaled_mean(
    transport: str, preset: str, scale: float, workload: Mapping[str, Any] | None = None
) -> float:
    """Returns the mean slowdown with rates times `scale` and delays over it.

    The plan is the base plan, with another workload if one is given.
    """
    summary = _scaled_run(transport, preset, scale, 0.0, workload).summary
    return float(summary["slowdown"]["delivered"]["overall"]["mean"])


def scaled_geometric_mean(transport: str, preset: str, scale: float, loss: float) -> float:
    """Returns the geometric mean of slowdowns if each link loses the share `loss` of the packets.

    It counts all repairs, and a single message that waits for a thousand round trips adds 1.4 %.
    """
    flows = _scaled_run(transport, preset, scale, loss).flows
    fct, ideal = (flows[name].to_numpy().astype(np.float64) for name in ("fct_ps", "ideal_ps"))
    is_done = ~np.isnan(fct)
    return float(np.exp(np.log(fct[is_done] / ideal[is_done]).mean()))


def _scaled_run(
    transport: str,
    preset: str,
    scale: float,
    loss: float,
    workload: Mapping[str, Any] | None = None,
) -> Any:
    plan = _base()
    plan["faults"] = {"loss": loss} if loss else {}
    _scaled(scale, 1.0 / scale)(plan)
    plan["workload"] = dict(workload or plan["workload"] | {"flows": 500})
    plan["run"]["drain-us"] = 1e6 / scale
    plan["transport"] = {"name": transport, "preset": preset}
    warnings.simplefilter("ignore")
    parts: dict[str, Any] = {table: keys for table, keys in plan.items() if keys}
    return rm.run(**parts, seed=1, quiet=True)


def run(
    transport: str, situation: Situation, seed: int = 1, changes: Mapping[str, Any] | None = None
) -> JobOutcome:
    """Runs one transport in one situation, with other values of keys of the plan."""
    plan = _base()
    situation.change(plan)
    if situation.flows is not None:
        trace = rm.flows(situation.flows(seed))
        plan["workload"] = {"pattern": "trace", "file": str(trace.file)}
    plan["transport"] = {"name": transport} | plan["transport"]
    if transport == "ideal":
        plan["transport"].pop("payload-bytes", None)
    for key, value in (changes or {}).items():
        name, _, rest = key.partition(".")
        plan.setdefault(name, {})[rest] = value
    warnings.simplefilter("ignore")
    parts: dict[str, Any] = {table: keys for table, keys in plan.items() if keys}
    try:
        result = rm.run(**parts, seed=seed, quiet=True)
    except rm.PlanError as error:
        return JobOutcome(float("nan"), float("nan"), 0, 0.0, str(error))
    return _outcome(situation, result.flows)


def _outcome(situation: Situation, flows: Any) -> JobOutcome:
    """Returns the outcome of the flows of a run."""
    arrival, fct, ideal, sizes, again = (
        flows[name].to_numpy().astype(np.float64)
        for name in ("arrival_ps", "fct_ps", "ideal_ps", "size_bytes", "retransmitted_bytes")
    )
    is_done = ~np.isnan(fct)
    if not is_done.any():
        return JobOutcome(float("nan"), float("nan"), flows.num_rows, 0.0, "nothing delivered")
    done = np.sort((fct / ideal)[is_done & (sizes <= situation.up_to_bytes)])
    mean = float(done.mean())
    if situation.is_end:
        headers = np.ceil(sizes[is_done] / PAYLOAD) * HEADER
        wire_us = float((sizes[is_done] + headers).sum()) / ACCESS_BYTES_PER_US
        end_ps = (arrival + fct)[is_done].max() - arrival.min()
        mean = float(end_ps / 1e6 / wire_us)
    p99 = float(done[min(len(done) - 1, int(0.99 * len(done)))])
    undelivered = flows.num_rows - int(is_done.sum())
    return JobOutcome(mean, p99, undelivered, float(again.sum() / sizes.sum()))


def _run(job: tuple[str, str], seed: int, changes: Mapping[str, Any]) -> JobOutcome:
    transport, name = job
    return run(transport, next(s for s in SITUATIONS if s.name == name), seed, changes)


def table(
    transports: tuple[str, ...],
    names: tuple[str, ...],
    workers: int,
    seed: int,
    changes: Mapping[str, Any],
) -> dict[str, dict[str, JobOutcome]]:
    """Runs all pairs in processes."""
    jobs = [(transport, name) for transport in transports for name in names]
    with ProcessPoolExecutor(workers) as pool:
        done = pool.map(partial(_run, seed=seed, changes=changes), jobs)
        outcomes = dict(zip(jobs, done, strict=True))
    return {t: {n: outcomes[t, n] for n in names} for t in transports}


def broken(results: Mapping[str, Mapping[str, JobOutcome]]) -> list[str]:
    """Returns a line for each result that exceeds a bound."""
    limits = bounds()
    lines = []
    for transport, row in results.items():
        for name, outcome in row.items():
            where = f"{transport}, {name}"
            limit = limits.get((transport, name))
            if limit is not None and not outcome.mean <= limit:
                lines.append(f"{where}: expected a mean of at most {limit}, got {outcome.mean:.2f}")
            may_lose = transport == "cosy" or (transport, name) in LOSES
            if outcome.undelivered and not may_lose:
                lines.append(f"{where}: expected all delivered, {outcome.undelivered} were not")
            again = SHARE_SENT_AGAIN_MAX.get(name, {}).get(transport, math.inf)
            if outcome.sent_again > again:
                share = f"{100 * outcome.sent_again:.1f} %"
                lines.append(
                    f"{where}: expected at most {100 * again:.0f} % retransmitted, got {share}"
                )
    return lines


def render(results: Mapping[str, Mapping[str, JobOutcome]]) -> str:
    """Returns the table of mean slowdowns; `!n` follows where n messages were not delivered."""
    names = list(next(iter(results.values())))
    lines = ["".join([f"{'':12}", *(f"{name:>9}" for name in names)])]
    for transport, row in results.items():
        cells = []
        for outcome in row.values():
            lost = f"!{outcome.undelivered}" if outcome.undelivered else ""
            cells.append(f"{outcome.mean:.2f}{lost}" if not outcome.error else "refused")
        lines.append("".join([f"{transport:12}", *(f"{cell:>9}" for cell in cells)]))
    return "\n".join(lines)


def _halves(assignment: str) -> tuple[str, str]:
    key, _, value = assignment.partition("=")
    return key, value


def main() -> int:
    """Runs the table from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transports", default=",".join(TRANSPORTS))
    parser.add_argument("--situations", default=",".join(s.name for s in SITUATIONS))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    changes = {key: tomllib.loads(f"value = {v}")["value"] for key, v in map(_halves, args.set)}
    transports, names = tuple(args.transports.split(",")), tuple(args.situations.split(","))
    results = table(transports, names, args.workers, args.seed, changes)
    sys.stdout.write(render(results) + "\n")
    if args.json:
        plain = {t: {n: vars(o) for n, o in row.items()} for t, row in results.items()}
        args.json.write_text(json.dumps(plain, indent=1))
    lines = broken(results)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())

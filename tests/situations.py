"""Every transport in networks that differ from those of its paper: a table and its bounds.

Each situation is one plan, for 32 hosts unless it says otherwise, that differs from `base` in one
respect. `python tests/situations.py` runs all transports in all situations on all cores, prints the
mean slowdown of each, or when the last flow ends over when all links could have carried the bytes,
and ends with status 1 if one exceeds its bound. Bounds leave room for other seeds, not for a
protocol that stalls: a timeout in a healthy network, or a repetition of most of the traffic, breaks
them.
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

FLOWS = 2000
TRANSPORTS = (
    *("ideal", "dcpim", "phost", "pfabric", "fastpass", "cosy", "tcp", "dctcp", "pias"),
    *("capton", "hyline", "fastpod", "ndp", "homa", "homa-aeolus", "sird", "hpcc"),
)

PAYLOAD = 1460
HEADER = 40
ACCESS_BYTES_PER_US = 12_500

Plan = dict[str, dict[str, Any]]


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
    """Returns a change that sets keys of a table; `_` in their names stands for `-`."""
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


def _incast(plan: Plan) -> None:
    """All 31 others send 100 KB to one host at once."""
    plan["workload"] = {"pattern": "incast", "fan": 31, "flow-bytes": 100_000, "rounds": 1}


def _failing_wide(plan: Plan) -> None:
    """The same failure, in a core whose other links carry the load of the failed one."""
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


Columns = dict[str, list[float] | list[int]]


def _two_long_flows(seed: int) -> Columns:
    """Two hosts send 1 GB each to a third one; each is in a rack of its own."""
    return {"arrival_us": [1, 1], "src": [8, 16], "dst": [0, 0], "size_bytes": [10**9] * 2}


LONG_BYTES = 50_000_000
SHORT_BYTES = 20_000
SHORT_FLOWS = 10_000


def _long_and_short(seed: int) -> Columns:
    """One flow of 50 MB; 30 hosts send 20 KB flows to its destination, with a load of 0.85."""
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
    Situation("25+100G", _two_rates),
    Situation("fail 800", _failing_wide),
    Situation("200:1", _large_incast, is_end=True),
    Situation("1 GB", flows=_two_long_flows, is_end=True),
    Situation("short", flows=_long_and_short, up_to_bytes=SHORT_BYTES),
    Situation("long", flows=_long_and_short, is_end=True),
)


BOUNDS = """
transport        base      0.9   WS-0.8      r10     r400      25G     400G   10-RTT   4096-B
ideal            1.38     1.44     1.62     1.38     1.38     1.39     1.37     1.36     1.38
dcpim            1.81     1.88     2.48     1.81     1.81     1.67     1.98     1.79     1.80
phost            1.58     1.69     2.02     1.58     1.58     1.57     1.73     1.92     1.60
pfabric          1.44     1.52     1.72     1.44     1.45     1.50     1.40     1.38     1.48
fastpass         4.43     4.71     5.14     4.43     4.43     5.06     4.14     4.06     5.34
cosy             9.92    10.97     3.94     9.72     9.71       21     5.57     4.48     9.64
tcp             12.24       14    11.35    12.24    12.24    11.91     7.47     5.45       13
dctcp            4.94     5.60     6.23     4.94     4.94     4.97     5.30     5.16     5.42
pias             4.35     5.14     4.20     4.35     4.35     4.24     4.83     4.92     5.42
capton           1.72     2.03     2.49     1.72     1.72     2.03     1.68     1.73     1.71
hyline           3.30     4.95     3.97     3.30     3.30     4.76     3.73     3.53     3.95
fastpod          2.74     3.16     4.49     2.74     2.74     3.14     2.64     2.70     3.07
ndp              2.29     2.74     4.43     2.31     2.26     2.60     2.17     2.20     2.36
homa             1.43     1.50     1.67     1.43     1.43     1.47     1.44     1.48     1.47
homa-aeolus      2.07     2.36     2.40     2.07     2.08     2.10     2.18     2.22     2.16
sird             1.56     1.66     2.22     1.57     1.57     1.63     1.50     1.45     1.60
hpcc             1.99     2.28     3.70     1.98     1.98     2.15     1.95     1.95     1.99

transport      9000-B     tree      4:1     fail     loss   clocks   incast dumbbell
ideal            1.38     1.39     1.28     1.38     1.38     1.38       16     5.58
dcpim            1.94     1.93     1.82     2.30     2.12     1.81       31       46
phost            1.68     1.76     1.63     1.95     1.63     1.58       24       57
pfabric          1.56     1.54     1.38     1.64     1.74     1.44       19       43
fastpass         7.21     3.99    10.00     8.31     6.85     4.44       32       52
cosy                -     7.56     7.23    10.11     7.46     9.74       14     1.34
tcp                14       16       16       14     9.31    12.24       25       75
dctcp            6.55     5.77     5.26     7.65     6.13     4.94       27       79
pias             6.55     4.82     4.42     7.09     5.60     4.35       27       79
capton           1.90     1.88     1.69     3.73     2.53     1.72       16       41
hyline           3.56     4.04     3.87     5.99     4.01     3.30       47       73
fastpod          3.51     3.13      129       20     3.93     3.87       32      314
ndp              2.78     2.33     2.51     5.37     5.39     2.29       30       79
homa             1.56     1.48     1.42     5.76     5.62     1.43       27       58
homa-aeolus      2.47     2.57     2.86     4.98     4.65     2.07       17       63
sird             1.70     1.62     1.48     3.38     4.07     1.56       16       76
hpcc             2.16     2.44     2.04       29     8.82     1.99       32       83

transport     25+100G fail-800    200:1     1-GB    short     long
ideal            1.33     1.38     1.10     1.10     3.10     1.10
dcpim            1.56     2.19     2.06     1.10     3.49     1.12
phost            1.47     1.89     1.12     1.10     5.90     1.10
pfabric          1.39     1.69     1.25     1.11       31     1.24
fastpass         6.21    11.19     1.17     1.16       21     1.18
cosy                -    10.10     1.27     1.16       20     1.42
tcp                14       15     1.95     1.10       38     1.11
dctcp            4.62     7.71     1.11     1.10    10.04     1.12
pias             3.96     7.36     1.11     1.10     7.22     1.11
capton           1.96     3.77     1.11     1.10       14     1.10
hyline           4.61     5.72     7.82     1.10      151     1.66
fastpod          3.76     3.37     1.15     1.13       21     1.19
ndp              2.18     5.41     1.11     1.10    12.98     1.17
homa             1.38     6.05     1.10     1.10     3.33     1.10
homa-aeolus      1.85     4.93     1.10     1.10     5.49     1.10
sird             1.48     3.69     1.12     1.11     3.33     1.10
hpcc             1.83       29     1.29     1.22     4.46     1.29
"""
"""Largest mean slowdowns by transport and situation, with `-` for spaces in names.

They are 1.25 times the largest of one to three seeds; of ends of the last flow, 1.1 times. Fastpod
in `fail` varies between 4 and 19.4 with twelve seeds, so its bound is 20.
"""

SHARE_SENT_AGAIN_MAX = {"dcpim": 0.25, "homa": 0.15, "sird": 0.05, "tcp": 0.1, "dctcp": 0.05}
"""Maximum share of payload that is retransmitted in the situation `dumbbell`."""

LOSES = {("fastpod", "dumbbell"): "it schedules hosts' links alone, and warns of the narrow core"}
"""Pairs that may leave messages undelivered, with the reason. cosy rejects some by design."""


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
class Outcome:
    """Result of one transport in one situation."""

    mean: float
    """Mean slowdown, or the end of the last flow over that of a link without gaps."""
    p99: float
    undelivered: int
    sent_again: float
    """Retransmitted payload bytes over those of the messages."""
    error: str = ""


def scaled_mean(transport: str, preset: str, scale: float) -> float:
    """Returns the mean slowdown of the base plan with rates times `scale` and delays over it."""
    plan = _base()
    _scaled(scale, 1.0 / scale)(plan)
    plan["workload"]["flows"] = 500
    plan["run"]["drain-us"] = 1e6 / scale
    plan["transport"] = {"name": transport, "preset": preset}
    warnings.simplefilter("ignore")
    parts: dict[str, Any] = {table: keys for table, keys in plan.items() if keys}
    summary = rm.run(**parts, seed=1, quiet=True).summary
    return float(summary["slowdown"]["delivered"]["overall"]["mean"])


def run(
    transport: str, situation: Situation, seed: int = 1, changes: Mapping[str, Any] | None = None
) -> Outcome:
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
        return Outcome(float("nan"), float("nan"), 0, 0.0, str(error))
    return _outcome(situation, result.flows)


def _outcome(situation: Situation, flows: Any) -> Outcome:
    """Returns the outcome of the flows of a run."""
    arrival, fct, ideal, sizes, again = (
        flows[name].to_numpy().astype(np.float64)
        for name in ("arrival_ps", "fct_ps", "ideal_ps", "size_bytes", "retransmitted_bytes")
    )
    is_done = ~np.isnan(fct)
    if not is_done.any():
        return Outcome(float("nan"), float("nan"), flows.num_rows, 0.0, "nothing delivered")
    done = np.sort((fct / ideal)[is_done & (sizes <= situation.up_to_bytes)])
    mean = float(done.mean())
    if situation.is_end:
        headers = np.ceil(sizes[is_done] / PAYLOAD) * HEADER
        wire_us = float((sizes[is_done] + headers).sum()) / ACCESS_BYTES_PER_US
        end_ps = (arrival + fct)[is_done].max() - arrival.min()
        mean = float(end_ps / 1e6 / wire_us)
    p99 = float(done[min(len(done) - 1, int(0.99 * len(done)))])
    undelivered = flows.num_rows - int(is_done.sum())
    return Outcome(mean, p99, undelivered, float(again.sum() / sizes.sum()))


def _run(job: tuple[str, str], seed: int, changes: Mapping[str, Any]) -> Outcome:
    transport, name = job
    return run(transport, next(s for s in SITUATIONS if s.name == name), seed, changes)


def table(
    transports: tuple[str, ...],
    names: tuple[str, ...],
    workers: int,
    seed: int,
    changes: Mapping[str, Any],
) -> dict[str, dict[str, Outcome]]:
    """Runs all pairs in processes."""
    jobs = [(transport, name) for transport in transports for name in names]
    with ProcessPoolExecutor(workers) as pool:
        done = pool.map(partial(_run, seed=seed, changes=changes), jobs)
        outcomes = dict(zip(jobs, done, strict=True))
    return {t: {n: outcomes[t, n] for n in names} for t in transports}


def broken(results: Mapping[str, Mapping[str, Outcome]]) -> list[str]:
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
            again = SHARE_SENT_AGAIN_MAX.get(transport, math.inf)
            if name == "dumbbell" and outcome.sent_again > again:
                share = f"{100 * outcome.sent_again:.1f} %"
                lines.append(
                    f"{where}: expected at most {100 * again:.0f} % sent again, got {share}"
                )
    return lines


def render(results: Mapping[str, Mapping[str, Outcome]]) -> str:
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

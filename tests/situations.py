"""Every transport in networks that differ from those of its paper: a table and its bounds.

Each situation is one plan for 32 hosts that differs from `base` in one respect. `python
tests/situations.py` runs all transports in all situations on all cores, prints the mean slowdown of
each, and ends with status 1 if one exceeds its bound. Bounds leave room for other seeds, not for a
protocol that stalls: a timeout in a healthy network, or a repetition of most of the traffic, breaks
them.
"""

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rampmeter as rm

FLOWS = 2000
TRANSPORTS = (
    *("ideal", "dcpim", "phost", "pfabric", "fastpass", "cosy", "tcp", "dctcp", "pias"),
    *("capton", "hyline", "fastpod", "ndp", "homa", "homa-aeolus", "sird", "hpcc"),
)

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
    """A link of the core fails for good; switches notice it after 100 us."""
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
    """Eight hosts send 20 MB each through one link as fast as theirs."""
    delays = {key: plan["topology"][key] for key in ("propagation-ns", "switch-ns", "host-ns")}
    plan["topology"] = {"kind": "dumbbell", "hosts-per-side": 8, "access-gbps": 100.0} | delays
    plan["topology"]["core-gbps"] = 100.0
    plan["workload"] = {"pattern": "permutation", "flow-bytes": 20_000_000}


def _incast(plan: Plan) -> None:
    """All 31 others send 100 KB to one host at once."""
    plan["workload"] = {"pattern": "incast", "fan": 31, "flow-bytes": 100_000, "rounds": 1}


@dataclass(frozen=True)
class Situation:
    """A change of the base plan."""

    name: str
    change: Callable[[Plan], None]


SITUATIONS = (
    Situation("base", lambda plan: None),
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
)


@dataclass(frozen=True)
class Outcome:
    """What one transport did in one situation."""

    mean: float
    p99: float
    undelivered: int
    sent_again: float
    """Payload bytes that were sent more than once, over those of the messages."""
    error: str = ""


def run(transport: str, situation: Situation, seed: int = 1) -> Outcome:
    """Runs one transport in one situation."""
    plan = _base()
    situation.change(plan)
    plan["transport"] = {"name": transport} | plan["transport"]
    if transport == "ideal":
        plan["transport"].pop("payload-bytes", None)
    warnings.simplefilter("ignore")
    try:
        result = rm.run(**{k: v for k, v in plan.items() if v}, seed=seed, quiet=True)
    except rm.PlanError as error:
        return Outcome(float("nan"), float("nan"), 0, 0.0, str(error))
    flows = result.flows
    rows = zip(flows["fct_ps"].to_pylist(), flows["ideal_ps"].to_pylist(), strict=True)
    done = [fct / ideal for fct, ideal in rows if fct is not None]
    size = sum(flows["size_bytes"].to_pylist())
    again = sum(flows["retransmitted_bytes"].to_pylist())
    done.sort()
    if not done:
        return Outcome(float("nan"), float("nan"), flows.num_rows, 0.0, "nothing delivered")
    p99 = done[min(len(done) - 1, int(0.99 * len(done)))]
    return Outcome(sum(done) / len(done), p99, flows.num_rows - len(done), again / size)


def _run(job: tuple[str, str]) -> Outcome:
    transport, name = job
    return run(transport, next(s for s in SITUATIONS if s.name == name))


def table(
    transports: tuple[str, ...], names: tuple[str, ...], workers: int
) -> dict[str, dict[str, Outcome]]:
    """Runs all pairs in processes."""
    jobs = [(transport, name) for transport in transports for name in names]
    with ProcessPoolExecutor(workers) as pool:
        outcomes = dict(zip(jobs, pool.map(_run, jobs), strict=True))
    return {t: {n: outcomes[t, n] for n in names} for t in transports}


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


def main() -> int:
    """Runs the table from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transports", default=",".join(TRANSPORTS))
    parser.add_argument("--situations", default=",".join(s.name for s in SITUATIONS))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    results = table(
        tuple(args.transports.split(",")), tuple(args.situations.split(",")), args.workers
    )
    print(render(results))
    if args.json:
        plain = {t: {n: vars(o) for n, o in row.items()} for t, row in results.items()}
        args.json.write_text(json.dumps(plain, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

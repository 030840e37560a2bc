"""The table that compares transports, from their plans and one run of each."""

import warnings
from collections.abc import Mapping
from typing import Any, Final

import rampmeter as rm
from rampmeter.plan.schema import names
from rampmeter.results.slowdown import overall_slowdown

PLAN: Final = """
[topology]
kind = "leaf-spine"
racks = 4
hosts-per-rack = 8
spines = 2
access-gbps = 100.0
core-gbps = 400.0
[workload]
pattern = "all-to-all"
sizes = "imc10"
load = 0.6
flows = 2000
[transport]
name = "{transport}"
"""
HEADINGS: Final = (
    "transport",
    "priorities",
    "arbiters",
    "buffer",
    "other functions of ports",
    "choice of paths",
    "control packets",
    "slowdown",
)
PATHS: Final = {
    "ecmp": "one per message",
    "random": "random",
    "source-round-robin": "round robin",
}


def comparison_of_transports() -> str:
    """Returns a row for each transport with its default preset."""
    rows = [HEADINGS, ("---",) * len(HEADINGS)]
    rows += [_row(name) for name in names() if name not in ("ideal", "python")]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(transport: str) -> tuple[str, ...]:
    plan = rm.Plan(PLAN.format(transport=transport))
    fabric, derived = plan.check()["fabric"], plan.derived()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summary = rm.run(plan, quiet=True).summary
    latency = summary["latency"]
    control = latency["control"]["count"] / latency["data"]["count"]
    return (
        f"[{transport}](protocols/{transport}.md)",
        f"{derived['priorities']:.0f}",
        f"{derived['arbiters']:.0f}",
        _memory(fabric),
        _features(fabric),
        PATHS[fabric["spray"]],
        f"{control:.2f}",
        f"{overall_slowdown(summary).mean:.2f}",
    )


def _memory(fabric: Mapping[str, Any]) -> str:
    shared = fabric.get("shared-buffer-bytes")
    if shared is not None:
        return f"{shared / 1e6:.0f} MB per switch"
    port = fabric["buffer-bytes"]
    return "unlimited" if port >= 1e9 else f"{port / 1e3:.0f} KB per port"


def _features(fabric: Mapping[str, Any]) -> str:
    """Returns the functions of ports beyond queues with priorities."""
    found = []
    if fabric["overflow"] == "push-out":
        found.append("drop the least urgent")
    if fabric.get("ecn-bytes") is not None:
        found.append(f"mark above {fabric['ecn-bytes'] / 1e3:.0f} KB")
    if fabric.get("trim-bytes") is not None:
        found.append("trim")
    if fabric.get("drop-unscheduled-above-bytes") is not None:
        found.append("drop unscheduled packets early")
    if fabric.get("pfc") is not None:
        found.append("pause")
    return ", ".join(found) or "-"

"""The tables that compare transports, from their rules, their plans and one run of each."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

import rampmeter as rm
from rampmeter.plan.schema import names, transport_info
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
RULES: Final = (
    "transport",
    "who decides when a packet is sent",
    "functions of switches",
    "priorities",
    "arbiters",
    "control packets",
    "state of a host",
    "after a loss",
)
FABRIC: Final = (
    "transport",
    "buffer",
    "other functions of ports",
    "choice of paths",
    "slowdown",
)
PATHS: Final = {
    "ecmp": "one per message",
    "random": "random",
    "source-round-robin": "round robin",
}


def comparison_of_transports() -> str:
    """Returns a table of the rules of all transports, and one of their fabrics.

    Both are of the default preset of each.
    """
    found = [name for name in names() if name not in ("ideal", "python")]
    rows = {name: _row(name) for name in found}
    rules = [rows[name][0] for name in found] + [_rules("ideal", *("-" * 3))]
    return "\n".join((_table(RULES, rules), _table(FABRIC, [rows[name][1] for name in found])))


def _table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    rows = [headings, ("---",) * len(headings), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(transport: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the rows of a transport in both tables, from its plan and one run."""
    plan = rm.Plan(PLAN.format(transport=transport))
    fabric, derived = plan.check()["fabric"], plan.derived()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summary = rm.run(plan, quiet=True).summary
    latency = summary["latency"]
    control = latency["control"]["count"] / latency["data"]["count"]
    rules = _rules(
        transport, f"{derived['priorities']:.0f}", f"{derived['arbiters']:.0f}", f"{control:.2f}"
    )
    return rules, (
        _link(transport),
        _memory(fabric),
        _features(fabric),
        PATHS[fabric["spray"]],
        f"{overall_slowdown(summary).mean:.2f}",
    )


def _rules(transport: str, *numbers: str) -> tuple[str, ...]:
    """Returns the row of rules; `numbers` are priorities, arbiters and control packets."""
    rules = transport_info(transport)["rules"]
    return (
        _link(transport),
        rules["decided_by"],
        rules["switch_functions"],
        *numbers,
        rules["host_state"],
        rules["after_loss"],
    )


def _link(transport: str) -> str:
    return f"[{transport_info(transport)['title']}](protocols/{transport}.md)"


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

"""Critical paths of traces: the longest chain of flows that wait for each other.

Each flow takes its ideal time, and hosts compute in between, so no transport is faster. The graph
is read from the file of the workload, since results do not have it.
"""

import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

from rampmeter import _core
from rampmeter._core import PlanError
from rampmeter.on_demand import np, pq
from rampmeter.plan.manifest import MANIFEST, plan_of
from rampmeter.results.records import RunRecord
from rampmeter.text.toml import dumps

FLOWS_MAX: Final = 200_000
"""Number of flows beyond which paths are not computed, since that takes seconds."""


def critical_paths(run: RunRecord) -> dict[int, int]:
    """Returns the least makespan of each tenant of a trace, in picoseconds.

    There is none for a tenant whose flows wait for those of others, nor if the file is missing or
    has changed, nor for long traces.
    """
    workload = run.manifest.get("plan", {}).get("workload", {})
    if workload.get("pattern") != "trace" or run.summary["flows"]["submitted"] > FLOWS_MAX:
        return {}
    try:
        text, base = plan_of(run.path / MANIFEST)
    except PlanError:
        return {}
    if not (base / workload["file"]).exists():
        return {}
    return _longest_chains(run, _graph(tomllib.loads(text), base))


def _graph(plan: dict[str, Any], base: Path) -> list[dict[str, Any]]:
    """Returns the flows and computations of a trace, with the numbers of those before each.

    Files that the plan names are relative to `base`.
    """
    workload, network = plan["workload"], {"topology": dict(plan["topology"])}
    if "file" in network["topology"]:
        network["topology"]["file"] = str((base / network["topology"]["file"]).resolve())
    if "names" in plan:
        network["names"] = plan["names"]
    # Plans of earlier versions have `groups`.
    groups = workload.get("groups-file", workload.get("groups"))
    file = base / workload["file"]
    with tempfile.TemporaryDirectory() as folder:
        # The network numbers the nodes that the trace names.
        target, nodes = Path(folder) / "flows.parquet", Path(folder) / "network.toml"
        nodes.write_text(dumps(network), encoding="utf-8")
        _core.convert(
            str(file),
            workload.get("format") or "auto",
            str(target),
            bool(workload.get("sort")),
            nodes,
            workload.get("vector-bytes"),
            None if groups is None else base / groups,
            dict(workload.get("columns") or {}),
        )
        rows: list[dict[str, Any]] = pq.read_table(target).to_pylist()
        return rows


def _longest_chains(run: RunRecord, graph: list[dict[str, Any]]) -> dict[int, int]:
    """Returns the time from the first start to the last end of each tenant without waiting."""
    flows = run.columns("flow", "ideal_ps", "acked_ideal_ps")
    ideals = [flows[name].to_numpy() for name in ("flow", "ideal_ps", "acked_ideal_ps")]
    times = {int(flow): (int(one), int(other)) for flow, one, other in zip(*ideals, strict=True)}
    after = [row.get("after") or [] for row in graph]
    dependents: list[list[int]] = [[] for _ in graph]
    for node, before in enumerate(after):
        for one in before:
            dependents[one].append(node)
    n_open = np.array([len(before) for before in after])
    ready = [node for node, n in enumerate(n_open) if n == 0]
    starts = [int(row["arrival_ps"]) for row in graph]
    spans: dict[int, tuple[int, int]] = {}
    entangled = set()
    while ready:
        node = ready.pop()
        row = graph[node]
        tenant = int(row.get("tenant", 0))
        start = starts[node] + int(row.get("compute_ps", 0))
        delivered, acked = times.get(node, (0, 0))
        if node in times:
            first, last = spans.get(tenant, (start, start))
            spans[tenant] = (min(first, start), max(last, start + delivered))
        for other in dependents[node]:
            # A host is notified of its own flow by the acknowledgement, of others by delivery.
            took = delivered if graph[other]["src"] == row["dst"] else acked
            starts[other] = max(starts[other], start + took)
            n_open[other] -= 1
            if n_open[other] == 0:
                ready.append(other)
            if int(graph[other].get("tenant", 0)) != tenant:
                entangled.add(int(graph[other].get("tenant", 0)))
    return {t: last - first for t, (first, last) in spans.items() if t not in entangled}

"""Critical paths of traces: the longest chain of flows that wait for each other.

Each flow takes its ideal time, and hosts compute in between, so no transport is faster. The graph
is read from the file of the workload, since results do not have it.
"""

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rampmeter import _core
from rampmeter.on_demand import np, pq
from rampmeter.plan.manifest import BASE, IDENTITY
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
    file = _unchanged_file(run.path, str(workload["file"]))
    return {} if file is None else _longest_chains(run, _graph(run, file, workload))


def _unchanged_file(folder: Path, name: str) -> Path | None:
    """Returns the file of a trace if it is that of the run."""
    try:
        identity = json.loads((folder / IDENTITY).read_text(encoding="utf-8"))
        file = folder / identity[BASE] / name
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        return file if digest in identity["inputs"].values() else None
    except (OSError, ValueError, KeyError):
        return None


def _graph(run: RunRecord, file: Path, workload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the flows and computations of a trace, with the numbers of those before each."""
    groups, names = workload.get("groups"), [*run.host_names]
    with tempfile.TemporaryDirectory() as folder:
        target, network = Path(folder) / "flows.parquet", Path(folder) / "names.toml"
        if names:
            # Any network whose hosts have these names has their numbers.
            star = {"kind": "star", "hosts": len(names)}
            network.write_text(dumps({"topology": star, "names": {"hosts": names}}))
        _core.convert(
            str(file),
            workload.get("format") or "auto",
            str(target),
            bool(workload.get("sort")),
            network if names else None,
            workload.get("vector-bytes"),
            None if groups is None else file.parent / groups,
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

"""Values of one run in a panel."""

from typing import TypeAlias

from rampmeter.papers.figure import SubFigure
from rampmeter.papers.metrics import METRICS, Metric, Settings
from rampmeter.papers.selection import Flows, by_size, finished_before, overall
from rampmeter.results.run import Run

CellValues: TypeAlias = dict[tuple[Metric, int | None], tuple[float, int]]
"""The values of one run in one panel, with the number of flows behind each."""


def measure(
    panel: SubFigure, run: Run, ideal: str = "figure", settings: Settings | None = None
) -> CellValues:
    """Computes the values of one run in a panel."""
    submitted = int(run.summary["flows"]["submitted"])
    of_flows = {metric: of for metric in panel.metrics if (of := METRICS[metric].of_flows)}
    cells: CellValues = {}
    for metric in panel.metrics:
        if metric not in of_flows:
            values = METRICS[metric].values(run, panel.points, settings or {})
            idxs = range(len(values)) if panel.points else [None]
            cells |= {(metric, i): (v, submitted) for i, v in zip(idxs, values, strict=True)}
    if not of_flows:
        return cells
    flows = Flows.of(run, ideal)
    counted = finished_before(flows, panel.finished_before)
    counted &= flows.between(panel.above_bytes, panel.up_to_bytes)
    if panel.without_bytes is not None:
        counted &= flows.size_bytes != panel.without_bytes
    by_bin = panel.drawing == "by-size"
    groups = by_size(flows, counted, panel.edges_bytes) if by_bin else [overall(flows, counted)]
    return cells | {
        (metric, idx if by_bin else None): (float(getattr(group, of)), group.count)
        for idx, group in enumerate(groups)
        for metric, of in of_flows.items()
    }

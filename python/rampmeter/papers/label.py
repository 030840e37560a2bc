"""Names of runs in tables and plots, and their positions on an axis."""

from rampmeter.papers.expected import CellId
from rampmeter.papers.figure import Figure, SubFigure
from rampmeter.results.names import WORKLOADS
from rampmeter.text.locations import Location


def workload(figure: Figure, run_id: str) -> str:
    """Returns the name of a run: its label, or its workload as papers write it."""
    label = figure.run(run_id).label
    if label is not None:
        return label
    sizes = figure.plan.with_(*figure.run(run_id).overrides).get("workload.sizes")
    return WORKLOADS.get(sizes, str(sizes)) if isinstance(sizes, str) else "own sizes"


def name_parts(figure: Figure, run_id: str) -> tuple[str, str]:
    """Returns the name of a run as its parts before and after the first comma."""
    first, _, second = workload(figure, run_id).partition(", ")
    return first, second


def load(figure: Figure, panel: SubFigure, run_id: str) -> float:
    """Returns a run's value on a panel's x axis: its load, or another key of its plan."""
    plan = figure.plan.with_(*figure.run(run_id).overrides)
    value = plan.resolved(panel.x)
    if not isinstance(value, int | float):
        where = Location(figure.folder / "figure.toml")
        raise where.at("x").error(expected=f"a number at {panel.x} of {run_id}", got=value)
    return value / panel.x_per


def position(figure: Figure, panel: SubFigure, cell: CellId) -> float | str | None:
    """Returns a row's position on a panel's x axis; `None` if the panel has no such axis."""
    match panel.drawing:
        case "by-load" | "spread" | "sustained":
            return load(figure, panel, cell.run)
        case "by-point" if cell.bin is not None:
            return panel.points[cell.bin]
        case "by-size" if cell.bin is not None:
            return panel.labels[cell.bin]
        case "by-workload":
            return workload(figure, cell.run)
        case _:
            return None

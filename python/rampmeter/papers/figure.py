"""Figures of papers as data: runs, sub-figures and published values, read from their folders."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from rampmeter._core import PlanError
from rampmeter.plan import Override, Plan
from rampmeter.results import IDEALS
from rampmeter.toml import TomlValue

FIGURE = "figure.toml"
EXPECTED = "expected.toml"

Drawing: TypeAlias = Literal[
    "by-load",
    "by-workload",
    "by-size",
    "by-point",
    "spread",
    "sustained",
    "share",
    "probes",
    "crashes",
    "operating-points",
]
Metric: TypeAlias = Literal[
    "utilisation",
    "min",
    "mean",
    "p99",
    "p999",
    "max",
    "nfct",
    "deadlines-met",
    "drop-rate",
    "tenant-share",
    "rejected",
    "bound-us",
    "detection-us",
    "detection-limit-us",
    "false-suspicions",
    "false-positive",
    "tail-us",
    "spinner-share",
    "kiops",
    "batch",
    "gaps-below",
]

OF_FLOWS = ("min", "mean", "p99", "p999", "max")
"""Metrics of the slowdown of single flows; the others are of a run as a whole."""
METRICS = get_args(Metric)
DRAWINGS = get_args(Drawing)
LOAD_LABEL = "Offered load (fraction of access capacity, headers included)"


@dataclass(frozen=True)
class Mode:
    """How many flows the runs of a figure have: `judged`, `quick`, `full` or a `scale`."""

    name: Literal["judged", "quick", "full", "scale"] = "judged"
    scale: float = 1.0

    @property
    def label(self) -> str:
        """A name for folders and reports."""
        return f"scale-{self.scale:g}" if self.name == "scale" else self.name


@dataclass(frozen=True)
class FigureRun:
    """One simulation of a figure."""

    id: str
    overrides: tuple[Override, ...]
    flows: int
    """Flows of the judged run."""
    quick_flows: int | None
    """Flows of the reduced run; `None` leaves the run out there."""
    variant_of: str | None
    """The run beside which this one is shown."""
    label: str | None = None
    """What tables and plots call it; the workload's name if `None`."""
    app: Mapping[str, TomlValue] = field(default_factory=dict)
    """Settings of the application whose metrics are computed from the run."""

    def flows_in(self, mode: Mode, published_flows: int) -> int | None:
        """Flows in a mode; `None` if the run is left out."""
        match mode.name:
            case "judged":
                return self.flows
            case "quick":
                return self.quick_flows
            case "full":
                return max(self.flows, published_flows)
            case "scale":
                return max(1, round(self.flows * mode.scale))


@dataclass(frozen=True)
class SubFigure:
    """One panel: what is computed from which runs."""

    id: str
    title: str
    drawing: Drawing
    metrics: tuple[Metric, ...]
    runs: tuple[str, ...]
    x: str
    """The plan's key that drawings by load go by, and its name and divisor in plots."""
    x_label: str
    x_per: float
    finished_before: float | None
    """Flows count that finish before this fraction of the arrivals; all if `None`."""
    edges_bytes: tuple[int, ...]
    """Upper edges of the size bins; empty where flows are not told apart by size."""
    labels: tuple[str, ...]
    """Names of the size bins, or of the points."""
    points: tuple[float, ...]
    """Where metrics are computed, such as misses in a row; empty for one value a run."""
    log: str
    """Which axes of a drawing by points are logarithmic: empty, `x`, `y` or `xy`."""
    rejected_max: float
    """The share of messages that may be rejected where a load counts as sustained."""
    cores: int
    """Core switches of the networks that a share of the sustainable load is drawn for."""


@dataclass(frozen=True)
class Tolerance:
    """How far a measured value may be from the published one."""

    value: float
    kind: Literal["absolute", "relative"]

    def allows(self, published: float, measured: float) -> bool:
        """Whether the difference is within the tolerance."""
        scale = published if self.kind == "relative" else 1.0
        return abs(measured - published) <= self.value * abs(scale) + 1e-12


@dataclass(frozen=True)
class CellId:
    """Where a value stands: sub-figure, run, metric, and size bin if it has one."""

    sub_figure: str
    run: str
    metric: Metric
    bin: int | None = None


@dataclass(frozen=True)
class Fact:
    """A published value."""

    published: float
    tolerance: Tolerance
    source: str


@dataclass(frozen=True)
class Figure:
    """A figure with everything that is needed to make and to judge it."""

    folder: Path
    paper: str
    number: str
    title: str
    claim: str
    published_flows: int
    ideal: str
    """The ideal that slowdowns are of."""
    plan: Plan
    runs: tuple[FigureRun, ...]
    sub_figures: tuple[SubFigure, ...]
    facts: Mapping[CellId, Fact]

    def run(self, id: str) -> FigureRun:  # noqa: A002 - the plan's own word
        """The run with this id."""
        return next(run for run in self.runs if run.id == id)

    def variant(self, id: str) -> FigureRun | None:  # noqa: A002
        """The run that is shown beside this one."""
        return next((run for run in self.runs if run.variant_of == id), None)

    def plan_of(self, run: FigureRun, flows: int, seed: int) -> Plan:
        """The plan of a run."""
        return self.plan.with_(*run.overrides, ("workload.flows", flows), ("seed", seed))


def load_figure(folder: Path) -> Figure:
    """Read a figure's folder; raises `PlanError` saying what is wrong where."""
    spec = _Section(_read(folder / FIGURE), str(folder / FIGURE))
    plan = Plan.load(folder / spec.take("plan", str))
    runs = tuple(_run(section) for section in spec.sections("run"))
    sub_figures = tuple(_sub_figure(section) for section in spec.sections("sub-figure"))
    figure = Figure(
        folder=folder,
        paper=spec.take("paper", str),
        number=spec.take("figure", str),
        title=spec.take("title", str),
        claim=spec.take("claim", str),
        published_flows=spec.take("published-flows", int),
        ideal=spec.choice("ideal", spec.take("ideal", str, "figure"), tuple(IDEALS)),
        plan=plan,
        runs=runs,
        sub_figures=sub_figures,
        facts=_facts(folder / EXPECTED),
    )
    spec.end()
    _check_references(figure)
    return figure


def list_figures(root: Path) -> list[Path]:
    """The folders of figures under `papers/`."""
    return sorted(file.parent for file in root.glob(f"*/*/{FIGURE}"))


class _Section:
    """A table of which every key must be taken, so that none is misspelt."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self._table = dict(table)
        self._where = where

    def take(self, key: str, kind: type, default: Any = ...) -> Any:
        value = self._table.pop(key, default)
        if value is ...:
            raise PlanError(f"{self._where}: expected the key {key}, it is missing")
        accepted = (int, float) if kind is float else kind
        if value is not default and not isinstance(value, accepted):
            raise PlanError(f"{self._where}: {key}: expected {kind.__name__}, got {value!r}")
        return value

    def choice(self, key: str, value: object, allowed: tuple[str, ...]) -> str:
        if value not in allowed:
            raise PlanError(
                f"{self._where}: {key}: expected one of {', '.join(allowed)}, got {value}"
            )
        return str(value)

    def sections(self, key: str, default: Any = ...) -> list["_Section"]:
        tables = self.take(key, list, default)
        return [_Section(table, f"{self._where}: {key}[{i}]") for i, table in enumerate(tables)]

    def end(self) -> None:
        if self._table:
            raise PlanError(f"{self._where}: unknown key {next(iter(self._table))}")


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlanError(f"{file}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"{file}: {error}") from None


def _run(section: _Section) -> FigureRun:
    overrides: dict[str, TomlValue] = section.take("set", dict)
    run = FigureRun(
        id=section.take("id", str),
        overrides=tuple(overrides.items()),
        flows=section.take("flows", int),
        quick_flows=section.take("quick-flows", int, None),
        variant_of=section.take("variant-of", str, None),
        label=section.take("label", str, None),
        app=section.take("app", dict, {}),
    )
    section.end()
    return run


def _sub_figure(section: _Section) -> SubFigure:
    drawing = section.choice("drawing", section.take("drawing", str), DRAWINGS)
    metrics = [
        section.choice("metrics", metric, METRICS) for metric in section.take("metrics", list)
    ]
    bins = [_bin(bin_) for bin_ in section.sections("bins", default=[])]
    points = tuple(float(point) for point in section.take("points", list, []))
    sub_figure = SubFigure(
        id=section.take("id", str),
        title=section.take("title", str),
        drawing=cast(Drawing, drawing),
        metrics=tuple(cast(Metric, metric) for metric in metrics),
        runs=tuple(section.take("runs", list)),
        x=section.take("x", str, "workload.load"),
        x_label=section.take("x-label", str, LOAD_LABEL),
        x_per=section.take("x-per", float, 1.0),
        finished_before=section.take("finished-before", float, None),
        edges_bytes=tuple(edge for _, edge in bins if edge is not None),
        labels=tuple(label for label, _ in bins) or tuple(f"{point:g}" for point in points),
        points=points,
        log=section.choice("log", section.take("log", str, ""), ("", "x", "y", "xy")),
        rejected_max=section.take("rejected-max", float, 0.0),
        cores=section.take("cores", int, 32),
    )
    section.end()
    return sub_figure


def _bin(section: _Section) -> tuple[str, int | None]:
    """A bin's label and upper edge in bytes."""
    parts = section.take("label", str), section.take("below-bytes", int, None)
    section.end()
    return parts


def _facts(file: Path) -> dict[CellId, Fact]:
    facts: dict[CellId, Fact] = {}
    spec = _Section(_read(file), str(file))
    for section in spec.sections("facts"):
        tolerances = [
            Tolerance(value, kind)
            for kind in ("absolute", "relative")
            if (value := section.take(f"{kind}-tolerance", float, None)) is not None
        ]
        if len(tolerances) != 1:
            raise PlanError(f"{file}: facts: expected one tolerance, got {len(tolerances)}")
        panel = section.take("sub-figure", str)
        metric = cast(Metric, section.take("metric", str))
        source = section.take("source", str)
        for value in section.sections("values"):
            cell = CellId(panel, value.take("run", str), metric, value.take("bin", int, None))
            facts[cell] = Fact(value.take("published", float), tolerances[0], source)
            value.end()
        section.end()
    spec.end()
    return facts


def _check_references(figure: Figure) -> None:
    """Every run that is named must exist."""
    ids = [run.id for run in figure.runs]
    panels = {panel.id: panel for panel in figure.sub_figures}
    named = [name for panel in figure.sub_figures for name in panel.runs]
    named += [run.variant_of for run in figure.runs if run.variant_of]
    for name in named:
        if name not in ids:
            raise PlanError(f"{figure.folder / FIGURE}: unknown run {name}")
    if len(set(ids)) != len(ids):
        raise PlanError(f"{figure.folder / FIGURE}: expected run ids to differ, got {ids}")
    for cell in figure.facts:
        panel = panels.get(cell.sub_figure)
        if panel is None or cell.run not in panel.runs or cell.metric not in panel.metrics:
            raise PlanError(f"{figure.folder / EXPECTED}: no panel shows {cell}")

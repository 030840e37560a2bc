"""Figures of papers as data: runs, sub-figures and published values, read from their folders."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from rampmeter import cosy
from rampmeter._core import PlanError
from rampmeter.papers.expected import EXPECTED, CellId, Expected, load_expected
from rampmeter.papers.metric import MAX_LOAD, METRICS, Metric
from rampmeter.papers.runs import matching, runs_of_grid
from rampmeter.papers.search import LOAD, Search
from rampmeter.plan import Override, Plan
from rampmeter.results import IDEALS
from rampmeter.section import Section
from rampmeter.toml import TomlValue

FIGURE = "figure.toml"

Drawing: TypeAlias = Literal[
    "by-load",
    "by-workload",
    "by-size",
    "by-point",
    "spread",
    "sustained",
    "pareto",
    "share",
    "probes",
    "crashes",
    "operating-points",
    "time-space",
]
DRAWINGS = get_args(Drawing)
LEAST_BOUND_OF: tuple[Metric, ...] = ("rejected", "bound-us")
"""What Pareto curves are computed from."""
WITHOUT_FLOWS = ("collective",)
"""Patterns of workloads whose plans do not say how many flows there are."""
WARM_UP = "measure.warmup-flows"
LOAD_LABEL = "Offered load (fraction of access capacity, headers included)"


@dataclass(frozen=True)
class Mode:
    """How many flows the runs of a figure have: `judged`, `quick`, `full` or a `scale`."""

    name: Literal["judged", "quick", "full", "scale"] = "judged"
    scale: float = 1.0

    @property
    def is_reduced(self) -> bool:
        """Whether runs have fewer flows than published values are judged at."""
        return self.name == "quick" or (self.name == "scale" and self.scale < 1.0)

    @property
    def label(self) -> str:
        """A name for folders and reports."""
        return f"scale-{self.scale:g}" if self.name == "scale" else self.name


@dataclass(frozen=True)
class FigureRun:
    """One simulation of a figure, or one search, whose probes are simulations."""

    id: str
    overrides: tuple[Override, ...]
    flows: int | None
    """Flows of the judged run; `None` where the workload has no number of them."""
    quick_flows: int | None
    """Flows of the reduced run; `None` leaves the run out there, if its workload has flows."""
    variant_of: str | None
    """The run beside which this one is shown."""
    label: str | None = None
    """What tables and plots call it; the workload's name if `None`."""
    app: Mapping[str, TomlValue] = field(default_factory=dict)
    """Settings of the application whose metrics are computed from the run."""
    search: Search | None = None
    """The loads that are tried, where the highest that is sustained is looked for."""
    is_quick: bool = False
    """Whether a run without a number of flows is in the reduced figure."""

    def is_in(self, mode: Mode) -> bool:
        """Whether a mode has the run."""
        return mode.name != "quick" or self.is_quick or self.quick_flows is not None

    def flows_in(self, mode: Mode, published_flows: int) -> int | None:
        """Flows in a mode; `None` where the workload has no number of them, or is left out."""
        if self.flows is None or mode.name == "judged":
            return self.flows
        match mode.name:
            case "quick":
                return self.quick_flows
            case "full":
                return max(self.flows, published_flows)
            case "scale":
                return max(1, round(self.flows * mode.scale))


@dataclass(frozen=True)
class Theorems:
    """What cosy's theorems are evaluated for: a network, a size of messages, core switches."""

    network: cosy.Network
    size_bytes: int
    spines: int


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
    above_bytes: int
    """Flows count that are longer than this."""
    up_to_bytes: int | None
    """And not longer than this; `None` for any size."""
    edges_bytes: tuple[int, ...]
    """Upper edges of the size bins; empty where flows are not told apart by size."""
    labels: tuple[str, ...]
    """Names of the size bins, or of the points."""
    size_unit: str
    """What the labels of size bins are multiples of; empty where they have units."""
    points: tuple[float, ...]
    """Where metrics are computed, such as misses in a row; empty for one value a run."""
    log: str
    """Which axes of a drawing by points are logarithmic: empty, `x`, `y` or `xy`."""
    rejected_max: float
    """The share of messages that may be rejected where a load counts as sustained."""
    cores: int
    """Core switches of the networks that a share of the sustainable load is drawn for."""
    over: str
    """The plan's key of which a Pareto curve takes the value with the least bound."""
    links: tuple[str, ...]
    """The links of a time-space diagram, such as `h0>s0`."""
    window_ns: tuple[float, float]
    """The time that it shows."""
    theorems: Theorems | None
    """Where theorems' points are drawn beside Pareto curves."""
    without_bytes: int | None = None
    """Flows of exactly this length do not count, such as those of incasts."""

    def shows(self, cell: CellId) -> bool:
        """Whether the panel has this value."""
        if cell.run not in self.runs or cell.metric not in self.metrics:
            return False
        if cell.bin is None or not self.labels:
            return cell.bin is None and not self.labels
        return 0 <= cell.bin < len(self.labels)


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
    expected: Expected
    """What the paper says, and what its simulator gave."""

    def run(self, id: str) -> FigureRun:  # noqa: A002 - the plan's own word
        """The run with this id."""
        return next(run for run in self.runs if run.id == id)

    def variant(self, id: str) -> FigureRun | None:  # noqa: A002
        """The run that is shown beside this one."""
        return next((run for run in self.runs if run.variant_of == id), None)

    def plan_of(
        self, run: FigureRun, flows: int | None, seed: int, load: float | None = None
    ) -> Plan:
        """The plan of a run, or of the probe of a search at a load."""
        changes = [*run.overrides, ("seed", seed)]
        if flows is not None:
            changes.append(("workload.flows", flows))
        if load is not None:
            changes.append((LOAD, load))
        if self.plan.get(WARM_UP) is None:
            # Papers count every flow unless they say otherwise.
            changes.insert(0, (WARM_UP, 0))
        return self.plan.with_(*changes)


def load_figure(folder: Path) -> Figure:
    """Read a figure's folder; raises `PlanError` saying what is wrong where."""
    spec = Section.of_file(folder / FIGURE)
    plan = Plan.load(folder / spec.take("plan", str))
    sections = spec.sections("run", [])
    for grid in spec.sections("grid", []):
        sections += runs_of_grid(grid)
    runs = tuple(_run(section) for section in sections)
    for grid in spec.sections("search", []):
        search = Search.of(grid)
        runs += tuple(_run(section, search) for section in runs_of_grid(grid))
    ids = [run.id for run in runs]
    for name, n in Counter(ids).items():
        if n > 1:
            raise PlanError(f"{spec.where}: expected run ids to differ, got {n} {name}")
    sub_figures = tuple(_sub_figure(section, ids) for section in spec.sections("sub-figure"))
    figure = Figure(
        folder=folder,
        paper=spec.take("paper", str),
        number=spec.take("figure", str),
        title=spec.take("title", str),
        claim=spec.take("claim", str),
        published_flows=spec.take("published-flows", int, 0),
        ideal=spec.choice("ideal", spec.take("ideal", str, "figure"), tuple(IDEALS)),
        plan=plan,
        runs=runs,
        sub_figures=sub_figures,
        expected=load_expected(folder / EXPECTED, ids),
    )
    spec.end()
    _check_references(figure)
    return figure


def list_figures(root: Path) -> list[Path]:
    """The folders of figures under `papers/`."""
    return sorted(file.parent for file in root.glob(f"*/*/{FIGURE}"))


def _run(section: Section, search: Search | None = None) -> FigureRun:
    overrides: dict[str, TomlValue] = section.take("set", dict)
    if search is not None and LOAD in overrides:
        raise PlanError(f"{section.where}: expected {LOAD} in loads alone, it is set too")
    run = FigureRun(
        id=section.take("id", str),
        overrides=tuple(overrides.items()),
        flows=section.take("flows", int, None),
        quick_flows=section.take("quick-flows", int, None),
        variant_of=section.take("variant-of", str, None),
        label=section.take("label", str, None),
        app=section.take("app", dict, {}),
        search=search,
        is_quick=section.take("quick", bool, False),
    )
    section.end()
    return run


def _sub_figure(section: Section, ids: Sequence[str]) -> SubFigure:
    drawing = section.choice("drawing", section.take("drawing", str), DRAWINGS)
    metrics = [
        section.choice("metrics", metric, METRICS) for metric in section.take("metrics", list)
    ]
    bins = [_bin(bin_) for bin_ in section.sections("bins", default=[])]
    points = tuple(float(point) for point in section.take("points", list, []))
    runs = [id_ for name in section.take("runs", list) for id_ in matching(section, name, ids)]
    sub_figure = SubFigure(
        id=section.take("id", str),
        title=section.take("title", str),
        drawing=cast(Drawing, drawing),
        metrics=tuple(cast(Metric, metric) for metric in metrics),
        # A run that several patterns match is shown once.
        runs=tuple(dict.fromkeys(runs)),
        x=section.take("x", str, "workload.load"),
        x_label=section.take("x-label", str, LOAD_LABEL),
        x_per=section.take("x-per", float, 1.0),
        finished_before=section.take("finished-before", float, None),
        above_bytes=section.take("above-bytes", int, 0),
        up_to_bytes=section.take("up-to-bytes", int, None),
        without_bytes=section.take("without-bytes", int, None),
        edges_bytes=tuple(edge for _, edge in bins if edge is not None),
        labels=tuple(label for label, _ in bins) or tuple(f"{point:g}" for point in points),
        size_unit=section.take("size-unit", str, ""),
        points=points,
        log=section.choice("log", section.take("log", str, ""), ("", "x", "y", "xy")),
        rejected_max=section.take("rejected-max", float, 0.0),
        cores=section.take("cores", int, 32),
        over=section.take("over", str, "transport.hold-us"),
        links=tuple(str(link) for link in section.take("links", list, [])),
        window_ns=_window_ns(section),
        theorems=_theorems(section),
    )
    section.end()
    if sub_figure.drawing == "pareto":
        for metric in LEAST_BOUND_OF:
            if metric not in sub_figure.metrics:
                raise PlanError(f"{section.where}: metrics: expected {metric} for pareto")
    return sub_figure


def _window_ns(section: Section) -> tuple[float, float]:
    """The time that a time-space diagram shows, which plans have in microseconds."""
    window = section.take("window-us", list, [0.0, 1.0])
    match window:
        case [int() | float() as start, int() | float() as end] if start < end:
            return start * 1e3, end * 1e3
    raise PlanError(
        f"{section.where}: window-us: expected two times in microseconds, the earlier one first, "
        f"got {window}"
    )


def _theorems(section: Section) -> Theorems | None:
    table = section.take("theorems", dict, None)
    if table is None:
        return None
    one = Section(table, f"{section.where}: theorems")
    network = cosy.Network(
        rtt_us=one.take("rtt-us", float),
        gbps=one.take("gbps", float),
        switches=one.take("switches", int),
        ratio=one.take("ratio", int),
    )
    theorems = Theorems(network, one.take("size-bytes", int), one.take("spines", int))
    one.end()
    return theorems


def _bin(section: Section) -> tuple[str, int | None]:
    """A bin's label and upper edge in bytes."""
    parts = section.take("label", str), section.take("below-bytes", int, None)
    section.end()
    return parts


def _check_references(figure: Figure) -> None:
    """Every run that is named must exist, and every value that is expected must be shown."""
    ids = [run.id for run in figure.runs]
    panels = {panel.id: panel for panel in figure.sub_figures}
    named = [name for panel in figure.sub_figures for name in panel.runs]
    named += [run.variant_of for run in figure.runs if run.variant_of]
    for name in named:
        if name not in ids:
            raise PlanError(f"{figure.folder / FIGURE}: unknown run {name}")
    for one in figure.sub_figures:
        for name, metric in product(one.runs, one.metrics):
            if (metric == MAX_LOAD) != (figure.run(name).search is not None):
                raise PlanError(
                    f"{figure.folder / FIGURE}: sub-figure {one.id}: expected {MAX_LOAD} of "
                    f"searches, and no other metric of them, got {metric} of {name}"
                )
    for run in figure.runs:
        _check_flows(figure, run)
    where = figure.folder / EXPECTED
    for cell in figure.expected.cells():
        panel = panels.get(cell.sub_figure)
        if panel is None or not panel.shows(cell):
            raise PlanError(f"{where}: no panel shows {cell}")
    for cell in (*figure.expected.facts, *figure.expected.reduced):
        if panels[cell.sub_figure].drawing in ("sustained", "pareto"):
            # Their tables leave out most values, so that a miss would not be seen.
            raise PlanError(f"{where}: expected no facts of sustained loads, got {cell}")
    for name, flows in figure.expected.reduced_flows.items():
        if flows != (own := figure.run(name).quick_flows):
            raise PlanError(f"{where}: flows: expected {own} as in the run {name}, got {flows}")


def _check_flows(figure: Figure, run: FigureRun) -> None:
    """A run has a number of flows unless its workload decides that."""
    where = f"{figure.folder / FIGURE}: {run.id}"
    pattern = _pattern(figure, run)
    if pattern not in WITHOUT_FLOWS and run.flows is None:
        raise PlanError(f"{where}: expected the key flows, it is missing")
    if pattern in WITHOUT_FLOWS and (run.flows, run.quick_flows) != (None, None):
        raise PlanError(f"{where}: expected no flows and quick-flows of a {pattern}")
    if pattern not in WITHOUT_FLOWS and run.is_quick:
        raise PlanError(f"{where}: expected quick-flows instead of quick")


def _pattern(figure: Figure, run: FigureRun) -> object:
    """Returns the pattern of the run's workload without making its plan."""
    pattern = figure.plan.get("workload.pattern")
    for key, value in run.overrides:
        if key == "workload" and isinstance(value, Mapping):
            pattern = value.get("pattern")
        elif key == "workload.pattern":
            pattern = value
    return pattern

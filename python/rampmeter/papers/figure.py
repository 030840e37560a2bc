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
"""Metrics from which Pareto curves are computed."""
WITHOUT_FLOWS = ("collective",)
"""Patterns of workloads whose plans do not set a number of flows."""
WARM_UP = "measure.warmup-flows"
LOAD_LABEL = "Offered load (fraction of access capacity, headers included)"


@dataclass(frozen=True)
class Mode:
    """The number of flows in the runs of a figure: `judged`, `quick`, `full` or a `scale`."""

    name: Literal["judged", "quick", "full", "scale"] = "judged"
    scale: float = 1.0

    @property
    def is_reduced(self) -> bool:
        """Returns whether runs have fewer flows than published values are judged at."""
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
    """Flows of the judged run; `None` if the workload has no number of them."""
    quick_flows: int | None
    """Flows of the reduced run; `None` leaves the run out there, if its workload has flows."""
    variant_of: str | None
    """The run next to which this one is shown."""
    label: str | None = None
    """Name in tables and plots; the workload's name if `None`."""
    app: Mapping[str, TomlValue] = field(default_factory=dict)
    """Settings of the application whose metrics are computed from the run."""
    search: Search | None = None
    """The loads that are tried, if the highest sustained one is searched."""
    is_quick: bool = False
    """True if a run without a number of flows is in the reduced figure."""

    def is_in(self, mode: Mode) -> bool:
        """Returns whether a mode has the run."""
        return mode.name != "quick" or self.is_quick or self.quick_flows is not None

    def flows_in(self, mode: Mode, published_flows: int) -> int | None:
        """Returns the flows in a mode; `None` if the workload has no number, or is left out."""
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
    """The parameters of cosy's theorems: a network, a size of messages, core switches."""

    network: cosy.Network
    size_bytes: int
    spines: int


@dataclass(frozen=True)
class SubFigure:
    """One panel: the metrics, and the runs of which they are computed."""

    id: str
    title: str
    drawing: Drawing
    metrics: tuple[Metric, ...]
    runs: tuple[str, ...]
    x: str
    """The plan's key on the x axis of drawings by load, and its name and divisor in plots."""
    x_label: str
    x_per: float
    finished_before: float | None
    """Only flows count that finish before this fraction of the arrivals; all if `None`."""
    above_bytes: int
    """Only flows count that are longer than this."""
    up_to_bytes: int | None
    """And not longer than this; `None` for any size."""
    edges_bytes: tuple[int, ...]
    """Upper edges of the size bins; empty if flows are not separated by size."""
    labels: tuple[str, ...]
    """Names of the size bins, or of the points."""
    size_unit: str
    """Unit of the labels of size bins; empty if the labels have units."""
    points: tuple[float, ...]
    """Values at which metrics are computed, such as misses in a row; empty for one value a run."""
    log: str
    """The logarithmic axes of a drawing by points: empty, `x`, `y` or `xy`."""
    rejected_max: float
    """The share of messages that may be rejected if a load is to count as sustained."""
    cores: int
    """Core switches of the networks of which a share of the sustainable load is drawn."""
    over: str
    """The plan's key of which a Pareto curve takes the value with the least bound."""
    links: tuple[str, ...]
    """The links of a time-space diagram, such as `h0>s0`."""
    window_ns: tuple[float, float]
    """The time that it shows."""
    theorems: Theorems | None
    """Parameters of the theorems' points next to Pareto curves."""
    without_bytes: int | None = None
    """Flows of exactly this length do not count, such as those of incasts."""

    def shows(self, cell: CellId) -> bool:
        """Returns whether the panel has this value."""
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
    """The ideal in the denominator of slowdowns."""
    plan: Plan
    runs: tuple[FigureRun, ...]
    sub_figures: tuple[SubFigure, ...]
    expected: Expected
    """Published values and claims, and recorded values of the paper's simulator."""

    def run(self, id: str) -> FigureRun:  # noqa: A002 - the plan's own word
        """The run with this id."""
        return next(run for run in self.runs if run.id == id)

    def variant(self, id: str) -> FigureRun | None:  # noqa: A002
        """The run that is shown next to this one."""
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
            # Papers count every flow unless they state otherwise.
            changes.insert(0, (WARM_UP, 0))
        return self.plan.with_(*changes)


def load_figure(folder: Path) -> Figure:
    """Reads a figure's folder; raises `PlanError` with the place and the fault."""
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
    """Checks that every named run exists, and that every expected value is shown."""
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
            # Their tables leave out most values, so a miss would not be seen.
            raise PlanError(f"{where}: expected no facts of sustained loads, got {cell}")
    for name, flows in figure.expected.reduced_flows.items():
        if flows != (own := figure.run(name).quick_flows):
            raise PlanError(f"{where}: flows: expected {own} as in the run {name}, got {flows}")


def _check_flows(figure: Figure, run: FigureRun) -> None:
    """Checks that a run has a number of flows, unless its workload decides that."""
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

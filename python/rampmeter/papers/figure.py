"""Figures of papers as data: runs, sub-figures and published values, read from their folders."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from rampmeter import cosy
from rampmeter.papers.expected import EXPECTED, CellId, Expectations, load_expected
from rampmeter.papers.metrics import MAX_LOAD, METRICS, Metric
from rampmeter.papers.runs import match_runs, runs_of_grid
from rampmeter.papers.search import LOAD, Search
from rampmeter.plan.plan import Override, Plan, compact_plan
from rampmeter.results.run import IDEALS
from rampmeter.text.locations import Location
from rampmeter.text.strict_table import StrictTable
from rampmeter.text.toml import TomlValue

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


PILOT_SHARE = 10
"""A pilot run has at most the published number of flows over this,"""
PILOT_FLOWS_MIN = 10_000
"""but at least this number, or as many as published if these are fewer."""


@dataclass(frozen=True)
class Mode:
    """The number of flows in a figure's runs: `judged`, `quick`, `full`, `pilot` or a `scale`."""

    name: Literal["judged", "quick", "full", "pilot", "scale"] = "judged"
    scale: float = 1.0

    @property
    def is_reduced(self) -> bool:
        """Returns true if runs have fewer flows than published values are judged at."""
        return self.name in ("quick", "pilot") or (self.name == "scale" and self.scale < 1.0)

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
    """Flows of the reduced run; `None` omits the run there, if its workload has flows."""
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
        """Returns true if a mode has the run."""
        return mode.name != "quick" or self.is_quick or self.quick_flows is not None

    def flows_in(self, mode: Mode, published_flows: int) -> int | None:
        """Returns the flows in a mode; `None` if the workload has no number, or is omitted."""
        if self.flows is None or mode.name == "judged":
            return self.flows
        match mode.name:
            case "quick":
                return self.quick_flows
            case "full":
                return max(self.flows, published_flows)
            case "pilot":
                full = max(self.flows, published_flows)
                most = min(self.flows, full // PILOT_SHARE)
                return min(full, max(PILOT_FLOWS_MIN, most))
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
    """Only flows count that are not longer than this; `None` for any size."""
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
    """The plan's key over which a Pareto curve has the minimum bound."""
    links: tuple[str, ...]
    """The links of a time-space diagram, such as `h0>s0`."""
    window_ns: tuple[float, float]
    """The time that it shows."""
    theorems: Theorems | None
    """Parameters of the theorems' points next to Pareto curves."""
    without_bytes: int | None = None
    """Flows of exactly this length do not count, such as those of incasts."""

    @property
    def definition(self) -> tuple[object, ...]:
        """The fields that values and series of a run depend on."""
        return (
            self.drawing,
            self.metrics,
            self.points,
            self.edges_bytes,
            self.finished_before,
            (self.above_bytes, self.up_to_bytes, self.without_bytes),
            (self.links, self.window_ns),
        )

    def shows(self, cell: CellId) -> bool:
        """Returns true if the panel has this value."""
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
    expected: Expectations
    """Published values and claims, and recorded values of the paper's simulator."""

    def run(self, id: str) -> FigureRun:  # noqa: A002 - the plan's own word
        """Returns the run with this id."""
        return next(run for run in self.runs if run.id == id)

    def variant(self, id: str) -> FigureRun | None:  # noqa: A002
        """Returns the run that is shown next to this one, if any."""
        return next((run for run in self.runs if run.variant_of == id), None)

    def plan_of(
        self, run: FigureRun, flows: int | None, seed: int, load: float | None = None
    ) -> Plan:
        """Returns the plan of a run, or of the probe of a search at a load."""
        return self.plan.with_(*self._changes(run, flows, seed, load))

    def complete_plan_of(
        self, run: FigureRun, flows: int | None, seed: int, load: float | None = None
    ) -> dict[str, Any]:
        """Returns that plan with all defaults; raises `PlanError` if it cannot run."""
        return compact_plan(self.plan, *self._changes(run, flows, seed, load)).check_run()

    def _changes(
        self, run: FigureRun, flows: int | None, seed: int, load: float | None
    ) -> list[Override]:
        changes = [*run.overrides, ("seed", seed)]
        if flows is not None:
            changes.append(("workload.flows", flows))
        if load is not None:
            changes.append((LOAD, load))
        if self.plan.get(WARM_UP) is None:
            # Papers count every flow unless they state otherwise.
            changes.insert(0, (WARM_UP, 0))
        return changes


def load_figure(folder: Path) -> Figure:
    """Reads a figure's folder; raises `PlanError` with the place and the fault."""
    spec = StrictTable.from_file(folder / FIGURE)
    plan = Plan.load(folder / spec.pop("plan", str))
    sections = spec.tables("run", [])
    for grid in spec.tables("grid", []):
        sections += runs_of_grid(grid)
    runs = tuple(_run(section) for section in sections)
    for grid in spec.tables("search", []):
        search = Search.of(grid)
        runs += tuple(_run(section, search) for section in runs_of_grid(grid))
    ids = [run.id for run in runs]
    for name, n in Counter(ids).items():
        if n > 1:
            raise spec.where.error(expected="run ids to differ", got=f"{n} {name}")
    sub_figures = tuple(_sub_figure(section, ids) for section in spec.tables("sub-figure"))
    figure = Figure(
        folder=folder,
        paper=spec.pop("paper", str),
        number=spec.pop("figure", str),
        title=spec.pop("title", str),
        claim=spec.pop("claim", str),
        published_flows=spec.pop("published-flows", int, 0),
        ideal=spec.choice("ideal", spec.pop("ideal", str, "figure"), tuple(IDEALS)),
        plan=plan,
        runs=runs,
        sub_figures=sub_figures,
        expected=load_expected(folder / EXPECTED, ids),
    )
    spec.reject_unread()
    _check_references(figure)
    return figure


def list_figures(root: Path) -> list[Path]:
    """Returns the folders of figures under `papers/`."""
    return sorted(file.parent for file in root.glob(f"*/*/{FIGURE}"))


def _run(section: StrictTable, search: Search | None = None) -> FigureRun:
    overrides: dict[str, TomlValue] = section.pop("set", dict)
    if search is not None and LOAD in overrides:
        raise section.where.error(expected=f"{LOAD} in loads alone", got="it in set too")
    run = FigureRun(
        id=section.pop("id", str),
        overrides=tuple(overrides.items()),
        flows=section.pop("flows", int, None),
        quick_flows=section.pop("quick-flows", int, None),
        variant_of=section.pop("variant-of", str, None),
        label=section.pop("label", str, None),
        app=section.pop("app", dict, {}),
        search=search,
        is_quick=section.pop("quick", bool, False),
    )
    section.reject_unread()
    return run


def _sub_figure(section: StrictTable, ids: Sequence[str]) -> SubFigure:
    drawing = section.choice("drawing", section.pop("drawing", str), DRAWINGS)
    metrics = tuple(section.choice("metrics", one, METRICS) for one in section.pop("metrics", list))
    bins = [_bin(bin_) for bin_ in section.tables("bins", default=[])]
    points = tuple(float(point) for point in section.pop("points", list, []))
    runs = [id_ for name in section.pop("runs", list) for id_ in match_runs(section, name, ids)]
    sub_figure = SubFigure(
        id=section.pop("id", str),
        title=section.pop("title", str),
        drawing=cast(Drawing, drawing),
        metrics=metrics,
        # A run that several patterns match is shown once.
        runs=tuple(dict.fromkeys(runs)),
        x=section.pop("x", str, "workload.load"),
        x_label=section.pop("x-label", str, LOAD_LABEL),
        x_per=section.pop("x-per", float, 1.0),
        finished_before=section.pop("finished-before", float, None),
        above_bytes=section.pop("above-bytes", int, 0),
        up_to_bytes=section.pop("up-to-bytes", int, None),
        without_bytes=section.pop("without-bytes", int, None),
        edges_bytes=tuple(edge for _, edge in bins if edge is not None),
        labels=tuple(label for label, _ in bins) or tuple(f"{point:g}" for point in points),
        size_unit=section.pop("size-unit", str, ""),
        points=points,
        log=section.choice("log", section.pop("log", str, ""), ("", "x", "y", "xy")),
        rejected_max=section.pop("rejected-max", float, 0.0),
        cores=section.pop("cores", int, 32),
        over=section.pop("over", str, "transport.hold-us"),
        links=tuple(str(link) for link in section.pop("links", list, [])),
        window_ns=_window_ns(section),
        theorems=_theorems(section),
    )
    section.reject_unread()
    for metric in metrics:
        if METRICS[metric].needs_points and not points:
            raise section.where.at("points").error(expected=f"some for {metric}")
    if sub_figure.drawing == "pareto":
        for metric in LEAST_BOUND_OF:
            if metric not in sub_figure.metrics:
                raise section.where.at("metrics").error(
                    expected=f"{metric} for pareto", got=", ".join(sub_figure.metrics)
                )
    return sub_figure


def _window_ns(section: StrictTable) -> tuple[float, float]:
    """Returns the interval of a time-space diagram in nanoseconds; figures have microseconds."""
    window = section.pop("window-us", list, [0.0, 1.0])
    match window:
        case [int() | float() as start, int() | float() as end] if start < end:
            return start * 1e3, end * 1e3
    raise section.where.at("window-us").error(
        expected="two times in microseconds, the earlier one first", got=window
    )


def _theorems(section: StrictTable) -> Theorems | None:
    table = section.pop("theorems", dict, None)
    if table is None:
        return None
    one = StrictTable(table, section.where.at("theorems"))
    network = cosy.Network(
        rtt_us=one.pop("rtt-us", float),
        gbps=one.pop("gbps", float),
        switches=one.pop("switches", int),
        ratio=one.pop("ratio", int),
    )
    theorems = Theorems(network, one.pop("size-bytes", int), one.pop("spines", int))
    one.reject_unread()
    return theorems


def _bin(section: StrictTable) -> tuple[str, int | None]:
    """Returns a bin's label and upper edge in bytes."""
    parts = section.pop("label", str), section.pop("below-bytes", int, None)
    section.reject_unread()
    return parts


def _check_references(figure: Figure) -> None:
    """Checks that every named run exists, and that every expected value is shown."""
    ids = [run.id for run in figure.runs]
    panels = {panel.id: panel for panel in figure.sub_figures}
    named = [name for panel in figure.sub_figures for name in panel.runs]
    named += [run.variant_of for run in figure.runs if run.variant_of]
    for name in named:
        if name not in ids:
            raise Location(figure.folder / FIGURE).error(expected="the id of a run", got=name)
    for one in figure.sub_figures:
        for name, metric in product(one.runs, one.metrics):
            if (metric == MAX_LOAD) != (figure.run(name).search is not None):
                raise Location(figure.folder / FIGURE, f"sub-figure {one.id}").error(
                    expected=f"{MAX_LOAD} of searches, and no other metric of them",
                    got=f"{metric} of {name}",
                )
    for run in figure.runs:
        _check_flows(figure, run)
    where = Location(figure.folder / EXPECTED)
    for cell in figure.expected.cells():
        panel = panels.get(cell.sub_figure)
        if panel is None or not panel.shows(cell):
            raise where.error(f"no panel shows {cell}")
    for cell in (*figure.expected.facts, *figure.expected.reduced):
        if panels[cell.sub_figure].drawing in ("sustained", "pareto"):
            # Their tables omit most values, so a miss would not be visible.
            raise where.error(expected="no facts of sustained loads", got=cell)
    for name, flows in figure.expected.reduced_flows.items():
        if flows != (own := figure.run(name).quick_flows):
            raise where.at("flows").error(expected=f"{own} as in the run {name}", got=flows)


def _check_flows(figure: Figure, run: FigureRun) -> None:
    """Checks that a run has a number of flows, unless its workload decides that."""
    where = Location(figure.folder / FIGURE, run.id)
    pattern = _pattern(figure, run)
    if pattern not in WITHOUT_FLOWS and run.flows is None:
        raise where.at("flows").error(expected="this key")
    if pattern in WITHOUT_FLOWS and (run.flows, run.quick_flows) != (None, None):
        raise where.error(
            expected=f"no flows and quick-flows of a {pattern}",
            got=f"{run.flows} and {run.quick_flows}",
        )
    if pattern not in WITHOUT_FLOWS and run.is_quick:
        raise where.at("quick").error("requires a workload without flows; use quick-flows")


def _pattern(figure: Figure, run: FigureRun) -> object:
    """Returns the pattern of the run's workload without making its plan."""
    pattern = figure.plan.get("workload.pattern")
    for key, value in run.overrides:
        if key == "workload" and isinstance(value, Mapping):
            pattern = value.get("pattern")
        elif key == "workload.pattern":
            pattern = value
    return pattern

"""Results of runs. Only this module depends on the files of a result folder and their columns."""

import shutil
import weakref
from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rampmeter import plots
from rampmeter.animation import Animation
from rampmeter.on_demand import np, pa
from rampmeter.plan.manifest import MANIFEST
from rampmeter.results import animations, blame_plots, pictures
from rampmeter.results.blame import Blame, SizeClass
from rampmeter.results.blockers import BLAME, BLOCKERS, with_causes
from rampmeter.results.chains import RELEASES, checked_releases
from rampmeter.results.collective_plots import collectives
from rampmeter.results.former import FORMER_KEYS, FORMER_STATUSES
from rampmeter.results.goodput import goodput
from rampmeter.results.missing import SUMMARY, missing_run
from rampmeter.results.names import interval_name, transport_name
from rampmeter.results.notebook import warnings_html
from rampmeter.results.plot_list import PlotList, needs
from rampmeter.results.scope import counted_flows
from rampmeter.results.shapes import MANIFEST_SHAPE, SUMMARY_SHAPE
from rampmeter.results.slowdown import series_of_groups, slowdown_groups
from rampmeter.results.table import ResultTable, by_name
from rampmeter.results.table_files import read_host_names, read_table
from rampmeter.results.tables import run_tables
from rampmeter.text.arguments import path_argument
from rampmeter.text.cautions import Caution, cautions_of
from rampmeter.text.files import named_errors
from rampmeter.text.json_object import JsonRecord, Shape, read_record
from rampmeter.text.locations import Location
from rampmeter.timeline import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FLOWS = "flows.parquet"
SERIES = "series.parquet"
QUEUES = "queues.parquet"
LATENCIES = "latencies.parquet"
LINKS = "links.parquet"
TENANTS = "tenants.parquet"
PATHS = "paths.parquet"
RATES = "rates.parquet"
WINDOWS = "windows.parquet"
DROPS = "drops.parquet"
OUTAGES = "outages.parquet"
COUNTERS = "transport.parquet"

TIMELINE_MAX = 20_000_000
"""Maximum bytes of a timeline that `rampmeter plot` draws without `--kind`."""

COMPLETE = frozenset({"finished", "incomplete", "timed-out"})
"""The statuses of runs that reached the end of their plan."""

IDEALS = {
    "delivered": ("fct_ps", "ideal_ps"),
    "acked": ("acked_ps", "acked_ideal_ps"),
    "figure": ("acked_ps", "figure_ideal_ps"),
}
"""Columns of a flow's completion time and of its ideal, by the name of the ideal."""


class Run:
    """The results of one run, read from its folder on first access."""

    def __init__(self, path: str | PathLike[str], *, is_temporary: bool = False) -> None:
        """Opens the results in a folder; a temporary folder is removed with this object.

        Raises `ResultError` if there is no folder.
        """
        self.path = path_argument("path", path)
        with named_errors(self.path):
            if not self.path.is_dir():
                raise missing_run(self.path)
        if is_temporary:
            weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self._is_temporary = is_temporary

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state for another process: the folder, without the data read from it."""
        if self._is_temporary:
            raise TypeError(
                f"{self!r}: expected results in a folder that stays, got a temporary one, which is "
                "removed with this object; `run(..., out=...)` names one"
            )
        return {"path": self.path, "_is_temporary": False}

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _repr_html_(self) -> str:
        tables = (table.html() for table in run_tables(self) if table.is_for_readers)
        return "".join([*tables, warnings_html(self.warnings)])

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Statistics: slowdown by size, utilisation, drops by tier."""
        summary = self._object(SUMMARY, SUMMARY_SHAPE, "flows")
        for part in ("collectives", "rpcs"):
            if part in summary:
                rows: list[JsonRecord] = summary[part]
                summary[part] = [row.renamed(FORMER_KEYS) for row in rows]
        return summary

    @property
    def warnings(self) -> list[Caution]:
        """Reasons to doubt the numbers, a sentence with a code each; see `rampmeter explain`."""
        return cautions_of(self.summary)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The run's identity and progress: plan, seed, version, commit, counts, times, status."""
        return self._object(MANIFEST, MANIFEST_SHAPE)

    @cached_property
    def flows(self) -> "pa.Table":
        """A row for each flow, as an Arrow table; `.flows.to_pandas()` works with pandas.

        If hosts have custom names, the columns `src_name` and `dst_name` have these.
        """
        table = self._table(FLOWS)
        if not (names := self.host_names):
            return table
        for end in ("src", "dst"):
            column = pa.chunked_array([names]).take(table[end]).dictionary_encode()
            table = table.append_column(f"{end}_name", column)
        return table

    @cached_property
    def host_names(self) -> list[str]:
        """The custom names of all hosts; empty if they have none."""
        return read_host_names(self.path / FLOWS)

    @cached_property
    def series(self) -> "pa.Table":
        """Utilisation and queues by tier over time."""
        return self._table(SERIES)

    @cached_property
    def queues(self) -> "pa.Table":
        """The distribution of queue lengths, by tier."""
        return self._table(QUEUES)

    @cached_property
    def latencies(self) -> "pa.Table | None":
        """The distribution of packets' times in the fabric; `None` if no packet arrived."""
        return self._optional(LATENCIES)

    @cached_property
    def links(self) -> "pa.Table | None":
        """Each link at each sample; `None` unless `run.links` was set."""
        return self._optional(LINKS)

    @cached_property
    def tenants(self) -> "pa.Table | None":
        """Bytes of each tenant's messages delivered over time; `None` with a single tenant."""
        return self._optional(TENANTS)

    @cached_property
    def rates(self) -> "pa.Table | None":
        """The rate of each flow in each interval; `None` unless `run.rates_us` was set."""
        return self._optional(RATES)

    @cached_property
    def windows(self) -> "pa.Table | None":
        """Windows and credits at each interval; `None` without any or without `run.rates_us`."""
        return self._optional(WINDOWS)

    @cached_property
    def paths(self) -> "pa.Table | None":
        """The paths of each flow's data packets; `None` unless `run.paths` was set."""
        return self._optional(PATHS)

    @cached_property
    def blame(self) -> Blame | None:
        """The causes of the time of each flow; `None` unless `run.blame` was set.

        The transport `ideal`, which has no packets, has none.
        """
        parts = self._optional(BLAME)
        if parts is None or not parts.num_rows:
            return None
        names = ("flow", "src", "dst", "size_bytes", "arrival_ps", "fct_ps", "ideal_ps")
        flows = self.columns(*names, "retransmitted_bytes").sort_by("flow")
        sizes = [SizeClass(one.label, one.upper_bytes) for one in slowdown_groups(self.summary)]
        counted = counted_flows(self.summary, self.manifest, flows)
        blockers = with_causes(self._table(BLOCKERS), parts, flows, self.path)
        releases = checked_releases(self._optional(RELEASES), flows, self.path)
        return Blame(parts, blockers, flows, sizes, counted, self.host_names, releases)

    @cached_property
    def drops(self) -> "pa.Table | None":
        """Dropped packets by port, reason and sampling interval; `None` if none was dropped."""
        return self._optional(DROPS)

    @cached_property
    def outages(self) -> "pa.Table | None":
        """Failures, repairs and changes of links; `None` if the plan has none."""
        return self._optional(OUTAGES)

    @cached_property
    def transport(self) -> "pa.Table | None":
        """Counters of the transport over time; `None` if it has none."""
        return self._optional(COUNTERS)

    @property
    def timeline_file(self) -> Path | None:
        """The timeline, for ui.perfetto.dev; `None` unless `run.timeline` was set."""
        timeline = self.timeline_record
        return self.path / timeline["file"] if timeline else None

    @property
    def timeline_record(self) -> dict[str, Any]:
        """File, period and limit of the timeline in the manifest; empty without a timeline."""
        # Version 0.2.0 had another name.
        return self.manifest.get("timeline") or self.manifest.get("trace") or {}

    @cached_property
    def timeline(self) -> Timeline | None:
        """The events on each link; `None` without `run.timeline`. Large files take minutes."""
        return Timeline.load(self.timeline_file) if self.timeline_file else None

    def animate(
        self,
        path: str | PathLike[str] | None = None,
        start: float | str = 0,
        end: float | str | None = None,
        hosts: str | Sequence[int] | None = None,
        title: str = "",
    ) -> Animation:
        """Returns a page that plays the packets of the run, and writes it into a file.

        The window is in microseconds, or in texts such as `0.5ms`. `hosts` are numbers, or a text
        such as `0-7`. Raises `ResultError` without `run.timeline`, and `PlanError` for more than 64
        hosts or 400 000 events.

            >>> run.animate("page.html", end="50us")  # doctest: +SKIP
        """
        transport = self.manifest["plan"]["transport"]
        label = transport_name(transport["name"]) if isinstance(transport, dict) else self.name
        found = animations.animate({label: self}, start, end, hosts, title)
        if path is not None:
            found.save(path)
        return found

    def columns(self, *names: str) -> "pa.Table":
        """Reads some columns of the table of flows again: tables of large runs are large."""
        return self._table(FLOWS, list(names))

    @property
    def status(self) -> str:
        """`finished`, `incomplete`, `timed-out` or `interrupted`.

        Every flow of a finished run was delivered. Some of an incomplete one failed or were
        rejected. Some of a timed-out one had no outcome when its time to drain expired.
        """
        status = str(self.summary["status"])
        return FORMER_STATUSES.get(status, status)

    @property
    def is_complete(self) -> bool:
        """True if the run reached the end of its plan."""
        return self.status in COMPLETE

    @property
    def is_all_delivered(self) -> bool:
        """True if the run reached the end of its plan and every flow was delivered."""
        flows = self.summary["flows"]
        return self.is_complete and flows["delivered"] == flows["submitted"]

    @property
    def name(self) -> str:
        """The name of the run in plots."""
        return self.path.name

    @property
    def tables(self) -> dict[str, ResultTable]:
        """The tables that `rampmeter run` prints, by name, such as `tables["jobs"].to_latex()`."""
        return by_name(run_tables(self))

    @property
    def plot(self) -> "Plots":
        """Plots of this run."""
        return Plots(self)

    def _object(self, name: str, shape: Mapping[str, Shape], *keys: str) -> dict[str, Any]:
        """Reads a JSON file; raises `ResultError` that names another folder if there is no run."""
        file = self.path / name
        with named_errors(file):
            if not file.exists():
                raise missing_run(self.path)
        return read_record(file, shape, keys)

    def _optional(self, name: str) -> "pa.Table | None":
        file = self.path / name
        with named_errors(file):
            if not (self.path / MANIFEST).is_file():
                raise missing_run(self.path)
            if not file.exists():
                return None
        return self._table(name)

    def _table(self, name: str, columns: list[str] | None = None) -> "pa.Table":
        file = self.path / name
        with named_errors(file):
            if not (self.path / MANIFEST).is_file():
                raise missing_run(self.path)
            if not file.exists():
                where = Location(file)
                raise where.result_error(expected="a table of results", got="no such file")
        return read_table(file, columns)


def opened_run(folder: Path, kinds: str = "a run") -> Run:
    """Returns the run in a folder; raises `ResultError` that names another one if it has none.

    `kinds` are the kinds of results that the folder may have, for the error.
    """
    with named_errors(folder):
        if not (folder / SUMMARY).exists():
            raise missing_run(folder, kinds)
    return Run(folder)


def blame_of(run: Run) -> Blame:
    """Returns the causes of the times of a run; raises `ResultError` if it has none."""
    if run.blame is not None:
        return run.blame
    expected, place = "the causes of flows' times", Location(run.path)
    if not run.manifest["plan"].get("run", {}).get("blame"):
        hint = "`rampmeter run PLAN --set run.blame=true` records them"
        raise place.result_error(expected=expected, got="a run without `run.blame`", hint=hint)
    if not run.summary["flows"]["delivered"]:
        raise place.result_error(expected=expected, got="a run that delivered no flow")
    tables = run.manifest["plan"]["transport"]
    if isinstance(tables, dict) and tables["name"] == "ideal":
        got = "a run of the transport `ideal`, without packets"
        raise place.result_error(expected=expected, got=got)
    raise Location(run.path / BLAME).result_error(expected=expected, got="none")


def has_table(run: Run, name: str) -> bool:
    """Returns true if a run has a table, or a timeline that is quickly read."""
    if name == "collectives":
        return bool(run.summary.get(name))
    if name != "timeline":
        return getattr(run, name) is not None
    # A folder without results is reported by the first plot.
    file = run.timeline_file if (run.path / MANIFEST).is_file() else None
    return file is not None and file.is_file() and file.stat().st_size <= TIMELINE_MAX


class Plots(PlotList):
    """The plots of one run; each is a matplotlib figure (`figure.savefig("a.png")`).

    With `ax` a plot is drawn into those axes, and the figure is theirs.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def __repr__(self) -> str:
        return f"<plots of {self._run.name}: {', '.join(self.names())}>"

    def _has(self, table: str) -> bool:
        return has_table(self._run, table)

    def slowdown_by_size(
        self, ideal: str = "delivered", bins: str = "bdp", *, ax: "Axes | None" = None
    ) -> "Figure":
        """Draws the mean and 99th percentile of slowdown by flow size."""
        groups = slowdown_groups(self._run.summary, ideal, bins)
        series = series_of_groups("measured", groups)
        return plots.slowdown_by_size([series], interval=interval_name([1]), ax=ax)

    @needs("blame")
    def blame(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws mean slowdown by flow size, stacked by cause; see `Run.blame`.

        Raises `ResultError` without `run.blame`.
        """
        return blame_plots.slowdown_by_cause({"": blame_of(self._run)}, ax)

    @needs("blame")
    def blame_matrix(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws who delayed whom, by the sizes of flows: mean times in microseconds."""
        return blame_plots.waits({"": blame_of(self._run)}, ax)

    def fct_cdf(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws the distribution of flow completion times, with that of an idle network."""
        flows = self._run.flows
        return plots.fct_cdf(flows["fct_ps"].to_numpy(), flows["ideal_ps"].to_numpy(), ax=ax)

    def utilisation(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws utilisation of the links of each tier over time."""
        return plots.utilisation(tiers(self._run.series, "time_ps", "utilisation"), ax=ax)

    def queue_cdf(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws the distribution of queue lengths by tier."""
        return plots.queue_cdf(tiers(self._run.queues, "queue_bytes", "samples"), ax=ax)

    @needs("timeline")
    def time_space(
        self,
        start: float | str = 0,
        end: float | str | None = None,
        hosts: str | Sequence[int] | None = None,
        *,
        ax: "Axes | None" = None,
    ) -> "Figure":
        """Draws the packets on each link, a row for each link, from the file of `run.timeline`.

        The window is in microseconds, or in texts such as `0.5ms`. `hosts` are numbers, or a text
        such as `0-7`. Without an end the first 20 000 packets are drawn, with a note and a
        `UserWarning` if there are more. Raises `ResultError` without a timeline.
        """
        window = pictures.Window.parse(start, end)
        return pictures.time_space({"": self._run}, window, hosts, ax)

    @needs("timeline", "links")
    def queue(
        self,
        port: str | None = None,
        start: float | str = 0,
        end: float | str | None = None,
        *,
        ax: "Axes | None" = None,
    ) -> "Figure":
        """Draws the queue of a port such as `s0>h0` over time, by default of the longest queue.

        With `run.timeline` it shows every change, with `run.links` samples.
        """
        return pictures.queue({"": self._run}, pictures.Window.parse(start, end), port, ax)

    @needs("timeline", "links")
    def link(
        self,
        port: str | None = None,
        start: float | str = 0,
        end: float | str | None = None,
        *,
        ax: "Axes | None" = None,
    ) -> "Figure":
        """Draws the utilisation of a link such as `s0>h0` over time, by default the busiest one."""
        return pictures.link({"": self._run}, pictures.Window.parse(start, end), port, ax)

    @needs("rates", "outages")
    def goodput(
        self, start: float | str = 0, end: float | str | None = None, *, ax: "Axes | None" = None
    ) -> "Figure":
        """Draws the goodput of the whole network over time, and outages as bands.

        It is exact with `run.rates-us`; without, each flow has its bytes evenly over its time.
        """
        return goodput({"": self._run}, pictures.Window.parse(start, end), ax)

    @needs("collectives")
    def collectives(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws completion times of collectives by round, with their lower bounds."""
        return collectives({"measured": [self._run.summary]}, self._run.path, ax)

    @needs("tenants")
    def tenants(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws each tenant's share of the delivered bytes over time, to the end of the window."""
        table = self._run.tenants
        if table is None:
            raise Location(self._run.path).result_error(expected="several tenants", got="one")
        n_tenants = len(set(table["tenant"].to_pylist())) or 1
        window = self._run.summary.get("window") or {"to_ps": 0}
        arrivals = int(self._run.summary["counters"]["last_arrival_ps"])
        until = max(arrivals, int(window["to_ps"]))
        times = table["time_ps"].to_numpy().reshape(-1, n_tenants)[:, 0]
        total = table["delivered_bytes"].to_numpy().reshape(-1, n_tenants).astype(np.float64)
        each = np.diff(total, axis=0, prepend=0.0)[times <= until]
        shares = each / np.maximum(each.sum(axis=1, keepdims=True), 1.0)
        names = [f"tenant {idx}" for idx in range(n_tenants)]
        by_name = {name: shares[:, idx] for idx, name in enumerate(names)}
        return plots.tenant_shares(times[times <= until], by_name, ax=ax)


def tiers(table: "pa.Table", x: str, y: str) -> dict[str, tuple[Any, Any]]:
    """Returns two columns of a table as arrays, by tier."""
    names = np.asarray(table["tier"].to_pylist())
    columns = table[x].to_numpy(), table[y].to_numpy()
    order = dict.fromkeys(names.tolist())
    return {tier: (columns[0][names == tier], columns[1][names == tier]) for tier in order}

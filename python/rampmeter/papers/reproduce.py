"""Makes a figure of a paper: runs, tables, plots, report."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rampmeter import _core
from rampmeter.analysis.confidence import two_seeds
from rampmeter.papers.claims import ClaimRow, claim_rows
from rampmeter.papers.draw import draw, sustained
from rampmeter.papers.figure import Figure, FigureRun, Mode, SubFigure
from rampmeter.papers.label import position, workload
from rampmeter.papers.metrics import METRICS
from rampmeter.papers.pareto import LeastBound, least_bounds
from rampmeter.papers.search import SearchProbes
from rampmeter.papers.series import Series, series_of
from rampmeter.papers.verdict import SEEDS_WANTED, VERDICTS, Basis, ValueRow, rows_of
from rampmeter.plan.plan import compact_plan
from rampmeter.running.batch_flows import count_undelivered
from rampmeter.running.runner import Batch, Job
from rampmeter.text.cautions import Caution
from rampmeter.text.files import make_folder, write_text

REPORT = "report.json"
IMAGES = (".png", ".svg", ".pdf")
"""The kinds of files that a sub-figure is drawn into."""


@dataclass(frozen=True)
class Panel:
    """A sub-figure that has been made."""

    id: str
    title: str
    rows: tuple[ValueRow, ...]
    image: Path
    least_bounds: tuple[LeastBound, ...] = ()
    """The table of Pareto curves, which have no rows."""

    @property
    def has_table(self) -> bool:
        """Returns true if there is anything to show alongside the plot."""
        return bool(self.rows or self.least_bounds)


@dataclass(frozen=True)
class Report:
    """A figure that has been made."""

    figure: Figure
    mode: Mode
    panels: tuple[Panel, ...]
    claims: tuple[ClaimRow, ...]
    seeds: tuple[int, ...]
    file: Path
    searches: Mapping[str, Mapping[int, SearchProbes]] = field(default_factory=dict)
    """The probes of searches, by run and seed."""

    def counts(self) -> dict[str, int]:
        """Returns the number of expected values and claims with each verdict."""
        rows = [row for panel in self.panels for row in panel.rows]
        verdicts = [row.verdict for row in rows if row.fact is not None]
        verdicts += [row.verdict for row in self.claims]
        return {name: verdicts.count(name) for name in VERDICTS}

    @property
    def warnings(self) -> list[Caution]:
        """Reasons to doubt the intervals of its values."""
        return two_seeds(len(self.seeds))

    def seeds_text(self) -> str:
        """Returns the number of seeds behind the verdicts as text."""
        n = len(self.seeds)
        if n >= SEEDS_WANTED:
            return f"{n} seeds"
        return f"{n} {'seed' if n == 1 else 'seeds'} of {SEEDS_WANTED}"


def jobs_of(
    figure: Figure, mode: Mode, seeds: Sequence[int], out: Path, *, force: bool = False
) -> list[Job]:
    """Returns the simulations of a figure, the longest first so that all cores end together.

    With `force` they replace results of other plans. Those of searches are `probes_of`.
    """
    return [
        Job(
            job_name(run.id, seed),
            figure.plan_of(run, flows, seed),
            out / "runs" / run.id / f"seed-{seed}",
            force,
        )
        for run, flows in _longest_first(figure, mode)
        if run.search is None
        for seed in seeds
    ]


def probes_of(
    figure: Figure,
    mode: Mode,
    seeds: Sequence[int],
    batch: Batch,
    out: Path,
    *,
    force: bool = False,
) -> list[Job]:
    """Returns the next simulation of each search and seed after those of a batch.

    There is none if all searches are complete, or if a probe of the search did not finish.
    """
    ended = {outcome.job.name for outcome in batch.outcomes}
    found = searches_of(figure, seeds, batch)
    jobs = []
    for run, flows in _longest_first(figure, mode):
        for seed, probes in found.get(run.id, {}).items():
            load = probes.search.next_load(probes.values)
            if load is None or (name := probe_name(run.id, load, seed)) in ended:
                continue
            folder = out / "runs" / run.id / f"load-{load:g}" / f"seed-{seed}"
            jobs.append(Job(name, figure.plan_of(run, flows, seed, load), folder, force))
    return jobs


def searches_of(
    figure: Figure, seeds: Sequence[int], batch: Batch
) -> dict[str, dict[int, SearchProbes]]:
    """Returns the probes in a batch of a figure's searches, by run and seed."""
    by_name = batch.runs()
    found: dict[str, dict[int, SearchProbes]] = {}
    for run in figure.runs:
        if run.search is None:
            continue
        for seed in seeds:
            probed = {
                load: by_name[name]
                for load in run.search.loads
                if (name := probe_name(run.id, load, seed)) in by_name
            }
            values = {load: METRICS[run.search.metric].of(one) for load, one in probed.items()}
            flows = sum(int(one.summary["flows"]["submitted"]) for one in probed.values())
            found.setdefault(run.id, {})[seed] = SearchProbes(run.search, values, flows)
    return found


def job_name(run_id: str, seed: int) -> str:
    """Returns the name of one simulation in progress reports."""
    return f"{run_id} seed {seed}"


def probe_name(run_id: str, load: float, seed: int) -> str:
    """Returns the name of one probe of a search in progress reports."""
    return f"{run_id} at load {load:g} seed {seed}"


def data_packets(figure: Figure, mode: Mode) -> float:
    """Estimates the data packets that the runs of a figure send, with all probes of searches."""
    return sum(
        cost_of(figure, run, flows) * (run.search.probes_max if run.search else 1)
        for run, flows in _runs_in(figure, mode)
    )


def _runs_in(figure: Figure, mode: Mode) -> list[tuple[FigureRun, int | None]]:
    """Returns the runs of a mode with their numbers of flows."""
    return [
        (run, run.flows_in(mode, figure.published_flows)) for run in figure.runs if run.is_in(mode)
    ]


def _longest_first(figure: Figure, mode: Mode) -> list[tuple[FigureRun, int | None]]:
    """Returns the runs of a mode with their numbers of flows, the longest first."""
    return sorted(_runs_in(figure, mode), key=lambda pair: -cost_of(figure, *pair))


def make_report(
    figure: Figure, mode: Mode, seeds: Sequence[int], batch: Batch, out: Path
) -> Report:
    """Makes tables, plots and `report.json` from the complete runs."""
    by_name = batch.runs()
    runs = {
        run.id: {
            seed: by_name[name] for seed in seeds if (name := job_name(run.id, seed)) in by_name
        }
        for run in figure.runs
        if run.search is None
    }
    searches = searches_of(figure, seeds, batch)
    left_out = frozenset(run.id for run in figure.runs if not run.is_in(mode))
    basis = Basis(mode, seeds, left_out)
    tables = {
        panel.id: rows_of(figure, panel, {**runs, **searches}, basis)
        for panel in figure.sub_figures
    }
    series = {
        panel.id: {
            run_id: points
            for run_id in panel.runs
            for run in list(runs.get(run_id, {}).values())[:1]
            if (points := series_of(panel, run)) is not None
        }
        for panel in figure.sub_figures
    }
    panels = draw_panels(figure, tables, basis, series, out)
    all_rows = [row for rows in tables.values() for row in rows]
    claims = claim_rows(figure, all_rows, basis)
    searches_run = {id_: found for id_, found in searches.items() if id_ not in left_out}
    report = Report(
        figure, mode, tuple(panels), tuple(claims), tuple(seeds), out / REPORT, searches_run
    )
    made = {
        "is_interrupted": batch.is_interrupted,
        "wall_seconds": round(batch.wall_seconds, 3),
        "failures": [one.failure for one in count_undelivered(batch) if one.n_failed],
        "rejections": [one.rejection for one in count_undelivered(batch) if one.rejected],
        "runs": [
            {
                "run": run_id,
                "seed": seed,
                "folder": str(run.path.relative_to(out)),
                "status": run.status,
                "flows": run.summary["flows"],
                "wall_seconds": run.manifest.get("wall_seconds"),
            }
            for run_id, of_seeds in runs.items()
            for seed, run in of_seeds.items()
        ],
    }
    write_report(report, made)
    return report


def draw_panels(
    figure: Figure,
    tables: Mapping[str, list[ValueRow]],
    basis: Basis,
    series: Mapping[str, Mapping[str, Series]],
    out: Path,
) -> list[Panel]:
    """Draws the sub-figures of `tables`, rows by sub-figure, into `out`.

    `basis` is that of the rows. `series` has those of sub-figures with packets, probes or crashes,
    by sub-figure and run.
    """
    make_folder(out)
    panels = []
    for panel in figure.sub_figures:
        if panel.id not in tables:
            continue
        rows = tables[panel.id]
        least: list[LeastBound] = []
        if panel.drawing == "sustained":
            rows = sustained(figure, panel, rows)
        elif panel.drawing == "pareto":
            least = least_bounds(figure, panel, rows, basis.seeds, basis.left_out)
            rows = []
        image = out / f"fig{figure.number}{panel.id}.png"
        note = _note(panel, basis)
        drawing = draw(figure, panel, rows, note, series.get(panel.id), least)
        for kind in IMAGES:
            drawing.savefig(image.with_suffix(kind))
            # The first layout is valid for all formats; its computation takes as long as drawing.
            drawing.set_layout_engine(None)
        panels.append(Panel(panel.id, panel.title, tuple(rows), image, tuple(least)))
    return panels


def _note(panel: SubFigure, basis: Basis) -> str:
    """Returns the note on a drawing of runs with fewer flows than published; empty for others."""
    if basis.mode.is_reduced:
        return f"  ({basis.mode.label} run)"
    drawn = [run for run in panel.runs if run not in basis.left_out]
    n_pilots = sum(run in basis.pilots for run in drawn)
    if n_pilots == 0:
        return ""
    return (
        "  (pilot runs)"
        if n_pilots == len(drawn)
        else f"  ({n_pilots} of {len(drawn)} runs are pilots)"
    )


def write_report(report: Report, made: Mapping[str, Any]) -> None:
    """Writes `report.json`; `made` has its keys about the runs behind it."""
    text = json.dumps(_report_json(report) | dict(made), indent=2, allow_nan=False)
    write_text(report.file, text + "\n")


def _report_json(report: Report) -> dict[str, Any]:
    figure = report.figure
    notes = figure.folder / "NOTES.md"
    return {
        "paper": figure.paper,
        "figure": figure.number,
        "title": figure.title,
        "claim": figure.claim,
        "mode": report.mode.label,
        "seeds": list(report.seeds),
        "seeds_wanted": SEEDS_WANTED,
        "version": _core.VERSION,
        "commit": _core.COMMIT,
        "published_flows": figure.published_flows,
        "verdicts": report.counts(),
        "searches": [
            {"run": run_id, "seed": seed, **probes.to_json()}
            for run_id, of_seeds in report.searches.items()
            for seed, probes in of_seeds.items()
        ],
        "sub_figures": [_panel_json(figure, panel) for panel in report.panels],
        "claims": [row.to_json() for row in report.claims],
        "warnings": [one.to_json() for one in report.warnings],
        "notes": notes.read_text(encoding="utf-8") if notes.is_file() else "",
    }


def _panel_json(figure: Figure, panel: Panel) -> dict[str, Any]:
    """Returns a sub-figure with its rows' names and positions on the x axis."""
    spec = next(one for one in figure.sub_figures if one.id == panel.id)
    return {
        "id": panel.id,
        "title": panel.title,
        "drawing": spec.drawing,
        "x_label": spec.x_label,
        "size_unit": spec.size_unit,
        "log": spec.log,
        "image": panel.image.name,
        "rows": [
            {
                "label": workload(figure, row.cell.run),
                "x": position(figure, spec, row.cell),
                "y_label": METRICS[row.cell.metric].label,
                **row.to_json(),
            }
            for row in panel.rows
        ],
        "least_bounds": [line.to_json() for line in panel.least_bounds],
    }


def value_in(figure: Figure, run: FigureRun, key: str) -> object:
    """Returns the value of a key in the plan of a run, without making the plan's text."""
    for changed, value in reversed(run.overrides):
        if changed == key:
            return value
        if key.startswith(f"{changed}.") and isinstance(value, Mapping):
            return value.get(key.removeprefix(f"{changed}."))
    return figure.plan.get(key)


def cost_of(figure: Figure, run: FigureRun, flows: int | None) -> float:
    """Estimates the data packets of a run."""
    if flows is None:
        plan = compact_plan(figure.plan, *run.overrides)
        # A host of a collective sends its vector about twice. The ideal plans again when one of
        # up to n (n - 1) messages ends, in a time that grows with the n hosts.
        n_hosts = float(plan.derived()["hosts"])
        vector_bytes = float(plan.resolved("workload.vector-bytes", 0))
        is_ideal = plan.get("transport.name") == "ideal"
        return max(2.0 * n_hosts * vector_bytes / 1460, n_hosts**3 if is_ideal else 0.0)
    sizes = value_in(figure, run, "workload.sizes")
    mean = _core.distribution_mean(sizes) if isinstance(sizes, str) else 1e5
    return flows * mean / 1460

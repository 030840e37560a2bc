"""Expected and measured values side by side, on a terminal."""

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from rampmeter.papers.claims import ClaimRow, limits_text
from rampmeter.papers.figure import SubFigure
from rampmeter.papers.label import load, workload
from rampmeter.papers.reproduce import Panel, Report
from rampmeter.papers.status import FigureStatus
from rampmeter.papers.verdict import (
    FEWER_FLOWS,
    SEEDS_WANTED,
    Measurement,
    ValueRow,
    Verdict,
    tolerance_text,
)
from rampmeter.results.tables import new_table
from rampmeter.text.numbers import NONE, number

PRESET = "paper"
"""The column of the runs in the preset `paper`."""
VERDICT_STYLES: dict[Verdict, str] = {
    "match": "green",
    "miss": "bold red",
    "fewer flows": "yellow",
    "not judged": "dim",
}
OTHER_REVISION = "†"
"""The mark of a published value of another revision of the artifact."""


def panel_table(report: Report, panel: Panel) -> Table:
    """Returns expected and measured values of one sub-figure, or its least bounds."""
    spec = next(one for one in report.figure.sub_figures if one.id == panel.id)
    if panel.least_bounds:
        return _least_bounds(report, spec, panel)
    has_variant = any(row.variant is not None for row in panel.rows)
    columns = ["", "metric", "expected", "measured", PRESET, "diff", "within", "seeds", "verdict"]
    shown = [
        name
        for name in columns
        if (name != "metric" or len(spec.metrics) > 1) and (name != PRESET or has_variant)
    ]
    table = _compact_table(f"{report.figure.number}{panel.id}  {panel.title}", shown, "measured")
    for row in panel.rows:
        cells = dict(zip(columns, _cells(report, spec, row), strict=True))
        table.add_row(*(cells[name] for name in shown))
    misses = [
        (f"{row_name(report, spec, row)} {row.cell.metric}", row.reason)
        for row in panel.rows
        if row.verdict == "miss" and row.reason
    ]
    lines = [f"{PRESET}: measured in the preset `paper`"] if has_variant else []
    revisions = dict.fromkeys(row.fact.revision for row in panel.rows if row.fact)
    lines += [f"{OTHER_REVISION} {revision}" for revision in revisions if revision]
    caption = _caption(misses, panel.rows)
    table.caption = "\n".join([*lines, *([caption] if caption else [])]) or None
    return table


def _least_bounds(report: Report, spec: SubFigure, panel: Panel) -> Table:
    """Returns a table of the minimum bounds at which loads are sustained, by label and load."""
    setting = spec.over.rpartition(".")[2]
    columns = ["", "load", "least bound, µs", setting]
    title = f"{report.figure.number}{panel.id}  {panel.title}"
    table = _compact_table(title, columns)
    table.min_width = len(title)
    for line in panel.least_bounds:
        # Without all runs it is unknown if any sustains the load.
        bound, at = "none" if line.is_complete else NONE, NONE
        if line.least is not None:
            bound = f"{line.least.bound_us:.0f}"
            at = "default" if line.least.setting is None else f"{line.least.setting:g}"
        table.add_row(line.label, f"{line.load:g}", bound, at)
    return table


def searches_table(report: Report) -> Table:
    """Returns a table of the probed loads, with the values of the metric that decides."""
    columns = ["", "seed", "max. load", "probes", "note"]
    table = _compact_table(
        f"{report.figure.number}  Loads that were probed", columns, "probes", "note"
    )
    for run_id, of_seeds in report.searches.items():
        for seed, probes in of_seeds.items():
            highest = probes.highest
            table.add_row(
                workload(report.figure, run_id),
                str(seed),
                NONE if math.isnan(highest) else f"{highest:g}",
                ", ".join(f"{at:g}: {probes.values[at]:.4f}" for at in sorted(probes.values)),
                probes.note,
            )
    table.caption = "probes: load and value of the metric that decides"
    return table


def claims_table(report: Report) -> Table:
    """Returns a table of the paper's claims about several values, with their verdicts."""
    columns = ["", "measured", "expected", "seeds", "verdict"]
    table = _compact_table(
        f"{report.figure.number}  Claims of the paper", columns, "measured", "expected"
    )
    for row in report.claims:
        table.add_row(
            row.claim.text,
            _judged_values(row),
            limits_text(row.claim),
            _seeds_of_claim(row),
            _verdict(row.verdict),
        )
    misses = [
        (row.claim.text, row.reason)
        for row in report.claims
        # A number and its limits are in the line already.
        if row.verdict == "miss" and (row.measured is None or row.n_seeds < len(report.seeds))
    ]
    table.caption = _caption(misses, report.claims)
    return table


def _compact_table(title: str, columns: Sequence[str], *wrapping: str) -> Table:
    """Returns a table that fits 80 columns. Its first and its `wrapping` columns break lines."""
    table = new_table(title, *("" if name == "metric" else name for name in columns))
    table.padding = (0, 0, 0, 1)
    for name in ("", *wrapping):
        table.columns[columns.index(name)].no_wrap = False
    return table


def _judged_values(row: ClaimRow) -> str:
    """Returns the judged number, or all judged values."""
    if row.nearest is not None:
        return f"{row.nearest.worst:.4g} ({row.nearest.cell.run})"
    if row.measured is not None:
        return _format_measurement(row.measured, 3)
    means = [cell.mean for cell in row.cells if cell and cell.values]
    if row.claim.kind == "bound" and len(means) > 2:
        return f"{min(means):.4g} to {max(means):.4g}"
    if row.claim.kind == "bound" and len(row.by_seed) > 1 and len(row.cells) == 1:
        values = [value for (value,) in row.by_seed.values()]
        return f"{means[0]:.4g} ({min(values):.4g}-{max(values):.4g})"
    joint = " ≤ " if row.claim.kind == "order" and row.verdict == "match" else ", "
    return joint.join(f"{cell.mean:.4g}" if cell and cell.values else NONE for cell in row.cells)


def _seeds_of_claim(row: ClaimRow) -> str:
    """Returns the number of seeds behind a verdict, and of those that meet the claim if not all."""
    text = _seeds(row.n_seeds, row.verdict)
    if row.verdict == "not judged" or row.n_holding in (0, row.n_seeds):
        return text
    return f"{text}, {row.n_holding} {'holds' if row.n_holding == 1 else 'hold'}"


def _caption(misses: Iterable[tuple[str, str]], rows: Sequence[ValueRow | ClaimRow]) -> str | None:
    """Returns unexplained misses, and the reasons why other rows have no match or miss."""
    lines = [f"miss: {name}: {reason}" for name, reason in misses]
    fewer = [row for row in rows if row.verdict == FEWER_FLOWS]
    if fewer:
        shown = {row.lack for row in fewer}
        lines.append(f"{FEWER_FLOWS}: {len(fewer)} ({', '.join(sorted(shown))})")
    reasons = Counter(row.reason for row in rows if row.verdict == "not judged" and row.reason)
    if reasons:
        lines.append("not judged: " + ", ".join(f"{n} {why}" for why, n in reasons.items()))
    return "\n".join(lines) or None


def _cells(report: Report, spec: SubFigure, row: ValueRow) -> list[str | Text]:
    places = 4 if row.cell.metric == "delivered-share" else 3
    return [
        row_name(report, spec, row),
        row.cell.metric,
        _expected(row, places),
        _format_measurement(row.measured, places),
        number(row.variant.mean if row.variant else None, places),
        _difference(row, places),
        tolerance_text(row.fact.tolerance) if row.fact else NONE,
        _seeds(row.n_seeds, row.verdict),
        _verdict(row.verdict),
    ]


def _expected(row: ValueRow, places: int) -> str:
    """Returns the published value, marked if it is of another revision of the artifact."""
    if row.fact is None:
        return NONE
    return number(row.fact.expected, places) + (OTHER_REVISION if row.fact.revision else "")


def _verdict(verdict: Verdict) -> Text:
    return Text(NONE if verdict == "not judged" else verdict, style=VERDICT_STYLES[verdict])


def _seeds(n_seeds: int, verdict: Verdict) -> str:
    """Returns the number of seeds behind a verdict, and the required number."""
    if verdict == "not judged":
        return NONE
    return str(n_seeds) if n_seeds >= SEEDS_WANTED else f"{n_seeds} of {SEEDS_WANTED}"


def row_name(report: Report, spec: SubFigure, row: ValueRow) -> str:
    """Returns the workload of a value, with its size or load if the panel has several."""
    if row.cell.bin is not None and spec.points:
        return f"{workload(report.figure, row.cell.run)}, {spec.labels[row.cell.bin]}"
    if row.cell.bin is not None:
        size = f"{spec.labels[row.cell.bin]} {spec.size_unit}".rstrip()
        name = workload(report.figure, row.cell.run)
        return size if len(spec.runs) == 1 else f"{name}, {size}"
    name = workload(report.figure, row.cell.run)
    if spec.drawing not in ("by-load", "spread", "sustained"):
        return name
    return f"{name}, {load(report.figure, spec, row.cell.run):.4g}"


def _format_measurement(measured: Measurement | None, places: int) -> str:
    """Returns the mean of the seeds, their spread, and the seeds without a value."""
    if measured is None or not measured.values:
        return NONE
    values = measured.values
    text = number(measured.mean, places)
    if len(values) > 1:
        text += f" ({number(min(values), places)}-{number(max(values), places)})"
    if measured.without:
        text += f" without seed {', '.join(map(str, measured.without))}"
    return text


def _difference(row: ValueRow, places: int) -> str:
    """Returns the difference of a value; with too few flows it is shown, but not judged."""
    if row.fact is None or row.difference is None or row.verdict == "not judged":
        return NONE
    if row.fact.tolerance.kind == "relative":
        return f"{row.difference * 100:+.1f} %"
    return f"{row.difference:+.{places}f}"


def misses_lines(statuses: Iterable[FigureStatus]) -> list[str]:
    """Returns lines about misses: values and claims of one cause together, and its command."""
    lines = []
    for status in statuses:
        by_cause: dict[tuple[str, str], list[str]] = {}
        for row in status.misses:
            by_cause.setdefault(status.explanation(row), []).append(_describe_miss(row))
        for (cause, command), missed in by_cause.items():
            name = f"{status.figure.paper} {status.figure.number}"
            for indent, text in (("", f"{name}: {'; '.join(missed)}"), ("    ", cause)):
                words = " ".join(text.split())
                lines += textwrap.wrap(words, 80, initial_indent=indent, subsequent_indent="    ")
            lines += [f"    $ {command}", ""]
    return lines


def _describe_miss(row: ValueRow | ClaimRow) -> str:
    """Returns a missed value or claim, with the measured value."""
    if isinstance(row, ClaimRow):
        return f"{row.claim.text} ({_judged_values(row)})"
    bin_ = "" if row.cell.bin is None else f" {row.cell.bin}"
    expected = number(row.fact.expected if row.fact else None)
    measured = _format_measurement(row.measured, 3)
    return f"{row.cell.run} {row.cell.metric}{bin_} ({measured}, not {expected})"

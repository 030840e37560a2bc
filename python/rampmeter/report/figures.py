"""A figure of a paper: expected and measured values, claims, notes, and runs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rampmeter.analysis.confidence import interval
from rampmeter.papers.reproduce import REPORT
from rampmeter.papers.verdict import VERDICTS
from rampmeter.report.links import link_to
from rampmeter.report.model import (
    Cell,
    Chart,
    Column,
    DataTable,
    Kind,
    Link,
    MarkdownText,
    Place,
    Section,
    SectionPart,
    Series,
    SvgImage,
    Verdicts,
)
from rampmeter.results.run import FLOWS
from rampmeter.text.json_object import read_json
from rampmeter.text.locations import Location
from rampmeter.text.numbers import count, counted

PAPERS: Final = {
    "capton": "CAPTON",
    "collectives": "Collectives",
    "cosy": "cosy",
    "dcpim": "dcPIM",
    "fastpod": "Fastpod",
    "homa-dispute": "Homa's buffers and loads",
    "phost": "pHost",
}
"""Titles of the folders of `papers` in reports."""

VALUE_COLUMNS: Final = (
    Column("paper"),
    Column("figure"),
    Column("of"),
    Column("at"),
    Column("metric"),
    Column("expected", is_number=True),
    Column("source"),
    Column("measured", is_number=True),
    Column("±", is_number=True),
    Column("difference", is_number=True),
    Column("within"),
    Column("verdict"),
    Column("why"),
)
"""The columns of the table of all expected values, and of each figure's."""
CHARTED: Final = frozenset({"by-load", "by-workload", "by-size", "by-point", "spread", "sustained"})
"""Drawings whose rows are placed on an x axis. Others are shown as they were drawn."""
CATEGORICAL: Final = frozenset({"by-workload", "by-size"})
MISS: Final = "miss"
RECORDED: Final = "recorded"
"""Name of values of recorded runs, which are not the paper's."""


def section(folder: Path, page_folder: Path, id_: str) -> Section:
    """Returns the section of the folder that `rampmeter papers` has made.

    Raises `ResultError` for a report of an older version, which has fewer keys.
    """
    file = folder / REPORT
    report = read_json(file)
    try:
        return _section(report, folder, page_folder, id_)
    except KeyError as error:
        again = f"rampmeter papers {report.get('paper')} {report.get('figure')}"
        raise Location(file).result_error(
            expected=f"the key {error}, which version {report.get('version')} did not write",
            hint=f"`{again}` makes the report again from the runs that are there",
        ) from None


def _verdicts(report: Mapping[str, Any]) -> Verdicts:
    """Returns the verdicts of expected values and claims; other values have none."""
    found = [
        row["verdict"]
        for panel in report["sub_figures"]
        for row in panel["rows"]
        if row["expected"] is not None
    ]
    found += [claim["verdict"] for claim in report["claims"]]
    return Verdicts(*map(found.count, VERDICTS))


def _section(report: Mapping[str, Any], folder: Path, page_folder: Path, id_: str) -> Section:
    paper, number = str(report["paper"]), str(report["figure"])
    named = PAPERS.get(paper, paper)
    is_table = number.startswith("table")
    what = f"table {number.removeprefix('table')}" if is_table else f"figure {number}"
    verdicts = _verdicts(report)
    parts: list[SectionPart] = [MarkdownText(f"> {report['claim']}")]
    unwell = [f"**Failed:** {line}." for line in report["failures"]]
    unwell += [f"{line}; slowdowns exclude them." for line in report["rejections"]]
    # Reports of earlier versions have no warnings.
    unwell += [f"**Warning:** {one['text']}." for one in report.get("warnings", ())]
    if unwell:
        parts.append(MarkdownText("\n\n".join(unwell)))
    lines: list[Sequence[Cell | Link]] = []
    for panel in report["sub_figures"]:
        own = list(_lines(panel, named, number, f"{id_}-{len(parts)}", id_))
        parts += _panel(panel, number, folder)
        lines += own
        if own:
            title = f"Values of {number}{panel['id']}"
            parts.append(DataTable(title, VALUE_COLUMNS[2:], [r[2:] for r in own], is_open=False))
        if panel["least_bounds"]:
            parts.append(_least_bounds(panel, number))
    if report["claims"]:
        parts.append(_claims(report))
    if report["searches"]:
        parts.append(_searches(report))
    if report["notes"]:
        parts.append(MarkdownText(report["notes"], "Notes: runs, mismatches and their causes"))
    parts.append(_runs(report, folder, page_folder))
    n_seeds = len(report["seeds"])
    return Section(
        id_,
        f"{named}, {what}",
        report["title"] + ("" if report["mode"] in ("judged", "full") else ", reduced"),
        parts,
        group=named,
        verdicts=verdicts,
        rows=lines,
        provenance=(
            ("mode", report["mode"]),
            ("seeds", f"{n_seeds} of {report['seeds_wanted']}"),
            ("published flows", count(report["published_flows"])),
            ("version", f"{report['version']} ({report['commit']})"),
            (
                "time of all runs",
                f"{sum(run['wall_seconds'] or 0.0 for run in report['runs']):.0f} s",
            ),
        ),
    )


def _panel(panel: Mapping[str, Any], number: str, folder: Path) -> Iterator[SectionPart]:
    """Yields the chart of each metric of a sub-figure, or its drawing."""
    title = f"{number}{panel['id']}  {panel['title']}"
    rows = panel["rows"]
    if panel["drawing"] not in CHARTED or not rows:
        image = (folder / panel["image"]).with_suffix(".svg")
        if image.is_file():
            yield SvgImage(title, image.read_text(encoding="utf-8"))
        return
    metrics = dict.fromkeys(row["metric"] for row in rows)
    for metric in metrics:
        own = [row for row in rows if row["metric"] == metric]
        series = list(_series(own, panel["drawing"]))
        if not series:
            continue
        is_categorical = panel["drawing"] in CATEGORICAL
        y_label = own[0]["y_label"]
        is_slowdown = "lowdown" in y_label
        yield Chart(
            title if len(metrics) == 1 else f"{title}: {y_label}",
            _x_label(panel),
            y_label,
            series,
            log=panel["log"] or ("y" if is_slowdown else ""),
            has_lines=not is_categorical,
            categories=list(dict.fromkeys(str(row["x"]) for row in own)) if is_categorical else (),
        )


def _x_label(panel: Mapping[str, Any]) -> str:
    match panel["drawing"], panel["size_unit"]:
        case "by-workload", _:
            return ""
        case "by-size", unit:
            return f"Flow size ({unit})" if unit else "Flow size"
        case _:
            return str(panel["x_label"])


def _series(rows: Sequence[Mapping[str, Any]], drawing: str) -> Iterator[Series]:
    """Yields expected, measured and variant's points of each label.

    Points have no label if there is only one, or if labels are the categories. Values of recorded
    runs are points apart from published ones.
    """
    labels = list(dict.fromkeys(row["label"] for row in rows))
    if drawing == "by-workload" or len(labels) == 1:
        labels = [""]
    kinds: tuple[tuple[Kind, str], ...] = (
        ("expected", "published"),
        ("expected", RECORDED),
        ("measured", "measured"),
        ("variant", "preset paper"),
    )
    for colour, label in enumerate(labels):
        of_label = [row for row in rows if label in ("", row["label"])]
        for kind, word in kinds:
            own = of_label
            if kind == "expected":
                own = [row for row in of_label if row["is_recorded"] == (word == RECORDED)]
            points = [
                (*point, kind == "measured" and is_undecided(row))
                for row in own
                if (point := _point(row, kind)) is not None
            ]
            if drawing not in CATEGORICAL:
                points.sort(key=lambda point: float(point[0]))
            if not points:
                continue
            x, y, low, high, hover, undecided = zip(*points, strict=True)
            name = ", ".join(filter(None, [label, word if kind != "measured" or not label else ""]))
            yield Series(name, x, y, low, high, kind, colour, hover, undecided)


def is_undecided(row: Mapping[str, Any]) -> bool:
    """Returns true if a value is expected, and the measured one has no verdict yet."""
    return row["expected"] is not None and row["verdict"] not in ("match", MISS)


def _point(row: Mapping[str, Any], kind: Kind) -> tuple[Place, float, float, float, str] | None:
    """Returns a row's position, its value, the ends of its interval, and its description."""
    if row["x"] is None:
        return None
    if kind == "expected":
        if row["expected"] is None:
            return None
        return row["x"], row["expected"], math.nan, math.nan, row["source"] or ""
    measured = row[kind]
    if measured is None or measured["mean"] is None:
        return None
    mean, half = measured["mean"], _ci_of(measured)
    low, high = (math.nan, math.nan) if half is None else (mean - half, mean + half)
    n_seeds = sum(value is not None for value in measured["by_seed"].values())
    description = f"{counted(measured['flows_counted'], 'flow')}, {counted(n_seeds, 'seed')}"
    if kind == "measured" and is_undecided(row):
        description += f"; {row['verdict']}: {row['reason']}"
    return row["x"], mean, low, high, description


def _ci_of(measured: Mapping[str, Any]) -> float | None:
    """Returns half the 95 % interval of the mean over seeds; `None` for one seed."""
    return interval(v for v in measured["by_seed"].values() if v is not None).ci


def _lines(
    panel: Mapping[str, Any], paper: str, number: str, chart: str, id_: str
) -> Iterator[Sequence[Cell | Link]]:
    """Yields a line for each expected value of a panel, with a link to its `chart`."""
    for row in panel["rows"]:
        if row["expected"] is None:
            continue
        measured = row["measured"]
        tolerance = row["tolerance"]
        is_relative = tolerance["kind"] == "relative"
        difference = row["difference"]
        yield (
            paper,
            Link(f"{number}{panel['id']}", f"#{chart}"),
            row["label"],
            "" if row["x"] is None or row["x"] == row["label"] else row["x"],
            row["metric"],
            row["expected"],
            source_of(row),
            measured["mean"] if measured else None,
            _ci_of(measured) if measured else None,
            None
            if difference is None
            else f"{difference * 100:+.1f} %"
            if is_relative
            else f"{difference:+.3g}",
            f"±{tolerance['value'] * 100:g} %" if is_relative else f"±{tolerance['value']:g}",
            row["verdict"],
            _reason(row, id_),
        )


def source_of(row: Mapping[str, Any]) -> str:
    """Returns the source of an expected value: the paper, or a recorded run of fewer flows."""
    if not row["is_recorded"]:
        return "published"
    return f"recorded, {counted(row['published_flows'], 'flow')}"


def _reason(row: Mapping[str, Any], id_: str) -> Cell | Link:
    """Returns the reason why a row is missed or not judged, or a link to it."""
    reasons = [text for text in (row["reason"], row["revision"]) if text]
    if reasons:
        return "; ".join(reasons)
    return Link("notes", f"#{id_}-notes") if row["verdict"] == MISS else ""


def _least_bounds(panel: Mapping[str, Any], number: str) -> DataTable:
    columns = [
        Column("of"),
        Column("load", is_number=True),
        Column("least bound, µs", is_number=True),
        Column("at", is_number=True),
    ]
    rows = [
        (line["label"], line["load"], line["bound_us"], line["setting"])
        for line in panel["least_bounds"]
    ]
    return DataTable(f"Least bounds of {number}{panel['id']}", columns, rows, is_open=False)


def _claims(report: Mapping[str, Any]) -> DataTable:
    """Returns a table of the paper's claims about several values, with their verdicts."""
    columns = [
        Column("the paper says"),
        Column("measured", is_number=True),
        Column("expected"),
        Column("seeds", is_number=True),
        Column("verdict"),
        Column("why"),
    ]
    rows = []
    for claim in report["claims"]:
        measured = claim["measured"]
        means = [cell["measured"]["mean"] for cell in claim["cells"] if cell["measured"]]
        listed = ", ".join(f"{mean:.4g}" for mean in means if mean is not None)
        value = measured["mean"] if measured else listed
        n = claim["seeds"]
        holding = "" if claim["seeds_holding"] in (0, n) else f" ({claim['seeds_holding']} hold)"
        rows.append(
            (
                claim["claim"],
                value,
                claim["expected"],
                f"{n}{holding}" if holding else n,
                claim["verdict"],
                claim["reason"],
            )
        )
    return DataTable(f"Claims of {report['figure']}", columns, rows)


def _searches(report: Mapping[str, Any]) -> DataTable:
    columns = [
        Column("run"),
        Column("seed", is_number=True),
        Column("maximum load", is_number=True),
        Column("probes: load and value"),
    ]
    rows = []
    for found in report["searches"]:
        probes = found["probes"]
        probed = ", ".join(f"{one['load']:g}: {_text(one['value'])}" for one in probes)
        rows.append((found["run"], found["seed"], found["max_load"], probed))
    return DataTable("Loads that were probed", columns, rows, is_open=False)


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _runs(report: Mapping[str, Any], folder: Path, page_folder: Path) -> DataTable:
    """Returns a table of the runs, with links to their flows."""
    columns = [
        Column("run"),
        Column("seed", is_number=True),
        Column("status"),
        Column("flows", is_number=True),
        Column("delivered", is_number=True),
        Column("time, s", is_number=True),
        Column("files"),
    ]
    rows = [
        (
            run["run"],
            run["seed"],
            run["status"],
            run["flows"]["submitted"],
            run["flows"]["delivered"],
            run["wall_seconds"],
            link_to(folder / run["folder"] / FLOWS, page_folder),
        )
        for run in report["runs"]
    ]
    return DataTable("Runs", columns, rows, is_open=False)

"""A sweep: measures by the varied keys, heat maps over two of them, differences of transports."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rampmeter.analysis.confidence import Interval, interval
from rampmeter.plots.colours import looks
from rampmeter.report.links import link_to
from rampmeter.report.model import (
    Chart,
    Column,
    DataTable,
    HeatMap,
    Link,
    LinkList,
    MarkdownText,
    Section,
    SectionPart,
    Series,
)
from rampmeter.results.names import key_name, measure_name, setting_name, transport_name
from rampmeter.sweeps.columns import MEASURES
from rampmeter.sweeps.dataset import IDENTITY, INTERVALS, RUNS
from rampmeter.sweeps.results import PointRows, SweepResults
from rampmeter.text.numbers import counted
from rampmeter.text.toml import literal

SHOWN: Final = ("slowdown_mean", "slowdown_p99", "utilisation", "goodput_gbps")
"""Measures with charts, if the sweep has them."""
DIFFERENCES: Final = "slowdown_mean"
"""The measure by which transports are compared in pairs."""
FILES_MAX: Final = 24
"""Maximum number of listed files of runs."""
HEATS_MAX: Final = 12
"""Maximum number of heat maps: one a transport and measure."""


def section(folder: Path, page_folder: Path, id_: str) -> Section:
    """Returns the section of the folder that `rampmeter sweep` has made."""
    results = SweepResults(folder)
    points = results.points
    measures = [m for m in SHOWN if m in MEASURES and any(p.interval(m).n for p in points)]
    keys = [key for key in results.keys if len({literal(p.values[key]) for p in points}) > 1]
    parts: list[SectionPart] = []
    numeric = [key for key in keys if all(_is_number(p.values[key]) for p in points)]
    if len(keys) == len(numeric) == 2:
        parts += itertools.islice(_heat_maps(points, keys, measures), HEATS_MAX)
    else:
        parts += _curves(points, keys, numeric, measures)
    parts += _differences(points, keys)
    parts.append(_table(points, keys, measures))
    if results.warnings:
        lines = (f"- **Warning:** {line}" for line in results.warnings)
        parts.insert(0, MarkdownText("\n".join(lines)))
    files = [link_to(folder / name, page_folder) for name in (IDENTITY, INTERVALS)]
    named = {file: f"{RUNS}/{file.parent.name}/{file.name}" for file in _files(folder)}
    files += [link_to(file, page_folder, name) for file, name in named.items()]
    parts.append(LinkList("Files", [one for one in files if isinstance(one, Link)]))
    identity = results.dataset.identity() or {}
    n_runs = sum(len(point.rows) for point in points)
    varied = ", ".join(results.keys) or "transports"
    return Section(
        id_,
        folder.name,
        f"a sweep of {varied}: {counted(len(points), 'point')}, {counted(n_runs, 'run')}",
        parts,
        group="Sweeps",
        provenance=(
            ("seeds", _seeds(points)),
            ("version", f"{identity.get('version')} ({identity.get('commit')})"),
        ),
    )


def _seeds(points: Sequence[PointRows]) -> str:
    seeds = sorted({row["seed"] for point in points for row in point.rows})
    return ", ".join(map(str, seeds))


def _files(folder: Path) -> list[Path]:
    """Returns the tables of runs if they are few enough to be listed."""
    files = sorted((folder / RUNS).rglob("*.parquet"))
    return files if len(files) <= FILES_MAX else []


def _curves(
    points: Sequence[PointRows],
    keys: Sequence[str],
    numeric: Sequence[str],
    measures: Sequence[str],
) -> Iterator[Chart]:
    """Yields each measure by the first numeric key, a chart for each value of the next key.

    Lines are those of transports and of the values of further keys.
    """
    key = numeric[0] if numeric else None
    rest = [other for other in keys if other != key and key]
    panel, others = (rest[0], rest[1:]) if rest else (None, [])
    transports = list(dict.fromkeys(point.transport for point in points))
    colours = {name: look.idx for name, look in zip(transports, looks(transports), strict=True)}
    for measure, titled in itertools.product(measures, _panels(points, panel).items()):
        title, own = titled
        lines: dict[tuple[str, str], list[tuple[Any, Interval]]] = {}
        for point in own:
            words = ", ".join(setting_name(o, point.values[o]) for o in others)
            place = point.values[key] if key else _place(point, keys)
            line = lines.setdefault((point.transport, words), [])
            line.append((place, point.interval(measure)))
        places = () if key else dict.fromkeys(str(x) for of in lines.values() for x, _ in of)
        series = [
            _series(
                ", ".join(filter(None, (transport_name(transport), words))),
                sorted(values, key=lambda v: v[0]) if key else values,
                colours[transport] if not words else idx,
            )
            for idx, ((transport, words), values) in enumerate(lines.items())
        ]
        label = measure_name(measure)
        yield Chart(
            f"{label}, {title}" if title else label,
            key_name(key) if key else "",
            label,
            series,
            has_lines=key is not None,
            categories=list(places),
        )


def _panels(points: Sequence[PointRows], key: str | None) -> dict[str, list[PointRows]]:
    """Returns the points by the title of their chart."""
    panels: dict[str, list[PointRows]] = {}
    for point in points:
        title = setting_name(key, point.values[key]) if key else ""
        panels.setdefault(title, []).append(point)
    return panels


def _series(name: str, values: Sequence[tuple[Any, Interval]], colour: int) -> Series:
    shown = [(x, at) for x, at in values if math.isfinite(at.mean)]
    half = [at.ci if at.ci is not None else math.nan for _, at in shown]
    means = [at.mean for _, at in shown]
    return Series(
        name,
        [x for x, _ in shown],
        means,
        [mean - width for mean, width in zip(means, half, strict=True)],
        [mean + width for mean, width in zip(means, half, strict=True)],
        colour=colour,
        hover=[counted(at.n, "seed") for _, at in shown],
    )


def _heat_maps(
    points: Sequence[PointRows], keys: Sequence[str], measures: Sequence[str]
) -> Iterator[HeatMap]:
    """Yields each measure over two keys: a map for each transport, all by one scale of colours."""
    first, second = keys
    transports = list(dict.fromkeys(point.transport for point in points))
    for measure in measures:
        means = [point.interval(measure).mean for point in points]
        finite = [mean for mean in means if math.isfinite(mean)]
        for transport in transports:
            own = [point for point in points if point.transport == transport]
            x, y = (_values(own, key) for key in (first, second))
            at = {
                (literal(p.values[first]), literal(p.values[second])): p.interval(measure).mean
                for p in own
            }
            z = [[at.get((a, b), math.nan) for a in x] for b in y]
            label = measure_name(measure)
            yield HeatMap(
                f"{label}, {transport_name(transport)}",
                key_name(first),
                key_name(second),
                x,
                y,
                z,
                label,
                min(finite, default=math.nan),
                max(finite, default=math.nan),
            )


def _values(points: Sequence[PointRows], key: str) -> list[str]:
    """Returns the values of a key, numbers by size."""
    values = list({literal(p.values[key]): p.values[key] for p in points}.values())
    if all(_is_number(value) for value in values):
        values.sort()
    return [literal(value) for value in values]


def _differences(points: Sequence[PointRows], keys: Sequence[str]) -> Iterator[DataTable]:
    """Differences of each pair of transports at each point, by the same seeds."""
    at: dict[str, dict[str, Mapping[int, float]]] = {}
    for point in points:
        by_seed = {row["seed"]: row[DIFFERENCES] for row in point.rows if row[DIFFERENCES]}
        at.setdefault(_place(point, keys), {})[point.transport] = by_seed
    rows = []
    for place, by_transport in at.items():
        for one, other in itertools.combinations(by_transport, 2):
            seeds = [s for s in by_transport[one] if s in by_transport[other]]
            found = interval(by_transport[other][s] - by_transport[one][s] for s in seeds)
            if not found.n:
                continue
            half = found.ci
            is_sure = half is not None and abs(found.mean) > half
            lower = one if found.mean > 0 else other
            rows.append(
                (place, f"{other} - {one}", found.mean, half, found.n, lower if is_sure else "")
            )
    if not rows:
        return
    columns = [
        Column("point"),
        Column("difference of"),
        Column("mean", is_number=True),
        Column("±", is_number=True),
        Column("seeds", is_number=True),
        Column("lower, with 95 %"),
    ]
    note = "Differences by seed; ± is half the 95 % interval of their mean."
    yield DataTable("Mean slowdown: differences of transports", columns, rows, note)


def _table(points: Sequence[PointRows], keys: Sequence[str], measures: Sequence[str]) -> DataTable:
    """Returns a line for each point."""
    columns = [
        *(Column(key) for key in keys),
        Column("transport"),
        Column("seeds", is_number=True),
        Column("not finished", is_number=True),
        Column("warnings", is_number=True),
        Column("too short"),
    ]
    for measure in measures:
        name = measure_name(measure)
        columns += [Column(name, is_number=True), Column("±", is_number=True)]
    rows = []
    for point in points:
        cells: list[Any] = [point.values[key] for key in keys]
        cells = [cell if _is_number(cell) else literal(cell) for cell in cells]
        warned = sum(bool(row["warnings"]) for row in point.rows)
        short = "yes" if point.is_short else ""
        cells += [point.transport, len(point.rows), point.n_not_finished, warned, short]
        for measure in measures:
            found = point.interval(measure)
            cells += [found.mean if found.n else None, found.ci]
        rows.append(cells)
    return DataTable("Points", columns, rows)


def _place(point: PointRows, keys: Sequence[str]) -> str:
    words = [f"{key.rpartition('.')[2]} = {literal(point.values[key])}" for key in keys]
    return ", ".join(words) or "all"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

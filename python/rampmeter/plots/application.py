"""Applications: probes of a failure detector, and quantities by a setting of an application."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rampmeter.plots.load import Line, Point
from rampmeter.plots.special_marks import draw_undecided, label_undecided
from rampmeter.plots.style import (
    LINES,
    MARKERS,
    PALETTE,
    PUBLISHED,
    finish,
    house_style,
    new_figure,
    plain_log_ticks,
    wrap_x_label,
    wrap_y_label,
)
from rampmeter.text.numbers import thousands

LEGEND_CHARACTERS = 45
"""Maximum characters in a row of a legend."""


@dataclass(frozen=True)
class DetectionSeries:
    """Detection times of crashes, by the time between the last probe and the crash."""

    name: str
    since_probe_us: Sequence[float]
    detection_us: Sequence[float]
    limit_us: float
    """Upper bound of all detection times, in microseconds."""


@dataclass(frozen=True)
class OperatingPoint:
    """Throughput and tail latency of a storage client, and the spinner's share of its core."""

    name: str
    """Its name in its series."""
    share: float
    tail_us: float
    published_tail_us: float | None = None
    is_undecided: bool = False
    """True if a value has no verdict yet; the point is grey."""
    series: str = ""
    """The name of its series in the legend; the points of a series are joined."""


def probes(
    sent_us: Sequence[float],
    answered_us: Sequence[float],
    suspected_us: Sequence[float],
    crashes_us: Sequence[tuple[float, float]],
    *,
    title: str = "",
) -> Figure:
    """Draws probes, answers and suspicions over time, and the host's outages."""
    with house_style():
        figure, axes = new_figure(height=2.3)
        for idx, (start, end) in enumerate(crashes_us):
            label = "host is down" if idx == 0 else None
            axes.axvspan(start, end, color="#F4C7C3", linewidth=0, label=label, zorder=0)
        rows = (
            ("request sent", sent_us, "|", PALETTE[4]),
            ("answer", answered_us, "|", PALETTE[2]),
            ("suspicion", suspected_us, "x", PALETTE[6]),
        )
        for y, (_, times, marker, colour) in enumerate(rows):
            axes.scatter(times, [-y] * len(times), marker=marker, s=90 / (1 + y // 2), color=colour)
        axes.set_yticks([-y for y in range(len(rows))], [name for name, *_ in rows])
        axes.set_ylim(-len(rows) + 0.5, 0.5)
        axes.set_xlim(left=0)
        axes.grid(visible=False)
        axes.set_xlabel("Time (µs)")
        finish(figure, axes, title)
    return figure


def crashes(sweeps: Sequence[DetectionSeries], *, title: str = "") -> Figure:
    """Draws the time to detection by the time of a crash; each series has its limit."""
    with house_style():
        figure, axes = new_figure()
        for idx, sweep in enumerate(sweeps):
            colour = PALETTE[idx % len(PALETTE)]
            pairs = sorted(zip(sweep.since_probe_us, sweep.detection_us, strict=True))
            axes.plot(
                [x for x, _ in pairs],
                [y for _, y in pairs],
                color=colour,
                marker=MARKERS[idx % len(MARKERS)],
                markersize=3,
                linestyle="none",
                label=sweep.name,
            )
            label = "T_P + δ" if idx == 0 else None
            axes.axhline(sweep.limit_us, color=colour, linestyle="--", linewidth=1.0, label=label)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("Crash after the last probe (µs)")
        axes.set_ylabel("Time to detection (µs)")
        finish(figure, axes, title)
    return figure


def operating_points(
    points: Sequence[OperatingPoint], *, title: str = "", tail_max_us: float = 100.0
) -> Figure:
    """Draws tails of latency against the core's remaining share; right and down is better.

    Points above `tail_max_us` are drawn at the upper edge with their value.
    """
    with house_style():
        figure, axes = new_figure(height=3.3)
        families: dict[str, list[OperatingPoint]] = {}
        for point in points:
            families.setdefault(point.series, []).append(point)
        for idx, (family, own) in enumerate(families.items()):
            colour, marker = PALETTE[idx % len(PALETTE)], MARKERS[idx % len(MARKERS)]
            x, y = [one.share for one in own], [min(one.tail_us, tail_max_us) for one in own]
            axes.plot(x, y, color=colour, marker=marker, linewidth=1.0, label=family, clip_on=False)
            grey = [idx for idx, one in enumerate(own) if one.is_undecided]
            greys = [x[idx] for idx in grey], [y[idx] for idx in grey]
            draw_undecided(axes, *greys, marker, 6, clip_on=False)
            hollow = [one for one in own if one.published_tail_us is not None]
            axes.plot(
                [one.share for one in hollow],
                [one.published_tail_us or 0.0 for one in hollow],
                marker=marker,
                markersize=9,
                markerfacecolor="none",
                markeredgecolor=colour,
                linestyle="none",
                label="expected" if hollow else None,
                clip_on=False,
            )
            for one in own:
                _note(axes, one, tail_max_us)
        if any(point.is_undecided for point in points):
            label_undecided(axes)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, tail_max_us)
        axes.set_xlabel("Spinner's throughput over that alone")
        axes.set_ylabel(wrap_y_label("Read latency, 99.9th percentile (µs)"))
        finish(figure, axes, title)
    return figure


def curves(
    lines: Sequence[Line], *, x_label: str, y_label: str, title: str = "", log: str = ""
) -> Figure:
    """Draws a quantity by a setting; published points are hollow. `log` names logarithmic axes."""
    with house_style():
        figure, axes = new_figure(height=3.3)
        for idx, line in enumerate(lines):
            colour, marker = PALETTE[idx % len(PALETTE)], MARKERS[idx % len(MARKERS)]
            measured, published = _shown(line.measured, log), _shown(line.published, log)
            axes.plot(
                [point.load for point in measured],
                [point.value for point in measured],
                color=colour,
                marker=marker,
                markersize=4,
                linestyle=LINES[idx % len(LINES)],
                label=line.name,
                zorder=3,
            )
            grey = [point for point in measured if point.is_undecided]
            x, y = [point.load for point in grey], [point.value for point in grey]
            draw_undecided(axes, x, y, marker, 4)
            axes.plot(
                [point.load for point in published],
                [point.value for point in published],
                linestyle="none",
                marker=marker,
                markersize=9,
                markerfacecolor="none",
                markeredgecolor=colour,
            )
        if any(_shown(line.published, log) for line in lines):
            axes.plot(
                [],
                [],
                linestyle="none",
                marker="o",
                markersize=8,
                markerfacecolor="none",
                markeredgecolor=PUBLISHED,
                label="expected",
            )
        if any(point.is_undecided for line in lines for point in _shown(line.measured, log)):
            label_undecided(axes)
        if "x" in log:
            axes.set_xscale("log")
            plain_log_ticks(axes, "x")
        else:
            axes.set_xticks(sorted({point.load for line in lines for point in line.measured}))
        if "y" in log:
            axes.set_yscale("log")
            plain_log_ticks(axes, "y")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(wrap_x_label(x_label))
        axes.set_ylabel(wrap_y_label(y_label))
        names = sum(len(line.name) for line in lines)
        finish(figure, axes, title, columns=4 if names <= LEGEND_CHARACTERS else 3)
    return figure


def _shown(points: Sequence[Point], log: str) -> list[Point]:
    """Returns the points that an axis can show: a logarithmic one cannot show zero."""
    return [point for point in points if "y" not in log or point.value > 0]


def _note(axes: Axes, point: OperatingPoint, tail_max_us: float) -> None:
    """Annotates a point with its name, or with its value if it is too high."""
    text = point.name
    if point.tail_us > tail_max_us:
        text = f"{thousands(round(point.tail_us))} µs"
    axes.annotate(
        text,
        (point.share, min(point.tail_us, tail_max_us)),
        textcoords="offset points",
        xytext=(4, -11),
        fontsize=7,
    )

"""Applications: probes of a failure detector, and quantities by a setting of an application."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from rampmeter.plots.load import Line, Point
from rampmeter.plots.style import (
    LINES,
    MARKERS,
    PALETTE,
    PUBLISHED,
    finish,
    house,
    new_figure,
    plain_log_ticks,
)


@dataclass(frozen=True)
class Sweep:
    """How long crashes at different times after the last probe take to be known."""

    name: str
    since_probe_us: Sequence[float]
    detection_us: Sequence[float]
    limit_us: float
    """What none of them may exceed."""


def probes(
    sent_us: Sequence[float],
    answered_us: Sequence[float],
    suspected_us: Sequence[float],
    crashes_us: Sequence[tuple[float, float]],
    *,
    title: str = "",
) -> Figure:
    """Probes, answers and suspicions over time; from when until when the host is down."""
    with house():
        figure, axes = new_figure(5.4, 2.3)
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


def crashes(sweeps: Sequence[Sweep], *, title: str = "") -> Figure:
    """Time to detection by when a host crashes, each series with its limit."""
    with house():
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


def curves(
    lines: Sequence[Line], *, x_label: str, y_label: str, title: str = "", log: str = ""
) -> Figure:
    """A quantity by a setting; published points are hollow. `log` names logarithmic axes."""
    with house():
        figure, axes = new_figure()
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
                label="published",
            )
        if "x" in log:
            axes.set_xscale("log", base=2)
            plain_log_ticks(axes, "x")
        else:
            axes.set_xticks(sorted({point.load for line in lines for point in line.measured}))
        if "y" in log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        finish(figure, axes, title)
    return figure


def _shown(points: Sequence[Point], log: str) -> list[Point]:
    """The points that an axis has a place for: a logarithmic one has none for zero."""
    return [point for point in points if "y" not in log or point.value > 0]

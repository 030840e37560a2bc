"""Charts as Plotly figures, in plain values for the page."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any, Final

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from rampmeter.plots.colours import COLOURS, NO_VERDICT, UNDECIDED
from rampmeter.report.model import Chart, HeatMap, Kind, Series
from rampmeter.text.numbers import thousands

SYMBOLS: Final = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x")
DASHES: Final = ("solid", "dash", "dashdot", "dot")
HEIGHT: Final = 380
"""Pixels of a chart."""
DECADES_MAX: Final = 2.5
"""Maximum number of decades of an axis with ticks between powers of ten."""
DODGE: Final = 0.16
"""Distance of points of different kinds from a category's middle, as a share of its width."""


def figure_json(part: Chart | HeatMap) -> str:
    """Returns the figure as JSON. NaN and infinite numbers are null."""
    figure = _heat(part) if isinstance(part, HeatMap) else _chart(part)
    # A template of Plotly's own would be in every figure; the page's style has the colours.
    figure.update_layout(
        template=None,
        height=HEIGHT,
        margin={"l": 60, "r": 16, "t": 16, "b": 56},
        modebar={"bgcolor": "rgba(0,0,0,0)", "orientation": "v", "remove": ["select", "lasso"]},
    )
    text: str = figure.to_json()
    # The text of a script element must not contain its end tag.
    return text.replace("</", "<\\/")


def _chart(chart: Chart) -> go.Figure:
    figure = go.Figure()
    places = {name: idx for idx, name in enumerate(chart.categories)}
    for idx, series in enumerate(chart.series):
        x = series.x
        if places:
            shift = _offset(chart.series, idx)
            x = [places[str(place)] + shift for place in series.x]
        figure.add_trace(_trace(series, x, has_line=chart.has_lines and not places))
    _add_grey_marks(figure, chart)
    x_axis: dict[str, Any] = {"title": _title(chart.x_label, 40), "automargin": True}
    y_axis: dict[str, Any] = {"title": _title(chart.y_label, 30), "automargin": True}
    if places:
        x_axis |= {"tickvals": list(range(len(places))), "ticktext": list(places)}
        x_axis |= {"range": [-0.6, len(places) - 0.4]}
    for axis, name in ((x_axis, "x"), (y_axis, "y")):
        decades = _decades(chart, name)
        # Within less than a decade a logarithmic axis has few ticks.
        if name in chart.log and decades > 1.0 and not (places and name == "x"):
            axis |= {"type": "log", **_log_ticks(chart, name)}
    figure.update_layout(
        xaxis=x_axis,
        yaxis=y_axis,
        hovermode="closest",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return figure


def _trace(series: Series, x: Sequence[Any], *, has_line: bool) -> go.Scatter:
    # The page shows black in the colour of its text.
    colour = COLOURS[series.colour % len(COLOURS)]
    symbol = SYMBOLS[series.colour % len(SYMBOLS)]
    looks: dict[Kind, dict[str, Any]] = {
        "measured": {"size": 8, "symbol": symbol},
        "expected": {"size": 13, "symbol": f"{symbol}-open", "line": {"width": 1.6}},
        "variant": {"size": 8, "symbol": "x-thin-open", "line": {"width": 2}},
    }
    is_line = has_line and series.kind == "measured"
    bars = {}
    if any(math.isfinite(end) for end in (*series.low, *series.high)):
        bars["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [_beyond(high, y) for high, y in zip(series.high, series.y, strict=True)],
            "arrayminus": [_beyond(y, low) for low, y in zip(series.low, series.y, strict=True)],
            "thickness": 1.4,
            "width": 3,
        }
    return go.Scatter(
        name=series.name,
        x=list(x),
        y=[_finite(value) for value in series.y],
        mode="lines+markers" if is_line else "markers",
        marker=looks[series.kind] | {"color": colour},
        line={"color": colour, "dash": DASHES[series.colour % len(DASHES)]},
        text=list(series.hover) or None,
        customdata=list(series.x),
        hovertemplate="%{customdata}: %{y:.4~g}<br>%{text}<extra>%{fullData.name}</extra>"
        if series.hover
        else "%{customdata}: %{y:.4~g}<extra>%{fullData.name}</extra>",
        **bars,
    )


def _add_grey_marks(figure: go.Figure, chart: Chart) -> None:
    """Draws grey marks over those of points whose values have no verdict yet."""
    points = [
        (x, y, trace.marker.symbol)
        for trace, series in zip(figure.data, chart.series, strict=True)
        for x, y, is_grey in zip(trace.x, trace.y, series.undecided, strict=False)
        if is_grey
    ]
    if points:
        x, y, symbols = zip(*points, strict=True)
        marker = {"color": UNDECIDED, "size": 8, "symbol": symbols}
        figure.add_trace(
            go.Scatter(name=NO_VERDICT, x=x, y=y, mode="markers", marker=marker, hoverinfo="skip")
        )


def _heat(heat: HeatMap) -> go.Figure:
    figure = go.Figure(
        go.Heatmap(
            x=list(heat.x),
            y=list(heat.y),
            z=[[_finite(value) for value in row] for row in heat.z],
            colorscale="Viridis",
            zmin=_finite(heat.low),
            zmax=_finite(heat.high),
            colorbar={"title": {"text": heat.unit}},
            texttemplate="%{z:.3~g}",
            hovertemplate="%{x}, %{y}: %{z:.4~g}<extra></extra>",
        )
    )
    figure.update_layout(
        xaxis={"title": _title(heat.x_label, 40), "type": "category", "automargin": True},
        yaxis={"title": _title(heat.y_label, 30), "type": "category", "automargin": True},
    )
    return figure


def _title(label: str, columns: int) -> dict[str, Any]:
    """Returns the title of an axis in lines that fit a phone."""
    return {"text": "<br>".join(textwrap.wrap(label, columns)), "font": {"size": 13}}


def _offset(series: Sequence[Series], idx: int) -> float:
    """Returns the distance of a series from its category's middle, so that none covers another.

    Expected values are in the middle of the measured ones next to them.
    """
    names = list(dict.fromkeys(one.colour for one in series))
    width = 0.8 / len(names)
    middle = (names.index(series[idx].colour) + 0.5) * width - 0.4
    offsets = {"expected": -DODGE, "measured": 0.0, "variant": DODGE}
    return middle + offsets[series[idx].kind] * width


def _decades(chart: Chart, axis: str) -> float:
    values = _positive(chart, axis)
    return math.log10(max(values) / min(values)) if values else 0.0


def _positive(chart: Chart, axis: str) -> list[float]:
    """Returns the positive numbers on an axis."""
    return [
        float(value)
        for one in chart.series
        for value in (one.x if axis == "x" else one.y)
        if isinstance(value, int | float) and math.isfinite(value) and value > 0.0
    ]


def _log_ticks(chart: Chart, axis: str) -> dict[str, Any]:
    """Returns ticks at 1, 2 and 5 of each decade, or at each power of ten of a wide axis.

    Plotly labels the ticks between powers of ten with their first digit alone.
    """
    values = _positive(chart, axis)
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    digits = (1, 2, 5) if _decades(chart, axis) < DECADES_MAX else (1,)
    ticks = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
    return {"tickvals": ticks, "ticktext": [thousands(tick) for tick in ticks]}


def _beyond(end: float, middle: float) -> float | None:
    return end - middle if math.isfinite(end) and math.isfinite(middle) else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def plotly_script() -> str:
    """Returns the text of the Plotly library."""
    text: str = get_plotlyjs()
    return text

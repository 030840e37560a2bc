"""A picture of a network: hosts below, a row for each tier of switches, links coloured by rate.

Hosts with the same links are one box if there are many. A network whose switches are all in one
tier and joined among themselves (a ring, a torus of GPUs) is drawn as a circle.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Curve

from rampmeter.plots.layout import (
    CHARACTER,
    LinkLine,
    NodeBox,
    is_circle,
    place_in_circle,
    place_in_rows,
)
from rampmeter.plots.style import PALETTE, house_style, new_figure

HOSTS_MAX: Final = 24
"""Maximum number of hosts with a separate box each."""
WIRES_MANY: Final = 100
"""Maximum number of lines that are not drawn thinner."""
COLOURS: Final = ("#F2F2F2", "#CFE3F2", "#BFE5D8", "#F6DFC3", "#E8D3E1")
"""Fills of hosts and of the tiers of switches."""
LINKS_SHOWN: Final = 4
"""Parallel links of one rate that are drawn apart; more are one line with their number."""
APART: Final = 0.045
"""Inches between parallel links."""


def topology(network: Mapping[str, Any], *, title: str = "") -> Figure:
    """Draws the nodes and links of `Plan.drawing`."""
    boxes, wires = _boxes(network)
    for wire in wires:
        a, b = wire.ends
        boxes[a].near.append(b)
        boxes[b].near.append(a)
    is_round = is_circle(boxes, wires)
    width, height = place_in_circle(boxes) if is_round else place_in_rows(boxes, wires)
    rates = sorted({wire.gbps for wire in wires}, reverse=True)
    with house_style():
        figure, axes = new_figure(width + 0.3, height + 0.55, is_exact=True)
        axes.set_axis_off()
        axes.set_xlim(-0.15, width + 0.15)
        axes.set_ylim(-0.1, height + 0.1)
        axes.set_aspect("equal")
        thin = min(1.0, math.sqrt(WIRES_MANY / len(wires)))
        for wire, shifts in _apart(wires):
            weight = thin * _weight(rates.index(wire.gbps), rates)
            _draw_wire(axes, boxes, wire, rates, (weight, shifts), is_circle=is_round)
        for box in boxes:
            _draw_box(axes, box)
        _legend(figure, rates, boxes, title)
    return figure


def _boxes(network: Mapping[str, Any]) -> tuple[list[NodeBox], list[LinkLine]]:
    """Returns the boxes, hosts first, and the wires that join them."""
    hosts: Sequence[str] = network["hosts"]
    links = defaultdict[int, list[tuple[int, float]]](list)
    for link in network["links"]:
        a, b = link["ends"]
        links[a].append((b, link["gbps"]))
        links[b].append((a, link["gbps"]))
    groups: dict[object, list[int]] = defaultdict(list)
    for host in range(len(hosts)):
        alike = tuple(sorted(links[host])) if len(hosts) > HOSTS_MAX else host
        groups[alike].append(host)
    boxes: list[NodeBox] = []
    place: dict[int, int] = {}
    for members in groups.values():
        for host in members:
            place[host] = len(boxes)
        boxes.append(NodeBox(_group(hosts, members), 0, len(members)))
    for number, switch in enumerate(network["switches"]):
        place[len(hosts) + number] = len(boxes)
        boxes.append(NodeBox(switch["name"], switch["tier"]))
    counts = Counter(
        (*sorted((place[link["ends"][0]], place[link["ends"][1]])), link["gbps"])
        for link in network["links"]
    )
    # A box of several hosts has the links of one of them.
    wires = [
        LinkLine((a, b), gbps, max(1, n // (boxes[a].n if boxes[a].tier == 0 else 1)))
        for (a, b, gbps), n in counts.items()
    ]
    return boxes, wires


def _group(hosts: Sequence[str], members: Sequence[int]) -> str:
    """Returns the label of hosts with the same links."""
    names = [hosts[host] for host in members]
    if len(names) == 1:
        return names[0]
    is_run = members[-1] - members[0] == len(members) - 1
    dash = " to " if is_run else ", ..., "
    return f"{names[0]}{dash}{names[-1]}\n{len(names)} hosts"


def _apart(wires: Iterable[LinkLine]) -> Iterator[tuple[LinkLine, list[float]]]:
    """Yields each wire with the distances of its links from the line between the two boxes.

    Links of several rates between the same boxes have separate places, as those of one rate have.
    """
    between: dict[tuple[int, int], list[LinkLine]] = defaultdict(list)
    for wire in wires:
        between[wire.ends].append(wire)
    for parallel in between.values():
        shown = [wire.n if wire.n <= LINKS_SHOWN else 1 for wire in parallel]
        middle, first = (sum(shown) - 1) / 2, 0
        for wire, n_shown in zip(parallel, shown, strict=True):
            yield wire, [(first + number - middle) * APART for number in range(n_shown)]
            first += n_shown


def _draw_box(axes: Axes, box: NodeBox) -> None:
    low = (box.x - box.width / 2, box.y - box.height / 2)
    colour = COLOURS[min(box.tier, len(COLOURS) - 1)]
    patch = FancyBboxPatch(
        low,
        box.width,
        box.height,
        boxstyle=f"round,pad=0,rounding_size={min(box.width, box.height) / 4}",
        facecolor=colour,
        edgecolor="#404040",
        linewidth=0.6,
        zorder=3,
    )
    axes.add_patch(patch)
    if box.style != "none":
        rotation = 90 if box.style == "up" else 0
        axes.text(
            box.x,
            box.y,
            box.label,
            fontsize=7,
            ha="center",
            va="center",
            rotation=rotation,
            zorder=4,
        )


def _draw_wire(
    axes: Axes,
    boxes: Sequence[NodeBox],
    wire: LinkLine,
    rates: Sequence[float],
    style: tuple[float, Sequence[float]],
    *,
    is_circle: bool,
) -> None:
    """Draws the links of a wire with the width and the shifts of `style`.

    Links in a row are arcs, of which an outer one includes the inner ones.
    """
    a, b = (boxes[end] for end in wire.ends)
    colour = PALETTE[rates.index(wire.gbps) % len(PALETTE)]
    weight, shifts = style
    is_arc = a.tier == b.tier and not is_circle
    length = math.hypot(b.x - a.x, b.y - a.y) or 1.0
    for shift in shifts:
        if is_arc:
            rise = 0.25 + 0.12 * math.sqrt(abs(a.x - b.x)) + shift
            top = a.y + a.height / 2
            out = shift if b.x > a.x else -shift
            left, right = a.x - out, b.x + out
            points = [(left, top), (left, top + rise), (right, top + rise), (right, top)]
            codes = [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
            path = Curve(points, codes)
        else:
            x, y = shift * (b.y - a.y) / length, shift * (a.x - b.x) / length
            start, end = (a.x + x, a.y + y), (b.x + x, b.y + y)
            path = Curve([start, end], [Curve.MOVETO, Curve.LINETO])
        axes.add_patch(
            PathPatch(
                path,
                facecolor="none",
                edgecolor=colour,
                linewidth=weight,
                alpha=0.75,
                zorder=2,
            )
        )
    if wire.n > LINKS_SHOWN:
        x = shifts[0] * (b.y - a.y) / length
        place = ((a.x + b.x) / 2 + x, (a.y + b.y) / 2)
        axes.text(
            *place,
            f"{wire.n}x",
            fontsize=6,
            ha="center",
            va="center",
            zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )


def _weight(rank: int, rates: Sequence[float]) -> float:
    """Returns the width of a line; the fastest links have the widest."""
    return 1.4 - 0.8 * rank / max(1, len(rates) - 1) if len(rates) > 1 else 0.8


def _legend(figure: Figure, rates: Sequence[float], boxes: Iterable[NodeBox], title: str) -> None:
    handles = [
        Line2D(
            [],
            [],
            color=PALETTE[rank % len(PALETTE)],
            linewidth=_weight(rank, rates),
            label=f"{gbps:g} Gbit/s",
        )
        for rank, gbps in enumerate(rates)
    ]
    # Rows without labels get their number of boxes as text.
    hidden = Counter(box.tier for box in boxes if box.style == "none")
    for tier, n in sorted(hidden.items()):
        what = "boxes of hosts" if tier == 0 else f"switches of tier {tier}"
        handles.append(Line2D([], [], linestyle="", label=f"{n} {what}"))
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = int(figure.get_figwidth() / (CHARACTER * longest + 0.4))
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=min(4, max(1, columns)),
        title=title or None,
        alignment="left",
        borderpad=0.2,
        columnspacing=1.3,
        handletextpad=0.5,
    )

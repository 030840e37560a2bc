"""Places of the nodes of a network: a row for each tier, or a circle. Lengths are in inches."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

WIDTH_MAX: Final = 12.0
"""Inches. Wider rows have vertical labels, or none if still too wide."""
CHARACTER: Final = 0.066
"""Inches of a character of a label at 7 points."""
GAP: Final = 0.1
ROW: Final = 0.95
"""Inches between tiers."""
HEIGHT: Final = 0.2
"""Inches of a box with a horizontal label."""
MARK: Final = 0.09
"""Inches of a node without a label."""
SWEEPS: Final = 4


@dataclass
class NodeBox:
    """A node of the picture: a switch, a host, or hosts with the same links."""

    label: str
    tier: int
    n: int = 1
    """Number of nodes that it represents."""
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = HEIGHT
    style: str = "across"
    """The label's direction: `across`, `up`, or `none`."""
    near: list[int] = field(default_factory=list)
    """Boxes to which it has links."""


@dataclass(frozen=True)
class LinkLine:
    """Line of the picture: all links of one rate between two boxes."""

    ends: tuple[int, int]
    gbps: float
    n: int
    """Links, of each host of a box of several."""


def is_circle(boxes: Sequence[NodeBox], wires: Iterable[LinkLine]) -> bool:
    """Returns true if the switches are in one tier and joined among themselves."""
    switches = [at for at, box in enumerate(boxes) if box.tier > 0]
    across = [w for w in wires if all(boxes[end].tier > 0 for end in w.ends)]
    is_flat = all(box.tier <= 1 for box in boxes)
    return is_flat and len(switches) > 3 and len(across) >= len(switches) - 1


def _size(boxes: Iterable[NodeBox], width_max: float) -> float:
    """Sets the size of a row's boxes; returns the width of the row."""
    row = list(boxes)
    for style in ("across", "up", "none"):
        for box in row:
            lines = box.label.split("\n")
            long = max(len(line) for line in lines) * CHARACTER + 0.1
            short = HEIGHT + 0.12 * (len(lines) - 1)
            sizes = {"across": (long, short), "up": (short, long), "none": (MARK, MARK)}
            box.style = style
            box.width, box.height = sizes[style]
        total = sum(box.width + GAP for box in row) - GAP
        if total <= width_max:
            return total
    # Marks alone, closer together.
    scale = width_max / total
    for box in row:
        box.width = box.height = MARK * scale
    return width_max


def place_in_rows(boxes: Sequence[NodeBox], wires: Iterable[LinkLine]) -> tuple[float, float]:
    """Places boxes in a row for each tier; returns width and height of the picture."""
    tiers = sorted({box.tier for box in boxes})
    rows = [[box for box in boxes if box.tier == tier] for tier in tiers]
    width = max(3.0, *(_size(row, WIDTH_MAX) for row in rows))
    for row in rows:
        _spread(row, width)
    for sweep in range(SWEEPS):
        for at, row in enumerate(rows):
            # Hosts stay in the order of their numbers at the last.
            if at == 0 and (sweep == SWEEPS - 1 or len(rows) == 1):
                continue
            others = rows[at + 1 :] if at == 0 else rows[:at]
            neighbours = {id(box): box for other in others for box in other}
            _align(row, boxes, neighbours, width)
    arcs = {
        boxes[wire.ends[0]].tier
        for wire in wires
        if boxes[wire.ends[0]].tier == boxes[wire.ends[1]].tier
    }
    y = 0.0
    for tier, row in zip(tiers, rows, strict=True):
        height = max(box.height for box in row)
        for box in row:
            box.y = y + height / 2
        y += height + ROW + (0.35 if tier in arcs else 0.0)
    return width, y - ROW


def _spread(row: Sequence[NodeBox], width: float) -> None:
    """Places boxes over the width, with equal gaps."""
    gap = (width - sum(box.width for box in row)) / len(row)
    x = gap / 2
    for box in row:
        box.x = x + box.width / 2
        x += box.width + gap


def _align(
    row: list[NodeBox], boxes: Sequence[NodeBox], others: Mapping[int, NodeBox], width: float
) -> None:
    """Orders boxes by the mean place of their neighbours among `others`, and moves them there."""

    def centre(box: NodeBox) -> float:
        near = [boxes[at].x for at in box.near if id(boxes[at]) in others]
        return sum(near) / len(near) if near else box.x

    targets = [(centre(box), box) for box in row]
    row.sort(key=lambda box: next(x for x, other in targets if other is box))
    targets.sort(key=lambda pair: pair[0])
    if targets[-1][0] - targets[0][0] < width / 2:
        _spread(row, width)
        return
    gap = min(GAP, (width - sum(box.width for box in row)) / len(row))
    x = 0.0
    for place, box in targets:
        box.x = max(place, x + box.width / 2)
        x = box.x + box.width / 2 + gap
    # Boxes too far to the right move back.
    x = width
    for box in reversed(row):
        box.x = min(box.x, x - box.width / 2)
        x = box.x - box.width / 2 - gap


def place_in_circle(boxes: Sequence[NodeBox]) -> tuple[float, float]:
    """Places switches on a circle with their hosts outside; returns width and height."""
    switches = [at for at, box in enumerate(boxes) if box.tier > 0]
    _size((boxes[at] for at in switches), math.inf)
    hosts = [box for box in boxes if box.tier == 0]
    _size(hosts, math.inf)
    widest = max(box.width for box in boxes)
    radius = max(1.0, len(switches) * (widest + GAP) / (2 * math.pi))
    outer = radius + max(0.45, widest * 0.8)
    for number, at in enumerate(switches):
        angle = math.pi / 2 - 2 * math.pi * number / len(switches)
        boxes[at].x, boxes[at].y = radius * math.cos(angle), radius * math.sin(angle)
        own = [boxes[near] for near in boxes[at].near if boxes[near].tier == 0]
        step = 2 * math.pi / len(switches) / (len(own) + 1)
        for place, box in enumerate(own):
            turned = angle - (place - (len(own) - 1) / 2) * step
            box.x, box.y = outer * math.cos(turned), outer * math.sin(turned)
    left = min(box.x - box.width / 2 for box in boxes)
    low = min(box.y - box.height / 2 for box in boxes)
    for box in boxes:
        box.x, box.y = box.x - left, box.y - low
    width = max(box.x + box.width / 2 for box in boxes)
    return width, max(box.y + box.height / 2 for box in boxes)

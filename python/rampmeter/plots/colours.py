"""Colours, markers and line styles of transports, the same in every figure.

Each transport has a colour, a marker and a line style of its own, so that figures are readable in
grey too. Series of other names have those that no transport of the figure has.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Final


@dataclass(frozen=True)
class Look:
    """Colour, marker and line style of a series."""

    idx: int
    colour: str
    marker: str
    line: Any


UNDECIDED: Final = "#A6A6A6"
"""The colour of measured points whose values have no verdict yet."""
NO_VERDICT: Final = "no verdict yet"
"""The legend entry of points in that colour."""
PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito."""
COLOURS: Final = (
    *PALETTE,
    *("#882255", "#332288", "#8C6D31", "#999933", "#44AA99", "#661100", "#6699CC", "#AA4499"),
    *("#DDAA77", "#7F7F7F", "#B22222"),
)
"""The palette, then darker and lighter colours for further series."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "p", "h", "<", ">", "*", "d", "8", "H")
LINES: Final = ("-", "--", "-.", ":")
DASHES: Final = (*LINES, (0, (6, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 2.5)))
TRANSPORTS: Final = (
    *("dcpim", "homa", "ndp", "phost", "pfabric", "dctcp", "tcp", "hpcc", "sird", "fastpass"),
    *("cosy", "homa-aeolus", "pias", "hyline", "capton", "fastpod", "ideal", "python"),
)
"""Names of transports, in the order of their colours."""


def looks(names: Sequence[str]) -> list[Look]:
    """Returns a different look for each of the names of a figure's series, in their order.

    The first series of a transport has the transport's look: `dcpim`, `dcPIM, 4 rounds`.
    """
    found: dict[int, int] = {}
    for place, name in enumerate(names):
        head = re.split(r"[:,(]", name)[0].strip().lower().replace(" ", "-")
        idx = TRANSPORTS.index(head) if head in TRANSPORTS else -1
        if idx >= 0 and idx not in found.values():
            found[place] = idx
    taken = set(found.values())
    free = (idx for idx in count() if idx not in taken)
    return [look(found[place] if place in found else next(free)) for place in range(len(names))]


def look(idx: int) -> Look:
    """Returns the look of a number; markers shift when the colours repeat."""
    rounds, colour = divmod(idx, len(COLOURS))
    marker = MARKERS[(idx + rounds) % len(MARKERS)]
    return Look(idx, COLOURS[colour], marker, DASHES[idx % len(DASHES)])


def markers(names: Sequence[str]) -> dict[str, str]:
    """Returns the marker of each of some names, such as those of workloads."""
    distinct = dict.fromkeys(chain(names))
    return {name: MARKERS[idx % len(MARKERS)] for idx, name in enumerate(distinct)}

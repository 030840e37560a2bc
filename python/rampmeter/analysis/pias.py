"""Thresholds of PIAS for any distribution of message sizes.

A link of load `rho` has one queue for each class, with the rate that higher classes do not use.
Class l carries the share w_l of all bytes, and c_l is the sum of the shares of classes 1 to l. A
message with s bytes in class l is there for s / (1 - rho c_l) on average, in units of the link's
rate: the class is an M/M/1 queue, or any whose messages share the rate evenly. The mean time of a
message, relative to its mean size, is the sum of w_l / (1 - rho c_l).

With y_l = 1 - rho c_l that is the sum of (y_(l-1) / y_l - 1) / rho. The product of these ratios is
1 / (1 - rho) for any thresholds, so that the sum is minimal if all ratios are equal: y_l = (1 -
rho)^(l / K) for K classes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from os import PathLike, fspath

from rampmeter import _core
from rampmeter.on_demand import np
from rampmeter.plan.base import Sizes
from rampmeter.text.arguments import number_argument
from rampmeter.text.toml import plain

UNIT = 1_460
"""Bytes of a packet, the unit of thresholds."""


@dataclass(frozen=True)
class _Segment:
    """Sizes from `start` to `end` bytes, and the share of longer messages at both."""

    start: float
    end: float
    more: float
    more_at_end: float

    @property
    def bytes(self) -> float:
        """Mean number of bytes of a message in this segment."""
        return (self.end - self.start) * (self.more + self.more_at_end) / 2

    def before(self, size: float) -> float:
        """Returns the mean bytes of the part up to `size`, which is in the segment or beyond."""
        length = min(size, self.end) - self.start
        return length * (self.more - self._slope() * length / 2)

    def at(self, target: float) -> float:
        """Returns the size up to which there are `target` bytes of the segment."""
        root = sqrt(max(self.more**2 - 2 * self._slope() * target, 0.0))
        return self.start + 2 * target / (self.more + root)

    def _slope(self) -> float:
        return (self.more - self.more_at_end) / (self.end - self.start)


def pias_thresholds(
    sizes: Sizes,
    load: float,
    *,
    packet: int = 1460,
    classes: int = 8,
    base: str | PathLike[str] = ".",
) -> list[int]:
    """Returns thresholds for `rm.Pias(thresholds=...)` that minimise the mean time of messages.

    `sizes` is as in plans: a distribution's name or a table; files are relative to `base`.
    `load` is that of the most loaded links, from 0 to 1, both excluded. `packet` is the payload of
    a full packet in bytes. Returns `classes` - 1 ascending numbers of packets of 1460 bytes.

    >>> pias_thresholds({"fixed": 1_460_000}, load=0.75, classes=2)
    [667]
    """
    number_argument("load", load, 0.0, 1.0, is_open=True)
    number_argument("classes", classes, 2, 8, is_whole=True)
    shares = [(1.0 - (1.0 - load) ** (level / classes)) / load for level in range(1, classes)]
    segments = _segments(sizes, packet, base)
    return [round(_size(segments, share) / UNIT) for share in shares]


def pias_mean_time(
    sizes: Sizes,
    load: float,
    thresholds: Sequence[int],
    *,
    packet: int = 1460,
    base: str | PathLike[str] = ".",
) -> float:
    """Returns the mean completion time with these thresholds over that on an idle link; see above.

    The arguments are those of `pias_thresholds`; `thresholds` are in packets.
    """
    segments = _segments(sizes, packet, base)
    total = sum(segment.bytes for segment in segments)
    carried = [0.0, *(_bytes(segments, t * UNIT) / total for t in thresholds), 1.0]
    return float(sum((c - before) / (1.0 - load * c) for before, c in pairwise(carried)))


def _segments(sizes: Sizes, packet: int, base: str | PathLike[str]) -> list[_Segment]:
    table = sizes if isinstance(sizes, str) else {key: plain(value) for key, value in sizes.items()}
    points, is_linear = _core.distribution_points(json.dumps(table), fspath(base), packet)
    segments = [_Segment(0.0, points[0][0], 1.0, 1.0)] if points[0][0] > 0.0 else []
    for (start, below), (end, cdf) in pairwise(points):
        if end > start and below < 1.0:
            segments.append(_Segment(start, end, 1.0 - below, 1.0 - (cdf if is_linear else below)))
    return segments


def _bytes(segments: Sequence[_Segment], size: float) -> float:
    """Returns the mean number of bytes of a message before its byte `size`."""
    return sum(segment.before(size) for segment in segments if segment.start < size)


def _size(segments: Sequence[_Segment], share: float) -> float:
    """Returns the size below which a message has the share `share` of all bytes."""
    sums = np.cumsum([segment.bytes for segment in segments])
    target = share * float(sums[-1])
    place = min(int(np.searchsorted(sums, target)), len(segments) - 1)
    segment = segments[place]
    return segment.at(target - (float(sums[place]) - segment.bytes))

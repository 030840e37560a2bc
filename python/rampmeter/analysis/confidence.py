"""Confidence intervals over independent replications, e.g. the runs of several seeds.

The values of one quantity, one from each run, are independent and alike in distribution, so
Student's t determines the interval of their mean. It applies to any quantity: if the values are the
99th percentiles of runs, it is the interval of a run's expected 99th percentile.

With `--precision` seeds are added until the interval is small (`next_count`). Stopping at the first
interval that happens to be small makes such intervals a little optimistic. So there is a minimum
number of seeds (`SEEDS_FIRST`), and the spread decides how many are added.

Two values determine their spread badly, and Student's t with one degree of freedom is 12.7. Their
intervals are valid, but so wide that they seldom separate transports. Every result with intervals
over two seeds has the warning of `two_seeds`.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from rampmeter import _core
from rampmeter.text.cautions import Caution
from rampmeter.text.numbers import NONE, number
from rampmeter.text.text_table import joined

LEVEL: Final = 0.95
"""Share of intervals that contain the true mean."""
SEEDS_FIRST: Final = 5
"""Minimum number of seeds of each point before an interval ends the search for more."""
SEEDS_MAX: Final = 30
"""Maximum number of seeds of each point, unless there is another limit."""
GROWTH_MAX: Final = 2
"""Maximum factor by which a further round of runs increases the number of seeds."""
TWO_SEEDS: Final = "two-seeds"
"""Code of the warning of intervals over two seeds."""


class Interval(NamedTuple):
    """A mean with its confidence interval.

    >>> print(Interval(1.2341, 0.0123, 5), Interval(1.5, None, 1))
    1.234 ± 0.012 1.500
    """

    mean: float
    """The mean of the values; NaN of none."""
    ci: float | None
    """Half the width of the interval of the mean; `None` of fewer than two values."""
    n: int
    """Values that are numbers."""

    def __str__(self) -> str:
        return self.text()

    def text(self, places: int = 3) -> str:
        """Returns the mean and its half width, or a dash if there is no mean."""
        return joined(*self.texts(places))

    def texts(self, places: int = 3) -> tuple[str, str]:
        """Returns the mean, or a dash if there is none, and its half width, which may be empty."""
        if self.ci is None or math.isnan(self.mean):
            return (number(self.mean, places) if self.n else NONE), ""
        return number(self.mean, places), number(self.ci, places)

    @property
    def relative(self) -> float | None:
        """The half width over the absolute mean; `None` if there is no interval."""
        if self.ci is None:
            return None
        if self.ci == 0.0:
            return 0.0
        return self.ci / abs(self.mean) if self.mean else math.inf

    def is_within(self, precision: float) -> bool:
        """Returns true if the half width is at most `precision` times the mean."""
        relative = self.relative
        return relative is not None and relative <= precision


def interval(values: Iterable[float | None], level: float = LEVEL) -> Interval:
    """Returns the mean of independent values with its interval by Student's t.

    `None` and NaN are omitted and do not count. Raises `ValueError` for a level that is not between
    0 and 1.

    >>> interval([1.0, 2.0, 3.0])
    Interval(mean=2.0, ci=2.484..., n=3)
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level: expected between 0 and 1, got {level}")
    numbers = [float(v) for v in values if v is not None and not math.isnan(v)]
    n = len(numbers)
    if n == 0:
        return Interval(math.nan, None, 0)
    if not all(map(math.isfinite, numbers)):
        return Interval(math.inf, None, n)
    # The sums do not depend on the order of values.
    mean = math.fsum(numbers) / n
    if n == 1:
        return Interval(mean, None, 1)
    variance = math.fsum((value - mean) ** 2 for value in numbers) / (n - 1)
    return Interval(mean, _core.student_t(n - 1, level) * math.sqrt(variance / n), n)


def two_seeds(n_seeds: int) -> list[Caution]:
    """Returns the warning of intervals over two seeds; none of another number of seeds.

    >>> two_seeds(3)
    []
    """
    if n_seeds != 2:
        return []
    half = _core.student_t(n_seeds - 1, LEVEL) / math.sqrt(n_seeds)
    of_more = _core.student_t(SEEDS_FIRST - 1, LEVEL) / math.sqrt(SEEDS_FIRST)
    text = (
        f"seeds: intervals over two seeds are about {half / of_more:.0f} times as wide as those "
        f"over {SEEDS_FIRST}; simulate at least {SEEDS_FIRST} seeds"
    )
    return [Caution(text, TWO_SEEDS, {"seeds": n_seeds, "seeds_wanted": SEEDS_FIRST})]


def next_count(
    points: Sequence[Interval], precision: float, *, limit: int = SEEDS_MAX
) -> int | None:
    """Returns the next number of values; `None` if there are enough.

    There are enough if all intervals are within `precision`, or if there are `limit` values. The
    spread determines the number that is needed; a round at most doubles it.

    >>> next_count([Interval(1.0, 0.01, 5)], 0.02), next_count([Interval(1.0, 0.5, 5)], 0.02)
    (None, 10)
    """
    wide = [point for point in points if not point.is_within(precision)]
    if not wide:
        return None
    have = max(point.n for point in wide)
    relatives = [point.relative for point in wide]
    needed = [
        math.inf if relative is None else point.n * (relative / precision) ** 2
        for point, relative in zip(wide, relatives, strict=True)
    ]
    number = max(have + 1, min(max(needed), have * GROWTH_MAX, limit))
    return math.ceil(number) if have < limit else None

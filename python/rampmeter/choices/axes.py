"""Axes and their points, for sweeps and figures of papers.

An axis is a list of choices, and a choice sets one or several keys of a plan. A grid is the product
of its axes; keys that are zipped, listed points and random samples are one axis each. So they can
be combined with each other.
"""

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rampmeter.plan.plan import Override
from rampmeter.text.locations import Location
from rampmeter.text.toml import TomlValue, literal

POINTS_MAX: Final = 1_000_000
"""Maximum number of points of one sweep or grid."""
SIGNIFICANT: Final = 6
"""Significant digits of random numbers, so that tables show all of them."""


@dataclass(frozen=True)
class Choice:
    """One value of an axis."""

    id: Any
    """Name in templates and tables; the value if it sets a single key."""
    settings: tuple[Override, ...]
    """The keys that it sets."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Descriptions, such as the label and the flows of a figure's runs."""

    def __format__(self, spec: str) -> str:
        return format(self.id, spec)


@dataclass(frozen=True)
class Axis:
    """A name with its choices, in their order."""

    name: str
    choices: tuple[Choice, ...]

    @classmethod
    def of_values(cls, key: str, values: Sequence[TomlValue], where: Location) -> "Axis":
        """Returns the axis of a single key. Raises `PlanError` if two values are the same."""
        _check_differ([literal(value) for value in values], where.at(key))
        return cls(key, tuple(Choice(value, ((key, value),)) for value in values))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that its choices set."""
        return tuple(dict.fromkeys(key for choice in self.choices for key, _ in choice.settings))


def zipped_axis(columns: Mapping[str, Sequence[TomlValue]], where: Location) -> Axis:
    """Returns an axis along which several keys change together; their lists have equal lengths."""
    lengths = {key: len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{n} of {key}" for key, n in lengths.items())
        raise where.error(expected="as many values of each key", got=got)
    rows = zip(*columns.values(), strict=True)
    return listed_axis([dict(zip(columns, row, strict=True)) for row in rows], where)


def listed_axis(points: Sequence[Mapping[str, TomlValue]], where: Location) -> Axis:
    """Returns an axis of points, each of which sets the same keys."""
    keys = list(points[0]) if points else []
    for point in points:
        if set(point) != set(keys):
            names = [", ".join(sorted(some)) or "none" for some in (keys, point)]
            raise where.error(expected=f"points of the keys {names[0]}", got=names[1])
    settings = [tuple((key, point[key]) for key in keys) for point in points]
    texts = [", ".join(f"{key}={literal(value)}" for key, value in one) for one in settings]
    _check_differ(texts, where)
    return Axis(",".join(keys), tuple(map(Choice, texts, settings)))


@dataclass(frozen=True)
class Uniform:
    """Uniformly distributed numbers from `low` to `high`; whole ones if both are whole."""

    low: float
    high: float
    is_log: bool = False
    """True if the logarithm is uniform instead of the number."""

    def __str__(self) -> str:
        return f"{'log-' * self.is_log}uniform({self.low}, {self.high})"

    def draw(self, source: random.Random) -> float:
        """Returns a number. It uses exactly one draw of `source`."""
        share = source.random()
        if isinstance(self.low, int) and isinstance(self.high, int):
            # Each whole number represents the interval up to the next one.
            return min(math.floor(self._at(share, self.low, self.high + 1)), self.high)
        value = float(f"{self._at(share, self.low, self.high):.{SIGNIFICANT}g}")
        return min(max(value, self.low), self.high)

    def _at(self, share: float, low: float, high: float) -> float:
        if self.is_log:
            return float(low * (high / low) ** share)
        return low + (high - low) * share


def random_axis(
    columns: Mapping[str, "Uniform | Sequence[TomlValue]"], number: int, seed: int, where: Location
) -> Axis:
    """Returns an axis of random points. A larger number has the points of a smaller one first."""
    source = random.Random(seed)
    points = []
    for _ in range(number):
        point: dict[str, TomlValue] = {}
        for key, values in columns.items():
            if isinstance(values, Uniform):
                point[key] = values.draw(source)
            else:
                point[key] = values[math.floor(source.random() * len(values))]
        points.append(point)
    # Points that are drawn twice are run once.
    unique = {literal(point): point for point in points}
    return listed_axis(list(unique.values()), where)


def product(axes: Sequence[Axis], where: Location) -> Iterator[tuple[Choice, ...]]:
    """Returns every combination of choices; the last axis varies fastest.

    Raises `PlanError` if two axes set the same key, or if there are too many points.
    """
    seen: set[str] = set()
    for axis in axes:
        for key in axis.keys:
            if key in seen:
                raise where.error(expected=f"{key} on one axis", got="two")
            seen.add(key)
    n_points = math.prod(len(axis.choices) for axis in axes)
    if n_points > POINTS_MAX:
        raise where.error(expected=f"at most {POINTS_MAX} points", got=n_points)
    return itertools.product(*(axis.choices for axis in axes))


def settings_of(point: Iterable[Choice]) -> tuple[Override, ...]:
    """Returns all keys that a point sets."""
    return tuple(setting for choice in point for setting in choice.settings)


def _check_differ(texts: Sequence[str], where: Location) -> None:
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            raise where.error(expected="values that differ", got=f"{text} twice")
        seen.add(text)

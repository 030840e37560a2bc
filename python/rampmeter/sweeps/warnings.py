"""Warnings of the runs of a sweep: alike ones once, with the runs and points that have them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from rampmeter.text.cautions import Caution
from rampmeter.text.numbers import count, counted

POINTS_SHOWN: Final = 3
"""Maximum number of points that a warning names."""
RUNS, POINTS = "runs", "points"
"""Names of the values that a sweep adds: the number of runs, and the numbers of the points."""

Place: TypeAlias = Literal["point", "transport", "run"]
"""The noun of the names that a warning lists."""
RunWarnings: TypeAlias = tuple[int, str, Sequence[Caution]]
"""Number and name of a point, and the warnings of one of its runs."""


def merge(runs: Iterable[RunWarnings], place: Place = "point") -> list[Caution]:
    """Returns the distinct warnings of runs; those that differ in numbers alone are one.

    The text is that of the first run, followed by the runs and points concerned, and the ranges of
    numbers. `values` are those of the first run, and `runs` and `points`. Instead of points runs
    may be grouped by transport, or stand for themselves; `place` is the noun.
    """
    alike: dict[tuple[Any, ...], list[Caution]] = {}
    points: dict[tuple[Any, ...], dict[int, str]] = {}
    total = 0
    for number, name, cautions in runs:
        total += 1
        seen: Counter[tuple[Any, ...]] = Counter()
        for caution in cautions:
            kind = _kind(caution)
            # A run may have several warnings of a kind, such as those about several links.
            kind = (*kind, seen[kind])
            seen[kind[:-1]] += 1
            alike.setdefault(kind, []).append(caution)
            points.setdefault(kind, {})[number] = name
    return [_merged(cautions, total, points[kind], place) for kind, cautions in alike.items()]


def _kind(caution: Caution) -> tuple[Any, ...]:
    """Returns code and names of a warning; the text of one without code."""
    if not caution.code:
        return (str(caution),)
    names = (f"{key}={of}" for key, of in caution.values.items() if not isinstance(of, int | float))
    return (caution.code, *names)


def _merged(
    alike: Sequence[Caution], total: int, points: Mapping[int, str], place: Place
) -> Caution:
    first = alike[0]
    runs = f"{count(len(alike))} of {counted(total, 'run')}"
    within = {"run": "", "point": " at ", "transport": " of "}[place]
    within += counted(len(points), place) if within else ""
    places = f"{runs}{within}: {_names(list(points.values()))}"
    text = "; ".join([places, *_ranges(alike)])
    values = {**first.values, RUNS: len(alike), POINTS: list(points)}
    return Caution(f"{first} ({text})", first.code, values)


def _ranges(alike: Sequence[Caution]) -> Iterator[str]:
    """Yields the ranges of the numbers in which warnings differ."""
    for name, value in alike[0].values.items():
        if not isinstance(value, int | float):
            continue
        numbers = [one.values[name] for one in alike]
        low, high = map(_number, (min(numbers), max(numbers)))
        if low != high:
            yield f"{name} {low} to {high}"


def _number(value: float) -> str:
    return count(int(value)) if float(value).is_integer() else f"{value:.3g}"


def _names(points: Sequence[str]) -> str:
    """Returns the names of the first points and the number of the others."""
    more = len(points) - POINTS_SHOWN
    names = "; ".join(points[:POINTS_SHOWN])
    return f"{names} and {count(more)} more" if more > 0 else names

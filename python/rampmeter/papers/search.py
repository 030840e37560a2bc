"""The highest load that a run sustains, found by bisection over a grid of loads.

Probes are ordinary runs that differ in their load. A load is sustained if a metric of its run is
at least, or at most, a number. Bisection assumes that all loads below a sustained one are sustained
too. It ends with two neighbours of the grid that have both been run: the highest sustained load
and the next one, which is not sustained.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rampmeter.choices.grammar import parse_values
from rampmeter.papers.metrics import Metric
from rampmeter.text.locations import Location
from rampmeter.text.strict_table import StrictTable

LOAD = "workload.load"
"""The key of the plan in which probes differ."""

SEARCHED: tuple[Metric, ...] = ("delivered-share", "throughput", "drop-rate", "rejected")
"""Metrics of whole runs that can decide whether a load is sustained."""


@dataclass(frozen=True)
class Search:
    """The loads to probe, and the criterion of sustained ones."""

    loads: tuple[float, ...]
    """In ascending order."""
    metric: Metric
    at_least: float | None = None
    at_most: float | None = None

    @classmethod
    def of(cls, section: StrictTable) -> "Search":
        """Reads the keys of a search; raises `PlanError` with the place and the fault."""
        metric = section.choice("metric", section.pop("metric", str), SEARCHED)
        limit, value = section.one_of("at-least", "at-most")
        loads = _loads(section.pop("loads", str), section.where.at("loads"))
        is_least = limit == "at-least"
        return cls(
            loads,
            metric,
            at_least=value if is_least else None,
            at_most=None if is_least else value,
        )

    @property
    def probes_max(self) -> int:
        """The maximum number of probes of one seed."""
        return len(self.loads).bit_length()

    def is_sustained(self, value: float) -> bool:
        """Returns true if a load is sustained with this value of the metric; false for NaN."""
        if self.at_least is not None:
            return value >= self.at_least
        return self.at_most is not None and value <= self.at_most

    def next_load(self, probed: Mapping[float, float]) -> float | None:
        """Returns the next load after these; `None` if the search is complete."""
        low, high = self._ends(probed)
        return self.loads[(low + high) // 2] if high - low > 1 else None

    def highest(self, probed: Mapping[float, float]) -> float:
        """Returns the highest sustained load; NaN if there is none or the search is incomplete."""
        low, high = self._ends(probed)
        return self.loads[low] if high - low == 1 and low >= 0 else math.nan

    def _ends(self, probed: Mapping[float, float]) -> tuple[int, int]:
        """Returns the highest load that a probe sustained and the lowest that one did not sustain.

        They are indices of `loads`; one before the first and one after the last if there is none.
        """
        low, high = -1, len(self.loads)
        for idx, load in enumerate(self.loads):
            if load not in probed:
                continue
            if self.is_sustained(probed[load]):
                low = idx
            else:
                # Higher loads are not sustained either.
                return low, idx
        return low, high


@dataclass(frozen=True)
class SearchProbes:
    """The loads that one seed of a search has probed so far, with the metric's values."""

    search: Search
    values: Mapping[float, float]
    flows: int = 0
    """Flows of all probes together."""

    @property
    def highest(self) -> float:
        """The highest load that is sustained; NaN if the search is incomplete, or none is."""
        return self.search.highest(self.values)

    @property
    def note(self) -> str:
        """Returns a note on the result; empty for most."""
        if self.search.next_load(self.values) is not None:
            return "not over"
        if math.isnan(self.highest):
            return "none is sustained"
        return "all are sustained" if self.highest == self.search.loads[-1] else ""

    def to_json(self) -> dict[str, Any]:
        """Returns the probes as plain values; NaN is `null`."""
        return {
            "metric": self.search.metric,
            "at_least": self.search.at_least,
            "at_most": self.search.at_most,
            "max_load": None if math.isnan(self.highest) else self.highest,
            "note": self.note,
            "probes": [
                {
                    "load": load,
                    "value": None if math.isnan(value) else value,
                    "is_sustained": self.search.is_sustained(value),
                }
                for load, value in sorted(self.values.items())
            ],
        }


def _loads(text: str, where: Location) -> tuple[float, ...]:
    """Loads that ascend, from a list with ranges such as `0.5..0.9:0.02`."""
    values = parse_values(text, where)
    if not isinstance(values, Sequence):
        raise where.error(expected="loads", got=repr(text))
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise where.error(expected="loads above 0", got=repr(value))
    loads = tuple(float(cast(float, value)) for value in values)
    if list(loads) != sorted(set(loads)):
        raise where.error(expected="loads in ascending order", got=repr(text))
    return loads

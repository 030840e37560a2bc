"""Claims of papers about several values, judged on the measured ones."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rampmeter.papers.expected import CellId, Claim
from rampmeter.papers.figure import Figure
from rampmeter.papers.verdict import (
    FEWER_FLOWS,
    Basis,
    Measurement,
    ValueRow,
    Verdict,
    without_value,
)


@dataclass(frozen=True)
class NearestRun:
    """Run that is nearest to the limits of a claim about any of its runs."""

    cell: CellId
    measured: Measurement
    worst: float
    """The value of the seed that is farthest from the limit."""


@dataclass(frozen=True)
class ClaimRow:
    """One line of the table of claims."""

    claim: Claim
    cells: tuple[Measurement | None, ...]
    """The measured values, in the order of the claim's cells."""
    by_seed: Mapping[int, tuple[float, ...]]
    """The values of the seeds that have all of them, in the same order."""
    verdict: Verdict
    reason: str
    """The reason why it is not judged, or a miss."""
    is_within: bool | None = None
    """True if the values meet the claim, for any number of flows; `None` if a run is missing."""
    nearest: NearestRun | None = None
    """The run by which a claim about any of its runs is judged, if one has values of all seeds."""
    lack: str = ""
    """The flows of the first run with fewer than it needs, and those that it needs."""

    @property
    def n_seeds(self) -> int:
        """The number of seeds behind the verdict."""
        return len(self.by_seed)

    @property
    def n_holding(self) -> int:
        """Number of seeds that meet the claim, each alone."""
        return sum(not describe_violation(self.claim, values) for values in self.by_seed.values())

    @property
    def measured(self) -> Measurement | None:
        """The number to which limits apply.

        It is a ratio, the largest value over the least of `alike`, or the value of the nearest run.
        """
        if self.nearest is not None:
            return self.nearest.measured
        if self.claim.kind not in ("ratio", "alike") or not self.by_seed:
            return None
        return Measurement({seed: _number(self.claim, v) for seed, v in self.by_seed.items()}, 0)

    def to_json(self) -> dict[str, Any]:
        """Returns the line as plain values."""
        measured = self.measured
        return {
            "kind": self.claim.kind,
            "claim": self.claim.text,
            "source": self.claim.source,
            "cells": [
                {
                    "sub_figure": cell.sub_figure,
                    "run": cell.run,
                    "metric": cell.metric,
                    "bin": cell.bin,
                    "measured": value.to_json() if value else None,
                }
                for cell, value in zip(self.claim.cells, self.cells, strict=True)
            ],
            "expected": limits_text(self.claim),
            "published_flows": self.claim.published_flows,
            "measured": measured.to_json() if measured else None,
            "nearest": {"run": self.nearest.cell.run, "worst": self.nearest.worst}
            if self.nearest
            else None,
            "seeds": self.n_seeds,
            "seeds_holding": self.n_holding,
            "is_within": self.is_within,
            "verdict": self.verdict,
            "reason": self.reason,
        }


def claim_rows(figure: Figure, rows: Sequence[ValueRow], basis: Basis) -> list[ClaimRow]:
    """Returns the claims of a figure, judged on the rows of all its panels."""
    measured = {row.cell: row.measured for row in rows}
    lines = []
    for claim in figure.expected.claims:
        cells = tuple(measured.get(cell) for cell in claim.cells)
        by_seed = _by_seed(claim, cells)
        nearest = _nearest(claim, cells, basis.seeds)
        is_met, lack = None, ""
        if any(cell.run in basis.left_out for cell in claim.cells):
            verdict, reason = _not_judged(basis.why_left_out())
        else:
            verdict, reason = judge_claim(claim, cells, basis.seeds)
            is_met = verdict == "match"
            name, lack = _fewer_flows(figure, claim, basis)
            if lack:
                verdict, reason = FEWER_FLOWS, f"{name}: {lack}"
        lines.append(ClaimRow(claim, cells, by_seed, verdict, reason, is_met, nearest, lack))
    return lines


def _fewer_flows(figure: Figure, claim: Claim, basis: Basis) -> tuple[str, str]:
    """Returns the name of a claim's first run with fewer flows than published, and its flows.

    Both are empty without such a run.
    """
    for cell in claim.cells:
        if lack := basis.fewer_flows(figure, cell.run, claim.published_flows):
            return _name(cell), lack
    return "", ""


def judge_claim(
    claim: Claim, cells: Sequence[Measurement | None], seeds: Sequence[int]
) -> tuple[Verdict, str]:
    """Returns a verdict on the means of the seeds, with the reason of a miss.

    A cell that lacks a value of any seed is a miss. A claim about any of its cells is judged by
    the worst seed of the nearest cell, and cells without a value are not counted.
    """
    if claim.of == "any":
        return _judge_any(claim, cells, seeds)
    for cell, value in zip(claim.cells, cells, strict=True):
        if lack := without_value(value, seeds):
            return "miss", f"{_name(cell)}: {lack}"
    reason = describe_violation(claim, [value.mean for value in cells if value is not None])
    return ("miss", reason) if reason else ("match", "")


def describe_violation(claim: Claim, values: Sequence[float]) -> str:
    """Describes the violation of a claim by these values; empty without one."""
    match claim.kind:
        case "order":
            for i, (low, high) in enumerate(itertools.pairwise(values)):
                if not low <= high * (1.0 + claim.within):
                    lower, higher = map(_name, claim.cells[i : i + 2])
                    return f"{lower} {low:.4g} is above {higher} {high:.4g}"
        case "ratio" | "alike":
            number = _number(claim, values)
            if not _is_within(claim, number):
                return f"{number:.4g}, expected {limits_text(claim)}"
        case "bound" if claim.of == "any":
            if not any(_is_within(claim, value) for value in values):
                return f"no run is {limits_text(claim)}"
        case "bound":
            for cell, value in zip(claim.cells, values, strict=True):
                if not _is_within(claim, value):
                    return f"{_name(cell)} {value:.4g}, expected {limits_text(claim)}"
    return ""


def limits_text(claim: Claim) -> str:
    """Returns the expected limits as text."""
    match claim.kind:
        case "order":
            return "ascending" + (f", ±{claim.within * 100:g} %" if claim.within else "")
        case "alike":
            return f"within {claim.within * 100:g} %"
        case "ratio" | "bound":
            parts = [
                f"{sign} {limit:g}"
                for sign, limit in (("≥", claim.at_least), ("≤", claim.at_most))
                if limit is not None
            ]
            return ("any " if claim.of == "any" else "") + " and ".join(parts)


def _judge_any(
    claim: Claim, cells: Sequence[Measurement | None], seeds: Sequence[int]
) -> tuple[Verdict, str]:
    """Returns a match if the values of all seeds of some cell are within the limits."""
    nearest = _nearest(claim, cells, seeds)
    if nearest is not None and _is_within(claim, nearest.worst):
        return "match", ""
    n_without = sum(bool(without_value(cell, seeds)) for cell in cells)
    lack = f"{n_without} of {len(cells)} runs have no value of some seed" if n_without else ""
    if nearest is None:
        return "miss", lack
    value = f"{_name(nearest.cell)} {nearest.worst:.4g}, expected {limits_text(claim)}"
    return "miss", f"{value}; {lack}" if lack else value


def _nearest(
    claim: Claim, cells: Sequence[Measurement | None], seeds: Sequence[int]
) -> NearestRun | None:
    """Returns the best cell by its worst seed; `None` if no cell has values of all seeds."""
    if claim.of != "any":
        return None
    worst, best = (max, min) if claim.at_most is not None else (min, max)
    candidates = [
        NearestRun(cell, value, worst(value.values))
        for cell, value in zip(claim.cells, cells, strict=True)
        if value is not None and not without_value(value, seeds)
    ]
    return best(candidates, key=lambda one: one.worst, default=None)


def _number(claim: Claim, values: Sequence[float]) -> float:
    """Returns the number to which a ratio's or an `alike`'s limits apply; NaN if there is none."""
    if claim.kind == "alike":
        least, most = min(values), max(values)
        return most / least if least > 0.0 else (1.0 if most == least else math.inf)
    over, under = values
    return over / under if under else math.nan


def _is_within(claim: Claim, value: float) -> bool:
    """Returns true if a number is within the limits; NaN is not."""
    slack = 1e-12
    if claim.kind == "alike":
        return value <= 1.0 + claim.within + slack
    least = -math.inf if claim.at_least is None else claim.at_least
    most = math.inf if claim.at_most is None else claim.at_most
    return least - slack <= value <= most + slack


def _by_seed(claim: Claim, cells: Sequence[Measurement | None]) -> dict[int, tuple[float, ...]]:
    """Returns the values of the seeds that have one in every cell, or in any for an `any` claim."""
    values_of_cells = [cell.by_seed if cell else {} for cell in cells]
    seeds = dict.fromkeys(seed for one in values_of_cells for seed in one)
    values = {seed: tuple(one.get(seed, math.nan) for one in values_of_cells) for seed in seeds}
    suffice = any if claim.of == "any" else all
    return {seed: of for seed, of in values.items() if suffice(map(math.isfinite, of))}


def _not_judged(reason: str) -> tuple[Verdict, str]:
    return "not judged", reason


def _name(cell: CellId) -> str:
    return cell.run if cell.bin is None else f"{cell.run} [{cell.bin}]"

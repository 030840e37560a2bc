"""Published values and claims of a figure, read from `expected.toml`.

A value (`[[facts]]`) has a tolerance. A claim is of one of four kinds:

- `[[order]]`: the values of some cells ascend;
- `[[ratio]]`: one value over another is at least, or at most, a number;
- `[[bound]]`: each of some values is at least, or at most, a number; with `of = "any"`, at least
  one of them is in every seed;
- `[[alike]]`: the largest of some values is above the least by no more than a share.

A cell is a run's name, or a table with the keys `run`, `metric`, `bin` and `sub-figure`; keys that
it lacks are the claim's. A pattern such as `pareto-k1-*` selects the runs that it matches. Every
value and every claim has a source. `published-flows` is the number of flows that it was published
for, if that is not the figure's number; 0 is any number of flows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from rampmeter.papers.metrics import METRICS, Metric
from rampmeter.papers.runs import match_runs
from rampmeter.text.strict_table import StrictTable

EXPECTED = "expected.toml"

Kind: TypeAlias = Literal["order", "ratio", "bound", "alike"]


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of a measured value around the expected one."""

    value: float
    kind: Literal["absolute", "relative"]

    def allows(self, expected: float, measured: float) -> bool:
        """Returns true if the difference is within the tolerance."""
        scale = expected if self.kind == "relative" else 1.0
        return abs(measured - expected) <= self.value * abs(scale) + 1e-12


@dataclass(frozen=True)
class CellId:
    """The place of a value: sub-figure, run, metric, and size bin if it has one."""

    sub_figure: str
    run: str
    metric: Metric
    bin: int | None = None


@dataclass(frozen=True)
class ExpectedValue:
    """An expected value: published in the paper, or recorded from a run of its simulator."""

    expected: float
    tolerance: Tolerance
    source: str
    published_flows: int | None = None
    """Flows of the run for which it was published; `None` for the figure's number."""
    revision: str = ""
    """The artifact's revision of the value, if it is not the one that the figure runs."""
    is_recorded: bool = False
    """True if the value is that of a recorded run with as many flows, not a published one."""


@dataclass(frozen=True)
class Claim:
    """A paper's claim about several values."""

    kind: Kind
    text: str
    """The claim in words."""
    source: str
    cells: tuple[CellId, ...]
    """In ascending order for `order`; numerator and denominator for `ratio`."""
    at_least: float | None = None
    at_most: float | None = None
    within: float = 0.0
    """The share by which the largest value may exceed the least (`alike`), or a value the one that
    follows it (`order`)."""
    published_flows: int | None = None
    """Flows of the runs that the claim is about; `None` for the figure's number."""
    of: Literal["all", "any"] = "all"
    """The values of a bound that must be within its limits."""


@dataclass(frozen=True)
class Expectations:
    """The expected values and claims of a figure."""

    facts: Mapping[CellId, ExpectedValue]
    """Values at the judged numbers of flows."""
    reduced: Mapping[CellId, ExpectedValue]
    """Values at the reduced figure's numbers of flows."""
    reduced_flows: Mapping[str, int]
    """Number of flows of the values in `reduced`, by run."""
    claims: tuple[Claim, ...]

    def cells(self) -> list[CellId]:
        """Returns every cell that is named."""
        of_claims = [cell for claim in self.claims for cell in claim.cells]
        return [*self.facts, *self.reduced, *of_claims]


def load_expected(file: Path, run_ids: Sequence[str] = ()) -> Expectations:
    """Reads a file of expected values; raises `PlanError` with the place and the fault.

    Patterns match the runs in `run_ids`.
    """
    spec = StrictTable.from_file(file)
    facts: dict[CellId, ExpectedValue] = {}
    reduced: dict[CellId, ExpectedValue] = {}
    flows: dict[str, int] = {}
    for section in spec.tables("facts", []):
        n_flows, found = _facts(section)
        values = facts if n_flows is None else reduced
        for cell, fact in found:
            if cell in values:
                raise section.where.error(expected=f"one value for {cell}", got="a second")
            values[cell] = fact
            if n_flows is not None and flows.setdefault(cell.run, n_flows) != n_flows:
                raise section.where.at("flows").error(
                    expected=f"one number for {cell.run}", got=f"{flows[cell.run]} and {n_flows}"
                )
    claims = [
        _claim(section, kind, run_ids)
        for kind in ("order", "ratio", "bound", "alike")
        for section in spec.tables(kind, [])
    ]
    spec.reject_unread()
    claims.sort(key=lambda claim: claim.cells[0].sub_figure)
    return Expectations(facts, reduced, flows, tuple(claims))


def _facts(section: StrictTable) -> tuple[int | None, list[tuple[CellId, ExpectedValue]]]:
    """Returns the values of one table, and their number of flows, if it is there."""
    name, value = section.one_of("absolute-tolerance", "relative-tolerance")
    tolerance = Tolerance(value, "absolute" if name.startswith("absolute") else "relative")
    panel = section.pop("sub-figure", str)
    metric = _metric(section, section.pop("metric", str))
    source = section.pop("source", str)
    published_flows = _published_flows(section)
    revision = section.pop("revision", str, "")
    n_flows = section.pop("flows", int, None)
    if n_flows is not None and published_flows is not None:
        raise section.where.error(expected="flows or published-flows", got="both")
    # Values of recorded runs are not the paper's own, so their key differs.
    is_recorded = n_flows is not None
    key = "recorded" if is_recorded else "published"
    facts = []
    for one in section.tables("values"):
        cell = CellId(panel, one.pop("run", str), metric, one.pop("bin", int, None))
        value = one.pop(key, float)
        fact = ExpectedValue(value, tolerance, source, published_flows, revision, is_recorded)
        facts.append((cell, fact))
        one.reject_unread()
    section.reject_unread()
    return n_flows, facts


def _claim(section: StrictTable, kind: Kind, run_ids: Sequence[str]) -> Claim:
    panel = section.pop("sub-figure", str)
    metric = section.pop("metric", str, None)
    default = CellId(panel, "", metric, section.pop("bin", int, None))
    if kind == "ratio":
        named = [section.pop("of", object), section.pop("to", object)]
    else:
        named = section.pop("runs", list)
    at_least, at_most, within, of = None, None, 0.0, "all"
    if kind == "bound":
        of = section.choice("of", section.pop("of", str, of), ("all", "any"))
    if kind in ("ratio", "bound"):
        at_least, at_most = (section.pop(k, float, None) for k in ("at-least", "at-most"))
        if at_least is None and at_most is None:
            raise section.where.error(expected="at-least or at-most", got="neither")
        if of == "any" and at_least is not None and at_most is not None:
            raise section.where.at("of").error(expected="one limit with any", got="both")
    elif kind == "alike":
        within = section.pop("within", float)
    else:
        within = section.pop("slack", float, 0.0)
    cells = tuple(cell for one in named for cell in _cells(section, default, one, run_ids))
    least = 1 if kind == "bound" else 2
    if len(cells) < least:
        raise section.where.at("runs").error(expected=f"at least {least}", got=len(cells))
    if kind == "ratio" and len(cells) > 2:
        raise section.where.error(expected="one run in of and in to", got=len(cells))
    claim = Claim(
        kind,
        section.pop("claim", str),
        section.pop("source", str),
        cells,
        at_least,
        at_most,
        within,
        _published_flows(section),
        cast(Literal["all", "any"], of),
    )
    section.reject_unread()
    return claim


def _cells(
    section: StrictTable, default: CellId, named: Any, run_ids: Sequence[str]
) -> list[CellId]:
    """Returns the cells of a run's name, of a table, or of all runs that match a pattern."""
    table = {"run": named} if isinstance(named, str) else named
    if not isinstance(table, dict):
        raise section.where.error(expected="a run's name or a table", got=repr(named))
    one = StrictTable(table, section.where)
    metric = one.pop("metric", str, default.metric)
    panel = one.pop("sub-figure", str, default.sub_figure)
    runs = match_runs(one, one.pop("run", str), run_ids)
    idx = one.pop("bin", int, default.bin)
    one.reject_unread()
    return [CellId(panel, run, _metric(one, metric), idx) for run in runs]


def _published_flows(section: StrictTable) -> int | None:
    """Returns the number of flows of a published value or claim; 0 if it applies to any number."""
    flows: int | None = section.pop("published-flows", int, None)
    if flows is not None and flows < 0:
        raise section.where.at("published-flows").error(expected="0 or more", got=flows)
    return flows


def _metric(section: StrictTable, name: str | None) -> Metric:
    if name is None:
        raise section.where.at("metric").error(expected="this key")
    return section.choice("metric", name, METRICS)

"""Tables of a divergence: keys that differ, and the distribution of differences by size."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rampmeter.on_demand import np
from rampmeter.replays.divergence import Divergence, PlanDifference
from rampmeter.results.table import Cell, Column, ResultTable

QUANTILES: Final = (1, 50, 99)
KEYS: Final = (
    Column("key"),
    Column("first", "A", width=18, form="general"),
    Column("second", "B", width=18, form="general"),
)
DIFFERENCES: Final = (
    Column("size"),
    Column("flows", "flows"),
    Column("differing", "differ"),
    Column("slower", "slower\nin B"),
    Column("mean_us", "mean", "µs"),
    *(Column(f"p{q}_us", f"p{q}", "µs") for q in QUANTILES),
    Column("max_abs_us", "largest", "µs"),
)
NOTE: Final = (
    "Completion time in B minus that in A, of the flows that both delivered and that differ."
)


def key_table(keys: Sequence[PlanDifference]) -> ResultTable:
    """Returns a table of the keys that differ."""
    rows: list[tuple[Cell, ...]] = [(one.key, _cell(one.first), _cell(one.second)) for one in keys]
    return ResultTable("keys", "Keys that differ", KEYS, rows, label_width=40)


def difference_table(divergence: Divergence) -> ResultTable:
    """Returns a table of the differences of completion times, by size class."""
    classes = list(divergence.by_size())
    labels = [label for label, _ in classes]
    rows = [
        (label, *_statistics(divergence, of))
        for label, (_, of) in zip(labels, classes, strict=True)
    ]
    sections = frozenset([len(rows) - 2])
    title = "Differences of completion times"
    return ResultTable("differences", title, DIFFERENCES, rows, (NOTE,), sections)


def _statistics(divergence: Divergence, group: Any) -> Iterator[Cell]:
    yield int(group.sum())
    differing = group & divergence.differs
    yield int(differing.sum())
    deltas = divergence.deltas[differing]
    deltas = deltas[~np.isnan(deltas)] / 1e6
    yield int((deltas > 0).sum())
    if not deltas.size:
        yield from [None] * (2 + len(QUANTILES))
        return
    yield float(deltas.mean())
    yield from (float(value) for value in np.percentile(deltas, QUANTILES))
    yield float(np.abs(deltas).max())


def _cell(value: Any) -> Cell:
    if value is None or isinstance(value, int | float | str):
        return str(value).lower() if isinstance(value, bool) else value
    return str(value)

"""Differences of two transports on the same flows, cause by cause, with intervals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rampmeter import _core
from rampmeter.analysis.confidence import Interval, interval
from rampmeter.on_demand import np
from rampmeter.results.blame_tables import (
    ORDER,
    SHOWN_FROM,
    SIZE,
    FlowTimes,
    cause_name,
    size_columns,
)
from rampmeter.results.table import Cell, Column, ResultTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOWS_MIN: Final = 100
"""Minimum number of flows of one seed for an interval by batch means: 20 batches of 5."""
FEW_NOTE: Final = (
    f"Sizes with fewer than {FLOWS_MIN} flows have no interval, which needs 20 batches of 5 flows."
)
ONE_SAMPLE_NOTE: Final = (
    "Flows that come in bursts or wait for others are one sample, which has no intervals."
)
FEW_SEEDS_NOTE: Final = "Sizes with flows in a single seed have no interval."
NOTE: Final = "{} minus {}, of the same flows."
INTERVAL_NOTE: Final = "± is half a 95 % confidence interval, {}."


@dataclass(frozen=True)
class SizeDifference:
    """Differences of the mean slowdown of the flows of one size class."""

    label: str
    upper_bytes: int | None
    count: int
    """Flows, of all seeds together."""
    causes: Mapping[str, Interval]
    """The difference by cause, in the order of figures."""
    total: Interval
    """The difference of the mean slowdown: the sum of those of the causes."""


def differences(
    seeds: "Sequence[tuple[FlowTimes, FlowTimes, NDArray[np.bool_]]]", *, is_one_sample: bool
) -> list[SizeDifference]:
    """Returns differences, first minus second, by size class, all flows last.

    Each seed has both runs, and the flows that count by their numbers. With one seed intervals are
    by batch means of flows in the order of their numbers; with several they are over seeds. A run
    that is one sample has none by itself.
    """
    by_seed = [_of_seed(*seed) for seed in seeds]
    found = []
    for groups in zip(*by_seed, strict=True):
        label, upper, n, _ = groups[0]
        causes = {
            cause: _interval(
                [values[cause] for _, _, _, values in groups], is_one_sample=is_one_sample
            )
            for cause in (*ORDER, "")
            if all(cause in values for _, _, _, values in groups)
        }
        total = causes.pop("")
        n = sum(count for _, _, count, _ in groups)
        found.append(SizeDifference(label, upper, n, causes, total))
    return found


def table(pairs: "Mapping[tuple[str, str], Sequence[SizeDifference]]") -> ResultTable:
    """Returns a table with a row for each pair of transports, size and cause, for programs."""
    columns = (
        Column("transport"),
        Column("other", "other"),
        *SIZE,
        Column("cause", "cause"),
        Column("difference", "difference"),
    )
    rows: list[tuple[Cell, ...]] = [
        (*names, one.label, one.upper_bytes, one.count, cause, value)
        for names, by_size in pairs.items()
        for one in by_size
        for cause, value in (*one.causes.items(), ("all", one.total))
    ]
    title = "Difference of mean slowdown by cause"
    return ResultTable("blame_difference", title, columns, rows, medium="data")


def tables_for_readers(
    pairs: "Mapping[tuple[str, str], Sequence[SizeDifference]]", n_seeds: int
) -> Iterator[ResultTable]:
    """Yields a table for each pair of transports: a row for each cause, a column for each size."""
    for (first, second), by_size in pairs.items():
        columns = (Column("cause"), *size_columns(by_size))
        rows: list[tuple[Cell, ...]] = [("flows", *(one.count for one in by_size))]
        rows += [
            (cause_name(cause), *(one.causes[cause] for one in by_size))
            for cause in by_size[-1].causes
            if any(abs(one.causes[cause].mean) >= SHOWN_FROM for one in by_size)
        ]
        rows.append(("all causes", *(one.total for one in by_size)))
        title = f"Mean slowdown of {first} minus that of {second}, by flow size and cause"
        sections = frozenset([0, len(rows) - 2])
        yield ResultTable(
            "blame_difference",
            title,
            columns,
            rows,
            tuple(_notes(first, second, by_size, n_seeds)),
            sections,
            medium="text",
        )


def _notes(
    first: str, second: str, by_size: Sequence[SizeDifference], n_seeds: int
) -> Iterator[str]:
    """Yields what the differences are, and why sizes with flows have no interval if some do."""
    yield NOTE.format(first, second)
    if any(one.total.ci is not None for one in by_size):
        yield INTERVAL_NOTE.format("by batch means" if n_seeds == 1 else f"over {n_seeds} seeds")
    lacking = [one for one in by_size if one.count and one.total.ci is None]
    if n_seeds == 1 and any(one.count >= FLOWS_MIN for one in lacking):
        yield ONE_SAMPLE_NOTE
    elif lacking:
        yield FEW_NOTE if n_seeds == 1 else FEW_SEEDS_NOTE


def _of_seed(
    first: FlowTimes, second: FlowTimes, counted: "NDArray[np.bool_]"
) -> "list[tuple[str, int | None, int, dict[str, NDArray[np.float64]]]]":
    """Returns label, upper bound, number and differences by cause of the flows of each size."""
    both = [_slowdowns(run, counted) for run in (first, second)]
    causes = [cause for cause in ORDER if any(cause in one for one in both)]
    zero = np.zeros(int(counted.sum()))
    each = {cause: both[0].get(cause, zero) - both[1].get(cause, zero) for cause in causes}
    each[""] = sum(each.values(), zero)
    class_of = first.class_of[np.isin(first.numbers, np.flatnonzero(counted))]
    members = [class_of == idx for idx in range(len(first.size_classes))]
    classes = [(one.label, one.upper_bytes) for one in first.size_classes]
    return [
        (label, upper, int(of.sum()), {cause: values[of] for cause, values in each.items()})
        for (label, upper), of in zip(
            [*classes, ("all", None)], [*members, np.ones(len(zero), bool)], strict=True
        )
    ]


def _slowdowns(run: FlowTimes, counted: "NDArray[np.bool_]") -> "dict[str, NDArray[np.float64]]":
    """Returns the part of the slowdown of each counted flow that each cause has."""
    is_in = np.isin(run.numbers, np.flatnonzero(counted))
    return {cause: values[is_in] / run.ideals[is_in] for (cause,), values in run.times().items()}


def _interval(seeds: "Sequence[NDArray[np.float64]]", *, is_one_sample: bool) -> Interval:
    """Returns the mean over seeds with its interval; that of one seed by batch means."""
    if len(seeds) > 1:
        return interval(float(values.mean()) if values.size else None for values in seeds)
    (values,) = seeds
    if not values.size:
        return Interval(float("nan"), None, 0)
    statistics = None if is_one_sample else _core.statistics(values.tobytes(), True)
    half = statistics.get("mean_ci") if statistics else None
    return Interval(float(values.mean()), None if half is None else float(half), 1)

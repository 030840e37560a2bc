"""Causes of flows' times as tables: by size, and by the sizes of those who delayed whom."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from rampmeter.on_demand import np
from rampmeter.results.table import Cell, Column, ResultTable

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

ORDER: Final = (
    *("serialisation", "propagation", "switching", "cut-through", "sender-link", "permission"),
    *("permission-in-flight", "queueing", "paused", "loss", "retransmission"),
    "ordering",
)
"""The order of causes in tables and figures, from below."""
LABELS: Final[Mapping[str, str]] = {
    "sender-link": "sender's link busy",
    "permission-in-flight": "permission in flight",
}
"""Names of causes in tables and figures that differ from their keys."""
NO_STAGE: Final = "permission"
"""The stage of transports that report none, such as those in Python."""
WAITS: Final = ("permission", "sender-link", "queueing")
"""Causes during which other flows may have used the link."""
OTHERS, NONE = "others", "none"
"""Blockers without a number, and the time without any."""
SHOWN_FROM: Final = 0.0005
"""Minimum part of a mean slowdown of any size for which readers see a cause."""
SIZE: Final = (
    Column("size"),
    Column("upper_bytes", "up to", form="bytes"),
    Column("flows", "flows"),
)
MATRIX_NOTE: Final = (
    "Rows are flows that waited, columns those that used the link: that of the sender, of the "
    "port, or of the receiver while a flow waited for permission. Others are control packets and "
    "all flows beyond the 16 that used it for longest. None is the time in which no other flow "
    "used it."
)


class FlowTimes(Protocol):
    """The causes of the times of all flows."""

    @property
    def parts(self) -> "pa.Table":
        """A row for each flow and cause."""

    @property
    def blockers(self) -> "pa.Table":
        """A row for each flow, cause and flow that used the link."""

    @property
    def numbers(self) -> "NDArray[np.int64]":
        """Numbers of all flows."""

    @property
    def ideals(self) -> "NDArray[np.float64]":
        """Ideal times in picoseconds."""

    @property
    def counted(self) -> "NDArray[np.bool_]":
        """True for the flows that count."""

    @property
    def class_of(self) -> "NDArray[np.int64]":
        """The index of each flow's size class."""

    @property
    def size_classes(self) -> "Sequence[SizeRange]":
        """The size classes."""

    def times(self, by: Sequence[str] = ("cause",)) -> "dict[tuple[str, ...], NDArray[np.float64]]":
        """Returns the time of each flow by cause."""

    def place(self, column: "pa.ChunkedArray[pa.UInt64Scalar]") -> "NDArray[np.int64]":
        """Returns the indices of a column of flows."""


class SizeRange(Protocol):
    """A class of flow sizes."""

    @property
    def label(self) -> str:
        """Its label in summaries."""

    @property
    def upper_bytes(self) -> int | None:
        """The largest size."""


@dataclass(frozen=True)
class SizeCauses:
    """Mean slowdown of the flows of a size class, divided by cause."""

    label: str
    upper_bytes: int | None
    count: int
    slowdowns: Mapping[tuple[str, str], float]
    """Parts of the mean slowdown by cause and stage, in the order of figures; NaN without flows."""
    times_us: Mapping[tuple[str, str], float]
    """Mean times, alike."""


def cause_name(cause: str, stage: str = "") -> str:
    """Returns the name of a cause in tables and figures.

    >>> cause_name("permission", "token"), cause_name("permission", NO_STAGE)
    ('permission: token', 'permission')
    >>> cause_name("sender-link")
    "sender's link busy"
    """
    name = LABELS.get(cause, cause)
    return f"{name}: {stage}" if stage not in ("", NO_STAGE) else name


def stage_times(blame: FlowTimes) -> "dict[tuple[str, str], NDArray[np.float64]]":
    """Returns the time of each flow by cause, and that for permission by stage, in order."""
    sums: dict[tuple[str, str], NDArray[np.float64]] = {}
    for (cause, stage), values in blame.times(("cause", "stage")).items():
        key = (cause, stage if cause == "permission" else "")
        sums[key] = sums[key] + values if key in sums else values
    return {key: sums[key] for key in sorted(sums, key=lambda key: ORDER.index(key[0]))}


def causes_by_size(blame: FlowTimes) -> list[SizeCauses]:
    """Returns the causes of the slowdown of each size class, and of all flows."""
    times = stage_times(blame)
    class_of = blame.class_of
    members = [blame.counted & (class_of == idx) for idx in range(len(blame.size_classes))]
    classes = [(one.label, one.upper_bytes) for one in blame.size_classes]
    found = []
    for (label, upper), of in zip(
        [*classes, ("all", None)], [*members, blame.counted], strict=True
    ):
        n = int(of.sum())
        slowdowns = {key: _mean(values[of] / blame.ideals[of]) for key, values in times.items()}
        means = {key: _mean(values[of]) / 1e6 for key, values in times.items()}
        found.append(SizeCauses(label, upper, n, slowdowns, means))
    return found


def by_size(blame: FlowTimes) -> ResultTable:
    """Returns a table with a row for each size and cause, for programs."""
    columns = (
        *SIZE,
        Column("cause", "cause"),
        Column("stage", "stage"),
        Column("slowdown", "slowdown"),
        Column("time_us", "time", "µs"),
    )
    rows: list[tuple[Cell, ...]] = [
        (one.label, one.upper_bytes, one.count, *key, value, one.times_us[key])
        for one in causes_by_size(blame)
        for key, value in one.slowdowns.items()
    ]
    return ResultTable(
        "blame_by_size", "Slowdown by flow size and cause", columns, rows, medium="data"
    )


def by_size_for_readers(blame: FlowTimes) -> ResultTable:
    """Returns a table with a row for each cause, and a column for each size."""
    groups = causes_by_size(blame)
    columns = (Column("cause"), *size_columns(groups))
    rows: list[tuple[Cell, ...]] = [("flows", *(one.count for one in groups))]
    rows += [
        (cause_name(*key), *(one.slowdowns[key] for one in groups))
        for key in groups[0].slowdowns
        if any(one.slowdowns[key] >= SHOWN_FROM for one in groups)
    ]
    sums = (sum(one.slowdowns.values()) if one.count else np.nan for one in groups)
    rows.append(("mean slowdown", *sums))
    return ResultTable(
        "blame_by_size",
        "Parts of the mean slowdown, by flow size and cause",
        columns,
        rows,
        sections=frozenset([0, len(rows) - 2]),
        medium="text",
    )


def size_columns(groups: Sequence[SizeRange]) -> Iterator[Column]:
    """Yields a column for each size class, with its range in multiples of a BDP."""
    for one in groups:
        yield Column(one.label, one.label.replace(" BDP", "\nBDP"))


def wait_matrix(blame: FlowTimes) -> "tuple[list[int], NDArray[np.float64]]":
    """Returns the number of flows of each size class, and mean times in microseconds.

    A row has the mean times of the flows of a class: those in which flows of each class used
    the link, then that of `OTHERS`, then that of `NONE`. Rows without flows are NaN.
    """
    n = len(blame.size_classes)
    class_of = np.where(blame.counted, blame.class_of, n)
    counts = np.bincount(class_of, minlength=n + 1)
    table = blame.blockers
    waiting = class_of[blame.place(table["flow"])]
    numbers = table["blocker"]
    known = numbers.is_valid().to_numpy()
    blocking = np.full(len(known), n)
    blocking[known] = blame.class_of[blame.place(numbers.drop_null())]
    cells = np.bincount(
        waiting * (n + 1) + blocking,
        table["time_ps"].to_numpy().astype(np.float64),
        minlength=(n + 1) ** 2,
    ).reshape(n + 1, n + 1)
    waits = sum(
        (values for (cause,), values in blame.times().items() if cause in WAITS),
        np.zeros(len(blame.numbers)),
    )
    total = np.bincount(class_of, waits, minlength=n + 1)
    sums = np.column_stack([cells, total - cells.sum(axis=1)])[:n]
    means = np.full(sums.shape, np.nan)
    np.divide(sums, 1e6 * counts[:n, None], out=means, where=counts[:n, None] > 0)
    return counts[:n].tolist(), means


def matrix(blame: FlowTimes) -> ResultTable:
    """Returns a table with a row for each size that waited and each size that used the link."""
    counts, means = wait_matrix(blame)
    classes = blame.size_classes
    blockers = [*(one.label for one in classes), OTHERS, NONE]
    columns = (
        *SIZE,
        Column("blocker_size", "blocker"),
        Column("time_us", "time", "µs"),
        Column("share", "share"),
    )
    rows: list[tuple[Cell, ...]] = []
    for one, count, row in zip(classes, counts, means.tolist(), strict=True):
        total = sum(row)
        for name, value in zip(blockers, row, strict=True):
            share = value / total if total > 0 else float("nan")
            rows.append((one.label, one.upper_bytes, count, name, value, share))
    return ResultTable(
        "blame_matrix", "Waits by flow size and blocker size", columns, rows, medium="data"
    )


def matrix_for_readers(blame: FlowTimes) -> ResultTable:
    """Returns a table with a row for each size that waited, and a column for each that used it."""
    counts, means = wait_matrix(blame)
    columns = (
        Column("size"),
        Column("flows", "flows"),
        *(Column(one.key, one.heading, places=2) for one in size_columns(blame.size_classes)),
        *(Column(name, name, places=2) for name in (OTHERS, NONE)),
    )
    labels = [one.label for one in blame.size_classes]
    rows: list[tuple[Cell, ...]] = [
        (label, count, *row)
        for label, count, row in zip(labels, counts, means.tolist(), strict=True)
    ]
    title = "Waits by flow size and blocker size: mean time of a flow, µs"
    return ResultTable("blame_matrix", title, columns, rows, (MATRIX_NOTE,), medium="text")


def blame_tables(blame: FlowTimes | None) -> Iterator[ResultTable]:
    """Yields the tables of a run's causes, for readers and for programs; none without causes."""
    if blame is not None:
        yield by_size_for_readers(blame)
        yield by_size(blame)
        yield matrix_for_readers(blame)
        yield matrix(blame)


def _mean(values: "NDArray[np.float64]") -> float:
    return float(values.mean()) if values.size else float("nan")

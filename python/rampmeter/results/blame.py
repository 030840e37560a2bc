"""Causes of flows' times: why a flow was slow, and which flows delayed it."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rampmeter.on_demand import np, pa
from rampmeter.results import blame_tables
from rampmeter.results.chains import PICOSECONDS_PER_US, Chain, Release, Releases
from rampmeter.results.table import ResultTable
from rampmeter.text.arguments import number_argument
from rampmeter.text.locations import Location

if TYPE_CHECKING:
    from numpy.typing import NDArray

CAUSES: Final[Mapping[str, str]] = {
    "serialisation": "was put on links bit by bit",
    "propagation": "travelled along links",
    "switching": "was processed by switches and hosts",
    "cut-through": "waited for its own tail in cut-through switches",
    "sender-link": "had permission, and the sender's link was busy",
    "permission": "waited for permission of the transport",
    "permission-in-flight": "permission was in flight to the sender",
    "queueing": "queued behind others",
    "paused": "waited at a paused port or a failed link",
    "loss": "had been sent, and a loss was not yet repaired",
    "retransmission": "retransmitted bytes",
    "ordering": "had arrived, and the receiver waited for earlier bytes",
}
"""Sentences about a flow without their subject, by cause, in the order of figures from below."""


@dataclass(frozen=True)
class Blocker:
    """A flow that used the link for which another one waited."""

    flow: int | None
    """Its number; `None` for control packets and all flows beyond the 16 with the longest times."""
    time_us: float
    src_name: str | None
    """Its sender, as that of `FlowCauses`."""
    dst_name: str | None
    size_bytes: int | None


@dataclass(frozen=True)
class Part:
    """Part of a flow's time that has one cause."""

    cause: str
    """A key of `CAUSES`."""
    stage: str
    """The stage of the transport, or how a loss was discovered; may be empty."""
    tier: str
    """The tier of the ports; may be empty."""
    time_us: float
    blockers: tuple[Blocker, ...]
    """The flows that used the link meanwhile, the longest time first."""

    @property
    def name(self) -> str:
        """The cause with its stage or tier, such as `permission: token`."""
        return f"{self.cause}: {self.details}" if self.details else self.cause

    @property
    def details(self) -> str:
        """The stage and the tier, such as `token`; may be empty.

        Transports that report no stages have one of the name `permission`, which is no detail.
        """
        stage = "" if self.stage == blame_tables.NO_STAGE else self.stage
        return ", ".join(filter(None, (stage, self.tier)))


@dataclass(frozen=True)
class FlowCauses:
    """The causes of the time of one flow. The parts sum to its completion time."""

    flow: int
    src: int
    dst: int
    src_name: str
    """The custom name of the sender; `host 3` without one."""
    dst_name: str
    size_bytes: int
    arrival_us: float
    fct_us: float
    ideal_us: float
    retransmitted_bytes: int
    """Payload that the sender retransmitted."""
    parts: tuple[Part, ...]
    """In the order in which they began."""
    release: Release | None = None
    """The end for which it waited before its submission; `None` if it waited for no flow."""

    @property
    def slowdown(self) -> float:
        """The completion time over the ideal."""
        return self.fct_us / self.ideal_us


@dataclass(frozen=True)
class SizeClass:
    """A class of flow sizes."""

    label: str
    """Its label in summaries, such as `1-2 BDP`."""
    upper_bytes: int | None
    """The largest size; `None` for the last class."""


class Blame:
    """The causes of the times of all flows of a run with `run.blame`."""

    def __init__(
        self,
        parts: "pa.Table",
        blockers: "pa.Table",
        flows: "pa.Table",
        sizes: Sequence[SizeClass],
        counted: "NDArray[np.bool_]",
        host_names: Sequence[str] = (),
        releases: "pa.Table | None" = None,
    ) -> None:
        """Takes the tables `blame`, `blockers`, `flows` and `releases` of a run, flows by number.

        `sizes` are the size classes of its statistics, and `counted` the flows that these cover.
        """
        self.parts = parts
        """A row for each flow and cause: `flow`, `cause`, `stage`, `tier`, `time_ps`."""
        self.blockers = blockers
        """A row for each flow, cause and flow that used the link, which `blocker` names."""
        self.size_classes = tuple(sizes)
        """The size classes of statistics."""
        self.counted = counted
        """True for the flows that statistics cover, in the order of `numbers`."""
        self._flows, self._host_names = flows, host_names
        self.numbers: NDArray[np.int64] = flows["flow"].to_numpy().astype(np.int64)
        """Numbers of all flows, in order."""
        self._fct = _floats(flows["fct_ps"])
        self.ideals = _floats(flows["ideal_ps"])
        """Ideal times of all flows in picoseconds."""
        self.sizes: NDArray[np.int64] = flows["size_bytes"].to_numpy().astype(np.int64)
        """Lengths of all flows in bytes."""
        self._releases = Releases(releases, flows)

    def __repr__(self) -> str:
        return f"Blame({len(self.numbers)} flows, {self.parts.num_rows} parts)"

    @property
    def bdp_bytes(self) -> float | None:
        """Bytes of one bandwidth-delay product; `None` if it is not known."""
        upper = self.size_classes[0].upper_bytes if self.size_classes else None
        return None if upper is None else upper + 1.0

    @property
    def class_of(self) -> "NDArray[np.int64]":
        """The index of each flow's size class."""
        uppers = [one.upper_bytes for one in self.size_classes if one.upper_bytes is not None]
        found: NDArray[np.int64] = np.searchsorted(np.array(uppers, np.int64), self.sizes)
        return found

    def counting(self, counted: "NDArray[np.bool_]") -> "Blame":
        """Returns the same causes with statistics over other flows: those of true numbers."""
        other = copy(self)
        is_in = self.numbers < len(counted)
        other.counted = np.zeros(len(is_in), bool)
        other.counted[is_in] = counted[self.numbers[is_in]]
        return other

    def place(self, column: Any) -> "NDArray[np.int64]":
        """Returns the indices in `numbers` of a column of flows' numbers."""
        found: NDArray[np.int64] = np.searchsorted(self.numbers, column.to_numpy().astype(np.int64))
        return found

    def by_size(self) -> ResultTable:
        """Returns the mean slowdown by flow size and cause, a row for each size and cause.

        The slowdowns of a size sum to its mean slowdown. `time_us` is the mean time.
        """
        return blame_tables.by_size(self)

    def matrix(self) -> ResultTable:
        """Returns the mean time in microseconds that flows of a size waited for those of another.

        A row has the size of the flows that waited, and that of their blockers. `blocker_size` is
        `others` for control packets and blockers beyond the first 16, and `none` for the time in
        which no other flow used the link.
        """
        return blame_tables.matrix(self)

    @property
    def slowdowns(self) -> "NDArray[np.float64]":
        """The slowdown of each flow; NaN of those that were not delivered."""
        return self._fct / self.ideals

    def flow(self, number: int) -> FlowCauses:
        """Returns the causes of one flow.

        Raises `ResultError` if there is no such flow, or if it was not delivered.
        """
        idx = int(np.searchsorted(self.numbers, number))
        where = Location(key="flow")
        if idx == len(self.numbers) or self.numbers[idx] != number:
            last = int(self.numbers[-1]) if len(self.numbers) else -1
            raise where.result_error(expected=f"a flow's number, 0 to {last}", got=number)
        if np.isnan(self._fct[idx]):
            raise where.result_error(expected="a flow that was delivered", got=number)
        return next(self._causes_of([idx]))

    def slowest(
        self, n: int, at_least_bytes: float = 0.0, below_bytes: float = float("inf")
    ) -> list[FlowCauses]:
        """Returns the causes of the `n` flows of these sizes with the highest slowdown.

        Raises `PlanError` if `n` is no whole number from 1.
        """
        number_argument("n", n, 1, is_whole=True)
        is_in = (self.sizes >= at_least_bytes) & (self.sizes < below_bytes)
        slowdowns = np.where(is_in, self.slowdowns, np.nan)
        known = np.flatnonzero(~np.isnan(slowdowns))
        order = known[np.argsort(-slowdowns[known], kind="stable")][:n]
        return list(self._causes_of([int(idx) for idx in order]))

    def chain(self, number: int) -> Chain | None:
        """Returns the flows that waited for each other until this one; `None` if there are none.

        Raises `ResultError` as `flow` does.
        """
        return self._releases.chain(self.flow(number).flow, self.parts)

    def last(self) -> FlowCauses:
        """Returns the causes of the flow that was delivered last.

        Raises `ResultError` if no flow was delivered.
        """
        ends = _floats(self._flows["arrival_ps"]) + self._fct
        if np.isnan(ends).all():
            raise Location(key="flow").result_error(
                expected="a flow that was delivered", got="none"
            )
        return next(self._causes_of([int(np.nanargmax(ends))]))

    def _causes_of(self, indices: Sequence[int]) -> Iterator[FlowCauses]:
        wanted = {int(self.numbers[idx]) for idx in indices}
        parts, blockers = (_by_flow(table, wanted) for table in (self.parts, self.blockers))
        for idx in indices:
            row = {name: self._flows[name][idx].as_py() for name in self._flows.column_names}
            own = blockers.get(row["flow"], [])
            yield FlowCauses(
                flow=row["flow"],
                src=row["src"],
                dst=row["dst"],
                src_name=self._name(row["src"]),
                dst_name=self._name(row["dst"]),
                size_bytes=row["size_bytes"],
                arrival_us=row["arrival_ps"] / PICOSECONDS_PER_US,
                fct_us=row["fct_ps"] / PICOSECONDS_PER_US,
                ideal_us=row["ideal_ps"] / PICOSECONDS_PER_US,
                retransmitted_bytes=row["retransmitted_bytes"],
                parts=tuple(self._part(part, own) for part in parts.get(row["flow"], [])),
                release=self._releases.of(row["flow"]),
            )

    def times(self, by: Sequence[str] = ("cause",)) -> dict[tuple[str, ...], "NDArray[np.float64]"]:
        """Returns the time in picoseconds of each flow by cause, in the order of `numbers`.

        `by` has the columns that distinguish causes: `cause`, `stage`, `tier`. The arrays of a flow
        that was delivered sum to its completion time.
        """
        code = np.zeros(self.parts.num_rows, np.int64)
        keys: list[tuple[str, ...]] = [()]
        for name in by:
            column = self.parts[name].combine_chunks().dictionary_encode()
            texts = column.dictionary.to_pylist()
            code = code * len(texts) + column.indices.to_numpy()
            keys = [(*key, str(text)) for key in keys for text in texts]
        n = len(self.numbers)
        cell = code * n + self.place(self.parts["flow"])
        weights = self.parts["time_ps"].to_numpy().astype(np.float64)
        sums = np.bincount(cell, weights, minlength=len(keys) * n).reshape(len(keys), n)
        used = set(np.unique(code).tolist())
        return {key: sums[idx] for idx, key in enumerate(keys) if idx in used}

    def _part(self, part: Mapping[str, Any], blockers: Sequence[Mapping[str, Any]]) -> Part:
        names = ("cause", "stage", "tier")
        own = [of for of in blockers if all(of[name] == part[name] for name in names)]
        return Part(
            part["cause"],
            part["stage"],
            part["tier"],
            part["time_ps"] / PICOSECONDS_PER_US,
            tuple(self._blocker(of["blocker"], of["time_ps"] / PICOSECONDS_PER_US) for of in own),
        )

    def _blocker(self, number: int | None, time_us: float) -> Blocker:
        if number is None:
            return Blocker(None, time_us, None, None, None)
        idx = int(np.searchsorted(self.numbers, number))
        src, dst, size = (self._flows[name][idx].as_py() for name in ("src", "dst", "size_bytes"))
        return Blocker(number, time_us, self._name(src), self._name(dst), size)

    def _name(self, host: int) -> str:
        return self._host_names[host] if self._host_names else f"host {host}"


def _floats(column: Any) -> "NDArray[np.float64]":
    values: NDArray[np.float64] = column.to_numpy().astype(np.float64)
    return values


def _by_flow(table: "pa.Table", wanted: set[int]) -> dict[int, list[dict[str, Any]]]:
    """Returns the rows of some flows, by flow."""
    is_wanted = np.isin(table["flow"].to_numpy(), np.fromiter(wanted, np.uint64, len(wanted)))
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in table.filter(pa.array(is_wanted)).to_pylist():
        rows.setdefault(row["flow"], []).append(row)
    return rows

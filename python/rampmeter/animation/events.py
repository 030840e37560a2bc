"""Events of a run for its animation: columns of integers, with differences of sorted times."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rampmeter.animation.network import Network
from rampmeter.text.locations import Location
from rampmeter.text.numbers import count, time_text
from rampmeter.timeline import DATA, PHASE, PORT, QUEUE, Event, Timeline

if TYPE_CHECKING:
    import pyarrow as pa

EVENTS_MAX: Final = 400_000
"""Maximum number of packets on links, changes of queues, drops and marks of an animation."""
MARKED: Final = 1
"""Bit of the flags of a packet that a switch has marked."""
TRIMMED: Final = 2
"""Bit of the flags of a packet without its payload."""
DROPS: Final = ("drop", "cut")
FLOW_COLUMNS: Final[Mapping[str, str]] = {
    "flow": "flow",
    "src": "src",
    "dst": "dst",
    "size_bytes": "size",
    "arrival_ps": "arrival",
    "fct_ps": "fct",
    "ideal_ps": "ideal",
    "status": "status",
    "ideal_is_bound": "is_bound",
}
"""Columns of a table of flows by their names in an animation."""
Columns: TypeAlias = dict[str, list[Any]]


@dataclass(frozen=True)
class RunEvents:
    """The events of a run in a window, and its flows."""

    label: str
    """The name of the transport or of the run."""
    colour: str
    kinds: list[tuple[str, str]]
    """Names and kinds of the packets."""
    packets: Columns
    """Packets on links in the order of their first bits: `link`, `start` and `length` (ps), `kind`,
    `flow` (-1 for none), `packet` (equal on all links of one packet), `bytes` and `flags`."""
    queues: Columns
    """Changes of queues: `link`, `at` (ps) and `bytes`, by link and time."""
    drops: Columns
    """Dropped packets: `link`, `at` (ps), `kind`, `flow` and `reason`."""
    marks: Columns
    """Marked packets: `link`, `at` (ps) and `flow`."""
    phases: list[dict[str, Any]]
    """Phases: the `track`, its `nodes`, and `names`, `start` and `until` (ps)."""
    flows: Columns
    """`flow`, `src`, `dst`, `size`, `arrival`, `fct`, `ideal` (ps), `status`, `is_bound`."""
    blame: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    """Causes of a flow's completion time with their picoseconds, by flow; may be empty."""

    @property
    def n_events(self) -> int:
        """The number of packets on links, changes of queues, drops and marks."""
        of = (self.packets, self.queues, self.drops, self.marks)
        return sum(len(columns["link"]) for columns in of)


def events_of(
    label: str,
    colour: str,
    timeline: Timeline,
    flows: "pa.Table",
    network: Network,
    window: tuple[float, float],
) -> RunEvents:
    """Returns the events of a run in a window of picoseconds, on the links of a network."""
    numbers = {name: idx for idx, name in enumerate(network.links)}
    packets = _Packets(timeline, network, numbers, window)
    drops: Columns = {name: [] for name in ("link", "at", "kind", "flow", "reason")}
    marks: Columns = {name: [] for name in ("link", "at", "flow")}
    for link, one in _instants(timeline, numbers, window):
        flow = one.args.get("flow", packets.flow_of(one))
        if one.name == "mark":
            _append(marks, link=link, at=one.at, flow=flow)
        elif one.name in DROPS:
            kind = packets.kind(one.args.get("kind", DATA), one.kind)
            reason = one.args.get("reason", one.name)
            _append(drops, link=link, at=one.at, kind=kind, flow=flow, reason=reason)
    return RunEvents(
        label,
        colour,
        packets.kinds,
        packets.columns,
        _queues(timeline, numbers, window),
        drops,
        marks,
        _phases(timeline, network, window),
        _flows(flows, network, window),
    )


def last_event_ps(timelines: Iterable[Timeline]) -> float:
    """Returns the end of the last packet, or of the last flow, of timelines; 0 without any."""
    ends = [
        one.until
        for timeline in timelines
        for track in (*timeline.links, *timeline.named("flows in"), *timeline.named("flows out"))
        for one in track.slices
    ]
    return float(max(ends, default=0))


def check_size(runs: Sequence[RunEvents], window: tuple[float, float]) -> None:
    """Raises `PlanError` if the runs of an animation have too many events."""
    n_events = sum(run.n_events for run in runs)
    if n_events <= EVENTS_MAX:
        return
    tables = [table for run in runs for table in (run.packets["start"], run.queues["at"])]
    times = sorted(chain.from_iterable(tables))
    until = times[min(len(times), EVENTS_MAX * 9 // 10) - 1]
    raise Location(key="to").error(
        expected=f"at most {count(EVENTS_MAX)} packets, changes of queues, drops and marks",
        got=f"{count(n_events)} until {time_text(window[1])}",
        hint=f"an earlier end, such as {time_text(until)}, or fewer hosts",
    )


def _append(columns: Columns, **values: Any) -> None:
    for name, value in values.items():
        columns[name].append(value)


class _Packets:
    """The packets on links, in the order of their first bits."""

    def __init__(
        self,
        timeline: Timeline,
        network: Network,
        numbers: Mapping[str, int],
        window: tuple[float, float],
    ) -> None:
        delays = [link["ps"] for link in network.links.values()]
        found = [
            (one.at, numbers[track.name], one)
            for track in timeline.links
            if track.name in numbers
            for one in track.slices
            if one.at < window[1] and one.until + delays[numbers[track.name]] > window[0]
        ]
        found.sort(key=lambda each: each[:2])
        self.kinds: list[tuple[str, str]] = []
        self._flows: dict[int, int] = {}
        marked = _marked_packets(timeline)
        names = ("link", "start", "length", "kind", "flow", "packet", "bytes", "flags")
        self.columns: Columns = {name: [] for name in names}
        for at, link, one in found:
            packet = one.arrows[0] if one.arrows else 0
            mark = marked.get(packet)
            flags = MARKED if mark is not None and at >= mark else 0
            if one.kind == DATA and "offset" not in one.args:
                flags |= TRIMMED
            _append(
                self.columns,
                link=link,
                start=at,
                length=one.until - at,
                kind=self.kind(one.name, one.kind),
                flow=self._flow(packet, one),
                packet=packet,
                bytes=one.args.get("bytes", 0),
                flags=flags,
            )

    def kind(self, name: str, kind: str) -> int:
        """Returns the number of packets of a name, which is new if there is none."""
        if (name, kind) not in self.kinds:
            self.kinds.append((name, kind))
        return self.kinds.index((name, kind))

    def _flow(self, packet: int, one: Event) -> int:
        """Returns the flow of a packet; headers of flow 0 without data omit it."""
        if "flow" in one.args:
            self._flows[packet] = int(one.args["flow"])
        return self._flows.get(packet, -1)

    def flow_of(self, one: Event) -> int:
        """Returns the flow of a packet on an earlier link; -1 if it has none."""
        return self._flows.get(one.arrows[0], -1) if one.arrows else -1


def _marked_packets(timeline: Timeline) -> dict[int, int]:
    """Returns the times from which packets are marked, by packet.

    A mark has no number of its packet: it is the next one of its flow and offset on the link.
    """
    found: dict[int, int] = {}
    links = {track.name: track for track in timeline.links}
    for track in timeline.of_role(PORT):
        marks = [one for one in track.instants if one.name == "mark"]
        name = track.link
        if not marks or name not in links:
            continue
        sent: dict[tuple[Any, ...], list[Event]] = {}
        for one in links[name].slices:
            sent.setdefault(_identity(one), []).append(one)
        for mark in marks:
            later = [one for one in sent.get(_identity(mark), ()) if one.at >= mark.at]
            if later and later[0].arrows:
                found.setdefault(later[0].arrows[0], mark.at)
    return found


def _identity(one: Event) -> tuple[Any, ...]:
    return one.args.get("flow", 0), one.args.get("offset", -1), one.args.get("bytes", 0)


def _instants(
    timeline: Timeline, numbers: Mapping[str, int], window: tuple[float, float]
) -> list[tuple[int, Event]]:
    """Returns drops and marks with the numbers of their links, by time."""
    found = [
        (numbers[track.link], one)
        for track in timeline.of_role(PORT)
        if track.link in numbers
        for one in track.instants
        if window[0] <= one.at <= window[1]
    ]
    return sorted(found, key=lambda each: (each[1].at, each[0]))


def _queues(timeline: Timeline, numbers: Mapping[str, int], window: tuple[float, float]) -> Columns:
    """Returns the changes of queues, with the last one before the window at its start."""
    columns: Columns = {name: [] for name in ("link", "at", "bytes")}
    for track in timeline.of_role(QUEUE):
        link = numbers.get(track.link)
        if link is None:
            continue
        before = [one for one in track.values if one.at <= window[0]][-1:]
        inside = [one for one in track.values if window[0] < one.at <= window[1]]
        for one in (*before, *inside):
            _append(columns, link=link, at=max(one.at, int(window[0])), bytes=one.value)
    return columns


def _phases(
    timeline: Timeline, network: Network, window: tuple[float, float]
) -> list[dict[str, Any]]:
    """Returns the phases of nodes; nodes with equal phases share them."""
    shown = {node["name"] for node in network.nodes}
    alike: dict[tuple[Any, ...], list[str]] = {}
    for track in timeline.of_role(PHASE):
        if track.group in shown and track.slices:
            inside = [one for one in track.slices if one.at < window[1] and one.until > window[0]]
            slices = tuple((one.name, one.at, one.until) for one in inside)
            alike.setdefault((track.name, slices), []).append(track.group)
    return [
        {
            "track": name,
            "nodes": nodes,
            "names": [one[0] for one in slices],
            "start": [one[1] for one in slices],
            "until": [one[2] for one in slices],
        }
        for (name, slices), nodes in alike.items()
    ]


def _flows(table: "pa.Table", network: Network, window: tuple[float, float]) -> Columns:
    """Returns the flows of shown hosts that were in the network in the window."""
    hosts = {node["host"] for node in network.nodes if node["kind"] == "host"}
    rows = [
        row
        for row in table.to_pylist()
        if (row["src"] in hosts or row["dst"] in hosts)
        and row["arrival_ps"] < window[1]
        and (row["fct_ps"] is None or row["arrival_ps"] + row["fct_ps"] > window[0])
    ]
    rows.sort(key=lambda row: (row["arrival_ps"], row["flow"]))
    return {short: [row[name] for row in rows] for name, short in FLOW_COLUMNS.items()}


def differences(values: Sequence[int]) -> list[int]:
    """Returns the first value, and the difference of each from the one before.

    >>> differences([5, 7, 7])
    [5, 2, 0]
    """
    return [*values[:1], *(after - before for before, after in pairwise(values))]

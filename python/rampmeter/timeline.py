"""Timelines of runs: the events on each link, read from the file that `run.timeline` writes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final

from rampmeter._core import ResultError
from rampmeter.on_demand import perfetto_trace, protobuf
from rampmeter.text.arguments import path_argument
from rampmeter.text.locations import Location

FLOW: Final = "flow"
PHASE: Final = "phase"
LINK: Final = "link"
QUEUE: Final = "queue"
PORT: Final = "port"
"""Roles of tracks: the first category of their events."""
SUFFIXES: Final = {LINK: "", QUEUE: " queue", PORT: " drops, marks, outages"}
"""Ends of the names of a port's tracks, after the name of its link."""
DATA: Final = "data"
KINDS: Final = (DATA, "acknowledgement", "permission", "request", "other control")
"""Kinds of packets: the second category of their events."""


@dataclass
class Event:
    """A slice, an instant or a value."""

    at: int
    """Time of the event or of its beginning, in picoseconds."""
    name: str = ""
    until: int = 0
    """Time at which a slice ends, in picoseconds."""
    value: int = 0
    args: dict[str, Any] = field(default_factory=dict)
    """Its fields, such as `flow` and `bytes` of a packet on a link."""
    kind: str = ""
    """The kind of its packet, one of `KINDS`; empty for events of no packet."""
    arrows: list[int] = field(default_factory=list)
    """Numbers of the arrows that begin, pass or end here."""
    is_last: bool = False
    """True if an arrow ends here."""


@dataclass
class Track:
    """A track of a timeline."""

    group: str
    """The node that it belongs to: `h0`, `s3`, `a0`, or its custom name."""
    name: str
    """Its name: that of a link is `h0>s0`."""
    role: str = ""
    """Its role, such as `LINK`; empty for tracks without events."""
    slices: list[Event] = field(default_factory=list)
    instants: list[Event] = field(default_factory=list)
    values: list[Event] = field(default_factory=list)

    @property
    def link(self) -> str:
        """The name of the link of this track, such as `h0>s0`; empty for tracks of nodes."""
        suffix = SUFFIXES.get(self.role)
        return "" if suffix is None else self.name.removesuffix(suffix)


class Timeline:
    """A timeline, by track."""

    def __init__(self, tracks: Iterable[Track]) -> None:
        self.tracks = tuple(tracks)

    @classmethod
    def load(cls, file: str | PathLike[str]) -> "Timeline":
        """Returns the timeline in a file; raises `ResultError` if it cannot be read."""
        path = path_argument("file", file)
        try:
            return cls(_Reader(path).tracks.values())
        except ResultError:
            raise
        except OSError as error:
            raise Location(path).result_error(str(error.strerror or error)) from None
        except (protobuf.DecodeError, KeyError, TypeError) as error:
            got = "a part of one, or another kind of file"
            raise Location(path).result_error(expected="a timeline", got=got) from error

    def named(self, name: str) -> list[Track]:
        """Returns all tracks of a name, of any node."""
        return [track for track in self.tracks if track.name == name]

    @property
    def links(self) -> list[Track]:
        """The tracks of links: a slice for each packet."""
        return self.of_role(LINK)

    def of_role(self, role: str) -> list[Track]:
        """Returns the tracks of a role, such as `QUEUE`."""
        return [track for track in self.tracks if track.role == role]

    def flows(self, way: str) -> dict[int, tuple[str, Event]]:
        """Returns each flow's slice and its host. `way` is `in` or `out`."""
        tracks = self.named(f"flows {way}")
        return {
            event.args["flow"]: (track.group, event) for track in tracks for event in track.slices
        }


class _Reader:
    """Parses a file of Perfetto's schema."""

    def __init__(self, file: Path) -> None:
        data = file.read_bytes()
        if not data:
            raise Location(file).result_error(expected="a timeline", got="an empty file")
        trace = perfetto_trace.Trace()
        trace.ParseFromString(data)
        self.tracks: dict[int, Track] = {}
        self._names: dict[int, str] = {}
        self._arg_names: dict[int, str] = {}
        self._categories: dict[int, str] = {}
        open_slices: dict[int, Event] = {}
        kinds = perfetto_trace.TrackEvent
        for packet in trace.packet:
            self._intern(packet.interned_data)
            if packet.HasField("track_descriptor"):
                self._describe(packet.track_descriptor)
            if not packet.HasField("track_event"):
                continue
            event, at = packet.track_event, packet.timestamp
            track = self.tracks[event.track_uuid]
            if event.category_iids and not track.role:
                track.role = self._categories[event.category_iids[0]]
            match event.type:
                case kinds.TYPE_SLICE_BEGIN:
                    open_slices[event.track_uuid] = self._event(at, event)
                case kinds.TYPE_SLICE_END:
                    begun = open_slices.pop(event.track_uuid)
                    begun.until = at
                    track.slices.append(begun)
                case kinds.TYPE_INSTANT:
                    track.instants.append(self._event(at, event))
                case kinds.TYPE_COUNTER:
                    track.values.append(Event(at, value=event.counter_value))
        if open_slices:
            raise Location(file).result_error(
                expected="every slice to end", got=f"{len(open_slices)} open"
            )
        for track in self.tracks.values():
            if not track.role and (track.slices or track.instants or track.values):
                raise Location(file).result_error(
                    expected="events with categories",
                    got=f"none in {track.name!r}: a timeline of an earlier version",
                    hint="run the plan again",
                )

    def _intern(self, data: Any) -> None:
        for known, new in (
            (self._names, data.event_names),
            (self._arg_names, data.debug_annotation_names),
            (self._categories, data.event_categories),
        ):
            known.update({entry.iid: entry.name for entry in new})

    def _describe(self, descriptor: Any) -> None:
        if descriptor.HasField("process"):
            track = Track(descriptor.process.process_name, "")
        else:
            track = Track(self.tracks[descriptor.parent_uuid].group, descriptor.name)
        self.tracks[descriptor.uuid] = track

    def _event(self, at: int, event: Any) -> Event:
        return Event(
            at,
            event.name or self._names[event.name_iid],
            args=self._args(event.debug_annotations),
            kind=next((self._categories[iid] for iid in event.category_iids[1:]), ""),
            arrows=[*event.flow_ids, *event.terminating_flow_ids],
            is_last=bool(event.terminating_flow_ids),
        )

    def _args(self, annotations: Iterable[Any]) -> dict[str, Any]:
        return {self._arg_names[a.name_iid]: self._value(a) for a in annotations}

    def _value(self, annotation: Any) -> Any:
        if annotation.dict_entries:
            return self._args(annotation.dict_entries)
        return getattr(annotation, annotation.WhichOneof("value"))

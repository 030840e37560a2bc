"""First packet that differs between two runs, by their timelines or captures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import inf
from typing import Any, Final, NamedTuple

from rampmeter.apps.capture import capture_of, read_frames
from rampmeter.results.run import Run
from rampmeter.timeline import PORT, Timeline


class PacketEvent(NamedTuple):
    """An event of a packet, in the order of time, place and description."""

    at_ps: int
    place: str
    text: str
    """The description; of captured packets the direction, `in` or `out`."""
    data: bytes | None = None
    """The bytes of a captured packet."""


ARGUMENTS: Final = ("flow", "offset", "bytes", "reason")
BYTES_SHOWN: Final = 16
"""Bytes that describe a captured packet, from the first one that differs."""


@dataclass(frozen=True)
class PacketDifference:
    """The first events that differ; `None` if a run has no further event."""

    source: str
    """`timeline` or `capture`."""
    at_us: float
    first: str | None
    second: str | None


def first_packet(first: Run, second: Run) -> PacketDifference | None:
    """Returns the first packet on a link, drop or mark that differs; `None` if there is none.

    Both runs need a timeline, or a capture. Timelines are compared in the window that both have.
    """
    source = packet_source(first, second)
    if source is None:
        return None
    one, two = (_events(run, source) for run in (first, second))
    if source == "timeline":
        windows = [_window(run) for run in (first, second)]
        start, end = max(of[0] for of in windows), min(of[1] for of in windows)
        one, two = ([event for event in of if start <= event.at_ps <= end] for of in (one, two))
    return _first_difference(one, two, source)


def packet_source(first: Run, second: Run) -> str | None:
    """Returns `timeline` or `capture` if both runs have one, else `None`."""
    if first.timeline_file is not None and second.timeline_file is not None:
        return "timeline"
    if capture_of(first) is not None and capture_of(second) is not None:
        return "capture"
    return None


def _first_difference(
    one: Sequence[PacketEvent], two: Sequence[PacketEvent], source: str
) -> PacketDifference | None:
    for a, b in zip_longest(one, two):
        if a != b:
            at = min(event.at_ps for event in (a, b) if event is not None)
            first = None
            if a is not None and b is not None and a.text == b.text:
                first = _common_length(a.data or b"", b.data or b"")
            return PacketDifference(source, at / 1e6, _text(a, first), _text(b, first))
    return None


def _common_length(one: bytes, two: bytes) -> int:
    """Returns the number of first bytes that are equal."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((idx for idx, (a, b) in pairs if a != b), min(len(one), len(two)))


def _text(event: PacketEvent | None, first: int | None) -> str | None:
    """Returns time, place and description; of captured bytes those from the first that differs."""
    if event is None:
        return None
    text, data = event.text, event.data
    if data is not None and first is None:
        text = f"{text} {data.hex()}"
    elif data is not None and first is not None:
        rest = data[first : first + BYTES_SHOWN].hex()
        text = f"{text}, {len(data)} bytes, from byte {first}: {rest}"
    return f"{event.at_ps / 1e6:.6f} us, {event.place}: {text}"


def _events(run: Run, source: str) -> list[PacketEvent]:
    if source == "timeline":
        assert run.timeline is not None
        return sorted(_of_timeline(run.timeline))
    file = capture_of(run)
    assert file is not None
    return sorted(
        PacketEvent(one.time_ps, one.interface, "in" if one.is_arrival else "out", one.data)
        for one in read_frames(file)
    )


def _window(run: Run) -> tuple[float, float]:
    """Returns the ends of a timeline in picoseconds; infinity if it is complete."""
    about = run.timeline_record
    return about["from_ps"], about["until_ps"] if about["limit_reached"] else inf


def _of_timeline(timeline: Timeline) -> list[PacketEvent]:
    links = [
        PacketEvent(one.at, track.name, f"{one.name} {_arguments(one.args)}".strip())
        for track in timeline.links
        for one in track.slices
    ]
    return links + [
        PacketEvent(one.at, track.link, f"{one.name} {_arguments(one.args)}".strip())
        for track in timeline.of_role(PORT)
        for one in track.instants
    ]


def _arguments(args: dict[str, Any]) -> str:
    return ", ".join(f"{name} {args[name]}" for name in ARGUMENTS if name in args)

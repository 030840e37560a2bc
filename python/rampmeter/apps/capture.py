"""Packets as they arrive at a host, from captures of simulated runs (docs/howto/captures.md).

Reads the subset of pcapng that the simulator writes: little-endian, interfaces that count
picoseconds, Ethernet frames of IPv4 and UDP without options.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rampmeter.on_demand import np
from rampmeter.results.run import Run
from rampmeter.text.locations import Location

if TYPE_CHECKING:
    from numpy.typing import NDArray

SECTION = bytes.fromhex("0a0d0d0a")
BYTE_ORDER = bytes.fromhex("4d3c2b1a")
INTERFACE, PACKET = 1, 6
INTERFACE_NAME = 2
ARRIVES = 1
"""The direction of a packet, in the lowest two bits of its flags."""
ENVELOPE = 14 + 20 + 8
"""Offset of the envelope in a frame, in bytes."""
DATA = frozenset((3, 10))
"""The envelope's kinds of packets with payload: without and with the message's digest."""


@dataclass(frozen=True)
class Arrivals:
    """Data packets in order of arrival at a host, one element for each."""

    time_us: NDArray[np.float64]
    flow: NDArray[np.int64]
    """Equal for packets of one message."""

    @classmethod
    def of(cls, run: Run, host: int) -> Arrivals:
        """Reads the data packets that arrived at a host of a run with a capture."""
        file = capture_of(run)
        if file is None:
            raise Location(run.path).result_error(expected="a run with a capture")
        names = run.host_names
        return read_arrivals(file, names[host] if names else f"h{host}")


@dataclass(frozen=True)
class Frame:
    """A captured packet."""

    time_ps: int
    interface: str
    """The host or arbiter, such as `h0`."""
    is_arrival: bool
    """True if it arrived there, false if it was sent."""
    data: bytes


def capture_of(run: Run) -> Path | None:
    """Returns the file of a run's captured packets; `None` unless `run.capture` was set."""
    name = run.manifest["plan"].get("run", {}).get("capture")
    return run.path / name if name else None


def read_frames(file: Path) -> Iterator[Frame]:
    """Yields the packets of a capture; raises `ResultError` if it cannot be read."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise Location(file).result_error(str(error.strerror or error)) from None
    names: list[str] = []
    for kind, start, end in _blocks(data, file):
        if kind == INTERFACE:
            names.append(_option(data, start + 8, end, INTERFACE_NAME).decode())
        if kind != PACKET:
            continue
        interface, high, low, captured = struct.unpack_from("<4I", data, start)
        frame = start + 20
        direction = data[frame + (captured + 3) // 4 * 4 + 4] & 3
        yield Frame(
            high << 32 | low,
            names[interface],
            direction == ARRIVES,
            data[frame : frame + captured],
        )


def read_arrivals(file: Path, host: str) -> Arrivals:
    """Reads the data packets that arrive at a host for the first time, without duplicates.

    The host has the name of its interface, such as `h0`.
    """
    times: list[int] = []
    flows: list[tuple[int, int]] = []
    seen: set[tuple[int, int, int]] = set()
    for frame in read_frames(file):
        if frame.interface != host or not frame.is_arrival:
            continue
        if frame.data[ENVELOPE + 3] in DATA:
            source, message, offset = (
                struct.unpack_from(">I", frame.data, ENVELOPE + at)[0] for at in (8, 24, 28)
            )
            if (source, message, offset) not in seen:
                seen.add((source, message, offset))
                times.append(frame.time_ps)
                flows.append((source, message))
    numbers = {flow: number for number, flow in enumerate(dict.fromkeys(flows))}
    return Arrivals(
        np.asarray(times, dtype=np.float64) / 1e6,
        np.asarray([numbers[flow] for flow in flows], dtype=np.int64),
    )


def _blocks(data: bytes, file: Path) -> Iterator[tuple[int, int, int]]:
    """Yields the type of each block, and the offsets of its content's start and end."""
    if data[:4] != SECTION or data[8:12] != BYTE_ORDER:
        raise Location(file).result_error(
            expected="a little-endian pcapng file", got=data[:12].hex()
        )
    at = 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<2I", data, at)
        if length < 12 or at + length > len(data):
            raise Location(file).result_error(
                expected=f"a whole block at byte {at}", got=f"{length} bytes"
            )
        yield kind, at + 8, at + length - 4
        at += length


def _option(data: bytes, at: int, end: int, code: int) -> bytes:
    """Returns the value of a block's option; empty if the block does not have it."""
    while at + 4 <= end:
        found, length = struct.unpack_from("<2H", data, at)
        if found == code:
            return data[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return b""

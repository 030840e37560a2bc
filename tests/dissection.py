"""Packets in captures, and their fields as tshark decodes them."""

import shutil
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from rampmeter.plan import schema

from .conftest import ROOT

KNOWN = [a for a in schema.transports() if a["wire"] and a["name"] != schema.PYTHON]
TRANSPORTS = tuple(about["name"] for about in KNOWN)
# Wireshark has protocols called tcp and ndp.
TAKEN = ("tcp", "ndp")
FILTERS = {name: f"rampmeter_{name}" if name in TAKEN else name for name in TRANSPORTS}
SCRIPT = ROOT / "wireshark/rampmeter.lua"
PORT = 7321
FRAME_HEADERS = 42
"""Bytes of Ethernet, IPv4 and UDP."""
needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed (Debian: apt install tshark)"
)


def run_tshark(*arguments: str) -> tuple[str, str]:
    """Returns the output and the complaints of tshark."""
    command = ["tshark", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def tshark(capture: Path, *arguments: str) -> str:
    """Returns tshark's output for a capture; fails if the script has an error."""
    texts = run_tshark("-n", "-X", f"lua_script:{SCRIPT}", "-r", str(capture), *arguments)
    for text in texts:
        assert "lua error" not in text.lower(), text
        assert "rampmeter.lua:" not in text, text
    return texts[0]


def rows(capture: Path, names: Sequence[str], *arguments: str) -> list[dict[str, list[str]]]:
    """Returns all values of some fields, packet by packet."""
    fields = [word for name in names for word in ("-e", name)]
    text = tshark(capture, "-T", "fields", "-E", "separator=|", *fields, *arguments)
    return [
        {name: value.split(",") if value else [] for name, value in zip(names, cells, strict=True)}
        for cells in (line.split("|") for line in text.splitlines())
    ]


def numbers(values: Iterable[str]) -> list[int]:
    return [int(value, 0) for value in values]


def infos(capture: Path, *arguments: str) -> list[str]:
    """Returns the info column, packet by packet."""
    return tshark(capture, "-T", "fields", "-e", "_ws.col.Info", *arguments).splitlines()


def frame(payload: bytes, port: int = PORT, cut: int | None = None) -> tuple[bytes, int]:
    """Returns a UDP packet, of which `cut` bytes of payload are captured, and its length."""
    udp = struct.pack(">HHHH", 50_000, port, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, 0x0A4D0001, 0x0A4D0002)
    whole = bytes(12) + b"\x08\x00" + ip + udp
    return (whole if cut is None else whole[: FRAME_HEADERS + cut]), len(whole)


def write_capture(file: Path, frames: Iterable[tuple[bytes, int]]) -> Path:
    """Writes a capture in the old format, which has but one kind of block."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)]
    for captured, length in frames:
        parts += [struct.pack("<IIII", 0, 0, len(captured), length), captured]
    file.write_bytes(b"".join(parts))
    return file

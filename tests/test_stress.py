"""The stress finds violations, and finds none in a few seconds of kills and faults."""

import json
import os
import random
from collections.abc import Callable
from itertools import starmap
from pathlib import Path

import pytest

from rampmeter.testbed import TestbedError
from rampmeter.testbed.process import NAMESPACES
from tools.hosts.cluster import decode_message, encode_message
from tools.hosts.flips import PAYLOAD, flip_one, flip_two
from tools.hosts.ledger import VIOLATIONS, MessageLedger, tiny
from tools.hosts.stress import ROWS, TRANSPORTS, Run, n_arbiters, parse, stress, table

from .nodes import RAMPD, needs_rampd, needs_root

# Incarnation 5 is a program of node 0; 6, one of node 2, receives the messages of 5.
BEGIN = ["P 1.0 5 0 7", "P 1.0 6 2 8"]
SENT = "S 20.0 5 0 2 8 100"
RECEIVED = "R 20.1 2 8 0 5 0"
OUTCOME = "O 20.2 5 0 completed"
END = ["E 90.0 5", "E 90.0 6"]
GOOD = [*BEGIN, SENT, RECEIVED, OUTCOME, *END]
SHORT = tiny(5, 1, 2).hex()


def found(lines: list[str], *excused: str) -> dict[str, int]:
    """Returns the violations that are not 0."""
    ledger = MessageLedger()
    for line in lines:
        ledger.read(line)
    counts = ledger.judge(excused).counts()
    return {name: counts[name] for name in VIOLATIONS if counts[name]}


def test_a_message_that_arrives_once_is_good() -> None:
    assert found(GOOD) == {}


@pytest.mark.parametrize(
    ("lines", "violations"),
    [
        ([*BEGIN, SENT, OUTCOME, *END], {"lost": 1}),
        ([*GOOD, RECEIVED], {"doubled": 1}),
        ([*GOOD, "R 50.0 2 8 0 5 0"], {"doubled": 1}),
        ([*GOOD, "C 20.3 2 8 0 100 00"], {"corrupt": 1}),
        ([*GOOD, "R 20.3 2 8 0 5 99"], {"corrupt": 1}),
        ([*BEGIN, SENT, "R 20.1 2 9 0 5 0", OUTCOME, *END], {"corrupt": 1}),
        ([*BEGIN, SENT, "R 20.1 2 8 1 5 0", OUTCOME, *END], {"corrupt": 1}),
        ([*GOOD, "O 20.4 5 0 unreachable"], {"two-outcomes": 1}),
        ([*BEGIN, SENT, RECEIVED, "O 20.2 5 0 unreachable", *END], {"unexplained": 1}),
        ([*BEGIN, SENT, RECEIVED, *END], {"unreported": 1}),
        ([*GOOD, "P 2.0 9 1 7"], {"crashed": 1}),
    ],
)
def test_each_violation_is_found(lines: list[str], violations: dict[str, int]) -> None:
    assert found(lines) == violations


def test_messages_too_short_for_a_header_are_counted() -> None:
    sent, outcomes = "S 20.0 5 1 2 8 2", "O 20.2 5 1 completed"
    received = f"T 20.1 2 8 0 {SHORT}"
    assert found([*GOOD, sent, received, outcomes]) == {}
    assert found([*GOOD, sent, outcomes]) == {"lost": 1}
    assert found([*GOOD, sent, received, outcomes, received]) == {"doubled": 1}
    assert found([*GOOD, sent, "T 20.1 2 8 0 ffff", outcomes]) == {"lost": 1, "corrupt": 1}


@pytest.mark.parametrize("killed", ["2 8", "2 -1"])
def test_a_kill_explains_nearby_losses(killed: str) -> None:
    missing = [*BEGIN, SENT, OUTCOME, *END]
    failed = [*BEGIN, SENT, "O 20.2 5 0 unreachable", *END]
    assert found([*missing, f"K 20.3 {killed}"]) == {}
    assert found([*missing, f"K 19.9 {killed}"]) == {}
    assert found([*missing, f"K 18.0 {killed}"]) == {"lost": 1}
    assert found([*missing, f"K 60.0 {killed}"]) == {"lost": 1}
    assert found([*failed, f"K 19.0 {killed}"]) == {}
    assert found([*failed, f"K 20.3 {killed}"]) == {"unexplained": 1}
    assert found([*failed, f"K 5.0 {killed}"]) == {"unexplained": 1}
    for other in ("2 9", "3 -1"):
        assert found([*missing, f"K 20.3 {other}"]) == {"lost": 1}


def test_a_missing_service_explains_refusals_only() -> None:
    late = ["P 1.0 5 0 7", "P 21.0 6 2 8"]
    assert found([*late, SENT, "O 22.2 5 0 refused", *END]) == {}
    assert found([*late, SENT, "O 22.2 5 0 unreachable", *END]) == {"unexplained": 1}
    assert found([*BEGIN, SENT, "O 22.2 5 0 refused", *END]) == {"unexplained": 1}
    gone = [*BEGIN, SENT, "O 22.2 5 0 refused", END[0], "G 21.0 6"]
    assert found(gone) == {}


def test_a_killed_program_needs_no_outcomes() -> None:
    assert found([*BEGIN, SENT, RECEIVED, END[1], "K 30.0 0 7"]) == {}
    assert found([*BEGIN, SENT, RECEIVED, END[1], "G 30.0 5", "K 30.0 0 -1"]) == {"unreported": 1}


def test_rejections_by_the_transport_are_explained() -> None:
    assert found([*BEGIN, SENT, "O 20.2 5 0 rejected", *END]) == {}


def test_failures_of_transports_that_abort_are_explained() -> None:
    lines = [*BEGIN, SENT, "O 20.2 5 0 unreachable", *END]
    assert found(lines, "unreachable") == {}
    assert found(lines, "corrupt") == {"unexplained": 1}


def udp_frame(rng: random.Random) -> bytearray:
    """Returns a frame of Ethernet, IPv4 and UDP."""
    payload = rng.randbytes(rng.randrange(50, 1_400))
    ip = bytearray(20)
    ip[0], ip[9] = 0x45, 17
    ip[2:4] = (28 + len(payload)).to_bytes(2, "big")
    return bytearray(12) + b"\x08\x00" + ip + bytes(8) + payload


def words(frame: bytearray) -> list[int]:
    """Returns the 16-bit words of which the checksum of UDP is made."""
    payload = frame[PAYLOAD:] + bytes(len(frame) % 2)
    return [int.from_bytes(payload[at : at + 2], "big") for at in range(0, len(payload), 2)]


@pytest.mark.parametrize(("flip", "bits"), [(flip_one, 1), (flip_two, 2)])
def test_the_configured_number_of_bits_flips(
    flip: Callable[[bytearray, random.Random], bool], bits: int
) -> None:
    rng = random.Random(4)
    for _ in range(200):
        before = udp_frame(rng)
        after = bytearray(before)
        assert flip(after, rng)
        changed = list(starmap(int.__xor__, zip(before, after, strict=True)))
        assert sum(map(int.bit_count, changed)) == bits
        if bits == 2:
            assert sum(words(after)) == sum(words(before))
            assert not any(changed[:PAYLOAD])


def test_frames_of_others_are_not_flipped_twice() -> None:
    arp = bytearray(12) + b"\x08\x06" + bytes(28)
    assert not flip_two(arp, random.Random(1))


def test_messages_identify_their_senders() -> None:
    for size in (28, 29, 70_000):
        assert decode_message(encode_message(7, 3, size))[:2] == (7, 3)
    assert len(tiny(7, 3, 1)) == 1
    assert len(tiny(7, 3, 27)) == 27


def test_all_transports_and_kinds_are_run(tmp_path: Path) -> None:
    out, runs = parse([str(tmp_path), "--all", "--seed", "5"])
    assert out == tmp_path
    assert [(run.transport, run.kind) for run in runs] == [
        (name, kind) for kind in ROWS for name in TRANSPORTS
    ]
    with pytest.raises(SystemExit):
        parse([str(tmp_path)])


@needs_rampd
def test_the_transports_are_those_of_the_daemon(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="expected") as refusal:
        n_arbiters(RAMPD, "none", tmp_path)
    for name in TRANSPORTS:
        assert name in str(refusal.value)
        assert n_arbiters(RAMPD, name, tmp_path) in (0, 1, 2)


@pytest.mark.long
@needs_rampd
@needs_root
def test_nothing_is_lost_doubled_or_corrupt_in_a_few_seconds(tmp_path: Path) -> None:
    runs = [
        Run("phost", "mild", 0.5, 60, 3),
        Run("dcpim", "double", 0.5, 60, 3),
    ]
    assert stress(tmp_path, runs) == 0
    results = json.loads((tmp_path / "stress.json").read_text())
    assert [result["transport"] for result in results] == ["phost", "dcpim"]
    assert all(result["received"] > 20 for result in results)
    assert not list(NAMESPACES.glob(f"stress-{os.getpid()}-*"))
    for kind, flipped in (("mild/phost", "single"), ("double/dcpim", "double")):
        log = (tmp_path / kind / "cable.log").read_text()
        assert f"flips: {flipped}" in log
        assert " changed=0 " not in log
    # Finished results are modified.
    file = tmp_path / "mild" / "phost" / "result.json"
    modified = file.stat().st_mtime_ns
    assert stress(tmp_path, runs) == 0
    assert file.stat().st_mtime_ns == modified


def test_the_table_fits_a_terminal() -> None:
    names = ("killed", "sent", "failed", *VIOLATIONS)
    row = {"transport": "fastpass", "kind": "double", **dict.fromkeys(names, 123_456)}
    assert max(map(len, table([row]).splitlines())) <= 80

"""The soak finds violations, and finds none in half a minute of kills and loss."""

import time
from pathlib import Path

import pytest

from tools.hosts.cluster import decode_message, encode_message
from tools.hosts.soak import (
    FAULTS,
    Sample,
    SoakCluster,
    SoakLog,
    growth,
    idleness,
    judge,
    soak,
    violations,
)

from .nodes import needs_rampd, needs_root

GOOD = [
    "S 10.0 5 1 2 7 100",
    "R 10.1 5 1 100 250 1",
    "O 10.2 5 1 completed",
]


def found(tmp_path: Path, lines: list[str], kills: list[tuple[float, int]]) -> list[str]:
    """Returns the violations of a soak with these lines."""
    file = tmp_path / "program-0.txt"
    file.write_text("\n".join(lines), encoding="utf-8")
    ledger = SoakLog()
    ledger.read(file)
    cluster = SoakCluster(tmp_path, "dcpim", "rampd", [], 100.0, 1, kills=kills)
    samples = [Sample(float(at), 1_000, 30) for at in range(100)]
    return violations(judge(ledger, cluster), growth(samples, 0.0, 100.0))


def test_a_good_log_has_no_violations(tmp_path: Path) -> None:
    assert found(tmp_path, [*GOOD, "R 10.3 5"], []) == []


@pytest.mark.parametrize(
    ("lines", "violation"),
    [
        ([*GOOD, GOOD[1]], "twice: 1"),
        ([GOOD[0], "R 10.1 5 1 100 250 0", GOOD[2]], "changed: 1"),
        (GOOD[1:2], "from unknown senders: 1"),
        ([GOOD[0], GOOD[2]], "completed and not received: 1"),
    ],
)
def test_each_violation_is_found(tmp_path: Path, lines: list[str], violation: str) -> None:
    assert found(tmp_path, lines, []) == [violation]


def test_a_kill_explains_losses_at_its_node_only(tmp_path: Path) -> None:
    lines = [GOOD[0], GOOD[2]]
    assert found(tmp_path, lines, [(10.15, 2)]) == []
    assert found(tmp_path, lines, [(10.15, 3)]) == ["completed and not received: 1"]
    assert found(tmp_path, lines, [(60.0, 2)]) == ["completed and not received: 1"]


def test_failures_among_the_living_are_counted(tmp_path: Path) -> None:
    lines = [
        line for n in range(3) for line in (f"S 10.0 5 {n} 2 7 100", f"O 12.0 5 {n} unreachable")
    ]
    assert found(tmp_path, lines, []) == ["unreachable without a kill: 3"]
    assert found(tmp_path, lines, [(11.0, 2)]) == []


def test_growth_is_found(tmp_path: Path) -> None:
    del tmp_path
    samples = [Sample(float(at), 10_000 + 100 * at, 30 + at // 5) for at in range(100)]
    quiet = dict.fromkeys(
        ("twice", "changed", "from unknown senders", "completed and not received"), 0
    )
    none = {**quiet, "unreachable without a kill": 0, "sent": 1}
    lines = violations(none, growth(samples, 0.0, 100.0))
    assert [text.split(" ")[0] for text in lines] == ["descriptors"]
    samples = [Sample(float(at), 10_000 + 200 * at, 30) for at in range(100)]
    lines = violations(none, growth(samples, 0.0, 100.0))
    assert [text.split(" ")[0] for text in lines] == ["memory"]


def test_a_soak_without_messages_fails() -> None:
    assert idleness({"received": 59}, 1.0) == ["expected at least 60 messages received, got 59"]
    assert idleness({"received": 60}, 1.0) == []


def test_messages_reveal_changes() -> None:
    before = time.monotonic_ns()
    for size in (1, 28, 29, 5_000):
        data = encode_message(7, 3, size)
        incarnation, number, sent_ns, is_whole = decode_message(data)
        assert (incarnation, number, is_whole) == (7, 3, True)
        assert before <= sent_ns <= time.monotonic_ns()
        assert not decode_message(data[:-1])[3]
    flipped = bytearray(encode_message(7, 3, 5_000))
    flipped[4_000] ^= 1
    assert not decode_message(bytes(flipped))[3]


@pytest.mark.long
@needs_root
@needs_rampd
def test_nodes_survive_a_quarter_of_a_minute(tmp_path: Path) -> None:
    assert soak(tmp_path, "phost", 0.25, 3, FAULTS) == 0

"""The soak finds violations, and finds none in half a minute of kills and loss."""

import time
from pathlib import Path

import pytest

from rampmeter.testbed import TestbedError, is_privileged
from rampmeter.testbed.cluster import packed, unpacked
from rampmeter.testbed.experiment import find_rampd
from rampmeter.testbed.soak import (
    FAULTS,
    Bed,
    Ledger,
    Sample,
    growth,
    idleness,
    judge,
    soak,
    violations,
)


def has_rampd() -> bool:
    """Returns whether the daemon is built."""
    try:
        return bool(find_rampd())
    except TestbedError:
        return False


GOOD = [
    "S 10.0 5 1 2 7 100",
    "R 10.1 5 1 100 250 1",
    "O 10.2 5 1 completed",
]


def found(tmp_path: Path, lines: list[str], deaths: list[tuple[float, int]]) -> list[str]:
    """Returns the violations of a soak with these lines."""
    file = tmp_path / "program-0.txt"
    file.write_text("\n".join(lines), encoding="utf-8")
    ledger = Ledger()
    ledger.read(file)
    bed = Bed(tmp_path, "dcpim", "rampd", [], 100.0, 1, deaths=deaths)
    samples = [Sample(float(at), 1_000, 30) for at in range(100)]
    return violations(judge(ledger, bed), growth(samples, 0.0, 100.0))


def test_a_good_log_has_no_violations(tmp_path: Path) -> None:
    assert found(tmp_path, [*GOOD, "R 10.3 5"], []) == []


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([*GOOD, GOOD[1]], "twice: 1"),
        ([GOOD[0], "R 10.1 5 1 100 250 0", GOOD[2]], "changed: 1"),
        (GOOD[1:2], "of nobody: 1"),
        ([GOOD[0], GOOD[2]], "completed and not taken: 1"),
    ],
)
def test_each_violation_is_found(tmp_path: Path, lines: list[str], said: str) -> None:
    assert found(tmp_path, lines, []) == [said]


def test_a_death_explains_what_is_missing_at_its_node_alone(tmp_path: Path) -> None:
    lines = [GOOD[0], GOOD[2]]
    assert found(tmp_path, lines, [(10.15, 2)]) == []
    assert found(tmp_path, lines, [(10.15, 3)]) == ["completed and not taken: 1"]
    assert found(tmp_path, lines, [(60.0, 2)]) == ["completed and not taken: 1"]


def test_failures_among_the_living_are_counted(tmp_path: Path) -> None:
    lines = [
        line for n in range(3) for line in (f"S 10.0 5 {n} 2 7 100", f"O 12.0 5 {n} unreachable")
    ]
    assert found(tmp_path, lines, []) == ["unreachable among the living: 3"]
    assert found(tmp_path, lines, [(11.0, 2)]) == []


def test_growth_is_found(tmp_path: Path) -> None:
    del tmp_path
    samples = [Sample(float(at), 10_000 + 100 * at, 30 + at // 5) for at in range(100)]
    quiet = dict.fromkeys(("twice", "changed", "of nobody", "completed and not taken"), 0)
    none = {**quiet, "unreachable among the living": 0, "sent": 1}
    said = violations(none, growth(samples, 0.0, 100.0))
    assert [text.split(" ")[0] for text in said] == ["descriptors"]
    samples = [Sample(float(at), 10_000 + 200 * at, 30) for at in range(100)]
    said = violations(none, growth(samples, 0.0, 100.0))
    assert [text.split(" ")[0] for text in said] == ["memory"]


def test_a_soak_without_messages_fails() -> None:
    assert idleness({"taken": 59}, 1.0) == ["expected 60 messages taken at least, got 59"]
    assert idleness({"taken": 60}, 1.0) == []


def test_messages_tell_whether_they_are_whole() -> None:
    before = time.monotonic_ns()
    for size in (1, 28, 29, 5_000):
        data = packed(7, 3, size)
        life, number, sent_ns, is_whole = unpacked(data)
        assert (life, number, is_whole) == (7, 3, True)
        assert before <= sent_ns <= time.monotonic_ns()
        assert not unpacked(data[:-1])[3]
    flipped = bytearray(packed(7, 3, 5_000))
    flipped[4_000] ^= 1
    assert not unpacked(bytes(flipped))[3]


@pytest.mark.skipif(not is_privileged(), reason="needs root for namespaces")
@pytest.mark.skipif(not has_rampd(), reason="rampd is not built: make build")
def test_nodes_stand_a_quarter_of_a_minute(tmp_path: Path) -> None:
    assert soak(tmp_path, "phost", 0.25, 3, FAULTS) == 0

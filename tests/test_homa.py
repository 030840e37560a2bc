"""Homa's priorities by a distribution of sizes, compared with sums over its points."""

import numpy as np
import pytest

import rampmeter as rm
from rampmeter import _core

RTT = 71_540


def drawn(sizes: str) -> np.ndarray:
    """Sizes at evenly spaced probabilities."""
    points, is_linear = _core.distribution_points(f'"{sizes}"', ".", 1460)
    assert is_linear
    at, below = np.array(points).T
    return np.asarray(np.interp((np.arange(1_000_000) + 0.5) / 1_000_000, below, at))


@pytest.mark.parametrize(
    ("sizes", "rtt"),
    [
        ("imc10", RTT),
        ("imc10", 1_000_000),
        ("imc10", 5_000_000),
        ("web-search", 1_000_000),
        ("web-search", 5_000_000),
        ("data-mining", RTT),
    ],
)
def test_each_level_has_as_many_unscheduled_bytes(sizes: str, rtt: int) -> None:
    found = rm.homa_priorities(sizes, rtt)
    levels = found["unscheduled_priorities"]
    all_sizes = drawn(sizes)
    first = np.minimum(all_sizes, rtt)
    assert levels == min(max(round(8 * first.sum() / all_sizes.sum()), 1), 7)
    cutoffs = found["cutoffs_bytes"]
    assert len(cutoffs) == 7
    level = np.searchsorted(cutoffs[: levels - 1], all_sizes)
    shares = np.bincount(level, weights=first, minlength=levels) / first.sum()
    assert shares == pytest.approx([1 / levels] * levels, abs=0.01)


def test_a_simulation_accepts_the_priorities() -> None:
    run = rm.run(
        topology=rm.star(hosts=4),
        transport=rm.Homa(**rm.homa_priorities("imc10", RTT)),
        workload=rm.imc10(load=0.5, flows=200),
        quiet=True,
    )
    assert run.summary["flows"]["delivered"] == 200


def test_impossible_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="rtt_bytes: expected at least 1, got 0"):
        rm.homa_priorities("imc10", 0)
    with pytest.raises(ValueError, match="priorities: expected 2 to 8, got 9"):
        rm.homa_priorities("imc10", RTT, priorities=9)
    with pytest.raises(rm.PlanError, match="imc11"):
        rm.homa_priorities("imc11", RTT)

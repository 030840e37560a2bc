"""Intervals over seeds: compared with tables of Student's t, their coverage, enough seeds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rampmeter.analysis.confidence import Interval, interval, next_count

REPETITIONS = 4000


@pytest.mark.parametrize(("n", "t"), [(2, 12.7062), (3, 4.30265), (5, 2.77645), (30, 2.04523)])
def test_half_widths_are_those_of_the_tables(n: int, t: float) -> None:
    values = [float(value) for value in range(n)]
    expected = t * float(np.std(values, ddof=1)) / math.sqrt(n)
    assert interval(values).ci == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_intervals_contain_the_mean_at_their_level(level: float) -> None:
    samples = np.random.default_rng(1).normal(3.0, 0.7, (REPETITIONS, 5))
    found = [interval(sample.tolist(), level) for sample in samples]
    share = np.mean([abs(one.mean - 3.0) <= (one.ci or 0.0) for one in found])
    # Four standard deviations of a share of this number of repetitions.
    assert abs(share - level) < 4 * math.sqrt(level * (1 - level) / REPETITIONS)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9), st.randoms())
def test_the_order_of_values_does_not_matter(values: list[float], random: object) -> None:
    mixed = list(values)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert interval(values) == interval(mixed)


def test_values_that_are_missing_do_not_count() -> None:
    assert interval([1.0, None, 3.0, math.nan]) == interval([1.0, 3.0])
    assert interval([1.5]) == Interval(1.5, None, 1)
    none = interval([None])
    assert (none.ci, none.n, str(none)) == (None, 0, "-")


def test_infinite_values_have_no_interval() -> None:
    assert interval([1.0, math.inf]) == Interval(math.inf, None, 2)


def test_a_level_is_between_0_and_1() -> None:
    with pytest.raises(ValueError, match="expected between 0 and 1, got 95"):
        interval([1.0, 2.0], 95)


class TestNextCount:
    @pytest.mark.parametrize(
        ("points", "count"),
        [
            ([], None),
            ([Interval(2.0, 0.04, 5)], None),
            # 5 x (0.024 / 0.02) squared is 7.2.
            ([Interval(1.0, 0.024, 5)], 8),
            ([Interval(1.0, 0.024, 5), Interval(1.0, 0.9, 5)], 10),
            ([Interval(1.0, 0.9, 20)], 30),
            ([Interval(1.0, 0.9, 30)], None),
            ([Interval(1.0, None, 1)], 2),
            ([Interval(0.0, 0.0, 5)], None),
            ([Interval(0.0, 0.1, 5)], 10),
        ],
    )
    def test_seeds_are_added_by_the_spread(self, points: list[Interval], count: int | None) -> None:
        assert next_count(points, 0.02) == count

    def test_adding_seeds_ends_at_the_precision_or_the_limit(self) -> None:
        random = np.random.default_rng(7)
        values: list[float] = random.normal(1.0, 0.05, 5).tolist()
        while (count := next_count([interval(values)], 0.02, limit=100)) is not None:
            assert len(values) < count <= min(100, 2 * len(values))
            values += random.normal(1.0, 0.05, count - len(values)).tolist()
        assert interval(values).is_within(0.02)
        # About (t s / 0.02) squared, with t near 2 and s = 0.05.
        assert 10 <= len(values) <= 60

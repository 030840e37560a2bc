"""Selection of flows and their statistics, on tables made by hand."""

from pathlib import Path

import numpy as np
import pytest

from rampmeter.papers.selection import Flows, Statistics, by_size, finished_before, overall

from .conftest import write_results

NAN = float("nan")


def flows(*rows: tuple[float, int, float, float]) -> Flows:
    arrival, size, took, ideal = zip(*rows, strict=True)
    return Flows(
        np.array(arrival, float), np.array(size), np.array(took, float), np.array(ideal, float)
    )


class TestFinishedBefore:
    TEN = flows(*((10.0 * i, 1460, took, 1) for i, took in enumerate([5, 40, 9, 9, 5] + [1] * 5)))

    def test_flows_that_end_before_the_arrival_at_the_fraction_are_counted(self) -> None:
        # The fourth of ten arrivals is at 30: flow 1 ends at 50, flow 2 at 29, flow 3 at 39.
        counted = finished_before(self.TEN, 0.4)
        assert np.flatnonzero(counted).tolist() == [0, 2]

    def test_the_end_must_be_strictly_before(self) -> None:
        pair = flows((0, 1, 10, 1), (10, 1, 1, 1))
        assert not finished_before(pair, 1.0).any()

    def test_a_fraction_of_one_is_the_last_arrival(self) -> None:
        assert np.flatnonzero(~finished_before(self.TEN, 1.0)).tolist() == [9]

    def test_the_order_of_rows_does_not_matter(self) -> None:
        order = np.random.default_rng(1).permutation(10)
        mixed = Flows(
            self.TEN.arrival_ps[order],
            self.TEN.size_bytes[order],
            self.TEN.took_ps[order],
            self.TEN.ideal_ps[order],
        )
        assert (finished_before(mixed, 0.4) == finished_before(self.TEN, 0.4)[order]).all()

    def test_unfinished_flows_are_not_selected(self) -> None:
        three = flows((0, 1, NAN, 1), (1, 1, 1, 1), (10, 1, 1, 1))
        assert finished_before(three, 1.0).tolist() == [False, True, False]

    def test_no_flows_are_no_flows(self) -> None:
        empty = Flows(*(np.zeros(0) for _ in range(4)))  # type: ignore[arg-type]
        assert finished_before(empty, 0.4).size == 0

    @pytest.mark.parametrize("fraction", [0.0, -0.1, 1.1])
    def test_other_fractions_are_refused(self, fraction: float) -> None:
        with pytest.raises(ValueError, match="expected above 0 and at most 1"):
            finished_before(self.TEN, fraction)

    def test_the_mark_of_a_million_flows_is_the_400_000th(self) -> None:
        n = 1_000_000
        many = Flows(np.arange(n, dtype=float), np.ones(n, int), np.full(n, 0.5), np.ones(n))
        # Flow i ends at i + 0.5; the 400 000th arrives at 399 999.
        assert np.count_nonzero(finished_before(many, 0.4)) == 399_999


class TestBySize:
    BDP = 49 * 1460

    def test_a_flow_of_an_edges_size_is_in_the_bin_above(self) -> None:
        three = flows((0, self.BDP - 1, 2, 1), (0, self.BDP, 3, 1), (0, 2 * self.BDP, 4, 1))
        groups = by_size(three, np.ones(3, bool), [self.BDP, 2 * self.BDP])
        assert [(g.count, g.mean) for g in groups] == [(1, 2.0), (1, 3.0), (1, 4.0)]

    def test_uncounted_flows_are_not_selected_by_size(self) -> None:
        two = flows((0, 1, 2, 1), (0, 1, 4, 1))
        groups = by_size(two, np.array([False, True]), [self.BDP])
        assert groups[0] == Statistics(1, 4.0, 4.0, 4.0, 4.0, 4.0, 4e-9)
        assert groups[1].count == 0
        assert np.isnan(groups[1].mean)


def test_percentiles_are_interpolated_linearly() -> None:
    values = flows(*((0, 1, i, 1) for i in range(101)))
    statistics = overall(values, np.ones(101, bool))
    assert (statistics.count, statistics.min, statistics.max) == (101, 0.0, 100.0)
    assert (statistics.mean, statistics.p99) == (50.0, 99.0)
    assert statistics.p999 == pytest.approx(99.9)
    two = flows((0, 1, 1, 1), (0, 1, 2, 1))
    assert Statistics.of(two, np.ones(2, bool)).p99 == pytest.approx(1.99)


def test_flows_between_two_sizes_leave_the_lower_one_out() -> None:
    three = flows((0, 10, 1, 1), (0, 11, 1, 1), (0, 21, 1, 1))
    assert three.between(10, 20).tolist() == [False, True, False]
    assert three.between(0, None).all()


def test_columns_of_a_run_keep_unfinished_flows(tmp_path: Path) -> None:
    run = write_results(tmp_path, rows=[(0, 1460, 6, 5), (7, 2920, None, 5)])
    loaded = Flows.of(run)
    assert loaded.arrival_ps.tolist() == [0, 7]
    assert loaded.slowdown()[0] == pytest.approx(1.2)
    assert np.isnan(loaded.took_ps[1])

"""Comparisons of transports: counted flows, intervals, warnings, files."""

import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import rampmeter as rm
from rampmeter.commands.compare import join_transports
from rampmeter.results.comparison import Comparison
from rampmeter.results.comparison_tables import comparison_tables
from rampmeter.results.overlay import Overlay
from rampmeter.text.cautions import ONE_SAMPLE, Caution

from .conftest import SMALL, write_results

Row = tuple[int, int, float | None, int]

SIZES = (1460, 1460, 200_000, 200_000)


def rows(*slowdowns: float | None) -> list[Row]:
    """Returns flows of two size bins, with ideals of 10 ps."""
    return [
        (idx, SIZES[idx], None if slowdown is None else slowdown * 10, 10)
        for idx, slowdown in enumerate(slowdowns)
    ]


def results(folder: Path, name: str, *slowdowns: float | None) -> rm.Run:
    return write_results(folder / name, rows=rows(*slowdowns))


@pytest.fixture
def two(tmp_path: Path) -> dict[str, rm.Run]:
    """Returns one run that delivers all, and one that aborts the hardest flow."""
    return {
        "all": results(tmp_path, "all", 1.0, 2.0, 3.0, 9.0),
        "some": results(tmp_path, "some", 1.5, 2.5, 3.5, None),
    }


class TestFailures:
    def test_flows_that_some_did_not_deliver_count_for_none(self, two: dict[str, rm.Run]) -> None:
        comparison = Comparison(two)
        overall = {label: comparison.slowdowns(label)[-1] for label in two}
        assert overall["all"].mean.mean == 2.0
        assert overall["some"].mean.mean == 2.5
        assert {group.count for group in overall.values()} == {3}
        assert overall["all"].max.mean == 3.0
        assert comparison.nfct("all").mean == 2.0
        [note] = comparison.notes()
        assert note == "Slowdown covers the 3 flows of 4 that every transport delivered."

    def test_undelivered_flows_may_count_as_infinitely_slow(self, two: dict[str, rm.Run]) -> None:
        comparison = Comparison(two, failures="infinite")
        overall = comparison.slowdowns("some")[-1]
        assert (overall.count, overall.mean.mean, overall.p50.mean) == (4, math.inf, 2.5)
        assert overall.p99.mean == overall.max.mean == comparison.nfct("some").mean == math.inf
        assert comparison.slowdowns("all")[-1].mean.mean == 3.75
        assert "count as infinitely slow" in comparison.notes()[0]

    def test_a_transport_that_delivered_less_is_named(self, two: dict[str, rm.Run]) -> None:
        [warning] = Comparison(two).warnings
        assert warning.startswith("some delivered 3 of 4 flows (1 failed); ")
        assert Comparison({"all": two["all"]}).warnings == []

    def test_warnings_that_differ_only_in_numbers_are_reported_once(self, tmp_path: Path) -> None:
        runs = []
        for seed in range(3):
            run = results(tmp_path, str(seed), 1.0, 2.0, 3.0, 4.0)
            own = ["2 of 4 flows were not delivered (2 failed)"]
            own += [f"the interval of the mean is +- {10 + seed} %"] if seed else []
            run.summary["warnings"] = own
            run.summary["warning_codes"] = ["not-delivered", "wide-interval"][: len(own)]
            runs.append(run)
        assert Comparison({"a": runs}).warnings == [
            "a: the interval of the mean is +- 11 % (2 of 3 seeds)"
        ]

    def test_every_count_is_in_the_table(self, two: dict[str, rm.Run]) -> None:
        [flows] = [s for s in comparison_tables(Comparison(two)) if s.title == "Flows"]
        assert flows.text().headings[2:] == (
            "submitted",
            "delivered",
            "failed",
            "rejected",
            "unfinished",
        )
        assert flows.text().rows[1] == ("some", "finished", "4", "3", "1", "0", "0")

    def test_unstarted_flows_have_a_column(self, two: dict[str, rm.Run]) -> None:
        two["some"].summary["flows"]["not_started"] = 2
        comparison = Comparison(two)
        assert comparison.flows("some")["not_started"] == 2
        [flows] = [s for s in comparison_tables(comparison) if s.title == "Flows"]
        assert flows.text().headings[-1] == "not\nstarted"
        assert [row[-1] for row in flows.text().rows] == ["0", "2"]

    def test_windows_that_differ_are_noted(self, two: dict[str, rm.Run]) -> None:
        def notes() -> tuple[str, ...]:
            text_tables = comparison_tables(Comparison(two))
            return next(
                text_table.notes for text_table in text_tables if text_table.title == "Network"
            )

        for run in two.values():
            run.summary["window"] = {"from_ps": 0, "to_ps": 10}
        assert notes() == ()
        two["some"].summary["window"] = {"from_ps": 5, "to_ps": 10}
        assert notes()[0].startswith("Utilisation and goodput are over each transport's own")

    def test_several_seeds_are_more_than_one_sample(self, tmp_path: Path) -> None:
        runs = [results(tmp_path, str(seed), 1.0, 2.0) for seed in range(3)]
        for run in runs:
            run.summary["warnings"] = ["flows arrive in bursts, so the run is one sample"]
            run.summary["warning_codes"] = [ONE_SAMPLE]
        assert len(Comparison({"a": runs[0]}).warnings) == 1
        assert Comparison({"a": runs}).warnings == []

    def test_other_words_are_refused(self, two: dict[str, rm.Run]) -> None:
        with pytest.raises(ValueError, match="expected one of excluded, infinite, got none"):
            Comparison(two, failures="none")  # type: ignore[arg-type]


class TestSizes:
    def test_bins_are_those_of_the_summary(self, two: dict[str, rm.Run]) -> None:
        small, overall = Comparison(two).slowdowns("all")
        assert (small.label, small.upper_bytes, small.count) == ("<1 BDP", 71_539, 2)
        assert (overall.label, overall.count) == ("all", 3)
        assert small.mean.mean == 1.5

    def test_statistics_of_complete_runs_equal_the_summary(self, small_run: rm.Run) -> None:
        [*groups, overall] = Comparison({"a": small_run, "b": small_run}).slowdowns("b")
        known = small_run.summary["slowdown"]["delivered"]
        for name in ("mean", "p50", "p99", "p999", "max"):
            assert getattr(overall, name).mean == known["overall"][name]
        assert [group.count for group in groups] == [
            one["stats"]["count"] if one["stats"] else 0 for one in known["bdp"]
        ]

    def test_statistics_of_a_part_agree_with_the_simulator_s(
        self, small_run: rm.Run, tmp_path: Path
    ) -> None:
        """The first flows are omitted: by the simulator of one run, by the comparison of both."""
        plan = rm.Plan(SMALL).with_(("measure.warmup-flows", 50))
        later = rm.run(plan, out=tmp_path / "later", quiet=True)
        comparison = Comparison({"all": small_run, "later": later})
        ours, theirs = comparison.slowdowns("all")[-1], comparison.slowdowns("later")[-1]
        assert ours.count == theirs.count == 150
        for name in ("mean", "p50", "p99", "p999", "max"):
            assert getattr(ours, name).mean == pytest.approx(getattr(theirs, name).mean, rel=1e-12)
        assert "50 flows of the warm-up are excluded" in comparison.notes()[0]


class TestSeeds:
    def test_every_value_is_a_mean_with_an_interval(self, tmp_path: Path) -> None:
        runs = [results(tmp_path, str(i), 1.0 + i, 2.0, 3.0, 4.0) for i in range(3)]
        comparison = Comparison({"a": runs})
        mean = comparison.slowdowns("a")[-1].mean
        assert mean.mean == 2.75
        # Student's t for two degrees of freedom, over the root of three.
        assert mean.ci == pytest.approx(4.302653 * 0.25 / 3**0.5)
        assert comparison.slowdowns("a")[-1].count == 12
        assert "over 3 seeds" in comparison.notes()[0]

    def test_flows_match_within_each_seed(self, tmp_path: Path) -> None:
        a = [results(tmp_path, f"a{i}", 1.0, 2.0, 3.0, 4.0) for i in range(2)]
        b = [
            results(tmp_path, "b0", None, 2.0, 3.0, 4.0),
            results(tmp_path, "b1", 1.0, 2.0, 3.0, None),
        ]
        overall = Comparison({"a": a, "b": b}).slowdowns("a")[-1]
        assert (overall.count, overall.mean.mean) == (6, 2.5)

    def test_numbers_of_runs_must_agree(self, two: dict[str, rm.Run]) -> None:
        with pytest.raises(ValueError, match="as many runs of each label"):
            Comparison({"a": [two["all"], two["some"]], "b": two["all"]})


def test_runs_of_different_flows_are_an_error(tmp_path: Path) -> None:
    a = write_results(tmp_path / "a", rows=[(0, 1460, 5.0, 5)])
    b = write_results(tmp_path / "b", rows=[(0, 2920, 5.0, 5)])
    with pytest.raises(rm.ResultError, match="b: expected the same flows"):
        Comparison({"a": a, "b": b}).slowdowns("a")


def test_a_table_has_a_row_for_each_transport_and_size(two: dict[str, rm.Run]) -> None:
    table = Comparison(two, failures="infinite").table
    assert table["transport"].to_pylist() == ["all", "all", "some", "some"]
    assert table["mean"].to_pylist()[-1] == math.inf
    assert table["mean_ci"].null_count == 4


def test_a_comparison_can_be_saved_and_read(two: dict[str, rm.Run], tmp_path: Path) -> None:
    Comparison(two, failures="infinite").save(tmp_path)
    (tmp_path / "all").rename(tmp_path / "kept")
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    (moved / "kept").rename(moved / "all")
    again = Comparison.load(moved)
    assert again.failures == "infinite"
    assert {label: [run.path.name for run in runs] for label, runs in again.runs.items()} == {
        "all": ["all"],
        "some": ["some"],
    }
    assert again.slowdowns("some")[-1].mean.mean == math.inf
    moved.rename(tmp_path)


class TestPlots:
    def test_error_bars_show_intervals(self, tmp_path: Path) -> None:
        runs = [results(tmp_path, str(i), 1.0 + i, 2.0, 3.0, 4.0) for i in range(3)]
        one = Comparison({"a": runs[0]}).plot.slowdown_by_size().axes[0]
        several = Comparison({"a": runs}).plot.slowdown_by_size().axes[0]
        labels = [
            [text.get_text() for text in figure.figure.legends[0].get_texts()]
            for figure in (one, several)
        ]
        assert labels == [["a"], ["a", "95 % over 3 seeds"]]
        # The means, the percentiles, and the legend entry.
        assert len(several.collections) == len(one.collections) + 3

    def test_plots_can_be_drawn_into_axes(self, two: dict[str, rm.Run], small_run: rm.Run) -> None:
        figure, (left, right) = plt.subplots(1, 2)
        assert Comparison(two).plot.slowdown_by_size(ax=left) is figure
        assert Overlay(two).fct_cdf(ax=right) is figure
        assert small_run.plot.fct_cdf(ax=right) is figure
        assert left.get_ylabel().startswith("Slowdown")
        assert [text.get_text() for text in left.get_legend().get_texts()] == ["all", "some"]
        assert len(right.lines) == 4
        plt.close(figure)

    def test_curves_of_flows_that_were_not_delivered_end_below_one(
        self, two: dict[str, rm.Run]
    ) -> None:
        lines = Overlay(two).fct_cdf().axes[0].lines
        assert [np.asarray(line.get_ydata()).max() for line in lines] == [1.0, 0.75]


def test_sizes_without_flows_have_no_column_for_readers(tmp_path: Path) -> None:
    plan = rm.Plan(SMALL).with_(("workload.sizes", {"fixed": 100_000}))
    compared = rm.compare(plan, "dcpim,ndp", out=tmp_path / "c", quiet=True)
    (table,) = [one for one in compared.tables.values() if one.name == "mean_by_size"]
    assert [column.key for column in table.columns][-1] == "all"
    assert len(table.columns) == 3
    assert len(compared.tables["slowdown_by_size"].rows) > 4


def test_a_warning_of_several_transports_is_printed_once_with_their_names() -> None:
    cautions = [
        Caution("links fail", "outages"),
        *(Caution("too short", "short").of_transport(of) for of in ("dcpim", "homa")),
        Caution("3 too short", "short").of_transport("ndp"),
    ]
    assert join_transports(cautions) == ["links fail", "dcpim, homa: too short", "ndp: 3 too short"]

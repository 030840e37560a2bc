"""Figures as data, and verdicts."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import rampmeter as rm
from rampmeter import papers
from rampmeter.papers import Measurement, Mode, judge
from rampmeter.papers.expected import CellId, ExpectedValue, Tolerance
from rampmeter.papers.table import panel_table
from rampmeter.papers.verdict import Basis, rows_of
from rampmeter.plan.plan import Override
from rampmeter.running.runner import Batch, JobOutcome

from .conftest import FIG3, ROOT, write_results

FIGURE = papers.load_figure(FIG3)
FIVE_PERCENT = ExpectedValue(2.0, Tolerance(0.05, "relative"), "a table")


class TestFigure3:
    def test_runs_of_the_figure_are_valid_plans(self) -> None:
        for job in papers.jobs_of(FIGURE, Mode("quick"), [1], Path("out")):
            job.plan.check()

    def test_the_figure_has_the_published_loads_and_flow_counts(self) -> None:
        flows = {run.id: run.flows for run in FIGURE.runs if run.variant_of is None}
        loads = ("0.50", "0.60", "0.70", "0.80", "0.82", "0.84", "0.86", "0.88")
        expected = {f"imc10-{load}": 1_000_000 for load in loads}
        expected |= {f"web-search-{load}": 200_000 for load in loads}
        expected["web-search-0.60"] = 1_000_000
        expected |= {f"data-mining-{load}": 100_000 for load in (*loads[:4], "0.90")}
        assert flows == expected

    def test_ids_describe_the_runs(self) -> None:
        for run in FIGURE.runs:
            plan = FIGURE.plan_of(run, run.flows, 3)
            name = f"{plan.get('workload.sizes')}-{plan.get('workload.load'):.2f}"
            suffix = "-paper" if plan.get("transport.preset") == "paper" else ""
            assert run.id == name + suffix
            assert plan.get("seed") == 3

    def test_bins_are_multiples_of_one_bdp(self) -> None:
        bdp = 49 * 1460
        for panel in FIGURE.sub_figures[2:5]:
            assert panel.edges_bytes == tuple(bdp * n for n in (1, 2, 4, 8, 16))
            assert len(panel.labels) == 6

    def test_published_values_are_those_of_the_paper(self) -> None:
        def published(*cell: object) -> tuple[float, float, str]:
            fact = FIGURE.expected.facts[CellId(*cell)]  # type: ignore[arg-type]
            return fact.expected, fact.tolerance.value, fact.tolerance.kind

        assert len(FIGURE.expected.facts) == 21 + 3 + 3 + 3 * 12 + 2 * 12 + 4
        assert published("a", "imc10-0.84", "delivered-share") == (0.9793, 0.005, "absolute")
        assert published("b", "data-mining-0.60", "mean") == (1.284, 0.05, "relative")
        assert published("g", "web-search-0.80", "p99") == (19.568, 0.15, "relative")
        assert published("c", "imc10-0.60", "mean", 2) == (3.398, 0.05, "relative")
        assert published("c", "imc10-0.60", "mean", 3) == (2.756, 0.1, "relative")
        assert published("d", "web-search-0.60", "p99", 5) == (9.377, 0.15, "relative")


class TestModes:
    def test_modes_choose_runs_and_flows(self) -> None:
        in_all = FIGURE.run("imc10-0.60")
        judged_only = FIGURE.run("web-search-0.50")
        modes = [Mode(), Mode("quick"), Mode("full"), Mode("scale", 0.1)]
        assert [in_all.flows_in(m, 10**6) for m in modes] == [10**6, 100_000, 10**6, 100_000]
        assert [judged_only.flows_in(m, 10**6) for m in modes] == [200_000, None, 10**6, 20_000]

    def test_packets_of_collectives_follow_from_hosts_and_vectors(self) -> None:
        figure, quick = papers.load_figure(ROOT / "papers/collectives/all"), Mode("quick")
        packets = papers.data_packets(figure, quick)
        kilobytes = figure.plan.get("workload.vector-bytes") / 1e3
        changes: list[tuple[Override, float]] = [
            (("workload.vector-bytes", f"{kilobytes:g}kB"), 1.0),
            (("topology", {"kind": "fat-tree", "k": 4}), 16 / 64),
        ]
        for change, share in changes:
            changed = replace(figure, plan=figure.plan.with_(change))
            assert papers.data_packets(changed, quick) == pytest.approx(share * packets)

    def test_the_longest_runs_are_first(self) -> None:
        jobs = papers.jobs_of(FIGURE, Mode(), [1, 2], Path("out"))
        assert len(jobs) == 2 * len(FIGURE.runs)
        assert jobs[0].name.startswith("web-search-0.60")
        assert len({job.out for job in jobs}) == len(jobs)


class TestJudge:
    @pytest.mark.parametrize(
        ("value", "verdict"),
        [(1.9, "match"), (2.1, "match"), (1.89, "miss"), (2.11, "miss"), (2.0, "match")],
    )
    def test_relative_tolerances_are_of_the_expected_value(
        self, value: float, verdict: str
    ) -> None:
        assert judge(FIVE_PERCENT, Measurement({1: value}, 9), [1]) == (verdict, "")

    def test_absolute_tolerances_are_differences(self) -> None:
        fact = ExpectedValue(0.98, Tolerance(0.005, "absolute"), "a table")
        assert judge(fact, Measurement({1: 0.975}, 9), [1])[0] == "match"
        assert judge(fact, Measurement({1: 0.9749}, 9), [1])[0] == "miss"

    def test_the_mean_of_the_seeds_is_judged(self) -> None:
        assert judge(FIVE_PERCENT, Measurement({1: 1.5, 2: 2.5}, 9), [1, 2])[0] == "match"

    def test_unpublished_values_are_not_judged(self) -> None:
        assert judge(None, Measurement({1: 2.0}, 9), [1]) == ("not judged", "no published value")

    @pytest.mark.parametrize(
        ("measured", "reason"),
        [
            (None, "seeds 1, 2: run not finished"),
            (Measurement({}, 0), "seeds 1, 2: run not finished"),
            (Measurement({1: math.nan, 2: math.nan}, 0), "seeds 1, 2: no value"),
            (Measurement({1: 2.0, 2: math.nan}, 9), "seed 2: no value"),
            (Measurement({1: 2.0, 2: math.inf}, 9), "seed 2: no value"),
            (Measurement({1: 2.0}, 9), "seed 2: run not finished"),
            (Measurement({2: math.nan}, 9), "seed 1: run not finished; seed 2: no value"),
        ],
    )
    def test_a_seed_without_a_value_is_a_miss_that_names_it(
        self, measured: Measurement | None, reason: str
    ) -> None:
        assert judge(FIVE_PERCENT, measured, [1, 2]) == ("miss", reason)


class TestRows:
    def test_every_value_of_a_panel_has_a_row(self, tmp_path: Path) -> None:
        runs = {
            "imc10-0.60": {1: write_results(tmp_path / "a"), 2: write_results(tmp_path / "b")},
            "imc10-0.60-paper": {1: write_results(tmp_path / "c", utilisation=0.5)},
        }
        shown = rows_of(FIGURE, FIGURE.sub_figures[0], runs, Basis(Mode(), [1, 2]))
        rows = {row.cell.run: row for row in shown}
        assert len(rows) == 21
        row = rows["imc10-0.60"]
        assert row.measured == Measurement({1: 0.99, 2: 0.99}, 4)
        assert row.variant == Measurement({1: 0.5}, 2)
        assert row.verdict == "miss"
        assert row.difference == pytest.approx(0.99 - 0.9973)
        missing = rows["imc10-0.50"]
        assert (missing.verdict, missing.reason) == ("miss", "seeds 1, 2: run not finished")

    def test_sizes_have_a_row_for_each_bin_and_metric(self, tmp_path: Path) -> None:
        flows = [(0, 1460, 6, 5), (0, 71_540, 40, 10), (100, 1460, 5, 5)]
        run = write_results(tmp_path / "a", rows=flows)  # type: ignore[arg-type]
        rows = rows_of(FIGURE, FIGURE.sub_figures[2], {"imc10-0.60": {1: run}}, Basis(Mode(), [1]))
        assert len(rows) == 12
        assert rows[0].measured == Measurement({1: 1.2}, 1)
        assert rows[2].measured == Measurement({1: 4.0}, 1)
        assert (rows[4].verdict, rows[4].reason) == ("miss", "seed 1: no value")
        measured = rows[4].to_json()["measured"]
        assert (measured["mean"], measured["by_seed"]) == (None, {"1": None})

    def test_a_seed_without_flows_in_a_bin_is_kept_as_such(self, tmp_path: Path) -> None:
        both = [(0, 1460, 6, 5), (0, 71_540, 40, 10), (100, 1460, 5, 5)]
        runs = {
            1: write_results(tmp_path / "a", rows=both),  # type: ignore[arg-type]
            2: write_results(tmp_path / "b"),
        }
        row = rows_of(FIGURE, FIGURE.sub_figures[2], {"imc10-0.60": runs}, Basis(Mode(), [1, 2]))[2]
        assert row.measured is not None
        assert (row.measured.values, row.measured.without) == ((4.0,), (2,))
        assert (row.verdict, row.reason, row.n_seeds) == ("miss", "seed 2: no value", 1)

    def test_a_summary_without_a_value_is_a_miss(self, tmp_path: Path) -> None:
        runs = {"imc10-0.50": {1: write_results(tmp_path, utilisation=math.nan)}}
        row = rows_of(FIGURE, FIGURE.sub_figures[0], runs, Basis(Mode(), [1]))[0]
        assert (row.verdict, row.reason) == ("miss", "seed 1: no value")

    @pytest.mark.parametrize("mode", [Mode("full"), Mode("scale", 1.0), Mode("scale", 2.0)])
    def test_more_flows_are_judged_too(self, mode: Mode, tmp_path: Path) -> None:
        runs = {"imc10-0.50": {1: write_results(tmp_path, utilisation=0.9985)}}
        assert rows_of(FIGURE, FIGURE.sub_figures[0], runs, Basis(mode, [1]))[0].verdict == "match"

    @pytest.mark.parametrize("mode", [Mode("quick"), Mode("scale", 0.5)])
    def test_published_values_do_not_judge_runs_of_fewer_flows(
        self, mode: Mode, tmp_path: Path
    ) -> None:
        runs = {"imc10-0.50": {1: write_results(tmp_path, utilisation=0.9985)}}
        row = rows_of(FIGURE, FIGURE.sub_figures[0], runs, Basis(mode, [1]))[0]
        flows = "100 000" if mode.name == "quick" else "500 000"
        assert (row.verdict, row.reason) == ("fewer flows", f"{flows} of 1 000 000 flows")


class TestReducedFigure:
    """Runs of few flows are judged by values of as many flows."""

    SHORT = CellId("c", "imc10-0.60", "mean", 0)

    def test_values_of_the_reduced_figure_are_those_of_recorded_runs(self) -> None:
        assert len(FIGURE.expected.reduced) == 4 + 12 + 12
        fact = FIGURE.expected.reduced[self.SHORT]
        assert fact.expected == 1.036
        assert fact.expected != FIGURE.expected.facts[self.SHORT].expected
        assert "recorded run of the authors' simulator" in fact.source
        assert FIGURE.expected.reduced_flows == {"imc10-0.60": 100_000, "web-search-0.60": 15_000}

    @pytest.mark.parametrize(("took", "verdict"), [(1036, "match"), (1100, "miss")])
    def test_runs_of_the_reduced_figure_get_verdicts(
        self, took: int, verdict: str, tmp_path: Path
    ) -> None:
        run = write_results(tmp_path, rows=[(0, 1460, took, 1000), (9000, 1460, 5, 5)])
        basis = Basis(Mode("quick"), [1])
        rows = rows_of(FIGURE, FIGURE.sub_figures[2], {"imc10-0.60": {1: run}}, basis)
        assert (rows[0].cell, rows[0].verdict) == (self.SHORT, verdict)
        assert rows[2].reason == "seed 1: no value"

    def test_runs_omitted_by_the_reduced_figure_are_not_judged(self) -> None:
        basis = Basis(Mode("quick"), [1], frozenset({"imc10-0.70"}))
        rows = rows_of(FIGURE, FIGURE.sub_figures[0], {}, basis)
        by_run = {row.cell.run: (row.verdict, row.reason) for row in rows}
        assert by_run["imc10-0.70"] == ("not judged", "not in the reduced run")


class TestReport:
    def report(self, tmp_path: Path, seeds: list[int]) -> papers.Report:
        """Returns a report of runs of which all but the first seed's have another utilisation."""
        jobs = papers.jobs_of(FIGURE, Mode(), seeds, tmp_path)
        outcomes = [
            JobOutcome(
                job,
                "ran",
                write_results(job.out, utilisation=0.99 if job.out.name == "seed-1" else 0.98),
            )
            for job in jobs
        ]
        batch = Batch(tuple(outcomes), None, 1.0)
        return papers.make_report(FIGURE, Mode(), seeds, batch, tmp_path)

    def test_fewer_seeds_than_three_are_pointed_out(self, tmp_path: Path) -> None:
        report = self.report(tmp_path, [1])
        assert report.seeds_text() == "1 seed of 3"
        text = shown(report)
        assert "1 of 3" in text
        assert json.loads(report.file.read_text())["seeds_wanted"] == 3

    def test_the_spread_of_the_seeds_is_shown(self, tmp_path: Path) -> None:
        report = self.report(tmp_path, [1, 2, 3])
        assert report.seeds_text() == "3 seeds"
        text = shown(report)
        assert "0.9833 (0.9800-0.9900)" in text
        assert "of 3" not in text
        row = json.loads(report.file.read_text())["sub_figures"][0]["rows"][0]
        assert (row["measured"]["min"], row["measured"]["max"], row["seeds"]) == (0.98, 0.99, 3)

    def test_tables_of_one_seed_fit_a_terminal_of_80_columns(self, tmp_path: Path) -> None:
        report = self.report(tmp_path, [1])
        for panel in report.panels:
            table = panel_table(report, panel)
            table.caption = None
            console = Console(width=80)
            with console.capture() as capture:
                console.print(table)
            text = capture.get()
            assert "…" not in text
            assert "measured" in text

    def test_misses_without_a_value_are_explained(self, tmp_path: Path) -> None:
        report = self.report(tmp_path, [1])
        table = panel_table(report, report.panels[2])
        assert "fewer flows" not in str(table.caption)
        assert "miss: 1-2 BDP mean: seed 1: no value" in str(table.caption)


def shown(report: papers.Report) -> str:
    """Returns the first table as a terminal shows it."""
    console = Console(width=110)
    with console.capture() as capture:
        console.print(panel_table(report, report.panels[0]))
    return capture.get()


class TestEveryFigure:
    FOLDERS = papers.list_figures(ROOT / "papers")

    @pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f"{f.parent.name}-{f.name}")
    def test_a_figure_is_read_with_the_sources_of_its_values(self, folder: Path) -> None:
        expected = papers.load_figure(folder).expected
        facts = [*expected.facts.values(), *expected.reduced.values()]
        assert all(fact.source for fact in facts)
        assert all(claim.source and claim.text for claim in expected.claims)


class TestBrokenFigures:
    @pytest.mark.parametrize(
        ("file", "old", "new", "message"),
        [
            ("figure.toml", 'claim = """', 'klaim = """', "claim: expected this key"),
            ("figure.toml", 'paper = "dcpim"', "paper = 1", "paper: expected a text, got 1"),
            (
                "figure.toml",
                'id = "0.50"',
                'id = "other"',
                "expected the id of a run, got imc10-0.50",
            ),
            ("figure.toml", 'id = "0.50"', 'id = "0.60"', "differ, got 2 imc10-0.60"),
            ("figure.toml", 'metrics = ["mean"', 'metrics = ["goodput"', "points: expected some"),
            ("figure.toml", "\nquick-fl", "\nquik-fl", r"axes\.run\.quik-flows: unknown key"),
            ("figure.toml", '"by-load"', '"by-lode"', "drawing: expected one of by-load"),
            ("figure.toml", 'label = "< 1", ', "", r"bins\[0\]\.label: expected this key"),
            ("figure.toml", "[[grid]]", "[[grid]", r"figure\.toml: .*line"),
            ("expected.toml", 'metric = "p99"', 'metric = "p98"', "metric: expected one of"),
            ("expected.toml", 'metric = "p99"', 'metric = "max"', "no panel shows"),
            ("expected.toml", "bin = 5", "bin = 6", "no panel shows"),
            ("expected.toml", "imc10-0.60", "web-search-0.60", "expected one value for"),
            ("expected.toml", "flows = 100_000", "flows = 9", "flows: expected one number for"),
            ("expected.toml", "flows = 15_000", "flows = 9", "flows: expected one number for"),
            ("expected.toml", "recorded =", "published =", "recorded: expected this key"),
            ("figure.toml", "quick-flows = 15_000", "quick-flows = 9", "expected 9 as in the run"),
            (
                "expected.toml",
                "absolute-tolerance",
                "tolerance",
                "expected one of absolute-tol.*, got 0",
            ),
            ("expected.toml", 'run = "imc10-0.50"', 'run = "x"', "no panel shows"),
        ],
    )
    def test_errors_name_the_place_and_the_fault(
        self, tmp_path: Path, file: str, old: str, new: str, message: str
    ) -> None:
        for source in FIG3.glob("*.toml"):
            (tmp_path / source.name).write_text(source.read_text())
        text = (tmp_path / file).read_text()
        assert old in text
        (tmp_path / file).write_text(text.replace(old, new, 1))
        with pytest.raises(rm.PlanError, match=message):
            papers.load_figure(tmp_path)

    def test_unknown_figures_are_listed(self) -> None:
        with pytest.raises(
            rm.PlanError,
            match=r"expected one of dcpim artifact, .*, dcpim 3, .*, got dcpim 9",
        ):
            papers.find_figure(FIG3.parents[1], "dcpim", "9")

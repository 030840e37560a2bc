"""Figures as data, and verdicts."""

import math
from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter import papers
from rampmeter.papers import Measured, Mode, judge
from rampmeter.papers.figure import CellId, Fact, Tolerance
from rampmeter.papers.verdict import rows_of

from .conftest import FIG3, write_results

FIGURE = papers.load_figure(FIG3)
FIVE_PERCENT = Fact(2.0, Tolerance(0.05, "relative"), "a table")


class TestFigure3:
    def test_its_runs_are_plans_that_can_run(self) -> None:
        for job in papers.jobs_of(FIGURE, Mode("quick"), [1], Path("out")):
            job.plan.check()

    def test_it_has_the_published_loads_and_flow_counts(self) -> None:
        flows = {run.id: run.flows for run in FIGURE.runs if run.variant_of is None}
        loads = ("0.50", "0.60", "0.70", "0.80", "0.82", "0.84")
        expected = {f"imc10-{load}": 1_000_000 for load in loads}
        expected |= {f"web-search-{load}": 200_000 for load in loads}
        expected["web-search-0.60"] = 1_000_000
        expected |= {f"data-mining-{load}": 100_000 for load in loads[:4]}
        assert flows == expected

    def test_ids_say_what_the_runs_are(self) -> None:
        for run in FIGURE.runs:
            plan = FIGURE.plan_of(run, run.flows, 3)
            name = f"{plan.get('workload.sizes')}-{plan.get('workload.load'):.2f}"
            suffix = "-paper" if plan.get("transport.preset") == "paper" else ""
            assert run.id == name + suffix
            assert plan.get("seed") == 3

    def test_bins_are_multiples_of_one_bdp(self) -> None:
        bdp = 49 * 1460
        for panel in FIGURE.sub_figures[2:]:
            assert panel.edges_bytes == tuple(bdp * n for n in (1, 2, 4, 8, 16))
            assert len(panel.labels) == 6

    def test_published_values_are_those_of_the_paper(self) -> None:
        def published(*cell: object) -> tuple[float, float, str]:
            fact = FIGURE.facts[CellId(*cell)]  # type: ignore[arg-type]
            return fact.published, fact.tolerance.value, fact.tolerance.kind

        assert len(FIGURE.facts) == 16 + 3 + 1 + 12 + 12
        assert published("a", "imc10-0.84", "utilisation") == (0.9793, 0.005, "absolute")
        assert published("b", "data-mining-0.60", "mean") == (1.284, 0.05, "relative")
        assert published("c", "imc10-0.60", "mean", 2) == (3.398, 0.05, "relative")
        assert published("c", "imc10-0.60", "mean", 3) == (2.756, 0.1, "relative")
        assert published("d", "web-search-0.60", "p99", 5) == (9.376, 0.15, "relative")


class TestModes:
    def test_they_choose_runs_and_flows(self) -> None:
        in_all = FIGURE.run("imc10-0.60")
        judged_only = FIGURE.run("web-search-0.50")
        modes = [Mode(), Mode("quick"), Mode("full"), Mode("scale", 0.1)]
        assert [in_all.flows_in(m, 10**6) for m in modes] == [10**6, 100_000, 10**6, 100_000]
        assert [judged_only.flows_in(m, 10**6) for m in modes] == [200_000, None, 10**6, 20_000]

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
    def test_relative_tolerances_are_of_the_published_value(
        self, value: float, verdict: str
    ) -> None:
        assert judge(FIVE_PERCENT, Measured((value,), 9), Mode()) == (verdict, "")

    def test_absolute_tolerances_are_differences(self) -> None:
        fact = Fact(0.98, Tolerance(0.005, "absolute"), "a table")
        assert judge(fact, Measured((0.975,), 9), Mode())[0] == "match"
        assert judge(fact, Measured((0.9749,), 9), Mode())[0] == "miss"

    def test_the_mean_of_the_seeds_is_judged(self) -> None:
        assert judge(FIVE_PERCENT, Measured((1.5, 2.5), 9), Mode())[0] == "match"

    @pytest.mark.parametrize(
        ("measured", "fact", "mode", "reason"),
        [
            (None, FIVE_PERCENT, Mode(), "not finished"),
            (Measured((2.0,), 9), None, Mode(), "no published value"),
            (Measured((math.nan,), 0), FIVE_PERCENT, Mode(), "no flows"),
            (Measured((2.0,), 9), FIVE_PERCENT, Mode("quick"), "reduced run"),
            (Measured((2.0,), 9), FIVE_PERCENT, Mode("scale", 0.5), "reduced run"),
        ],
    )
    def test_what_cannot_be_judged_says_why(
        self, measured: Measured | None, fact: Fact | None, mode: Mode, reason: str
    ) -> None:
        assert judge(fact, measured, mode) == ("not judged", reason)

    @pytest.mark.parametrize("mode", [Mode("full"), Mode("scale", 1.0), Mode("scale", 2.0)])
    def test_more_flows_are_judged_too(self, mode: Mode) -> None:
        assert judge(FIVE_PERCENT, Measured((2.0,), 9), mode)[0] == "match"


class TestRows:
    def test_every_value_of_a_panel_has_a_row(self, tmp_path: Path) -> None:
        runs = {
            "imc10-0.60": [write_results(tmp_path / "a"), write_results(tmp_path / "b")],
            "imc10-0.60-paper": [write_results(tmp_path / "c", utilisation=0.5)],
        }
        rows = {row.cell.run: row for row in rows_of(FIGURE, FIGURE.sub_figures[0], runs, Mode())}
        assert len(rows) == 16
        row = rows["imc10-0.60"]
        assert row.measured == Measured((0.99, 0.99), 4)
        assert row.variant == Measured((0.5,), 2)
        assert row.verdict == "miss"
        assert row.difference == pytest.approx(0.99 - 0.9973)
        assert rows["imc10-0.50"].reason == "not finished"

    def test_sizes_have_a_row_for_each_bin_and_metric(self, tmp_path: Path) -> None:
        flows = [(0, 1460, 6, 5), (0, 71_540, 40, 10), (100, 1460, 5, 5)]
        runs = {"imc10-0.60": [write_results(tmp_path / "a", rows=flows)]}  # type: ignore[arg-type]
        rows = rows_of(FIGURE, FIGURE.sub_figures[2], runs, Mode())
        assert len(rows) == 12
        assert rows[0].measured == Measured((1.2,), 1)
        assert rows[2].measured == Measured((4.0,), 1)
        assert rows[4].reason == "no flows"
        assert rows[4].to_json()["measured"] is None


class TestBrokenFigures:
    @pytest.mark.parametrize(
        ("file", "old", "new", "message"),
        [
            ("figure.toml", 'claim = """', 'klaim = """', "expected the key claim"),
            ("figure.toml", 'paper = "dcpim"', "paper = 1", "paper: expected str, got 1"),
            ("figure.toml", 'id = "imc10-0.50"', 'id = "other"', "unknown run imc10-0.50"),
            ("figure.toml", 'id = "imc10-0.50"', 'id = "imc10-0.60"', "unknown run imc10-0.50"),
            ("figure.toml", "\nquick-flows", "\nquik-flows", r"run\[0\]: unknown key quik-flows"),
            ("figure.toml", '"by-load"', '"by-lode"', "drawing: expected one of by-load"),
            ("figure.toml", 'label = "< 1", ', "", r"bins\[0\]: expected the key label"),
            ("figure.toml", "[[run]]", "[[run]", r"figure\.toml: .*line"),
            ("expected.toml", 'metric = "p99"', 'metric = "p98"', "no panel shows"),
            ("expected.toml", "absolute-tolerance", "tolerance", "expected one tolerance, got 0"),
            ("expected.toml", 'run = "imc10-0.50"', 'run = "x"', "no panel shows"),
        ],
    )
    def test_errors_say_where_and_what(
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
            rm.PlanError, match=r"expected one of cosy 2, .*, dcpim 3, phost 3, .*, got dcpim 9"
        ):
            papers.find_figure(FIG3.parents[1], "dcpim", "9")

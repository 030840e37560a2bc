"""Claims of papers about several values: orders, ratios, bounds, and values that are alike."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import rampmeter as rm
from rampmeter import papers
from rampmeter.papers import Measurement, Mode, judge_claim
from rampmeter.papers.claims import ClaimRow, claim_rows, limits_text
from rampmeter.papers.expected import CellId, Claim, load_expected
from rampmeter.papers.reproduce import Report
from rampmeter.papers.table import claims_table
from rampmeter.papers.verdict import Basis, ValueRow

from .conftest import FIG3

FIGURE = papers.load_figure(FIG3)
HEAD = 'claim = "so"\nsource = "section 1"\nsub-figure = "a"\nmetric = "mean"\n'

pytestmark = pytest.mark.usefixtures("here")


def claim(kind: str, keys: str) -> Claim:
    """Returns the claim of a file that has only this one."""
    return claims(f"[[{kind}]]\n{HEAD}{keys}")[0]


def claims(text: str) -> tuple[Claim, ...]:
    file = Path("expected.toml")
    file.write_text(text)
    return load_expected(file).claims


def values(*means: float) -> list[Measurement]:
    return [Measurement({1: mean}, 1) for mean in means]


def verdict(one: Claim, *means: float) -> str:
    return judge_claim(one, values(*means), [1])[0]


class TestOrder:
    def test_values_must_ascend(self) -> None:
        one = claim("order", 'runs = ["x", "y", "z"]')
        assert verdict(one, 1.0, 1.0, 2.0) == "match"
        broken = judge_claim(one, values(1.0, 3.0, 2.0), [1])
        assert broken == ("miss", "y 3 is above z 2")

    def test_slack_is_a_share_of_the_later_value(self) -> None:
        one = claim("order", 'runs = ["x", "y"]\nslack = 0.1')
        assert [verdict(one, x, 2.0) for x in (2.2, 2.21)] == ["match", "miss"]


class TestRatio:
    KEYS = 'of = "x"\nto = { run = "x", metric = "p99" }\nat-least = 1.3\nat-most = 4'

    @pytest.mark.parametrize(
        ("over", "expected_verdict"),
        [(2.6, "match"), (8.0, "match"), (2.59, "miss"), (8.1, "miss")],
    )
    def test_ratios_outside_of_their_limits_are_misses(
        self, over: float, expected_verdict: str
    ) -> None:
        assert verdict(claim("ratio", self.KEYS), over, 2.0) == expected_verdict

    def test_the_two_values_of_a_ratio_may_be_of_two_metrics(self) -> None:
        cells = claim("ratio", self.KEYS).cells
        assert cells == (CellId("a", "x", "mean"), CellId("a", "x", "p99"))

    def test_nothing_is_a_ratio_to_zero(self) -> None:
        assert verdict(claim("ratio", self.KEYS), 1.0, 0.0) == "miss"


class TestBound:
    def test_every_value_must_be_within(self) -> None:
        one = claim("bound", 'runs = ["x", "y"]\nat-most = 0.1')
        assert verdict(one, 0.1, 0.0) == "match"
        assert judge_claim(one, values(0.0, 0.2), [1]) == ("miss", "y 0.2, expected ≤ 0.1")

    def test_a_limit_may_be_the_least(self) -> None:
        one = claim("bound", 'runs = ["x"]\nat-least = 0.5')
        assert [verdict(one, x) for x in (0.5, 0.49)] == ["match", "miss"]


class TestAnyBound:
    """A bound that at least one of some runs must be within, in every seed."""

    KEYS = 'runs = ["x", "y", "z"]\nof = "any"\nat-most = 0.1'

    def judged(self, *by_run: list[float] | None, keys: str = KEYS) -> tuple[str, str]:
        cells = [Measurement(dict(enumerate(one, 1)), 1) if one else None for one in by_run]
        return judge_claim(claim("bound", keys), cells, [1, 2])

    def test_one_run_suffices(self) -> None:
        assert self.judged([0.5, 0.5], [0.0, 0.1], [0.3, 0.3]) == ("match", "")

    def test_the_worst_seed_of_a_run_is_judged_and_the_nearest_run_named(self) -> None:
        verdict = self.judged([0.0, 0.3], [0.2, 0.0], [0.25, 0.25])
        assert verdict == ("miss", "y 0.2, expected any ≤ 0.1")

    def test_a_limit_may_be_the_least(self) -> None:
        keys = self.KEYS.replace("at-most", "at-least")
        assert self.judged([0.0, 0.9], [0.1, 0.2], [0.0, 0.0], keys=keys) == ("match", "")
        missed = self.judged([0.0, 0.9], [0.05, 0.2], [0.0, 0.0], keys=keys)
        assert missed == ("miss", "y 0.05, expected any ≥ 0.1")

    def test_runs_without_a_value_of_some_seed_are_misses(self) -> None:
        lack = "3 of 3 runs have no value of some seed"
        assert self.judged(None, [0.0], [math.nan, 0.0]) == ("miss", lack)
        some = self.judged(None, [0.2, 0.2], [0.0, math.nan])
        lack = "2 of 3 runs have no value of some seed"
        assert some == ("miss", f"y 0.2, expected any ≤ 0.1; {lack}")
        assert self.judged(None, [0.0, 0.0], [math.nan, math.nan]) == ("match", "")

    def test_the_nearest_run_and_its_worst_seed_are_shown(self) -> None:
        one = claim("bound", f"{self.KEYS}\npublished-flows = 0")
        by_run = {"x": [0.0, 0.3], "y": [0.2, 0.0], "z": [math.nan, 0.0]}
        rows = [
            row(CellId("a", run, "mean"), Measurement(dict(enumerate(of, 1)), 1))
            for run, of in by_run.items()
        ]
        figure = replace(FIGURE, expected=replace(FIGURE.expected, claims=(one,)))
        (line,) = claim_rows(figure, rows, Basis(Mode(), [1, 2]))
        # Each seed alone has a run within the limit, but no run is in both.
        assert (line.verdict, line.n_seeds, line.n_holding) == ("miss", 2, 2)
        assert line.to_json()["nearest"] == {"run": "y", "worst": 0.2}
        table = claims_table(Report(figure, Mode(), (), (line,), (1, 2), Path("report.json")))
        assert [*table.columns[1].cells] == ["0.2 (y)"]
        assert [*table.columns[2].cells] == ["any ≤ 0.1"]


class TestSimilarity:
    @pytest.mark.parametrize(
        ("means", "expected_verdict"),
        [((2.0, 2.2, 2.1), "match"), ((2.0, 2.3, 2.1), "miss"), ((0.0, 0.0, 0.0), "match")],
    )
    def test_the_largest_is_near_the_least(
        self, means: tuple[float, float, float], expected_verdict: str
    ) -> None:
        assert (
            verdict(claim("alike", 'runs = ["x", "y", "z"]\nwithin = 0.1'), *means)
            == expected_verdict
        )

    def test_nothing_is_like_zero(self) -> None:
        assert verdict(claim("alike", 'runs = ["x", "y"]\nwithin = 9.0'), 0.0, 0.1) == "miss"


class TestMissingValues:
    ORDER = 'runs = ["x", { run = "y", bin = 2 }]'

    @pytest.mark.parametrize(
        ("measured", "reason"),
        [
            (None, "y [2]: seeds 1, 2: run not finished"),
            (Measurement({1: 2.0}, 1), "y [2]: seed 2: run not finished"),
            (Measurement({1: 2.0, 2: math.nan}, 1), "y [2]: seed 2: no value"),
        ],
    )
    def test_missing_values_are_misses_that_name_the_seed(
        self, measured: Measurement | None, reason: str
    ) -> None:
        both = [Measurement({1: 1.0, 2: 1.0}, 2), measured]
        assert judge_claim(claim("order", self.ORDER), both, [1, 2]) == ("miss", reason)

    def test_nan_breaks_every_kind(self) -> None:
        for kind, keys in (
            ("order", 'runs = ["x", "y"]'),
            ("ratio", 'of = "x"\nto = "y"\nat-least = 0.0'),
            ("bound", 'runs = ["x", "y"]\nat-most = 9.0'),
            ("alike", 'runs = ["x", "y"]\nwithin = 9.0'),
        ):
            assert verdict(claim(kind, keys), math.nan, 1.0) == "miss"
            assert verdict(claim(kind, keys), 1.0, math.nan) == "miss"


def row(cell: CellId, measured: Measurement | None) -> ValueRow:
    return ValueRow(cell, None, measured, None, "not judged", "")


class TestClaimsOfAFigure:
    """The claims of dcPIM's figure 3: short flows of three workloads."""

    def lines(
        self, by_seed: dict[int, float], mode: Mode | None = None, left_out: str = ""
    ) -> list[ClaimRow]:
        cells = [cell for one in FIGURE.expected.claims for cell in one.cells]
        rows = [row(cell, Measurement(by_seed, 9)) for cell in cells]
        basis = Basis(mode or Mode(), [*by_seed], frozenset({left_out}))
        return claim_rows(FIGURE, rows, basis)

    def test_the_mean_of_the_seeds_is_judged_and_each_seed_counted(self) -> None:
        line = self.lines({1: 1.02, 2: 1.03, 3: 1.05})[0]
        assert (line.verdict, line.n_seeds, line.n_holding) == ("match", 3, 2)

    def test_a_value_beyond_its_limit_is_a_miss(self) -> None:
        line = self.lines({1: 1.05})[0]
        assert (line.verdict, line.n_seeds) == ("miss", 1)
        assert line.to_json()["cells"][0]["measured"]["by_seed"] == {"1": 1.05}

    def test_a_panel_without_the_value_is_a_miss(self) -> None:
        lines = claim_rows(FIGURE, [], Basis(Mode("full"), [1]))
        assert {line.verdict for line in lines} == {"miss"}

    @pytest.mark.parametrize("mode", [Mode("quick"), Mode("scale", 0.1)])
    def test_runs_of_fewer_flows_are_neither_match_nor_miss(self, mode: Mode) -> None:
        line = self.lines({1: 1.05}, mode)[0]
        reason = "imc10-0.60 [0]: 100 000 of 1 000 000 flows"
        assert (line.verdict, line.reason) == ("fewer flows", reason)

    def test_a_claim_of_the_default_figure_may_have_fewer_flows(self) -> None:
        line = self.lines({1: 1.0})[-1]
        assert line.claim.cells[0].run == "data-mining-0.60"
        assert line.reason == "data-mining-0.60 [0]: 100 000 of 1 000 000 flows"
        assert self.lines({1: 1.0}, Mode("full"))[-1].verdict == "match"

    def test_a_claim_of_any_number_of_flows_is_judged(self) -> None:
        keys = 'runs = ["imc10-0.60"]\nat-most = 1.1\npublished-flows = 0'
        one = claim("bound", keys)
        figure = replace(FIGURE, expected=replace(FIGURE.expected, claims=(one,)))
        rows = [row(CellId("a", "imc10-0.60", "mean"), Measurement({1: 1.0}, 9))]
        (line,) = claim_rows(figure, rows, Basis(Mode("quick"), [1]))
        assert line.verdict == "match"

    def test_omitted_runs_are_not_judged(self) -> None:
        line = self.lines({1: 1.0}, Mode("quick"), "imc10-0.60")[0]
        assert (line.verdict, line.reason) == ("not judged", "not in the reduced run")

    def test_claims_have_a_table_and_count(self) -> None:
        lines = self.lines({1: 1.05})
        report = Report(FIGURE, Mode(), (), tuple(lines), (1,), Path("report.json"))
        counts = {"match": 2, "miss": 2, "fewer flows": 2, "not judged": 0}
        assert report.counts() == counts
        console = Console(width=110)
        with console.capture() as capture:
            console.print(claims_table(report))
        text = capture.get()
        assert "≤ 1.045" in text
        assert "1 of 3" in text
        assert "miss: IMC10: mean slowdown" in text


def test_a_bound_of_many_values_shows_the_least_and_the_largest() -> None:
    one = claim("bound", 'runs = ["x", "y", "z"]\nat-most = 0.5')
    line = ClaimRow(one, tuple(values(0.25, 0.5, 0.0)), {1: (0.25, 0.5, 0.0)}, "match", "")
    table = claims_table(Report(FIGURE, Mode(), (), (line,), (1,), Path("report.json")))
    assert [*table.columns[1].cells] == ["0 to 0.5"]


def test_claims_have_the_spread_and_the_number_of_seeds_that_meet_them() -> None:
    one = claim("bound", 'runs = ["x"]\nat-most = 0.5')
    by_seed = {1: 0.25, 2: 0.5, 3: 0.75}
    cells = (Measurement(by_seed, 3),)
    line = ClaimRow(one, cells, {s: (v,) for s, v in by_seed.items()}, "match", "")
    table = claims_table(Report(FIGURE, Mode(), (), (line,), (1, 2, 3), Path("report.json")))
    assert [*table.columns[1].cells] == ["0.5 (0.25-0.75)"]
    assert [*table.columns[3].cells] == ["3, 2 hold"]


def test_limits_are_written_as_people_write_them() -> None:
    ratio = claim("ratio", 'of = "x"\nto = "y"\nat-least = 1.3\nat-most = 4')
    assert limits_text(ratio) == "≥ 1.3 and ≤ 4"
    assert limits_text(claim("alike", 'runs = ["x", "y"]\nwithin = 0.15')) == "within 15 %"
    assert limits_text(claim("order", 'runs = ["x", "y"]')) == "ascending"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'[[order]]\n{HEAD}runs = ["x"]', "runs: expected at least 2, got 1"),
        (f'[[order]]\n{HEAD}runs = ["x", 3]', "expected a run's name or a table, got 3"),
        (f'[[order]]\n{HEAD}runs = ["x", {{ run = "y", q = 1 }}]', r"q: unknown key"),
        (f'[[bound]]\n{HEAD}runs = ["x"]', "expected at-least or at-most, got neither"),
        (f'[[ratio]]\n{HEAD}of = "x"\nat-least = 1', r"\.to: expected this key"),
        (f'[[alike]]\n{HEAD}runs = ["x", "y"]', r"\.within: expected this key"),
        (f'[[alike]]\n{HEAD}runs = ["x", "y"]\nwithin = 1\nslack = 1', "slack: unknown key"),
        (f'[[orders]]\n{HEAD}runs = ["x", "y"]', "orders: unknown key"),
        ('[[bound]]\nclaim = "so"\nsub-figure = "a"', r"\.runs: expected this key"),
        (
            '[[bound]]\nclaim = "so"\nsub-figure = "a"\nruns = ["x"]\nat-most = 1\nsource = "s"',
            r"\.metric: expected this key",
        ),
        (
            '[[bound]]\nsource = "s"\nsub-figure = "a"\nmetric = "p98"\nruns = ["x"]\nat-most = 1',
            "metric: expected one of",
        ),
    ],
)
def test_errors_name_the_place_and_the_fault(text: str, message: str) -> None:
    with pytest.raises(rm.PlanError, match=message):
        claims(text)

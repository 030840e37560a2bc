"""Figures of many runs: grids, patterns, and the least bounds at which loads are sustained."""

import json
import math
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import rampmeter as rm
from rampmeter import papers
from rampmeter.papers import Measurement, Mode
from rampmeter.papers.claims import claim_rows
from rampmeter.papers.draw import draw
from rampmeter.papers.expected import CellId
from rampmeter.papers.label import load as load_of
from rampmeter.papers.pareto import LeastBound, SustainedRun, least_bounds
from rampmeter.papers.reproduce import Panel, Report
from rampmeter.papers.runs import match_runs, runs_of_grid
from rampmeter.papers.table import panel_table
from rampmeter.papers.verdict import Basis, ValueRow
from rampmeter.text.locations import Location
from rampmeter.text.strict_table import StrictTable

from .conftest import ROOT
from .drawings import lines as lines_of

FIG4 = ROOT / "papers/cosy/fig4"
SLOTS, HOLD, LOAD = "transport.slots", "transport.hold-us", "workload.load"

FIGURE = """\
paper = "cosy"
figure = "4"
title = "T"
claim = "C"
published-flows = 100
plan = "plan.toml"

[[run]]
id = "lone"
set = { "workload.load" = 0.25 }
flows = 100

[[grid]]
id = "k{slots}-h{hold-us}-{load:.2f}"
label = "K = {slots}"
flows = 100
[grid.axes]
"transport.slots" = [1, 2]
"transport.hold-us" = [500, 900]
"workload.load" = [0.3, 0.5]

[[sub-figure]]
id = "a"
title = "Sustained"
drawing = "pareto"
metrics = ["rejected", "bound-us"]
runs = ["k*"]
theorems = { rtt-us = 14.8, gbps = 10.0, switches = 3, ratio = 1, size-bytes = 128000, spines = 2 }
"""

EXPECTED = """\
[[bound]]
claim = "K = 1 sustains .5"
source = "section 1"
sub-figure = "a"
metric = "rejected"
runs = ["k1-*-0.50"]
of = "any"
at-most = 0.0
"""


def folder(path: Path, figure: str = FIGURE, expected: str = EXPECTED) -> Path:
    (path / "figure.toml").write_text(figure)
    (path / "expected.toml").write_text(expected)
    (path / "plan.toml").write_text((FIG4 / "plan.toml").read_text())
    return path


@pytest.fixture
def small(tmp_path: Path) -> papers.Figure:
    return papers.load_figure(folder(tmp_path))


def grid(**keys: Any) -> StrictTable:
    table = {"id": "r{load}", "flows": 9, "axes": {LOAD: [0.3, 0.5]}} | keys
    return StrictTable(
        {key.replace("_", "-"): value for key, value in table.items()}, Location("f", "grid[0]")
    )


def expanded(**keys: Any) -> list[tuple[str, dict[str, Any], int | None]]:
    return [
        (run.pop("id", str), run.pop("set", dict), run.pop("quick-flows", int, None))
        for run in runs_of_grid(grid(**keys))
    ]


class TestGrid:
    def test_a_grid_has_a_run_for_each_point_and_its_last_axis_is_the_fastest(self) -> None:
        axes = {SLOTS: [1, 16], LOAD: [0.3, 0.5]}
        runs = expanded(id="k{slots}-{load:.2f}", set={HOLD: 7}, axes=axes)
        assert [id_ for id_, *_ in runs] == ["k1-0.30", "k1-0.50", "k16-0.30", "k16-0.50"]
        assert runs[2][1] == {HOLD: 7, SLOTS: 16, LOAD: 0.3}

    def test_reduced_figures_have_all_points_or_those_of_quick_axes(self) -> None:
        axes = {SLOTS: [1, 16], LOAD: [0.3, 0.5]}
        assert [n for *_, n in expanded(axes=axes)] == [None] * 4
        assert [n for *_, n in expanded(axes=axes, quick_flows=5)] == [5] * 4
        some = expanded(axes=axes, quick_flows=5, quick_axes={LOAD: [0.5], SLOTS: [16]})
        assert [n for *_, n in some] == [None, None, None, 5]

    def test_runs_of_a_grid_follow_the_listed_runs(self, small: papers.Figure) -> None:
        assert [run.id for run in small.runs[:3]] == ["lone", "k1-h500-0.30", "k1-h500-0.50"]
        run = small.run("k2-h900-0.50")
        assert (run.label, run.flows, run.quick_flows) == ("K = 2", 100, None)
        plan = small.plan_of(run, 100, 1)
        assert [plan.get(key) for key in (SLOTS, HOLD, LOAD)] == [2, 900, 0.5]

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"axis": {}}, r"f: grid\[0\]\.axis: unknown key"),
            ({"id": 3}, "id: expected a text, got 3"),
            ({"id": "r{size}"}, r"id: expected fields of \{load\}, got 'r\{size\}'"),
            ({"id": "r{}"}, r"id: expected fields of \{load\}"),
            ({"label": "{load.x}"}, r"label: expected fields of \{load\}"),
            ({"label": "{load:.2q}"}, r"label: expected fields of \{load\}"),
            ({"axes": {}}, "axes: expected at least one axis"),
            ({"axes": {LOAD: 0.3}}, r"axes\.workload\.load: expected a list of values, got 0.3"),
            ({"axes": {LOAD: []}}, "expected a list of values"),
            ({"axes": {LOAD: [1], "x.load": [1]}}, "expected the ends of keys to differ"),
            ({"set": {LOAD: 0.5}}, r"expected workload\.load in set or in axes, got both"),
            ({"quick_axes": {LOAD: [0.3]}}, "quick-flows: expected this key with quick-axes"),
            (
                {"quick_flows": 5, "quick_axes": {SLOTS: [1]}},
                r"quick-axes: expected one of workload\.load, got transport\.slots",
            ),
            (
                {"quick_flows": 5, "quick_axes": {LOAD: [0.4]}},
                r"quick-axes\.workload\.load: expected some of 0\.3, 0\.5, got \[0\.4\]",
            ),
        ],
    )
    def test_errors_name_the_place_and_the_fault(self, keys: dict[str, Any], message: str) -> None:
        with pytest.raises(rm.PlanError, match=message):
            runs_of_grid(grid(**keys))


SCHEMES: dict[str, tuple[str, dict[str, Any]]] = {
    "phost": ("pHost", {"transport.name": "phost"}),
    "pfabric": ("pFabric", {"transport.name": "pfabric", "fabric.interface": "queue"}),
    "fastpass": ("Fastpass", {"transport.name": "fastpass"}),
    "ideal": ("Ideal", {"transport.name": "ideal"}),
}


class TestChoices:
    """Axes whose choices set several keys."""

    def test_the_40_runs_of_phost_s_figure_6_are_those_that_were_listed(self) -> None:
        # Each was a separate table: id, label, its keys, flows, and flows when reduced.
        expected: list[tuple[str, str, dict[str, Any], int, int | None]] = []
        for sizes, flows, quick in [
            (None, 100_000, 10_000),
            ("web-search", 4_000, 1_000),
            ("data-mining", 2_000, None),
        ]:
            for scheme, (label, settings) in SCHEMES.items():
                for load in (0.5, 0.6, 0.7, 0.8):
                    if sizes is not None and scheme == "ideal":
                        continue
                    id_ = "-".join(filter(None, [sizes, scheme, f"{load:.2f}"]))
                    own = {"workload.sizes": sizes} if sizes else {}
                    expected.append((id_, label, {**own, **settings, LOAD: load}, flows, quick))
        figure = papers.load_figure(ROOT / "papers/phost/fig6")
        found = [
            (run.id, run.label, dict(run.overrides), run.flows, run.quick_flows)
            for run in figure.runs
        ]
        assert sorted(found, key=itemgetter(0)) == sorted(expected, key=itemgetter(0))

    def test_runs_of_a_figure_may_be_choices_with_variants_and_applications(self) -> None:
        runs = {run.id: run for run in papers.load_figure(ROOT / "papers/cosy/fig6").runs}
        quiet = runs["quiet-16"]
        assert quiet.app == {"policy": "interrupts", "threshold-us": 16.0}
        assert quiet.label == "interrupts, 16 µs"
        assert len(dict(quiet.overrides)["workload.parts"]) == 16
        paper = papers.load_figure(ROOT / "papers/phost/fig3").run("web-search-phost-paper")
        assert (paper.variant_of, paper.label) == ("web-search-phost", None)

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"axes": {"scheme": ["phost"]}}, r"axes\.scheme: expected tables with id and set"),
            ({"axes": {"scheme": [{"set": {}}]}}, r"axes\.scheme\.id: expected this key"),
            ({"axes": {"scheme": [{"id": "a", "sett": {}}]}}, "sett: unknown key"),
            (
                {"axes": {"a": [{"id": "a", "set": {LOAD: 1}}], LOAD: [1]}},
                r"expected workload\.load on one axis, got two",
            ),
            (
                {"axes": {"a": [{"id": "a", "flows": 1}], "b": [{"id": "b", "flows": 1}]}},
                "expected flows of one choice, got two",
            ),
            (
                {"axes": {"a": [{"id": "a", "label": "A"}], "b": [{"id": "b", "label": "B"}]}},
                "label: expected this key, since several choices have one",
            ),
        ],
    )
    def test_errors_name_the_place_and_the_fault(self, keys: dict[str, Any], message: str) -> None:
        first = next(iter(keys["axes"]))
        with pytest.raises(rm.PlanError, match=message):
            runs_of_grid(grid(id=f"{{{first}}}", **keys))


class TestFlows:
    COLLECTIVE = 'set = { "workload.load" = 0.25 }\nflows = 100'
    ALL_REDUCE = 'set = { "workload.pattern" = "collective" }'

    @pytest.mark.parametrize(
        ("instead", "message"),
        [
            ("set = {}", r"figure.toml: lone\.flows: expected this key"),
            ("set = {}\nflows = 9\nquick = true", r"lone\.quick: requires a workload"),
            (ALL_REDUCE + "\nflows = 9", "lone: expected no flows and quick-flows of a coll"),
            (ALL_REDUCE + "\nquick-flows = 9", "lone: expected no flows and quick-flows"),
        ],
    )
    def test_workloads_have_a_number_of_flows_or_decide_it(
        self, tmp_path: Path, instead: str, message: str
    ) -> None:
        assert self.COLLECTIVE in FIGURE
        with pytest.raises(rm.PlanError, match=message):
            papers.load_figure(folder(tmp_path, FIGURE.replace(self.COLLECTIVE, instead)))

    def test_collectives_need_no_number_of_flows(self) -> None:
        figure = papers.load_figure(ROOT / "papers/collectives/all")
        run = figure.run("64-ring-dcpim")
        for mode in (Mode(), Mode("full"), Mode("scale", 0.5), Mode("quick")):
            assert run.is_in(mode)
            assert run.flows_in(mode, 10**6) is None
        assert "flows" not in figure.plan_of(run, None, 2).table()["workload"]
        larger = figure.run("1024-ring-dcpim")
        assert larger.is_in(Mode())
        assert not larger.is_in(Mode("quick"))
        plans = {job.name: job.plan for job in papers.jobs_of(figure, Mode(), [1], Path("out"))}
        assert len(plans) == len(figure.runs)
        for plan in plans.values():
            plan.check()


class TestPatterns:
    IDS = ("b-1", "a-1", "a-2")

    def test_patterns_expand_in_the_order_of_the_figure(self) -> None:
        section = StrictTable({}, Location("file", "bound[0]"))
        assert match_runs(section, "*-1", self.IDS) == ["b-1", "a-1"]
        assert match_runs(section, "a-[12]", self.IDS) == ["a-1", "a-2"]
        assert match_runs(section, "other", self.IDS) == ["other"]

    def test_a_pattern_without_a_match_is_an_error(self) -> None:
        section = StrictTable({}, Location("file", "bound[0]"))
        with pytest.raises(
            rm.PlanError,
            match=r"file: bound\[0\]\.runs: expected a pattern that matches a run, got c-\*",
        ):
            match_runs(section, "c-*", self.IDS)

    def test_a_panel_shows_a_run_once(self, tmp_path: Path) -> None:
        text = FIGURE.replace('runs = ["k*"]', 'runs = ["k1-*", "k1-h500-0.30", "k*"]')
        panel = papers.load_figure(folder(tmp_path, text)).sub_figures[0]
        assert len(panel.runs) == 8

    def test_claims_may_have_patterns_in_tables(self, tmp_path: Path) -> None:
        text = EXPECTED.replace('"k1-*-0.50"', '{ run = "k1-*", metric = "bound-us" }')
        claim = papers.load_figure(folder(tmp_path, expected=text)).expected.claims[0]
        assert [cell.run for cell in claim.cells][:2] == ["k1-h500-0.30", "k1-h500-0.50"]
        assert {cell.metric for cell in claim.cells} == {"bound-us"}

    @pytest.mark.parametrize(
        ("file", "old", "new", "message"),
        [
            (
                FIGURE,
                '["k*"]',
                '["q*"]',
                r"figure\.toml: sub-figure\[0\]\.runs: expected a pattern that matches a run",
            ),
            (FIGURE, '["k*"]', "[3]", "runs: expected a run's name or a pattern, got 3"),
            (FIGURE, "{load:.2f}", "{load:.0f}", r"expected run ids to differ, got 2 k1-h500-0"),
            (FIGURE, "\nflows = 100\n[grid", "\nflow = 100\n[grid", "flow: unknown key"),
            (FIGURE, '"bound-us"]', "]", "metrics: expected bound-us for pareto"),
            (FIGURE, "spines = 2", "spine = 2", r"theorems\.spines: expected this key"),
            (FIGURE, "spines = 2", "spines = 2, x = 1", r"theorems\.x: unknown key"),
            (
                EXPECTED,
                "k1-*",
                "k3-*",
                r"expected\.toml: bound\[0\]\.runs: expected a pattern that matches a run, got k3-",
            ),
            (EXPECTED, '"any"', '"some"', "of: expected one of all, any, got some"),
            (EXPECTED, "at-most = 0.0", "at-most = 1\nat-least = 0", "of: expected one limit"),
            (EXPECTED, '"k1-*-0.50"', '"*"', "no panel shows .*lone"),
        ],
    )
    def test_errors_name_the_place_and_the_fault(
        self, tmp_path: Path, file: str, old: str, new: str, message: str
    ) -> None:
        assert old in file
        changed = file.replace(old, new)
        of_figure = file is FIGURE
        texts = (changed, EXPECTED) if of_figure else (FIGURE, changed)
        with pytest.raises(rm.PlanError, match=message):
            papers.load_figure(folder(tmp_path, *texts))


BOUNDS = {"k1-h500": 700.0, "k1-h900": 1100.0, "k2-h500": 800.0, "k2-h900": 1200.0}
SEEDS = (1, 2, 3)


def rows(rejected: dict[str, list[float]]) -> list[ValueRow]:
    """Rows of some runs, with the share rejected of seeds 1, 2, ..."""
    made = []
    for run, shares in rejected.items():
        bound = BOUNDS[run.rpartition("-")[0]]
        for metric, values in (("rejected", shares), ("bound-us", [bound] * len(shares))):
            measured = Measurement(dict(enumerate(values, 1)), 1)
            cell = CellId("a", run, metric)
            made.append(ValueRow(cell, None, measured, None, "not judged", ""))
    return made


NONE_REJECTED = {f"{column}-{load}": [0.0] * 3 for column in BOUNDS for load in ("0.30", "0.50")}


def least(figure: papers.Figure, **rejected: list[float]) -> dict[tuple[str, float], Any]:
    """Returns the runs with the least bounds; keyword `k1_h500_30` is the run `k1-h500-0.30`."""
    changed = {
        f"{'-'.join(key.split('_')[:2])}-0.{key.split('_')[2]}": value
        for key, value in rejected.items()
    }
    shares = {run: value for run, value in (NONE_REJECTED | changed).items() if value}
    found = least_bounds(figure, figure.sub_figures[0], rows(shares), SEEDS)
    return {(line.label, line.load): line.least and line.least.run for line in found}


class TestLeastBounds:
    def test_the_setting_of_a_run_may_have_a_unit(self, tmp_path: Path) -> None:
        text = FIGURE.replace("[500, 900]", '["500us", "900us"]')
        # Three characters of each text, so that ids are those of numbers.
        text = text.replace("{hold-us}", "{hold-us:.3}")
        figure = papers.load_figure(folder(tmp_path, text))
        panel = figure.sub_figures[0]
        lines = least_bounds(figure, panel, rows(NONE_REJECTED), SEEDS)
        assert {line.least.setting for line in lines if line.least is not None} == {500.0}
        by_hold = replace(panel, x=HOLD)
        assert [load_of(figure, by_hold, f"k1-h{hold}-0.30") for hold in (500, 900)] == [
            500.0,
            900.0,
        ]

    def test_each_label_and_load_has_the_run_with_the_least_bound(
        self, small: papers.Figure
    ) -> None:
        found = least_bounds(small, small.sub_figures[0], rows(NONE_REJECTED), SEEDS)
        assert [(line.label, line.load) for line in found] == [
            ("K = 1", 0.3),
            ("K = 1", 0.5),
            ("K = 2", 0.3),
            ("K = 2", 0.5),
        ]
        assert found[1] == LeastBound(
            "K = 1", 0.5, SustainedRun("k1-h500-0.50", 700.0, 500.0), True
        )

    def test_a_load_sustained_in_two_of_three_seeds_is_not_sustained(
        self, small: papers.Figure
    ) -> None:
        found = least(small, k1_h500_50=[0.0, 0.0, 1e-4])
        assert found["K = 1", 0.5] == "k1-h900-0.50"
        assert found["K = 1", 0.3] == "k1-h500-0.30"
        assert found["K = 2", 0.5] == "k2-h500-0.50"

    def test_loads_above_an_unsustained_one_are_unsustained(self, small: papers.Figure) -> None:
        found = least(small, k1_h500_30=[0.1] * 3)
        assert found["K = 1", 0.3] == "k1-h900-0.30"
        assert found["K = 1", 0.5] == "k1-h900-0.50"

    def test_the_worst_seed_is_compared_with_the_share_allowed(self, tmp_path: Path) -> None:
        text = FIGURE.replace('"Sustained"', '"Sustained"\nrejected-max = 0.01')
        figure = papers.load_figure(folder(tmp_path, text))
        assert least(figure, k1_h500_50=[0.01] * 3)["K = 1", 0.5] == "k1-h500-0.50"
        assert least(figure, k1_h500_50=[0.0, 0.0, 0.02])["K = 1", 0.5] == "k1-h900-0.50"

    @pytest.mark.parametrize("shares", [[], [0.0, 0.0], [0.0, math.nan, 0.0]])
    def test_a_run_without_a_value_of_some_seed_sustains_nothing(
        self, small: papers.Figure, shares: list[float]
    ) -> None:
        assert least(small, k1_h500_30=shares)["K = 1", 0.5] == "k1-h900-0.50"

    def test_no_load_and_missing_values_are_distinguished(self, small: papers.Figure) -> None:
        shares = NONE_REJECTED | {"k1-h500-0.50": [0.1] * 3, "k1-h900-0.50": [0.1] * 3}
        shares |= {"k2-h500-0.50": [0.1] * 3, "k2-h900-0.50": [0.0]}
        found = least_bounds(small, small.sub_figures[0], rows(shares), SEEDS)
        outcomes = [(line.least is not None, line.is_complete) for line in found]
        assert outcomes == [(True, True), (False, True), (True, True), (False, False)]

    def test_runs_omitted_by_a_reduced_figure_have_no_lines(self, small: papers.Figure) -> None:
        left_out = frozenset(run for run in NONE_REJECTED if run != "k2-h500-0.50")
        shares = {"k2-h500-0.50": [0.0] * 3}
        found = least_bounds(small, small.sub_figures[0], rows(shares), SEEDS, left_out)
        assert found == [LeastBound("K = 2", 0.5, SustainedRun("k2-h500-0.50", 800.0, 500.0), True)]

    def test_least_bounds_are_in_the_table_and_report_of_their_panel(
        self, small: papers.Figure
    ) -> None:
        shares = NONE_REJECTED | {"k1-h500-0.50": [0.1] * 3, "k1-h900-0.50": [0.1] * 3}
        found = least_bounds(small, small.sub_figures[0], rows(shares), SEEDS)
        panel = Panel("a", "Sustained", (), Path("a.png"), tuple(found))
        table = panel_table(Report(small, Mode(), (panel,), (), SEEDS, Path("r.json")), panel)
        columns = [[*column.cells] for column in table.columns]
        assert columns == [
            ["K = 1", "K = 1", "K = 2", "K = 2"],
            ["0.3", "0.5", "0.3", "0.5"],
            ["700", "none", "800", "800"],
            ["500", "-", "500", "500"],
        ]
        console = Console(width=80)
        with console.capture() as capture:
            console.print(table)
        assert "hold-us" in capture.get()
        assert json.loads(json.dumps(found[1].to_json())) == {
            "label": "K = 1",
            "load": 0.5,
            "run": None,
            "bound_us": None,
            "setting": None,
            "is_complete": True,
        }

    def test_the_plot_of_least_bounds_has_a_curve_for_each_label_and_theorem(
        self, small: papers.Figure
    ) -> None:
        found = least_bounds(small, small.sub_figures[0], rows(NONE_REJECTED), SEEDS)
        shown = lines_of(draw(small, small.sub_figures[0], [], least=found))
        # 0.5 is sustained at the bound of 0.3, and the last step continues to the right.
        assert shown["K = 2"] == [(800.0, 0.5), (1000.0, 0.5)]
        stars = [points[0] for name, points in shown.items() if name.startswith("_child")]
        assert [round(bound, 1) for bound, _ in stars] == [132.0, 241.6]
        assert [round(load, 3) for _, load in stars] == [0.328, 0.355]

    def test_theorems_of_labels_without_a_curve_are_not_drawn(self, small: papers.Figure) -> None:
        found = [LeastBound("K = 2", 0.3, SustainedRun("k2-h500-0.30", 800.0, 500.0), True)]
        shown = lines_of(draw(small, small.sub_figures[0], [], least=found))
        stars = [points for name, points in shown.items() if name.startswith("_child")]
        assert [round(bound, 1) for ((bound, _),) in stars] == [241.6]

    def test_a_plot_without_runs_is_drawn_empty(self, small: papers.Figure) -> None:
        assert lines_of(draw(small, small.sub_figures[0], [])) == {}


def test_a_claim_of_any_run_is_judged_on_the_runs_of_its_pattern(small: papers.Figure) -> None:
    shares = NONE_REJECTED | {"k1-h500-0.50": [0.0, 0.2, 0.1]}
    line = claim_rows(small, rows(shares), Basis(Mode(), SEEDS))[0]
    assert (line.verdict, line.n_seeds, line.n_holding) == ("match", 3, 3)
    assert line.to_json()["nearest"] == {"run": "k1-h900-0.50", "worst": 0.0}


class TestFigure4:
    FIGURE = papers.load_figure(FIG4)

    def test_the_grid_of_figure_4_combines_bounds_loads_and_holds(self) -> None:
        ids = [run.id for run in self.FIGURE.runs]
        assert sum(id_.startswith("pareto-k") for id_ in ids) == 5 * 10 * 5
        assert sum(id_.startswith("pareto-oldest-k16-") for id_ in ids) == 10 * 5
        run = self.FIGURE.run("pareto-k16-h5000-0.90")
        assert dict(run.overrides) == {SLOTS: 16, HOLD: 5000, LOAD: 0.9}
        assert (run.label, run.flows) == ("K = 16", 20_000)

    def test_few_runs_of_the_grid_are_in_the_reduced_figure(self) -> None:
        quick = [run.id for run in self.FIGURE.runs if run.quick_flows]
        assert sum(id_.startswith("pareto-") for id_ in quick) == 8

    def test_the_claim_that_bounds_are_met_covers_all_runs(self) -> None:
        claim = next(c for c in self.FIGURE.expected.claims if c.cells[0].metric == "late")
        assert {cell.run for cell in claim.cells} == {run.id for run in self.FIGURE.runs}
        assert claim.of == "all"

    def test_plans_of_its_grids_can_run(self) -> None:
        for run in self.FIGURE.runs[:: len(self.FIGURE.runs) // 10]:
            self.FIGURE.plan_of(run, run.flows, 1).check()

"""The highest load that is sustained, by bisection."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rampmeter import papers
from rampmeter._core import PlanError
from rampmeter.papers import Mode
from rampmeter.papers.reproduce import job_name, probe_name, searches_of
from rampmeter.papers.search import LOAD, Search, SearchProbes
from rampmeter.running.runner import Batch, Job, run_all
from rampmeter.text.locations import Location
from rampmeter.text.strict_table import StrictTable

from .commands import ok
from .conftest import ROOT, SMALL

LOADS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

FIGURE = """\
paper = "p"
figure = "1"
title = "T"
claim = "C"
published-flows = 300
plan = "plan.toml"

[[run]]
id = "lone"
set = { "workload.load" = 0.25 }
flows = 50

[[search]]
id = "{scheme}"
loads = "0.2..0.9:0.1"
metric = "delivered-share"
at-least = 0.9
flows = 300
quick-flows = 100
quick-axes = { scheme = ["dcpim"] }
[search.axes]
scheme = [
    { id = "dcpim", label = "dcPIM", set = { "transport.name" = "dcpim" } },
    { id = "phost", label = "pHost", set = { "transport.name" = "phost" } },
]

[[sub-figure]]
id = "a"
title = "Maximum load"
drawing = "by-workload"
metrics = ["max-load"]
runs = ["dcpim", "phost"]
"""

EXPECTED = """\
[[facts]]
sub-figure = "a"
metric = "max-load"
absolute-tolerance = 0.7
source = "nowhere"
values = [{ run = "dcpim", published = 0.5 }]

[[order]]
claim = "both are alike"
source = "nowhere"
sub-figure = "a"
metric = "max-load"
runs = ["dcpim", "phost"]
slack = 5.0
"""


def folder(path: Path, figure: str = FIGURE) -> Path:
    """Returns a figure of a small star."""
    path = path / "papers/p/fig1"
    path.mkdir(parents=True)
    (path / "figure.toml").write_text(figure)
    (path / "expected.toml").write_text(EXPECTED)
    (path / "plan.toml").write_text(SMALL)
    return path


def search(**keys: Any) -> Search:
    """Returns a search of one key more or less."""
    table = {"loads": "0.2..0.9:0.1", "metric": "delivered-share", "at-least": 0.9}
    return Search.of(
        StrictTable(table | {k.replace("_", "-"): v for k, v in keys.items()}, Location("f"))
    )


def searched(of: Search, value: Mapping[float, float]) -> SearchProbes:
    """Returns the end of a search for which loads have these values."""
    probed: dict[float, float] = {}
    while (load := of.next_load(probed)) is not None:
        assert load not in probed
        probed[load] = value[load]
    return SearchProbes(of, probed)


def made(
    figure: papers.Figure, mode: Mode, seeds: Sequence[int], out: Path, stop_after: int = 99
) -> Batch:
    """Returns the batch of a figure, or of its first rounds of probes."""
    batch = run_all(papers.jobs_of(figure, mode, seeds, out))
    for _ in range(stop_after):
        jobs = papers.probes_of(figure, mode, seeds, batch, out)
        if not jobs:
            break
        batch = batch.followed_by(run_all(jobs))
    return batch


class TestBisection:
    @given(n_loads=st.integers(1, 70), n_sustained=st.integers(0, 70), is_least=st.booleans())
    def test_bisection_finds_the_last_sustained_load_of_a_monotone_metric(
        self, *, n_loads: int, n_sustained: int, is_least: bool
    ) -> None:
        loads = tuple((i + 1) / 100 for i in range(n_loads))
        sustained = loads[:n_sustained]
        limits = {"at_least": 0.98} if is_least else {"at_most": 0.02}
        of = Search(loads, "delivered-share", **limits)
        good, bad = (0.98, 0.97999) if is_least else (0.02, 0.02001)
        probes = searched(of, {load: good if load in sustained else bad for load in loads})
        assert len(probes.values) <= of.probes_max <= math.log2(n_loads) + 1
        if not sustained:
            assert math.isnan(probes.highest)
            assert probes.note == "none is sustained"
            assert loads[0] in probes.values
            return
        assert probes.highest == sustained[-1]
        # Both neighbours have been run.
        assert sustained[-1] in probes.values
        above = loads[n_sustained : n_sustained + 1]
        assert set(above) <= set(probes.values)
        assert probes.note == ("" if above else "all are sustained")

    def test_an_unfinished_search_has_no_result(self) -> None:
        probes = SearchProbes(search(), {0.6: 0.95})
        assert math.isnan(probes.highest)
        assert probes.note == "not over"
        assert probes.search.next_load(probes.values) == 0.8

    def test_a_run_without_the_metric_sustains_nothing(self) -> None:
        assert not search().is_sustained(math.nan)

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"loads": "0.9..0.2:-0.1"}, "f: loads: expected loads in ascending order"),
            ({"loads": "0.5,0.5"}, "expected loads in ascending order"),
            ({"loads": "0.0..0.9:0.1"}, "expected loads above 0, got 0.0"),
            ({"loads": "low,high"}, "expected loads above 0, got 'low'"),
            ({"loads": "0.2..0.9"}, "expected a step"),
            ({"loads": "uniform(0.2, 0.9)"}, "f: loads: expected loads, got"),
            ({"loads": 0.5}, "loads: expected a text, got 0.5"),
            ({"metric": "p99"}, "metric: expected one of delivered-share, throughput"),
            ({"at_most": 0.1}, "expected one of at-least or at-most, got 2"),
        ],
    )
    def test_bad_input_is_named(self, keys: dict[str, Any], message: str) -> None:
        with pytest.raises(PlanError, match=message):
            search(**keys)


class TestFigure:
    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('"lone"\nset', '"dcpim"\nset', "expected run ids to differ, got 2 dcpim"),
            (
                '["max-load"]',
                '["max-load", "delivered-share"]',
                "no other metric of them, got deli",
            ),
            ('runs = ["dcpim", ', 'runs = ["lone", "dcpim", ', "got max-load of lone"),
            ('"transport.name" = "phost"', '"workload.load" = 0.5', "in loads alone"),
            ("at-least = 0.9\n", "", "expected one of at-least or at-most, got 0"),
            ("quick-axes", "fast-axes", "fast-axes: unknown key"),
        ],
    )
    def test_bad_input_is_named(self, tmp_path: Path, old: str, new: str, message: str) -> None:
        assert old in FIGURE
        with pytest.raises(PlanError, match=message):
            papers.load_figure(folder(tmp_path, FIGURE.replace(old, new)))

    def test_bisection_and_a_scan_of_all_loads_agree(self, tmp_path: Path) -> None:
        figure = papers.load_figure(folder(tmp_path))
        seeds, out = [1, 2], tmp_path / "out"
        found = searches_of(figure, seeds, made(figure, Mode(), seeds, out))
        highest = {}
        for name in ("dcpim", "phost"):
            for seed in seeds:
                run = figure.run(name)
                jobs = [
                    Job(
                        str(load),
                        figure.plan_of(run, 300, seed, load),
                        tmp_path / "scan" / name / f"{load}-{seed}",
                    )
                    for load in LOADS
                ]
                scanned = run_all(jobs).runs()
                sustained = [
                    load for load in LOADS if scanned[str(load)].summary["delivered_share"] >= 0.9
                ]
                # The transport is monotone here, so that both answer the same question.
                assert sustained == list(LOADS[: len(sustained)])
                assert 0 < len(sustained) < len(LOADS)
                probes = found[name][seed]
                assert probes.highest == sustained[-1]
                assert len(probes.values) <= 4
                highest[name, seed] = probes.highest
        assert len(set(highest.values())) > 1

    def test_the_report_of_a_search_has_probes_verdicts_and_claims(self, tmp_path: Path) -> None:
        figure = papers.load_figure(folder(tmp_path))
        out = tmp_path / "out"
        batch = made(figure, Mode(), [1], out)
        report = papers.make_report(figure, Mode(), [1], batch, out)
        row = report.panels[0].rows[0]
        assert (row.cell.metric, row.verdict) == ("max-load", "match")
        assert report.claims[0].verdict == "match"
        assert report.panels[0].image.is_file()
        text = json.loads(report.file.read_text())
        assert [run["run"] for run in text["runs"]] == ["lone"]
        first = text["searches"][0]
        assert (first["run"], first["seed"], first["at_least"]) == ("dcpim", 1, 0.9)
        assert first["max_load"] == row.measured.mean if row.measured else None
        sustained = [probe["load"] for probe in first["probes"] if probe["is_sustained"]]
        assert max(sustained) == first["max_load"]

    def test_an_interrupted_search_continues_with_its_probes(self, tmp_path: Path) -> None:
        figure = papers.load_figure(folder(tmp_path))
        out = tmp_path / "out"
        part = made(figure, Mode(), [1], out, stop_after=2)
        report = papers.make_report(figure, Mode(), [1], part, out)
        assert report.panels[0].rows[0].reason == "seed 1: no value"
        assert report.searches["dcpim"][1].note == "not over"
        whole = made(figure, Mode(), [1], out)
        states = [outcome.state for outcome in whole.outcomes]
        assert states[: len(part.outcomes)] == ["reused"] * len(part.outcomes)
        assert "ran" in states

    def test_a_probe_that_did_not_end_ends_its_search(self, tmp_path: Path) -> None:
        figure = papers.load_figure(folder(tmp_path))
        out = tmp_path / "out"
        batch = made(figure, Mode(), [1], out, stop_after=1)
        stopped = tuple(replace(one, state="interrupted") for one in batch.outcomes)
        jobs = papers.probes_of(figure, Mode(), [1], Batch(stopped, None, 0.0), out)
        assert jobs == []

    def test_the_reduced_figure_has_no_searches_and_is_not_judged(self, here: Path) -> None:
        folder(here)
        result = ok("papers", "p", "1", "--quick", "--jobs", "1")
        assert "1 probe of searches" in result.output
        assert "dcpim at load 0.5 seed 1: finished" in result.output
        assert "phost" not in result.output
        assert "1  Loads that were probed" in result.output
        assert "0 match, 0 miss, 1 fewer flows, 1 not judged" in result.output

    def test_names_distinguish_probes_from_runs(self) -> None:
        assert probe_name("a", 0.5, 1) != job_name("a", 1)


@pytest.mark.parametrize("name", ["dcpim/fig3a", "dcpim/fig6a", "homa-dispute/max-load"])
def test_probes_of_figures_are_plans_that_can_run(name: str, tmp_path: Path) -> None:
    figure = papers.load_figure(ROOT / "papers" / name)
    for mode in (Mode(), Mode("quick")):
        jobs = papers.probes_of(figure, mode, [1], Batch((), None, 0.0), tmp_path)
        assert jobs
        for job in jobs:
            assert job.plan.check()["run"]["drain-us"] == 0.0
            assert job.plan.get(LOAD) is not None

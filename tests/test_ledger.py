"""The ledger of published values: the entries of runs, stale entries, and its verdicts."""

import contextlib
import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.papers import load_figure
from rampmeter.papers.bias import pairs_of
from rampmeter.papers.figure import list_figures
from rampmeter.papers.fill import fill
from rampmeter.papers.ledger import SEEDS, Ledger, MissingRun
from rampmeter.papers.status import NOT_RUN, FigureStatus, ledger_page
from rampmeter.running.runner import Job, SilentWatcher

from . import commands, recorded
from .commands import error_line, ok

ROOT = recorded.FILE.parent
DOCUMENTS = sorted(
    file
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "papers/**/*.md",
        "papers/**/*.toml",
        "examples/**/*.md",
    )
    for file in ROOT.parent.glob(pattern)
    # The site copies notes there.
    if ROOT.parent / "docs" / "papers" not in file.parents
)

FIGURE = """\
paper = "test"
figure = "1"
title = "A figure"
claim = "The ideal serves all"
published-flows = 50
plan = "plan.toml"

[[run]]
id = "one"
set = { "workload.load" = 0.5 }
flows = 50

[[run]]
id = "two"
set = { "workload.load" = 0.6 }
flows = 10

[[sub-figure]]
id = "a"
title = "Slowdown"
drawing = "by-load"
metrics = ["mean"]
runs = ["one", "two"]
"""
PLAN = """\
[topology]
kind = "star"
hosts = 4
[transport]
name = "ideal"
[workload]
pattern = "all-to-all"
sizes = "imc10"
"""
EXPECTED = """\
[[facts]]
sub-figure = "a"
metric = "mean"
source = "nowhere"
relative-tolerance = 0.9
values = [{ run = "one", published = 1.5 }]

[[order]]
sub-figure = "a"
metric = "mean"
source = "nowhere"
claim = "the mean grows with the load"
runs = ["one", "two"]
slack = 10.0
"""


SEARCH = """
[[search]]
id = "three"
axes = { scheme = [{ id = "ideal", label = "The ideal", flows = 50, set = {} }] }
loads = "0.4,0.6,0.8"
metric = "rejected"
at-most = 0.5

[[sub-figure]]
id = "b"
title = "Highest load"
drawing = "by-workload"
metrics = ["max-load"]
runs = ["three"]
"""
SEARCHED = """
[[facts]]
sub-figure = "b"
metric = "max-load"
source = "nowhere"
absolute-tolerance = 0.01
values = [{ run = "three", published = 0.8 }]
"""


@pytest.fixture
def papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder `papers` with one figure."""
    folder = tmp_path / "papers" / "test" / "fig1"
    folder.mkdir(parents=True)
    for name, text in (("figure", FIGURE), ("plan", PLAN), ("expected", EXPECTED)):
        (folder / f"{name}.toml").write_text(text)
    shutil.copy(recorded.FILE, tmp_path / "papers")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "papers"


def call(*arguments: str) -> str:
    return ok("papers", *arguments).stdout


def verdicts(papers: Path) -> dict[str, int]:
    return dict(FigureStatus.of(load_figure(papers / "test" / "fig1"), Ledger(papers)).verdicts)


def test_a_changed_entry_is_seen_at_once(papers: Path) -> None:
    call("--fill", "0.1", "--quiet")
    ledger, figure = Ledger(papers), load_figure(papers / "test" / "fig1")
    assert FigureStatus.of(figure, ledger).verdicts["match"] == 2
    file = papers / "ledger" / "test" / "fig1" / "one.json"
    file.write_text(re.sub(r'"mean", null, [\d.]+', '"mean", null, 9.5', file.read_text()))
    assert FigureStatus.of(figure, ledger).verdicts["miss"] >= 1


def test_runs_are_entered_with_as_many_flows_as_published_and_judged(papers: Path) -> None:
    assert verdicts(papers) == {NOT_RUN: 2}
    assert "6 runs entered" in call("--fill", "0.1", "--quiet")
    assert verdicts(papers) == {"match": 2}
    one, two = (
        json.loads((papers / "ledger" / "test" / "fig1" / f"{run}.json").read_text())["seeds"]
        for run in ("one", "two")
    )
    assert {entry["flows"] for entry in one + two} == {50}
    assert "0 runs entered" in call("--fill", "0.1", "--quiet")
    (status,) = json.loads(call("--json"))["figures"]
    assert (status["paper"], status["figure"]) == ("test", "1")
    assert status["verdicts"] == {"match": 2}
    (value,) = status["values"]
    assert (value["expected"], value["verdict"], value["seeds"]) == (1.5, "match", 3)
    assert value["mean_ci"] > 0
    assert [(made["seed"], made["flows"], made["plan"]) for made in value["made"]] == [
        (seed, 50, entry["plan"]) for entry in one for seed in [entry["seed"]]
    ]
    (claim,) = status["claims"]
    assert {made["run"] for made in claim["made"]} == {"one", "two"}
    assert "test 1" in call("--status")


def test_entries_are_stale_if_the_plan_or_recorded_results_have_changed(papers: Path) -> None:
    call("--fill", "0.1", "--quiet")
    plan = papers / "test" / "fig1" / "plan.toml"
    plan.write_text(PLAN.replace("hosts = 4", "hosts = 5"))
    assert verdicts(papers) == {NOT_RUN: 2}
    plan.write_text(PLAN)
    assert verdicts(papers) == {"match": 2}
    figure = papers / "test" / "fig1" / "figure.toml"
    for key, other in (
        ('plan = "plan.toml"', 'plan = "plan.toml"\nideal = "acked"'),
        ('metrics = ["mean"]', 'metrics = ["mean"]\nfinished-before = 0.5'),
        ('id = "one"', 'id = "one"\napp = { service-us = 2.0 }'),
    ):
        figure.write_text(FIGURE.replace(key, other))
        assert NOT_RUN in verdicts(papers), other
    figure.write_text(FIGURE)
    assert verdicts(papers) == {"match": 2}
    file = papers / recorded.FILE.name
    results = json.loads(file.read_text())
    results["ideal"]["paper"]["uniform"] = "0" * 16
    file.write_text(json.dumps(results))
    assert verdicts(papers) == {NOT_RUN: 2}


def test_the_cheapest_runs_are_first_and_finished_runs_are_stored(papers: Path) -> None:
    ledger = Ledger(papers)
    figure = load_figure(papers / "test" / "fig1")
    costs = sorted(one.cost for one in ledger.missing(figure))
    started = []

    class Failing(SilentWatcher):
        def on_start(self, job: Job) -> None:
            started.append(job.name)

        def on_end(self, outcome: object) -> None:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fill(ledger, [figure], 0.1, lambda _jobs: contextlib.nullcontext(Failing()))
    missing = ledger.missing(figure)
    assert len(missing) < len(costs)
    by_name = {one.name: one.cost for one in missing}
    assert all(by_name.get(name, costs[0]) <= costs[-1] for name in started)


def test_a_variant_has_the_values_of_the_run_that_it_is_shown_with(papers: Path) -> None:
    variant = (
        '[[run]]\nid = "other"\nvariant-of = "one"\nset = { "workload.load" = 0.4 }\nflows = 50\n'
    )
    (papers / "test" / "fig1" / "figure.toml").write_text(f"{FIGURE}\n{variant}")
    assert "9 runs entered" in call("--fill", "0.1", "--quiet")
    (status,) = json.loads(call("--json"))["figures"]
    (value,) = status["values"]
    assert 1 < value["variant"]["mean"] < value["measured"]["mean"]


def test_a_run_counts_when_it_has_entries_of_all_seeds(papers: Path) -> None:
    call("--fill", "0.1", "--quiet")
    file = papers / "ledger" / "test" / "fig1" / "one.json"
    table = json.loads(file.read_text())
    table["seeds"].pop()
    file.write_text(json.dumps(table))
    assert verdicts(papers) == {NOT_RUN: 2}
    figure = load_figure(papers / "test" / "fig1")
    assert [(one.run.id, one.seed) for one in Ledger(papers).missing(figure)] == [("one", 3)]


def test_a_search_is_continued_from_its_probes_and_counts_when_it_has_ended(papers: Path) -> None:
    folder = papers / "test" / "fig1"
    (folder / "figure.toml").write_text(FIGURE + SEARCH)
    (folder / "expected.toml").write_text(EXPECTED + SEARCHED)
    call("--fill", "0.1", "--quiet")
    assert verdicts(papers) == {"match": 3}
    file = papers / "ledger" / "test" / "fig1" / "three.json"
    table = json.loads(file.read_text())
    probed = [(entry["seed"], entry["load"]) for entry in table["seeds"]]
    assert probed == [(seed, load) for seed in (1, 2, 3) for load in (0.6, 0.8)]
    table["seeds"].pop()
    file.write_text(json.dumps(table))
    assert verdicts(papers) == {"match": 2, NOT_RUN: 1}
    (missing,) = Ledger(papers).missing(load_figure(folder))
    assert (missing.seed, missing.load) == (3, 0.8)
    assert "1 run entered" in call("--fill", "0.1", "--quiet")
    assert verdicts(papers) == {"match": 3}
    assert "0.6: 0.0" in call("test", "1", "--from-ledger", "--out", "drawn")


@pytest.fixture
def pilot_flows(monkeypatch: pytest.MonkeyPatch) -> int:
    """Returns the number of flows of pilot runs, fewer than those of the figure `papers`."""
    monkeypatch.setattr("rampmeter.papers.figure.PILOT_FLOWS_MIN", 20)
    return 20


def remove_full_runs(file: Path, flows: int) -> None:
    """Leaves the entries of pilot runs in a file."""
    table = json.loads(file.read_text())
    table["seeds"] = [entry for entry in table["seeds"] if entry["flows"] == flows]
    file.write_text(json.dumps(table))


def test_pilot_runs_replace_missing_full_runs(papers: Path, pilot_flows: int) -> None:
    assert "12 runs entered" in call("--fill", "0.1", "--quiet")
    assert verdicts(papers) == {"match": 2}
    folder = papers / "ledger" / "test" / "fig1"
    for run in ("one", "two"):
        entries = json.loads((folder / f"{run}.json").read_text())["seeds"]
        assert [entry["flows"] for entry in entries] == [50] * 3 + [pilot_flows] * 3
    remove_full_runs(folder / "two.json", pilot_flows)
    assert verdicts(papers) == {"match": 1, "pilot match": 1}
    remove_full_runs(folder / "one.json", pilot_flows)
    assert verdicts(papers) == {"pilot match": 2}
    (status,) = json.loads(call("--json"))["figures"]
    (value,) = status["values"]
    assert (value["verdict"], value["is_within"]) == ("pilot match", True)
    assert (value["flows"], value["reason"]) == (pilot_flows, "20 of 50 flows")
    assert [made["flows"] for made in value["made"]] == [pilot_flows] * 3
    (claim,) = status["claims"]
    assert (claim["verdict"], claim["is_within"]) == ("pilot match", True)
    expected = papers / "test" / "fig1" / "expected.toml"
    expected.write_text(EXPECTED.replace("published = 1.5", "published = 95"))
    assert verdicts(papers) == {"pilot match": 1, "pilot miss": 1}
    out = call("test", "1", "--from-ledger", "--out", "drawn")
    assert "fewer flows: 1 (20 of 50 flows)" in out
    assert "verdicts of the ledger: 1 pilot match, 1 pilot miss; 3 seeds" in out
    report = json.loads(Path("drawn/report.json").read_text())
    assert {run["flows"]["submitted"] for run in report["runs"]} == {pilot_flows}
    assert "6 runs entered" in call("--fill", "0.1", "--quiet")
    assert verdicts(papers) == {"miss": 1, "match": 1}
    (folder / "one.json").unlink()
    assert "6 runs entered" in call("--fill", "0.1", "--quiet")
    table = json.loads((folder / "two.json").read_text())
    table["seeds"] = table["seeds"][:3]
    (folder / "two.json").write_text(json.dumps(table))
    assert "0 runs entered" in call("--fill", "0.1", "--quiet")


@pytest.mark.usefixtures("pilot_flows")
def test_a_value_of_any_number_of_flows_is_provisional_in_a_pilot_run(papers: Path) -> None:
    expected = papers / "test" / "fig1" / "expected.toml"
    expected.write_text(
        EXPECTED.replace('source = "nowhere"', 'source = "no"\npublished-flows = 0')
    )
    call("--fill", "0.1", "--quiet")
    remove_full_runs(papers / "ledger" / "test" / "fig1" / "one.json", 20)
    assert verdicts(papers) == {"pilot match": 2}


@pytest.mark.usefixtures("pilot_flows")
def test_a_search_of_pilot_runs_has_separate_probes(papers: Path) -> None:
    folder = papers / "test" / "fig1"
    (folder / "figure.toml").write_text(FIGURE + SEARCH)
    (folder / "expected.toml").write_text(EXPECTED + SEARCHED)
    call("--fill", "0.1", "--quiet")
    assert verdicts(papers) == {"match": 3}
    remove_full_runs(papers / "ledger" / "test" / "fig1" / "three.json", 20)
    assert verdicts(papers) == {"match": 2, "pilot match": 1}


@pytest.mark.usefixtures("pilot_flows")
def test_the_bias_of_pilot_runs_is_measured_from_pairs_with_full_runs(papers: Path) -> None:
    assert "Bias" not in ledger_page(papers)
    call("--fill", "0.1", "--quiet")
    figure = load_figure(papers / "test" / "fig1")
    one, two = pairs_of(figure, Ledger(papers))
    assert (one.cell.run, two.cell.run) == ("one", "two")
    assert one.pilot_is_within is one.full_is_within is True
    assert two.full_is_within is None
    runs = json.loads((papers / "ledger" / "test" / "fig1" / "one.json").read_text())["seeds"]
    values = [entry["cells"]["a"][0][2] for entry in runs]
    assert one.full == pytest.approx(sum(values[:3]) / 3)
    assert one.pilot == pytest.approx(sum(values[3:]) / 3)
    ratios = sorted(pair.ratio for pair in (one, two))
    middle = sum(ratios) / 2
    row = next(line for line in ledger_page(papers).splitlines() if line.startswith("| `mean`"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:3] == ["`mean`", "2", f"{middle:.3f}"]
    low, high = float(cells[3]), float(cells[4])
    assert ratios[0] - 0.001 <= low <= middle <= high <= ratios[1] + 0.001
    assert cells[5:] == ["1", "1"]
    remove_full_runs(papers / "ledger" / "test" / "fig1" / "one.json", 20)
    assert [pair.cell.run for pair in pairs_of(figure, Ledger(papers))] == ["two"]


@pytest.mark.parametrize("text", ["[]", "{}", '{"seeds": [{}]}', '{"seeds": [{"cells": 3}]}', "{"])
def test_a_damaged_entry_is_an_error_with_its_file(papers: Path, text: str) -> None:
    file = papers / "ledger" / "test" / "fig1" / "one.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    done = commands.call("papers", "--status")
    assert done.exit_code != 0
    assert "one.json: expected" in f"{done.output}{done.exception}"


def test_every_entry_that_a_document_names_exists() -> None:
    """A run that is missing has no file. A document names the command that prints its values."""
    missing = {
        (str(document.relative_to(ROOT.parent)), path)
        for document in DOCUMENTS
        for path in re.findall(
            r"papers/ledger((?:/[\w-]+(?:\.\w+)*)*)", document.read_text(encoding="utf-8")
        )
        if not (ROOT / f"ledger{path}").exists()
    }
    assert not missing


def test_no_value_costs_more_than_20_cpu_hours() -> None:
    """At 4 microseconds a packet, twice the costliest runs (`papers/ledger/NOTES.md`).

    A value that costs more needs replications of shorter runs and a correction of their bias. Pilot
    runs are not corrected.
    """
    for folder in list_figures(ROOT):
        figure = load_figure(folder)
        for run in figure.runs:
            probes = run.search.probes_max if run.search else 1
            one = MissingRun(figure, run, SEEDS[0], run.search.loads[0] if run.search else None)
            assert one.cost * probes * len(SEEDS) * 4e-6 < 20 * 3600, (folder, run.id)


def test_entries_drawn_at_random_are_those_of_their_runs(tmp_path: Path) -> None:
    ledger = Ledger(ROOT)
    current = [
        (MissingRun(figure, run, entry.seed, entry.load, mode), entry)
        for folder in list_figures(ROOT)
        for figure in [load_figure(folder)]
        for run in figure.runs
        for entry in ledger.current_entries(figure, run)
        for mode in [ledger.mode_of(entry, figure, run)]
        if entry.seconds < 3.0 and mode is not None
    ]
    if not current:
        pytest.skip("the ledger has no current entry of a short run")
    copy = tmp_path / "papers"
    copy.mkdir()
    shutil.copy(recorded.FILE, copy)
    again = Ledger(copy)
    for n, (one, entry) in enumerate(random.sample(current, min(3, len(current)))):
        again.file_of(one.figure, one.run).unlink(missing_ok=True)
        again.add(one, rm.run(one.plan, out=tmp_path / str(n), quiet=True))
        (repeated,) = again.entries(one.figure, one.run)
        assert (repeated.plan, repeated.results) == (entry.plan, entry.results)
        assert repeated.series.keys() >= entry.series.keys()
        assert repeated.cells.keys() == entry.cells.keys()
        for panel, cells in repeated.cells.items():
            # Sums of floating-point numbers depend on the processor in their last digits.
            known = entry.cells[panel]
            assert cells == {
                key: pytest.approx(known[key], rel=1e-12, nan_ok=True) for key in cells
            }
            assert cells.keys() == known.keys()


def test_a_figure_is_drawn_and_judged_from_the_ledger(papers: Path) -> None:
    assert "expected entries of test 1 for a plot, got none" in error_line(
        "papers", "test", "1", "--from-ledger"
    )
    call("--fill", "0.1", "--quiet")
    out = call("test", "1", "--from-ledger", "--out", "drawn")
    assert "verdicts of the ledger: 2 match; 3 seeds" in out
    report = json.loads(Path("drawn/report.json").read_text())
    assert {run["status"] for run in report["runs"]} == {"entry"}
    assert report["verdicts"]["match"] == 2
    assert Path("drawn/fig1a.png").is_file()
    (papers / "ledger" / "test" / "fig1" / "two.json").unlink()
    assert "not run" in call("test", "1", "--from-ledger", "--out", "drawn")


def test_all_figures_are_drawn_from_the_ledger_and_nothing_is_run(papers: Path) -> None:
    empty = papers / "other" / "fig1"
    shutil.copytree(papers / "test" / "fig1", empty)
    text = (empty / "figure.toml").read_text()
    (empty / "figure.toml").write_text(text.replace('paper = "test"', 'paper = "other"'))
    call("test", "1", "--fill", "0.1", "--quiet")
    out = call("--all", "--from-ledger", "--out", "drawn")
    assert "1 figure drawn, 1 without entries" in out
    files = {file.name for file in Path("drawn").rglob("*") if file.is_file()}
    images = {f"fig1a.{kind}" for kind in ("png", "svg", "pdf")}
    assert files == images | {"report.json", "report.html"}
    assert "--from-ledger: cannot be combined" in error_line(
        "papers", "--all", "--from-ledger", "--seeds", "2"
    )


@pytest.mark.usefixtures("papers")
def test_verdicts_of_the_ledger_need_no_plots() -> None:
    code = (
        "import sys; from rampmeter.cli import main;"
        "main(['papers', '--status'], standalone_mode=False); print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "False"
    assert "test 1" in done.stdout


def test_a_reduced_figure_is_shown_with_that_of_the_ledger(papers: Path) -> None:
    arguments = ("test", "1", "--scale", "0.5", "--seeds", "1", "--quiet", "--with-ledger")
    assert "test 1: the ledger has no complete run" in call(*arguments)
    call("--fill", "0.1", "--quiet")
    out = call(*arguments)
    assert "test 1 from the ledger:" in out
    assert "verdicts of the ledger: 2 match; 3 seeds" in out
    assert Path("results/papers/test/fig1/ledger/fig1a.png").is_file()


def test_a_miss_is_listed_with_its_cause_and_command(papers: Path) -> None:
    folder = papers / "test" / "fig1"
    (folder / "expected.toml").write_text(EXPECTED.replace("published = 1.5", "published = 0.1"))
    call("--fill", "0.1", "--quiet")
    out = call("test", "1", "--status")
    assert "PAPER --status" in out
    (papers / "other" / "fig1").mkdir(parents=True)
    for file in folder.glob("*.toml"):
        text = file.read_text().replace('paper = "test"', 'paper = "other"')
        (papers / "other" / "fig1" / file.name).write_text(text)
    out = call("test", "1", "--status")
    assert "test 1: one mean (" in out
    assert "    Open. Not examined.\n    $ rampmeter papers test 1 --from-ledger" in out
    (folder / "misses.toml").write_text(
        '[[miss]]\ncells = [{ sub-figure = "a", run = "one", metric = "mean" }]\n'
        'cause = "The value is wrong."\ncommand = "rampmeter papers test 1"\n'
    )
    assert "    The value is wrong.\n    $ rampmeter papers test 1\n" in call("test", "--status")
    (status,) = json.loads(call("test", "1", "--json"))["figures"]
    assert status["values"][0]["cause"] == "The value is wrong."

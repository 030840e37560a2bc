"""The warning of intervals over two seeds, wherever there are such intervals."""

import json
from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.analysis.confidence import TWO_SEEDS, two_seeds

from .commands import ok
from .conftest import SMALL, FakeCore

TEXT = "seeds: intervals over two seeds are about 7 times as wide as those over 5"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes into a folder with a plan."""
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(SMALL)


def codes(warnings: list[dict[str, object]]) -> list[object]:
    return [one["code"] for one in warnings]


def test_only_two_seeds_have_the_warning() -> None:
    assert [n for n in range(10) if two_seeds(n)] == [2]
    (caution,) = two_seeds(2)
    assert caution.startswith(TEXT)
    assert caution.values == {"seeds": 2, "seeds_wanted": 5}


@pytest.mark.parametrize("n_seeds", [1, 2, 3])
def test_comparisons_and_sweeps_warn_of_two_seeds_with_their_points(n_seeds: int) -> None:
    compared = rm.compare("plan.toml", "dcpim,ndp", seeds=n_seeds, out="compared", quiet=True)
    swept = rm.sweep("plan.toml", vary={"workload.load": [0.3, 0.5]}, seeds=n_seeds, quiet=True)
    of_sweep = [one for one in swept.warnings if one.code == TWO_SEEDS]
    of_comparison = [one for one in compared.warnings if one.code == TWO_SEEDS]
    if n_seeds != 2:
        assert of_sweep == of_comparison == []
        return
    assert [one.startswith(TEXT) for one in (*of_sweep, *of_comparison)] == [True, True]
    assert "4 of 4 runs at 2 points: dcpim, load 0.3; dcpim, load 0.5" in of_sweep[0]
    assert [one._repr_html_().count(TEXT) for one in (compared, swept)] == [1, 1]
    assert [TWO_SEEDS in [one.code for one in of.warnings] for of in swept.points] == [True, True]


def test_commands_print_it_once_in_text_json_and_report() -> None:
    of_comparison = ("compare", "plan.toml", "--transports", "dcpim,ndp", "--seeds", "2")
    of_sweep = ("sweep", "plan.toml", "--vary", "workload.load=0.3,0.5", "--seeds", "2")
    for command in (of_comparison, of_sweep):
        assert ok(*command).stdout.count(TEXT) == 1
        assert codes(json.loads(ok(*command, "--json").stdout)["warnings"]).count(TWO_SEEDS) == 1
        assert ok(*command, "--format", "csv").stderr.count(TEXT) == 1
    ok("report", "results", "--out", "report.html")
    assert Path("report.html").read_text().count(TEXT) == 2


def test_figures_of_papers_print_it(fake_core: FakeCore) -> None:
    command = ("papers", "dcpim", "3", "--out", "here", "--quick", "--quiet")
    assert TEXT not in ok(*command).stdout
    assert ok(*command, "--seeds", "2").stdout.count(TEXT) == 1
    assert codes(json.loads(Path("here/report.json").read_text())["warnings"]) == [TWO_SEEDS]
    ok("report", "here", "--out", "report.html")
    assert Path("report.html").read_text().count(TEXT) == 1
    assert fake_core.plans

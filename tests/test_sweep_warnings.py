"""Warnings of sweeps: each distinct one once, with its runs and points, and runs too short."""

import gc
import json
from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.sweeps.warnings import merge
from rampmeter.text.cautions import Caution
from rampmeter.text.text_table import UNLIMITED

from .commands import call
from .conftest import SMALL

LOADS = {"workload.load": [0.2, 0.9]}


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> rm.SweepResults:
    """Returns a sweep whose runs are too short at the high load."""
    plan = rm.Plan(SMALL.replace("flows = 200", "flows = 400"))
    out = tmp_path_factory.mktemp("sweep") / "out"
    return rm.sweep(plan, vary=LOADS, seeds=2, out=out, quiet=True)


def delivered(percent: float) -> Caution:
    return Caution(f"{percent} % delivered", "short-run", {"delivered_percent": percent})


def test_warnings_that_differ_in_numbers_alone_are_one() -> None:
    runs = [(n, f"point {n}", [delivered(70 + n)]) for n in range(5)]
    runs += [(4, "point 4", []), (4, "point 4", [delivered(70)])]
    (found,) = merge(runs)
    assert found == (
        "70 % delivered (6 of 7 runs at 5 points: point 0; point 1; point 2 and 2 more; "
        "delivered_percent 70 to 74)"
    )
    assert found.code == "short-run"
    assert found.values == {"delivered_percent": 70, "runs": 6, "points": [0, 1, 2, 3, 4]}


def test_ranges_of_whole_numbers_are_whole_numbers() -> None:
    runs = [
        (n, "here", [Caution(f"{n} flows", "few-flows", {"flows": 2000 * (n + 1)})])
        for n in range(4)
    ]
    assert "flows 2 000 to 8 000" in merge(runs)[0]


def test_warnings_about_other_names_are_distinct() -> None:
    runs = [
        (0, "here", [Caution(f"{name} ignores faults", "ignored-faults", {"transport": name})])
        for name in ("ideal", "fastpass")
    ]
    assert merge(runs) == [
        "ideal ignores faults (1 of 2 runs at 1 point: here)",
        "fastpass ignores faults (1 of 2 runs at 1 point: here)",
    ]


def test_two_warnings_of_one_kind_in_a_run_are_distinct() -> None:
    assert len(merge([(0, "here", [delivered(1), delivered(2)])])) == 2


def test_warnings_of_results_without_codes_are_alike_by_their_text() -> None:
    runs = [(0, "here", [Caution("old", "")]), (1, "there", [Caution("old", "")])]
    assert merge(runs) == ["old (2 of 2 runs at 2 points: here; there)"]


def test_the_table_has_warnings_as_data(short: rm.SweepResults) -> None:
    for row in short.table.to_pylist():
        codes = [one["code"] for one in row["warnings"]]
        assert row["is_short"] == bool({"few-flows", "short-run", "short-warm-up"} & set(codes))
        for one in row["warnings"]:
            assert one["text"]
            assert isinstance(json.loads(one["values"]), dict)
    by_load = zip(short.summary["workload.load"], short.summary["is_short"], strict=True)
    assert {load.as_py(): is_short.as_py() for load, is_short in by_load} == {0.2: False, 0.9: True}
    assert [point.is_short for point in short.points] == [False, True]
    assert [row["is_short"] for row in short.tables["means"].records()] == ["no", "yes"]


def test_python_has_each_distinct_warning_once(short: rm.SweepResults) -> None:
    codes = [one.code for one in short.warnings]
    assert len(set(codes)) == len(codes)
    one = next(one for one in short.warnings if one.code == "short-run")
    assert one.values["points"] == [1]
    assert one.values["runs"] == 2
    assert "2 of 4 runs at 1 point: dcpim, load 0.9" in one


def test_terminal_json_and_report_have_the_text_of_every_warning(short: rm.SweepResults) -> None:
    folder = Path(short.url).parent
    (folder / "plan.toml").write_text(SMALL.replace("flows = 200", "flows = 400"))
    command = ["sweep", str(folder / "plan.toml"), "--vary", "workload.load=0.2,0.9"]
    command += ["--seeds", "2", "--out", short.url, "--quiet"]
    text = call(*command).stdout
    printed = json.loads(call(*command, "--json").stdout)["warnings"]
    report = folder / "report.html"
    assert call("report", short.url, "--out", report).exit_code == 0
    page = report.read_text()
    assert short.warnings
    for one, shown in zip(short.warnings, printed, strict=True):
        assert f"warning: {one} [{one.code}]\n" in text
        assert shown == {"code": one.code, "values": one.values, "text": str(one)}
        assert one.split(" (")[0] in page


def test_points_with_short_runs_are_marked_above_a_legend(short: rm.SweepResults) -> None:
    plan = Path(short.url).parent / "plan.toml"
    plan.write_text(SMALL.replace("flows = 200", "flows = 400"))
    command = ["sweep", str(plan), "--vary", "workload.load=0.2,0.9"]
    command += ["--seeds", "2", "--out", short.url, "--quiet"]
    result = call(*command, COLUMNS=str(UNLIMITED))
    lines = {
        line.split()[1]: line.split() for line in result.stdout.splitlines() if "dcpim" in line
    }
    assert "*" not in lines["0.2"]
    assert lines["0.9"][:4] == ["dcpim,", "0.9", "*", "2"]
    assert "\n* Too short for a steady state: simulate more flows" in result.stdout


def test_notebooks_show_short_points_and_warnings(short: rm.SweepResults) -> None:
    html = short._repr_html_()
    assert (html.count("<td>* 2</td>"), html.count("<td>2</td>")) == (1, 1)
    assert "<p>* Too short for a steady state" in html
    assert html.count("<b>warning:</b>") == len(short.warnings)
    assert "[short-run]</p>" in html


def test_rows_of_points_are_not_printed(short: rm.SweepResults) -> None:
    assert len(repr(short.points)) < 300
    assert "summary" not in short.table.column_names


def test_results_without_a_folder_exist_as_long_as_their_object() -> None:
    results = rm.sweep(rm.Plan(SMALL), seeds=2, quiet=True)
    folder = Path(results.url)
    assert results.table.num_rows == 2
    assert folder.is_dir()
    del results
    gc.collect()
    assert not folder.exists()

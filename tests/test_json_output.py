"""JSON output of commands: objects with a schema, and errors."""

import json
from pathlib import Path
from typing import Any

import pytest

from rampmeter.cli import COMMANDS, main
from rampmeter.commands.json_output import VERSIONS

from .commands import call, ok
from .conftest import ROOT

PLAN = """\
[topology]
kind = "star"
hosts = 4
[transport]
name = "dcpim"
[workload]
pattern = "all-to-all"
sizes = "imc10"
load = 0.4
flows = 50
[sweep]
grid = { "workload.load" = [0.3, 0.5] }
transports = ["dcpim", "ndp"]
seeds = 2
"""


@pytest.fixture(autouse=True)
def plan(here: Path) -> Path:
    """Returns a plan in the working folder."""
    Path("plan.toml").write_text(PLAN)
    return Path("plan.toml")


def output(*arguments: str) -> dict[str, Any]:
    """Returns the object that a command prints, after a check of its schema."""
    done = ok(*arguments, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    name = arguments[0]
    assert found["schema"] == f"rampmeter.{name}/{VERSIONS[name]}"
    return found


def error_of(*arguments: str) -> dict[str, Any]:
    """Returns the error that a command prints."""
    done = call(*arguments, "--json")
    assert done.stdout == ""
    found: dict[str, Any] = json.loads(done.stderr)
    assert found["schema"] == "rampmeter.error/1"
    assert found["exit_code"] == done.exit_code != 0
    return found


def test_every_command_has_the_option_and_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        command = main.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert "--json" in {option for one in command.params for option in one.opts}, name
        assert name in VERSIONS
        assert f"`{name}`" in page


def test_a_run_its_plots_and_its_report() -> None:
    run = output("run", "plan.toml", "--quiet")
    assert (run["folder"], run["status"]) == ("results/plan", "finished")
    assert run["summary"]["flows"]["delivered"] == 50
    assert {"code", "text", "values"} == set().union(*run["warnings"])
    images = output("plot", "results/plan", "--out", "images")["images"]
    assert Path(images["slowdown_by_size"]).is_file()
    report = output("report", "results")
    assert Path(report["file"]).is_file()
    assert len(report["sections"]) == 1


def test_a_checked_plan() -> None:
    checked = output("check", "plan.toml")
    assert checked["plan"]["transport"]["name"] == "dcpim"
    assert checked["derived"]["hosts"] == 4
    assert checked["offered"]["flows"] == 50
    assert checked["warnings"] == []
    more = ("--set", "workload.load=1.2", "--set", "workload.flows=5000")
    overloaded = output("check", "plan.toml", *more)
    assert "overload" in {warning["code"] for warning in overloaded["warnings"]}


def test_a_comparison_and_a_sweep() -> None:
    compared = output("compare", "plan.toml", "--transports", "dcpim,ndp", "--quiet")
    assert {row["transport"] for row in compared["slowdowns"]} == {"dcpim", "ndp"}
    assert (Path(compared["folder"]) / "comparison.json").is_file()
    swept = output("sweep", "plan.toml", "--quiet")
    assert [point["workload.load"] for point in swept["points"]] == [0.3, 0.3, 0.5, 0.5]
    assert swept["open"] == 0
    kinds = [{warning["code"] for warning in point["warnings"]} for point in swept["points"]]
    assert all("few-flows" in kind for kind in kinds), kinds


def test_a_dry_run_of_a_sweep_prints_its_estimate() -> None:
    dry = output("sweep", "plan.toml", "--dry-run")
    assert (dry["points"], dry["open"]) == ([], 8)
    estimate = dry["estimate"]
    assert estimate["runs"] == 8
    assert estimate["wall_seconds"] > 0
    assert estimate["memory_bytes"] > 0
    page = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in page for key in estimate)
    assert not Path(dry["folder"]).exists()


def test_lists_and_conversions() -> None:
    names = {about["name"] for about in output("transports")["transports"]}
    assert {"dcpim", "ndp", "ideal"} <= names
    assert output("explain", "overload")["codes"].keys() == {"overload"}
    assert "plans/first.toml" in {one["file"] for one in output("examples")["examples"]}
    assert all(Path(file).is_file() for file in output("examples", "mine")["files"])
    Path("flows.csv").write_text("arrival_ps,src,dst,size_bytes\n0,0,1,1000\n")
    assert output("convert", "flows.csv", "out.csv")["flows"] == 1


def test_the_schema_of_plans_is_an_object_or_a_file() -> None:
    plain = json.loads(ok("schema").stdout)
    assert output("schema")["plans"] == plain
    assert output("schema", "new/plan.schema.json")["file"] == "new/plan.schema.json"
    assert json.loads(Path("new/plan.schema.json").read_text()) == plain
    assert error_of("schema", "/dev/full")["code"] == "file-access"
    assert error_of("schema", "a", "b")["code"] == "usage"


def test_an_error_of_a_plan_has_its_place() -> None:
    Path("plan.toml").write_text(PLAN.replace("hosts = 4", "hosts = -4"))
    error = error_of("run", "plan.toml")
    assert (error["file"], error["line"], error["key"]) == ("plan.toml", 3, "topology.hosts")
    assert error["code"]
    assert error["got"]


def test_other_errors_are_objects_too() -> None:
    usage = error_of("run", "plan.toml", "--nope")
    assert "no such option" in usage["message"]
    assert (usage["code"], usage["key"]) == ("usage", None)
    unknown = error_of("explain", "nothing")
    assert "expected a code" in unknown["message"]
    assert (unknown["code"], unknown["key"], unknown["got"]) == ("plan-value", "CODE", "nothing")
    assert error_of("plot", "nothing")["code"] == "bad-results"
    Path("mine/plans").mkdir(parents=True)
    Path("mine/plans/first.toml").write_text("")
    assert "the file exists" in error_of("examples", "mine")["message"]
    done = call("run", "nothing.toml")
    assert done.stderr.startswith("rampmeter: nothing.toml: ")

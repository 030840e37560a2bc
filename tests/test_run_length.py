"""Lengths of single runs that are chosen: `--auto-flows` and `auto_flows`."""

import threading
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import rampmeter as rm

from . import commands
from .conftest import SMALL


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(SMALL)


def call(*arguments: object) -> Result:
    return commands.call("run", "plan.toml", "--out", "out", *arguments)


def flows(run: rm.Run) -> int:
    return int(run.summary["flows"]["submitted"])


def test_a_run_has_the_flows_that_a_sweep_chooses_for_it() -> None:
    swept = rm.sweep("plan.toml", auto_flows=True, precision=0.2, seeds=1, seeds_max=2, quiet=True)
    done = rm.run("plan.toml", auto_flows=True, precision=0.2, quiet=True)
    assert flows(done) == swept.table["flows_submitted"][0].as_py() > 200
    overall = done.summary["slowdown"]["delivered"]["overall"]
    assert overall["mean_ci"] <= 0.2 * overall["mean"]


def test_the_last_pilot_is_the_run_and_is_not_made_again() -> None:
    first = call("--auto-flows", "--precision", 0.2)
    assert first.exit_code == 0, first.output
    chosen = flows(rm.Run("out"))
    assert f"the run has {chosen} flows\n" in first.stderr
    assert not Path("out/pilots").exists()
    again = call("--auto-flows", "--precision", 0.2)
    assert again.stderr.count("reused results of an earlier run") == 1
    assert again.stderr.count("[1/1]") == 1
    rm.run(rm.Plan(SMALL).with_(("workload.flows", chosen)), out="fixed", quiet=True)
    assert Path("fixed/flows.parquet").read_bytes() == Path("out/flows.parquet").read_bytes()


def test_the_maximum_ends_the_growth_with_a_sentence() -> None:
    result = call("--auto-flows", "--flows-max", 300, "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stderr == "the run has 300 flows; not enough\n"
    assert flows(rm.Run("out")) == 300


def test_results_of_another_plan_are_not_replaced() -> None:
    assert call("--set", "workload.load=0.3", "--quiet").exit_code == 0
    refused = call("--auto-flows", "--quiet")
    assert refused.exit_code == 2
    assert "workload.load: 0.3 there, 0.5 here" in refused.stderr
    assert call("--auto-flows", "--precision", 0.2, "--quiet", "--force").exit_code == 0


def test_a_request_to_stop_ends_the_growth() -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(CancelledError):
        rm.run("plan.toml", auto_flows=True, cancel=cancel, quiet=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"precision": 0.1}, r"precision: requires a chosen number of flows"),
        ({"flows_max": 1000}, r"flows-max: requires a chosen number of flows"),
        ({"auto_flows": True, "flows_max": 100}, r"flows-max: expected at least 200 "),
        ({"auto_flows": "yes"}, r"auto_flows: expected True or False, got 'yes'"),
        ({"auto_flows": True, "flows_max": "many"}, r"flows-max: expected a whole number from 1"),
        ({"auto_flows": True, "precision": 2}, r"precision: expected "),
    ],
)
def test_errors_name_the_argument(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(rm.PlanError, match=message):
        rm.run("plan.toml", quiet=True, **arguments)

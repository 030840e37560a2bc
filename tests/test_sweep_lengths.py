"""Lengths of runs that a sweep chooses: `flows = "auto"`."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import rampmeter as rm
from rampmeter.running.run_length import RunLength
from rampmeter.sweeps.dataset import RUNS, Dataset
from rampmeter.sweeps.table import SweepOverrides, sweep_of
from rampmeter.sweeps.task import Task, TaskResult

from . import commands
from .commands import ok
from .conftest import SMALL

PLAN = """\
[sweep]
transports = ["homa", "dctcp"]
flows = "auto"
precision = 0.2
seeds = 2
seeds-max = 2
[sweep.grid]
workload.load = [0.2, 0.6]
"""


@pytest.fixture(autouse=True)
def plan_is_here(here: Path) -> None:
    (here / "plan.toml").write_text(SMALL + PLAN)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> rm.SweepResults:
    out = tmp_path_factory.mktemp("sweep") / "out"
    return rm.sweep(rm.Plan(SMALL + PLAN), out=out, quiet=True)


def call(*arguments: object) -> Result:
    return commands.call("sweep", "plan.toml", *arguments)


def contents(folder: str | Path) -> dict[str, bytes]:
    files = (file for file in Path(folder).rglob("*.parquet"))
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def lengths(results: rm.SweepResults) -> dict[tuple[float, str], int]:
    rows = results.table.to_pylist()
    return {(row["workload.load"], row["transport"]): row["flows_submitted"] for row in rows}


def test_runs_are_doubled_until_they_are_precise_and_not_too_short(done: rm.SweepResults) -> None:
    chosen = lengths(done)
    assert len(set(chosen.values())) == 2
    for point in done.points:
        flows = chosen[point.values["workload.load"], point.transport]
        assert flows in [200 * 2**n for n in range(1, 10)]
        row = point.rows[0]
        assert row["slowdown_mean_ci"] <= 0.2 * row["slowdown_mean"]
        assert not row["is_short"]
    for load in (0.2, 0.6):
        # Half as many flows are too few for one of the transports.
        half = chosen[load, "homa"] // 2
        keys = [(point.number, 1) for point in done.points if point.values["workload.load"] == load]
        rows = Dataset(done.url).table(f"pilots/{half}", keys).to_pylist()
        length = RunLength(200, 0.2)
        assert not all(length.is_enough(json.loads(row["summary"]), "") for row in rows)


def test_all_transports_of_a_point_have_the_same_flows(done: rm.SweepResults) -> None:
    chosen = lengths(done)
    for load in (0.2, 0.6):
        assert chosen[load, "homa"] == chosen[load, "dctcp"]


def test_a_comparison_chooses_the_flows_as_a_sweep_does(done: rm.SweepResults) -> None:
    plan = rm.Plan(SMALL).with_(("workload.load", 0.6))
    found = rm.compare(
        plan, "homa,dctcp", auto_flows=True, precision=0.2, seeds=5, out="here", quiet=True
    )
    assert found.flows("homa")["submitted"] == 5 * lengths(done)[0.6, "homa"]
    assert found.flows("dctcp") == {
        **found.flows("homa"),
        "delivered": found.flows("dctcp")["delivered"],
    }
    pilot = Path("here/pilots") / str(lengths(done)[0.6, "homa"]) / "homa/manifest.json"
    assert (found.runs["homa"][0].path / "manifest.json").read_bytes() == pilot.read_bytes()
    limited = ["compare", "plan.toml", "--transports", "homa,dctcp", "--auto-flows", "--quiet"]
    ok(*limited, "--flows-max", "300", "--out", "limited")
    assert rm.Comparison.load("limited").flows("homa")["submitted"] == 300
    assert [folder.name for folder in Path("limited/pilots").iterdir()] == ["200"]


def test_a_longer_run_begins_with_the_flows_of_a_shorter_one() -> None:
    short, long = (
        rm.run(rm.Plan(SMALL).with_(("workload.flows", flows)), quiet=True).flows.to_pandas()
        for flows in (200, 400)
    )
    columns = ["flow", "src", "dst", "size_bytes", "arrival_ps"]
    first = long[long["flow"] < 200].sort_values("flow")[columns].reset_index(drop=True)
    assert first.equals(short.sort_values("flow")[columns].reset_index(drop=True))


def test_rows_are_those_of_a_sweep_with_these_flows(done: rm.SweepResults) -> None:
    chosen = lengths(done)
    plan = rm.Plan(SMALL).with_(("workload.flows", chosen[0.2, "homa"]))
    vary = {"workload.load": [0.2]}
    rm.sweep(plan, vary=vary, transports="homa,dctcp", seeds=2, out="fixed", quiet=True)
    files = contents(Path("fixed") / RUNS)
    assert len(files) == 4
    assert files.items() <= contents(Path(done.url) / RUNS).items()


def test_a_continued_sweep_uses_the_stored_pilots(done: rm.SweepResults) -> None:
    assert call("--out", done.url, "--quiet").exit_code == 0
    before = contents(done.url)
    for name in ("runs/point-00001/seed-1.parquet", "runs/point-00002/seed-2.parquet"):
        (Path(done.url) / name).unlink()
    result = call("--out", done.url, "--no-estimate")
    assert "pilots of" not in result.stderr
    assert "7 runs stored, 1 to run" in result.stderr
    assert contents(done.url) == before


def test_an_interrupted_sweep_chooses_the_same_lengths(done: rm.SweepResults) -> None:
    command = [sys.executable, "-m", "rampmeter.cli", "sweep", "plan.toml", "--out", "here"]
    with subprocess.Popen(
        [*command, "--no-estimate"], stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while not Dataset("here").done("pilots/200") and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 130), errors
    assert call("--out", "here", "--quiet").exit_code == 0
    assert contents("here") == contents(done.url)


def test_shards_choose_the_same_lengths(done: rm.SweepResults) -> None:
    for i in (1, 2, 3):
        assert call("--out", "here", "--quiet", "--shard", f"{i}/3").exit_code == 0
    assert contents("here") == contents(done.url)


def test_the_maximum_ends_the_search_and_the_points_are_counted() -> None:
    result = call("--out", "here", "--flows-max", 300, "--no-estimate")
    assert result.exit_code == 0, result.output
    assert "runs have 300 flows; not enough at " in result.stderr
    assert set(lengths(rm.SweepResults("here")).values()) == {300}
    assert " 300 " in result.stdout


def test_flows_are_stored_for_all_seeds() -> None:
    assert call("--out", "here", "--flows-max", 300, "--flows", "--quiet").exit_code == 0
    assert rm.SweepResults("here").flows.num_rows == 4 * 2 * 300


def test_an_estimate_without_pilots_is_for_the_maximum() -> None:
    result = call("--out", "here", "--dry-run", "--flows-max", 4000)
    assert "runs have 4 000 flows" in result.stderr
    assert "8 runs, about" in result.stderr
    assert not Path("here").exists()


def test_another_precision_is_another_sweep(done: rm.SweepResults) -> None:
    result = call("--out", done.url, "--precision", 0.1)
    assert result.exit_code == 2
    assert "(flows differ)" in result.stderr


def test_failed_pilots_end_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(task: Task, *_: object) -> TaskResult:
        return TaskResult(task.point, task.seed, "failed", error="no space left")

    monkeypatch.setattr("rampmeter.sweeps.engines.local.execute", fail)
    result = call("--out", "here", "--no-estimate", "--quiet")
    assert result.exit_code == 1
    assert "rampmeter: 4 runs failed: homa workload.load=0.2 seed 1: failed: no space" in (
        result.stderr
    )


@pytest.mark.parametrize(
    ("table", "wishes", "message"),
    [
        ('flows = "all"', {}, r"sweep\.flows: expected \"auto\", got 'all'"),
        ("flows-max = 3", {}, "flows-max: requires a chosen number of flows"),
        ("", {"auto_flows": True, "flows_max": 100}, r"flows-max: expected at least 200 "),
        ('flows = "auto"\ngrid = { "workload.flows" = [1, 2] }', {}, "cannot be varied with"),
    ],
)
def test_errors_name_the_key(table: str, wishes: dict[str, Any], message: str) -> None:
    with pytest.raises(rm.PlanError, match=message):
        sweep_of(rm.Plan(f"{SMALL}[sweep]\n{table}\n"), SweepOverrides(**wishes))


def test_a_plan_without_flows_has_no_length_to_begin_with() -> None:
    plan = rm.Plan(SMALL.replace("flows = 200", "until-us = 10"))
    with pytest.raises(rm.PlanError, match=r"workload\.flows: expected the number of flows of "):
        sweep_of(plan, SweepOverrides(auto_flows=True))


def test_bursts_have_no_length_that_is_enough() -> None:
    plan = rm.Plan(SMALL).with_(
        ("faults.outages", [{"link": "h0-s0", "from-us": 1, "until-us": 2}])
    )
    with pytest.raises(rm.PlanError, match="dcpim: a chosen number of flows requires steady "):
        rm.sweep(plan, auto_flows=True, out="here", quiet=True)

"""Runs on several cores: the same results, and the reason if a run cannot be divided."""

from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.running.runner import n_cores
from rampmeter.text.toml import TomlValue

PLAN = """
[topology]
kind = "leaf-spine"
racks = 4
hosts-per-rack = 4
spines = 2
[workload]
pattern = "all-to-all"
sizes = "imc10"
load = 0.6
flows = 300
[transport]
name = "dcpim"
"""
FILES = ("flows.parquet", "series.parquet", "queues.parquet", "summary.json")


def run(out: Path, *settings: tuple[str, TomlValue]) -> rm.Run:
    plan = rm.Plan(PLAN).with_(*settings)
    return rm.run(plan, out=out, quiet=True)


@pytest.mark.parametrize("n_threads", [2, 4, 9])
def test_any_number_of_threads_gives_the_same_files(tmp_path: Path, n_threads: int) -> None:
    one = run(tmp_path / "one", ("run.threads", 1))
    several = run(tmp_path / "several", ("run.threads", n_threads))
    assert one.manifest["threads"]["count"] == 1
    threads = several.manifest["threads"]
    assert threads["count"] == n_threads
    assert 1 < threads["work_events"] / threads["span_events"] <= n_threads
    for file in FILES:
        assert (one.path / file).read_bytes() == (several.path / file).read_bytes(), file


def test_a_run_that_cannot_be_divided_has_a_reason(tmp_path: Path) -> None:
    cases: dict[tuple[str, TomlValue], str] = {
        ("run.capture", "run.pcapng"): "packets are observed",
        ("faults.loss", 0.001): "links have faults or change",
        ("run.rates-us", 10.0): "rates of flows are recorded",
        ("fabric.scheduling", "fair"): "ports are fair",
    }
    for number, (setting, reason) in enumerate(cases.items()):
        out = tmp_path / str(number)
        threads = run(out, ("run.threads", 2), setting).manifest["threads"]
        assert (threads["count"], threads["undivided"]) == (1, reason)


def test_long_runs_use_all_cores_if_they_are_alone(tmp_path: Path) -> None:
    assert run(tmp_path / "short").manifest["threads"]["windows"] == 0
    threads = run(tmp_path / "long", ("workload.flows", 8000)).manifest["threads"]
    assert (threads["windows"] > 0) == (n_cores() > 1)


def test_a_run_whose_last_flow_fails_is_repeated_in_one_thread(tmp_path: Path) -> None:
    rows = [f"0,{n},{8 + n},20000000" for n in range(8)]
    flows = "\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n"
    (tmp_path / "flows.csv").write_text(flows)

    def run_dumbbell(n_threads: int) -> rm.Run:
        plan = rm.Plan.of(
            topology={"kind": "dumbbell", "hosts-per-side": 8, "core-gbps": 100.0},
            transport={"name": "fastpod"},
            workload={"pattern": "trace", "file": str(tmp_path / "flows.csv")},
            run={"drain-us": 2e6, "threads": n_threads},
        )
        return rm.run(plan, out=tmp_path / str(n_threads), quiet=True)

    one, two = run_dumbbell(1), run_dumbbell(2)
    assert "failed" in one.flows["status"].to_pylist()
    assert two.manifest["threads"]["undivided"] == "the last flow failed"
    for file in FILES:
        assert (one.path / file).read_bytes() == (two.path / file).read_bytes(), file


def test_the_number_of_threads_has_limits() -> None:
    for n_threads in (0, 257, -1, 1.5):
        with pytest.raises(rm.PlanError, match=r"run\.threads"):
            rm.Plan(PLAN).with_(("run.threads", n_threads)).check()

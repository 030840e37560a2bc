"""Resources of a sweep: runs at a time, threads, memory, and the expected time of the rest."""

import io
import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import rampmeter as rm
from rampmeter import _core
from rampmeter.sweeps import estimate, resources
from rampmeter.sweeps.engines.local import LocalEngine
from rampmeter.sweeps.progress import RemainingTime, watching
from rampmeter.sweeps.resources import Capacity, Demand, allot, free_memory
from rampmeter.sweeps.table import sweep_of
from rampmeter.sweeps.task import TaskResult

from .commands import call
from .conftest import SMALL

GB = 1e9
MACHINE = Capacity(64, 64, 256 * GB, 256 * GB)


def plan_of(demand: Demand, capacity: Capacity = MACHINE) -> tuple[int, int]:
    """Returns runs at a time and threads of each."""
    found = allot(demand, capacity)
    assert found is not None
    return found.n_runs, found.n_threads


class TestAllotment:
    def test_many_small_runs_are_side_by_side_with_a_thread_each(self) -> None:
        assert plan_of(Demand(1000, 0.1 * GB, 30.0)) == (64, 1)

    def test_fewer_runs_than_cores_share_the_cores(self) -> None:
        assert plan_of(Demand(4, 10 * GB, 600.0)) == (4, 16)
        assert plan_of(Demand(1)) == (1, 64)

    def test_memory_limits_the_runs_at_a_time_and_threads_use_the_other_cores(self) -> None:
        n_runs, n_threads = plan_of(Demand(1000, 30 * GB, 600.0))
        assert n_runs * 30 * GB * (1 + 0.3 * (n_threads - 1)) <= 0.9 * 256 * GB
        assert n_threads > 1

    def test_runs_that_cannot_be_divided_have_one_thread(self) -> None:
        assert plan_of(Demand(4, 10 * GB, 600.0, is_divisible=False)) == (4, 1)

    def test_a_few_runs_more_than_cores_are_in_equal_rounds(self) -> None:
        assert plan_of(Demand(70, 0.1 * GB, 600.0)) == (32, 2)
        assert plan_of(Demand(70, 0.1 * GB, 0.5)) == (64, 1)

    def test_threads_of_the_plan_are_kept(self) -> None:
        assert plan_of(Demand(1000, 0.1 * GB, 30.0, threads=8)) == (8, 8)
        assert plan_of(Demand(1000, 0.1 * GB, 30.0, threads=100)) == (1, 100)

    def test_a_run_that_exceeds_the_memory_of_every_machine_is_not_started(self) -> None:
        two = Capacity(64, 32, 32 * GB, 16 * GB)
        assert allot(Demand(10, 20 * GB), two) is None
        assert plan_of(Demand(10, 10 * GB), two)[0] == 2

    @given(
        st.integers(1, 300),
        st.integers(1, 100),
        st.floats(0, 1e12),
        st.floats(0, 1e4),
    )
    def test_no_allotment_exceeds_cores_or_memory(
        self, n_runs: int, n_cores: int, memory: float, seconds: float
    ) -> None:
        found = allot(Demand(n_runs, memory, seconds), Capacity(n_cores, n_cores, GB, GB))
        if found is None:
            assert memory > 0.9 * GB
            return
        assert found.n_runs * found.n_threads <= n_cores
        assert found.n_runs <= n_runs
        assert found.n_runs * (found.memory_bytes - 1) <= GB


class TestFreeMemory:
    def test_free_memory_is_part_of_the_machine(self) -> None:
        assert 1e8 < free_memory() < 1e14

    def test_the_limit_of_a_control_group_applies(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(resources, "CGROUPS", tmp_path)
        (tmp_path / "memory.max").write_text("3000000\n")
        (tmp_path / "memory.current").write_text("1000000\n")
        assert free_memory() == 2e6


@pytest.mark.usefixtures("here")
class TestSweep:
    def sweep(self, *options: str) -> Any:
        Path("plan.toml").write_text(SMALL)
        command = ["sweep", "plan.toml", "--seeds", "2", "--out", "here", *options]
        return call(*command)

    def test_threads_reach_the_simulator(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found: list[int] = []
        run = _core.run

        def watch(*arguments: Any) -> str:
            found.append(arguments[4])
            return run(*arguments)

        monkeypatch.setattr(_core, "run", watch)
        monkeypatch.setattr(LocalEngine, "capacity", lambda _: Capacity(8, 8))
        result = self.sweep("--no-estimate")
        assert result.exit_code == 0, result.output
        assert found == [4, 4]

    def test_the_estimate_has_the_plan(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LocalEngine, "capacity", lambda _: Capacity(8, 8))
        result = self.sweep("--dry-run")
        assert ": 2 at a time, 4 threads each, up to " in result.stderr
        assert max(map(len, result.stderr.splitlines())) <= 80

    def test_a_sweep_that_exceeds_the_memory_is_refused(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(LocalEngine, "capacity", lambda _: Capacity(8, 8, 1e6, 1e6))
        result = self.sweep()
        assert result.exit_code == 2
        assert "rampmeter: a run needs about " in result.stderr
        assert self.sweep("--no-estimate", "--quiet").exit_code == 0

    def test_large_networks_are_probed_even_if_the_command_is_quiet(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(LocalEngine, "capacity", lambda _: Capacity(8, 8, 1e6, 1e6))
        monkeypatch.setattr(estimate, "LARGE_HOSTS", 7)
        assert self.sweep("--quiet").exit_code == 2
        monkeypatch.setattr(estimate, "LARGE_HOSTS", 8)
        assert self.sweep("--quiet").exit_code == 0

    def test_runs_with_faults_have_one_thread(self) -> None:
        plan = rm.Plan(SMALL).with_(("workload.flows", 200_000), ("sweep.seeds", 2))
        for key, is_divisible in (("run.drain-us", True), ("faults.loss", False)):
            points = sweep_of(plan.with_((key, 1e-6))).points
            found = estimate.estimate([(points[0], 1)])
            assert found.is_divisible == is_divisible


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def remaining(costs: list[float], expected: float | None, clock: Clock) -> RemainingTime:
    by_point = dict(enumerate(costs))
    return RemainingTime(by_point, sum(costs), len(costs), 1, expected, clock)


class TestRemainingTime:
    @pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
    def test_the_expected_end_does_not_jump_if_the_estimate_was_wrong(self, scale: float) -> None:
        costs = [1.0, 20.0] * 20
        clock = Clock()
        time = remaining(costs, sum(costs), clock)
        time.start()
        point = sweep_of(rm.Plan(SMALL + "[sweep]\nseeds = 2\n")).points[0]
        ends = []
        for number, cost in enumerate(costs):
            clock.now += scale * cost
            time.on_result(replace(point, number=number))
            assert time.left is not None
            ends.append(time.elapsed + time.left)
        true = scale * sum(costs)
        assert all(abs(end - true) < 0.25 * true for end in ends[20:])
        assert max(abs(b - a) for a, b in itertools.pairwise(ends)) < 0.2 * true

    def test_remaining_time_decreases_with_the_clock(self) -> None:
        clock = Clock()
        time = remaining([10.0] * 4, 40.0, clock)
        time.start()
        clock.now += 7
        assert time.left == 33.0
        clock.now += 70
        assert time.left == 0.0

    def test_without_an_estimate_it_is_unknown_until_the_first_result(self) -> None:
        time = remaining([1.0] * 4, None, Clock())
        time.start()
        assert time.left is None


@pytest.mark.parametrize("width", [80, 120])
def test_the_line_of_progress_fits_and_has_labelled_times(width: int) -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, color_system=None)
    clock = Clock()
    sweep = sweep_of(rm.Plan(SMALL + '[sweep]\nseeds = 2\ngrid = { "workload.load" = [0.3] }\n'))
    time = remaining([600.0] * 120, 72_000.0, clock)
    with watching(console, time, is_quiet=False) as watcher:
        watcher.on_total(120)
        clock.now += 3725
        watcher.on_result(sweep.points[0], TaskResult(0, 1, "ran"))
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.getvalue())
    last = [line for line in re.split(r"[\r\n]+", plain) if "elapsed" in line][-1]
    assert last.startswith("1/120 runs ")
    assert "62:05 elapsed, about " in last
    assert " left  dcpim, 0.3, " in last
    assert "None" not in plain
    assert len(last) <= width


def test_a_line_of_a_log_has_labelled_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rampmeter.sweeps.progress.LINE_SECONDS", 0)
    text = io.StringIO()
    sweep = sweep_of(rm.Plan(SMALL + "[sweep]\nseeds = 2\n"))
    clock = Clock()
    time = remaining([10.0, 10.0], 20.0, clock)
    with watching(Console(file=text), time, is_quiet=False) as watcher:
        watcher.on_total(2)
        clock.now += 10
        watcher.on_result(sweep.points[0], TaskResult(0, 1, "ran"))
    assert text.getvalue() == "[1/2] 0:10 elapsed, about 10 s left\n"

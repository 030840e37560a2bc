"""Concurrent runs: reused and repeated results, and interrupts."""

import fcntl
import io
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

import rampmeter as rm
from rampmeter import _core
from rampmeter.running import runner
from rampmeter.running.progress import watching
from rampmeter.running.runner import Job, JobOutcome, run_all

from .conftest import SMALL, FakeCore, progress, write_results

if TYPE_CHECKING:
    from rampmeter._core import Progress


def jobs(folder: Path, n: int = 1, plan: rm.Plan | None = None) -> list[Job]:
    return [Job(f"job {i}", plan or rm.Plan(SMALL), folder / str(i)) for i in range(n)]


def states(todo: list[Job]) -> list[str]:
    return [outcome.state for outcome in run_all(todo).outcomes]


class TestResuming:
    def test_a_complete_result_is_not_run_again(self, fake_core: FakeCore, tmp_path: Path) -> None:
        assert states(jobs(tmp_path)) == ["ran"]
        assert states(jobs(tmp_path)) == ["reused"]
        assert len(fake_core.plans) == 1

    def test_a_status_of_an_earlier_version_has_its_present_name(self, tmp_path: Path) -> None:
        old = write_results(tmp_path / "old", status="censored")
        assert (old.status, old.is_complete) == ("timed-out", True)

    def test_a_timed_out_result_is_complete(self, fake_core: FakeCore, tmp_path: Path) -> None:
        fake_core.script = lambda _: "timed-out"
        assert states(jobs(tmp_path)) + states(jobs(tmp_path)) == ["ran", "reused"]

    def test_an_interrupted_run_is_repeated(self, fake_core: FakeCore, tmp_path: Path) -> None:
        fake_core.script = lambda _: "interrupted"
        assert states(jobs(tmp_path)) == ["interrupted"]
        fake_core.script = lambda _: "finished"
        assert states(jobs(tmp_path)) == ["ran"]

    def test_another_plan_is_refused_unless_it_is_forced(
        self, fake_core: FakeCore, tmp_path: Path
    ) -> None:
        states(jobs(tmp_path))
        [other] = jobs(tmp_path, plan=rm.Plan(SMALL).with_(("workload.load", 0.8)))
        with pytest.raises(rm.ResultError, match=r"/0: .*workload\.load: 0\.5 there, 0\.8 here"):
            run_all([other])
        assert len(fake_core.plans) == 1
        assert states([replace(other, force=True)]) == ["ran"]

    def test_a_folder_of_another_running_run_is_not_changed(
        self, fake_core: FakeCore, tmp_path: Path
    ) -> None:
        """Two runs in one folder removed each other's files, and one ended with an error."""
        [job] = jobs(tmp_path)
        job.out.mkdir()
        partial = job.out / "flows.partial"
        partial.touch()
        folder = os.open(job.out, os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        [outcome] = run_all([job]).outcomes
        assert outcome.state == "failed"
        assert f"another run (process {os.getpid()}) is writing to this folder" in str(
            outcome.error
        )
        with pytest.raises(rm.ResultError, match=r"another run .* is writing"):
            rm.compare(job.plan, "dcpim", out=job.out, quiet=True)
        assert partial.exists()
        assert not fake_core.plans
        os.close(folder)
        assert states([job]) == ["ran"]

    def test_the_same_plan_in_other_words_is_not_another(
        self, fake_core: FakeCore, tmp_path: Path
    ) -> None:
        states(jobs(tmp_path))
        assert states(jobs(tmp_path, plan=rm.Plan(f"# again\n{SMALL}"))) == ["ran"]

    def test_partial_results_are_not_replaced_by_another_plan(self, tmp_path: Path) -> None:
        """By the manifest, which every run has; defaults and their values are the same plan."""
        rm.run(rm.Plan(SMALL), out=tmp_path / "0", quiet=True)
        (tmp_path / "0/identity.json").unlink()
        default = rm.Plan(SMALL).with_(("run.drain-us", 1_000_000))
        assert states(jobs(tmp_path, plan=default)) == ["ran"]
        (tmp_path / "0/identity.json").unlink()
        with pytest.raises(rm.ResultError, match=r"transport\.name: dcpim there, phost here"):
            states(jobs(tmp_path, plan=rm.Plan(SMALL).with_(("transport", {"name": "phost"}))))

    def test_keys_that_another_build_did_not_have_make_no_other_plan(self, tmp_path: Path) -> None:
        rm.run(rm.Plan(SMALL), out=tmp_path / "0", quiet=True)
        (tmp_path / "0/identity.json").unlink()
        file = tmp_path / "0/manifest.json"
        manifest = json.loads(file.read_text())
        del manifest["plan"]["run"]["sample-us"]
        manifest["plan"]["transport"]["older"] = 1
        file.write_text(json.dumps(manifest))
        assert states(jobs(tmp_path)) == ["ran"]

    @pytest.mark.parametrize("name", ["VERSION", "COMMIT"])
    def test_another_simulator_runs_again(
        self, fake_core: FakeCore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        states(jobs(tmp_path))
        monkeypatch.setattr(_core, name, "other")
        assert states(jobs(tmp_path)) == ["ran"]

    def test_another_input_file_makes_another_plan(
        self, fake_core: FakeCore, tmp_path: Path
    ) -> None:
        trace = tmp_path / "trace.csv"
        header = "arrival_ps,src,dst,size_bytes\n"
        trace.write_text(header + "0,0,1,100\n")
        plan = rm.Plan.of(
            topology=rm.star(4), transport=rm.DcPim(), workload=rm.Trace(file=str(trace))
        )
        assert states(jobs(tmp_path, plan=plan)) == ["ran"]
        trace.write_text(header + "0,0,1,200\n")
        with pytest.raises(rm.ResultError, match=r"trace\.csv has changed"):
            run_all(jobs(tmp_path, plan=plan))
        assert states([replace(job, force=True) for job in jobs(tmp_path, plan=plan)]) == ["ran"]

    @pytest.mark.parametrize("name", ["summary.json", "flows.parquet", "manifest.json"])
    def test_a_result_that_lacks_a_file_is_run_again(
        self, fake_core: FakeCore, tmp_path: Path, name: str
    ) -> None:
        states(jobs(tmp_path))
        (tmp_path / "0" / name).unlink()
        assert states(jobs(tmp_path)) == ["ran"]

    def test_a_killed_run_has_no_valid_results(self, fake_core: FakeCore, tmp_path: Path) -> None:
        states(jobs(tmp_path))
        plan = rm.Plan(SMALL).with_(("seed", 2))
        changed = [replace(job, force=True) for job in jobs(tmp_path, plan=plan)]

        def die(_: Callable[["Progress"], bool]) -> str:
            raise rm.ResultError("no space left")

        fake_core.script = die
        assert states(changed) == ["failed"]
        fake_core.script = lambda _: "finished"
        assert states(jobs(tmp_path)) == ["ran"]


class TestFailures:
    def test_all_plans_are_checked_before_any_runs(
        self, fake_core: FakeCore, tmp_path: Path
    ) -> None:
        good, bad = jobs(tmp_path, 2)
        bad = Job("bad", bad.plan.with_(("workload.load", -1)), bad.out)
        with pytest.raises(rm.PlanError, match="load"):
            run_all([good, bad])
        assert fake_core.plans == []

    def test_one_failure_does_not_end_the_others(self, fake_core: FakeCore, tmp_path: Path) -> None:
        (tmp_path / "0").write_text("a file where a folder must be")
        batch = run_all(jobs(tmp_path, 2))
        assert [outcome.state for outcome in batch.outcomes] == ["failed", "ran"]
        assert list(batch.runs()) == ["job 1"]
        with pytest.raises(OSError, match="expected a folder, got a file"):
            batch.raise_failures()

    def test_a_mistake_in_the_simulator_is_an_error_of_one_run(
        self, fake_core: FakeCore, tmp_path: Path
    ) -> None:
        def break_once(_: Callable[["Progress"], bool]) -> str:
            if len(fake_core.plans) == 1:
                (tmp_path / "0" / "flows.parquet.partial").write_text("half")
                raise rm.InternalError("internal error, with seed 1")
            return "finished"

        fake_core.script = break_once
        batch = run_all(jobs(tmp_path, 2), n_threads=1)
        assert [outcome.state for outcome in batch.outcomes] == ["failed", "ran"]
        assert list((tmp_path / "0").iterdir()) == []
        with pytest.raises(Exception, match="with seed 1"):
            batch.raise_failures()


class TestParallel:
    def test_runs_are_concurrent(self, fake_core: FakeCore, tmp_path: Path) -> None:
        together = threading.Barrier(3, timeout=10)

        def meet(_: Callable[["Progress"], bool]) -> str:
            together.wait()
            return "finished"

        fake_core.script = meet
        batch = run_all(jobs(tmp_path, 3), n_threads=3)
        assert {outcome.state for outcome in batch.outcomes} == {"ran"}

    def test_the_simulator_lets_other_threads_run(self, tmp_path: Path) -> None:
        """Two real runs are both running before either ends."""
        events: list[str] = []

        class JobWatcher(runner.SilentWatcher):
            def on_start(self, job: Job) -> None:
                events.append("start")

            def on_end(self, outcome: JobOutcome) -> None:
                events.append("end")

        plan = rm.Plan(SMALL).with_(("workload.flows", 3000))
        run_all(jobs(tmp_path, 2, plan), JobWatcher(), n_threads=2)
        assert events == ["start", "start", "end", "end"]


class TestInterrupts:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_running_jobs_stop_and_waiting_ones_do_not_start(
        self, fake_core: FakeCore, tmp_path: Path, number: signal.Signals
    ) -> None:
        def until_told(on_progress: Callable[["Progress"], bool]) -> str:
            signal.raise_signal(number)
            while on_progress(progress()):
                pass
            return "interrupted"

        fake_core.script = until_told
        batch = run_all(jobs(tmp_path, 3), n_threads=1)
        assert batch.is_interrupted
        assert batch.stopped_by == number
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert [outcome.state for outcome in batch.outcomes] == ["interrupted"] * 3
        assert len(fake_core.plans) == 1
        # The first one has results; the others have none.
        assert batch.outcomes[0].run is not None
        assert batch.outcomes[1].run is None
        assert batch.runs() == {}

    def test_finished_jobs_stay_finished(self, fake_core: FakeCore, tmp_path: Path) -> None:
        def second_is_interrupted(on_progress: Callable[["Progress"], bool]) -> str:
            if len(fake_core.plans) == 1:
                return "finished"
            signal.raise_signal(signal.SIGINT)
            while on_progress(progress()):
                pass
            return "interrupted"

        fake_core.script = second_is_interrupted
        batch = run_all(jobs(tmp_path, 2), n_threads=1)
        assert list(batch.runs()) == ["job 0"]
        fake_core.script = lambda _: "finished"
        assert states(jobs(tmp_path, 2)) == ["reused", "ran"]


def test_equal_plans_give_equal_bytes_at_any_number_of_threads(tmp_path: Path) -> None:
    plans = [rm.Plan(SMALL).with_(("seed", seed)) for seed in (1, 2, 3)]
    for threads in (1, 3):
        todo = [Job(str(i), plan, tmp_path / str(threads) / str(i)) for i, plan in enumerate(plans)]
        run_all(todo, n_threads=threads)
    names = ("flows.parquet", "series.parquet", "queues.parquet", "summary.json")
    for i in range(3):
        for name in names:
            one = (tmp_path / "1" / str(i) / name).read_bytes()
            assert one == (tmp_path / "3" / str(i) / name).read_bytes(), f"plan {i}: {name}"
    flows = {(tmp_path / "1" / str(i) / "flows.parquet").read_bytes() for i in range(3)}
    assert len(flows) == 3


@pytest.mark.parametrize("width", [80, 120])
def test_the_bars_of_runs_fit_and_have_labelled_times(tmp_path: Path, width: int) -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, color_system=None)
    todo = [Job("homa-aeolus:reference seed 1", rm.Plan(SMALL), tmp_path), *jobs(tmp_path, 1)]
    with watching(console, todo, is_quiet=False) as watcher:
        watcher.on_start(todo[0])
        for delivered in (100, 200, 300):
            watcher.on_progress(
                todo[0],
                {
                    "submitted": 400,
                    "delivered": delivered,
                    "total": 400,
                    "now_ps": 1,
                    "hops": 1,
                    "events": 1,
                },
            )
            time.sleep(0.2)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.getvalue())
    lines = [line for line in re.split(r"[\r\n]+", plain) if "simulated" in line]
    assert lines
    assert all(" elapsed" in line and "…" not in line.split("%")[1] for line in lines)
    assert max(map(len, lines)) <= width

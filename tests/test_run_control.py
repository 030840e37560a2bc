"""Runs that are limited, cancelled and watched from Python."""

import asyncio
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rampmeter as rm
from rampmeter.plan.manifest import MANIFEST

if TYPE_CHECKING:
    from rampmeter._core import Progress

LONG: dict[str, Any] = {
    "topology": rm.leaf_spine(),
    "transport": rm.DcPim(),
    "workload": rm.web_search(load=0.6, flows=10_000_000),
    "quiet": True,
}
SHORT = LONG | {"topology": rm.star(4), "workload": rm.imc10(load=0.3, flows=50)}


def plan_of(parts: dict[str, Any]) -> rm.Plan:
    return rm.Plan.of(**{name: part for name, part in parts.items() if name != "quiet"})


def is_interrupted(out: Path) -> bool:
    return (out / MANIFEST).is_file() and rm.Run(out).status == "interrupted"


def test_a_run_ends_at_its_time_limit(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"did not end within 0\.5 s; finished output is in "):
        rm.run(**LONG, out=tmp_path / "out", timeout=0.5)
    assert time.monotonic() - began < 20
    assert is_interrupted(tmp_path / "out")


def test_a_run_that_ends_in_time_is_complete() -> None:
    assert rm.run(**SHORT, timeout=100, cancel=threading.Event()).status == "finished"


def test_a_run_ends_when_another_thread_cancels_it(tmp_path: Path) -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    with pytest.raises(CancelledError, match="finished output is in"):
        rm.run(**LONG, out=tmp_path / "out", cancel=cancel)
    assert is_interrupted(tmp_path / "out")


def test_progress_is_reported_and_its_callback_may_end_the_run(tmp_path: Path) -> None:
    reports: list[Progress] = []
    cancel = threading.Event()

    def tell(progress: "Progress") -> None:
        reports.append(dict(progress))  # type: ignore[arg-type]
        if len(reports) == 3:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        rm.run(**LONG, out=tmp_path / "out", on_progress=tell, cancel=cancel)
    assert not cancel.is_set()
    assert len(reports) == 3
    delivered = [progress["delivered"] for progress in reports]
    assert delivered == sorted(delivered)
    assert reports[-1]["total"] == 10_000_000
    assert is_interrupted(tmp_path / "out")


def test_tasks_run_concurrently_and_can_be_cancelled(tmp_path: Path) -> None:
    async def both() -> list[rm.Run]:
        return list(await asyncio.gather(rm.run_async(**SHORT), rm.run_async(**SHORT, seed=2)))

    assert [run.status for run in asyncio.run(both())] == ["finished"] * 2

    async def impatient() -> None:
        await asyncio.wait_for(rm.run_async(**LONG, out=tmp_path / "out"), timeout=0.5)

    began = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    assert time.monotonic() - began < 20
    assert is_interrupted(tmp_path / "out")


def test_samples_are_as_far_apart_as_packets_and_round_trips_are_long() -> None:
    def samples(gbps: float, rtt_us: float) -> int:
        done = rm.run(
            topology={
                "kind": "star",
                "hosts": 4,
                "access-gbps": gbps,
                "propagation-ns": rtt_us * 250,
            },
            transport={"name": "homa"},
            workload={"pattern": "permutation", "sizes": {"fixed": 100_000}},
            seed=1,
            quiet=True,
        )
        return len(set(done.series["time_ps"].to_pylist()))

    # A run of 0.7 s has 70 000 samples at intervals of 10 us.
    assert samples(10.0, 10.0) > 5
    assert samples(0.01, 300_000.0) < 200


def test_runs_comparisons_and_sweeps_report_progress_in_the_same_form() -> None:
    plan = plan_of(SHORT | {"workload": rm.imc10(0.5, flows=3000)})
    reports: dict[str, list[rm.RunProgress]] = {"run": [], "compare": [], "sweep": []}
    rm.run(plan, on_progress=reports["run"].append)
    rm.compare(plan, "dcpim,phost", seeds=2, on_progress=reports["compare"].append)
    rm.sweep(plan, vary={"workload.load": [0.3, 0.5]}, on_progress=reports["sweep"].append)
    for made in reports.values():
        for report in made:
            assert set(report) == set(rm.RunProgress.__annotations__)
    assert {one["name"] for one in reports["run"]} == {"run"}
    names = {f"{label} seed {seed}" for label in ("dcpim", "phost") for seed in (1, 2)}
    assert {one["name"] for one in reports["compare"]} <= names
    assert len(reports["sweep"]) == 2
    assert {one["delivered"] for one in reports["sweep"]} == {3000}


@pytest.mark.parametrize("function", [rm.run, rm.compare, rm.sweep])
def test_a_callback_that_raises_ends_the_runs(function: Any) -> None:
    def stop(_: rm.RunProgress) -> None:
        raise LookupError("enough")

    plan = plan_of(SHORT if function is rm.sweep else LONG)
    words = {rm.compare: ("dcpim,phost",)}.get(function, ())
    options = {rm.sweep: {"seeds": 2, "quiet": True}}.get(function, {})
    with pytest.raises(LookupError, match="enough"):
        function(plan, *words, on_progress=stop, **options)


@pytest.mark.parametrize("function", [rm.run, rm.compare, rm.sweep])
def test_a_callback_that_is_no_function_is_an_error(function: Any) -> None:
    words = {rm.compare: ("dcpim",)}.get(function, ())
    with pytest.raises(rm.PlanError, match=r"^on_progress: expected a function, got 5"):
        function(plan_of(SHORT), *words, on_progress=5)

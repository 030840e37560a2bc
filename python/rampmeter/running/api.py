"""Runs plans from Python: one simulation, or a comparison of transports."""

import shutil
import signal
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from rampmeter.choices import naming
from rampmeter.choices.naming import TransportChoice
from rampmeter.choices.seeds import Seeds, seeds_argument
from rampmeter.on_demand import asyncio
from rampmeter.plan.base import PlanTable
from rampmeter.plan.plan import Override, Plan, part_of
from rampmeter.plan.transport_names import TransportName
from rampmeter.results.comparison import Comparison
from rampmeter.results.run import Run
from rampmeter.results.same_flows import FAILURES, Failures
from rampmeter.running.callback import CallbackWatcher, OnProgress, check_callback
from rampmeter.running.comparison_job import ComparisonJob
from rampmeter.running.growing_run import grow
from rampmeter.running.progress import watching
from rampmeter.running.run_length import RunLength, length_of_run
from rampmeter.running.runner import Batch, Job, StopCondition, run_all
from rampmeter.text.arguments import (
    argument_error,
    choice_argument,
    number_argument,
    path_argument,
    whole_argument,
)
from rampmeter.text.locations import Location
from rampmeter.text.terminal import progress_console
from rampmeter.text.toml import WHOLE_MAX, Table


def run(
    plan: Plan | str | PathLike[str] | None = None,
    *,
    topology: PlanTable | Table | None = None,
    transport: TransportName | Sequence[TransportName] | None = None,
    workload: PlanTable | Table | None = None,
    seed: int | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    quiet: bool = False,
    fabric: PlanTable | Table | None = None,
    run: PlanTable | Table | None = None,
    measure: PlanTable | Table | None = None,
    clocks: PlanTable | Table | None = None,
    faults: PlanTable | Table | None = None,
    deadlines: PlanTable | Table | None = None,
    load: PlanTable | Table | None = None,
    names: PlanTable | Table | None = None,
    auto_flows: bool = False,
    precision: float | None = None,
    flows_max: int | None = None,
    timeout: float | None = None,
    cancel: threading.Event | None = None,
    on_progress: OnProgress | None = None,
) -> Run:
    """Runs one simulation and returns its results.

    The plan is read from a file, or made of its parts, or read from a file with parts replaced. A
    transport is a table, an object or a class of `rampmeter.transports`, or a text such as
    `"dcpim:paper"`.

    Without `out` the results are in a temporary folder as long as the returned object exists.
    Results of the same plan in `out` are not made again. Those of another plan are an error, unless
    `force` replaces them. Ctrl-C ends the run, keeps finished output in `out`, and raises
    `KeyboardInterrupt`; SIGTERM raises `SystemExit`. The simulator releases the interpreter lock,
    so that threads can run several simulations. A run without `out` cannot be pickled.

    With `auto_flows` the flows of the plan are doubled, up to `flows_max`, until half the 95 %
    interval of the mean slowdown is within `precision` (0.05) and no warning calls the run short.

    A run longer than `timeout` seconds ends with `TimeoutError`. A run whose event `cancel` is set
    ends with `CancelledError` of `concurrent.futures`. Both keep finished output in `out`. Another
    thread calls `on_progress` with a `RunProgress` a few times per second; its exceptions end the
    run.

        >>> import rampmeter as rm
        >>> r = rm.run(topology=rm.leaf_spine(), transport=rm.DcPim(r=4, k=4),
        ...            workload=rm.web_search(load=0.6), seed=1)  # doctest: +SKIP
    """
    _check_control(timeout, cancel, on_progress)
    parts = {
        "topology": topology,
        "transport": transport,
        "workload": workload,
        "fabric": fabric,
        "run": run,
        "measure": measure,
        "clocks": clocks,
        "faults": faults,
        "deadlines": deadlines,
        "load": load,
        "names": names,
    }
    complete = _plan(plan, seed, parts)
    length = length_of_run(complete, _precision(precision), flows_max, is_auto=auto_flows)
    stop = StopCondition(timeout, cancel)
    return _run_plan(complete, length, out, stop, on_progress, force=force, quiet=quiet)


def _run_plan(
    plan: Plan,
    length: RunLength | None,
    out: str | PathLike[str] | None,
    stop: StopCondition,
    on_progress: OnProgress | None,
    *,
    force: bool,
    quiet: bool,
) -> Run:
    """Runs a plan in a folder; raises an exception if a time limit or an event ends it."""
    folder = Path(mkdtemp(prefix="rampmeter-")) if out is None else path_argument("out", out)
    temporary = Run(folder, is_temporary=True) if out is None else None
    job = Job("run", plan, folder, force)
    run_jobs = partial(_run_watched, stop=stop, on_progress=on_progress, quiet=quiet)
    batch = run_jobs([job]) if length is None else grow(job, length, run_jobs).batch
    if any(outcome.state == "interrupted" for outcome in batch.outcomes):
        finished = f"; finished output is in {folder}" if out is not None else ""
        if stop.cancel.is_set():
            raise CancelledError(f"the run was cancelled{finished}")
        raise TimeoutError(f"timeout: the run did not end within {stop.timeout:g} s{finished}")
    return temporary or Run(folder)


def _check_control(timeout: object, cancel: object, on_progress: object) -> None:
    """Raises `PlanError` if an argument that controls a run is of another kind."""
    if timeout is not None:
        number_argument("timeout", timeout, 0.0)
    if not isinstance(cancel, threading.Event | None):
        raise argument_error("cancel", "a threading.Event", cancel)
    check_callback(on_progress)


def _precision(precision: float | None) -> float | None:
    """Returns a precision; raises `PlanError` if it is not between 0 and 1."""
    if precision is not None:
        number_argument("precision", precision, 0.0, 1.0, is_open=True)
    return precision


def _run_watched(
    jobs: list[Job],
    stop: StopCondition,
    on_progress: OnProgress | None,
    *,
    quiet: bool,
) -> Batch:
    """Runs jobs; raises their first error, the callback's exception, or that of a signal."""
    if on_progress is None:
        batch = _run_jobs(jobs, quiet=quiet, stop=stop)
    else:
        watcher = CallbackWatcher(on_progress, stop)
        batch = run_all(jobs, watcher, stop=stop)
        if watcher.error is not None:
            raise watcher.error
    _raise(batch)
    return batch


async def run_async(
    plan: Plan | str | PathLike[str] | None = None,
    *,
    cancel: threading.Event | None = None,
    **keywords: Any,
) -> Run:
    """Runs like `run`, for asyncio, in a thread; the arguments are those of `run`.

    A task that is cancelled ends its run, and then raises `asyncio.CancelledError`.

        >>> runs = await asyncio.gather(rm.run_async("a.toml", quiet=True),
        ...                             rm.run_async("b.toml", quiet=True))  # doctest: +SKIP
    """
    cancel = cancel or threading.Event()
    running = asyncio.ensure_future(asyncio.to_thread(run, plan, cancel=cancel, **keywords))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancel.set()
        await asyncio.wait([running])
        running.exception()
        raise


def compare(
    plan: Plan | str | PathLike[str],
    transports: TransportName | TransportChoice | Sequence[TransportName | TransportChoice],
    *,
    out: str | PathLike[str] | None = None,
    seeds: Seeds | str | None = None,
    precision: float | None = None,
    auto_flows: bool = False,
    flows_max: int | None = None,
    failures: Failures = "excluded",
    force: bool = False,
    quiet: bool = False,
    on_progress: OnProgress | None = None,
) -> Comparison:
    """Runs a plan through several transports, as `rampmeter compare` does.

    `transports` is a list such as `"dcpim,phost:reference,dcpim:beta=1.5"`, or a sequence of such
    texts, of tables, and of objects or classes of `rampmeter.transports`. Without `out` the
    results are in a temporary folder as long as the returned object exists.

    `seeds` is a number of them, from the plan's on, or the seeds: a list, a range or a text such as
    `"3..7"`. With several every number has an interval; with `precision` seeds are added until the
    interval of each mean slowdown is within that share of it. With `auto_flows` the flows of the
    plan are doubled, up to `flows_max`, until one run of each transport is that precise (0.05
    without `precision`). Flows that some transport did not deliver are `excluded` from the
    statistics of all, or count as `infinite`ly slow there. Threads call `on_progress` as `run`
    does, one after another; the name in it is that of the run. Errors are those of `run`.

        >>> c = rm.compare("plan.toml", "dcpim,phost", out="results/c", seeds=5)  # doctest: +SKIP
        >>> c.plot.slowdown_by_size()  # doctest: +SKIP
    """
    base = plan if isinstance(plan, Plan) else Plan.load(plan)
    choices = naming.transports_of(transports)
    chosen = None if seeds is None else seeds_argument("seeds", seeds)
    _precision(precision)
    choice_argument("failures", failures, FAILURES)
    check_callback(on_progress)
    folder = Path(mkdtemp(prefix="rampmeter-")) if out is None else path_argument("out", out)
    job = ComparisonJob(base, choices, folder, chosen, precision, failures, force)
    length = RunLength.of(base, precision, flows_max, is_auto=auto_flows)
    job = replace(job, run_length=length)
    run_jobs = partial(_run_watched, stop=StopCondition(), on_progress=on_progress, quiet=quiet)
    comparison, _ = job.run(run_jobs)
    if comparison is None:
        raise Location(folder).result_error(expected="complete runs of a transport")
    comparison.save(folder)
    if out is None:
        weakref.finalize(comparison, shutil.rmtree, folder, ignore_errors=True)
    return comparison


def _run_jobs(jobs: list[Job], *, quiet: bool, stop: StopCondition | None = None) -> Batch:
    with watching(progress_console(), jobs, is_quiet=quiet) as watcher:
        return run_all(jobs, watcher, stop=stop)


def _raise(batch: Batch) -> None:
    """Raises the first error, or the exception of the signal that ended the runs."""
    batch.raise_failures()
    if batch.stopped_by == signal.SIGINT:
        raise KeyboardInterrupt
    if batch.stopped_by is not None:
        raise SystemExit(128 + batch.stopped_by)


def _plan(plan: Plan | str | PathLike[str] | None, seed: int | None, parts: dict[str, Any]) -> Plan:
    if plan is None:
        for name in ("topology", "transport", "workload"):
            if parts.get(name) is None and "transport" in parts:
                raise argument_error(name, "a part of a plan", None)
        return Plan.of(seed=1 if seed is None else seed, **parts)
    base = plan if isinstance(plan, Plan) else Plan.load(plan)
    overrides: list[Override] = [
        (name, part_of(name, part)) for name, part in parts.items() if part is not None
    ]
    if seed is not None:
        overrides.append(("seed", whole_argument("seed", seed, 0, WHOLE_MAX)))
    return base.with_(*overrides)

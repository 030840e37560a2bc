"""Running plans from Python."""

import shutil
import weakref
from os import PathLike
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from rich.console import Console

from rampmeter.plan import Plan
from rampmeter.progress import watching
from rampmeter.results import Run
from rampmeter.runner import Job, run_all
from rampmeter.spec import Part
from rampmeter.toml import Table


def run(
    plan: Plan | str | PathLike[str] | None = None,
    *,
    topology: Part | Table | None = None,
    transport: Part | Table | None = None,
    workload: Part | Table | None = None,
    seed: int | None = None,
    out: str | PathLike[str] | None = None,
    quiet: bool = False,
    **tables: Part | Table | None,
) -> Run:
    """Run one simulation and give its results.

    The plan is one from a file, or made of its parts, or a file's with parts replaced; `tables`
    are further ones (`fabric`, `measure`, `clocks`, `faults`). Without `out` the results live in
    a temporary folder as long as the returned object. Ctrl-C ends the run, keeps what is done in
    `out`, and raises `KeyboardInterrupt`.

        >>> import rampmeter as rm
        >>> r = rm.run(topology=rm.leaf_spine(), transport=rm.DcPim(r=4, k=4),
        ...            workload=rm.web_search(load=0.6), seed=1)  # doctest: +SKIP
    """
    parts = {"topology": topology, "transport": transport, "workload": workload, **tables}
    complete = _plan(plan, seed, parts)
    folder = Path(mkdtemp(prefix="rampmeter-") if out is None else out)
    done = Run(folder)
    if out is None:
        weakref.finalize(done, shutil.rmtree, folder, ignore_errors=True)
    jobs = [Job("run", complete, folder)]
    with watching(Console(stderr=True), jobs, is_quiet=quiet) as watcher:
        batch = run_all(jobs, watcher)
    batch.raise_failures()
    if batch.is_interrupted:
        raise KeyboardInterrupt
    return done


def _plan(plan: Plan | str | PathLike[str] | None, seed: int | None, parts: dict[str, Any]) -> Plan:
    if plan is None:
        return Plan.of(seed=1 if seed is None else seed, **parts)
    base = plan if isinstance(plan, Plan) else Plan.load(plan)
    overrides = [
        (name, part.table() if isinstance(part, Part) else part)
        for name, part in parts.items()
        if part is not None
    ]
    if seed is not None:
        overrides.append(("seed", seed))
    return base.with_(*overrides)

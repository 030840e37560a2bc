"""Runs many plans at once, one a core; stops them all on Ctrl-C and keeps what is finished.

The simulator releases the interpreter lock, so threads are enough. A result folder that holds the
same plan, the same input files and the same simulator is not run again.
"""

import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from rampmeter import _core, results
from rampmeter._core import PlanError, ResultError
from rampmeter.plan import Plan
from rampmeter.results import Run

if TYPE_CHECKING:
    from rampmeter._core import Progress

IDENTITY = "identity.json"
"""What a result folder's run is known by: plan, input files, simulator."""

POLL_SECONDS = 0.2
"""How often the waiting thread looks for an interrupt."""

State: TypeAlias = Literal["ran", "kept", "interrupted", "failed"]


@dataclass(frozen=True)
class Job:
    """One plan to run."""

    name: str
    plan: Plan
    out: Path


@dataclass(frozen=True)
class Outcome:
    """What became of a job."""

    job: Job
    state: State
    """`ran`, `kept` (results of an earlier run), `interrupted` or `failed`."""
    run: Run | None = None
    """The results; none where the job did not start or failed."""
    error: Exception | None = None


@dataclass(frozen=True)
class Batch:
    """What became of all jobs, in their order."""

    outcomes: tuple[Outcome, ...]
    is_interrupted: bool
    wall_seconds: float

    def runs(self) -> dict[str, Run]:
        """The complete results by the names of their jobs."""
        complete = {o.job.name: o.run for o in self.outcomes if o.state in ("ran", "kept")}
        return {name: run for name, run in complete.items() if run is not None}

    def raise_failures(self) -> None:
        """Raise the first error of a job, if there was one."""
        for outcome in self.outcomes:
            if outcome.error is not None:
                raise outcome.error


class Watcher(Protocol):
    """Who is told how jobs get on, from the threads that run them."""

    def on_start(self, job: Job) -> None:
        """The job starts."""

    def on_progress(self, job: Job, progress: "Progress") -> None:
        """The job got this far."""

    def on_end(self, outcome: Outcome) -> None:
        """The job ended."""


class Silent:
    """A watcher that shows nothing."""

    def on_start(self, job: Job) -> None:
        """Nothing."""

    def on_progress(self, job: Job, progress: "Progress") -> None:
        """Nothing."""

    def on_end(self, outcome: Outcome) -> None:
        """Nothing."""


def n_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_all(
    jobs: Sequence[Job], watcher: Watcher | None = None, *, n_threads: int | None = None
) -> Batch:
    """Run jobs in their order, some at a time.

    Every plan is checked before the first one runs; raises `PlanError` then. On Ctrl-C the runs
    end at once and `Batch.is_interrupted` is set; a second Ctrl-C raises `KeyboardInterrupt`.
    """
    start = time.monotonic()
    for job in jobs:
        job.plan.check()
    stop = threading.Event()
    worker = _Worker(watcher or Silent(), stop)
    n_workers = max(1, min(n_threads or n_cores(), len(jobs)))
    with _stopping_on_interrupt(stop), ThreadPoolExecutor(n_workers) as pool:
        futures = [pool.submit(worker.run, job) for job in jobs]
        # Again and again with a time limit, since a signal that comes to another thread does not
        # end a wait of this one.
        while wait(futures, timeout=POLL_SECONDS).not_done:
            pass
    outcomes = tuple(future.result() for future in futures)
    return Batch(outcomes, stop.is_set(), time.monotonic() - start)


@contextmanager
def _stopping_on_interrupt(stop: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C set `stop`, and only the second one raise `KeyboardInterrupt`.

    An exception could come anywhere, such as between the start of a thread and the note that it
    must be waited for. Signals go to the main thread alone, so elsewhere nothing is done; where
    they are ignored they stay so.
    """
    previous = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or previous is None or previous is signal.SIG_IGN:
        yield
        return

    def on_interrupt(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


class _Worker:
    def __init__(self, watcher: Watcher, stop: threading.Event) -> None:
        self._watcher = watcher
        self._stop = stop

    def run(self, job: Job) -> Outcome:
        if self._stop.is_set():
            return Outcome(job, "interrupted")
        self._watcher.on_start(job)
        try:
            outcome = self._outcome(job)
        except (PlanError, ResultError, OSError) as error:
            outcome = Outcome(job, "failed", error=error)
        self._watcher.on_end(outcome)
        return outcome

    def _outcome(self, job: Job) -> Outcome:
        identity = identity_of(job.plan)
        if is_current(job.out, identity):
            return Outcome(job, "kept", Run(job.out))
        self._clear(job.out)
        summary = _simulate(job, self._on_progress(job))
        if summary["status"] in results.COMPLETE:
            (job.out / IDENTITY).write_text(json.dumps(identity, indent=2) + "\n", "utf-8")
            return Outcome(job, "ran", Run(job.out))
        return Outcome(job, "interrupted", Run(job.out))

    def _on_progress(self, job: Job) -> Callable[["Progress"], bool]:
        def on_progress(progress: "Progress") -> bool:
            self._watcher.on_progress(job, progress)
            return not self._stop.is_set()

        return on_progress

    @staticmethod
    def _clear(out: Path) -> None:
        """Forget what an earlier run left, so that no mixture can pass for a result."""
        for name in (IDENTITY, results.MANIFEST, results.SUMMARY):
            (out / name).unlink(missing_ok=True)
        out.mkdir(parents=True, exist_ok=True)


def _simulate(job: Job, on_progress: Callable[["Progress"], bool]) -> dict[str, Any]:
    try:
        text = _core.run(job.plan.text, str(job.plan.base), str(job.out), on_progress)
    except PlanError as error:
        raise job.plan.named(error) from None
    summary: dict[str, Any] = json.loads(text)
    return summary


def identity_of(plan: Plan) -> dict[str, Any]:
    """What decides a run's results."""
    return {
        "plan": plan.text,
        "inputs": plan.input_digests(),
        "version": _core.VERSION,
        "commit": _core.COMMIT,
        "binary": _binary_digest(),
    }


def is_current(out: Path, identity: dict[str, Any]) -> bool:
    """Whether a folder holds the complete results of a run with this identity."""
    try:
        known = results.read_json(out / IDENTITY)
        manifest = results.read_json(out / results.MANIFEST)
    except ResultError:
        return False
    return (
        known == identity
        and manifest.get("status") in results.COMPLETE
        and all((out / name).is_file() for name in (results.SUMMARY, results.FLOWS))
    )


@cache
def _binary_digest() -> str:
    """Tells apart builds of one commit, such as those of uncommitted changes."""
    file = getattr(_core, "__file__", None)
    if file is None:
        return "none"
    with Path(file).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

"""Runs many plans concurrently, one per core, or a single one on all cores.

Ctrl-C and SIGTERM stop all; finished results are stored.

The simulator releases the interpreter lock, so threads are enough. A result folder that has the
same plan, the same input files and the same simulator is not run again.
"""

import ctypes
import hashlib
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from rampmeter import _core
from rampmeter._core import EndpointError, InternalError, PlanError, ResultError
from rampmeter.plan.manifest import BASE, IDENTITY, MANIFEST
from rampmeter.plan.plan import Plan
from rampmeter.plan.schema import PYTHON
from rampmeter.results.missing import KINDS as OTHER_KINDS
from rampmeter.results.missing import SUMMARY
from rampmeter.results.run import COMPLETE, FLOWS, Run
from rampmeter.running.folder_lock import lock_folder
from rampmeter.text.files import write_text
from rampmeter.text.json_object import read_json
from rampmeter.text.locations import Location, location_of, relocated
from rampmeter.text.toml import literal

if TYPE_CHECKING:
    from rampmeter._core import Progress

POLL_SECONDS = 0.2
"""Interval at which the waiting thread checks for an interrupt."""
PATIENCE_SECONDS = 5.0
"""Maximum time for a method of a Python transport to return when its run must end."""

State: TypeAlias = Literal["ran", "reused", "interrupted", "failed"]


@dataclass(frozen=True)
class Job:
    """One plan to run."""

    name: str
    plan: Plan
    out: Path
    force: bool = False
    """Replaces results of another plan in the folder."""


@dataclass(frozen=True)
class JobOutcome:
    """The outcome of a job."""

    job: Job
    state: State
    """`ran`, `reused` (results of an earlier run), `interrupted` or `failed`."""
    run: Run | None = None
    """The results; `None` if the job did not start or failed."""
    error: Exception | None = None


@dataclass(frozen=True)
class Batch:
    """The outcomes of all jobs, in their order."""

    outcomes: tuple[JobOutcome, ...]
    stopped_by: signal.Signals | None
    """The signal that ended it before all runs ended: SIGINT, SIGTERM, or none."""
    wall_seconds: float

    @property
    def is_interrupted(self) -> bool:
        """Returns true if a signal ended it before all runs ended."""
        return self.stopped_by is not None

    def runs(self) -> dict[str, Run]:
        """Returns the complete results by the names of their jobs."""
        complete = {o.job.name: o.run for o in self.outcomes if o.state in ("ran", "reused")}
        return {name: run for name, run in complete.items() if run is not None}

    def followed_by(self, later: "Batch") -> "Batch":
        """Returns the outcomes of this batch and of a later one."""
        return Batch(
            (*self.outcomes, *later.outcomes),
            self.stopped_by or later.stopped_by,
            self.wall_seconds + later.wall_seconds,
        )

    def raise_failures(self) -> None:
        """Raises the first error of a job, if there was one."""
        for outcome in self.outcomes:
            if outcome.error is not None:
                raise outcome.error


class JobWatcher(Protocol):
    """Receives the progress of jobs, from the threads that run them."""

    def on_start(self, job: Job) -> None:
        """Called when the job starts."""

    def on_progress(self, job: Job, progress: "Progress") -> None:
        """Called a few times a second with the progress of the job."""

    def on_end(self, outcome: JobOutcome) -> None:
        """Called when the job has ended."""


class SilentWatcher:
    """A watcher that shows nothing."""

    def on_start(self, job: Job) -> None:
        """Does nothing."""

    def on_progress(self, job: Job, progress: "Progress") -> None:
        """Does nothing."""

    def on_end(self, outcome: JobOutcome) -> None:
        """Does nothing."""


def n_cores() -> int:
    """Returns the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_all(
    jobs: Sequence[Job],
    watcher: JobWatcher | None = None,
    *,
    n_threads: int | None = None,
    stop: "StopCondition | None" = None,
) -> Batch:
    """Runs jobs in their order, several at a time, until `stop` is set.

    Every plan is checked before the first one runs. Raises `PlanError` if a plan cannot run, and
    `ResultError` if a folder has the results of another plan and its job does not replace them.
    On Ctrl-C and SIGTERM the runs end at once and `Batch.stopped_by` is set; a second Ctrl-C
    raises `KeyboardInterrupt`, a second SIGTERM `SystemExit`.
    """
    start = time.monotonic()
    for job in jobs:
        complete = _checked(job, is_alone=len(jobs) == 1)
        reject_other_kinds(job.out)
        if not job.force:
            reject_other_results(job.out, job.plan, complete)
    stop = stop or StopCondition()
    is_alone = len(jobs) == 1 and n_threads is None
    worker = _Worker(watcher or SilentWatcher(), stop, n_cores() if is_alone else 1)
    n_workers = max(1, min(n_threads or n_cores(), len(jobs)))
    with stopping_on_signals(stop), ThreadPoolExecutor(n_workers) as pool:
        futures = [pool.submit(worker.run, job) for job in jobs]
        # Waits have a time limit, since a signal to another thread does not end a wait of this one.
        while wait(futures, timeout=POLL_SECONDS).not_done:
            worker.end_hanging()
    outcomes = tuple(future.result() for future in futures)
    return Batch(outcomes, stop.by, time.monotonic() - start)


def _checked(job: Job, *, is_alone: bool) -> dict[str, Any]:
    """Returns the complete plan of a job; errors name the job unless it is alone."""
    if is_alone:
        return job.plan.check_run()
    with naming_errors(job.name):
        return job.plan.check_run()


@contextmanager
def naming_errors(name: str) -> Iterator[None]:
    """Adds the name of a job to errors of its plan, unless they show a line of the plan."""
    try:
        yield
    except PlanError as error:
        if error._source:
            raise
        raise relocated(error, replace(location_of(error), source=name)) from None


class StopCondition:
    """Condition that ends runs: a signal, an event, a time limit, or a failed watcher."""

    def __init__(self, timeout: float | None = None, cancel: threading.Event | None = None) -> None:
        self.by: signal.Signals | None = None
        self.timeout = timeout
        self.cancel = cancel or threading.Event()
        self.is_over = False
        """Set if the watcher of the runs has failed."""
        self._ends_at = math.inf if timeout is None else time.monotonic() + timeout

    @property
    def is_late(self) -> bool:
        """Returns true if the time limit has passed."""
        return time.monotonic() >= self._ends_at

    def is_set(self) -> bool:
        """Returns true if runs must end."""
        return self.by is not None or self.is_over or self.cancel.is_set() or self.is_late


@contextmanager
def stopping_on_signals(stop: StopCondition) -> Iterator[None]:
    """Records the first Ctrl-C or SIGTERM in `stop`; the second one raises.

    An exception of the first one could be raised anywhere, such as after the start of a thread and
    before the thread is recorded. Only the main thread receives signals, so other threads change no
    handlers. Ignored signals remain ignored, and a program's own handler of SIGTERM remains.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        stop.by = signal.Signals(number)

    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ours = [
        number
        for number, handler in previous.items()
        if handler not in (None, signal.SIG_IGN)
        and (number == signal.SIGINT or handler is signal.SIG_DFL)
    ]
    for number in ours:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, previous[number])


class _RunEnd(BaseException):
    """Exception that ends a method of a Python class that does not return."""


class _Worker:
    def __init__(self, watcher: JobWatcher, stop: StopCondition, n_threads: int) -> None:
        self._watcher = watcher
        self._stop = stop
        self._n_threads = n_threads
        """Threads of a long run whose plan has no `run.threads`."""
        self._stopped_at: float | None = None
        self._in_python: set[int] = set()
        """Threads whose run has a transport in Python."""

    def end_hanging(self) -> None:
        """Ends runs of Python transports that do not end within `PATIENCE_SECONDS` of the stop."""
        if not self._stop.is_set():
            return
        now = time.monotonic()
        self._stopped_at = self._stopped_at or now
        if now - self._stopped_at < PATIENCE_SECONDS:
            return
        for thread in list(self._in_python):
            self._in_python.discard(thread)
            raised = ctypes.py_object(_RunEnd)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)

    def run(self, job: Job) -> JobOutcome:
        if self._stop.is_set():
            return JobOutcome(job, "interrupted")
        self._watcher.on_start(job)
        try:
            with lock_folder(job.out):
                outcome = self._run_or_fail(job)
        except (ResultError, OSError) as error:
            outcome = JobOutcome(job, "failed", error=error)
        self._watcher.on_end(outcome)
        return outcome

    def _run_or_fail(self, job: Job) -> JobOutcome:
        try:
            return self._outcome(job)
        except (PlanError, OSError, InternalError, EndpointError, _RunEnd) as error:
            for partial in job.out.glob("*.partial"):
                partial.unlink()
            if isinstance(error, _RunEnd) or isinstance(error.__cause__, _RunEnd):
                return JobOutcome(job, "interrupted")
            return JobOutcome(job, "failed", error=error)

    def _outcome(self, job: Job) -> JobOutcome:
        identity = identity_of(job.plan)
        if is_current(job.out, identity):
            return JobOutcome(job, "reused", Run(job.out))
        self._clear(job.out)
        thread = threading.get_ident()
        if any(table.get("name") == PYTHON for table in job.plan.transports()):
            self._in_python.add(thread)
        try:
            summary = _simulate(job, self._on_progress(job), self._n_threads)
        finally:
            self._in_python.discard(thread)
        content = {**identity, BASE: os.path.relpath(job.plan.base, job.out)}
        write_text(job.out / IDENTITY, json.dumps(content, indent=2) + "\n")
        if summary["status"] in COMPLETE:
            return JobOutcome(job, "ran", Run(job.out))
        return JobOutcome(job, "interrupted", Run(job.out))

    def _on_progress(self, job: Job) -> Callable[["Progress"], bool]:
        def on_progress(progress: "Progress") -> bool:
            self._watcher.on_progress(job, progress)
            return not self._stop.is_set()

        return on_progress

    @staticmethod
    def _clear(out: Path) -> None:
        """Removes the main files of an earlier run, so that results of two runs are not mixed."""
        for name in (IDENTITY, MANIFEST, SUMMARY):
            (out / name).unlink(missing_ok=True)


def _simulate(
    job: Job, on_progress: Callable[["Progress"], bool], n_threads: int
) -> dict[str, Any]:
    try:
        plan, out = job.plan, str(job.out)
        text = _core.run(plan.text, str(plan.base), out, on_progress, n_threads)
    except PlanError as error:
        raise job.plan.locate_error(error) from None
    summary: dict[str, Any] = json.loads(text)
    return summary


def identity_of(plan: Plan) -> dict[str, Any]:
    """Returns all inputs that determine a run's results."""
    return {
        "plan": plan.text,
        "inputs": plan.input_digests(),
        **simulator(),
    }


def simulator() -> dict[str, str]:
    """Returns the identity of this simulator: version, commit, and digest of its binary."""
    return {"version": _core.VERSION, "commit": _core.COMMIT, "binary": _binary_digest()}


def is_current(out: Path, identity: dict[str, Any]) -> bool:
    """Returns true if a folder has the complete results of a run with this identity."""
    try:
        stored = read_json(out / IDENTITY)
        stored.pop(BASE, None)
        manifest = read_json(out / MANIFEST)
    except ResultError:
        return False
    return (
        stored == identity
        and manifest.get("status") in COMPLETE
        and all((out / name).is_file() for name in (SUMMARY, FLOWS))
    )


def reject_other_kinds(out: Path, *, kind: str = MANIFEST) -> None:
    """Raises `ResultError` if a folder has results of another kind than those of the file `kind`.

    The results of two kinds cannot be distinguished later, so that `--force` does not mix them.
    """
    for name, results in KINDS.items():
        if name != kind and (out / name).is_file():
            raise Location(out).result_error(
                f"the folder has the results of {results}", hint="use another folder with --out"
            )


def reject_other_results(out: Path, plan: Plan, complete: Mapping[str, Any]) -> None:
    """Raises `ResultError` if a folder has the results of another plan.

    `complete` is the plan with all defaults. Another build of the simulator does not make another
    plan, nor do keys that one of two builds did not have.
    """
    difference = _difference_from(out, plan, complete)
    if difference is not None:
        raise Location(out).result_error(
            f"the folder has the results of another plan ({difference})",
            hint="use another folder with --out, or replace them with --force",
        )


def _difference_from(out: Path, plan: Plan, complete: Mapping[str, Any]) -> str | None:
    """Returns the first difference from the plan of the results in a folder; `None` without one."""
    identity = _read_known(out / IDENTITY)
    manifest = _read_known(out / MANIFEST)
    before = Plan(identity["plan"]).table() if "plan" in identity else None
    if before != plan.table():
        complete_before = manifest.get("plan")
        if complete_before is not None:
            found = first_difference(complete_before, complete)
            # Keys that the plan sets precede those that follow from them.
            found = found and (
                first_difference(complete_before, _set_keys(complete, plan.table())) or found
            )
        else:
            found = None if before is None else first_difference(before, plan.table())
        if found is not None:
            return found
    digests = plan.input_digests()
    for name, digest in identity.get("inputs", {}).items():
        if digests.get(name, digest) != digest:
            return f"{name} has changed"
    return None


def _set_keys(complete: Any, table: Any) -> Any:
    """Returns the values of the complete plan, without units, at the keys that `table` sets."""
    if isinstance(complete, Mapping) and isinstance(table, Mapping):
        return {
            key: _set_keys(complete[key], value) for key, value in table.items() if key in complete
        }
    if isinstance(complete, list) and isinstance(table, list) and len(complete) == len(table):
        return [_set_keys(inner, value) for inner, value in zip(complete, table, strict=True)]
    return complete


def _read_known(file: Path) -> dict[str, Any]:
    return read_json(file) if file.is_file() else {}


def _literal(value: Any) -> str:
    """Returns a value as plans write it, but a text without quotes."""
    return value if isinstance(value, str) else literal(value)


def first_difference(before: Any, now: Any, path: str = "") -> str | None:
    """Returns the first difference of two plans, among the keys that both have.

    >>> first_difference({"seed": 1, "workload": {"load": 0.5}}, {"workload": {"load": 0.8}})
    'workload.load: 0.5 there, 0.8 here'
    """
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        # Keys that name the kind of a table precede the others.
        keys = [*(key for key in TAGS if key in before), *before]
        pairs = [(f"{path}.{key}".lstrip("."), before[key], now[key]) for key in keys if key in now]
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = [(f"{path}[{i}]", old, now[i]) for i, old in enumerate(before)]
    else:
        shown = ("nothing" if value is None else _literal(value) for value in (before, now))
        return None if before == now else "{}: {} there, {} here".format(path, *shown)
    differences = (first_difference(old, new, inner) for inner, old, new in pairs)
    return next((found for found in differences if found is not None), None)


KINDS = {MANIFEST: "a run", **OTHER_KINDS}
"""Kinds of results, by a file that only they have."""
TAGS = ("name", "kind", "pattern")
"""Keys that name the kind of their table."""


@cache
def _binary_digest() -> str:
    """Returns the digest of the binary, which distinguishes builds with uncommitted changes."""
    file = getattr(_core, "__file__", None)
    if file is None:
        return "none"
    with Path(file).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

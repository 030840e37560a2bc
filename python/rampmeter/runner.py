"""Runs many plans at once, one a core; stops them all on Ctrl-C and SIGTERM and keeps what is
finished.

The simulator releases the interpreter lock, so threads are enough. A result folder that holds the
same plan, the same input files and the same simulator is not run again.
"""

import ctypes
import errno
import fcntl
import hashlib
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from rampmeter import _core, results
from rampmeter._core import EndpointError, InternalError, PlanError, ResultError
from rampmeter.manifest import BASE, IDENTITY
from rampmeter.plan import Plan
from rampmeter.results import Run
from rampmeter.schema import PYTHON

if TYPE_CHECKING:
    from rampmeter._core import Progress

POLL_SECONDS = 0.2
"""How often the waiting thread looks for an interrupt."""
PATIENCE_SECONDS = 5.0
"""How long a transport in Python may take to return from a method when its run is to end."""

State: TypeAlias = Literal["ran", "kept", "interrupted", "failed"]


@dataclass(frozen=True)
class Job:
    """One plan to run."""

    name: str
    plan: Plan
    out: Path
    force: bool = False
    """Whether results of another plan in the folder are replaced."""


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
    stopped_by: signal.Signals | None
    """The signal that ended it before all was done: SIGINT, SIGTERM, or none."""
    wall_seconds: float

    @property
    def is_interrupted(self) -> bool:
        """Whether a signal ended it before all was done."""
        return self.stopped_by is not None

    def runs(self) -> dict[str, Run]:
        """The complete results by the names of their jobs."""
        complete = {o.job.name: o.run for o in self.outcomes if o.state in ("ran", "kept")}
        return {name: run for name, run in complete.items() if run is not None}

    def then(self, later: "Batch") -> "Batch":
        """This batch and one that ran after it."""
        return Batch(
            (*self.outcomes, *later.outcomes),
            self.stopped_by or later.stopped_by,
            self.wall_seconds + later.wall_seconds,
        )

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
    jobs: Sequence[Job],
    watcher: Watcher | None = None,
    *,
    n_threads: int | None = None,
    stop: "Stop | None" = None,
) -> Batch:
    """Run jobs in their order, some at a time, until `stop` is set.

    Every plan is checked before the first one runs; raises `PlanError` then, and `ResultError`
    where a folder has the results of another plan and the job may not replace them. On Ctrl-C and
    SIGTERM the runs end at once and `Batch.stopped_by` is set; a second Ctrl-C raises
    `KeyboardInterrupt`, a second SIGTERM `SystemExit`.
    """
    start = time.monotonic()
    for job in jobs:
        complete = job.plan.check()
        if not job.force:
            keep_others(job.out, job.plan, complete)
    stop = stop or Stop()
    worker = _Worker(watcher or Silent(), stop)
    n_workers = max(1, min(n_threads or n_cores(), len(jobs)))
    with _stopping_on_signals(stop), ThreadPoolExecutor(n_workers) as pool:
        futures = [pool.submit(worker.run, job) for job in jobs]
        # Again and again with a time limit, since a signal that comes to another thread does not
        # end a wait of this one.
        while wait(futures, timeout=POLL_SECONDS).not_done:
            worker.end_hanging()
    outcomes = tuple(future.result() for future in futures)
    return Batch(outcomes, stop.by, time.monotonic() - start)


class Stop:
    """Whether runs are to end: because of a signal, of an event, or since their time is over."""

    def __init__(self, timeout: float | None = None, cancel: threading.Event | None = None) -> None:
        self.by: signal.Signals | None = None
        self.timeout = timeout
        self.cancel = cancel or threading.Event()
        self.is_over = False
        """Set where whoever watches the runs has failed."""
        self._ends_at = math.inf if timeout is None else time.monotonic() + timeout

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._ends_at

    def is_set(self) -> bool:
        """Whether runs are to end."""
        return self.by is not None or self.is_over or self.cancel.is_set() or self.is_late


@contextmanager
def _stopping_on_signals(stop: Stop) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM only note that it came, and the second one raise.

    An exception could come anywhere, such as between the start of a thread and the note that it
    must be waited for. Signals go to the main thread alone, so elsewhere nothing is done; where
    they are ignored they stay so, and where a program has its own handler of SIGTERM, that one.
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


class _Ended(BaseException):
    """Raised in a method of a Python class that does not return."""


class _Worker:
    def __init__(self, watcher: Watcher, stop: Stop) -> None:
        self._watcher = watcher
        self._stop = stop
        self._stopped_at: float | None = None
        self._in_python: set[int] = set()
        """Threads whose run has a transport in Python."""

    def end_hanging(self) -> None:
        """End runs that have not ended some time after they were told to: their class hangs."""
        if not self._stop.is_set():
            return
        now = time.monotonic()
        self._stopped_at = self._stopped_at or now
        if now - self._stopped_at < PATIENCE_SECONDS:
            return
        for thread in list(self._in_python):
            self._in_python.discard(thread)
            raised = ctypes.py_object(_Ended)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)

    def run(self, job: Job) -> Outcome:
        if self._stop.is_set():
            return Outcome(job, "interrupted")
        self._watcher.on_start(job)
        try:
            with _alone_in(job.out):
                outcome = self._guarded(job)
        except (ResultError, OSError) as error:
            outcome = Outcome(job, "failed", error=error)
        self._watcher.on_end(outcome)
        return outcome

    def _guarded(self, job: Job) -> Outcome:
        try:
            return self._outcome(job)
        except (PlanError, OSError, InternalError, EndpointError, _Ended) as error:
            for partial in job.out.glob("*.partial"):
                partial.unlink()
            if isinstance(error, _Ended) or isinstance(error.__cause__, _Ended):
                return Outcome(job, "interrupted")
            return Outcome(job, "failed", error=error)

    def _outcome(self, job: Job) -> Outcome:
        identity = identity_of(job.plan)
        if is_current(job.out, identity):
            return Outcome(job, "kept", Run(job.out))
        self._clear(job.out)
        thread = threading.get_ident()
        if any(table.get("name") == PYTHON for table in job.plan.transports()):
            self._in_python.add(thread)
        try:
            summary = _simulate(job, self._on_progress(job))
        finally:
            self._in_python.discard(thread)
        known = {**identity, BASE: os.path.relpath(job.plan.base, job.out)}
        (job.out / IDENTITY).write_text(json.dumps(known, indent=2) + "\n", "utf-8")
        if summary["status"] in results.COMPLETE:
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


@contextmanager
def _alone_in(out: Path) -> Iterator[None]:
    """Keep other runs, of this process or others, out of a folder; make it if it is not there.

    Raise `ResultError` if another run has it. A file system without locks keeps nobody out.
    """
    with suppress(FileExistsError):
        out.mkdir(parents=True, exist_ok=True)
    folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultError(
                f"{out}: expected a folder that no other run writes to, got one that another run "
                "is writing to; --out names another folder"
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                raise
        yield
    finally:
        os.close(folder)


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
        **simulator(),
    }


def simulator() -> dict[str, str]:
    """Which simulator runs here: version, commit, and the digest of the binary."""
    return {"version": _core.VERSION, "commit": _core.COMMIT, "binary": _binary_digest()}


def is_current(out: Path, identity: dict[str, Any]) -> bool:
    """Whether a folder holds the complete results of a run with this identity."""
    try:
        known = results.read_json(out / IDENTITY)
        known.pop(BASE, None)
        manifest = results.read_json(out / results.MANIFEST)
    except ResultError:
        return False
    return (
        known == identity
        and manifest.get("status") in results.COMPLETE
        and all((out / name).is_file() for name in (results.SUMMARY, results.FLOWS))
    )


def keep_others(out: Path, plan: Plan, complete: Mapping[str, Any]) -> None:
    """Raise `ResultError` if a folder has the results of another plan than this one.

    `complete` is the plan with all defaults. Another build of the simulator does not make another
    plan, nor do keys that one of two builds did not have.
    """
    difference = _difference_from(out, plan, complete)
    if difference is not None:
        raise ResultError(
            f"{out}: expected no results, or those of this plan, got another plan's "
            f"({difference}); --out names another folder, --force replaces them"
        )


def _difference_from(out: Path, plan: Plan, complete: Mapping[str, Any]) -> str | None:
    """The first difference of the plan whose results a folder has; none where there are none."""
    identity = _read_known(out / IDENTITY)
    manifest = _read_known(out / results.MANIFEST)
    before = Plan(identity["plan"]).table() if "plan" in identity else None
    if before != plan.table():
        known = manifest.get("plan")
        if known is not None:
            found = first_difference(known, complete)
            # Keys that the plan sets precede those that follow from them.
            found = found and (first_difference(known, _set_keys(complete, plan.table())) or found)
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
    """The values of the complete plan, without units, at the keys that `table` sets."""
    if isinstance(complete, Mapping) and isinstance(table, Mapping):
        return {
            key: _set_keys(complete[key], value) for key, value in table.items() if key in complete
        }
    if isinstance(complete, list) and isinstance(table, list) and len(complete) == len(table):
        return [_set_keys(inner, value) for inner, value in zip(complete, table, strict=True)]
    return complete


def _read_known(file: Path) -> dict[str, Any]:
    return results.read_json(file) if file.is_file() else {}


def first_difference(before: Any, now: Any, path: str = "") -> str | None:
    """Where two plans differ first, of the keys that both have.

    >>> first_difference({"seed": 1, "workload": {"load": 0.5}}, {"workload": {"load": 0.8}})
    'workload.load: 0.5 there, 0.8 here'
    """
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        # What the table is about comes first.
        keys = [*(key for key in TAGS if key in before), *before]
        pairs = [(f"{path}.{key}".lstrip("."), before[key], now[key]) for key in keys if key in now]
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = [(f"{path}[{i}]", old, now[i]) for i, old in enumerate(before)]
    else:
        return None if before == now else f"{path}: {before} there, {now} here"
    differences = (first_difference(old, new, inner) for inner, old, new in pairs)
    return next((found for found in differences if found is not None), None)


TAGS = ("name", "kind", "pattern")
"""Keys that say what the others of their table are about."""


@cache
def _binary_digest() -> str:
    """Tells apart builds of one commit, such as those of uncommitted changes."""
    file = getattr(_core, "__file__", None)
    if file is None:
        return "none"
    with Path(file).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

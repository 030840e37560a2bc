"""One run of a sweep, as it is sent to a worker and its result is returned.

A worker has only the package: no file of the driver, no shared folder. So a task has the plan's
text and the names of its input files, whose bytes are sent with it. The result has the bytes of the
files that the run wrote. Both are plain data that any engine can move.
"""

import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rampmeter import _core
from rampmeter.plan.plan import Plan, file_keys
from rampmeter.results.missing import SUMMARY
from rampmeter.results.run import FLOWS
from rampmeter.running.runner import simulator
from rampmeter.sweeps.spec import Point
from rampmeter.text.json_object import read_json
from rampmeter.text.locations import unreadable

State: TypeAlias = Literal["ran", "stopped", "failed", "lost", "other-simulator"]


@dataclass(frozen=True)
class Task:
    """A run."""

    point: int
    seed: int
    plan: str
    """The plan, with the names that its input files have at the worker."""
    inputs: tuple[tuple[str, str], ...]
    """The name of each input file, and the SHA-256 of its bytes."""
    wants_flows: bool
    """True if the table of flows is to be returned."""
    simulator: tuple[tuple[str, str], ...]
    """Version, commit and digest of the binary that the worker's simulator must have."""
    n_threads: int = 1
    """Threads of a long run whose plan has no `run.threads`. Results do not depend on it."""

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of the input files, in the order in which a worker receives their bytes."""
        return tuple(dict.fromkeys(digest for _, digest in self.inputs))


@dataclass(frozen=True)
class TaskResult:
    """The result of a task."""

    point: int
    seed: int
    state: State
    """`ran`; `stopped` before its end; `failed`, reproducibly; `lost` with its worker in all
    attempts; or not begun by an `other-simulator`."""
    summary: str = ""
    """`summary.json` of a run that reached its end."""
    flows: bytes = b""
    """`flows.parquet`, if the task requested it."""
    error: str = ""
    """The reason why there is no result."""
    host: str = ""
    """The worker's host."""
    seconds: float = 0.0
    """Time of the worker, in seconds."""


class Packer:
    """Makes tasks, and stores the bytes of each input file once."""

    def __init__(self, *, wants_flows: bool) -> None:
        self.blobs: dict[str, bytes] = {}
        """The bytes of input files by their SHA-256."""
        self._wants_flows = wants_flows
        self._digests: dict[Path, str] = {}
        self._simulator = tuple(simulator().items())

    def pack(self, point: Point, seed: int) -> Task:
        """Returns the task of a point and a seed; raises `PlanError` if a file cannot be read."""
        table = point.plan.table()
        table["seed"] = seed
        inputs: dict[str, str] = {}
        for holder, key in file_keys(table):
            file = point.plan.base / holder[key]
            if file.is_file():
                digest = self._digest_of(file)
                # The suffix decides the format of a trace, and errors name the file.
                holder[key] = name = f"{digest[:12]}/{file.name}"
                inputs[name] = digest
        text = Plan("").with_(*table.items()).text
        found = tuple(inputs.items())
        return Task(point.number, seed, text, found, self._wants_flows, self._simulator)

    def _digest_of(self, file: Path) -> str:
        if file not in self._digests:
            try:
                data = file.read_bytes()
            except OSError as error:
                raise unreadable(file, error) from None
            self._digests[file] = digest = sha256(data).hexdigest()
            self.blobs[digest] = data
        return self._digests[file]


def execute(
    task: Task, blobs: Sequence[bytes], is_stopped: Callable[[], bool] | None = None
) -> TaskResult:
    """Runs a task in this process; `blobs` are its input files in the order of `Task.digests`.

    Raises only `KeyboardInterrupt` and similar exceptions: any other error is the result.
    """
    start, host = time.monotonic(), socket.gethostname()
    ours = simulator()
    if dict(task.simulator) != ours:
        error = f"{host}: {_difference(dict(task.simulator), ours)}"
        return TaskResult(task.point, task.seed, "other-simulator", error=error, host=host)
    with tempfile.TemporaryDirectory(prefix="rampmeter-") as scratch:
        state, summary, flows, error = _run(task, blobs, Path(scratch), is_stopped)
    seconds = time.monotonic() - start
    return TaskResult(task.point, task.seed, state, summary, flows, error, host, seconds)


def _run(
    task: Task, blobs: Sequence[bytes], scratch: Path, is_stopped: Callable[[], bool] | None
) -> tuple[State, str, bytes, str]:
    by_digest = dict(zip(task.digests, blobs, strict=True))
    out = scratch / "results"
    try:
        for name, digest in task.inputs:
            (scratch / name).parent.mkdir(exist_ok=True)
            (scratch / name).write_bytes(by_digest[digest])
        out.mkdir()
        _core.run(
            task.plan,
            str(scratch),
            out,
            lambda _: is_stopped is None or not is_stopped(),
            task.n_threads,
        )
        summary = (out / SUMMARY).read_text(encoding="utf-8")
        if read_json(out / SUMMARY)["status"] == "interrupted":
            return "stopped", "", b"", "interrupted"
        flows = (out / FLOWS).read_bytes() if task.wants_flows else b""
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # A panic of the simulator is no `Exception`.
        text = str(error) or type(error).__name__
        # A full disk is that of temporary files. Other errors have the names of input files.
        is_disk = isinstance(error, OSError) and error.errno is not None
        return "failed", "", b"", text if is_disk else text.replace(f"{scratch}/", "")
    return "ran", summary, flows, ""


def _difference(wanted: Mapping[str, str], found: Mapping[str, str]) -> str:
    parts = [
        f"{name} {wanted[name][:12]}, got {found.get(name, 'none')[:12]}"
        for name in wanted
        if wanted[name] != found.get(name)
    ]
    return f"expected the driver's simulator, {'; '.join(parts)}"


def lost_result(task: Task, error: Any) -> TaskResult:
    """Returns the result of a task that lost all its workers."""
    return TaskResult(task.point, task.seed, "lost", error=" ".join(str(error).split()))

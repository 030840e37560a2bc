"""Runs on an existing Dask cluster.

`dask://HOST:PORT` and `dask://FILE.json` name its scheduler, by address and by the file that it
writes; `dask` alone is the scheduler of Dask's configuration (`DASK_SCHEDULER_ADDRESS`). A worker
runs one task per thread. If all workers have the resources `CPU` and `MEMORY` (bytes), a task
requests them. The scheduler restarts a task whose worker is lost.
"""

import math
import queue
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import dask
from distributed import Client, Future, KilledWorker, get_worker

from rampmeter.sweeps.engines.base import EngineError
from rampmeter.sweeps.resources import Allotment, Capacity
from rampmeter.sweeps.task import Task, TaskResult, execute, lost_result

CONNECT_SECONDS: Final = 20
"""Maximum time to connect to the scheduler, in seconds."""
CONFIGURED: Final = "scheduler-address"
CPU, MEMORY = "CPU", "MEMORY"
"""Resources of workers: `dask worker --resources "CPU=8 MEMORY=16e9"`."""


def _execute(task: Task, key: str, *blobs: bytes) -> TaskResult:
    """Runs a task in a worker. The package is looked up there by name."""
    return execute(task, blobs, _is_forgotten(key))


def _is_forgotten(key: str) -> Callable[[], bool]:
    """Returns a check for tasks without a driver, which has stopped or died."""
    tasks = get_worker().state.tasks

    def is_forgotten() -> bool:
        state = tasks.get(key)
        return state is None or state.state == "cancelled"

    return is_forgotten


class DaskEngine:
    """A connection to a cluster."""

    def __init__(self, address: str) -> None:
        where = address or dask.config.get(CONFIGURED, None)
        if where is None:
            raise EngineError(
                "dask: expected dask://HOST:PORT, or DASK_SCHEDULER_ADDRESS in the environment"
            )
        try:
            self._client = Client(
                **_scheduler(where), timeout=CONNECT_SECONDS, set_as_default=False
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise EngineError(f"dask: no scheduler at {where}: {_line(error)}") from None
        self._where = self._client.scheduler.address
        self._allotment = Allotment(1)
        self._resources: dict[str, float] = {}
        self._blobs: dict[str, Future] = {}
        self._tasks: dict[Future, Task] = {}
        self._done: queue.SimpleQueue[Future] = queue.SimpleQueue()

    def slots(self) -> int:
        """Returns the number of threads of all workers."""
        return sum(self._client.nthreads().values())

    def capacity(self) -> Capacity:
        """Returns threads of workers, and their memory if it is a resource."""
        workers = self._workers()
        threads = [int(worker["nthreads"]) for worker in workers]
        names = self._names()
        memory = [float(w["resources"][MEMORY]) for w in workers] if MEMORY in names else [math.inf]
        return Capacity(
            sum(threads), max(threads, default=0), sum(memory), max(memory), is_limited=CPU in names
        )

    def allot(self, allotment: Allotment) -> None:
        """Sets the resources that a task requests, of those that all workers have."""
        self._allotment = allotment
        wanted = {CPU: float(allotment.n_threads), MEMORY: float(allotment.memory_bytes)}
        self._resources = {name: wanted[name] for name in self._names() if wanted[name]}

    def _workers(self) -> list[dict[str, Any]]:
        return list(self._client.scheduler_info(n_workers=-1)["workers"].values())

    def _names(self) -> list[str]:
        """Returns the resources that all workers have."""
        workers = self._workers()
        return [
            name
            for name in (CPU, MEMORY)
            if workers and all(name in worker["resources"] for worker in workers)
        ]

    def describe(self) -> str:
        """Returns a description of the engine for messages."""
        return f"Dask at {self._where}, {self.slots()} threads of workers"

    def submit(self, task: Task, blobs: Mapping[str, bytes]) -> None:
        """Begins a task when a slot is free. Input files are sent to the cluster once."""
        for digest in task.digests:
            if digest not in self._blobs:
                self._blobs[digest] = self._send(blobs[digest])
        handles = [self._blobs[digest] for digest in task.digests]
        key = f"rampmeter-{self._client.id}-{task.point}-{task.seed}"
        future = self._client.submit(
            _execute,
            replace(task, n_threads=self._allotment.n_threads),
            key,
            *handles,
            key=key,
            pure=False,
            resources=self._resources or None,
        )
        self._tasks[future] = task
        future.add_done_callback(self._done.put)

    def collect(self, timeout: float) -> list[TaskResult]:
        """Returns new results, after at most `timeout` seconds."""
        results = []
        try:
            future = self._done.get(timeout=timeout)
            while True:
                task = self._tasks.pop(future, None)
                if task is not None:
                    results.append(self._result(future, task))
                future = self._done.get_nowait()
        except queue.Empty:
            if self._client.status not in ("running", "connecting"):
                raise EngineError(
                    f"dask: lost the connection to the scheduler at {self._where}"
                ) from None
            return results

    def cancel(self) -> None:
        """Releases the tasks; their runs detect it and end."""
        self._client.cancel(list(self._tasks), force=True)
        self._tasks.clear()

    def close(self) -> None:
        """Disconnects from the cluster."""
        self._tasks.clear()
        self._blobs.clear()
        self._client.close()

    def _send(self, blob: bytes) -> Future:
        # A call, unlike scattered data, is restarted if its worker is lost.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
            return self._client.submit(bytes, blob, pure=False)

    def _result(self, future: Future, task: Task) -> TaskResult:
        try:
            result: TaskResult = future.result()
        except KilledWorker as error:
            return lost_result(task, f"its workers were lost repeatedly: {_line(error)}")
        except Exception as error:
            return TaskResult(task.point, task.seed, "failed", error=_line(error))
        finally:
            future.release()
        return result


def _scheduler(where: str) -> dict[str, Any]:
    """Returns the client's arguments that name the scheduler."""
    if where.endswith(".json"):
        if not Path(where).is_file():
            raise EngineError(f"dask: {where}: no such file of a scheduler")
        return {"scheduler_file": where}
    return {"address": where if "://" in where else f"tcp://{where}"}


def _line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]

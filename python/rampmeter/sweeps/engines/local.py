"""Runs on the cores of this machine: threads, since the simulator releases the interpreter lock."""

import queue
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from rampmeter.running.runner import n_cores
from rampmeter.sweeps.task import Task, TaskResult, execute


class LocalEngine:
    """A thread for each core."""

    def __init__(self, jobs: int | None = None) -> None:
        self._jobs = jobs or n_cores()
        self._pool = ThreadPoolExecutor(self._jobs, thread_name_prefix="sweep")
        self._results: queue.SimpleQueue[TaskResult] = queue.SimpleQueue()
        self._stop = threading.Event()

    def slots(self) -> int:
        """Returns the number of threads."""
        return self._jobs

    def describe(self) -> str:
        """Returns a description of the engine for messages."""
        return f"this machine, {self._jobs} at a time"

    def submit(self, task: Task, blobs: Mapping[str, bytes]) -> None:
        """Begins a task when a thread is free."""
        self._pool.submit(self._run, task, [blobs[digest] for digest in task.digests])

    def collect(self, timeout: float) -> list[TaskResult]:
        """Returns new results, after at most `timeout` seconds."""
        results = []
        try:
            results.append(self._results.get(timeout=timeout))
            while True:
                results.append(self._results.get_nowait())
        except queue.Empty:
            return results

    def cancel(self) -> None:
        """Ends the runs; tasks that have not begun do not begin."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Waits for the threads."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def _run(self, task: Task, blobs: list[bytes]) -> None:
        self._results.put(execute(task, blobs, self._stop.is_set))

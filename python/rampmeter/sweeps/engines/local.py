"""Runs on the cores of this machine: threads, since the simulator releases the interpreter lock."""

import queue
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from rampmeter.running.runner import n_cores
from rampmeter.sweeps.resources import Allotment, Capacity, free_memory
from rampmeter.sweeps.task import Task, TaskResult, execute
from rampmeter.text.numbers import byte_size, counted


class LocalEngine:
    """A thread for each run at a time."""

    def __init__(self, jobs: int | None = None) -> None:
        self._jobs = jobs or n_cores()
        """Maximum number of threads of all runs."""
        self._allotment = Allotment(self._jobs)
        self._pool: ThreadPoolExecutor | None = None
        self._results: queue.SimpleQueue[TaskResult] = queue.SimpleQueue()
        self._stop = threading.Event()

    def slots(self) -> int:
        """Returns the number of threads."""
        return self._jobs

    def capacity(self) -> Capacity:
        """Returns the threads and the free memory of this machine."""
        memory = free_memory()
        return Capacity(self._jobs, self._jobs, memory, memory)

    def allot(self, allotment: Allotment) -> None:
        """Sets the number of tasks at a time and their threads, when no task is running."""
        self._allotment = allotment
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def describe(self) -> str:
        """Returns a description of the engine for messages."""
        free = byte_size(free_memory())
        return f"this machine, {counted(self._jobs, 'thread')}, {free} of free memory"

    def submit(self, task: Task, blobs: Mapping[str, bytes]) -> None:
        """Begins a task when a thread is free."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._allotment.n_runs, thread_name_prefix="sweep")
        task = replace(task, n_threads=self._allotment.n_threads)
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
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Waits for the threads."""
        self._stop.set()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _run(self, task: Task, blobs: list[bytes]) -> None:
        self._results.put(execute(task, blobs, self._stop.is_set))

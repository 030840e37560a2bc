"""Runs on an existing Ray cluster.

`ray://HOST:PORT` uses the cluster's client server; `ray` alone joins the cluster of this machine,
or that of `RAY_ADDRESS`. A task requests a processor for each of its threads, and its memory. Ray
restarts a task whose worker is lost.
"""

import importlib.util
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import ray
from ray.exceptions import RayError, RayTaskError

from rampmeter.sweeps.engines.base import ATTEMPTS, EngineError
from rampmeter.sweeps.resources import Allotment, Capacity
from rampmeter.sweeps.task import Task, TaskResult, execute, lost_result

AUTO: Final = ("", "auto")
REFUSAL: Final = "Initialization failure from server"
"""Error message of a cluster's proxy that could not start a server for a driver."""
PAUSE_SECONDS: Final = 3.0
POLL_MAX: Final = 1000
"""Maximum number of results that are fetched at once."""


def _execute(task: Task, *blobs: bytes) -> TaskResult:
    """Runs a task in a worker. The package is looked up there by name."""
    return execute(task, blobs)


def _connect(address: str) -> None:
    """Connects to the cluster.

    A running cluster may refuse for a while: its proxy starts a server for each driver. That
    fails while it still cleans up after a driver that has died.
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False)
        except (ConnectionError, RayError, RuntimeError, ValueError) as error:
            if left == 0 or REFUSAL not in str(error):
                raise EngineError(f"ray: no cluster at {address}: {_line(error)}") from None
            ray.shutdown()
            time.sleep(PAUSE_SECONDS)
        else:
            return


class RayEngine:
    """A connection to a cluster."""

    def __init__(self, address: str) -> None:
        if ray.is_initialized():
            raise EngineError(
                "ray: this process is connected to a cluster already; disconnect first"
            )
        if address not in AUTO and importlib.util.find_spec("grpc") is None:
            raise EngineError("ray: not installed (grpc); pip install 'rampmeter[ray]'")
        self._address = "auto" if address in AUTO else f"ray://{address}"
        _connect(self._address)
        self._execute = ray.remote(max_retries=ATTEMPTS - 1)(_execute)
        self._allotment = Allotment(1)
        self._blobs: dict[str, Any] = {}
        self._tasks: dict[Any, Task] = {}

    def slots(self) -> int:
        """Returns the number of processors of the cluster."""
        return int(ray.cluster_resources().get("CPU", 0))

    def capacity(self) -> Capacity:
        """Returns the processors and the memory that the cluster offers to tasks."""
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        cpus = [int(node.get("CPU", 0)) for node in nodes]
        memory = [float(node.get("memory", 0)) for node in nodes]
        return Capacity(sum(cpus), max(cpus, default=0), sum(memory), max(memory, default=0.0))

    def allot(self, allotment: Allotment) -> None:
        """Sets the processors and the memory that a task requests."""
        self._allotment = allotment

    def describe(self) -> str:
        """Returns a description of the place of tasks, for people."""
        return f"Ray at {self._address}, {self.slots()} processors"

    def submit(self, task: Task, blobs: Mapping[str, bytes]) -> None:
        """Begins a task when a slot is free. Input files are sent to the cluster once."""
        for digest in task.digests:
            if digest not in self._blobs:
                self._blobs[digest] = ray.put(blobs[digest])
        handles = [self._blobs[digest] for digest in task.digests]
        n_threads, memory = self._allotment.n_threads, self._allotment.memory_bytes
        call = self._execute.options(num_cpus=n_threads, memory=memory or None)
        self._tasks[call.remote(replace(task, n_threads=n_threads), *handles)] = task

    def collect(self, timeout: float) -> list[TaskResult]:
        """Returns new results, after at most `timeout` seconds."""
        if not self._tasks:
            return []
        try:
            done, _ = ray.wait(list(self._tasks), num_returns=1, timeout=timeout, fetch_local=False)
            if done:
                # Fetches all ready results, not only the first.
                n_wanted = min(len(self._tasks), POLL_MAX)
                done, _ = ray.wait(list(self._tasks), num_returns=n_wanted, timeout=0)
        except ConnectionError as error:
            raise EngineError(
                f"ray: lost the connection to the cluster at {self._address}: {error}"
            ) from None
        return [self._result(ref, self._tasks.pop(ref)) for ref in done]

    def cancel(self) -> None:
        """Ends the runs, with their workers."""
        for ref in self._tasks:
            ray.cancel(ref, force=True)
        self._tasks.clear()

    def close(self) -> None:
        """Disconnects from the cluster."""
        self._blobs.clear()
        self._tasks.clear()
        ray.shutdown()

    @staticmethod
    def _result(ref: Any, task: Task) -> TaskResult:
        try:
            result: TaskResult = ray.get(ref)
        except RayTaskError as error:
            # The task itself does not raise: the worker lacks the package, or has another one.
            return TaskResult(task.point, task.seed, "failed", error=_line(error.cause or error))
        except RayError as error:
            return lost_result(task, f"its worker was lost {ATTEMPTS} times: {_line(error)}")
        return result


def _line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]

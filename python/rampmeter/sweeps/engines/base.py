"""The interface of engines, and the error of those that cannot be used."""

from collections.abc import Mapping
from typing import Final, Protocol

from rampmeter.sweeps.resources import Allotment, Capacity
from rampmeter.sweeps.task import Task, TaskResult

ATTEMPTS: Final = 4
"""Maximum number of times a task is begun if its worker is lost."""


class EngineError(OSError):
    """A cluster that cannot be reached or used; the text has the reason."""

    code: Final = "sweep-engine"


class Engine(Protocol):
    """Runs tasks, several at a time, in any order. Used by one thread."""

    def slots(self) -> int:
        """Returns the present number of tasks of one thread that can run at a time."""

    def capacity(self) -> Capacity:
        """Returns the present cores and memory."""

    def allot(self, allotment: Allotment) -> None:
        """Sets the resources of tasks that are submitted later; before, a task has one thread."""

    def describe(self) -> str:
        """Returns a description of the engine for messages."""

    def submit(self, task: Task, blobs: Mapping[str, bytes]) -> None:
        """Begins a task when a slot is free; `blobs` are the input files by their digests."""

    def collect(self, timeout: float) -> list[TaskResult]:
        """Returns new results, after at most `timeout` seconds if there are none yet.

        A lost worker is no result: its tasks are begun again, `ATTEMPTS` times in all.
        """

    def cancel(self) -> None:
        """Stops running tasks, and begins no more."""

    def close(self) -> None:
        """Releases the engine's resources. A cluster continues to run."""

"""Engines that run the tasks of a sweep: the cores of this machine, or an existing cluster.

`local`, `ray`, `ray://HOST:PORT`, `dask`, `dask://HOST:PORT`, `dask://FILE.json`. The modules of
clusters are imported on first use; they are extras of the package.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from rampmeter._core import PlanError
from rampmeter.sweeps.task import Task, TaskResult

ATTEMPTS: Final = 4
"""Maximum number of times a task is begun if its worker is lost."""
FORMS: Final = "local, ray, ray://HOST:PORT, dask, dask://HOST:PORT, dask://SCHEDULER.json"


class EngineError(OSError):
    """A cluster that cannot be reached or used; the text has the reason."""


class Engine(Protocol):
    """Runs tasks, several at a time, in any order. Used by one thread."""

    def slots(self) -> int:
        """Returns the present number of tasks that can run at a time."""

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


def open_engine(on: str, jobs: int | None = None) -> Engine:
    """Opens the engine of this name; `jobs` are the runs at a time of the local one.

    Raises `PlanError` for an unknown name, and `EngineError` if a cluster cannot be reached.
    """
    scheme, _, address = on.partition("://")
    if on == "local":
        from rampmeter.sweeps.engines.local import LocalEngine

        return LocalEngine(jobs)
    if jobs is not None:
        raise PlanError(
            f"jobs: not available with {on}: the cluster determines the number of concurrent runs"
        )
    if scheme == "ray":
        try:
            from rampmeter.sweeps.engines.on_ray import RayEngine
        except ImportError as error:
            raise _missing("ray", error) from None
        return RayEngine(address)
    if scheme == "dask":
        try:
            from rampmeter.sweeps.engines.on_dask import DaskEngine
        except ImportError as error:
            raise _missing("dask", error) from None
        return DaskEngine(address)
    raise PlanError(f"on: expected one of {FORMS}, got {on}")


def _missing(extra: str, error: ImportError) -> EngineError:
    return EngineError(f"{extra}: not installed ({error}); pip install 'rampmeter[{extra}]'")

"""Where the runs of a sweep are made: the cores of this machine, or a cluster that exists.

`local`, `ray`, `ray://HOST:PORT`, `dask`, `dask://HOST:PORT`, `dask://FILE.json`. The modules of
clusters are imported when they are asked for; they are extras of the package.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from rampmeter._core import PlanError
from rampmeter.sweeps.task import Result, Task

ATTEMPTS: Final = 4
"""How often a task is begun whose worker is lost."""
FORMS: Final = "local, ray, ray://HOST:PORT, dask, dask://HOST:PORT, dask://SCHEDULER.json"


class EngineError(OSError):
    """A cluster that cannot be reached or used; the text says why."""


class Engine(Protocol):
    """Runs tasks, several at a time, in any order. Used by one thread."""

    def slots(self) -> int:
        """How many tasks can run at a time, as far as is known now."""

    def describe(self) -> str:
        """Where tasks run, for people."""

    def submit(self, task: Task, blobs: Mapping[str, bytes]) -> None:
        """Begin a task when there is room; `blobs` are the input files by their digests."""

    def collect(self, timeout: float) -> list[Result]:
        """The results that have come, after at most `timeout` seconds if there are none yet.

        A worker that is lost is no result: its tasks are begun again, `ATTEMPTS` times in all.
        """

    def cancel(self) -> None:
        """Stop what runs, and begin nothing more."""

    def close(self) -> None:
        """Let go of what the engine holds. A cluster goes on without us."""


def open_engine(on: str, jobs: int | None = None) -> Engine:
    """The engine of this name; `jobs` are the runs at a time of the local one.

    Raises `PlanError` for a name that is none, and `EngineError` where a cluster is not there.
    """
    scheme, _, address = on.partition("://")
    if on == "local":
        from rampmeter.sweeps.engines.local import LocalEngine

        return LocalEngine(jobs)
    if jobs is not None:
        raise PlanError(f"jobs: expected none on {on}, whose cluster says how many run at a time")
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

"""Engines that run the tasks of a sweep: the cores of this machine, or an existing cluster.

`local`, `ray`, `ray://HOST:PORT`, `dask`, `dask://HOST:PORT`, `dask://FILE.json`. The modules of
clusters are imported on first use; they are extras of the package.
"""

from typing import Final

from rampmeter.sweeps.engines.base import ATTEMPTS, Engine, EngineError
from rampmeter.sweeps.engines.local import LocalEngine
from rampmeter.text.locations import Location

__all__ = ["ATTEMPTS", "FORMS", "Engine", "EngineError", "open_engine"]

FORMS: Final = "local, ray, ray://HOST:PORT, dask, dask://HOST:PORT, dask://SCHEDULER.json"


def open_engine(on: str, jobs: int | None = None) -> Engine:
    """Opens the engine of this name; `jobs` are the runs at a time of the local one.

    Raises `PlanError` for an unknown name, and `EngineError` if a cluster cannot be reached.
    """
    scheme, _, address = on.partition("://")
    if on == "local":
        return LocalEngine(jobs)
    if jobs is not None:
        raise Location(key="jobs").error(
            f"not available with {on}, as the cluster determines the number of concurrent runs"
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
    raise Location(key="on").error(expected=f"one of {FORMS}", got=on)


def _missing(extra: str, error: ImportError) -> EngineError:
    return EngineError(f"{extra}: not installed ({error}); pip install 'rampmeter[{extra}]'")

"""Progress of runs for a function of the caller, in `run`, `compare` and `sweep`."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from rampmeter.running.runner import Job, SilentWatcher, StopCondition
from rampmeter.text.arguments import argument_error

if TYPE_CHECKING:
    from rampmeter._core import Progress


class RunProgress(TypedDict):
    """The progress of one run."""

    name: str
    """The run: `run`, the transport and the seed, or the point of a sweep and the seed."""
    submitted: int
    """Flows submitted so far."""
    delivered: int
    """Flows delivered so far."""
    total: int | None
    """Flows of the plan; `None` if their number is unknown."""
    now_ps: int
    """Simulated time, in picoseconds."""
    hops: int
    """Packets put on links so far."""
    events: int
    """Events so far."""


OnProgress: TypeAlias = Callable[[RunProgress], object]
"""A function that receives the progress of runs."""


def check_callback(on_progress: object) -> None:
    """Raises `PlanError` if the argument is no function."""
    if on_progress is not None and not callable(on_progress):
        raise argument_error("on_progress", "a function", on_progress)


class CallbackWatcher(SilentWatcher):
    """Watcher that calls a function of the user, and ends the runs if the function raises.

    Several runs at a time call it one after another.
    """

    def __init__(self, callback: OnProgress, stop: StopCondition) -> None:
        self._callback, self._stop = callback, stop
        self._lock = threading.Lock()
        self.error: BaseException | None = None

    def on_progress(self, job: Job, progress: "Progress") -> None:
        """Calls the function with the progress of the run."""
        with self._lock:
            if self.error is not None:
                return
            try:
                self._callback({"name": job.name, **progress})
            except BaseException as error:
                self.error = error
                self._stop.is_over = True

"""Progress of a sweep: a line with a bar on a terminal, a line per interval elsewhere."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from rampmeter.running.callback import OnProgress
from rampmeter.sweeps.drive import SweepWatcher
from rampmeter.sweeps.estimate import CostEstimate
from rampmeter.sweeps.resources import Allotment
from rampmeter.sweeps.spec import Point
from rampmeter.sweeps.task import TaskResult
from rampmeter.text.numbers import elapsed_and_left

FAILURES_SHOWN: Final = 5
"""Maximum number of failed runs that are shown as they happen."""
LINE_SECONDS: Final = 10.0
"""Interval between lines without a terminal, in seconds."""
BAR_WIDTH: Final = 12
PRIOR_SHARE: Final = 0.1
"""Weight of the estimate beforehand in the measured speed, as a share of all runs."""
SMOOTHING: Final = 0.3
"""Share of the difference by which a result moves the expected end."""


@dataclass
class RemainingTime:
    """Expected end of a sweep, by the costs of its runs and the speed so far.

    Runs of different points take different times, so a count of runs is no measure of time. Each
    run has a cost, in seconds of the estimate beforehand. The speed is that of the runs so far,
    and of the estimate as if it had measured 10 % of all runs. A result moves the expected end
    by a part of the difference, and between results the remaining time decreases with the clock.
    """

    costs: Mapping[int, float]
    """The cost of a run by the number of its point; those of other points are the mean."""
    cost: float
    """The cost of all runs that are known at the start."""
    n_initial: int
    """The number of these runs."""
    n_parallel: int
    """Runs at a time."""
    expected_seconds: float | None = None
    """Time of all runs by the estimate beforehand; `None` without one."""
    clock: Callable[[], float] = time.monotonic
    _start: float = field(init=False)
    _end: float | None = field(init=False, default=None)
    _done: float = field(init=False, default=0.0)
    _n_done: int = field(init=False, default=0)
    _total: int = field(init=False, default=0)

    @classmethod
    def of(
        cls, todo: Sequence[tuple[Point, int]], cost: CostEstimate | None, allotment: Allotment
    ) -> "RemainingTime":
        """Returns the remaining time of these runs, by an estimate if there is one."""
        if cost is None or not cost.is_known:
            costs: Mapping[int, float] = {point.number: 1.0 for point, _ in todo}
            expected = None
        else:
            costs, expected = cost.seconds_of, cost.wall_seconds(allotment)
        total = sum(costs[point.number] for point, _ in todo)
        return cls(costs, total, len(todo), allotment.n_runs, expected)

    def start(self) -> None:
        """Starts the clock."""
        self._start = self.clock()
        self._total = self.n_initial
        if self.expected_seconds is not None:
            self._end = self._start + self.expected_seconds

    @property
    def elapsed(self) -> float:
        """Time since the start, in seconds."""
        return self.clock() - self._start

    @property
    def left(self) -> float | None:
        """Expected time to the end, in seconds; `None` if it is unknown."""
        return None if self._end is None else max(0.0, self._end - self.clock())

    def on_total(self, total: int) -> None:
        """Receives the number of runs, which may grow."""
        self._total = total

    def on_result(self, point: Point) -> None:
        """Moves the expected end after a run."""
        mean = self.cost / max(1, self.n_initial)
        self._done += self.costs.get(point.number, mean)
        self._n_done += 1
        whole = self.cost + max(0, self._total - self.n_initial) * mean
        # The other runs in progress are half done, on average.
        n_running = max(0, min(self.n_parallel - 1, self._total - self._n_done))
        done = min(whole, self._done + n_running * mean / 2)
        seconds = self.elapsed
        if self.expected_seconds is not None:
            prior = PRIOR_SHARE * self.cost
            speed = (done + prior) / (seconds + PRIOR_SHARE * self.expected_seconds)
        else:
            speed = done / max(seconds, 1e-6)
        end = self.clock() + (whole - done) / speed
        self._end = end if self._end is None else self._end + SMOOTHING * (end - self._end)


@contextmanager
def watching(
    console: Console,
    time: RemainingTime,
    *,
    is_quiet: bool,
    on_progress: OnProgress | None = None,
) -> Iterator[SweepWatcher]:
    """Yields a watcher that suits the console, or that calls a function of the user."""
    if on_progress is not None:
        yield CallbackWatcher(on_progress)
    elif is_quiet:
        yield SilentWatcher()
    elif not console.is_terminal:
        yield LineWatcher(console, time)
    else:
        name = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        columns = (
            TextColumn("{task.completed}/{task.fields[runs]} runs"),
            BarColumn(bar_width=BAR_WIDTH),
            TextColumn("{task.percentage:>3.0f} %"),
            TimesColumn(time),
            TextColumn("{task.description}", table_column=name),
        )
        with Progress(*columns, console=console, transient=True, expand=True) as progress:
            yield BarWatcher(progress, time)


class TimesColumn(ProgressColumn):
    """The elapsed and the remaining time, with their names."""

    max_refresh = 0.5

    def __init__(self, time: RemainingTime) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self._time = time

    def render(self, task: Task) -> Text:
        """Returns both times."""
        # A second space separates the name of the run.
        return Text(f"{elapsed_and_left(self._time.elapsed, self._time.left)} ")


class SilentWatcher:
    """A watcher that shows nothing."""

    def on_total(self, total: int) -> None:
        """Does nothing."""

    def on_result(self, point: Point, result: TaskResult) -> None:
        """Does nothing."""


class CallbackWatcher(SilentWatcher):
    """A watcher that calls a function of the user after each run."""

    def __init__(self, callback: OnProgress) -> None:
        self._callback = callback

    def on_result(self, point: Point, result: TaskResult) -> None:
        """Calls the function with the numbers of a run that reached its end."""
        if result.state != "ran":
            return
        summary = json.loads(result.summary)
        flows, counters = summary["flows"], summary["counters"]
        self._callback(
            {
                "name": f"{point.name} seed {result.seed}",
                "submitted": flows["submitted"],
                "delivered": flows["delivered"],
                "total": flows["submitted"],
                "now_ps": counters["end_ps"],
                "hops": counters["packet_hops"],
                "events": counters["events"],
            }
        )


class BarWatcher:
    """Watcher with a bar and the remaining time."""

    def __init__(self, progress: Progress, time: RemainingTime) -> None:
        self._progress = progress
        self._time = time
        time.start()
        self._task = progress.add_task("", total=None, runs=time.n_initial)
        self._n_failed = 0

    def on_total(self, total: int) -> None:
        """Shows the number of runs."""
        self._time.on_total(total)
        self._progress.update(self._task, total=total, runs=total)

    def on_result(self, point: Point, result: TaskResult) -> None:
        """Moves the bar, and shows a failure."""
        self._time.on_result(point)
        name = f"{point.short_name}, seed {result.seed}"
        self._progress.update(self._task, advance=1, description=name)
        self._n_failed += result.state != "ran"
        if result.state != "ran" and self._n_failed <= FAILURES_SHOWN:
            self._progress.console.print(failure(point, result), markup=False, highlight=False)


class LineWatcher:
    """Watcher that prints a line per interval, and one for each failure."""

    def __init__(self, console: Console, time: RemainingTime) -> None:
        self._console = console
        self._time = time
        time.start()
        self._last = 0.0
        self._n_done = self._n_failed = self._total = 0

    def on_total(self, total: int) -> None:
        """Records the number of runs."""
        self._total = total
        self._time.on_total(total)

    def on_result(self, point: Point, result: TaskResult) -> None:
        """Prints a line, if it is time for one."""
        self._n_done += 1
        self._time.on_result(point)
        self._n_failed += result.state != "ran"
        if result.state != "ran" and self._n_failed <= FAILURES_SHOWN:
            self._print(failure(point, result))
        if self._time.elapsed - self._last < LINE_SECONDS:
            return
        self._last = self._time.elapsed
        times = elapsed_and_left(self._time.elapsed, self._time.left)
        self._print(f"[{self._n_done}/{self._total}] {times}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def failure(point: Point, result: TaskResult) -> str:
    """Formats a failed run."""
    return f"{point.name} seed {result.seed}: {result.state}: {result.error}"

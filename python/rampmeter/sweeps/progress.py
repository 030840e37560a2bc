"""Progress of a sweep: a bar on a terminal, a line per interval elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from rampmeter.sweeps.drive import SweepWatcher
from rampmeter.sweeps.estimate import duration
from rampmeter.sweeps.spec import Point
from rampmeter.sweeps.task import TaskResult

FAILURES_SHOWN: Final = 5
"""Maximum number of failed runs that are shown as they happen."""
LINE_SECONDS: Final = 10.0
"""Interval between lines without a terminal, in seconds."""


@contextmanager
def watching(console: Console, *, is_quiet: bool) -> Iterator[SweepWatcher]:
    """Yields a watcher that suits the console."""
    if is_quiet:
        yield SilentWatcher()
    elif not console.is_terminal:
        yield LineWatcher(console)
    else:
        columns = (TextColumn("runs"), BarColumn(bar_width=30), MofNCompleteColumn())
        times = (TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        with Progress(*columns, *times, console=console, transient=True) as progress:
            yield BarWatcher(progress)


class SilentWatcher:
    """A watcher that shows nothing."""

    def on_total(self, total: int) -> None:
        """Does nothing."""

    def on_result(self, point: Point, result: TaskResult) -> None:
        """Does nothing."""


class BarWatcher:
    """Watcher with a bar and the remaining time, estimated from completed runs."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)
        self._n_failed = 0

    def on_total(self, total: int) -> None:
        """Shows the number of runs."""
        self._progress.update(self._task, total=total)

    def on_result(self, point: Point, result: TaskResult) -> None:
        """Moves the bar, and shows a failure."""
        self._progress.update(self._task, advance=1, description=f"{point.name} {result.seed}")
        self._n_failed += result.state != "ran"
        if result.state != "ran" and self._n_failed <= FAILURES_SHOWN:
            self._progress.console.print(failure(point, result), markup=False, highlight=False)


class LineWatcher:
    """Watcher that prints a line per interval, and one for each failure."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = self._last = time.monotonic()
        self._n_done = self._n_failed = self._total = 0

    def on_total(self, total: int) -> None:
        """Records the number of runs."""
        self._total = total

    def on_result(self, point: Point, result: TaskResult) -> None:
        """Prints a line, if it is time for one."""
        self._n_done += 1
        self._n_failed += result.state != "ran"
        if result.state != "ran" and self._n_failed <= FAILURES_SHOWN:
            self._print(failure(point, result))
        now = time.monotonic()
        if now - self._last < LINE_SECONDS:
            return
        self._last = now
        remaining = (now - self._start) / self._n_done * max(0, self._total - self._n_done)
        self._print(f"[{self._n_done}/{self._total}] about {duration(remaining)} left")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def failure(point: Point, result: TaskResult) -> str:
    """Formats a failed run."""
    return f"{point.name} seed {result.seed}: {result.state}: {result.error}"

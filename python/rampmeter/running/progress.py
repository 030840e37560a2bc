"""Progress of runs: bars on a terminal, a line for each run elsewhere."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

from rampmeter.running.runner import Job, JobOutcome, JobWatcher, SilentWatcher
from rampmeter.text.numbers import elapsed_and_left

if TYPE_CHECKING:
    from rampmeter import _core

OVERALL_STEPS = 1000
"""Parts of one job in the overall bar."""


@contextmanager
def watching(console: Console, jobs: list[Job], *, is_quiet: bool) -> Iterator[JobWatcher]:
    """Yields a watcher for these jobs that suits the console."""
    if is_quiet:
        yield SilentWatcher()
    elif not console.is_terminal:
        yield LineWatcher(console, len(jobs))
    else:
        name = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        columns = (
            TextColumn("{task.description}", table_column=name),
            BarColumn(bar_width=10),
            TextColumn("{task.percentage:>3.0f} %", table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[detail]}", table_column=Column(no_wrap=True)),
            TimesColumn(table_column=Column(no_wrap=True)),
        )
        with Progress(*columns, console=console, transient=True, expand=True) as progress:
            yield BarWatcher(progress, jobs)


class TimesColumn(ProgressColumn):
    """The elapsed and the remaining time of a run, with their names."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """Returns both times; the elapsed one alone while there is no estimate."""
        return Text(elapsed_and_left(task.elapsed or 0.0, task.time_remaining))


@contextmanager
def counting(console: Console, *, is_quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Yields a function that shows the number of completed items of each name."""
    if is_quiet or not console.is_terminal:
        yield lambda _name, _done, _total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def count(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total)
            progress.update(tasks[name], completed=done)

        yield count


class BarWatcher:
    """Watcher with a bar for each running job, and one for all if there are several."""

    def __init__(self, progress: Progress, jobs: list[Job]) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}
        self._fractions: dict[str, float] = {}
        self._overall: TaskID | None = None
        if len(jobs) > 1:
            total = len(jobs) * OVERALL_STEPS
            self._overall = progress.add_task("all runs", total=total, detail="")

    def on_start(self, job: Job) -> None:
        """Shows a bar."""
        with self._lock:
            self._tasks[job.name] = self._progress.add_task(job.name, total=None, detail="")

    def on_progress(self, job: Job, progress: "_core.Progress") -> None:
        """Moves the bar."""
        with self._lock:
            total = progress["total"]
            detail = f"{progress['now_ps'] / 1e9:.2f} ms simulated"
            self._progress.update(
                self._tasks[job.name], completed=progress["delivered"], total=total, detail=detail
            )
            if total:
                self._fractions[job.name] = progress["delivered"] / total
                self._move_overall()

    def on_end(self, outcome: JobOutcome) -> None:
        """Removes the bar."""
        with self._lock:
            self._progress.remove_task(self._tasks.pop(outcome.job.name))
            self._fractions[outcome.job.name] = 1.0
            self._move_overall()
            if self._overall is not None:
                self._progress.console.print(_line(outcome), highlight=False)

    def _move_overall(self) -> None:
        if self._overall is not None:
            done = sum(self._fractions.values()) * OVERALL_STEPS
            self._progress.update(self._overall, completed=done)


class LineWatcher:
    """Watcher that prints a line when a job ends, for logs."""

    def __init__(self, console: Console, n_jobs: int) -> None:
        self._console = console
        self._n_jobs = n_jobs
        self._lock = threading.Lock()
        self._n_done = 0

    def on_start(self, job: Job) -> None:
        """Does nothing."""

    def on_progress(self, job: Job, progress: "_core.Progress") -> None:
        """Does nothing."""

    def on_end(self, outcome: JobOutcome) -> None:
        """Prints the outcome of the job."""
        with self._lock:
            self._n_done += 1
            self._console.print(f"[{self._n_done}/{self._n_jobs}] {_line(outcome)}", markup=False)


def _line(outcome: JobOutcome) -> str:
    words = {
        "ran": "finished",
        "reused": "reused results of an earlier run",
        "interrupted": "interrupted",
        "failed": f"failed: {outcome.error}",
    }
    return f"{outcome.job.name}: {words[outcome.state]}"

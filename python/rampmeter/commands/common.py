"""Runs, tables and exit codes of commands that have results."""

from collections.abc import Iterable, Sequence

import click

from rampmeter.commands.options import NOT_ALL_DELIVERED, SignalStop
from rampmeter.results.run import Run
from rampmeter.running.progress import watching
from rampmeter.running.runner import Batch, Job, run_all
from rampmeter.text.terminal import progress_console


def run_jobs(todo: list[Job], *, quiet: bool, jobs: int | None = None) -> Batch:
    """Runs jobs with progress on standard error."""
    with watching(progress_console(), todo, is_quiet=quiet) as watcher:
        return run_all(todo, watcher, n_threads=jobs)


def exit_by_outcome(batch: Batch, *, needs_all: bool = False) -> None:
    """Exits with the status of a batch: an error, a signal, or undelivered flows.

    Undelivered flows count only if the command `needs_all` flows.
    """
    batch.raise_failures()
    if batch.stopped_by is not None:
        raise SignalStop(batch.stopped_by)
    if needs_all and not all(run.is_all_delivered for run in batch.runs().values()):
        raise SystemExit(NOT_ALL_DELIVERED)


def warn_of_interruptions(runs: Iterable[Run]) -> None:
    """Prints on standard error that runs did not reach the end of their plans."""
    partial = dict.fromkeys((run.path, run.status) for run in runs if not run.is_complete)
    for path, status in partial:
        click.echo(
            f"warning: {path}: the run was {status}; flows of its plan are missing", err=True
        )


def fail(lines: Sequence[str]) -> None:
    """Prints lines about failed flows on standard error, if there are any, and exits."""
    for line in lines:
        click.echo(f"rampmeter: {line}", err=True)
    if lines:
        raise SystemExit(NOT_ALL_DELIVERED)

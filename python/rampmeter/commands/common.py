"""What commands share: options, overrides, running jobs, showing tables, exit codes."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from rampmeter.plan import Override, parse_override
from rampmeter.progress import watching
from rampmeter.runner import Batch, Job, run_all

if TYPE_CHECKING:
    from rich.table import Table

BAD_INPUT = 2
INTERRUPTED = 130
LOG_WIDTH = 110
"""Columns of tables that do not go to a terminal."""

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)

set_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of the plan."
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), help="The seed, instead of the plan's."
)
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")
jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), help="Runs at a time; as many as cores by default."
)


class Failure(click.ClickException):
    """Bad input: one line on standard error, exit code 2."""

    exit_code = BAD_INPUT

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(f"rampmeter: {' '.join(self.message.split())}", file=file or sys.stderr)


def overrides_of(settings: Sequence[str], seed: int | None) -> list[Override]:
    """What `--set` and `--seed` change."""
    overrides = [parse_override(text) for text in settings]
    if seed is not None:
        overrides.append(("seed", seed))
    return overrides


def folder_name(plan: Path, overrides: Sequence[Override]) -> str:
    """The plan's name and what was changed, as a folder's name."""
    changes = [f"{key.rpartition('.')[2]}={value}" for key, value in overrides]
    name = "-".join([plan.stem, *changes])
    return "".join(c if c.isalnum() or c in "-_=." else "_" for c in name)[:120]


def run_jobs(todo: list[Job], *, quiet: bool, jobs: int | None = None) -> Batch:
    """Run jobs with progress on standard error."""
    with watching(Console(stderr=True), todo, is_quiet=quiet) as watcher:
        return run_all(todo, watcher, n_threads=jobs)


def leave(batch: Batch) -> None:
    """Exit as the batch ended."""
    batch.raise_failures()
    if batch.is_interrupted:
        raise KeyboardInterrupt


def show(*tables: "Table") -> None:
    """Print tables on standard output."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=LOG_WIDTH)
    for table in tables:
        console.print()
        console.print(table)

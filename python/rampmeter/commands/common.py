"""Helpers of several commands: options, overrides, running jobs, showing tables, exit codes."""

import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from rich.console import Console

from rampmeter.manifest import is_manifest
from rampmeter.plan import Override, parse_override
from rampmeter.progress import watching
from rampmeter.runner import Batch, Job, run_all

if TYPE_CHECKING:
    from rich.table import Table

    from rampmeter.sheet import Sheet

Command: TypeAlias = Callable[..., Any]

BAD_INPUT = 2
NOT_ALL_DELIVERED = 3
INTERNAL = 70
"""As `EX_SOFTWARE` of sysexits.h."""
SIGNALLED = 128
"""Added to the number of the signal that stopped a command."""
EXIT_CODES = """\b
    Exit code: 0 if every flow was delivered, 3 if a run came to its end but
    flows failed, were rejected or were unfinished, 2 for bad input, 130 or 143
    if stopped by Ctrl-C or SIGTERM, which keep what is done."""

EXIT_CODES_COMPARED = """\b
    Exit code: 0 if every flow was delivered, 3 if a run came to its end but
    flows failed or were unfinished, 2 for bad input, 130 or 143 if stopped by
    Ctrl-C or SIGTERM, which keep what is done. Flows that a transport rejects
    by design, as cosy does, are no failure: a warning counts them."""
EXIT_CODES_PAPERS = """\b
    Exit code: 0 if no flow failed, 3 if a flow failed without a fault in the
    plan, 2 for bad input, 130 or 143 if stopped by Ctrl-C or SIGTERM, which
    keep what is done. Flows that a transport rejects by design are no failure;
    neither are flows that are unfinished when a run ends. A miss is no error."""

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
force_option = click.option(
    "--force", is_flag=True, help="Replace results of another plan in the folder."
)


def plan_options(command: Command) -> Command:
    """Adds `--set` and `--seed`; see `overrides_of`."""
    return set_option(seed_option(command))


def result_options(default: str, *, has_jobs: bool = False) -> Callable[[Command], Command]:
    """Adds `--out`, with the folder of results without it, `--force` and `--quiet`."""
    out = click.option("--out", type=FOLDER, help=f"Folder of the results; {default}.")

    def add(command: Command) -> Command:
        command = quiet_option(command)
        return out(force_option(jobs_option(command) if has_jobs else command))

    return add


class Stopped(Exception):
    """A signal stopped the command, which has kept finished results."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = SIGNALLED + number
        self.word = "interrupted" if number == signal.SIGINT else "terminated"


class Failure(click.ClickException):
    """Bad input: one line on standard error, exit code 2."""

    exit_code = BAD_INPUT

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(f"rampmeter: {' '.join(self.message.split())}", file=file or sys.stderr)


class Broken(Failure):
    """A mistake in the simulator: one line on standard error, exit code 70."""

    exit_code = INTERNAL


def overrides_of(settings: Sequence[str], seed: int | None) -> list[Override]:
    """Returns the overrides of `--set` and `--seed`."""
    overrides = [parse_override(text) for text in settings]
    if seed is not None:
        overrides.append(("seed", seed))
    return overrides


def name_of(plan: Path) -> str:
    """Returns a plan's name: its file's, or that of the folder of the result with the manifest."""
    return plan.resolve().parent.name if is_manifest(plan) else plan.stem


def folder_name(plan: Path, overrides: Sequence[Override]) -> str:
    """Returns the plan's name and its overrides, as a folder's name."""
    changes = [f"{key.rpartition('.')[2]}={value}" for key, value in overrides]
    name = "-".join([name_of(plan), *changes])
    return "".join(c if c.isalnum() or c in "-_=." else "_" for c in name)[:120]


def run_jobs(todo: list[Job], *, quiet: bool, jobs: int | None = None) -> Batch:
    """Run jobs with progress on standard error."""
    with watching(Console(stderr=True), todo, is_quiet=quiet) as watcher:
        return run_all(todo, watcher, n_threads=jobs)


def leave(batch: Batch, *, needs_all: bool = False) -> None:
    """Exit as the batch ended: an error, an interrupt, or flows that were not delivered.

    Undelivered flows count only if the command `needs_all` flows.
    """
    batch.raise_failures()
    if batch.stopped_by is not None:
        raise Stopped(batch.stopped_by)
    if needs_all and not all(run.is_all_delivered for run in batch.runs().values()):
        raise SystemExit(NOT_ALL_DELIVERED)


def fail(lines: Sequence[str]) -> None:
    """Print lines on standard error and exit, if there are any: flows have failed."""
    for line in lines:
        click.echo(f"rampmeter: {line}", err=True)
    if lines:
        raise SystemExit(NOT_ALL_DELIVERED)


def show(*tables: "Sheet | Table") -> None:
    """Print tables on standard output, as wide as the terminal, or 80 columns without one."""
    from rampmeter.sheet import Sheet

    console = Console(highlight=False)
    for table in tables:
        if isinstance(table, Sheet):
            table.print(console)
        else:
            console.print()
            console.print(table)


def warn(sentences: Iterable[str]) -> None:
    """Print warnings below the tables, one a line."""
    for idx, sentence in enumerate(sentences):
        click.echo(f"{'' if idx else chr(10)}warning: {sentence}")

"""Options, errors, exit codes and warnings of commands; nothing here imports slow modules."""

import math
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click

from rampmeter.choices.seeds import Seeds, parse_seeds
from rampmeter.commands.json_output import code_of
from rampmeter.plan.manifest import is_manifest
from rampmeter.plan.plan import Override, parse_override
from rampmeter.text.cautions import Caution
from rampmeter.text.locations import Location

Command: TypeAlias = Callable[..., Any]

SEED = "seed"
"""The key of a plan with the seed."""
BAD_INPUT = 2
NOT_ALL_DELIVERED = 3
INTERNAL = 70
"""As `EX_SOFTWARE` of sysexits.h."""
SIGNALLED = 128
"""Added to the number of the signal that stopped a command."""
EXIT_CODES = """\b
    Exit code: 0 if every flow was delivered, 3 if a run completed but flows
    failed, were rejected or were unfinished, 2 for bad input, 130 or 143 if
    stopped by Ctrl-C or SIGTERM. Finished results are stored."""

EXIT_CODES_COMPARED = """\b
    Exit code: 0 if every flow was delivered, 3 if a run completed but flows
    failed or were unfinished, 2 for bad input, 130 or 143 if stopped by Ctrl-C
    or SIGTERM. Finished results are stored. Flows that a transport rejects by
    design, as cosy does, are no failure: a warning counts them."""
EXIT_CODES_PAPERS = """\b
    Exit code: 0 if no flow failed, 3 if a flow failed without a fault in the
    plan, 2 for bad input, 130 or 143 if stopped by Ctrl-C or SIGTERM. Finished
    results are stored. Rejections by design and flows that are unfinished when
    a run ends are no failures. A miss is no error."""

FORMATS = ("png", "pdf", "svg")
"""Formats of images."""

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)

set_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of the plan."
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), help="Seed that replaces the plan's."
)
seeds_option = click.option(
    "--seeds",
    metavar="N|A..B|LIST",
    help="Number of seeds, or the seeds; results have intervals.",
)
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Maximum number of concurrent runs; the number of cores by default.",
)
force_option = click.option(
    "--force", is_flag=True, help="Replace results of another plan in the folder."
)


def run_length_options(command: Command) -> Command:
    """Adds `--auto-flows` and `--flows-max`."""
    auto = click.option(
        "--auto-flows",
        is_flag=True,
        help="Choose the number of flows: that of the plan, doubled until the mean slowdown of a "
        "run is within --precision (0.05).",
    )
    most = click.option(
        "--flows-max",
        type=click.IntRange(min=1),
        help="Maximum number of flows for --auto-flows; 256000 by default.",
    )
    return auto(most(command))


def plan_options(command: Command) -> Command:
    """Adds `--set` and `--seed`; see `overrides_of`."""
    return set_option(seed_option(command))


def result_options(default: str, *, has_jobs: bool = False) -> Callable[[Command], Command]:
    """Adds `--out` with its default folder, `--force` and `--quiet`."""
    out = click.option("--out", type=FOLDER, help=f"Folder of the results; {default}.")

    def add(command: Command) -> Command:
        command = quiet_option(command)
        return out(force_option(jobs_option(command) if has_jobs else command))

    return add


class SignalStop(Exception):
    """Stop of the command by a signal; finished results are stored."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = SIGNALLED + number
        self.word = "interrupted" if number == signal.SIGINT else "terminated"


class FiniteRange(click.FloatRange):
    """A range of numbers without NaN and infinity, which every range of click contains."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Returns the number; raises an error of the option if it is not in the range."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class InputError(click.ClickException):
    """Error of the input: one line on standard error, exit code 2."""

    exit_code = BAD_INPUT

    def show(self, file: Any = None) -> None:
        """Prints the line, with the code that `rampmeter explain` takes."""
        code = code_of(self.__cause__ or self)
        text = " ".join(self.message.split()) + f" [{code}]"
        click.echo(f"rampmeter: {text}", file=file or sys.stderr)


class SimulatorFault(InputError):
    """Internal error of the simulator: one line on standard error, exit code 70."""

    exit_code = INTERNAL


def overrides_of(settings: Sequence[str], seed: int | None) -> list[Override]:
    """Returns the overrides of `--set` and `--seed`.

    Raises `PlanError` if they give two values to a key.
    """
    overrides = [parse_override(text) for text in settings]
    if seed is not None:
        overrides.append((SEED, seed))
    values: dict[str, object] = {}
    for key, value in overrides:
        former = values.setdefault(key, value)
        # A NaN differs from itself.
        if former is not value and former != value:
            is_mixed = key == SEED and seed is not None
            where = Location(key="--seed, --set seed") if is_mixed else Location(key="--set")
            where = where if is_mixed else where.at(key)
            raise where.error(expected="one value", got=f"{values[key]} and {value}")
    return overrides


def seeds_of(text: str | None) -> Seeds | None:
    """Returns the seeds of `--seeds`."""
    return None if text is None else parse_seeds(text, Location(key="--seeds"))


def name_of(plan: Path) -> str:
    """Returns a plan's name: its file's, or that of the folder of the result with the manifest."""
    return plan.resolve().parent.name if is_manifest(plan) else plan.stem


def folder_name(plan: Path, overrides: Sequence[Override]) -> str:
    """Returns the plan's name and its overrides, as a folder's name."""
    changes = [f"{key.rpartition('.')[2]}={value}" for key, value in overrides]
    name = "-".join([name_of(plan), *changes])
    return "".join(c if c.isalnum() or c in "-_=." else "_" for c in name)[:120]


def warn(sentences: Iterable[str]) -> None:
    """Prints warnings below the tables, one a line, those with a code with it."""
    for idx, sentence in enumerate(sentences):
        click.echo(f"{'' if idx else chr(10)}warning: {with_code(sentence)}")


def with_code(sentence: str) -> str:
    """Returns a warning with its code, which `rampmeter explain` takes."""
    code = sentence.code if isinstance(sentence, Caution) else ""
    return f"{sentence} [{code}]" if code else sentence

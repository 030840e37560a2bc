"""The command `rampmeter`."""

import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from errno import EIO, ENOSPC
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from rampmeter import _core, extension
from rampmeter._core import EndpointError, InternalError, PlanError, ResultError
from rampmeter.commands.json_output import FLAG, emit_error
from rampmeter.commands.options import FILE, InputError, SignalStop, SimulatorFault
from rampmeter.commands.usage import usage_error
from rampmeter.testbed.command import TestbedError
from rampmeter.text.locations import E, Location, location_of, relocated

COMMANDS: Final[Mapping[str, str]] = {
    "animate": "Write a page that plays the packets of a run.",
    "bench": "Measure the speed of whole runs on one core, or of hosts.",
    "check": "Check a plan; print it with all defaults and derived values.",
    "compare": "Run the same flows through several transports; table and plot.",
    "convert": "Convert a trace or a topology of another tool.",
    "diff": "Compare two runs of the same flows, from the first difference.",
    "examples": "List the examples, or copy them to FOLDER.",
    "explain": "Explain the CODE of a warning or error, or list all codes.",
    "export": "Write tables or flows of results as CSV, LaTeX, Markdown, JSON.",
    "migrate": "Rewrite plans with the present names and units of keys.",
    "papers": "Make a figure of a paper and judge it by the published values.",
    "plot": "Plot results of runs, comparisons and sweeps.",
    "replay": "Run the flows of a recorded run, and compare their times.",
    "report": "Write one HTML file of all results in FOLDERS and below.",
    "run": "Run a plan; show slowdown by size, utilisation and drops.",
    "schema": "Print the JSON Schema of plans, or write it to FILE.",
    "sweep": "Run a plan at many points with several seeds; a Parquet dataset.",
    "testbed": "Run a plan between real hosts: namespaces of this machine.",
    "transports": "List the transports that plans may name.",
    "why": "Explain why flows of a run were slow, and who delayed them.",
}
"""The commands in a line each, by the names of their modules and functions in `rampmeter.commands`.

The list of commands shows the lines without importing a command."""

ARGUMENTS: Final = {"start": "from", "end": "to", "name": "metric"}
"""Options of arguments in Python that have another name."""


class Commands(click.Group):
    """Command group that imports commands on demand, and reports errors as lines."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command of this name; its module is imported now, so that others are not."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"rampmeter.commands.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command of the arguments; the error of a misspelt one has the nearest."""
        try:
            name, command, rest = super().resolve_command(ctx, args)
            if command is not None:
                own = click.Context(command, ctx, name, resilient_parsing=True)
                own.args = rest
                _refuse_repeated(own)
            return name, command, rest
        except click.UsageError:
            if args[0].startswith("-") or args[0] in COMMANDS:
                raise
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"{args[0]}: no such command{hint}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Reads the options before the command; errors are lines."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise usage_error(error) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; with `--json` its errors are JSON, too."""
        # The arguments are consumed by the command.
        arguments = [*ctx.args]
        try:
            return self._invoke(ctx)
        except click.ClickException as error:
            if not _wants_json(arguments, ctx.invoked_subcommand):
                raise
            emit_error(error.__cause__ or error, error.format_message(), error.exit_code)
            ctx.exit(error.exit_code)

    def _invoke(self, ctx: click.Context) -> Any:
        """Runs the command; errors are lines."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise usage_error(error) from error
        except BrokenPipeError:
            # The reader of the output has closed it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(SignalStop(signal.SIGPIPE).exit_code)
        except (PlanError, ResultError) as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            found = _with_option(error, [] if command is None else command.params)
            raise InputError(str(found)) from found
        except (TestbedError, OSError) as error:
            raise InputError(_message(error)) from error
        except EndpointError as error:
            if error.__cause__ is not None:
                traceback.print_exception(error.__cause__)
            raise InputError(str(error)) from error
        except InternalError as error:
            raise SimulatorFault(str(error)) from error
        except KeyboardInterrupt:
            _stop(ctx, SignalStop(signal.SIGINT))
        except SignalStop as stopped:
            _stop(ctx, stopped)


def _refuse_repeated(ctx: click.Context) -> None:
    """Raises `PlanError` if an option with one value is given twice: the first would be lost."""
    given = ctx.command.make_parser(ctx).parse_args([*ctx.args])[2]
    for option in (one for one in given if isinstance(one, click.Option)):
        if not option.is_flag and not option.multiple and given.count(option) > 1:
            raise Location(key=option.opts[0]).error(expected="the option once", got="it again")


def _wants_json(arguments: Sequence[str], command: str | None) -> bool:
    """Returns true if the arguments have `--json` or `--format json`.

    The format of `export` is that of its file.
    """
    has_format = ("--format", "json") in pairwise(arguments) or "--format=json" in arguments
    return FLAG in arguments or (has_format and command != "export")


def _with_option(error: E, parameters: Sequence[click.Parameter]) -> E:
    """Returns an error of an argument in Python as that of the option with its value."""
    location = location_of(error)
    name = f"--{ARGUMENTS.get(location.key, location.key.replace('_', '-'))}"
    if location.file or not any(name in one.opts for one in parameters):
        return error
    return relocated(error, Location(key=name))


def _stop(ctx: click.Context, stopped: SignalStop) -> NoReturn:
    click.echo(f"rampmeter: {stopped.word}", err=True)
    ctx.exit(stopped.exit_code)


def _message(error: Exception) -> str:
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    # Errors of files have their names.
    of_output = "standard output" if error.errno in (ENOSPC, EIO) else ""
    names = (error.filename or of_output, error.strerror)
    return ": ".join(str(name) for name in names if name)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_core.VERSION, message=f"rampmeter %(version)s ({_core.COMMIT})")
@click.option(
    "--extension",
    "library",
    metavar="PATH",
    type=FILE,
    help=f"Shared library with custom transports; also {extension.VARIABLE}.",
)
@click.option("--core", "former", hidden=True)
def main(library: Path | None, former: str | None) -> None:
    """Simulate datacenter transport protocols, packet by packet.

    \b
    Example: a run, and a figure of a paper with its published values
      rampmeter run plan.toml
      rampmeter papers dcpim 3 --quick
    """
    if former is not None:
        raise Location(key="--core").error("the option is now --extension")
    if library is None:
        return
    if not library.is_file():
        raise Location(key="--extension").error(
            expected="a shared library", got=f"{library}, which does not exist"
        )
    if not extension.is_extension(library):
        raise Location(key="--extension").error(
            expected="a shared library with transports", got=f"{library}, which is none"
        )
    path = str(library.resolve())
    if os.environ.get(extension.VARIABLE) != path:
        # A library has been loaded already: the command restarts with the other one.
        environment = {**os.environ, extension.VARIABLE: path}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


if __name__ == "__main__":
    main()

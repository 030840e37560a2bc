"""The command `rampmeter`."""

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import click

from rampmeter import _core, core
from rampmeter._core import EndpointError, InternalError, PlanError, ResultError
from rampmeter.commands import COMMANDS
from rampmeter.commands.common import FILE, Broken, Failure, Stopped
from rampmeter.testbed.command import TestbedError


class Commands(click.Group):
    """Commands whose errors are lines, not tracebacks."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Whoever reads the output has read enough.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(Stopped(signal.SIGPIPE).exit_code)
        except (PlanError, ResultError, TestbedError, OSError) as error:
            raise Failure(_message(error)) from None
        except EndpointError as error:
            if error.__cause__ is not None:
                traceback.print_exception(error.__cause__)
            raise Failure(str(error)) from None
        except InternalError as error:
            raise Broken(str(error)) from None
        except KeyboardInterrupt:
            _stop(ctx, Stopped(signal.SIGINT))
        except Stopped as stopped:
            _stop(ctx, stopped)


def _stop(ctx: click.Context, stopped: Stopped) -> NoReturn:
    click.echo(f"rampmeter: {stopped.word}", err=True)
    ctx.exit(stopped.exit_code)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_core.VERSION, message=f"rampmeter %(version)s ({_core.COMMIT})")
@click.option(
    "--core",
    "library",
    metavar="PATH",
    type=FILE,
    help=f"The shared library of a core with further transports; also {core.VARIABLE}.",
)
def main(library: Path | None) -> None:
    """Simulate proactive datacenter transports.

    \b
    Example: a run, and a figure of a paper with its published values
      rampmeter run plan.toml
      rampmeter papers dcpim 3 --quick
    """
    if library is None:
        return
    if not library.is_file():
        raise Failure(f"--core: expected a shared library, got {library}: no such file")
    path = str(library.resolve())
    if os.environ.get(core.VARIABLE) != path:
        # A core has been loaded by now: the command starts anew, with the other one.
        environment = {**os.environ, core.VARIABLE: path}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


for command in COMMANDS:
    main.add_command(command)


if __name__ == "__main__":
    main()

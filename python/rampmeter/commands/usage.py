"""Errors of options and arguments, as lines."""

import click

from rampmeter.commands.options import InputError


class UsageLine(InputError):
    """Error of an option or argument: one line, with the command whose help has them."""

    def __init__(self, error: click.UsageError) -> None:
        """Takes over the error of the parser."""
        path = error.ctx.command_path if error.ctx is not None else "rampmeter"
        super().__init__(f"{usage_line(error)}; see `{path} --help`")


def usage_error(error: click.UsageError) -> click.ClickException:
    """Returns the error as a line; a command without arguments prints its help."""
    return error if isinstance(error, click.exceptions.NoArgsIsHelpError) else UsageLine(error)


def usage_line(error: click.UsageError) -> str:
    """Returns an error of the parser as a line that begins with the option or argument.

    >>> usage_line(click.NoSuchOption("--threds", possibilities=["--threads"]))
    '--threds: no such option; did you mean --threads?'
    >>> usage_line(click.BadParameter("0 is too small.", param_hint="'--jobs'"))
    '--jobs: 0 is too small'
    """
    if isinstance(error, click.NoSuchOption):
        near = [name for name in error.possibilities or () if _is_near(name, error.option_name)]
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"{error.option_name}: no such option{hint}"
    message = error.message.strip().removesuffix(".")
    if isinstance(error, click.MissingParameter):
        return f"{_name(error)}: expected a value, got none"
    if isinstance(error, click.BadParameter):
        return f"{_name(error)}: {message}"
    return message


def _name(error: click.BadParameter) -> str:
    """Returns the option or argument of an error."""
    hint = error.param_hint
    if hint is None and error.param is not None:
        hint = error.param.get_error_hint(error.ctx)
    names = [hint] if isinstance(hint, str) else list(hint or ["argument"])
    return " or ".join(name.replace("'", "") for name in names)


def _is_near(name: str, given: str) -> bool:
    """Returns true for an option that begins as the misspelt one does."""
    return name[:4] == given[:4]

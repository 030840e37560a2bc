"""Runs of the command `rampmeter` in the process of the tests."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from click.testing import CliRunner, Result

from rampmeter.cli import main


def call(*arguments: object, **variables: str) -> Result:
    """Runs the command, with variables of the environment."""
    return CliRunner(env=variables).invoke(main, [str(argument) for argument in arguments])


def ok(*arguments: object) -> Result:
    """Runs the command, which must succeed."""
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result


def error_line(*arguments: object) -> str:
    """Returns the one line on standard error of a command that must fail with code 2."""
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr.strip()


@contextmanager
def another_user() -> Iterator[None]:
    """Becomes a user without permissions, if the tests run as root."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)

"""The commands, a module each; `common` has their shared parts."""

from typing import Final

import click

from rampmeter.commands.bench import bench
from rampmeter.commands.check import check, transports
from rampmeter.commands.compare import compare
from rampmeter.commands.convert import convert
from rampmeter.commands.examples import examples
from rampmeter.commands.explain import explain
from rampmeter.commands.papers import papers
from rampmeter.commands.plot import plot
from rampmeter.commands.replay import replay
from rampmeter.commands.report import report
from rampmeter.commands.run import run
from rampmeter.commands.schema import schema
from rampmeter.commands.testbed import testbed
from rampmeter.sweeps.command import sweep

COMMANDS: Final[tuple[click.Command, ...]] = (
    run,
    compare,
    sweep,
    papers,
    replay,
    report,
    testbed,
    bench,
    plot,
    convert,
    transports,
    check,
    examples,
    schema,
    explain,
)
"""All of them."""

"""Claims of the documentation that are constants, options or names of the program."""

import re
from typing import Final

import click
import pytest

from rampmeter import _core, papers
from rampmeter.analysis.confidence import LEVEL, SEEDS_FIRST, SEEDS_MAX, two_seeds
from rampmeter.animation.events import EVENTS_MAX
from rampmeter.animation.network import HOSTS_MAX
from rampmeter.cli import main
from rampmeter.papers.verdict import SEEDS_WANTED
from rampmeter.plots.style import FONT, WIDTHS
from rampmeter.results.pictures import HOSTS_SHOWN, PACKETS_MAX, ROWS_MAX
from rampmeter.running.run_length import FLOWS_MAX, GROWTH, PRECISION
from rampmeter.sweeps.engines.base import ATTEMPTS
from rampmeter.text.cautions import explanations
from rampmeter.text.numbers import count

from .conftest import ROOT

PAGES: Final = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
WORDS: Final = {2: "twice", 4: "four", 5: "five", 30: "30"}

CLAIMS: Final = [
    ("howto/sweeps.md", f"The maximum is `--flows-max`, {count(FLOWS_MAX)} by default"),
    ("howto/sweeps.md", f"within `--precision` (default {PRECISION:g})"),
    ("howto/sweeps.md", f"adds seeds to a point, {WORDS[SEEDS_FIRST]} at first"),
    ("howto/sweeps.md", f"stops at `--seeds-max` ({SEEDS_MAX}) seeds"),
    ("howto/sweeps.md", f"then with {WORDS[GROWTH]} as many"),
    ("howto/sweeps.md", f"{WORDS[ATTEMPTS]} times in all on Ray"),
    ("howto/sweeps.md", "their intervals are 7 times as wide as those over five seeds"),
    ("howto/pictures.md", f"a time-space diagram ends after {count(PACKETS_MAX)} packets"),
    ("howto/pictures.md", f"the first {HOSTS_SHOWN} in large networks"),
    ("howto/animations.md", f"A page has at most {HOSTS_MAX} hosts and {count(EVENTS_MAX)} events"),
    ("howto/paper-figures.md", f"`column` is {WIDTHS['column']:g} inches"),
    ("howto/paper-figures.md", f"`page` is {WIDTHS['page']:g} inches"),
    ("howto/paper-figures.md", f"8 points in a column and {FONT:g} points otherwise"),
    ("howto/figures.md", f"as many flows as published, {'three' * (SEEDS_WANTED == 3)} seeds each"),
]
"""Pages and sentences with a constant of the program."""


def plain(text: str) -> str:
    """Returns a text on one line, with plain spaces."""
    return " ".join(text.split())


@pytest.mark.parametrize(("page", "claim"), CLAIMS)
def test_numbers_of_pages_are_those_of_the_program(page: str, claim: str) -> None:
    text = plain((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert plain(claim) in text


def test_the_explanation_of_a_part_has_its_limits() -> None:
    text = plain(explanations()["part-shown"])
    assert f"first {count(PACKETS_MAX)} packets" in text.replace("\u2009", " ")
    assert f"than {ROWS_MAX} links shows those of the first {HOSTS_SHOWN} hosts" in text


def test_the_explanation_of_two_seeds_has_the_widths_of_intervals() -> None:
    text = plain(explanations()["two-seeds"])
    widths = {n: _core.student_t(n - 1, LEVEL) / n**0.5 for n in (2, 3, 5)}
    expected = "{:.1f} standard deviations wide on each side, {:.1f} over three seeds and {:.1f}"
    assert expected.format(*widths.values()) in text
    assert f"about {widths[2] / widths[5]:.0f} times" in two_seeds(2)[0]


def options() -> dict[str, set[str]]:
    """Returns the options of each command."""
    with click.Context(main) as context:
        commands = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {
        name: {option for one in command.params for option in one.opts} | {"--help"}
        for name, command in commands.items()
        if command is not None
    }


def test_commands_and_options_that_pages_name_exist() -> None:
    known = options()
    uses = [
        (page.name, found[1], found[2])
        for page in PAGES
        for pattern in (r"`rampmeter ([a-z]+)([^`]*)`", r"(?m)^\s*rampmeter ([a-z]+)((?:\\\n|.)*)$")
        for found in re.finditer(pattern, page.read_text(encoding="utf-8"))
    ]
    assert len(uses) > 200
    wrong = [
        (page, command, option)
        for page, command, words in uses
        for option in ["", *re.findall(r"(?<!\S)(--[a-z-]+)", words)]
        if command not in known or (option and option not in known[command])
    ]
    assert wrong == []


def test_figures_that_pages_name_exist() -> None:
    root = papers.find_papers()
    uses = {
        (page.name, found[1], found[2])
        for page in PAGES
        for found in re.finditer(
            r"rampmeter papers ([a-z-]+) ([0-9a-z][0-9a-z-]*)", page.read_text(encoding="utf-8")
        )
    }
    assert uses
    for _, paper, figure in uses:
        papers.find_figure(root, paper, figure)

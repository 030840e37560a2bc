"""Explanations of misses: `misses.toml` of a figure has the cause of each and a command for it.

A `[[miss]]` explains values (`cells`), claims (`claims`, patterns of their texts), or both. `cause`
is one or two sentences, or `open` with the known facts in `known`. `command` shows it within
minutes.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import cast

from rampmeter._core import PlanError
from rampmeter.papers.claims import ClaimRow
from rampmeter.papers.expected import CellId
from rampmeter.papers.figure import Figure
from rampmeter.papers.metric import METRICS, Metric
from rampmeter.papers.verdict import Row
from rampmeter.section import Section

MISSES = "misses.toml"
OPEN = "open"
"""The cause of an unexplained miss."""


@dataclass(frozen=True)
class Explanation:
    """The cause of some misses of a figure."""

    cells: tuple[CellId, ...]
    """Published values that are missed."""
    claims: tuple[str, ...]
    """Texts of claims that are missed."""
    cause: str
    """The cause, or `open`."""
    known: str
    """Findings about an open cause; empty if the cause is known."""
    command: str
    """Command that shows the cause, or the known facts."""

    @property
    def is_open(self) -> bool:
        """Returns true if the cause is not known."""
        return self.cause == OPEN

    @property
    def text(self) -> str:
        """Returns the cause in words; of an open one, the known facts."""
        return f"Open. {self.known}" if self.is_open else self.cause

    @property
    def argv(self) -> list[str]:
        """Returns the words of the command."""
        return shlex.split(self.command)

    def explains(self, row: Row | ClaimRow) -> bool:
        """Returns true if the row is a value or a claim that it names."""
        if isinstance(row, ClaimRow):
            return row.claim.text in self.claims
        return row.cell in self.cells


def explanations(figure: Figure) -> list[Explanation]:
    """Reads the explanations of a figure, none if it has no `misses.toml`.

    Raises `PlanError` that names file and key if a value or a claim does not exist, or has two
    explanations.
    """
    file = figure.folder / MISSES
    if not file.is_file():
        return []
    spec = Section.of_file(file)
    found = [_explanation(section, figure) for section in spec.sections("miss")]
    spec.end()
    names = [name for one in found for name in (*one.cells, *one.claims)]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(f"{file}: expected one explanation of {name}, got several")
    return found


def find_explanation(found: Iterable[Explanation], row: Row | ClaimRow) -> Explanation | None:
    """Returns the explanation of a value or a claim, if there is one."""
    return next((one for one in found if one.explains(row)), None)


def misses_section(found: Iterable[Explanation]) -> str:
    """Returns the explanations in Markdown, under a heading; empty if there are none."""
    parts = []
    for one in found:
        lines = [f"- {claim}" for claim in one.claims]
        lines += [f"- {_name(cell)}" for cell in one.cells]
        parts.append("\n".join([*lines, "", one.text, "", "```", one.command, "```", ""]))
    return "\n".join(["## Misses", "", *parts]) if parts else ""


def _name(cell: CellId) -> str:
    bin_ = "" if cell.bin is None else f" [{cell.bin}]"
    return f"sub-figure `{cell.sub_figure}`: {cell.metric} of {cell.run}{bin_}"


def _explanation(section: Section, figure: Figure) -> Explanation:
    cells = tuple(_cell(one, figure) for one in section.sections("cells", []))
    patterns = [str(text) for text in section.take("claims", list, [])]
    if not cells and not patterns:
        raise PlanError(f"{section.where}: expected cells or claims, got neither")
    claims = [text for pattern in patterns for text in _claims(section, pattern, figure)]
    cause, known = section.take("cause", str).strip(), section.take("known", str, "").strip()
    if (cause == OPEN) != bool(known):
        raise PlanError(f"{section.where}: known: expected with the cause {OPEN}, and only then")
    command = " ".join(section.take("command", str).split())
    if not cause or not command.startswith("rampmeter "):
        raise PlanError(f"{section.where}: expected a cause and a command of rampmeter")
    section.end()
    return Explanation(cells, tuple(claims), cause, known, command)


def _cell(section: Section, figure: Figure) -> CellId:
    metric = section.choice("metric", section.take("metric", str), METRICS)
    panel, run = section.take("sub-figure", str), section.take("run", str)
    cell = CellId(panel, run, cast(Metric, metric), section.take("bin", int, None))
    section.end()
    if cell not in figure.expected.facts:
        raise PlanError(f"{section.where}: expected a published value of the figure, got {cell}")
    return cell


def _claims(section: Section, pattern: str, figure: Figure) -> list[str]:
    texts = [claim.text for claim in figure.expected.claims if fnmatchcase(claim.text, pattern)]
    if not texts:
        raise PlanError(f"{section.where}: claims: expected a claim of the figure, got {pattern}")
    return texts

"""Explanations of misses: `misses.toml` of a figure has the cause of each and a command for it.

A `[[miss]]` explains values (`cells`), claims (`claims`, patterns of their texts), or both. `cause`
is one or two sentences, or `open` with the `findings`. `command` shows it within minutes.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rampmeter.papers.claims import ClaimRow
from rampmeter.papers.expected import CellId
from rampmeter.papers.figure import Figure
from rampmeter.papers.metrics import METRICS
from rampmeter.papers.verdict import ValueRow
from rampmeter.text.locations import Location
from rampmeter.text.strict_table import StrictTable

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
    findings: str
    """Findings about an open cause; empty if the cause is not open."""
    command: str
    """Command that shows the cause, or the findings."""

    @property
    def is_open(self) -> bool:
        """Returns true if the cause is open."""
        return self.cause == OPEN

    @property
    def text(self) -> str:
        """Returns the cause in words; of an open one, the findings."""
        return f"Open. {self.findings}" if self.is_open else self.cause

    @property
    def argv(self) -> list[str]:
        """Returns the words of the command."""
        return shlex.split(self.command)

    def explains(self, row: ValueRow | ClaimRow) -> bool:
        """Returns true if it names the row's value or claim."""
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
    spec = StrictTable.from_file(file)
    found = [_explanation(section, figure) for section in spec.tables("miss")]
    spec.reject_unread()
    names = [name for one in found for name in (*one.cells, *one.claims)]
    for name in names:
        if names.count(name) > 1:
            raise Location(file).error(expected=f"one explanation of {name}", got="several")
    return found


def find_explanation(found: Iterable[Explanation], row: ValueRow | ClaimRow) -> Explanation | None:
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


def _explanation(section: StrictTable, figure: Figure) -> Explanation:
    cells = tuple(_cell(one, figure) for one in section.tables("cells", []))
    patterns = [str(text) for text in section.pop("claims", list, [])]
    if not cells and not patterns:
        raise section.where.error(expected="cells or claims", got="neither")
    claims = [text for pattern in patterns for text in _claims(section, pattern, figure)]
    cause, findings = section.pop("cause", str).strip(), section.pop("findings", str, "").strip()
    if (cause == OPEN) != bool(findings):
        raise section.where.at("findings").error(
            f"required with the cause {OPEN}, and only with it"
        )
    command = " ".join(section.pop("command", str).split())
    if not cause or not command.startswith("rampmeter "):
        raise section.where.error(
            expected="a cause and a command of rampmeter", got=f"{cause!r} and {command!r}"
        )
    section.reject_unread()
    return Explanation(cells, tuple(claims), cause, findings, command)


def _cell(section: StrictTable, figure: Figure) -> CellId:
    metric = section.choice("metric", section.pop("metric", str), METRICS)
    panel, run = section.pop("sub-figure", str), section.pop("run", str)
    cell = CellId(panel, run, metric, section.pop("bin", int, None))
    section.reject_unread()
    if cell not in figure.expected.facts:
        raise section.where.error(expected="a published value of the figure", got=cell)
    return cell


def _claims(section: StrictTable, pattern: str, figure: Figure) -> list[str]:
    texts = [claim.text for claim in figure.expected.claims if fnmatchcase(claim.text, pattern)]
    if not texts:
        raise section.where.at("claims").error(expected="a claim of the figure", got=pattern)
    return texts

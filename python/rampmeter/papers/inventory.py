"""Inventory of the papers: each figure and table with its panels, and their reproductions.

`papers/inventory.toml` is the data. A panel is whole if sub-figures of the folders of `papers`
reproduce it. Otherwise it is absent and has a reason. The status of a figure follows from its
panels. Folders of figures that are in no paper are listed too.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from rampmeter.papers.figure import Figure, list_figures, load_figure
from rampmeter.text.locations import Location
from rampmeter.text.numbers import markdown
from rampmeter.text.strict_table import StrictTable

INVENTORY = "inventory.toml"

Kind: TypeAlias = Literal["values", "settings", "drawing"]
"""Contents of a figure: an evaluation, parameters, or a diagram without values."""
KINDS: tuple[Kind, ...] = get_args(Kind)
Status: TypeAlias = Literal["whole", "part", "absent"]
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True)
class SubFigureId:
    """A sub-figure of a folder of `papers`."""

    folder: str
    """Folder below `papers`, such as `dcpim/fig3`."""
    sub_figure: str
    """Id in the folder's `figure.toml`; may be empty."""

    @classmethod
    def parse(cls, text: str) -> "SubFigureId":
        """Parses `dcpim/fig3:b`; without a colon it is the sub-figure without an id."""
        folder, _, sub_figure = text.partition(":")
        return cls(folder, sub_figure)


@dataclass(frozen=True)
class PublishedPanel:
    """A panel of a published figure."""

    id: str
    """Letter of the panel; empty if the figure has one panel."""
    shows: str
    by: tuple[SubFigureId, ...]
    """Sub-figures that reproduce it."""
    reason: str
    """Reason of its absence; empty if it is reproduced."""
    differs: str
    """Relevant differences from the paper's panel; empty without any."""

    @property
    def status(self) -> Status:
        """Returns `whole` if sub-figures reproduce the panel, else `absent`."""
        return "whole" if self.by else "absent"

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders that reproduce it, each once."""
        return tuple(dict.fromkeys(one.folder for one in self.by))


@dataclass(frozen=True)
class PublishedFigure:
    """A figure or a table of a paper."""

    number: str
    """The paper's number, such as `figure 3` or `table 1`."""
    kind: Kind
    section: str
    shows: str
    panels: tuple[PublishedPanel, ...]

    @property
    def status(self) -> Status:
        """Returns the status of the panels if they have the same, else `part`."""
        statuses = {panel.status for panel in self.panels}
        return statuses.pop() if len(statuses) == 1 else "part"


@dataclass(frozen=True)
class Paper:
    """A paper with all of its figures and tables."""

    id: str
    """Folder below `papers`."""
    title: str
    note: str
    """Remarks on the document that the list is of; may be empty."""
    figures: tuple[PublishedFigure, ...]

    def totals(self, *kinds: Kind) -> Counter[Status]:
        """Counts figures of these kinds by status."""
        return Counter(one.status for one in self.figures if one.kind in kinds)


@dataclass(frozen=True)
class AdditionalFolder:
    """A folder of a figure that is in none of the papers."""

    folder: str
    reason: str


@dataclass(frozen=True)
class Inventory:
    """All papers, and figures that are in none of them."""

    papers: tuple[Paper, ...]
    additional: tuple[AdditionalFolder, ...]

    def panels(self) -> Iterator[PublishedPanel]:
        """Yields the panels of all figures."""
        for paper in self.papers:
            for figure in paper.figures:
                yield from figure.panels


def load_inventory(root: Path) -> Inventory:
    """Reads the inventory of a folder `papers`; raises `PlanError` that names file and key.

    Every named sub-figure must exist, and every folder of a figure must be named.
    """
    spec = StrictTable.from_file(root / INVENTORY)
    additional = tuple(
        AdditionalFolder(one.pop("folder", str), _text(one, "reason"))
        for one in spec.tables("additional", [])
    )
    inventory = Inventory(tuple(_paper(one) for one in spec.tables("paper")), additional)
    spec.reject_unread()
    _check_folders(root, inventory)
    return inventory


def _paper(section: StrictTable) -> Paper:
    paper = Paper(
        id=_text(section, "id"),
        title=_text(section, "title"),
        note=section.pop("note", str, "").strip(),
        figures=tuple(_figure(one) for one in section.tables("item")),
    )
    section.reject_unread()
    for number, n in Counter(one.number for one in paper.figures).items():
        if n > 1:
            raise section.where.at("number").error(expected=f"{number} once", got=n)
    return paper


def _figure(section: StrictTable) -> PublishedFigure:
    number = _text(section, "number")
    kind = section.choice("kind", section.pop("kind", str), KINDS)
    place, shows = _text(section, "section"), _text(section, "shows")
    parts = section.tables("panels", [])
    panels = [_panel(one, _text(one, "id"), _text(one, "shows")) for one in parts]
    if not parts:
        panels = [_panel(section, "", shows)]
    section.reject_unread()
    return PublishedFigure(number, cast(Kind, kind), place, shows, tuple(panels))


def _panel(section: StrictTable, id_: str, shows: str) -> PublishedPanel:
    by = tuple(SubFigureId.parse(str(text)) for text in section.pop("by", list, []))
    reason, differs = section.pop("reason", str, ""), section.pop("differs", str, "")
    if bool(by) == bool(reason):
        raise section.where.error(expected="either by or reason", got="both" if by else "neither")
    if reason and differs:
        raise section.where.at("differs").error(expected="none of an absent panel", got=differs)
    if id_:
        section.reject_unread()
    return PublishedPanel(id_, shows, by, reason, differs)


def _text(section: StrictTable, key: str) -> str:
    text = str(section.pop(key, str)).strip()
    if not text:
        raise section.where.at(key).error(expected="words", got="an empty text")
    return text


def _check_folders(root: Path, inventory: Inventory) -> None:
    where = Location(root / INVENTORY)
    figures = {
        f"{folder.parent.name}/{folder.name}": load_figure(folder) for folder in list_figures(root)
    }
    additional = [one.folder for one in inventory.additional]
    named = set(additional)
    for paper in inventory.papers:
        for figure in paper.figures:
            for panel in figure.panels:
                at = where.at(f"{paper.id} {figure.number} {panel.id}".rstrip())
                _check_panel(figures, panel, at)
                named.update(panel.folders)
    for name in additional:
        if name not in figures:
            raise where.at("additional").error(expected="a folder of a figure", got=name)
    for name in figures:
        if name not in named:
            raise where.error(expected=f"the folder {name} in a panel or in additional")


def _check_panel(figures: dict[str, Figure], panel: PublishedPanel, where: Location) -> None:
    for one in panel.by:
        figure = figures.get(one.folder)
        if figure is None:
            raise where.at("by").error(expected="a folder of a figure", got=one.folder)
        known = [sub_figure.id for sub_figure in figure.sub_figures]
        if one.sub_figure not in known:
            raise where.at("by").error(
                expected=f"a sub-figure of {one.folder} ({', '.join(known)})",
                got=one.sub_figure or "the one without an id",
            )


def inventory_page(inventory: Inventory) -> str:
    """Returns the page of the inventory in Markdown; links lead to the pages of the folders."""
    lines = [
        "# Figures and tables of the papers",
        "",
        "Each figure and table of the five papers with its panels. A panel is `whole` if the",
        "command makes it; the page that is linked has the verdicts on its values. Otherwise it is",
        "`absent`, with a reason. A figure is `part` if it has panels of both kinds.",
        "Settings and drawings have no measured values.",
        "",
        *markdown(_totals_row(), [_totals_of(paper) for paper in inventory.papers]),
    ]
    for paper in inventory.papers:
        lines += ["", f"## {paper.title}", ""]
        if paper.note:
            lines += [paper.note, ""]
        rows = [row for figure in paper.figures for row in _rows(figure)]
        lines += markdown(("", "status", "section", "shows", "reproduced by, or why not"), rows)
    lines += ["", "## In none of the papers", ""]
    rows = [(_link(one.folder), one.reason) for one in inventory.additional]
    lines += markdown(("folder", "is"), rows)
    return "\n".join(lines) + "\n"


def _totals_row() -> tuple[str, ...]:
    return ("paper", *(f"values: {status}" for status in STATUSES), "settings, drawings")


def _totals_of(paper: Paper) -> tuple[str, ...]:
    totals = paper.totals("values")
    n_others = sum(paper.totals("settings", "drawing").values())
    return (paper.id, *(str(totals[status]) for status in STATUSES), str(n_others))


def _rows(figure: PublishedFigure) -> list[tuple[str, ...]]:
    """Returns one row for the figure, and one for each of its panels if it has several."""
    kind = "" if figure.kind == "values" else f" ({figure.kind})"
    first = (f"**{figure.number}**", figure.status + kind, figure.section, figure.shows)
    if len(figure.panels) == 1:
        return [(*first, _provenance(figure.panels[0]))]
    rows = [
        (panel.id, panel.status, "", panel.shows, _provenance(panel)) for panel in figure.panels
    ]
    return [(*first, ""), *rows]


def _provenance(panel: PublishedPanel) -> str:
    """Returns the folders with their sub-figures, or the reason of the absence."""
    if panel.reason:
        return panel.reason
    parts = []
    for folder in panel.folders:
        ids = [one.sub_figure for one in panel.by if one.folder == folder]
        named = ", ".join(id_.removeprefix("-") for id_ in ids if id_)
        parts.append(f"{_link(folder)} {named}".rstrip())
    return "; ".join(parts) + (f". {panel.differs}" if panel.differs else "")


def _link(folder: str) -> str:
    return f"[{folder}]({folder}.md)"

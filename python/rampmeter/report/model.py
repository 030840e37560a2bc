"""The parts of a report: sections of charts, tables, prose and links."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["measured", "expected", "variant"]
"""The kind of a point: measured, expected (of a paper or a bound), or of a variant."""
Place: TypeAlias = float | str
"""Position of a point on the x axis: a number, or the name of a category."""


@dataclass(frozen=True)
class Series:
    """Points of one name. `low` and `high` are ends of their intervals, NaN if there is none."""

    name: str
    x: Sequence[Place]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    kind: Kind = "measured"
    colour: int = 0
    """Index of the palette's colour: measured points and those next to them have the same."""
    hover: Sequence[str] = ()
    """A text for each point, shown with its values."""
    undecided: Sequence[bool] = ()
    """True for each point whose value has no verdict yet; it is grey."""


@dataclass(frozen=True)
class Chart:
    """Points with intervals, over numbers or categories."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    log: str = ""
    """The logarithmic axes: empty, `x`, `y` or `xy`."""
    has_lines: bool = True
    """True if lines join measured points."""
    categories: Sequence[str] = ()
    """The categories of the x axis in their order; empty if it has numbers."""


@dataclass(frozen=True)
class HeatMap:
    """A quantity over two axes of categories, as colours."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[str]
    y: Sequence[str]
    z: Sequence[Sequence[float]]
    """A row for each category of `y`."""
    unit: str = ""
    low: float = math.nan
    """Ends of the scale of colours, common to the maps of a measure; NaN if it has its own."""
    high: float = math.nan


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    is_number: bool = False


Cell: TypeAlias = str | float | int | None


@dataclass(frozen=True)
class Link:
    """A link to a file near the report, or to a place in it."""

    text: str
    target: str


@dataclass(frozen=True)
class DataTable:
    """A table that readers sort and search."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | Link]]
    note: str = ""
    is_open: bool = True
    """True if the table is shown without a click."""


@dataclass(frozen=True)
class MarkdownText:
    """Text in Markdown."""

    text: str
    title: str = ""
    """A heading under which it is folded; without a heading it is not folded."""


@dataclass(frozen=True)
class SvgImage:
    """A drawing that is not a chart: the text of an SVG file."""

    title: str
    svg: str


@dataclass(frozen=True)
class LinkList:
    """Links to files near the report."""

    title: str
    links: Sequence[Link]


SectionPart: TypeAlias = Chart | HeatMap | DataTable | MarkdownText | SvgImage | LinkList


@dataclass(frozen=True)
class Verdicts:
    """The number of expected values and claims with each verdict."""

    match: int
    miss: int
    fewer_flows: int
    """Those whose run had fewer flows than published."""
    not_judged: int

    @property
    def judged(self) -> int:
        """Values and claims that were judged."""
        return self.match + self.miss


@dataclass(frozen=True)
class Section:
    """One folder of results in a report."""

    id: str
    """Its name in links; sections of a report have different ones."""
    title: str
    subtitle: str
    parts: Sequence[SectionPart]
    group: str = ""
    """The group in which it is listed: a paper, or a kind of results."""
    verdicts: Verdicts | None = None
    rows: Sequence[Sequence[Cell | Link]] = field(default_factory=tuple)
    """Its lines in the table of all expected values."""
    provenance: Sequence[tuple[str, str]] = ()
    """Names and values that identify the run."""

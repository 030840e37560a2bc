"""Tables of text that fit a terminal. Columns that do not fit continue in further tables."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Final

from rampmeter.on_demand import rich_box, rich_measure, rich_table
from rampmeter.text.numbers import is_words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLUS_MINUS = " ± "
"""Separator between a value and half the width of its interval."""
LABEL_WIDTH = 22
"""Maximum width of a row's name before it continues in another line, in columns."""
NARROW, NARROW_LABEL_WIDTH = 60, 16
"""Width of a console below which names have fewer columns, and their maximum there."""

UNLIMITED = 10_000
"""Width of a console on which any table fits, in columns."""


NAMES_MAX: Final = 3
"""Maximum number of columns that name a row, and are repeated if a table continues."""


def joined(value: str, half: str) -> str:
    """Returns a value with half its interval, if there is one."""
    return f"{value}{PLUS_MINUS}{half}" if half else value


@dataclass(frozen=True)
class TextTable:
    """A table with the names of rows in the first column. Numbers are on the right."""

    title: str
    headings: tuple[str, ...]
    """The columns' names; the first one's is that of the row names, and may be empty."""
    rows: Sequence[tuple[str, ...]]
    """A cell for each heading."""
    notes: tuple[str, ...] = ()
    """Sentences below the table."""
    sections: frozenset[int] = frozenset()
    """Rows that are followed by a line."""
    label_width: int = LABEL_WIDTH
    """Maximum width of a row's name before it continues in another line, in columns, if the table
    is wider than the console."""

    def tables(self, console: "Console") -> Iterator["Table"]:
        """Yields tables that fit the console.

        If needed, intervals are in separate lines, and then columns in tables below each other,
        each with the row names: the first column, and further ones if rows differ in them alone.
        """
        if console.width < NARROW and self.label_width > NARROW_LABEL_WIDTH:
            yield from replace(self, label_width=NARROW_LABEL_WIDTH).tables(console)
            return
        whole = replace(self, label_width=UNLIMITED)
        for table in (whole, self):
            if table._fits(console):
                yield table._table()
                return
        narrow = replace(self, rows=[tuple(map(_folded, row)) for row in self.rows])
        start = self._n_names
        while start < len(self.headings):
            end = len(self.headings)
            while end > start + 1 and not narrow._part(start, end)._fits(console):
                end -= 1
            yield narrow._part(start, end)._table()
            start = end

    def html(self) -> str:
        """Returns the table as HTML, for notebooks."""
        heads = "".join(f"<th>{escape(name)}</th>" for name in self.headings)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        caption = f"<caption><b>{escape(self.title)}</b></caption>"
        return (
            f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{notes}"
        )

    def print(self, console: "Console") -> None:
        """Prints the tables, and the notes below them."""
        for table in self.tables(console):
            console.print()
            console.print(table)
        for note in self.notes:
            console.print(note, markup=False, highlight=False)

    @property
    def _n_names(self) -> int:
        """The number of leading columns in which all rows differ; 1 if there is none."""
        for n in range(1, min(NAMES_MAX, len(self.headings) - 1) + 1):
            if len({row[:n] for row in self.rows}) == len(self.rows):
                return n
        return 1

    def _part(self, start: int, end: int) -> "TextTable":
        names = self._n_names

        def part(cells: tuple[str, ...]) -> tuple[str, ...]:
            return (*cells[:names], *cells[start:end])

        title = self.title if start == names else f"{self.title}, continued"
        return replace(
            self, title=title, headings=part(self.headings), rows=[part(r) for r in self.rows]
        )

    def _fits(self, console: "Console") -> bool:
        unlimited = console.options.update(width=UNLIMITED)
        return (
            rich_measure.Measurement.get(console, unlimited, self._table()).maximum <= console.width
        )

    def _table(self) -> "Table":
        table = rich_table.Table(
            title=self.title,
            title_justify="left",
            title_style="bold",
            header_style="bold",
            box=rich_box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        for idx, heading in enumerate(self.headings):
            is_left = idx == 0 or is_words(row[idx] for row in self.rows)
            table.add_column(heading, justify="left" if is_left else "right", no_wrap=True)
        for idx, (name, *cells) in enumerate(self.rows):
            table.add_row(
                "\n".join(_lines(name, self.label_width)), *cells, end_section=idx in self.sections
            )
        return table


def _folded(cell: str) -> str:
    return cell.replace(PLUS_MINUS, "\n" + PLUS_MINUS.lstrip())


def _lines(name: str, width: int) -> Iterator[str]:
    """Yields a row's name in lines, broken after commas, colons and words if possible."""
    line = ""
    for part in re.split(r"(?<=[,: ])", name):
        if line and len(line) + len(part.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += part
        while len(line) > width:
            yield line[:width]
            line = line[width:]
    yield line

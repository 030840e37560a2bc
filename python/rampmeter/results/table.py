"""Tables as data: columns with keys and units, and rows of values. Writers are in `formats`.

A column has one text in a terminal, a notebook, LaTeX and Markdown, and one value in CSV, JSON,
Parquet, pandas and polars. An interval is two values: the mean, and `_ci` with half its width.
"""

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from rampmeter.analysis.confidence import Interval
from rampmeter.on_demand import pa
from rampmeter.results import formats
from rampmeter.text.arguments import choice_argument, path_argument
from rampmeter.text.files import write_text
from rampmeter.text.locations import Location
from rampmeter.text.numbers import NONE, byte_size, count, mega, number
from rampmeter.text.text_table import LABEL_WIDTH, TextTable, joined

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from rich.console import Console

Cell: TypeAlias = str | int | float | Interval | Mapping[str, int] | None
"""A value; a mapping has counts by reason, of which those of zero are left out."""
Medium: TypeAlias = Literal["all", "text", "data", "none"]
"""The formats that have a table unless it is named: all, those for readers, for programs, none."""

Form: TypeAlias = Literal["number", "bytes", "mega", "general", "name"]

CI: Final = "_ci"
"""Suffix of a key: half the width of the 95 % confidence interval."""
HTML_ROWS_MAX: Final = 40
"""Maximum number of rows of a table in a notebook; of longer ones the first and last are shown."""


@dataclass(frozen=True)
class Column:
    """A column: its key for programs, and its heading for readers."""

    key: str
    """Its stable name, which ends in the unit, such as `goodput_gbps`."""
    heading: str = ""
    """Its name for readers; it may have line breaks."""
    unit: str = ""
    """The unit in headings; empty for counts, shares and ratios."""
    places: int = 3
    """Decimal places of numbers that are not whole."""
    form: Form = "number"
    """The form for readers: bytes as `69.2 kB`, `mega` in millions, whole `name` without spaces."""
    hides_zero: bool = False
    """True if readers do not see the quantity of a transposed table if it is zero or missing."""
    width: int = 0
    """Maximum width in a terminal; longer texts are broken between words. 0: no limit."""

    @property
    def title(self) -> str:
        """The heading with its unit."""
        return f"{self.heading},\n{self.unit}" if self.unit else self.heading

    def texts(self, cell: Cell) -> tuple[str, str]:
        """Returns the text of a value, and that of half its interval, which may be empty."""
        if isinstance(cell, Interval) and self.form not in FORMS:
            return cell.texts(self.places)
        return self.text(cell), ""

    def text(self, cell: Cell) -> str:
        """Returns the text of a value."""
        match cell:
            case None:
                return NONE
            case str():
                return cell
            case Interval():
                return self._interval_text(cell)
            case Mapping():
                return ", ".join(f"{count(n)} {name}" for name, n in cell.items() if n) or "0"
        if self.form in FORMS and math.isfinite(cell):
            return FORMS[self.form](cell)
        if isinstance(cell, int):
            return str(cell) if self.form == "name" else count(cell)
        return number(cell, self.places)

    def _interval_text(self, cell: Interval) -> str:
        form = FORMS.get(self.form)
        if form is None:
            return cell.text(self.places)
        return form(cell.mean) if math.isfinite(cell.mean) else NONE


FORMS: Final[Mapping[str, Callable[[float], str]]] = {
    "bytes": byte_size,
    "mega": mega,
    "general": "{:.10g}".format,
}


@dataclass(frozen=True, repr=False)
class ResultTable:
    """A table of results. The first column has the names of rows.

    >>> table = ResultTable("speeds", "Speeds", (Column("name"), Column("rate")), [("a", 1.5)])
    >>> table.to_csv()
    'name,rate\\na,1.5\\n'
    """

    name: str
    """Its stable name, for `--table`."""
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    """A cell for each column."""
    notes: tuple[str, ...] = ()
    """Sentences below the table."""
    sections: frozenset[int] = frozenset()
    """Rows that are followed by a line."""
    is_transposed: bool = False
    """True if readers see its only row as a column."""
    medium: Medium = "all"
    shown_max: int = 0
    """Number of rows that readers see of a longer table; 0: all."""
    label_width: int = LABEL_WIDTH
    """Maximum width of a row's name in a terminal before it continues in another line."""

    def __repr__(self) -> str:
        size = f"{count(len(self.rows))} rows, {len(self.columns)} columns"
        return f"<table {self.name}: {size}>"

    @property
    def is_for_readers(self) -> bool:
        """True if terminals, reports and notebooks show it unasked."""
        return self.medium in ("all", "text")

    @property
    def is_for_programs(self) -> bool:
        """True if CSV, JSON and Parquet have it unasked."""
        return self.medium in ("all", "data")

    def text(self) -> TextTable:
        """Returns the table as text, for terminals, reports and notebooks."""
        head, *body = self.texts()
        notes = self.notes
        if self.shown_max and len(body) > self.shown_max:
            notes += (
                f"The first {self.shown_max} of {count(len(body))} rows; `--table {self.name} "
                "--format csv` prints all.",
            )
            body = body[: self.shown_max]
        widths = [0] * len(head) if self.is_transposed else [one.width for one in self.columns]
        rows = [
            tuple(_wrapped(cell, width) for cell, width in zip(row, widths, strict=True))
            for row in body
        ]
        return TextTable(self.title, tuple(head), rows, notes, self.sections, self.label_width)

    def texts(self) -> list[list[str]]:
        """Returns the headings, and the texts of all rows."""
        return [[joined(*texts) for texts in line] for line in self._lines()]

    def _lines(self) -> list[list[tuple[str, str]]]:
        """Returns the headings, and the texts of all rows, each with that of half its interval."""
        head = [(column.title, "") for column in self.columns]
        pairs = ([*zip(self.columns, row, strict=True)] for row in self.rows)
        body = [[column.texts(cell) for column, cell in row] for row in pairs]
        if self.is_transposed:
            (row,) = self.rows
            lines = zip(self.columns, row, zip(head, *body, strict=True), strict=True)
            return [list(texts) for one, cell, texts in lines if cell or not one.hides_zero]
        return [head, *body]

    def print(self, console: "Console") -> None:
        """Prints the table as it fits a terminal."""
        self.text().print(console)

    def html(self) -> str:
        """Returns the table as HTML: of a long one the first and the last rows."""
        if len(self.rows) <= HTML_ROWS_MAX:
            return self.text().html()
        half = HTML_ROWS_MAX // 2
        left_out: tuple[Cell, ...] = ("…",) * len(self.columns)
        short = replace(
            self,
            rows=[*self.rows[:half], left_out, *self.rows[-half:]],
            title=f"{self.title} ({count(len(self.rows))} rows)",
        )
        return short.text().html()

    def _repr_html_(self) -> str:
        return self.html()

    def records(self) -> list[dict[str, Any]]:
        """Returns the rows as dictionaries of values by key; intervals have two keys.

        Infinite numbers and NaN are kept. Counts by reason are dictionaries.
        """
        halves = self._columns_with_intervals()
        records = []
        for row in self.rows:
            record: dict[str, Any] = {}
            for column, cell in zip(self.columns, row, strict=True):
                record[column.key] = _value(cell)
                if column.key in halves:
                    half = cell.ci if isinstance(cell, Interval) else None
                    record[column.key + CI] = half
            records.append(record)
        return records

    def keys(self) -> list[str]:
        """Returns the keys of records, in their order."""
        halves = self._columns_with_intervals()
        return [
            key
            for column in self.columns
            for key in (column.key, column.key + CI)
            if key == column.key or column.key in halves
        ]

    def to_arrow(self) -> "pa.Table":
        """Returns an Arrow table; counts by reason are text, as in CSV."""
        records = [
            {key: _flat(value) for key, value in record.items()} for record in self.records()
        ]
        columns = {key: [one[key] for one in records] for key in self.keys()}
        # A column without values has numbers, too.
        return pa.table(
            {
                key: pa.array(values, None if any(v is not None for v in values) else pa.float64())
                for key, values in columns.items()
            }
        )

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame of pandas, which must be installed."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """Returns a data frame of polars; raises `ImportError` if it is not installed."""
        import polars as pl  # noqa: PLC0415

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """Returns the table as CSV with one header of keys; also writes it to `path`."""
        records = [[_flat(value) for value in one.values()] for one in self.records()]
        return _written(formats.csv_text(self.keys(), records), path)

    def to_latex(self, path: str | PathLike[str] | None = None) -> str:
        """Returns a `tabular` of the package booktabs; also writes it to `path`.

        Decimal points are aligned, and so are the intervals.
        """
        head, *body = self._lines()
        titles = [joined(*texts) for texts in head]
        return _written(formats.latex_text(titles, body, self.sections), path)

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """Returns a table in Markdown; also writes it to `path`."""
        head, *body = self.texts()
        return _written(formats.markdown_text(head, body), path)

    def _columns_with_intervals(self) -> set[str]:
        """Returns the keys of columns of intervals, which have a second key."""
        return {
            column.key
            for idx, column in enumerate(self.columns)
            if any(isinstance(row[idx], Interval) for row in self.rows)
        }


def choose(
    tables: Iterable[ResultTable], name: str | None, *, for_readers: bool
) -> list[ResultTable]:
    """Returns the tables of a format for readers or for programs, or those of one name.

    Readers see some tables in parts of the same name. Raises `PlanError` for an unknown name.
    """
    found = list(tables)
    named = [table for table in found if name in (None, table.name)]
    if name is not None and not named:
        names = ", ".join(dict.fromkeys(table.name for table in found))
        expected = f"one of {names}" if names else "no table, as nothing differs"
        raise Location(key="--table").error(expected=expected, got=name)
    mine = [one for one in named if (one.is_for_readers if for_readers else one.is_for_programs)]
    return mine if mine or name is None else named[:1]


class TablesByName(dict[str, ResultTable]):
    """Tables by name; an unknown name is a `PlanError` that lists the names."""

    def __missing__(self, name: object) -> ResultTable:
        choice_argument("tables", name, self)
        raise KeyError(name)


def by_name(tables: Iterable[ResultTable]) -> dict[str, ResultTable]:
    """Returns tables by name; of one that readers see in parts the whole table."""
    found = TablesByName()
    for table in tables:
        if table.name not in found or found[table.name].medium == "text":
            found[table.name] = table
    return found


def render(tables: Iterable[ResultTable], format_: str, *, has_titles: bool = True) -> str:
    """Returns tables as `csv`, `latex` or `markdown`, one below the other.

    Titles, and notes for readers, are comments of CSV and LaTeX.
    """
    parts = []
    for table in tables:
        match format_:
            case "csv":
                above, text, below = (
                    f"# {table.name}: {_one_line(table.title)}\n",
                    table.to_csv(),
                    "",
                )
            case "latex":
                above, text = f"% {_one_line(table.title)}\n", table.to_latex()
                below = "".join(f"% {_one_line(note)}\n" for note in table.notes)
            case "markdown":
                above, text = f"### {table.title}\n\n", table.to_markdown()
                below = "".join(f"\n{note}\n" for note in table.notes)
            case _:
                raise ValueError(f"format_: expected csv, latex or markdown, got {format_}")
        parts.append(above + text + below if has_titles else text)
    return "\n".join(parts)


def without(table: ResultTable, *keys: str) -> ResultTable:
    """Returns a table without some of its columns."""
    kept = [idx for idx, column in enumerate(table.columns) if column.key not in keys]
    return replace(
        table,
        columns=tuple(table.columns[idx] for idx in kept),
        rows=[tuple(row[idx] for idx in kept) for row in table.rows],
    )


def split(table: ResultTable, key: str) -> Iterator[ResultTable]:
    """Yields a table for readers for each value of a column of text, which is then its title."""
    idx = next(idx for idx, column in enumerate(table.columns) if column.key == key)
    for value in dict.fromkeys(row[idx] for row in table.rows):
        rows = [row for row in table.rows if row[idx] == value]
        yield without(replace(table, title=str(value), rows=rows, medium="text"), key)


def _value(cell: Cell) -> Any:
    """Returns the value of a cell without its interval."""
    if isinstance(cell, Interval):
        return cell.mean if cell.n else None
    if isinstance(cell, Mapping):
        return {name: n for name, n in cell.items() if n}
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def _flat(value: Any) -> Any:
    """Returns a value for one cell of CSV."""
    if isinstance(value, Mapping):
        return ";".join(f"{name}={n}" for name, n in value.items())
    return value


def _one_line(text: str) -> str:
    """Returns a text without line breaks, which would end a comment."""
    return " ".join(text.split())


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width)) if width else text


def _written(text: str, path: str | PathLike[str] | None) -> str:
    if path is not None:
        write_text(path_argument("path", path), text)
    return text

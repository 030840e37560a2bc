"""Results in notebooks: first and last rows of tables, units of columns, and warnings."""

import sys
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from rampmeter.text.cautions import Caution
from rampmeter.text.numbers import NONE, count, number
from rampmeter.text.text_table import TextTable

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX: Final = 20
"""Number of rows that are shown; of longer tables the first and the last ones."""
COLUMNS_MAX: Final = 24
CELL_MAX: Final = 40
"""Number of characters of a cell that are shown."""


def show_arrow_tables() -> None:
    """Makes a running IPython show Arrow tables as HTML; without IPython nothing changes."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        formatter = shell.display_formatter.formatters["text/html"]
        formatter.for_type_by_name("pyarrow.lib", "Table", arrow_html)


def warnings_html(cautions: Iterable[Caution]) -> str:
    """Returns warnings below tables as HTML, with their codes."""
    texts = (f"{one} [{one.code}]" if one.code else str(one) for one in cautions)
    return "".join(f"<p><b>warning:</b> {escape(text)}</p>" for text in texts)


def shortened(rows: Sequence[tuple[str, ...]], rows_max: int) -> list[tuple[str, ...]]:
    """Returns the first and last rows of a table with more than `rows_max` rows.

    >>> shortened([("a",), ("b",), ("c",), ("d",)], 2)
    [('a',), ('…',), ('d',)]
    """
    if len(rows) <= rows_max:
        return list(rows)
    half = rows_max // 2
    return [*rows[:half], ("…",) * len(rows[0]), *rows[len(rows) - half :]]


def arrow_html(table: "pa.Table") -> str:
    """Returns the first and last rows of a table as HTML, whatever its size."""
    shown = table.select(table.column_names[:COLUMNS_MAX])
    half = ROWS_MAX // 2
    if table.num_rows <= ROWS_MAX:
        rows = _cells(shown)
    else:
        last = _cells(shown.slice(table.num_rows - half))
        rows = [*_cells(shown.slice(0, half)), ("…",) * shown.num_columns, *last]
    title = f"{count(table.num_rows)} rows, {table.num_columns} columns"
    if table.num_columns > COLUMNS_MAX:
        title += f", of which {COLUMNS_MAX} are shown"
    return TextTable(title, tuple(map(_heading, shown.schema)), rows).html()


def _heading(field: "pa.Field[Any]") -> str:
    """Returns the name of a column, with its unit if the name does not end in it."""
    unit = (field.metadata or {}).get(b"unit", b"").decode()
    return f"{field.name}, {unit}" if unit and "_" not in field.name else field.name


def _cells(table: "pa.Table") -> list[tuple[str, ...]]:
    return [tuple(_cell(value) for value in row.values()) for row in table.to_pylist()]


def _cell(value: Any) -> str:
    if value is None:
        return NONE
    text = number(value, 4) if isinstance(value, float) else str(value)
    return text if len(text) <= CELL_MAX else f"{text[: CELL_MAX - 1]}…"

"""Tables of result folders, read with the present names of columns.

The columns that readers need are checked when a table is read, so that a broken or foreign file is
one error that names the file, and not another one in each reader.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rampmeter.on_demand import pa, pq
from rampmeter.results.former import FORMER_COLUMNS, with_present_status
from rampmeter.results.shapes import NEEDED, NULLABLE, OPTIONAL, Kind
from rampmeter.text.arguments import choice_argument
from rampmeter.text.locations import Location
from rampmeter.text.numbers import counted

if TYPE_CHECKING:
    import pyarrow as pa

HOSTS: Final = "rampmeter.hosts"
"""Key of the names of hosts in the metadata of tables of flows."""

MAGIC: Final = b"PAR1"
"""First and last bytes of a table."""


def read_table(file: Path, columns: Sequence[str] | None = None) -> "pa.Table":
    """Reads a table, or some of its columns.

    Raises `ResultError` for another file or a table without a column that readers need, and
    `PlanError` for an unknown name in `columns`.
    """
    with _table_errors(file):
        schema = pq.read_schema(file)
        stored = {FORMER_COLUMNS.get(one, one): one for one in schema.names}
    needed, optional = NEEDED.get(file.name, {}), OPTIONAL.get(file.name, {})
    for name, kind in {**needed, **optional}.items():
        if name in stored:
            _check_kind(file, name, schema.field(stored[name]).type, kind)
        elif name in (needed if columns is None else columns):
            raise Location(file).result_error(expected=f"the column {name}")
    for name in columns or ():
        choice_argument("names", name, list(stored))
    names = list(stored) if columns is None else columns
    with _table_errors(file):
        table = pq.read_table(file, columns=[stored[one] for one in names])
    table = table.rename_columns(list(names))
    for name in names:
        if name in {**needed, **optional} and name not in NULLABLE and table[name].null_count:
            got = f"{counted(table[name].null_count, 'row')} without one"
            raise Location(file, name).result_error(expected="a value in each row", got=got)
    return with_present_status(table)


def read_host_names(file: Path) -> list[str]:
    """Returns the custom names of hosts in a table of flows; empty if they have none.

    Raises `ResultError` if it is no table.
    """
    with _table_errors(file):
        metadata = pq.read_metadata(file).metadata or {}
    try:
        names = json.loads(metadata.get(HOSTS.encode(), "[]"))
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Location(file, HOSTS).result_error(
            expected="a JSON list of names", got="another text"
        )
    return names


def _check_kind(file: Path, name: str, type_: "pa.DataType", kind: Kind) -> None:
    is_whole = pa.types.is_integer(type_) or pa.types.is_null(type_)
    is_text = pa.types.is_string(type_) or pa.types.is_dictionary(type_)
    accepted = {
        "whole numbers": is_whole,
        "numbers": is_whole or pa.types.is_floating(type_),
        "texts": is_text,
        "truth values": pa.types.is_boolean(type_),
    }
    if not accepted[kind]:
        raise Location(file, name).result_error(expected=f"a column of {kind}", got=type_)


@contextmanager
def _table_errors(file: Path) -> Iterator[None]:
    """Raises errors of the library of tables as `ResultError`, with the file."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise Location(file).result_error(os.strerror(error.errno)) from None
        raise Location(file).result_error(expected="a Parquet table", got=_content(file)) from error


def _content(file: Path) -> str:
    """Returns the content of a file that is no table: its kind, for errors."""
    if file.is_dir():
        return "a folder"
    data = file.read_bytes()
    if not data:
        return "an empty file"
    if not data.startswith(MAGIC):
        return "another kind of file"
    return "damaged data" if data.endswith(MAGIC) else "the beginning of one"

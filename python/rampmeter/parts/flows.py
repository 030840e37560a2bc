"""Flows from tables in memory: Arrow, pandas, polars, or columns of a mapping."""

import atexit
import shutil
from collections.abc import Mapping
from functools import cache
from os import PathLike
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from rampmeter.on_demand import pa, pq
from rampmeter.plan.tables_in_memory import name_table
from rampmeter.plan_tables import Trace
from rampmeter.text.arguments import path_argument, shown
from rampmeter.text.files import replacing
from rampmeter.text.locations import Location


def flows(table: object, *, file: str | PathLike[str] | None = None) -> Trace:
    """Returns a workload of the flows in a table, a row a flow, with the columns of traces.

    The table is one of Arrow, pandas, polars, or any other that has the Arrow interface, or a
    mapping of columns: `arrival_us` (or `_ps`, `_ns`, `_ms`, `_s`), `src`, `dst`, `size_bytes` and
    so on. Plans name files, so it is written to `file`, a Parquet file. By default that is a
    temporary file, which is removed when Python ends. Results remain, but their plan cannot be run
    again.

    Raises `PlanError` for columns of different lengths, `TypeError` if there is no table, and
    `ResultError` if the file cannot be written.

    >>> import rampmeter as rm
    >>> trace = rm.flows({"arrival_us": [0, 1.5], "src": [0, 2], "dst": [1, 1],
    ...                   "size_bytes": [20_000, 500]})
    >>> rm.run(topology=rm.star(4), transport=rm.DcPim(), workload=trace, quiet=True).status
    'finished'
    """
    arrow = _arrow(table)
    if file is None:
        path = _folder() / f"flows-{len(list(_folder().iterdir()))}.parquet"
        name_table(path.resolve(), "table of rampmeter.flows")
    else:
        path = path_argument("file", file)
    with replacing(path) as partial, partial.open("wb") as file_of_flows:
        pq.write_table(arrow, file_of_flows)
    return Trace(file=path.resolve())


def _arrow(table: object) -> "pa.Table":
    if isinstance(table, pa.Table):
        return table
    columns: Any = dict(table) if isinstance(table, Mapping) else table
    if not isinstance(table, Mapping) and not hasattr(table, "__arrow_c_stream__"):
        raise TypeError(
            f"table: expected a table of Arrow, pandas or polars, or columns, got {shown(table)}"
        )
    try:
        return pa.table(columns)
    except (pa.ArrowException, TypeError, ValueError) as error:
        expected = "columns of one length, each a list or an array"
        raise Location(key="table").error(expected=expected, got=error) from None


@cache
def _folder() -> Path:
    folder = Path(mkdtemp(prefix="rampmeter-flows-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

"""Recordings: flows of another simulator's run with the times that it recorded."""

from __future__ import annotations

import csv
import gzip
import hashlib
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO, TypeAlias

from rampmeter._core import PlanError, quantity
from rampmeter.on_demand import np, pq
from rampmeter.plan.plan import Plan
from rampmeter.text.locations import SYNTAX, Location, unreadable
from rampmeter.text.toml import TomlValue

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

ENDINGS: Final = (".csv", ".csv.gz", ".parquet")
UNITS: Final = {"ps": 1.0, "ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12}
"""Picoseconds of the units that names of columns end in."""
TIMES: Final = ("fct", "delivered", "acked")
"""Times from the arrival of a flow to its end, in the names of columns without unit."""
RECORDED: Final = (*TIMES, "ideal")
ARRIVAL: Final = "arrival"
SIZE: Final = "size_bytes"
AFTER: Final = "after"
"""Column of a trace whose flows depend on others; results number these by their rows."""


class TimeColumn(NamedTuple):
    """Unit and kind of a column of times."""

    unit: str
    is_recorded: bool
    """True for recorded times, which are above 0."""


@dataclass(frozen=True)
class Recording:
    """The times of a recorded run in picoseconds, by the rows of its file."""

    file: Path
    columns: Mapping[str, str]
    """Columns of the file by the names that traces have, if these differ."""
    n_rows: int
    times: Mapping[str, Floats]
    """`fct`, `delivered`, `acked` and `ideal`, those that the file has; NaN if a cell is empty."""
    order: NDArray[np.int64]
    """Rows by the numbers that flows have in results: by arrival, unless flows depend on others."""
    sizes: Floats
    """Bytes of the flows."""
    has_other_units: bool
    """True if a recorded time is not in picoseconds."""

    @classmethod
    def load(cls, file: Path, columns: Mapping[str, str] | None = None) -> Recording:
        """Reads the recorded times of a CSV file, a compressed one, or a Parquet table.

        `columns` maps names such as `fct_us` or `arrival_ns` to columns of the file. Raises
        `PlanError` if a time is missing or is no number.
        """
        mapped = dict(columns or {})
        header = _header(file)
        for name, column in mapped.items():
            if column not in header:
                got = ", ".join(header)
                raise Location(file).error(expected=f"a column {column} for {name}", got=got)
        columns_found = {
            of: found
            for of in (*RECORDED, ARRIVAL)
            if (found := _column(file, of, header, mapped)) is not None
        }
        if not any(of in columns_found for of in TIMES):
            raise Location(file).error(
                expected="a recorded time, such as fct_ps or delivered_ps", got=", ".join(header)
            )
        size = mapped.get(SIZE, SIZE)
        if ARRIVAL not in columns_found or size not in header:
            raise Location(file).error(
                expected="the columns of a trace, such as arrival_ps, src, dst and size_bytes",
                got=", ".join(header),
            )
        time_columns = {
            column: TimeColumn(unit, of in RECORDED) for of, (column, unit) in columns_found.items()
        }
        values = _values(
            file, header, time_columns | {size: TimeColumn("bytes", is_recorded=False)}
        )
        # Times are whole picoseconds, which products of decimals only approximate.
        in_ps = {
            of: np.rint(values[column] * UNITS[unit])
            for of, (column, unit) in columns_found.items()
        }
        has_waiting = mapped.get(AFTER, AFTER) in header
        n_rows = len(values[size])
        return cls(
            file,
            mapped,
            n_rows,
            {of: in_ps[of] for of in RECORDED if of in in_ps},
            np.arange(n_rows) if has_waiting else np.argsort(in_ps[ARRIVAL], kind="stable"),
            values[size],
            any(columns_found[of][1] != "ps" for of in RECORDED if of in columns_found),
        )

    def plan(self, base: Plan) -> Plan:
        """Returns a plan whose workload is the recorded flows.

        Keys of a workload of the pattern `trace`, such as `columns` and `sort`, do not change.
        """
        workload = base.get("workload", {})
        is_trace = isinstance(workload, Mapping) and workload.get("pattern", "trace") == "trace"
        table: dict[str, TomlValue] = dict(workload) if is_trace else {}
        columns = table.get("columns")
        mapped: dict[str, TomlValue] = dict(columns) if isinstance(columns, dict) else {}
        mapped |= {name: of for name, of in self.columns.items() if _stem(name) not in RECORDED}
        if not mapped and (self.columns or self.has_other_units):
            # With a mapping, further columns of the file are allowed.
            mapped = {"src": "src"}
        table |= {"pattern": "trace", "file": str(self.file.resolve())}
        if mapped:
            table["columns"] = mapped
        return base.with_(("workload", table))


def columns_of(plan: Plan) -> dict[str, str]:
    """Returns the mapping of columns in a plan's workload."""
    mapped = plan.get("workload.columns", {})
    return dict(mapped) if isinstance(mapped, Mapping) else {}


def digest_of(file: Path) -> str:
    """Returns the SHA-256 of a file's contents."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _stem(name: str) -> str:
    """Returns the name of a time without its unit."""
    return name.rpartition("_")[0]


def _column(
    file: Path, name: str, header: Sequence[str], mapped: Mapping[str, str]
) -> tuple[str, str] | None:
    """Returns the column of a time and its unit; raises `PlanError` if the file has several."""
    names = [(f"{name}_{unit}", unit) for unit in UNITS]
    for column, unit in names:
        if column in mapped:
            return mapped[column], unit
    found = [(column, unit) for column, unit in names if column in header]
    if len(found) > 1:
        got = " and ".join(column for column, _ in found)
        raise Location(file).error(expected=f"one column of {name}", got=got, code=SYNTAX)
    return found[0] if found else None


def _header(file: Path) -> list[str]:
    if not file.name.endswith(ENDINGS):
        raise Location(file).error(
            expected=f"a name that ends in {', '.join(ENDINGS)}",
            got=file.name,
            hint="`rampmeter convert` makes such a file of other formats",
        )
    if file.suffix == ".parquet":
        with _naming_file(file):
            return list(pq.read_schema(file).names)
    with _lines(file) as lines:
        return [name.strip() for name in next(csv.reader(lines), [])]


def _values(file: Path, header: list[str], wanted: Mapping[str, TimeColumn]) -> dict[str, Floats]:
    """Reads columns."""
    if file.suffix == ".parquet":
        return _values_of_parquet(file, wanted)
    places = [(name, header.index(name)) for name in wanted]
    values: dict[str, list[float]] = {name: [] for name in wanted}
    with _lines(file) as lines:
        rows = csv.reader(lines)
        next(rows)
        line = rows.line_num
        for row in rows:
            if rows.line_num > line + 1:
                got = "a quotation mark that is not closed in its line"
                raise Location(file, line=line + 1).error(expected="cells", got=got, code=SYNTAX)
            line = rows.line_num
            for name, at in places if row else ():
                where = Location(file, name, line=rows.line_num)
                if at >= len(row):
                    raise where.error(expected=f"{len(header)} cells", got=len(row))
                values[name].append(_number(row[at], where, wanted[name]))
    return {name: np.array(of, dtype=np.float64) for name, of in values.items()}


def _values_of_parquet(file: Path, wanted: Mapping[str, TimeColumn]) -> dict[str, Floats]:
    with _naming_file(file):
        table = pq.read_table(file, columns=list(wanted))
    values = {}
    for name, kind in wanted.items():
        cells = ("" if cell is None else str(cell) for cell in table[name].to_pylist())
        numbers = [
            _number(cell, Location(file, f"row {n}: {name}"), kind) for n, cell in enumerate(cells)
        ]
        values[name] = np.array(numbers, dtype=np.float64)
    return values


def _number(text: str, where: Location, kind: TimeColumn) -> float:
    """Returns a number in the unit of its column, or NaN for an empty cell."""
    if not text.strip() or text == "nan":
        return math.nan
    try:
        value = float(text)
    except ValueError:
        with_unit = quantity(text, kind.unit)
        value = math.nan if with_unit is None else with_unit
    if not (0.0 < value < math.inf if kind.is_recorded else 0.0 <= value < math.inf):
        bound = "above 0, or an empty cell" if kind.is_recorded else "of at least 0"
        raise where.error(expected=f"a number {bound}", got=text)
    return value


@contextmanager
def _lines(file: Path) -> Iterator[TextIO]:
    with _naming_file(file):
        if file.suffix == ".gz":
            with gzip.open(file, "rt", encoding="utf-8-sig", newline="") as lines:
                yield lines
        else:
            with file.open(encoding="utf-8-sig", newline="") as lines:
                yield lines


@contextmanager
def _naming_file(file: Path) -> Iterator[None]:
    """Converts errors of reading a file to `PlanError` with its name."""
    try:
        yield
    except PlanError:
        raise
    except OSError as error:
        raise unreadable(file, error) from None
    except (EOFError, UnicodeDecodeError, ValueError, csv.Error, zlib.error) as error:
        raise Location(file).error(expected="a table of flows", got=error, code=SYNTAX) from None

"""Rounds of collective operations as tables on a terminal."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from rampmeter.sheet import Sheet
from rampmeter.text import NONE, byte_size, count, number

ROWS_MAX: Final = 20
"""How many rounds a table has at most."""


def round_sheets(summary: Mapping[str, Any]) -> Iterator[Sheet]:
    """The rounds of each collective beside their bounds; nothing if there are none."""
    for name, rounds in groupby(summary.get("collectives", []), _name):
        rows = list(rounds)
        left_out = f"The first {ROWS_MAX} of {len(rows)} rounds; summary.json has all."
        yield Sheet(
            title=f"{name} (bandwidths in Gbit/s)",
            headings=(
                "round",
                "bytes",
                "delivered",
                "time, us",
                "over bound",
                "algorithm",
                "bus",
            ),
            rows=[_cells(row) for row in rows[:ROWS_MAX]],
            notes=(left_out,) if len(rows) > ROWS_MAX else (),
        )


def _name(row: Mapping[str, Any]) -> str:
    first, last = row["first_host"], row["first_host"] + row["hosts"] - 1
    return f"{row['operation']}, {row['algorithm']}, hosts {first} to {last}"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    took = row["completion_ps"]
    return (
        str(row["round"]),
        byte_size(row["bytes"]),
        f"{count(row['delivered'])} of {count(row['flows'])}",
        NONE if took is None else number(took / 1e6, 1),
        number(row["over_bound"]),
        number(row["algorithm_gbps"], 2),
        number(row["bus_gbps"], 2),
    )

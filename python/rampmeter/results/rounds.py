"""Rounds of collective operations and calls as tables on a terminal."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from rampmeter.text.numbers import NONE, byte_size, count, number
from rampmeter.text.text_table import TextTable

ROWS_MAX: Final = 20
"""Maximum number of rounds in a table."""


def round_tables(summary: Mapping[str, Any]) -> Iterator[TextTable]:
    """Yields the rounds of each collective with their bounds; nothing if there are none."""
    for name, rounds in groupby(summary.get("collectives", []), _name):
        rows = list(rounds)
        left_out = f"The first {ROWS_MAX} of {len(rows)} rounds; summary.json has all."
        yield TextTable(
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
    first, step = row["first_host"], row.get("host_step", 1)
    if step is None:
        hosts = f"{row['hosts']} hosts from {first}"
    else:
        by = "" if step == 1 else f" by {step}"
        hosts = f"hosts {first} to {first + (row['hosts'] - 1) * step}{by}"
    return f"{row['operation']}, {row['algorithm']}, {hosts}"


def call_tables(summary: Mapping[str, Any]) -> Iterator[TextTable]:
    """Yields the latencies of calls; nothing if there are none."""
    parts = summary.get("rpcs", [])
    if parts:
        times = ("bound_mean", "latency_mean", "latency_p50", "latency_p99", "latency_max")
        yield TextTable(
            title="Latency of calls, us",
            headings=("part", "completed", "bound", "mean", "p50", "p99", "max", "over bound"),
            rows=[
                (
                    str(part["tenant"]),
                    f"{count(part['completed'])} of {count(part['calls'])}",
                    *(_us(part[f"{time}_ps"]) for time in times),
                    number(part["slowdown_mean"]),
                )
                for part in parts
            ],
        )


def _us(ps: int | None) -> str:
    return NONE if ps is None else number(ps / 1e6, 1)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    completion_ps = row["completion_ps"]
    return (
        str(row["round"]),
        byte_size(row["bytes"]),
        f"{count(row['delivered'])} of {count(row['flows'])}",
        NONE if completion_ps is None else number(completion_ps / 1e6, 1),
        number(row["over_bound"]),
        number(row["algorithm_gbps"], 2),
        number(row["bus_gbps"], 2),
    )

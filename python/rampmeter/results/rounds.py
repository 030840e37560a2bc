"""Rounds of collective operations and calls as tables."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from rampmeter.results.table import Cell, Column, ResultTable, split

ROWS_MAX: Final = 20
"""Maximum number of rounds in a table for readers."""
ROUNDS: Final = (
    Column("collective", "collective"),
    Column("round", "round", form="name"),
    Column("bytes", "bytes", form="bytes"),
    Column("flows", "flows"),
    Column("delivered", "delivered"),
    Column("completion_us", "time", "µs", 1),
    Column("lower_bound_us", "bound", "µs", 1),
    Column("lower_bound_ratio", "over\nbound"),
    Column("algorithm_gbps", "algorithm,\nGbit/s", places=2),
    Column("bus_gbps", "bus,\nGbit/s", places=2),
)
CALLS: Final = (
    Column("part", "part", form="name"),
    Column("calls", "calls"),
    Column("completed", "completed"),
    Column("lower_bound_mean_us", "bound", places=1),
    Column("latency_mean_us", "mean", places=1),
    Column("latency_p50_us", "p50", places=1),
    Column("latency_p99_us", "p99", places=1),
    Column("latency_max_us", "max", places=1),
    Column("lower_bound_ratio", "over bound"),
)
TIMES: Final = ("lower_bound_mean", "latency_mean", "latency_p50", "latency_p99", "latency_max")


def round_tables(summary: Mapping[str, Any]) -> Iterator[ResultTable]:
    """Yields the rounds of each collective with their bounds; nothing if there are none."""
    rows = [_round(row) for row in summary.get("collectives", [])]
    if rows:
        table = ResultTable("rounds", "Rounds of collectives", ROUNDS, rows, shown_max=ROWS_MAX)
        yield replace(table, medium="data")
        yield from split(table, "collective")


def name_of(row: Mapping[str, Any]) -> str:
    """Returns the name of a collective: operation, algorithm and hosts."""
    first, step = row["first_host"], row.get("host_step", 1)
    if step is None:
        hosts = f"{row['hosts']} hosts from {first}"
    else:
        by = "" if step == 1 else f" by {step}"
        hosts = f"hosts {first} to {first + (row['hosts'] - 1) * step}{by}"
    return f"{row['operation']}, {row['algorithm']}, {hosts}"


def call_tables(summary: Mapping[str, Any]) -> Iterator[ResultTable]:
    """Yields the latencies of calls; nothing if there are none."""
    parts = summary.get("rpcs", [])
    if parts:
        rows: list[tuple[Cell, ...]] = [
            (
                int(part["tenant"]),
                part["calls"],
                part["completed"],
                *(us(part[f"{time}_ps"]) for time in TIMES),
                part["slowdown_mean"],
            )
            for part in parts
        ]
        yield ResultTable("calls", "Latency of calls, µs", CALLS, rows)


def us(ps: float | None) -> float | None:
    """Returns picoseconds in microseconds."""
    return None if ps is None else ps / 1e6


def _round(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    names = ("round", "bytes", "flows", "delivered")
    times = (us(row["completion_ps"]), us(row["lower_bound_ps"]))
    rates = (row["lower_bound_ratio"], row["algorithm_gbps"], row["bus_gbps"])
    return (name_of(row), *(row[name] for name in names), *times, *rates)

"""Samples of time in which nothing is sent."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import rampmeter as rm


def late(start_us: float, folder: Path, name: str, transport: str) -> rm.Run:
    """Runs eight flows that begin at a time, and the same once more after a pause."""
    file = folder / f"{name}.csv"
    rows = [
        f"{start_us + pause + 5},{src},{src + 8},200000"
        for pause in (0, 50_000)
        for src in range(8)
    ]
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    topology: dict[str, Any] = {"kind": "leaf-spine", "racks": 2, "hosts-per-rack": 8, "spines": 2}
    return rm.run(
        topology=topology,
        transport={"name": transport},
        workload={"pattern": "trace", "file": str(file)},
        run={"sample-us": 10.0, "links": True},
        out=folder / name,
        quiet=True,
        seed=1,
    )


@pytest.mark.parametrize("transport", ["dctcp", "homa", "pfabric"])
def test_samples_of_idle_time_have_empty_queues_and_others_are_as_before(
    transport: str, tmp_path: Path
) -> None:
    soon = late(0.0, tmp_path, "soon", transport)
    after = late(100_000.0, tmp_path, "after", transport)
    names = ("soon", "after")
    tiers = [pq.read_table(tmp_path / name / "series.parquet").to_pylist() for name in names]
    shift = 100_000 * 1_000_000
    early = [row for row in tiers[1] if row["time_ps"] <= shift]
    assert len(early) == 10_000 * len({row["tier"] for row in early})
    for row in early:
        assert row["utilisation"] == row["queue_mean_bytes"] == row["queue_max_bytes"] == 0
    rest = [row | {"time_ps": row["time_ps"] - shift} for row in tiers[1][len(early) :]]
    assert rest == tiers[0]
    queues = [{q["tier"]: q["samples"] for q in run.summary["queues"]} for run in (soon, after)]
    ports = {"tor-up": 4, "tor-down": 16}
    for tier, count in ports.items():
        assert queues[1][tier] - queues[0][tier] == pytest.approx(10_000 * count, abs=count)

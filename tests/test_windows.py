"""Windows and credits over time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rampmeter as rm

TCP = {"cwnd_bytes", "in_flight_bytes"}
NAMES: dict[str, set[str]] = {
    **dict.fromkeys(("tcp", "dctcp", "pias", "capton", "hyline"), TCP),
    "pfabric": {"cwnd_packets", "in_flight_packets"},
    "hpcc": {"window_bytes", "in_flight_packets"},
    "ndp": {"credit_packets", "in_flight_packets"},
    "dcpim": {"token_packets"},
    "phost": {"token_packets", "free_token_packets"},
    "homa": {"grant_packets", "unscheduled_packets", "granted_bytes"},
    "homa-aeolus": {"grant_packets", "unscheduled_packets", "granted_bytes"},
    "sird": {"credit_bytes", "outstanding_bytes", "limit_bytes"},
}


def run(transport: Any, folder: Path) -> rm.Run:
    """Runs two messages of 3 MB into one host, one of them 100 us later."""
    file = folder / "flows.csv"
    file.write_text("arrival_us,src,dst,size_bytes\n0,1,0,3000000\n100,2,0,3000000\n")
    return rm.run(
        topology={"kind": "star", "hosts": 3},
        transport=transport,
        workload={"pattern": "trace", "file": str(file)},
        run=rm.RunOptions(rates_us=10.0),
        out=folder / "out",
        force=True,
        quiet=True,
    )


@pytest.mark.parametrize("name", NAMES)
def test_each_transport_has_its_windows(name: str, tmp_path: Path) -> None:
    done = run({"name": name}, tmp_path)
    assert done.windows is not None
    table = done.windows.to_pylist()
    assert {row["name"] for row in table} == NAMES[name]
    pairs = {(row["host"], row["peer"]) for row in table}
    assert pairs <= {(0, 1), (0, 2), (1, 0), (2, 0)}
    flows = {row["flow"] for row in table if row["flow"] is not None}
    assert flows == {0, 1}
    last = max(row["time_ps"] for row in table)
    assert {row["time_ps"] % 10_000_000 for row in table if row["time_ps"] < last} == {0}
    # Data is in flight or granted before the flows end.
    assert any(row["value"] > 0 for row in table)


def test_dctcp_fills_its_window_and_sends_no_more(tmp_path: Path) -> None:
    done = run({"name": "dctcp"}, tmp_path)
    assert done.windows is not None
    table = done.windows.to_pandas()
    flow = table[table["flow"] == 0].pivot(index="time_ps", columns="name", values="value")
    assert (flow["in_flight_bytes"] <= flow["cwnd_bytes"] + 1_500).all()
    assert flow["in_flight_bytes"].max() > 14_600


def test_outstanding_credit_of_sird_is_within_its_limits(tmp_path: Path) -> None:
    done = run({"name": "sird"}, tmp_path)
    assert done.windows is not None
    table = done.windows.to_pandas()
    credit = table[table["name"] == "outstanding_bytes"].groupby("time_ps")["value"].sum()
    derived = done.manifest["derived"]
    assert credit.max() <= derived["transport.credit-bytes"] + 1_500
    assert np.median(credit) > 0


def test_runs_without_an_interval_have_no_windows(tmp_path: Path) -> None:
    done = rm.run(
        topology={"kind": "star", "hosts": 3},
        transport=rm.Tcp(),
        workload=rm.imc10(load=0.3, flows=50),
        out=tmp_path / "out",
        quiet=True,
    )
    assert done.windows is None
    assert not (tmp_path / "out" / "windows.parquet").exists()

"""Fair queueing at ports: `fabric.scheduling`."""

from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm

STAR: dict[str, Any] = {"kind": "star", "hosts": 4, "access-gbps": 10.0}


def slowdowns(rows: list[str], scheduling: str, folder: Path) -> list[float]:
    """Returns the slowdown of each flow under TCP with deep buffers."""
    file = folder / "flows.csv"
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    run = rm.run(
        topology=STAR,
        transport={"name": "tcp", "rto-min-us": 100_000},
        fabric={"scheduling": scheduling, "buffer-bytes": 2_000_000, "overflow": "tail-drop"},
        workload={"pattern": "trace", "file": str(file)},
        seed=1,
        quiet=True,
    )
    flows = run.flows.sort_by("arrival_ps").to_pylist()
    return [flow["fct_ps"] / flow["ideal_ps"] for flow in flows]


def test_a_short_flow_does_not_wait_behind_the_queues_of_long_ones(tmp_path: Path) -> None:
    rows = ["0,0,3,20000000", "0,1,3,20000000", "5000,2,3,5000"]
    assert slowdowns(rows, "fifo", tmp_path)[2] > 5
    assert slowdowns(rows, "fair", tmp_path)[2] < 3


def test_a_lone_flow_takes_the_same_time(tmp_path: Path) -> None:
    rows = ["0,0,3,3000000"]
    assert slowdowns(rows, "fifo", tmp_path) == slowdowns(rows, "fair", tmp_path)


@pytest.mark.parametrize(("transport", "order"), [("pfabric", "ranks"), ("ndp", "trimming")])
def test_ports_with_another_order_refuse_it(transport: str, order: str) -> None:
    text = f"""
topology = {{ kind = "star", hosts = 4 }}
transport = {{ name = "{transport}" }}
fabric = {{ scheduling = "fair" }}
workload = {{ pattern = "all-to-all", sizes = "imc10", load = 0.3, flows = 10 }}
"""
    with pytest.raises(rm.PlanError, match=f"fabric.scheduling: expected fifo, .* by {order}"):
        rm.Plan(text).check()

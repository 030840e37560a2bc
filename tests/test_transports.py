"""Every transport through the whole program: the same flows, one comparison, deadlines, tenants."""

import json
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import rampmeter as rm
from rampmeter.cli import main
from rampmeter.spec import Part
from rampmeter.toml import Table

TRANSPORTS = [rm.DcPim(), rm.PHost(), rm.PFabric(), rm.Fastpass(), rm.Ideal()]
TOPOLOGY = rm.leaf_spine(racks=3, hosts_per_rack=4, spines=2, access_gbps=10, core_gbps=20)


@pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda t: type(t).__name__)
def test_every_flow_finishes_and_none_beats_its_ideal(transport: Part) -> None:
    run = rm.run(
        topology=TOPOLOGY, transport=transport, workload=rm.imc10(load=0.5, flows=300), quiet=True
    )
    assert run.summary["flows"]["delivered"] == 300
    assert pc.all(pc.greater_equal(run.flows["fct_ps"], run.flows["ideal_ps"])).as_py()


def test_one_command_compares_them_and_the_ideal_is_best(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    workload = rm.imc10(load=0.6, flows=2_000)
    plan.write_text(rm.Plan.of(topology=TOPOLOGY, transport=rm.DcPim(), workload=workload).text)
    names = ["dcpim", "phost", "pfabric", "fastpass", "ideal"]
    out = tmp_path / "out"
    arguments = ["compare", str(plan), "--transports", ",".join(names), "--out", str(out)]
    result = CliRunner().invoke(main, [*arguments, "--quiet"])
    assert result.exit_code == 0, result.output
    assert (out / "slowdown_by_size.png").stat().st_size > 10_000
    summaries = {name: json.loads((out / name / "summary.json").read_text()) for name in names}
    means = {n: s["slowdown"]["delivered"]["overall"]["mean"] for n, s in summaries.items()}
    assert min(means, key=means.__getitem__) == "ideal"
    arrivals = [pq.read_table(out / name / "flows.parquet").sort_by("flow") for name in names]
    for table in arrivals[1:]:
        for column in ("arrival_ps", "src", "dst", "size_bytes"):
            assert table[column] == arrivals[0][column]


def test_deadlines_are_drawn_kept_and_counted() -> None:
    run = rm.run(
        topology=TOPOLOGY,
        transport=rm.PHost(options={"policy": "edf"}),
        workload=rm.imc10(load=0.4, flows=500),
        deadlines=rm.Deadlines(mean_us=100.0),
        quiet=True,
    )
    took, ideal, deadline = (
        run.flows[name].to_numpy() for name in ("fct_ps", "ideal_ps", "deadline_ps")
    )
    assert (deadline >= 1.2499 * ideal).all()
    assert run.summary["deadlines_met"] == pytest.approx((took <= deadline).mean())
    assert 0.3 < run.summary["deadlines_met"] < 1.0


def test_parts_of_a_mix_are_tenants(tmp_path: Path) -> None:
    parts = [rm.all_to_all(sizes, 0.3, 200).table() for sizes in ("imc10", "web-search")]
    mix: Table = {"pattern": "mix", "parts": parts}
    run = rm.run(
        topology=TOPOLOGY,
        transport=rm.PHost(options={"policy": "tenant-fair"}),
        workload=mix,
        out=tmp_path,
        quiet=True,
    )
    assert set(run.flows["tenant"].to_pylist()) == {0, 1}
    assert set(run.summary["tenants"]) == {"0", "1"}
    table = run.tenants
    assert table is not None
    assert table.column_names == ["time_ps", "tenant", "delivered_bytes"]
    result = CliRunner().invoke(main, ["plot", str(tmp_path)])
    assert "tenants.png" in result.output, result.output


def test_runs_without_packets_can_be_plotted(tmp_path: Path) -> None:
    workload = rm.imc10(load=0.5, flows=100)
    rm.run(topology=TOPOLOGY, transport=rm.Ideal(), workload=workload, out=tmp_path, quiet=True)
    result = CliRunner().invoke(main, ["plot", str(tmp_path)])
    assert result.exit_code == 0, result.output

"""Quantities with units: in plans, on the command line, in classes, in sweeps, in the schema."""

from pathlib import Path

import jsonschema
import pytest

import rampmeter as rm
from rampmeter.plan import schema
from rampmeter.running.batch_flows import count_undelivered
from rampmeter.running.runner import Batch, Job, JobOutcome
from rampmeter.sweeps.table import sweep_of
from rampmeter.text.toml import dumps

from .commands import call, ok
from .conftest import write_results

PLAIN = """\
seed = 1
[topology]
kind = "star"
hosts = 4
access-gbps = 25.0
propagation-ns = 500.0
[transport]
name = "dcpim"
[workload]
pattern = "all-to-all"
sizes = { fixed = 20000 }
load = 0.3
flows = 20
[fabric]
buffer-bytes = { "25" = 500000 }
[run]
drain-us = 1000.0
"""
UNITS = (
    PLAIN.replace("25.0", '"25Gbps"')
    .replace("500.0", '"0.5us"')
    .replace("20000", '"20kB"')
    .replace("500000", '"500 KB"')
    .replace("1000.0", '"1ms"')
)


def test_texts_with_units_are_the_same_plan() -> None:
    assert UNITS.count('"') > PLAIN.count('"')
    assert rm.Plan(UNITS).check() == rm.Plan(PLAIN).check()


def test_the_schema_allows_units_of_the_quantity_only() -> None:
    validator = jsonschema.Draft7Validator(schema.plan_schema())
    plan = rm.Plan(UNITS)
    assert validator.is_valid(plan.table())
    for key, value in (
        ("run.drain-us", "1MB"),
        ("topology.access-gbps", "25"),
        ("topology.hosts", "4us"),
        ("fabric.buffer-bytes", "1us"),
    ):
        wrong = plan.with_((key, value))
        assert not validator.is_valid(wrong.table()), key
        with pytest.raises(rm.PlanError, match=key):
            wrong.check()


def test_classes_accept_units() -> None:
    plan = rm.Plan.of(
        topology=rm.Star(hosts=4, access_gbps="25Gbps"),
        transport=rm.Tcp(rto_min_us="1ms"),
        workload=rm.AllToAll(sizes={"fixed": "20kB"}, load=0.3, flows=20, until_us="1s"),
        run=rm.RunOptions(drain_us="2ms"),
    )
    whole = plan.check()
    assert whole["run"]["drain-us"] == 2000.0
    assert whole["transport"]["rto-min-us"] == 1000
    assert whole["workload"]["until-us"] == 1e6
    with pytest.raises(rm.PlanError, match=r"run\.drain-us: expected microseconds, such as 5"):
        rm.Plan.of(
            topology=rm.Star(hosts=4),
            transport=rm.Tcp(),
            workload=rm.imc10(0.3, 20),
            run=rm.RunOptions(drain_us="2 parsec"),
        ).check()


@pytest.mark.usefixtures("here")
def test_overrides_and_sweeps_accept_units() -> None:
    Path("plan.toml").write_text(PLAIN)
    done = call("check", "plan.toml", "--set", "run.drain-us=5ms")
    assert "drain-us = 5000" in done.output
    command = ["sweep", "plan.toml", "--vary", "topology.propagation-ns=500ns,2us", "--quiet"]
    ok(*command, "--out", "s")


def test_numbers_of_a_plan_have_no_units() -> None:
    plan = rm.Plan(UNITS)
    assert plan.get("topology.access-gbps") == "25Gbps"
    assert plan.resolved("topology.access-gbps") == 25.0
    assert plan.resolved("run.drain-us") == 1000.0
    assert plan.resolved("fabric.buffer-bytes") == {"25": 500_000}
    assert plan.resolved("workload.load") == 0.3
    assert plan.resolved("run.sample-us") is None
    assert plan.resolved("run.sample-us", 10.0) == 10.0
    with pytest.raises(rm.PlanError, match=r"run\.drain-us: expected microseconds"):
        plan.with_(("run.drain-us", "2 parsec")).resolved("run.drain-us")


def test_loads_of_compared_transports_accept_units(tmp_path: Path) -> None:
    """The table `load` applies to all transports, even if the plan itself has none."""
    packet = (("load.payload-bytes", "1000B"), ("load.header-bytes", "40B"))
    table = rm.Plan(PLAIN).with_(*packet).table()
    del table["transport"]
    comparison = rm.compare(rm.Plan(dumps(table)), "dcpim,tcp", out=tmp_path, quiet=True)
    for (run,) in comparison.runs.values():
        assert run.manifest["plan"]["load"] == {"payload-bytes": 1000, "header-bytes": 40}


def test_a_seed_is_a_whole_number(tmp_path: Path) -> None:
    for value in ("one", 1.5, True):
        plan = rm.Plan(PLAIN, origin="a.toml").with_(("seed", value))
        with pytest.raises(rm.PlanError, match=r"a\.toml: seed: expected a whole number, got"):
            rm.compare(plan, "dcpim,tcp", out=tmp_path, quiet=True)
        with pytest.raises(rm.PlanError, match=r"a\.toml: seed: expected a whole number, got"):
            rm.sweep(plan, out=tmp_path, vary={"workload.load": [0.3]}, quiet=True)


def test_results_of_a_plan_with_units_name_the_key_that_differs(tmp_path: Path) -> None:
    rm.run(rm.Plan(UNITS), out=tmp_path, quiet=True)
    with pytest.raises(rm.ResultError, match=r"\(workload\.load: 0\.3 there, 0\.4 here\)"):
        rm.run(rm.Plan(UNITS).with_(("workload.load", 0.4)), out=tmp_path, quiet=True)
    with pytest.raises(rm.ResultError, match=r"propagation-ns: 500\.0 there, 1000\.0 here"):
        rm.run(rm.Plan(UNITS.replace("0.5us", "1us")), out=tmp_path, quiet=True)


def test_a_delay_of_zero_is_no_fault(tmp_path: Path) -> None:
    lost = write_results(tmp_path, rows=[(0, 1460, 5.0, 5), (10, 1460, None, 5)])
    for delay, failed in (("0us", {"job": 1}), ("1us", {})):
        plan = rm.Plan(UNITS).with_(("faults.delay-us", delay))
        batch = Batch((JobOutcome(Job("job", plan, lost.path), "ran", lost),), None, 1.0)
        (dcpim,) = count_undelivered(batch)
        assert dcpim.failed == failed, delay


def test_a_sweep_accepts_rates_at_no_interval() -> None:
    plan = rm.Plan(f"{UNITS}rates-us = '0us'\n[sweep]\nseeds = 2\n")
    assert sweep_of(plan).points[0].plan.resolved("run.rates-us") == 0
    with pytest.raises(rm.PlanError, match=r"run\.rates-us: not available in a sweep"):
        sweep_of(plan.with_(("run.rates-us", "10us")))

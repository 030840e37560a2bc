"""Quantities with units: in plans, on the command line, in classes, in sweeps, in the schema."""

from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

import rampmeter as rm
from rampmeter import schema
from rampmeter.cli import main

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


def test_classes_take_units() -> None:
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
    with pytest.raises(rm.PlanError, match=r"run\.drain_us: expected microseconds, such as 5"):
        rm.Plan.of(
            topology=rm.Star(hosts=4),
            transport=rm.Tcp(),
            workload=rm.imc10(0.3, 20),
            run=rm.RunOptions(drain_us="2 parsec"),
        ).check()


def test_overrides_and_sweeps_take_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(PLAIN)
    done = CliRunner().invoke(main, ["check", "plan.toml", "--set", "run.drain-us=5ms"])
    assert "drain-us = 5000" in done.output
    command = ["sweep", "plan.toml", "--vary", "topology.propagation-ns=500ns,2us", "--quiet"]
    done = CliRunner().invoke(main, [*command, "--out", "s"])
    assert done.exit_code == 0, done.output

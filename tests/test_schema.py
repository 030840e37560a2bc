"""The JSON Schema of plans: plans that run are valid, and misspelt ones are not."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import rampmeter as rm
from rampmeter.papers.replays import NETWORK
from rampmeter.plan import schema

from .commands import call, ok
from .conftest import ROOT

PLANS = [
    file
    for file in sorted([*ROOT.glob("examples/**/*.toml"), *ROOT.glob("papers/**/*.toml")])
    if "topology" in tomllib.loads(file.read_text()) and "own-transport" not in file.parts
]


@pytest.fixture(scope="module")
def validator() -> Any:
    done = ok("schema")
    whole = json.loads(done.output)
    jsonschema.Draft7Validator.check_schema(whole)
    return jsonschema.Draft7Validator(whole)


def wrong(validator: Any, plan: dict[str, Any]) -> list[str]:
    """Returns the errors of a plan, without the nested ones of alternative forms."""
    return [error.message for error in validator.iter_errors(plan)]


OF_DEVICES = {"propagation", "switch", "host", "cable-spread", "clock-jitter", "timestamp-error"}
"""Delays of links and devices and errors of clocks, in ns. All other times are in us."""


def keys_of(schema: Any) -> set[str]:
    """Returns the keys of all tables of a schema."""
    if isinstance(schema, list):
        return set().union(*map(keys_of, schema))
    if not isinstance(schema, dict):
        return set()
    own = schema.get("properties")
    found = set(own) if isinstance(own, dict) else set()
    return found.union(*map(keys_of, schema.values()))


def test_a_quantity_has_one_unit_in_all_tables() -> None:
    keys = keys_of(json.loads(ok("schema").output))
    assert len(keys) > 250
    parts = [key.rpartition("-") for key in keys]
    nanoseconds = {quantity for quantity, _, unit in parts if unit == "ns"}
    assert nanoseconds == OF_DEVICES
    units: dict[str, set[str]] = {}
    for quantity, _, unit in parts:
        if unit in ("us", "ns", "ms", "s"):
            units.setdefault(quantity, set()).add(unit)
    assert all(len(of) == 1 for of in units.values())
    others = ("milli", "percent", "ppb", "quarters", "mbps", "kb", "mb", "mib", "ms", "s")
    assert [key for key in keys if key.rpartition("-")[2] in others] == []


@pytest.mark.parametrize("file", PLANS, ids=lambda file: str(file.relative_to(ROOT)))
def test_plans_are_valid(file: Path, validator: Any) -> None:
    plan = tomllib.loads(file.read_text())
    if file.name == NETWORK:
        # A replay adds the workload.
        plan["workload"] = {"pattern": "trace", "file": "flows.csv"}
    assert wrong(validator, plan) == []


@pytest.mark.parametrize("about", schema.transports(), ids=lambda about: about["name"])
def test_plans_written_by_the_core_are_valid(about: schema.TransportInfo, validator: Any) -> None:
    """A checked plan has every key, among them every default and preset of the transport."""
    for preset, _ in about["presets"]:
        plan = rm.Plan.of(
            topology=rm.leaf_spine(),
            transport={"name": about["name"], "preset": preset},
            workload=rm.imc10(0.5, 100),
            faults={"outages": [{"link": "h0-s0", "from-us": 1.0}]},
            deadlines=rm.Deadlines(mean_us=100),
        )
        assert wrong(validator, without_nulls(plan.check())) == []


def without_nulls(value: Any) -> Any:
    """Returns a value as TOML has it, which cannot express that a key has none."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


PLAN = """\
[topology]
kind = "leaf-spine"
racks = 2
hosts-per-rack = 4
spines = 2
[transport]
name = "dcpim"
matching-rounds = 4
[workload]
pattern = "all-to-all"
sizes = { fixed = 100_000 }
load = 0.6
flows = 10
[fabric]
overflow = "tail-drop"
shared-buffer-bytes = 1_000_000
pfc = { threshold = "dynamic" }
[measure]
warmup-flows = "auto"
[faults]
loss = 0.1
[[faults.links]]
link = "h0-s0"
loss = 0.2
"""


@pytest.mark.parametrize(
    ("right", "mistaken"),
    [
        ("racks = 2", "rack = 2"),
        ("racks = 2", "racks = 0"),
        ("racks = 2", "racks = 2.5"),
        ('kind = "leaf-spine"', 'kind = "leafspine"'),
        ("spines = 2\n", ""),
        ('name = "dcpim"', 'name = "dcpin"'),
        ("matching-rounds = 4", "round = 4"),
        ("matching-rounds = 4", "matching-rounds = 1000"),
        ("matching-rounds = 4", "preset = 'papers'"),
        ("fixed", "fixt"),
        ("sizes = { fixed = 100_000 }", "sizes = 'imc11'"),
        ("load = 0.6", "load = '0.6'"),
        ("load = 0.6", "load = 2.6"),
        ('"tail-drop"', '"drop-tail"'),
        ("threshold", "treshold"),
        ('"auto"', '"automatic"'),
        ("[faults]\nloss = 0.1", "[faults]\nloss = 1.1"),
        ("link = ", "links = "),
        ("[measure]", "[measured]"),
    ],
)
def test_mistakes_are_found_by_the_schema_and_by_the_core(
    right: str, mistaken: str, validator: Any
) -> None:
    assert right in PLAN
    assert wrong(validator, tomllib.loads(PLAN)) == []
    rm.Plan(PLAN).check()
    text = PLAN.replace(right, mistaken, 1)
    assert wrong(validator, tomllib.loads(text))
    with pytest.raises(rm.PlanError):
        rm.Plan(text).check()


def test_tables_of_sweeps_are_valid(validator: Any) -> None:
    page = (ROOT / "docs/howto/sweeps.md").read_text()
    table = page.partition("```toml\n")[2].partition("```")[0]
    plan = tomllib.loads(PLAN) | tomllib.loads(table)
    assert set(plan["sweep"]) > {"grid", "zip", "points", "sample"}
    assert wrong(validator, plan) == []
    mistakes: list[dict[str, Any]] = [
        {"seed": 1},
        {"seeds": []},
        {"transports": [{"nam": "dcpim"}]},
        {"grid": {"workload.load": []}},
        {"sample": {"number": 5, "axes": {"workload.load": {"unifrm": [0, 1]}}}},
    ]
    for mistake in mistakes:
        assert wrong(validator, {**plan, "sweep": {**plan["sweep"], **mistake}}), mistake


def test_every_key_of_a_plan_is_explained(validator: Any) -> None:
    def unexplained(where: str, part: Any) -> list[str]:
        tables = [*part.get("oneOf", []), part]
        return [
            f"{where}.{key}"
            for table in tables
            for key, value in table.get("properties", {}).items()
            if "const" not in value and not value.get("description")
        ]

    whole = validator.schema
    parts = {"plan": whole, **whole["definitions"]}
    assert [name for where, part in parts.items() for name in unexplained(where, part)] == []


def test_the_schema_is_written_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.schema.json"
    done = call("schema", file)
    assert (done.exit_code, done.output) == (0, "")
    assert json.loads(file.read_text())["title"] == "A plan of Rampmeter"

"""Errors as data: their location, the expected and the actual value, and a code."""

import ast
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm
from rampmeter import papers
from rampmeter.choices.grammar import parse_axis, parse_point
from rampmeter.choices.naming import transports
from rampmeter.plan.plan import parse_override
from rampmeter.replays.recording import Recording
from rampmeter.sweeps.api import axes_of
from rampmeter.sweeps.engines import open_engine
from rampmeter.sweeps.session import Shard
from rampmeter.sweeps.spec import Replication
from rampmeter.sweeps.table import sweep_of
from rampmeter.testbed import arms
from rampmeter.text.locations import Location, location_of, relocated
from rampmeter.text.strict_table import StrictTable

from .conftest import ROOT

PACKAGE = ROOT / "python" / "rampmeter"
LOCATED = {"PlanError", "ResultError"}
PARTS = ("code", "file", "key", "expected", "got")

Parts = tuple[str, str | None, str, str | None, str | None]


def plan_of(text: str) -> rm.Plan:
    return rm.Plan(text, origin="a.toml")


def table(**keys: Any) -> StrictTable:
    return StrictTable(keys, Location("a.toml", "grid[0]"))


WRONG: dict[str, tuple[Callable[[], object], Parts]] = {
    "option without a value": (
        lambda: parse_override("seed"),
        ("plan-value", None, "--set", "key=value", "seed"),
    ),
    "values of an option": (
        lambda: parse_axis("a.b=1,,2", Location(key="--vary")),
        ("plan-value", None, "--vary a.b", "values between commas", "'1,,2'"),
    ),
    "point twice": (
        lambda: parse_point("a=1,a=2", Location(key="--point")),
        ("plan-value", None, "--point", "key=value,... with keys that differ", "a=1,a=2"),
    ),
    "transports": (
        lambda: transports("beta=1,dcpim"),
        ("plan-value", None, "transports", "a name before beta=1", "beta=1,dcpim"),
    ),
    "seed": (
        lambda: plan_of('seed = "x"').seed,
        ("plan-value", "a.toml", "seed", "a whole number", "'x'"),
    ),
    "override of a value": (
        lambda: plan_of("seed = 1").with_(("seed.x", 2)),
        ("plan-value", None, "seed.x", "seed to be a table", "1"),
    ),
    "seeds of a sweep": (
        lambda: sweep_of(plan_of('[sweep]\nseeds = "a"')),
        ("plan-value", "a.toml", "sweep.seeds", "a number or a list of seeds", "'a'"),
    ),
    "unknown key of a sweep": (
        lambda: sweep_of(plan_of("[sweep]\nseed = 3")),
        ("plan-syntax", "a.toml", "sweep.seed", None, None),
    ),
    "seeds": (
        lambda: Replication.of(0, 1),
        ("plan-value", None, "seeds", "a number from 1 to 1000000", "0"),
    ),
    "shard": (
        lambda: Shard.parse("5/4"),
        ("plan-value", None, "shard", "1/4 to 4/4", "5/4"),
    ),
    "combination": (
        lambda: axes_of({"workload.load": [1]}, "mesh"),
        ("plan-value", None, "combine", "grid, zip or random", "mesh"),
    ),
    "engine": (
        lambda: open_engine("slurm"),
        (
            "plan-value",
            None,
            "on",
            "one of local, ray, ray://HOST:PORT, dask, dask://HOST:PORT, dask://SCHEDULER.json",
            "slurm",
        ),
    ),
    "arms": (
        lambda: arms.parse("sim"),
        ("plan-value", None, "--arms", "rampd or tcp before sim, which uses their delays", "sim"),
    ),
    "type of a key": (
        lambda: table(id=3).pop("id", str),
        ("plan-syntax", "a.toml", "grid[0].id", "a text", "3"),
    ),
    "missing key": (
        lambda: table().pop("id", str),
        ("plan-syntax", "a.toml", "grid[0].id", "this key", "none"),
    ),
    "item of a list": (
        lambda: table(values=[{}]).tables("values")[0].pop("run", str),
        ("plan-syntax", "a.toml", "grid[0].values[0].run", "this key", "none"),
    ),
    "name of a recording": (
        lambda: Recording.load(Path("a.txt")),
        ("plan-value", "a.txt", "", "a name that ends in .csv, .csv.gz, .parquet", "a.txt"),
    ),
    "missing plan": (
        lambda: rm.Plan.load("none.toml"),
        ("plan-file", "none.toml", "", None, None),
    ),
    "missing figure": (
        lambda: papers.find_figure(Path("none"), "dcpim", "99"),
        ("plan-value", None, "papers", "one of ", "dcpim 99"),
    ),
    "missing results": (
        lambda: rm.Run(Path("none")).summary,
        ("bad-results", "none", "", "the folder of a run", "no folder"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("here")
def test_errors_have_parts_and_a_message_that_begins_with_their_location(name: str) -> None:
    call, parts = WRONG[name]
    with pytest.raises((rm.PlanError, rm.ResultError)) as raised:
        call()
    error = raised.value
    assert isinstance(error, rm.PlanError | rm.ResultError)
    assert tuple(getattr(error, part) for part in PARTS) == parts
    location = str(location_of(error))
    assert location
    assert str(error) == f"{location}: {error.problem}"
    if error.expected is not None:
        assert error.problem is not None
        assert error.problem.startswith(f"expected {error.expected}, got {error.got}")


def test_errors_of_texts_have_a_line() -> None:
    with pytest.raises(rm.PlanError) as raised:
        _ = plan_of("seed = 1\nload = = 2\n").seed
    error = raised.value
    assert (error.code, error.file, error.line, error.column) == ("plan-syntax", "a.toml", 2, 8)
    assert str(error) == "a.toml: line 2, column 8: invalid value (at: load = = 2)"


def test_errors_of_cells_have_a_row_and_a_column(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("arrival_ps,src,dst,size_bytes,fct_ps\n0,0,1,100,7\n5,1,0,100,x\n")
    with pytest.raises(rm.PlanError) as raised:
        Recording.load(file)
    error = raised.value
    assert (error.file, error.line, error.key, error.got) == (str(file), 3, "fct_ps", "x")


NETWORK_OF_FILE = """\
transport.name = "dcpim"
topology = { kind = "file", file = "network" }
workload = { pattern = "all-to-all", sizes = "imc10", load = 0.5, flows = 9 }
"""
NETWORKS = {
    "CSV": ("from,to,gbps\nh0,s0,10\nh1,s0,0\n", 3, "a rate from", "0"),
    "JSON": ('{"hosts": 2, "switches": 1, "links": [\n{"between": ["h0", "s9"]}]}', 2, "h0", "s9"),
    "TOML": ('kind = "star"\nhosts = "x"\n', 2, "a whole number", "x"),
    "ns-3": ("3 1 2\n2\n0 2 10Gbps 1us 0\n1 2 10Gbps 1us 7\n", 4, "a probability", "7"),
    "htsim": ("Nodes 4\nTiers 2\nTier 0\nRadix_Up x\n", 4, "a whole number", "x"),
    "ASTRA-sim": ("topology: [ Ring ]\nnpus_count: [ 1 ]\nbandwidth: [ 1 ]\nlatency: [ 1 ]\n",
                  2, "at least 2 NPUs", "1"),
}  # fmt: skip
"""Topologies of each format with a mistake, its line, and its expected and actual value."""


@pytest.mark.parametrize("name", NETWORKS)
def test_errors_in_topologies_have_their_place_in_the_file(name: str, tmp_path: Path) -> None:
    text, line, expected, got = NETWORKS[name]
    file = tmp_path / "network"
    file.write_text(text)
    with pytest.raises(rm.PlanError) as raised:
        rm.Plan(NETWORK_OF_FILE, base=tmp_path, origin="a.toml").check()
    error = raised.value
    assert (error.file, error.key, error.line) == ("a.toml", "topology.file", 2)
    assert (error.data_file, error.data_line) == (str(file), line)
    assert (error.expected or "").startswith(expected)
    assert got in (error.got or "")
    again = pickle.loads(pickle.dumps(error))
    assert (again.data_file, again.data_line) == (str(file), line)


def test_errors_in_traces_and_sizes_have_their_place_in_the_file(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival_ps,src,dst,size_bytes\n0,0,1,100\n5,1,0,many\n")
    text = """\
transport.name = "dcpim"
topology = { kind = "star", hosts = 2 }
workload = { pattern = "trace", file = "trace.csv" }
"""
    with pytest.raises(rm.PlanError) as raised:
        rm.Plan(text, base=tmp_path, origin="a.toml").check()
    assert (raised.value.data_file, raised.value.data_line) == (str(trace), 3)
    assert raised.value.got == '"many"'


def test_errors_keep_their_parts_in_another_process_and_at_another_location() -> None:
    error = Location("a.toml", "seed").error(expected="a number", got="x", hint="use 1")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "a.toml: seed: expected a number, got x; use 1"
    assert location_of(again) == Location("a.toml", "seed")
    moved = relocated(again, Location("b.toml", "seed", line=3))
    assert str(moved) == "b.toml: line 3: seed: expected a number, got x; use 1"
    assert (moved.code, moved.expected, moved.got) == (error.code, "a number", "x")


def calls_of(tree: ast.AST) -> Iterator[str]:
    """Yields the names that are called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            yield called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def test_no_module_writes_the_sentence_of_an_error() -> None:
    for file in PACKAGE.rglob("*.py"):
        if file.name != "locations.py":
            assert not LOCATED & {*calls_of(ast.parse(file.read_text()))}, file

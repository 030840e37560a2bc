"""Wrong calls: each error names the argument, the expected and the actual value.

Errors are of this package, or of the call itself: no exception from inside reaches the user.
"""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import rampmeter as rm
from rampmeter.results.run import Run
from rampmeter.timeline import Timeline

# mypy: disable-error-code="arg-type, call-arg, call-overload, list-item, dict-item, misc"
# The calls are wrong: mypy finds most of them.

PARTS: Final[Mapping[str, Any]] = {
    "topology": rm.star(4),
    "transport": rm.DcPim(),
    "workload": rm.imc10(0.5, flows=20),
}
PLAN = rm.Plan.of(**PARTS)
PACKAGE = Path(rm.__file__).parent


@dataclass
class Results:
    """Results for wrong calls, and an empty folder."""

    run: Run
    comparison: rm.Comparison
    folder: Path


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "bad.toml").write_text("[topology\n")
    run = rm.run(PLAN, out=folder / "run", quiet=True)
    comparison = rm.compare(PLAN, "dcpim,phost", out=folder / "compared", quiet=True)
    return Results(run, comparison, folder)


def run(**changes: Any) -> Run:
    return rm.run(**{**PARTS, "quiet": True, **changes})


def compare(*arguments: Any, **keywords: Any) -> rm.Comparison:
    return rm.compare(PLAN, *arguments, quiet=True, **keywords)


def sweep(**keywords: Any) -> rm.SweepResults:
    return rm.sweep(PLAN, quiet=True, **{"out": "never", **keywords})


LOADS = {"workload.load": [0.3]}

CALLS: Final[Mapping[str, tuple[Callable[[Results], object], str]]] = {
    # Pictures and folders.
    "a run for a comparison": (
        lambda r: rm.Comparison.load(r.run.path),
        "expected the folder of a comparison, got",
    ),
    "no comparison": (
        lambda _: rm.Comparison.load("nodir"),
        "nodir: expected the folder of a comparison, got no folder",
    ),
    # Plans.
    "a long text": (
        lambda _: run(workload=rm.AllToAll(sizes="x" * 3_000_000, load=0.5)),
        r'got "x{79}\.\.\. \(3000002 characters\)$',
    ),
    "a long list": (
        lambda _: run(workload=rm.AllToAll(sizes=[*range(30_000)], load=0.5)),
        "workload.sizes: expected the name of a distribution, .* got a list",
    ),
    "a plan of a number": (lambda _: rm.run(5), "plan: expected a path, got 5"),
    "no plan": (lambda _: rm.run(), "topology: expected a part of a plan, got None"),
    "no workload": (lambda _: run(workload=None), "workload: expected a part of a plan, got None"),
    "a missing plan": (lambda _: rm.run("no.toml"), "no.toml: No such file"),
    "a bad plan": (
        lambda r: rm.run(r.folder / "bad.toml"),
        "bad.toml: line 1, column 10: ",
    ),
    "a plan of a folder": (lambda r: rm.run(r.folder), "Is a directory"),
    "a text of a number": (lambda _: rm.Plan(5), "text: expected a text, got 5"),
    "a plan without a name": (lambda _: rm.Plan.load(None), "plan: expected a path, got None"),
    "a seed of a text": (lambda _: run(seed="x"), "seed: expected a whole number .* got 'x'"),
    "a negative seed": (lambda _: run(seed=-1), "seed: expected a whole number from 0 .* got -1"),
    "a seed of a truth value": (
        lambda _: run(seed=True),
        "seed: .* whole number .* got True",
    ),
    "a base of a number": (
        lambda _: rm.Plan.of(base=5, **PARTS),
        "base: expected a path, got 5",
    ),
    "an unknown table": (
        lambda _: rm.Plan.of(topolgy=rm.star(4)).check(),
        "topolgy: .*, got topolgy",
    ),
    "an unknown argument": (lambda _: rm.run(topolgy=3), "unexpected keyword argument 'topolgy'"),
    "a key of a number": (lambda _: PLAN.with_((5, 0.3)), "key: expected a text, got 5"),
    "an empty key": (lambda _: PLAN.with_(("", 0.3)), "key: expected a path such as workload.load"),
    "a key and a value": (
        lambda _: PLAN.with_("workload.load", 0.3),
        r"overrides: expected pairs such as \(\"workload.load\", 0.7\), .* got 'workload.load'",
    ),
    "a triple": (lambda _: PLAN.with_(("a", 1, 2)), r"overrides: .* got \('a', 1, 2\)"),
    "a key in a number": (lambda _: PLAN.with_(("seed.x", 1)), "seed.x: expected seed to be a tab"),
    "a value that plans lack": (
        lambda _: PLAN.with_(("workload.load", object())),
        "workload.load: expected a number, .* got a value of type object",
    ),
    "no value": (lambda _: PLAN.with_({"workload.load": None}), "workload.load: .* got None"),
    "a path of a number": (lambda _: PLAN.get(5), "key: expected a text, got 5"),
    # Transports.
    "a transport of a number": (lambda _: run(transport=5), "transport: expected .* got 5"),
    "an unknown transport": (
        lambda _: run(transport="dcpmi"),
        r'transport.name: expected one of ideal, dcpim, .* got "dcpmi"',
    ),
    "an unknown preset": (
        lambda _: run(transport="dcpim:fast"),
        'transport.preset: expected .*, got "fast"',
    ),
    "two transports in one text": (
        lambda _: run(transport="dcpim,phost"),
        "transport: expected one transport, got 'dcpim,phost'",
    ),
    "an empty name": (lambda _: run(transport=""), "transport: expected names that differ"),
    "a transport without a name": (
        lambda _: run(transport={}),
        "transport.name: expected the name of a transport, got none",
    ),
    "no transports": (lambda _: run(transport=[]), "transport: expected 1 to 8 tables, got 0"),
    "a number in a list": (lambda _: run(transport=["dcpim", 3]), r"transport\[1\]: .* got 3"),
    "a topology as transport": (
        lambda _: run(transport=rm.star(4)),
        r"transport: expected a transport, got Star\(hosts=4\)",
    ),
    "two values of one key": (
        lambda _: rm.DcPim(r=4, matching_rounds=5),
        "DcPim: expected one of r and matching_rounds, got both, 4 and 5",
    ),
    "a key in options too": (
        lambda _: rm.DcPim(matching_rounds=2, options={"matching-rounds": 3}),
        "DcPim: expected keys that differ, got matching-rounds as a field and in options",
    ),
    "options of a number": (lambda _: rm.DcPim(options=5), "options: expected a mapping .* got 5"),
    "an unknown field": (lambda _: rm.DcPim(ronds=1), "unexpected keyword argument 'ronds'"),
    "a key of a text": (
        lambda _: run(transport=rm.DcPim(matching_rounds="4")),
        'rounds: .* got "4"',
    ),
    "a key of a truth value": (
        lambda _: run(transport=rm.DcPim(matching_rounds=True)),
        "rounds: .*true",
    ),
    "a key out of range": (
        lambda _: run(transport=rm.DcPim(matching_rounds=99)),
        "rounds: .* 32, got 99",
    ),
    "a key of an object": (
        lambda _: run(transport=rm.DcPim(matching_rounds=object())),
        r"DcPim\(matching_rounds=...\): expected a number, .* got a value of type object",
    ),
    "an unknown key": (
        lambda _: run(transport={"name": "dcpim", "chanels": 2}),
        "transport.chanels: expected one of preset, .* got chanels; did you mean channels",
    ),
    # Topologies and workloads.
    "a topology of a text": (lambda _: run(topology="star"), "topology: .* got 'star'"),
    "a class of topologies": (
        lambda _: run(topology=rm.Star),
        r"topology: .* got Star; `Star\(...\)` makes one",
    ),
    "hosts of a text": (lambda _: run(topology=rm.star("4")), 'topology.hosts: .* got "4"'),
    "negative hosts": (lambda _: run(topology=rm.star(-1)), "topology.hosts: .* got -1"),
    "an odd fat-tree": (lambda _: run(topology=rm.fat_tree(3)), "topology.k: .* even .* got 3"),
    "an infinite rate": (
        lambda _: run(topology=rm.star(4, access_gbps=float("inf"))),
        "topology.access-gbps: expected a rate .* got inf",
    ),
    "racks of an array": (
        lambda _: run(topology=rm.leaf_spine(np.array([2, 3]), 2, 1)),
        "topology.racks: expected a whole number, got a list",
    ),
    "a missing file": (
        lambda _: run(topology=rm.TopologyFile(file="no.csv")),
        "topology.file: .*no.csv: expected a file that can be read, got No such file",
    ),
    "a load of a text": (
        lambda _: run(workload=rm.imc10("0.5", 9)),
        'workload.load: .* "0.5"',
    ),
    "no flows": (lambda _: run(workload=rm.imc10(0.5, 0)), "workload.flows: .* at least 1, got 0"),
    "unknown sizes": (
        lambda _: run(workload=rm.all_to_all("imc11", 0.5, 10)),
        'workload.sizes: expected one of imc10, .* got "imc11"; did you mean imc10',
    ),
    "a table of results": (lambda r: run(workload=r.run.flows), "`rm.flows.table.` makes a worklo"),
    "flows of a number": (lambda _: rm.flows(5), "table: expected a table of Arrow, .* got 5"),
    "flows without columns": (
        lambda _: run(workload=rm.flows({"arrival_us": [0.0], "src": [0]})),
        "expected a column dst and a column size_bytes, got arrival_us,src",
    ),
    "columns of two lengths": (
        lambda _: rm.flows({"src": [0, 1], "dst": [1]}),
        "table: expected columns of one",
    ),
    "a column of a number": (
        lambda _: rm.flows({"src": 0}),
        "table: expected columns of one",
    ),
    "flows in no folder": (
        lambda _: rm.flows({"src": [0]}, file="/proc/nowhere/flows.parquet"),
        "/proc/nowhere: cannot be created: ",
    ),
    "an unknown collective": (
        lambda _: run(workload=rm.collective("all-red", 1_000)),
        "workload.operation: expected one of all-reduce, .*, got all-red",
    ),
    "hosts that descend": (
        lambda _: run(workload=rm.collective("all-reduce", 9, hosts=range(3, 0, -1))),
        r"hosts: expected hosts with ascending numbers, got range\(3, 0, -1\)",
    ),
    "a host that is not there": (
        lambda _: run(workload=rm.collective("all-reduce", 9, hosts=[0, 99])),
        r"workload.hosts\[1\]: expected a host below 4, got 99",
    ),
    # Arguments of runs.
    "a folder of a number": (lambda _: run(out=5), "out: expected a path, got 5"),
    "no folder": (lambda _: run(out=""), "out: expected a path, got ''"),
    "a file for a folder": (
        lambda r: run(out=r.folder / "bad.toml"),
        "a folder, got a file",
    ),
    "a timeout of a text": (
        lambda _: run(timeout="x"),
        "timeout: .* number from 0, got 'x'",
    ),
    "a timeout of no number": (lambda _: run(timeout=float("nan")), "timeout: .* got nan"),
    "an event of a truth value": (lambda _: run(cancel=True), "cancel: .*Event, got True"),
    "a callback of a number": (lambda _: run(on_progress=5), "on_progress: .* function, got 5"),
    "a run among comparisons": (
        lambda r: run(out=r.folder / "compared"),
        "compared: the folder has the results of a comparison; use another",
    ),
    # Comparisons.
    "no transports to compare": (lambda _: rm.compare(PLAN), "argument: 'transports'"),
    "transports of a number": (lambda _: compare(5), "transports: expected names, .* got 5"),
    "an empty list": (lambda _: compare([]), "transports: expected names that differ, got none"),
    "one transport twice": (lambda _: compare("dcpim,dcpim"), "transports: .* got dcpim, dcpim"),
    "no seeds": (lambda _: compare("dcpim", seeds=0), "seeds: expected a whole number .* got 0"),
    "seeds of a text": (lambda _: compare("dcpim", seeds="x"), "seeds: .* got x"),
    "listed seeds": (lambda _: compare("dcpim", seeds=[1, 1]), r"seeds: .* got \[1, 1\]"),
    "a negative precision": (lambda _: compare("dcpim", precision=-1), "precision: .* got -1"),
    "unknown failures": (
        lambda _: compare("dcpim", failures="no"),
        "failures: .* got no",
    ),
    "a comparison among runs": (
        lambda r: compare("dcpim", out=r.folder / "run"),
        "run: the folder has the results of a run; use another",
    ),
    "nothing to compare": (lambda _: rm.Comparison({}), "runs: expected as many .* got none"),
    "a comparison of numbers": (lambda _: rm.Comparison({"a": 5}), r"runs\['a'\]: .* got 5"),
    "a comparison of folders": (lambda _: rm.Comparison({"a": "x"}), r"runs\['a'\]: .* `rm.Run"),
    "a list of runs": (lambda r: rm.Comparison([r.run]), "runs: expected a mapping of labels"),
    "an unknown label": (
        lambda r: r.comparison.slowdowns("homa"),
        "label: expected one of dcpim, phost, got homa",
    ),
    "an unknown quantity": (
        lambda r: r.comparison.quantity("dcpim", "utilization"),
        "name: expected one of .*utilisation.* got utilization",
    ),
    "an overlay of numbers": (lambda _: rm.Overlay({"a": 5}), r"runs\['a'\]: .* got 5"),
    # Results.
    "results of a number": (lambda _: rm.Run(5), "path: expected a path, got 5"),
    "no results": (
        lambda r: rm.Run(r.folder / "no").summary,
        "no: expected the folder of a run, got no folder",
    ),
    "no flows of results": (
        lambda r: rm.Run(r.folder / "no").flows,
        "no: expected the folder of a run, got no folder",
    ),
    "an unknown column": (lambda r: r.run.columns("fct"), "names: .*fct_ps.* got fct"),
    "an unknown ideal": (lambda r: r.run.plot.slowdown_by_size("best"), "ideal: .* got best"),
    "unknown bins": (lambda r: r.run.plot.slowdown_by_size(bins=3), "bins: expected .* got 3"),
    "shares of one tenant": (lambda r: r.run.plot.tenants(), "expected several tenants, got one"),
    "a missing timeline": (lambda _: Timeline.load("no.pftrace"), "no.pftrace: No such file"),
    "a plan as a timeline": (
        lambda r: Timeline.load(str(r.folder / "bad.toml")),
        "bad.toml: expected a timeline",
    ),
    # Sweeps and files of other tools.
    "values of a list": (lambda _: sweep(vary=[1]), r"vary: expected a mapping .* got \[1\]"),
    "a value for values": (
        lambda _: sweep(vary={"workload.load": 5}),
        r"vary\['workload.load'\]: expected a list, .* got 5",
    ),
    "a number that varies": (lambda _: sweep(vary={5: [1]}), "vary: expected a text, got 5"),
    "transports that vary": (
        lambda _: sweep(vary={"transport": ["dcpim", "homa"]}),
        "transport: cannot be varied; use `transports`",
    ),
    "results of a sweep of a number": (
        lambda _: rm.SweepResults(5),
        "url: expected a folder .* got 5",
    ),
    "axes of a number": (
        lambda r: r.run.plot.fct_cdf(ax=5),
        "ax: expected axes of Matplotlib, got 5",
    ),
    "points of numbers": (lambda _: sweep(points=[5]), r"points\[0\]: .* mapping .* got 5"),
    "samples of a text": (lambda _: sweep(vary=LOADS, samples="x"), "samples: .* got 'x'"),
    "seeds of a sweep": (lambda _: sweep(vary=LOADS, seeds="x"), "seeds: .* got x"),
    "no jobs": (lambda _: sweep(vary=LOADS, jobs=0), "jobs: expected a whole number from 1, got 0"),
    "an engine of a number": (lambda _: sweep(vary=LOADS, on=5), "on: expected a text, got 5"),
    "a sweep in a number": (lambda _: sweep(vary=LOADS, out=5), "out: expected a path, got 5"),
    "a converted number": (lambda _: rm.convert(5, "csv", "t.csv"), "source: .* path, got 5"),
    "an unknown format": (
        lambda r: rm.convert(r.folder / "bad.toml", "nix", "t.csv"),
        'format: expected one of csv, .* got "nix"',
    ),
    # Parts of results.
    "a table of a run": (
        lambda r: r.run.tables["nope"],
        "tables: expected one of overview, .*got n",
    ),
    "the flows of no transport": (
        lambda r: rm.Comparison({"a": r.run}).flows("b"),
        "label: expected one of a, got b",
    ),
    "completion times of no transport": (
        lambda r: rm.Comparison({"a": r.run}).nfct("b"),
        "label: expected one of a, got b",
    ),
    "a run twice": (
        lambda r: rm.Comparison({"a": [r.run, rm.Run(r.run.path)]}),
        r"runs\['a'\]: expected each run once, got .*run twice",
    ),
    "a host of a number": (
        lambda r: r.run.animate(hosts=3),
        "hosts: expected numbers and ranges, as 0-7,9, got 3",
    ),
    "hosts of texts": (
        lambda r: r.run.animate(hosts=["a"]),
        "hosts: expected a whole number from 0, got 'a'",
    ),
    "a title of a number": (
        lambda r: r.run.animate(title=3),
        "title: expected a text, got 3",
    ),
    "a load of everything": (lambda _: rm.pias_thresholds("imc10", "x"), "load: .* got 'x'"),
}


def is_of_the_call(error: TypeError) -> bool:
    """Returns true if Python refuses the call, or if this package raises the error itself."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    is_ours = Path(last.filename).is_relative_to(PACKAGE)
    is_raised = is_ours and (last.line or "").lstrip().startswith("raise TypeError(")
    return is_raised or last.filename == __file__


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls_name_argument_and_value(name: str, results: Results) -> None:
    call, message = CALLS[name]
    with pytest.raises((rm.PlanError, rm.ResultError, TypeError), match=message) as raised:
        call(results)
    assert not isinstance(raised.value, TypeError) or is_of_the_call(raised.value)


def test_more_than_64_calls_are_wrong() -> None:
    assert len(CALLS) >= 64


def test_a_transport_has_one_name_everywhere(tmp_path: Path) -> None:
    """A text, a class, an object and a table are the same transport in each call."""
    forms = ["dcpim:paper", rm.DcPim(preset="paper"), {"name": "dcpim", "preset": "paper"}]
    of = {"topology": rm.star(4), "workload": rm.imc10(0.5, flows=5)}
    plans = [rm.Plan.of(transport=form, **of).table() for form in forms]
    plans += [PLAN.with_(("transport", form), *of.items()).table() for form in forms]
    assert all(plan == plans[0] for plan in plans)
    assert rm.Plan.of(transport=rm.DcPim, **of).get("transport") == {"name": "dcpim"}
    assert rm.Plan('transport = "dcpim"').get("transport.name") == "dcpim"
    shared = rm.Plan.of(transport=["dcpim", rm.PHost], **of)
    assert [one["name"] for one in shared.transports()] == ["dcpim", "phost"]
    compared = rm.compare(PLAN, [rm.DcPim, "phost"], quiet=True)
    assert compared.labels == ["dcpim", "phost"]
    swept = rm.sweep(PLAN, transports=[rm.DcPim, "phost"], out=tmp_path / "s", quiet=True)
    assert {point.transport for point in swept.points} == {"dcpim", "phost"}


def test_a_saved_plan_is_the_same_plan(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "here/flows.csv").write_text("arrival_us,src,dst,size_bytes\n0,0,1,1000\n")
    trace = {"pattern": "trace", "file": "flows.csv"}
    plan = rm.Plan.of(base=tmp_path / "here", **{**PARTS, "workload": trace})
    plan.save(tmp_path / "here/plan.toml")
    assert (tmp_path / "here/plan.toml").read_text() == plan.text
    plan.save(tmp_path / "there/plan.toml")
    saved = rm.Plan.load(tmp_path / "there/plan.toml")
    assert saved.get("workload.file") == "../here/flows.csv"
    assert saved.check()["seed"] == plan.check()["seed"]


def test_runs_have_their_drops_outages_and_counters(results: Results) -> None:
    assert results.run.drops is None
    assert results.run.outages is None
    assert results.run.transport is not None
    outage = {"link": "h0-s0", "from-us": 1, "until-us": 2}
    failed = run(faults={"outages": [outage]}, workload=rm.imc10(0.5, 200))
    assert failed.outages is not None
    assert failed.outages.num_rows == 2


def test_texts_of_objects_are_short() -> None:
    assert repr(rm.DcPim(r=4)) == "DcPim(r=4)"
    assert repr(rm.leaf_spine()) == "LeafSpine(racks=9, hosts_per_rack=16, spines=4)"
    assert repr(rm.Transport(name="mine")) == "Transport(name='mine')"
    assert repr(PLAN) == "Plan('arguments', 14 lines)"

"""The command `diff`: first differences of two runs, and the distribution of all."""

import json
import shutil
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import rampmeter as rm
from rampmeter import _core
from rampmeter.cli import main
from rampmeter.commands.options import FiniteRange
from rampmeter.plan.manifest import MANIFEST
from rampmeter.results.blame_difference import FLOWS_MIN
from rampmeter.results.comparison_tables import comparison_tables

from .commands import call
from .conftest import SMALL, interrupted

PLAN = (
    SMALL.replace("flows = 200", "flows = 40")
    + """\
[run]
blame = true
timeline = "run.perfetto-trace"
"""
)
INCAST = {"pattern": "incast", "fan": 3, "flow-bytes": 150_000, "rounds": 1}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Returns the folders of runs: twice of one plan, with another key, with another transport."""
    out = tmp_path_factory.mktemp("diff")
    plan = rm.Plan(PLAN)
    plans = {
        "one": plan,
        "same": plan,
        "rounds": plan.with_(("transport.matching-rounds", 2)),
        "homa": plan.with_(("transport", {"name": "homa"})),
        "other": plan.with_(("seed", 2)),
        "plain": plan.with_(("run", {})),
    }
    for name, of in plans.items():
        rm.run(of, out=out / name, quiet=True)
    return {name: out / name for name in plans}


def diff(*arguments: str | Path, code: int = 1) -> str:
    """Returns the output of the command, which exits with a code."""
    done = call("diff", *arguments)
    assert done.exit_code == code, done.output
    return done.stderr if code == 2 else done.stdout


def found(*arguments: str | Path, code: int = 1) -> dict[str, Any]:
    """Returns the object of `--json`."""
    of: dict[str, Any] = json.loads(diff(*arguments, "--json", code=code))
    return of


def test_two_runs_of_one_plan_are_equal(runs: dict[str, Path]) -> None:
    text = diff(runs["one"], runs["same"], code=0)
    assert "Equal: 40 flows with the same times, and the same packets by their timeline." in text
    of = found(runs["one"], runs["same"], code=0)
    assert of["is_equal"]
    assert (of["first_flow"], of["first_packet"], of["keys"]) == (None, None, [])


def test_keys_that_differ_are_listed(runs: dict[str, Path]) -> None:
    of = found(runs["one"], runs["rounds"])
    assert of["keys"] == [{"key": "transport.matching-rounds", "first": 4, "second": 2}]
    keys = {one["key"]: (one["first"], one["second"]) for one in found(*_two(runs, "homa"))["keys"]}
    assert keys["transport.name"] == ("dcpim", "homa")
    assert "fabric.spray" in keys
    assert "transport.matching-rounds" not in keys


def test_the_first_flow_is_the_first_completion_that_differs(runs: dict[str, Path]) -> None:
    of = found(*_two(runs, "rounds"))
    tables = [rm.Run(runs[name]).flows.sort_by("flow").to_pylist() for name in ("one", "rounds")]
    ends = {
        one["flow"]: min(one["arrival_ps"] + one["fct_ps"], two["arrival_ps"] + two["fct_ps"])
        for one, two in zip(*tables, strict=True)
        if one["fct_ps"] != two["fct_ps"]
    }
    first = min(ends, key=lambda flow: ends[flow])
    assert of["first_flow"]["flow"] == first
    assert of["first_flow"]["at_us"] == pytest.approx(ends[first] / 1e6)
    assert of["first_flow"]["fcts_us"] == [table[first]["fct_ps"] / 1e6 for table in tables]
    assert of["flows"]["differing"] == len(ends)
    assert f"flow {first}," in " ".join(diff(*_two(runs, "rounds")).split())


def test_the_first_packet_is_no_later_than_the_first_flow(runs: dict[str, Path]) -> None:
    of = found(*_two(runs, "rounds"))
    packet = of["first_packet"]
    assert packet["source"] == "timeline"
    assert packet["first"] != packet["second"]
    assert packet["at_us"] <= of["first_flow"]["at_us"]
    text = diff(*_two(runs, "rounds"))
    assert "First packet that differs (timeline)" in text
    without = diff(*_two(runs, "plain"), code=0)
    assert "Equal: 40 flows with the same times." in without


def test_captures_are_compared_too(tmp_path: Path) -> None:
    plan = rm.Plan(PLAN).with_(("run", {"capture": "run.pcapng"}), ("workload.flows", 20))
    changed = plan.with_(("transport.matching-rounds", 2))
    for name, of in {"a": plan, "b": plan, "c": changed}.items():
        rm.run(of, out=tmp_path / name, quiet=True)
    assert found(tmp_path / "a", tmp_path / "b", code=0)["packets"] == "capture"
    packet = found(tmp_path / "a", tmp_path / "c")["first_packet"]
    assert packet["source"] == "capture"
    texts = packet["first"], packet["second"]
    assert texts[0] != texts[1]
    bytes_of = [text.rpartition(": ")[2] for text in texts]
    assert bytes_of[0][:2] != bytes_of[1][:2]


def test_the_distribution_counts_each_flow_once(runs: dict[str, Path]) -> None:
    of = found(*_two(runs, "rounds"))
    *sizes, everything = of["tables"]["differences"]
    assert sum(row["flows"] for row in sizes) == everything["flows"] == 40
    assert sum(row["differing"] for row in sizes) == everything["differing"]
    assert everything["p1_us"] <= everything["p50_us"] <= everything["p99_us"]
    causes = of["tables"]["blame_difference"]
    total = next(row for row in causes if (row["size"], row["cause"]) == ("all", "all"))
    parts = [row for row in causes if row["size"] == "all" and row["cause"] != "all"]
    assert sum(row["difference"] for row in parts) == pytest.approx(total["difference"])
    slowdowns = [rm.Run(runs[name]).summary["slowdown"]["delivered"] for name in ("one", "rounds")]
    if slowdowns[0]["overall"]["count"] == slowdowns[1]["overall"]["count"] == total["flows"]:
        means = [one["overall"]["mean"] for one in slowdowns]
        assert total["difference"] == pytest.approx(means[1] - means[0])


def test_text_fits_80_columns(runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = diff(*_two(runs, "homa")).splitlines()[3:]
    assert max(len(line.rstrip()) for line in lines) <= 80


def test_a_recording_is_compared_flow_by_flow(runs: dict[str, Path], tmp_path: Path) -> None:
    names = ["arrival_ps", "src", "dst", "size_bytes", "fct_ps"]
    flows = rm.Run(runs["one"]).flows.sort_by("flow").select(names)
    times = flows["fct_ps"].to_numpy().copy()
    file = tmp_path / "recorded.csv"
    pa_csv.write_csv(flows, file)
    assert "Equal" in diff(runs["one"], file, "--ends-at", "delivered", code=0)
    times[17] += 1000
    changed = flows.set_column(4, "fct_ps", pa.array(times, pa.uint64()))
    pa_csv.write_csv(changed, file)
    of = found(runs["one"], file, "--ends-at", "delivered")
    assert (of["flows"]["differing"], of["first_flow"]["flow"]) == (1, 17)
    assert of["ends_at"] == "delivered"
    diff(runs["one"], file, "--ends-at", "delivered", "--tolerance", "0.01", code=0)
    text = diff(runs["one"], file)
    assert "last acknowledgement" in " ".join(text.split())
    pa_csv.write_csv(changed.rename_columns([*names[:4], "time_ps"]), file)
    renamed = found(runs["one"], file, "--ends-at", "delivered", "--column", "fct_ps=time_ps")
    assert renamed["first_flow"]["flow"] == 17


def test_runs_without_delivered_flows_have_no_times_to_compare(tmp_path: Path) -> None:
    plan = rm.Plan(PLAN).with_(("workload", INCAST), ("run.drain-us", 1))
    rm.run(plan, out=tmp_path / "a", quiet=True)
    done = " ".join(diff(tmp_path / "a", tmp_path / "a", code=0).split())
    assert "No times to compare: neither run delivered any of 3 flows." in done
    assert "The packets of both timelines are the same." in done
    assert "Equal" not in done
    of = found(tmp_path / "a", tmp_path / "a", code=0)
    assert (of["flows"]["common"], of["flows"]["delivered_in_both"]) == (3, 0)


def test_flows_that_neither_run_delivered_are_counted(runs: dict[str, Path]) -> None:
    folder = runs["one"].parent / "cut"
    rm.run(rm.Plan(PLAN).with_(("run.drain-us", 1)), out=folder, quiet=True)
    n = rm.Run(folder).summary["flows"]["unfinished"]
    assert n > 0
    done = diff(folder, folder, code=0)
    assert f"Equal: {40 - n} flows with the same times" in done
    assert f"Neither run delivered the other {n} flow" in done


def test_interrupted_runs_have_a_warning(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = interrupted(runs["one"], tmp_path / "partial")
    done = call("diff", runs["one"], folder)
    assert (
        done.stderr
        == f"warning: {folder}: the run was interrupted; flows of its plan are missing\n"
    )
    of = found(runs["one"], folder, code=0)
    assert of["statuses"] == ["finished", "interrupted"]


def test_folders_of_seeds_name_a_run_in_them(tmp_path: Path) -> None:
    out = tmp_path / "compared"
    plan = rm.Plan(PLAN).with_(("run", {"blame": True}), ("workload.flows", 10))
    rm.compare(plan, "dcpim,homa", seeds=2, out=out, quiet=True).save(out)
    first, second = out / "dcpim", out / "homa"
    name = f"such as {first / 'seed-1'}, got"
    commands: dict[str, list[Path | str]] = {
        "why": [first],
        "diff": [first, second],
        "plot": [first, "--kind", "blame"],
        "animate": [first],
        "export": [first, "--out", tmp_path / "tables.csv"],
    }
    for command, arguments in commands.items():
        done = call(command, *arguments)
        assert done.exit_code == 2
        assert name in done.stderr, command
    assert name in call("plot", first, second).stderr
    assert f"{name} a comparison" in diff(out, second, code=2)


def test_sizes_without_an_interval_have_a_reason(runs: dict[str, Path], tmp_path: Path) -> None:
    text = " ".join(diff(*_two(runs, "rounds")).split())
    assert "Sizes with fewer than 100 flows have no interval" in text
    out = tmp_path / "compared"
    plan = rm.Plan(PLAN).with_(("run", {"blame": True}), ("workload.flows", 60))
    several = rm.compare(plan, "dcpim,homa", seeds=2, out=out, quiet=True)
    (table,) = [
        one
        for one in comparison_tables(several)
        if one.name == "blame_difference" and one.is_for_readers
    ]
    few = [
        one.count and one.total.ci is None
        for by_size in several.blame_differences().values()
        for one in by_size
    ]
    has_reason = "Sizes with flows in a single seed have no interval." in table.notes
    assert has_reason == any(few)


@pytest.mark.parametrize(("n", "has_interval"), [(FLOWS_MIN - 1, False), (FLOWS_MIN, True)])
def test_intervals_need_the_stated_number_of_flows(n: int, *, has_interval: bool) -> None:
    values = np.random.default_rng(1).random(n)
    found = _core.statistics(values.tobytes(), True)
    assert found is not None
    assert ("mean_ci" in found) == has_interval


def test_bad_input_is_an_error(runs: dict[str, Path], tmp_path: Path) -> None:
    assert "expected the flows of" in diff(*_two(runs, "other"), code=2)
    assert "expected the folder of a run, got no folder" in diff(
        runs["one"], tmp_path / "nothing", code=2
    )
    assert "a recording is B" in diff(tmp_path / "a.csv", runs["one"], code=2)
    assert "expected a recording" in diff(*_two(runs, "homa"), "--ends-at", "acked", code=2)
    (tmp_path / "comparison.json").write_text("{}")
    assert "got a comparison" in diff(tmp_path, runs["one"], code=2)


def test_ranges_of_options_do_not_contain_nan(runs: dict[str, Path]) -> None:
    for number in ("nan", "inf"):
        done = call("diff", *_two(runs, "rounds"), f"--tolerance={number}")
        assert (done.exit_code, "rampmeter: --tolerance: " in done.stderr) == (2, True)
    context = click.Context(main)
    commands = [main.get_command(context, name) for name in main.list_commands(context)]
    ranges = [
        parameter.type
        for command in commands
        if command is not None
        for parameter in command.params
        if isinstance(parameter.type, click.FloatRange)
    ]
    assert len(ranges) >= 6
    assert all(isinstance(one, FiniteRange) for one in ranges)


def _two(runs: dict[str, Path], name: str) -> tuple[Path, Path]:
    return runs["one"], runs[name]


def test_plans_of_earlier_versions_are_migrated_before_they_are_compared(
    runs: dict[str, Path], here: Path
) -> None:
    old = Path(shutil.copytree(runs["same"], here / "old"))
    manifest = json.loads((old / MANIFEST).read_text())
    # These keys had other names.
    table = manifest["plan"]["run"]
    table["trace"], table["trace-from-us"] = table.pop("timeline"), table.pop("timeline-from-us")
    (old / MANIFEST).write_text(json.dumps(manifest))
    for first, second, which in ((old, runs["one"], "A"), (runs["one"], old, "B")):
        text = " ".join(diff(first, second, code=0).split())
        assert f"The plan of {which} is of an earlier version and was migrated: trace" in text
        assert "timeline-from-us" in text
        made = found(first, second, code=0)
        assert made["keys"] == []
        assert [len(one) for one in made["migrated"]] == ([2, 0] if which == "A" else [0, 2])
    assert found(runs["one"], runs["same"], code=0)["migrated"] == [[], []]

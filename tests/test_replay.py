"""Replays: recordings from files, differences from them, and listed ones in the ledger."""

import csv
import gzip
import io
import json
import os
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

import rampmeter as rm
from rampmeter.papers.replays import ReplayLedger
from rampmeter.replays.recording import digest_of

from . import commands, recorded
from .conftest import ROOT, SMALL

PAPERS = ROOT / "papers"
REFERENCE = os.environ.get("RAMPMETER_REFERENCE")
"""The folder of recordings; commands of tests do not see the variable."""
NETWORK = SMALL.partition("[workload]")[0]
COLUMNS = ("flow", "arrival_ps", "src", "dst", "size_bytes")
CHANGED = 77
"""The flow whose recorded time tests change."""
Rows: TypeAlias = list[dict[str, Any]]


@pytest.fixture
def rows(small_run: rm.Run) -> Rows:
    """Returns the flows of the small run as another simulator would have recorded them."""
    return [
        {name: row[name] for name in COLUMNS}
        | {"fct_ps": row["acked_ps"], "ideal_ps": row["acked_ideal_ps"]}
        for row in small_run.flows.sort_by("flow").to_pylist()
    ]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder with the network of the small run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAMPMETER_REFERENCE", raising=False)
    Path("network.toml").write_text(NETWORK)
    return tmp_path


def record(rows: Rows, name: str = "flows.csv") -> Path:
    file = Path(name)
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
        return file
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]))
    table.writeheader()
    table.writerows(rows)
    content = text.getvalue().encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file


def call(*arguments: object) -> Result:
    return commands.call("replay", *arguments)


def ok(*arguments: object) -> str:
    return commands.ok("replay", "--quiet", *arguments).stdout


def replayed(file: Path, *arguments: object) -> dict[str, Any]:
    text = ok(file, "--plan", "network.toml", "--out", "out", "--force", "--json", *arguments)
    table: dict[str, Any] = json.loads(text)
    return table


def error_line(*arguments: object) -> str:
    return commands.error_line("replay", "--quiet", *arguments)


@pytest.mark.parametrize("name", ["flows.csv", "flows.csv.gz", "flows.parquet"])
def test_a_replay_of_our_own_run_differs_in_nothing(rows: Rows, name: str) -> None:
    found = replayed(record(rows, name))
    assert found["ratios"]["mean"] == found["ratios"]["p50"] == found["ratios"]["p99"] == 1.0
    assert found["ratios"]["flows"] == sum(found["ratios"]["class-flows"]) == len(rows)
    assert {ratio for ratio in found["ratios"]["classes"] if ratio is not None} == {1.0}
    assert found["equal"] == found["equal-ideals"] == len(rows)
    assert not found["furthest-flows"] + found["first-flows"] + found["unfinished"]
    assert (found["ends-at"], found["ideal"]) == ("acked", "recorded")


@pytest.mark.parametrize("name", ["flows.csv", "flows.parquet"])
def test_cells_of_a_recording_may_have_units(rows: Rows, name: str) -> None:
    for row in rows:
        row["arrival_ms"] = f"{row.pop('arrival_ps')}ps"
        row["size_bytes"] = f"{row['size_bytes'] / 1000} kB"
        row["fct_us"] = f"{row.pop('fct_ps') / 1000}ns"
    found = replayed(record(rows, name))
    assert found["equal"] == len(rows)
    rows[CHANGED]["fct_us"] = "5 MB"
    assert "fct_us: expected a number above 0, or an empty cell, got 5 MB" in error_line(
        record(rows, name), "--plan", "network.toml"
    )


def test_a_flow_with_a_changed_recorded_time_is_named(rows: Rows) -> None:
    rows[CHANGED]["fct_ps"] *= 2
    file = record(rows)
    found = replayed(file)
    for table in ("furthest-flows", "first-flows"):
        [flow] = found[table]
        assert flow["flow"] == CHANGED
        assert flow["ratio"] == 0.5
        assert flow["theirs_ps"] == 2 * flow["ours_ps"] == rows[CHANGED]["fct_ps"]
        assert (flow["src"], flow["dst"]) == tuple(f"h{rows[CHANGED][of]}" for of in ("src", "dst"))
    assert found["equal"] == found["within"] == len(rows) - 1
    assert found["ratios"]["mean"] < 1.0
    assert found.pop("schema") == "rampmeter.replay/1"
    assert {"ratios", "furthest_flows"} <= found.pop("tables").keys()
    assert json.loads(Path("out/replay.json").read_text()) == found
    assert rm.Run("out/run").status == "finished"
    out = ok(file, "--plan", "network.toml", "--out", "out")
    assert "Flows that differ most" in out
    assert "First flows that differ by more than 1 %" in out
    assert f"\n {CHANGED} " in out
    assert "not used" not in out


def test_small_early_and_large_late_differences_are_distinguished(rows: Rows) -> None:
    for flow, factor in ((10, 1.001), (20, 1.1), (150, 3.0)):
        rows[flow]["fct_ps"] = round(rows[flow]["fct_ps"] * factor)
    found = replayed(record(rows), "--flows", 1)
    assert [flow["flow"] for flow in found["furthest-flows"]] == [150]
    assert [flow["flow"] for flow in found["first-flows"]] == [20]
    assert found["within"] == len(rows) - 2
    found = replayed(record(rows), "--flows", 1, "--tolerance", 0.0001)
    assert [flow["flow"] for flow in found["first-flows"]] == [10]


def test_ratios_by_class_are_those_of_mean_slowdowns(rows: Rows) -> None:
    for row in rows:
        if row["size_bytes"] <= 1460:
            row["fct_ps"] *= 4
    ratios = replayed(record(rows))["ratios"]
    assert ratios["classes"][0] == 0.25
    assert {ratio for ratio in ratios["classes"][1:] if ratio is not None} == {1.0}


def test_columns_determine_the_end_of_times(rows: Rows, small_run: rm.Run) -> None:
    ours = small_run.flows.sort_by("flow")
    delivered = [
        row | {"delivered_ps": time}
        for row, time in zip(rows, ours["fct_ps"].to_pylist(), strict=True)
    ]
    found = replayed(record(delivered))
    assert (found["ends-at"], found["recorded-time"]) == ("delivered", "delivered")
    assert found["equal"] == len(rows)
    found = replayed(record(delivered), "--ends-at", "acked")
    assert (found["recorded-time"], found["equal"]) == ("fct", len(rows))
    results = small_run.path / "flows.parquet"
    for end in ("acked", "delivered"):
        assert replayed(results, "--ends-at", end)["equal"] == len(rows)


def test_own_ideals_and_times_alone(rows: Rows) -> None:
    for row in rows:
        row["ideal_ps"] *= 2
    file = record(rows)
    assert replayed(file)["ratios"]["mean"] == 1.0
    assert replayed(file, "--ideal", "none")["ratios"]["mean"] == 1.0
    found = replayed(file, "--ideal", "own")
    assert found["ratios"]["mean"] == 2.0
    assert (found["our-ideal-over-recorded"], found["equal-ideals"]) == (0.5, 0)
    for row in rows:
        del row["ideal_ps"]
    file = record(rows)
    assert replayed(file)["ideal"] == "none"
    assert "expected a column ideal_ps for --ideal own" in error_line(
        file, "--plan", "network.toml", "--ideal", "own"
    )


def test_columns_of_other_names_and_units(rows: Rows) -> None:
    named = [
        {
            "begin": row["arrival_ps"] / 1e6,
            "from": row["src"],
            "to": row["dst"],
            "bytes": row["size_bytes"],
            "took": row["fct_ps"] / 1e6,
            "note": "x",
        }
        for row in rows
    ]
    file = record(named)
    names = {
        "arrival_us": "begin", "src": "from", "dst": "to", "size_bytes": "bytes", "fct_us": "took"
    }  # fmt: skip
    columns = [text for name, of in names.items() for text in ("--column", f"{name}={of}")]
    assert replayed(file, *columns)["within"] == len(rows)
    # Columns of the flows may be those of a plan; other units need no mapping.
    mapping = ", ".join(f'{name} = "{of}"' for name, of in names.items() if name != "fct_us")
    trace = f'[workload]\npattern = "trace"\nfile = "none.csv"\ncolumns = {{ {mapping} }}\n'
    Path("network.toml").write_text(NETWORK + trace)
    assert replayed(file, "--column", "fct_us=took")["within"] == len(rows)
    Path("network.toml").write_text(NETWORK)
    in_us = [
        {name: row[name] for name in COLUMNS} | {"fct_us": row["fct_ps"] / 1e6} for row in rows
    ]
    assert replayed(record(in_us))["within"] == len(rows)


def test_flows_out_of_order_are_matched_by_arrival(rows: Rows) -> None:
    rows[CHANGED]["fct_ps"] *= 2
    for row in rows:
        del row["flow"]
    file = record(rows[::-1])
    assert "expected at least" in error_line(file, "--plan", "network.toml")
    found = replayed(file, "--set", "workload.sort=true")
    assert [flow["flow"] for flow in found["furthest-flows"]] == [CHANGED]
    assert found["equal"] == len(rows) - 1


def test_flows_without_an_end_are_listed_and_omitted(rows: Rows) -> None:
    rows[CHANGED]["fct_ps"] = ""
    done = call(
        record(rows), "--set", "topology.kind=star", "--set", "topology.hosts=8",
        "--set", "transport.name=dcpim", "--set", "run.drain-us=0", "--json", "--out", "out",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "flows.csv: finished" in done.stderr
    found = json.loads(done.stdout)
    assert found["unfinished"]
    assert {flow["ours_ps"] for flow in found["unfinished"]} == {None}
    assert found["unrecorded"] == 1
    assert found["ratios"]["flows"] == len(rows) - 1 - len(found["unfinished"])
    late = replayed(record(rows), "--from-us", rows[100]["arrival_ps"] / 1e6)
    none = error_line(record(rows), "--plan", "network.toml", "--from-us", 1e12)
    assert "--from-us: expected a time at or before the last arrival, got" in none
    assert late["ratios"]["flows"] == 100
    assert "Flows without an end in our run" in ok(
        "flows.csv", "--plan", "network.toml", "--set", "run.drain-us=0", "--out", "short"
    )


def test_hosts_have_the_names_of_the_plan(rows: Rows) -> None:
    rows[CHANGED]["fct_ps"] *= 2
    hosts = [f"gpu-{n}" for n in range(8)]
    links = [{"between": [host, "tor"], "gbps": 100} for host in hosts]
    topology: Any = {"kind": "links", "hosts": hosts, "switches": ["tor"], "links": links}
    plan = rm.Plan.of(topology=topology, transport={"name": "dcpim"})
    Path("network.toml").write_text(plan.text)
    [*flows] = replayed(record(rows), "--flows", 1)["furthest-flows"]
    assert flows[0]["src"] == f"gpu-{rows[flows[0]['flow']]['src']}"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"fct_ps": "soon"},
            "flows.csv: line 79: fct_ps: expected a number above 0, or an empty cell",
        ),
        (
            {"fct_ps": 0},
            "flows.csv: line 79: fct_ps: expected a number above 0, or an empty cell, got 0",
        ),
        ({"ideal_ps": "inf"}, "flows.csv: line 79: ideal_ps: expected a number above 0"),
        (
            {"arrival_ps": "-3"},
            "flows.csv: line 79: arrival_ps: expected a number of at least 0, got -3",
        ),
        ({"src": 99}, ": src: expected a host below 8, got 99"),
    ],
)
def test_a_bad_cell_is_named_with_its_row_and_column(
    rows: Rows, change: dict[str, object], expected: str
) -> None:
    rows[CHANGED] |= change
    assert expected in error_line(record(rows), "--plan", "network.toml")


def test_errors_name_the_file_and_the_expectation(rows: Rows, here: Path) -> None:
    def of(name: str, content: bytes, *arguments: object) -> str:
        Path(name).write_bytes(content)
        return error_line(name, "--plan", "network.toml", *arguments)

    header = b"arrival_ps,src,dst,size_bytes"
    no_time = "a.csv: expected a recorded time, such as fct_ps or delivered_ps, got arrival_ps, src"
    assert no_time in of("a.csv", header + b"\n0,0,1,9\n")
    assert "a.csv: line 2: fct_ps: expected 5 cells, got 4" in of(
        "a.csv", header + b",fct_ps\n0,0,1,9\n"
    )
    assert "a.txt: expected a name that ends in .csv, .csv.gz, .parquet" in of("a.txt", b"")
    assert "a.csv.gz: " in of("a.csv.gz", b"no gzip")
    assert "a.parquet: expected a table of flows" in of("a.parquet", b"no Parquet")
    assert "expected a column took for fct_us" in of(
        "a.csv", header + b",fct_ps\n", "--column", "fct_us=took"
    )
    assert "--column: expected name=column, got x" in of("a.csv", header, "--column", "x")
    only_acked = header + b",acked_ps\n0,0,1,9,9\n"
    assert "expected a column delivered_ps or fct_ps for --ends-at delivered" in of(
        "a.csv", only_acked, "--ends-at", "delivered"
    )
    file = record(rows)
    assert "--plan: expected a plan, or keys by --set, got none" in error_line(file)
    assert "expected a file or one of " in error_line("none.csv")
    assert "expected a file, the name of a listed recording, or --all" in error_line()
    assert "--record: expected the name of a listed recording" in error_line(file, "--record")


@pytest.fixture
def papers(rows: Rows, here: Path) -> Path:
    """Returns a folder `papers` with one listed replay, whose recording is in `recordings`."""
    folder = here / "papers" / "replays" / "own"
    folder.mkdir(parents=True)
    shutil.copy(recorded.FILE, here / "papers")
    figure = here / "papers" / "test" / "fig1"
    shutil.copytree(PAPERS / "phost" / "fig3", figure)
    (here / "recordings").mkdir()
    file = record(rows, "recordings/own.csv.gz")
    (folder / "network.toml").write_text(NETWORK)
    (folder / "replay.toml").write_text(
        'title = "Ours"\nsimulator = "this one"\nrecording = "own.csv.gz"\n'
        f'sha256 = "{digest_of(file)}"\nends-at = "acked"\nideal = "own"\n'
    )
    return here / "papers"


def verdict(papers: Path) -> str:
    [state] = ReplayLedger(papers).states()
    return state.verdict


def test_a_listed_replay_is_entered_and_judged(papers: Path) -> None:
    assert verdict(papers) == "not run"
    assert "1.0000" in ok("own", "--reference", "recordings")
    assert verdict(papers) == "not run"
    ok("own", "--reference", "recordings", "--record")
    assert verdict(papers) == "match"
    entry = json.loads((papers / "ledger" / "replays" / "own.json").read_text())
    assert entry["ratios"]["mean"] == 1.0
    assert (entry["replay"], entry["unfinished"], entry["unrecorded"]) == ("own", 0, 0)
    table = json.loads(ok("--all", "--reference", "recordings", "--json"))
    assert table["replays"] == [{"name": "own", "ratios": entry["ratios"], "entry": entry}]
    assert "own " in ok("--all", "--reference", "recordings")


def test_the_status_of_papers_has_replays(papers: Path) -> None:
    ok("own", "--reference", "recordings", "--record")

    def status(*arguments: str) -> str:
        return commands.ok("papers", *arguments).stdout

    assert "Replays: simulated over recorded" in status("--status")
    *_, item = json.loads(status("--json"))["figures"]
    assert (item["paper"], item["figure"]) == ("replays", "own")
    assert item["verdicts"] == {"match": 1}
    assert item["replay"]["ratios"]["mean"] == 1.0
    assert "Replays" not in status("test", "--status")


def _set_plan(papers: Path) -> None:
    (papers / "replays" / "own" / "network.toml").write_text(NETWORK.replace("= 8", "= 9"))


def _set_ideal(papers: Path) -> None:
    file = papers / "replays" / "own" / "replay.toml"
    file.write_text(file.read_text().replace('"own"', '"recorded"'))


def _set_recording(papers: Path) -> None:
    file = papers / "replays" / "own" / "replay.toml"
    digest = tomllib.loads(file.read_text())["sha256"]
    file.write_text(file.read_text().replace(digest, "0" * 64))


def _set_results(papers: Path) -> None:
    file = papers / recorded.FILE.name
    results = json.loads(file.read_text())
    results["dcpim"]["paper"]["uniform"] = "0" * 16
    file.write_text(json.dumps(results))


@pytest.mark.parametrize("change", [_set_plan, _set_ideal, _set_recording, _set_results])
def test_an_entry_is_stale_if_its_dependencies_have_changed(
    papers: Path, change: Callable[[Path], None]
) -> None:
    ok("own", "--reference", "recordings", "--record")
    assert verdict(papers) == "match"
    change(papers)
    assert verdict(papers) == "stale"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"mean": 1.009}, "match"),
        ({"mean": 1.011}, "miss"),
        ({"mean": None}, "miss"),
        ({"furthest": 0.971}, "match"),
        ({"furthest": 0.969}, "miss"),
        ({"furthest": None}, "match"),
    ],
)
def test_verdicts_are_of_the_mean_and_the_furthest_class(
    papers: Path, change: dict[str, float | None], expected: str
) -> None:
    ok("own", "--reference", "recordings", "--record")
    file = papers / "ledger" / "replays" / "own.json"
    entry = json.loads(file.read_text())
    entry["ratios"] |= change
    file.write_text(json.dumps(entry))
    assert verdict(papers) == expected
    file.write_text(json.dumps(entry | {"unfinished": 1}))
    assert verdict(papers) == "miss"


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"ratios": 3}', '{"ratios": {"classes": [], "class-flows": []}}']
)
def test_a_damaged_entry_is_an_error_with_its_file(papers: Path, text: str) -> None:
    file = papers / "ledger" / "replays" / "own.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert "own.json: expected" in commands.error_line("papers", "--status")


def test_errors_of_listed_recordings(papers: Path) -> None:
    assert "--reference: expected the folder of recordings" in error_line("own")
    assert "--reference: expected a folder, got none" in error_line("own", "--reference", "none")
    known = ("own", "--reference", "recordings")
    assert "--ideal: expected a recording that is a file" in error_line(*known, "--ideal", "own")
    changed = error_line(*known, "--record", "--set", "transport.name=ndp")
    assert "--set: expected a recording that is a file, got the listed recording own" in changed
    assert "--all: expected no recording, got own" in error_line(*known, "--all")
    assert "expected a file or one of own, got other" in error_line("other", *known[1:])
    file = Path("recordings/own.csv.gz")
    file.write_bytes(file.read_bytes() + b"\0")
    assert "own.csv.gz: expected the recording of own with the SHA-256" in error_line(*known)
    file.unlink()
    assert "expected the recording of own, got no such file" in error_line(*known)
    settings = papers / "replays" / "own" / "replay.toml"
    settings.write_text(settings.read_text() + "more = 1\n")
    assert "replay.toml: more: unknown key" in error_line(*known)


def test_every_listed_recording_has_a_plan_that_can_run_and_an_entry() -> None:
    states = ReplayLedger(PAPERS).states()
    assert {state.setup.name: state.verdict for state in states if state.entry is None} == {}
    for state in states:
        assert state.entry is not None
        assert state.entry.replay == state.setup.name
        assert state.verdict in (state.entry.verdict, "stale")


def test_the_clos_of_opera_has_its_racks_pods_and_core() -> None:
    table = tomllib.loads((PAPERS / "replays" / "opera-clos.toml").read_text(encoding="utf-8"))
    links = {(*link["between"], link["propagation-ns"]) for link in table["links"]}
    expected = {(f"h{host}", f"s{host // 9}", 0) for host in range(648)}
    for rack in range(72):
        expected |= {(f"s{rack}", f"s{72 + rack // 6 * 3 + agg}", 500) for agg in range(3)}
    for pod in range(12):
        for agg in range(3):
            upper = f"s{72 + pod * 3 + agg}"
            expected |= {(upper, f"s{108 + 6 * agg + core}", 500) for core in range(6)}
    assert links == expected
    assert len(table["links"]) == len(expected)
    assert {link["gbps"] for link in table["links"]} == {10}
    assert (table["hosts"], table["switches"], table["switch-ns"]) == (648, 126, 0)


def test_a_listed_replay_reproduces_its_entry() -> None:
    """The cheapest one; `rampmeter replay --all` measures all."""
    if REFERENCE is None:
        pytest.skip("RAMPMETER_REFERENCE names no folder")
    known = ReplayLedger(PAPERS).find("tcp")
    assert known is not None
    entry = ReplayLedger(PAPERS).entry(known)
    assert entry is not None
    found = json.loads(ok("tcp", "--reference", REFERENCE, "--json", "--out", "out"))
    assert found["ratios"] == entry.ratios.to_json()

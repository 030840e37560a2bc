"""Sweeps on this machine: runs, stored results, the dataset, means with intervals, the command."""

import json
import math
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from click.testing import Result

import rampmeter as rm
from rampmeter import _core
from rampmeter.analysis.confidence import interval
from rampmeter.sweeps import estimate as estimates
from rampmeter.sweeps.dataset import Dataset
from rampmeter.sweeps.drive import seeds_of
from rampmeter.sweeps.engines import open_engine
from rampmeter.sweeps.spec import Replication
from rampmeter.sweeps.table import sweep_of
from rampmeter.sweeps.task import Packer, Task, TaskResult, execute

from . import commands
from .conftest import SMALL

LOAD = "workload.load"
TABLE = """\
[sweep]
seeds = 2
transports = ["dcpim", "pfabric:window-initial=60"]
[sweep.grid]
workload.load = [0.3, 0.6]
workload.sizes = ["imc10", { fixed = 1460 }]
"""


@pytest.fixture(autouse=True)
def plan_is_here(here: Path) -> None:
    (here / "plan.toml").write_text(SMALL.replace("flows = 200", "flows = 120") + TABLE)


def call(*arguments: object) -> Result:
    return commands.call("sweep", *arguments)


def ok(*arguments: object) -> Result:
    return commands.ok("sweep", *arguments)


def error_line(*arguments: object) -> str:
    return commands.error_line("sweep", *arguments)


def rows_of(results: rm.SweepResults) -> list[Mapping[str, Any]]:
    """Returns the rows of all runs, with their summaries."""
    return [row for point in results.points for row in point.rows]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> rm.SweepResults:
    """Returns the sweep of the table, with flows."""
    plan = rm.Plan(SMALL.replace("flows = 200", "flows = 120") + TABLE)
    out = tmp_path_factory.mktemp("sweep") / "out"
    return rm.sweep(plan, out=out, flows=True, quiet=True)


class TestDataset:
    def test_a_run_is_a_row_of_its_summary(self, done: rm.SweepResults) -> None:
        assert done.table.num_rows == 2 * 2 * 2 * 2
        for row in rows_of(done):
            summary = json.loads(row["summary"])
            assert row["flows_submitted"] == summary["flows"]["submitted"] == 120
            overall = summary["slowdown"]["delivered"]["overall"]
            assert row["slowdown_mean"] == overall["mean"]
            assert row["slowdown_p99"] == overall["p99"]
            assert row["status"] == summary["status"]
            assert row["utilisation"] == summary["utilisation"]
        assert {row["workload.sizes"] for row in done.table.to_pylist()} == {
            "imc10",
            "{ fixed = 1460 }",
        }

    def test_a_row_is_the_run_of_its_plan(self, done: rm.SweepResults, tmp_path: Path) -> None:
        row = rows_of(done)[-1]
        assert (row["transport"], row["seed"], row[LOAD]) == ("pfabric:window-initial=60", 2, 0.6)
        plan = rm.Plan.load("plan.toml").with_(
            ("transport", {"name": "pfabric", "window-initial": 60}),
            (LOAD, row[LOAD]),
            ("workload.sizes", {"fixed": 1460}),
        )
        run = rm.run(plan, seed=2, out=tmp_path / "run", quiet=True)
        assert json.loads(row["summary"]) == run.summary
        flows = done.flows.filter(done.flows["point"].to_numpy() == row["point"])
        flows = flows.filter(flows["seed"].to_numpy() == 2)
        assert flows.select(run.flows.column_names).to_pylist() == run.flows.to_pylist()

    def test_three_readers_see_one_table(self, done: rm.SweepResults) -> None:
        expected = (
            Dataset(done.url).table().sort_by([("point", "ascending"), ("seed", "ascending")])
        )
        files = f"{done.url}/runs/**/*.parquet"
        query = f"SELECT * FROM '{files}' ORDER BY point, seed"
        assert duckdb.sql(query).to_arrow_table().to_pylist() == expected.to_pylist()
        by_polars = pl.scan_parquet(files).sort("point", "seed").collect()
        assert by_polars.to_dicts() == expected.to_pylist()
        by_pandas = pd.read_parquet(f"{done.url}/runs").sort_values(["point", "seed"])
        assert by_pandas[LOAD].tolist() == expected[LOAD].to_pylist()
        assert by_pandas["slowdown_mean"].tolist() == expected["slowdown_mean"].to_pylist()
        mean = duckdb.sql(
            f"SELECT \"{LOAD}\", avg(slowdown_mean) FROM '{files}' GROUP BY ALL ORDER BY 1"
        ).fetchall()
        assert [load for load, _ in mean] == [0.3, 0.6]
        n_flows = pl.scan_parquet(f"{done.url}/flows/**/*.parquet").select(pl.len()).collect()
        assert n_flows.item() == 16 * 120

    def test_all_files_have_one_schema_with_meanings(self, done: rm.SweepResults) -> None:
        files = sorted(Path(done.url, "runs").rglob("*.parquet"))
        schemas = [pq.read_schema(file) for file in files]
        assert all(schema.equals(schemas[0], check_metadata=True) for schema in schemas)
        for field in schemas[0]:
            assert field.metadata is not None
            assert field.metadata[b"meaning"], field.name
        assert (schemas[0].field("goodput_gbps").metadata or {})[b"unit"] == b"Gbit/s"

    def test_times_and_places_are_only_in_the_log(self, done: rm.SweepResults) -> None:
        again = Path(done.url).parent / "again"
        rm.sweep(rm.Plan.load("plan.toml"), out=again, flows=True, quiet=True, jobs=1)
        for file in (f for f in again.rglob("*") if f.is_file()):
            name = file.relative_to(again)
            if name.parts[0] != "log":
                assert file.read_bytes() == (Path(done.url) / name).read_bytes(), name
        assert len(list(again.glob("log/*.json"))) == 1

    def test_a_url_is_equivalent_to_a_folder(self, done: rm.SweepResults) -> None:
        url = "memory://bucket/sweep"
        results = rm.sweep(rm.Plan.load("plan.toml"), out=url, flows=True, quiet=True)
        assert results.table.equals(done.table)
        assert results.flows.equals(done.flows)
        files = fsspec.filesystem("memory").find("/bucket/sweep/runs")
        assert len(files) == 16
        assert "16 runs stored, 0 to run" in ok("plan.toml", "--out", url).stderr

    def test_files_that_are_not_of_a_sweep_are_not_changed(self) -> None:
        Path("here").mkdir()
        Path("here/notes.txt").write_text("mine")
        line = error_line("plan.toml", "--out", "here")
        assert "here: expected an empty folder or the results of this sweep, got other" in line
        ok("plan.toml", "--out", "here", "--force", "--quiet")
        assert Path("here/notes.txt").read_text() == "mine"


class TestContinuation:
    def test_missing_runs_are_the_only_ones_run(self) -> None:
        ok("plan.toml", "--out", "here", "--quiet")
        before = {f: f.read_bytes() for f in Path("here/runs").rglob("*.parquet")}
        assert len(before) == 16
        gone = sorted(before)[3]
        gone.unlink()
        result = ok("plan.toml", "--out", "here", "--no-estimate")
        assert "15 runs stored, 1 to run" in result.stderr
        assert {f: f.read_bytes() for f in Path("here/runs").rglob("*.parquet")} == before

    def test_more_seeds_are_added_to_existing_ones(self) -> None:
        ok("plan.toml", "--out", "here", "--quiet")
        result = ok("plan.toml", "--out", "here", "--seeds", 3, "--no-estimate")
        assert "16 runs stored, 8 to run" in result.stderr
        assert set(rm.SweepResults("here").table["seed"].to_pylist()) == {1, 2, 3}

    def test_flows_requested_later_are_added(self) -> None:
        ok("plan.toml", "--out", "here", "--quiet")
        ok("plan.toml", "--out", "here", "--quiet", "--flows")
        assert rm.SweepResults("here").flows.num_rows == 16 * 120

    @pytest.mark.parametrize(
        ("options", "differing"),
        [
            (["--set", "workload.flows=100"], "plan, points|plan"),
            (["--vary", "workload.load=0.4"], "keys, points"),
            (["--transports", "phost"], "transports, points"),
        ],
    )
    def test_another_sweep_in_the_folder_is_an_error(
        self, options: list[str], differing: str
    ) -> None:
        ok("plan.toml", "--out", "here", "--quiet")
        line = error_line("plan.toml", "--out", "here", *options)
        assert "here: expected the results of this sweep, got those of another" in line
        assert any(f"({some} differ)" in line for some in differing.split("|"))
        ok("plan.toml", "--out", "here", "--force", "--quiet", *options)
        error_line("plan.toml", "--out", "here")

    def test_another_simulator_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ok("plan.toml", "--out", "here", "--quiet")
        monkeypatch.setattr(_core, "COMMIT", "other")
        assert "(commit differ)" in error_line("plan.toml", "--out", "here")

    def test_shards_together_equal_one_driver(self, done: rm.SweepResults) -> None:
        for i in (1, 2, 3):
            ok("plan.toml", "--out", "here", "--quiet", "--shard", f"{i}/3")
        assert rm.SweepResults("here").table.equals(done.table)
        name = "summary.parquet"
        assert Path("here", name).read_bytes() == Path(done.url, name).read_bytes()

    @pytest.mark.parametrize(
        ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"]
    )
    def test_signals_store_finished_runs(self, number: signal.Signals, code: int) -> None:
        command = [sys.executable, "-m", "rampmeter.cli", "sweep", "plan.toml", "--out", "here"]
        command += ["--no-estimate", "--set", "workload.flows=3000", "--seeds", "30"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            deadline = time.monotonic() + 60
            while len(Dataset("here").done()) < 3 and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
        assert process.returncode == code
        n_done = len(Dataset("here").done())
        assert 3 <= n_done < 240
        assert f"interrupted: {n_done} runs stored, {240 - n_done} open; the same" in errors
        assert rm.SweepResults("here").table.num_rows == n_done


class TestTasks:
    def task(self, plan: rm.Plan) -> tuple[Task, list[bytes]]:
        sweep = sweep_of(plan.with_(("sweep.seeds", 2)))
        packer = Packer(wants_flows=True)
        task = packer.pack(sweep.points[0], 1)
        return task, [packer.blobs[digest] for digest in task.digests]

    def test_input_files_are_sent_with_the_task(self, tmp_path: Path) -> None:
        folder = tmp_path / "inputs"
        folder.mkdir()
        (folder / "net.toml").write_text('kind = "star"\nhosts = 4\n')
        (folder / "sizes.txt").write_text("100 0.5\n1460 1.0\n")
        (folder / "flows.csv").write_text("arrival_us,src,dst,size_bytes\n0,0,1,100\n1,1,2,200\n")
        text = """
            topology = { kind = "file", file = "net.toml" }
            transport = { name = "dcpim" }
            [workload]
            pattern = "mix"
            parts = [
                { pattern = "trace", file = "flows.csv" },
                { pattern = "all-to-all", sizes = { cdf = "sizes.txt" }, load = 0.1, flows = 5 },
            ]
        """
        task, blobs = self.task(rm.Plan(text, folder))
        assert len(blobs) == 3
        assert str(folder) not in task.plan
        for file in folder.iterdir():
            file.unlink()
        result = execute(task, blobs)
        assert (result.state, result.error) == ("ran", "")
        assert json.loads(result.summary)["flows"]["submitted"] == 7

    def test_a_worker_with_another_simulator_refuses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        task, blobs = self.task(rm.Plan(SMALL))
        monkeypatch.setattr(_core, "COMMIT", "0123456789abcdef")
        result = execute(task, blobs)
        assert result.state == "other-simulator"
        assert "expected the driver's simulator, commit " in result.error
        assert "got 0123456789ab" in result.error

    def test_a_worker_with_another_simulator_ends_the_sweep(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(task: Task, *_: object) -> TaskResult:
            return TaskResult(task.point, task.seed, "other-simulator", error="host: got 0.1.0")

        monkeypatch.setattr("rampmeter.sweeps.engines.local.execute", refuse)
        assert "host: got 0.1.0" in error_line("plan.toml", "--out", "here", "--no-estimate")

    def test_errors_of_a_run_are_results(self) -> None:
        task, blobs = self.task(rm.Plan(SMALL).with_(("workload.load", -1)))
        result = execute(task, blobs)
        assert result.state == "failed"
        assert "load" in result.error

    def test_a_run_that_is_stopped_is_no_result(self) -> None:
        task, blobs = self.task(rm.Plan(SMALL).with_(("workload.flows", 10_000_000)))
        assert execute(task, blobs, lambda: True).state == "stopped"


class TestFailures:
    def fail(self, monkeypatch: pytest.MonkeyPatch, *, seeds: tuple[int, ...]) -> None:
        def maybe(task: Task, blobs: Any, is_stopped: Any) -> TaskResult:
            if task.seed in seeds:
                return TaskResult(task.point, task.seed, "failed", error="no space left")
            return execute(task, blobs, is_stopped)

        monkeypatch.setattr("rampmeter.sweeps.engines.local.execute", maybe)

    def test_failures_are_named_and_others_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fail(monkeypatch, seeds=(2,))
        result = call("plan.toml", "--out", "here", "--no-estimate")
        assert result.exit_code == 1
        point = "pfabric:window-initial=60 workload.load=0.3 workload.sizes=imc10"
        line = f"{point} seed 2: failed: no space"
        assert line in result.stderr
        assert result.stderr.count("no space left") == 5 + 1
        assert "rampmeter: 8 runs failed: dcpim" in result.stderr
        assert len(Dataset("here").done()) == 8
        monkeypatch.setattr("rampmeter.sweeps.engines.local.execute", execute)
        assert "8 to run" in ok("plan.toml", "--out", "here").stderr
        assert len(Dataset("here").done()) == 16

    def test_a_sweep_with_equal_first_failures_is_aborted(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.fail(monkeypatch, seeds=(1, 2))
        line = error_line("plan.toml", "--out", "here", "--quiet")
        assert "the first 10 runs failed with the same error: no space left" in line

    @pytest.mark.parametrize(
        ("on", "message"),
        [
            ("slurm", "on: expected one of local, ray, .*, got slurm"),
            ("dask://127.0.0.1:9", "dask: no scheduler at 127.0.0.1:9"),
            ("dask://none.json", "dask: none.json: no such file"),
            ("dask", "expected dask://HOST:PORT, or DASK_SCHEDULER_ADDRESS"),
        ],
    )
    def test_missing_clusters_are_named(
        self, on: str, message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rampmeter.sweeps.engines.on_dask.CONNECT_SECONDS", 1)
        with pytest.raises((rm.PlanError, rm.EngineError), match=message):
            open_engine(on)

    def test_a_missing_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ray", None)
        monkeypatch.delitem(sys.modules, "rampmeter.sweeps.engines.on_ray", raising=False)
        with pytest.raises(rm.EngineError, match=r"pip install 'rampmeter\[ray\]'"):
            open_engine("ray")


class TestPrecision:
    def test_the_seeds_of_a_point_follow_from_its_values_alone(self) -> None:
        replication = Replication((1, 2, 3, 4, 5), precision=0.02, seeds_max=40)
        values: dict[int, float] = {seed: 1 + 0.1 * math.sin(seed) for seed in range(1, 60)}
        known: dict[int, float | None] = {}
        rounds = []
        while missing := [s for s in seeds_of(replication, known) if s not in known]:
            rounds.append(len(missing))
            known |= {seed: values[seed] for seed in missing}
        assert interval(known.values()).is_within(0.02) or len(known) == 40
        assert rounds[0] == 5
        # Interrupted at any place, it continues with the same seeds.
        for n in range(1, len(known)):
            some: dict[int, float | None] = {seed: values[seed] for seed in range(1, n + 1)}
            while missing := [s for s in seeds_of(replication, some) if s not in some]:
                some |= {seed: values[seed] for seed in missing}
            assert some == known

    def test_seeds_are_added_until_intervals_are_small_or_the_limit_is_reached(self) -> None:
        options = ["--precision", 0.1, "--seeds-max", 9, "--transports", "dcpim", "--quiet"]
        result = ok("plan.toml", "--out", "here", *options, "--seeds", 3)
        results = rm.SweepResults("here")
        for point in results.points:
            found = point.interval("slowdown_mean")
            name = f"dcpim {LOAD}={point.values[LOAD]}"
            is_named = any(line.startswith(name) for line in result.stdout.splitlines())
            assert found.is_within(0.1) or (found.n == 9 and is_named)
        counts = {len(point.rows) for point in results.points}
        # Messages of one size differ hardly between seeds, those of IMC10 do.
        assert min(counts) == 3 < max(counts)
        assert " 0 to run" in ok("plan.toml", "--out", "here", *options[:-1], "--seeds", 3).stderr

    def test_an_unknown_metric_is_refused(self) -> None:
        line = error_line("plan.toml", "--precision", 0.1, "--metric", "status")
        assert "metric: expected one of utilisation" in line


def test_check_reads_the_table_of_a_sweep(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(SMALL + '[sweep]\nseeds = 2\ntransports = ["dcpim"]\ngird = {}\n')
    result = commands.call("check", file)
    assert result.exit_code == 2
    assert "sweep" in result.output
    assert "gird" in result.output


class TestReport:
    def test_means_have_intervals_in_table_and_summary(self, done: rm.SweepResults) -> None:
        result = ok("plan.toml", "--out", done.url)
        assert Path(done.url, "slowdown_mean.png").is_file()
        means = done.summary.to_pylist()
        assert len(means) == 8
        for row in means:
            rows = [r for r in done.table.to_pylist() if r["point"] == row["point"]]
            found = interval(r["slowdown_mean"] for r in rows)
            assert (row["slowdown_mean"], row["slowdown_mean_ci"]) == found[:2]
            assert row["seeds"] == 2
            mean, half = str(found).split(" ± ")
            assert mean in result.stdout
            assert f"± {half}" in result.stdout
        text, *warnings = result.stdout.partition("\nresults:")[0].split("\nwarning: ")
        assert all(" runs at " in line for line in warnings)
        table = text.splitlines()
        assert table[1].rstrip() == "Means over 2 seeds, with 95 % intervals"
        assert max(map(len, table)) <= 80

    def test_means_of_former_versions_are_renewed(self, done: rm.SweepResults) -> None:
        table = pq.read_table(shutil.copytree(done.url, "here") + "/summary.parquet")
        names = [name.replace("_ci", "_half") for name in table.column_names]
        pq.write_table(table.rename_columns(names), "here/summary.parquet")
        assert rm.SweepResults("here").summary.equals(done.summary)
        ok("plan.toml", "--out", "here", "--quiet")
        assert pq.read_table("here/summary.parquet").equals(table)

    def test_undelivered_flows_are_reported(self) -> None:
        result = ok("plan.toml", "--out", "here", "--quiet", "--transports", "cosy")
        assert "not delivered" in result.stdout
        assert "Slowdowns cover delivered flows only" in result.stdout

    def test_collectives_have_their_completion_times(self) -> None:
        Path("ring.toml").write_text("""
            topology = { kind = "star", hosts = 4 }
            transport = { name = "dcpim" }
            [workload]
            pattern = "collective"
            operation = "all-reduce"
            algorithm = "ring"
            vector-bytes = 100000
        """)
        options = [
            "--vary",
            "workload.vector-bytes=100000..1000000*10",
            "--transports",
            "dcpim,ideal",
        ]
        result = ok("ring.toml", "--out", "here", "--no-estimate", *options)
        assert "completion, us" in result.stdout
        assert Path("here/completion_us.png").is_file()
        for row in rows_of(rm.SweepResults("here")):
            (one,) = json.loads(row["summary"])["collectives"]
            assert row["completion_us"] == one["completion_ps"] / 1e6
            assert row["bus_gbps"] == one["bus_gbps"]

    def test_calls_have_their_latencies(self) -> None:
        Path("calls.toml").write_text("""
            topology = { kind = "star", hosts = 4 }
            transport = { name = "homa" }
            [workload]
            pattern = "rpc"
            requests = { fixed = 100 }
            responses = { fixed = 20000 }
            calls = 5
        """)
        options = ["--vary", "workload.fan=1,3", "--no-estimate"]
        result = ok("calls.toml", "--out", "here", *options)
        assert "p99 call, us" in result.stdout
        assert Path("here/call_p99_us.png").is_file()
        for row in rows_of(rm.SweepResults("here")):
            (calls,) = json.loads(row["summary"])["rpcs"]
            assert row["call_mean_us"] == calls["latency_mean_ps"] / 1e6
            assert row["call_p99_us"] == calls["latency_p99_ps"] / 1e6


class TestEstimate:
    def test_an_estimate_has_its_basis(self) -> None:
        result = ok("plan.toml", "--out", "here", "--dry-run")
        assert "16 runs, about" in result.stderr
        assert "by 4 probes on this machine" in result.stderr
        assert not Path("here").exists()

    def test_a_large_run_is_scaled_up_from_a_piece(self) -> None:
        plan = rm.Plan(SMALL).with_(("workload.flows", 200_000), ("sweep.seeds", 2))
        sweep = sweep_of(plan)
        (probe,) = estimates._probe_all(sweep.points)
        assert not probe.is_whole
        assert probe.seconds > estimates.PROBE_SECONDS
        assert 20e6 < probe.memory_bytes < 2e9
        total = estimates.estimate([(sweep.points[0], 1), (sweep.points[0], 2)])
        assert (total.n_runs, total.n_probes) == (2, 1)

    def test_the_memory_of_the_caller_is_not_that_of_runs(self) -> None:
        own = b"x" * 1_000_000_000
        (probe,) = estimates._probe_all(sweep_of(rm.Plan(SMALL).with_(("sweep.seeds", 2))).points)
        assert len(own) == 1e9
        assert 20e6 < probe.memory_bytes < 0.5e9

    def test_every_transport_has_a_probe(self) -> None:
        sweep = sweep_of(rm.Plan.load("plan.toml"))
        labels = [point.transport.label for point in estimates.points_to_probe(sweep.points)]
        assert labels == ["dcpim", "pfabric:window-initial=60"] * 2


def test_a_plan_with_a_sweep_runs_as_a_single_run() -> None:
    commands.ok("run", "plan.toml", "--out", "run", "--quiet")
    assert rm.Run("run").manifest["plan"]["workload"]["load"] == 0.5

"""The command: its output, its files, its errors."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rampmeter as rm
from rampmeter import _core
from rampmeter.cli import COMMANDS
from rampmeter.running import benchmark

from .commands import call, error_line, ok
from .conftest import FakeCore, progress

if TYPE_CHECKING:
    from rampmeter._core import Progress

pytestmark = pytest.mark.usefixtures("here")


def test_a_reader_that_has_read_enough_is_no_error() -> None:
    command = f"{sys.executable} -c 'from rampmeter.cli import main; main()' papers | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


class TestHelp:
    @pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=str)
    def test_every_help_text_has_an_example(self, command: list[str]) -> None:
        text = ok(*command, "--help").stdout
        assert "Example" in text
        assert f"  rampmeter {' '.join(command)}".rstrip() in text.partition("Example")[2]

    def test_the_version_names_the_commit(self) -> None:
        assert ok("--version").stdout == f"rampmeter {_core.VERSION} ({_core.COMMIT})\n"


class TestRun:
    def test_prints_tables_and_keeps_results(self, plan_file: Path) -> None:
        result = ok("run", plan_file, "--out", "here")
        for heading in ("Overview", "Slowdown by flow size", "Ports by tier", "tor"):
            assert heading in result.stdout
        assert "small: finished" in result.stderr
        assert rm.Run("here").status == "finished"

    def test_changes_are_in_the_plan_and_the_folder_s_name(self, plan_file: Path) -> None:
        ok("run", plan_file, "--set", "workload.load=0.3", "--seed", 5, "--quiet")
        run = rm.Run("results/small-load=0.3-seed=5")
        assert run.manifest["seed"] == 5
        assert run.manifest["plan"]["workload"]["load"] == 0.3

    def test_quiet_is_quiet(self, plan_file: Path) -> None:
        assert ok("run", plan_file, "--quiet").stderr == ""

    def test_the_same_run_is_not_repeated(self, plan_file: Path) -> None:
        ok("run", plan_file)
        assert "reused results of an earlier run" in ok("run", plan_file).stderr

    def test_an_interrupted_run_prints_its_partial_results(
        self, plan_file: Path, fake_core: FakeCore
    ) -> None:
        def until_told(on_progress: Callable[["Progress"], bool]) -> str:
            signal.raise_signal(signal.SIGINT)
            while on_progress(progress()):
                pass
            return "interrupted"

        fake_core.script = until_told
        result = call("run", plan_file, "--out", "here")
        assert result.exit_code == 130
        assert "status" in result.stdout
        assert result.stderr.endswith("rampmeter: interrupted\n")

    def test_results_of_another_plan_are_not_replaced(self, plan_file: Path) -> None:
        ok("run", plan_file, "--out", "here", "--quiet")
        before = Path("here/summary.json").read_bytes()
        line = error_line("run", plan_file, "--out", "here", "--seed", 2, "--quiet")
        assert line.startswith("rampmeter: here: the folder has the results of another plan")
        assert "(seed: 1 there, 2 here)" in line
        assert Path("here/summary.json").read_bytes() == before
        ok("run", plan_file, "--out", "here", "--seed", 2, "--quiet", "--force")
        assert rm.Run("here").manifest["seed"] == 2

    def test_a_manifest_is_run_again(self, plan_file: Path) -> None:
        ok("run", plan_file, "--out", "here", "--quiet")
        ok("run", "here/manifest.json", "--out", "again", "--quiet")
        for name in ("flows.parquet", "summary.json"):
            assert Path("here", name).read_bytes() == Path("again", name).read_bytes()
        ok("run", "here/manifest.json", "--seed", 2, "--quiet")
        assert rm.Run("results/here-seed=2").manifest["seed"] == 2


class TestExitCodes:
    @pytest.mark.parametrize("command", ["run", "compare"])
    def test_three_means_that_not_all_was_delivered(self, plan_file: Path, command: str) -> None:
        options = ["--transports", "dcpim"] if command == "compare" else []
        result = call(command, plan_file, *options, "--set", "faults.loss=1", "--quiet")
        assert result.exit_code == 3, result.output
        assert "warning: " in result.stdout
        assert "delivered" in result.stdout.partition("warning: ")[2]
        again = call(command, plan_file, *options, "--set", "faults.loss=1", "--quiet")
        assert again.exit_code == 3

    def test_help_lists_exit_codes(self) -> None:
        for command in ("run", "compare"):
            text = ok(command, "--help").stdout
            assert "Exit code: 0 if every flow was delivered, 3 if" in text

    def test_a_mistake_in_the_simulator_is_a_line(
        self, plan_file: Path, fake_core: FakeCore
    ) -> None:
        def fail(_: Callable[["Progress"], bool]) -> str:
            raise rm.InternalError("internal error, with seed 1: an invariant is broken")

        fake_core.script = fail
        result = call("run", plan_file, "--quiet")
        assert result.exit_code == 70
        assert result.stderr == (
            "rampmeter: internal error, with seed 1: an invariant is broken [simulator-fault]\n"
        )


class TestErrors:
    def test_a_comparison_of_a_broken_plan_leaves_no_folder(self) -> None:
        Path("broken.toml").write_text('[topology]\nkind = "star"\nhosts = 4\n')
        line = error_line("compare", "broken.toml", "--transports", "dcpim", "--out", "compared")
        assert "workload: expected this key" in line
        assert not Path("compared").exists()

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            (["workload.load=-1"], "workload.load: expected"),
            (["workload.sizes=imc11"], 'got "imc11"; did you mean imc10?'),
            (["topology.hosts=0"], "topology"),
            (["topology.kind=ring"], "topology.kind: expected one of leaf-spine"),
            (["seed=x"], "seed"),
            (["transport.matching-roundz=3"], "got matching-roundz; did you mean matching-rounds?"),
            (["workload.flows"], "--set: expected key=value, got workload.flows"),
            (["seed.x=1"], "expected seed to be a table, got 1"),
        ],
    )
    @pytest.mark.parametrize("command", ["run", "check", "bench"])
    def test_bad_values_are_one_line(
        self, plan_file: Path, command: str, settings: list[str], message: str
    ) -> None:
        options = [word for setting in settings for word in ("--set", setting)]
        line = error_line(command, plan_file, *options)
        assert message in line

    def test_a_misspelt_command_has_a_suggestion(self) -> None:
        assert "swep: no such command; did you mean sweep?" in error_line("swep")
        assert "did you mean" not in error_line("xyzzy")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["run"], "PLAN: expected a value, got none; see `main run --help` [usage]"),
            (["sweep", "a.toml", "--jobs", "0"], "--jobs: 0 is not in the range x>=1; see"),
            (["run", "a.toml", "--sed", "1"], "--sed: no such option; did you mean --seed?"),
            (["--nope"], "--nope: no such option; see `main --help` [usage]"),
        ],
    )
    def test_wrong_options_are_one_line(self, arguments: list[str], message: str) -> None:
        assert message in error_line(*arguments)

    def test_the_line_names_the_file_and_the_place(self, plan_file: Path) -> None:
        plan_file.write_text(plan_file.read_text().replace("seed = 1", 'seed = "x"'))
        line = error_line("run", plan_file)
        assert line.startswith(f"rampmeter: {plan_file}: line 1, column 8: ")
        assert "expected a whole number" in line

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["run", "none.toml"], "none.toml: No such file or directory"),
            (["compare", "none.toml", "--transports", "dcpim"], "none.toml: No such file"),
            (
                ["plot", "none"],
                "none: expected the folder of a run, a comparison or a sweep, got no folder",
            ),
            (["convert", "none.csv", "a.csv", "--format", "csv"], "none.csv"),
            (["convert", os.devnull, "a.csv", "--format", "xml"], "xml"),
            (["papers", "dcpim", "99"], "expected one of dcpim artifact, "),
            (
                ["papers", "other"],
                "expected one of capton, collectives, cosy, dcpim, fastpod, homa-dispute, phost, "
                "got other",
            ),
            (["papers", "dcpim", "3", "--quick", "--full"], "exclude each other; use one of them"),
            (["papers", "dcpim", "3", "--scale", "-1"], "--scale: expected a number above 0"),
        ],
    )
    def test_bad_arguments_are_one_line(self, arguments: list[str], message: str) -> None:
        assert message in error_line(*arguments)

    def test_a_result_folder_that_cannot_be_is_one_line(self, plan_file: Path) -> None:
        Path("file").write_text("")
        line = error_line("run", plan_file, "--out", "file/inside", "--quiet")
        assert line == "rampmeter: file: expected a folder, got a file [file-access]"


class TestCompare:
    def test_every_transport_receives_the_same_flows(self, plan_file: Path) -> None:
        names = "dcpim:paper,dcpim:reference"
        result = ok("compare", plan_file, "--transports", names, "--out", "here")
        paper, reference = rm.Run("here/dcpim-paper"), rm.Run("here/dcpim-reference")
        for column in ("arrival_ps", "src", "dst", "size_bytes"):
            by_flow = [run.flows.sort_by("flow")[column].to_pylist() for run in (paper, reference)]
            assert by_flow[0] == by_flow[1]
        assert paper.manifest["plan"]["transport"]["preset"] == "paper"
        assert "reference" in result.stdout
        assert Path("here/slowdown_by_size.png").is_file()

    NAMES = "dcpim,phost,pfabric:window-initial=60,window-max=75,pfabric,fastpass,cosy,ideal"

    def test_tables_of_many_transports_fit_80_columns(self, plan_file: Path) -> None:
        text = call("compare", plan_file, "--transports", self.NAMES, "--quiet").stdout
        tables = text.partition("results:")[0]
        assert "…" not in tables
        assert all(len(line) <= 80 for line in tables.splitlines())
        assert "window-max=75" in tables

    def test_keys_of_one_transport_are_its_own(self, plan_file: Path) -> None:
        names = "dcpim:beta=1.5,pfabric:window-initial=60"
        call("compare", plan_file, "--transports", names, "--out", "here", "--quiet")
        plans = [
            rm.Run(f"here/{name}").manifest["plan"]["transport"]
            for name in ("dcpim-beta=1.5", "pfabric-window-initial=60")
        ]
        assert (plans[0]["beta"], plans[1]["window-initial"]) == (1.5, 60)

    def test_the_table_notes_failures_that_count_as_infinite(self, plan_file: Path) -> None:
        loss = ("--set", "faults.loss=0.4", "--set", "transport.attempts-max=1", "--quiet")
        names = ("--transports", "dcpim:attempts-max=1,ideal")
        result = call("compare", plan_file, *names, *loss)
        assert "that every transport delivered." in " ".join(result.stdout.split())
        assert " inf" not in result.stdout
        assert "warning: dcpim:attempts-max=1 delivered" in result.stdout
        infinite = call("compare", plan_file, *names, *loss, "--failures", "infinite")
        assert "count as" in infinite.stdout
        assert " inf" in infinite.stdout
        assert result.exit_code == infinite.exit_code == 3

    def test_seeds_give_intervals(self, plan_file: Path) -> None:
        names = ("--transports", "dcpim,ideal", "--out", "here")
        result = ok("compare", plan_file, *names, "--seeds", 3, "--quiet")
        assert "over 3 seeds" in result.stdout
        assert "± " in result.stdout
        seeds = [rm.Run(f"here/dcpim/seed-{seed}").manifest["seed"] for seed in (1, 2, 3)]
        assert seeds == [1, 2, 3]

    def test_seeds_are_added_until_the_precision_is_reached(self, plan_file: Path) -> None:
        options = ("--transports", "dcpim", "--precision", 0.05, "--quiet", "--out", "here")
        flows = ("--set", "workload.flows=60", "--set", "measure.warmup-flows=0")
        result = ok("compare", plan_file, *options, *flows)
        n_seeds = len(list(Path("here/dcpim").iterdir()))
        assert 5 < n_seeds <= 30
        comparison = rm.Comparison.load("here")
        mean = comparison.slowdowns("dcpim")[-1].mean
        assert mean.n == n_seeds
        assert mean.is_within(0.05) or "wider than 0.05" in result.stdout

    @pytest.mark.parametrize("names", ["", "dcpim,", "dcpim,dcpim"])
    def test_names_must_differ(self, plan_file: Path, names: str) -> None:
        assert "expected names that differ" in error_line(
            "compare", plan_file, "--transports", names
        )

    def test_unknown_transports_are_refused(self, plan_file: Path) -> None:
        assert "quic" in error_line("compare", plan_file, "--transports", "dcpim,quic")


class TestPapers:
    def test_figures_are_listed(self) -> None:
        listed = ok("papers").stdout
        for paper, number in (("dcpim", 3), ("phost", 6)):
            assert re.search(rf"^ {paper} +$(\n  .*)*\n   {number} ", listed, re.MULTILINE)
        assert re.search(r"^   3 .* min .* h .* of \d+", listed, re.MULTILINE)
        of_dcpim = ok("papers", "dcpim").stdout
        assert "phost" not in of_dcpim
        assert "rampmeter papers dcpim 3\n    dcPIM sustains loads" in of_dcpim

    def test_a_dry_run_estimates_figures_and_makes_none(self, tmp_path: Path) -> None:
        arguments = ["papers", "dcpim", "3", "--quick", "--seeds", "2", "--dry-run"]
        printed = ok(*arguments, "--out", str(tmp_path / "here")).stdout
        assert re.match(r"dcpim 3: 16 runs, \d+ M data packets, about .* processor time\n", printed)
        assert not (tmp_path / "here").exists()

    def test_options_that_make_figures_apply_to_json_too(
        self, tmp_path: Path, fake_core: FakeCore
    ) -> None:
        command = ("papers", "dcpim", "3", "--quick", "--out", "here", "--quiet", "--json")
        estimate = json.loads(ok(*command, "--dry-run").stdout)["figures"][0]["estimate"]
        assert (estimate["runs"], fake_core.plans) == (8, [])
        made = json.loads(ok(*command).stdout)
        assert made["figures"] == [json.loads(Path("here/report.json").read_text())]
        assert len(made["figures"][0]["runs"]) == len(fake_core.plans) == 8
        assert made["tables"]["values"]
        drawn = json.loads(ok("papers", "dcpim", "3", "--from-ledger", "--json").stdout)
        assert drawn["figures"][0]["mode"] == "full"

    @pytest.mark.parametrize("option", ["--quick", "--dry-run", "--all", "--out=here"])
    def test_options_of_figures_do_not_apply_to_the_ledger(self, option: str) -> None:
        line = error_line("papers", "dcpim", "--status", option)
        assert "--status: applies to the ledger, and excludes options of figures" in line

    @pytest.mark.parametrize("option", ["--quick", "--from-ledger", "--out=here", "--seeds=2"])
    def test_options_of_figures_require_a_figure(self, option: str) -> None:
        line = error_line("papers", "dcpim", option)
        assert line == "rampmeter: FIGURE: expected a figure, or --all, got none [plan-value]"

    def test_a_figure_has_tables_plots_and_a_report(self) -> None:
        result = ok("papers", "dcpim", "3", "--scale", "0.0001", "--out", "here", "--quiet")
        report = json.loads(Path("here/report.json").read_text())
        assert [panel["id"] for panel in report["sub_figures"]] == list("abcdefgh")
        for panel in report["sub_figures"]:
            assert Path("here", panel["image"]).is_file()
            assert f"3{panel['id']}  {panel['title']}" in result.stdout
        assert report["verdicts"]["match"] == report["verdicts"]["miss"] == 0
        assert report["verdicts"]["fewer flows"] > 90
        assert report["failures"] == report["rejections"] == []
        assert len(report["runs"]) == 24
        assert all(run["status"] == "finished" for run in report["runs"])

    @pytest.mark.parametrize(
        ("arguments", "seeds", "summary"),
        [
            ([], [1, 2, 3], "; 3 seeds;"),
            (["--seeds", "2"], [1, 2], "; 2 seeds of 3;"),
            (["--quick"], [1], "; 1 seed of 3;"),
        ],
    )
    def test_verdicts_have_their_number_of_seeds(
        self, fake_core: FakeCore, arguments: list[str], seeds: list[int], summary: str
    ) -> None:
        result = ok("papers", "dcpim", "3", "--out", "here", "--quiet", *arguments)
        report = json.loads(Path("here/report.json").read_text())
        assert report["seeds"] == seeds
        assert (
            len(fake_core.plans)
            == len(report["runs"])
            == len(seeds) * (8 if "--quick" in arguments else 24)
        )
        assert report["verdicts"]["miss"] > 0
        assert summary in result.stdout
        assert f"{len(seeds)} of 3" in result.stdout or len(seeds) == 3

    def test_an_interrupted_figure_reports_finished_runs(self, fake_core: FakeCore) -> None:
        def third_is_interrupted(on_progress: Callable[["Progress"], bool]) -> str:
            if len(fake_core.plans) < 3:
                return "finished"
            signal.raise_signal(signal.SIGINT)
            while on_progress(progress()):
                pass
            return "interrupted"

        fake_core.script = third_is_interrupted
        arguments = ["papers", "dcpim", "3", "--quick", "--jobs", "1", "--out", "here"]
        assert call(*arguments).exit_code == 130
        report = json.loads(Path("here/report.json").read_text())
        assert report["is_interrupted"]
        assert len(report["runs"]) == 2
        fake_core.script = lambda _: "finished"
        assert ok(*arguments).stderr.count("reused results of an earlier run") == 2


class TestOtherCommands:
    def test_check_prints_a_plan_that_is_the_same_plan(self, plan_file: Path) -> None:
        text = ok("check", plan_file).stdout
        assert tomllib.loads(text)["fabric"]["spray"] == "source-round-robin"
        Path("complete.toml").write_text(text)
        assert ok("check", "complete.toml").stdout == text

    def test_plot_writes_four_images(self, small_run: rm.Run) -> None:
        result = ok("plot", small_run.path, "--out", "images")
        names = ["slowdown_by_size", "fct_cdf", "utilisation", "queue_cdf"]
        assert result.stdout.split() == [f"images/{name}.png" for name in names]
        assert all(Path("images", f"{name}.png").is_file() for name in names)

    def test_check_prints_derived_values_and_warnings(self, plan_file: Path) -> None:
        text = ok("check", plan_file).stdout
        for line in ("# bdp-bytes = ", "# port-buffer-bytes = 500000", "# transport.phase-us = "):
            assert line in text
        assert "warning" not in text
        Path("t.csv").write_text("arrival_us,src,dst,size_bytes,status\n0,0,1,9,finished\n")
        workload = f'workload={{ pattern = "trace", file = "{Path.cwd()}/t.csv" }}'
        text = ok("check", plan_file, "--set", workload).stdout
        assert text.startswith("# warning: ")
        assert "columns are not used: status" in text.splitlines()[0]
        result = ok("run", plan_file, "--set", workload, "--quiet")
        assert "columns are not used: status" in result.stdout.partition("warning: ")[2]
        Path("t.csv").write_text("arrival_us,src,dst,size_bytes,colour\n0,0,1,9,red\n")
        result = call("check", plan_file, "--set", workload)
        assert result.exit_code == 2
        assert ", got colour" in result.stderr

    def test_a_load_beyond_the_core_is_a_warning(self, plan_file: Path) -> None:
        topology = 'topology={ kind = "dumbbell", hosts-per-side = 4 }'
        result = call("run", plan_file, "--set", topology, "--quiet")
        assert "the capacity of the core" in result.stdout
        assert "exceeds 0.438" in result.stdout

    def test_plots_of_comparisons_and_of_several_runs(self, plan_file: Path) -> None:
        ok("compare", plan_file, "--transports", "dcpim,ideal", "--out", "c", "--quiet")
        names = ["slowdown_by_size", "fct_cdf"]
        for arguments in (["c"], ["c/dcpim", "c/ideal"]):
            result = ok("plot", *arguments, "--out", "images", "--format", "svg")
            assert result.stdout.split() == [f"images/{name}.svg" for name in names]
            texts = [Path("images", f"{name}.svg").read_text() for name in names]
            assert all(text.startswith("<?xml") for text in texts)

    def test_convert_makes_a_trace_that_a_plan_can_use(self, plan_file: Path) -> None:
        Path("a.csv").write_text("arrival_us,src,dst,size_bytes\n2,0,1,100\n1,1,2,200\n")
        line = error_line("convert", "a.csv", "b.parquet", "--format", "csv")
        assert "a.csv" in line
        result = ok("convert", "a.csv", "b.parquet", "--format", "csv", "--sort")
        assert result.stdout == "b.parquet: 2 flows\n"
        workload = f'{{ pattern = "trace", file = "{Path.cwd()}/b.parquet" }}'
        ok("run", plan_file, "--set", f"workload={workload}", "--out", "here", "--quiet")
        assert set(rm.Run("here").flows["size_bytes"].to_pylist()) == {100, 200}

    def test_bench_prints_speeds(self, plan_file: Path) -> None:
        text = ok("bench", plan_file, "--set", "workload.flows=2000").stdout
        assert "packet-hops" in text
        assert "per CPU s" in text
        reports = json.loads(ok("bench", plan_file, "--json").stdout)["plans"]
        assert reports["small"]["hops"] > 0

    def test_the_standard_benchmarks_are_plans_that_can_run(self) -> None:
        for plan in [*benchmark.PLANS.values(), *benchmark.QUICK.values()]:
            plan.check()

    def test_bench_shows_progress_and_ends_at_a_signal(self, plan_file: Path) -> None:
        command = [sys.executable, "-m", "rampmeter.cli", "bench", str(plan_file)]
        process = subprocess.Popen(
            [*command, "--set", "workload.flows=100000000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stderr is not None
        assert process.stderr.readline() == "[1/1] small\n"
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output, errors) == (130, "", "rampmeter: interrupted\n")


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_signals_end_a_real_run_and_store_partial_results(
    plan_file: Path, number: signal.Signals, code: int, word: str
) -> None:
    command = [sys.executable, "-m", "rampmeter.cli", "run", str(plan_file)]
    options = ["--set", "workload.flows=100000000", "--out", "here", "--quiet"]
    process = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not Path("here").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (code, f"rampmeter: {word}\n"), output
    run = rm.Run("here")
    assert run.status == "interrupted"
    assert 0 < run.summary["flows"]["delivered"] < 100_000_000
    assert run.flows.num_rows > 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str) -> None:
    environment = {**os.environ, "_RAMPMETER_COMPLETE": f"{shell}_source"}
    rampmeter = Path(sys.executable).with_name("rampmeter")
    done = subprocess.run([rampmeter], env=environment, capture_output=True, text=True, check=True)
    assert "_RAMPMETER_COMPLETE" in done.stdout
    words = {"COMP_WORDS": "rampmeter pap", "COMP_CWORD": "1", "fish": "pap"}
    environment = {**os.environ, **words, "_RAMPMETER_COMPLETE": "bash_complete"}
    done = subprocess.run([rampmeter], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "plain,papers\n"

"""Flows that are not delivered: `compare` and `papers` fail visibly if flows fail."""

import json
from pathlib import Path

import pytest
from click.testing import Result

import rampmeter as rm
from rampmeter.results.comparison import Comparison
from rampmeter.results.undelivered import has_faults, undelivered
from rampmeter.running.batch_flows import count_undelivered
from rampmeter.running.runner import Batch, Job, JobOutcome

from .commands import call
from .conftest import SMALL, FakeCore, write_results

ONE_LOST: list[tuple[int, int, float | None, int]] = [(0, 1460, 5.0, 5), (10, 1460, None, 5)]

pytestmark = pytest.mark.usefixtures("here")


class TestCounts:
    def runs(self, folder: Path) -> list[rm.Run]:
        return [
            write_results(folder / "all"),
            write_results(folder / "failed", rows=ONE_LOST),
            write_results(folder / "rejected", rows=ONE_LOST, n_rejected=1),
        ]

    def test_failures_and_rejections_are_counted_apart(self, tmp_path: Path) -> None:
        named = [("cosy", run.name, run, False) for run in self.runs(tmp_path)]
        (cosy,) = undelivered(named)
        assert (cosy.submitted, cosy.rejected, cosy.failed) == (6, 1, {"failed": 1})
        assert cosy.failure == ("cosy: 1 of 6 flows failed without a fault in the plan (failed: 1)")
        assert cosy.rejection == (
            "cosy rejected 1 of 6 flows (17 %) by design, which is no failure"
        )

    def test_flows_that_a_fault_breaks_are_no_failures(self, tmp_path: Path) -> None:
        named = [("phost", run.name, run, True) for run in self.runs(tmp_path)]
        (phost,) = undelivered(named)
        assert (phost.n_failed, phost.rejected) == (0, 1)

    def test_many_runs_are_not_all_listed(self, tmp_path: Path) -> None:
        run = write_results(tmp_path, rows=ONE_LOST)
        (ndp,) = undelivered([("ndp", f"r{idx}", run, False) for idx in range(6)])
        assert ndp.failure.endswith("(r0: 1, r1: 1, r2: 1, r3: 1, and 2 more runs)")

    @pytest.mark.parametrize(
        "table", [{"loss": 1e-3}, {"outages": [{"link": "s0-s4", "from-us": 1.0}]}]
    )
    def test_a_plan_with_outages_has_faults(self, table: object) -> None:
        assert has_faults(table)

    @pytest.mark.parametrize(
        "table", [None, {}, {"loss": 0.0, "outages": [], "rerouting-us": 1000.0}]
    )
    def test_a_plan_without_outages_has_no_faults(self, table: object) -> None:
        assert not has_faults(table)


class TestPapers:
    FIGURE = ("papers", "dcpim", "4a", "--quick", "--out", "here", "--quiet")

    def test_a_failed_flow_fails_the_figure(self, fake_core: FakeCore) -> None:
        fake_core.rows = ONE_LOST
        result = call(*self.FIGURE)
        assert result.exit_code == 3, result.output
        lines = [line for line in result.stderr.splitlines() if "failed" in line]
        failed = "flows failed without a fault in the plan"
        # Homa Aeolus has seven runs: one with the others and six of another panel.
        counts = {"dcpim": 1, "homa-aeolus": 7, "ndp": 1, "hpcc": 1, "homa": 1}
        for line, (name, n) in zip(lines, counts.items(), strict=True):
            expected = f"rampmeter: dcpim 4a: {name}: {n} of {2 * n} {failed} ({name} seed 1: 1"
            assert line.startswith(expected)
        report = json.loads(Path("here/report.json").read_text())
        assert len(report["failures"]) == 5
        assert call(*self.FIGURE).exit_code == 3

    def test_the_html_report_has_the_failures(self, fake_core: FakeCore) -> None:
        fake_core.rows = ONE_LOST
        call(*self.FIGURE)
        assert call("report", "here", "--out", "a.html").exit_code == 0
        text = Path("a.html").read_text()
        assert "homa: 1 of 2 flows failed without a fault in the plan" in text

    def test_faults_of_a_run_excuse_its_failures_alone(self, tmp_path: Path) -> None:
        lost = write_results(tmp_path / "lost", rows=ONE_LOST)
        whole, faulty = rm.Plan(SMALL), rm.Plan(SMALL).with_(("faults.loss", 0.1))
        outcomes = [
            JobOutcome(Job(name, plan, lost.path), "ran", lost)
            for name, plan in (("whole", whole), ("faulty", faulty))
        ]
        (dcpim,) = count_undelivered(Batch(tuple(outcomes), None, 1.0))
        assert (dcpim.label, dcpim.failed) == ("dcpim", {"whole": 1})

    def test_rejections_are_no_failure_and_are_named(self, fake_core: FakeCore) -> None:
        fake_core.rows, fake_core.n_rejected = ONE_LOST, 1
        result = call(*self.FIGURE)
        assert result.exit_code == 0, result.output
        assert "warning: homa rejected 1 of 2 flows (50 %) by design" in result.stdout
        report = json.loads(Path("here/report.json").read_text())
        assert (report["failures"], len(report["rejections"])) == ([], 5)


class TestCompare:
    def test_each_transport_is_named(self, tmp_path: Path) -> None:
        lost = write_results(tmp_path / "lost", rows=ONE_LOST)
        run = write_results(tmp_path / "all")
        counted = Comparison({"a": run, "b": lost}).undelivered()
        assert [one.n_failed for one in counted] == [0, 1]
        assert counted[1].failure == "b: 1 of 2 flows failed without a fault in the plan"

    def test_a_comparison_warns_if_rejections_favour_a_transport(self, tmp_path: Path) -> None:
        rejected = write_results(tmp_path / "rejected", rows=ONE_LOST, n_rejected=1)
        run = write_results(tmp_path / "all")
        (warning,) = Comparison({"a": run, "cosy": rejected}).warnings
        assert warning.startswith("cosy rejected 1 of 2 flows (50 %) by design")
        assert "excluded from all statistics" in warning
        assert warning.endswith("the comparison flatters cosy.")
        infinite = Comparison({"a": run, "cosy": rejected}, failures="infinite")
        assert "count as infinitely slow" in infinite.warnings[0]

    def test_rejections_alone_exit_with_0(self, plan_file: Path) -> None:
        settings = ("--set", "workload.load=0.9", "--quiet")
        result = call("compare", plan_file, "--transports", "cosy,ideal", *settings)
        assert result.exit_code == 0, result.output
        assert "warning: cosy rejected " in result.stdout
        assert "failed without" not in result.stderr

    def test_a_failed_flow_exits_with_3_and_a_line(self, plan_file: Path) -> None:
        pattern = 'workload={ pattern = "incast", fan = 7, flow-bytes = 60000, flows = 7 }'
        options = ("--set", pattern, "--set", "fabric.buffer-bytes=4000", "--quiet")
        result = call(
            "compare", plan_file, "--transports", "pfabric:attempts-max=1,ideal", *options
        )
        assert result.exit_code == 3, result.output
        (line,) = (line for line in result.stderr.splitlines() if line.startswith("rampmeter:"))
        assert line.startswith("rampmeter: pfabric:attempts-max=1: ")
        assert "of 7 flows failed without a fault in the plan" in line


def test_a_run_without_flows_is_warned_of(tmp_path: Path) -> None:
    done = rm.run(
        topology=rm.star(4),
        transport=rm.Homa(),
        workload={
            "pattern": "all-to-all",
            "sizes": "imc10",
            "load": 0.000001,
            "until-us": 1.0,
        },
        out=tmp_path / "run",
        quiet=True,
    )
    assert done.flows.num_rows == 0
    expected = "workload: no flow was submitted, as it ends before its first arrival"
    assert expected in done.summary["warnings"]


NARROW = """\
[topology]
kind = "dumbbell"
hosts-per-side = 8
core-gbps = 100.0
[workload]
pattern = "shuffle"
senders = { first = 0, count = 8 }
receivers = { first = 8, count = 8 }
flow-bytes = 200_000
[transport]
name = "fastpod"
"""
"""Fastpod drops its cells in the middle of this network until some flows fail."""


def test_a_sweep_with_unexplained_failures_exits_with_an_error(tmp_path: Path) -> None:
    file = tmp_path / "narrow.toml"
    file.write_text(NARROW)

    def sweep(out: str, *more: str) -> Result:
        arguments = [str(file), "--out", str(tmp_path / out), "--no-estimate", *more]
        return call("sweep", "--transports", "fastpod,homa", *arguments)

    result = sweep("healthy")
    assert result.exit_code == 3
    assert "rampmeter: fastpod: 4 of 64 flows failed without a fault" in result.stderr
    assert "homa:" not in result.stderr
    assert sweep("faulty", "--set", "faults.loss=1e-9").exit_code == 0

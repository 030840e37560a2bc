"""Causes of flows' times: exact sums, tables, pictures, and the command `why`."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.patches import Rectangle

import rampmeter as rm
from rampmeter.commands.why import IN_FLIGHT
from rampmeter.endpoints import StopAndWait
from rampmeter.plan import schema
from rampmeter.plots.blame import COLOURS
from rampmeter.plots.style import figure_format
from rampmeter.results.blame import CAUSES, Blame
from rampmeter.results.blame_tables import ORDER, WAITS, cause_name, causes_by_size, wait_matrix
from rampmeter.results.blockers import BLAME, BLOCKERS
from rampmeter.results.run import blame_of
from rampmeter.results.slowdown import overall_slowdown, slowdown_groups
from rampmeter.results.table import choose
from rampmeter.results.tables import run_tables
from rampmeter.text.numbers import byte_size

from .causes import BUSY, PLAN, PRESETS
from .commands import call, error_line, ok
from .conftest import ROOT, interrupted


def run_of(name: str, preset: str, workload: str = BUSY.format(flows=150)) -> rm.Run:
    plan = rm.Plan(PLAN.format(name=name, preset=preset, workload=workload))
    return rm.run(plan, quiet=True)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a comparison of two transports and the ideal with causes."""
    out = tmp_path_factory.mktemp("blame") / "compared"
    plan = rm.Plan(PLAN.format(name="dcpim", preset="paper", workload=BUSY.format(flows=1500)))
    rm.compare(plan, "dcpim,ndp,ideal", out=out, quiet=True).save(out)
    return out


@pytest.fixture(scope="module")
def run(compared: Path) -> rm.Run:
    """Returns the run of dcPIM."""
    return rm.Run(compared / "dcpim")


def why(*arguments: str | Path) -> str:
    """Returns the output of the command, which has to succeed."""
    return ok("why", *arguments).stdout


def failure(command: str, *arguments: str | Path) -> str:
    """Returns the error of a command with bad input."""
    return error_line(command, *arguments)


NOTHING = {"blame": True, "drain-us": 1, "timeline": "run.perfetto-trace"}


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a run that ends before it delivers a flow."""
    out = tmp_path_factory.mktemp("nothing") / "run"
    text = 'pattern = "incast"\nfan = 3\nflow-bytes = 150_000\nrounds = 1\n'
    plan = rm.Plan(PLAN.format(name="dcpim", preset="paper", workload=text))
    assert rm.run(plan.with_(("run", NOTHING)), out=out, quiet=True).status == "timed-out"
    return out


class TestSums:
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize(("name", "preset"), PRESETS)
    def test_parts_sum_to_the_completion_time_to_the_picosecond(
        self, name: str, preset: str
    ) -> None:
        found = run_of(name, preset)
        blame = blame_of(found)
        fct = found.flows.sort_by("flow")["fct_ps"].to_pylist()
        sums = dict.fromkeys(blame.numbers.tolist(), 0)
        blocked: dict[tuple[object, ...], int] = {}
        parts = blame.parts.to_pylist()
        for row in blame.blockers.to_pylist():
            key = (row["flow"], row["cause"], row["stage"], row["tier"])
            blocked[key] = blocked.get(key, 0) + row["time_ps"]
            assert row["cause"] in WAITS
            assert row["blocker"] != row["flow"]
        for row in parts:
            assert row["time_ps"] > 0
            sums[row["flow"]] += row["time_ps"]
            key = (row["flow"], row["cause"], row["stage"], row["tier"])
            assert blocked.pop(key, 0) <= row["time_ps"]
        assert not blocked, "blockers of a part that is not there"
        assert list(sums.values()) == [time or 0 for time in fct]
        assert {row["cause"] for row in parts} <= set(CAUSES)

    @pytest.mark.parametrize(("name", "preset"), PRESETS)
    def test_a_lone_flow_waits_for_no_other(self, name: str, preset: str, tmp_path: Path) -> None:
        trace = tmp_path / "lone.csv"
        trace.write_text("arrival_ps,src,dst,size_bytes\n1000,0,5,1000\n")
        found = run_of(name, preset, f'pattern = "trace"\nfile = "{trace}"\n')
        times = {cause: int(time[0]) for (cause,), time in blame_of(found).times().items()}
        (row,) = found.flows.to_pylist()
        assert sum(times.values()) == row["fct_ps"]
        allowed = {"serialisation", "propagation", "switching", "sender-link"}
        assert times.keys() <= {*allowed, "permission", "permission-in-flight"}
        alone = sum(times[cause] for cause in ("serialisation", "propagation", "switching"))
        # The ideal of a transport whose data packets are longer than others is a lower bound.
        assert 0 <= alone - row["ideal_ps"] <= 3000
        assert blame_of(found).blockers.num_rows == 0

    def test_every_stage_of_a_permission_is_declared(self, run: rm.Run) -> None:
        rows = blame_of(run).parts.to_pylist()
        stages = {row["stage"] for row in rows if row["cause"].startswith("permission")}
        declared = {name for name, _ in schema.transport_info("dcpim")["stages"]}
        assert {"matching"} <= stages <= declared


class TestTables:
    def test_causes_of_a_size_sum_to_its_mean_slowdown(self, run: rm.Run) -> None:
        groups = causes_by_size(blame_of(run))
        expected = [*slowdown_groups(run.summary), overall_slowdown(run.summary)]
        assert [one.count for one in groups] == [one.count for one in expected]
        for found, group in zip(groups, expected, strict=True):
            if group.count:
                assert sum(found.slowdowns.values()) == pytest.approx(group.mean, rel=1e-12)
        records = run.tables["blame_by_size"].records()
        everything = [row["slowdown"] for row in records if row["size"] == "all"]
        assert sum(everything) == pytest.approx(expected[-1].mean, rel=1e-12)
        assert blame_of(run).by_size().records() == records

    def test_the_matrix_divides_the_waits(self, run: rm.Run) -> None:
        blame = blame_of(run)
        counts, means = wait_matrix(blame)
        times = [time for (cause,), time in blame.times().items() if cause in WAITS]
        waits = np.sum(times, axis=0)
        in_all = np.nansum(means.sum(axis=1) * counts) * 1e6
        assert in_all == pytest.approx(float(waits[blame.counted].sum()), rel=1e-9)
        assert (np.nan_to_num(means) > -1e-9).all()
        rows = blame.matrix().records()
        assert len(rows) == len(counts) * (len(counts) + 2)
        assert {row["blocker_size"] for row in rows} >= {"others", "none", "<1 BDP", ">16 BDP"}

    def test_the_matrix_has_the_sizes_of_blockers(self) -> None:
        # Two flows from one host: the second waits for the first one's link.
        blame = run_of("homa", "paper", BUSY.format(flows=60)).blame
        assert blame is not None
        size = dict(zip(blame.numbers.tolist(), blame.class_of.tolist(), strict=True))
        expected = np.zeros((len(blame.size_classes),) * 2)
        for row in blame.blockers.to_pylist():
            if row["blocker"] is not None and blame.counted[row["flow"]]:
                expected[size[row["flow"]], size[row["blocker"]]] += row["time_ps"]
        counts, means = wait_matrix(blame)
        n = len(counts)
        found = np.nan_to_num(means)[:, :n] * np.asarray(counts)[:, None] * 1e6
        assert found == pytest.approx(expected)

    def test_differences_are_those_of_the_same_flows(self, compared: Path) -> None:
        comparison = rm.Comparison.load(compared)
        rows = comparison.blame().records()
        assert {(row["transport"], row["other"]) for row in rows} == {("dcpim", "ndp")}
        (total,) = (r for r in rows if (r["size"], r["cause"]) == ("all", "all"))
        means = [comparison.slowdowns(label)[-1].mean.mean for label in ("dcpim", "ndp")]
        assert total["difference"] == pytest.approx(means[0] - means[1], rel=1e-9)
        assert total["difference_ci"] > 0
        parts = [r["difference"] for r in rows if r["size"] == "all" and r["cause"] != "all"]
        assert sum(parts) == pytest.approx(total["difference"], rel=1e-9)
        flipped = rm.Comparison({label: comparison.runs[label] for label in ("ndp", "dcpim")})
        other = {(r["size"], r["cause"]): r["difference"] for r in flipped.blame().records()}
        for row in rows:
            value = other[row["size"], row["cause"]]
            if row["difference"] is not None:
                assert value == pytest.approx(-row["difference"], abs=1e-12)

    def test_readers_and_programs_have_the_tables_in_all_formats(self, run: rm.Run) -> None:
        by_size, matrix = (run.tables[name] for name in ("blame_by_size", "blame_matrix"))
        assert by_size.to_csv().startswith("size,upper_bytes,flows,cause,stage,slowdown,time_us\n")
        assert "tabular" in matrix.to_latex()
        out = run.path / "table.md"
        ok("export", run.path, "--out", out, "--table", "blame_by_size")
        assert "permission: matching" in out.read_text()

    def test_every_cause_of_the_simulator_has_a_name_and_a_colour(self, run: rm.Run) -> None:
        assert set(ORDER) == set(CAUSES) == set(COLOURS)
        metadata = blame_of(run).parts.schema.field("cause").metadata or {}
        meaning = metadata[b"meaning"].decode()
        listed = set(re.findall(r"[a-z-]+", meaning.removeprefix("Cause:"))) - {"or"}
        assert {"permission", "queueing"} <= listed <= set(CAUSES)
        page = (ROOT / "docs/howto/why.md").read_text(encoding="utf-8")
        assert all(f"| `{cause}` |" in page for cause in CAUSES)
        assert cause_name("permission", "token") == "permission: token"

    def test_runs_without_causes_have_no_tables(self, small_run: rm.Run, compared: Path) -> None:
        assert small_run.blame is None
        assert "blame_by_size" not in small_run.tables
        assert rm.Run(compared / "ideal").blame is None
        assert choose([small_run.tables["slowdown_by_size"]], None, for_readers=True)


class TestPictures:
    def test_bars_are_stacked_to_the_mean_slowdown(self, run: rm.Run) -> None:
        figure = run.plot.blame()
        (axes,) = figure.axes
        tops: dict[float, float] = {}
        for bar in axes.patches:
            assert isinstance(bar, Rectangle)
            x, top = round(bar.get_x(), 3), bar.get_y() + bar.get_height()
            tops[x] = max(tops.get(x, 0.0), top)
        groups = [*slowdown_groups(run.summary), overall_slowdown(run.summary)]
        means = [np.nan_to_num(group.mean) for group in groups]
        assert list(tops.values()) == pytest.approx(means)
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        assert names.index("permission: matching") < names.index("serialisation")

    def test_a_comparison_has_panels_of_the_transports_with_causes(self, compared: Path) -> None:
        plots = rm.Comparison.load(compared).plot
        for figure in (plots.blame(), plots.blame_matrix()):
            titles = [axes.get_title() for axes in figure.axes if axes.get_visible()]
            assert [title.partition("\n")[0] for title in titles] == ["dcPIM", "NDP"]
        difference = plots.blame_difference()
        assert difference.axes[0].get_yticklabels()[-1].get_text() == "all causes"
        assert "dcPIM minus NDP" in difference.get_supxlabel()

    @pytest.mark.parametrize("format_", [("column", "print"), ("page", "slides"), (None, "slides")])
    def test_labels_of_figures_are_not_cut(self, compared: Path, format_: Any) -> None:
        width, style = format_
        plots = rm.Comparison.load(compared).plot
        with figure_format(width, style=style):
            figures = [draw() for draw in plots.available().values()]
        for figure in figures:
            figure.draw_without_rendering()
            labels = [text for text in figure.texts if text.get_text()]
            labels += [axes.title for axes in figure.axes if axes.get_visible()]
            for extent in (label.get_window_extent() for label in labels):
                assert 0 <= extent.x0 <= extent.x1 <= figure.bbox.x1

    def test_the_report_begins_with_the_causes(self, compared: Path, tmp_path: Path) -> None:
        page = tmp_path / "report.html"
        ok("report", compared, "--out", page)
        text = page.read_text()
        places = [
            text.find(f'alt="{title}')
            for title in ("Mean slowdown by flow size", "Waits by flow size", "Difference of the")
        ]
        assert 0 < places[0] < places[1] < places[2]

    def test_plots_without_causes_are_errors_with_a_remedy(self, small_run: rm.Run) -> None:
        for plot in (small_run.plot.blame, small_run.plot.blame_matrix):
            with pytest.raises(rm.ResultError, match=r"--set run\.blame=true"):
                plot()
        assert "blame" not in small_run.plot.available()
        two = rm.Comparison({"a": small_run, "b": small_run})
        for method in (two.blame, two.plot.blame, two.plot.blame_difference):
            with pytest.raises(rm.ResultError, match="causes of flows' times"):
                method()


class TestWhy:
    def test_facts_are_those_of_the_tables(self, run: rm.Run) -> None:
        found = json.loads(why(run.path, "--slowest", "5", "--json"))
        rows = {row["flow"]: row for row in run.flows.to_pylist()}
        slowest = sorted(rows.values(), key=lambda row: -row["fct_ps"] / row["ideal_ps"])[:5]
        assert [flow["flow"] for flow in found["flows"]] == [row["flow"] for row in slowest]
        for flow, row in zip(found["flows"], slowest, strict=True):
            assert flow["fct_us"] == row["fct_ps"] / 1e6
            assert flow["slowdown"] == pytest.approx(row["fct_ps"] / row["ideal_ps"])
            assert flow["retransmitted_bytes"] == row["retransmitted_bytes"]
            assert sum(part["time_us"] for part in flow["parts"]) == pytest.approx(flow["fct_us"])
            for part in flow["parts"]:
                for blocker in part["blockers"]:
                    if blocker["flow"] is not None:
                        assert blocker["size_bytes"] == rows[blocker["flow"]]["size_bytes"]

    def test_a_flow_is_explained_in_80_columns(self, run: rm.Run) -> None:
        (flow,) = blame_of(run).slowest(1)
        text = why(run.path, "--flow", str(flow.flow))
        assert f"It took {flow.fct_us:.3f} us, {flow.slowdown:.2f} times its ideal" in text
        assert max(map(len, text.splitlines())) <= 80
        longest = max(flow.parts, key=lambda part: part.time_us)
        assert f"Longest delay: {cause_name(longest.cause, longest.stage)}" in text
        (bar,) = (line for line in text.splitlines() if line.startswith(" |"))
        assert len(bar) == 79
        letter = "abcdefgh"[flow.parts.index(longest)]
        assert bar.count(letter) == pytest.approx(76 * longest.time_us / flow.fct_us, abs=1)

    def test_a_flow_at_the_rate_of_others_has_lost_bytes_and_an_explanation(
        self, tmp_path: Path
    ) -> None:
        # Five senders at one port: TCP retransmits without a timeout, and waits for each ACK.
        incast = 'pattern = "incast"\nfan = 5\nhub = 0\nflow-bytes = 200_000\n'
        plan = rm.Plan(PLAN.format(name="tcp", preset="cubic", workload=incast))
        run = rm.run(plan, out=tmp_path / "incast", quiet=True)
        flow = next(
            flow
            for flow in blame_of(run).slowest(5)
            if max(flow.parts, key=lambda part: part.time_us).name == "permission-in-flight: window"
        )
        text = " ".join(why(run.path, "--flow", str(flow.flow)).split())
        assert f"retransmitted {byte_size(flow.retransmitted_bytes)}." in text
        assert "window, " in text
        assert IN_FLIGHT in text

    def test_the_longest_delay_is_that_of_all_ports(self, tmp_path: Path) -> None:
        plan = ROOT / "examples/lessons/pauses.toml"
        run = rm.run(plan, out=tmp_path / "pauses", quiet=True)
        paused = [part.time_us for part in blame_of(run).flow(4).parts if part.cause == "paused"]
        assert len(paused) == 3
        text = why(run.path, "--flow", "4")
        assert f"Longest delay: paused, {sum(paused):.3f} us" in text

    def test_sizes_are_those_of_the_classes(self, run: rm.Run) -> None:
        blame = blame_of(run)
        sizes = _sizes(why(run.path, "--size", "1-2bdp", "--slowest", "999", "--json"))
        classes = blame.class_of[~np.isnan(blame.slowdowns)]
        assert len(sizes) == int((classes == 1).sum())
        below = _sizes(why(run.path, "--size", "<1bdp", "--slowest", "9999", "--json"))
        assert len(below) == int((classes == 0).sum())
        between = _sizes(why(run.path, "--size", "10kb-1mb", "--json"))
        assert all(10_000 <= size < 1_000_000 for size in between)

    def test_a_flow_alone_was_not_delayed(self, tmp_path: Path) -> None:
        trace = tmp_path / "lone.csv"
        trace.write_text("arrival_ps,src,dst,size_bytes\n1000,0,5,1000\n")
        run = run_of("ndp", "paper", f'pattern = "trace"\nfile = "{trace}"\n')
        assert "Nothing delayed it" in why(run.path, "--flow", "0")

    def test_a_comparison_needs_the_name_of_a_transport(self, compared: Path) -> None:
        assert "expected --transport with one of dcpim, ndp, ideal" in failure("why", compared)
        text = why(compared, "--transport", "ndp", "--slowest", "1")
        assert text == why(compared / "ndp", "--slowest", "1")
        assert "expected one of dcpim, ndp" in failure("why", compared, "--transport", "x")

    def test_bad_input_is_an_error(self, run: rm.Run, small_run: rm.Run) -> None:
        assert "--set run.blame=true" in failure("why", small_run.path)
        assert "--flow: expected a flow's number, 0 to 1499" in failure(
            "why", run.path, "--flow", "1500"
        )
        assert "expected a range such as" in failure("why", run.path, "--size", "small")
        assert "expected a unit of" in failure("why", run.path, "--size", "1-2x")
        assert "expected a range that ends above its start, got 5-1bdp" in failure(
            "why", run.path, "--size", "5-1bdp"
        )
        assert "expected a size that" in failure("why", run.path, "--size", ">9gb")
        both = failure("why", run.path, "--flow", "1", "--slowest", "2")
        assert "--flow: expected no other choice of flows, got --slowest" in both
        assert "expected a comparison" in failure("why", run.path, "--transport", "dcpim")
        assert "expected the folder of a run or a comparison, got no folder" in failure(
            "why", run.path / "nothing"
        )

    @pytest.mark.parametrize("arguments", [("why",), ("plot", "--kind", "blame")])
    def test_a_run_that_delivered_nothing_has_recorded_causes(
        self, arguments: Sequence[str], nothing: Path
    ) -> None:
        assert "got a run that delivered no flow" in failure(*arguments, nothing)

    def test_a_run_that_delivered_nothing_has_plots(self, nothing: Path, tmp_path: Path) -> None:
        done = call("plot", nothing, "--out", tmp_path / "images")
        assert (done.exit_code, done.stderr) == (0, "")
        assert (tmp_path / "images" / "queue.png").is_file()

    def test_the_ideal_has_no_packets_and_no_causes(self, compared: Path) -> None:
        text = failure("why", compared, "--transport", "ideal")
        assert "got a run of the transport `ideal`, without packets" in text

    def test_stages_name_the_paper_of_their_sections(self, run: rm.Run) -> None:
        text = " ".join(why(run.path, "--slowest", "40").split())
        sections = re.findall(r"\([^()]*§[^()]*\)", text)
        assert sections
        assert all(section.startswith("(dcPIM paper, §") for section in sections)

    def test_transports_in_python_have_permissions_without_a_stage(self, tmp_path: Path) -> None:
        out = tmp_path / "run"
        rm.run(
            topology=rm.star(4),
            transport=StopAndWait.transport(timeout_us=20),
            workload=rm.imc10(load=0.3, flows=30),
            faults=rm.Faults(loss=0.02),
            run=rm.RunOptions(blame=True),
            out=out,
            quiet=True,
        )
        text = why(out, "--slowest", "1")
        assert "Longest delay: permission, " in text
        assert "waited for permission of the transport\n" in text
        blame = blame_of(rm.Run(out))
        names = {part.name for flow in blame.slowest(30) for part in flow.parts}
        assert "permission" in names
        assert not any("permission: permission" in name for name in names)
        tables = [table.text() for table in run_tables(rm.Run(out)) if table.is_for_readers]
        cells = [cell for table in tables for row in table.rows for cell in row]
        assert "permission" in cells
        assert "permission: permission" not in cells
        # The page on such transports has these facts.
        causes = {row["cause"] for row in blame.parts.to_pylist()}
        assert "sender-link" not in causes
        losses = {row["stage"] for row in blame.parts.to_pylist() if row["cause"] == "loss"}
        assert losses <= {"packet", "open"}

    @pytest.mark.parametrize("command", ["why", "plot", "diff"])
    def test_tables_that_are_not_of_the_run_are_errors(
        self, command: str, compared: Path, tmp_path: Path
    ) -> None:
        def failure_of(name: str, table: pa.Table | None) -> str:
            folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
            shutil.copytree(compared / "dcpim", folder)
            (folder / name).unlink()
            if table is not None:
                pq.write_table(table, folder / name)
            more = {"plot": ("--kind", "blame"), "diff": (compared / "ndp",)}.get(command, ())
            return failure(command, folder, *more).partition(f"{folder}/")[2]

        parts, blockers = (pq.read_table(compared / "dcpim" / name) for name in (BLAME, BLOCKERS))
        assert f"{BLAME}: expected parts of flow 0 that sum to" in failure_of(BLAME, parts[1:])
        others = pq.read_table(compared / "ndp" / BLAME)
        assert f"{BLAME}: expected parts of flow" in failure_of(BLAME, others)
        no_time = f"{BLAME}: expected the column time_ps, got none"
        assert no_time in failure_of(BLAME, parts.drop_columns("time_ps"))
        of_others = pa.array(np.full(blockers.num_rows, 99_999, np.uint64))
        for name in ("flow", "blocker"):
            other = blockers.set_column(blockers.column_names.index(name), name, of_others)
            expected = f"{BLOCKERS}: expected parts of {BLAME} and flows of the run, got others"
            assert expected in failure_of(BLOCKERS, other)
        missing = f"{BLOCKERS}: expected a table of results, got no such file"
        assert missing in failure_of(BLOCKERS, None)

    def test_a_missing_table_is_not_the_ideal(self, compared: Path, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        shutil.copytree(compared / "dcpim", folder)
        (folder / BLAME).unlink()
        expected = f"{folder / BLAME}: expected the causes of flows' times, got none"
        assert expected in failure("why", folder)

    def test_interrupted_runs_have_a_warning(self, run: rm.Run, tmp_path: Path) -> None:
        folder = interrupted(run.path, tmp_path / "partial")
        done = call("why", folder)
        assert done.exit_code == 0
        assert f"warning: {folder}: the run was interrupted; flows of" in done.stderr
        assert json.loads(why(folder, "--json"))["status"] == "interrupted"
        assert call("why", run.path).stderr == ""

    def test_hosts_have_their_names(self, run: rm.Run) -> None:
        blame = blame_of(run)
        named = Blame(
            blame.parts,
            blame.blockers,
            run.flows.sort_by("flow"),
            blame.size_classes,
            blame.counted,
            list("abcdefgh"),
        )
        flow, plain = named.flow(0), blame.flow(0)
        assert (flow.src_name, plain.src_name) == ("abcdefgh"[flow.src], f"host {flow.src}")


def _sizes(text: str) -> Sequence[int]:
    return [flow["size_bytes"] for flow in json.loads(text)["flows"]]

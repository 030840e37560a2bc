"""Results as the simulator writes them."""

import inspect
import json
import pickle
import shutil
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rampmeter as rm
from rampmeter.papers.metrics import METRICS
from rampmeter.results.slowdown import overall_slowdown, slowdown_groups

from .conftest import SMALL


def test_results_with_a_permanent_folder_can_be_sent_to_processes(
    small_run: rm.Run,
) -> None:
    assert pickle.loads(pickle.dumps(small_run)).flows.equals(small_run.flows)
    temporary = rm.run(rm.Plan(SMALL), quiet=True)
    with pytest.raises(TypeError, match="expected results in a folder that stays"):
        pickle.dumps(temporary)
    folder = temporary.path
    assert folder.is_dir()
    del temporary
    assert not folder.exists()


def test_the_tables_have_the_documented_columns(small_run: rm.Run) -> None:
    assert small_run.flows.column_names == [
        "flow",
        "arrival_ps",
        "src",
        "dst",
        "size_bytes",
        "fct_ps",
        "acked_ps",
        "ideal_ps",
        "acked_ideal_ps",
        "figure_ideal_ps",
        "ideal_is_bound",
        "duplicate_bytes",
        "deadline_ps",
        "outcome_ps",
        "delay_bound_ps",
        "tenant",
        "status",
        "first_byte_ps",
        "sent_bytes",
        "retransmitted_bytes",
        "delivered_bytes",
    ]
    series = ["time_ps", "tier", "utilisation", "queue_mean_bytes", "queue_max_bytes"]
    assert small_run.series.column_names == series
    assert small_run.queues.column_names[:3] == ["tier", "queue_bytes", "samples"]


def test_the_manifest_has_the_processor_time_of_the_simulation() -> None:
    # Clocks of processor time may advance in ticks, so a short run has none.
    run = rm.run(rm.Plan(SMALL).with_(("workload.flows", 5000)), quiet=True)
    cpu, wall = (run.manifest[f"{name}_seconds"] for name in ("cpu", "wall"))
    assert 0.0 < cpu <= wall + 0.01


def test_latencies_are_those_of_the_summary(small_run: rm.Run) -> None:
    table = small_run.latencies
    assert table is not None
    for kind, summary in small_run.summary["latency"].items():
        rows = table.filter(pc.equal(table["packets"], kind)).to_pylist()
        assert sum(row["count"] for row in rows) == summary["count"]
        for quantile in (50, 99):
            at = next(row["latency_ps"] for row in rows if row["cdf"] >= quantile / 100)
            assert at == pytest.approx(summary[f"p{quantile}_ps"], rel=1e-3)
        assert rows[-1]["cdf"] == 1.0
    points = (0.0, 3.0, 4.0, 1e6)
    data = [row for row in table.to_pylist() if row["packets"] == "data"]
    total = sum(row["count"] for row in data)
    at_most = [sum(r["count"] for r in data if r["latency_ps"] <= 1e6 * us) for us in points]
    below = METRICS["packets-below"].values(small_run, points, {})
    assert below == [n / total for n in at_most]
    assert 0 == at_most[0] < at_most[1] < at_most[2] <= at_most[3] == total


def test_every_flow_has_a_row_and_none_beats_the_ideal(small_run: rm.Run) -> None:
    flows = small_run.flows
    assert flows.num_rows == small_run.summary["flows"]["submitted"] == 200
    assert pc.all(pc.greater_equal(flows["fct_ps"], flows["ideal_ps"])).as_py()


def test_the_summary_agrees_with_the_table(small_run: rm.Run) -> None:
    flows = small_run.flows
    ratio = flows["fct_ps"].to_numpy() / flows["ideal_ps"].to_numpy()
    group = overall_slowdown(small_run.summary)
    assert group.count == 200
    assert group.mean == pytest.approx(ratio.mean())
    assert sum(g.count for g in slowdown_groups(small_run.summary)) == 200


@pytest.mark.parametrize("bins", ["bdp", "decades", "deciles", "classes"])
def test_every_kind_of_bins_counts_every_flow(small_run: rm.Run, bins: str) -> None:
    assert sum(g.count for g in slowdown_groups(small_run.summary, "acked", bins)) == 200


def test_unknown_ideals_and_bins_are_listed(small_run: rm.Run) -> None:
    with pytest.raises(ValueError, match="expected one of acked, delivered, figure, got best"):
        overall_slowdown(small_run.summary, "best")
    with pytest.raises(ValueError, match=r"expected one of bdp, .* got overall"):
        slowdown_groups(small_run.summary, bins="overall")


def test_the_manifest_identifies_the_run(small_run: rm.Run) -> None:
    manifest = small_run.manifest
    assert manifest["seed"] == 1
    assert manifest["status"] == "finished"
    assert manifest["version"] == rm.__version__


def test_tables_convert_to_pandas(small_run: rm.Run) -> None:
    assert len(small_run.flows.to_pandas()) == 200


class TestErrors:
    def test_a_folder_without_results_is_an_error(self, tmp_path: Path) -> None:
        run = rm.Run(tmp_path)
        for name in ("summary", "manifest", "flows", "links", "blame"):
            with pytest.raises(rm.ResultError, match="expected the folder of a run, got a folder "):
                getattr(run, name)
        (tmp_path / "manifest.json").write_text("{}")
        with pytest.raises(rm.ResultError, match="got a run without results"):
            _ = run.summary
        with pytest.raises(rm.ResultError, match=r"flows\.parquet: expected a table of results"):
            _ = run.flows

    @pytest.mark.parametrize("text", ["{", "[]", "\xff", "{}", "[" * 100_000])
    def test_broken_json_is_an_error(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "summary.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(rm.ResultError, match="expected"):
            _ = rm.Run(tmp_path).summary

    def test_a_broken_table_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "manifest.json").write_text("{}")
        (tmp_path / "flows.parquet").write_text("no table")
        with pytest.raises(rm.ResultError, match="expected a Parquet table"):
            _ = rm.Run(tmp_path).flows


class TestApi:
    def test_parts_make_a_run(self) -> None:
        run = rm.run(
            topology=rm.star(4),
            transport=rm.DcPim(r=2, k=2),
            workload=rm.imc10(load=0.4, flows=20),
            seed=3,
            quiet=True,
        )
        assert run.flows.num_rows == 20
        assert run.manifest["plan"]["transport"]["matching-rounds"] == 2

    def test_a_temporary_folder_is_removed_with_the_object(self) -> None:
        run = rm.run(
            topology=rm.star(4),
            transport=rm.DcPim(),
            workload=rm.imc10(load=0.4, flows=5),
            quiet=True,
        )
        path = run.path
        assert path.is_dir()
        del run
        assert not path.exists()

    def test_parts_replace_those_of_a_file(self, plan_file: Path, tmp_path: Path) -> None:
        run = rm.run(plan_file, workload=rm.imc10(0.3, 7), seed=9, out=tmp_path / "out", quiet=True)
        assert run.flows.num_rows == 7
        assert run.manifest["seed"] == 9
        assert run.manifest["plan"]["topology"]["hosts"] == 8

    def test_a_bad_plan_raises_its_error(self) -> None:
        with pytest.raises(rm.PlanError, match="topology"):
            rm.run(transport=rm.DcPim(), workload=rm.imc10(0.3, 7), quiet=True)

    def test_distributions_have_their_published_means(self) -> None:
        assert {"imc10", "web-search", "data-mining"} <= set(rm.distributions())
        assert rm.distribution_mean("imc10") == pytest.approx(195_357, rel=1e-4)
        with pytest.raises(rm.PlanError, match="imc11"):
            rm.distribution_mean("imc11")


def test_results_of_earlier_versions_have_the_present_names(
    small_run: rm.Run, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    shutil.copytree(small_run.path, old)
    flows = pq.read_table(old / "flows.parquet")
    former = {"outcome_ps": "fate_ps", "delay_bound_ps": "bound_ps"}
    index = flows.schema.get_field_index("status")
    status = pc.replace_substring_regex(flows["status"], "^delivered$", "finished")
    flows = flows.set_column(index, "status", status)
    flows = flows.rename_columns([former.get(name, name) for name in flows.column_names])
    pq.write_table(flows, old / "flows.parquet")
    summary = json.loads((old / "summary.json").read_text())
    summary["collectives"] = [{"bound_ps": 1, "over_bound": 1.5, "round": 0}]
    (old / "summary.json").write_text(json.dumps(summary))
    run = rm.Run(old)
    assert run.flows.equals(small_run.flows)
    assert run.columns("outcome_ps").equals(small_run.columns("outcome_ps"))
    assert run.summary["collectives"] == [
        {"lower_bound_ps": 1, "lower_bound_ratio": 1.5, "round": 0}
    ]


def test_flows_have_the_names_of_hosts(tmp_path: Path) -> None:
    names = ", ".join(f"'gpu{n}'" for n in range(8))
    done = {}
    for name, table in (("plain", ""), ("named", f"[names]\nhosts = [{names}]\n")):
        plan = rm.Plan(SMALL + table)
        done[name] = rm.run(plan, out=tmp_path / name, quiet=True).flows
    row = done["named"].slice(0, 1).to_pylist()[0]
    assert (row["src_name"], row["dst_name"]) == (f"gpu{row['src']}", f"gpu{row['dst']}")
    assert not {"src_name", "dst_name"} & set(done["plain"].column_names)


def test_results_that_do_not_exist_are_an_error_at_once(here: Path) -> None:
    with pytest.raises(rm.ResultError, match=r"^no: expected the folder of a run, got no folder$"):
        rm.Run("no")
    with pytest.raises(rm.ResultError, match=r"^no: expected the results of a sweep, got none$"):
        rm.SweepResults("no")
    with pytest.raises(rm.ResultError, match=r"^no: expected the folder of a comparison"):
        rm.Comparison.load("no")
    assert not [*here.iterdir()]


def test_a_comparison_of_a_folder_names_the_function_that_reads_one() -> None:
    message = r"^runs: .* got 'results'; `rampmeter.Comparison.load\(folder\)` reads a folder$"
    with pytest.raises(rm.PlanError, match=message):
        rm.Comparison("results")  # type: ignore[arg-type]


def test_warnings_are_attributes_of_plans_and_all_results() -> None:
    for kind in (rm.Plan, rm.Run, rm.Comparison, rm.SweepResults):
        assert not inspect.isfunction(inspect.getattr_static(kind, "warnings")), kind

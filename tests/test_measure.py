"""Values of whole runs in panels, on results made by hand."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rampmeter as rm
from rampmeter.papers.figure import SubFigure
from rampmeter.papers.measure import measure
from rampmeter.papers.metrics import Metric
from rampmeter.plan.manifest import MANIFEST
from rampmeter.results.missing import SUMMARY
from rampmeter.results.run import FLOWS, LINKS, TENANTS

from .conftest import SMALL, write_results


def panel(metric: Metric, *points: float) -> SubFigure:
    return SubFigure(
        id="a",
        title="",
        drawing="by-point",
        metrics=(metric,),
        runs=(),
        x="",
        x_label="",
        x_per=1.0,
        finished_before=None,
        above_bytes=0,
        up_to_bytes=None,
        edges_bytes=(),
        labels=tuple(map(str, points)),
        size_unit="",
        points=points,
        log="",
        rejected_max=0.0,
        cores=32,
        over="",
        links=(),
        window_ns=(0.0, 1.0),
        theorems=None,
    )


def values(run: rm.Run, metric: Metric, *points: float) -> list[float]:
    cells = measure(panel(metric, *points), run)
    return [value for value, _ in cells.values()]


def changed(run: rm.Run, **summary: Any) -> rm.Run:
    """Returns the run with some keys of its summary changed."""
    file = run.path / SUMMARY
    file.write_text(json.dumps(json.loads(file.read_text()) | summary))
    return rm.Run(run.path)


def test_completion_times_are_of_flows_of_the_panels_sizes(tmp_path: Path) -> None:
    run = write_results(
        tmp_path, rows=[(0, 1_460, 6e9, 5), (7, 2_920, 2e9, 5), (9, 2_920, None, 5)]
    )
    whole = replace(panel("fct-ms"), drawing="by-load")
    assert measure(whole, run) == {("fct-ms", None): (4.0, 2)}
    assert measure(replace(whole, above_bytes=1_460), run) == {("fct-ms", None): (2.0, 1)}
    assert measure(replace(whole, up_to_bytes=1_460), run) == {("fct-ms", None): (6.0, 1)}
    assert measure(replace(whole, without_bytes=1_460), run) == {("fct-ms", None): (2.0, 1)}


def test_unscheduled_flows_are_a_share_of_those_that_a_host_sent(tmp_path: Path) -> None:
    run = changed(write_results(tmp_path), transport={"unscheduled": 1, "scheduled": 3})
    assert values(run, "unscheduled") == [0.25]
    assert np.isnan(values(changed(run, transport={}), "unscheduled")).all()


def test_retransmitted_bytes_are_a_share_of_the_bytes_of_acknowledged_flows(tmp_path: Path) -> None:
    run = write_results(tmp_path, rows=[(0, 3_000, 6, 5), (7, 6_000, 6, 5), (9, 900, None, 5)])
    table = pq.read_table(tmp_path / FLOWS)
    again = pa.array([1_000, 0, 500], pa.uint64())
    pq.write_table(table.append_column("retransmitted_bytes", again), tmp_path / FLOWS)
    assert values(run, "retransmitted-share") == [0.1]


def test_throughput_is_of_all_access_links(tmp_path: Path) -> None:
    tiers = [{"name": "tor-up", "ports": 4}, {"name": "host-up", "ports": 8}]
    run = changed(write_results(tmp_path), tiers=tiers, goodput_gbps=48.0)
    (tmp_path / MANIFEST).write_text(json.dumps({"plan": {"topology": {"access-gbps": 10.0}}}))
    assert values(run, "throughput") == [0.6]


class TestDrops:
    def run(self, folder: Path) -> rm.Run:
        drops = {"host-up": 30, "tor-up": 0, "spine-down": 5, "tor-down": 15}
        tiers = [{"name": name, "data_drops": n} for name, n in drops.items()]
        return changed(write_results(folder), tiers=tiers, counters={"data_packets": 950})

    def test_the_rate_is_of_the_packets_that_were_dropped_or_arrived(self, tmp_path: Path) -> None:
        assert values(self.run(tmp_path), "drop-rate") == pytest.approx([0.05])

    def test_hops_are_counted_from_the_senders_interface(self, tmp_path: Path) -> None:
        by_hop = values(self.run(tmp_path), "drop-rate", 1, 2, 3, 4)
        assert by_hop == [0.03, 0.0, 0.005, 0.015]


class TestShares:
    @pytest.fixture
    def run(self, tmp_path: Path) -> rm.Run:
        """Returns a run of two tenants with 0.75, then 0.5 of the bytes of a millisecond."""
        run = write_results(tmp_path)
        columns = {
            "time_ps": pa.array([10**9] * 2 + [2 * 10**9] * 2 + [3 * 10**9] * 2, pa.uint64()),
            "tenant": pa.array([0, 1] * 3, pa.uint32()),
            "delivered_bytes": pa.array([75, 25, 125, 75, 999, 75], pa.uint64()),
        }
        pq.write_table(pa.table(columns), tmp_path / TENANTS)
        return changed(run, counters={"last_arrival_ps": 2_500_000_000})

    def test_tenant_shares_are_measured_until_arrivals_stop(self, run: rm.Run) -> None:
        assert values(run, "tenant-share") == [0.625]

    def test_tenant_shares_are_measured_between_points(self, run: rm.Run) -> None:
        assert values(run, "tenant-share", 1, 2, 3) == pytest.approx(
            [0.75, 0.5, float("nan")], nan_ok=True
        )

    def test_a_single_tenant_has_no_shares(self, tmp_path: Path) -> None:
        run = changed(write_results(tmp_path), counters={"last_arrival_ps": 1})
        assert values(run, "tenant-share") == pytest.approx([float("nan")], nan_ok=True)


class TestLateMessages:
    """Messages with a bound of 10, by their outcome."""

    def run(self, folder: Path, *messages: tuple[int | None, str]) -> rm.Run:
        run = write_results(folder)
        took, status = zip(*messages, strict=True)
        columns = {
            "acked_ps": pa.array(took, pa.uint64()),
            "delay_bound_ps": pa.array([10] * len(took), pa.uint64()),
            "status": pa.array(status, pa.string()),
        }
        pq.write_table(pa.table(columns), folder / FLOWS)
        return run

    def test_a_message_may_take_as_long_as_its_bound(self, tmp_path: Path) -> None:
        run = self.run(tmp_path, (10, "delivered"), (11, "delivered"))
        assert values(run, "late") == [0.5]

    @pytest.mark.parametrize("status", ["failed", "unfinished"])
    def test_undelivered_messages_are_late(self, status: str, tmp_path: Path) -> None:
        assert values(self.run(tmp_path, (9, "delivered"), (None, status)), "late") == [0.5]

    def test_rejected_messages_do_not_count_as_late(self, tmp_path: Path) -> None:
        run = self.run(tmp_path, (9, "delivered"), (None, "rejected"))
        assert values(run, "late") == [0.0]

    def test_the_share_of_late_messages_needs_an_accepted_message(self, tmp_path: Path) -> None:
        run = self.run(tmp_path, (None, "rejected"))
        assert values(run, "late") == pytest.approx([float("nan")], nan_ok=True)


class TestCoreMemory:
    """Core switches with memory for ten cells."""

    def run(self, folder: Path, **transport: int) -> rm.Run:
        run = changed(write_results(folder), transport=transport)
        derived = {"transport.core-cells-max": 10.0}
        (folder / MANIFEST).write_text(json.dumps({"derived": derived}))
        return run

    def test_core_memory_is_the_held_share_of_the_capacity(self, tmp_path: Path) -> None:
        run = self.run(tmp_path, core_cells_max=4, core_overflows=0)
        assert values(run, "core-memory") == [0.4]

    def test_overflows_make_core_memory_exceed_the_capacity(self, tmp_path: Path) -> None:
        run = self.run(tmp_path, core_cells_max=10, core_overflows=1)
        assert values(run, "core-memory") == [1.1]

    def test_core_switches_without_cells_have_no_core_memory(self, tmp_path: Path) -> None:
        run = self.run(tmp_path)
        (tmp_path / MANIFEST).write_text(json.dumps({"derived": {}}))
        assert np.isnan(values(run, "core-memory")).all()


class TestLeastServed:
    """Pods of four hosts; arrivals stop at 100."""

    def run(self, folder: Path, dst: list[int], took: list[int | None], kind: str) -> rm.Run:
        sizes = [600, 200, 400, 400]
        rows: list[tuple[int, int, float | None, int]] = [
            (10, size, t, 5) for size, t in zip(sizes, took, strict=True)
        ]
        run = changed(write_results(folder, rows=rows), counters={"last_arrival_ps": 100})
        (folder / MANIFEST).write_text(json.dumps({"plan": {"topology": {"kind": kind, "k": 4}}}))
        table = pq.read_table(folder / FLOWS)
        column = table.column_names.index("dst")
        table = table.set_column(column, "dst", pa.array(dst, pa.uint32()))
        pq.write_table(table, folder / FLOWS)
        return run

    def test_the_least_served_share_is_of_traffic_within_or_between_pods(
        self, tmp_path: Path
    ) -> None:
        # Within pods 600 of 800 bytes arrive; between them 400 of 800.
        run = self.run(tmp_path, [1, 2, 4, 5], [90, None, 90, 91], "fat-tree")
        assert values(run, "minimum-delivered-share") == [0.5]
        # Between them all.
        run = self.run(tmp_path, [1, 2, 4, 5], [90, None, 90, 90], "fat-tree")
        assert values(run, "minimum-delivered-share") == [0.75]

    def test_traffic_of_one_kind_has_no_least_served_share(self, tmp_path: Path) -> None:
        for dst in ([1, 2, 3, 3], [4, 5, 6, 7]):
            run = self.run(tmp_path, dst, [1, 1, 1, 1], "fat-tree")
            assert np.isnan(values(run, "minimum-delivered-share")).all()

    def test_networks_without_pods_have_no_least_served_share(self, tmp_path: Path) -> None:
        run = self.run(tmp_path, [1, 2, 4, 5], [1, 1, 1, 1], "pod")
        assert np.isnan(values(run, "minimum-delivered-share")).all()


class TestGoodput:
    """Message bytes that receivers' links carry, over time."""

    def run(self, folder: Path) -> rm.Run:
        # Two receivers at 8 Gbit/s: 1000 bytes a microsecond each.
        run = write_results(folder, rows=[(0, 1_000, 6, 5), (7, 1_000, 6, 5), (9, 1_000, 6, 5)])
        plan = {"topology": {"kind": "star", "gbps": 8.0}}
        (folder / MANIFEST).write_text(json.dumps({"plan": plan}))
        table = pq.read_table(folder / FLOWS)
        column = table.column_names.index("dst")
        table = table.set_column(column, "dst", pa.array([3, 4, 4], pa.uint32()))
        pq.write_table(table, folder / FLOWS)
        counts = {
            "time_ps": [1_000_000, 1_000_000, 2_000_000, 2_000_000, 4_000_000, 4_000_000],
            "tenant": [0, 1, 0, 1, 0, 1],
            "delivered_bytes": [500, 0, 500, 2_000, 1_500, 3_000],
        }
        pq.write_table(pa.table(counts), folder / TENANTS)
        return run

    def test_goodput_is_a_share_of_the_links_between_points(self, tmp_path: Path) -> None:
        assert values(self.run(tmp_path), "goodput", 1, 2, 4) == [0.25, 1.0, 0.5]
        # A point between samples has the count of the sample before it.
        assert values(self.run(tmp_path), "goodput", 2, 4) == [0.625, 0.5]

    def test_goodput_is_undefined_after_the_end(self, tmp_path: Path) -> None:
        assert np.isnan(values(self.run(tmp_path), "goodput", 4, 5)[1])

    def test_runs_of_one_tenant_have_no_goodput_by_tenant(self, tmp_path: Path) -> None:
        assert np.isnan(values(write_results(tmp_path), "goodput", 1, 2)).all()


def test_violations_are_collisions_without_unscheduled_packets(tmp_path: Path) -> None:
    kinds = {"scheduled-scheduled": 1, "control-data": 2, "control-control": 4, "unscheduled": 8}
    run = write_results(tmp_path)
    assert np.isnan(values(run, "violations")).all()
    assert values(changed(run, collisions={"kinds": kinds}), "violations") == [7.0]


class TestOccupancy:
    """Queues of ports to hosts, and of the switches that have such ports."""

    def run(self, path: Path) -> rm.Run:
        run = changed(
            write_results(path),
            tiers=[
                {"name": "tor-up", "queue_max_bytes": 9_000_000},
                {"name": "tor-down", "queue_max_bytes": 71_000},
            ],
            queues=[
                {"tier": "tor-up", "mean_bytes": 8_000.0},
                {"tier": "tor-down", "mean_bytes": 1_500.0},
            ],
            counters={"last_arrival_ps": 20},
        )
        rows = [
            (10, "s0", "tor-down", 1000),
            (10, "s0", "tor-up", 3000),
            (10, "s1", "tor-down", 2000),
            (10, "s9", "spine-down", 90_000),
            (10, "h0", "host-up", 80_000),
            (20, "s0", "tor-down", 5000),
            (20, "s0", "tor-up", 0),
            (20, "s1", "tor-down", 6000),
            # After arrivals stopped.
            (30, "s0", "tor-down", 70_000),
        ]
        time, end, tier, queue = zip(*rows, strict=True)
        columns = {
            "to": pa.array(["h0"] * len(rows)),
            "utilisation": pa.array([0.0] * len(rows)),
            "time_ps": pa.array(time, pa.uint64()),
            "from": pa.array(end),
            "tier": pa.array(tier),
            "queue_bytes": pa.array(queue, pa.uint64()),
        }
        pq.write_table(pa.table(columns), path / LINKS)
        return rm.Run(run.path)

    @pytest.mark.parametrize(
        ("metric", "expected"),
        [
            ("queue-mean-kb", 1.5),
            ("queue-max-kb", 71.0),
            # 4000 and 2000, then 5000 and 6000 bytes.
            ("switch-mean-kb", 4.25),
            ("switch-max-kb", 6.0),
        ],
    )
    def test_occupancy_is_of_ports_to_hosts_or_of_their_switch(
        self, tmp_path: Path, metric: Metric, expected: float
    ) -> None:
        assert values(self.run(tmp_path), metric) == [pytest.approx(expected)]

    def test_switches_without_link_samples_have_no_occupancy(self, tmp_path: Path) -> None:
        run = changed(write_results(tmp_path), queues=[])
        assert np.isnan(values(run, "switch-max-kb")).all()
        assert np.isnan(values(run, "queue-mean-kb")).all()

    def test_samples_of_a_run_agree_with_its_summary(self, tmp_path: Path) -> None:
        """One switch has all ports of a star, so that its memory is the sum of their queues."""
        plan = rm.Plan(SMALL).with_(("run.links", True))
        run = rm.run(plan, out=tmp_path, quiet=True)
        (most,) = values(run, "queue-max-kb")
        (held,) = values(run, "switch-max-kb")
        (mean,) = values(run, "switch-mean-kb")
        assert 0.0 < mean < held
        assert held <= 8 * most

    def test_links_of_short_samples_are_never_used_above_their_capacity(
        self, tmp_path: Path
    ) -> None:
        """A packet that is sent at the end of a sample counts in both samples, by its bytes."""
        sent, end = [], 2**62
        for sample_us in (10.0, 0.05):
            changes = (("run.links", True), ("run.sample-us", sample_us))
            run = rm.run(rm.Plan(SMALL).with_(*changes), out=tmp_path / str(sample_us), quiet=True)
            assert run.links is not None
            assert run.links["utilisation"].to_numpy().max() <= 1.0
            # Bytes after the last sample are in no row.
            times = run.links["time_ps"].to_numpy()
            end = min(end, int(times.max()))
            sent.append(int(run.links["sent_bytes"].to_numpy()[times <= end].sum()))
        assert sent[0] == sent[1]


class TestRounds:
    @staticmethod
    def run(path: Path, *rounds: tuple[int | None, float, float]) -> rm.Run:
        keys = ("completion_ps", "lower_bound_ratio", "bus_gbps")
        run = changed(
            write_results(path), collectives=[dict(zip(keys, r, strict=True)) for r in rounds]
        )
        manifest = {"status": "finished", "plan": {"topology": {"access-gbps": 100.0}}}
        (path / MANIFEST).write_text(json.dumps(manifest))
        return rm.Run(run.path)

    def test_the_slowest_round_counts(self, tmp_path: Path) -> None:
        run = self.run(tmp_path, (5, 1.25, 80.0), (6, 1.5, 66.0))
        assert values(run, "over-bound") == [1.5]
        assert values(run, "bus-share") == [0.66]

    def test_a_round_that_did_not_end_has_no_value(self, tmp_path: Path) -> None:
        run = self.run(tmp_path, (5, 1.25, 80.0), (None, 0.0, 0.0))
        assert np.isnan(values(run, "over-bound")).all()

    def test_a_run_without_collectives_has_no_value(self, tmp_path: Path) -> None:
        assert np.isnan(values(self.run(tmp_path), "bus-share")).all()

    def test_the_bus_share_of_a_ring_is_its_least_time_over_its_time(self, tmp_path: Path) -> None:
        n, size = 8, 1_000_000
        run = rm.run(
            topology=rm.star(n),
            transport=rm.Ideal(),
            workload=rm.collective("all-reduce", size, algorithm="ring"),
            out=tmp_path,
            quiet=True,
        )
        gbps = run.manifest["plan"]["topology"]["access-gbps"]
        seconds = run.summary["collectives"][0]["completion_ps"] / 1e12
        least = 2 * (n - 1) / n * size * 8 / (gbps * 1e9)
        (share,) = values(run, "bus-share")
        assert share == pytest.approx(least / seconds)
        assert 0.5 < share < 1.0

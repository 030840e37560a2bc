"""Tables for operators: jobs, collectives, links, queues and outages, of runs and comparisons."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import rampmeter as rm
from rampmeter.plan.plan import Plan
from rampmeter.results.critical_path import critical_paths

from .commands import call

GRAPH = """\
flow,arrival_us,src,dst,size_bytes,after,compute_us,tenant
10,0,0,1,1000000,,,0
11,,1,2,1000000,10,5,0
12,,1,1,0,10 11,20,0
13,,1,0,50000,12,,1
14,0,2,3,500000,,,2
"""
GOAL = """\
num_ranks 3
rank 0 {
  l1: calc 1500
  l2: send 655360b to 1 tag 7
  l2 requires l1
}
rank 1 {
  l1: recv 655360b from 0 tag 7
  l2: calc 20000
  l2 requires l1
  l3: send 500000b to 2 tag 8
  l3 requires l2
}
rank 2 {
  l1: recv 500000b from 1 tag 8
}
"""
NETWORK = """\
[topology]
kind = "leaf-spine"
racks = 2
hosts-per-rack = 4
spines = 2
[transport]
name = "dcpim"
"""
OUTAGES = """\
[workload]
pattern = "all-to-all"
sizes = "imc10"
load = 0.4
flows = 800
[run]
links = true
rates-us = 20
[faults]
rerouting-us = 200
[[faults.outages]]
link = "s0-s2"
from-us = 1000
until-us = 1800
[[faults.outages]]
host = 3
from-us = 2500
until-us = 2600
[[faults.outages]]
link = "s1-s3"
from-us = 3000
"""
MIX = """\
[workload]
pattern = "mix"
[[workload.parts]]
pattern = "collective"
operation = "all-reduce"
algorithm = "ring"
vector-bytes = 400000
rounds = 2
hosts = { first = 0, count = 4, step = 2 }
[[workload.parts]]
pattern = "all-to-all"
sizes = "imc10"
load = 0.2
flows = 100
"""


def plan(tmp_path: Path, text: str) -> Plan:
    file = tmp_path / "plan.toml"
    file.write_text(NETWORK + text)
    return Plan.load(file)


def trace(tmp_path: Path, name: str, text: str) -> Plan:
    (tmp_path / name).write_text(text)
    return plan(tmp_path, f'[workload]\npattern = "trace"\nfile = "{name}"\n')


def records(results: rm.Run | rm.Comparison, name: str) -> list[dict[str, Any]]:
    return results.tables[name].records()


class TestJobs:
    @pytest.mark.parametrize(("name", "text"), [("two.goal", GOAL), ("graph.csv", GRAPH)])
    def test_the_critical_path_is_the_makespan_under_the_ideal(
        self, tmp_path: Path, name: str, text: str
    ) -> None:
        base = trace(tmp_path, name, text)
        done = rm.compare(base, "ideal,dcpim", out=tmp_path / "r", seeds=2, quiet=True)
        jobs = records(done, "jobs")
        first = {row["transport"]: row for row in jobs if row["job"] == 0}
        assert first["ideal"]["lower_bound_ratio"] == pytest.approx(1.0, abs=1e-6)
        assert first["dcpim"]["lower_bound_ratio"] > 1.01
        assert first["dcpim"]["makespan_us_ci"] is not None

    def test_a_trace_with_custom_columns_has_a_bound(self, tmp_path: Path) -> None:
        first, *rows = GRAPH.splitlines()
        own = "\n".join([first.replace("src", "from"), *rows, ""])
        base = trace(tmp_path, "own.csv", own).with_(("workload.columns", {"src": "from"}))
        done = rm.run(base, out=tmp_path / "r", quiet=True)
        assert set(critical_paths(done)) == {0, 2}

    def test_a_trace_with_names_of_hosts_has_a_bound(self, tmp_path: Path) -> None:
        (tmp_path / "named.csv").write_text(
            "arrival_us,src,dst,size_bytes,tenant\n0,gpu-a,gpu-b,1000,0\n5,c,gpu-a,20000,0\n"
        )
        plan = rm.Plan(
            "topology = { kind = 'star', hosts = 3 }\nnames = { hosts = ['gpu-a', 'gpu-b', 'c'] }\n"
            "transport = { name = 'dcpim' }\n"
            "workload = { pattern = 'trace', file = 'named.csv' }\n",
            base=tmp_path,
        )
        done = rm.run(plan, out=tmp_path / "r", quiet=True)
        assert len(records(done, "slowdown_by_size")) > 1
        assert critical_paths(done)[0] > 5_000_000

    def test_a_job_that_waits_for_another_has_no_bound(self, tmp_path: Path) -> None:
        done = rm.run(trace(tmp_path, "graph.csv", GRAPH), out=tmp_path / "r", quiet=True)
        assert [row["lower_bound_us"] is None for row in records(done, "jobs")] == [
            False,
            True,
            False,
        ]

    def test_a_changed_or_missing_trace_has_no_bound(self, tmp_path: Path) -> None:
        done = rm.run(trace(tmp_path, "graph.csv", GRAPH), out=tmp_path / "r", quiet=True)
        assert set(critical_paths(done)) == {0, 2}
        (tmp_path / "graph.csv").write_text(GRAPH.replace("50000", "60000"))
        assert critical_paths(done) == {}
        (tmp_path / "graph.csv").unlink()
        assert critical_paths(done) == {}
        assert "lower_bound_us" not in records(done, "jobs")[0]

    def test_makespans_are_from_the_first_start_to_the_last_delivery(self, tmp_path: Path) -> None:
        done = rm.run(plan(tmp_path, MIX), out=tmp_path / "r", quiet=True)
        flows = done.flows.to_pandas().query("tenant == 0")
        span = ((flows.arrival_ps + flows.fct_ps).max() - flows.arrival_ps.min()) / 1e6
        collective, other = records(done, "jobs")
        assert (collective["work"], other["work"]) == ("all-reduce", "all-to-all")
        assert collective["makespan_us"] == pytest.approx(span)
        assert collective["flows"] == len(flows)

    def test_the_hosts_of_jobs_are_named(self, tmp_path: Path) -> None:
        done = rm.run(plan(tmp_path, MIX), out=tmp_path / "r", quiet=True)
        placed = [(row["n_hosts"], row["hosts"]) for row in records(done, "placement")]
        assert placed == [(4, "0-6 by 2"), (8, "0-7")]

    def test_workloads_of_one_open_job_have_no_such_table(self, small_run: rm.Run) -> None:
        assert not {"jobs", "placement", "outages", "links"} & small_run.tables.keys()


class TestCollectives:
    def test_a_comparison_has_time_bound_and_bus_bandwidth(self, tmp_path: Path) -> None:
        done = rm.compare(plan(tmp_path, MIX), "homa,ndp", out=tmp_path / "r", seeds=2, quiet=True)
        rows = records(done, "collectives")
        assert [row["transport"] for row in rows] == ["homa", "ndp"]
        for row in rows:
            rounds = [one for run in done.runs[row["transport"]] for one in _rounds(run)]
            mean = sum(one["completion_ps"] for one in rounds) / len(rounds) / 1e6
            assert row["rounds"] == row["completed"] == len(rounds) == 4
            assert row["completion_us"] == pytest.approx(mean)
            assert row["completion_us"] / row["lower_bound_us"] == pytest.approx(
                row["lower_bound_ratio"], 0.01
            )
            assert row["bus_gbps_ci"] is not None

    def test_the_command_and_the_report_print_them(self, tmp_path: Path) -> None:
        plan(tmp_path, MIX)
        out = tmp_path / "r"
        file = str(tmp_path / "plan.toml")
        command = ["compare", file, "--transports", "homa,ndp", "--out", str(out), "--quiet"]
        text = call(*command).stdout
        assert "all-reduce, ring, hosts 0 to 6 by 2: mean of rounds" in text
        assert "makespan" in text
        tables = text.partition("results:")[0]
        assert max(map(len, tables.splitlines())) <= 80
        report = tmp_path / "report.html"
        call("report", out, "--out", report)
        assert "mean of rounds" in report.read_text(encoding="utf-8")


def _rounds(run: rm.Run) -> list[dict[str, Any]]:
    rounds: list[dict[str, Any]] = run.summary["collectives"]
    return rounds


class TestLinksAndQueues:
    def test_the_busiest_links_are_those_of_the_samples(self, tmp_path: Path) -> None:
        done = rm.run(plan(tmp_path, OUTAGES), out=tmp_path / "r", quiet=True)
        every, busiest = records(done, "links"), records(done, "busiest_links")
        assert len(every) == 2 * (8 + 4)
        highest = sorted((row["utilisation"] for row in every), reverse=True)[:5]
        assert [row["utilisation"] for row in busiest] == highest
        # The links of hosts are a tier; the tier's utilisation is the mean of its links.
        up = [row["utilisation"] for row in every if row["tier"] == "host-up"]
        tier = next(one for one in done.summary["tiers"] if one["name"] == "host-up")
        assert sum(up) / len(up) == pytest.approx(tier["utilisation"], rel=0.02)

    def test_a_comparison_has_the_longest_queue_and_drops_by_reason(self, tmp_path: Path) -> None:
        base = plan(tmp_path, '[workload]\npattern = "incast"\nfan = 7\nflow-bytes = 500000\n')
        done = rm.compare(base, "dcpim,tcp", out=tmp_path / "r", quiet=True)
        rows = {row["transport"]: row for row in records(done, "ports")}
        assert rows["tcp"]["queue_max_bytes"] > rows["dcpim"]["queue_max_bytes"]
        assert rows["tcp"]["queue_max_port"].startswith("s0-h")
        tiers = done.runs["tcp"][0].summary["tiers"]
        counts = [n for tier in tiers for n in tier["drops"].values()]
        assert rows["tcp"]["dropped"] == sum(rows["tcp"]["drops"].values()) == sum(counts) > 0


class TestOutages:
    def test_each_outage_is_a_row(self, tmp_path: Path) -> None:
        done = rm.run(plan(tmp_path, OUTAGES), out=tmp_path / "r", quiet=True)
        link, host, last = records(done, "outages")
        assert [row["element"] for row in (link, host, last)] == ["s0-s2", "h3", "s1-s3"]
        assert (link["from_us"], link["until_us"], link["rerouted_us"]) == (1000, 1800, 200)
        # The host is repaired before switches route around it.
        assert (host["until_us"], host["rerouted_us"]) == (2600, None)
        assert (last["until_us"], last["goodput_after_gbps"]) == (None, None)
        assert link["packets_lost"] > 0

    def test_lost_packets_add_up_to_those_of_the_summary(self, tmp_path: Path) -> None:
        done = rm.run(plan(tmp_path, OUTAGES), out=tmp_path / "r", quiet=True)
        lost = sum(row["packets_lost"] for row in records(done, "outages"))
        total = sum(tier["drops"].get("link-down", 0) for tier in done.summary["tiers"])
        assert 0 < lost <= total
        assert lost >= 0.9 * total

    def test_goodput_is_exact_with_rates_and_close_without(self, tmp_path: Path) -> None:
        exact = rm.run(plan(tmp_path, OUTAGES), out=tmp_path / "exact", quiet=True)
        without = OUTAGES.replace("rates-us = 20", "")
        close = rm.run(plan(tmp_path, without), out=tmp_path / "close", quiet=True)
        rates = pq.read_table(exact.path / "rates.parquet").to_pandas()
        delivered = rates[rates.time_ps.between(1_000_000_001, 1_800_000_000)].delivered_bytes.sum()
        during = [records(one, "outages")[0]["goodput_during_gbps"] for one in (exact, close)]
        assert during[0] == pytest.approx(8 * delivered / 800e3)
        assert during[1] == pytest.approx(during[0], rel=0.25)
        notes = [one.tables["outages"].notes for one in (exact, close)]
        assert [len(of) for of in notes] == [1, 2]

    def test_a_failed_host_hits_only_its_own_flows(self, tmp_path: Path) -> None:
        done = rm.run(plan(tmp_path, OUTAGES), out=tmp_path / "r", quiet=True)
        flows = done.flows.to_pandas().query("src == 3 or dst == 3")
        _, host, _ = records(done, "outages")
        assert 0 < host["flows_hit"] <= (flows.retransmitted_bytes > 0).sum()

    def test_a_comparison_has_a_row_for_each_transport(self, tmp_path: Path) -> None:
        done = rm.compare(
            plan(tmp_path, OUTAGES), "dcpim,homa", out=tmp_path / "r", seeds=2, quiet=True
        )
        rows = records(done, "outages")
        assert [row["transport"] for row in rows] == ["dcpim", "homa"] * 3
        assert all(row["goodput_during_gbps_ci"] is not None for row in rows)


class TestFolders:
    @pytest.mark.parametrize("force", [False, True])
    def test_results_of_two_kinds_are_not_mixed(self, tmp_path: Path, *, force: bool) -> None:
        base = plan(tmp_path, MIX)
        rm.run(base, out=tmp_path / "run", quiet=True)
        rm.compare(base, "homa,ndp", out=tmp_path / "c", quiet=True)
        rm.sweep(base, transports="homa,ndp", out=tmp_path / "s", quiet=True)
        for folder, kind in (("c", "a comparison"), ("s", "a sweep")):
            with pytest.raises(rm.ResultError, match=f"the folder has the results of {kind}"):
                rm.run(base, out=tmp_path / folder, force=force, quiet=True)
        for folder, kind in (("run", "a run"), ("s", "a sweep")):
            with pytest.raises(rm.ResultError, match=f"the folder has the results of {kind}"):
                rm.compare(base, "homa,ndp", out=tmp_path / folder, force=force, quiet=True)
        for folder, kind in (("run", "a run"), ("c", "a comparison")):
            with pytest.raises(rm.ResultError, match=f"the folder has the results of {kind}"):
                rm.sweep(base, transports="homa", out=tmp_path / folder, force=force, quiet=True)

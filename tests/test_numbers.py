"""Numbers of runs match their names: checked against tables, arithmetic and repetitions."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rampmeter as rm
from rampmeter.plan.plan import Plan
from rampmeter.text.cautions import ONE_SAMPLE


def plan(tmp_path: Path, workload: str, *, transport: str = "dcpim", rest: str = "") -> Plan:
    file = tmp_path / "plan.toml"
    file.write_text(f"""
[topology]
kind = "leaf-spine"
racks = 2
hosts-per-rack = 4
spines = 2

[transport]
name = "{transport}"

[workload]
{workload}

{rest}
""")
    return Plan.load(file)


POISSON = 'pattern = "all-to-all"\nsizes = { fixed = 30000 }\nload = 0.6\nflows = 3000'


def run(plan: Plan, out: Path, seed: int = 1) -> rm.Run:
    return rm.run(plan, out=out, seed=seed, quiet=True)


def column(done: rm.Run, name: str, table: str = "flows") -> Any:
    values = pq.read_table(done.path / f"{table}.parquet")[name]
    return values.cast(pa.int64()).to_numpy(zero_copy_only=False)


class TestWindow:
    def test_utilisation_and_goodput_are_those_of_the_tables(self, tmp_path: Path) -> None:
        done = run(
            plan(tmp_path, POISSON, rest="[run]\nlinks = true\nsample-us = 1"), tmp_path / "r"
        )
        summary, window = done.summary, done.summary["window"]
        seconds = (window["to_ps"] - window["from_ps"]) * 1e-12
        arrival, fct = column(done, "arrival_ps"), column(done, "fct_ps")
        assert window["to_ps"] == arrival.max()
        counted = arrival >= window["from_ps"]
        assert summary["flows"]["counted"] == counted.sum()
        # Flows that are in flight at either end are partly in the window.
        ended = (arrival + fct > window["from_ps"]) & (arrival + fct <= window["to_ps"])
        goodput = 30_000 * 8e-9 * ended.sum() / seconds
        assert summary["goodput_gbps"] == pytest.approx(goodput, rel=0.02)
        links = pq.read_table(done.path / "links.parquet").to_pandas()
        host = links[links["tier"] == "host-up"]
        time = host["time_ps"].to_numpy()
        inside = (time > window["from_ps"]) & (time <= window["to_ps"])
        busy = host["sent_bytes"].to_numpy()[inside].sum() * 8 / (8 * 100e9 * seconds)
        assert summary["utilisation"] == pytest.approx(busy, rel=0.01)
        # The load counts headers; control packets are extra.
        assert 0.55 < summary["utilisation"] < 0.68

    def test_links_add_up_to_tiers_and_to_queue_maxima(self, tmp_path: Path) -> None:
        done = run(plan(tmp_path, POISSON, rest="[run]\nlinks = true"), tmp_path / "r")
        links = pq.read_table(done.path / "links.parquet").to_pandas()
        sums = links.groupby("tier")["sent_bytes"].sum()
        for tier in done.summary["tiers"]:
            # Bytes sent after the last sample are in the totals only.
            assert 0.99 * tier["bytes"] <= sums[tier["name"]] <= tier["bytes"]
            if tier["name"] != "host-up":
                assert (
                    links[links["tier"] == tier["name"]]["queue_bytes"].max()
                    <= (tier["queue_max_bytes"])
                )
                assert {"from", "to", "time_ps"} == set(tier["queue_max_at"])

    def test_an_incast_at_once_has_a_goodput_and_no_delivered_share(self, tmp_path: Path) -> None:
        incast = 'pattern = "incast"\nfan = 6\nflow-bytes = 1000000\nhub = 0'
        done = run(plan(tmp_path, incast), tmp_path / "r")
        summary = done.summary
        assert summary["delivered_share"] is None
        took = column(done, "fct_ps").max() * 1e-12
        assert summary["goodput_gbps"] == pytest.approx(48e-3 / took, rel=0.01)
        # One link of 100 Gbit/s, and headers of 40 bytes to 1460 of payload.
        assert 0.75 * 97.3 < summary["goodput_gbps"] < 97.4
        assert summary["warmup"] == {"rule": "none", "flows": 0, "is_found": True}
        assert summary["slowdown"]["delivered"]["overall"]["mean_ci"] is None

    def test_the_ideal_has_a_goodput(self, tmp_path: Path) -> None:
        summary = run(plan(tmp_path, POISSON, transport="ideal"), tmp_path / "r").summary
        assert summary["utilisation"] is None
        assert summary["goodput_gbps"] == pytest.approx(8 * 0.6 * 97.33, rel=0.1)

    def test_without_samples_there_is_no_utilisation(self, tmp_path: Path) -> None:
        summary = run(plan(tmp_path, POISSON, rest="[run]\nsample-us = 0"), tmp_path / "r").summary
        assert summary["utilisation"] is None
        assert {tier["utilisation"] for tier in summary["tiers"]} == {None}
        assert summary["goodput_gbps"] == pytest.approx(8 * 0.6 * 97.33, rel=0.1)

    def test_the_ideal_has_not_more_than_was_offered(self, tmp_path: Path) -> None:
        small = POISSON.replace("30000", "100")
        summary = run(plan(tmp_path, small, transport="ideal"), tmp_path / "r").summary
        assert 0.9 < summary["delivered_share"] <= 1.0

    def test_a_flow_that_was_not_delivered_may_end_the_statistics(self, tmp_path: Path) -> None:
        rest = "[measure]\nwarmup-flows = 0\ncompleted-before-flow = 1000\n[faults]\nloss = 1"
        summary = run(plan(tmp_path, POISSON, transport="dcpim", rest=rest), tmp_path / "r").summary
        assert summary["flows"]["counted"] == 0

    def test_goodput_does_not_depend_on_the_interval_of_samples(self, tmp_path: Path) -> None:
        goodputs = [
            run(
                plan(tmp_path, POISSON, rest=f"[run]\nsample-us = {us}"), tmp_path / str(us)
            ).summary["goodput_gbps"]
            for us in (1, 10, 900)
        ]
        assert max(goodputs) < 1.02 * min(goodputs)


class TestFlows:
    def test_lost_packets_are_retransmitted(self, tmp_path: Path) -> None:
        lossy = plan(tmp_path, POISSON, rest="[faults]\nloss = 0.002")
        done = run(lossy, tmp_path / "r")
        size, sent = column(done, "size_bytes"), column(done, "sent_bytes")
        again, duplicate = column(done, "retransmitted_bytes"), column(done, "duplicate_bytes")
        assert (sent == size + again).all()
        assert (again >= duplicate).all()
        lost = sum(tier["data_drops"] for tier in done.summary["tiers"])
        # Lost packets were retransmitted, and so were duplicates; receivers do not count packets
        # after a flow's end. Last packets are shorter than 1460 bytes.
        assert again.sum() > 0.95 * 1460 * lost + duplicate.sum()
        first, fct = column(done, "first_byte_ps"), column(done, "fct_ps")
        ideal = column(done, "ideal_ps")
        assert (first < fct).all()
        assert (first > 0.1 * ideal).all()

    def test_drops_have_place_time_and_reason(self, tmp_path: Path) -> None:
        lossy = plan(tmp_path, POISSON, rest="[faults]\nloss = 0.002")
        done = run(lossy, tmp_path / "r")
        drops = pq.read_table(done.path / "drops.parquet").to_pandas()
        for tier in done.summary["tiers"]:
            mine = drops[drops["tier"] == tier["name"]]
            assert mine.groupby("reason")["packets"].sum().to_dict() == tier["drops"]
            assert mine["bytes"].sum() == tier["bytes_dropped"]
        assert (drops["time_ps"].diff().dropna() >= 0).all()

    def test_outages_are_reported(self, tmp_path: Path) -> None:
        outage = (
            "[faults]\nrerouting-us = 50\noutages = [{ switch = 2, from-us = 20, until-us = 90 }]"
        )
        done = run(plan(tmp_path, POISSON, rest=outage), tmp_path / "r")
        rows = pq.read_table(done.path / "outages.parquet").to_pylist()
        assert [(row["element"], row["state"], row["time_ps"]) for row in rows] == [
            ("s2", "down", 20_000_000),
            ("s2", "up", 90_000_000),
        ]
        assert rows[0]["routed_ps"] == 70_000_000

    def test_columns_have_unit_and_meaning(self, tmp_path: Path) -> None:
        done = run(plan(tmp_path, POISSON), tmp_path / "r")
        for file in done.path.glob("*.parquet"):
            for field in pq.read_schema(file):
                assert (field.metadata or {})[b"meaning"].endswith(b"."), (file, field)
        assert (done.flows.schema.field("fct_ps").metadata or {})[b"unit"] == b"ps"


class TestTrust:
    def test_a_run_that_delivers_nothing_warns(self, tmp_path: Path) -> None:
        lost = plan(
            tmp_path, 'pattern = "incast"\nfan = 2\nflow-bytes = 3000', rest="[faults]\nloss = 1"
        )
        summary = run(lost, tmp_path / "r").summary
        assert summary["status"] in ("incomplete", "timed-out")
        assert summary["flows"]["delivered"] == 0
        assert summary["window"] == {"from_ps": 0, "to_ps": summary["counters"]["end_ps"]}
        assert 0 < summary["utilisation"] < 0.1
        assert summary["goodput_gbps"] == 0.0
        assert "2 of 2 flows were not delivered" in summary["warnings"][0]

    def test_a_short_run_is_warned_of(self, tmp_path: Path) -> None:
        short = 'pattern = "all-to-all"\nsizes = "imc10"\nload = 0.8\nflows = 300'
        warnings = " ".join(run(plan(tmp_path, short), tmp_path / "r").summary["warnings"])
        assert "had been delivered" in warnings

    def test_a_drain_that_is_shorter_than_a_flow_is_warned_of(self, tmp_path: Path) -> None:
        long = 'pattern = "incast"\nfan = 1\nflow-bytes = 100000000'
        done = run(plan(tmp_path, long, rest="[run]\ndrain-us = 1000"), tmp_path / "r")
        [warned] = [line for line in done.summary["warnings"] if " takes 0.008" in line]
        assert warned.startswith("run.drain-us: ")
        assert "0.001 s after" in warned

    def test_an_outage_is_no_warm_up(self, tmp_path: Path) -> None:
        """Flows that an outage delays count: no rule for steady runs looks at them."""
        outage = '[faults]\noutages = [{ link = "s0-s2", from-us = 20, until-us = 200 }]'
        done = run(plan(tmp_path, POISSON, rest=outage), tmp_path / "r")
        assert done.summary["warmup"]["rule"] == "none"
        assert done.summary["flows"]["counted"] == done.summary["flows"]["delivered"]
        steady = run(plan(tmp_path, POISSON), tmp_path / "steady")
        assert steady.summary["warmup"]["rule"] == "mser-5"

    def test_retransmissions_are_warned_of(self, tmp_path: Path) -> None:
        """pHost sends a first window unasked, for which an incast has no room (finding A22)."""
        incast = 'pattern = "incast"\nfan = 7\nflow-bytes = 100000'
        ports = "[fabric]\nbuffer-bytes = 30_000"
        done = run(plan(tmp_path, incast, transport="phost", rest=ports), tmp_path / "r")
        again, sent = (column(done, name).sum() for name in ("retransmitted_bytes", "sent_bytes"))
        [warning] = [line for line in done.summary["warnings"] if "had been sent before" in line]
        assert warning.startswith(f"{100 * again / sent:.0f} % of the payload")
        calm = run(plan(tmp_path, POISSON), tmp_path / "calm")
        assert "had been sent before" not in " ".join(calm.summary["warnings"])

    @pytest.mark.parametrize(("sample_us", "warnings"), [(100, 1), (1, 0)])
    def test_few_samples_in_the_window_are_warned_of(
        self, tmp_path: Path, sample_us: int, warnings: int
    ) -> None:
        complete = plan(tmp_path, POISSON, rest=f"[run]\nsample-us = {sample_us}")
        done = run(complete, tmp_path / "r")
        at = np.unique(column(done, "time_ps", "series"))
        window = done.summary["window"]
        n = int(((window["from_ps"] <= at) & (at <= window["to_ps"])).sum())
        texts = [line for line in done.summary["warnings"] if "measured window" in line]
        assert len(texts) == warnings == int(n < 20)
        start = f"run.sample-us: the measured window has {n} samples"
        assert all(line.startswith(start) for line in texts)

    def test_a_run_of_bursts_is_one_sample(self, tmp_path: Path) -> None:
        bursts = 'pattern = "incast"\nfan = 4\nflow-bytes = 30000\nrounds = 50\nperiod-us = 50'
        done = run(plan(tmp_path, bursts), tmp_path / "r")
        assert done.summary["slowdown"]["delivered"]["overall"]["mean_ci"] is None
        [warning] = [line for line in done.warnings if line.code == ONE_SAMPLE]
        assert "no confidence intervals" in warning

    @pytest.mark.parametrize(
        ("value", "rule", "flows"),
        [("0", "none", 0), ("50", "flows", 50), ('"auto"', "mser-5", None)],
    )
    def test_the_warm_up_is_that_of_the_plan(
        self, tmp_path: Path, value: str, rule: str, flows: int | None
    ) -> None:
        complete = plan(tmp_path, POISSON, rest=f"[measure]\nwarmup-flows = {value}")
        done = run(complete, tmp_path / "r")
        warmup = done.summary["warmup"]
        assert warmup["rule"] == rule
        assert flows in (None, warmup["flows"])
        assert done.summary["flows"]["counted"] == 3000 - warmup["flows"]

    def test_a_wrong_warm_up_is_an_error(self, tmp_path: Path) -> None:
        complete = plan(tmp_path, POISSON, rest='[measure]\nwarmup-flows = "some"')
        with pytest.raises(rm.PlanError, match="expected a number of flows, `auto` or `mser-5`"):
            complete.check()

    @pytest.mark.long
    def test_ninety_five_of_a_hundred_intervals_contain_the_mean(self, tmp_path: Path) -> None:
        star = """
[topology]
kind = "star"
hosts = 4

[transport]
name = "dcpim"

[workload]
pattern = "all-to-all"
sizes = { fixed = 20000 }
load = 0.5
flows = 4000

[run]
sample-us = 0
"""
        file = tmp_path / "star.toml"
        file.write_text(star)
        of_star = Plan.load(file)
        overall = [
            run(of_star, tmp_path / "runs" / str(seed), seed).summary["slowdown"]["delivered"][
                "overall"
            ]
            for seed in range(1, 201)
        ]
        mean = np.array([o["mean"] for o in overall])
        half = np.array([o["mean_ci"] for o in overall])
        # The mean of 200 runs is fourteen times as precise as that of one.
        holds = np.abs(mean - mean.mean()) <= half
        assert 0.90 <= holds.mean() <= 0.99

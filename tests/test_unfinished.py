"""Flows that do not end: progress, goodput, windows, and rates over time."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rampmeter as rm
from rampmeter.plan.plan import Plan
from rampmeter.text.cautions import ONE_SAMPLE, cautions_of

ENDLESS = "1000000000000"
HEADER = "arrival_us,src,dst,size_bytes,tenant"
STAIRS = [f"{100 * k},{k},7,{ENDLESS},{k}" for k in range(4)]
"""Four flows that start 0.1 ms apart into the link of host 7 and never end, a tenant each."""
TRANSPORTS = ("hpcc", "dctcp", "tcp", "dcpim", "homa", "ndp", "sird", "phost", "pfabric", "ideal")


def plan(tmp_path: Path, transport: str, rows: list[str], run: str = "drain-us = 700") -> Plan:
    (tmp_path / "flows.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    file = tmp_path / "plan.toml"
    file.write_text(f"""
[topology]
kind = "star"
hosts = 8
access-gbps = 25

[transport]
name = "{transport}"

[workload]
pattern = "trace"
file = "flows.csv"

[run]
{run}
""")
    return Plan.load(file)


def result(plan: Plan, tmp_path: Path, name: str = "r") -> rm.Run:
    return rm.run(plan, out=tmp_path / name, quiet=True)


def delivered(done: rm.Run) -> np.ndarray:
    return done.flows.sort_by("flow")["delivered_bytes"].to_numpy().astype(np.float64)


@pytest.mark.parametrize("transport", TRANSPORTS)
class TestUnfinishedFlows:
    def test_goodput_and_utilisation_are_those_of_the_whole_run(
        self, tmp_path: Path, transport: str
    ) -> None:
        summary = (done := result(plan(tmp_path, transport, STAIRS), tmp_path)).summary
        window = summary["window"]
        assert summary["status"] == "timed-out"
        assert summary["flows"]["unfinished"] == 4
        assert window["from_ps"] == 0
        assert 995e6 <= window["to_ps"] <= 1000e6
        # The link is busy from the first microseconds on; headers and windows need a share.
        assert 15 < summary["goodput_gbps"] < 25
        total = delivered(done).sum() * 8e3 / window["to_ps"]
        assert summary["goodput_gbps"] == pytest.approx(total, rel=1e-6)
        for tier in summary["tiers"]:
            assert 0.1 < tier["utilisation"] < 1
        if transport != "ideal":
            assert summary["utilisation"] > 0.1
            by_tenant = summary["tenant_goodput_gbps"]
            assert sum(by_tenant.values()) == pytest.approx(summary["goodput_gbps"], rel=1e-6)
            each = delivered(done) * 8e3 / window["to_ps"]
            assert list(by_tenant.values()) == pytest.approx(list(each), rel=1e-6)

    def test_a_short_flow_among_them_does_not_end_the_window(
        self, tmp_path: Path, transport: str
    ) -> None:
        rows = [row.replace(row.split(",")[0], "0", 1) for row in STAIRS]
        rows.append("0,4,6,1000,0")
        done = result(plan(tmp_path, transport, rows), tmp_path)
        assert done.summary["flows"]["delivered"] == 1
        assert done.summary["window"]["to_ps"] >= 695e6
        assert 13 < done.summary["goodput_gbps"] < 25


def test_progress_is_the_size_of_flows_that_are_delivered(small_run: rm.Run) -> None:
    flows = small_run.flows
    assert flows["delivered_bytes"].equals(flows["size_bytes"])
    assert small_run.rates is None


def test_a_warning_names_the_end_of_the_run(tmp_path: Path) -> None:
    """The flow needs less than the drain, but others are in its way."""
    rows = [f"0,{k},7,1000000,0" for k in range(7)]
    done = result(plan(tmp_path, "hpcc", rows, "drain-us = 1000"), tmp_path)
    assert done.summary["flows"]["unfinished"] > 0
    [line] = [line for line in done.summary["warnings"] if "run.drain-us" in line]
    assert line.startswith("run.drain-us: ended the run 0.001 s after the last arrival")


class TestRates:
    RUN = "drain-us = 700\nrates-us = 30"

    @pytest.mark.parametrize("transport", ["hpcc", "homa"])
    def test_intervals_add_up_to_flows(self, tmp_path: Path, transport: str) -> None:
        rows = ["0,4,6,200000,0", "10,5,6,1000,0", *STAIRS[1:]]
        done = result(plan(tmp_path, transport, rows, self.RUN), tmp_path)
        rates = done.rates
        assert rates is not None
        sums = rates.group_by("flow").aggregate([("delivered_bytes", "sum"), ("sent_bytes", "sum")])
        sums = sums.sort_by("flow")
        flows = done.flows.sort_by("flow")
        for name in ("delivered_bytes", "sent_bytes"):
            assert sums[f"{name}_sum"].to_pylist() == flows[name].to_pylist()
        times = sorted(set(rates["time_ps"].to_numpy().tolist()))
        assert times[:-1] == [30_000_000 * k for k in range(1, len(times))]
        assert times[-1] == done.summary["counters"]["end_ps"]
        spans = dict(zip(times, np.diff([0, *times]), strict=True))
        for row in rates.to_pylist():
            gbps = row["delivered_bytes"] * 8e3 / spans[row["time_ps"]]
            assert row["goodput_gbps"] == pytest.approx(gbps)
        # A flow has rows from the interval of its arrival to that of its last byte.
        of_flow = rates.to_pandas().groupby("flow")["time_ps"].apply(list)
        assert of_flow[1] == [30_000_000]
        last = of_flow[4]
        assert last == times[times.index(330_000_000) :], "it arrives at 300 us"

    def test_rates_in_progress_change_no_result(self, tmp_path: Path) -> None:
        one = result(plan(tmp_path, "hpcc", STAIRS), tmp_path, "one")
        other = result(plan(tmp_path, "hpcc", STAIRS, self.RUN), tmp_path, "other")
        assert one.flows.equals(other.flows)
        assert one.series.equals(other.series)
        assert one.summary["goodput_gbps"] == other.summary["goodput_gbps"]

    def test_rates_of_an_earlier_run_do_not_stay(self, tmp_path: Path) -> None:
        assert result(plan(tmp_path, "hpcc", STAIRS, self.RUN), tmp_path).rates is not None
        again = rm.run(plan(tmp_path, "hpcc", STAIRS), out=tmp_path / "r", quiet=True, force=True)
        assert again.rates is None

    def test_a_flow_has_the_link_alone_until_the_next_one_arrives(self, tmp_path: Path) -> None:
        rates = result(plan(tmp_path, "hpcc", STAIRS, self.RUN), tmp_path).rates
        assert isinstance(rates, pa.Table)
        table = rates.to_pandas().pivot(index="time_ps", columns="flow", values="goodput_gbps")
        alone = table.loc[60_000_000:90_000_000]
        assert (alone[0] > 19).all()
        assert alone[[1, 2, 3]].isna().all(axis=None)
        together = table.loc[600_000_000:]
        assert (together.sum(axis=1) > 19).all()
        assert (together > 0.5).all(axis=None)

    def test_a_transport_without_packets_has_no_rates(self, tmp_path: Path) -> None:
        with pytest.raises(rm.PlanError, match=r"run\.rates-us: expected a transport with packets"):
            result(plan(tmp_path, "ideal", STAIRS, self.RUN), tmp_path)


class TestOutage:
    PLAN = """
[topology]
kind = "leaf-spine"
racks = 2
hosts-per-rack = 4
spines = 2
[transport]
name = "dctcp"
[workload]
pattern = "all-to-all"
sizes = { fixed = 30000 }
load = 0.4
flows = 2000
"""
    FAULTS = '[faults]\noutages = [{ link = "s0-s2", from-us = 20, until-us = 120 }]\n'

    def test_an_outage_has_no_intervals_of_a_stationary_process(self, tmp_path: Path) -> None:
        steady = rm.run(Plan(self.PLAN), out=tmp_path / "steady", quiet=True).summary
        assert steady["slowdown"]["delivered"]["overall"]["mean_ci"] is not None
        assert ONE_SAMPLE not in steady["warning_codes"]
        failing = rm.run(Plan(self.PLAN + self.FAULTS), out=tmp_path / "r", quiet=True).summary
        for groups in failing["slowdown"].values():
            assert groups["overall"]["mean_ci"] is None
            assert groups["overall"]["p99_ci"] is None
        [line] = [line for line in cautions_of(failing) if line.code == ONE_SAMPLE]
        reason = "links or nodes fail or change during the run"
        assert line.startswith(f"workload: {reason}, so the run is one sample")
        assert not any("interval: " in line for line in failing["warnings"])
        # Arrivals are as steady as before, and so is the window.
        arrivals = failing["counters"]["last_arrival_ps"]
        assert failing["window"]["to_ps"] == arrivals

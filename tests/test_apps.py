"""Applications against closed forms."""

import math
from pathlib import Path

import numpy as np
import pytest

import rampmeter as rm
from rampmeter import papers, plots
from rampmeter.apps import detector, reframer, storage
from rampmeter.apps.capture import Arrivals, read_arrivals
from rampmeter.apps.detector import Outage, Probes
from rampmeter.apps.storage import Host, Network
from rampmeter.papers import Mode
from rampmeter.papers.draw import draw
from rampmeter.papers.metrics import METRICS
from rampmeter.papers.series import series_of
from rampmeter.papers.verdict import Basis, rows_of
from rampmeter.text.numbers import thousands

from .conftest import ROOT


def probes(answered: list[bool], period: float = 100.0, delta: float = 30.0) -> Probes:
    """Probes whose answers take 10 us."""
    fate = np.where(answered, 10.0, delta).astype(np.float64)
    sent = np.arange(len(answered), dtype=np.float64) * period
    return Probes(sent, fate, np.full(len(answered), delta))


class TestDetector:
    def test_a_probe_without_an_answer_is_detected_at_its_bound(self) -> None:
        some = probes([True, True, False, True])
        assert detector.suspicions_us(some).tolist() == [230.0]
        assert detector.detections_us(some, [Outage(195.0, 290.0)]).tolist() == [35.0]

    def test_several_misses_take_several_periods(self) -> None:
        some = probes([True, False, False, False])
        crash = [Outage(50.0, 400.0)]
        after = [detector.detections_us(some, crash, misses).item() for misses in (1, 2, 3)]
        assert after == [80.0, 180.0, 280.0]
        assert all(a <= detector.limit_us(some, n) for n, a in enumerate(after, 1))

    def test_crashes_that_no_probe_meets_are_not_detected(self) -> None:
        after = detector.detections_us(probes([True] * 4), [Outage(20.0, 60.0)])
        assert np.isnan(after).all()

    def test_suspicions_count_as_false_only_outside_of_outages(self) -> None:
        some = probes([False, True, False, True])
        assert detector.false_suspicions(some, []) == 2
        assert detector.false_suspicions(some, [Outage(150.0, 250.0)]) == 1

    def test_misses_in_a_row_are_counted_in_all_windows(self) -> None:
        some = probes([True, False, False, False, True])
        assert detector.false_positive(some, 1) == pytest.approx(3 / 5)
        assert detector.false_positive(some, 2) == pytest.approx(2 / 4)
        assert detector.false_positive(some, 4) == 0.0
        assert math.isnan(detector.false_positive(some, 6))
        with pytest.raises(ValueError, match="expected at least 1, got 0"):
            detector.false_positive(some, 0)


class TestDetectorInSimulation:
    plan = papers.load_figure(ROOT / "papers/cosy/fig8").plan

    def run(self, flows: int, period_us: float, **faults: object) -> rm.Run:
        workload = [("workload.flows", flows), ("workload.period-us", period_us)]
        table = [(f"faults.{key}", value) for key, value in faults.items()]
        return rm.run(self.plan.with_(*workload, *table), quiet=True)

    @pytest.mark.parametrize("period_us", [50.0, 100.0])
    def test_crashes_are_detected_within_a_period_and_the_bound(self, period_us: float) -> None:
        crashes = [
            {
                "link": 7,
                "from-us": 500.0 + k * (1000 + period_us / 10),
                "until-us": 900.0 + k * 1000,
            }
            for k in range(10)
        ]
        run = self.run(round(11_000 / period_us), period_us, outages=crashes)
        some = Probes.of(run)
        assert some.delta_us < 35.0
        after = detector.detections_us(some, detector.outages(run))
        assert after.size == 10
        assert (after <= detector.limit_us(some)).all()
        assert after.max() > period_us
        assert detector.false_suspicions(some, detector.outages(run)) == 0

    def test_losses_cause_false_positives_at_the_rate_of_the_theory(self) -> None:
        some = Probes.of(self.run(20_000, 100.0, loss=0.01))
        # A request or completion that one of four links loses is not answered. The receiver detects
        # lost rsvps and data within the bound, and reports them.
        expected = 1.0 - (1.0 - 0.01) ** (2 * 4)
        assert detector.false_positive(some, 1) == pytest.approx(expected, rel=0.1)
        assert detector.false_positive(some, 2) == pytest.approx(expected**2, rel=0.3)

    def test_other_tenants_messages_are_no_probes(self) -> None:
        figure = papers.load_figure(ROOT / "papers/cosy/fig8")
        loaded = figure.run("loaded")
        plan = figure.plan_of(loaded, 300, 1)
        run = rm.run(plan, quiet=True)
        some = Probes.of(run)
        tenants = run.flows["tenant"].to_pylist()
        assert 0 < some.sent_us.size == tenants.count(0) < len(tenants)
        assert np.isfinite(some.delay_bound_us).all()
        assert some.period_us == pytest.approx(100.0)

    def test_no_loss_causes_no_false_positive(self) -> None:
        assert detector.false_positive(Probes.of(self.run(5_000, 50.0)), 1) == 0.0


class TestStorage:
    network = Network(np.array([2.0]), np.array([6.0]), 20.0)
    free = Host(switch_us=0.0, interrupt_us=0.0, submit_us=0.0, collect_us=0.0, poll_us=1.0)

    def test_without_costs_policies_have_their_ideal_latency(self) -> None:
        took = {
            policy: storage.simulate(policy, self.network, self.free, threshold_us=5.0, reads=800)
            for policy in storage.POLICIES
        }
        assert set(took["polling"].latency_us) == {9.0}
        assert set(took["interrupts"].latency_us) == {14.0}
        assert set(took["predictable"].latency_us) == {21.0}
        assert took["polling"].kiops == pytest.approx(8e3 / 9.0, rel=0.02)
        shares = {policy: outcome.spinner_share for policy, outcome in took.items()}
        assert shares["polling"] == 0.0
        assert shares["interrupts"] == shares["predictable"] == 1.0

    def test_programs_of_equal_priority_alternate(self) -> None:
        host = Host(switch_us=10.0, quantum_us=90.0)
        outcome = storage.simulate("polling-fairshare", self.network, host, reads=2_000)
        assert outcome.spinner_share == pytest.approx(90.0 / 200.0, rel=0.02)
        assert outcome.tail_us == pytest.approx(90.0 + 2 * 10.0 + 9.0, abs=6.0)

    def test_sleeping_until_the_bound_costs_two_switches_and_a_timer_a_batch(self) -> None:
        host = Host(switch_us=2.0, interrupt_us=1.0, submit_us=0.5, collect_us=0.25)
        outcome = storage.simulate("predictable", self.network, host, reads=8_000)
        cycle = 8 * 0.75 + 21.0
        assert outcome.spinner_share == pytest.approx((21.0 - 5.0) / cycle, rel=0.01)
        assert outcome.latency_us.max() == pytest.approx(8 * 0.5 + 21.0 + 0.25)
        assert outcome.latency_us.min() == pytest.approx(0.5 + 21.0 + 8 * 0.25)

    def test_an_interrupt_fires_at_the_deadline_of_the_oldest_response(self) -> None:
        host = Host(switch_us=2.0, interrupt_us=1.0, submit_us=0.0, collect_us=0.0)
        outcome = storage.simulate("interrupts", self.network, host, threshold_us=8.0, reads=8_000)
        assert set(outcome.latency_us) == {9.0 + 8.0 + 3.0}
        assert outcome.spinner_share == pytest.approx(15.0 / 20.0, rel=0.01)

    def test_only_networks_with_bounds_allow_predictable_wake_ups(self) -> None:
        unbounded = Network(np.array([2.0]), np.array([6.0]))
        with pytest.raises(ValueError, match="expected a network with a bound"):
            storage.simulate("predictable", unbounded)

    def test_latencies_of_a_run_are_those_of_its_commands_and_responses(self) -> None:
        plan = papers.load_figure(ROOT / "papers/cosy/fig6").plan
        run = rm.run(plan.with_(("workload.flows", 800)), quiet=True)
        network = Network.of(run)
        tenants = run.flows["tenant"].to_pylist()
        assert network.command_us.size + network.response_us.size == tenants.count(0) > 400
        assert network.command_us.max() + network.response_us.max() < network.delay_bound_us
        assert network.delay_bound_us == pytest.approx(20.0, abs=0.1)

    def test_settings_of_a_figure_s_run_set_the_service_time(self) -> None:
        figure = papers.load_figure(ROOT / "papers/cosy/fig6")
        run = rm.run(figure.plan_of(figure.run("quiet-alone"), 1_600, 1), quiet=True)
        tails = [
            METRICS["tail-us"].values(run, (), {"policy": "polling", "service-us": service})[0]
            for service in (1.0, 14.5)
        ]
        assert METRICS["tail-us"].values(run, (), {"policy": "polling"}) == tails[:1]
        assert tails[1] - tails[0] == pytest.approx(13.5, abs=1.0)


class TestReframer:
    @staticmethod
    def paced(flows: int, packets: int, gap_us: float) -> Arrivals:
        """Returns flows that all send at the same pace, one a little after the other."""
        time = np.add.outer(np.arange(packets) * gap_us, np.arange(flows) * 0.01).ravel()
        return Arrivals(time.astype(np.float64), np.tile(np.arange(flows), packets))

    @pytest.mark.parametrize(("gap_us", "timeout_us"), [(1.0, 16.5), (3.0, 16.5), (20.0, 16.5)])
    def test_a_steady_flow_has_a_packet_a_gap_in_each_batch(
        self, gap_us: float, timeout_us: float
    ) -> None:
        each = math.floor(timeout_us / gap_us) + 1
        arrivals = self.paced(flows=5, packets=each * 6, gap_us=gap_us)
        assert reframer.batches(arrivals, timeout_us).tolist() == [each] * 30
        assert reframer.gaps_us(arrivals) == pytest.approx(gap_us)

    def test_batches_hold_every_packet_once(self) -> None:
        arrivals = reframer.delayed(self.paced(flows=20, packets=50, gap_us=2.0), 30.0)
        assert (np.diff(arrivals.time_us) >= 0).all()
        for timeout in (0.0, 16.0, 192.0):
            assert reframer.batches(arrivals, timeout).sum() == 1_000
        assert reframer.mean_batch(arrivals, math.inf) == 50.0

    def test_batches_grow_with_the_timeout_and_shrink_with_delays(self) -> None:
        compact = self.paced(flows=200, packets=8, gap_us=1.0)
        spread = reframer.delayed(compact, 50.0)
        means = [reframer.mean_batch(spread, timeout) for timeout in (16.0, 64.0, 192.0)]
        assert means == sorted(means)
        assert means[-1] < reframer.mean_batch(compact, 16.0) == 8.0

    def test_independent_delays_of_one_packet_each_batch_like_a_poisson_process(self) -> None:
        rng = np.random.default_rng(1)
        time = np.cumsum(rng.exponential(4.0, 40_000))
        arrivals = Arrivals(time, np.zeros(40_000, dtype=np.int64))
        assert reframer.mean_batch(arrivals, 16.0) == pytest.approx(1 + 16.0 / 4.0, rel=0.02)


class TestCapture:
    @pytest.mark.parametrize("has_names", [False, True])
    def test_packets_and_last_arrivals_are_those_of_the_table_of_flows(
        self, *, has_names: bool
    ) -> None:
        plan = papers.load_figure(ROOT / "papers/cosy/fig7").plan
        if has_names:
            hosts = [f"gpu{idx}" for idx in range(len(plan.drawing()["hosts"]))]
            plan = plan.with_(("names", {"hosts": hosts}))
        run = rm.run(plan.with_(("workload.flows", 500)), quiet=True)
        arrivals = Arrivals.of(run, 0)
        flows = run.flows.to_pydict()
        ends = [
            (arrival + fct) / 1e6
            for arrival, fct, dst in zip(
                flows["arrival_ps"], flows["fct_ps"], flows["dst"], strict=True
            )
            if dst == 0
        ]
        assert np.bincount(arrivals.flow).tolist() == [8] * len(ends)
        last = [arrivals.time_us[arrivals.flow == flow].max() for flow in range(len(ends))]
        assert sorted(last) == pytest.approx(sorted(ends))

    def test_runs_without_a_capture_and_other_files_are_refused(
        self, small_run: rm.Run, tmp_path: Path
    ) -> None:
        with pytest.raises(rm.ResultError, match="expected a run with a capture"):
            Arrivals.of(small_run, 0)
        file = tmp_path / "run.pcapng"
        with pytest.raises(rm.ResultError, match="No such file"):
            read_arrivals(file, "h0")
        file.write_bytes(b"not a capture")
        with pytest.raises(rm.ResultError, match="expected a little-endian pcapng file"):
            read_arrivals(file, "h0")


class TestFigures:
    @pytest.mark.parametrize("number", ["6", "7", "8"])
    def test_runs_of_the_applications_are_valid_plans(self, number: str) -> None:
        figure = papers.load_figure(papers.find_figure(ROOT / "papers", "cosy", number))
        for job in papers.jobs_of(figure, Mode("quick"), [1], Path("out")):
            job.plan.check()

    def test_values_and_drawings_are_made_of_runs(self) -> None:
        figure = papers.load_figure(ROOT / "papers/cosy/fig8")
        one = figure.run("tp100")
        runs = {"tp100": {1: rm.run(figure.plan_of(one, one.flows, 1), quiet=True)}}
        panel = figure.sub_figures[0]
        rows = rows_of(figure, panel, runs, Basis(Mode(), [1]))
        values = {row.cell.metric: row.measured.mean for row in rows if row.measured}
        assert values["detection-us"] == pytest.approx(values["bound-us"])
        assert values["detection-limit-us"] == pytest.approx(100.0 + values["bound-us"])
        assert values["false-suspicions"] == 0
        points = series_of(panel, runs["tp100"][1])
        assert points is not None
        drawn = draw(figure, panel, rows, series={"tp100": points}).axes[0]
        assert [len(np.asarray(marks.get_offsets())) for marks in drawn.collections] == [16, 11, 5]

    def test_an_undetected_crash_has_no_value(self) -> None:
        figure = papers.load_figure(ROOT / "papers/cosy/fig8")
        plan = figure.plan.with_(("workload.flows", 3), ("workload.period-us", 100.0))
        outage = {"link": 7, "from-us": 130.0, "until-us": 150.0}
        runs = {"tp100": {1: rm.run(plan.with_(("faults.outages", [outage])), quiet=True)}}
        row = rows_of(figure, figure.sub_figures[0], runs, Basis(Mode(), [1]))[0]
        assert row.measured is not None
        assert row.measured.without == (1,)
        assert row.to_json()["measured"]["mean"] is None

    def test_points_beyond_the_axis_are_at_its_edge(self) -> None:
        points = [
            plots.OperatingPoint("", 0.5, 40.0, series="a"),
            plots.OperatingPoint("", 0.5, 3_000.0, series="b"),
        ]
        axes = plots.operating_points(points).axes[0]
        shown = [y for line in axes.get_lines() for y in np.asarray(line.get_ydata())]
        assert shown == [40.0, 100.0]
        assert [note.get_text() for note in axes.texts if note.get_text()] == [
            f"{thousands(3_000)} µs"
        ]

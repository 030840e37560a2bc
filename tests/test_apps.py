"""Applications against closed forms."""

import math

import numpy as np
import pytest

import rampmeter as rm
from rampmeter import papers
from rampmeter.apps import detector
from rampmeter.apps.detector import Outage, Probes

from .conftest import ROOT


def probes(answered: list[bool], period: float = 100.0, delta: float = 30.0) -> Probes:
    """Probes whose answers take 10 us."""
    fate = np.where(answered, 10.0, delta).astype(np.float64)
    sent = np.arange(len(answered), dtype=np.float64) * period
    return Probes(sent, fate, np.full(len(answered), delta))


class TestDetector:
    def test_a_probe_without_an_answer_is_known_at_its_bound(self) -> None:
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
        return rm.run(self.plan.with_(*workload, *table), quiet=True)  # type: ignore[arg-type]

    @pytest.mark.parametrize("period_us", [50.0, 100.0])
    def test_crashes_are_known_within_a_period_and_the_bound(self, period_us: float) -> None:
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

    def test_losses_make_false_positives_as_often_as_theory_says(self) -> None:
        some = Probes.of(self.run(20_000, 100.0, loss=0.01))
        expected = detector.unanswered_in_theory(0.01, links=4)
        assert detector.false_positive(some, 1) == pytest.approx(expected, rel=0.1)
        assert detector.false_positive(some, 2) == pytest.approx(expected**2, rel=0.3)

    def test_there_are_none_without_losses(self) -> None:
        assert detector.false_positive(Probes.of(self.run(5_000, 50.0)), 1) == 0.0

"""cosy from Python: the theorems, and the promises of runs."""

import math
import random
from typing import Literal

import pytest

import rampmeter as rm
from rampmeter import cosy


def test_numbers_equal_those_of_the_paper() -> None:
    assert cosy.slots_max(32_000_000, 5) == 4_266
    five = cosy.Network(rtt_us=5.5, gbps=100.0, switches=5)
    assert five.queueing_us(4) == pytest.approx(5.4)
    assert five.queue_bytes(4) == 22_500
    assert five.delta_us(128_000, 1) == pytest.approx(five.delta_star_us(128_000))


def test_the_sustainable_share_is_that_of_balls_in_bins() -> None:
    for slots, cores in ((1, 2), (2, 8), (8, 32)):
        balls = slots * cores
        expected = sum(
            min(i, slots) * math.comb(balls, i) * (1 / cores) ** i * (1 - 1 / cores) ** (balls - i)
            for i in range(balls + 1)
        )
        assert cosy.share(slots, cores) == pytest.approx(expected / slots, rel=1e-9)
    network = cosy.Network(rtt_us=5.5, gbps=100.0)
    assert network.theta(10**9, 1, 10_000) == pytest.approx((1 - 1 / math.e) / 2, rel=1e-3)


@pytest.mark.parametrize(("slots", "cores"), [(0, 4), (4, 0)])
def test_impossible_arguments_are_named(slots: int, cores: int) -> None:
    with pytest.raises(ValueError, match="expected at least 1, got 0"):
        cosy.share(slots, cores)


@pytest.mark.parametrize("transport", [rm.Cosy(slots=4), rm.Cosy(preset="rsvp")])
def test_every_message_has_a_fate_within_its_bound(transport: rm.Cosy) -> None:
    run = rm.run(
        topology=rm.leaf_spine(racks=3, hosts_per_rack=4, spines=2),
        transport=transport,
        workload=rm.all_to_all({"fixed": 64_000}, load=0.8, flows=2_000),
        quiet=True,
    )
    flows = run.flows
    status = flows["status"].to_pylist()
    counts = run.summary["flows"]
    assert set(status) == {"delivered", "rejected"}
    assert counts["rejected"] == status.count("rejected") > 0
    assert counts["delivered"] + counts["rejected"] == 2_000
    assert (flows["outcome_ps"].to_numpy() <= flows["delay_bound_ps"].to_numpy()).all()
    took = flows["fct_ps"].to_numpy()
    assert (took[~(flows["status"].to_numpy() == "rejected")] > 0).all()


@pytest.mark.parametrize("order", ["oldest", "random"])
def test_delays_of_a_central_queue_match_queueing_theory(
    order: Literal["oldest", "random"],
) -> None:
    """One pair with one slot is a queue M/D/1: mean wait rho / (2 (1 - rho)) sendings."""
    rng, now, arrivals = random.Random(1), 0.0, []
    for _ in range(100_000):
        now += rng.expovariate(0.7)
        arrivals.append((now, 0, 1))
    waits = cosy.central_waits(arrivals, 1, 1.0, order)
    assert len(waits) == 100_000
    assert sum(waits) / len(waits) == pytest.approx(0.7 / (2 * 0.3), rel=0.04)


def test_a_slot_is_needed_at_both_ends() -> None:
    arrivals = [(0.0, 0, 1), (0.1, 0, 2), (0.2, 3, 2), (0.3, 3, 1)]
    assert cosy.central_waits(arrivals, 1, 1.0) == pytest.approx([0.0, 0.0, 1.1, 0.9])
    assert cosy.central_waits(arrivals, 2, 2.0) == [0.0] * 4

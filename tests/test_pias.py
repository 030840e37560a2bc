"""Thresholds of PIAS: the least mean time of its model, and their effect in the simulator."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import differential_evolution

import rampmeter as rm
from rampmeter.analysis.pias import pias_mean_time, pias_thresholds
from rampmeter.plan import schema

PUBLISHED = {
    (name.rpartition("-")[0], float(name.rpartition("-")[2])): values["thresholds"]
    for name, values in schema.transport_info("pias")["presets"]
    if name != "reference"
}


@pytest.mark.parametrize(("sizes", "load"), PUBLISHED)
def test_the_mean_time_is_at_most_that_of_the_published_tables(sizes: str, load: float) -> None:
    ours = pias_thresholds(sizes, load)
    assert len(ours) == 7
    assert all(before < after for before, after in pairwise(ours))
    assert pias_mean_time(sizes, load, ours) <= pias_mean_time(sizes, load, PUBLISHED[sizes, load])


def test_a_global_optimiser_finds_nothing_better() -> None:
    packets = 20_000

    def mean(drawn: np.ndarray) -> float:
        return pias_mean_time("web-search", 0.7, sorted(drawn * packets))

    found = differential_evolution(mean, [(0.0, 1.0)] * 3, rng=1, tol=1e-8)
    ours = pias_mean_time("web-search", 0.7, pias_thresholds("web-search", 0.7, classes=4))
    assert ours == pytest.approx(found.fun, rel=1e-5)
    assert ours <= found.fun * (1 + 1e-6)


def test_thresholds_split_bytes_as_the_model(tmp_path: Path) -> None:
    # With two classes the first carries (1 - sqrt(1 - load)) / load of all bytes: 2/3 at .75.
    assert pias_thresholds({"fixed": 1_460_000}, load=0.75, classes=2) == [667]
    # One packet or 99, as often: 50 packets on average, one of them the first of its message.
    (tmp_path / "two.txt").write_text("1 0.5\n99 1\n")
    table = {"cdf": "two.txt", "unit": "packets", "interpolation": "steps"}
    expected = round(1 + 2 * (100 / 3 - 1))
    assert pias_thresholds(table, load=0.75, classes=2, base=tmp_path) == [expected]
    # Even sizes from nothing to 1000 packets: sizes before x carry 1 - (1 - x / 1000)^2.
    (tmp_path / "even.txt").write_text("0 0\n1000 1\n")
    even = {"cdf": "even.txt", "unit": "packets"}
    expected = round(1000 * (1 - (1 / 3) ** 0.5))
    assert pias_thresholds(even, load=0.75, classes=2, base=tmp_path) == [expected]


def test_the_simulator_is_as_fast_with_ours_as_with_the_published() -> None:
    def mean_ms(thresholds: list[int]) -> float:
        run = rm.run(
            topology=rm.leaf_spine(access_gbps=10, core_gbps=40),
            transport=rm.Pias(thresholds=thresholds),
            workload=rm.web_search(load=0.8, flows=2_000),
            quiet=True,
        )
        assert run.summary["flows"]["delivered"] == 2_000
        return float(run.flows["fct_ps"].to_numpy().mean()) / 1e9

    published = mean_ms(PUBLISHED["web-search", 0.8])
    assert mean_ms(pias_thresholds("web-search", 0.8)) == pytest.approx(published, rel=0.03)


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="load: expected a number above 0 and below 1, got 1"):
        pias_thresholds("imc10", 1.0)
    with pytest.raises(ValueError, match="classes: expected a whole number from 2 to 8, got 9"):
        pias_thresholds("imc10", 0.5, classes=9)
    with pytest.raises(rm.PlanError, match=r"sizes: expected one of imc10, .* got .imc11."):
        pias_thresholds("imc11", 0.5)


def test_plans_accept_lists_and_describe_wrong_ones() -> None:
    def plan(thresholds: list[int]) -> rm.Plan:
        transport = rm.Pias(thresholds=thresholds)
        return rm.Plan.of(topology=rm.star(4), transport=transport, workload=rm.imc10(0.5, 10))

    ours = pias_thresholds("imc10", 0.5)
    assert plan(ours).check()["transport"]["thresholds"] == ours
    expected = r"thresholds: expected 7 whole numbers from 0 to 100000000 that ascend, got \[3, 2"
    with pytest.raises(rm.PlanError, match=expected):
        plan([3, 2, 5, 6, 7, 8, 9]).check()

"""Seeds, whole numbers and keys that are given twice: one rule for commands and Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rampmeter as rm
from rampmeter.choices.seeds import SEED_MAX, extended, listed, seeds_argument
from rampmeter.commands.options import overrides_of, seeds_of
from rampmeter.plan.plan import Plan

from .commands import error_line, ok
from .conftest import SMALL

PLAN = Plan(SMALL)
FORMS = [
    *(([2, 9], [2, 9]), ("2,9", [2, 9]), (range(3, 5), [3, 4]), ("3..4", [3, 4])),
    *((2.0, [1, 2]), ("2.0", [1, 2]), ("2e0", [1, 2]), ("+2", [1, 2])),
]
"""Forms of seeds in Python, and the seeds of the runs."""
READINGS = {"1_000": 1000, "1e3": 1000, "1.0e3": 1000, "0..0": [0], "5..5": [5], "3,": None}
"""Texts of seeds, and their number or the seeds; `None` for an error."""


@pytest.mark.parametrize(("seeds", "expected"), FORMS)
def test_comparisons_and_sweeps_have_the_seeds_of_each_form(
    seeds: Any, expected: list[int]
) -> None:
    compared = rm.compare(PLAN, "dcpim", seeds=seeds, quiet=True)
    assert [run.manifest["seed"] for run in compared.runs["dcpim"]] == expected
    swept = rm.sweep(PLAN, seeds=seeds, quiet=True)
    assert swept.table["seed"].to_pylist() == expected


def test_the_command_compares_listed_seeds(plan_file: Any) -> None:
    ok("compare", plan_file, "--transports", "dcpim", "--seeds", "7,2", "--out", plan_file.parent)
    compared = rm.Comparison.load(plan_file.parent)
    assert [run.path.name for run in compared.runs["dcpim"]] == ["seed-7", "seed-2"]


def test_precision_adds_seeds_after_the_largest_one() -> None:
    assert extended(listed([9, 3], 1), 4) == (9, 3, 10, 11)
    compared = rm.compare(PLAN, "dcpim", seeds=[9, 3], precision=0.01, quiet=True)
    assert [run.manifest["seed"] for run in compared.runs["dcpim"]][:3] == [9, 3, 10]


@pytest.mark.parametrize("text", READINGS)
def test_texts_of_seeds_have_one_reading_in_commands_and_python(text: str) -> None:
    found = []
    for read in (seeds_of, lambda value: seeds_argument("seeds", value)):
        try:
            found.append(read(text))
        except rm.PlanError:
            found.append(None)
    assert found == [READINGS[text]] * 2


@pytest.mark.parametrize("seeds", ["0", "-1", "[1, 1]", "[]", "'a'", "true", "[-1]", "[1.5]"])
def test_seeds_of_a_plan_are_errors_of_their_key_and_line(plan_file: Any, seeds: str) -> None:
    n_lines = SMALL.count("\n")
    plan_file.write_text(f"{SMALL}[sweep]  # points\n\nseeds = {seeds}\n")
    for command in ("sweep", "check"):
        place = f"rampmeter: {plan_file}: line {n_lines + 3}: sweep.seeds: expected"
        assert error_line(command, plan_file).startswith(place)
    with pytest.raises(rm.PlanError) as caught:
        rm.sweep(plan_file, quiet=True)
    assert (caught.value.key, caught.value.line) == ("sweep.seeds", n_lines + 3)
    assert error_line("sweep", plan_file, "--seeds", "0").startswith("rampmeter: --seeds: expect")


def test_a_sweep_of_one_seed_names_the_command_of_single_runs(plan_file: Any) -> None:
    line = error_line("sweep", plan_file, "--seeds", "0..0")
    assert "requires keys to vary, transports or several seeds; `rampmeter run`" in line


@pytest.mark.parametrize(
    "value",
    [
        b"1",
        bytearray(b"1"),
        {1: 2},
        0,
        True,
        [],
        [1, 1],
        [1.5],
        "x",
        "",
        [-1],
        [SEED_MAX + 1],
        "1.5",
    ],
)
def test_other_seeds_are_an_error_of_the_argument(value: Any) -> None:
    with pytest.raises(rm.PlanError, match=r"^seeds") as caught:
        seeds_argument("seeds", value)
    assert caught.value.expected


@pytest.mark.parametrize("seed", [3.0, np.float64(3), np.int64(3)])
def test_a_seed_may_be_a_whole_float(seed: Any) -> None:
    assert rm.run(PLAN, seed=seed, quiet=True).manifest["seed"] == 3
    assert Plan.of(seed=seed).seed == 3


@pytest.mark.parametrize("seed", [1.5, "1", True, -1, 2**64])
def test_other_numbers_are_no_seed(seed: Any) -> None:
    for call in (lambda: rm.run(PLAN, seed=seed), lambda: Plan.of(seed=seed)):
        with pytest.raises(rm.PlanError, match=r"^seed: expected a whole number from 0"):
            call()


TOO_LARGE: dict[str, Callable[[], Any]] = {
    "workload.flows": lambda: rm.run(
        topology=rm.star(4), transport="dcpim", workload=rm.imc10(0.5, flows=2**64)
    ),
    "transport.switch-queue-packets": lambda: Plan.of(transport=rm.Tcp(switch_queue_packets=2**70)),
    "topology.hosts": lambda: PLAN.with_({"topology.hosts": 2**70}),
    "workload.hosts[1]": lambda: PLAN.with_(("workload.hosts", [0, 2**70])),
}


@pytest.mark.parametrize("key", TOO_LARGE)
def test_whole_numbers_that_are_too_large_name_their_key(key: str) -> None:
    with pytest.raises(rm.PlanError) as caught:
        TOO_LARGE[key]()
    assert (caught.value.key, caught.value.expected) == (key, "a whole number below 2^64")
    assert str(2**64)[:2] in str(caught.value) or str(2**70) in str(caught.value)


def test_the_command_names_the_key_of_a_value_that_is_no_number(plan_file: Any) -> None:
    line = error_line("check", plan_file, "--set", "workload.load=nan")
    assert "workload.load: expected a load above 0, at most 2, got NaN" in line


def test_the_command_names_the_key_of_a_number_that_is_too_large(plan_file: Any) -> None:
    line = error_line("check", plan_file, "--set", f"topology.hosts={10**25}")
    expected = f"topology.hosts: expected a whole number below 2^64, got {10**25}"
    assert line == f"rampmeter: {plan_file}: {expected} [plan-value]"


@pytest.mark.parametrize(
    ("settings", "seed", "message"),
    [
        (["seed=4"], 3, "--seed, --set seed: expected one value, got 4 and 3"),
        (["seed=4", "seed=5"], None, "--set seed: expected one value, got 4 and 5"),
        (["workload.load=.3", "workload.load=.4"], 1, "--set workload.load: expected one value"),
    ],
)
def test_two_values_of_a_key_are_an_error(
    settings: list[str], seed: int | None, message: str
) -> None:
    with pytest.raises(rm.PlanError, match=f"^{message}"):
        overrides_of(settings, seed)


def test_a_value_may_be_given_twice() -> None:
    assert overrides_of(["seed=3"], 3) == [("seed", 3), ("seed", 3)]


@pytest.mark.parametrize(("seeds", "n_runs"), [("2", 1.0), ("2,9", 1.0), ("3..6", 2.0)])
def test_figures_of_papers_have_the_seeds_of_each_form(seeds: str, n_runs: float) -> None:
    def n_runs_of(text: str) -> int:
        line = ok("papers", "phost", "3", "--dry-run", "--seeds", text).stdout
        return int(line.partition(": ")[2].split()[0])

    assert n_runs_of(seeds) == n_runs * n_runs_of("2")
    assert "--seeds: expected" in error_line("papers", "phost", "3", "--seeds", "x")

"""Warnings as data: codes in plans and results, their paragraphs, and `rampmeter explain`."""

import copy
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm
from rampmeter import _core
from rampmeter.analysis.confidence import TWO_SEEDS
from rampmeter.commands.json_output import USAGE
from rampmeter.hosts import SendError
from rampmeter.results.pictures import PART_SHOWN
from rampmeter.sweeps.engines import EngineError
from rampmeter.testbed.command import TestbedError
from rampmeter.text.cautions import Caution, cautions_of, explanations, values_of
from rampmeter.text.locations import BAD_FILE, FILE_ACCESS, RESULTS, SYNTAX, VALUE

from .commands import call
from .conftest import ROOT

OVERLOAD = """
topology = { kind = "leaf-spine", racks = 2, hosts-per-rack = 4, spines = 1, core-gbps = 100 }
transport = { name = "homa" }
[workload]
pattern = "all-to-all"
sizes = "imc10"
load = 0.9
flows = 50
"""


def test_every_code_is_explained() -> None:
    errors = codes_of_errors()
    of_nodes = codes_of_log_lines() | codes_of_node_errors()
    warnings = {*_core.WARNINGS, PART_SHOWN, TWO_SEEDS}
    assert explanations().keys() == warnings | errors | of_nodes


def codes_of_errors() -> set[str]:
    """Returns the codes of exceptions of the package and of its commands."""
    classes: list[Any] = [
        _core.AttachError,
        _core.EndpointError,
        _core.FullError,
        _core.InternalError,
        _core.NodeGoneError,
        EngineError,
        SendError,
        TestbedError,
    ]
    plans = {SYNTAX, VALUE, BAD_FILE, RESULTS}
    return plans | {USAGE, FILE_ACCESS} | {kind.code for kind in classes}


def codes_of_log_lines() -> set[str]:
    """Returns the codes of warnings in the log of rampd; each warning has one."""
    codes = set()
    for file in (ROOT / "crates").glob("*/src/**/*.rs"):
        warnings = re.findall(r"\bwarn!\((.*?)\);?\n", file.read_text(), re.DOTALL)
        for warning in warnings:
            code = re.match(r'\s*code = "([a-z-]+)",', warning)
            assert code is not None, f"{file}: {warning}"
            codes.add(code[1])
    return codes


def codes_of_node_errors() -> set[str]:
    """Returns the codes of errors with which rampd ends."""
    text = (ROOT / "crates/rampd/src/error.rs").read_text()
    codes = set(re.findall(r'=> "([a-z-]+)",', text))
    assert len(codes) > 3
    return codes


@pytest.mark.parametrize("paragraph", explanations().values())
def test_paragraphs_are_sentences_of_at_most_100_columns(paragraph: str) -> None:
    assert paragraph.endswith(".")
    assert max(map(len, paragraph.splitlines())) <= 100


def test_warnings_of_plans_have_codes() -> None:
    (caution,) = rm.Plan(OVERLOAD).warnings
    assert caution.code == "overload"
    assert caution.startswith("workload.load: 0.9 exceeds")
    assert (caution.values["load"], caution.values["hosts"]) == (0.9, 4)
    assert caution.values["load_max"] < 0.9


def test_values_of_every_code_are_listed_with_its_explanation() -> None:
    assert {code: values_of(code) for code in _core.WARNINGS} == _core.WARNINGS
    for names in _core.WARNINGS.values():
        assert len(set(names)) == len(names)


def test_clock_errors_cause_a_warning_if_hosts_send_in_slots() -> None:
    def codes(transport: str, offset_us: float) -> list[str]:
        plan = rm.Plan(OVERLOAD.replace("homa", transport).replace("0.9", "0.4"))
        return [caution.code for caution in plan.with_(("clocks.offset-us", offset_us)).warnings]

    assert "clock-offset" in codes("fastpass", 10.0)
    assert "clock-offset" not in codes("fastpass", 0.5)
    assert "clock-offset" not in codes("homa", 10.0)


def test_clocks_that_drift_more_than_guard_bands_allow_cause_a_warning() -> None:
    plan = rm.Plan(OVERLOAD.replace("homa", "fastpod").replace("0.9", "0.4"))
    plan = plan.with_(("topology", {"kind": "pod", "k": 4}), ("clocks.drift-ppm", 20.0))
    assert "clock-drift" in [caution.code for caution in plan.warnings]
    allowed = plan.with_(("transport.clock-drift-ppm", 20.0))
    assert "clock-drift" not in [caution.code for caution in allowed.warnings]


def test_warnings_of_runs_have_codes(tmp_path: Path) -> None:
    run = rm.run(rm.Plan(OVERLOAD), out=tmp_path / "run", quiet=True)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["warning_codes"] == [caution.code for caution in run.warnings]
    assert summary["warnings"] == run.warnings
    assert summary["warning_values"] == [caution.values for caution in run.warnings]
    for caution in run.warnings:
        assert caution.values.keys() <= set(_core.WARNINGS[caution.code])
    assert "overload" in summary["warning_codes"]


def test_results_of_earlier_versions_have_no_codes() -> None:
    (caution,) = cautions_of({"warnings": ["a sentence"]})
    assert caution.values == {}
    assert (caution, caution.code) == ("a sentence", "")
    assert cautions_of({}) == []


@pytest.mark.parametrize("again", [copy.copy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_keep_their_code(again: Callable[[Caution], Caution]) -> None:
    caution = again(Caution("a", "b", {"flows": 3}))
    assert (caution, caution.code, caution.values) == ("a", "b", {"flows": 3})


class TestCommand:
    def test_warnings_are_shown_with_their_codes(self, tmp_path: Path) -> None:
        plan = tmp_path / "plan.toml"
        plan.write_text(OVERLOAD)
        shown = call("check", plan).stdout
        assert shown.splitlines()[0].endswith("[overload]")

    def test_a_code_is_explained(self) -> None:
        shown = call("explain", "overload").stdout
        assert shown.startswith("The workload offers a link more than it carries.")

    def test_without_a_code_all_are_listed(self) -> None:
        shown = call("explain").stdout
        assert shown.split() == sorted(explanations())
        shown = call("explain", "--json").stdout
        assert json.loads(shown)["codes"] == explanations()

    def test_a_former_code_has_the_explanation_of_the_present_one(self) -> None:
        former = call("explain", "far-hosts").stdout
        assert former == call("explain", "unequal-round-trips").stdout

    def test_unknown_codes_are_refused(self) -> None:
        result = call("explain", "overlode")
        assert result.exit_code == 2
        assert "CODE: expected a code, got overlode; did you mean overload?" in result.stderr

"""Every broken plan of the corpus ends the command with code 2 and the line that it expects."""

from itertools import takewhile
from pathlib import Path

import pytest

from .commands import call

CORPUS = Path(__file__).parent / "corpus" / "bad"
PLANS = sorted(CORPUS.glob("*.toml"))


def test_the_corpus_has_at_least_40_plans() -> None:
    assert len(PLANS) >= 40


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.stem)
def test_a_broken_plan_ends_with_code_2_and_one_precise_line(plan: Path) -> None:
    head = takewhile(lambda line: line.startswith("# "), plan.read_text().splitlines())
    expected = " ".join(line.removeprefix("# ") for line in head).removeprefix("expect: ")
    result = call("check", plan)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1, result.stderr
    assert plan.name in result.stderr
    assert expected in result.stderr
    assert "Traceback" not in result.output

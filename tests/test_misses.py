"""Explanations of misses: each miss has one, all their names exist, and their commands can run."""

import shutil
from pathlib import Path

import pytest

from rampmeter import Plan, PlanError
from rampmeter.commands import COMMANDS
from rampmeter.commands.common import overrides_of
from rampmeter.papers import ClaimRow, Row, find_figure
from rampmeter.papers.figure import Figure, list_figures, load_figure
from rampmeter.papers.ledger import Ledger
from rampmeter.papers.misses import (
    MISSES,
    Explanation,
    explanations,
    find_explanation,
    misses_section,
)
from tests.conftest import ROOT

PAPERS = ROOT / "papers"
FOLDERS = [str(folder.relative_to(PAPERS)) for folder in list_figures(PAPERS)]
EXPLAINED = [
    (folder, one)
    for folder in FOLDERS
    if (PAPERS / folder / MISSES).is_file()
    for one in explanations(load_figure(PAPERS / folder))
]


def test_no_match_of_the_ledger_is_explained() -> None:
    for folder in sorted({folder for folder, _ in EXPLAINED}):
        figure = load_figure(PAPERS / folder)
        values, claims = Ledger(PAPERS).rows(figure)
        rows: list[Row | ClaimRow] = [*values, *claims]
        matched = [row for row in rows if row.verdict == "match"]
        found = explanations(figure)
        assert [row for row in matched if find_explanation(found, row) is not None] == []


@pytest.mark.parametrize(("folder", "one"), EXPLAINED, ids=lambda of: str(of)[:40])
def test_each_command_can_run(
    folder: str, one: Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its options are known, and its figure, or its plan with all settings, is accepted."""
    monkeypatch.chdir(ROOT)
    program, name, *words = one.argv
    assert program == "rampmeter"
    command = next(command for command in COMMANDS if command.name == name)
    with command.make_context(name, words) as context:
        known = context.params
    if name == "papers":
        found = find_figure(PAPERS, known["paper"], known["figure"])
        assert str(found.relative_to(PAPERS)) == folder
        return
    plan = known["plan"]
    assert isinstance(plan, Path)
    assert plan.is_relative_to(Path("papers") / folder), "a plan of the figure"
    Plan.load(plan).with_(*overrides_of(known["settings"], known.get("seed"))).check()


class TestErrors:
    @pytest.fixture
    def figure(self, tmp_path: Path) -> Figure:
        shutil.copytree(PAPERS / "cosy" / "fig6", tmp_path / "fig6")
        return load_figure(tmp_path / "fig6")

    def refused(self, figure: Figure, text: str) -> str:
        (figure.folder / MISSES).write_text(text, encoding="utf-8")
        with pytest.raises(PlanError) as error:
            explanations(figure)
        assert str(figure.folder / MISSES) in str(error.value)
        return str(error.value)

    END = 'cause = "Noise."\ncommand = "rampmeter papers cosy 6"\n'
    CELL = 'cells = [{ sub-figure = "b", run = "quiet-alone", metric = "tail-us" }]\n'

    def test_a_cell_must_have_a_published_value(self, figure: Figure) -> None:
        cell = self.CELL.replace("quiet-alone", "quiet-fair")
        says = self.refused(figure, f"[[miss]]\n{cell}{self.END}")
        assert "miss[0]: cells[0]: expected a published value of the figure" in says

    def test_a_claim_must_exist(self, figure: Figure) -> None:
        says = self.refused(figure, f'[[miss]]\nclaims = ["No *"]\n{self.END}')
        assert "miss[0]: claims: expected a claim of the figure, got No *" in says

    def test_something_must_be_explained(self, figure: Figure) -> None:
        says = self.refused(figure, f"[[miss]]\n{self.END}")
        assert "expected cells or claims, got neither" in says

    def test_a_miss_has_one_explanation(self, figure: Figure) -> None:
        says = self.refused(figure, f"[[miss]]\n{self.CELL}{self.END}" * 2)
        assert "expected one explanation of" in says

    @pytest.mark.parametrize(
        "end",
        [
            'cause = "open"\ncommand = "rampmeter papers cosy 6"\n',
            'cause = "Noise."\nknown = "Much."\ncommand = "rampmeter papers cosy 6"\n',
        ],
    )
    def test_an_open_cause_says_what_is_known(self, end: str, figure: Figure) -> None:
        says = self.refused(figure, f"[[miss]]\n{self.CELL}{end}")
        assert "known: expected with the cause open, and only then" in says

    def test_a_command_is_of_rampmeter(self, figure: Figure) -> None:
        end = self.END.replace("rampmeter", "python")
        assert "a command of rampmeter" in self.refused(figure, f"[[miss]]\n{self.CELL}{end}")

    def test_a_figure_without_a_file_has_none(self, figure: Figure) -> None:
        (figure.folder / MISSES).unlink()
        assert explanations(figure) == []
        assert misses_section([]) == ""


class TestTheSection:
    def test_it_has_each_cause_and_its_command(self) -> None:
        found = explanations(load_figure(PAPERS / "cosy" / "fig6"))
        section = misses_section(found)
        assert section.startswith("## Misses\n")
        for one in found:
            assert one.text in section
            assert f"```\n{one.command}\n```" in section
            assert all(f"- {claim}\n" in section for claim in one.claims)
        assert "- sub-figure `b`: tail-us of quiet-alone\n" in section
        assert section.count("Open. ") == sum(one.is_open for one in found) == 1

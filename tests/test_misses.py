"""Explanations of misses: each miss has one, all their names exist, and their commands can run."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rampmeter import Plan, PlanError
from rampmeter.cli import main
from rampmeter.commands.options import overrides_of
from rampmeter.papers import ClaimRow, ValueRow, find_figure
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
NOTES = sorted(PAPERS.glob("*/*/NOTES.md"))
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
        rows: list[ValueRow | ClaimRow] = [*values, *claims]
        matched = [row for row in rows if row.verdict == "match"]
        found = explanations(figure)
        assert [row for row in matched if find_explanation(found, row) is not None] == []


def folder_of(words: list[str]) -> Path:
    """Returns the folder of a command's figure or plan, after a check that the command can run.

    Its options exist, and its figure, or its plan with all settings, is accepted.
    """
    program, name, *arguments = words
    assert program == "rampmeter"
    command = main.get_command(click.Context(main), name)
    assert command is not None
    with command.make_context(name, arguments) as context:
        known = context.params
    if name == "papers":
        return find_figure(PAPERS, known["paper"], known["figure"])
    plan = known["plan"]
    assert isinstance(plan, Path)
    Plan.load(plan).with_(*overrides_of(known["settings"], known.get("seed"))).check()
    return plan.resolve().parent


@pytest.mark.parametrize(("folder", "one"), EXPLAINED, ids=lambda of: str(of)[:40])
def test_each_command_can_run(
    folder: str, one: Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert folder_of(one.argv) == PAPERS / folder


@pytest.mark.parametrize("notes", NOTES, ids=lambda file: f"{file.parts[-3]}-{file.parts[-2]}")
def test_each_command_of_notes_can_run(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = notes.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^ *(rampmeter .*)$", text, flags=re.MULTILINE)
    spans = re.findall(r"`(rampmeter\s[^`]*)`", text)
    for command in (*lines, *spans):
        assert folder_of(shlex.split(command, comments=True)).is_dir()
    for code in re.findall(r'python -c "([^"]*)"', text):
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


CAUSAL = re.compile(r"\b(?:because|due to|caused by|therefore|hence|so that|So|explains?)\b")


@pytest.mark.parametrize("notes", NOTES, ids=lambda file: f"{file.parts[-3]}-{file.parts[-2]}")
def test_a_section_that_explains_a_number_has_a_command(notes: Path) -> None:
    for section in re.split(r"^#+ ", notes.read_text(encoding="utf-8"), flags=re.MULTILINE):
        prose = re.sub(r"```.*?```|^\|[^\n]*$", "", section, flags=re.MULTILINE | re.DOTALL)
        sentences = re.split(r"(?<=[.:])\s", prose)
        causal = [one for one in sentences if CAUSAL.search(one) and re.search(r"\d", one)]
        has_command = re.search(r"(?:rampmeter|python|cargo) \w|python -c", section)
        assert not causal or has_command, (notes, causal)


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
        assert "miss[0].cells[0]: expected a published value of the figure" in says

    def test_a_claim_must_exist(self, figure: Figure) -> None:
        says = self.refused(figure, f'[[miss]]\nclaims = ["No *"]\n{self.END}')
        assert "miss[0].claims: expected a claim of the figure, got No *" in says

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
            'cause = "Noise."\nfindings = "Much."\ncommand = "rampmeter papers cosy 6"\n',
        ],
    )
    def test_an_open_cause_has_its_findings(self, end: str, figure: Figure) -> None:
        says = self.refused(figure, f"[[miss]]\n{self.CELL}{end}")
        assert "findings: required with the cause open, and only with it" in says

    def test_a_command_is_of_rampmeter(self, figure: Figure) -> None:
        end = self.END.replace("rampmeter", "python")
        assert "a command of rampmeter" in self.refused(figure, f"[[miss]]\n{self.CELL}{end}")

    def test_a_figure_without_a_file_has_no_section(self, figure: Figure) -> None:
        (figure.folder / MISSES).unlink()
        assert explanations(figure) == []
        assert misses_section([]) == ""


class TestSection:
    def test_the_section_has_each_cause_and_its_command(self) -> None:
        found = explanations(load_figure(PAPERS / "cosy" / "fig6"))
        section = misses_section(found)
        assert section.startswith("## Misses\n")
        for one in found:
            assert one.text in section
            assert f"```\n{one.command}\n```" in section
            assert all(f"- {claim}\n" in section for claim in one.claims)
        assert "- sub-figure `b`: tail-us of quiet-alone\n" in section
        assert section.count("Open. ") == sum(one.is_open for one in found) == 1

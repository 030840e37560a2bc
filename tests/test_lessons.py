"""The lessons: their commands run, and every number in their text is a measured one."""

import re
import shutil
from pathlib import Path
from typing import Final

import pytest

import rampmeter as rm

from .conftest import ROOT
from .documents import blocks_of, check_output, commands_of, run_command
from .lessons import FACTS

PAGES: Final = ROOT / "docs/lessons"
PLANS: Final = ROOT / "examples/lessons"
HEADINGS: Final = ["Question", "Watch", "Exercise"]
NUMBER: Final = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(?: (kB|MB)\b)?")
FACTORS: Final = {"": 1.0, "kB": 1e3, "MB": 1e6}
WORDS_MAX: Final = 560
"""A screen and a half of text."""
REJECTS: Final = 3
"""Exit code of a run whose transport rejected flows."""


def text_of(page: Path) -> str:
    """Returns the prose and tables of a page, in one line."""
    text = page.read_text(encoding="utf-8")
    return " ".join(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S).split())


def numbers_of(text: str) -> set[float]:
    """Returns the numbers in a text that are not parts of names, in bytes if they are sizes."""
    return {
        float(found[1]) * FACTORS[found[2] or ""]
        for found in NUMBER.finditer(text.replace("_", ""))
    }


def run_commands(page: Path) -> None:
    """Runs the commands of a page, and compares the outputs that it shows."""
    printed = ""
    for block in blocks_of(page):
        where = f"{page.name}:{block.line}"
        if block.is_output:
            check_output(block, printed, where)
        elif not block.language:
            codes = (0, REJECTS)
            printed = "".join(run_command(line, where, codes) for line in commands_of(block))


@pytest.mark.parametrize("name", FACTS)
def test_a_lesson_is_true(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    shutil.copytree(PLANS, "lessons")
    page = PAGES / f"{name}.md"
    run_commands(page)
    text = text_of(page)
    facts = FACTS[name](lambda run: rm.Run(Path("results") / name / run))
    assert [fact for fact in facts if fact not in text] == []
    rest = text
    for fact in facts:
        rest = rest.replace(fact, "")
    commands = "".join(
        line for block in blocks_of(page) for line in block.text if not block.is_output
    )
    given = numbers_of((PLANS / f"{name}.toml").read_text(encoding="utf-8") + commands)
    assert numbers_of(rest) - given == set(), "numbers that nothing checks"


@pytest.mark.usefixtures("here")
def test_the_commands_before_the_lessons_run() -> None:
    run_commands(PAGES / "index.md")


@pytest.mark.parametrize("name", FACTS)
def test_a_lesson_is_short_and_has_a_question_an_animation_and_an_answer(name: str) -> None:
    page = PAGES / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    assert [block.language for block in blocks_of(page)].count("{animation}") == 1
    assert "?" in text[: text.index("## Watch")]
    assert text.index("## Exercise") < text.index("<details>") < text.index("</details>")
    assert len(text_of(page).split()) <= WORDS_MAX
    assert f"]({name}.md)" in (PAGES / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FACTS)
def test_results_of_a_lesson_replace_none_of_another(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert set(re.findall(r"results/([\w-]+)/", text)) == {name}


def test_each_plan_has_a_lesson() -> None:
    assert {file.stem for file in PLANS.iterdir()} == set(FACTS)
    assert {file.stem for file in PAGES.glob("*.md")} == {*FACTS, "index"}

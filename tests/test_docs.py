"""The documentation: every block of code runs, or has a reason why not; links have targets."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from rampmeter import Plan, PlanError
from rampmeter.cli import main
from rampmeter.sweeps.table import sweep_of
from rampmeter.toml import dumps
from tests.conftest import ROOT, SMALL

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
OWN = [page for page in PAGES if "docs/papers/" not in str(page) and page.name != "command.md"]
"""Pages that are in the repository; others are made of notes and of the command's help."""

BLOCK = re.compile(
    r"(?:^<!-- (?P<directive>[^\n]*) -->\n+)?^```(?P<language>\S*)[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block of code. A comment above it may name its file, or the reason why it is not run."""

    language: str
    text: str
    line: int
    file: str = ""
    why_not: str = ""
    is_output: bool = False
    """True for lines that the block before prints."""


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        key, _, value = (found["directive"] or "").partition(": ")
        file = value if key == "file" else ""
        why_not = value if key == "not run" else ""
        yield Block(found["language"], found["text"], line, file, why_not, key == "output")


def run_command(line: str, where: str) -> str:
    """Runs a command of a page, and returns its output."""
    words = shlex.split(line, comments=True)
    assert words[0] == "rampmeter", f"{where}: run by nobody: {line}"
    result = CliRunner().invoke(main, words[1:])
    assert result.exit_code == 0, f"{where}: {line}: {result.output}{result.exception}"
    return result.output


def check_plan(text: str, folder: Path, where: str) -> None:
    """A whole plan, or tables that replace those of a small one."""
    tables = tomllib.loads(SMALL) | tomllib.loads(text)
    file = folder / "of-the-page.toml"
    file.write_text(dumps(tables), encoding="utf-8")
    try:
        plan = Plan.load(file)
        plan.check()
        if plan.sweep is not None:
            sweep_of(plan)
    except PlanError as error:
        pytest.fail(f"{where}: {error}")


@pytest.mark.parametrize("page", OWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_runs_or_says_why_not(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Blocks of a page run one after the other, next to a `plan.toml`."""
    printed = ""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "plan.toml").write_text(SMALL, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks_of(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.why_not or block.language.startswith("{"):
            continue
        if block.is_output:
            missing = set(trimmed(block.text)) - set(trimmed(printed))
            assert not missing, f"{where}: not printed: {missing} of {printed}"
            continue
        if block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            exec(compile(block.text, where, "exec"), names)
            printed = capsys.readouterr().out
        elif block.language == "sql":
            duckdb.sql(block.text).fetchall()
        elif block.language == "toml":
            check_plan(block.text, tmp_path, where)
        elif not block.file:
            printed = ""
            for line in block.text.replace("\\\n", " ").splitlines():
                if line.strip() and not line.startswith("#"):
                    printed += run_command(line, where)


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_every_page_is_in_the_site_and_builds_without_a_warning(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*argv, str(ROOT / "docs"), str(tmp_path / "site")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").is_file(), page


def test_links_between_files_of_the_repository_lead_somewhere() -> None:
    for page in [*OWN, *ROOT.glob("*.md"), *ROOT.glob("papers/**/*.md")]:
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page}: {target}"

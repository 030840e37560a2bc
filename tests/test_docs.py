"""The documentation: every block of code runs, or has a reason why not; links have targets."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from rampmeter import Plan, PlanError
from rampmeter.cli import COMMANDS, main
from rampmeter.plan.schema import plan_schema
from rampmeter.sweeps.table import sweep_of
from rampmeter.text.toml import dumps
from tests.conftest import ROOT, SMALL

from .documents import BLOCK, blocks_of, check_output, commands_of, run_command

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
AT_ROOT = ("architecture", "contributing", "releasing", "security")
MADE = (
    "docs/papers/",
    "docs/reference/command.md",
    "docs/reference/warnings.md",
    *(f"docs/project/{name}.md" for name in AT_ROOT),
)
OWN = [page for page in PAGES if not str(page.relative_to(ROOT)).startswith(MADE)]
"""Pages that are in the repository; others are made of notes, of documents at the root and of the
command's help."""

SOURCES = [
    str(file.relative_to(ROOT))
    for folder in ("crates", "docs", "python", "tools", "tests", "examples")
    for kind in ("rs", "py")
    for file in (ROOT / folder).rglob(f"*.{kind}")
]


HEADINGS = [
    "What it is",
    "Packets",
    "Rules",
    "Parameters",
    "Presets",
    "Deviations from the paper",
    "Not modelled",
]
"""Sections of a transport's page, in order."""
COLUMNS_OF_DIAGRAM = 78


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


def test_source_files_that_documents_name_exist() -> None:
    """Documents of reviews and measurements name files of their time."""
    history = ("docs/project/", "docs/measurements/")
    pages = [page for page in OWN if not str(page.relative_to(ROOT)).startswith(history)]
    named = [
        (str(page.relative_to(ROOT)), file)
        for page in [*pages, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
        for file in re.findall(r"`([\w/.-]+/[\w-]+\.(?:rs|py))`", page.read_text(encoding="utf-8"))
    ]
    assert named
    assert [
        (page, file)
        for page, file in named
        if not any(f"/{source}".endswith(f"/{file}") for source in SOURCES)
    ] == []


@pytest.mark.parametrize(
    "page",
    [page for page in OWN if page.parent.name != "lessons"],  # Those are in test_lessons.py.
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_block_runs_or_has_a_reason(
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
            check_output(block, printed, where)
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
            printed = "".join(run_command(line, where) for line in commands_of(block))


@pytest.mark.long
@pytest.mark.timeout(400)
def test_every_page_is_in_the_site_and_builds_without_a_warning(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*argv, str(ROOT / "docs"), str(tmp_path / "site")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").is_file(), page


def anchors_of(page: Path) -> set[str]:
    """Returns the anchors of a page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    words = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in words}


def is_made(file: Path) -> bool:
    """Returns true for a page that the build of the site writes."""
    return os.path.relpath(file, ROOT).startswith(MADE)


def test_links_between_files_of_the_repository_lead_somewhere() -> None:
    for page in [*OWN, *ROOT.glob("*.md"), *ROOT.glob("papers/**/*.md")]:
        text = page.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\(([^)\s#]*)(#[^)\s]*)?[^)]*\)", text):
            if "://" in target or not (target or anchor):
                continue
            file = page.parent / target if target else page
            if is_made(file) and not file.exists():
                continue  # The build of the site makes it, and finds broken links itself.
            assert file.exists(), f"{page}: {target}"
            if anchor and file.suffix == ".md":
                assert anchor[1:] in anchors_of(file), f"{page}: {target}{anchor}"


TEXTS = (
    "*.md",
    "Makefile",
    "crates/**/*.rs",
    "crates/**/*.toml",
    "docs/**/*.md",
    "examples/**/*.rs",
)
PYTHON = ("python/**/*.py", "tests/*.py", "tools/**/*.py")


def test_documents_that_code_and_text_name_exist() -> None:
    named = re.compile(r"(?<![\w/])docs/[\w/.-]+\.md\b")
    for file in sorted({file for glob in TEXTS + PYTHON for file in ROOT.glob(glob)}):
        for name in named.findall(file.read_text(encoding="utf-8")):
            assert name.startswith(MADE) or (ROOT / name).is_file(), f"{file}: {name}"


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "protocols").glob("*.md")), ids=lambda page: page.stem
)
def test_pages_of_transports_have_the_same_sections_and_a_diagram(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", BLOCK.sub("", text), re.MULTILINE) == HEADINGS
    diagrams = [block.text for block in blocks_of(page) if block.why_not == "a diagram"]
    assert len(diagrams) == 1
    assert max(len(line) for line in diagrams[0].splitlines()) <= COLUMNS_OF_DIAGRAM


ENTRY = re.compile(
    r"^- \*\*[^*]+\*\*[^:]*: (?P<sentence>[^()]+)\. \((?P<sources>[^)]+)\)$", re.MULTILINE
)


def test_entries_of_the_glossary_are_one_sentence_with_a_source() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^- .*?(?=^[-#]|\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(entries) > 90
    for entry in (" ".join(entry.split()) for entry in entries):
        found = ENTRY.match(entry)
        assert found, entry
        assert ". " not in found["sentence"], entry
        for file in re.findall(r"`([^`]+)`", found["sources"]):
            assert (ROOT / file).exists(), entry


PAGES_OF_TABLES = {
    "topology": ["TopologySpec", "LinkSpec", "NamesSpec"],
    "fabric": ["FabricSpec", "PfcSpec"],
    "transport": ["Transport"],
    "workload": ["WorkloadSpec", "SizeTable", "RangeSpec", "DeadlinesSpec", "LoadSpec"],
    "run": [
        "RunSpec",
        "MeasureSpec",
        "FaultsSpec",
        "LinkFaultSpec",
        "OutageSpec",
        "LinkChangeSpec",
        "ClocksSpec",
    ],
}


@pytest.mark.parametrize("page", PAGES_OF_TABLES)
def test_pages_of_plans_have_every_key_of_their_tables(page: str) -> None:
    text = (ROOT / "docs" / "plans" / f"{page}.md").read_text(encoding="utf-8")
    code = " ".join(re.findall(r"^```.*?^```|`[^`]+`", text, re.MULTILINE | re.DOTALL))
    words = set(re.findall(r"[a-z0-9-]+", code))
    definitions = plan_schema()["definitions"]
    keys = {key for table in PAGES_OF_TABLES[page] for key in definitions[table]["properties"]}
    assert keys
    assert keys <= words, f"{page}: no word of {sorted(keys - words)}"


def test_numbers_of_documents_begin_with_a_digit() -> None:
    point = re.compile(r"(?:^|[ (=,~<>≥≤±|\"-])\.\d")
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "examples/*.toml", "papers/*.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    # Rules of language quote the form that they forbid.
    files = set(listed) - {"CONTRIBUTING.md", "docs/project/language.md", "CHANGELOG.md"}
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in files}
    texts |= {name: help_of(name) for name in COMMANDS}
    found = [
        f"{name}: {line.strip()}"
        for name, text in texts.items()
        for line in text.splitlines()
        if point.search(line)
    ]
    assert found == []


def help_of(command: str) -> str:
    """Returns the help of a command."""
    return CliRunner().invoke(main, [command, "--help"]).output

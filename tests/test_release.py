"""Versions, and commands of documents for people who change or release the project."""

import re
import tomllib
from pathlib import Path

import pytest

from .conftest import ROOT

CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
VERSION = CARGO["workspace"]["package"]["version"]
LOCKS = ("Cargo.lock", "fuzz/Cargo.lock", "examples/own-transport/Cargo.lock")
FOLDERS = ("", "docs", "docs/howto", "docs/measurements", "docs/reference")
PAGES = sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))


def test_all_crates_and_the_citation_have_one_version() -> None:
    dependencies = CARGO["workspace"]["dependencies"].items()
    ours = {name: about["version"] for name, about in dependencies if name.startswith("rampmeter-")}
    assert set(ours.values()) == {VERSION}, ours
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {VERSION}\n" in citation


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_files_have_that_version(lock: str) -> None:
    packages = tomllib.loads((ROOT / lock).read_text(encoding="utf-8"))["package"]
    crates = set(CARGO["workspace"]["dependencies"])
    ours = {p["name"]: p["version"] for p in packages if p["name"] in crates and "source" not in p}
    assert ours
    assert set(ours.values()) == {VERSION}, ours


def test_the_changelog_has_versions_kinds_and_short_entries() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert versions[0] == "Unreleased"
    form = r"\d+\.\d+\.\d+ \((unreleased|\d{4}-\d\d-\d\d)\)"
    assert all(re.fullmatch(form, version) for version in versions[1:]), versions
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", section, re.MULTILINE)
        known = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
        assert kinds == [kind for kind in known if kind in kinds]
    entries = re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)
    assert len(entries) > 150
    assert len(set(entries)) == len(entries)
    assert not [entry for entry in entries if len(entry.split()) > 25]


def test_the_table_of_changed_results_has_five_short_cells_a_row() -> None:
    page = ROOT / "docs" / "project" / "results-that-changed.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in lines if line.startswith("|")]
    assert rows[0] == ["transport", "scenario", "now", "before", "reason"]
    for row in rows[2:]:
        assert len(row) == 5, row
        assert max(len(cell.split()) for cell in row) <= 25, row


def commands_of(text: str) -> list[str]:
    """Returns lines of blocks of code, and code within sentences."""
    blocks = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks.findall(text) for line in block.splitlines()]
    return lines + re.findall(r"`([^`]+)`", blocks.sub("", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_of_a_page_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    commands = " ".join(commands_of(page.read_text(encoding="utf-8")))
    assert set(re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)", commands)) <= targets


def test_continuous_integration_installs_as_the_readme() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"cargo {CARGO['workspace']['package']['rust-version']}" in readme
    assert "s/^rust-version = " in workflow
    [python] = re.findall(r'python-version: "(.*)"', workflow)
    assert f"Python {python} or newer" in readme
    assert ".ci/run" in workflow
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


@pytest.mark.parametrize(("page", "lines"), [("README.md", 120), ("ARCHITECTURE.md", 250)])
def test_first_pages_are_short_and_narrow(page: str, lines: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8").splitlines()
    assert len(text) <= lines
    rows = [line for line in text if page == "README.md" or not line.startswith("|")]
    assert max(map(len, rows)) <= 100

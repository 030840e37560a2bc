"""The stored list of figures: it is quick, and never stale."""

import os
import shutil
from pathlib import Path

import pytest

from rampmeter.papers import summaries as module
from rampmeter.papers.ledger import Ledger
from rampmeter.papers.summaries import FigureSummary, summaries

from .commands import ok
from .conftest import ROOT


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder of one paper, and uses an empty folder of caches."""
    monkeypatch.setenv(module.CACHE, str(tmp_path / "cache"))
    root = tmp_path / "papers"
    shutil.copytree(ROOT / "papers/fastpod", root / "fastpod")
    shutil.copy(ROOT / "papers/recorded.json", root)
    return root


@pytest.fixture
def n_made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list of the figures whose summaries are made from their files."""
    made: list[str] = []
    original = module._summary

    def summary(folder: Path, ledger: Ledger) -> FigureSummary:
        made.append(folder.name)
        return original(folder, ledger)

    monkeypatch.setattr(module, "_summary", summary)
    return made


def test_summaries_are_made_once_and_read_afterwards(root: Path, n_made: list[str]) -> None:
    first = summaries(root)
    n_figures = len(n_made)
    assert n_figures == len(first) > 0
    assert summaries(root) == first
    assert len(n_made) == n_figures


@pytest.mark.parametrize("change", ["time", "contents", "new entry", "removed"])
def test_a_changed_file_makes_the_summaries_again(
    root: Path, n_made: list[str], change: str
) -> None:
    before = summaries(root)
    n_figures = len(n_made)
    file = sorted(root.glob("fastpod/*/figure.toml"))[0]
    match change:
        case "time":
            os.utime(file, ns=(0, 0))
        case "contents":
            file.write_text(file.read_text().replace('title = "', 'title = "New '))
        case "new entry":
            shutil.copytree(ROOT / "papers/ledger/fastpod", root / "ledger/fastpod")
        case "removed":
            shutil.rmtree(file.parent)
    after = summaries(root)
    assert len(n_made) == n_figures + len(after)
    assert (after == before) == (change == "time")


@pytest.mark.parametrize("text", ["", "{}", '{"fingerprint": 1}', "[]"])
def test_a_broken_cache_is_made_again(root: Path, text: str) -> None:
    first = summaries(root)
    (stored,) = (root.parent / "cache/rampmeter").iterdir()
    stored.write_text(text)
    assert summaries(root) == first


def test_the_list_needs_no_folder_of_caches(
    root: Path, monkeypatch: pytest.MonkeyPatch, n_made: list[str]
) -> None:
    monkeypatch.setenv(module.CACHE, "/proc/nowhere")
    monkeypatch.chdir(root.parent)
    one, other = (ok("papers").stdout for _ in range(2))
    assert one == other
    assert len(n_made) == 2 * len(set(n_made))

"""The inventory of the papers: it is complete, its names exist, and errors have their place."""

import shutil
from pathlib import Path

import pytest

from rampmeter import PlanError
from rampmeter.papers.figure import list_figures
from rampmeter.papers.inventory import Inventory, inventory_page, load_inventory
from tests.conftest import ROOT

PAPERS = ROOT / "papers"
PUBLISHED = {
    "dcpim": [1, *range(1, 8)],
    "phost": list(range(3, 10)),
    "cosy": list(range(1, 14)),
    "fastpod": list(range(1, 6)),
    "capton": [*range(1, 7), *range(1, 10)],
}
"""Numbers of tables, then of figures, as the captions of the papers have them."""


@pytest.fixture(scope="module")
def inventory() -> Inventory:
    return load_inventory(PAPERS)


class TestThePapers:
    @pytest.mark.parametrize("paper", PUBLISHED)
    def test_every_figure_and_table_is_listed(self, paper: str, inventory: Inventory) -> None:
        one = next(one for one in inventory.papers if one.id == paper)
        numbers = [figure.number.split(" ", 1) for figure in one.figures]
        listed = [int(number) for kind, number in numbers if kind in ("table", "figure")]
        assert listed == PUBLISHED[paper]

    def test_every_folder_is_in_a_panel_or_additional(self, inventory: Inventory) -> None:
        named = {folder for panel in inventory.panels() for folder in panel.folders}
        additional = {one.folder for one in inventory.additional}
        folders = {file.parent for file in PAPERS.glob("*/*/NOTES.md")}
        assert {f"{one.parent.name}/{one.name}" for one in folders} == named | additional
        assert not named & additional

    def test_every_absent_panel_has_a_reason_and_no_other(self, inventory: Inventory) -> None:
        for panel in inventory.panels():
            assert (panel.status == "absent") == bool(panel.reason)
            assert not panel.reason or panel.reason.endswith("."), panel.reason

    def test_tests_that_reasons_name_exist(self, inventory: Inventory) -> None:
        theorems = (ROOT / "crates/proto/tests/runs/cosy/theorems.rs").read_text(encoding="utf-8")
        named = {
            panel.reason.split("`")[1] for panel in inventory.panels() if "a test" in panel.reason
        }
        assert named == {"what_is_admitted_may_be_a_third_of_what_could_be"}
        assert all(f"fn {name}()" in theorems for name in named)

    def test_evaluations_lack_only_what_needs_other_hardware_or_text(
        self, inventory: Inventory
    ) -> None:
        lacking = [
            (paper.id, figure.number, panel.id)
            for paper in inventory.papers
            for figure in paper.figures
            for panel in figure.panels
            if figure.kind == "values" and panel.status == "absent"
        ]
        assert lacking == [
            ("phost", "figure 7", "b"),
            ("cosy", "figure 7", "a"),
            ("cosy", "figure 7", "d"),
        ]


class TestStatus:
    def test_it_follows_from_the_panels(self, inventory: Inventory) -> None:
        status = {
            (paper.id, figure.number): figure.status
            for paper in inventory.papers
            for figure in paper.figures
        }
        assert status["dcpim", "figure 3"] == "whole"
        assert status["cosy", "figure 7"] == "part"
        assert status["dcpim", "figure 1"] == "absent"

    def test_totals_count_every_figure_once(self, inventory: Inventory) -> None:
        for paper in inventory.papers:
            totals = paper.totals("values", "settings", "drawing")
            assert sum(totals.values()) == len(paper.figures)


class TestThePage:
    def test_it_links_to_every_folder_and_has_every_reason(self, inventory: Inventory) -> None:
        page = inventory_page(inventory)
        for folder in list_figures(PAPERS):
            assert f"({folder.parent.name}/{folder.name}.md)" in page
        for panel in inventory.panels():
            assert panel.reason in page

    def test_rows_have_as_many_cells_as_their_table(self, inventory: Inventory) -> None:
        blocks = inventory_page(inventory).split("\n\n")
        tables = [block for block in blocks if block.startswith("|")]
        assert len(tables) == len(inventory.papers) + 2
        for table in tables:
            assert len({line.count("|") for line in table.splitlines()}) == 1


LISTED = """\
[[paper]]
id = "test"
title = "A paper"
[[paper.item]]
number = "figure 1"
kind = "values"
section = "1"
shows = "Slowdown"
{panel}
"""


class TestErrors:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        shutil.copytree(PAPERS / "fastpod" / "fig3", tmp_path / "test" / "fig1")
        return tmp_path

    def refused(self, root: Path, panel: str, more: str = "") -> str:
        (root / "inventory.toml").write_text(more + LISTED.format(panel=panel), encoding="utf-8")
        with pytest.raises(PlanError) as error:
            load_inventory(root)
        assert str(root / "inventory.toml") in str(error.value)
        return str(error.value)

    def test_a_named_sub_figure_is_accepted(self, root: Path) -> None:
        text = LISTED.format(panel='by = ["test/fig1:a", "test/fig1:b"]')
        (root / "inventory.toml").write_text(text, encoding="utf-8")
        assert load_inventory(root).papers[0].figures[0].status == "whole"

    @pytest.mark.parametrize(
        ("panel", "says"),
        [
            ('by = ["test/fig1:c"]', "by: expected a sub-figure of test/fig1 (a, b), got c"),
            ('by = ["test/fig2:a"]', "by: expected a folder of a figure, got test/fig2"),
            ("", "expected either by or reason"),
            ('by = ["test/fig1:a"]\nreason = "No."', "expected either by or reason"),
            ('reason = "No."\ndiffers = "So."', "differs: expected none of an absent panel"),
            ('reason = "No."', "expected the folder test/fig1 in a panel or in additional"),
            ('reason = "No."\ncause = "So."', "cause: unknown key"),
        ],
    )
    def test_they_name_the_file_and_the_key(self, panel: str, says: str, root: Path) -> None:
        assert says in self.refused(root, panel)

    def test_an_additional_folder_must_exist(self, root: Path) -> None:
        more = 'additional = [{ folder = "test/fig9", reason = "No." }]\n'
        says = self.refused(root, 'by = ["test/fig1:a"]', more)
        assert "additional: expected a folder of a figure, got test/fig9" in says

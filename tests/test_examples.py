"""The examples: plans run, notebooks show their stored outputs, and the command copies them."""

from pathlib import Path

import nbformat
import pytest

import rampmeter as rm

from . import notebooks
from .commands import call, error_line, ok
from .conftest import ROOT

PLANS = sorted(
    file for kind in ("plans", "lessons") for file in (ROOT / "examples" / kind).glob("*.toml")
)
SMALLER = {
    "65536": (("topology.k", 4), ("workload.flows", 2000)),
    "131072": (("topology.racks", 4), ("topology.hosts-per-rack", 4), ("topology.spines", 32)),
}
"""Keys that make a large example small."""


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_a_plan_runs(file: Path, tmp_path: Path) -> None:
    plan = rm.Plan.load(file).with_(*SMALLER.get(file.stem, ()))
    assert plan.warnings == []
    if plan.sweep is not None:
        table = rm.sweep(plan, out=tmp_path / "out", quiet=True).table
        assert set(table["status"].to_pylist()) == {"finished"}
    else:
        assert rm.run(plan, out=tmp_path / "out", quiet=True).status == "finished"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", notebooks.FILES, ids=lambda file: file.stem)
def test_a_notebook_shows_its_results(file: Path, tmp_path: Path) -> None:
    shown = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    made = notebooks.executed(file, tmp_path)
    for before, after in zip(shown.cells, made.cells, strict=True):
        if before.cell_type != "code":
            continue
        assert [sorted(out.get("data", {})) for out in before.outputs] == [
            sorted(out.get("data", {})) for out in after.outputs
        ]
        # Pictures may differ by the version of the library; numbers may not.
        for old, new in zip(before.outputs, after.outputs, strict=True):
            if "image/png" not in old.data:
                assert old.data["text/plain"] == new.data["text/plain"]


def test_examples_are_listed_and_copied_once(tmp_path: Path) -> None:
    listed = call("examples")
    lines = listed.output.splitlines()
    assert max(map(len, lines)) <= 80
    files = [line for line in lines if not line.startswith(" ")]
    assert len(files) == len({*files}) == len((*PLANS, *notebooks.FILES))
    assert "plans/first.toml\n    16 hosts at one switch" in listed.output
    ok("examples", tmp_path / "mine")
    for file in (*PLANS, *notebooks.FILES):
        copy = tmp_path / "mine" / file.parent.name / file.name
        assert copy.read_bytes() == file.read_bytes()
    (tmp_path / "mine/plans/first.toml").write_text("mine")
    assert "the file exists; choose another folder" in error_line("examples", tmp_path / "mine")
    assert (tmp_path / "mine/plans/first.toml").read_text() == "mine"

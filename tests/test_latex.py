"""Formats of tables of all commands; LaTeX with booktabs accepts what they write."""

import csv
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rampmeter as rm
from rampmeter.analysis.confidence import Interval
from rampmeter.cli import COMMANDS, main
from rampmeter.results.table import Column, ResultTable, render

from .commands import call
from .conftest import ROOT, SMALL
from .latex import LatexError, parse

COMMAND_LINES = {
    "run": ["run", "p.toml", "--out", "a"],
    "run with outages, links and a capture": ["run", "rich.toml", "--out", "b"],
    "a collective": ["run", "ring.toml", "--out", "c"],
    "compare": ["compare", "p.toml", "--transports", "dcpim,phost:free-tokens=9", "--out", "d"],
    "compare with seeds": ["compare", "rich.toml", "--transports", "homa,ndp", "--seeds", "2"],
    "sweep": ["sweep", "p.toml", "--vary", "workload.load=0.3,0.5", "--seeds", "2", "--out", "e"],
    "check": ["check", "rich.toml"],
    "transports": ["transports"],
    "transports of one": ["transports", "homa"],
    "why": ["why", "first", "--slowest", "2"],
    "explain": ["explain"],
    "explain of one": ["explain", "overload"],
    "examples": ["examples"],
    "papers": ["papers"],
    "papers of one": ["papers", "dcpim"],
    "status": ["papers", "--status"],
    "a figure": ["papers", "dcpim", "3", "--from-ledger", "--out", "f"],
    "replay": ["replay", "first/flows.parquet", "--plan", "p.toml"],
    "diff": ["diff", "first", "second"],
}
RICH = """\
[[faults.outages]]
link = "h0-s0"
from-us = 20
until-us = 60
[names]
hosts = ["rack_1 & 50% #2", "[h]", "*", "~", "^{", "\\\\", "a", "b"]
[run]
links = true
"""
RING = """\
[topology]
kind = "star"
hosts = 8
[transport]
name = "dcpim"
[workload]
pattern = "collective"
operation = "all-reduce"
algorithm = "ring"
vector-bytes = 100000
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with plans and runs."""
    path = tmp_path_factory.mktemp("latex")
    (path / "p.toml").write_text(SMALL)
    (path / "rich.toml").write_text(SMALL + RICH)
    (path / "ring.toml").write_text(RING)
    (path / "papers").symlink_to(ROOT / "papers")
    for name, load in (("first", 0.4), ("second", 0.5)):
        plan = rm.Plan(SMALL).with_(("workload.load", load), ("run.blame", True))
        rm.run(plan, out=path / name, quiet=True)
    return path


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_a_command_writes_every_format(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert parse(output(name, "latex"))
    tables = json.loads(output(name, "json"))["tables"]
    assert tables
    assert any(tables.values())
    for titles, lines in csv_parts(output(name, "csv")):
        # JSON of papers has the status of figures.
        assert name.startswith("papers") or titles[0].split(":")[0].strip("# ") in tables
        rows = [*csv.reader(lines)]
        assert {len(row) for row in rows} == {len(rows[0])}
    rule = re.compile(r"\| ---( \||:? \||\|)")
    assert any(rule.match(line) for line in output(name, "markdown").splitlines())


def output(name: str, format_: str) -> str:
    """Returns what a command line of `COMMAND_LINES` prints in a format."""
    arguments = COMMAND_LINES[name]
    quiet = ["--quiet"] if arguments[0] in ("run", "compare", "sweep") else []
    done = call(*arguments, *quiet, "--format", format_)
    assert done.exit_code in ((1,) if arguments[0] == "diff" else (0, 3)), done.output
    return done.stdout


def csv_parts(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yields the comments and the other lines of each table in CSV."""
    for part in re.split(r"^(?=# \w+: )", text, flags=re.MULTILINE)[1:]:
        title, *lines = part.rstrip("\n").split("\n")
        yield [title], lines


def test_every_command_with_the_format_is_tried() -> None:
    tried = {arguments[0] for arguments in COMMAND_LINES.values()}
    for name in set(COMMANDS) - {"export", "bench", "testbed"}:
        command = main.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        formats = [getattr(one.type, "choices", ()) for one in command.params]
        assert name in tried or not any("latex" in one for one in formats), name


def test_exported_tables_are_latex(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    rm.compare("rich.toml", "dcpim,ndp", out="compared", quiet=True)
    rm.sweep("p.toml", vary={"workload.load": [0.3]}, out="swept", quiet=True)
    for results in ("first", "compared", "swept"):
        arguments = ["export", results, "--out", "all.tex", "--table", "all"]
        done = call(*arguments)
        assert done.exit_code == 0, done.output
        assert len(parse(Path("all.tex").read_text(encoding="utf-8"))) > 1


texts = st.text(st.characters(codec="latin-1"), max_size=12)


@given(texts, texts, texts)
@example("[1]", "*", "-1.5 %")
@example("_%&#${}~^\\", "a\nb", "a.\n[b]")
def test_any_text_is_escaped(name: str, heading: str, cell: str) -> None:
    columns = (Column("a", heading), Column("b", "rate", "Gbit/s"), Column("c", heading))
    rows = [(name, Interval(12.5, 0.25, 3), cell), (cell, Interval(-0.5, None, 1), None)]
    table = ResultTable("t", f"Title of\n{name}", columns, rows, notes=(f"note\n{cell}",))
    (one,) = parse(render([table], "latex"))
    assert one.n_columns == 4
    assert len(one.rows) == 3


def test_columns_of_words_are_on_the_left_and_those_of_numbers_on_the_right() -> None:
    columns = [Column(key) for key in "abcd"]
    rows = [("x", "imc10", math.inf, -1.5), ("y", "web-search", 2.0, None)]
    text = ResultTable("t", "T", tuple(columns), rows).to_latex()
    assert text.startswith("\\begin{tabular}{llrr}")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (r"a_b & c \\", "not allowed"),
        (r"50 % & c \\", "not allowed"),
        (r"a \\", "expected 2 columns"),
        (r"a & b & c \\", "expected 2 columns"),
        (r"[1] & b \\", "begins with an argument"),
        (r"a & {b \\", "not allowed"),
        (r"a & b", "end of a row"),
        (r"a & \unknown \\", "not allowed"),
        ("\\midrule\n\\toprule", "rules of booktabs"),
        ("a & \u2192 \\\\", "LaTeX may lack"),
    ],
)
def test_the_grammar_refuses_errors_of_latex(wrong: str, message: str) -> None:
    head = "\\begin{tabular}{lr}\n\\toprule\na & b \\\\\n\\midrule\n"
    end = "\\bottomrule\n\\end{tabular}\n"
    assert parse(f"{head}c & d \\\\\n{end}")
    with pytest.raises(LatexError, match=re.escape(message)):
        parse(f"{head}{wrong}\n{end}")

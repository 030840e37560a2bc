"""Tables that fit any terminal."""

import io
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from rampmeter.text.text_table import TextTable


def printed(text_table: TextTable, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    text_table.print(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def wide(n_columns: int, name: str = "dcpim", cell: str = "1.234 ± 0.012") -> TextTable:
    headings = ("", *(f"column {i}" for i in range(n_columns)))
    return TextTable("Title", headings, [(name, *[cell] * n_columns)], notes=("A note.",))


def test_a_table_that_fits_is_not_divided() -> None:
    text = printed(wide(3))
    assert text.count("1.234 ± 0.012") == 3
    assert "continued" not in text
    assert text.endswith("A note.\n")


def test_intervals_wrap_before_columns_continue_below() -> None:
    text = printed(wide(6))
    assert "continued" not in text
    assert re.search(r"dcpim +1.234 +1.234", text)
    assert text.count("± 0.012") == 6


def test_columns_that_do_not_fit_continue_below_with_row_names() -> None:
    text = printed(wide(12))
    assert "Title, continued" in text
    assert text.count("dcpim") > 1
    assert all(f"column {i}" in text for i in range(12))


def test_long_names_continue_in_another_line() -> None:
    name = "pfabric:rto-us=60,window-max=75"
    assert name in printed(wide(3, name))
    text = printed(wide(4, name))
    names = [line.split()[0] for line in text.splitlines() if line.strip()[:1].isalpha()]
    assert names == ["Title", "column", "pfabric:rto-us=60,", "window-max=75", "A"]


def test_words_are_on_the_left_and_numbers_on_the_right() -> None:
    rows = [("a", "paper", "1.5"), ("b", "16 hosts", "none"), ("c", "tree", "12.25")]
    lines = printed(TextTable("Title", ("", "word", "number"), rows)).splitlines()
    assert [line.rstrip() for line in lines[-4:-1]] == [
        " a  paper        1.5",
        " b  16 hosts    none",
        " c  tree       12.25",
    ]


@pytest.mark.parametrize("width", [40, 80, 110])
@settings(deadline=None)
@given(
    name=st.text("abc:=,", max_size=70),
    n_columns=st.integers(1, 14),
    cell=st.sampled_from(["1", "123 456.789", "1.234 ± 0.012", "12 buffer, 3 fault"]),
)
def test_no_cell_is_truncated(width: int, name: str, n_columns: int, cell: str) -> None:
    text = printed(wide(n_columns, name, cell), width)
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())
    assert text.count(cell.split(" ± ")[0]) >= n_columns


def test_a_continued_table_repeats_all_columns_that_name_its_rows() -> None:
    rows = [("s0-s5", name, *["123 456.789"] * 8) for name in ("homa", "dctcp")]
    table = TextTable("Outages", ("", "transport", *"abcdefgh"), rows)
    first, *others = printed(table, 60).split("continued")
    assert others
    assert all("homa" in part and "dctcp" in part for part in (first, *others))


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}])
@pytest.mark.parametrize("command", [["papers"], ["transports"], ["--help"], ["run", "no.toml"]])
def test_output_has_no_escape_codes_without_a_terminal_or_with_no_color(
    command: list[str], variables: dict[str, str]
) -> None:
    # FORCE_COLOR has rich treat the pipe as a terminal.
    kept = {key: os.environ[key] for key in os.environ if key not in ("NO_COLOR", "FORCE_COLOR")}
    argv = [sys.executable, "-m", "rampmeter", *command]
    done = subprocess.run(argv, capture_output=True, text=True, env=kept | variables, check=False)
    assert done.stdout or done.stderr
    assert "\x1b" not in done.stdout + done.stderr

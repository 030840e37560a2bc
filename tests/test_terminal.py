"""Output on terminals: bars, colours, and terminals that have neither."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import SMALL

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
COMMANDS = {
    "run": ["run", "plan.toml"],
    "compare": ["compare", "plan.toml", "--transports", "dcpim,ndp"],
    "sweep": ["sweep", "plan.toml", "--seeds", "2", "--no-estimate"],
}


def in_terminal(folder: Path, command: list[str], **variables: str) -> str:
    """Returns the output of a command in a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    variables = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"} | variables
    with subprocess.Popen(
        [sys.executable, "-m", "rampmeter", *command],
        cwd=folder,
        env=kept | variables,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # Linux reports the end of the other side so.
                break
            if not part:
                break
            parts.append(part)
    os.close(ours)
    assert process.returncode == 0, b"".join(parts)
    return b"".join(parts).decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # The run is long enough for several pictures of its bar.
    (tmp_path / "plan.toml").write_text(SMALL.replace("flows = 200", "flows = 4000"))
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_bars_and_tables_have_no_colours_with_no_color(folder: Path, name: str) -> None:
    shown = in_terminal(folder, [*COMMANDS[name], "--out", "a"])
    assert COLOURS.search(shown)
    plain = in_terminal(folder, [*COMMANDS[name], "--out", "b"], NO_COLOR="1")
    assert not COLOURS.search(plain)
    assert "\x1b[" in plain, "expected a bar, which moves the cursor"


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}], ids=["", "forced"])
def test_a_dumb_terminal_has_lines_and_no_escape_codes(
    folder: Path, name: str, variables: dict[str, str]
) -> None:
    shown = in_terminal(folder, [*COMMANDS[name], "--out", "a"], TERM="dumb", **variables)
    assert "\x1b" not in shown
    assert "results: a" in shown
    # Those of a sweep are ten seconds apart.
    assert name == "sweep" or re.search(r"^\[(1/1|2/2)\] \w+: finished", shown, re.MULTILINE)

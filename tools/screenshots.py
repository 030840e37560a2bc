"""Pictures of commands in a terminal of 80 columns and 24 lines, for the documentation.

usage: python -m tools.screenshots [FOLDER] [NAME]...

Each command runs in a terminal of its own, in a folder with the plan of `docs/start.md`. Its last
screen becomes `FOLDER/terminal-NAME.svg` (`docs/images`). That of `sweep-running` is from the
middle of the command, with its line of progress.
"""

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT: Final = Path(__file__).parents[1]
IMAGES: Final = ROOT / "docs" / "images"
COLUMNS: Final = 80
LINES: Final = 24
COMPARED: Final = "--transports dcpim,phost,ideal"
SWEEP: Final = "rampmeter sweep plan.toml --vary workload.load=0.3,0.6 --transports dcpim,phost"
COMMANDS: Final = {
    "run": "rampmeter run plan.toml --out results/first",
    "compare": f"rampmeter compare plan.toml {COMPARED} --seeds 5 --out results/compare",
    "sweep": f"{SWEEP} --seeds 3",
    "sweep-running": f"{SWEEP} --seeds 9",
    "papers": "rampmeter papers",
}
HALF: Final = frozenset({"sweep-running"})
"""Commands whose screen is that of the middle."""
CONTROL: Final = re.compile(
    r"(?P<up>\x1b\[1A)|(?P<clear>\x1b\[2K)|(?P<other>\x1b\[\?25[lh])|(?P<style>\x1b\[[0-9;]*m)"
    r"|(?P<return>\r)|(?P<line>\n)|(?P<text>[^\x1b\r\n]+)"
)
FONTS: Final = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
"""Fonts of the template, which are from the network."""


CLIPPED: Final = ('height="{terminal_height}" />', 'height="100%" />')
"""Height of the area of text in the template, which cuts underscores of the last line, and another
one."""


def main() -> None:
    """Writes the pictures of the commands with these names, or of all."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    for name in sys.argv[2:] or COMMANDS:
        file = folder / f"terminal-{name}.svg"
        file.write_text(picture_of(name), encoding="utf-8")
        sys.stdout.write(f"{file}\n")


def picture_of(name: str) -> str:
    """Returns the picture of a command, which is run."""
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "plan.toml").write_text(plan_of_start(), encoding="utf-8")
        (Path(work) / "papers").symlink_to(ROOT / "papers")
        shots = list(run(COMMANDS[name], Path(work)))
    middle = next(shot for shot in reversed(shots[: len(shots) * 2 // 3]) if shot[-1].strip())
    return picture(COMMANDS[name], middle if name in HALF else shots[-1], name)


def plan_of_start() -> str:
    """Returns the plan of the first page."""
    text = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- file: plan.toml -->\n```toml\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def run(command: str, folder: Path) -> Iterator[list[str]]:
    """Yields the lines of the screen after each part of the output of a command."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(COLUMNS), "LINES": str(LINES), "TERM": "xterm-256color"}
    argv = [sys.executable, "-m", *command.split()]
    with subprocess.Popen(
        argv,
        cwd=folder,
        env={**os.environ, **size},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        output = b""
        while part := _read(ours):
            output += part
            yield screen(output.decode("utf-8", "ignore"))
    os.close(ours)
    if process.returncode:
        raise SystemExit(f"{command}: exit code {process.returncode}")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux reports the end of the other side so.
        return b""


def screen(output: str) -> list[str]:
    """Returns the lines that a terminal shows after an output, with their styles.

    Only the control codes of rich are known: they clear a line, move up, and begin a line again.

    >>> screen("bar 1\\r\\x1b[2Kbar 2")
    ['bar 2']
    """
    lines, row = [""], 0
    for found in CONTROL.finditer(output):
        match found.lastgroup:
            case "up":
                row = max(0, row - 1)
            case "clear":
                lines[row] = ""
            case "line":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            case "text" | "style":
                lines[row] += found[0]
    return lines


def picture(command: str, lines: list[str], name: str) -> str:
    """Returns the last screen with the command above its output, as SVG."""
    texts = [Text.from_ansi(line) for line in (f"\x1b[1m$ {command}\x1b[0m", *lines)]
    while not texts[-1].plain.strip():
        texts.pop()
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    # Long lines continue on the next one.
    wrapped = [part for text in texts for part in (text.wrap(console, COLUMNS) or [Text()])]
    visible = wrapped[-LINES:]
    for line in [*visible, *[Text()] * (LINES - len(visible))]:
        console.print(line, no_wrap=True, crop=True)
    svg = console.export_svg(
        title=" ".join(command.split()[:3]),
        code_format=FONTS.sub("", CONSOLE_SVG_FORMAT).replace(*CLIPPED),
        unique_id=f"terminal-{name}",
    )
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)


if __name__ == "__main__":
    main()

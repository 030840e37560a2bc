"""Blocks of documents, and their commands."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from rampmeter.cli import main

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


def run_command(line: str, where: str, exit_codes: Sequence[int] = (0,)) -> str:
    """Runs a command of a page, and returns its output."""
    words = shlex.split(line, comments=True)
    assert words[0] == "rampmeter", f"{where}: run by nobody: {line}"
    result = CliRunner().invoke(main, words[1:])
    assert result.exit_code in exit_codes, f"{where}: {line}: {result.output}{result.exception}"
    return result.output


def commands_of(block: Block) -> list[str]:
    lines = block.text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def check_output(block: Block, printed: str, where: str) -> None:
    """Every line of the block is a line of the output."""
    missing = set(trimmed(block.text)) - set(trimmed(printed))
    assert not missing, f"{where}: not printed: {missing} of {printed}"


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]

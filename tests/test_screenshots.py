"""Pictures of terminals in the documentation."""

import re
from xml.etree import ElementTree

import pytest
from rich.text import Text

from tools.screenshots import (
    COLUMNS,
    COMMANDS,
    HALF,
    IMAGES,
    LINES,
    picture,
    picture_of,
    screen,
)

from .conftest import ROOT


def test_a_screen_has_the_lines_that_remain_after_control_codes() -> None:
    output = "head\r\n\x1b[?25lone\n\x1b[1mtwo\x1b[0m\r\x1b[2K\x1b[1A\x1b[2K\x1b[31mdone\x1b[0m\n"
    shown = [Text.from_ansi(line).plain for line in screen(output)]
    assert shown == ["head", "done", ""]


def test_a_picture_has_the_last_lines_and_needs_no_network() -> None:
    text = picture("rampmeter run plan.toml", [f"line {n}" for n in range(40)], "run")
    ElementTree.fromstring(text)
    shown = re.findall(r"line&#160;(\d+)", text)
    assert shown == [str(n) for n in range(40 - LINES, 40)]
    assert "http" not in re.sub(r'xmlns="[^"]*"|https://www.textualize.io', "", text)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_picture_is_in_a_page_and_fits_the_terminal(name: str) -> None:
    file = IMAGES / f"terminal-{name}.svg"
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md")]
    assert any(f"images/{file.name})" in page for page in pages)
    text = file.read_text(encoding="utf-8")
    assert len(re.findall(r'id="terminal-[a-z-]+-line-\d+"', text)) == LINES - 1
    widths = [float(width) for width in re.findall(r'textLength="([\d.]+)"', text)]
    assert max(widths) <= 12.2 * COLUMNS
    (clip,) = re.findall(r'clip-terminal">\s*<rect [^>]*height="([^"]+)"', text)
    assert clip == "100%", "the last line is cut"


def text_of(svg: str) -> list[str]:
    """Returns the lines of a picture, without those about the machine."""
    lines: dict[float, str] = {}
    for y, text in re.findall(r'<text [^>]*\by="([\d.]+)"[^>]*>([^<]*)</text>', svg):
        lines[float(y)] = lines.get(float(y), "") + text
    of_machine = ("threads", "about", "processor", "Processor")
    return [lines[y] for y in sorted(lines) if not any(word in lines[y] for word in of_machine)]


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - HALF - {"papers"}))
def test_pictures_have_the_present_output(name: str) -> None:
    """The list of figures is left out, since its times change with the ledger."""
    text = (IMAGES / f"terminal-{name}.svg").read_text(encoding="utf-8")
    assert text_of(picture_of(name)) == text_of(text)

"""The documentation site: `make docs`."""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from rampmeter import __version__
from rampmeter.cli import COMMANDS, main
from rampmeter.papers import list_figures, load_figure
from rampmeter.papers.inventory import inventory_page, load_inventory
from rampmeter.papers.misses import explanations, misses_section
from rampmeter.papers.status import ledger_page
from rampmeter.report.figures import PAPERS
from rampmeter.text.cautions import explanations as explanations_of_codes

HERE = Path(__file__).parent
ROOT = HERE.parent

sys.path.insert(0, str(HERE / "_ext"))

project = "Rampmeter"
author = "The Rampmeter authors"
version = release = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "animations",
]
default_role = "code"
exclude_patterns = ["_build"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nitpicky = False

html_theme = "furo"
html_title = f"Rampmeter {version}"
html_static_path: list[str] = []
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
# Notebooks are executed by the tests, and shown as they were.
nb_execution_mode = "off"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_class_signature = "separated"
autodoc_default_options = {"members": True, "undoc-members": False}

NOTES = HERE / "papers"
"""Pages that are made of the folders of `papers`; none of them is in the repository."""
NOTEBOOKS = HERE / "notebooks"
"""Copies of the examples' notebooks."""
PROJECT = HERE / "project"
"""Copies of the documents at the root."""
AT_ROOT = ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "RELEASING", "SECURITY")
COMMAND = HERE / "reference" / "command.md"
"""The page that is made of the command's help."""
WARNINGS = HERE / "reference" / "warnings.md"
"""The page that is made of the paragraphs of `rampmeter explain`."""
WIRE = HERE / "reference" / "wire.md"
"""The page that is made of the documentation of the envelope."""
ENVELOPE = ROOT / "crates" / "types" / "src" / "envelope.rs"


def _notes(_: Any) -> None:
    """Pages of figures (claim, command, notes, misses), of the inventory, and of the ledger."""
    shutil.rmtree(NOTES, ignore_errors=True)
    by_paper: dict[str, list[str]] = {}
    for folder in list_figures(ROOT / "papers"):
        figure = load_figure(folder)
        paper = figure.paper
        page = NOTES / paper / f"{folder.name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        number = figure.number
        what = f"Table {number[5:]}" if number.startswith("table") else f"Figure {number}"
        notes = (folder / "NOTES.md").read_text(encoding="utf-8")
        text = f"# {what}: {figure.title}\n\n> {figure.claim}\n\n"
        text += f"```\nrampmeter papers {paper} {number}\n```\n\n"
        text += _below(_links(notes, folder, 2)) + "\n" + misses_section(explanations(figure))
        page.write_text(text, encoding="utf-8")
        by_paper.setdefault(paper, []).append(folder.name)
    inventory = inventory_page(load_inventory(ROOT / "papers"))
    (NOTES / "inventory.md").write_text(inventory, encoding="utf-8")
    (NOTES / "ledger.md").write_text(ledger_page(ROOT / "papers"), encoding="utf-8")
    for paper, names in by_paper.items():
        lines = [f"# {PAPERS.get(paper, paper)}", "", "```{toctree}", *names, "```", ""]
        (NOTES / paper / "index.md").write_text("\n".join(lines), encoding="utf-8")


def _below(notes: str) -> str:
    """Notes without their title, and with headings a level below the page's."""
    lines = notes.splitlines()
    if lines and lines[0].startswith("# "):
        lines = lines[1:]
    return "\n".join(lines) + "\n"


def _links(text: str, folder: Path, depth: int) -> str:
    """Links to notes and to files of the repository, seen from a page `depth` folders below.

    Notes are pages here. Files that are none are named, and not linked to.
    """

    def page(match: re.Match[str]) -> str:
        text, target = match.groups()
        path, _, anchor = target.partition("#")
        file = (folder / path).resolve()
        up = "../" * depth
        end = f"#{anchor}" if anchor else ""
        if not path or "://" in target:
            return match.group(0)
        if file.parent == ROOT and file.stem in AT_ROOT:
            return f"[{text}]({up}project/{file.stem.lower()}.md{end})"
        if file.name == "NOTES.md":
            return f"[{text}]({up}papers/{file.parent.parent.name}/{file.parent.name}.md{end})"
        if file.suffix == ".ipynb":
            return f"[{text}]({up}notebooks/{file.name})"
        if file.is_relative_to(HERE):
            return f"[{text}]({up}{file.relative_to(HERE)}{end})"
        return f"{text} (`{file.relative_to(ROOT)}`)"

    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", page, text)


def _read(_: Any, name: str, source: list[str]) -> None:
    """Links of a page to what is not part of the site."""
    copies = {f"project/{name.lower()}" for name in AT_ROOT}
    if not name.startswith("papers/") and name not in copies:
        source[0] = _links(source[0], (HERE / name).parent, name.count("/"))


def _commands(_: Any) -> None:
    """The pages of the command's help, and of the codes of warnings and errors."""
    text = "# The command\n\n`rampmeter COMMAND --help` prints the same.\n"
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        title = f"rampmeter {name}"
        context = click.Context(command, info_name=title, max_content_width=90)
        text += f"\n## `{title}`\n\n```text\n{command.get_help(context)}\n```\n"
    COMMAND.write_text(text, encoding="utf-8")
    text = "# Warnings and errors\n\n`rampmeter explain CODE` prints these paragraphs.\n"
    for code, paragraph in sorted(explanations_of_codes().items()):
        text += f"\n## `{code}`\n\n{paragraph}\n"
    WARNINGS.write_text(text, encoding="utf-8")


def _notebooks(_: Any) -> None:
    """The notebooks of the examples, which tests execute."""
    NOTEBOOKS.mkdir(exist_ok=True)
    for file in (ROOT / "examples" / "notebooks").glob("*.ipynb"):
        shutil.copyfile(file, NOTEBOOKS / file.name)


def _project(_: Any) -> None:
    """Pages of the documents at the root, with links as seen from the site."""
    PROJECT.mkdir(exist_ok=True)
    for name in AT_ROOT:
        text = _links((ROOT / f"{name}.md").read_text(encoding="utf-8"), ROOT, 1)
        (PROJECT / f"{name.lower()}.md").write_text(text, encoding="utf-8")


def _wire(_: Any) -> None:
    """The page of the wire format, from the documentation of the code that writes it."""
    lines = ENVELOPE.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line[4:] for line in lines if line.startswith("//!"))
    text = re.sub(r"\[`(\w+)`\]", r"`\1`", text).replace("\n# ", "\n## ")
    after = "\n\nHeaders of transports: section *Packets* of [their pages](../protocols.md).\n"
    WIRE.write_text(f"# Wire format\n\n{text}{after}", encoding="utf-8")


def setup(app: Any) -> None:
    """Make the pages that follow from the code and from notes before all are read."""
    app.connect("builder-inited", _notes)
    app.connect("builder-inited", _commands)
    app.connect("builder-inited", _notebooks)
    app.connect("builder-inited", _project)
    app.connect("builder-inited", _wire)
    app.connect("source-read", _read)

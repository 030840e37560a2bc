"""`rampmeter examples`."""

import json
import shutil
from itertools import takewhile
from pathlib import Path
from typing import Final

import click

from rampmeter.commands.json_output import emit
from rampmeter.commands.options import FOLDER
from rampmeter.commands.output import Output, output_options
from rampmeter.results.table import Cell, Column, ResultTable
from rampmeter.text.files import replacing
from rampmeter.text.locations import BAD_FILE, Location
from rampmeter.text.numbers import counted
from rampmeter.text.wrapping import wrapped

KINDS: Final = ("plans", "lessons", "notebooks")
OF_PACKAGE: Final = (
    Path(__file__).resolve().parents[1] / "_examples",
    Path(__file__).resolve().parents[3] / "examples",
)
"""Folders of the examples in an installed package, and in a source tree."""
COLUMNS: Final = (Column("file", "file"), Column("about", "about", width=50))


@click.command()
@click.argument("folder", type=FOLDER, required=False)
@output_options
def examples(folder: Path | None, output: Output) -> None:
    """List the examples, or copy them to FOLDER.

    Existing files are not replaced: they are an error.

    \b
    Example: plans, those of the lessons, and notebooks to start from
      rampmeter examples my-examples
    """
    source = next((one for one in OF_PACKAGE if one.is_dir()), None)
    if source is None:
        raise Location(OF_PACKAGE[0]).error(expected="a folder of examples", code=BAD_FILE)
    files = [file for kind in KINDS for file in sorted((source / kind).iterdir())]
    if folder is None:
        found = [(f"{file.parent.name}/{file.name}", _about(file)) for file in files]
        if output.is_whole_text:
            for name, about in found:
                click.echo("\n".join([name, *wrapped(about, "    ")]))
            return
        rows: list[tuple[Cell, ...]] = [*found]
        fields = {"examples": [{"file": name, "about": about} for name, about in found]}
        output.print("examples", fields, [ResultTable("examples", "Examples", COLUMNS, rows)])
        return
    copies = {file: folder / file.parent.name / file.name for file in files}
    for copy in copies.values():
        if copy.exists():
            raise Location(copy).error(
                "the file exists", hint="choose another folder", code=BAD_FILE
            )
    for file, copy in copies.items():
        with replacing(copy) as partial:
            shutil.copyfile(file, partial)
    if output.is_json:
        emit("examples", {"folder": folder, "files": list(copies.values())})
    else:
        click.echo(f"{folder}: {counted(len(copies), 'file')}")


def _about(file: Path) -> str:
    """Returns the first sentence of a plan's comment, or the title of a notebook."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        title: str = json.loads(text)["cells"][0]["source"][0]
        return title.strip("# \n")
    comment = takewhile(lambda line: line.startswith("#"), text.splitlines())
    sentence, end, _ = " ".join(line.strip("# ") for line in comment).partition(". ")
    return f"{sentence}{end.strip()}"

"""`rampmeter schema`."""

import json
from pathlib import Path

import click

from rampmeter.commands.json_output import emit, json_option
from rampmeter.plan.plan import SWEEP
from rampmeter.plan.schema import plan_schema
from rampmeter.sweeps.schema import SWEEP as SWEEP_TABLE
from rampmeter.text.files import write_text


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@json_option
def schema(file: Path | None, *, as_json: bool) -> None:
    """Print the JSON Schema of plans, or write it to FILE.

    Editors with the schema complete and explain keys of plans, and mark errors. A plan names it in
    its first line: #:schema plan.schema.json

    \b
    Example: a schema next to the plans
      rampmeter schema plan.schema.json
    """
    whole = plan_schema()
    properties = {**whole["properties"], SWEEP: SWEEP_TABLE}
    found = {**whole, "properties": properties}
    text = json.dumps(found, indent=2) + "\n"
    if file is not None:
        write_text(file, text)
    if as_json:
        emit("schema", {"plans": found} if file is None else {"file": file})
    elif file is None:
        click.echo(text, nl=False)

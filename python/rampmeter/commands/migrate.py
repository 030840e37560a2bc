"""`rampmeter migrate`."""

from pathlib import Path

import click

from rampmeter.commands.json_output import emit, json_option
from rampmeter.commands.options import FILE
from rampmeter.plan.migration import migrate as migrate_file
from rampmeter.text.files import replacing


@click.command()
@click.argument("files", type=FILE, nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@json_option
def migrate(files: tuple[Path, ...], *, dry_run: bool, as_json: bool) -> None:
    """Rewrite plans with the present names and units of keys.

    FILES are plans, sweeps or configurations of rampd. Only renamed keys and their numbers change.
    A file with an error stays as it is, and so do all files after it.

    \b
    Example: the changes that a plan needs
      rampmeter migrate plan.toml --dry-run
    """
    found = []
    for file in files:
        text, settings = migrate_file(file)
        if settings and not dry_run:
            with replacing(file) as partial:
                partial.write_bytes(text.encode())
        found += [(file, setting) for setting in settings]
    if as_json:
        changes = [
            {"file": file, "line": setting.line, "old": setting.old, "new": setting.new}
            for file, setting in found
        ]
        emit("migrate", {"changes": changes, "written": not dry_run})
        return
    for file, setting in found:
        click.echo(f"{file}:{setting.line}: {setting.old} -> {setting.new}")
    if not found:
        click.echo("no renamed keys")

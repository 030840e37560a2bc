"""Start of the command: modules that are slow to import are imported only if they are used."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.cli import COMMANDS

SLOW = {
    "asyncio", "fsspec", "matplotlib", "numpy", "pandas", "polars", "pyarrow",
    "rampmeter.api", "rampmeter.plan_tables", "rampmeter.transports",
}  # fmt: skip
"""Modules that take longer to import than the rest of a command, or that import many others."""
TABLES = {"rich"}
"""Modules of commands that print tables or progress."""
LIGHT = ("check", "convert", "examples", "explain", "migrate", "schema", "transports")

PROGRAM = """
import json, runpy, sys
try:
    runpy.run_module("rampmeter", run_name="__main__", alter_sys=True)
finally:
    print("\\0" + json.dumps(sorted(sys.modules)))
"""


def imported(*arguments: str) -> set[str]:
    """Returns the modules that a command has imported when it ends."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.rpartition("\0")[2]))


def plan(tmp_path: Path) -> str:
    file = tmp_path / "plan.toml"
    text = rm.Plan.of(
        topology=rm.star(4), transport=rm.DcPim(), workload=rm.imc10(load=0.5, flows=10)
    ).text
    file.write_text(text)
    return str(file)


def test_the_list_of_commands_and_transports_import_nothing_slow() -> None:
    for arguments in (["--help"], ["transports"], ["explain", "overload"]):
        assert imported(*arguments) & (SLOW | TABLES) == set()


def test_check_imports_nothing_slow(tmp_path: Path) -> None:
    assert imported("check", plan(tmp_path)) & (SLOW | TABLES) == set()


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"bench"}))
def test_help_of_a_command_imports_nothing_slow(command: str) -> None:
    tables = TABLES if command in LIGHT else set()
    assert imported(command, "--help") & (SLOW | tables) == set()


def test_the_list_of_commands_has_a_line_each() -> None:
    assert all(len(line) <= 64 and line.endswith(".") for line in COMMANDS.values())
    folder = Path(rm.__file__).parent / "commands"
    helpers = {"__init__", "common", "json_output", "options", "output", "usage"}
    assert {file.stem for file in folder.glob("*.py")} - helpers == set(COMMANDS)


def test_names_of_the_package_are_found_on_first_use() -> None:
    program = "import sys, rampmeter as rm; print('rampmeter.api' in sys.modules, rm.DcPim)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("False <class 'rampmeter.transports.DcPim'>")
    with pytest.raises(AttributeError, match="module 'rampmeter' has no attribute 'nothing'"):
        _ = rm.nothing  # type: ignore[attr-defined]


def test_names_of_the_package_are_public_and_no_modules() -> None:
    assert {"run", "Plan", "DcPim", "FatTree", "__version__"} <= set(dir(rm))
    assert not {"toml", "naming", "api", "extension", "spec"} & set(dir(rm))
    assert set(rm.__all__) == set(dir(rm))

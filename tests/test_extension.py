"""Extensions: a custom library in place of the package's own."""

import subprocess
import sys
from pathlib import Path

import pytest

from rampmeter import _core, extension

from .commands import call, error_line


def run_python(statement: str, library: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", statement],
        env={extension.VARIABLE: library, "PYTHONPATH": str(Path(extension.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_environment_names_the_library() -> None:
    built = Path(str(_core.__file__))
    done = run_python("import rampmeter; print(rampmeter._core.__file__)", str(built))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(built)


def test_a_library_that_is_not_there_is_named() -> None:
    done = run_python("import rampmeter", "/nowhere/libmine.so")
    expected = (
        "RAMPMETER_EXTENSION: expected a shared library, got /nowhere/libmine.so: no such file"
    )
    assert expected in done.stderr


def test_a_file_that_is_no_library_is_named(tmp_path: Path) -> None:
    library = tmp_path / "libmine.so"
    library.write_text("no library")
    done = run_python("import rampmeter", str(library))
    assert f"ImportError: RAMPMETER_EXTENSION: {library}: " in done.stderr


@pytest.mark.parametrize("arguments", [["transports"], ["check", "plan.toml"]])
def test_the_command_refuses_a_library_that_is_not_there(arguments: list[str]) -> None:
    assert "--extension: expected a shared library, got /nowhere/libmine.so" in error_line(
        "--extension", "/nowhere/libmine.so", *arguments
    )


def test_former_names_are_errors_that_have_the_new_ones() -> None:
    assert "--core: the option is now --extension" in error_line(
        "--core", "libmine.so", "transports"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import rampmeter"],
        env={extension.FORMER: "a.so", "PYTHONPATH": str(Path(extension.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "RAMPMETER_CORE: the variable is now RAMPMETER_EXTENSION" in done.stderr


def test_the_command_lists_transports() -> None:
    result = call("transports")
    assert "phost (paper, reference)\n    Tokens" in result.output

"""The imports of the package: files and folders have an order."""

import ast
from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "python" / "rampmeter"


def name_of(file: Path) -> str:
    """Returns the name of a file's module."""
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(file: Path, modules: Set[str]) -> set[str]:
    """Returns the modules of the package that a file imports, those for types included."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{one.name}" for one in node.names}
            found |= names & modules or {node.module}
    # The package itself is no part: `from rampmeter import _core` imports the simulator.
    return found & modules - {PACKAGE.name, name_of(file)}


def graph() -> dict[str, set[str]]:
    """Returns the imports of each module of the package."""
    files = {name_of(file): file for file in PACKAGE.rglob("*.py")}
    return {name: imports_of(file, files.keys()) for name, file in files.items()}


def folder_of(module: str) -> str:
    """Returns the folder of a module, or the module if it is at the top."""
    return ".".join(module.split(".")[:2])


def circle_of(of: Mapping[str, Set[str]]) -> list[str]:
    """Returns the members of a circle; none if there is no circle."""
    try:
        TopologicalSorter(of).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circle_of(graph()) == []


def test_no_folders_import_each_other_in_a_circle() -> None:
    folders: dict[str, set[str]] = {}
    for module, imported in graph().items():
        if module != PACKAGE.name:
            folder = folder_of(module)
            others = {folder_of(one) for one in imported} - {folder}
            folders.setdefault(folder, set()).update(others)
    assert len(folders) > 20
    assert circle_of(folders) == []


def test_a_circle_is_found() -> None:
    assert set(circle_of({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}

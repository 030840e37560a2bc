"""The files behind transports in Python, and their digests."""

import ast
import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

BUILTIN: Final = "rampmeter.endpoints"
"""The module of classes that a plan may name without a module."""


def digests_of(table: Mapping[str, Any], base: Path) -> dict[str, str]:
    """Returns the digests of the files behind a Python transport, except the one its table names.

    These are the files next to it that it imports, directly or not, or the file of its module. A
    class without a file has a digest in its name.
    """
    file, module = table.get("file"), table.get("module")
    named: dict[str, Path] = {}
    if isinstance(file, str):
        named = {str(Path(file).with_name(o.name)): o for o in sibling_files(base / file)}
    elif isinstance(module, str) and module != BUILTIN and "@" not in str(table.get("endpoint")):
        found = find_spec(module)
        if found is not None and found.origin is not None and Path(found.origin).is_file():
            named = {found.origin: Path(found.origin)}
    return {name: hashlib.sha256(one.read_bytes()).hexdigest() for name, one in named.items()}


def sibling_files(file: Path) -> list[Path]:
    """Returns the Python files of its folder that a file imports, directly or not."""
    found: dict[str, Path] = {file.stem: file}
    to_read = [file]
    while to_read:
        try:
            tree = ast.parse(to_read.pop().read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for stem in (name.partition(".")[0] for name in names):
                candidate = file.with_name(f"{stem}.py")
                if stem not in found and candidate.is_file():
                    found[stem] = candidate
                    to_read.append(candidate)
    return sorted(path for path in found.values() if path != file)

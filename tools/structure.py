"""Draws which parts of a crate or package import which, at two commits.

usage: python -m tools.structure BEFORE AFTER [FOLDER]

A drawing is a matrix: a row for each part, a column for each part that it imports. Parts are files
and folders at the top of `src`, or of the package. They are in an order in which most imports are
of earlier parts. An import of a later part is red: it closes a circle.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

ROOTS: Final = {
    "exp": "crates/exp/src",
    "proto": "crates/proto/src",
    "python": "python/rampmeter",
}
PACKAGE: Final = "rampmeter"
ENTRY: Final = {"lib", "__init__", "__main__"}
"""Parts that import all others, by purpose."""
TESTS: Final = re.compile(r"(^|/)tests?(/|\.rs$|_)|#\[cfg\(test\)\]\s*mod tests \{", re.M)

Imports: TypeAlias = Mapping[str, set[str]]
"""Imported parts by part."""


def main() -> None:
    """Writes the drawings, and prints numbers of parts, imports and circles."""
    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "structure"
    before, after = (_git("rev-parse", commit).strip() for commit in sys.argv[1:3])
    folder = Path(sys.argv[3] if len(sys.argv) > 3 else "docs/images")
    for name, root in ROOTS.items():
        both = [imports(commit, root) for commit in (before, after)]
        figure, axes = plt.subplots(1, 2, figsize=(11, 5.8), layout="constrained")
        for ax, commit, found in zip(axes, (before, after), both, strict=True):
            order = ordered(found)
            n_back = draw(ax, found, order)
            title = f"{root} at {commit[:8]}: {len(order)} parts, {n_back} imports in circles"
            ax.set_title(title, fontsize=8)
            sys.stdout.write(title + "\n")
        figure.savefig(folder / f"structure-{name}.svg", metadata={"Date": None})
        plt.close(figure)


def imports(commit: str, root: str) -> Imports:
    """Returns the imports between parts of a folder at a commit, without tests."""
    files = dict(_files(commit, root))
    parts = {_part(path) for path in files}
    exports = {name: part for part, name in _exports(files.get(PurePosixPath("lib.rs"), ""))}
    found: dict[str, set[str]] = {part: set() for part in parts - ENTRY}
    for path, text in files.items():
        part = _part(path)
        if part in ENTRY:
            continue
        names = _rust_names(path, text) if path.suffix == ".rs" else _python_names(text)
        targets = {exports.get(name, name) for name in names}
        found[part] |= targets & found.keys() - {part}
    return found


def ordered(found: Imports) -> list[str]:
    """Returns parts in an order with few imports of later ones: those that import least first."""
    left, order = dict(found), list[str]()
    while left:
        part = min(left, key=lambda one: (len(left[one] & left.keys()), one))
        order.append(part)
        del left[part]
    return order


def draw(ax: Axes, found: Imports, order: list[str]) -> int:
    """Draws a matrix of imports; returns the number of those of later parts."""
    places = {part: place for place, part in enumerate(order)}
    cells = [(places[part], places[of]) for part, all_of in found.items() for of in all_of]
    back = [cell for cell in cells if cell[1] > cell[0]]
    size = max(6.0, 220.0 / len(order)) ** 1.15
    for marked, color in ((cells, "#4c78a8"), (back, "#d62728")):
        if marked:
            rows, columns = zip(*marked, strict=True)
            ax.scatter(columns, rows, s=size, c=color, marker="s", linewidths=0)
    font = min(7.0, 260.0 / len(order))
    ax.set_xticks(range(len(order)), order, rotation=90, fontsize=font)
    ax.set_yticks(range(len(order)), order, fontsize=font)
    ax.set_xlim(-0.5, len(order) - 0.5)
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_aspect("equal")
    ax.grid(linewidth=0.3, color="#dddddd")
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    ax.set_xlabel("imports from", fontsize=7)
    return len(back)


def _files(commit: str, root: str) -> Iterator[tuple[PurePosixPath, str]]:
    """Yields paths within a folder, and texts, of source files without tests."""
    listed = _git("ls-tree", "-r", "--name-only", commit, root + "/").splitlines()
    for path in listed:
        inner = PurePosixPath(path).relative_to(root)
        if path.endswith((".rs", ".py")) and not TESTS.search(str(inner)):
            text = _git("show", f"{commit}:{path}")
            yield inner, text[: at.start()] if (at := TESTS.search(text)) else text


def _part(path: PurePosixPath) -> str:
    return path.parts[0].split(".")[0]


def _exports(library: str) -> Iterator[tuple[str, str]]:
    """Yields module and name of each item that `lib.rs` exports."""
    for module, items in re.findall(r"pub(?:\(crate\))? use (\w+)::([^;]+);", library):
        yield from ((module, name) for name in re.findall(r"\w+", items))


def _rust_names(path: PurePosixPath, text: str) -> Iterator[str]:
    """Yields first names after the root of the crate."""
    code = re.sub(r"//.*", "", text)
    is_module = path.stem in ("mod", "lib")
    depth = len(path.parts) - is_module
    root = rf"(?:\bcrate|\b(?:super::){{{depth - 1}}}super)"
    yield from re.findall(rf"{root}::(\w+)", code)
    for group in re.findall(rf"{root}::\{{((?:[^{{}}]|\{{[^{{}}]*\}})*)\}}", code):
        flat = re.sub(r"\{[^{}]*\}", "", group)
        yield from (item.strip().split("::")[0].split(" ")[0] for item in flat.split(","))


def _python_names(text: str) -> Iterator[str]:
    """Yields first names below the package."""
    yield from re.findall(rf"^\s*(?:from|import) {PACKAGE}\.(\w+)", text, re.M)
    for names in re.findall(rf"^\s*from {PACKAGE} import ([\w, ]+)", text, re.M):
        yield from re.findall(r"\w+", names)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()

"""Runs the notebooks of examples. `python -m tests.notebooks` stores what they give now."""

import os
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FILES = sorted((Path(__file__).parents[1] / "examples/notebooks").glob("*.ipynb"))


def executed(file: Path, folder: Path) -> NotebookNode:
    """Returns a notebook with the outputs that it gives in an empty folder."""
    notebook: NotebookNode = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    metadata = [cell.metadata.copy() for cell in notebook.cells]
    # The kernel is that of this Python, not another of the user's.
    kernel = {
        "JUPYTER_PATH": str(folder / "none"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    with patch.dict(os.environ, kernel):
        client.execute()
    # When each cell ran says nothing about its outputs.
    for cell, before in zip(notebook.cells, metadata, strict=True):
        cell.metadata = before
    return notebook


def main() -> None:
    """Stores the outputs of every notebook."""
    for file in FILES:
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(file, Path(folder))
        nbformat.write(notebook, file)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()

"""Reads the plan of a result from its manifest, so that the run can be repeated."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rampmeter import _core
from rampmeter._core import ResultError
from rampmeter.text.json_object import read_json
from rampmeter.text.locations import BAD_FILE, Location
from rampmeter.text.toml import dumps

MANIFEST = "manifest.json"
"""File name of the record of a run: plan, seed, version, status."""
IDENTITY = "identity.json"
"""File name of the identity of a result folder's run: plan, input files, simulator."""
BASE = "base"
"""Key in that file of the base of relative file names in the plan, relative to the folder."""


def is_manifest(file: Path) -> bool:
    """Returns true if a file's name is that of manifests, or of other JSON."""
    return file.suffix == ".json"


def plan_of(file: Path) -> tuple[str, Path]:
    """Returns the plan in a manifest as TOML, and the folder to which its file names are relative.

    Raises `PlanError` if the file is no manifest, or if files that the run has read have changed.
    """
    try:
        manifest = read_json(file)
        recorded = file.with_name(IDENTITY)
        identity = read_json(recorded) if recorded.is_file() else {}
    except ResultError as error:
        raise Location(error.file or "").error(error.problem or str(error), code=BAD_FILE) from None
    plan = manifest.get("plan")
    if not isinstance(plan, dict):
        raise Location(file).error(expected=f"a {MANIFEST} with a plan", got="JSON without one")
    base = file.parent / identity.get(BASE, "")
    for name, digest in identity.get("inputs", {}).items():
        check_input(file, base / name, digest)
    text, _ = _core.migrate(dumps(without_nulls(plan)), str(file))
    return text, base


def check_input(manifest: Path, file: Path, digest: str) -> None:
    """Raises `PlanError` if a file has changed since the run."""
    if not file.is_file():
        raise Location(manifest).error(f"{file}, which the run has read, is missing", code=BAD_FILE)
    with file.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
            raise Location(manifest).error(f"{file} has changed since the run", code=BAD_FILE)


def without_nulls(value: Any) -> Any:
    """Returns the value without null keys and items, which TOML lacks."""
    if isinstance(value, Mapping):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value if inner is not None]
    return value

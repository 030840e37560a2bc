"""Digests of the ledger after a change of plan keys or of digests that changes no result.

Entries are stale if their plan has changed: a new key with a default, or another name, changes
every complete plan. The form of digests of results may change, too. `save FILE` before the change
stores the digests of each run; `apply FILE` after it replaces those in the entries, and those of
results in the notes of figures. Entries and notes that were stale before stay stale.

    python -m tools.renew_ledger save digests.json
    python -m tools.renew_ledger apply digests.json
"""

import json
import re
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Final

from rampmeter.papers import find_papers
from rampmeter.papers.figure import load_figure
from rampmeter.papers.ledger import FULL, SEEDS, Ledger, MissingRun
from rampmeter.papers.replays import ReplayLedger
from rampmeter.papers.verdict import PILOT
from rampmeter.text.json_object import read_json
from tools.generate.notes import LENGTH, NETWORK, Recorded

FIGURE: Final = "figure.toml"
KEYS: Final = ("plan", "results")
MEASURED: Final = re.compile(rf"^- ([\w-]+) ([\w.-]+) ([0-9a-f]{{{LENGTH}}})$", re.M)


def digests(root: Path) -> dict[str, dict[str, Sequence[str]]]:
    """Returns digests of plans and results by file of entries, then by load and mode."""
    ledger, replays = Ledger(root), ReplayLedger(root)
    found: dict[str, dict[str, Sequence[str]]] = {}
    for folder in sorted(file.parent for file in root.glob(f"*/*/{FIGURE}")):
        figure = load_figure(folder)
        for run in figure.runs:
            loads = {entry.load for entry in ledger.entries(figure, run)}
            found[str(ledger.file_of(figure, run).relative_to(root))] = {
                f"{load} {mode.name}": ledger.versions(
                    MissingRun(figure, run, SEEDS[0], load, mode)
                )
                for load, mode in product(loads, (FULL, PILOT))
            }
    for replay in replays.setups():
        name = str(replays.file_of(replay).relative_to(root))
        found[name] = {"": replays.dependencies(replay)[:2]}
    return found


def apply_to_notes(root: Path, before: Recorded, now: Recorded) -> None:
    """Replaces digests of results in the notes of figures."""

    def renewed(line: re.Match[str]) -> str:
        name, preset, digest = line.groups()
        if not before[name][preset][NETWORK].startswith(digest):
            return line[0]
        return f"- {name} {preset} {now[name][preset][NETWORK][:LENGTH]}"

    for file in root.glob("*/*/NOTES.md"):
        text = file.read_text(encoding="utf-8")
        file.write_text(MEASURED.sub(renewed, text), encoding="utf-8")


def apply(root: Path, before: dict[str, dict[str, Sequence[str]]]) -> None:
    """Replaces digests in the entries."""
    for name, now in digests(root).items():
        file = root / name
        if not file.is_file():
            continue
        text = renewed = file.read_text(encoding="utf-8")
        for case, old in before.get(name, {}).items():
            for key, old_digest, digest in zip(KEYS, old, now.get(case, old), strict=True):
                renewed = renewed.replace(f'"{key}": "{old_digest}"', f'"{key}": "{digest}"')
        if renewed != text:
            file.write_text(renewed, encoding="utf-8")


def main() -> None:
    """Runs the tool."""
    recorded = find_papers() / "recorded.json"
    match sys.argv[1:]:
        case ["save", file]:
            saved = {"entries": digests(find_papers()), "recorded": read_json(recorded)}
            Path(file).write_text(json.dumps(saved), encoding="utf-8")
        case ["apply", file]:
            saved = read_json(Path(file))
            apply(find_papers(), saved["entries"])
            apply_to_notes(find_papers(), saved["recorded"], read_json(recorded))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()

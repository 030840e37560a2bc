"""Plan digests of the ledger after a change of plan keys that changes no result.

Entries are stale if their plan has changed: a new key with a default, or another name, changes
every complete plan. `save FILE` before the change stores the digest of each run; `apply FILE` after
it replaces those in the entries. Entries that were stale before stay stale.

    python -m tools.renew_ledger save digests.json
    python -m tools.renew_ledger apply digests.json
"""

import json
import sys
from itertools import product
from pathlib import Path
from typing import Final

from rampmeter.papers import find_papers
from rampmeter.papers.figure import load_figure
from rampmeter.papers.ledger import FULL, SEEDS, Ledger, MissingRun
from rampmeter.papers.replays import ReplayLedger
from rampmeter.papers.verdict import PILOT

FIGURE: Final = "figure.toml"


def digests(root: Path) -> dict[str, dict[str, str]]:
    """Returns digests of plans by file of entries, then by load and mode."""
    ledger, replays = Ledger(root), ReplayLedger(root)
    found: dict[str, dict[str, str]] = {}
    for folder in sorted(file.parent for file in root.glob(f"*/*/{FIGURE}")):
        figure = load_figure(folder)
        for run in figure.runs:
            loads = {entry.load for entry in ledger.entries(figure, run)}
            found[str(ledger.file_of(figure, run).relative_to(root))] = {
                f"{load} {mode.name}": ledger.versions(
                    MissingRun(figure, run, SEEDS[0], load, mode)
                )[0]
                for load, mode in product(loads, (FULL, PILOT))
            }
    for replay in replays.setups():
        name = str(replays.file_of(replay).relative_to(root))
        found[name] = {"": replays.dependencies(replay)[0]}
    return found


def apply(root: Path, before: dict[str, dict[str, str]]) -> None:
    """Replaces digests in the entries."""
    for name, now in digests(root).items():
        file = root / name
        if not file.is_file():
            continue
        text = renewed = file.read_text(encoding="utf-8")
        for case, old in before.get(name, {}).items():
            if case in now:
                renewed = renewed.replace(f'"plan": "{old}"', f'"plan": "{now[case]}"')
        if renewed != text:
            file.write_text(renewed, encoding="utf-8")


def main() -> None:
    """Runs the tool."""
    match sys.argv[1:]:
        case ["save", file]:
            Path(file).write_text(json.dumps(digests(find_papers())), encoding="utf-8")
        case ["apply", file]:
            apply(find_papers(), json.loads(Path(file).read_text(encoding="utf-8")))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()

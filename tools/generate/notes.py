"""Notes of figures whose measured values are older than the results of a transport.

A block of `NOTES.md` has the digests of `papers/recorded.json` of the time at which its values were
measured. If one has changed since, the block states it:

    <!-- measured:
    - dcpim reference 2a699977
    - phost paper a0a16a1b
    -->

    Results of pHost (`paper`) have changed since the values above were measured.

    <!-- /measured -->

To record new measurements, replace the digests with `now` and run `make generate`.
"""

import functools
import json
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rampmeter.papers import load_figure
from rampmeter.papers.figure import Figure
from rampmeter.plan.schema import transport_info

BLOCK: Final = re.compile(r"<!-- measured:\n(?P<digests>[^>]*)\n-->\n.*?<!-- /measured -->\n", re.S)
NETWORK: Final = "uniform"
LENGTH: Final = 8
WIDTH: Final = 98

Recorded = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Digests by transport, preset and network."""


def notes(root: Path) -> dict[Path, str]:
    """Returns the expected contents of all notes of figures with measured values."""
    recorded: Recorded = json.loads((root / "papers/recorded.json").read_text(encoding="utf-8"))
    contents = {}
    for file in sorted(root.glob("papers/*/*/NOTES.md")):
        text = file.read_text(encoding="utf-8")
        again, n = BLOCK.subn(functools.partial(renewed, file.parent, recorded), text)
        if n:
            contents[file] = again
    return contents


def renewed(folder: Path, recorded: Recorded, block: re.Match[str]) -> str:
    """Returns a block of a figure's notes, given the present one."""
    digests = block["digests"]
    if digests == "now":
        digests = "\n".join(
            f"- {name} {preset} {recorded[name][preset][NETWORK][:LENGTH]}"
            for name, preset in presets_of(load_figure(folder))
        )
    changed = [
        f"{transport_info(name)['title']} (`{preset}`)"
        for _, name, preset, digest in map(str.split, digests.splitlines())
        if not recorded[name][preset][NETWORK].startswith(digest)
    ]
    lines = [f"<!-- measured:\n{digests}\n-->\n"]
    if changed:
        *others, last = changed
        named = f"{', '.join(others)} and {last}" if others else last
        sentence = f"Results of {named} have changed since the values above were measured."
        lines.append(f"\n{textwrap.fill(sentence, WIDTH)}\n\n")
    return "".join([*lines, "<!-- /measured -->\n"])


def presets_of(figure: Figure) -> list[tuple[str, str]]:
    """Returns the transports of a figure's runs with their presets."""
    found = set()
    for run in figure.runs:
        plan = figure.plan.with_(*run.overrides)
        table = plan.get("transport")
        for one in table if isinstance(table, list) else [table]:
            name = str(one["name"])
            found.add((name, str(one.get("preset", transport_info(name)["presets"][0][0]))))
    return sorted(found)

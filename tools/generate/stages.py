"""Tables of the stages at which senders wait for permission, in the pages of transports."""

from collections.abc import Iterator
from pathlib import Path

from rampmeter.plan.schema import TransportInfo, transports

BLOCK = "stages"


def stage_pages(root: Path) -> Iterator[tuple[Path, str]]:
    """Yields the page of each transport with stages, and its table."""
    for about in transports():
        if about["stages"]:
            yield root / f"docs/protocols/{about['name']}.md", stage_table(about)


def stage_table(about: TransportInfo) -> str:
    """Returns the table of the stages of a transport."""
    rows = [f"| {name} | {meaning} |" for name, meaning in about["stages"]]
    return "\n".join(["| stage | meaning |", "|---|---|", *rows]) + "\n"

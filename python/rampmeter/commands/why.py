"""`rampmeter why`."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from rampmeter.commands.json_output import emit, json_option
from rampmeter.commands.options import FOLDER
from rampmeter.plan.schema import transports
from rampmeter.results.blame import CAUSES, Blame, FlowCauses, Part
from rampmeter.results.run import Run
from rampmeter.text.locations import Location
from rampmeter.text.numbers import byte_size

WIDTH: Final = 64
"""Characters of the bar of a flow's time."""
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
SHOWN_BLOCKERS: Final = 4
"""Flows that had the link, named in a line; `--json` has all."""
UNITS: Final = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20}
LINKS: Final = {
    "permission": "the receiver's link",
    "sender-link": "the link",
    "queueing": "the port",
}
"""Links that others had meanwhile, by the cause."""


@click.command()
@click.argument("folder", metavar="RESULTS", type=FOLDER)
@click.option(
    "--flow", "flows", metavar="N", type=int, multiple=True, help="This flow; repeatable."
)
@click.option("--slowest", metavar="N", type=click.IntRange(min=1), help="The N slowest flows; 3.")
@click.option(
    "--size", metavar="RANGE", help="Flows of these sizes, e.g. 1-2bdp, 10kb-1mb, '>4bdp'."
)
@json_option
def why(
    folder: Path, flows: Sequence[int], slowest: int | None, size: str | None, *, as_json: bool
) -> None:
    """Explain why flows of a run were slow, and who delayed them.

    The run needs `run.blame = true` in its plan. The parts of a flow's time sum to it.

    \b
    Examples:
      rampmeter run plan.toml --set run.blame=true
      rampmeter why results/plan --slowest 10 --size 1-2bdp
      rampmeter why results/plan --flow 42
    """
    run = Run(folder)
    blame = run.blame
    if blame is None:
        expected = "results of a plan with run.blame = true"
        raise Location(folder).result_error(expected=expected, got="a run without it")
    if flows and (slowest is not None or size is not None):
        message = "--flow names the flows: expected neither --slowest nor --size"
        raise click.UsageError(message)
    if flows:
        found = [blame.flow(number) for number in flows]
    else:
        low, high = _size_range(size, blame)
        found = blame.slowest(3 if slowest is None else slowest, low, high)
        if not found:
            expected = "a size that delivered flows have"
            raise Location(key="--size").result_error(expected=expected, got=size or "no flow")
    if as_json:
        emit("why", {"folder": folder, "flows": [_json(flow) for flow in found]})
        return
    stages = {name: text for info in transports() for name, text in info.get("stages", [])}
    own = {
        n: t
        for info in transports()
        if info["name"] == _name(run)
        for n, t in info.get("stages", [])
    }
    click.echo("\n\n".join("\n".join(_lines(flow, {**stages, **own})) for flow in found))


def _name(run: Run) -> str:
    return str(run.manifest.get("plan", {}).get("transport", {}).get("name", ""))


def _json(flow: FlowCauses) -> dict[str, object]:
    return {**asdict(flow), "slowdown": flow.slowdown}


def _size_range(text: str | None, blame: Blame) -> tuple[float, float]:
    """Returns the range of sizes in bytes that a text names: from, and below."""
    if text is None:
        return 0.0, float("inf")
    number = r"(\d+(?:\.\d+)?)\s*([a-z]*)"
    found = re.fullmatch(rf"(?:([<>])\s*{number}|{number}-{number})", text.strip().lower())
    if found is None:
        expected = "a range such as 1-2bdp, 10kb-1mb, '<1bdp' or '>4bdp'"
        raise Location(key="--size").error(expected=expected, got=text)
    sign, one, unit, low, low_unit, high, high_unit = found.groups()
    if sign:
        bound = float(one) * _unit(unit, text, blame)
        return (0.0, bound) if sign == "<" else (bound, float("inf"))
    unit = _unit(high_unit, text, blame)
    return float(low) * (_unit(low_unit, text, blame) if low_unit else unit), float(high) * unit


def _unit(name: str, text: str, blame: Blame) -> float:
    if name == "bdp" and blame.bdp_bytes:
        return float(blame.bdp_bytes)
    if name in UNITS:
        return UNITS[name]
    expected = f"a unit of {', '.join((*UNITS, 'bdp'))} in the range"
    raise Location(key="--size").error(expected=expected, got=text)


def _lines(flow: FlowCauses, stages: dict[str, str]) -> Iterator[str]:
    """Yields the lines about a flow, at most 80 characters wide."""
    yield (
        f"flow {flow.flow}: {byte_size(flow.size_bytes)} from host {flow.src} to host {flow.dst}, "
        f"submitted at {flow.arrival_us:.3f} us"
    )
    yield (
        f"slowdown {flow.slowdown:.2f}: it took {flow.fct_us:.3f} us; "
        f"alone and without protocol {flow.ideal_us:.3f} us"
    )
    yield ""
    yield f"  |{_bar(flow)}|"
    for letter, part in zip(_letters(flow.parts), flow.parts, strict=True):
        share = part.time_us / flow.fct_us
        text = f"{CAUSES[part.cause]}{_detail(part)}"
        head = f"  {letter} {part.time_us:12.3f} us {share:6.1%}  "
        yield from textwrap.wrap(text, 80, initial_indent=head, subsequent_indent=" " * 28)
        for line in _explanations(part, flow, stages):
            indent = " " * 28
            yield from textwrap.wrap(line, 80, initial_indent=indent, subsequent_indent=indent)


def _letters(parts: Sequence[Part]) -> str:
    return (LETTERS + LETTERS.upper())[: len(parts)]


def _bar(flow: FlowCauses) -> str:
    """Returns a bar of the flow's time, a letter for each part."""
    bar, end = "", 0.0
    for letter, part in zip(_letters(flow.parts), flow.parts, strict=True):
        end += part.time_us
        bar += letter * (round(WIDTH * end / flow.fct_us) - len(bar))
    return bar


def _detail(part: Part) -> str:
    if part.cause == "loss":
        found = {"timeout": ", found by a timeout", "packet": ", found by a packet"}
        place = f", dropped at {part.tier}" if part.tier else ""
        return f"{place}{found.get(part.stage, '')}"
    details = ", ".join(filter(None, (part.stage, part.tier)))
    return f": {details}" if details else ""


def _explanations(part: Part, flow: FlowCauses, stages: dict[str, str]) -> Iterator[str]:
    """Yields what the stage means, and who had the link."""
    if part.cause == "permission" and part.stage in stages:
        yield stages[part.stage]
    named = [of for of in part.blockers if of.flow is not None]
    if not named:
        return
    link = LINKS.get(part.cause, "the link")
    if part.cause == "permission":
        link = f"the link of host {flow.dst}"
    shown = ", ".join(f"flow {of.flow} {of.time_us:.3f} us" for of in named[:SHOWN_BLOCKERS])
    rest = sum(of.time_us for of in part.blockers) - sum(
        of.time_us for of in named[:SHOWN_BLOCKERS]
    )
    others = f", others {rest:.3f} us" if rest > 0 else ""
    yield f"meanwhile {link} had {shown}{others}"

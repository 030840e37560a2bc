"""`rampmeter why`."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from rampmeter.commands.common import warn_of_interruptions
from rampmeter.commands.options import FOLDER
from rampmeter.commands.output import Output, output_options
from rampmeter.plan.schema import transports
from rampmeter.results.blame import CAUSES, Blame, Blocker, FlowCauses, Part
from rampmeter.results.blame_tables import cause_name
from rampmeter.results.chains import Chain
from rampmeter.results.comparison import Comparison
from rampmeter.results.missing import COMPARISON
from rampmeter.results.run import Run, blame_of, opened_run
from rampmeter.results.table import Column, ResultTable
from rampmeter.text.arguments import choice_argument
from rampmeter.text.locations import Location
from rampmeter.text.numbers import byte_size, counted
from rampmeter.text.wrapping import HARD_SPACE, wrapped

BAR: Final = 76
"""Characters of the bar of a flow's time."""
INDENT: Final = " " * 27
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
SHOWN_FROM: Final = 0.01
"""Minimum share of a flow's time of a part that has a line; `--json` has all."""
SHOWN_OF_CHAIN: Final = 4
"""Causes of a chain that are named; `--json` has all."""
SHOWN_BLOCKERS: Final = 3
"""Flows that used the link, named in a line; `--json` has all."""
PERMISSION: Final = ("permission", "permission-in-flight")
"""Causes that have a stage of the transport."""
ALONE: Final = ("serialisation", "propagation", "switching")
"""Causes of the time of a flow that is alone in the network."""
EXPLAINED_MIN: Final = 0.01
"""Minimum share of a flow's time of delays that are explained."""
DELAYED_MIN: Final = 0.1
"""Minimum time of the flow that delayed another one most, as a share of the longest delay."""
IN_FLIGHT: Final = (
    "Each wait for permission ends with the flight of a packet. Many short waits mean that "
    "permission arrives at a lower rate than that of the sender's link."
)
OF_FLOWS: Final = (
    Column("flow", "flow", form="name"),
    Column("src_name", "from"),
    Column("dst_name", "to"),
    Column("size_bytes", "size", form="bytes"),
    Column("arrival_us", "submitted", "us"),
    Column("fct_us", "time", "us"),
    Column("ideal_us", "ideal", "us"),
    Column("slowdown", "slowdown"),
    Column("retransmitted_bytes", "retransmitted", form="bytes"),
)
OF_PARTS: Final = (
    Column("flow", "flow", form="name"),
    Column("cause", "cause"),
    Column("stage", "stage"),
    Column("tier", "tier"),
    Column("time_us", "time", "us"),
    Column("share", "share"),
)
UNITS: Final = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20}


@click.command()
@click.argument("folder", metavar="RESULTS", type=FOLDER)
@click.option(
    "--flow", "flows", metavar="N", type=int, multiple=True, help="This flow; repeatable."
)
@click.option("--slowest", metavar="N", type=click.IntRange(min=1), help="The N slowest flows; 3.")
@click.option(
    "--size", metavar="RANGE", help="Flows of these sizes, e.g. 1-2bdp, 10kb-1mb, '>4bdp'."
)
@click.option("--last", "is_last", is_flag=True, help="The flow that was delivered last.")
@click.option("--transport", metavar="NAME", help="Transport of a comparison.")
@output_options
def why(
    folder: Path,
    flows: Sequence[int],
    slowest: int | None,
    size: str | None,
    transport: str | None,
    output: Output,
    *,
    is_last: bool,
) -> None:
    """Explain why flows of a run were slow, and who delayed them.

    The run needs `run.blame = true` in its plan. The parts of a flow's time sum to it. RESULTS may
    be the folder of a comparison, whose first seed is explained.

    \b
    Examples:
      rampmeter run plan.toml --set run.blame=true --out results/plan
      rampmeter why results/plan --slowest 10 --size 1-2bdp
      rampmeter why results/plan --flow 42
      rampmeter why results/collective --last
      rampmeter why results/plan-compare --transport dcpim --flow 42
    """
    run = _run(folder, transport)
    blame = blame_of(run)
    chosen = {"--flow": flows, "--last": is_last, "--slowest": slowest, "--size": size}
    given = [option for option, value in chosen.items() if value]
    if len(given) > 1 and given[0] in ("--flow", "--last"):
        raise Location(key=given[0]).error(expected="no other choice of flows", got=given[1])
    if flows:
        found = [blame.flow(number) for number in flows]
    elif is_last:
        found = [blame.last()]
    else:
        low, high = _size_range(size, blame)
        found = blame.slowest(3 if slowest is None else slowest, low, high)
        if not found:
            expected = "a size that delivered flows have"
            raise Location(key="--size").result_error(expected=expected, got=size or "no flow")
    if not output.is_json:
        warn_of_interruptions([run])
        _warn_of_undelivered(run)
    if not output.is_whole_text:
        flows_of = [_json(flow, blame.chain(flow.flow)) for flow in found]
        fields = {"folder": run.path, "status": run.status, "flows": flows_of}
        output.print("why", fields, _tables(found))
        return
    stages = _stages(run)
    click.echo("\n\n".join("\n".join(_lines(flow, blame, stages)) for flow in found))


def _run(folder: Path, transport: str | None) -> Run:
    """Returns the run in a folder, or that of a transport of a comparison."""
    if (folder / COMPARISON).is_file():
        runs = Comparison.load(folder).runs
        if transport is None:
            expected = f"--transport with one of {', '.join(runs)}"
            raise Location(folder).error(expected=expected, got="a comparison")
        choice_argument("--transport", transport, list(runs))
        return runs[transport][0]
    if transport is not None:
        raise Location(key="--transport").error(expected="a comparison", got=f"the run {folder}")
    return opened_run(folder, "a run or a comparison")


def _warn_of_undelivered(run: Run) -> None:
    flows = run.summary["flows"]
    n_all, n_delivered = int(flows["submitted"]), int(flows["delivered"])
    if n_delivered < n_all:
        text = f"warning: {n_all - n_delivered} of {counted(n_all, 'flow')} were not delivered"
        click.echo(f"{text}; they have no causes", err=True)


def _stages(run: Run) -> dict[str, str]:
    """Returns the meanings of stages with their papers; the run's transports are preferred."""
    tables = run.manifest["plan"]["transport"]
    own = [of["name"] for of in (tables if isinstance(tables, list) else [tables])]
    infos = sorted(transports(), key=lambda info: info["name"] in own)
    return {
        name: meaning.replace("(§", f"({info['title']} paper, §")
        for info in infos
        for name, meaning in info["stages"]
    }


def _tables(flows: Sequence[FlowCauses]) -> list[ResultTable]:
    """Returns a row for each flow, and one for each part of a flow."""
    parts = [
        (flow.flow, part.cause, part.stage, part.tier, part.time_us, part.time_us / flow.fct_us)
        for flow in flows
        for part in flow.parts
    ]
    rows = [tuple(getattr(flow, column.key) for column in OF_FLOWS) for flow in flows]
    return [
        ResultTable("slow_flows", "Flows", OF_FLOWS, rows),
        ResultTable("parts", "Parts of the times of flows", OF_PARTS, parts),
    ]


def _json(flow: FlowCauses, chain: Chain | None) -> dict[str, object]:
    return {**asdict(flow), "slowdown": flow.slowdown, "chain": chain and _chain_json(chain)}


def _chain_json(chain: Chain) -> dict[str, object]:
    parts = [
        {"cause": cause, "stage": stage, "tier": tier, "time_us": time}
        for (cause, stage, tier), time in chain.parts.items()
    ]
    return {**asdict(chain), "parts": parts}


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
    start = float(low) * (_unit(low_unit, text, blame) if low_unit else unit)
    end = float(high) * unit
    if start >= end:
        raise Location(key="--size").error(expected="a range that ends above its start", got=text)
    return start, end


def _unit(name: str, text: str, blame: Blame) -> float:
    if name == "bdp" and blame.bdp_bytes:
        return float(blame.bdp_bytes)
    if name in UNITS:
        return UNITS[name]
    expected = f"a unit of {', '.join((*UNITS, 'bdp'))} in the range"
    raise Location(key="--size").error(expected=expected, got=text)


def _lines(flow: FlowCauses, blame: Blame, stages: Mapping[str, str]) -> Iterator[str]:
    """Yields the lines about a flow, at most 80 characters wide."""
    yield from wrapped(
        f"Flow {flow.flow}: {byte_size(flow.size_bytes)} from {flow.src_name} to {flow.dst_name}, "
        f"submitted at {flow.arrival_us:.3f} us."
    )
    yield from wrapped(
        f"It took {flow.fct_us:.3f} us, {flow.slowdown:.2f} times its ideal of "
        f"{flow.ideal_us:.3f} us."
    )
    if flow.retransmitted_bytes:
        yield from wrapped(f"Its sender retransmitted {byte_size(flow.retransmitted_bytes)}.")
    texts = (*_wait_for_flows(flow, blame), *_reasons(flow, stages))
    yield from (line for text in texts for line in wrapped(text))
    yield ""
    yield f" |{_bar(flow)}|"
    shown = [part for part in flow.parts if _is_shown(part, flow)]
    for letter, part in zip(_letters(flow), flow.parts, strict=True):
        if _is_shown(part, flow):
            head = f" {letter} {part.time_us:12.3f} us {part.time_us / flow.fct_us:6.1%}  "
            text = f"{CAUSES[part.cause]}{_detail(part)}"
            yield from wrapped(text, head.replace("%", " %"), INDENT)
            yield from (line for text in _waits(part, flow) for line in wrapped(text, INDENT))
    if rest := len(flow.parts) - len(shown):
        time = flow.fct_us - sum(part.time_us for part in shown)
        yield f"   {time:12.3f} us          in {counted(rest, 'part')} below 1 %"


def _reasons(flow: FlowCauses, stages: Mapping[str, str]) -> Iterator[str]:
    """Yields sentences on the longest avoidable delay, and on the flow that delayed it most."""
    if flow.fct_us - flow.ideal_us < EXPLAINED_MIN * flow.fct_us:
        yield "Nothing delayed it: it took at most 1 % longer than its ideal."
        return
    avoidable = [part for part in flow.parts if part.cause not in ALONE]
    if sum(part.time_us for part in avoidable) < EXPLAINED_MIN * flow.fct_us:
        yield "Nothing delayed it: at least 99 % is time of bits on links and of switches."
        return
    delays: dict[tuple[str, str], float] = defaultdict(float)
    for part in avoidable:
        stage = part.stage if part.cause in PERMISSION else ""
        delays[part.cause, stage] += part.time_us
    cause, stage = longest = max(delays, key=lambda delay: delays[delay])
    share = f"{delays[longest] / flow.fct_us:.0%}".replace("%", " %")
    yield f"Longest delay: {cause_name(cause, stage)}, {delays[longest]:.3f} us ({share})."
    if cause == "permission" and stage in stages:
        yield f"In this stage: {stages[stage]}"
    if cause == "permission-in-flight":
        yield IN_FLIGHT
    times: dict[int, float] = defaultdict(float)
    known: dict[int, Blocker] = {}
    for of in (of for part in flow.parts for of in part.blockers):
        if of.flow is not None:
            times[of.flow] += of.time_us
            known[of.flow] = of
    most = max(times, key=lambda number: times[number], default=None)
    if most is not None and times[most] >= DELAYED_MIN * delays[longest]:
        yield (
            f"Delayed most by {_name(known[most])}, which used links that it waited for during "
            f"{times[most]:.3f} us."
        )


def _wait_for_flows(flow: FlowCauses, blame: Blame) -> Iterator[str]:
    """Yields sentences on the flow whose end let this one start, and on the chain before."""
    release, chain = flow.release, blame.chain(flow.flow)
    if release is None or chain is None:
        return
    after = blame.flow(release.after)
    size = byte_size(after.size_bytes)
    computed = release.computation_us
    then = f", and paused or computed for {computed:.3f} us" if computed else ""
    yield (
        f"Before, {flow.src_name} waited for flow {after.flow} ({size} from {after.src_name} to "
        f"{after.dst_name}), and was notified of its end at {release.notified_us:.3f} us{then}."
    )
    times: dict[str, float] = defaultdict(float)
    for (cause, stage, _), time in chain.parts.items():
        times[cause_name(cause, stage if cause in PERMISSION else "")] += time
    shares = [
        f"{time / chain.time_us:.0%}".replace("%", f"{HARD_SPACE}% ") + name
        for name, time in sorted(times.items(), key=lambda item: -item[1])[:SHOWN_OF_CHAIN]
    ]
    yield (
        f"It ends a chain of {len(chain.flows)} flows that waited for each other since "
        f"{chain.start_us:.3f} us: {chain.time_us:.3f} us, of which {', '.join(shares)}."
    )


def _name(blocker: Blocker) -> str:
    size = byte_size(blocker.size_bytes or 0)
    return f"flow {blocker.flow} ({size} from {blocker.src_name} to {blocker.dst_name})"


def _letters(flow: FlowCauses) -> str:
    """Returns a letter for each part that has a line, and a point for each other one."""
    letters = iter(LETTERS + LETTERS.upper())
    return "".join(next(letters) if _is_shown(part, flow) else "." for part in flow.parts)


def _is_shown(part: Part, flow: FlowCauses) -> bool:
    return part.time_us >= SHOWN_FROM * flow.fct_us


def _bar(flow: FlowCauses) -> str:
    """Returns a bar of the flow's time, a letter for each part."""
    bar, end = "", 0.0
    for letter, part in zip(_letters(flow), flow.parts, strict=True):
        end += part.time_us
        bar += letter * (round(BAR * end / flow.fct_us) - len(bar))
    return bar


def _detail(part: Part) -> str:
    if part.cause == "loss":
        found = {"timeout": ", found by a timeout", "packet": ", found by a packet"}
        place = f", dropped at {part.tier}" if part.tier else ""
        return f"{place}{found.get(part.stage, '')}"
    return f": {part.details}" if part.details else ""


def _waits(part: Part, flow: FlowCauses) -> Iterator[str]:
    """Yields the flows that used the link meanwhile."""
    named = [of for of in part.blockers if of.flow is not None][:SHOWN_BLOCKERS]
    if not named:
        return
    link = {"permission": f"link to {flow.dst_name}", "sender-link": f"link of {flow.src_name}"}
    times = [f"flow {of.flow} {of.time_us:.3f} us".replace(" ", HARD_SPACE) for of in named]
    rest = sum(of.time_us for of in part.blockers) - sum(of.time_us for of in named)
    times += [f"others {rest:.3f} us".replace(" ", HARD_SPACE)] if rest >= SHOWN_FROM else []
    yield f"{link.get(part.cause, 'port')} used by {', '.join(times)}"

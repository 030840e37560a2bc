"""`rampmeter diff`."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from rampmeter.commands.common import warn_of_interruptions
from rampmeter.commands.options import BAD_INPUT, FiniteRange
from rampmeter.commands.output import Output, output_options
from rampmeter.commands.replay import column_names, recording_options
from rampmeter.replays.compare import ComparedTimes, End, Replay
from rampmeter.replays.divergence import (
    Divergence,
    FlowDifference,
    PlanDifference,
    cause_differences,
    plan_differences,
    renamed_settings,
)
from rampmeter.replays.divergence_tables import difference_table, key_table
from rampmeter.replays.packets import PacketDifference, first_packet, packet_source
from rampmeter.replays.recording import ENDINGS, Recording
from rampmeter.replays.tables import ENDS
from rampmeter.results.blame_difference import SizeDifference, table, tables_for_readers
from rampmeter.results.run import Run, opened_run
from rampmeter.results.table import ResultTable
from rampmeter.text.locations import Location
from rampmeter.text.numbers import byte_size, count, counted

DIFFERENT: Final = 1
"""Exit code of runs that differ."""
COLUMNS: Final = 80
SHOWN: Final = 150
"""Maximum length of the description of a packet; `--json` has all of it."""
EPILOG: Final = f"""\b
    Exit code: 0 if the flows of both have the same times, and the same
    packets if both have a timeline or a capture; {DIFFERENT} if they differ;
    {BAD_INPUT} for bad input."""


@click.command(epilog=EPILOG)
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@click.option(
    "--tolerance",
    type=FiniteRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Share by which equal completion times may differ.",
)
@recording_options
@output_options
def diff(
    first: Path,
    second: Path,
    tolerance: float,
    columns: Sequence[str],
    ends_at: End | None,
    *,
    output: Output,
) -> None:
    """Compare two runs of the same flows: where they diverge first, and by how much.

    A and B are folders of runs: of plans with another parameter, transport or version. B may be a
    recorded run of another simulator, a file as `replay` reads it. Packets are compared if both
    runs have a timeline (run.timeline) or a capture, and causes if both have run.blame.

    \b
    Examples:
      rampmeter diff results/plan results/plan-rounds=3
      rampmeter diff results/plan-compare/dcpim results/plan-compare/homa
      rampmeter diff results/flows-replay/run flows.csv --tolerance 0.01
    """
    one = _run(first)
    if _is_recording(second):
        recording = Recording.load(second, column_names(columns))
        replay = Replay(one, recording, ComparedTimes.of(recording, ends_at, "none"))
        found = _Found([one], Divergence.of_replay(replay, tolerance), [], None, None, [])
        found.ends_at = replay.terms.ends_at
    else:
        for option, value in {"--column": columns, "--ends-at": ends_at}.items():
            if value:
                raise Location(key=option).error(expected="a recording", got=f"the folder {second}")
        two = _run(second)
        found = _Found(
            [one, two],
            Divergence.of_runs(one, two, tolerance),
            plan_differences(one, two),
            packet_source(one, two),
            first_packet(one, two),
            cause_differences(one, two),
        )
    _show((first, second), found, output)
    if not found.is_equal:
        raise SystemExit(DIFFERENT)


class _Found:
    """The differences of two runs."""

    def __init__(
        self,
        runs: Sequence[Run],
        flows: Divergence,
        keys: Sequence[PlanDifference],
        source: str | None,
        packet: PacketDifference | None,
        causes: Sequence[SizeDifference],
    ) -> None:
        self.runs, self.flows, self.keys, self.source = runs, flows, keys, source
        self.packet, self.causes = packet, causes
        self.first_flow = flows.first_flow()
        self.migrated = [renamed_settings(run) for run in runs]
        """Settings of each run that have other names now."""
        self.ends_at: End = "delivered"

    @property
    def is_equal(self) -> bool:
        """True if neither flows nor packets differ."""
        return self.flows.is_equal and self.packet is None

    def tables(self) -> Iterator[ResultTable]:
        """Yields the tables: keys, differences of times, and causes."""
        if self.keys:
            yield key_table(self.keys)
        if self.flows.n_differing:
            yield difference_table(self.flows)
            if self.causes:
                pairs = {("B", "A"): self.causes}
                yield from tables_for_readers(pairs, 1)
                yield table(pairs)

    def json(self) -> dict[str, Any]:
        """Returns the object of `--json` without tables."""
        flows = self.flows
        delivered = [of & ~other for of, other in (flows.is_delivered, flows.is_delivered[::-1])]
        return {
            "is_equal": self.is_equal,
            "statuses": [run.status for run in self.runs],
            "ends_at": self.ends_at,
            "keys": [asdict(one) for one in self.keys],
            "migrated": [
                [{"old": one.old, "new": one.new} for one in settings] for settings in self.migrated
            ],
            "flows": {
                "common": len(flows.numbers),
                "differing": flows.n_differing,
                "delivered_in_both": int((flows.is_delivered[0] & flows.is_delivered[1]).sum()),
                "only_first": flows.n_alone[0],
                "only_second": flows.n_alone[1],
                "delivered_only_first": int(delivered[0].sum()),
                "delivered_only_second": int(delivered[1].sum()),
            },
            "first_flow": None if self.first_flow is None else asdict(self.first_flow),
            "packets": self.source,
            "first_packet": None if self.packet is None else asdict(self.packet),
        }


def _show(paths: tuple[Path, Path], found: _Found, output: Output) -> None:
    """Prints what differs: sentences and tables, or JSON."""
    fields = {"first": paths[0], "second": paths[1], **found.json()}
    tables = list(found.tables())
    if output.is_whole_text:
        for name, path in zip("AB", paths, strict=True):
            click.echo(f"{name}: {path}")
        click.echo("")
        for sentence in _sentences(found, fields["flows"]):
            click.echo("\n".join(textwrap.wrap(sentence, COLUMNS, subsequent_indent="  ")))
    if tables or output.is_json or output.table is not None:
        output.print("diff", fields, tables)
    if not output.is_json:
        warn_of_interruptions(found.runs)


def _sentences(found: _Found, flows: dict[str, int]) -> Iterator[str]:
    for which, settings in zip("AB", found.migrated, strict=False):
        if settings:
            names = ", ".join(f"{one.old} is now {one.new}" for one in settings)
            yield f"The plan of {which} is of an earlier version and was migrated: {names}."
    if found.ends_at == "acked":
        yield f"{ENDS['acked']} (--ends-at acked)."
    if found.is_equal:
        yield from _equality(found.source, flows["delivered_in_both"], flows["common"])
        return
    yield f"{count(flows['differing'])} of {counted(flows['common'], 'common flow')} differ."
    for name, which in (("first", "A"), ("second", "B")):
        if n := flows[f"only_{name}"]:
            yield f"{counted(n, 'flow')} only in {which}."
        if n := flows[f"delivered_only_{name}"]:
            yield f"{counted(n, 'common flow')} delivered only in {which}."
    if found.first_flow is not None:
        yield _flow_text(found.first_flow)
    if found.packet is not None:
        yield f"First packet that differs ({found.packet.source}), at {found.packet.at_us:.6f} us:"
        for which, text in (("A", found.packet.first), ("B", found.packet.second)):
            yield f"  {which}: {_shortened(text)}"
    elif found.source is not None:
        yield f"The packets of both {found.source}s are the same."
    else:
        yield "Packets are not compared: record both with run.timeline or run.capture."


def _equality(source: str | None, n_times: int, n_flows: int) -> Iterator[str]:
    """Yields sentences about runs without a difference, of which some flows have times."""
    if not n_times:
        yield f"No times to compare: neither run delivered any of {counted(n_flows, 'flow')}."
        if source:
            yield f"The packets of both {source}s are the same."
        return
    same = f", and the same packets by their {source}" if source else ""
    yield f"Equal: {counted(n_times, 'flow')} with the same times{same}."
    if n_flows > n_times:
        yield f"Neither run delivered the other {counted(n_flows - n_times, 'flow')}."


def _flow_text(flow: FlowDifference) -> str:
    times = " and ".join("no end" if fct is None else f"{fct:.6f} us" for fct in flow.fcts_us)
    arrivals = f"{flow.arrivals_us[0]:.3f} us"
    if flow.arrivals_us[0] != flow.arrivals_us[1]:
        arrivals += f" (A) and {flow.arrivals_us[1]:.3f} us (B)"
    return (
        f"First flow that differs, by completion: flow {flow.flow}, "
        f"{byte_size(flow.size_bytes)} from {flow.src} to {flow.dst}, submitted at {arrivals}; "
        f"completion times in A and B: {times}."
    )


def _shortened(text: str | None) -> str:
    if text is None:
        return "no further packet"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _is_recording(path: Path) -> bool:
    return path.name.endswith(ENDINGS) and not path.is_dir()


def _run(path: Path) -> Run:
    """Returns the run in a folder; raises an error for a file or another folder."""
    if _is_recording(path):
        raise Location(key="A").error(
            expected="the folder of a run; a recording is B", got=f"the file {path}"
        )
    return opened_run(path)

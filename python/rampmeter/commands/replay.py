"""`rampmeter replay`."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rampmeter._core import PlanError
from rampmeter.commands.common import (
    FILE,
    FOLDER,
    folder_name,
    leave,
    overrides_of,
    plan_options,
    result_options,
    run_jobs,
    show,
    warn,
)
from rampmeter.plan import Override, Plan
from rampmeter.runner import Job

if TYPE_CHECKING:
    from rampmeter.papers.replays import KnownReplay, ReplayLedger
    from rampmeter.replays.compare import End, Ideal, Ratios, Replay, Terms
    from rampmeter.replays.recording import Recording

VARIABLE: Final = "RAMPMETER_REFERENCE"
RESULT: Final = "replay.json"
RUN: Final = "run"
UNUSED: Final = "columns are not used"
"""Part of a warning of runs that does not hold of replays: they use recorded times."""
EPILOG: Final = """\b
    Exit code: 0 if the run came to its end, with flows that have no end too, 2
    for bad input, 130 or 143 if stopped by Ctrl-C or SIGTERM."""


@dataclass(frozen=True)
class Request:
    """Options that apply to any recording."""

    overrides: Sequence[Override]
    out: Path | None
    force: bool
    n_flows: int
    tolerance: float
    is_json: bool
    is_quiet: bool


@click.command(epilog=EPILOG)
@click.argument("recording", required=False, metavar="[FILE|NAME]")
@click.option("--plan", type=FILE, help="Network and transport; its workload is replaced.")
@plan_options
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=COLUMN",
    help="A column of the file of another name, such as fct_us=took or src=from.",
)
@click.option(
    "--ends-at",
    type=click.Choice(["acked", "delivered"]),
    help="The end of a flow: last acknowledgement at the sender, or last byte at the receiver. "
    "`delivered` by default if the file has delivered_ps or acked_ps.",
)
@click.option(
    "--ideal",
    type=click.Choice(["own", "recorded", "none"]),
    help="Ideal times of slowdowns: each simulator's own, the recorded ones for both, or none. "
    "`recorded` by default if the file has ideal_ps.",
)
@click.option(
    "--from-us",
    type=click.FloatRange(min=0),
    help="Leave out flows that arrive earlier.",
)
@click.option(
    "--flows", type=click.IntRange(min=0), default=10, show_default=True, help="Flows of a table."
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.01,
    show_default=True,
    help="Times that differ by no more than this share are alike.",
)
@click.option("--reference", type=FOLDER, help=f"Folder of known recordings; also {VARIABLE}.")
@click.option("--all", "everything", is_flag=True, help="Replay all known recordings.")
@click.option("--enter", is_flag=True, help="Enter known replays in papers/ledger/replays.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@result_options("results/<file>-replay or results/replays")
def replay(
    recording: str | None,
    plan: Path | None,
    settings: Sequence[str],
    seed: int | None,
    columns: Sequence[str],
    ends_at: "End | None",
    ideal: "Ideal | None",
    from_us: float | None,
    flows: int,
    tolerance: float,
    reference: Path | None,
    out: Path | None,
    *,
    everything: bool,
    enter: bool,
    as_json: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Run the flows of a recorded run, and compare their times with the recorded ones.

    FILE is a .csv, .csv.gz or .parquet file with the columns of a trace (arrival_ps, src, dst,
    size_bytes) and a recorded time (fct_ps, delivered_ps or acked_ps); ideal_ps is optional.
    Network and transport are those of --plan or --set. The tables have the ratio of mean
    slowdowns, ours over theirs, by size, the flows whose times differ most, and the first ones
    that differ.

    NAME is a known recording of papers/replays. Its file is in the folder --reference.

    \b
    Example: a recording of one's own, a known one, and all known ones
      rampmeter replay flows.csv --plan plan.toml --set transport.name=ndp
      rampmeter replay ndp --reference recordings
      rampmeter replay --all --enter --reference recordings
    """
    overrides = overrides_of(settings, seed)
    request = Request(overrides, out, force, flows, tolerance, as_json, quiet)
    if recording is not None and not everything and Path(recording).is_file():
        if enter:
            raise PlanError("--enter: expected a known recording, got a file")
        base = Plan.load(plan) if plan else Plan("seed = 1\n", origin="--set")
        terms = (ends_at, ideal, from_us or 0.0)
        _replay_file(Path(recording), base, _mapping(columns), terms, request)
        return
    of_files: dict[str, object] = {"--plan": plan, "--column": columns, "--ends-at": ends_at}
    of_files |= {"--ideal": ideal, "--from-us": from_us}
    if enter:
        of_files |= {"--set": settings, "--seed": seed}
    for option, value in of_files.items():
        if value not in (None, ()):
            got = "--all" if everything else f"the known recording {recording}"
            raise PlanError(f"{option}: expected a recording that is a file, got {got}")
    known, ledger = _known(recording, everything=everything)
    folder = _reference(reference)
    if everything:
        rows = [_replay_known(one, folder, ledger, request, enter=enter) for one in known]
        _show_all([(one, done.ratios()) for one, done in rows], ledger, as_json=as_json)
        return
    ((_, done),) = (_replay_known(one, folder, ledger, request, enter=enter) for one in known)
    _show(done, request)


def _replay_file(
    file: Path,
    base: Plan,
    columns: Mapping[str, str],
    chosen: "tuple[End | None, Ideal | None, float]",
    request: Request,
) -> None:
    """Replays a file and shows it."""
    from rampmeter.replays.compare import Terms
    from rampmeter.replays.recording import Recording, columns_of

    base = base.with_(*request.overrides)
    recorded = Recording.load(file, {**columns_of(base), **columns})
    terms = Terms.of(recorded, *chosen)
    name = f"{folder_name(_stem(file), request.overrides)}-replay"
    out = request.out or Path("results") / name
    _show(_run(base, recorded, terms, file.name, out, request), request)


def _replay_known(
    known: "KnownReplay", folder: Path, ledger: "ReplayLedger", request: Request, *, enter: bool
) -> "tuple[KnownReplay, Replay]":
    """Replays a known recording, and enters what it measures."""
    from rampmeter.replays.recording import Recording

    recorded = Recording.load(known.file_in(folder))
    base = known.plan.with_(*request.overrides)
    name = folder_name(Path(known.name), request.overrides)
    out = (request.out or Path("results") / "replays") / name
    done = _run(base, recorded, known.terms, known.name, out, request)
    if enter:
        ledger.add(known, done)
    return known, done


def _run(
    base: Plan, recording: "Recording", terms: "Terms", name: str, out: Path, request: Request
) -> "Replay":
    """Runs the recorded flows, and writes `replay.json`."""
    from rampmeter.replays.compare import Replay
    from rampmeter.replays.sheets import replay_json

    # An unusable choice of times is an error before the run, not after it.
    terms.recorded_time(recording)
    job = Job(name, recording.plan(base), out / RUN, request.force)
    batch = run_jobs([job], quiet=request.is_quiet)
    leave(batch)
    done = Replay(batch.runs()[name], recording, terms)
    text = json.dumps(replay_json(done, request.n_flows, request.tolerance), indent=1)
    (out / RESULT).write_text(text + "\n", encoding="utf-8")
    return done


def _show(replay: "Replay", request: Request) -> None:
    """Prints the tables, or everything as JSON."""
    from rampmeter.replays.sheets import replay_json, replay_sheets

    if request.is_json:
        table = replay_json(replay, request.n_flows, request.tolerance)
        click.echo(json.dumps(table, indent=2))
        return
    show(*replay_sheets(replay, request.n_flows, request.tolerance))
    click.echo(f"\nresults: {replay.run.path.parent}")
    warnings = replay.run.summary.get("warnings", [])
    warn(sentence for sentence in warnings if UNUSED not in sentence)


def _show_all(
    rows: "Sequence[tuple[KnownReplay, Ratios]]", ledger: "ReplayLedger", *, as_json: bool
) -> None:
    """Prints the ratios of all replays next to their entries."""
    from rampmeter.sheet import Sheet
    from rampmeter.text import NONE, count, number

    measured = [(known, ratios, ledger.entry(known)) for known, ratios in rows]
    if as_json:
        table: list[dict[str, Any]] = [
            {
                "name": known.name,
                "ratios": ratios.to_json(),
                "entry": None if entry is None else entry.to_json(),
            }
            for known, ratios, entry in measured
        ]
        click.echo(json.dumps(table, indent=2))
        return
    cells = [
        (
            known.name,
            count(ratios.flows),
            number(ratios.mean, 4),
            number(ratios.furthest, 4),
            NONE if entry is None else number(entry.ratios.mean, 4),
        )
        for known, ratios, entry in measured
    ]
    headings = ("", "flows", "mean", "furthest class", "mean of the entry")
    show(Sheet("Replays: ours over theirs", headings, cells))


def _known(name: str | None, *, everything: bool) -> "tuple[list[KnownReplay], ReplayLedger]":
    """Returns the known recording of a name, or all."""
    from rampmeter.papers import find_papers
    from rampmeter.papers.replays import ReplayLedger

    if everything and name is not None:
        raise PlanError(f"--all: expected no recording, got {name}")
    if name is None and not everything:
        raise PlanError("replay: expected a recording, a known name or --all, got none of them")
    ledger = ReplayLedger(find_papers())
    if everything:
        return ledger.known(), ledger
    found = ledger.named(str(name))
    if found is None:
        names = ", ".join(one.name for one in ledger.known())
        raise PlanError(f"replay: expected a file or one of {names}, got {name}: no such file")
    return [found], ledger


def _reference(folder: Path | None) -> Path:
    """Returns the folder of known recordings."""
    if folder is None and not os.environ.get(VARIABLE):
        raise PlanError(f"--reference: expected the folder of recordings, also as {VARIABLE}")
    found = folder or Path(os.environ[VARIABLE])
    if not found.is_dir():
        raise PlanError(f"--reference: expected a folder, got {found}")
    return found


def _mapping(columns: Sequence[str]) -> dict[str, str]:
    """Returns columns of the file by the names of traces."""
    mapped = {}
    for text in columns:
        name, equals, column = text.partition("=")
        if not (name and equals and column):
            raise PlanError(f"--column: expected name=column, got {text}")
        mapped[name.strip()] = column.strip()
    return mapped


def _stem(file: Path) -> Path:
    """Returns the name of a recording without its endings."""
    return Path(file.name.removesuffix(".gz")).with_suffix("")

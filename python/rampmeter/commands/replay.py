"""`rampmeter replay`."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from rampmeter.commands.common import exit_by_outcome, run_jobs
from rampmeter.commands.options import (
    FILE,
    FOLDER,
    Command,
    FiniteRange,
    folder_name,
    overrides_of,
    plan_options,
    result_options,
)
from rampmeter.commands.output import Output, output_options
from rampmeter.papers import find_papers
from rampmeter.papers.replays import ReplayLedger, ReplaySetup
from rampmeter.plan.plan import Override, Plan
from rampmeter.replays.compare import ComparedTimes, End, Ideal, Ratios, Replay
from rampmeter.replays.recording import Recording, columns_of
from rampmeter.replays.tables import replay_json, replay_tables
from rampmeter.results.table import Cell, Column, ResultTable
from rampmeter.running.runner import Job
from rampmeter.text.files import write_text
from rampmeter.text.locations import Location

VARIABLE: Final = "RAMPMETER_REFERENCE"
RESULT: Final = "replay.json"
RUN: Final = "run"
OF_COLUMNS: Final = "workload-note"
"""Code of notes on unused columns of the recording. A replay compares these columns."""
EPILOG: Final = """\b
    Exit code: 0 if the run completed, even if flows are unfinished, 2
    for bad input, 130 or 143 if stopped by Ctrl-C or SIGTERM."""


ALL: Final = (
    Column("recording"),
    Column("flows", "flows"),
    Column("mean_ratio", "mean", places=4),
    Column("furthest_ratio", "furthest class", places=4),
    Column("entry_ratio", "mean of the entry", places=4),
)


@dataclass(frozen=True)
class Request:
    """Options that apply to all recordings."""

    overrides: Sequence[Override]
    out: Path | None
    force: bool
    n_flows: int
    tolerance: float
    output: Output
    is_quiet: bool


def recording_options(command: Command) -> Command:
    """Adds `--column` and `--ends-at`, by which a recording is read."""
    columns = click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="NAME=COLUMN",
        help="Column of the recording that has another name, such as fct_us=duration or src=from.",
    )
    ends_at = click.option(
        "--ends-at",
        type=click.Choice(["acked", "delivered"]),
        help="End of a flow: last acknowledgement at the sender, or last byte at the receiver. "
        "`delivered` by default if the recording has delivered_ps or acked_ps.",
    )
    return columns(ends_at(command))


@click.command(epilog=EPILOG)
@click.argument("recording", required=False, metavar="[FILE|NAME]")
@click.option("--plan", type=FILE, help="Network and transport; its workload is replaced.")
@plan_options
@recording_options
@click.option(
    "--ideal",
    type=click.Choice(["own", "recorded", "none"]),
    help="Ideal times of slowdowns: each simulator's own, the recorded ones for both, or none. "
    "`recorded` by default if the recording has ideal_ps.",
)
@click.option(
    "--from-us",
    type=FiniteRange(min=0),
    help="Exclude flows that arrive earlier, in microseconds.",
)
@click.option(
    "--flows",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Number of flows in a table.",
)
@click.option(
    "--tolerance",
    type=FiniteRange(0, 1, max_open=True),
    default=0.01,
    show_default=True,
    help="Share by which equal times may differ.",
)
@click.option("--reference", type=FOLDER, help=f"Folder of the recordings; also {VARIABLE}.")
@click.option("--all", "everything", is_flag=True, help="Replay all recordings of papers/replays.")
@click.option("--record", is_flag=True, help="Store the measured ratios in papers/ledger/replays.")
@output_options
@result_options("results/<file>-replay or results/replays")
def replay(
    recording: str | None,
    plan: Path | None,
    settings: Sequence[str],
    seed: int | None,
    columns: Sequence[str],
    ends_at: End | None,
    ideal: Ideal | None,
    from_us: float | None,
    flows: int,
    tolerance: float,
    reference: Path | None,
    out: Path | None,
    *,
    everything: bool,
    record: bool,
    output: Output,
    force: bool,
    quiet: bool,
) -> None:
    """Run the flows of a recorded run, and compare their times with the recorded ones.

    FILE is a .csv, .csv.gz or .parquet file with the columns of a trace (arrival_ps, src, dst,
    size_bytes) and a recorded time (fct_ps, delivered_ps or acked_ps); ideal_ps is optional.
    Network and transport are those of --plan or --set. The tables have the ratio of mean
    slowdowns by size, simulated divided by recorded, the flows whose times differ most, and the
    first ones that differ.

    NAME is a recording listed in papers/replays. Its file is in the folder --reference.

    \b
    Example: a custom recording, a listed one, and all listed ones
      rampmeter replay flows.csv --plan plan.toml --set transport.name=ndp
      rampmeter replay ndp --reference recordings
      rampmeter replay --all --record --reference recordings
    """
    overrides = overrides_of(settings, seed)
    request = Request(overrides, out, force, flows, tolerance, output, quiet)
    if recording is not None and not everything and Path(recording).is_file():
        if record:
            raise Location(key="--record").error(
                expected="the name of a listed recording", got="a file"
            )
        if plan is None and not settings:
            raise Location(key="--plan").error(expected="a plan, or keys by --set", got="none")
        base = Plan.load(plan) if plan else Plan("seed = 1\n", origin="--set")
        terms = (ends_at, ideal, from_us or 0.0)
        _replay_file(Path(recording), base, column_names(columns), terms, request)
        return
    of_files: dict[str, object] = {"--plan": plan, "--column": columns, "--ends-at": ends_at}
    of_files |= {"--ideal": ideal, "--from-us": from_us}
    if record:
        of_files |= {"--set": settings, "--seed": seed}
    for option, value in of_files.items():
        if value not in (None, ()):
            got = "--all" if everything else f"the listed recording {recording}"
            raise Location(key=option).error(expected="a recording that is a file", got=got)
    recordings, ledger = _find_setups(recording, everything=everything)
    folder = _reference_folder(reference)
    if everything:
        rows = [_replay_listed(one, folder, ledger, request, record=record) for one in recordings]
        _show_all([(one, measured.ratios()) for one, measured in rows], ledger, output)
        return
    ((_, measured),) = (
        _replay_listed(one, folder, ledger, request, record=record) for one in recordings
    )
    _show(measured, request)


def _replay_file(
    file: Path,
    base: Plan,
    columns: Mapping[str, str],
    chosen: tuple[End | None, Ideal | None, float],
    request: Request,
) -> None:
    """Replays a file and shows it."""
    base = base.with_(*request.overrides)
    recorded = Recording.load(file, {**columns_of(base), **columns})
    terms = ComparedTimes.of(recorded, *chosen)
    name = f"{folder_name(_stem(file), request.overrides)}-replay"
    out = request.out or Path("results") / name
    _show(_run(base, recorded, terms, file.name, out, request), request)


def _replay_listed(
    recording: ReplaySetup, folder: Path, ledger: ReplayLedger, request: Request, *, record: bool
) -> tuple[ReplaySetup, Replay]:
    """Replays a listed recording, and enters the measured values."""
    recorded = Recording.load(recording.file_in(folder))
    base = recording.plan.with_(*request.overrides)
    name = folder_name(Path(recording.name), request.overrides)
    out = (request.out or Path("results") / "replays") / name
    replay = _run(base, recorded, recording.terms, recording.name, out, request)
    if record:
        ledger.add(recording, replay)
    return recording, replay


def _run(
    base: Plan,
    recording: Recording,
    terms: ComparedTimes,
    name: str,
    out: Path,
    request: Request,
) -> Replay:
    """Runs the recorded flows, and writes `replay.json`."""
    # An unusable choice of times is an error before the run, not after it.
    terms.recorded_time(recording)
    job = Job(name, recording.plan(base), out / RUN, request.force)
    batch = run_jobs([job], quiet=request.is_quiet)
    exit_by_outcome(batch)
    replay = Replay(batch.runs()[name], recording, terms)
    text = json.dumps(replay_json(replay, request.n_flows, request.tolerance), indent=1)
    write_text(out / RESULT, text + "\n")
    return replay


def _show(replay: Replay, request: Request) -> None:
    """Prints the tables, or everything as JSON."""
    terms = (request.n_flows, request.tolerance)
    output = request.output
    output.print("replay", replay_json(replay, *terms), replay_tables(replay, *terms))
    if output.is_text:
        click.echo(f"\nresults: {replay.run.path.parent}")
    if not output.is_json:
        output.warn(caution for caution in replay.run.warnings if caution.code != OF_COLUMNS)


def _show_all(
    rows: Sequence[tuple[ReplaySetup, Ratios]], ledger: ReplayLedger, output: Output
) -> None:
    """Prints the ratios of all replays next to their entries."""
    measured = [(recording, ratios, ledger.entry(recording)) for recording, ratios in rows]
    replays: list[dict[str, Any]] = [
        {
            "name": recording.name,
            "ratios": ratios.to_json(),
            "entry": None if entry is None else entry.to_json(),
        }
        for recording, ratios, entry in measured
    ]
    cells: list[tuple[Cell, ...]] = [
        (
            recording.name,
            ratios.flows,
            ratios.mean,
            ratios.furthest,
            None if entry is None else entry.ratios.mean,
        )
        for recording, ratios, entry in measured
    ]
    table = ResultTable("replays", "Replays: simulated over recorded", ALL, cells)
    output.print("replay", {"replays": replays}, [table])


def _find_setups(name: str | None, *, everything: bool) -> tuple[list[ReplaySetup], ReplayLedger]:
    """Returns the setup of a listed recording, or those of all."""
    if everything and name is not None:
        raise Location(key="--all").error(expected="no recording", got=name)
    if name is None and not everything:
        raise Location(key="replay").error(
            expected="a file, the name of a listed recording, or --all", got="none of them"
        )
    ledger = ReplayLedger(find_papers())
    if everything:
        return ledger.setups(), ledger
    found = ledger.find(str(name))
    if found is None:
        names = ", ".join(one.name for one in ledger.setups())
        raise Location(key="replay").error(
            expected=f"a file or one of {names}", got=f"{name}: no such file"
        )
    return [found], ledger


def _reference_folder(folder: Path | None) -> Path:
    """Returns the folder of the recordings."""
    if folder is None and not os.environ.get(VARIABLE):
        raise Location(key="--reference").error(
            expected=f"the folder of recordings, also as {VARIABLE}"
        )
    found = folder or Path(os.environ[VARIABLE])
    if not found.is_dir():
        raise Location(key="--reference").error(expected="a folder", got=found)
    return found


def column_names(columns: Sequence[str]) -> dict[str, str]:
    """Returns columns of the file by the names of traces."""
    mapped = {}
    for text in columns:
        name, equals, column = text.partition("=")
        if not (name and equals and column):
            raise Location(key="--column").error(expected="name=column", got=text)
        mapped[name.strip()] = column.strip()
    return mapped


def _stem(file: Path) -> Path:
    """Returns the name of a recording without its endings."""
    return Path(file.name.removesuffix(".gz")).with_suffix("")

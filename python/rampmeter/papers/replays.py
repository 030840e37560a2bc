"""Recordings of other simulators, their setups, and the measurements of their replays.

A folder `papers/replays/<name>` has `network.toml`, a plan without a workload, and `replay.toml`:
the recording with its digest, its source, and the times that are compared. The recordings are not
in the repository. `papers/ledger/replays/<name>.json` has the measured ratios and their
dependencies; it is stale by the rule of the ledger.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from rampmeter.papers.entry import run_provenance
from rampmeter.papers.ledger import LEDGER, Ledger, plan_digest
from rampmeter.plan.plan import Override, Plan
from rampmeter.replays.compare import ENDS, IDEALS, ComparedTimes, End, Ideal, Ratios, Replay
from rampmeter.replays.recording import digest_of
from rampmeter.results.table import Cell, Column, ResultTable
from rampmeter.text.files import write_text
from rampmeter.text.json_object import read_json
from rampmeter.text.locations import BAD_FILE, Location
from rampmeter.text.strict_table import StrictTable

REPLAYS: Final = "replays"
SETTINGS: Final = "replay.toml"
NETWORK: Final = "network.toml"
MEAN_TOLERANCE: Final = 0.01
"""A replay matches if the mean ratio is this close to 1,"""
CLASS_TOLERANCE: Final = 0.03
"""and that of each class with enough flows this close."""
STAND_IN: Final[Override] = (
    "workload",
    {"pattern": "all-to-all", "sizes": {"fixed": 1}, "load": 0.1, "flows": 1},
)
"""A workload that completes a plan if the recording is not there."""

Verdict: TypeAlias = Literal["match", "miss", "stale", "not run"]


@dataclass(frozen=True)
class ReplaySetup:
    """A recorded run with a description of its network and transport."""

    name: str
    title: str
    simulator: str
    """The simulator that recorded it."""
    revision: str
    """The revision of the simulator; empty if unknown."""
    recording: str
    """File name in the folder of recordings."""
    sha256: str
    ends_at: End
    ideal: Ideal
    from_us: float
    plan: Plan
    """Network and transport, without a workload."""

    @classmethod
    def load(cls, folder: Path) -> "ReplaySetup":
        """Reads a folder of `papers/replays`; raises `PlanError` if a key is wrong."""
        section = StrictTable.from_file(folder / SETTINGS)
        ends_at = section.choice("ends-at", section.pop("ends-at", str), ENDS)
        ideal = section.choice("ideal", section.pop("ideal", str), IDEALS)
        replay = cls(
            name=folder.name,
            title=section.pop("title", str),
            simulator=section.pop("simulator", str),
            revision=section.pop("revision", str, ""),
            recording=section.pop("recording", str),
            sha256=section.pop("sha256", str),
            ends_at=cast(End, ends_at),
            ideal=cast(Ideal, ideal),
            from_us=float(section.pop("from-us", float, 0.0)),
            plan=Plan.load(folder / NETWORK),
        )
        section.reject_unread()
        return replay

    def file_in(self, folder: Path) -> Path:
        """Returns the recording in a folder; raises `PlanError` if it is another file."""
        file = folder / self.recording
        if not file.is_file():
            raise Location(file).error(
                expected=f"the recording of {self.name}", got="no such file", code=BAD_FILE
            )
        digest = digest_of(file)
        if digest != self.sha256:
            raise Location(file).error(
                expected=f"the recording of {self.name} with the SHA-256 {self.sha256}",
                got=digest,
                code=BAD_FILE,
            )
        return file

    @property
    def terms(self) -> ComparedTimes:
        """The times that are compared."""
        return ComparedTimes(self.ends_at, self.ideal, self.from_us)


@dataclass(frozen=True)
class ReplayEntry:
    """Measured ratios of a replay, with digests of its setup and of its transport's results."""

    replay: str
    plan: str
    """Digest of the complete plan, of the recording, and of the times that are compared."""
    results: str
    """Version of the results of the transport: a digest of those recorded."""
    version: str
    commit: str
    date: str
    seconds: float
    """Processor time of the run, as in `Entry`."""
    unfinished: int
    unrecorded: int
    ratios: Ratios

    @classmethod
    def load(cls, file: Path) -> "ReplayEntry":
        """Reads an entry; raises `ResultError` if a key is missing or of another type."""
        table = read_json(file)
        try:
            return cls(**{**table, "ratios": Ratios.of_json(table["ratios"])})
        except (KeyError, TypeError, ValueError) as error:
            raise Location(file).result_error(expected="an entry of a replay", got=error) from None

    def to_json(self) -> dict[str, Any]:
        """Returns the entry as plain values."""
        return asdict(self) | {"ratios": self.ratios.to_json()}

    @property
    def verdict(self) -> Verdict:
        """`match` if all flows ended and mean and classes are within their tolerances."""
        mean, furthest = self.ratios.mean, self.ratios.furthest
        is_match = (
            self.unfinished == 0
            and mean is not None
            and abs(mean - 1.0) <= MEAN_TOLERANCE
            and (furthest is None or abs(furthest - 1.0) <= CLASS_TOLERANCE)
        )
        return "match" if is_match else "miss"


@dataclass(frozen=True)
class ReplayState:
    """Setup of a replay with its entry, current or stale, and its verdict."""

    setup: ReplaySetup
    entry: ReplayEntry | None
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        """Returns the state in the form of a figure's; `replay` has the fields of replays."""
        return {
            "paper": REPLAYS,
            "figure": self.setup.name,
            "verdicts": {self.verdict: 1},
            "replay": None if self.entry is None else self.entry.to_json(),
        }


class ReplayLedger:
    """Setups of replays and their entries under a folder `papers`."""

    def __init__(self, root: Path) -> None:
        self._folder = root / REPLAYS
        self._entries = root / LEDGER / REPLAYS
        self._root = root

    def setups(self) -> list[ReplaySetup]:
        """Returns the setups of all replays, by name."""
        files = sorted(self._folder.glob(f"*/{SETTINGS}"))
        return [ReplaySetup.load(file.parent) for file in files]

    def find(self, name: str) -> ReplaySetup | None:
        """Returns the setup with this name, if it exists."""
        is_name = Path(name).name == name and (self._folder / name / SETTINGS).is_file()
        return ReplaySetup.load(self._folder / name) if is_name else None

    def file_of(self, replay: ReplaySetup) -> Path:
        """Returns the file of an entry."""
        return self._entries / f"{replay.name}.json"

    def entry(self, replay: ReplaySetup) -> ReplayEntry | None:
        """Returns the entry of a replay, current or stale."""
        file = self.file_of(replay)
        return ReplayEntry.load(file) if file.is_file() else None

    def is_current(self, entry: ReplayEntry, replay: ReplaySetup) -> bool:
        """Returns true if neither the setup nor the results of the transport have changed."""
        return (entry.plan, entry.results) == self.dependencies(replay)

    def states(self) -> list["ReplayState"]:
        """Returns all replays with their entries and verdicts."""
        return [self._state(replay) for replay in self.setups()]

    def _state(self, replay: ReplaySetup) -> "ReplayState":
        entry = self.entry(replay)
        if entry is None:
            return ReplayState(replay, None, "not run")
        verdict = entry.verdict if self.is_current(entry, replay) else "stale"
        return ReplayState(replay, entry, verdict)

    def add(self, replay: ReplaySetup, measured: Replay) -> ReplayEntry:
        """Enters a replay's measurements, in place of an earlier entry."""
        plan, results = self.dependencies(replay)
        entry = ReplayEntry(
            replay=replay.name,
            plan=plan,
            results=results,
            **run_provenance(measured.run),
            unfinished=len(measured.unfinished()),
            unrecorded=measured.n_unrecorded,
            ratios=measured.ratios(),
        )
        write_text(self.file_of(replay), json.dumps(entry.to_json(), indent=1) + "\n")
        return entry

    def dependencies(self, replay: ReplaySetup) -> tuple[str, str]:
        """Returns the digests of the setup and of the results of the transport."""
        complete = replay.plan.with_(STAND_IN).check_run()
        compared = {
            "seed": complete["seed"],
            "sha256": replay.sha256,
            "ends-at": replay.ends_at,
            "ideal": replay.ideal,
            "from-us": replay.from_us,
        }
        topology = _with_file(complete["topology"], replay.plan.base)
        setup = {**complete, "workload": compared, "topology": topology}
        return plan_digest(setup), Ledger(self._root).results_version(complete)


def _with_file(topology: Mapping[str, Any], base: Path) -> Mapping[str, Any]:
    """Returns a topology with the digest of its file, if any, in place of the name."""
    if "file" not in topology:
        return topology
    return {**topology, "file": digest_of(base / topology["file"])}


def status_tables(states: Sequence[ReplayState]) -> list[ResultTable]:
    """Returns a table of replays with their entries and verdicts, if there are any replays."""
    rows: list[tuple[Cell, ...]] = []
    for state in states:
        cells: tuple[Cell, ...] = (None,) * 3
        if state.entry is not None:
            ratios = state.entry.ratios
            cells = (ratios.flows, ratios.mean, ratios.furthest)
        rows.append((state.setup.name, *cells, state.verdict))
    columns = (
        Column("recording"),
        Column("flows", "flows"),
        Column("mean_ratio", "mean"),
        Column("furthest_ratio", "furthest class"),
        Column("verdict", "verdict"),
    )
    title = "Replays: simulated over recorded"
    return [ResultTable("replays", title, columns, rows)] if rows else []

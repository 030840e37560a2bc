"""Replays of flows that were recorded in published simulators: mean slowdowns, ours over theirs.

`RAMPMETER_REFERENCE=dir python -m tests.replays` measures all and writes `papers/replays.json`.
README.md and the pages of the protocols have these numbers. The setups are those of
`crates/exp/tests/replay.rs` and `homa_replay.rs`, which judge them by bounds.
"""

import csv
import gzip
import json
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import rampmeter as rm

FILE: Final = Path(__file__).parents[1] / "papers" / "replays.json"
VARIABLE: Final = "RAMPMETER_REFERENCE"
PAYLOAD: Final = 1460
CLASSES: Final = ((1, 1), (2, 7), (8, 49), (50, 343), (344, 2401), (2402, 10**9))
"""Packets of the classes by size."""
CLASS_MIN: Final = 200
"""Classes of fewer flows are measured, and do not count as the furthest."""
WARM_UP_PS: Final = 2_000_000_000
"""Arrivals before this are left out of the replay of Homa."""
Table = dict[str, Any]
Floats = NDArray[np.float64]

_RACKS: Final[Table] = {"kind": "leaf-spine", "racks": 9, "hosts-per-rack": 16, "spines": 4}
_PHOST: Final[Table] = _RACKS | {
    "access-gbps": 10.0,
    "core-gbps": 40.0,
    "switch-ns": 0.0,
    "host-ns": 0.0,
}
_HOMA: Final[Table] = _RACKS | {"propagation-ns": 500.0, "switch-ns": 0.0, "host-ns": 1500.0}
_STAR: Final[Table] = {
    "kind": "star",
    "hosts": 16,
    "access-gbps": 10.0,
    "propagation-ns": 1000.0,
    "switch-ns": 0.0,
    "host-ns": 0.0,
}
_CAPTON: Final[Table] = {
    "kind": "leaf-spine",
    "racks": 12,
    "hosts-per-rack": 12,
    "spines": 4,
    "access-gbps": 10.0,
    "core-gbps": 10.0,
    "switch-ns": 0.0,
    "host-ns": 40_000.0,
}
_QUEUE: Final[Table] = {"interface": "queue"}
_36_KB: Final[Table] = {"buffer-bytes": 36_864}


@dataclass(frozen=True)
class Replay:
    """One recorded run and its network."""

    file: str
    transport: str
    topology: Table
    fabric: Table
    preset: str = "reference"
    own_ideal: bool = True
    """Our times are over our ideal; else over the recorded one, or they are times alone."""
    ends_at: str = "acked_ps"
    """The time of ours that is compared."""
    theirs: str = "fct_ps"
    """The recorded time."""
    from_ps: int = 0
    """Arrivals before this are left out."""


REPLAYS: Final = {
    "dcpim-imc10": Replay("dcpim_100g_imc10_load0.6", "dcpim", _RACKS, {}),
    "dcpim-web-search": Replay("dcpim_100g_websearch_load0.6", "dcpim", _RACKS, {}),
    "phost": Replay("phost_10g_imc10_load0.6", "phost", _PHOST, _36_KB),
    "pfabric": Replay("pfabric_10g_imc10_load0.6", "pfabric", _PHOST, _36_KB | _QUEUE),
    "fastpass": Replay("fastpass_10g_imc10_load0.6", "fastpass", _PHOST, _36_KB),
    "ndp": Replay("ndp_100g_websearch_load0.6", "ndp", _RACKS, {}, own_ideal=False),
    "homa": Replay(
        "homa_100g_w4_load0.5",
        "homa",
        _HOMA,
        {},
        own_ideal=False,
        ends_at="fct_ps",
        from_ps=WARM_UP_PS,
    ),
    "dctcp": Replay(
        "dctcp_10g_star16_websearch_load0.5",
        "dctcp",
        _STAR,
        _QUEUE,
        own_ideal=False,
        ends_at="fct_ps",
        theirs="delivered_ps",
    ),
    "tcp": Replay(
        "cubic_10g_star16_websearch_load0.5",
        "tcp",
        _STAR,
        _QUEUE,
        own_ideal=False,
        ends_at="fct_ps",
        theirs="delivered_ps",
    ),
    "pias": Replay("pias_capton_29.1", "pias", _CAPTON, _QUEUE),
    "dctcp-capton": Replay("dctcp_capton_32.76", "dctcp", _CAPTON, _QUEUE, preset="ns-2"),
}


def _recorded(file: Path) -> list[dict[str, str]]:
    with gzip.open(file, "rt", encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


def run(replay: Replay, folder: Path) -> tuple[rm.Run, list[dict[str, str]]]:
    """Returns our run of the recorded flows, and these."""
    file = folder / f"{replay.file}.csv.gz"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = rm.run(
            topology=replay.topology,
            fabric=replay.fabric,
            transport={"name": replay.transport, "preset": replay.preset},
            workload={"pattern": "trace", "file": str(file)},
            quiet=True,
        )
    return done, _recorded(file)


def compare(done: rm.Run, rows: list[dict[str, str]], replay: Replay) -> Table:
    """Returns ratios of means over all flows and by class, and of two percentiles."""

    def column(name: str) -> Floats:
        return np.array([float(row[name]) for row in rows])

    flows = done.flows.sort_by("flow")
    if any(time is None for time in flows[replay.ends_at].to_pylist()):
        raise ValueError(f"{replay.file}: expected all flows finished")
    ours, theirs = flows[replay.ends_at].to_numpy().astype(float), column(replay.theirs)
    if "ideal_ps" in rows[0]:
        ideals = column("ideal_ps")
        ours /= flows["acked_ideal_ps"].to_numpy() if replay.own_ideal else ideals
        theirs /= ideals
    kept = column("arrival_ps") >= replay.from_ps
    packets = -(-column("size_bytes") // PAYLOAD)

    def mean_ratio(of: NDArray[np.bool_]) -> float | None:
        return round(float(ours[of].mean() / theirs[of].mean()), 4) if of.any() else None

    members = [kept & (packets >= low) & (packets <= high) for low, high in CLASSES]
    ratios = [mean_ratio(of) for of in members]
    counts = [int(of.sum()) for of in members]
    counted = [r for r, n in zip(ratios, counts, strict=True) if r is not None and n >= CLASS_MIN]
    percentiles = {
        f"p{q}": round(float(np.percentile(ours[kept], q) / np.percentile(theirs[kept], q)), 4)
        for q in (50, 99)
    }
    return {
        "flows": int(kept.sum()),
        "mean": mean_ratio(kept),
        "classes": ratios,
        "class-flows": counts,
        "furthest": max(counted, key=lambda ratio: abs(ratio - 1)),
    } | percentiles


def measure(name: str, folder: Path) -> Table:
    """Returns what a replay measures."""
    return compare(*run(REPLAYS[name], folder), REPLAYS[name])


def main() -> int:
    """Measures the replays that are named, or all, and writes the table."""
    folder = os.environ.get(VARIABLE)
    if folder is None:
        sys.stderr.write(f"{VARIABLE}: expected the folder of recorded runs, got nothing\n")
        return 2
    table: Table = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name in sys.argv[1:] or REPLAYS:
        table[name] = measure(name, Path(folder))
        sys.stdout.write(f"{name}: {json.dumps(table[name])}\n")
        sys.stdout.flush()
    ordered = {name: table[name] for name in REPLAYS if name in table}
    FILE.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

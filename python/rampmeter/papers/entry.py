"""The values of one run of a figure, without the flows behind them."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rampmeter import _core
from rampmeter.papers.measure import CellValues
from rampmeter.papers.series import Series
from rampmeter.results.run import Run
from rampmeter.text.locations import Location


@dataclass(frozen=True)
class Entry:
    """The values of one run with one seed."""

    seed: int
    flows: int | None
    """Flows of the plan; `None` if the workload has no number of them."""
    plan: str
    """Digest of the complete plan without its seed."""
    results: str
    """Version of the results of the transports: a digest of those recorded."""
    values: str
    """Digest of the definitions of the values: sub-figures, ideal and application."""
    version: str
    commit: str
    date: str
    seconds: float
    """Processor time of the run; in old entries the wall time."""
    cells: Mapping[str, CellValues]
    """Values by sub-figure; of a probe, by the name of its metric."""
    load: float | None = None
    """Load of the probe of a search; `None` of other runs."""
    series: Mapping[str, Series] = field(default_factory=dict)
    """Points of drawings that show single packets, probes or crashes, by sub-figure."""

    def to_json(self) -> dict[str, Any]:
        """Returns the entry as plain values; NaN is `null`."""
        cells = {
            panel: [
                [metric, bin_, value if math.isfinite(value) else None, n]
                for (metric, bin_), (value, n) in of.items()
            ]
            for panel, of in self.cells.items()
        }
        table = asdict(self) | {"cells": cells}
        for key in ("load", "series"):
            if not table[key]:
                del table[key]
        return table

    @classmethod
    def of_json(cls, table: Mapping[str, Any], where: Path) -> "Entry":
        """Reads an entry; raises `ResultError` if a key is missing or of another type."""
        try:
            cells: dict[str, CellValues] = {
                panel: {
                    (metric, bin_): (math.nan if value is None else float(value), int(n))
                    for metric, bin_, value, n in of
                }
                for panel, of in table["cells"].items()
            }
            return cls(**{**table, "cells": cells})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Location(where).result_error(
                expected="an entry of the ledger", got=error
            ) from None


def run_provenance(run: Run) -> dict[str, Any]:
    """Returns the build, the date and the seconds of a run that has just ended."""
    return {
        "version": _core.VERSION,
        "commit": _core.COMMIT,
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(float(run.manifest.get("cpu_seconds", run.manifest["wall_seconds"])), 1),
    }

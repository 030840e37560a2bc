"""Flows that the statistics of a run cover: those after its warm-up, until its last counted end."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rampmeter.on_demand import np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


def warm_up_flows(summary: Mapping[str, Any], manifest: Mapping[str, Any]) -> int:
    """Returns the number of first flows that the statistics of a run omit."""
    if "warmup" in summary:
        return int(summary["warmup"]["flows"])
    measure = manifest.get("plan", {}).get("measure", {})
    number = measure.get("warmup-flows", 0)
    return number if isinstance(number, int) else 0


def counted_until(manifest: Mapping[str, Any], arrivals: "NDArray[Any]") -> float:
    """Returns the instant in picoseconds until which flows must finish to count.

    `arrivals` are those of all flows by their numbers.
    """
    measure = manifest.get("plan", {}).get("measure", {})
    # Results of earlier versions have the former key.
    number = measure.get("completed-before-flow", measure.get("finished-before-arrival"))
    return math.inf if number is None or number > arrivals.size else float(arrivals[number - 1])


def counted_flows(
    summary: Mapping[str, Any], manifest: Mapping[str, Any], flows: "pa.Table"
) -> "NDArray[np.bool_]":
    """Returns true for the flows that statistics cover, of a table sorted by `flow`."""
    numbers, sizes = flows["flow"].to_numpy(), flows["size_bytes"].to_numpy()
    arrivals = flows["arrival_ps"].to_numpy().astype(np.float64)
    ends = arrivals + flows["fct_ps"].to_numpy().astype(np.float64)
    # The ends of flows that were not delivered are NaN.
    found: NDArray[np.bool_] = (
        (numbers >= warm_up_flows(summary, manifest))
        & (sizes >= 0)
        & (ends < counted_until(manifest, arrivals))
    )
    return found

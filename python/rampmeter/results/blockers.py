"""The table of flows that used links for which others waited."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rampmeter.on_demand import np, pa
from rampmeter.text.locations import Location

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLAME: Final = "blame.parquet"
BLOCKERS: Final = "blockers.parquet"
CAUSE: Final = ("cause", "stage", "tier")
"""Columns that distinguish causes."""
PARTS_MAX: Final = 1 << 16
"""More parts than a flow has."""


def with_causes(
    blockers: "pa.Table", parts: "pa.Table", flows: "pa.Table", folder: Path
) -> "pa.Table":
    """Returns a table of blockers with the columns `cause`, `stage` and `tier` of their parts.

    The tables are those of the run in `folder`, flows by number. Raises `ResultError` if they
    are not of one run: parts sum to the times of the flows.
    """
    _check_sums(folder / BLAME, parts, flows)
    keys, wanted = _keys(parts), _keys(blockers)
    order = np.argsort(keys)
    is_known = np.isin(blockers["blocker"].drop_null().to_numpy(), flows["flow"].to_numpy())
    if not (np.isin(wanted, keys).all() and is_known.all()):
        expected = f"parts of {BLAME} and flows of the run"
        raise Location(folder / BLOCKERS).result_error(expected=expected, got="others")
    rows: Any = pa.array(order[np.searchsorted(keys[order], wanted)])
    for name in CAUSE:
        blockers = blockers.append_column(name, parts[name].take(rows))
    return blockers


def _check_sums(file: Path, parts: "pa.Table", flows: "pa.Table") -> None:
    """Raises an error unless the parts of each flow sum to its time."""
    numbers, of = flows["flow"].to_numpy(), parts["flow"].to_numpy()
    unknown = of[~np.isin(of, numbers)]
    if len(unknown):
        raise Location(file).result_error(expected="flows of the run", got=f"flow {unknown[0]}")
    # Exact below 2^53 picoseconds, which are 2.5 hours.
    times = parts["time_ps"].to_numpy().astype(np.float64)
    sums = np.bincount(np.searchsorted(numbers, of), times, minlength=len(numbers))
    fct = np.nan_to_num(flows["fct_ps"].to_numpy().astype(np.float64))
    for idx in np.flatnonzero(sums != fct)[:1]:
        expected = f"parts of flow {numbers[idx]} that sum to {fct[idx]:.0f} ps"
        raise Location(file).result_error(expected=expected, got=f"{sums[idx]:.0f} ps")


def _keys(table: "pa.Table") -> "NDArray[np.uint64]":
    """Returns a number for each flow and part."""
    flows, parts = (table[name].to_numpy().astype(np.uint64) for name in ("flow", "part"))
    keys: NDArray[np.uint64] = flows * np.uint64(PARTS_MAX) + parts
    return keys

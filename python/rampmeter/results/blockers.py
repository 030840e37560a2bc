"""The table of flows that used links for which others waited."""

from typing import TYPE_CHECKING, Any, Final

from rampmeter.on_demand import np, pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTS_MAX: Final = 1 << 16
"""More parts than a flow has."""


def with_causes(blockers: "pa.Table", parts: "pa.Table") -> "pa.Table":
    """Returns a table of blockers with the columns `cause`, `stage` and `tier` of their parts."""
    keys = _keys(parts)
    order = np.argsort(keys)
    rows: Any = pa.array(order[np.searchsorted(keys[order], _keys(blockers))])
    for name in ("cause", "stage", "tier"):
        blockers = blockers.append_column(name, parts[name].take(rows))
    return blockers


def _keys(table: "pa.Table") -> "NDArray[np.uint64]":
    """Returns a number for each flow and part."""
    flows, parts = (table[name].to_numpy().astype(np.uint64) for name in ("flow", "part"))
    keys: NDArray[np.uint64] = flows * np.uint64(PARTS_MAX) + parts
    return keys

"""Present names of what results of earlier versions have."""

from typing import TYPE_CHECKING, Final

from rampmeter.on_demand import pc

if TYPE_CHECKING:
    import pyarrow as pa

FORMER_STATUSES: Final = {"censored": "timed-out"}
"""Present names of statuses in results of earlier versions."""
FORMER_COLUMNS: Final = {
    "fate_ps": "outcome_ps",
    "bound_ps": "delay_bound_ps",
    "known_ps": "notified_ps",
    "what": "element",
}
"""Present names of columns in tables of earlier versions."""
FORMER_KEYS: Final = {
    "bound_ps": "lower_bound_ps",
    "bound_mean_ps": "lower_bound_mean_ps",
    "over_bound": "lower_bound_ratio",
}
"""Present names of keys of collectives and calls in summaries of earlier versions."""


def with_present_status(table: "pa.Table") -> "pa.Table":
    """Returns a table in which flows that earlier versions called finished are delivered."""
    index = table.schema.get_field_index("status")
    if index < 0:
        return table
    status = pc.replace_substring_regex(table["status"], "^finished$", "delivered")
    return table.set_column(index, "status", status)

"""The columns of a sweep's dataset. A row is a run; its values are from the run's summary."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rampmeter.on_demand import pa
from rampmeter.sweeps.spec import Point, Sweep, columns_of
from rampmeter.sweeps.task import TaskResult
from rampmeter.text.cautions import ONE_SAMPLE, TOO_SHORT, Caution, cautions_of
from rampmeter.text.toml import TomlValue, literal

MEANING: Final = b"meaning"
UNIT: Final = b"unit"
"""Keys of the metadata of columns."""

INT, FLOAT, TEXT, BOOL, CAUTIONS = "int64", "double", "string", "bool", "warnings"
"""Names of Arrow's types, so that the package is imported without Arrow."""

STATISTICS: Final = {
    "mean": "mean",
    "p50": "median",
    "p99": "99th percentile",
    "p999": "99.9th percentile",
    "max": "largest value",
}


@dataclass(frozen=True)
class Column:
    """A column of each run."""

    name: str
    type: str
    """The name of its Arrow type."""
    of: Callable[[Mapping[str, Any]], Any]
    """Function that computes its value from a summary; `None` if the summary has none."""
    meaning: str
    unit: str = ""
    is_measure: bool = False
    """True if runs are summarised by its mean and interval."""

    @property
    def field(self) -> "pa.Field[Any]":
        """The column's name, type, meaning and unit."""
        return field(self.name, self.type, self.meaning, self.unit)


def _at(*path: str) -> Callable[[Mapping[str, Any]], Any]:
    """Returns the value at a path of a summary; `None` if there is no such path."""

    def of(summary: Mapping[str, Any]) -> Any:
        value: Any = summary
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    return of


def _drops(summary: Mapping[str, Any]) -> int:
    return sum(sum(tier.get("drops", {}).values()) for tier in summary.get("tiers", []))


def warnings_of_run(summary: Mapping[str, Any]) -> list[Caution]:
    """Returns the warnings of a run, except the one about a single seed."""
    return [line for line in cautions_of(summary) if line.code != ONE_SAMPLE]


def _warnings(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {"code": one.code, "values": json.dumps(one.values), "text": str(one)}
        for one in warnings_of_run(summary)
    ]


def _is_short(summary: Mapping[str, Any]) -> bool:
    return any(one.code in TOO_SHORT for one in warnings_of_run(summary))


def _mean_of(key: str, name: str, per: float) -> Callable[[Mapping[str, Any]], float | None]:
    """Returns the mean over the entries of a list; `None` if there is none, or one has no value."""

    def of(summary: Mapping[str, Any]) -> float | None:
        values = [one.get(name) for one in summary.get(key) or []]
        if not values or None in values:
            return None
        return math.fsum(values) / len(values) / per

    return of


def _flows(status: str, meaning: str) -> Column:
    return Column(f"flows_{status}", INT, _at("flows", status), meaning)


def _slowdown(statistic: str, meaning: str, *, is_measure: bool = True) -> Column:
    path = ("slowdown", "delivered", "overall", statistic)
    meaning = f"{meaning} of slowdown, over the flows that are counted"
    return Column(f"slowdown_{statistic}", FLOAT, _at(*path), meaning, "1", is_measure)


COLUMNS: Final = (
    Column("status", TEXT, _at("status"), "how the run ended"),
    _flows("submitted", "flows that arrived"),
    _flows("delivered", "flows that were delivered in full"),
    _flows("failed", "flows that their transport aborted"),
    _flows("rejected", "flows that their transport rejected"),
    _flows("unfinished", "flows in flight at the end of the run"),
    _flows("not_started", "flows with unfinished dependencies at the end of the run"),
    _flows("counted", "flows in the statistics of slowdown"),
    Column(
        "utilisation",
        FLOAT,
        _at("utilisation"),
        "mean utilisation of the hosts' links in the measured window, with headers",
        "1",
        is_measure=True,
    ),
    Column(
        "goodput_gbps",
        FLOAT,
        _at("goodput_gbps"),
        "message bytes delivered in the measured window over its length, all hosts together",
        "Gbit/s",
        is_measure=True,
    ),
    Column(
        "delivered_share",
        FLOAT,
        _at("delivered_share"),
        "data packets delivered when arrivals stopped, over those offered until then",
        "1",
        is_measure=True,
    ),
    Column("nfct", FLOAT, _at("nfct"), "mean completion time over mean ideal", "1", True),
    Column("deadlines_met", FLOAT, _at("deadlines_met"), "share of deadlines met", "1", True),
    *(_slowdown(name, meaning) for name, meaning in STATISTICS.items()),
    *(
        _slowdown(
            f"{name}_ci",
            f"half width of the 95 % interval, by batch means, of the {meaning}",
            is_measure=False,
        )
        for name, meaning in STATISTICS.items()
        if name != "max"
    ),
    Column(
        "completion_us",
        FLOAT,
        _mean_of("collectives", "completion_ps", 1e6),
        "completion time of collectives, over their rounds; null if one was not completed",
        "us",
        is_measure=True,
    ),
    Column(
        "bus_gbps",
        FLOAT,
        _mean_of("collectives", "bus_gbps", 1.0),
        "bus bandwidth of collectives, over their rounds; null if one was not completed",
        "Gbit/s",
        is_measure=True,
    ),
    *(
        Column(
            f"call_{name}_us",
            FLOAT,
            _mean_of("rpcs", f"latency_{name}_ps", 1e6),
            f"{meaning} latency of calls, over the parts that have some; null if none ended",
            "us",
            is_measure=True,
        )
        for name, meaning in (("mean", "mean"), ("p99", "99th percentile of the"))
    ),
    Column("drops", INT, _drops, "packets dropped in switches and interfaces"),
    Column("warmup_rule", TEXT, _at("warmup", "rule"), "rule of the warm-up"),
    Column("warmup_flows", INT, _at("warmup", "flows"), "first flows that are omitted"),
    Column("window_from_ps", INT, _at("window", "from_ps"), "measured from", "ps"),
    Column("window_to_ps", INT, _at("window", "to_ps"), "measured until", "ps"),
    Column(
        "warnings",
        CAUTIONS,
        _warnings,
        "limits of the validity of the run's numbers: code, values in JSON, and text",
    ),
    Column("is_short", BOOL, _is_short, "true if the run has too few flows for a steady state"),
)
"""The columns of each run, in their order."""

MEASURES: Final = tuple(column.name for column in COLUMNS if column.is_measure)
"""The columns that are summarised by mean and interval."""


@dataclass(frozen=True)
class Schema:
    """The columns of a sweep: those of its points, then those of each run."""

    point: "pa.Schema"
    """Point, transport, seed and the varied keys."""

    @classmethod
    def of(cls, sweep: Sweep) -> "Schema":
        """Returns the columns of a sweep. A varied key has the common type of all its values."""
        columns = columns_of(sweep.points, sweep.keys)
        fields = [
            field("point", INT, "number of the point, from 0"),
            *(_key_field(key, columns[key]) for key in sweep.keys),
            field("transport", TEXT, "label of the transport"),
            field("seed", INT, "seed of the run"),
        ]
        return cls(pa.schema(fields))

    @property
    def runs(self) -> "pa.Schema":
        """The columns of the dataset of runs."""
        summary = field("summary", TEXT, "summary.json of the run")
        return pa.schema([*self.point, *(column.field for column in COLUMNS), summary])

    def row(self, point: Point, result: TaskResult) -> "pa.Table":
        """Returns the row of a run."""
        summary = json.loads(result.summary)
        values = [*self._values(point, result.seed)]
        values += [column.of(summary) for column in COLUMNS]
        values.append(result.summary)
        arrays = [
            pa.array([value], field.type) for value, field in zip(values, self.runs, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self.runs)

    def flows(self, point: Point, seed: int, flows: "pa.Table") -> "pa.Table":
        """Returns the flows of a run, with the columns of its point before theirs."""
        values = self._values(point, seed)
        arrays: list[Any] = [
            pa.repeat(pa.scalar(value, field.type), flows.num_rows)
            for value, field in zip(values, self.point, strict=True)
        ]
        fields = [*self.point, *flows.schema]
        return pa.Table.from_arrays([*arrays, *flows.columns], schema=pa.schema(fields))

    def _values(self, point: Point, seed: int) -> Sequence[Any]:
        own = dict(point.values)
        keys = self.point.names[1:-2]
        cells = [_cell(own[key], self.point.field(key).type) for key in keys]
        return [point.number, *cells, point.transport.label, seed]


def field(name: str, kind: str, meaning: str, unit: str = "") -> "pa.Field[Any]":
    """Returns a field of Arrow with the meaning and the unit of its values."""
    kinds: dict[str, pa.DataType] = {
        INT: pa.int64(),
        FLOAT: pa.float64(),
        TEXT: pa.string(),
        BOOL: pa.bool_(),
        CAUTIONS: pa.list_(pa.struct([(name, pa.string()) for name in ("code", "values", "text")])),
    }
    return pa.field(name, kinds[kind], metadata={MEANING: meaning, UNIT: unit})


def _key_field(key: str, values: Iterable[TomlValue]) -> "pa.Field[Any]":
    kinds = {type(value) for value in values}
    of_kinds: tuple[tuple[set[type], str], ...] = (
        ({bool}, BOOL),
        ({int}, INT),
        ({int, float}, FLOAT),
    )
    found = (of for allowed, of in of_kinds if kinds <= allowed)
    # Texts as they are; tables, lists and mixtures as TOML.
    return field(key, next(found, TEXT), "varied key of the plan")


def _cell(value: TomlValue, kind: "pa.DataType") -> Any:
    if str(kind) == TEXT:
        return value if isinstance(value, str) else literal(value)
    return value

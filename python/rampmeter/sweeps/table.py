"""The table `[sweep]` of a plan, and its overrides by command lines and Python.

    [sweep]
    transports = ["dcpim", { name = "pfabric", window = 60 }]
    seeds = 5
    grid = { "workload.load" = "0.3..0.8:0.1", "topology.spines" = [2, 4] }

`grid`, `zip`, `points` and `sample` are combined with each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rampmeter._core import PlanError
from rampmeter.choices.axes import Axis, Uniform, listed_axis, random_axis, zipped_axis
from rampmeter.choices.grammar import flatten, parse_values, uniform
from rampmeter.choices.naming import transports_of
from rampmeter.choices.seeds import Seeds
from rampmeter.plan.base import Transport
from rampmeter.plan.plan import SWEEP, Plan
from rampmeter.running.run_length import RunLength
from rampmeter.sweeps.spec import AUTO, METRIC, Replication, Sweep
from rampmeter.text.lists import KEY
from rampmeter.text.locations import Location, location_of, relocated
from rampmeter.text.strict_table import StrictTable
from rampmeter.text.toml import Table, TomlValue, line_of_key

SAMPLES_MAX: Final = 100_000
"""Maximum number of random points."""
UNIFORM, LOG_UNIFORM = "uniform", "log-uniform"


@dataclass(frozen=True)
class SweepOverrides:
    """A caller's overrides of a sweep; fields that are `None` are as in the plan's table."""

    axes: tuple[Axis, ...] = ()
    """Axes that replace all those of the table."""
    transports: str | Sequence[str | Table | Transport] | None = None
    seeds: Seeds | None = None
    precision: float | None = None
    metric: str | None = None
    seeds_max: int | None = None
    auto_flows: bool = False
    """Chooses the number of flows of each point, as `flows = "auto"` does."""
    flows_max: int | None = None


def sweep_of(plan: Plan, wishes: SweepOverrides | None = None) -> Sweep:
    """Returns the sweep of a plan's table with the caller's overrides.

    Raises `PlanError` if neither a key nor transports nor seeds vary. Errors of values of the table
    have its key and its line.
    """
    wishes = wishes or SweepOverrides()
    try:
        return _sweep_of(plan, wishes)
    except PlanError as error:
        raise _of_table(error, plan, wishes) from None


def _of_table(error: PlanError, plan: Plan, wishes: SweepOverrides) -> PlanError:
    """Returns an error at the key of the table, with its line, if the value is the table's."""
    table, location = plan.sweep or {}, location_of(error)
    path = location.key
    if path in table and getattr(wishes, path.replace("-", "_"), None) is None:
        path = f"{SWEEP}.{path}"
    elif not path.startswith(f"{SWEEP}."):
        return error
    place = plan.location(path)
    if place.file and not plan.is_rewritten:
        place = replace(place, line=line_of_key(plan.text, *path.split(".")[:2]))
    return relocated(error, place)


def _sweep_of(plan: Plan, wishes: SweepOverrides) -> Sweep:
    where = plan.location(SWEEP)
    section = StrictTable(plan.sweep or {}, where)
    axes = axes_of(section)
    transports = section.pop("transports", object, None)
    seeds = section.pop("seeds", object, None)
    precision = section.pop("precision", float, None)
    metric = section.pop("metric", str, METRIC)
    seeds_max = section.pop("seeds-max", int, None)
    flows = section.pop("flows", str, None)
    flows_max = section.pop("flows-max", int, None)
    section.reject_unread()
    if flows not in (None, AUTO):
        raise where.at("flows").error(expected=f'"{AUTO}"', got=repr(flows))
    precision = precision if wishes.precision is None else wishes.precision
    for name in ("metric", "seeds_max"):
        if precision is None and getattr(wishes, name) is not None:
            key = name.replace("_", "-")
            raise Location(key=key).error("requires a precision", hint="set `precision`, too")
    flows_max = flows_max if wishes.flows_max is None else wishes.flows_max
    is_auto = wishes.auto_flows or flows == AUTO
    run_length = RunLength.of(plan, precision, flows_max, is_auto=is_auto)
    seeds = _seeds(seeds, where) if wishes.seeds is None else wishes.seeds
    replication = Replication.of(
        seeds,
        plan.seed,
        precision=precision,
        metric=wishes.metric or metric,
        seeds_max=seeds_max if wishes.seeds_max is None else wishes.seeds_max,
    )
    axes = wishes.axes or axes
    named = transports if wishes.transports is None else wishes.transports
    of_transports = Location() if wishes.transports is not None else where
    choices = [] if named is None else transports_of(named, of_transports.at("transports"))
    is_one_run = len(replication.seeds) == 1 and precision is None and run_length is None
    if not axes and not choices and is_one_run:
        hint = "`rampmeter run` makes a single run"
        raise where.error("requires keys to vary, transports or several seeds", hint=hint)
    return Sweep.of(plan, axes, choices, replication, run_length)


def axes_of(section: StrictTable) -> tuple[Axis, ...]:
    """Returns the axes of `grid`, `zip`, `points` and `sample`, in this order."""
    where = section.where
    grid = flatten(section.pop("grid", dict, {}))
    axes = [
        Axis.of_values(_key(key, where), values_of(values, where.at("grid").at(key)), where)
        for key, values in grid.items()
    ]
    columns = {
        _key(key, where): values_of(values, where.at("zip").at(key))
        for key, values in flatten(section.pop("zip", dict, {})).items()
    }
    if columns:
        axes.append(zipped_axis(columns, where.at("zip")))
    points = section.pop("points", list, [])
    for point in points:
        if not isinstance(point, Mapping):
            raise where.at("points").error(expected="tables", got=repr(point))
    if points:
        flattened = [
            {_key(key, where): value for key, value in flatten(point).items()} for point in points
        ]
        axes.append(listed_axis(flattened, where.at("points")))
    sample = section.pop("sample", dict, None)
    if sample is not None:
        axes.append(_sample(StrictTable(sample, where.at("sample"))))
    return tuple(axes)


def values_of(values: Any, where: Location) -> list[TomlValue]:
    """Returns the values of an axis: a list, or a text with ranges."""
    if isinstance(values, str):
        values = parse_values(values, where)
    if isinstance(values, Uniform):
        raise where.error(
            expected="values", got=values, hint="random numbers are only available in `sample`"
        )
    if not isinstance(values, list) or not values:
        raise where.error(expected="a list or a text such as '0.3..0.8:0.1'", got=values)
    return values


def sample_axis(
    columns: Mapping[str, Uniform | Sequence[TomlValue]], number: int, seed: int, where: Location
) -> Axis:
    """Returns an axis of random points; raises `PlanError` for a wrong number of them."""
    if not columns:
        raise where.error(expected="keys to draw")
    if not 1 <= number <= SAMPLES_MAX:
        raise where.at("number").error(expected=f"1 to {SAMPLES_MAX}", got=number)
    return random_axis(columns, number, seed, where)


def _sample(section: StrictTable) -> Axis:
    where = section.where
    number, seed = section.pop("number", int), section.pop("seed", int, 1)
    axes: dict[str, Any] = {}
    for key, values in flatten(section.pop("axes", dict)).items():
        axes[_key(key, where)] = _parse_sample(values, where.at(key))
    section.reject_unread()
    return sample_axis(axes, number, seed, where)


def _parse_sample(values: Any, where: Location) -> Uniform | list[TomlValue]:
    """Returns the distribution of a sample: two ends, or the values of a list."""
    if isinstance(values, str):
        parsed = parse_values(values, where)
        return parsed if isinstance(parsed, Uniform) else values_of(parsed, where)
    if not isinstance(values, Mapping):
        return values_of(values, where)
    if len(values) != 1 or not set(values) <= {UNIFORM, LOG_UNIFORM}:
        raise where.error(expected=f"{UNIFORM} or {LOG_UNIFORM} = [low, high]", got=values)
    ((kind, ends),) = values.items()
    if not isinstance(ends, list) or len(ends) != 2:
        raise where.at(kind).error(expected="[low, high]", got=ends)
    return uniform(ends[0], ends[1], where, is_log=kind == LOG_UNIFORM)


def _seeds(value: Any, where: Location) -> Seeds | None:
    items = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        raise where.at("seeds").error(expected="a number or a list of seeds", got=repr(value))
    seeds: Seeds | None = value
    return seeds


def _key(key: str, where: Location) -> str:
    if not KEY.fullmatch(key):
        raise where.error(expected="a key such as workload.load", got=repr(key))
    return key

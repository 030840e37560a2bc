"""A sweep: the points of a plan, the transports, and the seeds of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from rampmeter._core import PlanError
from rampmeter.analysis.confidence import SEEDS_FIRST, SEEDS_MAX
from rampmeter.choices.axes import Axis, product, settings_of
from rampmeter.choices.grammar import format_value
from rampmeter.choices.naming import TransportChoice
from rampmeter.choices.seeds import Seeds, check_seeds, extended, listed
from rampmeter.plan.plan import SWEEP, Override, Plan
from rampmeter.running.run_length import FLOWS, RunLength
from rampmeter.text.locations import Location, location_of, relocated
from rampmeter.text.toml import TomlValue

METRIC: Final = "slowdown_mean"
"""Column that `precision` applies to."""
RATES: Final = "run.rates-us"
AUTO: Final = "auto"
UNKEPT: Final = ("run.capture", "run.links", "run.paths", RATES, "run.timeline")
"""Keys that request files which a sweep does not store."""


@dataclass(frozen=True)
class Replication:
    """The seeds of each point."""

    seeds: tuple[int, ...]
    """The seeds that every point has."""
    precision: float | None = None
    """Seeds are added until half the interval is at most this share of the mean."""
    metric: str = METRIC
    """The column of that interval."""
    seeds_max: int = SEEDS_MAX
    """Maximum number of seeds of a point."""

    def __post_init__(self) -> None:
        check_seeds(self.seeds, Location(key="seeds"))
        if self.precision is not None and not 0.0 < self.precision < 1.0:
            raise Location(key="precision").error(expected="between 0 and 1", got=self.precision)
        if self.precision is not None and self.seeds_max < 2:
            raise Location(key="seeds-max").error(expected="at least 2", got=self.seeds_max)

    @classmethod
    def of(
        cls,
        seeds: Seeds | None,
        first: int,
        *,
        precision: float | None = None,
        metric: str = METRIC,
        seeds_max: int | None = None,
    ) -> "Replication":
        """Returns `seeds` seeds from `first` on, or the listed ones.

        The default is one seed, or five with a precision. `seeds_max` is 30 by default, and no less
        than there are seeds.
        """
        if seeds is None:
            seeds = SEEDS_FIRST if precision is not None else 1
        of_points = listed(check_seeds(seeds, Location(key="seeds")), first)
        limit = max(SEEDS_MAX, len(of_points)) if seeds_max is None else seeds_max
        return cls(of_points, precision, metric, limit)

    def first(self, count: int) -> tuple[int, ...]:
        """Returns the first seeds of a point; extra ones continue the numbers of common ones."""
        return extended(self.seeds, count)


@dataclass(frozen=True)
class Point:
    """One point of a sweep, which is run with several seeds."""

    number: int
    values: tuple[Override, ...]
    """The varied keys with their values."""
    transport: TransportChoice
    plan: Plan
    """The plan, except the seed."""

    @property
    def name(self) -> str:
        """Name in messages."""
        words = [f"{key}={format_value(value)}" for key, value in self.values]
        return " ".join([self.transport.label, *words])

    @property
    def short_name(self) -> str:
        """The transport and the values, for the line of progress."""
        return ", ".join([self.transport.label, *(format_value(value) for _, value in self.values)])


@dataclass(frozen=True)
class Sweep:
    """A plan, the points at which it is run, and its seeds."""

    plan: Plan
    axes: tuple[Axis, ...]
    transports: tuple[TransportChoice, ...]
    replication: Replication
    run_length: RunLength | None = None
    """`None` if runs have the flows of the plan."""
    lengths: Mapping[int, int] = field(default_factory=dict)
    """Numbers of flows that were chosen, by the number of the point."""

    def __post_init__(self) -> None:
        if self.run_length is not None and FLOWS in self.keys:
            raise Location(key=FLOWS).error('cannot be varied with `flows = "auto"`')
        for key in self.keys:
            if key in ("seed", SWEEP) or key.startswith(f"{SWEEP}."):
                raise Location(key=key).error("cannot be varied; use `seeds`")
        for key in ("transport", "transport.name", "transport.preset"):
            if key in self.keys:
                raise Location(key=key).error("cannot be varied; use `transports`")
        for key in UNKEPT:
            if key in self.keys or self._is_set(key):
                raise Location(key=key).error(
                    "not available in a sweep, which does not store its file"
                )

    def _is_set(self, key: str) -> bool:
        """Returns true if the plan sets a key to anything but zero or false."""
        value = self.plan.get(key)
        if key == RATES and isinstance(value, str):
            # The plan itself need not have a transport, so the first point is checked.
            value = self.points[0].plan.resolved(key)
        return bool(value)

    @classmethod
    def of(
        cls,
        plan: Plan,
        axes: Iterable[Axis],
        transports: Sequence[TransportChoice],
        replication: Replication,
        run_length: RunLength | None = None,
    ) -> "Sweep":
        """Returns a sweep; by default with the plan's transport."""
        return cls(
            plan.without_sweep(),
            tuple(axes),
            tuple(transports) or (_own_transport(plan),),
            replication,
            run_length,
        )

    def with_lengths(self, lengths: Mapping[int, int]) -> "Sweep":
        """Returns the sweep whose points have these numbers of flows."""
        return replace(self, lengths=lengths)

    @property
    def keys(self) -> tuple[str, ...]:
        """The varied keys."""
        return tuple(key for axis in self.axes for key in axis.keys)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Every combination of the axes with every transport, which varies fastest."""
        points: list[Point] = []
        for choices in product(self.axes, Location(key=SWEEP)):
            values = settings_of(choices)
            for transport in self.transports:
                plan = transport.of(self.plan).with_(*values)
                if len(points) in self.lengths:
                    plan = plan.with_((FLOWS, self.lengths[len(points)]))
                points.append(Point(len(points), values, transport, plan))
        return tuple(points)

    def check(self, *, each_value_once: bool = False) -> None:
        """Raises `PlanError` for the first point that cannot run.

        If `each_value_once`, only points with a value or transport that no earlier point has are
        checked.
        """
        seen: set[object] = set()
        for point in self.points:
            new = {point.transport.label, *((key, format_value(of)) for key, of in point.values)}
            if each_value_once and new <= seen:
                continue
            seen |= new
            try:
                point.plan.check_run()
            except PlanError as error:
                raise relocated(error, replace(location_of(error), source=point.name)) from None

    def describe(self) -> dict[str, Any]:
        """Returns the basis of the points as JSON has it: the identity of a folder of results."""
        length = self.run_length
        flows = (
            {} if length is None else {"flows": {"seed": self.replication.seeds[0], **vars(length)}}
        )
        return {
            **flows,
            "plan": self.plan.text,
            "inputs": self._input_digests(),
            "keys": list(self.keys),
            "transports": [choice.label for choice in self.transports],
            "points": [
                {"transport": point.transport.text, "values": dict(point.values)}
                for point in self.points
            ],
        }

    def _input_digests(self) -> dict[str, str]:
        digests: dict[str, str] = {}
        for point in self.points:
            digests |= point.plan.input_digests()
        return dict(sorted(digests.items()))


def _own_transport(plan: Plan) -> TransportChoice:
    tables = plan.transports()
    if len(tables) != 1:
        raise plan.location("transport").error(
            expected="one transport, or transports of the sweep", got=len(tables)
        )
    for key in ("name", "preset"):
        value = tables[0].get(key)
        if not isinstance(value, str | None) or (key == "name" and value is None):
            got = "none" if value is None else repr(value)
            raise plan.location(f"transport.{key}").error(expected="a text", got=got)
    return TransportChoice(tables[0]["name"], tables[0].get("preset"))


def columns_of(points: Iterable[Point], keys: Sequence[str]) -> Mapping[str, list[TomlValue]]:
    """Returns the values of each varied key, one of each point."""
    columns: dict[str, list[TomlValue]] = {key: [] for key in keys}
    for point in points:
        for key, value in point.values:
            columns[key].append(value)
    return columns

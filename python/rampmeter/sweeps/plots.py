"""The plots of a sweep: measures by a key, heat maps over two keys, slowdown by flow size."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from rampmeter import plots
from rampmeter.analysis.confidence import Interval, interval
from rampmeter.results.names import (
    interval_name,
    key_name,
    measure_name,
    setting_name,
    transport_name,
    value_name,
)
from rampmeter.results.plot_list import PlotList
from rampmeter.results.slowdown import slowdown_groups
from rampmeter.sweeps.columns import MEASURES
from rampmeter.text.locations import Location
from rampmeter.text.toml import literal, parse_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES_DRAWN: Final = ("slowdown_mean", "slowdown_p99", "completion_us", "call_p99_us")
"""Measures that `rampmeter plot` and `rampmeter sweep` draw, if the sweep has them."""
_NAME, _WHERE = Location(key="name"), Location(key="where")
LOAD: Final = "workload.load"
NONE: Final = "none"
"""Value of `panels` for a single panel."""


class PointRows(Protocol):
    """The runs of one point of a sweep."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The varied keys."""

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The rows of its runs."""

    @property
    def transport(self) -> str:
        """The label of its transport."""

    def interval(self, name: str) -> Interval:
        """Returns the mean of a column over the seeds, with its interval."""


class SweepPlots(PlotList):
    """The plots of a sweep; each is a matplotlib figure, or drawn into `ax`.

    `where` selects points by values of varied keys, such as `{"load": 0.7}`. A key is named in
    full, or by its last part. Unknown names and values raise `PlanError`.
    """

    def __init__(self, url: str, keys: Sequence[str], points: Sequence[PointRows]) -> None:
        self._url, self._points = url, points
        self._keys = [key for key in keys if len(self._values(key, points)) > 1]
        self._all_keys = list(keys)

    def __repr__(self) -> str:
        return f"<plots of {self._url}: {', '.join(self.names())}>"

    def available(self) -> "dict[str, Callable[[], Figure]]":
        """Returns the plots for which there is data, by name."""
        found: dict[str, Callable[[], Figure]] = {
            name: partial(self.metric, name)
            for name in MEASURES_DRAWN
            if any(point.interval(name).n for point in self._points)
        }
        found["slowdown_by_size"] = self.slowdown_by_size
        if len(self._keys) == 2 and all(self._is_numeric(key, self._points) for key in self._keys):
            found["heat_map"] = self.heat_map
        return found

    def metric(
        self,
        name: str = "slowdown_mean",
        against: str | None = None,
        *,
        panels: str | None = None,
        where: Mapping[str, Any] | None = None,
        ax: "Axes | None" = None,
    ) -> "Figure":
        """Draws a measure by a varied key: a line for each transport, with intervals over seeds.

        `against` is by default the load, or the first key that has several numbers. There is a
        panel for each value of the key `panels`: by default the first other key; `none` for a
        single panel. Further keys decide the markers.
        """
        if name not in MEASURES:
            raise _NAME.error(expected=f"one of {', '.join(MEASURES)}", got=name)
        fixed = self._resolved(where)
        points = self._selected(fixed)
        keys = [key for key in self._keys if len(self._values(key, points)) > 1]
        if not keys and against is None:
            return self._by_transport(name, points, ax)
        x = self._axis(against, keys)
        others = [key for key in keys if key != x]
        panel = self._panel(panels, others, ax)
        variants = [key for key in others if key != panel]
        categories = [] if self._is_numeric(x, points) else self._values(x, points)
        lines: dict[str, dict[tuple[str, str], list[tuple[float, PointRows]]]] = {}
        for title, point in self._by_panel(panel, points):
            variant = ", ".join(setting_name(key, point.values[key]) for key in variants)
            value = point.values[x]
            place = float(categories.index(value) if categories else value)
            own = lines.setdefault(title, {}).setdefault((point.transport, variant), [])
            own.append((place, point))
        return plots.replicated(
            {title: _series(name, of) for title, of in lines.items()},
            x_label=key_name(x),
            y_label=measure_name(name),
            title=_title(fixed),
            interval=interval_name(_seeds(points)),
            categories=[value_name(value) for value in categories],
            ax=ax,
        )

    def slowdown_by_size(
        self,
        where: Mapping[str, Any] | None = None,
        *,
        panels: str | None = None,
        bins: str = "bdp",
        ax: "Axes | None" = None,
    ) -> "Figure":
        """Draws the mean and 99th percentile of slowdown by flow size, of each transport.

        Keys without a value in `where` have their largest number; the first other key has a panel
        for each of its values. `bins` is `bdp`, `decades`, `deciles` or `classes`.
        """
        fixed = self._resolved(where)
        points = self._selected(fixed)
        keys = [key for key in self._keys if len(self._values(key, points)) > 1]
        texts = [key for key in keys if not self._is_numeric(key, points)]
        panel = self._panel(panels, keys if panels else texts, ax)
        for key in keys:
            if key != panel:
                fixed[key] = self._values(key, points)[-1]
        by_panel: dict[str, list[plots.SizeSeries]] = {}
        chosen = self._selected(fixed)
        for title, point in self._by_panel(panel, chosen):
            by_panel.setdefault(title, []).append(_sizes(point, bins))
        note = interval_name(_seeds(chosen))
        if len(by_panel) == 1 or ax is not None:
            (series,) = by_panel.values()
            return plots.slowdown_by_size(series, title=_title(fixed), interval=note, ax=ax)
        return plots.sizes_by_panel(by_panel, title=_title(fixed), interval=note)

    def heat_map(
        self,
        name: str = "slowdown_mean",
        against: str | None = None,
        and_: str | None = None,
        *,
        where: Mapping[str, Any] | None = None,
    ) -> "Figure":
        """Draws a measure over two numeric keys: a map for each transport, with common colours."""
        if name not in MEASURES:
            raise _NAME.error(expected=f"one of {', '.join(MEASURES)}", got=name)
        fixed = self._resolved(where)
        points = self._selected(fixed)
        several = [key for key in self._keys if len(self._values(key, points)) > 1]
        keys = [key for key in several if self._is_numeric(key, points)]
        x = self._axis(against, keys)
        rest = [key for key in keys if key != x]
        y = self._axis(and_, rest)
        if left := [key for key in several if key not in (x, y)]:
            self._need(left[0], points)
        at = {
            (point.transport, point.values[x], point.values[y]): point.interval(name).mean
            for point in points
        }
        of_x, of_y = self._values(x, points), self._values(y, points)
        transports = dict.fromkeys(point.transport for point in points)
        return plots.heat_maps(
            {
                transport_name(one): [[at.get((one, a, b), math.nan) for a in of_x] for b in of_y]
                for one in transports
            },
            [value_name(value) for value in of_x],
            [value_name(value) for value in of_y],
            x_label=key_name(x),
            y_label=key_name(y),
            value_label=measure_name(name),
            title=_title(fixed),
            short={
                (
                    transport_name(point.transport),
                    of_x.index(point.values[x]),
                    of_y.index(point.values[y]),
                )
                for point in points
                if _is_short(point)
            },
        )

    def _by_transport(self, name: str, points: Sequence[PointRows], ax: "Axes | None") -> "Figure":
        """Draws a measure of a sweep that has nothing varied but transports."""
        found = [(point.transport, point.interval(name)) for point in points]
        series = [
            plots.Series(transport_name(transport), [(float(place), at)])
            for place, (transport, at) in enumerate(found)
        ]
        return plots.replicated(
            series,
            x_label="Transport",
            y_label=measure_name(name),
            interval=interval_name(_seeds(points)),
            categories=[transport_name(transport) for transport, _ in found],
            ax=ax,
        )

    def _resolved(self, where: Mapping[str, Any] | None) -> dict[str, Any]:
        """Returns the keys and values that `where` names, which may be texts."""
        found = {}
        if not isinstance(where, Mapping | None):
            raise _WHERE.error(expected="keys with values", got=where)
        for name, wanted in (where or {}).items():
            key = self._key(name, "where", self._all_keys)
            values = self._values(key, self._points)
            matching = [value for value in values if _is_same(value, wanted)]
            if not matching:
                allowed = ", ".join(value_name(value) for value in values)
                raise _WHERE.at(name).error(expected=f"one of {allowed}", got=wanted)
            found[key] = matching[0]
        return found

    def _selected(self, fixed: Mapping[str, Any]) -> list[PointRows]:
        """Returns the points with some values of keys."""
        selected = [
            point
            for point in self._points
            if all(point.values[key] == value for key, value in fixed.items())
        ]
        if not selected:
            raise _WHERE.error(expected="a point of the sweep", got=_title(fixed))
        return selected

    def _key(self, name: str, argument: str, keys: Sequence[str]) -> str:
        """Returns the key of a name, which may be its last part."""
        found = [key for key in keys if name in (key, key.rpartition(".")[2])]
        if len(found) != 1:
            allowed = ", ".join(keys) or "none: no key has several values"
            raise Location(key=argument).error(expected=f"one of {allowed}", got=name)
        return found[0]

    def _axis(self, against: str | None, keys: Sequence[str]) -> str:
        """Returns the key of an axis: the load, a key of numbers, or the first."""
        if against is not None:
            return self._key(against, "against", keys)
        if not keys:
            raise Location(key="sweep").error(expected="two keys with several numbers", got="fewer")
        numbers = [key for key in keys if self._is_numeric(key, self._points)]
        return LOAD if LOAD in numbers else (numbers or list(keys))[0]

    def _panel(self, panels: str | None, keys: Sequence[str], ax: "Axes | None") -> str | None:
        """Returns the key with a panel for each value; `None` for a single panel."""
        if panels == NONE or ax is not None:
            return None
        if panels is not None:
            return self._key(panels, "panels", keys)
        return keys[0] if keys else None

    def _by_panel(
        self, panel: str | None, points: Sequence[PointRows]
    ) -> list[tuple[str, PointRows]]:
        """Returns the points with the title of their panels, in the order of the values."""
        if panel is None:
            return [("", point) for point in points]
        return [
            (setting_name(panel, value), point)
            for value in self._values(panel, points)
            for point in points
            if point.values[panel] == value
        ]

    def _need(self, key: str, points: Sequence[PointRows]) -> None:
        allowed = ", ".join(value_name(value) for value in self._values(key, points))
        raise _WHERE.error(expected=f"a value of {key} ({allowed})")

    @staticmethod
    def _values(key: str, points: Sequence[PointRows]) -> list[Any]:
        """Returns the distinct values of a key: numbers by size, others by points."""
        values = list({literal(point.values[key]): point.values[key] for point in points}.values())
        return sorted(values) if all(is_number(value) for value in values) else values

    @staticmethod
    def _is_numeric(key: str, points: Sequence[PointRows]) -> bool:
        return all(is_number(point.values[key]) for point in points)


def is_number(value: object) -> bool:
    """Returns true for integers and floats, which an axis can have."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_same(value: Any, wanted: Any) -> bool:
    """Returns true if a value is the wanted one, which may be a text of the command line."""
    if isinstance(wanted, str) and not isinstance(value, str):
        wanted = parse_value(wanted)
    if is_number(value) and is_number(wanted):
        return math.isclose(value, wanted, rel_tol=1e-9)
    return bool(value == wanted)


def _series(
    name: str, lines: Mapping[tuple[str, str], Sequence[tuple[float, PointRows]]]
) -> list["plots.Series"]:
    return [
        plots.Series(
            transport_name(transport),
            sorted(((x, point.interval(name)) for x, point in of), key=lambda pair: pair[0]),
            variant,
            frozenset(x for x, point in of if _is_short(point)),
        )
        for (transport, variant), of in lines.items()
    ]


def _sizes(point: PointRows, bins: str) -> "plots.SizeSeries":
    """Returns the slowdown by size of a point, over its seeds."""
    summaries = [json.loads(row["summary"]) for row in point.rows]
    seeds = [slowdown_groups(summary, bins=bins) for summary in summaries]
    means, p99s = (
        [interval(getattr(group, name) for group in groups) for groups in zip(*seeds, strict=True)]
        for name in ("mean", "p99")
    )
    if len(seeds) == 1:
        errors = [[group.ci.get(n) for group in seeds[0]] for n in ("mean", "p99")]
    else:
        errors = [[at.ci for at in of] for of in (means, p99s)]
    labels = [group.label for group in seeds[0]]
    hollow = frozenset(range(len(labels))) if _is_short(point) else frozenset[int]()
    return plots.SizeSeries(
        transport_name(point.transport),
        [at.mean if math.isfinite(at.mean) else None for at in means],
        [at.mean if math.isfinite(at.mean) else None for at in p99s],
        mean_errors=errors[0],
        p99_errors=errors[1],
        hollow=hollow,
        labels=labels,
    )


def _is_short(point: PointRows) -> bool:
    """Returns true if a run of a point is too short, by the column of the dataset if it has one."""
    return any(row.get("is_short") for row in point.rows)


def _seeds(points: Sequence[PointRows]) -> list[int]:
    return [len(point.rows) for point in points]


def _title(fixed: Mapping[str, Any]) -> str:
    """Returns the selection as a title."""
    return ", ".join(setting_name(key, value) for key, value in fixed.items())

"""Many runs at once: grids that stand for runs, and patterns that name them."""

import itertools
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from rampmeter._core import PlanError
from rampmeter.section import Section


def runs_of_grid(grid: Section) -> list[Section]:
    """The `[[run]]` tables that a `[[grid]]` stands for, one for each point of its axes.

    The last axis varies fastest. In `id` and `label`, `{load:.2f}` stands for the point's value
    on the axis whose key ends in `load`. With `quick-axes`, only points with these values are in
    the reduced figure.
    """
    id_ = grid.take("id", str)
    label = grid.take("label", str, None)
    fixed = grid.take("set", dict, {})
    axes = grid.take("axes", dict)
    flows = grid.take("flows", int)
    quick_flows = grid.take("quick-flows", int, None)
    quick_axes = grid.take("quick-axes", dict, {})
    grid.end()
    _check_axes(grid, axes, fixed)
    _check_quick_axes(grid, quick_axes, axes, quick_flows)
    runs = []
    for values in itertools.product(*axes.values()):
        point = dict(zip(axes, values, strict=True))
        run: dict[str, Any] = {"id": _filled(grid, "id", id_, point)}
        if label is not None:
            run["label"] = _filled(grid, "label", label, point)
        run |= {"set": fixed | point, "flows": flows}
        if quick_flows is not None and all(point[key] in quick_axes[key] for key in quick_axes):
            run["quick-flows"] = quick_flows
        runs.append(Section(run, f"{grid.where}: {run['id']}"))
    return runs


def matching(section: Section, name: Any, ids: Sequence[str]) -> list[str]:
    """The runs that a pattern such as `pareto-k1-*` matches, in the figure's order.

    A name that is no pattern is returned as it is.
    """
    if not isinstance(name, str):
        raise PlanError(f"{section.where}: runs: expected a run's name or a pattern, got {name!r}")
    if not any(character in name for character in "*?["):
        return [name]
    found = [id_ for id_ in ids if fnmatchcase(id_, name)]
    if not found:
        raise PlanError(f"{section.where}: runs: no run matches {name}")
    return found


def _check_axes(grid: Section, axes: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    if not axes:
        raise PlanError(f"{grid.where}: axes: expected at least one axis, got none")
    for key, values in axes.items():
        if not isinstance(values, list) or not values:
            raise PlanError(f"{grid.where}: axes: {key}: expected a list of values, got {values!r}")
        if key in fixed:
            raise PlanError(f"{grid.where}: expected {key} in set or in axes, got both")
    fields = [_field(key) for key in axes]
    if len(set(fields)) != len(fields):
        names = ", ".join(fields)
        raise PlanError(f"{grid.where}: axes: expected the ends of keys to differ, got {names}")


def _check_quick_axes(
    grid: Section,
    quick_axes: Mapping[str, Any],
    axes: Mapping[str, Sequence[Any]],
    quick_flows: int | None,
) -> None:
    if quick_axes and quick_flows is None:
        raise PlanError(f"{grid.where}: expected quick-flows with quick-axes, it is missing")
    for key, values in quick_axes.items():
        if key not in axes:
            raise PlanError(
                f"{grid.where}: quick-axes: expected one of {', '.join(axes)}, got {key}"
            )
        if not isinstance(values, list) or not all(value in axes[key] for value in values):
            known = ", ".join(map(str, axes[key]))
            raise PlanError(
                f"{grid.where}: quick-axes: {key}: expected some of {known}, got {values!r}"
            )


def _filled(grid: Section, key: str, template: str, point: Mapping[str, Any]) -> str:
    """A template with the values of a point."""
    fields = {_field(axis): value for axis, value in point.items()}
    try:
        return template.format_map(fields)
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        names = ", ".join(f"{{{name}}}" for name in fields)
        raise PlanError(
            f"{grid.where}: {key}: expected fields of {names}, got {template!r} ({error})"
        ) from None


def _field(axis: str) -> str:
    """What templates call an axis: the end of its key."""
    return axis.rpartition(".")[2]

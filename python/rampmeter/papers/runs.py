"""Many runs at once: grids that expand to runs, and patterns that select them."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from rampmeter.choices.axes import Axis, Choice, product, settings_of
from rampmeter.choices.grammar import parse_values
from rampmeter.text.locations import Location
from rampmeter.text.strict_table import StrictTable

ABOUT = {"label": str, "flows": int, "quick-flows": int, "variant-of": str, "app": dict}
"""Keys of a choice that describe its runs, with their types."""


def runs_of_grid(grid: StrictTable) -> list[StrictTable]:
    """Returns the `[[run]]` tables of a `[[grid]]`, one for each point of its axes.

    The last axis varies fastest. An axis is a key of the plan with its values, or a name without a
    dot with a list of choices: tables of `id`, `set`, and other keys of their runs. In texts
    `{load:.2f}` is the point's value on the axis whose key ends in `load`. `{scheme}` and
    `{scheme.label}` are the id and the label of its choice on the axis `scheme`. A grid without
    `label` has the label of the choice that has one. With `quick-axes`, only points with these
    values are in the reduced figure.
    """
    id_ = grid.pop("id", str)
    label = grid.pop("label", str, None)
    fixed = grid.pop("set", dict, {})
    axes = _axes(grid, grid.pop("axes", dict), fixed)
    flows = grid.pop("flows", int, None)
    quick_flows = grid.pop("quick-flows", int, None)
    is_quick = grid.pop("quick", bool, False)
    quick_axes = grid.pop("quick-axes", dict, {})
    grid.reject_unread()
    _check_quick_axes(grid, quick_axes, axes)
    runs = []
    for point in product(axes, grid.where):
        ids = {axis.name: choice.id for axis, choice in zip(axes, point, strict=True)}
        fields = {
            _field(axis.name): _template_value(at) for axis, at in zip(axes, point, strict=True)
        }
        run: dict[str, Any] = {"id": _fill_template(grid, "id", id_, fields)}
        run["label"] = _label(grid, label, point, fields)
        run["set"] = fixed | dict(settings_of(point))
        run |= _descriptions(grid, point, fields)
        run.setdefault("flows", flows)
        run.setdefault("quick-flows", quick_flows)
        run["quick"] = is_quick
        if quick_axes and run["quick-flows"] is None and not is_quick:
            raise grid.where.at("quick-flows").error(expected="this key with quick-axes")
        if any(ids[key] not in quick_axes[key] for key in quick_axes):
            run["quick-flows"], run["quick"] = None, False
        runs.append(StrictTable(run, grid.where.at(run["id"])))
    return runs


def match_runs(section: StrictTable, name: Any, ids: Sequence[str]) -> list[str]:
    """Returns the runs that a pattern such as `pareto-k1-*` matches, in the figure's order.

    A name that is no pattern is returned as it is.
    """
    if not isinstance(name, str):
        raise section.where.at("runs").error(expected="a run's name or a pattern", got=repr(name))
    if not any(character in name for character in "*?["):
        return [name]
    found = [id_ for id_ in ids if fnmatchcase(id_, name)]
    if not found:
        raise section.where.at("runs").error(expected="a pattern that matches a run", got=name)
    return found


class _TemplateChoice(str):
    """A choice in a template: its id, and its label."""

    label: str = ""


def _axes(grid: StrictTable, axes: Mapping[str, Any], fixed: Mapping[str, Any]) -> list[Axis]:
    if not axes:
        raise grid.where.at("axes").error(expected="at least one axis")
    where = grid.where.at("axes")
    made = []
    for key, values in axes.items():
        if isinstance(values, str):
            values = parse_values(values, where.at(key))
        if not isinstance(values, list) or not values:
            raise where.at(key).error(expected="a list of values", got=repr(values))
        if "." in key:
            made.append(Axis.of_values(key, values, where))
        else:
            choices = [_choice(value, where.at(key)) for value in values]
            made.append(Axis(key, tuple(choices)))
        for name in made[-1].keys:
            if name in fixed:
                raise grid.where.error(expected=f"{name} in set or in axes", got="both")
    fields = [_field(axis.name) for axis in made]
    if len(set(fields)) != len(fields):
        names = ", ".join(fields)
        raise where.error(expected="the ends of keys to differ", got=names)
    return made


def _choice(table: Any, where: Location) -> Choice:
    if not isinstance(table, dict):
        raise where.error(expected="tables with id and set", got=repr(table))
    section = StrictTable(table, where)
    id_ = section.pop("id", str)
    settings = section.pop("set", dict, {})
    about: dict[str, Any] = {}
    for key, kind in ABOUT.items():
        value = section.pop(key, kind, None)
        if value is not None:
            about[key] = value
    section.reject_unread()
    return Choice(id_, tuple(settings.items()), about)


def _template_value(choice: Choice) -> Any:
    """Returns the value of a choice in templates."""
    if not isinstance(choice.id, str):
        return choice.id
    named = _TemplateChoice(choice.id)
    named.label = choice.about.get("label", choice.id)
    return named


def _label(
    grid: StrictTable, template: str | None, point: Iterable[Choice], fields: Mapping[str, Any]
) -> str | None:
    """Returns a run's label: from the grid's template, or from the only choice that has one."""
    if template is not None:
        return _fill_template(grid, "label", template, fields)
    labels = [choice.about["label"] for choice in point if "label" in choice.about]
    if len(labels) > 1:
        raise grid.where.at("label").error(
            expected=f"this key, since several choices have one: {', '.join(labels)}"
        )
    return labels[0] if labels else None


def _descriptions(
    grid: StrictTable, point: Iterable[Choice], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the descriptions in a point's choices, except labels."""
    about: dict[str, Any] = {}
    for choice in point:
        for key, value in choice.about.items():
            if key == "label":
                continue
            if key in about:
                raise grid.where.error(expected=f"{key} of one choice", got="two")
            is_template = key == "variant-of"
            about[key] = _fill_template(grid, key, value, fields) if is_template else value
    return about


def _check_quick_axes(
    grid: StrictTable, quick_axes: Mapping[str, Any], axes: Sequence[Axis]
) -> None:
    ids = {axis.name: [choice.id for choice in axis.choices] for axis in axes}
    for key, values in quick_axes.items():
        if key not in ids:
            raise grid.where.at("quick-axes").error(expected=f"one of {', '.join(ids)}", got=key)
        if not isinstance(values, list) or not all(value in ids[key] for value in values):
            allowed = ", ".join(map(str, ids[key]))
            raise (
                grid.where.at("quick-axes")
                .at(key)
                .error(expected=f"some of {allowed}", got=repr(values))
            )


def _fill_template(grid: StrictTable, key: str, template: str, fields: Mapping[str, Any]) -> str:
    """Returns a template with the values of a point."""
    try:
        return template.format_map(fields)
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        names = ", ".join(f"{{{name}}}" for name in fields)
        raise grid.where.at(key).error(
            expected=f"fields of {names}", got=f"{template!r} ({error})"
        ) from None


def _field(axis: str) -> str:
    """Returns the name of an axis in templates: the end of its key."""
    return axis.rpartition(".")[2]

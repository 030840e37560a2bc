"""Checks of the arguments of `rampmeter.sweep` by their types."""

from collections.abc import Iterable, Mapping
from typing import Any

from rampmeter.choices.axes import Uniform
from rampmeter.text.arguments import (
    argument_error,
    mapping_argument,
    number_argument,
    path_argument,
    text_argument,
)


def check_plan_arguments(vary: Any, points: Any, precision: Any) -> None:
    """Raises `PlanError` if an argument is of a wrong type; values are checked with the plan."""
    _check_values(vary)
    if not isinstance(points, list | tuple):
        raise argument_error("points", "a list of mappings", points)
    for idx, point in enumerate(points):
        mapping_argument(f"points[{idx}]", point, "keys to values")
    if precision is not None:
        number_argument("precision", precision, 0.0, 1.0, is_open=True)


def check_session_arguments(on: Any, out: Any) -> None:
    """Raises `PlanError` if an argument about engine or folder is of a wrong type."""
    text_argument("on", on)
    if out is not None:
        path_argument("out", out)


def _check_values(vary: Any) -> None:
    if vary is None:
        return
    mapping_argument("vary", vary, "keys to lists of values")
    for key, values in vary.items():
        name = f"vary[{key!r}]"
        if isinstance(values, Mapping) or not isinstance(values, Iterable | Uniform):
            raise argument_error(name, "a list, a range such as '0.3..0.8:0.1', or Uniform", values)
        if isinstance(values, Uniform):
            number_argument(name, values.low, float("-inf"))
            number_argument(name, values.high, float("-inf"))

"""Schema of plans and transports in the core: keys with ranges, presets and documentation."""

import json
from functools import cache
from typing import Any, Final, Literal, TypedDict

from rampmeter import _core


class Kind(TypedDict, total=False):
    """The values of a key; its fields depend on `type`."""

    type: Literal["integer", "number", "bool", "list", "text", "table", "choice"]
    length: int
    min: float
    max: float
    names: list[tuple[str, str]]


class Key(TypedDict):
    """A parameter."""

    name: str
    doc: str
    kind: Kind
    derived: bool


class About(TypedDict):
    """A transport."""

    name: str
    title: str
    summary: str
    wire: int | None
    presets: list[tuple[str, dict[str, Any]]]
    keys: list[Key]
    has_round_trips: bool
    best_effort: list[str]


@cache
def transports() -> tuple[About, ...]:
    """The transports that plans may name."""
    about: list[About] = json.loads(_core.transports())
    return tuple(about)


def about(name: str) -> About:
    """The transport of this name."""
    return next(about for about in transports() if about["name"] == name)


PYTHON: Final = "python"
"""The transport whose endpoints are Python objects: any protocol, and slow."""


def names() -> list[str]:
    """The names of all transports but `python`."""
    return [about["name"] for about in transports() if about["name"] != PYTHON]


@cache
def plan_schema() -> dict[str, Any]:
    """The JSON Schema of plans, of draft 7."""
    schema: dict[str, Any] = json.loads(_core.plan_schema())
    return schema

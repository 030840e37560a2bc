"""Schema of plans and transports in the core: keys with ranges, presets and documentation."""

import json
from functools import cache
from typing import Any, Final, Literal, TypedDict

from rampmeter import _core


class KeyKind(TypedDict, total=False):
    """The values of a key; its fields depend on `type`."""

    type: Literal["integer", "number", "bool", "list", "text", "table", "choice"]
    length: int
    min: float
    max: float
    names: list[tuple[str, str]]


class KeyInfo(TypedDict):
    """A parameter of a transport."""

    name: str
    doc: str
    kind: KeyKind
    derived: bool


class TransportInfo(TypedDict):
    """A transport with its presets and keys."""

    name: str
    title: str
    summary: str
    wire: int | None
    presets: list[tuple[str, dict[str, Any]]]
    keys: list[KeyInfo]
    stages: list[tuple[str, str]]
    rules: dict[str, str]
    has_round_trips: bool
    best_effort: list[str]


@cache
def transports() -> tuple[TransportInfo, ...]:
    """Returns the transports that plans may name."""
    infos: list[TransportInfo] = json.loads(_core.transports())
    return tuple(infos)


def transport_info(name: str) -> TransportInfo:
    """Returns the transport of this name."""
    return next(info for info in transports() if info["name"] == name)


PYTHON: Final = "python"
"""The transport whose endpoints are Python objects: any protocol, and slow."""


def names() -> list[str]:
    """Returns the names of all transports except `python`."""
    return [info["name"] for info in transports() if info["name"] != PYTHON]


@cache
def plan_schema() -> dict[str, Any]:
    """Returns the JSON Schema of plans, of draft 7."""
    schema: dict[str, Any] = json.loads(_core.plan_schema())
    return schema

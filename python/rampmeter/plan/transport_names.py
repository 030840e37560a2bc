"""Names of transports: `dcpim`, `phost:reference`, `dcpim:beta=1.5`, tables, and classes.

    transports = transport { "," transport }
    transport  = name [ ":" first ] { "," key "=" value }
    first      = preset | key "=" value

After a comma `key=value` belongs to the transport before it, and any other item begins the next
one. Names and presets have no equals sign, and a transport's first setting follows a colon.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from rampmeter.plan.base import PlanTable, Transport, table_of
from rampmeter.text.arguments import shown
from rampmeter.text.lists import KEY, split
from rampmeter.text.locations import Location
from rampmeter.text.toml import Table, TomlValue, parse_value

TransportName: TypeAlias = str | Table | PlanTable | type[Any]
"""A transport: a text, a table, an object of `rampmeter.transports`, or a class of these or of
endpoints."""
FABRIC: Final = "fabric."
"""Prefix of keys of the fabric; all others are the transport's."""


class NamedTransport(NamedTuple):
    """A transport of a text."""

    name: str
    preset: str | None
    settings: dict[str, TomlValue]
    """Further keys of the transport, or of the fabric (`fabric.buffer-bytes`)."""


def parse_transports(text: str, where: Location) -> list[NamedTransport]:
    """Returns the transports of a list.

    >>> parse_transports("dcpim:paper,beta=1.5", Location())
    [NamedTransport(name='dcpim', preset='paper', settings={'beta': 1.5})]
    """
    groups: list[list[str]] = []
    for item in split(text, where):
        if _is_setting(item):
            if not groups:
                raise where.error(expected=f"a name before {item}", got=text)
            groups[-1].append(item)
        else:
            groups.append([item])
    return [_parsed(group, where) for group in groups]


def is_transport(value: object) -> bool:
    """Returns true if the value can be a transport, by its type."""
    if isinstance(value, type):
        return hasattr(value, "transport") or issubclass(value, Transport)
    return isinstance(value, str | Mapping | PlanTable)


def transport_table(value: object, where: Location) -> Table:
    """Returns the table of one transport; raises `PlanError` for several, and for none.

    >>> transport_table("pfabric:window-initial=60", Location(key="transport"))
    {'name': 'pfabric', 'window-initial': 60}
    """
    if isinstance(value, str):
        return _table_of_text(value, where)
    if isinstance(value, type) and value is not Transport and is_transport(value):
        kind: Any = value
        make = kind if issubclass(value, Transport) else kind.transport
        value = make()
    if isinstance(value, PlanTable) and not isinstance(value, Transport):
        raise where.error(expected="a transport", got=shown(value))
    return table_of(where.key, value)


def _table_of_text(text: str, where: Location) -> Table:
    named = parse_transports(text, where)
    if len(named) > 1:
        hint = "a list of transports shares the network; `compare` runs one after the other"
        raise where.error(expected="one transport", got=shown(text), hint=hint)
    name, preset, settings = named[0]
    for key in settings:
        if key.startswith(FABRIC):
            hint = "it belongs into the table fabric"
            raise where.error(expected="keys of the transport", got=key, hint=hint)
    return {"name": name, **({"preset": preset} if preset else {}), **settings}


def _is_setting(item: str) -> bool:
    return "=" in item and ":" not in item.partition("=")[0]


def _parsed(group: Sequence[str], where: Location) -> NamedTransport:
    head, *rest = group
    name, colon, first = (part.strip() for part in head.partition(":"))
    if not head and not rest:
        raise where.error(expected="names that differ", got="an empty one")
    if not KEY.fullmatch(name) or (colon and not first):
        raise where.error(expected="name, name:preset or name:key=value", got=head)
    preset = first if first and not _is_setting(first) else None
    settings: dict[str, TomlValue] = {}
    for item in ([first] if first and preset is None else []) + rest:
        key, _, value = (part.strip() for part in item.partition("="))
        if not KEY.fullmatch(key) or not value:
            raise where.error(expected="key=value", got=item)
        if key in settings:
            raise where.error(expected="keys that differ", got=", ".join(group))
        settings[key] = parse_value(value)
    return NamedTransport(name, preset, settings)

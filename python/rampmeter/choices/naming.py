"""Lists of transports with presets and keys: `dcpim,phost:reference,pfabric:window=60`.

    transports = transport { "," transport }
    transport  = name [ ":" first ] { "," key "=" value }
    first      = preset | key "=" value

After a comma `key=value` belongs to the transport before it, and any other item begins the next
one. Names and presets have no equals sign, and a transport's first setting follows a colon.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rampmeter.choices.grammar import KEY, format_value, split
from rampmeter.plan import schema
from rampmeter.plan.base import Transport
from rampmeter.plan.plan import Plan, parse_value
from rampmeter.text.locations import Location
from rampmeter.text.toml import Table, TomlValue

ALL: Final = "all"
LABEL: Final = "label"
"""The key with a transport's name in tables."""
FABRIC: Final = "fabric."
"""Prefix of keys of the fabric; all others are the transport's."""
TRANSPORTS: Final = Location(key="transports")


@dataclass(frozen=True)
class TransportChoice:
    """A transport with which runs of a plan are made."""

    name: str
    preset: str | None = None
    settings: Mapping[str, TomlValue] = field(default_factory=dict)
    """Further keys of the transport, or of the fabric (`fabric.buffer-bytes`)."""
    title: str | None = None
    """Name in tables; if `None`, the choice in the command line's notation."""

    @property
    def label(self) -> str:
        """Name in tables, plots and the column `transport`."""
        return self.title or self.text

    @property
    def text(self) -> str:
        """The choice in the command line's notation.

        >>> TransportChoice("pfabric", settings={"window": 60, "window-max": 60}).text
        'pfabric:window=60,window-max=60'
        """
        parts = [self.preset] if self.preset else []
        parts += [f"{key}={format_value(value)}" for key, value in self.settings.items()]
        return ":".join([self.name, ",".join(parts)]) if parts else self.name

    @property
    def folder(self) -> str:
        """The label as the name of a folder."""
        return "".join(c if c.isalnum() or c in "-_=." else "-" for c in self.label)

    def of(self, plan: Plan) -> Plan:
        """Returns the plan with this transport. The keys of the plan's transport remain if the
        names are equal."""
        own = plan.get("transport", {})
        table: dict[str, TomlValue] = {"name": self.name}
        if isinstance(own, Mapping) and own.get("name") == self.name:
            table = dict(own)
        if self.preset:
            table["preset"] = self.preset
        overrides = [
            (key if key.startswith(FABRIC) else f"transport.{key}", value)
            for key, value in self.settings.items()
        ]
        return plan.with_(("transport", table), *overrides)


def transports(text: str, where: Location = TRANSPORTS) -> list[TransportChoice]:
    """Returns the transports of a list; `all` are those that the core defines except `python`.

    >>> [choice.label for choice in transports("dcpim:paper,beta=1.5,phost")]
    ['dcpim:paper,beta=1.5', 'phost']
    """
    if text.strip() == ALL:
        return [TransportChoice(name) for name in schema.names()]
    groups: list[list[str]] = []
    for item in split(text, where):
        if _is_setting(item):
            if not groups:
                raise where.error(expected=f"a name before {item}", got=text)
            groups[-1].append(item)
        else:
            groups.append([item])
    return distinct([_parsed(group, where) for group in groups], where)


def transports_of(
    values: str | Sequence["str | Table | Transport | TransportChoice"],
    where: Location = TRANSPORTS,
) -> list[TransportChoice]:
    """Returns the transports of a list of texts, tables, classes of `rm.transports`, or choices."""
    if isinstance(values, str):
        return transports(values, where)
    choices: list[TransportChoice] = []
    for value in values:
        if isinstance(value, TransportChoice):
            choices.append(value)
        elif isinstance(value, Transport):
            choices.append(_of_table(value.table(), where))
        elif isinstance(value, Mapping):
            choices.append(_of_table(value, where))
        elif isinstance(value, str):
            choices += transports(value, where)
        else:
            raise where.error(expected="texts or tables", got=repr(value))
    return distinct(choices, where)


def distinct(choices: list[TransportChoice], where: Location) -> list[TransportChoice]:
    """Returns the choices, which must have different labels."""
    labels = [choice.label for choice in choices]
    if not choices or len(set(labels)) < len(labels):
        raise where.error(expected="names that differ", got=", ".join(labels) or "none")
    folders = [choice.folder for choice in choices]
    for label, folder in zip(labels, folders, strict=True):
        if not any(character.isalnum() for character in folder):
            raise where.error(expected="names with a letter or digit", got=label)
        if folders.count(folder) > 1:
            raise where.error(expected="names of folders that differ", got=f"{folder} twice")
    return choices


def _is_setting(item: str) -> bool:
    return "=" in item and ":" not in item.partition("=")[0]


def _parsed(group: Sequence[str], where: Location) -> TransportChoice:
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
    return _choice(name, preset, settings, where)


def _of_table(table: Table, where: Location) -> TransportChoice:
    settings = dict(table)
    name, preset = settings.pop("name", None), settings.pop("preset", None)
    fabric = settings.pop("fabric", {})
    if not isinstance(name, str) or not isinstance(preset, str | None):
        raise where.error(
            expected="a text for name, and a text or none for preset", got=repr(dict(table))
        )
    if not isinstance(fabric, Mapping):
        raise where.at(name).at("fabric").error(expected="a table", got=repr(fabric))
    settings |= {f"{FABRIC}{key}": value for key, value in fabric.items()}
    return _choice(name, preset, settings, where)


def _endpoint(name: str, settings: Mapping[str, TomlValue]) -> str | None:
    """Returns the name of an endpoint in Python: its class and parameters."""
    endpoint, parameters = settings.get("endpoint"), settings.get("parameters", {})
    if name != schema.PYTHON or not isinstance(endpoint, str) or not isinstance(parameters, dict):
        return None
    words = [f"{key}={format_value(value)}" for key, value in parameters.items()]
    return ":".join([endpoint, *([",".join(words)] if words else [])])


def _choice(
    name: str, preset: str | None, settings: dict[str, TomlValue], where: Location
) -> TransportChoice:
    title = settings.pop(LABEL, None) or _endpoint(name, settings)
    if title is not None and not isinstance(title, str):
        raise where.at(name).at(LABEL).error(expected="a text", got=repr(title))
    return TransportChoice(name, preset, settings, title)

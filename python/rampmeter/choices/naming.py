"""Transports of comparisons and sweeps, with their names in tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rampmeter.choices.grammar import format_value
from rampmeter.plan import schema
from rampmeter.plan.plan import Plan
from rampmeter.plan.transport_names import (
    FABRIC,
    TransportName,
    is_transport,
    parse_transports,
    transport_table,
)
from rampmeter.text.arguments import shown
from rampmeter.text.locations import Location
from rampmeter.text.toml import Table, TomlValue

ALL: Final = "all"
LABEL: Final = "label"
"""The key with a transport's name in tables."""
TRANSPORTS: Final = Location(key="transports")
IDEAL: Final = "ideal"
OF_PACKETS: Final = frozenset(
    {"capture", "capture-hosts", "timeline", "timeline-hosts", "timeline-switches", "paths"}
    | {"rates-us", "timeline-until-us"}
)
"""Keys of `run` that record packets."""


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

        >>> TransportChoice("pfabric", settings={"window-initial": 60, "window-max": 60}).text
        'pfabric:window-initial=60,window-max=60'
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
        names are equal. The ideal has no packets, so it has no files of packets either."""
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
        run = plan.get("run", {})
        if self.name == IDEAL and isinstance(run, Mapping) and not OF_PACKETS.isdisjoint(run):
            rest = {key: value for key, value in run.items() if key not in OF_PACKETS}
            overrides.append(("run", rest))
        return plan.with_(("transport", table), *overrides)


def transports(text: str, where: Location = TRANSPORTS) -> list[TransportChoice]:
    """Returns the transports of a list; `all` are those that the core defines except `python`.

    >>> [choice.label for choice in transports("dcpim:paper,beta=1.5,phost")]
    ['dcpim:paper,beta=1.5', 'phost']
    """
    if text.strip() == ALL:
        return [TransportChoice(name) for name in schema.names()]
    choices = [_choice(*named, where) for named in parse_transports(text, where)]
    return distinct(choices, where)


def transports_of(
    values: "TransportName | TransportChoice | Sequence[TransportName | TransportChoice]",
    where: Location = TRANSPORTS,
) -> list[TransportChoice]:
    """Returns the transports of one name or of a list of names; see `TransportName`."""
    if isinstance(values, str):
        return transports(values, where)
    listed = values if isinstance(values, list | tuple) else [values]
    choices: list[TransportChoice] = []
    for value in listed:
        if isinstance(value, TransportChoice):
            choices.append(value)
        elif isinstance(value, str):
            choices += transports(value, where)
        elif is_transport(value):
            choices.append(_of_table(transport_table(value, where), where))
        else:
            raise where.error(expected="names, tables or classes of transports", got=shown(value))
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

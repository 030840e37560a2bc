"""Lists of transports as commands take them: `dcpim,phost:reference,pfabric:window=60`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rampmeter import schema
from rampmeter._core import PlanError
from rampmeter.plan import Plan, parse_value
from rampmeter.toml import TomlValue

ALL = "all"
"""What stands for every transport that plans may name."""


@dataclass(frozen=True)
class TransportChoice:
    """One transport of a list."""

    label: str
    """What tables and plots call it: its part of the list. No two of a list have the same."""
    name: str
    preset: str | None = None
    settings: Mapping[str, TomlValue] = field(default_factory=dict)
    """Keys of the transport table and their values."""

    @property
    def folder(self) -> str:
        """The label as the name of a folder."""
        return "".join(c if c.isalnum() or c in "-_=." else "-" for c in self.label)

    def of(self, plan: Plan) -> Plan:
        """The plan with this transport; keys of its own transport stay where that is the same."""
        table = dict(plan.get("transport", {}))
        if table.get("name") != self.name:
            table = {"name": self.name}
        if self.preset is not None:
            table["preset"] = self.preset
        table.update(self.settings)
        return plan.with_(("transport", table))


def transports(text: str) -> list[TransportChoice]:
    """The transports of a list.

    Items are separated by commas. An item is `name`, `name:preset` or `name:key=value`; items that
    are only `key=value` belong to the transport before them. `all` is every transport there is.
    Raises `PlanError` for anything else, and for two items that are the same.

    >>> [(one.label, one.settings) for one in transports("dcpim,pfabric:window=60,window-max=75")]
    [('dcpim', {}), ('pfabric:window=60,window-max=75', {'window': 60, 'window-max': 75})]
    """
    if text.strip() == ALL:
        return [TransportChoice(name, name) for name in schema.names()]
    groups: list[list[str]] = []
    for item in _items(text):
        if ":" not in item.partition("=")[0] and "=" in item:
            if not groups:
                raise PlanError(f"transports: expected a name before {item}, got {text}")
            groups[-1].append(item)
        else:
            groups.append([item])
    choices = [_choice(group) for group in groups]
    labels = [choice.label for choice in choices]
    for label in labels:
        if not label or labels.count(label) > 1:
            raise PlanError(f"transports: expected names that differ, got {text}")
    return choices


def _choice(items: list[str]) -> TransportChoice:
    name, colon, first = (part.strip() for part in items[0].partition(":"))
    preset = None
    settings = items[1:]
    if "=" in first:
        settings = [first, *settings]
    elif first:
        preset = first
    if (colon and not first) or (not name and (colon or settings)):
        raise PlanError(f"transports: expected name, name:preset or name:key=value, got {items[0]}")
    values = dict(_setting(setting) for setting in settings)
    if len(values) < len(settings):
        raise PlanError(f"transports: expected keys that differ, got {', '.join(settings)}")
    return TransportChoice(",".join(items), name, preset, values)


def _setting(text: str) -> tuple[str, TomlValue]:
    key, _, value = (part.strip() for part in text.partition("="))
    if not key or not value:
        raise PlanError(f"transports: expected key=value, got {text}")
    return key, parse_value(value)


def _items(text: str) -> Iterator[str]:
    """What stands between commas, except those in brackets, braces and quotes."""
    depth, quote, start = 0, "", 0
    for idx, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "[{":
            depth += 1
        elif c in "]}":
            depth -= 1
        elif c == "," and depth == 0:
            yield text[start:idx].strip()
            start = idx + 1
    yield text[start:].strip()

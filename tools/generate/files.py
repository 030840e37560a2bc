"""Generates files from the plans and transports that the core defines, in a checkout.

`python -m tools.generate` writes:

- `rampmeter.transports`, a class for each transport, with the derivations of its page;
- `rampmeter.plan_tables`, a class for each table of a plan;
- the tables of the keys of transports in `docs/plans/transport.md`;
- the tables of topologies and traffic patterns in `docs/plans/`;
- the tables of the other keys of plans, sweeps and nodes, in `docs/plans` and
  `docs/reference/rampd.md`;
- the table that compares transports in `docs/protocols.md`;
- the table of metrics in `docs/howto/figures.md`;
- the tables of stages in `docs/protocols/`;
- the totals of the ledger in `README.md`;
- sentences in notes of figures whose measured values are older than results.

A test compares all with the core and the ledger.
"""

import functools
import re
import subprocess
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rampmeter.papers import list_figures, load_figure
from rampmeter.papers.ledger import Ledger
from rampmeter.papers.metrics import METRICS
from rampmeter.papers.status import NAMES, FigureStatus, columns, totals
from rampmeter.plan.schema import PYTHON, KeyInfo, TransportInfo, plan_schema, transports
from rampmeter.text.toml import literal
from tools.generate import sources
from tools.generate.comparison import comparison_of_transports
from tools.generate.derivations import derivations
from tools.generate.docstrings import class_docstring, field_text
from tools.generate.notes import notes
from tools.generate.plan_tables import plan_tables
from tools.generate.reference import key_tables, node_tables
from tools.generate.stages import BLOCK, stage_pages

COMMAND: Final = "python -m tools.generate"
ROOT: Final = Path(__file__).parents[2]
CLASSES: Final = ROOT / "python/rampmeter/transports.py"
PLAN_TABLES: Final = ROOT / "python/rampmeter/plan_tables.py"
PAGE: Final = ROOT / "docs/plans/transport.md"
TOPOLOGIES: Final = ROOT / "docs/plans/topology.md"
WORKLOADS: Final = ROOT / "docs/plans/workload.md"
PROTOCOLS: Final = ROOT / "docs/protocols.md"
FIGURES: Final = ROOT / "docs/howto/figures.md"
README: Final = ROOT / "README.md"
NODES: Final = ROOT / "docs/reference/rampd.md"
PLANS: Final = ROOT / "docs/plans"

SYMBOLS: Final = {"dcpim": {"r": "matching_rounds", "k": "channels"}}
"""Short names that classes have for keys, as papers do."""

ROUNDS: Final = ("pattern", "start-us", "rounds", "period-us", "flows", "until-us")
"""Keys of traffic patterns that have a table or a sentence of their own."""

COMMON: Final = ("kind", "propagation-ns", "switch-ns", "host-ns")
"""Keys of topologies that have a table of their own."""
COLUMNS: Final = 100
UNLIMITED: Final = 2**63
TYPES: Final = {
    "integer": "int",
    "number": "float",
    "bool": "bool",
    "list": "list[int]",
    "text": "str",
    "table": "Table",
}


def main() -> None:
    """Writes the files again."""
    for file, text in files().items():
        file.write_text(text, encoding="utf-8")


@functools.cache
def files() -> dict[Path, str]:
    """Returns the expected contents of the generated files, which are computed once."""
    return {
        CLASSES: format_module(classes(), CLASSES),
        PLAN_TABLES: format_module(plan_tables(COMMAND), PLAN_TABLES),
        PAGE: replace_block(PAGE, "transports", tables()),
        TOPOLOGIES: replace_block(TOPOLOGIES, "topologies", topologies()),
        WORKLOADS: replace_block(WORKLOADS, "patterns", patterns()),
        PROTOCOLS: replace_block(PROTOCOLS, "comparison", comparison_of_transports()),
        FIGURES: replace_block(FIGURES, "metrics", metrics()),
        README: replace_block(README, "ledger", ledger_totals()),
        NODES: replace_blocks(NODES, node_tables(ROOT)),
        **{
            PLANS / f"{name}.md": replace_blocks(PLANS / f"{name}.md", blocks)
            for name, blocks in key_tables().items()
        },
        **{page: replace_block(page, BLOCK, table) for page, table in stage_pages(ROOT)},
        **notes(ROOT),
    }


def replace_block(page: Path, name: str, text: str) -> str:
    """Returns a page with `text` between `<!-- name -->` and `<!-- /name -->`."""
    return replace_blocks(page, {name: text})


def replace_blocks(page: Path, blocks: Mapping[str, str]) -> str:
    """Returns a page with each text between its comments, as `replace_block` does with one."""
    whole = page.read_text(encoding="utf-8")
    for name, text in blocks.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
        before, opened, rest = whole.partition(begin)
        _, closed, after = rest.partition(end)
        if not opened or not closed:
            raise ValueError(f"{page}: expected {begin.strip()} and {end.strip()}")
        whole = f"{before}{begin}\n{text}\n{end}{after}"
    return whole


def topologies() -> str:
    """Returns the table of kinds of topologies: keys with their defaults, and a description."""
    lines = ["| `kind` | keys (defaults) | network |", "|---|---|---|"]
    for kind, about in variants("TopologySpec", "kind").items():
        lines.append(f"| `{kind}` | {keys_of(about, COMMON)} | {about['description']} |")
    return "\n".join(lines) + "\n"


def patterns() -> str:
    """Returns the table of traffic patterns: keys with their defaults, and a description."""
    named = plan_schema()["definitions"]["WorkloadSpec"]["properties"]["pattern"]["oneOf"]
    lines = ["| `pattern` | keys (defaults) | flows |", "|---|---|---|"]
    for pattern, about in variants("WorkloadSpec", "pattern").items():
        text = next(one["description"] for one in named if one["const"] == pattern)
        rounds = ", rounds" if "period-us" in about["properties"] else ""
        lines.append(f"| `{pattern}` | {keys_of(about, ROUNDS)}{rounds} | {text} |")
    return "\n".join(lines) + "\n"


def variants(name: str, tag: str) -> dict[str, dict[str, Any]]:
    """Returns the definitions of a table by the value of its key `tag`."""
    definitions = plan_schema()["definitions"]
    return {
        choice["if"]["properties"][tag]["const"]: definitions[
            choice["then"]["$ref"].rpartition("/")[2]
        ]
        for choice in definitions[name]["allOf"]
    }


def keys_of(about: Mapping[str, Any], common: Collection[str]) -> str:
    """Returns the keys of a table with their defaults, required ones first."""
    fields = {key: of for key, of in about["properties"].items() if key not in common}
    first = [key for key in about["required"] if key in fields]
    return ", ".join(
        f"`{key}`" + (f" ({literal(fields[key]['default'])})" if "default" in fields[key] else "")
        for key in dict.fromkeys([*first, *fields])
    )


def metrics() -> str:
    """Returns the table of metrics of figures; those with one definition share a row."""
    names: dict[str, list[str]] = {}
    for name, metric in METRICS.items():
        names.setdefault(metric.definition, []).append(f"`{name}`")
    rows = [f"| {', '.join(of)} | {definition} |" for definition, of in names.items()]
    return "\n".join(["| metric | definition |", "|---|---|", *rows]) + "\n"


def ledger_totals() -> str:
    """Returns a sentence with the totals of the verdicts in the ledger."""
    ledger = Ledger(ROOT / "papers")
    statuses = [FigureStatus.of(load_figure(one), ledger) for one in list_figures(ROOT / "papers")]
    _, counts, hours = totals(statuses)[-1]
    verdicts = ", ".join(
        f"{count} {name}" for name, count in zip(NAMES, columns(counts, hours), strict=False)
    ).replace("- ", "0 ")
    return f"{sum(counts.values())} values and claims: {verdicts}.\n"


def format_module(module: str, file: Path) -> str:
    """Returns the text of a module as the formatter writes it in `file`."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(file)]
    done = subprocess.run(
        command, cwd=ROOT, input=module, capture_output=True, text=True, check=True
    )
    return done.stdout


def class_name(about: TransportInfo) -> str:
    """Returns the name of a transport's class, after its title: dcPIM is `DcPim`."""
    title = about["title"].removeprefix("the ")
    words = re.sub(r"(?<=[A-Z])[A-Z]+$", lambda run: run[0].lower(), title).split()
    return "".join(word[:1].upper() + word[1:] for word in words)


def classes() -> str:
    """Returns the module with a class for each transport, not yet formatted."""
    names = sorted(class_name(about) for about in transports())
    header = f'''\
"""The transports that a plan may name: every key of its table is a field.

An omitted key has the value of the preset. Made by `{COMMAND}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from rampmeter.plan.base import Transport
from rampmeter.text.toml import Table

__all__ = {names}
'''
    return "\n\n".join([header, *(_class(about) for about in transports())])


def _class(about: TransportInfo) -> str:
    name = about["name"]
    lines = [
        "@dataclass(frozen=True, kw_only=True, repr=False)",
        f"class {class_name(about)}(Transport):",
        class_docstring(about["summary"], _field_texts(about), _page(name)),
    ]
    symbols = SYMBOLS.get(name, {})
    if symbols:
        lines += ["", f"    SYMBOLS: ClassVar[Mapping[str, str]] = {symbols}"]
    presets = ", ".join(repr(preset) for preset, _ in about["presets"])
    lines += [
        "",
        f"    name: str = field(default={name!r}, init=False)",
        f"    preset: Literal[{presets}] | None = None",
    ]
    types = {key["name"]: _type(key) for key in about["keys"]}
    types |= {symbol: types[key.replace("_", "-")] for symbol, key in symbols.items()}
    if about["has_round_trips"]:
        types |= dict.fromkeys(ROUND_TRIPS, "float | str")
    if about["best_effort"]:
        types["best-effort"] = "Transport"
    lines += [f"    {_field(key)}: {of} | None = None" for key, of in types.items()]
    return "\n".join(lines) + "\n"


ROUND_TRIPS: Final = {
    "control-rtt-us": "Round trip of a control packet, for the transport's derived values.",
    "data-rtt-us": "Round trip of a full packet, for the transport's derived values.",
}


UNIT: Final = re.compile(r"(?:^|-)(?:ms|us|ns|ps|gbps|mbps|bps|bytes)$")
"""Ending of keys that accept texts with units."""


def _type(key: KeyInfo) -> str:
    """Returns the type of a field; quantities may be texts with units."""
    kind = key["kind"]["type"]
    of = TYPES.get(kind) or f"Literal{_choices(key)}"
    if UNIT.search(key["name"]):
        return "list[int] | list[str]" if kind == "list" else f"{of} | str"
    return of


def _field(key: str) -> str:
    return key.replace("-", "_")


def _page(name: str) -> str:
    return "docs/howto/python-transport.md" if name == PYTHON else f"docs/protocols/{name}.md"


def _field_texts(about: TransportInfo) -> Iterator[tuple[str, str]]:
    """Yields the fields of a transport's class, each with its meaning, unit, range and default."""
    yield "preset", f"Preset of the values of omitted keys: {_presets(about)}."
    of_page = derivations(ROOT / _page(about["name"]))
    for key in about["keys"]:
        values = [f"values: {_range(key)}", f"default: {_default(about, key)}"]
        text = field_text(key["name"], key["doc"], values)
        more = (of_page.get(key["name"]), sources.of_transport(about["name"], key["name"]))
        yield _field(key["name"]), " ".join([text, *filter(None, more)])
    for symbol, key_name in SYMBOLS.get(about["name"], {}).items():
        yield symbol, f"The paper's name of `{key_name}`."
    if about["has_round_trips"]:
        for key_name, doc in ROUND_TRIPS.items():
            text = field_text(key_name, doc, ["default: the network's"])
            yield _field(key_name), f"{text} {sources.of_transport(about['name'], key_name)}"
    if about["best_effort"]:
        lower = " or ".join(_lower(about))
        yield "best_effort", f"The transport of all tenants but the first: {lower}."
    yield "options", "Further keys, by their names in plans."


def _default(about: TransportInfo, key: KeyInfo) -> str:
    """Returns the default of a key; if presets differ, that of each."""
    absent = "none" if key["kind"]["type"] == "text" else "derived"
    values = {name: _value(of.get(key["name"]), absent) for name, of in about["presets"]}
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"{value} ({name})" for name, value in values.items())


def _choices(key: KeyInfo) -> str:
    return str([name for name, _ in key["kind"]["names"]])


def _lower(about: TransportInfo) -> list[str]:
    return [class_name(lower) for lower in transports() if lower["name"] in about["best_effort"]]


def _presets(about: TransportInfo) -> str:
    first, *rest = (f"`{name}`" for name, _ in about["presets"])
    return ", ".join([f"{first} (the default)", *rest])


def tables() -> str:
    """Returns the tables of the documentation, one for each transport."""
    names = [f"`{about['name']}`" for about in transports()]
    text = f"`name` is one of {', '.join(names)}. `preset` determines the values of omitted keys."
    head = "\n".join(textwrap.wrap(text, COLUMNS, break_on_hyphens=False))
    return "\n".join([head, "", *(_table(about) for about in transports())])


def _table(about: TransportInfo) -> str:
    presets = about["presets"]
    heads = [f"`{name}`" for name, _ in presets]
    lines = [
        f"## `{about['name']}`",
        "",
        *textwrap.wrap(about["summary"], COLUMNS, break_on_hyphens=False),
        "",
        _row("key", *heads, "values", ""),
        _row(*["---"] * (len(heads) + 3), space=""),
    ]
    for key in about["keys"]:
        absent = "none" if key["kind"]["type"] == "text" else "derived"
        values = [_value(values.get(key["name"]), absent) for _, values in presets]
        lines.append(_row(f"`{key['name']}`", *values, _range(key), key["doc"]))
    own = ["the network's"] * len(presets)
    if about["has_round_trips"]:
        for name, doc in ROUND_TRIPS.items():
            lines.append(_row(f"`{name}`", *own, "0.001 to 100000000", doc))
    if about["best_effort"]:
        lower = " or ".join(f"`{name}`" for name in about["best_effort"])
        none = ["none"] * len(presets)
        doc = "The transport of all tenants but the first, in lower classes."
        lines.append(_row("`best-effort`", *none, f"a table of {lower}", doc))
    for key in about["keys"]:
        lines += _documented_choices(key)
    return "\n".join(lines) + "\n"


def _documented_choices(key: KeyInfo) -> list[str]:
    """Returns the lines of a list of a key's values; none if they are not documented."""
    choices = [(name, doc) for name, doc in key["kind"].get("names", []) if doc]
    if not choices:
        return []
    lines = ["", f"Values of `{key['name']}`:", ""]
    for name, doc in choices:
        text = f"- `{name}`: {doc}"
        lines += textwrap.wrap(text, COLUMNS, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _row(*cells: str, space: str = " ") -> str:
    return "|" + "|".join(f"{space}{cell}{space}" for cell in cells) + "|"


def _value(value: Any, absent: str) -> str:
    """Returns a value as in plans, texts without quotes; `absent` for a missing one."""
    if value is None:
        return absent
    return f"`{value}`" if isinstance(value, str) else literal(value)


def _range(key: KeyInfo) -> str:
    """Returns the range of a key's values, in words."""
    kind = key["kind"]
    match kind["type"]:
        case "choice":
            return ", ".join(f"`{name}`" for name, _ in kind["names"])
        case "bool":
            return "true or false"
        case "text" | "table":
            return f"a {kind['type']}"
        case "list":
            bounds = f"{_number(kind['min'])} to {_number(kind['max'])}"
            return f"{kind['length']} whole numbers from {bounds} that ascend"
        case _ if kind["max"] >= UNLIMITED:
            return f"at least {kind['min']:g}"
        case _:
            return f"{_number(kind['min'])} to {_number(kind['max'])}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


if __name__ == "__main__":
    main()

"""Tables of keys in the reference of plans, sweeps and nodes, of the code's documentation.

Columns are the key, its default and its meaning; those of nodes have the effect of a reload too.
"""

import functools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from rampmeter.plan.plan import Plan
from rampmeter.plan.schema import plan_schema
from rampmeter.sweeps.schema import SWEEP
from rampmeter.text.toml import literal
from tools.generate.rust_tables import config_keys

COLUMNS: Final = 100
CONFIGURATION: Final = "crates/rampd/src/config/tables.rs"
RELOADS: Final = "crates/rampd/src/config.rs"
NODE_TABLES: Final = ("node", "network", "peer", "programs", "service")
"""Tables of a node's configuration; the structure of `node` is `NodeTable`."""


class KeyTable(NamedTuple):
    """A table of keys in a page."""

    page: str
    block: str
    definition: str
    """The definition in the schema of plans."""
    keys: tuple[str, ...] = ()
    """Its keys, in the page's order; all keys that no other table has, if empty."""


KEY_TABLES: Final = (
    KeyTable(
        "fabric",
        "buffers",
        "FabricSpec",
        (
            "buffer-bytes", "shared-buffer-bytes", "alpha", "overflow", "scheduling",
            "express-bytes", "buffer-cell-bytes", "drop-unscheduled-above-bytes", "interface",
        ),
    ),
    KeyTable(
        "fabric",
        "marks",
        "FabricSpec",
        ("ecn-bytes", "ecn-max-bytes", "ecn-max-probability", "ecn-ports"),
    ),
    KeyTable(
        "fabric",
        "trimming",
        "FabricSpec",
        ("trim-bytes", "trim-choice", "header-ratio", "header-queue-bytes", "header-overflow"),
    ),
    KeyTable("fabric", "paths", "FabricSpec"),
    KeyTable("fabric", "pauses", "PfcSpec"),
    KeyTable(
        "run",
        "records",
        "RunSpec",
        (
            "capture", "capture-hosts", "capture-packets", "timeline", "timeline-from-us",
            "timeline-until-us", "timeline-events", "timeline-hosts", "timeline-switches",
        ),
    ),
    KeyTable("run", "run", "RunSpec"),
    KeyTable("run", "measure", "MeasureSpec"),
    KeyTable("run", "faults", "FaultsSpec"),
    KeyTable("run", "clocks", "ClocksSpec"),
)  # fmt: skip

DERIVED: Final = (
    "sample-us",
    "ecn-max-bytes",
    "header-queue-bytes",
    "hysteresis-bytes",
    "headroom-bytes",
    "threshold",
    "classes",
)
"""Keys whose default follows from others, as their documentation states."""

_SHARED: Final = {"shared-buffer-bytes": 32_000_000}


def key_tables() -> dict[str, dict[str, str]]:
    """Returns the blocks of the pages in `docs/plans`, by the page's name."""
    pages: dict[str, dict[str, str]] = {"sweep": {"keys": _sweep_table()}}
    listed = {(table.definition, key) for table in KEY_TABLES for key in table.keys}
    for table in KEY_TABLES:
        properties = plan_schema()["definitions"][table.definition]["properties"]
        rest = [key for key in properties if (table.definition, key) not in listed]
        keys = table.keys or rest
        pages.setdefault(table.page, {})[table.block] = _key_table(properties, keys)
    return pages


def node_tables(root: Path) -> dict[str, str]:
    """Returns the blocks of `docs/reference/rampd.md`."""
    effects = _reload_effects(root / RELOADS)
    blocks = {}
    for table in NODE_TABLES:
        has_effects = table in effects
        rows = [("key", "default", *(("reload",) if has_effects else ()), "meaning")]
        for key in config_keys(root / CONFIGURATION, f"{table.capitalize()}Table"):
            default = f"`{key.default}`" if key.default.startswith('"') else key.default
            effect = (effects[table][key.name],) if has_effects else ()
            rows.append((f"`{key.name}`", default, *effect, key.doc))
        blocks[table] = _table(rows)
    return blocks


def _reload_effects(file: Path) -> dict[str, dict[str, str]]:
    """Returns the effect of a change of each key at a reload, as the test of reloads has it."""
    text = file.read_text(encoding="utf-8")
    effects = {}
    for table in ("node", "network"):
        _, _, rest = text.partition(f"const {table.upper()}: Keys = &[")
        entries = re.findall(
            r'\(\s*"([\w-]+)",[^()]*?\b(Applied|Restart),?\s*\)', rest.split("];")[0]
        )
        effects[table] = {key: effect.lower() for key, effect in entries}
    return effects


def _sweep_table() -> str:
    rows = [("key", "meaning")]
    rows += [(f"`{key}`", about["description"]) for key, about in SWEEP["properties"].items()]
    return _table(rows)


def _key_table(properties: Mapping[str, Any], keys: Sequence[str]) -> str:
    rows = [("key", "default", "meaning")]
    for key in keys:
        rows.append((f"`{key}`", key_default(key, properties), _meaning(properties[key])))
    lists = "".join(_choices(key, properties[key]) for key in keys)
    return _table(rows) + lists


def key_default(key: str, properties: Mapping[str, Any]) -> str:
    """Returns the default of a key of a table: of the schema, or of a plan without it."""
    about = properties[key]
    meaning, value = _meaning(about), about.get("default")
    defaults = _fabric_defaults(is_pfc="xoff-bytes" in properties)
    if key in DERIVED:
        return "derived"
    if value is None:
        value = defaults.get(key)
    if isinstance(value, str):
        return f"`{value}`"
    if value is not None and value != []:
        return literal(value).removesuffix(".0")
    if about.get("type") == "boolean":
        return "false"
    written = re.search(r"by default (\d+)\.$", meaning)
    return written[1] if written else "all" if "All if left" in meaning else "none"


@functools.cache
def _fabric_defaults(*, is_pfc: bool) -> Mapping[str, Any]:
    """Returns the values of the fabric's keys, or of its pauses', if no transport needs others."""
    if is_pfc:
        pauses: Mapping[str, Any] = _fabric("dctcp", {**_SHARED, "pfc": {"threshold": "dynamic"}})[
            "pfc"
        ]
        return pauses
    plain, trims = _fabric("dcpim", {}), _fabric("ndp", {})
    of_trims = {key: trims[key] for key in plain if key.startswith(("trim-", "header-"))}
    return {**plain, **of_trims, "alpha": _fabric("dcpim", _SHARED)["alpha"]}


def _fabric(transport: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fabric of a plan with these keys, as manifests have it."""
    plan = Plan.of(
        topology={"kind": "star", "hosts": 8},
        workload={"pattern": "all-to-all", "sizes": "imc10", "load": 0.5, "flows": 1},
        transport={"name": transport},
        fabric=keys,
    )
    fabric: dict[str, Any] = plan.check()["fabric"]
    return fabric


def _meaning(about: Mapping[str, Any]) -> str:
    return " ".join(about["description"].split())


def _choices(key: str, about: Mapping[str, Any]) -> str:
    """Returns a list of the values of a key, if they are documented names."""
    return "\n" + "\n".join(lines) + "\n" if (lines := list(_choice_lines(key, about))) else ""


def _choice_lines(key: str, about: Mapping[str, Any]) -> Iterator[str]:
    [inner] = about.get("allOf", about.get("anyOf", [about])[:1])
    if "$ref" not in inner:
        return
    forms = plan_schema()["definitions"][inner["$ref"].rsplit("/", 1)[1]].get("oneOf", [])
    named = [form for form in forms if "const" in form and "description" in form]
    if not named:
        return
    yield from (f"Values of `{key}`:", "")
    for form in named:
        text = f"- `{form['const']}`: {form['description']}"
        yield from textwrap.wrap(text, COLUMNS, subsequent_indent="  ", break_on_hyphens=False)


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *rest]) + "\n"

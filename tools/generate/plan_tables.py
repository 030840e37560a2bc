"""Generates `rampmeter.plan_tables`, a class for each table of a plan, of the schema of plans."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from rampmeter.plan.schema import plan_schema
from rampmeter.text.toml import literal
from tools.generate import sources
from tools.generate.docstrings import class_docstring, field_text
from tools.generate.reference import key_default

Schema: TypeAlias = Mapping[str, Any]

TABLES: Final = {
    "PfcSpec": "Pfc",
    "FabricSpec": "Fabric",
    "LinkSpec": "Link",
    "RunSpec": "RunOptions",
    "MeasureSpec": "Measure",
    "DeadlinesSpec": "Deadlines",
    "ClocksSpec": "Clocks",
    "LinkFaultSpec": "LinkFault",
    "OutageSpec": "Outage",
    "LinkChangeSpec": "LinkChange",
    "FaultsSpec": "Faults",
    "LoadSpec": "Load",
    "NamesSpec": "Names",
}
"""Classes of definitions, those that others refer to first."""

TAGGED: Final = {"TopologySpec": "kind", "WorkloadSpec": "pattern"}
"""Definitions with a class for each form, and the key that selects the form."""

WITH_DEFAULTS: Final = ("Fabric", "Pfc", "RunOptions", "Measure", "Faults", "Clocks")
"""Classes whose keys have defaults that the schema lacks, as in the tables of documents."""

NAMES: Final = {"file": "TopologyFile"}
"""Classes that are not named as their form is."""

TYPES: Final = {
    "LinkName": "str | int",
    "NodeName": "int | str",
    "HostSpec": "int | str",
    "HostsSpec": "Hosts",
    "PortBytesSpec": "int | str | dict[str, int | str]",
    "SizeSpec": "Sizes",
    "WorkloadSpec": "PlanTable | Table",
    **{definition: f"{name} | Table" for definition, name in TABLES.items()},
}
"""Types of fields that refer to a definition."""

PLAIN: Final = {"integer": "int", "number": "float", "boolean": "bool", "string": "str"}
PATHS: Final = ("cdf", "file", "groups")

HEADER: Final = '''\
"""The tables of a plan as types: every key is a field.

An omitted key has the default of the simulator. Made by `{command}`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Literal, TypeAlias

from rampmeter.plan.base import Hosts, PlanTable, Sizes
from rampmeter.text.toml import Table

__all__ = {names}
'''


def plan_tables(command: str) -> str:
    """Returns the module, not yet formatted; it names `command` as its maker."""
    definitions = plan_schema()["definitions"]
    classes = dict(_classes(definitions))
    choices = [
        f"{name}: TypeAlias = {_choice(schema)}\n"
        for name, schema in definitions.items()
        if name not in TYPES and name not in TAGGED and _words(schema)
    ]
    header = HEADER.format(command=command, names=sorted(classes))
    return "\n".join([header, *choices, "", *classes.values()])


def _classes(definitions: Mapping[str, Schema]) -> Iterator[tuple[str, str]]:
    """Yields name and text of each class."""
    for definition, name in TABLES.items():
        yield name, _class(name, definitions[definition], None)
    for definition, tag in TAGGED.items():
        for choice in definitions[definition]["allOf"]:
            form = definitions[choice["then"]["$ref"].rsplit("/", 1)[1]]
            word = form["properties"][tag]["const"]
            name = NAMES.get(word) or "".join(part.capitalize() for part in word.split("-"))
            yield name, _class(name, form, (tag, word))


def _class(name: str, schema: Schema, tag: tuple[str, str] | None) -> str:
    lines = ["@dataclass(frozen=True, kw_only=True, repr=False)", f"class {name}(PlanTable):"]
    needed = [key for key in schema.get("required", []) if not tag or key != tag[0]]
    others = [key for key in schema["properties"] if key not in needed and key != (tag or [""])[0]]
    keys = [*needed, *sorted(others)]
    docs = [(_field(key), _field_text(key, schema["properties"], name)) for key in keys]
    note = f" {sources.OTHERS}" if sources.of_class(name) else ""
    summary = _line(schema["description"]) + note
    lines.append(class_docstring(summary, docs, _page(name, tag)))
    if tag:
        lines += ["", f"    TAG = {tag!r}"]
    for key in keys:
        of = _type(key, schema["properties"][key])
        default = "" if key in needed else " | None = None"
        lines.append(f"    {_field(key)}: {of}{default}")
    return "\n".join(lines) + "\n"


def _field(key: str) -> str:
    return key.replace("-", "_")


def _line(text: str) -> str:
    return " ".join(text.split())


def _page(name: str, tag: tuple[str, str] | None) -> str:
    """Returns the page of the documentation that describes a class."""
    if tag is not None:
        return "docs/plans/topology.md" if tag[0] == "kind" else "docs/plans/workload.md"
    pages = {"Fabric": "fabric", "Pfc": "fabric", "Link": "topology", "Load": "transport"}
    return f"docs/plans/{pages.get(name, 'run')}.md"


def _field_text(key: str, properties: Schema, name: str) -> str:
    """Returns the meaning of a key, its unit and values, and its default if it has a fixed one."""
    schema = properties[key]
    facts = []
    [inner] = schema.get("allOf", [schema])
    if "$ref" in inner:
        definition = plan_schema()["definitions"][str(inner["$ref"]).rsplit("/", 1)[1]]
        if words := _words(definition):
            facts.append(f"values: {', '.join(f'`{word}`' for word in words)}")
    if name in WITH_DEFAULTS:
        facts.append(f"default: {key_default(key, properties)}")
    elif schema.get("default") not in (None, [], {}):
        facts.append(f"default: {literal(schema['default'])}")
    text = field_text(key, _line(schema.get("description", "")), facts)
    return " ".join(filter(None, (text, sources.of_table(name, key))))


def _type(key: str, schema: Schema) -> str:
    """Returns the type of a field."""
    if key in PATHS and schema.get("type") != "integer":
        return "str | PathLike[str]"
    [inner] = schema.get("allOf", [schema])
    if "$ref" in inner:
        definition = str(inner["$ref"]).rsplit("/", 1)[1]
        return TYPES.get(definition, definition)
    if inner["type"] == "array":
        of = _type("", inner["items"])
        length = inner.get("minItems")
        return f"tuple[{', '.join([of] * length)}]" if length else f"Sequence[{of}]"
    if inner["type"] == "object":
        return f"Mapping[str, {_type('', inner['additionalProperties'])}]"
    kinds = [inner["type"]] if isinstance(inner["type"], str) else inner["type"]
    return " | ".join(PLAIN[kind] for kind in kinds)


def _choice(schema: Schema) -> str:
    """Returns the type of one of several names, or of those or a number."""
    has_number = any(form.get("type") == "integer" for form in _forms(schema))
    return f"{'int | ' if has_number else ''}Literal{_words(schema)}"


def _words(schema: Schema) -> list[str]:
    """Returns the names that a value may be."""
    return [
        word for form in _forms(schema) for word in form.get("enum", [form.get("const")]) if word
    ]


def _forms(schema: Schema) -> list[Schema]:
    return schema.get("oneOf") or schema.get("anyOf") or [schema]

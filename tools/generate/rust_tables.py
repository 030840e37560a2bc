"""Tables of a configuration in Rust: structures of serde with documentation and defaults."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FIELD: Final = re.compile(
    r"(?P<doc>(?:^ +///[^\n]*\n)+)"
    r"(?P<serde>(?:^ +#\[[^\n]*\]\n)*)"
    r"^ +pub(?:\([a-z]+\))? (?P<name>\w+): (?P<type>[^\n]+),\n",
    re.MULTILINE,
)
_FUNCTION: Final = r"^fn {}\(\) -> \w+ \{{\n(?:    //[^\n]*\n)*    (?P<value>[^\n]+)\n\}}"


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A key of a table."""

    name: str
    default: str
    """Default as the file has it, or `required`, `none` or `derived`."""
    doc: str


def config_keys(file: Path, structure: str) -> Iterator[ConfigKey]:
    """Yields the keys of a table, in the order of the structure's fields."""
    text = file.read_text(encoding="utf-8")
    body = re.search(rf"^pub\(crate\) struct {structure} {{\n(.*?)^}}", text, re.M | re.S)
    if body is None:
        raise ValueError(f"{file}: expected the structure {structure}")
    for field in _FIELD.finditer(body[1]):
        doc = " ".join(
            line.strip().removeprefix("///").strip() for line in field["doc"].split("\n")
        )
        default = _default(text, field["type"], field["serde"])
        if default == "none" and "by default" in doc.lower():
            written = re.search(r"by default (\d+)\.$", doc.strip())
            default = written[1] if written else "derived"
        yield ConfigKey(field["name"].replace("_", "-"), default, doc.strip())


def _default(text: str, of: str, serde: str) -> str:
    """Returns the default of a field of a type, with these attributes."""
    if of.startswith("Option<"):
        return "none"
    if named := re.search(r'default = "(\w+)"', serde):
        function = re.search(_FUNCTION.format(named[1]), text, re.MULTILINE)
        if function is None:
            raise ValueError(f"{named[1]}: expected a function with one value")
        return function["value"].replace("_", "").removesuffix(".0")
    if "default" not in serde:
        return "required"
    choices = re.search(rf"^pub\(crate\) enum {of} {{\n(.*?)^}}", text, re.M | re.S)
    if of == "bool":
        return "false"
    marked = choices and re.search(r"#\[default\]\n +(\w+),", choices[1])
    return f'"{_kebab(marked[1])}"' if marked else "none"


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()

"""Licences and sources of all dependencies, by the rules of `deny.toml`; third-party notices."""

import re
import tomllib
from typing import Any

import pytest

from tools import notices

from .conftest import ROOT

RULES = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
ALLOWED = frozenset(RULES["licenses"]["allow"])
EXCEPTIONS = {one["crate"]: frozenset(one["allow"]) for one in RULES["licenses"]["exceptions"]}
LOCKS = (".", "fuzz", "examples/own-transport")


def is_allowed(expression: str, allowed: frozenset[str]) -> bool:
    """Evaluates an SPDX expression. Older packages write `/` for OR."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def either() -> bool:
        result = both()
        while words and words[0] == "OR":
            words.pop(0)
            result |= both()
        return result

    def both() -> bool:
        result = one()
        while words and words[0] == "AND":
            words.pop(0)
            result &= one()
        return result

    def one() -> bool:
        name = words.pop(0)
        if name == "(":
            result = either()
            assert words.pop(0) == ")", expression
            return result
        if words and words[0] == "WITH":
            name = f"{name} WITH {words[1]}"
            del words[:2]
        return name in allowed

    result = either()
    assert not words, expression
    return result


def faults_of(packages: list[dict[str, Any]]) -> list[str]:
    """Returns a line for each package that breaks a rule of `deny.toml`."""
    sources = {f"registry+{address}" for address in RULES["sources"]["allow-registry"]}
    faults = []
    for one in packages:
        name = f"{one['name']} {one['version']}"
        if one["source"] is None and one["publish"] == []:
            continue
        if one["source"] not in {None, *sources}:
            faults.append(f"{name}: source {one['source']}")
        allowed = ALLOWED | EXCEPTIONS.get(one["name"], frozenset())
        if not one["license"] or not is_allowed(one["license"], allowed):
            faults.append(f"{name}: licence {one['license']}")
    return faults


@pytest.mark.parametrize("lock", LOCKS)
def test_packages_have_allowed_licences_and_sources(lock: str) -> None:
    packages = notices.metadata(ROOT / lock / "Cargo.toml")
    assert len(packages) > 50
    assert not faults_of(packages)


def test_packages_without_an_allowed_licence_or_source_are_found() -> None:
    package = {"name": "a", "version": "1", "source": None, "publish": None, "license": "MIT"}
    assert not faults_of([package, package | {"license": None, "publish": []}])
    assert faults_of([package | {"license": None}]) == ["a 1: licence None"]
    assert faults_of([package | {"license": "GPL-3.0"}]) == ["a 1: licence GPL-3.0"]
    assert faults_of([package | {"source": "git+https://b"}]) == ["a 1: source git+https://b"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("GPL-3.0 OR MIT", True),
        ("GPL-3.0/MIT", True),
        ("GPL-3.0 AND MIT", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("Apache-2.0 WITH GCC-exception-3.1", False),
        ("MIT AND (GPL-3.0 OR ISC)", True),
        ("(MIT OR ISC) AND GPL-3.0", False),
        ("GPL-3.0 OR MIT AND ISC", True),
    ],
)
def test_licence_expressions_are_evaluated(expression: str, expected: bool) -> None:  # noqa: FBT001
    allowed = frozenset({"MIT", "ISC", "Apache-2.0 WITH LLVM-exception"})
    assert is_allowed(expression, allowed) is expected


def test_no_product_contains_a_package_with_an_exception() -> None:
    linked = {name for crate in notices.PRODUCTS for name, _ in notices.linked(crate)}
    assert not linked & set(EXCEPTIONS)


def test_notices_have_a_row_for_each_linked_package_and_each_text_once() -> None:
    packages = notices.packages_of_products()
    text = notices.notices(packages)
    head, _, texts = text.partition("\n## Licence texts\n")
    rows = re.findall(r"^\| ([\w-]+) \| ([\w.+-]+) \| ([^|]+) \| \S+ \| [^|]+ \|$", head, re.M)
    assert [(name, version) for name, version, _ in rows[1:]] == [
        (one.name, one.version) for one in packages
    ]
    names = {one.name for one in packages}
    assert {"pyo3", "parquet", "rustls", "libc"} & names
    assert not {name for name in names if name.startswith("ramp")}
    blocks = re.findall(r"^(````?)text\n(.*?)^\1$", texts, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 20
    assert len({block for _, block in blocks}) == len(blocks)
    assert "Apache License" in texts
    for one in packages:
        is_named = f"{one.name} {one.version} (" in texts
        is_apache = "Apache-2.0" in one.licence.split(" OR ")
        assert is_named or is_apache, f"{one.name}: no licence text"

"""Everything that is written must be read back as it was."""

import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rampmeter import PlanError
from rampmeter.text.locations import Location
from rampmeter.text.toml import compact, dumps, literal, parse

scalars = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
keys = st.text(st.characters(exclude_categories=["Cs"]))
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=12
)


@given(st.dictionaries(keys, values))
def test_tables_are_read_back_as_they_were(table: dict[str, Any]) -> None:
    assert tomllib.loads(dumps(table)) == table


@given(values)
def test_compact_values_are_read_back_as_they_were(value: Any) -> None:
    assert tomllib.loads(f"key = {compact(value)}") == {"key": value}


def test_long_lists_are_read_back_as_they_were() -> None:
    table = {"a": {"hosts": [*range(20_000)], "rows": [[0.5, 1e300], [1e-9, 2.0]] * 60, "b": 1}}
    assert tomllib.loads(dumps(table)) == table


def test_plain_values_precede_sections() -> None:
    text = dumps({"topology": {"kind": "star", "links": [{"gbps": 1.0}]}, "seed": 1})
    assert text == 'seed = 1\n\n[topology]\nkind = "star"\n\n[[topology.links]]\ngbps = 1.0\n'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(0.3), "0.3"),
        (np.float32(0.3), "0.3"),
        (np.float16(0.5), "0.5"),
        (np.int64(8), "8"),
        (np.uint8(8), "8"),
        (np.bool_(True), "true"),
        (np.array([1, 2]), "[1, 2]"),
        (np.linspace(0.0, 1.0, 3), "[0.0, 0.5, 1.0]"),
        (np.str_("imc10"), '"imc10"'),
        (Decimal("0.3"), "0.3"),
        (Decimal("8"), "8"),
        (Decimal("8.0"), "8.0"),
        (Fraction(1, 4), "0.25"),
        (Path("a/b.csv"), '"a/b.csv"'),
        (range(3), "[0, 1, 2]"),
    ],
    ids=repr,
)
def test_other_numbers_and_paths_are_accepted(value: object, text: str) -> None:
    assert literal(value) == text
    assert dumps({"key": value}) == f"key = {text}\n"


def test_values_that_toml_lacks_are_refused() -> None:
    with pytest.raises(TypeError, match="expected a value that TOML has, got None"):
        literal(None)


@pytest.mark.parametrize(
    ("text", "key", "line", "column"),
    [
        ('a = "2020-01-01" # 2020-01-01\n[b]\nc = 2020-01-01\n', "b.c", 3, 5),
        ("a = 1\nb = [1,\n  2, 07:32:00]\n", "b[2]", 3, 6),
        ("a = { b = 2020-01-01T07:32:00Z }\n", "a.b", 1, 11),
        ("a = 1\n'b.c' = 2020-01-01 07:32:00.5+01:00\n", "b.c", 2, 9),
    ],
)
def test_errors_of_dates_have_a_line(text: str, key: str, line: int, column: int) -> None:
    with pytest.raises(PlanError, match=f"^a.toml: line {line}, column {column}: ") as caught:
        parse(text, Location("a.toml"))
    assert (caught.value.key, caught.value.code) == (key, "plan-syntax")

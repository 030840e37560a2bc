"""Everything that is written must be read back as it was."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rampmeter.toml import dumps, literal

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


def test_plain_values_come_before_sections() -> None:
    text = dumps({"topology": {"kind": "star", "links": [{"gbps": 1.0}]}, "seed": 1})
    assert text == 'seed = 1\n\n[topology]\nkind = "star"\nlinks = [{ gbps = 1.0 }]\n'


def test_values_that_toml_lacks_are_refused() -> None:
    with pytest.raises(TypeError, match="expected a value that TOML has, got None"):
        literal(None)  # type: ignore[arg-type]

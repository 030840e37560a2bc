"""Results are those that were recorded, bit by bit."""

import pytest

from . import recorded


@pytest.mark.parametrize(("transport", "preset"), recorded.cases())
def test_results_are_those_recorded(transport: str, preset: str) -> None:
    """`python -m tests.recorded` records others; its commit names cause and size of the change."""
    assert recorded.digests(transport, preset) == recorded.recorded()[transport][preset]


def test_every_transport_and_preset_is_recorded() -> None:
    known = [(name, preset) for name, presets in recorded.recorded().items() for preset in presets]
    assert known == recorded.cases()

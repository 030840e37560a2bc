"""Transports in networks unlike those of their papers: the cheap part of `make situations`."""

import pytest

from . import situations

CHEAP = (
    *(("dcpim", name) for name in ("4:1", "dumbbell", "9000 B")),
    *(("hyline", name) for name in ("25G", "r400")),
    *(("capton", name) for name in ("loss", "dumbbell", "r10")),
    *(("ndp", name) for name in ("base", "r10")),
    *(("dctcp", "9000 B"), ("homa-aeolus", "9000 B"), ("homa", "loss"), ("phost", "0.9")),
    *(("sird", "base"), ("tcp", "10 RTT")),
)


def test_every_transport_has_a_bound_in_every_situation() -> None:
    limits = situations.bounds()
    for transport in situations.TRANSPORTS:
        for situation in situations.SITUATIONS:
            is_refused = (transport, situation.name) == ("cosy", "9000 B")
            assert ((transport, situation.name) in limits) != is_refused


@pytest.mark.parametrize(("transport", "name"), CHEAP)
def test_a_transport_stays_within_its_bound(transport: str, name: str) -> None:
    situation = next(s for s in situations.SITUATIONS if s.name == name)
    outcome = situations.run(transport, situation)
    assert situations.broken({transport: {name: outcome}}) == []


@pytest.mark.parametrize("transport", ["capton", "dcpim", "hyline", "ndp", "sird", "tcp"])
def test_slowdowns_do_not_depend_on_the_unit_of_time(transport: str) -> None:
    names = ("base", "r10", "r400")
    of = {s.name: s for s in situations.SITUATIONS}
    means = [situations.run(transport, of[name]).mean for name in names]
    assert max(means) / min(means) < 1.03, dict(zip(names, means, strict=True))

"""Lone messages and load between hosts of 10, 40, 100 and 400 Gbit/s, for every transport."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm
from rampmeter import schema

from . import networks

TRANSPORTS = [name for name in schema.names() if name != schema.PYTHON]
RATES = (10, 40, 100, 400)
SIZES = (1_000, 20_000, 100_000, 1_000_000, 20_000_000)
ONE_RATE = ("fastpass", "fastpod", "cosy")
"""Transports that take all hosts for as fast as the slowest, and warn."""
REFUSED = {("cosy", "leaf_spine")}
"""cosy computes the packet memory that ports need and asks for it: 1.44 MB here."""
BEYOND = {
    # All hosts have one phase, which is that of the slowest host: a warning says so. A message
    # that is short for a fast pair and not for a slow one waits for the next phase.
    "dcpim": 1.5,
    # A fast sender sends its first window at its own rate, and a port to a slow host queues eight
    # packets: the others are trimmed and sent again (NDP, section 3).
    "ndp": 2.3,
    # Switches drop unscheduled packets if more than four wait, as at a port to a slow host, and the
    # sender learns it a round trip later (Aeolus).
    "homa-aeolus": 3.5,
    # Tokens for the last packets of a message wait for the clock of the destination.
    "phost": 1.2,
}
"""Largest slowdown of a lone message over that between hosts of one rate, if it is not 1.1."""

Rates = tuple[int, ...]


def star(rates: Rates) -> networks.Topology:
    """Two hosts of each rate at one switch."""
    return networks.links(8, 1, [(f"h{n}", "s0", rates[n // 2], 500) for n in range(8)])


def leaf_spine(rates: Rates) -> networks.Topology:
    """Two racks with a host of each rate, and two spines."""
    access = [(f"h{n}", f"s{n % 2}", rates[n // 2], 500) for n in range(8)]
    core = [(f"s{rack}", f"s{spine}", 400, 500) for rack in (0, 1) for spine in (2, 3)]
    return networks.links(8, 4, access + core)


def lone(
    topology: networks.Topology, transport: str, pairs: list[tuple[int, int]], file: Path
) -> tuple[list[float | None], list[str]]:
    """Returns the slowdown of each pair and size, one message at a time, and the warnings."""
    at_us, rows = 1.0, []
    for src, dst in pairs:
        for size in SIZES:
            rows.append(f"{at_us},{src},{dst},{size}")
            # The slowest host sends it five times.
            at_us += 5 * size * 8e-3 / RATES[0] + 1_000
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    of = networks.run(topology, transport, {"pattern": "trace", "file": str(file)})
    times = zip(of.flows["fct_ps"].to_pylist(), of.flows["ideal_ps"].to_pylist(), strict=True)
    slowdowns = [fct / ideal if fct and ideal else None for fct, ideal in times]
    return slowdowns, of.summary["warnings"]


@pytest.mark.parametrize("network", [star, leaf_spine], ids=lambda network: network.__name__)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_lone_message_is_as_fast_as_between_hosts_of_one_rate(
    transport: str, network: Any, tmp_path: Path
) -> None:
    file = tmp_path / "flows.csv"
    if (transport, network.__name__) in REFUSED:
        with pytest.raises(rm.PlanError, match="expected at least"):
            lone(network(RATES), transport, [(0, 1)], file)
        return
    ends = [(src, dst) for src in range(4) for dst in range(4)]
    pairs = [(2 * src, 2 * dst + 1) for src, dst in ends]
    slowdowns, messages = lone(network(RATES), transport, pairs, file)
    assert None not in slowdowns
    if transport in ONE_RATE:
        assert any(
            f"transport.name: {transport} takes all hosts" in warning for warning in messages
        )
        return
    between = partial(lone, transport=transport, pairs=[(0, 1)], file=file)
    uniform = [between(network((rate,) * 4))[0] for rate in RATES]
    most = BEYOND.get(transport, 1.1)
    beyond = []
    for (src, dst), place in zip(ends, range(0, len(slowdowns), len(SIZES)), strict=True):
        for n, size in enumerate(SIZES):
            slowdown = slowdowns[place + n]
            same = max(uniform[src][n] or 1.0, uniform[dst][n] or 1.0)
            if slowdown is None or slowdown > most * same:
                beyond.append((RATES[src], RATES[dst], size, slowdown, same))
    assert not beyond


@pytest.mark.parametrize("network", [star, leaf_spine], ids=lambda network: network.__name__)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_no_message_fails_at_half_load(transport: str, network: Any) -> None:
    if (transport, network.__name__) in REFUSED:
        return
    load = {"pattern": "all-to-all", "sizes": "imc10", "load": 0.5, "flows": 1_000}
    status = set(networks.run(network(RATES), transport, load).flows["status"].to_pylist())
    assert status <= ({"finished", "rejected"} if transport == "cosy" else {"finished"})


def test_dcpim_warns_of_a_phase_that_follows_from_slow_hosts() -> None:
    load = {"pattern": "all-to-all", "sizes": {"fixed": 1_000}, "load": 0.1, "flows": 10}
    messages = networks.run(star((1, 1, 1, 100)), "dcpim", load).summary["warnings"]
    assert any(
        "transport.name: dcpim has one phase for all hosts" in warning for warning in messages
    )
    messages = networks.run(star((100,) * 4), "dcpim", load).summary["warnings"]
    assert not any("one phase" in warning for warning in messages)


def test_ports_have_the_memory_and_marks_of_their_own_rate() -> None:
    load = {"pattern": "all-to-all", "sizes": {"fixed": 1_000}, "load": 0.1, "flows": 10}
    fabric = networks.run(star(RATES), "dctcp", load).manifest["plan"]["fabric"]
    for key in ("buffer-bytes", "ecn-bytes"):
        assert sorted(fabric[key]) == ["10", "100", "40", "400"]
        assert fabric[key]["400"] > fabric[key]["100"] > fabric[key]["40"] > fabric[key]["10"]

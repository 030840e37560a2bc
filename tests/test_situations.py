"""Transports in networks unlike those of their papers: the cheap part of `make situations`."""

from typing import Any

import pytest

import rampmeter as rm
from rampmeter.plan import schema

from . import situation_bounds, situations

CHEAP = (
    *(("dcpim", name) for name in ("4:1", "dumbbell", "9000 B")),
    *(("hyline", name) for name in ("25G", "r400")),
    *(("capton", name) for name in ("loss", "dumbbell", "r10")),
    *(("ndp", name) for name in ("base", "r10")),
    *(("dctcp", "9000 B"), ("homa-aeolus", "9000 B"), ("homa", "loss"), ("phost", "0.9")),
    *(("sird", "base"), ("tcp", "10 RTT")),
    *(("fastpod", name) for name in ("short", "fail 800")),
    *(("dcpim", name) for name in ("25+100G", "200:1", "long")),
    *((transport, name) for transport in ("dcpim", "sird") for name in ("25G core", "mixed")),
    *(("hpcc", "fail"), ("hpcc", "loss"), ("homa", "mixed"), ("homa-aeolus", "25G core")),
    *(("homa", "short"), ("sird", "25+100G"), ("ideal", "200:1"), ("ideal", "long")),
)


REFUSED = {
    *(("cosy", name) for name in ("9000 B", "25+100G", "25G core")),
    *((transport, "25G core") for transport in ("fastpass", "fastpod")),
}


def test_every_transport_has_a_bound_in_every_situation() -> None:
    limits = situations.bounds()
    for transport in situations.TRANSPORTS:
        for situation in situations.SITUATIONS:
            is_refused = (transport, situation.name) in REFUSED
            assert ((transport, situation.name) in limits) != is_refused


def test_wide_bounds_have_a_cause() -> None:
    limits = situations.bounds()
    for (transport, name), limit in limits.items():
        is_wide = limit > situation_bounds.WIDE * limits["ideal", name]
        assert not is_wide or situations.cause(transport, name), (transport, name, limit)


@pytest.mark.parametrize(("transport", "name"), CHEAP)
def test_a_transport_stays_within_its_bound(transport: str, name: str) -> None:
    situation = next(s for s in situations.SITUATIONS if s.name == name)
    outcome = situations.run(transport, situation)
    assert situations.broken({transport: {name: outcome}}) == []


# Presets of one recorded setting, which have times or bytes of its network.
RECORDED = {
    ("pfabric", "reference"): "rto-us",
    ("pfabric", "ns-2"): "rto-us",
    ("tcp", "reference"): "rto-min-us",
    ("dctcp", "reference"): "rto-min-us",
    ("dctcp", "ns-2"): "rto-min-us",
    ("ndp", "reference"): "rto-us",
    ("pias", "reference"): "rto-min-us",
    ("hpcc", "dcpim-study"): "base-rtt-us",
}
# Rounded picoseconds decide the order of events, and so the results.
CHAOTIC = ("phost", "cosy")
PRESETS = [
    (about["name"], preset)
    for about in schema.transports()
    for preset, _ in about["presets"]
    if about["name"] != schema.PYTHON
]


@pytest.mark.parametrize(("transport", "preset"), [p for p in PRESETS if p not in RECORDED])
def test_slowdowns_do_not_depend_on_the_unit_of_time(transport: str, preset: str) -> None:
    """Rates times s and delays over s: slowdowns are equal if all keys follow the network."""
    means = [situations.scaled_mean(transport, preset, scale) for scale in (1.0, 0.1, 4.0)]
    most = 1.02 if transport in CHAOTIC else 1.01
    assert max(means) / min(means) < most, means


@pytest.mark.parametrize(("transport", "preset"), [p for p in PRESETS if p not in RECORDED])
@pytest.mark.parametrize(("fan", "flow_bytes"), [(31, 100_000), (16, 20_000)])
def test_incasts_do_not_depend_on_the_unit_of_time(
    transport: str, preset: str, fan: int, flow_bytes: int
) -> None:
    """Ports overflow, so that their memory decides. It must follow the network, too."""
    load = {"pattern": "incast", "fan": fan, "flow-bytes": flow_bytes, "rounds": 1}
    means = [situations.scaled_mean(transport, preset, scale, load) for scale in (1.0, 0.1, 4.0)]
    assert max(means) / min(means) < 1.02, means


DEFAULT = [
    (about["name"], about["presets"][0][0])
    for about in schema.transports()
    if about["name"] not in (schema.PYTHON, "ideal")
]


@pytest.mark.parametrize(("transport", "preset"), DEFAULT)
def test_repairs_do_not_depend_on_the_unit_of_time(transport: str, preset: str) -> None:
    """A timeout that did not follow the network would be 40 times as long in round trips.

    Which packets are lost depends on the order of events. That makes a difference of up to 8 %.
    """
    scales = (1.0, 0.1, 4.0)
    means = [situations.scaled_geometric_mean(transport, preset, s, 1e-2) for s in scales]
    assert max(means) / min(means) < 1.12, means


@pytest.mark.parametrize("transport", ["phost", "dcpim", "homa", "homa-aeolus", "ndp"])
def test_transports_that_overload_a_narrow_core_warn(transport: str) -> None:
    load: dict[str, Any] = {"pattern": "all-to-all", "sizes": "imc10", "load": 0.05, "flows": 10}
    for core, n_warnings in ((100.0, 1), (800.0, 0)):
        topology: dict[str, Any] = {"kind": "dumbbell", "hosts-per-side": 8, "core-gbps": core}
        plan = rm.Plan.of(topology=topology, transport={"name": transport}, workload=load)
        found = [one for one in plan.warnings if f"of {transport}" in one and "12.5 %" in one]
        assert len(found) == n_warnings, plan.warnings


@pytest.mark.parametrize("transport", ["ndp", "sird", "homa"])
def test_recorded_timeouts_are_warned_about_if_packets_are_lost(transport: str) -> None:
    load: dict[str, Any] = {"pattern": "all-to-all", "sizes": "imc10", "load": 0.5, "flows": 10}
    cases = (("reference", 1e-3, 1), ("reference", 0.0, 0), ("paper", 1e-3, 0))
    for preset, loss, n_warnings in cases:
        plan = rm.Plan.of(
            topology=rm.star(4),
            transport={"name": transport, "preset": preset},
            workload=load,
            faults={"loss": loss},
        )
        warnings = [one for one in plan.warnings if "retransmits lost packets after" in one]
        assert len(warnings) == n_warnings, warnings


@pytest.mark.parametrize(("transport", "preset"), RECORDED)
def test_presets_that_do_have_a_key_of_their_recorded_setting_and_a_warning(
    transport: str, preset: str
) -> None:
    values = dict(schema.transport_info(transport)["presets"])[preset]
    assert RECORDED[transport, preset] in values
    own = 100.0 if transport in ("hpcc", "ndp") else 10.0
    for gbps, n_warnings in ((own, 0), (25.0, 1)):
        plan = rm.Plan.of(
            topology={"kind": "star", "hosts": 4, "access-gbps": gbps},
            transport={"name": transport, "preset": preset},
            workload={"pattern": "all-to-all", "sizes": "imc10", "load": 0.5, "flows": 10},
        )
        warnings = [one for one in plan.warnings if one.startswith("transport.preset:")]
        assert len(warnings) == n_warnings, warnings


@pytest.mark.parametrize(
    ("transport", "own"), [("phost", 10.0), ("fastpass", 10.0), ("dcpim", 100.0)]
)
def test_presets_with_rules_of_another_simulator_have_a_warning(transport: str, own: float) -> None:
    """All keys are relative to the network, but the rules were made for that of the simulator."""
    load: dict[str, Any] = {"pattern": "all-to-all", "sizes": "imc10", "load": 0.5, "flows": 10}
    for preset, gbps, n_warnings in (("reference", own, 0), ("reference", 25, 1), ("paper", 25, 0)):
        plan = rm.Plan.of(
            topology={"kind": "star", "hosts": 4, "access-gbps": gbps},
            transport={"name": transport, "preset": preset},
            workload=load,
        )
        warnings = [one for one in plan.warnings if one.startswith("transport.preset:")]
        assert len(warnings) == n_warnings, warnings


@pytest.mark.parametrize(
    ("transport", "preset"),
    [("sird", "reference"), ("homa", "reference"), ("ndp", "reference"), ("hpcc", "dcpim-study")],
)
def test_presets_with_windows_of_another_network_are_warned_about(
    transport: str, preset: str
) -> None:
    load: dict[str, Any] = {"pattern": "all-to-all", "sizes": "imc10", "load": 0.5, "flows": 10}
    for propagation, n_warnings in ((2_000.0, 0), (20_000.0, 1)):
        plan = rm.Plan.of(
            topology={
                **{"kind": "star", "hosts": 4, "access-gbps": 100.0},
                "propagation-ns": propagation,
            },
            transport={"name": transport, "preset": preset},
            workload=load,
        )
        warnings = [one for one in plan.warnings if one.startswith("transport.preset:")]
        assert len(warnings) == n_warnings, warnings


@pytest.mark.parametrize("transport", ["homa", "sird"])
def test_presets_with_packets_of_one_length_are_warned_about(transport: str) -> None:
    load: dict[str, Any] = {"pattern": "all-to-all", "sizes": "imc10", "load": 0.5, "flows": 10}
    for payload, n_warnings in ((1456, 0), (8936, 1)):
        table: dict[str, Any] = {
            **{"name": transport, "preset": "reference"},
            "payload-bytes": payload,
        }
        plan = rm.Plan.of(topology=rm.star(4), transport=table, workload=load)
        warnings = [one for one in plan.warnings if one.startswith("transport.preset:")]
        assert len(warnings) == n_warnings, warnings

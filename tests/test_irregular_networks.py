"""Every transport in ten networks that are not uniform."""

from pathlib import Path

import pytest

import rampmeter as rm

from . import networks

BY_FLOW = ("tcp", "dctcp", "pias", "hyline", "hpcc")
"""Transports whose flows use one path, and one interface."""
REFUSED = {
    *((name, "slow_core") for name in networks.SLOTTED),
    *(("cosy", network) for network in ("dual_homed", "rails_with_scale_up")),
}
LONE = {
    # The ideal uses two paths or interfaces, the flow one.
    **{(name, "dual_homed"): 2.15 for name in BY_FLOW},
    **{(name, "slow_core"): 2.15 for name in BY_FLOW},
    **{(name, "mixed_rates"): 2.15 for name in networks.SLOTTED},
    # The far path makes round trips longer than those of the ideal, which uses the near one.
    **{(name, "asymmetric_delays"): 1.2 for name in ("tcp", "dctcp", "pias")},
    # Two phases pass before data is sent, and phases are as long as the farthest hosts require.
    ("dcpim", "asymmetric_delays"): 1.25,
    ("dcpim", "dragonfly"): 1.12,
    # The same, compared with the 200 us that 10 MB take at 400 Gbit/s.
    ("dcpim", "rails_with_scale_up"): 1.35,
}
"""Maximum slowdown of a lone flow of 10 MB if it is not 1.1."""


@pytest.mark.parametrize("network", networks.NETWORKS, ids=lambda network: network.__name__)
@pytest.mark.parametrize("transport", networks.TRANSPORTS)
def test_a_transport_serves_a_network_that_is_not_uniform(
    transport: str, network: networks.Network, tmp_path: Path
) -> None:
    topology, name = network(), network.__name__
    if (transport, name) in REFUSED:
        with pytest.raises(rm.PlanError, match=r"transport\.name: expected a transport for"):
            networks.lone_slowdowns(topology, transport, tmp_path)
        return
    slowdowns = networks.lone_slowdowns(topology, transport, tmp_path)
    assert min(slowdowns) >= 1.0
    assert max(slowdowns) <= LONE.get((transport, name), 1.1), slowdowns
    status = networks.loaded_statuses(topology, transport)
    # cosy rejects messages whose delay it cannot bound.
    done = {"delivered", "rejected"} if transport == "cosy" else {"delivered"}
    assert set(status) <= done
    assert status.count("delivered") > len(status) / 2

"""Every transport in ten networks that are not uniform."""

from pathlib import Path

import pytest

import rampmeter as rm

from . import networks

BY_FLOW = ("tcp", "dctcp", "pias", "hyline", "hpcc")
"""Transports whose flows take one path, and one interface."""
REFUSED = {
    *((name, "slow_core") for name in networks.SLOTTED),
    *(("cosy", network) for network in ("dual_homed", "rails_with_scale_up")),
}
LONE = {
    # The ideal uses two paths or interfaces, the flow one.
    **{(name, "dual_homed"): 2.15 for name in BY_FLOW},
    **{(name, "slow_core"): 2.15 for name in BY_FLOW},
    **{(name, "mixed_rates"): 2.15 for name in networks.SLOTTED},
    # The far path makes round trips longer than those of the ideal, which takes the near one.
    **{(name, "asymmetric_delays"): 1.2 for name in ("tcp", "dctcp", "pias")},
    # Two phases pass before data is sent, and phases are as long as the farthest hosts require.
    ("dcpim", "asymmetric_delays"): 1.25,
    ("dcpim", "dragonfly"): 1.12,
    # The same, compared with the 200 us that 10 MB take at 400 Gbit/s.
    ("dcpim", "rails_with_scale_up"): 1.35,
}
"""Largest slowdown of a lone flow of 10 MB if it is not 1.1."""


@pytest.mark.parametrize("network", networks.NETWORKS, ids=lambda network: network.__name__)
@pytest.mark.parametrize("transport", networks.TRANSPORTS)
def test_a_transport_serves_a_network_that_is_not_uniform(
    transport: str, network: networks.Network, tmp_path: Path
) -> None:
    topology, name = network(), network.__name__
    last = topology["hosts"] - 1
    file = tmp_path / "flows.csv"
    pairs = ((0, last), (last, 0), (1, (last + 1) // 2), (0, 1))
    rows = [f"{20_000 * n},{src},{dst},10000000" for n, (src, dst) in enumerate(pairs)]
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    trace = {"pattern": "trace", "file": str(file)}
    if (transport, name) in REFUSED:
        with pytest.raises(rm.PlanError, match=r"transport\.name: expected one for networks"):
            networks.run(topology, transport, trace)
        return
    flows = networks.run(topology, transport, trace).flows
    pairs_ps = zip(flows["fct_ps"].to_pylist(), flows["ideal_ps"].to_pylist(), strict=True)
    slowdowns = [fct / ideal for fct, ideal in pairs_ps if fct is not None and ideal is not None]
    assert len(slowdowns) == len(pairs)
    assert min(slowdowns) >= 1.0
    assert max(slowdowns) <= LONE.get((transport, name), 1.1), slowdowns
    load = {"pattern": "all-to-all", "sizes": "imc10", "load": 0.5, "flows": 400}
    status = networks.run(topology, transport, load).flows["status"].to_pylist()
    # cosy rejects messages whose delay it cannot bound.
    done = {"finished", "rejected"} if transport == "cosy" else {"finished"}
    assert set(status) <= done
    assert status.count("finished") > len(status) / 2

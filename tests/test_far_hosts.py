"""Hosts that are near each other have the results that they have without a far one."""

from typing import Any

import pytest

import rampmeter as rm

from . import networks

NEAR = (500.0,) * 6
FAR = (2_500_000.0, *NEAR[1:])
"""Delays of the links of a star's hosts, in nanoseconds."""
PAIRS = ("phost", "pfabric", "ndp", "homa", "homa-aeolus", "sird", "hpcc")
"""Transports whose windows and times belong to a pair of hosts."""


def run(
    delays_ns: tuple[float, ...], transport: str, workload: dict[str, Any], **parts: Any
) -> rm.Run:
    """Runs a workload between hosts of a star."""
    ends = [(f"h{n}", "s0", 100, delay) for n, delay in enumerate(delays_ns)]
    return rm.run(
        topology=networks.links(len(delays_ns), 1, ends),
        workload=workload,
        transport={"name": transport},
        run={"drain-us": 1e8},
        seed=1,
        quiet=True,
        **parts,
    )


def shuffled(size: int) -> dict[str, Any]:
    """Returns one flow from host 1 to host 2."""
    senders, receivers = {"first": 1, "count": 1}, {"first": 2, "count": 1}
    ends = {"senders": senders, "receivers": receivers}
    return {"pattern": "shuffle", "flow-bytes": size, "rounds": 1} | ends


def mean_slowdown(done: rm.Run) -> float:
    assert done.summary["flows"]["unfinished"] == done.summary["flows"]["failed"] == 0
    return float((done.flows["fct_ps"].to_numpy() / done.flows["ideal_ps"].to_numpy()).mean())


@pytest.mark.parametrize("transport", PAIRS)
def test_a_far_host_costs_near_ones_nothing(transport: str) -> None:
    """Web Search at load 0.5, with host 0 at 2.5 ms and at 0.5 us."""
    hosts = {"first": 1, "count": 5}
    mix = {"pattern": "all-to-all", "sizes": "web-search", "load": 0.5, "flows": 300}
    near, far = (run(delays, transport, mix | {"hosts": hosts}) for delays in (NEAR, FAR))
    assert mean_slowdown(far) <= 1.05 * mean_slowdown(near)


@pytest.mark.parametrize("transport", [*PAIRS, "tcp", "capton", "hyline"])
def test_a_lone_flow_of_near_hosts_is_as_fast_as_without_a_far_one(transport: str) -> None:
    for size in (20_000, 2_000_000):
        near, far = (run(delays, transport, shuffled(size)) for delays in (NEAR, FAR))
        assert mean_slowdown(far) <= 1.02 * mean_slowdown(near), size


@pytest.mark.parametrize("transport", PAIRS)
def test_flows_of_far_hosts_have_windows_for_them(transport: str) -> None:
    """150 MB to the far host need one round trip and the time on the link, and one more round trip
    if a request must be answered first."""
    workload = shuffled(150_000_000) | {"receivers": {"first": 0, "count": 1}}
    most = 1.4 if transport in ("phost", "sird") else 1.1
    assert mean_slowdown(run(FAR, transport, workload)) <= most


@pytest.mark.parametrize("transport", PAIRS)
def test_a_loss_between_near_hosts_is_repaired_in_their_time(transport: str) -> None:
    """One packet in 200 is lost, and timeouts are as long as without the far host."""
    workload = shuffled(30_000) | {"rounds": 300, "period-us": 20.0}
    near, far = (run(d, transport, workload, faults={"loss": 0.005}) for d in (NEAR, FAR))
    assert mean_slowdown(far) <= 1.3 * mean_slowdown(near)

"""Outages of one of a lone flow's two paths, shorter and longer than a window of packets."""

from pathlib import Path

import numpy as np
import pytest

import rampmeter as rm
from rampmeter.results.slowdown import overall_slowdown

from . import networks

PLAN = """
[topology]
kind = "leaf-spine"
racks = 2
hosts-per-rack = 2
spines = 2
access-gbps = 100.0
core-gbps = 100.0
[workload]
pattern = "trace"
file = "flow.csv"
[transport]
name = "{transport}"
[faults]
rerouting-us = {rerouting_us}
[[faults.outages]]
link = "s0-s2"
from-us = 200.0
"""
FLOW = "arrival_us,src,dst,size_bytes\n0,0,2,10000000\n"

BOUNDS = {
    # After the loss of a whole window no later packet reveals it. Timeouts are as
    # long as papers and standards have them.
    "hpcc": 8.2,
    "ndp": 1.55,
    "tcp": 1.6,
    "dctcp": 1.6,
    "pias": 1.6,
    "hyline": 1.6,
    # Credit is lost when it is a timeout old.
    "sird": 1.55,
    # A receiver requests packets when none of the message has arrived for a timeout (section 3.7
    # of Homa's paper). Few surviving packets are enough to keep the message active.
    "homa": 20.0,
    "homa-aeolus": 9.0,
    "fastpod": 1.5,
}
"""Maximum slowdowns of transports that need more than 1.2."""

# A message of cosy whose packets are lost fails: it has no time for a second attempt.
TRANSPORTS = [transport for transport in networks.TRANSPORTS if transport != "cosy"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_outages_cost_a_lone_flow_one_timeout(transport: str, tmp_path: Path) -> None:
    (tmp_path / "flow.csv").write_text(FLOW)
    slowdowns = {}
    for rerouting_us in (1.0, 5.0, 10.0, 20.0, 50.0):
        text = PLAN.format(transport=transport, rerouting_us=rerouting_us)
        (tmp_path / "plan.toml").write_text(text)
        run = rm.run(rm.Plan.load(tmp_path / "plan.toml"), quiet=True)
        slowdowns[rerouting_us] = overall_slowdown(run.summary).mean
    assert max(slowdowns.values()) < BOUNDS.get(transport, 1.2), slowdowns


@pytest.mark.parametrize("rates_us", [0, 5])
def test_the_goodput_of_a_flow_is_drawn_with_the_outages_of_a_flapping_link(
    rates_us: int, tmp_path: Path
) -> None:
    (tmp_path / "flow.csv").write_text(FLOW)
    text = PLAN.format(transport="dcpim", rerouting_us=50.0)
    text += "until-us = 220.0\nevery-us = 100.0\ncount = 3\n"
    text += f"[run]\nrates-us = {rates_us}\n"
    (tmp_path / "plan.toml").write_text(text)
    run = rm.run(rm.Plan.load(tmp_path / "plan.toml"), quiet=True)
    assert "goodput" in run.plot.available()
    end_us = run.flows["fct_ps"][0].as_py() / 1e6
    (axes,) = run.plot.goodput(end=end_us).axes
    bands = [patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches]
    assert [(round(band.x0), round(band.x1)) for band in bands] == [
        (200, 220),
        (300, 320),
        (400, 420),
    ]
    points = np.asarray(axes.lines[0].get_xydata())
    times, gbps = points[:, 0], points[:, 1]
    delivered = (gbps * np.diff([*times, end_us])).sum() / 8e-3
    assert delivered == pytest.approx(10_000_000, rel=1e-2)
    if rates_us:
        # Packets on the link that fails are lost.
        assert min(gbps[(times > 190) & (times < 240)]) < 60


def test_the_goodput_of_the_ideal_is_drawn_next_to_rates_with_the_outages(tmp_path: Path) -> None:
    (tmp_path / "flow.csv").write_text(FLOW)
    text = PLAN.format(transport="dcpim", rerouting_us=50.0) + "until-us = 220.0\n"
    text += "[run]\nrates-us = 5\n"
    (tmp_path / "plan.toml").write_text(text)
    whole = rm.Plan.load(tmp_path / "plan.toml")
    for plan, n_bands in ((whole, 1), (whole.with_(("faults.outages", [])), 0)):
        compared = rm.compare(plan, "ideal,dcpim", quiet=True)
        assert "goodput" in compared.plot.available()
        (axes,) = compared.plot.goodput().axes
        assert len(axes.patches) == n_bands
        lines = [np.asarray(line.get_ydata()) for line in axes.lines]
        ideal, dcpim = (line.max() for line in lines if line.size > 20)
        assert min(ideal, dcpim) > 90


def test_goodput_is_nothing_while_no_flow_is_open(tmp_path: Path) -> None:
    (tmp_path / "flow.csv").write_text(FLOW + "3000,0,2,1000000\n")
    text = PLAN.format(transport="dcpim", rerouting_us=50.0) + "[run]\nrates-us = 5\n"
    (tmp_path / "plan.toml").write_text(text)
    run = rm.run(rm.Plan.load(tmp_path / "plan.toml"), quiet=True)
    points = np.asarray(run.plot.goodput().axes[0].lines[0].get_xydata())
    assert points[(points[:, 0] > 2000) & (points[:, 0] < 2990), 1].max() == 0
    assert points[points[:, 0] >= 3000, 1].max() > 50


def test_outages_of_an_element_that_overlap_are_one(tmp_path: Path) -> None:
    (tmp_path / "flow.csv").write_text(FLOW)
    text = PLAN.format(transport="dcpim", rerouting_us=5.0).replace("from-us = 200.0", "")
    text += "from-us = 50\nuntil-us = 60\nevery-us = 50\ncount = 2\n"
    text += "[[faults.outages]]\nlink = 's0-s2'\nfrom-us = 55\nuntil-us = 70\n"
    (tmp_path / "plan.toml").write_text(text)
    run = rm.run(rm.Plan.load(tmp_path / "plan.toml"), quiet=True)
    rows = run.tables["outages"].records()
    assert [(row["from_us"], row["until_us"]) for row in rows] == [(50, 70), (100, 110)]

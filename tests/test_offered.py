"""Offered traffic and drawings of `rampmeter check`."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.patches import FancyBboxPatch

import rampmeter as rm
from rampmeter.plan.base import PlanTable
from rampmeter.plots import topology

from . import commands
from .commands import ok

NAMED = """\
[topology]
kind = "links"
hosts = ["gpu-a", "gpu-b", "store"]
switches = ["leaf-1", "leaf-2", "core"]
links = [
  { between = ["gpu-a", "leaf-1"] }, { between = ["gpu-b", "leaf-1"], gbps = 25 },
  { between = ["store", "leaf-2"] }, { between = ["leaf-1", "core"], gbps = 400 },
  { between = ["leaf-2", "core"], gbps = 400 }, { between = ["leaf-1", "leaf-2"], gbps = 100 },
]
[transport]
name = "ideal"
[workload]
pattern = "all-to-all"
sizes = "imc10"
load = 0.3
flows = 1000
"""


def call(*arguments: str) -> str:
    return ok(*arguments).stdout


@pytest.fixture(autouse=True)
def plan_is_here(here: Path) -> None:
    (here / "plan.toml").write_text(NAMED)


def test_check_prints_mean_size_and_load_by_tier() -> None:
    lines = call("check", "plan.toml").splitlines()
    start = next(at for at, line in enumerate(lines) if "Offered traffic" in line)
    table = [line.removeprefix("# ").split() for line in lines[start + 1 :]]
    assert table[0][:2] == ["mean-size-bytes", "="]
    assert float(table[0][2]) == pytest.approx(rm.Plan(NAMED).offered()["mean_bytes"], rel=1e-5)
    tiers = [row[0] for row in table[2:]]
    assert tiers[0] == "host-up"
    assert tiers[-1] == "tor-down"
    assert "gpu-b" in " ".join(table[2])


def test_loads_count_headers_of_short_messages() -> None:
    """Messages of 100 B with headers of 40 B offer 140 MB a second, where payloads are 100 MB."""
    rows = (f"{n},0,1,100" for n in range(1_001))
    Path("flows.csv").write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    plan = rm.Plan.of(
        topology={"kind": "star", "hosts": 2, "access-gbps": 25},
        transport=rm.Homa(),
        workload={"pattern": "trace", "file": "flows.csv"},
    )
    loads = {tier["name"]: tier["load_max"] for tier in plan.offered()["tiers"]}
    assert loads["host-up"] == pytest.approx(140e6 * 8 / 25e9, rel=0.01)


def test_check_draws_the_network() -> None:
    call("check", "plan.toml", "--svg", "topology.svg")
    root = ElementTree.parse("topology.svg").getroot()
    assert root.tag.endswith("svg")
    done = commands.call("check", "plan.toml", "--svg", "topology.gif")
    assert "--svg: expected a name that ends in .svg, .pdf or .png, got topology.gif" in done.output


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        (rm.leaf_spine(), {"h0 to h15\n16 hosts", "s0", "s12"}),
        (rm.fat_tree(4), {"h0", "h15", "s19"}),
        (rm.star(8), {"h7", "s0"}),
    ],
    ids=["leaf-spine", "fat-tree", "star"],
)
def test_pictures_have_every_label_once(spec: PlanTable, labels: set[str]) -> None:
    plan = rm.Plan.of(topology=spec, transport=rm.Ideal(), workload=rm.imc10(0.3, 10))
    figure = topology(plan.drawing(), title="A network")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert labels <= set(texts)
    assert len(texts) == len(set(texts))


@pytest.mark.parametrize("switches", [2, 4], ids=["row", "circle"])
def test_parallel_links_of_several_rates_are_drawn_apart(switches: int) -> None:
    """The slower one was under the other, between switches of a row and at hosts alike."""
    pairs = [(f"h{i}", f"s{i}") for i in range(switches)]
    ring = [(f"s{i}", f"s{(i + 1) % switches}") for i in range(switches if switches > 2 else 1)]
    rates = (400, 100, 50)
    links = [rm.Link(between=ends, gbps=rate) for ends in pairs + ring for rate in rates]
    spec = rm.Links(hosts=switches, switches=switches, links=links)
    plan = rm.Plan.of(topology=spec, transport=rm.Ideal(), workload=rm.imc10(0.1, 10))
    figure = topology(plan.drawing())
    lines = [patch for patch in figure.axes[0].patches if not isinstance(patch, FancyBboxPatch)]
    assert len(lines) == len(links)
    paths = [np.asarray(line.get_path().interpolated(20).vertices) for line in lines]
    middles = [path.mean(axis=0) for path in paths]
    for at, middle in enumerate(middles):
        for other in middles[:at]:
            assert abs(middle - other).max() > 0.02
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    assert legend.x1 <= figure.bbox.x1


def test_large_networks_are_drawn_without_labels() -> None:
    plan = rm.Plan.of(topology=rm.fat_tree(16), transport=rm.Ideal(), workload=rm.imc10(0.3, 10))
    figure = topology(plan.drawing())
    width, _ = figure.get_size_inches()
    assert width < 13

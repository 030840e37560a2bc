"""Numbers of the documentation about single runs and replays."""

import re
from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.papers.replays import ReplayLedger
from rampmeter.replays.compare import Ratios

from . import fidelity

ROOT = Path(__file__).parents[1]


def test_dcpim_retransmits_few_packets_through_a_narrow_core() -> None:
    assert fidelity.MEASURES["A2"]().startswith(
        "dcpim: ends after 13.19 ms, 0.0 % retransmitted, 0 of"
    )


@pytest.mark.parametrize(
    ("core_gbps", "size_bytes"),
    [(25, 50_000), (10, 20_000), (50, 20_000), (50, 200_000), (25, 200_000), (100, 625_000)],
)
def test_few_packets_of_dcpim_arrive_twice_in_narrow_cores(
    core_gbps: float, size_bytes: int
) -> None:
    result = rm.run(
        topology={
            **{"kind": "dumbbell", "hosts-per-side": 8},
            **{"access-gbps": 100.0, "core-gbps": core_gbps},
        },
        transport={"name": "dcpim"},
        workload={
            **{"pattern": "shuffle", "flow-bytes": size_bytes, "rounds": 1},
            **{"senders": {"first": 0, "count": 8}, "receivers": {"first": 8, "count": 8}},
        },
        run={"drain-us": 200_000.0},
        quiet=True,
    )
    assert result.summary["flows"]["delivered"] == 64
    # Flows of 20 KB are 14 packets, of which four are requested while they wait.
    assert result.summary["counters"]["duplicate_bytes"] <= 0.25 * 64 * size_bytes


# pFabric's timeout is three round trips, Fastpod retransmits unscheduled cells.
TWICE = {"pfabric": 0.15, "fastpod": 0.25}


@pytest.mark.parametrize("transport", fidelity.SENDERS)
@pytest.mark.parametrize("flow_bytes", [100_000, 187_500, 400_000])
def test_packets_that_wait_at_a_host_are_not_requested_again(
    transport: str, flow_bytes: int
) -> None:
    result = rm.run(
        topology=fidelity.LONG_STAR,
        transport={"name": transport},
        workload={"pattern": "incast", "fan": 8, "flow-bytes": flow_bytes, "rounds": 1},
        quiet=True,
    )
    most = TWICE.get(transport, 0.01) * 8 * flow_bytes
    assert result.summary["counters"].get("duplicate_bytes", 0) <= most


@pytest.mark.parametrize("transport", ["phost", "homa", "ndp", "pfabric", "sird", "dcpim"])
def test_many_messages_of_a_host_at_once_end_when_its_link_has_sent_them(transport: str) -> None:
    """pHost's free tokens expired while the host's link sent other messages."""
    n = 200
    flows = {"arrival_us": [1.0] * n, "src": [0] * n, "dst": [1] * n, "size_bytes": [1_460] * n}
    result = rm.run(
        topology={"kind": "star", "hosts": 4, "access-gbps": 100.0},
        transport={"name": transport},
        workload={"pattern": "trace", "file": str(rm.flows(flows).file)},
        quiet=True,
    )
    # Each is 120 ns on the link, and a lone one takes about 2 us.
    assert fidelity.last_end(result) < 1.25 * (n * 120_000 + 2_000_000)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_packets_of_expired_tokens_are_requested_in_the_same_phase(seed: int) -> None:
    """A link whose flows were all silent was dead for the rest of its phase, and the next."""
    result = rm.run(
        topology={
            **{"kind": "fat-tree", "k": 4, "access-gbps": 25.0, "core-gbps": 25.0},
            **{"propagation-ns": 500.0, "switch-ns": 450.0, "host-ns": 450.0},
        },
        transport={"name": "dcpim"},
        workload={"pattern": "permutation", "sizes": {"fixed": 150_001}},
        seed=seed,
        quiet=True,
    )
    # Four phases of 67 us; it was 352.
    assert fidelity.last_end(result) < 270e6


def test_no_message_of_homa_is_faster_than_its_ideal() -> None:
    assert fidelity.MEASURES["A5"]().count(" 0 below 1") == 2


def test_fastpod_warns_of_a_narrow_core() -> None:
    assert "fastpod schedules the links of hosts alone" in fidelity.MEASURES["A10"]()


def test_ndp_is_warned_of_a_narrow_core() -> None:
    for core, n_warnings in ((25.0, 1), (800.0, 0)):
        plan = rm.Plan.of(
            topology={
                **{"kind": "dumbbell", "hosts-per-side": 8},
                **{"access-gbps": 100.0, "core-gbps": core},
            },
            transport={"name": "ndp"},
            workload={"pattern": "all-to-all", "sizes": "imc10", "load": 0.1, "flows": 10},
        )
        narrow = [one for one in plan.warnings if "receivers of ndp request" in one]
        assert len(narrow) == n_warnings, plan.warnings


def test_capton_uses_the_capacity_of_a_dumbbells_core() -> None:
    assert fidelity.MEASURES["A11"]().startswith(
        "capton: ends after 13.21 ms, 0.0 % retransmitted, 0"
    )


def test_an_incast_of_phost_is_warned_of() -> None:
    assert "had been sent before" in fidelity.MEASURES["A22"]()


def rows(page: str) -> dict[str, list[str]]:
    """Returns the cells of a page's tables by their first ones, without links."""
    found = {}
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("| "):
            first, *rest = (cell.strip() for cell in line.strip("| \n").split(" | "))
            found[first] = rest
    return found


def measured(name: str) -> Ratios:
    """Returns the ratios of a replay's entry in the ledger."""
    ledger = ReplayLedger(ROOT / "papers")
    known = ledger.find(name)
    assert known is not None
    entry = ledger.entry(known)
    assert entry is not None
    return entry.ratios


REPLAY_ROWS = {
    "dcpim-imc10": "[dcPIM](../protocols/dcpim.md), IMC10",
    "dcpim-web-search": "dcPIM, Web Search",
    "phost": "[pHost](../protocols/phost.md)",
    "pfabric": "[pFabric](../protocols/pfabric.md)",
    "fastpass": "[Fastpass](../protocols/fastpass.md)",
    "ndp": "[NDP](../protocols/ndp.md)",
    "ndp-opera-1": "NDP, Clos at load 0.01",
    "ndp-opera-5": "NDP, Clos at load 0.05",
    "homa": "[Homa](../protocols/homa.md)",
    "homa-incast": "Homa, incast",
    "dctcp": "[DCTCP](../protocols/dctcp.md)",
    "tcp": "[TCP Cubic](../protocols/tcp.md)",
    "pias": "[PIAS](../protocols/pias.md)",
    "dctcp-capton": "DCTCP, preset `ns-2`",
}


OTHER_TABLES = ("homa", "homa-incast", "pias", "dctcp-capton")
"""Replays whose pages have the classes of their studies."""


def test_all_replays_are_in_the_documentation() -> None:
    known = ReplayLedger(ROOT / "papers").setups()
    assert {one.name for one in known} == REPLAY_ROWS.keys()


@pytest.mark.parametrize("name", REPLAY_ROWS)
def test_the_documentation_has_the_measurements_of_the_replay(name: str) -> None:
    _, flows, everything, furthest = rows("docs/howto/reference-data.md")[REPLAY_ROWS[name]]
    ratios = measured(name)
    assert int(flows.replace(" ", "")) == ratios.flows
    assert everything == f"{ratios.mean:.3f}"
    assert furthest == ("-" if ratios.furthest is None else f"{ratios.furthest:.3f}")


def test_the_readme_has_the_ratios_of_the_documentation() -> None:
    pages = rows("docs/howto/reference-data.md")
    names = {re.sub(r"[][]|\(.*?\)", "", name): cells for name, cells in pages.items()}
    ratios = {name: cells[:4] for name, cells in rows("README.md").items() if name in names}
    assert len(ratios) == 9, "eight rows and the head"
    assert all(names[name] == cells for name, cells in ratios.items())


@pytest.mark.parametrize("name", [name for name in REPLAY_ROWS if name not in OTHER_TABLES])
def test_the_protocol_page_has_the_measurements_of_the_replay(name: str) -> None:
    ratios = measured(name)
    values = [ratios.mean, *(value for value in ratios.classes if value is not None)]
    row = " | ".join(f"{value:.3f}" for value in values)
    page = ROOT / "docs" / "protocols" / f"{name.partition('-')[0]}.md"
    assert f"| {row} |" in page.read_text(encoding="utf-8").replace("| | ", "| ")

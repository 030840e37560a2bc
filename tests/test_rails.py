"""Hosts with several links, failures of links and hosts, and links that lose packets."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import rampmeter as rm
from rampmeter.plan.plan import Plan

LONE = 'pattern = "incast"\nfan = 1\nflow-bytes = 10000000\nhub = 0'
SPREAD = 'pattern = "all-to-all"\nsizes = "imc10"\nload = 0.6\nflows = 1500'
SEVERAL = ("dcpim", "phost", "pfabric", "fastpass")


def plan(tmp_path: Path, transport: str, workload: str, rails: int = 2, rest: str = "") -> Plan:
    file = tmp_path / "plan.toml"
    file.write_text(f"""
[topology]
kind = "leaf-spine"
racks = 2
hosts-per-rack = 3
spines = 2
rails = {rails}

[transport]
name = "{transport}"

[workload]
{workload}

[run]
links = true

{rest}
""")
    return Plan.load(file)


def run(plan: Plan, tmp_path: Path) -> rm.Run:
    return rm.run(plan, out=tmp_path / "r", quiet=True)


def slowdown(done: rm.Run) -> Any:
    flows = done.flows.to_pandas()
    return flows["fct_ps"] / flows["ideal_ps"]


@pytest.mark.parametrize("transport", ["ideal", *SEVERAL])
class TestRails:
    def test_a_lone_flow_takes_all_links_and_no_less_than_the_ideal(
        self, tmp_path: Path, transport: str
    ) -> None:
        done = run(plan(tmp_path, transport, LONE), tmp_path)
        assert 1.0 <= slowdown(done).max() < 1.15
        # 10 MB in packets of 1500 B over two links of 100 Gbit/s.
        assert 410e6 < done.flows["ideal_ps"][0].as_py() < 420e6

    def test_no_flow_beats_the_ideal_and_links_are_used_alike(
        self, tmp_path: Path, transport: str
    ) -> None:
        done = run(plan(tmp_path, transport, SPREAD), tmp_path)
        assert done.status == "finished"
        assert slowdown(done).min() >= 1.0
        if transport == "ideal":
            return
        links = pq.read_table(done.path / "links.parquet").to_pandas()
        host = links[links["tier"] == "host-up"].groupby(["from", "to"])["sent_bytes"].sum()
        for own in (host[f"h{h}"] for h in range(6)):
            assert own.max() < 1.02 * own.min()


class TestFaults:
    @pytest.mark.parametrize("transport", SEVERAL)
    def test_the_other_link_serves_while_one_is_down(self, tmp_path: Path, transport: str) -> None:
        outage = '[faults]\nrerouting-us = 0\noutages = [{ link = "h0-s0", from-us = 0 }]'
        workload = LONE.replace("hub = 0", "hub = 0\nstart-us = 5")
        done = run(plan(tmp_path, transport, workload, rest=outage), tmp_path)
        assert done.status == "finished"
        assert 1.9 < slowdown(done).max() < 2.6
        links = pq.read_table(done.path / "links.parquet").to_pandas()
        down = links[(links["from"] == "h0") & (links["to"] == "s0")]
        assert down["sent_bytes"].sum() == 0

    def test_a_further_link_that_is_not_used_changes_nothing(self, tmp_path: Path) -> None:
        """The host's transport queues its packets while its nearest link is busy."""
        file = tmp_path / "plan.toml"
        ends = [("h0", "s0"), ("h1", "s0"), ("s0", "s1")]
        queues, means = [], []
        for links in (ends, [*ends, ("h0", "s1")]):
            listed = ", ".join(f'{{ between = ["{a}", "{b}"] }}' for a, b in links)
            file.write_text(f"""
[topology]
kind = "links"
hosts = 2
switches = 2
links = [{listed}]

[transport]
name = "pfabric"

[workload]
pattern = "incast"
fan = 1
flow-bytes = 500000
hub = 1
rounds = 4
period-us = 5
""")
            done = rm.run(Plan.load(file), out=tmp_path / str(len(links)), quiet=True)
            tiers = {tier["name"]: tier for tier in done.summary["tiers"]}
            queues.append(tiers["host-up"]["queue_max_bytes"])
            means.append(done.summary["slowdown"]["delivered"]["overall"]["mean"])
        # One packet may wait for the nearest link while the other is idle.
        assert queues[0] == 0
        assert queues[1] <= 1500
        assert means[1] == pytest.approx(means[0], rel=0.02)

    def test_a_single_link_loses_packets(self, tmp_path: Path) -> None:
        faults = '[faults]\nlinks = [{ link = "h1-s0", loss = 0.01 }]'
        done = run(plan(tmp_path, "dcpim", SPREAD, rest=faults), tmp_path)
        drops = pq.read_table(done.path / "drops.parquet").to_pandas()
        assert {frozenset(ends) for ends in zip(drops["from"], drops["to"], strict=True)} == {
            frozenset({"h1", "s0"})
        }
        assert set(drops["reason"]) == {"loss"}
        links = pq.read_table(done.path / "links.parquet").to_pandas()
        sent = links[((links["from"] == "h1") & (links["to"] == "s0"))]["sent_bytes"].sum()
        lost = drops[drops["from"] == "h1"]["bytes"].sum()
        assert 0.003 < lost / sent < 0.03

    def test_flows_of_a_repaired_host_complete(self, tmp_path: Path) -> None:
        outage = (
            "[faults]\nrerouting-us = 10\noutages = [{ host = 0, from-us = 50, until-us = 400 }]"
        )
        done = run(plan(tmp_path, "dcpim", LONE, rails=1, rest=outage), tmp_path)
        assert done.status == "finished"
        flow = done.flows.to_pylist()[0]
        assert flow["fct_ps"] > 350_000_000 + 800_000_000
        rows = pq.read_table(done.path / "outages.parquet").to_pylist()
        assert [(row["element"], row["state"]) for row in rows] == [("h0", "down"), ("h0", "up")]

    @pytest.mark.parametrize(
        ("faults", "message"),
        [
            ('outages = [{ link = "h0-s9", from-us = 0 }]', "ends of a link of the topology"),
            (
                "outages = [{ host = 6, from-us = 0 }]",
                "expected a number below 6 or a name, h0 to h5, got 6",
            ),
            (
                "outages = [{ from-us = 0 }]",
                "expected one of link, host, switch and arbiter, got none",
            ),
            (
                "outages = [{ host = 1, switch = 1, from-us = 0 }]",
                "expected one of link, host, switch and arbiter, got host and switch",
            ),
            ('links = [{ link = "h0-s0", loss = 2.0 }]', "faults.links"),
        ],
    )
    def test_faults_of_unknown_parts_are_errors(
        self, tmp_path: Path, faults: str, message: str
    ) -> None:
        with pytest.raises(rm.PlanError, match=message):
            plan(tmp_path, "dcpim", LONE, rest=f"[faults]\n{faults}").check()

    def test_cosy_requires_hosts_with_one_link(self, tmp_path: Path) -> None:
        with pytest.raises(rm.PlanError, match="hosts with several links"):
            plan(tmp_path, "cosy", LONE).check()


IN_AND_OUT = [
    ends
    for host in range(8)
    for ends in ([f"h{host}", f"s{host % 2}"], [f"h{host}", f"s{3 + host // 2}"])
]


class TestPlanes:
    """Servers of two hosts with a link inside, and a link of each host to one of two rails."""

    def flows(self, tmp_path: Path, transport: str) -> tuple[Any, list[str]]:
        """Returns slowdowns of a flow out of a server, and of a longer one within it."""
        file = tmp_path / "flows.csv"
        file.write_text("arrival_ps,src,dst,size_bytes\n0,0,2,10000000\n0,0,1,11000000\n")
        links: list[Any] = [{"between": ends, "gbps": 100} for ends in IN_AND_OUT]
        links += [{"between": [f"s{rail}", "s2"], "gbps": 400} for rail in (0, 1)]
        done = rm.run(
            topology={"kind": "links", "hosts": 8, "switches": 7, "links": links},
            transport={"name": transport},
            workload={"pattern": "trace", "file": str(file)},
            quiet=True,
        )
        return slowdown(done), done.summary["warnings"]

    @pytest.mark.parametrize(
        "transport",
        [
            *("ideal", "dcpim", "phost", "pfabric", "tcp", "dctcp"),
            *("pias", "ndp", "homa", "homa-aeolus", "sird", "hpcc"),
        ],
    )
    def test_flows_by_different_links_do_not_wait_for_each_other(
        self, tmp_path: Path, transport: str
    ) -> None:
        found, warnings = self.flows(tmp_path, transport)
        assert found.min() >= 1.0
        assert found.max() < 1.1
        assert not any("holds up" in warning for warning in warnings)

    @pytest.mark.parametrize("transport", ["capton", "hyline"])
    def test_transports_with_agents_are_warned_about(self, tmp_path: Path, transport: str) -> None:
        _, warnings = self.flows(tmp_path, transport)
        assert any("holds up those that a host sends" in warning for warning in warnings)


def both_ways(transport: str, gbps: float) -> rm.Run:
    """Runs 2 MB each way between two hosts with links of 100 Gbit/s and of another rate."""
    links: list[Any] = [
        {"between": [f"h{host}", f"s{switch}"], "gbps": rate, "propagation-ns": 500}
        for switch, rate in ((0, 100.0), (1, gbps))
        for host in range(5)
    ]
    flows = rm.flows(
        {"arrival_us": [1.0, 1.0], "src": [0, 4], "dst": [4, 0], "size_bytes": [SIZE] * 2}
    )
    return rm.run(
        topology={"kind": "links", "hosts": 5, "switches": 2, "links": links},
        transport={"name": transport},
        workload={"pattern": "trace", "file": str(flows.file)},
        quiet=True,
    )


SIZE = 2_000_000


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("gbps", [10.0, 25.0, 40.0])
@pytest.mark.parametrize("transport", ["pfabric", "ndp", "homa", "sird"])
def test_traffic_in_both_directions_fills_links_of_two_rates(transport: str, gbps: float) -> None:
    """Control packets that waited at the slow link kept the host from the fast one."""
    assert slowdown(both_ways(transport, gbps)).max() < 1.15


def test_transports_with_slots_are_warned_of_links_of_two_rates() -> None:
    links: list[Any] = [
        {"between": [f"h{h}", f"s{s}"], "gbps": r} for h in range(4) for s, r in ((0, 100), (1, 25))
    ]
    for transport, n_warnings in (("fastpod", 1), ("fastpass", 1), ("homa", 0)):
        plan = rm.Plan.of(
            topology={"kind": "links", "hosts": 4, "switches": 2, "links": links},
            transport={"name": transport},
            workload={"pattern": "all-to-all", "sizes": "imc10", "load": 0.1, "flows": 10},
        )
        found = [one for one in plan.warnings if "slots of the whole rate of a host" in one]
        assert len(found) == n_warnings, plan.warnings


class TestParallelLinks:
    """Hosts with two links to the switch of their rack, as link aggregation has them."""

    def run(self, tmp_path: Path, transport: str, gbps: tuple[int, int], **faults: Any) -> rm.Run:
        """Runs two flows of 10 MB, one after the other, out of a rack and within it."""
        file = tmp_path / "flows.csv"
        file.write_text("arrival_us,src,dst,size_bytes\n0,0,3,10000000\n20000,1,0,10000000\n")
        links: list[Any] = [
            {"between": [f"h{host}", f"s{host // 2}"], "gbps": rate}
            for host in range(4)
            for rate in gbps
        ]
        links.append({"between": ["s0", "s1"], "gbps": 400})
        return rm.run(
            topology={"kind": "links", "hosts": 4, "switches": 2, "links": links},
            transport={"name": transport},
            workload={"pattern": "trace", "file": str(file)},
            run={"drain-us": 1_000_000.0, "links": True},
            faults=faults,
            out=tmp_path / "run",
            quiet=True,
        )

    @pytest.mark.parametrize("gbps", [(50, 50), (100, 50)])
    @pytest.mark.parametrize("transport", ["ideal", "phost", "pfabric", "ndp", "homa", "sird"])
    def test_a_lone_flow_takes_both_links_by_their_rates(
        self, tmp_path: Path, transport: str, gbps: tuple[int, int]
    ) -> None:
        done = self.run(tmp_path, transport, gbps)
        found = slowdown(done)
        assert found.min() >= 1.0
        assert found.max() < 1.1
        if transport == "ideal":
            # It sends no packets.
            return
        table = pq.read_table(tmp_path / "run" / "links.parquet").to_pandas()
        sent = table[table["to"] == "h3"].groupby("link")["sent_bytes"].sum()
        assert list(sent.index) == [6, 7]
        assert sent[6] / sent[7] == pytest.approx(gbps[0] / gbps[1], rel=0.1)

    @pytest.mark.parametrize("transport", ["ndp", "homa", "tcp"])
    def test_one_link_carries_all_while_the_other_is_down(
        self, tmp_path: Path, transport: str
    ) -> None:
        outage = {"link": "h3-s1#1", "from-us": 100.0, "until-us": 15_000.0}
        done = self.run(tmp_path, transport, (50, 50), outages=[outage])
        assert done.flows["status"].to_pylist() == ["delivered", "delivered"]

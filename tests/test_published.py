"""Published values and settings: figures match the papers' tables and files.

Values are compared with the files of dcPIM's artifact, if they are next to the repository. Settings
are compared with a transcription of each paper's table of parameters: plans are resolved, not run.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, ClassVar

import pytest

from rampmeter import papers
from rampmeter.papers import Figure
from rampmeter.papers.expected import CellId, ExpectedValue
from rampmeter.papers.figure import FigureRun
from rampmeter.papers.verdict import Basis, rows_of

from .conftest import ROOT

FILES = ROOT.parent / "shared/data/published/dcpim"
"""Value files of dcPIM's artifact; tests pass without them."""
FOUR = ("homa-aeolus", "ndp", "hpcc", "dcpim")
COLUMNS = {
    "aditya_all-to-all": ("dcpim",),
    "local_traffic": ("ndp", "hpcc", "dcpim"),
    "bursty_aditya": ("homa", "ndp", "hpcc", "dcpim"),
    "aditya_bursty": ("homa", "ndp", "hpcc", "dcpim"),
    "dctcp_bursty": ("dcpim",),
    "datamining_bursty": ("dcpim",),
}
"""Schemes by column, of files that have others than `FOUR`."""
WORKLOADS = {"imc10": "IMC10", "web-search": "Web Search", "data-mining": "Data Mining"}
BINS = ("<1BDP", "<2BDP", "<4BDP", "<8BDP", "<16BDP", "infi")
CHANNELS = (1, 2, 4, 8)
ALL = slice(None)
SINGLE = ("homa", "ndp", "hpcc", "pim")
COPIES: dict[str, tuple[slice, list[str], slice]] = {
    "aditya_load_util.dat": (
        ALL,
        [f"aditya_{name}_max_load_util.dat" for name in ("homa_aeolus", "ndp", "hpcc", "pim")],
        ALL,
    ),
    "dctcp_all-to-all_100_slowdown_size.dat": (
        slice(2),
        ["all-to-all_dctcp_100_slowdown_size.dat"],
        slice(6, 8),
    ),
    "fat_tree_aditya_100_slowdown_size.dat": (
        ALL,
        ["fat_tree_aditya_100_fat_slowdown_size.dat"],
        ALL,
    ),
    "local_traffic_aditya_100_slowdown_size.dat": (
        ALL,
        ["local_traffic_aditya_100_os_slowdown_size.dat"],
        ALL,
    ),
    **{
        f"bursty_aditya_{name}_slowdown_size.dat": (
            ALL,
            ["bursty_aditya_100_slowdown_size.dat"],
            ALL,
        )
        for name in SINGLE
    },
    **{
        f"aditya_bursty_{name}_load_{end}": (
            ALL,
            [f"aditya_bursty_load_{end}"],
            slice(column, column + 1),
        )
        for column, name in enumerate(SINGLE)
        for end in ("slowdown.dat", "99_slowdown.dat")
    },
}
"""Files whose values another file has: their columns, the others, and the columns of these."""
WITHOUT_PLAN = {
    "pim_beta_slowdown.dat",
    "pim_beta_util.dat",
    "pim_alpha_slowdown.dat",
    "pim_alpha_slowdown_flow_size.dat",
    "pim_alpha_util.dat",
    "permutation_slowdown.dat",
    "permutation_99_slowdown.dat",
    "permutation_util.dat",
    *(
        f"{workload}_load_{of}_queue_size.dat"
        for workload in ("aditya", "dctcp", "datamining")
        for of in ("avg", "max")
    ),
}
"""Files of runs whose settings the artifact does not state."""

DCPIM = sorted(
    folder.name
    for folder in papers.list_figures(ROOT / "papers")
    if "dcpim" in str(folder) and folder.name != "fig7"
)
"""Figures of dcPIM's simulations; figure 7 is of its testbed."""


@cache
def figure(paper: str, folder: str) -> Figure:
    return papers.load_figure(ROOT / "papers" / paper / folder)


def rows_of_file(name: str) -> dict[str, list[float]]:
    """Returns the rows of a value file by their labels; of equal labels the last."""
    rows = {}
    for line in (FILES / name).read_text().splitlines():
        if found := re.match(r'^("[^"]*"|\S+)\s+(.*)$', line.strip()):
            rows[found[1].strip('" ')] = [float(one) for one in found[2].split()]
    return rows


def names_of(text: str) -> list[str]:
    """Expands the braces of a pattern of names, as a shell does."""
    parts = re.split(r"\{([^}]*)\}", text)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(one) for one in product(*choices)]


def in_file(name: str, run: FigureRun, plan: Any, cell: CellId) -> float:
    """Returns the value of a file for a cell of a figure."""
    rows = rows_of_file(name)
    if (parameter := re.fullmatch(r"(imc10|web-search)-(?:r|fct-)(\d+)", run.id)) is not None:
        return rows[f"{parameter[2]}.0"][("imc10", "web-search").index(parameter[1])]
    if name.endswith("_switch_size.dat"):
        return rows[f"{plan.get('workload.load'):g}"][0]
    if name.startswith("pim_k") and cell.bin is None:
        transport = plan.check()["transport"]
        value = rows[f"{transport['matching-rounds']}.0"][CHANNELS.index(transport["channels"])]
        return value / 100 if name == "pim_k_util.dat" else value
    start = "_".join(name.split("_")[:2])
    schemes = ("",) if "max_load" in name else COLUMNS.get(start, FOUR)
    scheme = plan.get("transport.name")
    column = 0 if len(schemes) == 1 else schemes.index(scheme)
    if name.startswith("pim_k"):
        column = plan.get("transport.channels") - 1
    if "slowdown_size" in name:
        assert cell.bin is not None
        mean, above = rows[BINS[cell.bin]][2 * column : 2 * column + 2]
        return mean if cell.metric == "mean" else mean + above
    if start.startswith(("all-to-all_", "fat_tree", "local_traffic")):
        return rows[WORKLOADS[plan.get("workload.sizes")]][column]
    return rows[f"{plan.get('workload.load'):g}"][column]


def facts_of_files(one: Figure) -> Iterator[tuple[CellId, ExpectedValue, str]]:
    for cell, fact in one.expected.facts.items():
        if found := re.match(r"([\w-]+\.dat)", fact.source):
            yield cell, fact, found[1]


class TestValuesOfTheArtifact:
    @pytest.mark.parametrize("folder", DCPIM)
    def test_values_of_the_artifact_are_those_of_its_files(self, folder: str) -> None:
        one = figure("dcpim", folder)
        for cell, fact, name in facts_of_files(one) if FILES.is_dir() else ():
            run = one.run(cell.run)
            plan = one.plan_of(run, run.flows, 1, 0.5 if run.search else None)
            digits = 4 if cell.metric == "delivered-share" else 3
            expected = in_file(name, run, plan, cell)
            assert fact.expected == pytest.approx(expected, abs=0.51 * 10**-digits), (cell, name)

    def test_values_of_figure_3a_name_their_scheme(self) -> None:
        one = figure("dcpim", "fig3a")
        short = {"imc10": "aditya", "web-search": "dctcp", "data-mining": "datamining"}
        n = 0
        for cell, fact, name in facts_of_files(one):
            if cell.metric == "max-load" or cell.sub_figure.endswith("-2"):
                continue
            plan = one.plan_of(one.run(cell.run), None, 1)
            scheme = plan.get("transport.name").replace("-", "_")
            assert name == f"{short[plan.get('workload.sizes')]}_{scheme}_max_load_util.dat"
            if FILES.is_dir():
                (value,) = rows_of_file(name)[f"{plan.get('workload.load'):g}"]
                assert fact.expected == pytest.approx(value, abs=0.51e-4)
            n += 1
        assert n == 38

    def test_the_artifact_has_hundreds_of_values(self) -> None:
        counts = {name: len([*facts_of_files(figure("dcpim", name))]) for name in DCPIM}
        assert counts["baselines"] == 3 * 2 * 4 * 7
        assert counts["fig6"] == 2 * 5 * 4
        assert counts["artifact"] == 60 + 12 + 144 + 12 + 8
        assert sum(counts.values()) == 898

    def test_every_file_is_transcribed_a_copy_or_without_a_plan(self) -> None:
        named = {
            found
            for folder in DCPIM
            for fact in figure("dcpim", folder).expected.facts.values()
            for found in re.findall(r"[\w-]+\.dat", fact.source)
        }
        assert not named & {*COPIES, *WITHOUT_PLAN}
        notes = (ROOT / "papers/dcpim/artifact/NOTES.md").read_text(encoding="utf-8")
        assert {*COPIES, *WITHOUT_PLAN} <= {
            name for text in re.findall(r"`([^`]+\.dat)`", notes) for name in names_of(text)
        }
        if FILES.is_dir():
            files = {file.name for file in FILES.glob("*.dat")}
            assert files == named | {*COPIES, *WITHOUT_PLAN}

    @pytest.mark.skipif(not FILES.is_dir(), reason="no files of the artifact")
    @pytest.mark.parametrize("name", COPIES)
    def test_a_copy_has_no_separate_value(self, name: str) -> None:
        own, others, columns = COPIES[name]
        known = [rows_of_file(other) for other in others]
        for label, values in rows_of_file(name).items():
            assert values[own] == [value for rows in known for value in rows[label][columns]], label

    def test_values_of_another_revision_are_marked(self) -> None:
        facts = figure("dcpim", "fig5a").expected.facts
        for cell, fact in facts.items():
            assert bool(fact.revision) == (cell.run.endswith("dcpim")), cell

    @pytest.mark.skipif(not FILES.is_dir(), reason="no files of the artifact")
    def test_published_bins_of_figure_3c_are_of_another_run_than_the_mean(self) -> None:
        """Shares of flows by bin, from a run of IMC10 with 1 000 000 flows."""
        shares = (0.816, 0.019, 0.037, 0.034, 0.021, 0.072)

        def weighted(name: str, column: int) -> float:
            rows = rows_of_file(name)
            return sum(share * rows[bin_][column] for share, bin_ in zip(shares, BINS, strict=True))

        mean = rows_of_file("all-to-all_slowdown.dat")["IMC10"][FOUR.index("dcpim")]
        assert weighted("aditya_all-to-all_100_slowdown_size.dat", 0) == pytest.approx(mean, 5e-3)
        assert weighted("all-to-all_aditya_100_slowdown_size.dat", 6) < 0.95 * mean
        for cell, fact in figure("dcpim", "fig3").expected.facts.items():
            is_of_another_run = fact.revision.startswith("another run")
            assert (cell.sub_figure in ("c", "h")) == is_of_another_run, cell

    def test_no_run_of_fewer_flows_can_match(self) -> None:
        """Figure 5a's Data Mining has 10 000 of the published 1 000 000 flows."""
        one = figure("dcpim", "fig5a")
        rows = rows_of(one, one.sub_figures[2], {}, Basis(papers.Mode(), [1]))
        judged = {row.verdict for row in rows if row.fact is not None}
        assert judged == {"fewer flows"}


def resolved(paper: str, *folders: str) -> Iterator[tuple[str, dict[str, Any], dict[str, float]]]:
    """Every setting of the figures' runs, resolved: a name, the whole plan, and derived values.

    Runs that differ in their workload alone are one.
    """
    for folder in folders:
        one = figure(paper, folder)
        seen = set()
        for run in one.runs:
            plan = one.plan_of(run, run.flows, 1, 0.5 if run.search else None)
            table = plan.table()
            key = json.dumps([table.get(name) for name in ("topology", "fabric", "transport")])
            if key not in seen:
                seen.add(key)
                yield f"{folder} {run.id}", plan.check(), plan.derived()


def has(table: dict[str, Any], **values: object) -> bool:
    """Returns true if a table of a plan has these values; `_` means `-` in keys."""
    return all(table[key.replace("_", "-")] == value for key, value in values.items())


OF_NO_PAPER = {
    ("capton", "others"),
    ("collectives", "all"),
    ("cosy", "fig2"),
    ("fastpod", "inter-pod"),
    ("fastpod", "scale"),
    ("homa-dispute", "buffers"),
    ("homa-dispute", "max-load"),
}
"""Figures that run nothing, or with settings of this project."""
COMPARED = {
    "dcpim": (*DCPIM, "fig7"),
    "phost": ("fig3", "fig5", "fig6", "fig7", "fig8", "fig9"),
    "cosy": ("fig4", "fig5", "fig6", "fig7", "fig8"),
    "fastpod": ("fig3", "fig5", "million", "prices"),
    "capton": ("table1", "fig7", "fig8", "fig9"),
}
"""Figures whose settings are compared with their paper's."""


def test_the_settings_of_every_figure_are_compared() -> None:
    folders = {(one.parent.name, one.name) for one in papers.list_figures(ROOT / "papers")}
    compared = {(paper, name) for paper, names in COMPARED.items() for name in names}
    assert folders == compared | OF_NO_PAPER
    assert not compared & OF_NO_PAPER


class TestSettingsOfDcPim:
    """Table 1, and the parameters of section 4.1 and 3.4."""

    PORTS: ClassVar[dict[str, dict[str, int]]] = {
        "dcpim": {"buffer-bytes": 500_000},
        "homa": {"buffer-bytes": 500_000},
        "homa-aeolus": {"buffer-bytes": 500_000},
        "ndp": {"buffer-bytes": 8 * 1500},
        "hpcc": {"shared-buffer-bytes": 16_000_000},
    }

    @pytest.mark.parametrize("folder", DCPIM)
    def test_ports_are_those_of_table_1(self, folder: str) -> None:
        for name, plan, _ in resolved("dcpim", folder):
            ports = self.PORTS[plan["transport"]["name"]]
            assert {key: plan["fabric"][key] for key in ports} == ports, name
            if "shared-buffer-bytes" in ports:
                assert plan["fabric"]["pfc"], name

    @pytest.mark.parametrize("folder", DCPIM)
    def test_links_and_switches_are_those_of_table_1(self, folder: str) -> None:
        for name, plan, _ in resolved("dcpim", folder):
            topology = plan["topology"]
            assert has(topology, access_gbps=100.0, propagation_ns=200.0, switch_ns=450.0), name
            if folder == "fig5c":
                assert has(topology, kind="fat-tree", k=12, core_gbps=100.0), name
                assert topology["k"] ** 3 // 4 == 432
                continue
            core = 200.0 if folder == "fig5a" else 400.0
            assert has(topology, kind="leaf-spine", racks=9, hosts_per_rack=16, spines=4), name
            assert topology["core-gbps"] == core, name

    @pytest.mark.parametrize("folder", DCPIM)
    def test_dcpim_has_the_parameters_of_the_paper(self, folder: str) -> None:
        varied: dict[str, tuple[str, ...]] = {"fig6": ("matching-rounds", "channels", "beta")}
        varied |= dict.fromkeys(("fig6a", "artifact"), ("matching-rounds", "channels"))
        for name, plan, derived in resolved("dcpim", folder):
            transport = plan["transport"]
            if transport["name"] != "dcpim":
                continue
            for key, value in {"matching-rounds": 4, "channels": 4, "beta": 1.3}.items():
                if key not in varied.get(folder, ()):
                    assert transport[key] == value, name
            if folder not in ("fig5a", "fig5c"):
                # Section 3.4: 5.8 us, 5.2 us and 72.5 KB.
                assert derived["data-rtt-us"] == pytest.approx(5.8)
                assert derived["control-rtt-us"] == pytest.approx(5.2, abs=0.05)
                assert derived["bdp-bytes"] == 72_500

    def test_rounds_channels_and_slack_are_those_of_figure_6(self) -> None:
        ids = {run.id for run in figure("dcpim", "fig6").runs}
        grid = {f"r{rounds}-k{k}" for rounds in range(1, 6) for k in CHANNELS}
        assert {one for one in ids if one.startswith("r")} == grid
        assert grid == {run.id for run in figure("dcpim", "fig6a").runs}

    def test_incasts_of_figure_8_are_those_of_the_artifact(self) -> None:
        """Incasts of 64 000 B cut to packets of 1500 B: 42 packets of 1460 B, 2 % of the load."""
        for _, plan, _ in resolved("dcpim", "fig8"):
            workload = plan["workload"]
            assert has(workload, incast_bytes=64_000 // 1500 * 1460, fan_in=50, incast_load=0.02)
        panels = figure("dcpim", "fig8").sub_figures
        assert {panel.without_bytes for panel in panels} == {61_320, None}

    def test_the_testbed_has_32_hosts_at_10_gbps_and_a_round_trip_of_8_us(self) -> None:
        """Section 4.2; DCTCP's threshold at 10 Gbit/s is 65 packets in its paper."""
        for name, plan, derived in resolved("dcpim", "fig7"):
            topology, transport = plan["topology"], plan["transport"]
            assert has(topology, racks=8, hosts_per_rack=4, access_gbps=10.0, core_gbps=10.0), name
            assert derived["control-rtt-us"] == pytest.approx(8.0), name
            assert plan["workload"]["load"] == 0.5, name
            if name == "fig7 dctcp":
                assert plan["fabric"]["ecn-bytes"] == 65 * 1500
            if transport["name"] != "dcpim":
                assert has(transport, rto_min_us=200_000, rto_initial_us=1_000_000), name


class TestSettingsOfPHost:
    """The slides' test setup, and the authors' released scripts."""

    PFABRIC: ClassVar[dict[int, tuple[int, float]]] = {
        6200: (3, 9.5),
        18_432: (6, 23.7),
        36_864: (12, 45.0),
        73_728: (21, 88.1),
    }
    """First window in packets and timeout in microseconds by the bytes of a port."""

    @pytest.mark.parametrize("folder", COMPARED["phost"])
    def test_the_network_is_the_paper_s(self, folder: str) -> None:
        for name, plan, derived in resolved("phost", folder):
            topology = plan["topology"]
            assert has(topology, racks=9, hosts_per_rack=16, access_gbps=10.0, core_gbps=40.0), name
            assert has(topology, propagation_ns=200.0, switch_ns=0.0, host_ns=0.0), name
            assert plan["fabric"]["switching"] == "cut-through", name
            port = plan["fabric"]["buffer-bytes"]
            assert port in self.PFABRIC if folder == "fig8" else port == 36_864, name
            transport = plan["transport"]
            if transport["name"] == "pfabric":
                window, timeout = self.PFABRIC[port]
                assert derived["transport.window-initial-packets"] == window, name
                assert derived["transport.window-max-packets"] == window + 3, name
                assert derived["transport.timeout-us"] == pytest.approx(timeout, abs=0.1), name
            if transport["name"] == "fastpass":
                # Epochs of 8 packets, around 10 us.
                assert derived["transport.epoch-us"] == pytest.approx(8 * 1.275), name

    def test_loads_and_deadlines_are_the_paper_s(self) -> None:
        loads = {
            plan["workload"]["load"]
            for run in figure("phost", "fig6").runs
            for plan in [figure("phost", "fig6").plan_of(run, run.flows, 1).table()]
        }
        assert loads == {0.5, 0.6, 0.7, 0.8}
        deadlines = figure("phost", "fig5").plan.get("deadlines")
        assert deadlines == {"mean-us": 100.0, "ideal-factor-min": 1.25}


class TestSettingsOfCosy:
    """Sections 5.2, 5.3 and 6.3."""

    @pytest.mark.parametrize("folder", ["fig4", "fig8"])
    def test_the_testbed_has_8_hosts_at_10_gbps(self, folder: str) -> None:
        for name, plan, _ in resolved("cosy", folder):
            topology = plan["topology"]
            assert topology["racks"] * topology["hosts-per-rack"] == 8, name
            assert has(topology, access_gbps=10.0, core_gbps=10.0), name

    def test_the_simulation_has_144_hosts(self) -> None:
        for name, plan, derived in resolved("cosy", "fig5"):
            topology = plan["topology"]
            assert has(topology, racks=9, hosts_per_rack=16, access_gbps=100.0), name
            assert has(topology, propagation_ns=200.0, switch_ns=450.0), name
            assert plan["fabric"]["buffer-bytes"] == 32_000_000, name
            # The paper has 5.5 us, without the processing of hosts.
            assert derived["data-rtt-us"] == pytest.approx(5.8), name

    def test_the_storage_client_has_two_hosts_at_100_gbps(self) -> None:
        for name, plan, _ in resolved("cosy", "fig6", "fig7"):
            assert has(plan["topology"], kind="star", access_gbps=100.0), name


class TestSettingsOfFastpod:
    """Section 5."""

    @pytest.mark.parametrize("folder", COMPARED["fastpod"])
    def test_the_pod_is_the_paper_s(self, folder: str) -> None:
        for name, plan, derived in resolved("fastpod", folder):
            assert has(plan["topology"], kind="pod", k=8, gbps=100.0, propagation_ns=1000.0), name
            assert plan["fabric"]["switching"] == "cut-through", name
            if plan["transport"]["name"] == "fastpod":
                assert plan["fabric"]["buffer-bytes"] == 0, name
                # Three packets of 1500 bytes and two of 64.
                if folder in ("fig3", "fig5"):
                    assert derived["transport.slot-us"] == pytest.approx(0.37024), name

    def test_flows_and_loads_are_the_paper_s(self) -> None:
        one = figure("fastpod", "fig5")
        assert {run.flows for run in one.runs} == {one.published_flows} == {10_000}
        loads = {one.plan_of(run, 1, 1).get("workload.load") for run in one.runs}
        assert sorted(loads) == pytest.approx([0.1 * n for n in range(1, 11)])


class TestSettingsOfCapton:
    """Section V and tables 3 and 4. PIAS has ports of 240 packets too: see the notes."""

    RTO_US: ClassVar[dict[str, float]] = {"pias": 200_000.0, "hyline": 4000.0, "capton": 200_000.0}
    THRESHOLDS_MB: ClassVar[dict[str, dict[float, tuple[float, float]]]] = {
        # By load of access links in percent: Web Search, Data Mining.
        "access": {18.2: (9.18, 35.1), 21.8: (7.45, 28.05), 25.5: (7.45, 28.05)}
        | {29.1: (7.45, 28.05), 32.7: (6.42, 23.77), 36.4: (6.42, 23.77)},
        "core": {18.2: (5.72, 20.9), 21.8: (5.2, 18.82), 25.5: (4.8, 17.21)}
        | {29.1: (4.47, 15.93), 32.7: (4.2, 14.88), 36.4: (4.2, 14.88)},
    }

    @pytest.mark.parametrize("folder", COMPARED["capton"])
    def test_the_network_is_the_paper_s(self, folder: str) -> None:
        for name, plan, derived in resolved("capton", folder):
            topology, transport = plan["topology"], plan["transport"]
            assert has(topology, racks=12, hosts_per_rack=12, spines=4, access_gbps=10.0), name
            assert topology["core-gbps"] == (30.0 if name.endswith("-1-1") else 10.0), name
            # 85.2 us; without the packet of the way back, which `data-rtt-us` takes as a full one.
            rtt_us = derived["data-rtt-us"] - (9.6 if topology["core-gbps"] == 10.0 else 6.4) / 2
            assert rtt_us == pytest.approx(85.2, rel=0.02), name
            port = plan["fabric"]["buffer-bytes"]
            packets = 240 if transport["name"] == "pias" and "142" not in name else 142
            assert port == packets * 1500, name
            # Connections of PIAS remain on their path.
            spray = "ecmp-pair" if transport["name"] == "pias" else "ecmp"
            assert plan["fabric"]["spray"] == spray, name
            if rto_us := self.RTO_US.get(transport["name"]):
                assert derived["transport.rto-min-us"] == rto_us, name
            if transport["name"] == "capton":
                # Ten segments of 1460 bytes.
                assert derived["transport.short-flow-bytes"] == 14_600, name

    @pytest.mark.parametrize(("folder", "column"), [("fig8", 0), ("fig9", 1)])
    def test_hyline_s_thresholds_are_those_of_table_4(self, folder: str, column: int) -> None:
        one = figure("capton", folder)
        for by, rows in self.THRESHOLDS_MB.items():
            for load, values in rows.items():
                plan = one.plan_of(one.run(f"hyline-{by}-{load}"), 1, 1)
                threshold = plan.get("transport.short-flow-bytes")
                assert threshold == pytest.approx(values[column] * 1e6), (by, load)
                assert plan.get("workload.load") == pytest.approx(load / 100, abs=6e-4)

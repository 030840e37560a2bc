"""Networks, files and packets unlike those of papers: each case had a wrong result or no error."""

from collections.abc import Iterable
from pathlib import Path

import pytest

import rampmeter as rm

TRACE = '[workload]\npattern = "trace"\nfile = "f.csv"\n'
HEADER = "arrival_ns,src,dst,size_bytes"


def finished(folder: Path, text: str, flows: Iterable[str] = (), header: str = HEADER) -> rm.Run:
    """Runs a plan; `flows` are rows of its trace."""
    (folder / "f.csv").write_text("\n".join([header, *flows, ""]))
    (folder / "p.toml").write_text(text if "[workload]" in text else text + TRACE)
    plan = rm.Plan.load(folder / "p.toml")
    return rm.run(plan, out=folder / "out", quiet=True, force=True)


def error_of(folder: Path, text: str, rows: Iterable[str] = (f"{HEADER}", "0,0,1,1000")) -> str:
    (folder / "f.csv").write_text("\n".join([*rows, ""]))
    (folder / "p.toml").write_text(text if "[workload]" in text else text + TRACE)
    with pytest.raises(rm.PlanError) as error:
        rm.Plan.load(folder / "p.toml").check()
    return str(error.value)


def star(hosts: int, gbps: float, transport: str, more: str = "") -> str:
    return (
        f'[topology]\nkind = "star"\nhosts = {hosts}\naccess-gbps = {gbps}\n{more}\n'
        f'[transport]\nname = "{transport}"\n'
    )


LINKS = ("gpu0,leaf0,100", "gpu1,leaf0,100", "gpu0,gpu1,400")


def with_links(folder: Path, links: Iterable[str], key: str) -> str:
    (folder / "links.csv").write_text("\n".join(["from,to,gbps", *links, ""]))
    return f'[topology]\nkind = "file"\nfile = "links.csv"\n{key}\n[transport]\nname = "homa"\n'


@pytest.mark.filterwarnings("ignore")
def test_hosts_that_forward_are_hosts_in_tables_of_links(tmp_path: Path) -> None:
    text = with_links(tmp_path, LINKS, "hosts-forward = true")
    run = finished(tmp_path, text, ["0,0,1,1000000"])
    [flow] = run.flows.to_pylist()
    # 685 packets of 1500 bytes at 400 Gbit/s take 20.5 us.
    assert 20e6 < flow["fct_ps"] < 25e6
    ring = [f"h{n},h{(n + 1) % 4},100" for n in range(4)]
    text = with_links(tmp_path, ring, "hosts-forward = true")
    assert finished(tmp_path, text, ["0,0,2,1000"]).status == "finished"


def test_a_table_whose_hosts_are_joined_needs_the_key(tmp_path: Path) -> None:
    assert "set topology.hosts-forward = true" in error_of(
        tmp_path, with_links(tmp_path, LINKS, "")
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transport", ["fastpass", "fastpod", "capton", "cosy", "tcp", "homa"])
def test_the_goodput_of_a_lone_flow_is_its_size_over_its_time(
    tmp_path: Path, transport: str
) -> None:
    text = star(2, 100, transport, "propagation-ns = 1000000")
    run = finished(tmp_path, text, ["0,0,1,100000"])
    [flow] = run.flows.to_pylist()
    expected = flow["size_bytes"] * 8e3 / flow["fct_ps"]
    assert run.summary["goodput_gbps"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_jitter_of_an_incast_leaves_its_goodput(tmp_path: Path) -> None:
    goodputs = []
    for step in (0, 1):
        flows = [f"{n * step},{n},7,1000000" for n in range(7)]
        goodputs.append(finished(tmp_path, star(8, 10, "homa"), flows).summary["goodput_gbps"])
    assert goodputs[0] == pytest.approx(goodputs[1], rel=0.01)
    assert goodputs[0] > 9


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("delay_ns", [200, 20_000])
@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_interfaces_that_queue_keep_the_first_window_of_ndp(
    tmp_path: Path, delay_ns: int, preset: str
) -> None:
    text = star(2, 100, "ndp", f"propagation-ns = {delay_ns}")
    text += f'preset = "{preset}"\n[fabric]\ninterface = "queue"\n'
    [flow] = finished(tmp_path, text, ["0,0,1,300000"]).flows.to_pylist()
    # The window of the reference has 50 packets.
    assert preset == "reference" or flow["fct_ps"] / flow["ideal_ps"] < 1.1
    assert flow["retransmitted_bytes"] == 0


@pytest.mark.filterwarnings("ignore")
def test_ndp_ends_with_packets_as_short_as_headers(tmp_path: Path) -> None:
    text = (
        '[topology]\nkind = "dumbbell"\nhosts-per-side = 2\naccess-gbps = 1\ncore-gbps = 1\n'
        '[transport]\nname = "ndp"\npayload-bytes = 64\n[run]\ndrain-us = 3e5\n'
    )
    run = finished(tmp_path, text, ["0,0,2,1000000", "0,3,1,1000000", "0,1,3,1000000"])
    assert run.status == "finished"
    assert run.summary["flows"]["delivered"] == 3


def test_flows_of_more_packets_than_a_number_has_are_refused(tmp_path: Path) -> None:
    flows = [HEADER, f"0,0,1,{10**13}"]
    # 1460 bytes in each of 2^32 - 1 packets.
    assert "at most 6270652250700" in error_of(tmp_path, star(2, 400, "ideal"), flows)
    sizes = '[workload]\npattern = "all-to-all"\nload = 0.1\nflows = 10\nsizes = { fixed = 1e13 }\n'
    sizes = sizes.replace("1e13", str(10**13))
    assert "at most 6270652250700" in error_of(tmp_path, star(2, 400, "ideal") + sizes)


@pytest.mark.filterwarnings("ignore")
def test_no_tier_is_used_more_than_it_can_be(tmp_path: Path) -> None:
    text = (
        '[topology]\nkind = "dumbbell"\nhosts-per-side = 1\naccess-gbps = 100\ncore-gbps = 1\n'
        '[transport]\nname = "homa"\npayload-bytes = 8960\n'
    )
    run = finished(tmp_path, text, ["0,0,1,2000000"])
    for sample in run.series.to_pylist():
        assert sample["utilisation"] <= 1.01, sample
    assert max(tier["utilisation"] for tier in run.summary["tiers"]) <= 1.01


def test_memory_holds_packets_in_whole_cells(tmp_path: Path) -> None:
    text = star(3, 10, "homa") + "[fabric]\nbuffer-bytes = 3000\nbuffer-cell-bytes = 9000\n"
    error = error_of(tmp_path, text)
    assert "at least 9000, the minimum of the transport in cells of 9000 bytes" in error


@pytest.mark.filterwarnings("ignore")
def test_each_tier_has_one_row(tmp_path: Path) -> None:
    text = (
        '[topology]\nkind = "fat-tree"\nk = 4\naccess-gbps = 10\ncore-gbps = 10\n'
        '[transport]\nname = "fastpod"\npayload-bytes = 9000\n'
    )
    names = [tier["name"] for tier in finished(tmp_path, text, ["0,0,9,20000"]).summary["tiers"]]
    assert len(names) == len(set(names))


@pytest.mark.filterwarnings("ignore")
def test_a_load_is_that_of_the_hosts_that_take_part(tmp_path: Path) -> None:
    ends = "".join(
        f'{{ between = ["h{n}", "s0"], gbps = {gbps} }},'
        for n, gbps in enumerate((10, 100, 100, 400))
    )
    text = (
        f'[topology]\nkind = "links"\nhosts = 4\nswitches = 1\nlinks = [{ends}]\n'
        '[transport]\nname = "homa"\n'
        '[workload]\npattern = "all-to-all"\nsizes = { fixed = 1460 }\nload = 0.5\n'
        "flows = 20000\nhosts = [1, 2]\n"
    )
    flows = finished(tmp_path, text).flows.to_pylist()
    sent = sum(1500 * 8 for flow in flows if flow["src"] == 1)
    assert sent / (flows[-1]["arrival_ps"] * 0.1) == pytest.approx(0.5, rel=0.05)


def test_a_trace_without_a_header_is_named_as_such(tmp_path: Path) -> None:
    error = error_of(tmp_path, star(4, 10, "homa"), ["0,0,1,1000", "1,1,2,2000"])
    assert "expected a header with the names of columns" in error

"""TCP compared with the kernel's on the testbed, and ports that mark."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rampmeter.testbed import Fabric, Shape, TestbedError, is_privileged
from rampmeter.testbed.experiment import find_rampd
from rampmeter.testbed.marking import BINS, IF_EQUAL_CONST, NEXT, Insn, PortDelays, Watch, _judge
from tools.hosts.linux_tcp import ARMS, LINUX, ArmResult, Setting, compare, table

TINY = Shape(racks=1, hosts_per_rack=2, spines=0, access_bps=10_000_000)
FRAME_S = TINY.frame_bytes * 8 / TINY.access_bps

RECEIVE = """
import json, socket, sys
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind((sys.argv[1], 5000))
receiver.setsockopt(socket.IPPROTO_IP, 13, 1)  # IP_RECVTOS
receiver.settimeout(10)
print("ready", flush=True)
print(json.dumps([receiver.recvmsg(2000, 100)[1][0][2][0] & 3 for _ in range(int(sys.argv[2]))]))
"""
SEND = """
import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(sys.argv[2]))
for _ in range(int(sys.argv[3])):
    sender.sendto(bytes(1472), (sys.argv[1], 5000))
"""


@pytest.fixture(scope="module")
def marks() -> None:
    """A system whose ports can mark."""
    if not is_privileged():
        pytest.skip("no marks here: needs root")
    try:
        with Fabric(TINY) as fabric, Watch(fabric):
            pass
    except TestbedError as error:
        pytest.skip(f"no marks here: {error}")


@pytest.fixture(scope="module")
def daemon(marks: None) -> None:
    """All that the arms need."""
    try:
        find_rampd()
    except TestbedError as error:
        pytest.skip(f"no testbed here: {error}")


def burst(fabric: Fabric, tos: int, n: int) -> list[int]:
    """Returns the ECN bits of packets that one host sends to another all at once."""
    address = str(TINY.address(1))
    receiver = fabric.run(
        1, [sys.executable, "-c", RECEIVE, address, str(n)], stdout=subprocess.PIPE, text=True
    )
    assert receiver.stdout is not None
    assert receiver.stdout.readline() == "ready\n"
    fabric.run(0, [sys.executable, "-c", SEND, address, str(tos), str(n)]).wait(20)
    printed, _ = receiver.communicate(timeout=20)
    bits: list[int] = json.loads(printed)
    return bits


@pytest.mark.usefixtures("marks")
def test_packets_are_marked_that_wait_for_longer_than_the_threshold() -> None:
    with Fabric(TINY) as fabric, Watch(fabric, mark_above_bytes=10 * TINY.frame_bytes) as watch:
        bits = burst(fabric, tos=2, n=40)
        waits = watch.read()
    # The tenth packet of a burst has waited for nine others, and is on the link for as long as one.
    assert bits.count(3) + bits.count(2) == 40
    assert 25 <= bits.count(3) <= 32
    assert all(bit == 2 for bit in bits[:8])
    port = waits["h0:eth0"]
    assert sum(of.marks for of in waits.values()) == port.marks == bits.count(3)
    assert port.packets == 40
    assert port.quantile_s(1.0) == pytest.approx(40 * FRAME_S, rel=0.15)
    assert port.mean_s() == pytest.approx(20 * FRAME_S, rel=0.15)


@pytest.mark.usefixtures("marks")
def test_packets_of_other_programs_are_counted_and_not_changed() -> None:
    with Fabric(TINY) as fabric, Watch(fabric, mark_above_bytes=10 * TINY.frame_bytes) as watch:
        assert burst(fabric, tos=0, n=40) == [0] * 40
        port = watch.read()["h0:eth0"]
    assert (port.marks, port.packets) == (0, 40)


@pytest.mark.long
@pytest.mark.usefixtures("daemon")
def test_all_arms_deliver_the_same_flows(tmp_path: Path) -> None:
    setting = Setting(hosts=3, flows=40, realtime=True)
    results = compare(setting, tmp_path, [1], ARMS)
    kernel, cubic, dctcp = (results[arm][0] for arm in ARMS)
    sizes = {flow: size for flow, (size, _) in kernel.times.items()}
    assert len(sizes) == 40
    for of in (cubic, dctcp):
        assert {flow: size for flow, (size, _) in of.times.items()} == sizes
    assert "slow starts ended by trains" in kernel.counts
    assert (kernel.counts["marks"], cubic.counts["marks"]) == (0, 0)
    assert dctcp.counts["marks"] > 0
    assert dctcp.counts["echoes"] > 0
    assert dctcp.counts["drops at hosts"] + dctcp.counts["drops at switches"] == 0
    # Packets beyond the threshold arrive within a round trip or two.
    assert dctcp.counts["wait, p99"] < 2.5 * setting.mark_above
    # A factor of two, since other work may share the machine.
    assert 0.5 < cubic.mean_s(0, 1 << 40) / kernel.mean_s(0, 1 << 40) < 2


def test_waits_have_means_and_quantiles() -> None:
    waits = PortDelays(1, (2, 0, 2), 1_000_000_000)
    assert (waits.packets, waits.mean_s()) == (4, 1.5)
    assert (waits.quantile_s(0.5), waits.quantile_s(0.51), waits.quantile_s(1)) == (1, 3, 3)
    both = waits + PortDelays(2, (0, 4, 0), 1_000_000_000)
    assert (both.marks, both.counts) == (3, (2, 4, 2))


@pytest.mark.parametrize("mark_above_ns", [None, 1_000_000])
def test_jumps_of_the_program_have_the_correct_targets(mark_above_ns: int | None) -> None:
    program = _judge(7, 1_000, mark_above_ns)
    end = program[-2]
    assert (end.immediate, program[-1]) == (NEXT, Insn(0x95))
    lands = [
        (insn, program[at + 1 + insn.offset])
        for at, insn in enumerate(program)
        if insn.code in (IF_EQUAL_CONST, 0x55, 0xB5)
    ]
    to_end = [insn for insn, there in lands if there is end]
    # Without a threshold: other stamps, no entry. With one also: in time, not marked, no entry.
    assert len(to_end) == (2 if mark_above_ns is None else 4)
    bins = [there for insn, there in lands if insn.immediate == BINS - 1]
    assert [there.code for there in bins] == [0x63]


def test_the_table_has_ratios_over_the_same_flows() -> None:
    def result(ms: float) -> ArmResult:
        return ArmResult({0: (5_000, ms / 1e3), 1: (2_000_000, ms / 100)}, 2, {"drops": ms})

    text = table({"kernel": [result(10), result(20)], "cubic": [result(11), result(22)]})
    assert "| up to 100 kB | 2 | 15.0 ± 63.5 | 16.5 ± 69.9 | 1.100 ± 0.000 |" in text
    assert "| to 1 MB | 0 | - | - | - |" in text
    assert "| drops | 30 | 33 |" in text
    assert "| flows that did not arrive | 0 | 0 |" in text


def test_plans_of_arms_are_valid_and_have_the_kernels_settings() -> None:
    for arm in ARMS:
        checked: dict[str, Any] = Setting(racks=2, hosts=6).plan(arm, 1).check()
        transport = checked["transport"]
        assert transport["rto-min-us"] == LINUX["rto-min-us"]
        assert checked["fabric"]["ecn-bytes"] == (20 * 1514 if arm == "dctcp" else None)

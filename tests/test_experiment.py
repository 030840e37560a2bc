"""Plans between real hosts: the daemon in namespaces, and its results."""

import json
import os
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from rampmeter._core import PlanError
from rampmeter.plan.plan import Plan
from rampmeter.results.comparison import Comparison
from rampmeter.results.run import Run
from rampmeter.testbed import Delays, Fabric, TestbedError, is_privileged
from rampmeter.testbed.arms import parse, run_arms
from rampmeter.testbed.experiment import (
    Follower,
    bed_of,
    drain_seconds,
    run_testbed,
    with_delays,
)
from rampmeter.testbed.marking import mark_above_max
from rampmeter.text.toml import TomlValue

from .commands import call, ok
from .namespaces import needs_namespaces, shape

PLAN = """
seed = 3
[topology]
kind = "leaf-spine"
racks = 2
hosts-per-rack = 2
spines = 2
access-gbps = 0.05
core-gbps = 0.1
[transport]
name = "{transport}"
[workload]
pattern = "all-to-all"
sizes = {{ fixed = 20000 }}
load = 0.3
flows = 60
"""


def plan(transport: str) -> Plan:
    return Plan(PLAN.format(transport=transport))


@needs_namespaces
@pytest.mark.parametrize("transport", ["dcpim", "phost", "fastpass"])
def test_every_message_of_a_plan_arrives_over_the_daemon(transport: str, tmp_path: Path) -> None:
    run = run_testbed(plan(transport), tmp_path / "out")
    assert run.summary["flows"]["delivered"] == 60
    assert run.flows.num_rows == 60
    output = (tmp_path / "out/nodes/0.log").read_text()
    assert "started" in output
    assert "stopped" in output
    ports = json.loads((tmp_path / "out/ports.json").read_text())
    assert sum(c["packets"] for c in ports["h0:eth0"]) > 0
    assert not list(Path("/run/netns").glob(f"rm{os.getpid()}.*"))


@needs_namespaces
def test_the_command_compares_hosts_with_the_simulator(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(plan("phost").text)
    out = tmp_path / "out"
    argv = ["testbed", str(file), "--arms", "tcp,rampd,sim", "--out", str(out), "--quiet"]
    ok(*argv)
    for arm in ("tcp", "rampd", "sim"):
        assert Run(out / arm).summary["flows"]["delivered"] == 60
    assert (out / "slowdown_by_size.png").stat().st_size > 1000


@pytest.mark.long
@needs_namespaces
def test_one_command_runs_several_transports_and_controls_on_the_same_flows(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    # Longer than the burst of a shaper, so that queues grow and ports mark.
    file.write_text(plan("dcpim").with_(("workload.sizes", {"fixed": 150_000})).text)
    out = tmp_path / "out"
    arms = "rampd,rampd:dctcp:ecn-packets=4,label=DCTCP,tcp:cubic,sim:dctcp:ecn-packets=4"
    argv = ["testbed", str(file), "--arms", arms, "--out", str(out), "--quiet"]
    result = ok(*argv)
    comparison = Comparison.load(out)
    assert comparison.labels == ["rampd", "DCTCP", "tcp:cubic", "sim:dctcp:ecn-packets=4"]
    for label in comparison.labels:
        assert comparison.flows(label)["delivered"] == 60, label
        assert label in result.output.replace("\n", "") or label.startswith("sim:")
    dctcp = out / "DCTCP"
    output = "".join(log.read_text() for log in (dctcp / "nodes").glob("*.log"))
    assert 'name = "dctcp"' in (dctcp / "nodes/0.toml").read_text()
    assert "started" in output
    assert sum(of["marks"] for of in json.loads((dctcp / "waits.json").read_text()).values()) > 0
    # Ports mark nothing for the others, which do not request it.
    assert not (out / "rampd/waits.json").exists()
    assert not (out / "tcp-cubic/waits.json").exists()
    # The simulator had DCTCP's ports, and the delays of the arm before it.
    simulated = Run(out / "sim-dctcp-ecn-packets=4").manifest["plan"]
    measured = Plan((out / "tcp-cubic/plan.toml").read_text())
    assert simulated["fabric"]["ecn-bytes"] > 0
    assert simulated["topology"]["host-ns"] == measured.get("topology.host-ns") > 0


@needs_namespaces
def test_the_kernels_congestion_control_is_that_of_both_ends() -> None:
    two = shape()
    with Fabric(two, "reno") as fabric:
        listener = fabric.run(1, [sys.executable, "-c", LISTEN, str(two.address(1))], stdout=PIPE)
        assert listener.stdout is not None
        port = listener.stdout.readline().decode().strip()
        code = CONNECT.format(address=two.address(1), port=port)
        output, _ = fabric.run(0, [sys.executable, "-c", code], stdout=PIPE).communicate(timeout=20)
        accepted, _ = listener.communicate(timeout=20)
    assert (output.decode().strip(), accepted.decode().strip()) == ("reno", "reno")


CONTROL = "socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(bytes(1)).decode()"
CONNECT = f"""
import socket
link = socket.create_connection(("{{address}}", {{port}}), 10)
print(link.getsockopt({CONTROL})
link.recv(1)
"""
LISTEN = f"""
import socket, sys
server = socket.create_server((sys.argv[1], 0))
server.settimeout(10)
print(server.getsockname()[1], flush=True)
link, _ = server.accept()
print(link.getsockopt({CONTROL})
"""


def test_arms_name_transports_presets_keys_and_labels() -> None:
    arms = parse("rampd, rampd:dctcp:rfc8257,ecn-packets=20,label=DCTCP,tcp:cubic,tcp,sim")
    assert [arm.text for arm in arms] == ["rampd", "DCTCP", "tcp:cubic", "tcp", "sim"]
    assert [arm.folder for arm in arms] == ["rampd", "DCTCP", "tcp-cubic", "tcp", "sim"]
    system = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    assert [arm.label for arm in arms][2:4] == ["tcp:cubic", f"tcp:{system}"]
    dctcp = arms[1].of(plan("dcpim").with_(("transport.channels", 4)))
    # A key of the plan's own transport has no effect on another.
    assert dctcp.get("transport") == {"name": "dctcp", "preset": "rfc8257", "ecn-packets": 20}
    assert arms[2].of(plan("dcpim")).text == plan("dcpim").text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("udp", "expected some of rampd, tcp, sim, got udp"),
        ("ecn-packets=20", "expected some of rampd, tcp, sim, got ecn-packets=20"),
        ("rampd,ecn-packets=20", "expected rampd:NAME before keys"),
        ("rampd:", "expected"),
        ("rampd,rampd", "expected names that differ"),
        ("rampd:all", "expected one name after rampd, got all"),
        ("sim,rampd", "expected rampd or tcp before sim"),
        ("tcp:cubic:window=3", "expected keys of the fabric, or label, got window"),
    ],
)
def test_arms_without_sense_are_refused(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        parse(text)


def test_a_control_that_the_kernel_lacks_is_refused_before_anything_runs(tmp_path: Path) -> None:
    arms = parse("rampd,tcp:nonesuch")
    with pytest.raises(TestbedError, match="congestion control nonesuch: not in this kernel"):
        list(run_arms(plan("dcpim"), tmp_path / "out", arms, lambda *_: None))
    assert not (tmp_path / "out").exists()


def test_the_kernels_dctcp_needs_ports_that_mark(tmp_path: Path) -> None:
    with pytest.raises(
        PlanError, match=r"expected a value of fabric\.ecn-bytes, at which ports mark"
    ):
        list(run_arms(plan("dcpim"), tmp_path, parse("tcp:dctcp"), lambda *_: None))
    (marked,) = parse("tcp:dctcp:fabric.ecn-bytes=30280")
    assert bed_of(marked.of(plan("dcpim"))).mark_above_bytes == 30280


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("topology", {"kind": "star", "hosts": 4, "access-gbps": 0.5}), "expected leaf-spine"),
        (("transport", {"name": "ideal"}), "expected a transport with packets, got the ideal"),
    ],
)
def test_plans_that_hosts_cannot_run_are_refused(
    change: tuple[str, TomlValue], message: str, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, TestbedError), match=message):
        run_testbed(plan("dcpim").with_(change), tmp_path)


def test_a_plan_is_checked_with_the_round_trip_of_hosts() -> None:
    slow = plan("dcpim").with_(("topology.access-gbps", 0.02), ("topology.core-gbps", 100.0))
    assert bed_of(slow).transport["control-rtt-us"] == 1230  # two full packets


def test_a_plan_may_limit_the_time_after_the_last_arrival() -> None:
    idle = Delays(there_ns=20_000, back_ns=20_000, round_trip_ns=40_000)
    assert with_delays(bed_of(plan("dcpim")).plan, idle).get("run.drain-us") == 10_000_000
    patient = plan("dcpim").with_(("run.drain-us", 40_000_000.0))
    assert drain_seconds(bed_of(patient).plan) == 40
    assert with_delays(bed_of(patient).plan, idle).get("run.drain-us") == 40_000_000


def test_a_buffer_that_is_too_small_is_refused_before_anything_is_built() -> None:
    cosy_plan = plan("cosy").with_(("fabric.buffer-bytes", 3000))
    with pytest.raises(PlanError, match=r"fabric\.buffer-bytes: expected at least"):
        bed_of(cosy_plan)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("topology.hosts-per-rack", 65, "expected 1 to 64, got 65"),
        ("topology.racks", 257, "expected 1 to 256, got 257"),
        ("topology.access-gbps", 0.0005, "expected at least 0.001 between hosts, got 0.0005"),
    ],
)
def test_errors_of_a_shape_name_keys_of_the_plan(key: str, value: float, problem: str) -> None:
    changed = plan("dctcp").with_((key, value))
    with pytest.raises(PlanError, match=f"{key}: {problem}"):
        bed_of(changed)


def test_quantities_of_a_plan_may_have_units() -> None:
    plain = plan("dctcp").with_(
        *(("topology.access-gbps", 0.02), ("topology.core-gbps", 100.0)),
        *(("fabric.buffer-bytes", 60_000), ("fabric.ecn-bytes", 20_000)),
        ("run.drain-us", 5_000.0),
    )
    units = plain.with_(
        *(("topology.access-gbps", "20Mbps"), ("topology.core-gbps", "100Gbps")),
        *(("fabric.buffer-bytes", "60kB"), ("fabric.ecn-bytes", "20kB")),
        ("run.drain-us", "5ms"),
    )
    assert drain_seconds(units) == drain_seconds(plain) == 0.005
    expected, bed = bed_of(plain), bed_of(units)
    assert (bed.shape, bed.transport) == (expected.shape, expected.transport)
    assert bed.shape.buffer_bytes == 60_000
    assert bed.mark_above_bytes == expected.mark_above_bytes == 20_000
    assert bed.plan.check() == expected.plan.check()


@pytest.mark.parametrize("key", ["fabric.buffer-bytes", "fabric.ecn-bytes"])
def test_ports_between_hosts_do_not_differ(key: str) -> None:
    by_rate = plan("dctcp").with_((key, {"0.05": "60kB", "0.1": "80kB"}))
    with pytest.raises(PlanError, match=f"{key}: expected one number for all ports between hosts"):
        bed_of(by_rate)


def test_marking_thresholds_are_at_most_the_maximum_of_ports() -> None:
    marking = plan("dctcp").with_(("topology.access-gbps", 0.5), ("topology.core-gbps", 10.0))
    most = mark_above_max(0.5e9)
    assert bed_of(marking.with_(("fabric.ecn-bytes", most))).mark_above_bytes == most
    with pytest.raises(PlanError, match=f"ecn-bytes: expected at most {most} between hosts"):
        bed_of(marking.with_(("fabric.ecn-bytes", most + 1)))


def test_an_arm_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(plan("phost").text)
    argv = ["testbed", str(file), "--arms", "sim", "--out", str(tmp_path / "out")]
    result = call(*argv)
    if is_privileged():
        assert result.exit_code == 2
        assert "expected rampd or tcp before sim" in result.output


def test_a_log_is_followed_as_it_grows(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    follower = Follower(log)
    follower.read()
    log.write_text("what,flow,time_ps\nsubmitted,0,1\ndelivered,7,2\n")
    follower.read()
    assert (follower.delivered, follower.is_done) == (1, False)
    with log.open("a") as more:
        more.write("delivered,8,3\ndone,0,4\n")
    follower.read()
    assert (follower.delivered, follower.is_done) == (2, True)

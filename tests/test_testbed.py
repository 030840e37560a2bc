"""The testbed: its fabric's effect on packets, and that nothing of it stays behind."""

import json
import os
import signal
import subprocess
import sys
import time
from bisect import bisect
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import pytest

from rampmeter.testbed import (
    N_PRIORITIES,
    Counters,
    Fabric,
    Shape,
    TestbedError,
    command,
    enter_user_namespace,
    is_privileged,
    process,
    tos,
)
from rampmeter.testbed.queueing import queue_commands

RATE_BPS = 50_000_000
SMALL = Shape(racks=2, hosts_per_rack=2, spines=2, access_bps=RATE_BPS, n_arbiters=1)
TINY = Shape(racks=1, hosts_per_rack=2, spines=0, access_bps=RATE_BPS)
TRAFFIC = [sys.executable, "-I", "-S", str(Path(__file__).with_name("traffic.py"))]
LOWEST = N_PRIORITIES - 1

Process: TypeAlias = "subprocess.Popen[Any]"

needs_namespaces = pytest.mark.skipif(
    not is_privileged(), reason="making network namespaces takes CAP_NET_ADMIN and CAP_SYS_ADMIN"
)


@pytest.fixture(scope="module")
def small() -> Iterator[Fabric]:
    """Yields a fabric of two racks of two hosts, an arbiter, two spines."""
    with Fabric(SMALL) as fabric:
        yield fabric


class TestShape:
    def test_addresses_are_determined_in_advance(self) -> None:
        shape = Shape(racks=3, hosts_per_rack=4, spines=2, access_bps=RATE_BPS, n_arbiters=2)
        assert shape.address(0) == IPv4Address("10.77.0.2")
        assert shape.address(11) == IPv4Address("10.77.2.14")
        assert [shape.rack(arbiter) for arbiter in shape.arbiters] == [0, 0]
        assert shape.address(12) == IPv4Address("10.77.0.18")

    def test_every_end_of_a_link_has_its_own_addresses(self) -> None:
        shape = Shape(racks=8, hosts_per_rack=4, spines=4, access_bps=RATE_BPS, n_arbiters=3)
        ports = [port for link in shape.links for port in link.ports()]
        assert len(ports) == 2 * (32 + 3 + 8 * 4)
        for what in ("address", "mac", "name"):
            assert len({getattr(port, what) for port in ports}) == len(ports)
        for link in shape.links:
            assert link.lower.address.network == link.upper.address.network

    def test_links_have_the_rates_of_their_tier(self) -> None:
        shape = Shape(
            racks=2,
            hosts_per_rack=1,
            spines=1,
            access_bps=10**7,
            core_bps=4 * 10**7,
            n_arbiters=1,
            arbiter_bps=2 * 10**7,
        )
        rates = {port.name: port.rate_bps for link in shape.links for port in link.ports()}
        assert (rates["h0:eth0"], rates["t1:h1"]) == (10**7, 10**7)
        assert (rates["t0:s0"], rates["s0:t1"]) == (4 * 10**7, 4 * 10**7)
        assert (rates["h2:eth0"], rates["t0:h2"]) == (2 * 10**7, 2 * 10**7)

    def test_the_default_buffer_is_fifty_full_packets(self) -> None:
        for mtu in (1500, 9000):
            shape = Shape(racks=1, hosts_per_rack=1, spines=0, access_bps=RATE_BPS, mtu=mtu)
            assert shape.queue_frames == 50
        shape = Shape(racks=1, hosts_per_rack=1, spines=0, access_bps=RATE_BPS, buffer_bytes=9999)
        assert shape.queue_frames == 6
        commands = list(queue_commands(shape.links[0].lower, shape))
        assert sum("pfifo limit 6" in line for line in commands) == N_PRIORITIES

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"racks": 0}, "racks: expected 1 to 256, got 0"),
            ({"spines": 0}, "spines: expected 1 to 64, got 0"),
            ({"n_arbiters": 63}, "n_arbiters: expected 0 to 62, got 63"),
            ({"access_bps": 100}, "access_bps: expected at least 1000000, got 100"),
            ({"buffer_bytes": 1000}, "buffer_bytes: expected at least 1514, got 1000"),
            ({"mtu": 1400}, "mtu: expected one of"),
        ],
    )
    def test_impossible_shapes_are_refused(self, change: dict[str, int], message: str) -> None:
        sizes = {"racks": 2, "hosts_per_rack": 2, "spines": 2, "access_bps": RATE_BPS}
        with pytest.raises(TestbedError, match=message):
            Shape(**(sizes | change))

    def test_hosts_beyond_the_last_are_errors(self) -> None:
        with pytest.raises(TestbedError, match="host: expected 0 to 4, got 5"):
            SMALL.address(5)


@needs_namespaces
class TestTraffic:
    def test_every_host_reaches_every_other(self, small: Fabric) -> None:
        hosts = range(SMALL.n_hosts + SMALL.n_arbiters)
        receivers = [receiver(small, host, len(hosts) - 1) for host in hosts]
        for host in hosts:
            others = [str(SMALL.address(other)) for other in hosts if other != host]
            run(small, host, "tell", host, *others)
        for host, process_ in zip(hosts, receivers, strict=True):
            tags = sorted(tag for _, tag, _, _ in result(process_))
            assert tags == [other for other in hosts if other != host]

    def test_both_spines_carry_traffic_when_source_ports_vary(self, small: Fabric) -> None:
        before = small.port_counters()
        run(small, 0, "burst", SMALL.address(2), 40, 40)
        added = [sent(small, before, f"t0:s{spine}").packets for spine in (0, 1)]
        assert sum(added) == 40
        assert min(added) > 5

    def test_one_source_port_keeps_to_one_spine(self, small: Fabric) -> None:
        before = small.port_counters()
        run(small, 0, "burst", SMALL.address(2), 40, 1)
        added = [sent(small, before, f"t0:s{spine}").packets for spine in (0, 1)]
        assert sorted(added) == [0, 40]

    def test_the_highest_priority_passes_a_queue_of_the_lowest(self, small: Fabric) -> None:
        overtaken = surges(small, (0, 1))
        # One packet in transmission at each of four ports, where the others wait in long queues.
        assert median(overtaken[0]) <= 6
        assert median(overtaken[LOWEST]) >= 18

    def test_a_link_has_its_configured_rate(self, small: Fabric) -> None:
        receiving = receiver(small, 2, 20 * 46)
        run(small, 0, "surge", SMALL.address(2), 20)
        arrived = sorted(at for at, tag, _, _ in result(receiving) if tag == LOWEST)
        assert len(arrived) == 20 * 45
        # Without the burst that a shaper allows after a pause.
        ns = median(arrived[i + 44] - arrived[i + 4] for i in range(0, len(arrived), 45))
        assert 8 * 40 * SMALL.frame_bytes / (ns / 1e9) == pytest.approx(RATE_BPS, rel=0.1)

    @pytest.mark.parametrize("program", ["segments", "stream"])
    def test_no_frame_is_longer_than_a_packet(self, small: Fabric, program: str) -> None:
        leaf = small.namespace("t0")
        watching = ready(
            subprocess.Popen(
                [command.tool("ip"), "netns", "exec", leaf, *TRAFFIC, "frames", "h0"],
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        if program == "stream":
            taking = ready(start(small, 2, "sink", SMALL.address(2)))
            run(small, 0, program, SMALL.address(2), 1)
            assert result(taking) == 1 << 20
        else:
            run(small, 0, program, SMALL.address(2), 1000)
        longest, n_frames = result(watching)
        assert longest <= SMALL.frame_bytes
        assert n_frames >= 8


@needs_namespaces
class TestPorts:
    def test_packets_count_in_the_class_of_their_priority(self, small: Fabric) -> None:
        before = small.port_counters()
        small.delays(1, 3)
        assert sent(small, before, "h1:eth0", 0).packets >= 200
        assert sent(small, before, "t1:h3", 0).packets >= 200
        assert sent(small, before, "t1:h3", LOWEST) == Counters(0, 0, 0)

    def test_packets_that_overflow_a_buffer_are_counted(self) -> None:
        shape = Shape(
            racks=1,
            hosts_per_rack=2,
            spines=0,
            access_bps=5_000_000,
            buffer_bytes=10 * SMALL.frame_bytes,
        )
        with Fabric(shape) as fabric:
            before = fabric.port_counters()
            run(fabric, 0, "burst", shape.address(1), 100, 4)
            time.sleep(0.1)
            counted = sent(fabric, before, "h0:eth0")
            assert counted.drops > 50
            assert counted.packets + counted.drops == 100
            assert counted.bytes == counted.packets * SMALL.frame_bytes

    def test_a_link_that_is_down_loses_packets_until_it_is_up(self, small: Fabric) -> None:
        small.set_link(2, up=False)
        cut = receiver(small, 2, 1)
        run(small, 0, "tell", 1, SMALL.address(2))
        run(small, 2, "tell", 1, SMALL.address(0))
        small.set_link(2, up=True)
        run(small, 0, "tell", 2, SMALL.address(2))
        assert [tag for _, tag, _, _ in result(cut)] == [2]

    def test_delays_are_of_one_path(self, small: Fabric) -> None:
        delays = small.delays(0, 2)
        assert 0 < delays.there_ns < delays.round_trip_ns
        assert 0 < delays.back_ns < delays.round_trip_ns < 100_000_000


@needs_namespaces
class TestTeardown:
    def test_two_fabrics_coexist(self) -> None:
        with Fabric(TINY) as one, Fabric(TINY) as other:
            first, second = receiver(one, 1, 1), receiver(other, 1, 1)
            run(one, 0, "tell", 1, TINY.address(1))
            run(other, 0, "tell", 2, TINY.address(1))
            assert [tag for _, tag, _, _ in result(first)] == [1]
            assert [tag for _, tag, _, _ in result(second)] == [2]

    def test_an_exception_removes_the_fabric_and_its_processes(self) -> None:
        fabric = Fabric(TINY)
        with pytest.raises(ZeroDivisionError), fabric:  # noqa: PT012
            polite = fabric.run(0, ["sleep", "60"])
            stubborn = fabric.run(0, ["sh", "-c", "trap '' TERM; echo; sleep 60; sleep 60"], **PIPE)
            assert stubborn.stdout is not None
            stubborn.stdout.readline()
            raise ZeroDivisionError
        assert stubborn.stdout is not None
        stubborn.stdout.close()
        assert (polite.returncode, stubborn.returncode) == (-signal.SIGTERM, -signal.SIGKILL)
        assert left_of(fabric.tag) == []

    def test_a_failed_fabric_is_removed_completely(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fabric = Fabric(TINY)
        monkeypatch.setattr(Fabric, "_queue_commands", lambda *_: ["qdisc add dev eth0 root none"])
        with pytest.raises(TestbedError, match=r"tc -netns .*kind is unknown.*`qdisc add"), fabric:
            pass
        assert left_of(fabric.tag) == []

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_removes_the_fabric(self, number: signal.Signals) -> None:
        with maker() as making:
            tag = made(making)
            assert left_of(tag)
            making.send_signal(number)
            making.wait(10)
        assert left_of(tag) == []

    def test_a_sweep_removes_leftovers_of_a_killed_process(self, small: Fabric) -> None:
        with maker() as making:
            tag = made(making)
            making.kill()
            making.wait(10)
        names = left_of(tag)
        assert len(names) == len(TINY.nodes())
        assert process.processes_in(names)
        assert set(names) <= set(Fabric.sweep())
        assert left_of(tag) == []
        assert left_of(small.tag)


class TestWithoutRoot:
    def test_a_user_namespace_will_do(self) -> None:
        script = (
            "import sys\n"
            "from rampmeter.testbed import Fabric, Shape, enter_user_namespace\n"
            "enter_user_namespace(sys.orig_argv)\n"
            f"shape = {TINY!r}\n"
            "with Fabric(shape) as fabric:\n"
            "    print(fabric.delays(0, 1).round_trip_ns)\n"
        )
        done = unprivileged(script)
        if "leave to make a user namespace" in done.stderr:
            pytest.skip("user namespaces are not permitted here")
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) > 0

    def test_missing_permission_is_an_error(self) -> None:
        done = unprivileged(
            f"from rampmeter.testbed import Fabric, Shape\nwith Fabric({TINY!r}):\n    pass\n"
        )
        assert "TestbedError: testbed: expected CAP_NET_ADMIN and CAP_SYS_ADMIN" in done.stderr

    def test_a_missing_program_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(command, "SYSTEM_FOLDERS", ())
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(TestbedError, match="expected the program ip, install iproute2"):
            command.ip([])

    @needs_namespaces
    def test_root_keeps_its_namespace(self) -> None:
        enter_user_namespace(["false"])


def test_priorities_are_class_selectors() -> None:
    assert [tos(priority) >> 5 for priority in range(N_PRIORITIES)] == [7, 6, 5, 4, 3, 2, 1, 0]


PIPE: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True}


def start(fabric: Fabric, host: int, *argv: object) -> Process:
    return fabric.run(host, [*TRAFFIC, *map(str, argv)], **PIPE)


def run(fabric: Fabric, host: int, *argv: object) -> None:
    with start(fabric, host, *argv) as program:
        program.communicate(timeout=20)
    assert program.returncode == 0


def ready(program: Process) -> Process:
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    return program


def receiver(fabric: Fabric, host: int, count: int) -> Process:
    return ready(start(fabric, host, "receive", fabric.shape.address(host), count))


def result(program: Process) -> Any:
    printed, _ = program.communicate(timeout=20)
    assert program.returncode == 0
    return json.loads(printed)


def sent(
    fabric: Fabric, before: dict[str, tuple[Counters, ...]], port: str, priority: int = LOWEST
) -> Counters:
    """Returns a queue's counts since `before`; waits until its packets have been sent."""
    time.sleep(0.1)
    old, new = before[port][priority], fabric.port_counters()[port][priority]
    return Counters(new.bytes - old.bytes, new.packets - old.packets, new.drops - old.drops)


def surges(fabric: Fabric, senders: tuple[int, ...]) -> dict[int, list[int]]:
    """Sends surges to a host; counts the lowest packets that arrive during a packet's transfer."""
    address = fabric.shape.address(2)
    receiving = receiver(fabric, 2, 20 * 46 * len(senders))
    programs = [start(fabric, host, "surge", address, 20) for host in senders]
    for program in programs:
        program.communicate(timeout=20)
    arrivals: list[tuple[int, int, int, int]] = [tuple(a) for a in result(receiving)]
    low = sorted(arrived for arrived, tag, _, _ in arrivals if tag == LOWEST)
    overtaken: dict[int, list[int]] = {0: [], LOWEST: []}
    for arrived, tag, sent_ns, _ in arrivals:
        overtaken[tag].append(bisect(low, arrived) - bisect(low, sent_ns))
    return overtaken


def maker() -> Process:
    """Starts a process that makes a fabric with a process in it, and waits."""
    script = (
        "import signal, time\n"
        "from rampmeter.testbed import Fabric, Shape\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"with Fabric({TINY!r}) as fabric:\n"
        "    fabric.run(0, ['sh', '-c', f'echo {fabric.tag}; exec sleep 60'])\n"
        "    time.sleep(60)\n"
    )
    return subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL, **PIPE)


def made(making: Process) -> str:
    assert making.stdout is not None
    return str(making.stdout.readline().strip())


def left_of(tag: str) -> list[str]:
    if not process.NAMESPACES.is_dir():
        return []
    return [entry.name for entry in process.NAMESPACES.iterdir() if f"rm{tag}-" in entry.name]


def unprivileged(script: str) -> "subprocess.CompletedProcess[str]":
    """Runs Python without the privileges to make namespaces, even as root."""
    drop = ["setpriv", "--bounding-set=-net_admin,-sys_admin"] if os.geteuid() == 0 else []
    return subprocess.run(
        [*drop, sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

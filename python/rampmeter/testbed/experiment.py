"""A plan on real hosts: every host a process in a namespace, results as of a simulation.

The plan's topology is built of namespaces, and its flows are sent at their times over `rampd` or
over the kernel's TCP. The logs of all hosts become the tables that a simulation writes. Measured
delays of the fabric are stored in the plan of the results, so that the simulator can run exactly
that plan.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from rampmeter import _core
from rampmeter._core import PlanError
from rampmeter.plan import schema
from rampmeter.plan.plan import Plan
from rampmeter.results.run import Run
from rampmeter.testbed.command import TestbedError, tool
from rampmeter.testbed.delay import Delays
from rampmeter.testbed.fabric import Fabric
from rampmeter.testbed.marking import Watch, mark_above_max
from rampmeter.testbed.queueing import BURST_SECONDS
from rampmeter.testbed.shape import RATE_MIN_BPS, Shape, ShapeError
from rampmeter.text.files import make_folder, write_text
from rampmeter.text.toml import Table, TomlValue, dumps

Over: TypeAlias = Literal["rampd", "tcp"]
"""The carrier of messages: the plan's transport, or the kernel's TCP."""

PLAN: Final = "plan.toml"
"""File name of the plan with measured values; the simulator runs it without changes."""

PORT: Final = 7300
MTU: Final = 1500

CONTROL_RTT_US: Final = 500.0
"""Minimum round trip in protocols' configuration, unless the plan sets one. On an idle machine
99 % of small packets take less than 270 us each way through shaped ports, half of them 50 us."""

KEYS: Final = {
    "racks": "topology.racks",
    "hosts_per_rack": "topology.hosts-per-rack",
    "spines": "topology.spines",
    "buffer_bytes": "fabric.buffer-bytes",
    "n_arbiters": "transport.arbiters",
}
"""Keys of plans by the fields of a shape that they determine."""

DRAIN_SECONDS: Final = 10.0
"""Time for messages after the last arrival, in seconds, unless `run.drain-us` is set."""
START_SECONDS: Final = 1.5
"""Seconds from starting the processes to the first arrival."""
POLL_SECONDS: Final = 0.2

Progress: TypeAlias = Callable[[int, int], None]
"""Receives the number of arrived messages and the number of all messages."""


@dataclass(frozen=True)
class TestbedRun:
    """The parameters of a testbed run."""

    plan: Plan
    shape: Shape
    transport: Table
    """The plan's transport without the keys that hosts measure themselves."""
    mark_above_bytes: float | None
    """Queueing at a port above which packets are marked, in bytes; `None` for no marks."""


@dataclass(frozen=True)
class Options:
    """Options of hosts beyond the plan."""

    kernel: Sequence[str] = ()
    """Arguments of `rampd load` for the kernel's TCP: `--congestion-control`, with the name, and
    `--connection-per-message`."""
    congestion_control: str | None = None
    """Congestion control of TCP at both ends of all connections; the system's default if `None`."""
    realtime: bool = False
    """True if hosts have precedence over all other work of this machine (`SCHED_FIFO`), as if each
    had its own processor. Needs root; other work stops while they compute."""
    watches: bool = False
    """True if times at ports are counted even without marks; they are written to `waits.json`."""


def run_testbed(
    plan: Plan,
    out: Path,
    over: Over = "rampd",
    progress: Progress | None = None,
    options: Options = Options(),
) -> Run:
    """Runs a plan in namespaces; results are written to the folder `out`.

    Ports mark packets if the plan's do. Raises `PlanError` for a plan that namespaces cannot run,
    `TestbedError` if a requirement is missing or a host failed.
    """
    bed = bed_of(plan)
    rampd = find_rampd()
    Fabric.sweep()
    with ExitStack() as stack:
        fabric = stack.enter_context(Fabric(bed.shape, options.congestion_control))
        watch: Watch | None = None
        if options.watches or bed.mark_above_bytes is not None:
            watch = stack.enter_context(Watch(fabric, bed.mark_above_bytes))
        delays = fabric.delays(0, bed.shape.n_hosts - 1)
        effective = with_delays(bed.plan, delays)
        make_folder(out)
        write_text(out / PLAN, effective.text)
        table = out / "hosts.csv"
        facts = json.loads(_core.testbed_prepare(effective.text, str(plan.base), table))
        _write_configs(bed, facts, out)
        started = time.monotonic()
        carrier = ["--over", "udp" if over == "rampd" else "tcp", *options.kernel]
        before = [tool("chrt"), "--fifo", "10"] if options.realtime else []
        with _hosts(fabric, bed, [*before, rampd], out, carrier) as logs:
            last = facts["last_arrival_ps"] / 1e12
            _watch(logs, facts["flows"], last, drain_seconds(plan), progress)
        ports = fabric.port_counters()
        _write_counters(fabric, watch, out)
    wall = time.monotonic() - started
    (out / "ports.json").write_text(
        json.dumps({name: [vars(c) for c in of] for name, of in ports.items()}, indent=1)
    )
    _core.testbed_collect(effective.text, str(plan.base), logs, wall, out)
    return Run(out)


def find_rampd() -> str:
    """Returns the daemon: `RAMPMETER_RAMPD`, the one next to this Python, or that of the path."""
    if named := os.environ.get("RAMPMETER_RAMPD"):
        return named
    neighbour = Path(sys.executable).parent / "rampd"
    found = str(neighbour) if neighbour.is_file() else shutil.which("rampd")
    if found is None:
        raise TestbedError(
            f"expected the program rampd at {neighbour} or on the path; `make build`"
        )
    return found


def with_delays(plan: Plan, delays: Delays) -> Plan:
    """Returns the plan with which the simulator reproduces the testbed.

    The delay of a direction is charged to the receiving host, whose processor has to wake.
    """
    has_one_path = plan.check_run()["fabric"]["spray"] == "ecmp"
    return plan.with_(
        ("topology.host-ns", round(delays.round_trip_ns / 2)),
        ("topology.switch-ns", 0.0),
        ("topology.propagation-ns", 0.0),
        ("fabric.switching", "shaped"),
        ("fabric.shaper-burst-us", BURST_SECONDS * 1e6),
        ("fabric.spray", "ecmp" if has_one_path else "random"),
        ("run.drain-us", drain_seconds(plan) * 1e6),
    )


def drain_seconds(plan: Plan) -> float:
    """Returns the maximum time of messages of a plan after the last arrival, in seconds."""
    drain_us = plan.resolved("run.drain-us")
    return DRAIN_SECONDS if drain_us is None else float(drain_us) / 1e6


def bed_of(plan: Plan) -> TestbedRun:
    """Returns the fabric of a plan, and the plan with the packets and round trips of real hosts.

    Raises `PlanError` if namespaces cannot run it, before anything is built.
    """
    if (n_transports := len(plan.transports())) > 1:
        raise plan.location("transport").error(
            expected="one transport between hosts", got=f"a list of {n_transports}"
        )
    name = plan.get("transport.name")
    if isinstance(name, str) and (title := _without_packets(name)):
        raise plan.location("transport.name").error(expected="a transport with packets", got=title)
    payload, header = _core.host_packet(MTU)
    real: list[tuple[str, TomlValue]] = [
        ("transport.payload-bytes", payload),
        ("transport.header-bytes", header),
    ]
    if plan.get("transport.control-rtt-us") is None:
        # A small packet may be queued behind a full one in each direction.
        gbps = plan.resolved("topology.access-gbps")
        is_slow = isinstance(gbps, int | float) and gbps > 0
        packet_us = (payload + header) * 8e-3 / gbps if is_slow else 0.0
        real.append(("transport.control-rtt-us", max(CONTROL_RTT_US, round(2 * packet_us))))
    adapted = plan.with_(*real)
    try:
        checked = adapted.check_run()
    except PlanError:
        # The original plan has the right line for the error, if it has the same error.
        plan.check_run()
        raise
    plan = adapted
    topology = checked["topology"]
    if topology["kind"] != "leaf-spine":
        kind = topology["kind"]
        raise plan.location("topology.kind").error(expected="leaf-spine", got=kind)
    if topology["rails"] != 1:
        rails = topology["rails"]
        raise plan.location("topology.rails").error(expected="1 between hosts", got=rails)
    transport = {key: value for key, value in checked["transport"].items() if value is not None}
    buffer_bytes = _port_bytes(plan, "fabric.buffer-bytes", plan.resolved("fabric.buffer-bytes"))
    mark_above = _port_bytes(plan, "fabric.ecn-bytes", checked["fabric"]["ecn-bytes"])
    shape = _shape_of(plan, topology, buffer_bytes)
    if buffer_bytes is None:
        plan = plan.with_(("fabric.buffer-bytes", shape.queue_frames * shape.frame_bytes))
        plan.check_run()
    most = mark_above_max(min(shape.access_bps, shape.core_bps or shape.access_bps))
    if mark_above is not None and mark_above > most:
        raise plan.location("fabric.ecn-bytes").error(
            expected=f"at most {most} between hosts", got=mark_above
        )
    mine = ("payload-bytes", "header-bytes")
    own = {key: value for key, value in transport.items() if key not in mine}
    return TestbedRun(plan, shape, own, mark_above)


def _shape_of(plan: Plan, topology: dict[str, Any], buffer_bytes: int | None) -> Shape:
    """Returns the shape of a plan's leaf-spine; errors name the keys of the plan."""
    for key in ("access-gbps", "core-gbps"):
        if topology[key] * 1e9 < RATE_MIN_BPS:
            raise plan.location(f"topology.{key}").error(
                expected=f"at least {RATE_MIN_BPS / 1e9:g} between hosts", got=f"{topology[key]:g}"
            )
    try:
        return Shape(
            racks=topology["racks"],
            hosts_per_rack=topology["hosts-per-rack"],
            spines=topology["spines"],
            access_bps=round(topology["access-gbps"] * 1e9),
            core_bps=round(topology["core-gbps"] * 1e9),
            buffer_bytes=buffer_bytes,
            mtu=MTU,
            n_arbiters=int(plan.derived()["arbiters"]),
        )
    except ShapeError as error:
        raise plan.location(KEYS[error.name]).error(
            expected=error.expected, got=error.got
        ) from None


def _port_bytes(plan: Plan, key: str, value: Any) -> int | None:
    """Returns the bytes of a key that applies to every port; `None` if the plan omits it."""
    if isinstance(value, Mapping):
        raise plan.location(key).error(expected="one number for all ports between hosts", got=value)
    return None if value is None else int(value)


def _write_counters(fabric: Fabric, watch: Watch | None, out: Path) -> None:
    """Writes the counters of hosts' TCP, and the times at ports if they were watched."""
    hosts = range(fabric.shape.n_hosts)
    tcp = [fabric.tcp_counters(host) for host in hosts]
    sums = {name: sum(of.get(name, 0) for of in tcp) for name in tcp[0]}
    (out / "tcp.json").write_text(json.dumps(sums, indent=1), encoding="utf-8")
    if watch is not None:
        waits = {name: vars(of) for name, of in watch.read().items()}
        (out / "waits.json").write_text(json.dumps(waits), encoding="utf-8")


def _without_packets(name: str) -> str | None:
    """Returns the title of a transport that has no packets."""
    titles = (
        of["title"] for of in schema.transports() if of["name"] == name and of["wire"] is None
    )
    return next(titles, None)


def _write_configs(bed: TestbedRun, facts: dict[str, Any], out: Path) -> None:
    shape = bed.shape
    numbers = [*range(shape.n_hosts), *shape.arbiters]
    peers = "".join(
        f'\n[[peer]]\nid = {n}\naddress = "{shape.address(n)}:{PORT}"\n'
        f"arbiter = {str(n >= shape.n_hosts).lower()}\n"
        for n in numbers
    )
    (out / "nodes").mkdir(exist_ok=True)
    for node in numbers:
        table: dict[str, TomlValue] = {
            "node": {"id": node, "clock": "monotonic"},
            "network": {
                "rate-mbps": shape.access_bps / 1e6,
                "mtu": MTU,
                "security": "none",
                # Segmentation offload would send coalesced packets over shaped links in one piece.
                "segmentation-offload": False,
                "control-rtt-us": facts["control_rtt_ps"] / 1e6,
                "data-rtt-us": facts["data_rtt_ps"] / 1e6,
            },
            "transport": bed.transport,
        }
        _config(out, node).write_text(dumps(table) + peers, encoding="utf-8")


def _config(out: Path, node: int) -> Path:
    return out / "nodes" / f"{node}.toml"


@contextmanager
def _hosts(
    fabric: Fabric, bed: TestbedRun, rampd: Sequence[str], out: Path, carrier: Sequence[str]
) -> Iterator[list[Path]]:
    """Runs all hosts: yields their logs, and ends the hosts."""
    start_ns = time.monotonic_ns() + round(START_SECONDS * 1e9)
    started: dict[int, subprocess.Popen[Any]] = {}
    logs = [out / "nodes" / f"{host}.csv" for host in range(bed.shape.n_hosts)]
    for log in logs:
        log.unlink(missing_ok=True)
    for node in [*bed.shape.arbiters, *range(bed.shape.n_hosts)]:
        argv = [*rampd, "arbiter", str(_config(out, node))]
        if node < bed.shape.n_hosts:
            argv = [*rampd, "load", str(_config(out, node)), "--flows", str(out / "hosts.csv")]
            argv += ["--log", str(logs[node]), "--start-ns", str(start_ns), *carrier]
            argv += ["--drain-ms", str(drain_seconds(bed.plan) * 1e3)]
        elif "tcp" in carrier:
            continue
        with (out / "nodes" / f"{node}.log").open("w", encoding="utf-8") as said:
            started[node] = fabric.run(node, argv, stdout=said, stderr=said)
    try:
        yield logs
    finally:
        for process in started.values():
            process.send_signal(signal.SIGTERM)
        for node, process in started.items():
            try:
                code = process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            if code not in (0, -signal.SIGTERM, -signal.SIGKILL):
                text = (out / "nodes" / f"{node}.log").read_text(encoding="utf-8").strip()
                raise TestbedError(f"node {node} ended with {code}: {text[-400:]}")


def _watch(
    logs: list[Path], flows: int, seconds: float, drain: float, progress: Progress | None
) -> None:
    """Waits until all hosts have ended, or the time has expired."""
    ends = time.monotonic() + START_SECONDS + seconds + drain
    arrived = 0
    followers = [Follower(log) for log in logs]
    while time.monotonic() < ends:
        for follower in followers:
            follower.read()
        before, arrived = arrived, sum(follower.delivered for follower in followers)
        if arrived > before:
            # Dependent messages may arrive later than computed before the run.
            ends = max(ends, time.monotonic() + drain)
        if progress is not None:
            progress(arrived, flows)
        if all(follower.is_done for follower in followers):
            return
        time.sleep(POLL_SECONDS)


class Follower:
    """Incremental reader of a host's log."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._at = 0
        self.delivered = 0
        self.is_done = False

    def read(self) -> None:
        """Reads new lines."""
        if not self._log.is_file():
            return
        with self._log.open("rb") as file:
            file.seek(self._at)
            new = file.read()
        self._at += len(new)
        self.delivered += new.count(b"delivered,")
        # The last line of a host that has ended is written at once.
        self.is_done = self.is_done or b"done," in new

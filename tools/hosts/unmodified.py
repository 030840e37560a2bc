"""Unmodified programs, with CAPTON and without, in an over-subscribed network (3:1).

    python -m tools.hosts.unmodified out --library librampmeter_capton.so --rampd rampd

Two racks of three hosts, links of 100 Mbit/s, one spine: each rack's uplink has a third of the rate
of its hosts. The programs of rack 0 send to rack 1. Every arm is the same programs with the same
requests; in one the library is loaded before those that send, and agents and a controller run. Arms
run one after the other. Programs that are not installed are omitted, with a note in the table.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rampmeter.testbed.command import TestbedError, enter_user_namespace, run, tool
from rampmeter.testbed.fabric import Fabric
from rampmeter.testbed.shape import Shape
from rampmeter.text.toml import dumps

SHAPE: Final = Shape(racks=2, hosts_per_rack=3, spines=1, access_bps=100_000_000, n_arbiters=1)
"""Two racks; the arbiter's host has the controller."""

PORT: Final = 7300
SERVERS: Final = range(3)
CLIENTS: Final = range(3, 6)

SIZES: Final = {10_000: 0.7, 100_000: 0.2, 1_000_000: 0.08, 4_000_000: 0.02}
"""Sizes of files that clients request, with their shares: 187 kB on average."""

CONTROL: Final = "reno"
"""The congestion control of both arms. Every kernel permits it in namespaces, unlike cubic."""
CONTROL_FILE: Final = "/proc/sys/net/ipv4/tcp_congestion_control"

ARMS: Final = ("plain", "capton")


@dataclass(frozen=True)
class ArmNetwork:
    """The network with its programs of one arm."""

    fabric: Fabric
    folder: Path
    variables: dict[str, dict[str, str]]
    """Environment variables of a host's programs, by host."""

    def start(self, host: int, argv: Sequence[str], **popen: Any) -> "subprocess.Popen[Any]":
        """Starts a program on a host, with the library if the arm has it."""
        variables = self.variables.get(str(host), {})
        env = ["env", *(f"{name}={value}" for name, value in variables.items())]
        return self.fabric.run(host, [*env, *argv], **popen)

    def call(self, host: int, argv: Sequence[str]) -> bytes:
        """Runs a program on a host to its end; returns its output."""
        variables = self.variables.get(str(host), {})
        env = ["env", *(f"{name}={value}" for name, value in variables.items())]
        where = [tool("ip"), "netns", "exec", self.fabric.namespace(f"h{host}")]
        done = subprocess.run([*where, *env, *argv], capture_output=True, check=False)
        if done.returncode != 0:
            raise TestbedError(f"{' '.join(argv)}: {done.stderr.decode()[-300:]}")
        return done.stdout

    def retransmitted(self) -> int:
        """Counts the segments that the hosts' TCP has retransmitted."""
        return sum(self._counter(host, "RetransSegs") for host in range(SHAPE.n_hosts))

    def sent(self) -> int:
        """Counts the segments that the hosts' TCP has sent."""
        return sum(self._counter(host, "OutSegs") for host in range(SHAPE.n_hosts))

    def _counter(self, host: int, name: str) -> int:
        text = self.call(host, ["cat", "/proc/net/snmp"]).decode()
        names, values = (line.split() for line in text.splitlines() if line.startswith("Tcp:"))
        return int(values[names.index(name)])


@contextmanager
def _bed(arm: str, folder: Path, rampd: str, library: str) -> Iterator[ArmNetwork]:
    with ExitStack() as stack:
        fabric = stack.enter_context(Fabric(SHAPE))
        for host in range(SHAPE.n_hosts):
            where = [tool("ip"), "netns", "exec", fabric.namespace(f"h{host}")]
            run([*where, "sh", "-c", f"echo {CONTROL} > {CONTROL_FILE}"])
        variables: dict[str, dict[str, str]] = {}
        if arm == "capton":
            for node in (*SHAPE.arbiters, *SERVERS):
                config = folder / f"{node}.toml"
                config.write_text(_config(node, folder), encoding="utf-8")
                command = "controller" if node in SHAPE.arbiters else "agent"
                log = stack.enter_context((folder / f"{node}.log").open("w", encoding="utf-8"))
                fabric.run(node, [rampd, command, str(config)], stdout=log, stderr=log)
            for node in SERVERS:
                socket = folder / f"{node}.sock"
                variables[str(node)] = {
                    "LD_PRELOAD": library,
                    "RAMPMETER_CAPTON_SOCKET": str(socket),
                }
                _wait(socket.exists, f"an agent at {socket}")
        yield ArmNetwork(fabric, folder, variables)


def _config(node: int, folder: Path) -> str:
    numbers = [*range(SHAPE.n_hosts), *SHAPE.arbiters]
    peers = "".join(
        f'\n[[peer]]\nid = {n}\naddress = "{SHAPE.address(n)}:{PORT}"\n'
        f"arbiter = {str(n in SHAPE.arbiters).lower()}\n"
        for n in numbers
    )
    socket = str(folder / f"{node}.sock")
    access, core = SHAPE.access_bps, SHAPE.core_bps or SHAPE.access_bps
    tables: dict[str, Any] = {
        "node": {"id": node, "clock": "monotonic", "socket": socket},
        "network": {"rate-mbps": access / 1e6, "control-rtt-us": 500, "security": "none"},
        "transport": {
            "name": "capton",
            "rack-hosts": SHAPE.hosts_per_rack,
            "uplinks-gbps": core * SHAPE.spines / 1e9,
            # All processes run on one machine, which may be busy with other work for some time.
            "fallback-us": 200_000,
        },
    }
    return dumps(tables) + peers


def _wait(is_there: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + 10
    while not is_there():
        if time.monotonic() > until:
            raise TestbedError(f"expected {what} within 10 s")
        time.sleep(0.02)


def _answers(bed: ArmNetwork, host: int, port: int) -> bool:
    """Returns true if a server of a host accepts connections."""
    code = f"import socket; socket.create_connection(('{SHAPE.address(host)}', {port}), 1)"
    try:
        bed.call(host, [sys.executable, "-c", code])
    except TestbedError:
        return False
    return True


def iperf(bed: ArmNetwork, _seed: int) -> dict[str, list[float]]:
    """Measures three concurrent streams of 2, 6 and 18 MB, each from a host to another."""
    with ExitStack() as stack:
        for client in CLIENTS:
            bed.start(client, ["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
            _wait(partial(_listens, bed, client, 5201), "iperf3")
        sizes = (2, 6, 18)
        pool = stack.enter_context(ThreadPoolExecutor(len(sizes)))

        def stream(server: int, size: int) -> float:
            to = str(SHAPE.address(CLIENTS[server]))
            output = bed.call(server, ["iperf3", "-c", to, "-n", f"{size}M", "-J"])
            end = json.loads(output)["end"]
            # It stops the clock when the system has accepted all data, some of it still in flight.
            got = end["sum_received"]
            return float(got["seconds"]) * (size << 20) / float(got["bytes"])

        ends = list(pool.map(stream, SERVERS, sizes))
        return {f"iperf3 {size} MB": [end] for size, end in zip(sizes, ends, strict=True)}


def _listens(bed: ArmNetwork, host: int, port: int) -> bool:
    """Returns true if a port is open, without connecting: some servers serve one client only."""
    text = bed.call(host, ["cat", "/proc/net/tcp", "/proc/net/tcp6"]).decode()
    return any(f":{port:04X} " in line and " 0A " in line for line in text.splitlines())


NGINX: Final = """daemon off; worker_processes 1; pid {folder}/nginx-{host}.pid; user root;
error_log {folder}/nginx-{host}.log;
events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; tcp_nopush on;
  client_body_temp_path {folder}/body-{host}; proxy_temp_path {folder}/proxy-{host};
  fastcgi_temp_path {folder}/fastcgi-{host}; uwsgi_temp_path {folder}/uwsgi-{host};
  scgi_temp_path {folder}/scgi-{host};
  server {{ listen {address}:8080; root {folder}/files; }} }}
"""


def nginx(bed: ArmNetwork, seed: int) -> dict[str, list[float]]:
    """Measures downloads by curl at random times from three servers; every byte is compared."""
    files = bed.folder / "files"
    files.mkdir(exist_ok=True)
    for size in SIZES:
        (files / str(size)).write_bytes(random.Random(size).randbytes(size))
    digests = {s: hashlib.sha256((files / str(s)).read_bytes()).digest() for s in SIZES}
    for host in SERVERS:
        config = bed.folder / f"nginx-{host}.conf"
        text = NGINX.format(folder=bed.folder, host=host, address=SHAPE.address(host))
        config.write_text(text, encoding="utf-8")
        bed.start(host, [tool("nginx"), "-c", str(config)], stderr=subprocess.DEVNULL)
        _wait(partial(_answers, bed, host, 8080), "nginx")
    rng = random.Random(seed)
    at, plan = 0.0, []
    while at < SECONDS:
        at += rng.expovariate(LOAD * 100e6 / 8 / sum(s * p for s, p in SIZES.items()))
        size = rng.choices(list(SIZES), list(SIZES.values()))[0]
        plan.append((at, rng.choice(SERVERS), rng.choice(CLIENTS), size))
    started = time.monotonic()

    def fetch(request: tuple[float, int, int, int]) -> tuple[int, float]:
        at, server, client, size = request
        time.sleep(max(0.0, started + at - time.monotonic()))
        url = f"http://{SHAPE.address(server)}:8080/{size}"
        into = bed.folder / f"got-{at}"
        output = bed.call(client, ["curl", "-sS", "-w", "%{time_total}", "-o", str(into), url])
        if hashlib.sha256(into.read_bytes()).digest() != digests[size]:
            raise TestbedError(f"{url}: the bytes are not those of the file")
        into.unlink()
        return size, float(output)

    times: dict[str, list[float]] = {f"nginx {size // 1000} kB": [] for size in SIZES}
    with ThreadPoolExecutor(128) as pool:
        for size, took in pool.map(fetch, plan):
            times[f"nginx {size // 1000} kB"].append(took)
    return times


SECONDS: Final = 20.0
"""Time in which files are requested, in seconds."""
LOAD: Final = 0.6
"""Load of the uplink."""


def redis(bed: ArmNetwork, _seed: int) -> dict[str, list[float]]:
    """Measures requests of redis-benchmark for values of 100 kB from three servers at once."""
    value = random.Random(1).randbytes(50_000).hex()
    for host in SERVERS:
        address = str(SHAPE.address(host))
        argv = ["redis-server", "--bind", address, "--port", "6379", "--save", ""]
        bed.start(host, [*argv, "--protected-mode", "no"], stdout=subprocess.DEVNULL)
        _wait(partial(_answers, bed, host, 6379), "redis-server")
        path = bed.folder / "value"
        path.write_text(value, encoding="ascii")
        cli = ["redis-cli", "-h", address]
        bed.call(host, ["sh", "-c", f"{' '.join(cli)} -x set key < {path}"])

    def request(server: int) -> float:
        address, client = str(SHAPE.address(server)), CLIENTS[server]
        argv = ["redis-benchmark", "-h", address, "-n", "300", "-c", "4", "--csv", "get", "key"]
        # Its latencies are those of first bytes; the times of whole values follow from the rate.
        rows = bed.call(client, argv).decode().strip().splitlines()
        got = bed.call(client, ["redis-cli", "-h", address, "get", "key"]).decode().strip()
        if got != value:
            raise TestbedError("redis: the value is not the one that was set")
        return 4 / float(rows[-1].split(",")[1].strip('"'))

    with ThreadPoolExecutor(3) as pool:
        return {"redis 100 kB": list(pool.map(request, SERVERS))}


WORKLOADS: Final[
    dict[str, tuple[Callable[[ArmNetwork, int], dict[str, list[float]]], tuple[str, ...]]]
] = {
    "iperf3": (iperf, ("iperf3",)),
    "nginx": (nginx, ("nginx", "curl")),
    "redis": (redis, ("redis-server", "redis-benchmark", "redis-cli")),
}
"""The workloads, and the programs that they need."""


def compare(out: Path, rampd: str, library: str, rounds: int, names: Sequence[str]) -> str:
    """Runs every workload with every arm; returns a table and writes `unmodified.json`."""
    results: dict[str, dict[str, dict[str, Any]]] = {}
    missing = []
    for name in names:
        workload, programs = WORKLOADS[name]
        absent = [program for program in programs if not _is_installed(program)]
        if absent:
            missing.append(f"{name}: skipped, not installed: {', '.join(absent)}")
            continue
        for turn in range(rounds):
            for arm in ARMS if turn % 2 == 0 else ARMS[::-1]:
                folder = out / f"{name}-{arm}-{turn}"
                folder.mkdir(parents=True, exist_ok=True)
                with _bed(arm, folder.resolve(), rampd, library) as bed:
                    before = bed.retransmitted(), bed.sent()
                    times = workload(bed, turn)
                    after = bed.retransmitted(), bed.sent()
                of_arm = results.setdefault(name, {}).setdefault(
                    arm, {"times": {}, "retransmitted": 0, "sent": 0}
                )
                for key, values in times.items():
                    of_arm["times"].setdefault(key, []).extend(values)
                of_arm["retransmitted"] += after[0] - before[0]
                of_arm["sent"] += after[1] - before[1]
    (out / "unmodified.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return "\n".join([_table(results), *missing])


def _is_installed(program: str) -> bool:
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is not None


def _table(results: dict[str, dict[str, dict[str, Any]]]) -> str:
    lines = [
        "| | n | plain, mean ms | capton, mean ms | plain, p95 | capton, p95 |",
        "|---|---|---|---|---|---|",
    ]
    for arms in results.values():
        plain, capton = (arms[arm]["times"] for arm in ARMS)
        for key in plain:
            a, b = sorted(plain[key]), sorted(capton[key])
            cells = [sum(a) / len(a), sum(b) / len(b), _p95(a), _p95(b)]
            shown = " | ".join(f"{1e3 * cell:.1f}" for cell in cells)
            lines.append(f"| {key} | {len(a)} | {shown} |")
    lines += ["", "| retransmitted segments | plain | capton |", "|---|---|---|"]
    for name, arms in results.items():
        shown = " | ".join(f"{arms[arm]['retransmitted']} of {arms[arm]['sent']}" for arm in ARMS)
        lines.append(f"| {name} | {shown} |")
    return "\n".join(lines)


def _p95(ascending: list[float]) -> float:
    return ascending[min(len(ascending) - 1, int(0.95 * len(ascending)))]


def main() -> None:
    """Runs the comparison from the command line."""
    parser = argparse.ArgumentParser(prog="tools.hosts.unmodified", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rampd", default="rampd")
    parser.add_argument("--library", required=True, type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=list(WORKLOADS), nargs="*", default=list(WORKLOADS))
    args = parser.parse_args()
    enter_user_namespace(sys.orig_argv)
    rampd = shutil.which(args.rampd)
    if rampd is None or not args.library.is_file():
        sys.exit(f"expected {args.rampd} and {args.library} to be there")
    table = compare(
        args.out, str(Path(rampd).resolve()), str(args.library.resolve()), args.rounds, args.only
    )
    sys.stdout.write(table + "\n")


if __name__ == "__main__":
    main()

"""Round trips of 64 bytes between programs, compared with bare UDP on the same machine.

    python -m tools.hosts.latency --rounds 5 --transports dcpim,phost

Two nodes on loopback, a program at each. In each round all arms run one after the other: bare UDP
in C, messages in C over each transport, and messages in Python over the first. A round trip begins
when a program submits 64 bytes and ends when it has the answer. Needs a checkout, cargo and a C
compiler.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from rampmeter.hosts import Port
from rampmeter.testbed.command import TestbedError
from rampmeter.testbed.experiment import find_rampd

SIZE: Final = 64
SERVICE: Final = 7
CONFIG: Final = """\
[node]
id = {node}
socket = "{folder}/{node}.sock"
{private_key}
clock = "monotonic"
{extra}
[network]
rate-mbps = 10000
control-rtt-us = 100
security = "{security}"

[transport]
name = "{transport}"

[[peer]]
id = 0
address = "127.0.0.1:{ports[0]}"
{public_keys[0]}

[[peer]]
id = 1
address = "127.0.0.1:{ports[1]}"
{public_keys[1]}
"""


def build_ping(folder: Path) -> Path:
    """Compiles the program that measures, against the library for C."""
    root = Path(__file__).parents[2]
    if not (root / "crates" / "capi").is_dir():
        raise TestbedError("latency: expected a checkout of the project around this module")
    build = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "rampmeter-capi"]
    subprocess.run(build, cwd=root, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "release"
    program = folder / "ping"
    source, include = root / "crates/capi/examples/ping.c", root / "crates/capi/include"
    libraries = [target / "librampmeter_capi.a", "-lpthread", "-ldl", "-lm"]
    command: list[str | Path] = [
        "cc",
        "-std=gnu11",
        "-O2",
        "-Wall",
        "-Werror",
        "-I",
        include,
        "-o",
        program,
        source,
    ]
    subprocess.run([*command, *map(str, libraries)], check=True)
    return program


def two_ports() -> int:
    """Returns an unused port on loopback whose successor is unused too."""
    while True:
        with (
            socket.socket(type=socket.SOCK_DGRAM) as one,
            socket.socket(type=socket.SOCK_DGRAM) as two,
        ):
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
            try:
                two.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


@contextmanager
def running_program(command: Sequence[object]) -> Iterator[subprocess.Popen[str]]:
    """Runs a program until the end of the block."""
    text = list(map(str, command))
    process = subprocess.Popen(text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def first_line(process: subprocess.Popen[str]) -> None:
    """Waits until a program reports that it is ready."""
    if process.stdout is None or not process.stdout.readline():
        raise TestbedError(f"latency: {process.args!r} ended")


@contextmanager
def nodes(
    rampd: str, folder: Path, transport: str, security: str, extra: str
) -> Iterator[list[Path]]:
    """Runs two nodes of a transport; yields their sockets."""
    folder.mkdir()
    make = [[rampd, "keygen", str(folder / f"{node}.key")] for node in range(2)]
    keys = [
        subprocess.run(one, check=True, capture_output=True, text=True).stdout.strip()
        for one in make
    ]
    ports = [two_ports(), two_ports()]
    with ExitStack() as stack:
        for node in range(2):
            file = folder / f"{node}.toml"
            is_encrypted = security != "none"
            text = CONFIG.format(
                node=node,
                folder=folder,
                extra=extra,
                transport=transport,
                security=security,
                ports=ports,
                private_key=f'private-key = "{folder}/{node}.key"' if is_encrypted else "",
                public_keys=[f'public-key = "{key}"' if is_encrypted else "" for key in keys],
            )
            file.write_text(text)
            stack.enter_context(running_program([rampd, "node", file]))
        sockets = [folder / f"{node}.sock" for node in range(2)]
        until = time.monotonic() + 10
        while not all(path.exists() for path in sockets):
            if time.monotonic() > until:
                raise TestbedError(f"latency: no socket of {transport} after 10 s")
            time.sleep(0.02)
        yield sockets


def times(command: Sequence[object]) -> list[float]:
    """Microseconds of the round trips that a program prints."""
    client = subprocess.run(
        list(map(str, command)), check=True, capture_output=True, text=True, timeout=120
    )
    return [int(line) / 1e3 for line in client.stdout.split()]


def python_times(socket_path: Path, n: int) -> list[float]:
    """Measures the round trips of a program in Python with a peer in C, in microseconds."""
    data, times_us = bytes(SIZE), []
    with Port(socket_path, SERVICE) as port:
        for i in range(200 + n):
            start = time.perf_counter()
            ticket = port.send(1, data, SERVICE)
            port.receive(20)
            if i >= 200:
                times_us.append((time.perf_counter() - start) * 1e6)
            ticket.result(20)
    return times_us


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the value that a share of the values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def report(rounds: Sequence[Mapping[str, Sequence[float]]]) -> str:
    """Returns a line for each arm: medians over rounds, and of their ratios to the first arm."""
    lines = [f"{'64 B round trip, us':<24}{'median':>8}{'p99':>8}{'/ UDP':>8}{'p99 / UDP':>11}"]
    bare = next(iter(rounds[0]))
    for arm in rounds[0]:
        values, ratios = [], []
        for share in (0.5, 0.99):
            of_rounds = [percentile(one[arm], share) for one in rounds]
            of_bare = [percentile(one[bare], share) for one in rounds]
            values.append(statistics.median(of_rounds))
            ratios.append(statistics.median(a / b for a, b in zip(of_rounds, of_bare, strict=True)))
        lines.append(
            f"{arm:<24}{values[0]:>8.1f}{values[1]:>8.1f}{ratios[0]:>8.2f}{ratios[1]:>11.2f}"
        )
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the measurement from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--n", type=int, default=3000, help="round trips of an arm in a round")
    parser.add_argument("--transports", default="dcpim,phost")
    parser.add_argument("--security", default="encrypted", choices=["encrypted", "none"])
    parser.add_argument("--node", default="", help="further keys of [node]: busy-poll-us = 0.0")
    parser.add_argument("--rampd", help="the daemon; by default the one next to this Python")
    options = parser.parse_args(argv)
    rampd = options.rampd or find_rampd()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        ping = build_ping(folder)
        port = two_ports()
        first_line(stack.enter_context(running_program([ping, "udp-serve", port])))
        arms: dict[str, Callable[[], list[float]]] = {
            "bare UDP, C": partial(times, [ping, "udp-ask", port, options.n])
        }
        for idx, name in enumerate(options.transports.split(",")):
            sockets = stack.enter_context(
                nodes(rampd, folder / name, name, options.security, options.node)
            )
            first_line(stack.enter_context(running_program([ping, "serve", sockets[1], SERVICE])))
            ask = [ping, "ask", sockets[0], SERVICE, 1, options.n]
            arms[f"{name}, C"] = partial(times, ask)
            if idx == 0:
                arms[f"{name}, Python"] = partial(python_times, sockets[0], options.n)
        rounds = [{name: arm() for name, arm in arms.items()} for _ in range(options.rounds)]
    sys.stdout.write(report(rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())

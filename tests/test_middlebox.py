"""The cable with faults, between two namespaces."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from rampmeter.testbed.command import ip

from .nodes import RAMPD, needs_rampd, needs_root

N = 2000

LISTEN = """
import socket, sys
s = socket.socket(type=socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
s.bind(("0.0.0.0", 9000))
s.settimeout(1.0)
print("ready", flush=True)
try:
    while True:
        print(int.from_bytes(s.recv(100), "big"))
except TimeoutError:
    pass
"""

SEND = f"""
import socket, time
s = socket.socket(type=socket.SOCK_DGRAM)
for n in range({N}):
    s.sendto(n.to_bytes(4, "big"), ("10.79.0.2", 9000))
    if n % 20 == 0:
        time.sleep(0.002)
"""


pytestmark = [
    needs_root,
    needs_rampd,
]


@pytest.fixture
def ends() -> Iterator[list[str]]:
    """Yields two hosts and a box between them: their namespaces."""
    tag = f"rmbox{time.monotonic_ns()}"
    names = [f"{tag}-{end}" for end in ("a", "b", "box")]
    a, b, box = names
    try:
        ip(f"netns add {name}" for name in names)
        ip(
            [
                f"link add eth0 netns {a} type veth peer name left netns {box}",
                f"link add eth0 netns {b} type veth peer name right netns {box}",
            ]
        )
        for name, address in ((a, "10.79.0.1"), (b, "10.79.0.2")):
            ip([f"addr add {address}/24 dev eth0", "link set eth0 up"], name)
        ip(["link set left up", "link set right up"], box)
        yield names
    finally:
        ip(f"netns del {name}" for name in names)


def exchange(ends: list[str], *faults: str) -> list[int]:
    """Sends numbered datagrams to the other end; returns those that arrive, in order."""
    a, b, box = ends

    def within(name: str, *argv: str) -> list[str]:
        return ["ip", "netns", "exec", name, *argv]

    argv = within(box, RAMPD, "middlebox", "left", "right", *faults)
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as cable:
        assert cable.stderr is not None
        assert b"forwarding between interfaces" in cable.stderr.readline()
        listen = within(b, sys.executable, "-c", LISTEN)
        with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as listener:
            assert listener.stdout is not None
            assert listener.stdout.readline() == "ready\n"
            subprocess.run(within(a, sys.executable, "-c", SEND), check=True)
            got = [int(line) for line in listener.stdout]
        cable.send_signal(signal.SIGTERM)
        assert cable.wait(10) == 0
    return got


def test_without_faults_everything_passes_in_order(ends: list[str]) -> None:
    assert exchange(ends) == list(range(N))


def test_frames_are_lost_doubled_and_reordered_at_the_configured_rates(ends: list[str]) -> None:
    got = exchange(ends, "--loss", "0.2", "--duplicate", "0.1", "--reorder", "0.3")
    counts = Counter(got)
    # Three standard deviations of a binomial of 2000 draws are 54 and 40.
    assert abs(len(counts) - 0.8 * N) < 60
    assert abs(sum(n == 2 for n in counts.values()) - 0.08 * N) < 45
    inversions = sum(b < a for a, b in pairwise(got))
    assert inversions > 0.05 * N

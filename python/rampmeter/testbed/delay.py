"""Delays of small packets between two hosts."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from rampmeter.testbed.command import TestbedError
from rampmeter.testbed.shape import Shape

N_SAMPLES: Final = 200
"""Exchanges per measurement; a median of these differs by a few percent between runs."""

ECHO: Final = [sys.executable, "-I", "-S", str(Path(__file__).with_name("echo.py"))]
"""The measuring program, which starts without installed packages."""

Start = Callable[..., "subprocess.Popen[Any]"]


@dataclass(frozen=True)
class Delays:
    """Median delays in nanoseconds between processes that sleep until a packet arrives.

    They include the wake-up time of a sleeping processor, which is longest on an idle machine.
    """

    there_ns: int
    back_ns: int
    round_trip_ns: int


def measure(start: Start, shape: Shape, a: int, b: int) -> Delays:
    """Measures the delays from host `a` to `b` and back; `start` is `Fabric.run`."""
    address = str(shape.address(b))
    server = start(b, [*ECHO, "serve", address], stdout=subprocess.PIPE, text=True)
    with server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            client = start(
                a,
                [*ECHO, "probe", address, port, str(N_SAMPLES)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            printed, errors = client.communicate()
        finally:
            server.terminate()
    if client.returncode != 0:
        raise TestbedError(f"delays of hosts {a} and {b}: {errors.strip()}")
    samples: list[tuple[int, int]] = json.loads(printed)
    return Delays(
        there_ns=round(median(there for there, _ in samples)),
        back_ns=round(median(back for _, back in samples)),
        round_trip_ns=round(median(there + back for there, back in samples)),
    )

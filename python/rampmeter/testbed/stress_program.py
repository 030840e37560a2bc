"""A program of `stress`: sends to programs of other nodes, receives, and logs.

    python -m rampmeter.testbed.stress_program SOCKET LOG NODE SERVICE SEED

It submits messages until there is a file `stop` next to its log. It ends when there is one named
`leave`, or when its node is gone. `ledger` documents the format of the log.
"""

import random
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from rampmeter import _core
from rampmeter.hosts import AttachError, FullError, NodeGoneError
from rampmeter.testbed.cluster import HEADER, N_NODES, packed, unpacked
from rampmeter.testbed.ledger import tiny

SERVICES: Final = (7, 8, 9)
"""One program each, at every node."""
SIZE_MAX: Final = 8_000_000
GAP_S: Final = 0.25
"""Mean pause between two messages of a program."""
UNDER_WAY_MAX: Final = 24
"""Maximum number of messages in flight from a program. It then waits until one is over."""
DEPTH: Final = 256
ARENA: Final = 64 << 20


class Program:
    """A program at a node that sends, receives and logs."""

    def __init__(self, socket: Path, log: Path, node: int, service: int, seed: int) -> None:
        self.node, self.service = node, service
        self.rng = random.Random(seed)
        self.life = random.SystemRandom().getrandbits(63)
        self.port = attach(socket, service)
        self.log = log.open("a", buffering=1, encoding="utf-8")
        self.stops, self.leaves = log.with_name("stop"), log.with_name("leave")
        self.number = self.under_way = 0
        self.numbers: dict[int, int] = {}
        """Of messages, by their ticket."""
        self.write("P", self.life, node, service)

    def write(self, letter: str, *more: object) -> None:
        """Write a line."""
        print(letter, f"{time.monotonic():.6f}", *more, file=self.log)

    def run(self) -> int:
        """Go on until the end, or until the node is gone; returns the exit code."""
        try:
            self.work()
        except NodeGoneError:
            # Messages in flight have outcomes that arrive before the node's end.
            with suppress(NodeGoneError):
                while True:
                    self.take(0.0)
            self.write("G", self.life)
            return 3
        self.write("E", self.life)
        return 0

    def work(self) -> None:
        """Send and receive until the driver requests the end."""
        due, looked, is_sending = time.monotonic(), 0.0, False
        while True:
            now = time.monotonic()
            if now - looked > 0.1:
                looked, is_sending = now, not self.stops.exists()
                if self.leaves.exists():
                    return
            if is_sending and now >= due:
                due = now + self.rng.expovariate(1 / GAP_S)
                if self.under_way < UNDER_WAY_MAX:
                    self.send()
            self.take(max(0.0, min(0.1, due - now if is_sending else 0.1)))

    def send(self) -> None:
        """Send a message to any program of another node."""
        dst = self.rng.choice([node for node in range(N_NODES) if node != self.node])
        service = self.rng.choice(SERVICES)
        size = round(SIZE_MAX ** self.rng.random())
        make = tiny if size < HEADER.size else packed
        data = make(self.life, self.number, size)
        self.write("S", self.life, self.number, dst, service, size)
        number, self.number = self.number, self.number + 1
        try:
            ticket, _ = self.port.submit(dst, service, data)
        except FullError:
            self.write("O", self.life, number, "full")
        except NodeGoneError:
            self.write("O", self.life, number, "node-gone")
            raise
        else:
            self.numbers[ticket] = number
            self.under_way += 1

    def take(self, timeout: float) -> None:
        """Take the next completion, a message or an outcome, if one arrives in time."""
        completion = self.port.wait(timeout)
        if completion is None:
            return
        if isinstance(completion, _core.Finished):
            self.under_way -= 1
            number = self.numbers[completion.ticket]
            self.write("O", self.life, number, completion.failure or "completed")
            return
        data, source = completion.data, completion.source
        who = (self.node, self.service, source)
        if len(data) < HEADER.size:
            self.write("T", *who, data.hex())
            return
        life, number, _, is_whole = unpacked(data)
        if is_whole:
            self.write("R", *who, life, number)
        else:
            self.write("C", *who, len(data), data[: HEADER.size].hex())


def attach(socket: Path, service: int) -> _core.Port:
    """Attach to a node that may still be starting."""
    until = time.monotonic() + 20
    while True:
        try:
            port = _core.Port.attach(socket, service, depth=DEPTH, send=ARENA, receive=ARENA)
        except AttachError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            port.set_busy_poll(0.0)
            return port


def main() -> int:
    """Run a program."""
    socket, log, node, service, seed = sys.argv[1:]
    return Program(Path(socket), Path(log), int(node), int(service), int(seed)).run()


if __name__ == "__main__":
    sys.exit(main())

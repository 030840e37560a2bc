"""A program of `stress`: sends to programs of other nodes, receives, and logs.

    python -m tools.hosts.stress_program SOCKET LOG NODE SERVICE SEED

It submits messages until there is a file `stop` next to its log. It ends when there is one named
`quit`, or when its node has ended. `ledger` documents the format of the log.
"""

import random
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from rampmeter import _core
from rampmeter.hosts import AttachError, FullError, NodeGoneError
from tools.hosts.cluster import HEADER, N_NODES, decode_message, encode_message
from tools.hosts.ledger import tiny

SERVICES: Final = (7, 8, 9)
"""One program each, at every node."""
SIZE_MAX: Final = 8_000_000
GAP_S: Final = 0.25
"""Mean pause between two messages of a program."""
IN_FLIGHT_MAX: Final = 24
"""Maximum number of messages in flight from a program. It then waits until one has ended."""
DEPTH: Final = 256
ARENA: Final = 64 << 20


class Program:
    """A program at a node that sends, receives and logs."""

    def __init__(self, socket: Path, log: Path, node: int, service: int, seed: int) -> None:
        self.node, self.service = node, service
        self.rng = random.Random(seed)
        self.incarnation = random.SystemRandom().getrandbits(63)
        self.port = attach(socket, service)
        self.log = log.open("a", buffering=1, encoding="utf-8")
        self.stops, self.quits = log.with_name("stop"), log.with_name("quit")
        self.number = self.in_flight = 0
        self.numbers: dict[int, int] = {}
        """Numbers of messages, by their ticket."""
        self.write("P", self.incarnation, node, service)

    def write(self, letter: str, *more: object) -> None:
        """Writes a line."""
        print(letter, f"{time.monotonic():.6f}", *more, file=self.log)

    def run(self) -> int:
        """Runs until the end, or until the node has ended; returns the exit code."""
        try:
            self.send_and_receive()
        except NodeGoneError:
            # Messages in flight have outcomes that arrive before the node's end.
            with suppress(NodeGoneError):
                while True:
                    self.receive(0.0)
            self.write("G", self.incarnation)
            return 3
        self.write("E", self.incarnation)
        return 0

    def send_and_receive(self) -> None:
        """Sends and receives until the driver requests the end."""
        due, looked, is_sending = time.monotonic(), 0.0, False
        while True:
            now = time.monotonic()
            if now - looked > 0.1:
                looked, is_sending = now, not self.stops.exists()
                if self.quits.exists():
                    return
            if is_sending and now >= due:
                due = now + self.rng.expovariate(1 / GAP_S)
                if self.in_flight < IN_FLIGHT_MAX:
                    self.send()
            self.receive(max(0.0, min(0.1, due - now if is_sending else 0.1)))

    def send(self) -> None:
        """Sends a message to any program of another node."""
        dst = self.rng.choice([node for node in range(N_NODES) if node != self.node])
        service = self.rng.choice(SERVICES)
        size = round(SIZE_MAX ** self.rng.random())
        make = tiny if size < HEADER.size else encode_message
        data = make(self.incarnation, self.number, size)
        self.write("S", self.incarnation, self.number, dst, service, size)
        number, self.number = self.number, self.number + 1
        try:
            ticket, _ = self.port.submit(dst, service, data)
        except FullError:
            self.write("O", self.incarnation, number, "full")
        except NodeGoneError:
            self.write("O", self.incarnation, number, "node-gone")
            raise
        else:
            self.numbers[ticket] = number
            self.in_flight += 1

    def receive(self, timeout: float) -> None:
        """Logs the next completion, a message or an outcome, if one arrives in time."""
        completion = self.port.wait(timeout)
        if completion is None:
            return
        if isinstance(completion, _core.Finished):
            self.in_flight -= 1
            number = self.numbers[completion.ticket]
            self.write("O", self.incarnation, number, completion.failure or "completed")
            return
        data, source = completion.data, completion.source
        who = (self.node, self.service, source)
        if len(data) < HEADER.size:
            self.write("T", *who, data.hex())
            return
        incarnation, number, _, is_whole = decode_message(data)
        if is_whole:
            self.write("R", *who, incarnation, number)
        else:
            self.write("C", *who, len(data), data[: HEADER.size].hex())


def attach(socket: Path, service: int) -> _core.Port:
    """Attaches to a node that may still be starting."""
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
    """Runs a program."""
    socket, log, node, service, seed = sys.argv[1:]
    return Program(Path(socket), Path(log), int(node), int(service), int(seed)).run()


if __name__ == "__main__":
    sys.exit(main())

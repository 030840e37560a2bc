"""A UDP server that answers with the time of arrival, and its client; run in the hosts' namespaces.

`echo.py serve ADDRESS` prints its port and answers until it is killed; `echo.py probe ADDRESS PORT
COUNT` prints the nanoseconds of each exchange, in both directions. All namespaces have one
monotonic clock. Imports only the standard library, so that it starts at once.
"""

import json
import socket
import struct
import sys
import time

STAMP = struct.Struct("!Q")
TOS_HIGHEST = 0xE0
WARM_UP = 10
"""Exchanges before those that count: the first ones fill caches."""
GAP_SECONDS = 0.001
"""Pause between exchanges in seconds, so that each finds the path idle."""
TIMEOUT_SECONDS = 0.5
LOST_MAX = 10
"""Maximum number of lost exchanges before the path counts as broken."""


def main(argv: list[str]) -> None:
    """Runs the command that the first argument names."""
    match argv:
        case ["serve", address]:
            serve(address)
        case ["probe", address, port, count]:
            sys.stdout.write(json.dumps(probe((address, int(port)), int(count))))
        case _:
            raise SystemExit("echo: expected serve ADDRESS or probe ADDRESS PORT COUNT")


def serve(address: str) -> None:
    """Answers every packet with itself and its time of arrival."""
    with _socket() as udp:
        udp.bind((address, 0))
        sys.stdout.write(f"{udp.getsockname()[1]}\n")
        sys.stdout.flush()
        while True:
            packet, peer = udp.recvfrom(64)
            udp.sendto(packet + STAMP.pack(time.monotonic_ns()), peer)


def probe(server: tuple[str, int], count: int) -> list[tuple[int, int]]:
    """Measures the times of packets in both directions, one after another."""
    samples: list[tuple[int, int]] = []
    n_lost = 0
    with _socket() as udp:
        udp.connect(server)
        udp.settimeout(TIMEOUT_SECONDS)
        while len(samples) < WARM_UP + count:
            try:
                samples.append(exchange(udp))
            except TimeoutError:
                n_lost += 1
                if n_lost > LOST_MAX:
                    raise SystemExit(f"echo: no answer from {server}") from None
            time.sleep(GAP_SECONDS)
    return samples[WARM_UP:]


def exchange(udp: socket.socket) -> tuple[int, int]:
    """Measures the times of one packet; late answers to earlier ones are skipped."""
    sent = time.monotonic_ns()
    udp.send(STAMP.pack(sent))
    while True:
        packet = udp.recv(64)
        now = time.monotonic_ns()
        echoed, arrived = STAMP.unpack_from(packet), STAMP.unpack_from(packet, STAMP.size)
        if echoed[0] == sent:
            return arrived[0] - sent, now - arrived[0]


def _socket() -> socket.socket:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, TOS_HIGHEST)
    return udp


if __name__ == "__main__":
    main(sys.argv[1:])

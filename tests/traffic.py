"""Programs that the tests of the testbed run on its hosts: senders, receivers, a monitor.

A separate program without the package, so that it starts at once. Every packet has its tag and its
time of sending. The kernel stamps arrivals, so that a receiver that sleeps does not count.
"""

import json
import socket
import struct
import sys
import time
from collections.abc import Callable

PORT = 7000
FULL = 1472
HEAD = struct.Struct("!QQ")
TOS_HIGHEST = 0xE0
SILENCE_SECONDS = 1.0
ROUND_SECONDS = 0.05
SURGE = 45
SO_TIMESTAMPNS = 35
SOL_UDP, UDP_SEGMENT = 17, 103


def receive(address: str, count: str) -> None:
    """Receives `count` packets, or until a timeout; prints arrival, tag, sending, length."""
    seen: list[tuple[int, int, int, int]] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        udp.bind((address, PORT))
        udp.settimeout(10)
        say_ready()
        while len(seen) < int(count):
            try:
                packet, ancillary, _, _ = udp.recvmsg(2048, 64)
            except TimeoutError:
                break
            udp.settimeout(SILENCE_SECONDS)
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            tag, sent = HEAD.unpack_from(packet)
            seen.append((seconds * 10**9 + nanoseconds, tag, sent, len(packet)))
    sys.stdout.write(json.dumps(seen))


def tell(tag: str, *addresses: str) -> None:
    """Sends one packet to each address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for address in addresses:
            send(udp, address, int(tag), HEAD.size)


def burst(address: str, count: str, ports: str) -> None:
    """Sends full packets as fast as possible, in turn from `ports` source ports."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(int(ports))]
    for number in range(int(count)):
        send(sockets[number % len(sockets)], address, number, FULL)


def surge(address: str, rounds: str) -> None:
    """Sends 45 packets of the lowest priority (tag 7), then one of the highest (tag 0).

    Less than the queue's capacity and the socket's buffer, so a sender that waits for a processor
    loses a round and not the rest. Programs that run at once have the same rounds.
    """
    low = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    low.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    high = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    high.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, TOS_HIGHEST)
    for _ in range(int(rounds)):
        time.sleep(ROUND_SECONDS - time.time() % ROUND_SECONDS)
        for _ in range(SURGE):
            send(low, address, 7, FULL)
        send(high, address, 0, HEAD.size)


def segments(address: str, bytes_: str) -> None:
    """Sends eight packets in one call."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.setsockopt(SOL_UDP, UDP_SEGMENT, int(bytes_))
        send(udp, address, 0, 8 * int(bytes_))


def stream(address: str, megabytes: str) -> None:
    """Sends over TCP."""
    with socket.create_connection((address, PORT)) as tcp:
        tcp.sendall(bytes(int(megabytes) << 20))


def sink(address: str) -> None:
    """Accepts one TCP connection and prints the number of received bytes."""
    with socket.create_server((address, PORT)) as server:
        say_ready()
        peer, _ = server.accept()
        with peer:
            total = 0
            while chunk := peer.recv(1 << 16):
                total += len(chunk)
    sys.stdout.write(json.dumps(total))


def frames(interface: str) -> None:
    """Watches an interface until a timeout; prints the longest frame and the number of frames."""
    longest = n_frames = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(0x0800)) as raw:
        raw.bind((interface, 0x0800))
        raw.settimeout(10)
        say_ready()
        while True:
            try:
                length = raw.recv_into(bytearray(1 << 16))
            except TimeoutError:
                break
            raw.settimeout(SILENCE_SECONDS)
            longest, n_frames = max(longest, length), n_frames + 1
    sys.stdout.write(json.dumps([longest, n_frames]))


def send(udp: socket.socket, address: str, tag: int, length: int) -> None:
    """Sends one packet."""
    head = HEAD.pack(tag, time.time_ns())
    udp.sendto(head + bytes(length - len(head)), (address, PORT))


def say_ready() -> None:
    """Signals the test to continue."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()


PROGRAMS: dict[str, Callable[..., None]] = {
    act.__name__: act for act in (receive, tell, burst, surge, segments, stream, sink, frames)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])

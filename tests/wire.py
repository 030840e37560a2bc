"""Packets as nodes write them, from any sender: forged, recorded, retransmitted, in floods."""

import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple, Self

ETH_P_IP: Final = 0x0800
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
ENVELOPE: Final = struct.Struct(">HBBBBHIIIII")
MAGIC, VERSION = 0x524D, 2
HELLO, HERE, CONTROL, DATA, REFUSED, WITH_DIGEST, CORRUPT = 0, 1, 2, 3, 4, 10, 11
BARE, CHECKSUM, SEALED = 0, 1, 2

Address = tuple[str, int]


class Lives(NamedTuple):
    """Fields of an envelope about its ends, which everybody on the path can read."""

    transport: int
    src: int
    dst: int
    src_life: int
    dst_life: int

    @classmethod
    def of(cls, datagram: bytes) -> "Lives":
        """Reads them from a datagram."""
        _, _, _, transport, _, _, src, dst, src_life, dst_life, _ = ENVELOPE.unpack_from(datagram)
        return cls(transport, src, dst, src_life, dst_life)


class Frame(NamedTuple):
    """A datagram in flight."""

    source: Address
    dst: Address
    datagram: bytes


def envelope(
    lives: Lives,
    kind: int,
    word: int = 0,
    *,
    protection: int = CHECKSUM,
    service: int = 0,
    more: tuple[int, ...] = (),
) -> bytes:
    """Writes the envelope; `more` are offset, size and digest of data."""
    head = (MAGIC, VERSION, kind, lives.transport, protection, service)
    front = ENVELOPE.pack(*head, lives.src, lives.dst, lives.src_life, lives.dst_life, word)
    return front + b"".join(n.to_bytes(4, "big") for n in more)


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE: Final = _table()


def crc32c(data: bytes) -> int:
    """Returns the checksum of unencrypted packets, and of messages."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def protected(datagram: bytes) -> bytes:
    """Adds the checksum of unencrypted packets."""
    return datagram + crc32c(datagram).to_bytes(4, "big")


class Forger:
    """Sends datagrams with the addresses of others as their source; needs CAP_NET_RAW."""

    def __init__(self) -> None:
        self._raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def send(self, frame: Frame) -> None:
        """Sends a packet without a UDP checksum, which IPv4 allows."""
        (source, sport), (dst, dport), datagram = frame
        length = 8 + len(datagram)
        ends = socket.inet_aton(source) + socket.inet_aton(dst)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0, 64, 17, 0) + ends
        udp = struct.pack(">HHHH", sport, dport, length, 0)
        self._raw.sendto(ip + udp + datagram, (dst, 0))


class Recorder:
    """Records the datagrams to some ports of the loopback interface; needs CAP_NET_RAW."""

    def __init__(self, ports: set[int]) -> None:
        self.frames: list[Frame] = []
        self._ports = ports
        self._raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        self._raw.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self._raw.bind(("lo", ETH_P_IP))
        self._raw.settimeout(0.05)
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stops.set()
        self._thread.join()
        self._raw.close()

    def _run(self) -> None:
        while not self._stops.is_set():
            try:
                frame = self._raw.recv(1 << 16)
            except TimeoutError:
                continue
            ip = frame[14:]
            if ip[9] != 17:
                continue
            head = 4 * (ip[0] & 15)
            sport, dport, length, _ = struct.unpack_from(">HHHH", ip, head)
            if dport in self._ports:
                ends = socket.inet_ntoa(ip[12:16]), socket.inet_ntoa(ip[16:20])
                datagram = ip[head + 8 : head + length]
                self.frames.append(Frame((ends[0], sport), (ends[1], dport), datagram))


class Flood:
    """Sends the packets of `make` at a fixed rate, in a thread."""

    def __init__(self, rate: float, make: Callable[[int], Frame]) -> None:
        self.sent = 0
        self._rate, self._make = rate, make
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stops.set()
        self._thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        with Forger() as forger:
            while not self._stops.is_set():
                due = (time.monotonic() - began) * self._rate
                for _ in range(min(200, int(due) - self.sent)):
                    forger.send(self._make(self.sent))
                    self.sent += 1
                time.sleep(0.001)

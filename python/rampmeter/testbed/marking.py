"""Times of packets at each port, and congestion marks on those that are queued for too long.

Not every kernel has a queue that marks. So two small programs do it at each link, with the queue
between them: one stamps each packet as it arrives at the port, before the queue. The other computes
at the far end of the link the time since then. ECN-capable packets are marked there if it exceeds a
threshold, as by the `ce_threshold` of CoDel. The second program also counts all packets by their
time at the port.

They have 8 and about 30 instructions, so they are written here as such and passed to the
system call: that needs neither a compiler nor a loader. The kernel removes them when their
descriptors are closed, however this process ends. Needs Linux 6.6 or later, CAP_BPF and
CAP_NET_ADMIN.
"""

import ctypes
import os
import platform
import socket
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rampmeter.testbed.command import TestbedError
from rampmeter.testbed.fabric import Fabric
from rampmeter.testbed.process import NAMESPACES
from rampmeter.testbed.shape import Port

BINS: Final = 1024
"""Bins of times at a port; the last one counts all longer times."""
BINS_PER_FRAME: Final = 4
"""Number of bins in the serialisation time of a full packet."""
THRESHOLD_NS_MAX: Final = 2**31 - 1
"""The longest threshold: the programs compare with a number of 32 bits and a sign."""

SYSCALL: Final = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
"""The number of the system call `bpf`."""
CLONE_NEWNET: Final = 0x4000_0000


@dataclass(frozen=True)
class PortDelays:
    """Times of packets at a port, from arrival to the end of departure."""

    marks: int
    """Packets that were sent with a congestion mark, queued for longer than the threshold."""
    counts: tuple[int, ...]
    """Packets by their time at the port, in bins of `bin_ns` from 0 on."""
    bin_ns: int

    @property
    def packets(self) -> int:
        """Number of packets."""
        return sum(self.counts)

    def mean_s(self) -> float:
        """Returns the mean time in seconds, to half a bin; NaN without packets."""
        total = sum((place + 0.5) * count for place, count in enumerate(self.counts))
        return total * self.bin_ns / self.packets / 1e9 if self.packets else float("nan")

    def quantile_s(self, share: float) -> float:
        """Returns the quantile of delays in seconds; NaN without packets."""
        remaining = share * self.packets
        for place, count in enumerate(self.counts):
            remaining -= count
            if remaining <= 0 and self.packets:
                return (place + 1) * self.bin_ns / 1e9
        return float("nan")

    def __add__(self, other: "PortDelays") -> "PortDelays":
        """Adds the packets of two ports with the same bins."""
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return PortDelays(self.marks + other.marks, counts, self.bin_ns)


class Watch:
    """The programs at all links of a fabric, while its `with` block runs.

    Packets are marked if they were at a port for longer than the serialisation time of
    `mark_above_bytes`. If that is `None`, packets are only counted.
    """

    def __init__(self, fabric: Fabric, mark_above_bytes: float | None = None) -> None:
        self._fabric = fabric
        self._mark_above_bytes = mark_above_bytes
        self._maps: dict[str, tuple[int, int]] = {}
        self._open: list[int] = []

    def __enter__(self) -> "Watch":
        """Attaches them; raises `TestbedError` if the system has no such programs."""
        try:
            stamp = self._keep(_load(_stamp()))
            for link in self._fabric.shape.links:
                for near, far in (link.ports(), link.ports()[::-1]):
                    judge = self._keep(self._judge(near))
                    self._attach(near, stamp, TCX_EGRESS)
                    self._attach(far, judge, TCX_INGRESS)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Removes them."""
        self._close()

    def read(self) -> dict[str, PortDelays]:
        """Returns the counts so far, by ports as in `Fabric.port_counters`."""
        waits = {}
        for name, (counts, bin_ns) in self._maps.items():
            values = [_look_up(counts, key) for key in range(BINS + 1)]
            waits[name] = PortDelays(values[BINS], tuple(values[:BINS]), bin_ns)
        return waits

    def _judge(self, port: Port) -> int:
        """Returns the program that counts and marks packets that have been at a port."""
        byte_ns = 8e9 / port.rate_bps
        bin_ns = max(1, round(self._fabric.shape.frame_bytes * byte_ns / BINS_PER_FRAME))
        counts = self._keep(_create_map())
        self._maps[port.name] = (counts, bin_ns)
        above = self._mark_above_bytes
        if above is not None and above > mark_above_max(port.rate_bps):
            most = mark_above_max(port.rate_bps)
            message = f"expected marks above at most {most} bytes at {port.name}, got {above:.0f}"
            raise TestbedError(message)
        return _load(_judge(counts, bin_ns, None if above is None else round(above * byte_ns)))

    def _keep(self, descriptor: int) -> int:
        self._open.append(descriptor)
        return descriptor

    def _attach(self, port: Port, program: int, where: int) -> None:
        """Attaches a program by a thread, which can enter another namespace than its process."""
        namespace = NAMESPACES / self._fabric.namespace(port.node)
        links: list[int] = []
        errors: list[BaseException] = []

        def attach() -> None:
            try:
                links.append(_attach_in(str(namespace), port.interface, program, where))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=attach)
        thread.start()
        thread.join()
        self._open += links
        if errors:
            raise errors[0]

    def _close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()
        self._maps.clear()


def mark_above_max(rate_bps: float) -> int:
    """Returns the maximum number of bytes above which a port of that rate can mark."""
    return int(THRESHOLD_NS_MAX * rate_bps / 8e9)


class Insn(NamedTuple):
    """One instruction; jumps skip `offset` instructions."""

    code: int
    dst: int = 0
    src: int = 0
    offset: int = 0
    immediate: int = 0

    def packed(self) -> bytes:
        """Returns the instruction in the kernel's encoding, on little-endian machines."""
        registers = self.dst | self.src << 4
        return struct.pack("<BBhi", self.code, registers, self.offset, self.immediate)


LOAD_8: Final = 0x71
LOAD_64: Final = 0x79
STORE_CONST_32: Final = 0x62
STORE_32: Final = 0x63
ATOMIC_ADD_64: Final = 0xDB
LOAD_MAP: Final = 0x18
IS_MAP_FD: Final = 1
MOVE: Final = 0xBF
MOVE_CONST: Final = 0xB7
ADD_CONST: Final = 0x07
SUB: Final = 0x1F
DIV_CONST: Final = 0x37
IF_EQUAL_CONST: Final = 0x15
IF_NOT_EQUAL_CONST: Final = 0x55
IF_AT_MOST_CONST: Final = 0xB5
CALL: Final = 0x85
EXIT: Final = 0x95

# Helpers of the kernel.
MAP_LOOKUP: Final = 1
KTIME_GET_NS: Final = 5
SKB_ECN_SET_CE: Final = 97
SKB_SET_TSTAMP: Final = 192

# Fields of `struct __sk_buff`.
TSTAMP: Final = 152
TSTAMP_TYPE: Final = 180
MONOTONIC: Final = 1
"""The type of a time stamp that a packet retains over a virtual link."""

NEXT: Final = -1
"""Return value of a program that passes a packet."""


def _stamp() -> list[Insn]:
    """Stamps the packet with the time."""
    return [
        Insn(MOVE, 6, 1),
        Insn(CALL, immediate=KTIME_GET_NS),
        Insn(MOVE, 2, 0),
        Insn(MOVE, 1, 6),
        Insn(MOVE_CONST, 3, immediate=MONOTONIC),
        Insn(CALL, immediate=SKB_SET_TSTAMP),
        Insn(MOVE_CONST, 0, immediate=NEXT),
        Insn(EXIT),
    ]


def _judge(counts: int, bin_ns: int, mark_above_ns: int | None) -> list[Insn]:
    """Counts the packet by the time since it was stamped, and marks it if that was too long."""
    end = [Insn(MOVE_CONST, 0, immediate=NEXT), Insn(EXIT)]
    mark: list[Insn] = []
    if mark_above_ns is not None:
        count = [Insn(STORE_CONST_32, 10, offset=-4, immediate=BINS), *_count(counts)]
        mark = [
            # r7 = the time. The helper returns whether the packet is marked now.
            Insn(IF_AT_MOST_CONST, 7, offset=3 + len(count), immediate=mark_above_ns),
            Insn(MOVE, 1, 6),
            Insn(CALL, immediate=SKB_ECN_SET_CE),
            Insn(IF_EQUAL_CONST, 0, offset=len(count)),
            *count,
        ]
    count = [Insn(STORE_32, 10, 8, offset=-4), *_count(counts)]
    body = [
        Insn(LOAD_64, 7, 6, TSTAMP),
        Insn(CALL, immediate=KTIME_GET_NS),
        Insn(SUB, 0, 7),
        Insn(MOVE, 7, 0),
        # r8 = its bin
        Insn(MOVE, 8, 7),
        Insn(DIV_CONST, 8, immediate=bin_ns),
        Insn(IF_AT_MOST_CONST, 8, offset=1, immediate=BINS - 1),
        Insn(MOVE_CONST, 8, immediate=BINS - 1),
        *count,
        *mark,
    ]
    return [
        Insn(MOVE, 6, 1),
        Insn(LOAD_8, 2, 1, TSTAMP_TYPE),
        Insn(IF_NOT_EQUAL_CONST, 2, offset=len(body), immediate=MONOTONIC),
        *body,
        *end,
    ]


def _count(counts: int) -> list[Insn]:
    """Adds one to the entry whose number is at the top of the stack."""
    return [
        Insn(MOVE, 2, 10),
        Insn(ADD_CONST, 2, immediate=-4),
        Insn(LOAD_MAP, 1, IS_MAP_FD, immediate=counts),
        Insn(0),
        Insn(CALL, immediate=MAP_LOOKUP),
        Insn(IF_EQUAL_CONST, 0, offset=2),
        Insn(MOVE_CONST, 1, immediate=1),
        Insn(ATOMIC_ADD_64, 0, 1),
    ]


# Commands of the system call, with their arguments as the kernel's `union bpf_attr` has them.
CREATE_MAP: Final = 0
LOOK_UP: Final = 1
LOAD_PROGRAM: Final = 5
CREATE_LINK: Final = 28
ARRAY: Final = 2
SCHED_CLS: Final = 3
TCX_INGRESS: Final = 46
TCX_EGRESS: Final = 47


def _create_map() -> int:
    args = struct.pack("5I", ARRAY, 4, 8, BINS + 1, 0)
    return _bpf(CREATE_MAP, args, "make a map")


def _look_up(counts: int, key: int) -> int:
    keys, value = ctypes.c_uint32(key), ctypes.c_uint64()
    args = struct.pack("I4xQQQ", counts, ctypes.addressof(keys), ctypes.addressof(value), 0)
    _bpf(LOOK_UP, args, "read a map")
    return value.value


def _load(program: Sequence[Insn]) -> int:
    code = ctypes.create_string_buffer(b"".join(insn.packed() for insn in program))
    license_ = ctypes.create_string_buffer(b"Apache-2.0")
    log = ctypes.create_string_buffer(1 << 16)
    args = struct.pack(
        "2I2Q2IQ",
        SCHED_CLS,
        len(program),
        ctypes.addressof(code),
        ctypes.addressof(license_),
        1,
        len(log),
        ctypes.addressof(log),
    )
    try:
        return _bpf(LOAD_PROGRAM, args, "load a program")
    except TestbedError as error:
        raise TestbedError(f"{error}\n{log.value.decode()[-400:]}") from None


def _attach_in(namespace: str, interface: str, program: int, where: int) -> int:
    """Attaches a program in a network namespace. The calling thread remains there."""
    descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc().setns(descriptor, CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise TestbedError(f"testbed: cannot enter {namespace}: {os.strerror(number)}")
    finally:
        os.close(descriptor)
    args = struct.pack("4I16x", program, socket.if_nametoindex(interface), where, 0)
    return _bpf(CREATE_LINK, args, f"attach a program to {interface}")


def _bpf(command: int, args: bytes, action: str) -> int:
    number = SYSCALL.get(platform.machine())
    if number is None:
        machines = ", ".join(SYSCALL)
        raise TestbedError(f"testbed: expected one of {machines}, this is {platform.machine()}")
    buffer = ctypes.create_string_buffer(args, len(args))
    result: int = _libc().syscall(number, command, ctypes.byref(buffer), len(args))
    if result < 0:
        error = os.strerror(ctypes.get_errno())
        raise TestbedError(f"testbed: cannot {action}: {error}; expected Linux 6.6 and root")
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)

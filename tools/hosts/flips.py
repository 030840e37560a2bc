"""A cable between two interfaces of one machine that flips bits of frames.

    python flips.py left right --chance 0.005
    python flips.py left right --chance 0.005 --double
    python flips.py --whole eth0

A frame is changed with a probability. A single flip is of any bit after the addresses of Ethernet.
A double flip is of the same bit in two 16-bit words of a UDP payload, one set and one not. The sum
of the words is unchanged, so the checksum of UDP stays right. `--whole` makes an interface
send frames whose checksums are complete, each a separate packet; both ends of the cable need it.

A separate program without the package, so that it starts at once. Needs CAP_NET_RAW.
"""

import argparse
import ctypes
import fcntl
import random
import select
import signal
import socket
import struct
import sys
from types import FrameType

ETH_P_ALL = 3
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_IGNORE_OUTGOING = 263, 1, 23
PACKET_MR_PROMISC = 1
SO_RCVBUFFORCE = 33
SIOCETHTOOL = 0x8946
SETTINGS = {"generic segmentation": 0x24, "segmentation": 0x1F, "checksums": 0x17}
"""Offloads that are disabled on an interface, with the ethtool commands that set them."""
FRAME_MAX = 1 << 16
BATCH = 64
PAYLOAD = 14 + 20 + 8
"""Offset of the UDP payload in a frame, in bytes."""
BUFFER = 16 << 20


def open_interface(name: str) -> socket.socket:
    """Opens an interface for whole frames, from any sender to any receiver."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    raw.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    promiscuous = struct.pack("iHH8s", socket.if_nametoindex(name), PACKET_MR_PROMISC, 0, b"")
    raw.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, promiscuous)
    raw.bind((name, ETH_P_ALL))
    raw.setblocking(False)
    return raw


def make_whole(name: str) -> None:
    """Makes the kernel split packets and complete checksums before they reach an interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in SETTINGS.values():
            value = (ctypes.c_uint32 * 2)(command, 0)
            request = struct.pack("16sP16x", name.encode(), ctypes.addressof(value))
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def flip_one(frame: bytearray, rng: random.Random) -> bool:
    """Flips a bit; returns true if one was flipped."""
    bit = rng.randrange(8 * 12, 8 * len(frame))
    frame[bit // 8] ^= 1 << bit % 8
    return True


def flip_two(frame: bytearray, rng: random.Random) -> bool:
    """Flips a bit of two words without a change of their sum; returns true on success."""
    is_udp = frame[12:14] == b"\x08\x00" and frame[14] == 0x45 and frame[23] == 17
    end = 14 + int.from_bytes(frame[16:18], "big") if is_udp else 0
    n_words = (min(end, len(frame)) - PAYLOAD) // 2
    if n_words < 2:
        return False
    for _ in range(20):
        bit = rng.randrange(16)
        one, other = (PAYLOAD + 2 * at + bit // 8 for at in rng.sample(range(n_words), 2))
        mask = 1 << bit % 8
        if (frame[one] ^ frame[other]) & mask:
            frame[one] ^= mask
            frame[other] ^= mask
            return True
    return False


def relay(left: str, right: str, chance: float, flip: str, seed: int) -> dict[str, int]:
    """Forwards frames until SIGTERM; returns the numbers of forwarded and of changed ones."""
    ends = [open_interface(left), open_interface(right)]
    change = flip_two if flip == "double" else flip_one
    rng = random.Random(seed)
    counts = {"passed": 0, "changed": 0, "full": 0}
    stopping: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        stopping.append(number)

    signal.signal(signal.SIGTERM, stop)
    while not stopping:
        ready, _, _ = select.select(ends, [], [], 0.2)
        for end in ready:
            to = ends[1] if end is ends[0] else ends[0]
            for _ in range(BATCH):
                try:
                    frame: bytes | bytearray = end.recv(FRAME_MAX)
                except (BlockingIOError, OSError):
                    break
                if rng.random() < chance:
                    frame = bytearray(frame)
                    counts["changed"] += change(frame, rng)
                counts["passed"] += 1
                try:
                    to.send(frame)
                except OSError:
                    # The interface is full or down.
                    counts["full"] += 1
    return counts


def main() -> int:
    """Relays frames, or makes an interface's frames whole."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("interface", nargs="*", help="the two ends")
    parser.add_argument("--chance", type=float, default=0.0)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--whole", metavar="INTERFACE")
    args = parser.parse_args()
    if args.whole is not None:
        make_whole(args.whole)
        return 0
    if len(args.interface) != 2:
        parser.error(f"expected two interfaces, got {args.interface}")
    left, right = args.interface
    flip = "double" if args.double else "single"
    counts = relay(left, right, args.chance, flip, args.seed)
    text = " ".join(f"{name}={count}" for name, count in counts.items())
    sys.stderr.write(f"flips: {flip} {text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The queues of a port: a shaped link with eight strict priorities, and their counters.

Priority 0 is the highest and has DSCP class CS7. Priority 7 is the lowest and has CS0 and
packets that are not IPv4. The kernel has no such qdisc, so it is HTB. The root class has the link's
rate. Each priority has 8 kbit/s itself and borrows the rest from the root class.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from rampmeter.testbed.shape import Port, Shape

N_PRIORITIES: Final = 8
"""As many as there are class selectors in DSCP, and queues in a switch."""

OWN_RATE: Final = "8kbit"
"""Rate of each class of any priority: HTB requires a positive one, so it is the minimum."""

BURST_SECONDS: Final = 0.000_25
"""Lateness of a timer up to which the link loses no throughput. It is also the time by which a
packet may follow another too early, so it is no more than loaded machines need."""


@dataclass(frozen=True)
class Counters:
    """Packets that a queue has sent and dropped; bytes count Ethernet headers."""

    bytes: int
    packets: int
    drops: int


def tos(priority: int) -> int:
    """Returns the value of `IP_TOS` that puts packets into a priority.

    >>> hex(tos(0)), hex(tos(7))
    ('0xe0', '0x0')
    """
    return (N_PRIORITIES - 1 - priority) << 5


def queue_commands(port: Port, shape: Shape) -> Iterator[str]:
    """Yields the commands of `tc` that create the queues of a port."""
    device = f"dev {port.interface}"
    rate = f"{port.rate_bps}bit"
    frame = shape.frame_bytes
    burst = max(1, int(port.rate_bps * BURST_SECONDS / 8))
    lowest = N_PRIORITIES - 1
    yield f"qdisc add {device} root handle 1: htb default 1{lowest} direct_qlen 2"
    yield (
        f"class add {device} parent 1: classid 1:1"
        f" htb rate {rate} ceil {rate} burst {burst} cburst {burst} quantum {frame}"
    )
    for priority in range(N_PRIORITIES):
        yield (
            f"class add {device} parent 1:1 classid 1:1{priority} htb rate {OWN_RATE}"
            f" ceil {rate} prio {priority} burst {frame} cburst {burst} quantum {frame}"
        )
        yield (
            f"qdisc add {device} parent 1:1{priority} handle 1{priority}:"
            f" pfifo limit {shape.queue_frames}"
        )
    for priority in range(lowest):
        yield (
            f"filter add {device} parent 1: protocol ip prio 1"
            f" u32 match ip dsfield {tos(priority):#x} 0xe0 flowid 1:1{priority}"
        )


def parse_counters(text: str) -> dict[str, tuple[Counters, ...]]:
    """Returns the counters of each interface by priority, from `tc -s -j qdisc show`."""
    queues: dict[str, dict[int, Counters]] = {}
    shown: list[dict[str, Any]] = json.loads(text)
    for qdisc in shown:
        if qdisc["kind"] == "pfifo":
            priority = int(qdisc["handle"].removesuffix(":")) - 10
            counters = Counters(qdisc["bytes"], qdisc["packets"], qdisc["drops"])
            queues.setdefault(qdisc["dev"], {})[priority] = counters
    return {
        interface: tuple(counters for _, counters in sorted(by_priority.items()))
        for interface, by_priority in queues.items()
    }

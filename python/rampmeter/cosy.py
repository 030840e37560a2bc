"""The guarantees of cosy: the bounds and the sustainable load of the paper's theorems."""

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rampmeter import _core


def share(slots: int, cores: int) -> float:
    """Returns f(K, C): cosy's expected sustainable load over the best sustainable one.

    `slots` virtual links a link (K), `cores` core switches (C); theorem 3.4, figure 2.
    """
    return _core.cosy_share(slots, cores)


def slots_max(buffer_bytes: int, switches: int, packet_bytes: int = 1500) -> int:
    """Returns K*: the most virtual links for which all queues fit into a switch's buffer (§3.4)."""
    return _core.cosy_slots_max(buffer_bytes, switches, packet_bytes)


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network as the theorems model it."""

    rtt_us: float
    """The unloaded round trip of a full packet (hRTT)."""
    gbps: float
    """The rate of the links of hosts (B)."""
    switches: int = 3
    """Switches on the longest path (#H)."""
    ratio: int = 1
    """Rate of links between switches over the rate of hosts' links (F)."""
    packet_bytes: int = 1500
    """The longest packet (p)."""

    def delta_star_us(self, size_bytes: int) -> float:
        """Returns the minimum bound of any design: 2 hRTT + s/B (theorem 3.1)."""
        return self._limits(size_bytes)[0]

    def theta_star(self, size_bytes: int) -> float:
        """Returns the maximum sustainable load of any design: 1 / (2 (1 + alpha)) (theorem 3.1)."""
        return self._limits(size_bytes)[1]

    def theta(self, size_bytes: int, slots: int, cores: int) -> float:
        """Returns the sustainable load of cosy in expectation (theorem 3.4).

        Links between switches have K times `ratio` virtual links.
        """
        return share(slots * self.ratio, cores) * self.theta_star(size_bytes)

    def queue_bytes(self, slots: int) -> int:
        """Returns the maximum queue of any port: #H (K F - 1) p (lemma 3.3)."""
        return self._queues(slots)[0]

    def queueing_us(self, slots: int) -> float:
        """Returns the maximum total queueing delay of a packet (lemma 3.3)."""
        return self._queues(slots)[1] / 1e6

    def delta_us(self, size_bytes: int, slots: int) -> float:
        """Returns cosy's bound: 2 hRTT + s K / B + the maximum queueing delay (theorem 3.5)."""
        queueing_ps = self._queues(slots)[1]
        rate_bps, rtt_ps = round(self.gbps * 1e9), round(self.rtt_us * 1e6)
        return _core.cosy_delta(rtt_ps, size_bytes, rate_bps, slots, queueing_ps) / 1e6

    def _limits(self, size_bytes: int) -> tuple[float, float]:
        rate_bps, rtt_ps = round(self.gbps * 1e9), round(self.rtt_us * 1e6)
        delta_ps, theta = _core.cosy_limits(rtt_ps, size_bytes, rate_bps)
        return delta_ps / 1e6, theta

    def _queues(self, slots: int) -> tuple[int, int]:
        rate_bps = round(self.gbps * 1e9)
        return _core.cosy_queues(self.switches, slots, self.ratio, self.packet_bytes, rate_bps)


def central_waits(
    arrivals: Sequence[tuple[float, int, int]],
    slots: int,
    sending: float,
    order: Literal["oldest", "random"] = "oldest",
    seed: int = 1,
) -> list[float]:
    """Returns the delays of messages until both ends have a slot, under one omniscient scheduler.

    This is the baseline for cosy's receivers, which have only their own slots: there is no network
    and no round trip. `arrivals` are times with sender and receiver, in the order of times. Each
    host has `slots` slots in each direction, and a message occupies one at both ends for `sending`.
    When a slot becomes free, messages are tried in the order of their arrival, or in a random one.
    The waits are in the unit of the arguments, in the order in which messages begin.
    """
    rng = random.Random(seed)
    free_to_send: dict[int, int] = {}
    free_to_receive: dict[int, int] = {}
    waiting: list[tuple[float, int, int]] = []
    ends: list[tuple[float, int, int]] = []
    waits: list[float] = []
    coming = list(reversed(arrivals))
    while coming or ends:
        if coming and (not ends or coming[-1][0] <= ends[0][0]):
            waiting.append(coming.pop())
            now = waiting[-1][0]
        else:
            now, src, dst = heapq.heappop(ends)
            free_to_send[src] += 1
            free_to_receive[dst] += 1
        if order == "random":
            rng.shuffle(waiting)
        left = []
        for arrival, src, dst in waiting:
            if free_to_send.setdefault(src, slots) and free_to_receive.setdefault(dst, slots):
                free_to_send[src] -= 1
                free_to_receive[dst] -= 1
                heapq.heappush(ends, (now + sending, src, dst))
                waits.append(now - arrival)
            else:
                left.append((arrival, src, dst))
        waiting = left
    return waits

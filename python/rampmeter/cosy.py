"""What cosy can promise: the bounds and the sustainable load of the paper's theorems."""

from dataclasses import dataclass

from rampmeter import _core


def share(slots: int, cores: int) -> float:
    """f(K, C): the part of the best sustainable load that cosy sustains in expectation.

    `slots` virtual links a link (K), `cores` core switches (C); theorem 3.4, figure 2.
    """
    return _core.cosy_share(slots, cores)


def slots_max(buffer_bytes: int, switches: int, packet_bytes: int = 1500) -> int:
    """K*: the virtual links up to which all queues fit into a switch's buffer (section 3.4)."""
    return _core.cosy_slots_max(buffer_bytes, switches, packet_bytes)


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network as the theorems see it."""

    rtt_us: float
    """The unloaded round trip of a full packet (hRTT)."""
    gbps: float
    """The rate of the links of hosts (B)."""
    switches: int = 3
    """Switches on the longest path (#H)."""
    ratio: int = 1
    """How many times as fast links between switches are (F)."""
    packet_bytes: int = 1500
    """The longest packet (p)."""

    def delta_star_us(self, size_bytes: int) -> float:
        """The best bound of any design: 2 hRTT + s/B (theorem 3.1)."""
        return self._limits(size_bytes)[0]

    def theta_star(self, size_bytes: int) -> float:
        """The best sustainable load of any design: 1 / (2 (1 + alpha)) (theorem 3.1)."""
        return self._limits(size_bytes)[1]

    def theta(self, size_bytes: int, slots: int, cores: int) -> float:
        """The sustainable load of cosy in expectation (theorem 3.4).

        Links between switches have K times `ratio` virtual links.
        """
        return share(slots * self.ratio, cores) * self.theta_star(size_bytes)

    def queue_bytes(self, slots: int) -> int:
        """The longest queue of any port: #H (K F - 1) p (lemma 3.3)."""
        return self._queues(slots)[0]

    def queueing_us(self, slots: int) -> float:
        """The longest time that a packet spends in queues (lemma 3.3)."""
        return self._queues(slots)[1] / 1e6

    def delta_us(self, size_bytes: int, slots: int) -> float:
        """The bound of cosy: 2 hRTT + s K / B + the longest time in queues (theorem 3.5)."""
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

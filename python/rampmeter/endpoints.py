"""Example endpoints in Python."""

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from rampmeter._core import Host, MessageToSend, Packet
from rampmeter.endpoint import Endpoint

MICROSECOND = 1_000_000
"""Picoseconds."""


@dataclass(eq=False)
class OutgoingMessage:
    """A message of the sender with one packet in flight."""

    message: MessageToSend
    index: int = 0
    """The packet in flight, or to be sent next."""
    attempts: int = 0
    """Timeouts of that packet."""
    timeout: int | None = None
    """Time at which it counts as lost; `None` while it is queued for the link."""


class StopAndWait(Endpoint):
    """A transport that has one packet of each message in flight at a time.

    The same protocol in Rust is the repository's `examples/own-transport`; the results are equal.
    """

    def __init__(
        self, host: Host, timeout_us: float | None = None, attempts_max: int = 200
    ) -> None:
        """Sets the retransmission timeout (by default four round trips) and maximum attempts."""
        super().__init__(host)
        self.timeout = 4 * host.rtt if timeout_us is None else round(timeout_us * MICROSECOND)
        self.attempts_max = attempts_max
        self.sending: dict[int, OutgoingMessage] = {}
        self.waiting: deque[OutgoingMessage] = deque()
        self.arrived: dict[tuple[int, int], int] = {}
        """Packets of each message that have arrived, by sender and message."""
        self.answers: deque[Packet] = deque()
        self.timers: list[tuple[int, int]] = []
        """A heap of times and messages. Times that no longer belong to a turn are skipped."""

    def submit(self, now: int, message: MessageToSend) -> None:
        """Queues the message."""
        turn = OutgoingMessage(message)
        self.sending[message.id] = turn
        self.waiting.append(turn)

    def on_packet(self, now: int, packet: Packet) -> None:
        """Acknowledges data; advances to the next packet after an acknowledgement."""
        if packet.index is None:
            self.on_acknowledgement(packet)
            return
        key = packet.src, packet.message
        if packet.is_new:
            self.arrived[key] = packet.index + 1
        answer = self.host.control(packet.src, packet.message, words=[self.arrived[key]])
        self.answers.append(answer)

    def on_acknowledgement(self, packet: Packet) -> None:
        """Advances the message; `words` has the number of packets that have arrived."""
        turn = self.sending.get(packet.message)
        if turn is None or packet.words[0] != turn.index + 1:
            return
        turn.index += 1
        turn.attempts = 0
        turn.timeout = None
        if turn.index == turn.message.packets:
            del self.sending[packet.message]
            if turn in self.waiting:
                self.waiting.remove(turn)
            self.host.complete(packet.message)
        elif turn not in self.waiting:
            self.waiting.append(turn)

    def on_timeout(self, now: int) -> None:
        """Retransmits packets that have not been acknowledged in time."""
        while self.timers and self.timers[0][0] <= now:
            at, message = heappop(self.timers)
            turn = self.sending.get(message)
            if turn is None or turn.timeout != at:
                continue
            turn.timeout = None
            turn.attempts += 1
            if turn.attempts <= self.attempts_max:
                self.waiting.append(turn)
            else:
                del self.sending[turn.message.id]
                self.host.fail(turn.message.id)
        self.set_deadline()

    def poll_transmit(self, now: int) -> Packet | None:
        """Returns acknowledgements first, then a packet of the message that has waited longest."""
        if self.answers:
            return self.answers.popleft()
        if not self.waiting:
            return None
        turn = self.waiting.popleft()
        turn.timeout = now + self.timeout
        heappush(self.timers, (turn.timeout, turn.message.id))
        self.set_deadline()
        return self.host.data(turn.message.id, turn.index)

    def wants_transmit(self) -> bool:
        """Returns true if there is anything to send."""
        return bool(self.answers or self.waiting)

    def set_deadline(self) -> None:
        """Sets the deadline to the first timer."""
        self.deadline = self.timers[0][0] if self.timers else None

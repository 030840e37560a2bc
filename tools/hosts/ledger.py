"""The records of the programs of `stress`, and the violations in them.

A line is a letter, a time in s, and more. Programs write:

| letter | followed by |
|---|---|
| `P` | its incarnation, node and service: it has attached |
| `S` | incarnation, number, receiving node and service, size: it submits a message |
| `O` | incarnation, number, outcome: `completed`, or the reason of its failure |
| `R` | receiving node and service, the sender's node, the message's incarnation and number |
| `T` | the same first three, then all bytes: a message too short for incarnation and number |
| `C` | the same first three, then its size and first bytes: a message with wrong contents |
| `E`, `G` | its incarnation: it ends at the end of the run, or because its node has ended |

The driver writes `K`, node and service: it kills a program, or with service -1 a node.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tools.hosts.cluster import HEADER

BEFORE_S: Final = 5.0
"""Maximum time in seconds between a death and a later message that may have failed because of
it."""
AFTER_S: Final = 10.0
"""Time in seconds after an outcome in which a program may die before it has recorded the
message."""
DYING_S: Final = 1.0
"""Maximum time from recording a death until it has happened, in seconds."""

REJECTIONS: Final = ("rejected", "full")
"""Outcomes of unsent messages: the transport promises no bound now, or its memory is full."""

Key = tuple[int, int]
"""Incarnation of a program, and number of a message."""
TinyKey = tuple[int, int, int, str]
"""Sender's node, receiver's node and service, bytes: indistinguishable messages."""


def tiny(incarnation: int, number: int, size: int) -> bytes:
    """Returns a message that is too short for a header: the start of a digest of its sender."""
    return hashlib.sha256(b"%d %d" % (incarnation, number)).digest()[:size]


class SentMessage(NamedTuple):
    """A message that was submitted."""

    at: float
    source: int
    dst: int
    service: int
    size: int


class ProgramAddress(NamedTuple):
    """The node and service of a program."""

    node: int
    service: int


class MessageFailure(NamedTuple):
    """A message with a violation, e.g. a failure that no kill explains."""

    key: Key
    sent: SentMessage
    outcomes: list[tuple[float, str]]


@dataclass
class Verdict:
    """Counts of events, and the violations."""

    sent: int = 0
    completed: int = 0
    received: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    """Failures after a death of either end nearby, and rejections, by reason."""
    lost: list[MessageFailure] = field(default_factory=list)
    """Reported as completed, and not received though the receiving program survived."""
    doubled: list[Key | TinyKey] = field(default_factory=list)
    corrupt: list[str] = field(default_factory=list)
    """Lines of messages with other bytes, at other programs, or of unknown senders."""
    two_outcomes: list[MessageFailure] = field(default_factory=list)
    unexplained: list[MessageFailure] = field(default_factory=list)
    unreported: list[MessageFailure] = field(default_factory=list)
    """Without an outcome, though the sending program survived until the end."""
    crashed: list[int] = field(default_factory=list)
    """Incarnations of programs that ended by themselves before the end."""

    def counts(self) -> dict[str, int]:
        """Returns the numbers of a table's row."""
        return {
            "sent": self.sent,
            "received": self.received,
            "failed": sum(self.explained.values()),
            "lost": len(self.lost),
            "doubled": len(self.doubled),
            "corrupt": len(self.corrupt),
            "two-outcomes": len(self.two_outcomes),
            "unexplained": len(self.unexplained),
            "unreported": len(self.unreported),
            "crashed": len(self.crashed),
        }


VIOLATIONS: Final = (
    "lost",
    "doubled",
    "corrupt",
    "two-outcomes",
    "unexplained",
    "unreported",
    "crashed",
)
"""Counts that must be 0."""


@dataclass
class MessageLedger:
    """Records of all programs, by message."""

    places: dict[int, tuple[float, ProgramAddress]] = field(default_factory=dict)
    """Time and place at which an incarnation began."""
    ends: dict[int, float] = field(default_factory=dict)
    """Time at which an incarnation ended that was not killed."""
    sent: dict[Key, SentMessage] = field(default_factory=dict)
    outcomes: dict[Key, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))
    received: dict[Key, list[tuple[ProgramAddress, int, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By key: the receiver, the sender's node, and the line."""
    received_tiny: dict[TinyKey, list[str]] = field(default_factory=lambda: defaultdict(list))
    corrupt: list[str] = field(default_factory=list)
    kills: list[tuple[float, int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, files: Iterable[Path]) -> "MessageLedger":
        """Reads the files of programs and the driver."""
        ledger = cls()
        for file in files:
            for line in file.read_text(encoding="utf-8").splitlines():
                ledger.read(line)
        return ledger

    def read(self, line: str) -> None:
        """Reads a line."""
        letter, when, *more = line.split(" ")
        at = float(when)
        if letter in "RTC":
            self.read_arrival(letter, more, line)
            return
        if letter == "K":
            self.kills.append((at, int(more[0]), int(more[1])))
            return
        incarnation = int(more[0])
        match letter:
            case "P":
                self.places[incarnation] = (at, ProgramAddress(int(more[1]), int(more[2])))
            case "E" | "G":
                self.ends[incarnation] = at
            case "S":
                number, dst, service, size = map(int, more[1:])
                source = self.places[incarnation][1].node
                self.sent[incarnation, number] = SentMessage(at, source, dst, service, size)
            case "O":
                self.outcomes[incarnation, int(more[1])].append((at, more[2]))
            case _:
                raise ValueError(f"expected a line of a ledger, got {line!r}")

    def read_arrival(self, letter: str, more: list[str], line: str) -> None:
        """Reads a line about a received message."""
        node, service, source = map(int, more[:3])
        if letter == "R":
            key = int(more[3]), int(more[4])
            self.received[key].append((ProgramAddress(node, service), source, line))
        elif letter == "T":
            self.received_tiny[source, node, service, more[3]].append(line)
        else:
            self.corrupt.append(line)

    def has_died(self, node: int, service: int | None, since: float, until: float) -> bool:
        """Returns true if a node, or a program of it, was killed in an interval."""
        return any(
            of == node and which in (-1, service) and since <= at <= until
            for at, of, which in self.kills
        )

    def is_dead(self, incarnation: int) -> bool:
        """Returns true if a program was killed, or its node."""
        at, place = self.places[incarnation]
        return self.has_died(*place, at, float("inf"))

    def was_absent(self, receiver: ProgramAddress, since: float, until: float) -> bool:
        """Returns true if no program of a service was attached during a whole interval."""
        incarnations = [
            incarnation for incarnation, (_, place) in self.places.items() if place == receiver
        ]
        return not any(
            self.places[incarnation][0] <= since
            and self.ends.get(incarnation, until) >= until
            and not self.has_died(*receiver, self.places[incarnation][0], until)
            for incarnation in incarnations
        )

    def explains(
        self, sent: SentMessage, sender: ProgramAddress, until: float, outcome: str
    ) -> bool:
        """Returns true if a kill near a message, or a missing service, may explain its failure."""
        since = sent.at - BEFORE_S
        if outcome == "refused" and self.was_absent(
            ProgramAddress(sent.dst, sent.service), sent.at, until
        ):
            return True
        return self.has_died(sent.dst, sent.service, since, until) or self.has_died(
            sender.node, sender.service, since, until
        )

    def judge(self, excused: Sequence[str] = ()) -> Verdict:
        """Compares sent messages, outcomes and receipts; `excused` failures need no explanation."""
        verdict = Verdict(sent=len(self.sent), corrupt=list(self.corrupt))
        verdict.received = sum(map(len, self.received.values()))
        verdict.received += sum(map(len, self.received_tiny.values()))
        tiny_sent: dict[TinyKey, list[Key]] = defaultdict(list)
        for key, sent in self.sent.items():
            if sent.size < HEADER.size:
                text = tiny(*key, sent.size).hex()
                tiny_sent[sent.source, sent.dst, sent.service, text].append(key)
            self.judge_sent(verdict, key, sent, excused)
        self.judge_received(verdict)
        self.judge_tiny(verdict, tiny_sent)
        verdict.crashed = [
            incarnation
            for incarnation in self.places
            if incarnation not in self.ends and not self.is_dead(incarnation)
        ]
        return verdict

    def judge_sent(
        self, verdict: Verdict, key: Key, sent: SentMessage, excused: Sequence[str]
    ) -> None:
        """Judges the outcomes of a message."""
        outcomes = self.outcomes.get(key, [])
        what = MessageFailure(key, sent, outcomes)
        if not outcomes:
            if key[0] in self.ends:
                verdict.unreported.append(what)
            return
        if len(outcomes) > 1:
            verdict.two_outcomes.append(what)
        at, outcome = outcomes[0]
        if outcome == "completed":
            verdict.completed += 1
            is_missing = sent.size >= HEADER.size and not self.received.get(key)
            if is_missing and not self.may_miss(sent, at):
                verdict.lost.append(what)
        elif outcome in (*REJECTIONS, *excused) or self.explains(
            sent, self.places[key[0]][1], at, outcome
        ):
            verdict.explained[outcome] += 1
        else:
            verdict.unexplained.append(what)

    def may_miss(self, sent: SentMessage, at: float) -> bool:
        """Returns true if the receiver may have died before it recorded a message."""
        return self.has_died(sent.dst, sent.service, sent.at - DYING_S, at + AFTER_S)

    def judge_received(self, verdict: Verdict) -> None:
        """Judges the places and the numbers of receipts of messages."""
        for key, arrivals in self.received.items():
            if len(arrivals) > 1:
                verdict.doubled.append(key)
            for place, source, line in arrivals:
                sent = self.sent.get(key)
                if sent is None or (source, *place) != (sent.source, sent.dst, sent.service):
                    verdict.corrupt.append(line)

    def judge_tiny(self, verdict: Verdict, tiny_sent: dict[TinyKey, list[Key]]) -> None:
        """Judges indistinguishable messages by their numbers."""
        for tiny_key, lines in self.received_tiny.items():
            if tiny_key not in tiny_sent:
                verdict.corrupt += lines
            elif len(lines) > len(tiny_sent[tiny_key]):
                verdict.doubled.append(tiny_key)
        for tiny_key, keys in tiny_sent.items():
            missing = [
                MessageFailure(key, self.sent[key], outcomes)
                for key in keys
                if (outcomes := self.outcomes.get(key, [])) and outcomes[0][1] == "completed"
            ]
            n_missing = len(missing) - len(self.received_tiny.get(tiny_key, []))
            if n_missing > 0 and not any(self.may_miss(f.sent, f.outcomes[0][0]) for f in missing):
                verdict.lost += missing[:n_missing]

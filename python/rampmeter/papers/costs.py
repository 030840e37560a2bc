"""Estimates of the processor time of figures, from the times of runs in the ledger."""

from dataclasses import dataclass
from typing import Final

from rampmeter.papers.figure import Figure, Mode
from rampmeter.papers.ledger import Ledger
from rampmeter.papers.reproduce import cost_of, data_packets
from rampmeter.papers.status import NOT_RUN, PILOT_MATCH, PILOT_MISS, FigureStatus
from rampmeter.papers.verdict import SEEDS_WANTED

SECONDS_PER_PACKET: Final = 1.5e-6
"""Processor time of a data packet if a figure has no entries: the mean of all entries."""
MODES: Final = (Mode("quick"), Mode("judged"))


@dataclass(frozen=True)
class FigureCost:
    """Estimated processor time of a figure."""

    packets: float
    """Data packets of all runs."""
    seconds: float
    """Processor seconds."""

    @classmethod
    def of(cls, figure: Figure, mode: Mode, n_seeds: int, packet_seconds: float) -> "FigureCost":
        """Estimates the cost of a figure from its packets and the time for each."""
        planned = data_packets(figure, mode) * n_seeds
        return cls(planned, planned * packet_seconds)


def packet_seconds(figure: Figure, ledger: Ledger) -> float:
    """Returns the processor seconds of a data packet by the entries of a figure."""
    seconds = packets = 0.0
    for run in figure.runs:
        entries = ledger.current_entries(figure, run)
        by_flows = {n: cost_of(figure, run, n) for n in {entry.flows for entry in entries}}
        seconds += sum(entry.seconds for entry in entries)
        packets += sum(by_flows[entry.flows] for entry in entries)
    return seconds / packets if packets and seconds else SECONDS_PER_PACKET


def costs_of(figure: Figure, ledger: Ledger) -> list[FigureCost]:
    """Returns the costs of a figure with `--quick` and in full."""
    each = packet_seconds(figure, ledger)
    return [FigureCost.of(figure, mode, seeds_of(mode), each) for mode in MODES]


def seeds_of(mode: Mode) -> int:
    """Returns the number of seeds of a mode by default."""
    return 1 if mode.is_reduced else SEEDS_WANTED


def duration(seconds: float) -> str:
    """Formats a duration with two digits at most.

    >>> duration(0.4), duration(95), duration(4_000), duration(200_000)
    ('1 s', '1.6 min', '1.1 h', '56 h')
    """
    for unit, length, limit in (("s", 1.0, 60.0), ("min", 60.0, 3600.0)):
        if seconds < limit:
            return f"{max(seconds / length, 1.0):.2g} {unit}"
    return f"{seconds / 3600.0:.2g} h" if seconds < 36e4 else f"{seconds / 3600.0:.0f} h"


def matches(figure: Figure, ledger: Ledger) -> str:
    """Returns the number of published values and claims that the ledger's runs match."""
    counts = FigureStatus.of(figure, ledger).verdicts
    n_all = counts.total()
    if counts[NOT_RUN] == n_all:
        return "not run" if n_all else "none"
    pilot = " pilot" if counts[PILOT_MATCH] + counts[PILOT_MISS] else ""
    return f"{counts['match'] + counts[PILOT_MATCH]} of {n_all}{pilot}"

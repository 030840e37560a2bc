"""A detector of crashed hosts over cosy (section 6.3).

The detector submits a probe, a message of one packet, to the watched host every T_P. cosy reports a
probe's outcome within delta of its submission. An outcome that is reported before the bound is an
answer: only a running host causes a completion, a failure or a reject. A probe whose outcome is
reported at the bound is unanswered, and the host is suspected at that instant. So a crash is
detected after at most T_P + delta. With `misses` unanswered probes in a row, it is detected after
at most `misses` T_P + delta.

Times are in microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rampmeter.on_demand import np
from rampmeter.results.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Probes:
    """Probes of one detector in the order of submission, one element for each."""

    sent_us: NDArray[np.float64]
    outcome_us: NDArray[np.float64]
    """Time from sending each probe until its outcome was reported."""
    delay_bound_us: NDArray[np.float64]
    """Upper bound of that time, as promised (delta)."""

    @classmethod
    def of(cls, run: Run) -> Probes:
        """Returns the probes of a run: the messages of its first tenant, or all if there is one."""
        table = run.columns("arrival_ps", "outcome_ps", "delay_bound_ps", "tenant")
        is_probe = table["tenant"].to_numpy() == 0
        sent, fate, bound = (
            table[name].to_numpy()[is_probe].astype(np.float64) / 1e6
            for name in ("arrival_ps", "outcome_ps", "delay_bound_ps")
        )
        order = np.argsort(sent, kind="stable")
        # A probe without a recorded outcome has no answer.
        fate = np.where(np.isfinite(fate), fate, bound)
        return cls(sent[order], fate[order], bound[order])

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Returns for each probe true if it was answered."""
        answered: NDArray[np.bool_] = self.outcome_us < self.delay_bound_us
        return answered

    @property
    def delta_us(self) -> float:
        """The longest bound."""
        return float(self.delay_bound_us.max(initial=0.0))

    @property
    def period_us(self) -> float:
        """The longest time between two probes (T_P)."""
        return float(np.diff(self.sent_us).max(initial=0.0))


@dataclass(frozen=True)
class Outage:
    """Interval in which the watched host is down."""

    from_us: float
    until_us: float


def outages(run: Run) -> list[Outage]:
    """Returns the outages of a run's plan."""
    faults = run.manifest["plan"].get("faults", {}).get("outages", [])
    return [Outage(one["from-us"], one.get("until-us") or np.inf) for one in faults]


def suspicions_us(probes: Probes, misses: int = 1) -> NDArray[np.float64]:
    """Returns the instants, in microseconds, at which `misses` probes in a row were unanswered."""
    row = _are_all_unanswered(probes.answered, misses)
    return (probes.sent_us + probes.outcome_us)[misses - 1 :][row]


def detections_us(probes: Probes, crashes: list[Outage], misses: int = 1) -> NDArray[np.float64]:
    """Returns the time from each crash to the suspicion of the host; NaN for undetected crashes.

    A suspicion belongs to a crash if it precedes the host's restart plus delta: a lost probe is
    detected only then.
    """
    suspected = suspicions_us(probes, misses)
    delta = probes.delta_us
    after = np.full(len(crashes), np.nan)
    for idx, crash in enumerate(crashes):
        place = np.searchsorted(suspected, crash.from_us, side="right")
        if place < suspected.size and suspected[place] <= crash.until_us + delta:
            after[idx] = suspected[place] - crash.from_us
    return after


def limit_us(probes: Probes, misses: int = 1) -> float:
    """Returns the maximum time to detect a crash: `misses` T_P + delta."""
    return misses * probes.period_us + probes.delta_us


def false_suspicions(probes: Probes, crashes: list[Outage]) -> int:
    """Counts unanswered probes without an outage between submission and bound."""
    end = probes.sent_us + probes.delay_bound_us
    met = np.zeros(probes.sent_us.size, dtype=np.bool_)
    for crash in crashes:
        met |= (probes.sent_us <= crash.until_us) & (end >= crash.from_us)
    return int(np.count_nonzero(~probes.answered & ~met))


def false_positive(probes: Probes, misses: int) -> float:
    """Returns the probability that `misses` consecutive probes of a running host are unanswered."""
    if probes.sent_us.size < misses:
        return float("nan")
    return float(_are_all_unanswered(probes.answered, misses).mean())


def _are_all_unanswered(answered: NDArray[np.bool_], misses: int) -> NDArray[np.bool_]:
    """Returns for each run of `misses` consecutive probes true if none of them was answered."""
    if misses < 1:
        raise ValueError(f"misses: expected at least 1, got {misses}")
    if answered.size < misses:
        return np.zeros(0, dtype=np.bool_)
    windows = np.lib.stride_tricks.sliding_window_view(answered, misses)
    return np.logical_not(windows.any(axis=1))

"""Flows that runs did not deliver: failures, and rejections by design.

A flow that fails without a fault in the plan is an error of the transport or of its setting. So
commands that compare transports name it and exit with an error. A transport that admits messages
only if it can bound their delay, as cosy does, rejects the others by design; that is no failure,
but reduces the load compared with the others.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rampmeter.results.run import Run
from rampmeter.text.numbers import count

NOT_DELIVERED: Final = "not-delivered"
"""Code of warnings of flows that were not delivered, of runs and of comparisons."""
HARMLESS = ("rerouting-us",)
"""Keys of the plan's table `faults` that cause no failure by themselves."""
LISTED_MAX = 4
"""Maximum number of runs that a line names."""


@dataclass(frozen=True)
class Undelivered:
    """Flows of one transport, over its runs, by their outcome."""

    label: str
    submitted: int
    rejected: int
    failed: Mapping[str, int]
    """Flows that failed in runs without a fault, by the runs that have any."""

    @property
    def n_failed(self) -> int:
        """Flows that failed without a fault in the plan."""
        return sum(self.failed.values())

    @property
    def failure(self) -> str:
        """Returns the line that reports the failed flows."""
        listed = list(self.failed.items())
        named = ", ".join(f"{run}: {count(n)}" for run, n in listed[:LISTED_MAX])
        more = f", and {len(listed) - LISTED_MAX} more runs" if len(listed) > LISTED_MAX else ""
        runs = f" ({named}{more})" if set(self.failed) != {self.label} else ""
        return (
            f"{self.label}: {count(self.n_failed)} of {count(self.submitted)} flows failed "
            f"without a fault in the plan{runs}"
        )

    @property
    def rejection(self) -> str:
        """Returns the line that reports the rejected flows."""
        share = 100.0 * self.rejected / max(1, self.submitted)
        return (
            f"{self.label} rejected {count(self.rejected)} of {count(self.submitted)} flows "
            f"({share:.2g} %) by design, which is no failure"
        )


def undelivered(runs: Iterable[tuple[str, str, Run, bool]]) -> list[Undelivered]:
    """Counts flows by transport: the label, the name, the results and the faults of each run.

    Transports are in the order of their first runs.
    """
    submitted: dict[str, int] = {}
    rejected: dict[str, int] = {}
    failed: dict[str, dict[str, int]] = {}
    for label, name, run, is_faulty in runs:
        flows = run.summary["flows"]
        submitted[label] = submitted.get(label, 0) + int(flows["submitted"])
        rejected[label] = rejected.get(label, 0) + int(flows.get("rejected", 0))
        of_label = failed.setdefault(label, {})
        n_failed = int(flows.get("failed", 0))
        if n_failed and not is_faulty:
            of_label[name] = of_label.get(name, 0) + n_failed
    return [Undelivered(label, n, rejected[label], failed[label]) for label, n in submitted.items()]


def has_faults(table: Any) -> bool:
    """Returns true if the plan's table `faults` has an effect."""
    if not isinstance(table, Mapping):
        return False
    return any(bool(value) for key, value in table.items() if key not in HARMLESS)

"""Numbers of flows by the wanted precision: pilots with twice as many, until one is long enough."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rampmeter.plan.plan import Plan
from rampmeter.text.arguments import argument_error, whole_argument
from rampmeter.text.cautions import ONE_SAMPLE, TOO_SHORT, cautions_of
from rampmeter.text.locations import Location

FLOWS: Final = "workload.flows"
"""Key of the length of runs."""
PRECISION: Final = 0.05
"""Precision of the lengths of runs, unless there is another one."""
FLOWS_MAX: Final = 256_000
"""Maximum number of flows of runs whose length is chosen, unless there is another one."""
GROWTH: Final = 2
"""Factor between the numbers of flows of pilots."""
UNSURE: Final = TOO_SHORT | {"correlated-batches"}
"""Codes of warnings of runs that are too short, or whose interval is too narrow."""


@dataclass(frozen=True)
class RunLength:
    """The numbers of flows of pilots."""

    first: int
    """Number of flows of the first pilot: that of the plan."""
    precision: float = PRECISION
    """Half the interval of a run's mean slowdown is at most this share of the mean."""
    flows_max: int = FLOWS_MAX

    @classmethod
    def of(
        cls, plan: Plan, precision: float | None, flows_max: int | None, *, is_auto: bool
    ) -> "RunLength | None":
        """Returns the run length of a plan; `None` if it is not to be chosen.

        Raises `PlanError` if the plan has no number of flows, or more than `flows_max`, and if
        there is a maximum for a length that is not chosen.
        """
        if not isinstance(is_auto, bool):
            raise argument_error("auto_flows", "True or False", is_auto)
        if flows_max is not None:
            flows_max = whole_argument("flows-max", flows_max, 1)
        if not is_auto:
            if flows_max is not None:
                raise Location(key="flows-max").error(
                    "requires a chosen number of flows (--auto-flows, or auto_flows=True in Python)"
                )
            return None
        first = plan.get(FLOWS)
        if not isinstance(first, int) or isinstance(first, bool) or first < 1:
            raise plan.location(FLOWS).error(
                expected="the number of flows of the first pilot", got=first
            )
        most = max(FLOWS_MAX, first) if flows_max is None else flows_max
        if most < first:
            raise Location(key="flows-max").error(expected=f"at least {first} ({FLOWS})", got=most)
        return cls(first, PRECISION if precision is None else precision, most)

    def after(self, flows: int) -> int:
        """Returns the number of flows of the next pilot."""
        return min(GROWTH * flows, self.flows_max)

    def is_enough(self, summary: Mapping[str, Any], name: str) -> bool:
        """Returns true if a run has a precise mean slowdown and is not too short.

        Raises `PlanError`, with the name of the run, if its arrivals are not a stationary process:
        then it has no interval, however long it is.
        """
        cautions = {caution.code: caution for caution in cautions_of(summary)}
        if ONE_SAMPLE in cautions:
            reason = cautions[ONE_SAMPLE]
            raise Location(name).error(
                f"a chosen number of flows requires steady arrivals: {reason}"
            )
        if UNSURE & cautions.keys():
            return False
        overall = summary["slowdown"]["delivered"]["overall"] or {}
        mean, half = overall.get("mean"), overall.get("mean_ci")
        return mean is not None and half is not None and half <= self.precision * mean


def length_of_run(
    plan: Plan, precision: float | None, flows_max: int | None, *, is_auto: bool
) -> RunLength | None:
    """Returns the length of a single run, as `RunLength.of`.

    Its precision has no seeds to add, so that without a chosen length it is an error, too.
    """
    if precision is not None and not is_auto:
        raise Location(key="precision").error(
            "requires a chosen number of flows (--auto-flows, or auto_flows=True in Python)"
        )
    return RunLength.of(plan, precision, flows_max, is_auto=is_auto)

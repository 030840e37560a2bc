"""Runs of which the number of flows is chosen: pilots in one folder, each of twice the flows.

A pilot that is not long enough is replaced by the next one. So the last pilot is the run, and a
folder that has it continues there.
"""

from dataclasses import dataclass, replace

from rampmeter._core import ResultError
from rampmeter.plan.manifest import IDENTITY
from rampmeter.plan.plan import Plan
from rampmeter.running.comparison_job import RunJobs
from rampmeter.running.run_length import FLOWS, RunLength
from rampmeter.running.runner import Batch, Job
from rampmeter.text.json_object import read_json
from rampmeter.text.numbers import count


@dataclass(frozen=True)
class GrowingRun:
    """The last pilot of a run, or the one that was stopped or failed."""

    batch: Batch
    flows: int
    """Its number of flows."""
    is_enough: bool
    """True if it is complete and long enough."""

    def text(self) -> str:
        """Returns a sentence about the length, in the words of sweeps."""
        return f"the run has {count(self.flows)} flows{'' if self.is_enough else '; not enough'}"


def grow(job: Job, length: RunLength, run_jobs: RunJobs) -> GrowingRun:
    """Runs a job with more and more flows, until the run is long enough.

    Raises the errors of `run_all`, and `PlanError` if the arrivals are not a stationary process.
    """
    flows = _stored_flows(job, length) or length.first
    while True:
        batch = run_jobs([replace(job, plan=job.plan.with_((FLOWS, flows)))])
        runs = batch.runs().values()
        is_enough = bool(runs) and all(length.is_enough(run.summary, job.name) for run in runs)
        if is_enough or not runs or flows >= length.flows_max:
            return GrowingRun(batch, flows, is_enough)
        job, flows = replace(job, force=True), length.after(flows)


def _stored_flows(job: Job, length: RunLength) -> int | None:
    """Returns the number of flows of a pilot that the folder has; `None` if it has none."""
    try:
        stored = Plan(read_json(job.out / IDENTITY)["plan"])
    except (ResultError, KeyError):
        return None
    found, flows = stored.get(FLOWS), length.first
    while flows < length.flows_max and flows != found:
        flows = length.after(flows)
    is_same = job.plan.with_((FLOWS, flows)).table() == stored.table()
    return flows if is_same else None

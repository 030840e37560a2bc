"""Flows that the runs of a batch did not deliver."""

from rampmeter.results.undelivered import NOT_DELIVERED, Undelivered, has_faults, undelivered
from rampmeter.running.runner import Batch
from rampmeter.text.cautions import Caution


def count_undelivered(batch: Batch) -> list[Undelivered]:
    """Counts the flows of all complete runs of a batch, by the names of their transports."""
    return undelivered(
        (
            " + ".join(str(table.get("name")) for table in outcome.job.plan.transports()),
            outcome.job.name,
            outcome.run,
            has_faults(outcome.job.plan.resolved("faults")),
        )
        for outcome in batch.outcomes
        if outcome.state in ("ran", "reused") and outcome.run is not None
    )


def rejections(batch: Batch) -> list[Caution]:
    """Returns a warning for each transport that rejected flows of a batch."""
    return [
        Caution(
            f"{one.rejection}; slowdowns exclude them, which favours {one.label}",
            NOT_DELIVERED,
            {"transport": one.label, "rejected": one.rejected},
        )
        for one in count_undelivered(batch)
        if one.rejected
    ]

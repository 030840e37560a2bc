"""Collective operations as a workload."""

from collections.abc import Sequence

from rampmeter.plan.base import Hosts
from rampmeter.plan_tables import Algorithm, Collective, Operation


def collective(
    operation: Operation,
    vector_bytes: int | None = None,
    *,
    algorithm: Algorithm | None = None,
    hosts: Hosts | None = None,
    group_size: int | None = None,
    group_step: int | None = None,
    chunks: int | None = None,
    rounds: int | None = None,
    start_us: float | None = None,
    compute_us: float | None = None,
    pause_us: float | None = None,
    skew: float | None = None,
    matrix: Sequence[Sequence[int]] | None = None,
) -> Collective:
    """Returns a collective, e.g. `collective("all-reduce", 64_000_000, algorithm="ring")`.

    `vector_bytes` is the whole vector, as nccl-tests count it. `hosts` participate, by default all.
    Groups of `group_size` of them, `group_step` apart, run the operation at the same time.

    >>> collective("all-reduce", 1_000, hosts=range(4, 8)).table()["hosts"]
    {'first': 4, 'count': 4}
    """
    return Collective(
        operation=operation,
        algorithm=algorithm,
        vector_bytes=vector_bytes,
        matrix=matrix,
        skew=skew,
        hosts=hosts,
        group_size=group_size,
        group_step=group_step,
        chunks=chunks,
        start_us=start_us,
        compute_us=compute_us,
        rounds=rounds,
        pause_us=pause_us,
    )

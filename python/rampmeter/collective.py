"""Collective operations as a workload."""

from collections.abc import Sequence

from rampmeter.parts import Algorithm, Collective, Operation
from rampmeter.spec import hosts_table


def collective(
    operation: Operation,
    vector_bytes: int | None = None,
    *,
    algorithm: Algorithm | None = None,
    hosts: range | None = None,
    chunks: int | None = None,
    rounds: int | None = None,
    start_us: float | None = None,
    compute_us: float | None = None,
    pause_us: float | None = None,
    skew: float | None = None,
    matrix: Sequence[Sequence[int]] | None = None,
) -> Collective:
    """A collective such as `collective("all-reduce", 64_000_000, algorithm="ring")`.

    `vector_bytes` is the whole vector, as nccl-tests count it. `hosts` are those that take part, by
    default all.

    >>> collective("all-reduce", 1_000, hosts=range(4, 8)).table()["hosts"]
    {'first': 4, 'count': 4}
    """
    return Collective(
        operation=operation,
        algorithm=algorithm,
        vector_bytes=vector_bytes,
        matrix=matrix,
        skew=skew,
        hosts=None if hosts is None else hosts_table(hosts),
        chunks=chunks,
        start_us=start_us,
        compute_us=compute_us,
        rounds=rounds,
        pause_us=pause_us,
    )

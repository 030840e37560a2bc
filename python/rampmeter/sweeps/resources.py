"""Runs at a time and threads of each, by the cores and the memory of an engine.

Many small runs side by side use cores best, since each has one thread. Fewer runs than cores, and
runs that are so large that memory allows only few, have several threads each: results do not depend
on their number. In between, such as 70 runs on 64 cores, the time decides.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SPEED_EXPONENT: Final = 0.7
"""A run with n threads is n to this power as fast (docs/performance.md: 1.62 with two)."""
THREAD_MEMORY: Final = 0.3
"""Memory of each further thread, as a share of that of the run (decision 16)."""
MEMORY_SHARE: Final = 0.9
"""Share of the free memory that runs may take together."""
LONG_SECONDS: Final = 2.0
"""Minimum time of runs that several threads make faster, in seconds."""
MEMINFO: Final = Path("/proc/meminfo")
CGROUPS: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Capacity:
    """Cores and memory of an engine."""

    n_cores: int
    """Cores of all machines."""
    n_cores_max: int
    """Cores of the largest machine, which one run may use."""
    memory_bytes: float = math.inf
    """Free memory of all machines; infinite if it is unknown or cannot be reserved."""
    memory_bytes_max: float = math.inf
    """Free memory of the machine that has most."""
    is_limited: bool = True
    """True if the engine can start fewer runs than it has cores."""


@dataclass(frozen=True)
class Demand:
    """The runs that are to be made."""

    n_runs: int
    memory_bytes: float = 0.0
    """Memory of one run with one thread; 0 if it is unknown."""
    seconds: float = 0.0
    """Mean time of one run with one thread; 0 if it is unknown."""
    is_divisible: bool = True
    """False if runs cannot use several threads."""
    threads: int | None = None
    """Threads of each run if plans have `run.threads`; `seconds` and `memory_bytes` are theirs."""


@dataclass(frozen=True)
class Allotment:
    """The runs at a time, and the resources of each."""

    n_runs: int
    n_threads: int = 1
    memory_bytes: int = 0
    """Memory of a run; 0 if it is unknown."""
    speed: float = 1.0
    """Speed of a run, in multiples of that in the demand."""


def allot(demand: Demand, capacity: Capacity) -> Allotment | None:
    """Returns the fastest allotment that memory allows; `None` if it does not allow one run."""
    fitting = [
        allotment
        for n_runs in range(1, min(demand.n_runs, capacity.n_cores) + 1)
        if (allotment := _with_threads(n_runs, demand, capacity)) is not None
    ]
    if not fitting:
        return None
    most = fitting[-1]
    if demand.seconds < LONG_SECONDS or not capacity.is_limited:
        return most
    # Of equals this is the one with the most runs, since threads have a price.
    return min(reversed(fitting), key=lambda one: math.ceil(demand.n_runs / one.n_runs) / one.speed)


def _with_threads(n_runs: int, demand: Demand, capacity: Capacity) -> Allotment | None:
    """Returns `n_runs` runs with as many threads as cores and memory allow."""
    cores = max(1, min(capacity.n_cores // n_runs, capacity.n_cores_max))
    if demand.threads is not None:
        if demand.threads > cores and n_runs > 1:
            return None
        memory = demand.memory_bytes
        is_fitting = _fits(n_runs, memory, capacity)
        return Allotment(n_runs, demand.threads, math.ceil(memory)) if is_fitting else None
    for n_threads in range(cores if demand.is_divisible else 1, 0, -1):
        memory = demand.memory_bytes * (1 + THREAD_MEMORY * (n_threads - 1))
        if _fits(n_runs, memory, capacity):
            speed = float(n_threads**SPEED_EXPONENT)
            return Allotment(n_runs, n_threads, math.ceil(memory), speed)
    return None


def _fits(n_runs: int, memory: float, capacity: Capacity) -> bool:
    """Returns true if the runs fit the memory of all machines, and one that of the largest."""
    return (
        n_runs * memory <= MEMORY_SHARE * capacity.memory_bytes
        and memory <= MEMORY_SHARE * capacity.memory_bytes_max
    )


def free_memory() -> float:
    """Returns the memory in bytes that this process and its threads may still take."""
    try:
        fields = dict(line.split(":", 1) for line in MEMINFO.read_text("ascii").splitlines())
        free = float(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        free = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(free, _free_in_group())


def _free_in_group() -> float:
    """Returns the memory that the control group allows, such as that of a job of Slurm."""
    try:
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
        own = next(line[3:] for line in lines if line.startswith("0::"))
    except (OSError, StopIteration):
        return math.inf
    folder = CGROUPS / own.lstrip("/")
    free = math.inf
    for group in (folder, *folder.parents):
        try:
            limit = int((group / "memory.max").read_text("ascii"))
            used = int((group / "memory.current").read_text("ascii"))
        except (OSError, ValueError):
            continue
        free = min(free, float(max(0, limit - used)))
    return free

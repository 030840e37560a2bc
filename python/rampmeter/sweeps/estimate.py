"""Cost of a sweep: measured on short pieces of some of its runs, scaled to all of them.

A probe makes a run of the sweep in a separate process, until it ends or its time has expired. The
share of delivered flows determines the time of the whole run. The peak memory of the process, plus
the memory of each further flow, is the memory of the run.
"""

import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rampmeter import _core
from rampmeter.plan.manifest import MANIFEST
from rampmeter.plan.plan import Plan
from rampmeter.sweeps.resources import Allotment, Demand
from rampmeter.sweeps.spec import Point
from rampmeter.text.json_object import read_json
from rampmeter.text.numbers import byte_size, count, counted, duration

if TYPE_CHECKING:
    from rampmeter._core import Progress

PROBES_MAX: Final = 8
PROBE_SECONDS: Final = 0.6
"""Maximum time of a probe, in seconds."""
WAIT_SECONDS: Final = 60
"""Maximum time to wait for the process of the probes; large fabrics are slow to build."""
LARGE_HOSTS: Final = 4096
LARGE_FLOWS: Final = 10_000_000
"""Numbers of hosts and flows up to which runs need little memory, about a gigabyte."""
FLOW_BYTES: Final = 100
"""Memory of a flow that has ended (docs/performance.md: 1 000 000 flows peak at 135 MB)."""


@dataclass(frozen=True)
class Probe:
    """The result of a probe."""

    seconds: float
    """Time of the whole run, by the share of it that was made; NaN if unknown."""
    memory_bytes: float
    """Memory that the whole run needs."""
    is_whole: bool
    """True if the probe was the whole run."""
    is_divisible: bool = True
    """False if a run of this kind cannot use several threads."""


@dataclass(frozen=True)
class CostEstimate:
    """Time and memory of the runs that are still to be made."""

    n_runs: int
    n_probes: int
    seconds: float
    """Time of one processor, in seconds; NaN if no probe was long enough."""
    memory_bytes: float
    """Memory of the largest probed run, with one thread."""
    is_divisible: bool = True
    """False if runs cannot use several threads."""
    seconds_of: Mapping[int, float] = field(default_factory=dict)
    """Time of a run by the number of its point; empty if no probe was long enough."""

    @property
    def is_known(self) -> bool:
        """True if probes were long enough for an estimate of the time."""
        return self.n_probes > 0 and not math.isnan(self.seconds)

    def demand(self, threads: int | None) -> Demand:
        """Returns the resources that the runs need; `threads` are those of the plans."""
        seconds = self.seconds / self.n_runs if self.is_known else 0.0
        return Demand(self.n_runs, self.memory_bytes, seconds, self.is_divisible, threads)

    def wall_seconds(self, allotment: Allotment) -> float:
        """Returns the time of all runs, in seconds."""
        return self.seconds / allotment.n_runs / allotment.speed

    def record(self, allotment: Allotment) -> dict[str, Any]:
        """Returns the estimate as values for programs; those that are unknown are `None`."""
        wall, memory = self.wall_seconds(allotment), allotment.n_runs * allotment.memory_bytes
        return {
            "runs": self.n_runs,
            "runs_at_a_time": allotment.n_runs,
            "threads_per_run": allotment.n_threads,
            "wall_seconds": wall if self.is_known else None,
            "processor_seconds": self.seconds if self.is_known else None,
            "memory_bytes": round(memory) if self.is_known else None,
            "probes": self.n_probes,
        }

    def text(self, allotment: Allotment) -> str:
        """Returns the plan, the estimate and its basis as two lines of text."""
        runs = counted(self.n_runs, "run")
        plan = f"{count(allotment.n_runs)} at a time"
        if allotment.n_threads > 1:
            plan += f", {allotment.n_threads} threads each"
        if not self.is_known:
            return f"{runs}, {plan}; no estimate: the probes did not get far enough"
        memory = allotment.n_runs * allotment.memory_bytes
        return (
            f"{runs}, about {duration(self.wall_seconds(allotment))}: {plan}, up to "
            f"{byte_size(memory)}\n({duration(self.seconds)} of a processor, up to "
            f"{byte_size(allotment.memory_bytes)} a run; by {counted(self.n_probes, 'probe')} on "
            "this machine)"
        )


def estimate(todo: Sequence[tuple[Point, int]]) -> CostEstimate:
    """Estimates the cost of these runs, by probes of some of them."""
    points = list({point.number: point for point, _ in todo}.values())
    probed = points_to_probe(points)
    found = dict(zip((point.number for point in probed), _probe_all(probed), strict=False))
    by_transport: dict[str, list[float]] = {}
    for point in probed:
        if point.number in found and not math.isnan(found[point.number].seconds):
            rate = found[point.number].seconds / _flows(point.plan)
            by_transport.setdefault(point.transport.label, []).append(rate)
    all_rates = [rate for rates in by_transport.values() for rate in rates]
    mean = sum(all_rates) / len(all_rates) if all_rates else math.nan
    seconds_of = {}
    for point in points:
        own = found[point.number].seconds if point.number in found else math.nan
        rates = by_transport.get(point.transport.label)
        rate = sum(rates) / len(rates) if rates else mean
        seconds_of[point.number] = _flows(point.plan) * rate if math.isnan(own) else own
    total = sum(seconds_of[point.number] for point, _ in todo)
    memory = max((probe.memory_bytes for probe in found.values()), default=0.0)
    is_divisible = all(probe.is_divisible for probe in found.values())
    known = {} if math.isnan(total) else seconds_of
    return CostEstimate(len(todo), len(found), total, memory, is_divisible, known)


def points_to_probe(points: Sequence[Point]) -> list[Point]:
    """Returns the points to probe: the last and the first of each transport, up to a number.

    The last ones are first, since values mostly ascend and large runs dominate.
    """
    by_transport: dict[str, list[Point]] = {}
    for point in points:
        by_transport.setdefault(point.transport.label, []).append(point)
    last = [some[-1] for some in by_transport.values()]
    first = [some[0] for some in by_transport.values() if len(some) > 1]
    return (last + first)[:PROBES_MAX]


def threads_of(points: Sequence[Point]) -> int | None:
    """Returns the largest `run.threads` of the plans of points; `None` if no plan has it."""
    found = (point.plan.get("run.threads") for point in points)
    return max((each for each in found if isinstance(each, int)), default=None)


def is_large(points: Sequence[Point]) -> bool:
    """Returns true if runs may need so much memory that it limits the runs at a time."""
    return any(
        point.plan.derived()["hosts"] > LARGE_HOSTS or _flows(point.plan) > LARGE_FLOWS
        for point in points_to_probe(points)
    )


def _flows(plan: Plan) -> float:
    flows = plan.get("workload.flows")
    return float(flows) if isinstance(flows, int) and flows > 0 else 1.0


def _probe_all(points: Sequence[Point]) -> list[Probe]:
    """Runs the probes in one process; probes that it did not reach are missing."""
    plans = [{"text": point.plan.text, "base": str(point.plan.base)} for point in points]
    command = [sys.executable, "-m", "rampmeter.sweeps.estimate"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            output, _ = process.communicate(json.dumps(plans), timeout=WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        except BaseException:
            process.kill()
            raise
    probes = []
    for line in output.splitlines():
        probes.append(Probe(**json.loads(line)))
    return probes


def _probe(plan: Mapping[str, str]) -> Probe:
    """Makes a run for a while, in this process."""
    start = time.monotonic()
    seen: Progress | None = None

    def on_progress(progress: "Progress") -> bool:
        nonlocal seen
        seen = progress
        return time.monotonic() - start < PROBE_SECONDS

    with tempfile.TemporaryDirectory(prefix="rampmeter-") as scratch:
        text = _core.run(plan["text"], plan["base"], scratch, on_progress)
    seconds = time.monotonic() - start
    memory = _peak_memory()
    summary: dict[str, Any] = json.loads(text)
    if summary["status"] != "interrupted":
        return Probe(seconds, memory, is_whole=True)
    delivered, total = (seen["delivered"], seen["total"]) if seen is not None else (0, None)
    if not delivered or not total:
        return Probe(math.nan, memory, is_whole=False)
    further = FLOW_BYTES * max(0, total - delivered)
    return Probe(seconds * max(1.0, total / delivered), memory + further, is_whole=False)


def _peak_memory() -> float:
    """Returns the largest memory of this process so far, in bytes.

    The `ru_maxrss` of a process that another one has started includes the memory of that one.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) * 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def _is_divisible(plan: Mapping[str, str]) -> bool:
    """Returns true if a run can use two threads, by the manifest of one that ends at once."""
    with tempfile.TemporaryDirectory(prefix="rampmeter-") as scratch:
        _core.run(plan["text"], plan["base"], scratch, lambda _: False, 2)
        return bool(read_json(Path(scratch) / MANIFEST)["threads"]["count"] > 1)


def main() -> None:
    """Probes the plans on standard input; a line of JSON for each."""
    is_divisible = None
    for plan in json.load(sys.stdin):
        probe = _probe(plan)
        if is_divisible is None and not probe.is_whole:
            is_divisible = _is_divisible(plan)
        probe = replace(probe, is_divisible=is_divisible is not False)
        sys.stdout.write(json.dumps(vars(probe)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

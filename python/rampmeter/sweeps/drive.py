"""Drives a sweep: submits tasks to an engine, stores results, adds seeds, stops on request."""

import contextlib
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final, Protocol

from rampmeter.analysis.confidence import interval, next_count
from rampmeter.on_demand import pa
from rampmeter.sweeps.columns import MEASURES, Schema
from rampmeter.sweeps.dataset import FLOWS, RUNS, Dataset, decode_parquet
from rampmeter.sweeps.engines.base import Engine, EngineError
from rampmeter.sweeps.spec import Point, Replication, Sweep
from rampmeter.sweeps.task import Packer, TaskResult
from rampmeter.text.locations import Location

POLL_SECONDS: Final = 0.2
"""Interval at which the driver checks for an interrupt, in seconds."""
FAILURES_ALIKE: Final = 10
"""Number of first runs with the same error after which no further ones are started."""
QUEUED_MIN: Final = 32
"""Minimum number of tasks in an engine, so that clusters that grow on demand see some."""


@dataclass
class StopRequest:
    """A request to stop the sweep, and its signal."""

    event: threading.Event = field(default_factory=threading.Event)
    signal: int | None = None


@contextmanager
def stopping_on_signals() -> Iterator[StopRequest]:
    """Makes the first SIGINT or SIGTERM request a stop; a second one has its usual effect.

    Signals are delivered to the main thread alone. Elsewhere, and for an ignored signal, nothing
    changes.
    """
    stop = StopRequest()
    previous: dict[signal.Signals, Any] = {}

    def on_signal(number: int, _frame: FrameType | None) -> None:
        stop.signal = number
        stop.event.set()
        for each, handler in previous.items():
            signal.signal(each, handler)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler is not None and handler is not signal.SIG_IGN:
                previous[number] = handler
                signal.signal(number, on_signal)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class SweepWatcher(Protocol):
    """A receiver of a sweep's progress."""

    def on_total(self, total: int) -> None:
        """Receives the number of runs to make so far; more may be added."""

    def on_result(self, point: Point, result: TaskResult) -> None:
        """Receives the result of a run that has ended."""


@dataclass
class DriverOutcome:
    """The outcome of a driver."""

    n_ran: int = 0
    """Number of runs that it made and stored."""
    n_kept: int = 0
    """Number of runs that were stored before."""
    n_open: int = 0
    """Number of runs that are still to be made, by the values so far."""
    failures: list[tuple[Point, TaskResult]] = field(default_factory=list)
    imprecise: list[Point] = field(default_factory=list)
    """Points that have the maximum number of seeds and yet an interval that is too wide."""
    seconds_by_host: dict[str, float] = field(default_factory=dict)
    """Total time of workers, by their host."""
    wall_seconds: float = 0.0
    stop: StopRequest = field(default_factory=StopRequest)

    @property
    def is_complete(self) -> bool:
        """Returns true if every run has been made."""
        return self.n_open == 0 and not self.failures


class Driver:
    """Makes the runs of a sweep that a dataset does not have."""

    def __init__(
        self,
        sweep: Sweep,
        dataset: Dataset,
        *,
        wants_flows: bool = False,
        points: Iterable[int] | None = None,
        kind: str = RUNS,
    ) -> None:
        self._kind = kind
        self._sweep = sweep
        self._dataset = dataset
        self._schema = Schema.of(sweep)
        self._packer = Packer(wants_flows=wants_flows)
        self._wants_flows = wants_flows
        self._numbers = sorted(range(len(sweep.points)) if points is None else set(points))
        self._values = self._load_values()
        self._queue: deque[tuple[int, int]] = deque()
        self._waiting: Counter[int] = Counter()
        self._failed: set[int] = set()
        self.outcome = DriverOutcome(n_kept=sum(map(len, self._values.values())))
        self._fill()

    @property
    def n_todo(self) -> int:
        """Returns the number of runs that are to be made, by the values so far."""
        return len(self._queue)

    def todo(self) -> Sequence[tuple[Point, int]]:
        """Returns the points and seeds that are to be made, by the values so far."""
        return [(self._sweep.points[number], seed) for number, seed in self._queue]

    def run(self, engine: Engine, watcher: SweepWatcher, stop: StopRequest) -> DriverOutcome:
        """Makes the runs. Finished ones are stored even if it fails."""
        start = time.monotonic()
        self.outcome.stop = stop
        total = len(self._queue)
        watcher.on_total(total)
        n_running = 0
        try:
            while (self._queue or n_running) and not stop.event.is_set():
                room = max(QUEUED_MIN, 2 * engine.slots()) - n_running
                for _ in range(min(room, len(self._queue))):
                    number, seed = self._queue.popleft()
                    task = self._packer.pack(self._sweep.points[number], seed)
                    engine.submit(task, self._packer.blobs)
                    n_running += 1
                for result in engine.collect(POLL_SECONDS):
                    n_running -= 1
                    total += self._store(result)
                    watcher.on_result(self._sweep.points[result.point], result)
                    watcher.on_total(total)
        finally:
            if n_running:
                # A cluster that has ended has no tasks to stop.
                with contextlib.suppress(Exception):
                    engine.cancel()
            self.outcome.n_open = len(self._queue) + n_running
            self.outcome.wall_seconds = time.monotonic() - start
        return self.outcome

    def _store(self, result: TaskResult) -> int:
        """Stores a result; returns the number of runs that it adds."""
        point = self._sweep.points[result.point]
        if result.state == "other-simulator":
            raise EngineError(result.error)
        if result.state != "ran":
            self._fail(point, result)
            return 0
        if self._wants_flows:
            table = self._schema.flows(point, result.seed, decode_parquet(result.flows))
            self._dataset.put(FLOWS, point.number, result.seed, table)
        row = self._schema.row(point, result)
        # This is last, since a row marks the run as done.
        self._dataset.put(self._kind, point.number, result.seed, row)
        self.outcome.n_ran += 1
        seconds = self.outcome.seconds_by_host
        seconds[result.host] = seconds.get(result.host, 0.0) + result.seconds
        self._values[point.number][result.seed] = self._measure(row)
        self._waiting[point.number] -= 1
        if self._waiting[point.number] or point.number in self._failed:
            # Further seeds depend on all values; a failed point is not run again.
            return 0
        return self._fill_point(point.number)

    def _fail(self, point: Point, result: TaskResult) -> None:
        """Records a failure; raises `EngineError` if no run succeeds and all errors are equal."""
        self._waiting[point.number] -= 1
        self._failed.add(point.number)
        failures = self.outcome.failures
        failures.append((point, result))
        errors = {failed.error for _, failed in failures}
        if self.outcome.n_ran == 0 and len(failures) >= FAILURES_ALIKE and len(errors) == 1:
            raise EngineError(
                f"the first {len(failures)} runs failed with the same error: {result.error}"
            )

    def _fill(self) -> None:
        """Queues missing runs: all points with one seed, then with the next one."""
        for number in self._numbers:
            self._fill_point(number)
        places = {number: idx for idx, number in enumerate(self._numbers)}
        seeds_of = self._sweep.replication.first(self._count_max())
        order = {seed: idx for idx, seed in enumerate(seeds_of)}
        queue = sorted(self._queue, key=lambda one: (order[one[1]], places[one[0]]))
        self._queue = deque(queue)

    def _fill_point(self, number: int) -> int:
        """Queues the seeds that a point lacks; returns their number."""
        values = self._values[number]
        seeds = seeds_of(self._sweep.replication, values)
        missing = [seed for seed in seeds if seed not in values]
        self._queue.extend((number, seed) for seed in missing)
        self._waiting[number] += len(missing)
        if not missing and not is_precise(self._sweep.replication, values):
            self.outcome.imprecise.append(self._sweep.points[number])
        return len(missing)

    def _count_max(self) -> int:
        replication = self._sweep.replication
        return max(replication.seeds_max, len(replication.seeds))

    def _load_values(self) -> dict[int, dict[int, float | None]]:
        """Returns the measured values that the dataset has, by point and seed."""
        values: dict[int, dict[int, float | None]] = {number: {} for number in self._numbers}
        keys = {key for key in self._dataset.done(self._kind) if key[0] in values}
        if self._wants_flows:
            keys &= self._dataset.done(FLOWS)
        if self._sweep.replication.precision is None:
            for number, seed in keys:
                values[number][seed] = None
        elif keys:
            table = self._dataset.table(self._kind, keys)
            columns = ("point", "seed", self._sweep.replication.metric)
            rows = (table[name].to_pylist() for name in columns)
            for number, seed, value in zip(*rows, strict=True):
                values[number][seed] = value
        return values

    def _measure(self, row: "pa.Table") -> float | None:
        value: float | None = row[self._sweep.replication.metric][0].as_py()
        return value


def seeds_of(replication: Replication, values: dict[int, float | None]) -> Sequence[int]:
    """Returns the seeds that a point is to have, by its present values.

    They follow from the values alone, so that a sweep that is continued uses the same ones.
    """
    count = len(replication.seeds)
    while True:
        seeds = replication.first(count)
        if replication.precision is None or not all(seed in values for seed in seeds):
            return seeds
        found = interval(values[seed] for seed in seeds)
        further = _next(replication, found, count)
        if further is None:
            return seeds
        count = further


def is_precise(replication: Replication, values: dict[int, float | None]) -> bool:
    """Returns true if the interval of a point is as small as it should be."""
    if replication.precision is None:
        return True
    return interval(values.values()).is_within(replication.precision)


def _next(replication: Replication, found: Any, count: int) -> int | None:
    precision = replication.precision
    assert precision is not None
    if found.n < count:
        # A seed without a value: more of them would not help.
        return None
    return next_count([found], precision, limit=replication.seeds_max)


def check_metric(replication: Replication) -> None:
    """Raises `PlanError` if the metric of the precision is not a measured column."""
    if replication.metric not in MEASURES:
        raise Location(key="metric").error(
            expected=f"one of {', '.join(MEASURES)}", got=replication.metric
        )

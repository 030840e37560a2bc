"""Steps of a sweep: its folder, the engine, the lengths and runs of its points, and their means."""

import datetime
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from rampmeter.running.runner import reject_other_kinds, simulator
from rampmeter.sweeps.dataset import IDENTITY, Dataset
from rampmeter.sweeps.drive import (
    Driver,
    DriverOutcome,
    StopRequest,
    SweepWatcher,
    check_metric,
    stopping_on_signals,
)
from rampmeter.sweeps.engines.base import Engine, EngineError
from rampmeter.sweeps.estimate import estimate, is_large, threads_of
from rampmeter.sweeps.lengths import ChosenLengths, choose_lengths, store_last_pilots
from rampmeter.sweeps.progress import RemainingTime, failure
from rampmeter.sweeps.resources import Demand, allot
from rampmeter.sweeps.results import SweepResults
from rampmeter.sweeps.spec import Sweep
from rampmeter.text.locations import Location
from rampmeter.text.numbers import byte_size, counted

FORMAT: Final = 2
"""The form of the folder; a folder of another form is refused."""

Probing: TypeAlias = Literal["always", "if-large", "never"]
"""Condition for estimates of costs: `if-large` is for plans that may need much memory."""
Watch: TypeAlias = Callable[[RemainingTime], AbstractContextManager[SweepWatcher]]
"""Function that shows the progress of runs."""


@dataclass(frozen=True)
class Shard:
    """A part of the points, for one of several drivers that fill the same folder."""

    index: int
    """From 1 on."""
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Parses a shard `i/n`.

        >>> Shard.parse("3/16")
        Shard(index=3, count=16)
        """
        index, slash, count = text.partition("/")
        if not (slash and index.isdecimal() and count.isdecimal()):
            raise Location(key="shard").error(expected="i/n such as 3/16", got=text)
        shard = cls(int(index), int(count))
        if not 1 <= shard.index <= shard.count:
            raise Location(key="shard").error(
                expected=f"1/{shard.count} to {shard.count}/{shard.count}", got=text
            )
        return shard

    def points(self, sweep: Sweep) -> range:
        """Returns the numbers of its points: every n-th, so that shards take about equal time."""
        return range(self.index - 1, len(sweep.points), self.count)


@dataclass
class Session:
    """An engine, which is opened for the first runs that it makes, and reports to the user."""

    engine_of: Callable[[], Engine]
    report: Callable[[str], None]
    """Receives messages for the user."""
    watch: Watch
    probing: Probing = "always"
    is_dry: bool = False
    """Estimates the cost of runs, and makes none."""
    stop: StopRequest | None = None
    estimated: dict[str, Any] | None = None
    """The estimate of the runs, after it."""
    _engine: Engine | None = None

    def run(self, driver: Driver) -> DriverOutcome:
        """Makes the missing runs of a driver."""
        if self._engine is None:
            self._engine = self.engine_of()
        stop = self.stop or StopRequest()
        if stop.event.is_set():
            driver.outcome.stop = stop
            driver.outcome.n_open = driver.n_todo
            return driver.outcome
        time = self._allot(driver, self._engine)
        if not self.is_dry:
            with self.watch(time) as watcher:
                driver.run(self._engine, watcher, stop)
        return driver.outcome

    def run_pilots(self, driver: Driver, about: str) -> DriverOutcome:
        """Makes pilots, without an estimate unless they are large."""
        self.report(about)
        probing: Probing = "never" if self.probing == "never" else "if-large"
        pilots = Session(self.engine_of, lambda _: None, self.watch, probing, False, self.stop)
        pilots._engine = self._engine
        outcome = pilots.run(driver)
        self._engine = pilots._engine
        return outcome

    def close(self) -> None:
        """Closes the engine."""
        if self._engine is not None:
            self._engine.close()

    def _allot(self, driver: Driver, engine: Engine) -> RemainingTime:
        """Allots the engine's resources to runs, by an estimate of their cost if there is one."""
        todo = driver.todo()
        points = list({point.number: point for point, _ in todo}.values())
        threads = threads_of(points)
        if self.probing == "always" or (self.probing == "if-large" and is_large(points)):
            cost = estimate(todo)
            demand = cost.demand(threads)
        else:
            cost, demand = None, Demand(len(todo), threads=threads)
        allotment = allot(demand, engine.capacity())
        if allotment is None:
            raise EngineError(
                f"a run needs about {byte_size(demand.memory_bytes)} of memory, more than free on "
                f"{engine.describe()}; --no-estimate starts all the same"
            )
        engine.allot(allotment)
        if cost is not None:
            self.report(f"on {engine.describe()}")
            self.report(cost.text(allotment))
            self.estimated = cost.record(allotment)
        return RemainingTime.of(todo, cost, allotment)


def run_sweep(
    sweep: Sweep,
    url: str,
    session: Session,
    *,
    wants_flows: bool = False,
    force: bool = False,
    shard: Shard | None = None,
) -> DriverOutcome:
    """Makes missing runs of the folder."""
    check_metric(sweep.replication)
    sweep.check()
    dataset = Dataset(url)
    _claim(dataset, sweep, force=force, is_dry=session.is_dry)
    points = range(len(sweep.points)) if shard is None else shard.points(sweep)
    with stopping_on_signals() as stop:
        session.stop = stop
        try:
            chosen = _choose_lengths(sweep, dataset, points, session)
            if chosen.outcome is not None:
                n_open = len(points) * len(sweep.replication.seeds)
                failures = chosen.outcome.failures
                return DriverOutcome(n_open=n_open, failures=failures, stop=stop)
            if chosen.flows and not (wants_flows or session.is_dry):
                store_last_pilots(sweep, dataset, chosen)
            sweep = sweep.with_lengths(chosen.flows)
            driver = Driver(sweep, dataset, wants_flows=wants_flows, points=points)
            n_kept = driver.outcome.n_kept
            if n_kept:
                session.report(f"{counted(n_kept, 'run')} stored, {driver.n_todo} to run")
            driver.outcome.n_open = driver.n_todo
            if session.is_dry or driver.n_todo:
                session.run(driver)
        finally:
            session.close()
    if not session.is_dry:
        _finish(dataset, driver.outcome)
    return driver.outcome


def _choose_lengths(
    sweep: Sweep, dataset: Dataset, points: Iterable[int], session: Session
) -> ChosenLengths:
    """Chooses the numbers of flows of points by pilots, if the sweep wants it."""
    length = sweep.run_length
    if length is None:
        return ChosenLengths()
    run = None if session.is_dry else session.run_pilots
    chosen = choose_lengths(sweep, length, dataset, points, run)
    if chosen.outcome is None:
        session.report(chosen.text())
    return chosen


def _claim(dataset: Dataset, sweep: Sweep, *, force: bool, is_dry: bool) -> None:
    """Claims the folder for this sweep; raises `ResultError` if it has another one."""
    identity = {"format": FORMAT, **simulator(), **sweep.describe()}
    if dataset.is_local:
        reject_other_kinds(Path(dataset.path("")), kind=IDENTITY)
    found = dataset.identity()
    if found == identity:
        return
    if found is not None and not force:
        differing = [key for key in identity if found.get(key) != identity[key]]
        raise Location(dataset.url).result_error(
            expected="the results of this sweep",
            got=f"those of another ({', '.join(differing)} differ)",
            hint="use another folder, or --force to replace them",
        )
    if found is None and dataset.is_foreign() and not force:
        raise Location(dataset.url).result_error(
            expected="an empty folder or the results of this sweep",
            got="other files",
            hint="use another folder, or --force to add files to it",
        )
    if is_dry:
        return
    if found is not None:
        dataset.clear()
    dataset.put_identity(identity)


def _finish(dataset: Dataset, outcome: DriverOutcome) -> None:
    """Writes means and intervals, and the log of this driver."""
    results = SweepResults(dataset.url)
    if outcome.n_kept or outcome.n_ran:
        dataset.put_intervals(results.summary)
    dataset.remove_parts()
    if not outcome.wall_seconds:
        return
    now = datetime.datetime.now(datetime.UTC)
    log = {
        "ended": now.isoformat(timespec="seconds"),
        "wall_seconds": round(outcome.wall_seconds, 3),
        "ran": outcome.n_ran,
        "kept": outcome.n_kept,
        "open": outcome.n_open,
        "worker_seconds": {host: round(s, 3) for host, s in outcome.seconds_by_host.items()},
        "failures": [failure(*one) for one in outcome.failures],
        "signal": outcome.stop.signal,
    }
    dataset.put_log(f"{now:%Y%m%dT%H%M%S%f}-{os.getpid()}", log)

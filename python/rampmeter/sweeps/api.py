"""Sweeps from Python, and the steps in common with the command: folder, engine, runs, means."""

import datetime
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Final, Literal, TypeAlias

from rich.console import Console

from rampmeter.choices.axes import Axis, Uniform, listed_axis, zipped_axis
from rampmeter.choices.grammar import parse_values
from rampmeter.plan.base import PlanTable, Transport
from rampmeter.plan.plan import Plan
from rampmeter.running import api
from rampmeter.running.runner import simulator
from rampmeter.sweeps.arguments import check_arguments
from rampmeter.sweeps.dataset import Dataset
from rampmeter.sweeps.drive import (
    Driver,
    DriverOutcome,
    SweepWatcher,
    check_metric,
    stopping_on_signals,
)
from rampmeter.sweeps.engines import open_engine
from rampmeter.sweeps.engines.base import Engine
from rampmeter.sweeps.estimate import estimate
from rampmeter.sweeps.progress import failure, watching
from rampmeter.sweeps.results import SweepResults
from rampmeter.sweeps.spec import Sweep
from rampmeter.sweeps.table import SweepOverrides, sample_axis, sweep_of, values_of
from rampmeter.text.locations import Location
from rampmeter.text.numbers import counted
from rampmeter.text.toml import Table, TomlValue

FORMAT: Final = 1
"""The form of the folder; a folder of another form is refused."""

Combine: TypeAlias = Literal["grid", "zip", "random"]
Values: TypeAlias = "str | Uniform | Sequence[TomlValue]"
"""A list or an array, a text such as `"0.3..0.8:0.1"`, or a distribution of random numbers."""


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


def sweep(
    plan: Plan | str | PathLike[str] | None = None,
    *,
    vary: Mapping[str, Values] | None = None,
    combine: Combine = "grid",
    points: Sequence[Mapping[str, TomlValue]] = (),
    samples: int | None = None,
    sample_seed: int = 1,
    transports: str | Sequence[str | Table | Transport] | None = None,
    seeds: int | Sequence[int] | None = None,
    precision: float | None = None,
    metric: str | None = None,
    seeds_max: int | None = None,
    on: str = "local",
    jobs: int | None = None,
    out: str | PathLike[str],
    flows: bool = False,
    force: bool = False,
    quiet: bool = False,
    **parts: PlanTable | Table | None,
) -> SweepResults:
    """Runs a plan at many points with several seeds, here or on a cluster; returns the results.

    `vary` has the values of keys of the plan. They are combined as a `grid`, one by one (`zip`), or
    by sampling `samples` points (`random`). Each of the listed `points` is combined with all of
    `vary`. Omitted arguments are as in the plan's `[sweep]`. With `precision` seeds are added to a
    point until half the interval of its mean `metric` is at most that share of the mean. `on` is
    `local`, `ray`, `ray://HOST:PORT`, `dask` or `dask://HOST:PORT`; `out` is a folder or an fsspec
    URL. Runs that `out` has already are not repeated. `parts` are tables of the plan, as for `run`.

    Raises `PlanError` if the plan of a point is bad, and `ResultError` if `out` has another
    sweep. Raises `EngineError` if the cluster cannot be used, and `RuntimeError` if runs failed.
    Ctrl-C raises `KeyboardInterrupt`. Finished runs are stored.

        >>> import rampmeter as rm
        >>> r = rm.sweep("plan.toml", vary={"workload.load": "0.3..0.8:0.1"},
        ...              transports="dcpim,phost", seeds=5, out="loads")  # doctest: +SKIP
        >>> r.plot.metric("slowdown_mean").savefig("loads.png")  # doctest: +SKIP
    """
    check_arguments(
        vary=vary,
        points=points,
        samples=samples,
        seeds=seeds,
        precision=precision,
        on=on,
        jobs=jobs,
        out=out,
    )
    base = api._plan(plan, None, parts)
    axes = axes_of(vary or {}, combine, points, samples, sample_seed)
    wishes = SweepOverrides(axes, transports, seeds, precision, metric, seeds_max)
    complete = sweep_of(base, wishes)
    console = Console(stderr=True)
    outcome = run_sweep(
        complete,
        fspath(out),
        lambda: open_engine(on, jobs),
        lambda text: None if quiet else console.print(text, markup=False, highlight=False),
        lambda: watching(console, is_quiet=quiet),
        wants_flows=flows,
        force=force,
        wants_estimate=not quiet,
    )
    if outcome.stop.signal == signal.SIGTERM:
        raise SystemExit(128 + signal.SIGTERM)
    if outcome.stop.event.is_set():
        raise KeyboardInterrupt
    if outcome.failures:
        raise RuntimeError("; ".join(failure(*one) for one in outcome.failures[:3]))
    return SweepResults(out)


def axes_of(
    vary: Mapping[str, Values],
    combine: str,
    points: Sequence[Mapping[str, TomlValue]] = (),
    samples: int | None = None,
    sample_seed: int = 1,
) -> tuple[Axis, ...]:
    """Returns the axes of values that are combined in one way, and of listed points."""
    if (samples is not None) != (combine == "random"):
        raise Location(key="samples").error('required with `combine="random"`, and only with it')
    vary_location = Location(key="vary")
    columns = {key: _values(values, vary_location.at(key)) for key, values in vary.items()}
    axes: list[Axis] = []
    if combine == "random" and samples is not None:
        axes.append(sample_axis(columns, samples, sample_seed, vary_location))
    else:
        lists = {key: values_of(values, vary_location.at(key)) for key, values in columns.items()}
        if combine == "grid":
            axes += [Axis.of_values(key, values, vary_location) for key, values in lists.items()]
        elif combine != "zip":
            raise Location(key="combine").error(expected="grid, zip or random", got=combine)
        elif lists:
            axes.append(zipped_axis(lists, vary_location))
    if points:
        axes.append(listed_axis(points, Location(key="points")))
    return tuple(axes)


def run_sweep(
    sweep: Sweep,
    url: str,
    engine_of: Callable[[], Engine],
    report: Callable[[str], None],
    watch: Callable[[], Any],
    *,
    wants_flows: bool = False,
    force: bool = False,
    shard: Shard | None = None,
    wants_estimate: bool = True,
    is_dry: bool = False,
) -> DriverOutcome:
    """Makes missing runs of the folder; `report` receives messages for the user."""
    check_metric(sweep.replication)
    sweep.check()
    dataset = Dataset(url)
    _claim(dataset, sweep, force=force, is_dry=is_dry)
    points = None if shard is None else shard.points(sweep)
    driver = Driver(sweep, dataset, wants_flows=wants_flows, points=points)
    n_kept = driver.outcome.n_kept
    if n_kept:
        report(f"{counted(n_kept, 'run')} stored, {driver.n_todo} to run")
    if is_dry or driver.n_todo:
        with stopping_on_signals() as stop:
            _run(
                driver,
                engine_of(),
                report,
                watch,
                stop,
                wants_estimate=wants_estimate,
                is_dry=is_dry,
            )
    if not is_dry:
        _finish(dataset, driver.outcome)
    return driver.outcome


def _run(
    driver: Driver,
    engine: Engine,
    report: Callable[[str], None],
    watch: Callable[[], Any],
    stop: Any,
    *,
    wants_estimate: bool,
    is_dry: bool,
) -> None:
    try:
        if wants_estimate and not stop.event.is_set():
            report(f"on {engine.describe()}")
            report(estimate(driver.todo()).text(engine.slots()))
        if not is_dry:
            watcher: SweepWatcher
            with watch() as watcher:
                driver.run(engine, watcher, stop)
    finally:
        engine.close()


def _claim(dataset: Dataset, sweep: Sweep, *, force: bool, is_dry: bool) -> None:
    """Claims the folder for this sweep; raises `ResultError` if it has another one."""
    identity = {"format": FORMAT, **simulator(), **sweep.describe()}
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
        dataset.put_intervals(results.summary())
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


def _values(values: Any, where: Location) -> Any:
    """Returns values as lists of plain numbers and texts; NumPy arrays become lists."""
    if isinstance(values, str):
        return parse_values(values, where)
    if isinstance(values, Uniform):
        return values
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    return [value.item() if hasattr(value, "item") else value for value in plain]

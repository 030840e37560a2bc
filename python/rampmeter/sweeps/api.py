"""Sweeps from Python, and the axes that the command makes of its options."""

import shutil
import signal
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from tempfile import mkdtemp
from typing import Any, Literal, TypeAlias

from rampmeter.choices.axes import Axis, Uniform, listed_axis, zipped_axis
from rampmeter.choices.grammar import parse_values
from rampmeter.choices.seeds import Seeds, seeds_argument
from rampmeter.plan.base import PlanTable, Transport
from rampmeter.plan.plan import Plan
from rampmeter.running import api
from rampmeter.running.callback import OnProgress, check_callback
from rampmeter.sweeps.arguments import check_plan_arguments, check_session_arguments
from rampmeter.sweeps.drive import DriverOutcome
from rampmeter.sweeps.engines import open_engine
from rampmeter.sweeps.progress import failure, watching
from rampmeter.sweeps.results import SweepResults
from rampmeter.sweeps.session import Session, run_sweep
from rampmeter.sweeps.spec import Sweep
from rampmeter.sweeps.table import SweepOverrides, sample_axis, sweep_of, values_of
from rampmeter.text.arguments import text_argument, whole_argument
from rampmeter.text.locations import Location
from rampmeter.text.terminal import progress_console
from rampmeter.text.toml import Table, TomlValue

Combine: TypeAlias = Literal["grid", "zip", "random"]
Values: TypeAlias = "str | Uniform | Sequence[TomlValue]"
"""A list or an array, a text such as `"0.3..0.8:0.1"`, or a distribution of random numbers."""


def sweep(
    plan: Plan | str | PathLike[str] | None = None,
    *,
    vary: Mapping[str, Values] | None = None,
    combine: Combine = "grid",
    points: Sequence[Mapping[str, TomlValue]] = (),
    samples: int | None = None,
    sample_seed: int = 1,
    transports: str | Sequence[str | Table | Transport] | None = None,
    seeds: Seeds | str | None = None,
    precision: float | None = None,
    metric: str | None = None,
    seeds_max: int | None = None,
    auto_flows: bool = False,
    flows_max: int | None = None,
    on: str = "local",
    jobs: int | None = None,
    out: str | PathLike[str] | None = None,
    flows: bool = False,
    force: bool = False,
    quiet: bool = False,
    on_progress: OnProgress | None = None,
    **parts: PlanTable | Table | None,
) -> SweepResults:
    """Runs a plan at many points with several seeds, here or on a cluster; returns the results.

    `vary` has the values of keys of the plan. They are combined as a `grid`, one by one (`zip`), or
    by sampling `samples` points (`random`). Each of the listed `points` is combined with all of
    `vary`. Omitted arguments are as in the plan's `[sweep]`. `seeds` is a number of them, or the
    seeds: a list, a range or a text such as `"3..7"`. With `precision` seeds are added to a
    point until half the interval of its mean `metric` is at most that share of the mean. With
    `auto_flows` the flows of each point are doubled until a run is that precise (0.05 without
    `precision`), up to `flows_max`. `on` is `local`, `ray`, `ray://HOST:PORT`, `dask` or
    `dask://HOST:PORT`; `out` is a folder or an fsspec URL. Runs that `out` has already are not
    repeated. Without `out` the results are in a temporary folder as long as the returned object
    exists. `flows` stores a row for each flow. `on_progress` receives a `RunProgress` after each
    run. `parts` are tables of the plan, as for `run`.

    Raises `PlanError` for a bad plan of a point, `ResultError` if `out` has another sweep,
    `EngineError` for an unusable cluster, and `RuntimeError` if runs failed. Ctrl-C raises
    `KeyboardInterrupt`. Finished runs are stored.

        >>> import rampmeter as rm
        >>> r = rm.sweep("plan.toml", vary={"workload.load": "0.3..0.8:0.1"},
        ...              transports="dcpim,phost", seeds=5, out="loads")  # doctest: +SKIP
        >>> r.plot.metric("slowdown_mean").savefig("loads.png")  # doctest: +SKIP
    """
    samples = None if samples is None else whole_argument("samples", samples, 1)
    jobs = None if jobs is None else whole_argument("jobs", jobs, 1)
    check_plan_arguments(vary, points, precision)
    check_session_arguments(on, out)
    check_callback(on_progress)
    base = api._plan(plan, None, parts)
    axes = axes_of(vary or {}, combine, points, samples, sample_seed)
    chosen = None if seeds is None else seeds_argument("seeds", seeds)
    lengths = (precision, metric, seeds_max, auto_flows, flows_max)
    complete = sweep_of(base, SweepOverrides(axes, transports, chosen, *lengths))
    console = progress_console()
    session = Session(
        lambda: open_engine(on, jobs),
        lambda text: None if quiet else console.print(text, markup=False, highlight=False),
        lambda time: watching(console, time, is_quiet=quiet, on_progress=on_progress),
        probing="if-large" if quiet else "always",
    )
    if out is not None:
        _raise(run_sweep(complete, fspath(out), session, wants_flows=flows, force=force))
        return SweepResults(out)
    return _in_temporary_folder(complete, session, wants_flows=flows)


def _in_temporary_folder(sweep: Sweep, session: Session, *, wants_flows: bool) -> SweepResults:
    """Runs a sweep in a folder that is removed with its results, or after an error."""
    folder = mkdtemp(prefix="rampmeter-")
    try:
        _raise(run_sweep(sweep, folder, session, wants_flows=wants_flows, force=False))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return SweepResults(folder, is_temporary=True)


def _raise(outcome: DriverOutcome) -> None:
    """Raises the exception of a sweep that was stopped, or of which runs failed."""
    if outcome.stop.signal == signal.SIGTERM:
        raise SystemExit(128 + signal.SIGTERM)
    if outcome.stop.event.is_set():
        raise KeyboardInterrupt
    if outcome.failures:
        raise RuntimeError("; ".join(failure(*one) for one in outcome.failures[:3]))


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
    for key in vary:
        text_argument("vary", key)
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


def _values(values: Any, where: Location) -> Any:
    """Returns values as lists of plain numbers and texts; NumPy arrays become lists."""
    if isinstance(values, str):
        return parse_values(values, where)
    if isinstance(values, Uniform):
        return values
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    return [value.item() if hasattr(value, "item") else value for value in plain]

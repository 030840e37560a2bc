"""Animations of runs: one page that plays their packets."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from rampmeter.animation import Animation, events_of, network_of, page_of
from rampmeter.animation.events import FLOW_COLUMNS, RunEvents, check_size, last_event_ps
from rampmeter.on_demand import pc
from rampmeter.plan.manifest import MANIFEST
from rampmeter.plan.plan import Plan
from rampmeter.plots.colours import looks
from rampmeter.results import pictures
from rampmeter.results.blame_tables import FlowTimes, cause_name, stage_times
from rampmeter.text.arguments import text_argument
from rampmeter.text.locations import Location
from rampmeter.text.numbers import time_text
from rampmeter.timeline import Timeline

if TYPE_CHECKING:
    import pyarrow as pa


class Run(pictures.Run, Protocol):
    """The parts of a run that an animation shows."""

    def columns(self, *names: str) -> "pa.Table":
        """Reads columns of the table of flows."""

    @property
    def timeline_record(self) -> dict[str, Any]:
        """File, period and limit of the timeline."""

    @property
    def blame(self) -> FlowTimes | None:
        """The causes of the times of flows, if they were recorded."""

    @property
    def manifest(self) -> dict[str, Any]:
        """The run's plan and progress."""


def animate(
    runs: Mapping[str, Run],
    start: float | str = 0,
    end: float | str | None = None,
    hosts: str | Iterable[int] | None = None,
    title: str = "",
) -> Animation:
    """Returns the animation of runs of one network, side by side by their labels.

    The window is in microseconds, or in texts such as `0.5ms`. `hosts` are numbers, or a text such
    as `0-7`. Raises `ResultError` without timelines or for different networks, and `PlanError` if
    there are too many hosts or events.
    """
    text_argument("title", title)
    chosen = None if hosts is None else pictures.parse_hosts(hosts)
    window = pictures.Window.parse(start, end)
    timelines = {label: pictures.timeline_of(run) for label, run in runs.items()}
    drawings = [Plan.load(run.path / MANIFEST).drawing() for run in runs.values()]
    for run, drawing in zip(runs.values(), drawings, strict=True):
        if drawing != drawings[0]:
            raise Location(run.path).result_error(
                expected="the same network as in the first run", got="another"
            )
    ports = {port for label, run in runs.items() for port in _ports(run, timelines[label])}
    network = network_of(drawings[0], ports, chosen)
    until = _window(runs.values(), window, _end_ps(runs.values(), timelines.values()))
    found = [
        _with_causes(
            events_of(
                label,
                look.colour,
                timelines[label],
                run.columns(*FLOW_COLUMNS),
                network,
                until,
            ),
            run.blame,
        )
        for (label, run), look in zip(runs.items(), looks(list(runs)), strict=True)
    ]
    check_size(found, until)
    return page_of(title or " and ".join(runs), network, found, until)


def _ports(run: Run, timeline: Timeline) -> set[tuple[str, str]]:
    """Returns the sending node and the name of each link; raises `ResultError` for equal names."""
    links = Counter(track.name for track in timeline.links)
    if twice := [name for name, n in links.items() if n > 1]:
        raise Location(run.path, "names").result_error(
            expected="different names of hosts, arbiters and switches",
            got=f"two links {twice[0]}",
        )
    return {(track.group, track.name) for track in timeline.links}


def _with_causes(events: RunEvents, blame: FlowTimes | None) -> RunEvents:
    """Returns events with the causes of the times of their flows, if these are known."""
    if blame is None:
        return events
    place = dict(zip(blame.numbers.tolist(), range(len(blame.numbers)), strict=True))
    times = {cause_name(*key): values for key, values in stage_times(blame).items()}
    causes = {}
    for flow in events.flows["flow"]:
        parts = ((name, int(values[place[flow]])) for name, values in times.items())
        causes[flow] = [(name, time) for name, time in parts if time]
    return replace(events, blame={flow: parts for flow, parts in causes.items() if parts})


def _end_ps(runs: Collection[Run], timelines: Iterable[Timeline]) -> float:
    """Returns the last event of timelines, or the last end of a flow; without any that of runs."""
    ends = [last_event_ps(timelines)]
    for run in runs:
        flows = run.columns("arrival_ps", "fct_ps")
        of_flows = pc.max(pc.add(flows["arrival_ps"], flows["fct_ps"])).as_py()
        ends.append(of_flows or 0)
    return max(ends) or float(max(run.timeline_record["until_ps"] for run in runs))


def _window(runs: Collection[Run], window: pictures.Window, last_ps: float) -> tuple[float, float]:
    """Returns the ends of a window in which all timelines are complete.

    Raises `PlanError` if a timeline reached its number of events before.
    """
    if window.start_ps >= last_ps:
        raise Location(key="from").error(
            expected=f"a time before {time_text(last_ps)}, the end of the run",
            got=time_text(window.start_ps),
        )
    start, end = window.until(last_ps)
    for run in runs:
        about = run.timeline_record
        if about["limit_reached"] and about["until_ps"] < end:
            raise Location(key="to").error(
                expected=f"a time until {time_text(about['until_ps'])}, the end of the timeline",
                got=time_text(end),
                hint=f"`run.timeline-events` ended it after {about['events']} events",
            )
        start = max(start, about["from_ps"])
    return start, min(end, max(run.timeline_record["until_ps"] for run in runs))

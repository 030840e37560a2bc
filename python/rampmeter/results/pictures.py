"""Pictures of a window of a run: packets on links, a queue and a link over time."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from rampmeter import plots
from rampmeter.on_demand import np, pa
from rampmeter.text.arguments import argument_error, whole_argument
from rampmeter.text.cautions import Caution, warn_of
from rampmeter.text.locations import Location
from rampmeter.text.numbers import count
from rampmeter.timeline import DATA, PORT, QUEUE, Event, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS_MAX: Final = 48
"""Maximum number of links of a time-space diagram of all hosts."""
HOSTS_SHOWN: Final = 16
"""First hosts that a diagram shows if all of them have too many links."""
PACKETS_MAX: Final = 20_000
"""Maximum number of packets of a time-space diagram of a run without a given end."""
PART_SHOWN: Final = "part-shown"
"""Code of the warning of a diagram that does not show a whole run."""
SENDERS_MAX: Final = 12
"""Maximum number of senders that each have a colour; of more, kinds of packets have colours."""
CONTROL: Final = "control"
BINS: Final = 60
"""Number of intervals of the utilisation of a link."""
UNITS: Final = {"ns": 1e3, "us": 1e6, "µs": 1e6, "ms": 1e9, "s": 1e12, "": 1e6}
"""Picoseconds of units of time; a number without a unit is in microseconds."""


class Run(Protocol):
    """The parts of a run that have its events and samples."""

    @property
    def path(self) -> Path:
        """Its folder."""

    @property
    def manifest(self) -> dict[str, Any]:
        """Its plan, identity and progress."""

    @property
    def timeline(self) -> Timeline | None:
        """The events on each link, if it has a timeline."""

    @property
    def links(self) -> "pa.Table | None":
        """Each link at each sample, if it has samples."""

    @property
    def host_names(self) -> Sequence[str]:
        """The custom names of hosts; empty if they have none."""


class HostNumbers:
    """The numbers of hosts by their names in timelines, those of the first run."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._names = list(next(iter(runs)).host_names)
        self._own = {name: idx for idx, name in enumerate(self._names)}

    def name(self, host: int) -> str:
        """Returns the name of a host."""
        return self._names[host] if self._names else f"h{host}"

    def of(self, node: str) -> int | None:
        """Returns the number of a host; `None` for a switch or an arbiter.

        A node may have the number of a parallel link at its end: `h0.2`.
        """
        for name in (node, re.sub(r"\.\d+$", "", node)):
            if name in self._own:
                return self._own[name]
            if not self._own and re.fullmatch(r"h\d+", name):
                return int(name[1:])
        return None

    def ends(self, link: str) -> tuple[int | None, int | None]:
        """Returns the hosts at the ends of a link; names of nodes may have `>`, too."""
        places = [found.start() for found in re.finditer(">", link)]
        pairs = [(self.of(link[:at]), self.of(link[at + 1 :])) for at in places]
        return max(pairs, key=lambda pair: sum(end is not None for end in pair))

    def order(self, link: str) -> tuple[int, list[int], str]:
        """Sorts links: from hosts, between switches, to hosts; hosts and numbers by size."""
        source, target = self.ends(link)
        place = 0 if source is not None else 2 if target is not None else 1
        own = source if source is not None else target
        numbers = [int(number) for number in re.findall(r"\d+", link)]
        return place, numbers if own is None else [own, *numbers], link


@dataclass(frozen=True)
class Window:
    """A window of a run in picoseconds; the end is `None` for that of the run."""

    start_ps: float = 0.0
    end_ps: float | None = None

    @classmethod
    def parse(cls, start: float | str, end: float | str | None) -> "Window":
        """Returns a window of times such as `40us`, `1.5ms` or a number of microseconds."""
        first, last = parse_time(start, "start"), None if end is None else parse_time(end, "end")
        if last is not None and last <= first:
            raise Location(key="end").error(expected=f"a time after {start}", got=end)
        return cls(first, last)

    def until(self, end_ps: float) -> tuple[float, float]:
        """Returns the ends of the window in a run that ends at `end_ps`."""
        return self.start_ps, max(self.start_ps + 1.0, self.end_ps or end_ps)


def parse_time(value: float | str, name: str) -> float:
    """Returns picoseconds of a time: a number of microseconds, or a text such as `1.5ms`.

    >>> parse_time("40us", "end"), parse_time(2, "end")
    (40000000.0, 2000000.0)
    """
    found = re.fullmatch(r"\s*([\d.]+(?:e-?\d+)?)\s*([a-zµ]*)\s*", str(value))
    try:
        if found and found[2] in UNITS:
            return float(found[1]) * UNITS[found[2]]
    except ValueError:
        pass
    raise Location(key=name).error(
        expected="a time such as 40us, 0.5ms or a number of microseconds", got=value
    )


def parse_hosts(hosts: str | Iterable[int]) -> list[int]:
    """Returns the hosts of a list of numbers and ranges.

    >>> parse_hosts("0-2,7")
    [0, 1, 2, 7]
    """
    expected = "numbers and ranges, as 0-7,9"
    if not isinstance(hosts, str):
        if not isinstance(hosts, Iterable):
            raise argument_error("hosts", expected, hosts)
        return [whole_argument("hosts", host, 0) for host in hosts]
    found: list[int] = []
    for part in hosts.split(","):
        ends = re.fullmatch(r"\s*h?(\d+)(?:(?:-|\.\.)h?(\d+))?\s*", part)
        if ends is None or int(ends[2] or ends[1]) < int(ends[1]):
            raise Location(key="hosts").error(expected=expected, got=hosts)
        found += range(int(ends[1]), int(ends[2] or ends[1]) + 1)
    return found


def time_space(
    runs: Mapping[str, Run],
    window: Window,
    hosts: str | Iterable[int] | None = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draws the packets on each link, a panel for each run; raises `ResultError`.

    A picture of a part of the runs has a note, and is a warning.
    """
    wanted = None if hosts is None else set(parse_hosts(hosts))
    timelines = {name: timeline_of(run) for name, run in runs.items()}
    for run in runs.values():
        n_hosts = int(run.manifest.get("derived", {}).get("hosts", 0))
        if n_hosts and wanted and max(wanted) >= n_hosts:
            raise Location(key="hosts").error(expected=f"hosts below {n_hosts}", got=max(wanted))
    numbers = HostNumbers(runs.values())
    cut = _Cut()
    links = _links_of(timelines.values(), wanted, numbers, cut)
    end_ps = max(_end(timeline, links, window, cut) for timeline in timelines.values())
    start, end = window.until(end_ps)
    kinds = _Kinds(timelines.values(), links, numbers)
    panels = {}
    for name, timeline in timelines.items():
        by_name = {track.name: track for track in timeline.links}
        drops = _drops(timeline)
        panels[name] = plots.LinkRows(
            {
                _arrow(link): [
                    plots.PacketTransit(kinds.of(one), one.at / 1e3, one.until / 1e3)
                    for one in (by_name[link].slices if link in by_name else ())
                    if one.until > start and one.at < end
                ]
                for link in links
            },
            {_arrow(link): [at / 1e3 for at in drops.get(link, ())] for link in links},
        )
    note = cut.note(end)
    if note:
        warn_of(cut.caution(end, note))
    return plots.time_spaces(panels, (start / 1e3, end / 1e3), kinds=kinds.names, title=note, ax=ax)


@dataclass
class _Cut:
    """Parts of runs that a diagram without an end or without hosts does not show."""

    run_end_ps: float = 0.0
    """End of the packets of runs that are cut; 0 if none is."""
    n_links: int = 0
    """Links with packets, if only those of the first hosts are shown."""

    def note(self, end_ps: float) -> str:
        """Returns the note in the picture; empty if it shows all."""
        notes = []
        if self.run_end_ps > end_ps:
            times = f"until {end_ps / 1e6:.4g} of {self.run_end_ps / 1e6:.4g} µs"
            notes.append(f"first {count(PACKETS_MAX)} packets, {times}")
        if self.n_links:
            notes.append(f"hosts 0 to {HOSTS_SHOWN - 1} of a network of {self.n_links} links")
        return "; ".join(notes)

    def caution(self, end_ps: float, note: str) -> Caution:
        """Returns the warning with the options that change the part that is shown."""
        text = f"time-space: shows a part, {note}; --to (`end`) and --hosts choose another one"
        values = {"end_us": end_ps / 1e6, "run_end_us": max(self.run_end_ps, end_ps) / 1e6}
        return Caution(text, PART_SHOWN, {**values, "packets_max": PACKETS_MAX})


def queue(
    runs: Mapping[str, Run],
    window: Window,
    port: str | None = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draws the queue of a port over time, a line for each run; raises `ResultError`.

    The port is by default that of the longest queue of all runs.
    """
    queues = {name: _queues(run) for name, run in runs.items()}
    chosen = _chosen(queues, HostNumbers(runs.values()), port)
    lines = {name: _line(of, chosen) for name, of in queues.items()}
    return plots.over_time(
        lines, _limits(lines, window), f"Queue of {_arrow(chosen)} (kB)", scale=1e-3, ax=ax
    )


def link(
    runs: Mapping[str, Run],
    window: Window,
    port: str | None = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draws the utilisation of a link over time, a line for each run; raises `ResultError`.

    The link is by default the busiest one of all runs.
    """
    timelines = [run.timeline for run in runs.values() if run.timeline is not None]
    tracks = (track for timeline in timelines for track in timeline.links if track.slices)
    limits = window.until(max((track.slices[-1].until for track in tracks), default=1.0))
    used = {name: _utilisations(run, limits) for name, run in runs.items()}
    chosen = _chosen(used, HostNumbers(runs.values()), port, lambda values: values.sum())
    lines = {name: _line(of, chosen) for name, of in used.items()}
    return plots.over_time(
        lines, _limits(lines, window), f"Utilisation of {_arrow(chosen)}", top=1.02, ax=ax
    )


def timeline_of(run: Run) -> Timeline:
    """Returns the timeline of a run; raises `ResultError` if it has none."""
    if run.timeline is None:
        raise Location(run.path).result_error(
            expected="a timeline: set `run.timeline`", got="a run without"
        )
    return run.timeline


Line = tuple[Any, Any]


def _line(lines: Mapping[str, Line], port: str) -> Line:
    """Returns the line of a port, which is empty if the run has none."""
    return lines.get(port) or (np.zeros(0), np.zeros(0))


def _queues(run: Run) -> dict[str, Line]:
    """Returns times and bytes of the queue of each port: every change, or samples."""
    if run.timeline is not None:
        ends = {track.link: track.slices[-1].until for track in run.timeline.links if track.slices}
        # Ports that never had a queue have no track of it.
        found = {port: (np.array([0.0, end]), np.zeros(2)) for port, end in ends.items()}
        for track in run.timeline.of_role(QUEUE):
            times = np.asarray([event.at for event in track.values], dtype=float)
            found[track.link] = (
                times,
                np.asarray([event.value for event in track.values], dtype=float),
            )
        return found
    return _samples(run, "queue_bytes")


def _utilisations(run: Run, limits: tuple[float, float]) -> dict[str, Line]:
    """Returns times and utilisation of each link: of equal intervals, or of samples."""
    if run.timeline is None:
        return _samples(run, "utilisation")
    edges = np.linspace(*limits, BINS + 1)
    found = {}
    for track in run.timeline.links:
        begins = np.asarray([event.at for event in track.slices], dtype=float)
        ends = np.asarray([event.until for event in track.slices], dtype=float)
        busy = np.concatenate([[0.0], np.cumsum(ends - begins)])
        # Busy time before each edge: that of whole packets, and the part of the one on the link.
        before = np.searchsorted(begins, edges)
        last = np.maximum(before - 1, 0)
        over = np.where(before > 0, np.maximum(0.0, ends[last] - edges), 0.0) if len(ends) else 0.0
        shares = np.diff(busy[before] - over) / np.diff(edges)
        found[track.name] = (edges, np.append(shares, shares[-1]))
    return found


def _samples(run: Run, column: str) -> dict[str, Line]:
    """Returns times and values of each link at the samples of `run.links`."""
    if run.links is None:
        raise Location(run.path).result_error(
            expected="a timeline or samples of links: set `run.timeline` or `run.links`",
            got="a run without",
        )
    table = run.links.select(["time_ps", "from", "to", column]).to_pydict()
    found: dict[str, tuple[list[float], list[float]]] = {}
    for at, source, target, value in zip(*table.values(), strict=True):
        times, values = found.setdefault(f"{source}>{target}", ([0.0], []))
        times.append(at)
        values.append(value)
    # A value is that of the interval before its time.
    return {
        name: (np.asarray(times), np.asarray([*values, values[-1]]))
        for name, (times, values) in found.items()
    }


def _chosen(
    lines: Mapping[str, Mapping[str, Line]],
    numbers: HostNumbers,
    port: str | None,
    rank: Callable[[Any], float] = lambda values: values.max(initial=0.0),
) -> str:
    """Returns the port of a name, or the one whose values are the largest."""
    names = sorted({name for of in lines.values() for name in of}, key=numbers.order)
    if port is not None:
        if not isinstance(port, str):
            raise Location(key="port").error(expected="a text such as h0>s0", got=repr(port))
        # Names of nodes may have the separators of links, too.
        marks = re.finditer(r"\s*(->|→|-|>)\s*", port.strip())
        wanted = [f"{port.strip()[: one.start()]}>{port.strip()[one.end() :]}" for one in marks]
        found = [name for name in wanted if name in names]
        if not found:
            few = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
            raise Location(key="port").error(expected=f"one of {few}", got=port)
        return found[0]
    if not names:
        raise Location().result_error(expected="a run with packets", got="one without")
    ranks = {
        name: max((rank(of[name][1]) for of in lines.values() if name in of), default=0.0)
        for name in names
    }
    return max(names, key=lambda name: ranks[name])


def _limits(lines: Mapping[str, Line], window: Window) -> tuple[float, float]:
    return window.until(max((times[-1] for times, _ in lines.values() if len(times)), default=1.0))


def _links_of(
    timelines: Iterable[Timeline], hosts: set[int] | None, numbers: HostNumbers, cut: _Cut
) -> list[str]:
    """Returns the links with packets: uplinks by host, those of switches, downlinks by host.

    `cut` has the number of links if some are omitted.
    """
    names = {track.name for timeline in timelines for track in timeline.links if track.slices}
    if hosts is None and len(names) > ROWS_MAX:
        hosts, cut.n_links = set(range(HOSTS_SHOWN)), len(names)
    if hosts is not None:
        names = {name for name in names if not hosts.isdisjoint(numbers.ends(name))}
        if not names:
            text = ", ".join(map(str, sorted(hosts)))
            raise Location(key="hosts").error(expected="hosts with packets", got=text)
    return sorted(names, key=numbers.order)


def _end(timeline: Timeline, links: Sequence[str], window: Window, cut: _Cut) -> float:
    """Returns the end of the window: its own, that of the run, or that of the last packet shown.

    `cut` has the end of the run if that of the packets is earlier.
    """
    if window.end_ps is not None:
        return window.end_ps
    ends = sorted(
        event.until
        for track in timeline.links
        if track.name in links
        for event in track.slices
        if event.until > window.start_ps
    )
    if len(ends) > PACKETS_MAX:
        cut.run_end_ps = max(cut.run_end_ps, float(ends[-1]))
    return float(ends[:PACKETS_MAX][-1]) if ends else 1.0


class _Kinds:
    """The kinds of packets in a diagram: the sender of data, `control` for all others.

    With many senders, the kinds of data are the names of the packets.
    """

    def __init__(
        self, timelines: Iterable[Timeline], links: Sequence[str], numbers: HostNumbers
    ) -> None:
        counts: Counter[str] = Counter()
        self._numbers = numbers
        self._sources: dict[int, str] = {}
        for timeline in timelines:
            self._sources |= {flow: host for flow, (host, _) in timeline.flows("out").items()}
            for track in timeline.links:
                if track.name in links:
                    counts.update(one.name for one in track.slices if one.kind == DATA)
        self._is_by_sender = len(set(self._sources.values())) <= SENDERS_MAX
        senders = sorted(set(self._sources.values()), key=lambda name: numbers.of(name) or 0)
        data = [name for name, _ in counts.most_common()]
        self.names = [*([f"data of {s}" for s in senders] if self._is_by_sender else data), CONTROL]

    def of(self, event: Event) -> str:
        """Returns the kind of a packet on a link."""
        if event.kind != DATA:
            return CONTROL
        if not self._is_by_sender:
            return event.name
        source = event.args.get("src")
        if source is None:
            return f"data of {self._sources[event.args.get('flow', 0)]}"
        return f"data of {self._numbers.name(source)}"


def _drops(timeline: Timeline) -> dict[str, list[float]]:
    """Returns the times of the drops at each port."""
    found: dict[str, list[float]] = {}
    for track in timeline.of_role(PORT):
        found[track.link] = [float(one.at) for one in track.instants if one.name == "drop"]
    return found


def _arrow(name: str) -> str:
    """Returns the name of a link with an arrow."""
    return name.replace(">", " → ")

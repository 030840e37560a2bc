"""What a time-space diagram shows of a run: packets on links, from the run's timeline."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from rampmeter import plots
from rampmeter._core import PlanError
from rampmeter.plots import Passage
from rampmeter.results import Run
from rampmeter.timeline import Event, Timeline


def draw_slots(
    run: Run, links: Sequence[str], window_ns: tuple[float, float], title: str
) -> Figure:
    """What is on some links of a switch, with lines between slots where the transport has any."""
    file = run.trace_file
    if file is None:
        raise PlanError("run.trace: expected a file's name, as the diagram is drawn from it")
    timeline = Timeline.load(file)
    kinds = sorted({event.name for track in timeline.links for event in track.slices})
    slot_ns = float(run.manifest["derived"].get("transport.slot-us", 0.0)) * 1e3
    shown = passages(run, timeline, links)
    return plots.time_space(shown, window_ns, kinds=kinds, every_ns=slot_ns, title=title)


def passages(run: Run, timeline: Timeline, links: Sequence[str]) -> dict[str, list[Passage]]:
    """The packets on each link, with times at the switch that most of the links join.

    Packets to it are shown when their first bit arrives, those from it when it leaves.
    """
    ends = [end for link in links for end in link.split(">")]
    switch = max(dict.fromkeys(ends), key=ends.count)
    away_ps = round(float(run.manifest["plan"]["topology"]["propagation-ns"]) * 1e3)
    receivers = {row["flow"]: row["dst"] for row in run.columns("flow", "dst").to_pylist()}
    tracks = {track.name: track.slices for track in timeline.links}
    shown = {}
    for link in links:
        later_ps = away_ps if link.endswith(f">{switch}") else 0
        shown[link.replace(">", " → ")] = [
            Passage(
                event.name,
                (event.at + later_ps) / 1e3,
                (event.until + later_ps) / 1e3,
                _label(event, receivers),
            )
            for event in tracks.get(link, [])
        ]
    return shown


def _label(event: Event, receivers: dict[int, int]) -> str:
    """The receiver of a cell."""
    flow = event.args.get("flow")
    return "" if flow is None or event.name != "cell" else f"h{receivers[flow]}"

"""Time-space diagrams: packets on links, from the timeline of a run."""

from typing import Any

from rampmeter.papers.figure import SubFigure
from rampmeter.results.run import Run
from rampmeter.text.locations import Location
from rampmeter.timeline import Event, Timeline


def slots_of(panel: SubFigure, run: Run) -> dict[str, Any]:
    """Returns the packets on the panel's links in its window, as plain values.

    Times are in nanoseconds at the switch that most of the links join: packets to it are shown when
    their first bit arrives, those from it when their first bit is sent. Raises `PlanError` if the
    run has no timeline.
    """
    file = run.timeline_file
    if file is None:
        raise Location(key="run.timeline").error(
            expected="a file's name, as the diagram is drawn from it"
        )
    timeline = Timeline.load(file)
    ends = [end for link in panel.links for end in link.split(">")]
    switch = max(dict.fromkeys(ends), key=ends.count)
    away_ps = round(float(run.manifest["plan"]["topology"]["propagation-ns"]) * 1e3)
    receivers = {row["flow"]: row["dst"] for row in run.columns("flow", "dst").to_pylist()}
    tracks = {track.name: track.slices for track in timeline.links}
    start_ns, end_ns = panel.window_ns
    links = {}
    for link in panel.links:
        later_ps = away_ps if link.endswith(f">{switch}") else 0
        links[link.replace(">", " → ")] = [
            [event.name, start, end, _label(event, receivers)]
            for event in tracks.get(link, [])
            for start, end in [((event.at + later_ps) / 1e3, (event.until + later_ps) / 1e3)]
            if end >= start_ns and start <= end_ns
        ]
    return {
        "kinds": sorted({event.name for track in timeline.links for event in track.slices}),
        "slot_ns": float(run.manifest["derived"].get("transport.slot-us", 0.0)) * 1e3,
        "links": links,
    }


def _label(event: Event, receivers: dict[int, int]) -> str:
    """Returns the receiver of a cell."""
    flow = event.args.get("flow")
    return "" if flow is None or event.name != "cell" else f"h{receivers[flow]}"

"""Tables of a replay: ratios by size class, and the flows that differ."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from rampmeter.replays.compare import CLASS_NAMES, PACKET_BYTES, Flow, Ideal, Replay
from rampmeter.results.table import Cell, Column, ResultTable
from rampmeter.text.numbers import count, number

UNFINISHED_SHOWN: Final = 10
IDEALS: Final[dict[Ideal, str]] = {
    "own": "Slowdowns are over each simulator's own ideal times.",
    "recorded": "Slowdowns of both are over the recorded ideal times.",
    "none": "Ratios are of completion times, not of slowdowns.",
}
ENDS: Final = {
    "acked": "A flow ends at its sender, with the last acknowledgement",
    "delivered": "A flow ends at its receiver, with the last byte",
}


RATIOS: Final = (
    Column("packets", f"packets of {PACKET_BYTES} B"),
    Column("flows", "flows"),
    Column("mean_ratio", "mean ratio", places=4),
)
FLOWS: Final = (
    Column("flow", "flow"),
    Column("arrival_us", "arrival", "µs"),
    Column("src", "from"),
    Column("dst", "to"),
    Column("size_bytes", "bytes"),
    Column("recorded_us", "recorded", "µs"),
    Column("simulated_us", "simulated", "µs"),
    Column("ratio", "ratio", places=4),
)


def replay_tables(replay: Replay, n_flows: int, tolerance: float) -> Iterator[ResultTable]:
    """Yields the ratios, then the flows that differ most and first, then the unfinished ones."""
    yield ratio_table(replay, tolerance)
    furthest = replay.furthest_flows(n_flows)
    if furthest:
        yield flow_table("furthest_flows", "Flows that differ most", furthest)
    first = replay.first_flows(n_flows, tolerance)
    if first:
        title = f"First flows that differ by more than {_percent(tolerance)}"
        yield flow_table("first_flows", title, first)
    unfinished = replay.unfinished()
    if unfinished:
        title = f"Flows without an end in our run: {count(len(unfinished))}"
        table = flow_table("unfinished", title, unfinished)
        yield replace(table, shown_max=UNFINISHED_SHOWN)


def ratio_table(replay: Replay, tolerance: float) -> ResultTable:
    """Returns the mean slowdowns, simulated over recorded, by size class."""
    ratios = replay.ratios()
    rows: list[tuple[Cell, ...]] = [
        (name, n, ratio)
        for name, n, ratio in zip(CLASS_NAMES, ratios.class_flows, ratios.classes, strict=True)
        if n
    ]
    rows += [
        ("all", ratios.flows, ratios.mean),
        ("all, p50", ratios.flows, ratios.p50),
        ("all, p99", ratios.flows, ratios.p99),
    ]
    return ResultTable(
        "ratios",
        "Simulated over recorded",
        RATIOS,
        rows,
        notes=tuple(_notes(replay, tolerance)),
        sections=frozenset([len(rows) - 4]),
    )


def flow_table(name: str, title: str, flows: Sequence[Flow]) -> ResultTable:
    """Returns a row for each flow."""
    rows: list[tuple[Cell, ...]] = [
        (
            str(flow.number),
            flow.arrival_ps / 1e6,
            str(flow.src),
            str(flow.dst),
            flow.size_bytes,
            flow.theirs_ps / 1e6,
            flow.ours_ps / 1e6,
            flow.ratio,
        )
        for flow in flows
    ]
    return ResultTable(name, title, FLOWS, rows)


def _notes(replay: Replay, tolerance: float) -> Iterator[str]:
    terms = replay.terms
    yield IDEALS[terms.ideal]
    yield f"{ENDS[terms.ends_at]} (recorded: {terms.recorded_time(replay.recording)})."
    n = int(replay.compared.sum())
    yield (
        f"Equal times: {count(replay.n_within(0.0))} of {count(n)} flows; within "
        f"{_percent(tolerance)}: {count(replay.n_within(tolerance))}."
    )
    ideals = replay.ideals()
    if ideals is not None:
        mean, n_equal = ideals
        text = (
            f"Our ideal times over the recorded ones: mean {number(mean, 4)}, equal for "
            f"{count(n_equal)} flows."
        )
        if n_equal < n:
            text += " They differ by the network, or by headers that only one of them counts."
        yield text
    if terms.from_us:
        yield f"Flows that arrive before {terms.from_us:g} µs are excluded."
    if replay.n_unrecorded:
        yield f"Excluded flows without a recorded time: {count(replay.n_unrecorded)}."


def replay_json(replay: Replay, n_flows: int, tolerance: float) -> dict[str, Any]:
    """Returns everything that the tables show as plain values."""
    terms, ideals = replay.terms, replay.ideals()
    return {
        "recording": str(replay.recording.file),
        "run": str(replay.run.path),
        "ends-at": terms.ends_at,
        "recorded-time": terms.recorded_time(replay.recording),
        "ideal": terms.ideal,
        "from-us": terms.from_us,
        "packet-bytes": PACKET_BYTES,
        "class-packets": list(CLASS_NAMES),
        "ratios": replay.ratios().to_json(),
        "equal": replay.n_within(0.0),
        "tolerance": tolerance,
        "within": replay.n_within(tolerance),
        "our-ideal-over-recorded": None if ideals is None else ideals[0],
        "equal-ideals": None if ideals is None else ideals[1],
        "furthest-flows": [flow.to_json() for flow in replay.furthest_flows(n_flows)],
        "first-flows": [flow.to_json() for flow in replay.first_flows(n_flows, tolerance)],
        "unfinished": [flow.to_json() for flow in replay.unfinished()],
        "unrecorded": replay.n_unrecorded,
    }


def _percent(share: float) -> str:
    return f"{share * 100:g} %"

"""Outages of links and nodes as rows: packets lost, flows hit, and the goodput around them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from rampmeter.analysis.confidence import interval
from rampmeter.on_demand import np, pa
from rampmeter.results.records import RunRecord, read_optional
from rampmeter.results.rounds import us
from rampmeter.results.table import Column, ResultTable

Runs: TypeAlias = "Mapping[str, Sequence[RunRecord]]"

DROPS: Final = "drops.parquet"
OUTAGES: Final = "outages.parquet"
RATES: Final = "rates.parquet"
ROWS_MAX: Final = 20
"""Number of outages that readers see."""
OUTAGE: Final = (
    Column("element"),
    Column("transport"),
    Column("from_us", "from", "µs", 1),
    Column("until_us", "until", "µs", 1),
    Column("rerouted_us", "rerouted\nafter", "µs", 1),
    Column("packets_lost", "packets\nlost"),
    Column("flows_hit", "flows\nhit"),
    *(
        Column(f"goodput_{part}_gbps", f"goodput\n{part}", "Gbit/s", 1)
        for part in ("before", "during", "after")
    ),
)
OUTAGES_NOTE: Final = (
    "Flows hit were in flight between the failure and the repair or rerouting, and retransmitted. "
    "Goodput is of the whole network, before and after for as long as the outage."
)
ESTIMATED_NOTE: Final = (
    "It spreads each flow's bytes evenly over its time; with run.rates-us it is exact."
)


def outage_tables(runs: Runs) -> Iterator[ResultTable]:
    """Yields a row for each outage and transport, if there were outages."""
    rows: list[tuple[Any, ...]] = []
    is_exact = True
    for label, of_label in runs.items():
        seeds = [_Outages(run).rows() for run in of_label]
        is_exact &= all((run.path / RATES).is_file() for run in of_label)
        # Equal plans have equal outages, whatever the seed.
        for same in zip(*seeds, strict=True):
            element, start, end, routed = same[0][:4]
            means = [interval(values) for values in zip(*(row[6:] for row in same), strict=True)]
            counts = (sum(row[idx] for row in same) for idx in (4, 5))
            rows.append((element, label, start, end, routed, *counts, *means))
    if rows:
        rows.sort(key=lambda row: (row[2], row[0]))
        notes = (OUTAGES_NOTE,) if is_exact else (OUTAGES_NOTE, ESTIMATED_NOTE)
        yield ResultTable("outages", "Outages", OUTAGE, rows, notes, shown_max=ROWS_MAX)


def outages_of(events: "pa.Table") -> "Iterator[tuple[str, int, int | None, int]]":
    """Returns the element of each outage, and the times in ps of start, repair and rerouting."""
    open_of: dict[str, list[Any]] = {}
    found: list[list[Any]] = []
    for event in events.to_pylist():
        element = event["element"]
        if event["state"] == "down":
            # Outages of an element that overlap are one.
            if element not in open_of:
                open_of[element] = [0, [element, event["time_ps"], None, event["routed_ps"]]]
                found.append(open_of[element][1])
            open_of[element][0] += 1
        elif event["state"] == "up" and element in open_of:
            open_of[element][0] -= 1
            if open_of[element][0] == 0:
                open_of.pop(element)[1][2] = event["time_ps"]
    return ((element, start, until, routed) for element, start, until, routed in found)


class _Outages:
    """The outages of one run."""

    def __init__(self, run: RunRecord) -> None:
        self._run = run
        self._events = read_optional(run, OUTAGES)
        self._end_ps = int(run.summary.get("counters", {}).get("end_ps", 0))

    def rows(self) -> list[tuple[Any, ...]]:
        """Returns the rows: element, times in us, packets lost, flows hit, goodput in Gbit/s."""
        if self._events is None:
            return []
        self._read_flows()
        return [self._row(*outage) for outage in outages_of(self._events)]

    def _read_flows(self) -> None:
        names = ("src", "dst", "arrival_ps", "fct_ps", "retransmitted_bytes", "delivered_bytes")
        flows = self._run.columns(*names)
        self._flows = {name: flows[name].to_numpy() for name in names if name != "fct_ps"}
        starts = self._flows["arrival_ps"].astype(np.float64)
        times = flows["fct_ps"].cast(pa.float64()).to_numpy()
        self._starts = starts
        self._ends = np.where(np.isnan(times), self._end_ps, starts + times)
        drops = read_optional(self._run, DROPS)
        self._drops = [] if drops is None else drops.to_pylist()
        self._rates = read_optional(self._run, RATES, "time_ps", "delivered_bytes")

    def _row(self, element: str, start: int, until: int | None, routed: int) -> tuple[Any, ...]:
        end = self._end_ps if until is None else until
        # Packets are lost and flows are hit until switches route around, or until the repair.
        hit_end = min(routed, end)
        length = end - start
        spans = [(max(0, start - length), start), (start, end)]
        goodput = [self._goodput(*span) for span in spans]
        goodput.append(None if until is None else self._goodput(end, end + length))
        is_rerouted = routed < end
        return (
            element,
            start / 1e6,
            us(until),
            (routed - start) / 1e6 if is_rerouted else None,
            self._lost(element, start, end),
            self._hit(element, start, hit_end),
            *goodput,
        )

    def _lost(self, element: str, start: int, end: int) -> int:
        """Returns the packets that were lost at an element, in the sampled intervals of a time."""
        lost = 0
        for row in self._drops:
            one, other = row["from"], row["to"]
            is_here = element in (one, other, f"{one}-{other}", f"{other}-{one}")
            if is_here and row["reason"] == "link-down" and start < row["time_ps"] <= end:
                lost += row["packets"]
        return lost

    def _hit(self, element: str, start: int, end: int) -> int:
        """Returns the flows in flight that retransmitted; of a failed host only its own."""
        is_hit = (self._starts < end) & (self._ends > start)
        is_hit &= self._flows["retransmitted_bytes"] > 0
        host = self._host(element)
        if host is not None:
            is_hit &= (self._flows["src"] == host) | (self._flows["dst"] == host)
        return int(is_hit.sum())

    def _host(self, element: str) -> int | None:
        """Returns the host that fails, or that has the link; `None` of links between switches."""
        names = self._run.host_names
        for idx, name in enumerate(names):
            if element == name or element.startswith(f"{name}-") or element.endswith(f"-{name}"):
                return idx
        found = None if names else re.match(r"h(\d+)(-|$)", element)
        return int(found[1]) if found else None

    def _goodput(self, start: int, end: int) -> float | None:
        """Returns the goodput of the whole network between two times, in Gbit/s."""
        end = min(end, self._end_ps)
        if end <= start:
            return None
        if self._rates is not None:
            times = self._rates["time_ps"].to_numpy()
            of_flow = self._rates["delivered_bytes"].to_numpy()
            delivered = float(of_flow[(times > start) & (times <= end)].sum())
        else:
            both = np.minimum(self._ends, end) - np.maximum(self._starts, start)
            share = np.maximum(both, 0.0) / np.maximum(self._ends - self._starts, 1.0)
            delivered = float((share * self._flows["delivered_bytes"]).sum())
        return 8e3 * delivered / (end - start)

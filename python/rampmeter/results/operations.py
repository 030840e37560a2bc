"""Tables for operators: jobs, collectives, ports and links of one run or of several.

Runs are by transport, one a seed. Numbers are means over seeds with intervals; counts are sums.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from rampmeter.analysis.confidence import Interval, interval
from rampmeter.on_demand import np, pa, pc
from rampmeter.results.critical_path import critical_paths
from rampmeter.results.outages import outage_tables
from rampmeter.results.records import RunRecord, read_optional
from rampmeter.results.rounds import name_of, us
from rampmeter.results.table import Cell, Column, ResultTable, split, without

Runs: TypeAlias = "Mapping[str, Sequence[RunRecord]]"
Row: TypeAlias = tuple[Cell, ...]

LINKS: Final = "links.parquet"
NO_TIER: Final[Mapping[str, Any]] = {"queue_max_bytes": 0}
WORST: Final = 5
"""Number of links in a table of the busiest ones, for each transport."""
ROWS_MAX: Final = 20
"""Number of jobs that readers see."""
FINITE: Final = frozenset({"collective", "trace", "phases", "shuffle"})
"""Patterns of workloads that end when their work is done, so that they have a makespan."""
TRANSPORT: Final = Column("transport")
COLLECTIVES: Final = (
    TRANSPORT,
    Column("collective", "collective"),
    Column("rounds", "rounds"),
    Column("completed", "completed"),
    Column("completion_us", "time", "µs", 1),
    Column("lower_bound_us", "bound", "µs", 1),
    Column("lower_bound_ratio", "over\nbound"),
    Column("bus_gbps", "bus", "Gbit/s", 2),
)
JOBS: Final = (
    TRANSPORT,
    Column("job", "job", form="name"),
    Column("work", "work"),
    Column("flows", "flows"),
    Column("sent_bytes", "bytes", form="bytes"),
    Column("start_us", "start", "µs", 1),
    Column("makespan_us", "makespan", "µs", 1),
    Column("lower_bound_us", "bound", "µs", 1),
    Column("lower_bound_ratio", "over\nbound"),
)
TIMES: Final = ("start", "makespan", "bound")
PLACEMENT: Final = (
    Column("job", "job", form="name"),
    Column("work", "work"),
    Column("n_hosts", "number"),
    Column("hosts", "hosts", width=44),
)
PORTS: Final = (
    TRANSPORT,
    Column("queue_max_bytes", "longest\nqueue", form="bytes"),
    Column("queue_max_port", "at"),
    Column("dropped", "packets\ndropped"),
    Column("drops", "drops by reason", width=24),
)
PAUSES: Final = (Column("pauses", "pauses"), Column("paused_share", "paused", places=4))
LINK: Final = (
    TRANSPORT,
    Column("link", "link"),
    Column("tier", "tier"),
    Column("utilisation", "utilisation", places=4),
    Column("sampled_queue_max_bytes", "longest\nsampled queue", form="bytes"),
)
JOBS_NOTE: Final = (
    "The makespan is from the first submission to the last delivery, if all was delivered."
)
BOUND_NOTE: Final = "The bound is the critical path: each flow takes its ideal time."
LINKS_NOTE: Final = "Means over the samples in the measured window."
NO_LINKS_NOTE: Final = "With run.links = true the busiest links are listed, too."
QUEUES_NOTE: Final = "Queues are exact. Drops and pauses are sums over seeds; paused is a share."


def run_operations(run: RunRecord) -> Iterator[ResultTable]:
    """Yields the tables of one run, without a column of transports."""
    of_one = {"": [run]}
    for table in (*_jobs(of_one), *_links(of_one), *outage_tables(of_one)):
        yield without(table, TRANSPORT.key)


def operation_tables(runs: Runs) -> Iterator[ResultTable]:
    """Yields the tables of several transports."""
    yield _ports(runs)
    yield from _collectives(runs)
    yield from _jobs(runs)
    yield from _links(runs)
    yield from outage_tables(runs)


def _collectives(runs: Runs) -> Iterator[ResultTable]:
    """Yields the mean round of each collective, by transport."""
    rows: list[Row] = []
    for label, of_label in runs.items():
        by_name: dict[str, list[list[Mapping[str, Any]]]] = {}
        for run in of_label:
            rounds: dict[str, list[Mapping[str, Any]]] = {}
            for one in run.summary.get("collectives", []):
                rounds.setdefault(name_of(one), []).append(one)
            for name, of_name in rounds.items():
                by_name.setdefault(name, []).append(of_name)
        for name, seeds in by_name.items():
            every = [one for of_seed in seeds for one in of_seed]
            n_done = sum(one["completion_ps"] is not None for one in every)
            times = (_mean_of(seeds, f"{key}_ps", 1e6) for key in ("completion", "lower_bound"))
            rates = (_mean_of(seeds, key) for key in ("lower_bound_ratio", "bus_gbps"))
            rows.append((label, name, len(every), n_done, *times, *rates))
    if rows:
        table = ResultTable("collectives", "Collectives: mean of rounds", COLLECTIVES, rows)
        yield replace(table, medium="data")
        for one in split(table, "collective"):
            yield replace(one, title=f"{one.title}: mean of rounds")


def _mean_of(seeds: Sequence[Sequence[Mapping[str, Any]]], key: str, per: float = 1.0) -> Interval:
    """Returns the mean over the rounds of each seed, with its interval over seeds."""
    means = []
    for rounds in seeds:
        values = [one[key] / per for one in rounds if one[key] is not None]
        means.append(math.fsum(values) / len(values) if values else None)
    return interval(means)


def _jobs(runs: Runs) -> Iterator[ResultTable]:
    """Yields the makespan of each job, which is a tenant of the workload, and its hosts."""
    first = next(iter(runs.values()))[0]
    workload = first.manifest.get("plan", {}).get("workload", {})
    if len(first.summary.get("tenants", ())) < 2 and workload.get("pattern") not in FINITE:
        return
    rows: list[Row] = []
    found = {label: [_jobs_of(run) for run in of_label] for label, of_label in runs.items()}
    for label, seeds in found.items():
        for job in sorted(set().union(*seeds)):
            some = [of[job] for of in seeds if job in of]
            pairs = [(of["makespan"], of["bound"]) for of in some]
            over = (time / bound if time and bound else None for time, bound in pairs)
            rows.append(
                (
                    label,
                    job,
                    _work(workload, job),
                    sum(of["flows"] for of in some),
                    sum(of["bytes"] for of in some),
                    *(interval(us(of[key]) for of in some) for key in TIMES),
                    interval(over),
                )
            )
    has_bound = any(isinstance(row[-1], Interval) and row[-1].n for row in rows)
    notes = (JOBS_NOTE, BOUND_NOTE) if has_bound else (JOBS_NOTE,)
    table = ResultTable("jobs", "Jobs", JOBS, rows, notes, shown_max=ROWS_MAX)
    yield table if has_bound else without(table, "lower_bound_us", "lower_bound_ratio")
    hosts: list[Row] = [
        (job, _work(workload, job), len(of["hosts"]), _names(of["hosts"], first.host_names))
        for job, of in next(iter(found.values()))[0].items()
    ]
    yield ResultTable("placement", "Hosts of jobs", PLACEMENT, hosts, shown_max=ROWS_MAX)


def _jobs_of(run: RunRecord) -> dict[int, dict[str, Any]]:
    """Returns the flows, bytes, hosts, start and makespan of each tenant, times in picoseconds."""
    flows = run.columns("tenant", "src", "dst", "size_bytes", "arrival_ps", "fct_ps")
    columns = {name: flows[name].to_numpy() for name in ("tenant", "src", "dst", "size_bytes")}
    arrivals = flows["arrival_ps"].to_numpy()
    # Not a number if the flow was not delivered.
    ends = arrivals + flows["fct_ps"].cast(pa.float64()).to_numpy()
    jobs = {}
    bounds = critical_paths(run)
    order = np.argsort(columns["tenant"], kind="stable")
    tenants, firsts = np.unique(columns["tenant"][order], return_index=True)
    rows = np.split(order, firsts[1:]) if len(order) else []
    for tenant, of in zip(tenants, rows, strict=True):
        start, end = int(arrivals[of].min()), float(ends[of].max())
        jobs[int(tenant)] = {
            "flows": len(of),
            "bytes": int(columns["size_bytes"][of].sum()),
            "hosts": np.union1d(columns["src"][of], columns["dst"][of]).tolist(),
            "start": start,
            "makespan": None if math.isnan(end) else int(end) - start,
            "bound": bounds.get(int(tenant)),
        }
    return jobs


def _work(workload: Mapping[str, Any], job: int) -> str:
    """Returns the pattern of a job, or the operation of a collective."""
    parts = workload.get("parts") or workload.get("phases") or [workload]
    part = parts[job] if job < len(parts) else parts[0] if len(parts) == 1 else {}
    return str(part.get("operation") or part.get("pattern") or "")


def _names(hosts: Sequence[int], names: Sequence[str]) -> str:
    """Returns the names of hosts, or ranges of their numbers.

    >>> _names([0, 1, 2, 3, 8, 10, 12, 20], [])
    '0-3, 8-12 by 2, 20'
    """
    if names:
        return ", ".join(names[host] for host in hosts)
    ranges = []
    start = 0
    while start < len(hosts):
        end = start + 1
        step = hosts[end] - hosts[start] if end < len(hosts) else 0
        while end < len(hosts) and hosts[end] - hosts[end - 1] == step:
            end += 1
        if end - start == 2:
            end -= 1
        by = f" by {step}" if step > 1 else ""
        first, last = hosts[start], hosts[end - 1]
        ranges.append(str(first) if first == last else f"{first}-{last}{by}")
        start = end
    return ", ".join(ranges)


def _ports(runs: Runs) -> ResultTable:
    """Returns the longest queue of each transport with its port, and drops and pauses."""
    all_tiers = {
        label: [tier for run in of_label for tier in run.summary["tiers"]]
        for label, of_label in runs.items()
    }
    has_pauses = any("pfc" in tier for tiers in all_tiers.values() for tier in tiers)
    rows: list[Row] = []
    for label, tiers in all_tiers.items():
        longest = max(tiers, key=lambda tier: int(tier.get("queue_max_bytes", 0)), default=NO_TIER)
        at = longest.get("queue_max_at")
        drops: Counter[str] = Counter()
        for tier in tiers:
            drops.update(tier["drops"])
        row: Row = (
            label,
            longest.get("queue_max_bytes"),
            None if at is None else f"{at['from']}-{at['to']}",
            drops.total(),
            drops,
        )
        rows.append((*row[:3], *_paused(runs[label]), *row[3:]) if has_pauses else row)
    columns = (*PORTS[:3], *PAUSES, *PORTS[3:]) if has_pauses else PORTS
    has_links = any((run.path / LINKS).is_file() for of in runs.values() for run in of)
    notes = (QUEUES_NOTE,) if has_links else (QUEUES_NOTE, NO_LINKS_NOTE)
    return ResultTable("ports", "Queues and drops", columns, rows, notes)


def _paused(runs: Sequence[RunRecord]) -> tuple[Cell, Cell]:
    """Returns the pauses of all runs, and the share of the ports' time; none without pauses."""
    pairs = [
        (tier, int(run.summary["counters"]["end_ps"]))
        for run in runs
        for tier in run.summary["tiers"]
        if "pfc" in tier
    ]
    if not pairs:
        return None, None
    time = sum(tier["ports"] * end_ps for tier, end_ps in pairs)
    paused = sum(tier["pfc"]["paused_ps"] for tier, _ in pairs)
    return sum(tier["pfc"]["pauses"] for tier, _ in pairs), paused / max(time, 1)


def _links(runs: Runs) -> Iterator[ResultTable]:
    """Yields the busiest links of each transport, and a table of all, if links were sampled."""
    rows: list[Row] = []
    worst: list[Row] = []
    for label, of_label in runs.items():
        seeds = [_links_of(run) for run in of_label]
        links: list[Row] = []
        for key in sorted(set().union(*seeds)):
            some = [of[key] for of in seeds if key in of]
            _, start, end, tier = key
            use = interval(mean for mean, _ in some)
            links.append((label, f"{start}-{end}", tier, use, max(queue for _, queue in some)))
        rows += links
        worst += sorted(links, key=_use, reverse=True)[:WORST]
    if rows:
        yield ResultTable("busiest_links", "Busiest links", LINK, worst, (LINKS_NOTE,))
        yield ResultTable("links", "Links", LINK, rows, (LINKS_NOTE,), medium="none")


def _use(row: Row) -> float:
    assert isinstance(row[3], Interval)
    return row[3].mean


def _links_of(run: RunRecord) -> "dict[tuple[int, str, str, str], tuple[float, int]]":
    """Returns the mean utilisation and the longest sampled queue of each direction of a link."""
    table = read_optional(
        run, LINKS, "time_ps", "link", "from", "to", "tier", "utilisation", "queue_bytes"
    )
    if table is None:
        return {}
    window = run.summary.get("window")
    if window:
        times = table["time_ps"]
        is_in = pc.and_(pc.greater(times, window["from_ps"]), pc.less_equal(times, window["to_ps"]))
        inside = table.filter(is_in)
        table = inside if inside.num_rows else table
    names = ("link", "from", "to", "tier")
    found = table.group_by([*names]).aggregate([("utilisation", "mean"), ("queue_bytes", "max")])
    return {
        tuple(row[name] for name in names): (row["utilisation_mean"], row["queue_bytes_max"])
        for row in found.to_pylist()
    }

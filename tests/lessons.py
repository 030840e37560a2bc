"""Facts of the lessons: parts of their sentences, with the numbers that runs have now."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

import rampmeter as rm
from rampmeter.timeline import Timeline

Runs = Callable[[str], rm.Run]
"""Returns the run in a folder below `results`."""


def wait(
    run: rm.Run,
    *causes: str,
    flow: int | None = None,
    stage: str | None = None,
    tier: str | None = None,
) -> float:
    """Returns the time of these causes, of one flow or per flow, in microseconds."""
    assert run.blame is not None
    table = run.blame.parts.to_pandas()
    found = table["cause"].isin(causes)
    if stage is not None:
        found &= table["stage"] == stage
    if tier is not None:
        found &= table["tier"] == tier
    if flow is not None:
        found &= table["flow"] == flow
    total = float(table.loc[found, "time_ps"].sum()) / 1e6
    return total if flow is not None else total / len(run.blame.numbers)


def blocked(run: rm.Run, flow: int, stage: str) -> float:
    """Returns the time in which others had the link while a flow was in a stage."""
    assert run.blame is not None
    parts = [part for part in run.blame.flow(flow).parts if part.stage == stage]
    return sum(blocker.time_us for blocker in parts[0].blockers)


def slowest(run: rm.Run) -> int:
    assert run.blame is not None
    return run.blame.slowest(1)[0].flow


def times(run: rm.Run) -> dict[int, float]:
    """Returns the completion time of each delivered flow in microseconds."""
    table = run.flows.to_pandas().dropna(subset="fct_ps")
    return dict(zip(table["flow"].tolist(), (table["fct_ps"] / 1e6).tolist(), strict=True))


def tier(run: rm.Run, name: str) -> dict[str, object]:
    found: dict[str, object] = next(one for one in run.summary["tiers"] if one["name"] == name)
    return found


def queue(run: rm.Run, name: str = "tor-down", digits: int = 0) -> str:
    """Returns the longest queue of a tier."""
    return f"{tier(run, name)['queue_max_bytes'] / 1e3:.{digits}f} kB"  # type: ignore[operator]


def shortest_queue(run: rm.Run, begin_us: float, end_us: float) -> float:
    """Returns the minimum of the samples of the longest queue to a host, in bytes."""
    table = run.series.to_pandas()
    time = table["time_ps"] / 1e6
    found = (table["tier"] == "tor-down") & (time >= begin_us) & (time <= end_us)
    return float(table.loc[found, "queue_max_bytes"].min())


def carried(run: rm.Run, link: str, begin_us: float, end_us: float) -> set[int]:
    """Returns the flows whose data a link carried in an interval."""
    assert run.timeline_file is not None
    (track,) = (one for one in Timeline.load(run.timeline_file).links if one.name == link)
    slices = [one for one in track.slices if one.at < end_us * 1e6 and one.until > begin_us * 1e6]
    return {int(one.args["flow"]) for one in slices if "data" in one.name}


def longest_of(run: rm.Run) -> float:
    return max(times(run).values())


def drops(run: rm.Run) -> int:
    return sum(sum(one["drops"].values()) for one in run.summary["tiers"])


def retransmitted(run: rm.Run, flow: int | None = None) -> float:
    """Returns the bytes that one flow, or all flows, retransmitted."""
    table = run.flows.to_pandas()
    found = table if flow is None else table[table["flow"] == flow]
    return float(found["retransmitted_bytes"].sum())


def us(time: float, digits: int = 1) -> str:
    return f"{time:.{digits}f} µs"


def load(runs: Runs) -> list[str]:
    at = {share: runs(share) for share in ("0.4", "0.8", "0.9")}
    stats = {share: run.summary["slowdown"]["delivered"]["overall"] for share, run in at.items()}
    late = slowest(at["0.8"])
    theory = [1.2 * load / 2 / (1 - load) for load in (0.4, 0.8, 0.9)]
    assert at["0.8"].blame is not None
    more, fewer = (wait(at[share], "sender-link", "queueing") for share in ("0.8", "0.4"))
    assert 6 < more / fewer < 7.5, "more than sixfold"
    return [
        f"busy for {100 * 0.4:.0f} % of the time. Its load doubles to {2 * 100 * 0.4:.0f} %",
        f"A lone flow takes {us(at['0.8'].blame.flow(late).ideal_us, 2)}",
        f"the mean slowdown is {stats['0.4']['mean']:.2f}. Guess the mean and the 99th",
        "| 99th percentile |",
        *(
            f"| {share} | {stats[share]['mean']:.2f} | {stats[share]['p99']:.1f} "
            f"| {us(wait(run, 'sender-link'))} | {us(wait(run, 'queueing'))} |"
            for share, run in at.items()
        ),
        f"At twice the load flows take {stats['0.8']['mean'] / stats['0.4']['mean']:.1f} times",
        f"M/D/1) predicts {us(theory[0])}, {us(theory[1])} and {us(theory[2])}",
        f"each flow needs a link for {us(10 * 1500 * 8 / 1e5)}",
        f"Flow {late} waited {us(wait(at['0.8'], 'sender-link', flow=late))} for the link of its "
        f"own host, and {us(wait(at['0.8'], 'queueing', flow=late))} in the switch",
    ]


def incast(runs: Runs) -> list[str]:
    tcp, dcpim, deep = runs("tcp"), runs("dcpim"), runs("deep")
    of_tcp, of_dcpim, of_deep = times(tcp), times(dcpim), times(deep)
    short = of_tcp.pop(7), of_dcpim.pop(7), of_deep.pop(7)
    assert (drops(dcpim), drops(deep)) == (0, 0)
    return [
        "flow 7",
        f"grows to {queue(tcp)}, all that it can hold, and the port drops {drops(tcp)} packets",
        f"Flow 7 takes {us(short[0])}",
        f"The queue is never longer than {queue(dcpim, digits=1)}. A flow as short",
        f"finds the port free: it takes {us(short[1])}",
        f"completes after {us(max(of_tcp.values()))} under TCP and {us(max(of_dcpim.values()))}",
        f"timeout: {us(wait(tcp, 'loss', flow=7))} of {us(short[0])} are this loss",
        f"takes {us(short[2])}. Its packet waits {us(wait(deep, 'queueing', flow=7))} in the port",
        f"The queue is {queue(deep)} long",
        f"mean is lower too: {us(float(np.mean(list(of_dcpim.values()))))}, and "
        f"{us(float(np.mean(list(of_tcp.values()))))} under TCP",
    ]


def spraying(runs: Runs) -> list[str]:
    ecmp, dcpim, sprayed = runs("ecmp"), runs("ecmp-dcpim"), runs("sprayed")
    sprayed_dcpim = runs("sprayed-dcpim")
    late = slowest(ecmp)
    fastest, longest = (rule(times(ecmp).values()) for rule in (min, max))
    assert drops(sprayed) == drops(sprayed_dcpim) == retransmitted(sprayed_dcpim) == 0
    assert ecmp.paths is not None
    links = [path.split(">")[1:3] for path in ecmp.paths.to_pandas().sort_values("flow")["path"]]
    there, back = ([spine for rack, spine in links if rack == of] for of in ("s0", "s1"))
    assert len(set(there)) == 4
    assert len(set(back)) == 2, "two of four links carry no data"
    shared = [4 + n for n, spine in enumerate(back) if spine == "s3"]
    matched = wait(sprayed_dcpim, "permission"), wait(sprayed, "permission", "retransmission")
    assert matched[0] - matched[1] > max(times(sprayed_dcpim).values()) - longest_of(sprayed)
    assert any("order-lost" in one.code for one in sprayed.warnings)
    return [
        "From hosts 0 to 3 each",
        f"flows {shared[0]}, {shared[1]} and {shared[2]} share the link to s3",
        f"of the shared link to {queue(ecmp, 'tor-up')}, and the port drops {drops(ecmp)} packets",
        f"fastest flow takes {us(fastest)} and the slowest {us(longest)}",
        f"flows take from {us(min(times(dcpim).values()))} to {us(max(times(dcpim).values()))}",
        f"slowest flow takes {us(max(times(sprayed).values()))} under TCP and "
        f"{us(max(times(sprayed_dcpim).values()))} under dcPIM",
        f"cost flow {late} under TCP {us(wait(ecmp, 'loss', flow=late))}",
        f"retransmits {retransmitted(sprayed) / 1e3:.1f} kB unnecessarily",
    ]


def matching(runs: Runs) -> list[str]:
    at = {rounds: runs(f"rounds-{rounds}") for rounds in (1, 2, 4)}
    late = slowest(at[1])
    waits = wait(at[1], "permission", flow=late, stage="matching")
    busy = blocked(at[1], late, "matching")
    flows = at[1].flows.to_pandas().sort_values("first_byte_ps")
    first, others = flows[:2], flows[2:]
    assert set(zip(first["src"], first["dst"], strict=True)) == {(0, 1), (1, 0)}
    assert others["first_byte_ps"].min() > first["fct_ps"].max()
    share = {rounds: f"{100 * run.summary['utilisation']:.0f} %" for rounds, run in at.items()}
    return [
        f"the links of hosts are busy for {share[1]} of the time",
        f"the longest queue in the switch is {queue(at[1])}",
        f"hosts 1 to 7 grant host 0. Only hosts 0 and 1 send, until their flows to each other are "
        f"complete after {us(first['fct_ps'].max() / 1e6)}",
        *(
            f"| {rounds} | {share[rounds]} | {us(max(times(run).values()), 0)} |"
            for rounds, run in at.items()
        ),
        f"With one round flow {late} waits {us(waits)} for a match. For {us(busy)} of them the "
        f"link of its receiver carried other flows, and for {us(waits - busy)} it carried none",
    ]


def overcommitment(runs: Runs) -> list[str]:
    at = {1: runs("one"), 2: runs("two"), 7: runs("seven")}
    late = slowest(at[1])
    waits = wait(at[1], "permission", flow=late, stage="grant")
    idle = waits - blocked(at[1], late, "grant")
    longest = {n: float(queue(run).split()[0]) for n, run in at.items()}
    options = rm.RunOptions(timeline="t.pftrace", timeline_from_us=200, timeline_until_us=220)
    traced = rm.run("lessons/overcommitment.toml", run=options, quiet=True)
    assert carried(traced, "s0>h1", 212, 218) == set()
    assert carried(traced, "h5>s0", 212, 218) == {38}
    (late_flow,) = (row for row in traced.flows.to_pylist() if row["flow"] == 40)
    assert (late_flow["src"], late_flow["dst"]) == (5, 1)
    assert late_flow["arrival_ps"] < 212e6 < 218e6 < late_flow["arrival_ps"] + late_flow["fct_ps"]
    return [
        f"the longest queue in the switch is {queue(at[1])}",
        "host 5 sends flow 38 to another host first",
        *(
            f"| {n} | {us(float(np.mean(list(times(run).values()))))} "
            f"| {us(wait(run, 'permission'))} | {queue(run)} |"
            for n, run in at.items()
        ),
        f"the queue is {longest[7] / longest[1]:.1f} times as long as with one",
        f"flow {late}, waits {us(waits)} for grants. For {us(idle)} of them",
    ]


def trimming(runs: Runs) -> list[str]:
    ndp, tcp = runs("ndp"), runs("tcp")
    late = slowest(tcp), slowest(ndp)
    timeouts = tcp.summary["transport"]["timeouts"]
    assert timeouts == 4 == sum(time > 100 for time in times(tcp).values())
    return [
        f"All bytes need {us(15 * 20 * 1500 * 8 / 1e5)} of the receiver's link",
        f"NDP trims {ndp.summary['transport']['trimmed']} packets, TCP loses {drops(tcp)}",
        f"after {us(max(times(ndp).values()))} with NDP and after {us(max(times(tcp).values()))}",
        f"slowest flow had {us(wait(tcp, 'permission', flow=late[0], stage='window'))} in which",
        f"{retransmitted(tcp, late[0]) / 1e3:.1f} kB of its 29.2 kB had to be retransmitted",
        f"calls {us(wait(ndp, 'loss', flow=late[1]))} of the slowest flow a loss",
    ]


def ecn(runs: Runs) -> list[str]:
    at = {packets: runs(f"mark-{packets}") for packets in (5, 20, 65, 130)}
    short = {n: [times(run)[flow] for flow in range(2, 12)] for n, run in at.items()}
    longest = int(str(tier(at[130], "tor-down")["queue_max_bytes"])) // 1500
    mean = {n: float(np.mean(found)) for n, found in short.items()}
    late = slowest(at[65])
    assert at[65].blame is not None
    assert round(mean[65] / at[65].blame.flow(late).ideal_us) == 10
    shortest = {n: shortest_queue(run, 100, 250) for n, run in at.items()}
    assert shortest[65] > shortest[20] > shortest[5] == 0
    waits = wait(at[65], "permission", flow=late), wait(at[65], "queueing", flow=late)
    return [
        f"longer than 65 packets, and holds {longest} packets",
        f"the mean time of the short flows is {us(mean[65])}, ten",
        *(
            f"| {n} | {us(mean[n])} | {us(max(times(run).values()))} | {drops(run)} |"
            for n, run in at.items()
        ),
        f"flow {late}, waits twice: its handshake for {us(waits[0])}, and its packet for "
        f"{us(waits[1])} in the port",
    ]


def pauses(runs: Runs) -> list[str]:
    paused, dropped = runs("pauses"), runs("drops")
    last = {run.name: max(times(run)[flow] for flow in range(4)) for run in (paused, dropped)}
    total = sum(one["pfc"]["pauses"] for one in paused.summary["tiers"])
    assert drops(paused) == 0
    return [
        "flow 4",
        f"this one pauses its hosts: {total} pauses in all",
        f"bottleneck: its queue is {queue(dropped, 'tor-up', 1)} at most. Flow 4 "
        f"takes {us(times(dropped)[4])} instead of {us(times(paused)[4])}",
        f"The port to host 5 drops {drops(dropped)} packets, and the last flow of the incast "
        f"takes {us(last['drops'])} instead of {us(last['pauses'])}",
        f"{us(wait(paused, 'paused', flow=4))} at paused ports, "
        f"{us(wait(paused, 'paused', flow=4, tier='host-up'))} of them at its own host",
    ]


def bounds(runs: Runs) -> list[str]:
    calm = runs("calm")
    bound = calm.flows["delay_bound_ps"].to_numpy()
    assert bound.min() == bound.max()
    rows = []
    worst = 0.0
    for n in (1000, 4000):
        cosy, dctcp = runs(f"cosy-{n}"), runs(f"dctcp-{n}")
        assert cosy.summary["flows"]["failed"] == 0
        worst = max(worst, *(1e6 * time / bound.max() for time in times(cosy).values()))
        rows.append(
            f"| {n} | {us(max(times(cosy).values()))} | {cosy.summary['flows']['rejected']} "
            f"| {us(max(times(dctcp).values()))} |"
        )
    return [
        f"when it is submitted: here {us(bound.max() / 1e6)}",
        f"The longest queue in the switch is {queue(calm)}",
        f"the slowest after {us(max(times(calm).values()))}",
        "exit code 3",
        *rows,
        f"No delivered message took longer than {100 * worst:.0f} % of it",
        f"the mean slowdown is {calm.summary['slowdown']['delivered']['overall']['mean']:.1f}",
    ]


def cores(runs: Runs) -> list[str]:
    dcpim, sird = runs("dcpim"), runs("sird")
    last = {
        name: us(max(times(runs(name)).values()))
        for name in ("dcpim", "sird", "dcpim-wide", "sird-wide")
    }
    late = slowest(dcpim)
    in_flight = wait(dcpim, "permission-in-flight", flow=late, stage="token")
    use = {run.name: 100 * float(str(tier(run, "tor-up")["utilisation"])) for run in (dcpim, sird)}
    assert queue(runs("dcpim-wide"), "tor-up") == queue(runs("sird-wide"), "tor-up")
    return [
        "have 100 Gbit/s",
        f"queue in the core grows to {queue(dcpim, 'tor-up')}",
        f"Its queue is {queue(sird, 'tor-up')} long at first",
        f"needs {us(4 * 411 * 1500 * 8 / 2e5)} for all bytes",
        f"| dcPIM | {last['dcpim']} | {last['dcpim-wide']} |",
        f"| SIRD | {last['sird']} | {last['sird-wide']} |",
        f"spends {us(in_flight)} on tokens in flight. It waits "
        f"{us(wait(dcpim, 'permission', flow=late, stage='matching'))} for a match, and "
        f"{us(wait(dcpim, 'permission', flow=late, stage='data-phase'))} from the match",
        f"uses the core for {use['dcpim']:.0f} % of the time, SIRD for {use['sird']:.0f} %",
        f"the queue is {queue(runs('dcpim-wide'), 'tor-up', 1)} with both",
    ]


FACTS: Final[Mapping[str, Callable[[Runs], list[str]]]] = {
    facts.__name__: facts
    for facts in (
        *(load, incast, spraying, matching, overcommitment),
        *(trimming, ecn, pauses, bounds, cores),
    )
}
"""The facts of each lesson, in the order of the lessons."""

"""The tables of a plan as types: every key is a field.

An omitted key has the default of the simulator. Made by `python -m tools.generate`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Literal, TypeAlias

from rampmeter.plan.base import Hosts, PlanTable, Sizes
from rampmeter.text.toml import Table

__all__ = [
    "AllToAll",
    "Bimodal",
    "Bisection",
    "Clocks",
    "Collective",
    "Deadlines",
    "Dense",
    "Dragonfly",
    "Dumbbell",
    "Fabric",
    "FatTree",
    "Faults",
    "Incast",
    "IncastOverlay",
    "LeafSpine",
    "Link",
    "LinkChange",
    "LinkFault",
    "Links",
    "Load",
    "Measure",
    "Mix",
    "Names",
    "Outage",
    "Outcast",
    "Permutation",
    "Pfc",
    "Phases",
    "Pod",
    "RackLocal",
    "Rpc",
    "RunOptions",
    "Shuffle",
    "SkewedAllToAll",
    "Staggered",
    "Star",
    "Stride",
    "TopologyFile",
    "Trace",
]

Algorithm: TypeAlias = Literal["ring", "tree", "halving-doubling", "direct", "chain"]

Format: TypeAlias = Literal[
    "csv", "parquet", "yaps", "htsim", "hpcc", "goal", "simai", "chakra", "msccl"
]

HeaderOverflow: TypeAlias = Literal["return", "drop"]

Interface: TypeAlias = Literal["pull", "queue"]

Interpolation: TypeAlias = Literal["linear", "steps"]

MarkingPorts: TypeAlias = Literal["all", "core"]

Operation: TypeAlias = Literal[
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "broadcast",
    "all-to-all",
    "all-to-all-v",
    "pipeline",
]

Overflow: TypeAlias = Literal["tail-drop", "push-out"]

PacketFate: TypeAlias = Literal["cut-off", "vanish"]

PeriodDistribution: TypeAlias = Literal["exponential", "fixed"]

PfcClasses: TypeAlias = Literal["data", "all"]

PfcThresholdKind: TypeAlias = Literal["dynamic", "static", "off"]

Scheduling: TypeAlias = Literal["fifo", "fair"]

Spray: TypeAlias = Literal["source-round-robin", "random", "ecmp", "ecmp-pair"]

SwitchingSpec: TypeAlias = Literal["store-and-forward", "cut-through", "shaped"]

TimeDistribution: TypeAlias = Literal["fixed", "exponential"]

TrimChoice: TypeAlias = Literal["coin", "arriving"]

Unit: TypeAlias = Literal["bytes", "packets"]

WarmUp: TypeAlias = int | Literal["auto", "mser-5"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Pfc(PlanTable):
    """The `fabric.pfc` table: switches that pause the other end of a link instead of dropping. Keys
    without a source are Rampmeter's.

    - `alpha`: Dynamic threshold, as a factor of the free shared memory (HPCC §5.1: 11 %). Default:
      0.11.
    - `classes`: Paused classes. Default: `all` for transports with data in the highest class (TCP
      family), whose `express-bytes` is then 0, else `data`. Values: `data`, `all`.
    - `headroom_bytes`: Memory of each port above the threshold. Default: the bytes of two link
      delays and two packets, or three with cut-through. Less loses packets. Unit: bytes.
    - `hysteresis_bytes`: Distance below the threshold at which a pause ends, if the headroom is
      empty; default: two full packets. Unit: bytes.
    - `threshold`: Kind of threshold; default: `static` with `xoff-bytes`, else `dynamic`. Values:
      `dynamic`, `static`, `off`. Source: IEEE 802.1Qbb; HPCC's switches have dynamic thresholds.
    - `xoff_bytes`: Static threshold. Unit: bytes; default: none.

    Details: docs/plans/fabric.md.
    """

    alpha: float | None = None
    classes: PfcClasses | None = None
    headroom_bytes: int | str | None = None
    hysteresis_bytes: int | str | None = None
    threshold: PfcThresholdKind | None = None
    xoff_bytes: int | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Fabric(PlanTable):
    """The `fabric` table. What is left out is as the transport needs it, or else as in the dcPIM
    paper (table 1); the manifest has every value. Keys without a source are Rampmeter's.

    - `alpha`: Maximum memory of a port, as a factor of the free shared memory. Default: 1. Source:
      dynamic thresholds of shared memory (Choudhury and Hahne, 1998).
    - `buffer_bytes`: Packet memory of each switch port: a number, or a table by the rate or the
      tier of ports. 0 for ports without memory. Unit: bytes; default: 500000. Source: the network
      of each transport's paper.
    - `buffer_cell_bytes`: Minimum memory of a queued packet. The length of a full packet makes
      buffers, marks and queue lengths count packets, as in ns-2 and ns-3. Unit: bytes; default: 0.
    - `cut_through_bytes`: Bytes of a packet that a switch receives before it forwards the packet,
      if switching is cut-through. Unit: bytes; default: 64.
    - `drop_unscheduled_above_bytes`: Queue of a switch's port above which it drops unscheduled
      packets, and no others (selective dropping, Aeolus). Unit: bytes; default: none. Source:
      Aeolus §3.
    - `ecn_bytes`: Queue of a port above which it marks ECN-capable packets: a number, or a table by
      the rate or the tier of ports. No marks if left out. Unit: bytes; default: none. Source: DCTCP
      (marks above one threshold).
    - `ecn_max_bytes`: Queue of a port above which it marks all ECN-capable packets; default:
      `ecn-bytes`. The share of marked packets grows linearly in between (RED, DCQCN). Unit: bytes.
      Source: RED (Floyd and Jacobson, 1993), as switches of HPCC's and DCQCN's studies mark.
    - `ecn_max_probability`: Share of packets that are marked just below `ecn-max-bytes`, from 0 to
      1; by default 1. Default: 1. Source: RED (Floyd and Jacobson, 1993).
    - `ecn_ports`: Ports that mark. Values: `all`, `core`; default: `all`.
    - `express_bytes`: Maximum length of packets of the highest priority that take no buffer, so
      that no queue overflows with them. 0 makes them compete for buffers. Unit: bytes; default: 64.
    - `header_overflow`: Treatment of a trimmed packet that does not fit into the header queue.
      Values: `return`, `drop`; default: `return`. Source: NDP §3 (headers return to the sender).
    - `header_queue_bytes`: Memory of a port's queue of headers and control packets; default: that
      of 8 full packets. Unit: bytes. Source: NDP §3.1.
    - `header_ratio`: Packets of the header queue that a port sends for one data packet while both
      queues hold packets; 0 sends headers first. Default: 10. Source: NDP §3.1 (ten headers for a
      packet).
    - `interface`: Place of the packet queue in hosts. Values: `pull`, `queue`; default: `pull`.
    - `overflow`: Behaviour of a port if packet memory is full. Values: `tail-drop`, `push-out`;
      default: `push-out`. Source: dcPIM's and pHost's simulators push out; others drop the arrival.
    - `pfc`: Priority flow control, a table; default: off, unless the transport needs it.
    - `scheduling`: Order of packets of one class at a port. Values: `fifo`, `fair`; default:
      `fifo`. Source: strict priorities of IEEE 802.1Q; fair queueing of Demers et al., 1989.
    - `shaper_burst_us`: Idle time that a link makes up for later, if switching is shaped. Unit: µs;
      default: 0.
    - `shared_buffer_bytes`: Packet memory of a switch that its ports share, instead of
      `buffer-bytes`. Unit: bytes; default: none. Source: HPCC §5.1 (32 MB a switch).
    - `spray`: Path choice. Values: `source-round-robin`, `random`, `ecmp`, `ecmp-pair`; default:
      `source-round-robin`. Source: dcPIM and pHost spray packets; ECMP of RFC 2992.
    - `switching`: Time at which forwarding begins. Values: `store-and-forward`, `cut-through`,
      `shaped`; default: `store-and-forward`.
    - `trim_bytes`: Length of a packet whose payload a full port has removed (NDP). Unit: bytes;
      default: 64. Source: NDP §3.1 (eight packets).
    - `trim_choice`: Packet that a full data queue trims. Values: `coin`, `arriving`; default:
      `coin`. Source: NDP §3.1 (the arrival or the newest packet, at random).
    - `unscheduled_collision`: Treatment of an unscheduled packet that is cut off at a port without
      memory. Values: `cut-off`, `vanish`; default: `cut-off`. Source: Fastpod §3.3.

    Details: docs/plans/fabric.md.
    """

    alpha: float | None = None
    buffer_bytes: int | str | dict[str, int | str] | None = None
    buffer_cell_bytes: int | str | None = None
    cut_through_bytes: int | str | None = None
    drop_unscheduled_above_bytes: int | str | None = None
    ecn_bytes: int | str | dict[str, int | str] | None = None
    ecn_max_bytes: int | str | dict[str, int | str] | None = None
    ecn_max_probability: float | None = None
    ecn_ports: MarkingPorts | None = None
    express_bytes: int | str | None = None
    header_overflow: HeaderOverflow | None = None
    header_queue_bytes: int | str | None = None
    header_ratio: int | None = None
    interface: Interface | None = None
    overflow: Overflow | None = None
    pfc: Pfc | Table | None = None
    scheduling: Scheduling | None = None
    shaper_burst_us: float | str | None = None
    shared_buffer_bytes: int | str | None = None
    spray: Spray | None = None
    switching: SwitchingSpec | None = None
    trim_bytes: int | str | None = None
    trim_choice: TrimChoice | None = None
    unscheduled_collision: PacketFate | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Link(PlanTable):
    """One link of a topology file.

    - `between`: Ends of the link, such as `["h0", "s0"]`.
    - `gbps`: Rate in Gbit/s. Unit: Gbit/s; default: 100.0.
    - `gbps_back`: Rate in Gbit/s from the second end to the first; default: `gbps`.
    - `propagation_ns`: Propagation in nanoseconds. Unit: ns; default: 200.0.

    Details: docs/plans/topology.md.
    """

    between: tuple[str, str]
    gbps: float | str | None = None
    gbps_back: float | str | None = None
    propagation_ns: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class RunOptions(PlanTable):
    """The `run` table: when a run ends, and what it records.

    - `blame`: Writes the causes of the time of each flow, in `blame.parquet` and
      `blockers.parquet`. Those of the starts of flows that wait for others are in
      `releases.parquet`. Default: false.
    - `capture`: Name of a file in the folder of results for captured packets, such as `run.pcapng`.
      Default: none.
    - `capture_hosts`: Captured hosts by number or name; arbiters are numbered after hosts. All if
      left out. Default: all.
    - `capture_packets`: Maximum number of captured packets. Then the capture ends, the run
      continues and the manifest reports it. Default: 1000000.
    - `drain_us`: Time after the last arrival at which the run ends with unfinished flows. Unit: µs;
      default: 1000000.
    - `links`: Records each link at every sample, in `links.parquet`. Default: false.
    - `paranoid`: Encodes and decodes every packet, and compares. Default: false.
    - `paths`: Writes the paths of the data packets of each flow, in `paths.parquet`. Default:
      false.
    - `rates_us`: Interval of the rates of flows in `rates.parquet`, and of windows and credits in
      `windows.parquet`; 0 for no such tables. Unit: µs; default: 0.
    - `sample_us`: Interval of samples of queues and links; 0 for none. By default the maximum of 10
      us, eight packets of the slowest host and a 20th of a round trip. Unit: µs; default: derived.
    - `threads`: Threads among which the network is divided; results are the same. By default a long
      run uses all cores, unless others run at the same time. Default: none.
    - `timeline`: Name of a file in the folder of results for a timeline, such as
      `run.perfetto-trace`. Default: none.
    - `timeline_events`: Maximum number of events, after which the timeline ends and the manifest
      reports it. Default: 2000000.
    - `timeline_from_us`: Start of the timeline. Unit: µs; default: 0.
    - `timeline_hosts`: Hosts of the timeline by number or name; arbiters are numbered after hosts.
      All if left out. Default: all.
    - `timeline_switches`: Switches of the timeline by number or name. All if left out. Default:
      all.
    - `timeline_until_us`: End of the timeline; default: that of the run. Unit: µs.

    Details: docs/plans/run.md.
    """

    blame: bool | None = None
    capture: str | None = None
    capture_hosts: Sequence[int | str] | None = None
    capture_packets: int | None = None
    drain_us: float | str | None = None
    links: bool | None = None
    paranoid: bool | None = None
    paths: bool | None = None
    rates_us: float | str | None = None
    sample_us: float | str | None = None
    threads: int | None = None
    timeline: str | None = None
    timeline_events: int | None = None
    timeline_from_us: float | str | None = None
    timeline_hosts: Sequence[int | str] | None = None
    timeline_switches: Sequence[int | str] | None = None
    timeline_until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Measure(PlanTable):
    """The `measure` table: which flows the statistics of the summary count. Every flow is in the
    table of flows in any case. Keys without a source are Rampmeter's.

    - `completed_before_flow`: Number N of a flow, from 1. The summary counts only flows that
      complete before flow N arrives. Default: none. Source: the figures of dcPIM (flows that end
      before the 400 000th arrival).
    - `warmup_flows`: Number of first flows that the summary leaves out, `mser-5`, or `auto`.
      Values: `auto`, `mser-5`; default: `auto`. Source: `auto` is MSER-5 (White, Cobb and Spratt,
      2000).

    Details: docs/plans/run.md.
    """

    completed_before_flow: int | None = None
    warmup_flows: WarmUp | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Deadlines(PlanTable):
    """The `deadlines` table: every flow has an exponentially distributed one (pHost §4.1).

    - `mean_us`: Mean time from submission to deadline. Unit: µs.
    - `ideal_factor_min`: No deadline is shorter than this times the flow's ideal (`delivered`).
      Default: 1.25.

    Details: docs/plans/run.md.
    """

    mean_us: float | str
    ideal_factor_min: float | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Clocks(PlanTable):
    """The `clocks` table: how far the clocks of hosts start apart, and drift.

    - `drift_ppm`: Maximum drift of host clocks. Unit: parts per million; default: 0.
    - `offset_us`: Maximum difference of host clocks at the start. Unit: µs; default: 0.

    Details: docs/plans/run.md.
    """

    drift_ppm: float | None = None
    offset_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class LinkFault(PlanTable):
    """Faults of one link, in both directions, instead of those of every link.

    - `link`: The link: its ends, such as `h0-s3`, or its place in the topology.
    - `delay_us`: Maximum delay of delayed packets and duplicates. Unit: µs; default: 0.0.
    - `duplicate`: Probability that the link duplicates a packet. Default: 0.0.
    - `loss`: Probability that the link loses a packet. Default: 0.0.
    - `reorder`: Probability that the link delays a packet. Default: 0.0.

    Details: docs/plans/run.md.
    """

    link: str | int
    delay_us: float | str | None = None
    duplicate: float | None = None
    loss: float | None = None
    reorder: float | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Outage(PlanTable):
    """A failure of one link, host, switch or arbiter.

    - `from_us`: Start of the failure. Unit: µs.
    - `arbiter`: The arbiter that crashes, by number: its link fails, and it restarts without state.
    - `count`: Number of failures, 1 to 10000.
    - `every_us`: Time between the starts of failures of one that repeats, such as a link that
      flaps; needs `until-us` and `count`. Unit: µs.
    - `host`: The host that fails, by name or number: all its links fail, and its state is kept.
    - `link`: The link that fails: its ends, such as `h0-s3`, or its place in the topology.
    - `switch`: The switch that fails, by name or number.
    - `until_us`: Time of the repair; default: never. Unit: µs.

    Details: docs/plans/run.md.
    """

    from_us: float | str
    arbiter: int | None = None
    count: int | None = None
    every_us: float | str | None = None
    host: int | str | None = None
    link: str | int | None = None
    switch: int | str | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class LinkChange(PlanTable):
    """A change of one link at a time. Keys that are left out stay as they were.

    - `link`: The link: its ends, such as `h0-s3`, or its place in the topology.
    - `at_us`: Time of the change. Unit: µs.
    - `gbps`: Rate in Gbit/s. Unit: Gbit/s.
    - `gbps_back`: Rate in Gbit/s from the second end to the first; default: `gbps`.
    - `propagation_ns`: Propagation in nanoseconds. Unit: ns.

    Details: docs/plans/run.md.
    """

    link: str | int
    at_us: float | str
    gbps: float | str | None = None
    gbps_back: float | str | None = None
    propagation_ns: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Faults(PlanTable):
    """The `faults` table: what links do to packets, and what fails when.

    - `changes`: Changes of links: `{ link = "s0-s4", at-us = 50, gbps = 25, propagation-ns = 5000
      }`. `gbps-back` is the rate from the second end. Default: none.
    - `delay_us`: Maximum delay of delayed packets and duplicates. Unit: µs; default: 0.
    - `duplicate`: Probability that a link duplicates a packet. Default: 0.
    - `links`: Faults of one link instead, in both directions: `{ link = "h0-s0", loss = 0.001 }`,
      also `duplicate`, `reorder` and `delay-us`. Default: none.
    - `loss`: Probability that a link loses a packet. Default: 0.
    - `outages`: Failures, by number or name: `{ link = "s0-s4", from-us = 10, until-us = 20 }` or
      `{ switch = 1, from-us = 5 }`. Default: none.
    - `reorder`: Probability that a link delays a packet. Default: 0.
    - `rerouting_us`: Time that a link must have been down, or up again, until switches route by it
      (detection and convergence). Unit: µs; default: 1000.

    Details: docs/plans/run.md.
    """

    changes: Sequence[LinkChange | Table] | None = None
    delay_us: float | str | None = None
    duplicate: float | None = None
    links: Sequence[LinkFault | Table] | None = None
    loss: float | None = None
    outages: Sequence[Outage | Table] | None = None
    reorder: float | None = None
    rerouting_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Load(PlanTable):
    """The `load` table: the full packets that loads count, whatever those of the transport are.
    With the same table transports of different headers have the same arrivals.

    - `payload_bytes`: Payload of a packet. Unit: bytes.
    - `header_bytes`: Headers of a packet, in bytes. Unit: bytes.

    Details: docs/plans/transport.md.
    """

    payload_bytes: int | str
    header_bytes: int | str


@dataclass(frozen=True, kw_only=True, repr=False)
class Names(PlanTable):
    """The `names` table: the user's names of hosts and switches, in their order.

    - `hosts`: Names of all hosts; `h0`, `h1`, ... if left out.
    - `switches`: Names of all switches; `s0`, `s1`, ... if left out.

    Details: docs/plans/run.md.
    """

    hosts: Sequence[str] | None = None
    switches: Sequence[str] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class LeafSpine(PlanTable):
    """Two tiers: every rack's switch is joined to every spine of its plane. Keys without a source
    are Rampmeter's.

    - `racks`: Racks, 1 or more.
    - `hosts_per_rack`: Hosts in each rack, 1 or more.
    - `spines`: Spine switches, 1 or more.
    - `access_gbps`: Rate of host links. Unit: Gbit/s; default: 100.0. Source: dcPIM §4.1 (100
      Gbit/s).
    - `core_gbps`: Rate of links between switches. Oversubscription is hosts_per_rack x access over
      spines x core. Unit: Gbit/s; default: 400.0. Source: dcPIM §4.1 (400 Gbit/s).
    - `host_ns`: Processing in every host. Unit: ns; default: 450.0. Source: dcPIM's simulator has
      the delay of a switch at the host's link.
    - `planes`: Networks that the spines are divided into, a divisor of `rails` and of `spines`.
      Each has equally many leaf switches of every rack and equally many spines.
    - `propagation_ns`: Propagation of every link. Unit: ns; default: 200.0. Source: dcPIM's
      simulator (200 ns a link).
    - `rails`: Leaf switches of a rack, to each of which every host of it has a link. Default: 1.
    - `switch_ns`: Processing in every switch. Unit: ns; default: 450.0. Source: dcPIM's simulator
      (450 ns).

    Details: docs/plans/topology.md.
    """

    TAG = ("kind", "leaf-spine")
    racks: int
    hosts_per_rack: int
    spines: int
    access_gbps: float | str | None = None
    core_gbps: float | str | None = None
    host_ns: float | str | None = None
    planes: int | None = None
    propagation_ns: float | str | None = None
    rails: int | None = None
    switch_ns: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class FatTree(PlanTable):
    """Three tiers of k-port switches, k^2/4 hosts in each pod. Keys without a source are
    Rampmeter's.

    - `k`: Ports per switch, even, 2 or more. Source: Al-Fares et al., SIGCOMM 2008.
    - `access_gbps`: Rate of host links. Unit: Gbit/s; default: 100.0.
    - `core_gbps`: Rate of links between switches. Unit: Gbit/s; default: 100.0.
    - `host_ns`: Processing in every host. Unit: ns; default: 450.0.
    - `pods`: Pods, 2 to k; default: k.
    - `propagation_ns`: Propagation of every link. Unit: ns; default: 200.0.
    - `switch_ns`: Processing in every switch. Unit: ns; default: 450.0.

    Details: docs/plans/topology.md.
    """

    TAG = ("kind", "fat-tree")
    k: int
    access_gbps: float | str | None = None
    core_gbps: float | str | None = None
    host_ns: float | str | None = None
    pods: int | None = None
    propagation_ns: float | str | None = None
    switch_ns: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Star(PlanTable):
    """All hosts at one switch.

    - `hosts`: Hosts, 2 or more.
    - `access_gbps`: Rate of host links. Unit: Gbit/s; default: 100.0.
    - `host_ns`: Processing in every host. Unit: ns; default: 450.0.
    - `propagation_ns`: Propagation of every link. Unit: ns; default: 200.0.
    - `switch_ns`: Processing in every switch. Unit: ns; default: 450.0.

    Details: docs/plans/topology.md.
    """

    TAG = ("kind", "star")
    hosts: int
    access_gbps: float | str | None = None
    host_ns: float | str | None = None
    propagation_ns: float | str | None = None
    switch_ns: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Dumbbell(PlanTable):
    """Two switches with hosts and one link between them.

    - `hosts_per_side`: Hosts on each side, 1 or more.
    - `access_gbps`: Rate of host links. Unit: Gbit/s; default: 100.0.
    - `core_gbps`: Rate of the link in the middle. Unit: Gbit/s; default: 100.0.
    - `host_ns`: Processing in every host. Unit: ns; default: 450.0.
    - `propagation_ns`: Propagation of every link. Unit: ns; default: 200.0.
    - `switch_ns`: Processing in every switch. Unit: ns; default: 450.0.

    Details: docs/plans/topology.md.
    """

    TAG = ("kind", "dumbbell")
    hosts_per_side: int
    access_gbps: float | str | None = None
    core_gbps: float | str | None = None
    host_ns: float | str | None = None
    propagation_ns: float | str | None = None
    switch_ns: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Dragonfly(PlanTable):
    """Groups of switches (Kim et al., ISCA 2008). Those of a group are all joined, and any two
    groups by links between their switches. Keys without a source are Rampmeter's.

    - `switches_per_group`: Switches of a group, 1 or more (the paper's a).
    - `hosts_per_switch`: Hosts at each switch, 1 or more (p).
    - `global_links`: Links of each switch to other groups, 1 or more (h).
    - `access_gbps`: Rate of host links. Unit: Gbit/s; default: 100.0.
    - `core_gbps`: Rate of links between switches. Unit: Gbit/s; default: 100.0.
    - `groups`: Groups, 2 to a h + 1, which is the default. Source: Kim et al., ISCA 2008.
    - `host_ns`: Processing in every host. Unit: ns; default: 450.0.
    - `propagation_ns`: Propagation of every link. Unit: ns; default: 200.0.
    - `switch_ns`: Processing in every switch. Unit: ns; default: 450.0.

    Details: docs/plans/topology.md.
    """

    TAG = ("kind", "dragonfly")
    switches_per_group: int
    hosts_per_switch: int
    global_links: int
    access_gbps: float | str | None = None
    core_gbps: float | str | None = None
    groups: int | None = None
    host_ns: float | str | None = None
    propagation_ns: float | str | None = None
    switch_ns: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Pod(PlanTable):
    """A pod of a fat-tree of k-port switches: k/2 racks of k/2 hosts, and k/2 switches above. Keys
    without a source are Rampmeter's.

    - `k`: Ports per switch, even, 4 to 32. Source: Fastpod §5 (a pod of 8-port switches).
    - `cable_spread_ns`: Maximum additional propagation of hosts' and arbiters' links. Unit: ns;
      default: 0.0.
    - `gbps`: Rate of all links. Unit: Gbit/s; default: 100.0.
    - `host_ns`: Processing in every host. Unit: ns; default: 450.0.
    - `propagation_ns`: Propagation of every link; of hosts' and arbiters' the least. Unit: ns;
      default: 200.0.
    - `switch_ns`: Processing in every switch. Unit: ns; default: 450.0.

    Details: docs/plans/topology.md.
    """

    TAG = ("kind", "pod")
    k: int
    cable_spread_ns: float | str | None = None
    gbps: float | str | None = None
    host_ns: float | str | None = None
    propagation_ns: float | str | None = None
    switch_ns: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Links(PlanTable):
    """Any graph: hosts `h0`, `h1`, ... and switches `s0`, `s1`, ... joined by `links`.

    - `hosts`: Hosts, 2 or more.
    - `switches`: Switches, 1 or more, or 0 if hosts forward.
    - `links`: The links.
    - `host_ns`: Processing in every host. Unit: ns; default: 450.0.
    - `hosts_forward`: Hosts with several links, or with a link to a host, forward packets for
      others.
    - `switch_ns`: Processing in every switch. Unit: ns; default: 450.0.

    Details: docs/plans/topology.md.
    """

    TAG = ("kind", "links")
    hosts: int
    switches: int
    links: Sequence[Link | Table]
    host_ns: float | str | None = None
    hosts_forward: bool | None = None
    switch_ns: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class TopologyFile(PlanTable):
    """A file with a table of kind `links`, relative to the plan.

    - `file`: The file.
    - `hosts_forward`: Hosts with several links, or with a link to a host, forward packets for
      others.

    Details: docs/plans/topology.md.
    """

    TAG = ("kind", "file")
    file: str | PathLike[str]
    hosts_forward: bool | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class AllToAll(PlanTable):
    """Every host sends to all others: at a load, every ordered pair is equally likely.

    - `sizes`: Lengths of messages. Values: `imc10`, `web-search`, `data-mining`, `ns-2-web-search`,
      `ns-2-data-mining`, `hpcc-web-search`, `ali-storage`, `homa-w1`, `homa-w2`, `homa-w3`,
      `homa-w4`, `homa-w5`.
    - `flows`: Stop after this many flows.
    - `hosts`: Participating hosts; default: all.
    - `load`: Offered load of every host, headers included, above 0 and at most 2: a share of the
      rate at which the slowest host sends. Without a load all hosts send at once, in rounds.
    - `off_us`: Mean time in which it then sends nothing. Both are drawn from exponential laws.
      Unit: µs.
    - `on_us`: Mean time in which a host sends; with `load` and `off-us`. The load is that of all
      time. Unit: µs.
    - `period_us`: Time from one round to the next; needed for more than one. Unit: µs.
    - `rounds`: Number of rounds without a load; default: 1.
    - `start_us`: Start of the first round, or of arrivals; default: 0. Unit: µs.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "all-to-all")
    sizes: Sizes
    flows: int | None = None
    hosts: Hosts | None = None
    load: float | None = None
    off_us: float | str | None = None
    on_us: float | str | None = None
    period_us: float | str | None = None
    rounds: int | None = None
    start_us: float | str | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Permutation(PlanTable):
    """Every host sends to one other and receives from one.

    - `sizes`: Lengths of messages. Values: `imc10`, `web-search`, `data-mining`, `ns-2-web-search`,
      `ns-2-data-mining`, `hpcc-web-search`, `ali-storage`, `homa-w1`, `homa-w2`, `homa-w3`,
      `homa-w4`, `homa-w5`.
    - `flows`: Stop after this many flows.
    - `hosts`: Participating hosts; default: all.
    - `load`: Offered load of every host, headers included, above 0 and at most 2: a share of the
      rate at which the slowest host sends. Without a load all hosts send at once, in rounds.
    - `off_us`: Mean time in which it then sends nothing. Both are drawn from exponential laws.
      Unit: µs.
    - `on_us`: Mean time in which a host sends; with `load` and `off-us`. The load is that of all
      time. Unit: µs.
    - `period_us`: Time from one round to the next; needed for more than one. Unit: µs.
    - `rounds`: Number of rounds without a load; default: 1.
    - `start_us`: Start of the first round, or of arrivals; default: 0. Unit: µs.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "permutation")
    sizes: Sizes
    flows: int | None = None
    hosts: Hosts | None = None
    load: float | None = None
    off_us: float | str | None = None
    on_us: float | str | None = None
    period_us: float | str | None = None
    rounds: int | None = None
    start_us: float | str | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Stride(PlanTable):
    """Every host sends to the one that is `stride` places on.

    - `stride`: Distance of partners: host `i` of `n` sends to host `i + stride`, around after `n -
      1`.
    - `sizes`: Lengths of messages. Values: `imc10`, `web-search`, `data-mining`, `ns-2-web-search`,
      `ns-2-data-mining`, `hpcc-web-search`, `ali-storage`, `homa-w1`, `homa-w2`, `homa-w3`,
      `homa-w4`, `homa-w5`.
    - `flows`: Stop after this many flows.
    - `hosts`: Participating hosts; default: all.
    - `load`: Offered load of every host, headers included, above 0 and at most 2: a share of the
      rate at which the slowest host sends. Without a load all hosts send at once, in rounds.
    - `off_us`: Mean time in which it then sends nothing. Both are drawn from exponential laws.
      Unit: µs.
    - `on_us`: Mean time in which a host sends; with `load` and `off-us`. The load is that of all
      time. Unit: µs.
    - `period_us`: Time from one round to the next; needed for more than one. Unit: µs.
    - `rounds`: Number of rounds without a load; default: 1.
    - `start_us`: Start of the first round, or of arrivals; default: 0. Unit: µs.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "stride")
    stride: int
    sizes: Sizes
    flows: int | None = None
    hosts: Hosts | None = None
    load: float | None = None
    off_us: float | str | None = None
    on_us: float | str | None = None
    period_us: float | str | None = None
    rounds: int | None = None
    start_us: float | str | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Bisection(PlanTable):
    """Every host sends to one of the other half, and receives from one there.

    - `sizes`: Lengths of messages. Values: `imc10`, `web-search`, `data-mining`, `ns-2-web-search`,
      `ns-2-data-mining`, `hpcc-web-search`, `ali-storage`, `homa-w1`, `homa-w2`, `homa-w3`,
      `homa-w4`, `homa-w5`.
    - `flows`: Stop after this many flows.
    - `hosts`: Participating hosts; default: all.
    - `load`: Offered load of every host, headers included, above 0 and at most 2: a share of the
      rate at which the slowest host sends. Without a load all hosts send at once, in rounds.
    - `off_us`: Mean time in which it then sends nothing. Both are drawn from exponential laws.
      Unit: µs.
    - `on_us`: Mean time in which a host sends; with `load` and `off-us`. The load is that of all
      time. Unit: µs.
    - `period_us`: Time from one round to the next; needed for more than one. Unit: µs.
    - `rounds`: Number of rounds without a load; default: 1.
    - `start_us`: Start of the first round, or of arrivals; default: 0. Unit: µs.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "bisection")
    sizes: Sizes
    flows: int | None = None
    hosts: Hosts | None = None
    load: float | None = None
    off_us: float | str | None = None
    on_us: float | str | None = None
    period_us: float | str | None = None
    rounds: int | None = None
    start_us: float | str | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Staggered(PlanTable):
    """Messages are sent to the same rack, the same pod or farther with given probabilities.

    - `rack_share`: Probability that a message is sent to a host of the same rack.
    - `sizes`: Lengths of messages. Values: `imc10`, `web-search`, `data-mining`, `ns-2-web-search`,
      `ns-2-data-mining`, `hpcc-web-search`, `ali-storage`, `homa-w1`, `homa-w2`, `homa-w3`,
      `homa-w4`, `homa-w5`.
    - `flows`: Stop after this many flows.
    - `hosts`: Participating hosts; default: all.
    - `hosts_per_pod`: Number of hosts that share a pod; default: that of the topology.
    - `hosts_per_rack`: Number of hosts that share a rack; default: that of the topology.
    - `load`: Offered load of every host, headers included, above 0 and at most 2: a share of the
      rate at which the slowest host sends. Without a load all hosts send at once, in rounds.
    - `off_us`: Mean time in which it then sends nothing. Both are drawn from exponential laws.
      Unit: µs.
    - `on_us`: Mean time in which a host sends; with `load` and `off-us`. The load is that of all
      time. Unit: µs.
    - `period_us`: Time from one round to the next; needed for more than one. Unit: µs.
    - `pod_share`: Probability that it is sent to another rack of the same pod; default: 0. All
      others are sent to other pods, or other racks if there are no pods.
    - `rounds`: Number of rounds without a load; default: 1.
    - `start_us`: Start of the first round, or of arrivals; default: 0. Unit: µs.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "staggered")
    rack_share: float
    sizes: Sizes
    flows: int | None = None
    hosts: Hosts | None = None
    hosts_per_pod: int | None = None
    hosts_per_rack: int | None = None
    load: float | None = None
    off_us: float | str | None = None
    on_us: float | str | None = None
    period_us: float | str | None = None
    pod_share: float | None = None
    rounds: int | None = None
    start_us: float | str | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class RackLocal(PlanTable):
    """Poisson arrivals with separate loads within racks and between them.

    - `sizes`: Message sizes. Values: `imc10`, `web-search`, `data-mining`, `ns-2-web-search`,
      `ns-2-data-mining`, `hpcc-web-search`, `ali-storage`, `homa-w1`, `homa-w2`, `homa-w3`,
      `homa-w4`, `homa-w5`.
    - `local_load`: Load of every host on hosts of its rack, headers included, 0 to 2: a share of
      the rate at which the slowest host sends.
    - `remote_load`: Load of every host on hosts of other racks, headers included, 0 to 2: a share
      of the rate at which the slowest host sends.
    - `flows`: Stop after this many flows.
    - `hosts_per_rack`: Number of hosts of a rack; default: that of the topology.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "rack-local")
    sizes: Sizes
    local_load: float
    remote_load: float
    flows: int | None = None
    hosts_per_rack: int | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class IncastOverlay(PlanTable):
    """All-to-all plus incasts that arrive as a Poisson process.

    - `sizes`: Message sizes of the all-to-all. Values: `imc10`, `web-search`, `data-mining`,
      `ns-2-web-search`, `ns-2-data-mining`, `hpcc-web-search`, `ali-storage`, `homa-w1`, `homa-w2`,
      `homa-w3`, `homa-w4`, `homa-w5`.
    - `load`: Load of the all-to-all alone, headers included, above 0 and at most 2: a share of the
      rate at which the slowest host sends.
    - `fan_in`: Senders of an incast. Default: 50.
    - `flows`: Stop after this many flows, incasts included.
    - `incast_bytes`: Size of every flow of an incast; by default 86 packets (the dcPIM study's 128
      KB). Unit: bytes; default: 125560.
    - `incast_load`: Load of the incasts on top of that, as a fraction of all hosts' capacity.
      Default: 0.02.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "incast-overlay")
    sizes: Sizes
    load: float
    fan_in: int | None = None
    flows: int | None = None
    incast_bytes: int | str | None = None
    incast_load: float | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Incast(PlanTable):
    """Many senders to one receiver, all at once.

    - `fan`: Number of senders (incast) or receivers (outcast); redrawn in every round.
    - `flow_bytes`: Size of every flow. Either this or `total-bytes`. Unit: bytes.
    - `flows`: Stop after this many flows.
    - `hub`: The receiver (incast) or sender (outcast); default: redrawn in every round.
    - `peers`: The hosts among which the senders (incast) or receivers (outcast) are drawn; default:
      all. The hub is never among them.
    - `period_us`: Time from one round to the next; needed for more than one. Unit: µs.
    - `rounds`: Number of rounds. Default: 1.
    - `start_us`: Start of the first round. Unit: µs; default: 0.0.
    - `total_bytes`: Size of all flows of a round together. Either this or `flow-bytes`. Unit:
      bytes.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "incast")
    fan: int
    flow_bytes: int | str | None = None
    flows: int | None = None
    hub: int | str | None = None
    peers: Hosts | None = None
    period_us: float | str | None = None
    rounds: int | None = None
    start_us: float | str | None = None
    total_bytes: int | str | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Outcast(PlanTable):
    """One sender to many receivers, all at once.

    - `fan`: Number of senders (incast) or receivers (outcast); redrawn in every round.
    - `flow_bytes`: Size of every flow. Either this or `total-bytes`. Unit: bytes.
    - `flows`: Stop after this many flows.
    - `hub`: The receiver (incast) or sender (outcast); default: redrawn in every round.
    - `peers`: The hosts among which the senders (incast) or receivers (outcast) are drawn; default:
      all. The hub is never among them.
    - `period_us`: Time from one round to the next; needed for more than one. Unit: µs.
    - `rounds`: Number of rounds. Default: 1.
    - `start_us`: Start of the first round. Unit: µs; default: 0.0.
    - `total_bytes`: Size of all flows of a round together. Either this or `flow-bytes`. Unit:
      bytes.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "outcast")
    fan: int
    flow_bytes: int | str | None = None
    flows: int | None = None
    hub: int | str | None = None
    peers: Hosts | None = None
    period_us: float | str | None = None
    rounds: int | None = None
    start_us: float | str | None = None
    total_bytes: int | str | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Shuffle(PlanTable):
    """Every sender to every receiver, all at once.

    - `senders`: Sending hosts.
    - `receivers`: Receiving hosts.
    - `flow_bytes`: Size of every flow. Unit: bytes.
    - `flows`: Stop after this many flows.
    - `period_us`: Time from one round to the next; needed for more than one. Unit: µs.
    - `rounds`: Number of rounds. Default: 1.
    - `start_us`: Start of the first round. Unit: µs; default: 0.0.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "shuffle")
    senders: Hosts
    receivers: Hosts
    flow_bytes: int | str
    flows: int | None = None
    period_us: float | str | None = None
    rounds: int | None = None
    start_us: float | str | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Dense(PlanTable):
    """Every ordered pair of hosts, all at once.

    - `flow_bytes`: Size of every flow. Unit: bytes.
    - `flows`: Stop after this many flows.
    - `start_us`: Start of the flows. Unit: µs; default: 0.0.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "dense")
    flow_bytes: int | str
    flows: int | None = None
    start_us: float | str | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Rpc(PlanTable):
    """Requests and responses: calls of clients to servers.

    - `requests`: Lengths of requests. Values: `imc10`, `web-search`, `data-mining`,
      `ns-2-web-search`, `ns-2-data-mining`, `hpcc-web-search`, `ali-storage`, `homa-w1`, `homa-w2`,
      `homa-w3`, `homa-w4`, `homa-w5`.
    - `responses`: Lengths of responses. Values: `imc10`, `web-search`, `data-mining`,
      `ns-2-web-search`, `ns-2-data-mining`, `hpcc-web-search`, `ali-storage`, `homa-w1`, `homa-w2`,
      `homa-w3`, `homa-w4`, `homa-w5`.
    - `calls`: Number of calls of each client.
    - `clients`: Calling hosts; default: all.
    - `concurrency`: Number of calls that a client has in flight at a time. Default: 1.
    - `fan`: Number of servers of a call, which ends with the last response. Default: 1.
    - `interval_us`: Time from one call of a client to the next, whether or not it has ended;
      instead of `think-us` and `concurrency`. Unit: µs.
    - `servers`: Called hosts, drawn again for each call and never the client itself; default: all.
    - `service_us`: Time from a request to its response at a server. Unit: µs; default: 0.0.
    - `start_us`: Start of all clients. Unit: µs; default: 0.0.
    - `think_us`: Time from the end of a call to the next one of the client. Unit: µs; default: 0.0.
    - `time_distribution`: The distribution of `think-us`, `interval-us` and `service-us`, which are
      means. Values: `fixed`, `exponential`; default: "fixed".

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "rpc")
    requests: Sizes
    responses: Sizes
    calls: int
    clients: Hosts | None = None
    concurrency: int | None = None
    fan: int | None = None
    interval_us: float | str | None = None
    servers: Hosts | None = None
    service_us: float | str | None = None
    start_us: float | str | None = None
    think_us: float | str | None = None
    time_distribution: TimeDistribution | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Collective(PlanTable):
    """A collective operation, whose flows wait for each other.

    - `operation`: Operation that the collective carries out. Values: `all-reduce`, `all-gather`,
      `reduce-scatter`, `broadcast`, `all-to-all`, `all-to-all-v`, `pipeline`.
    - `algorithm`: Algorithm by which the data move; default: the first that the operation has.
      Values: `ring`, `tree`, `halving-doubling`, `direct`, `chain`.
    - `chunks`: Number of chunks into which a ring, a tree or a chain cuts the data that a host
      sends. Default: 1.
    - `compute_us`: Time that a host computes after the flows that a flow waits for, before it sends
      the flow. Unit: µs; default: 0.0.
    - `group_size`: Number of hosts in each of several groups, which do the operation at once;
      default: one group of all.
    - `group_step`: Distance of the hosts of a group among `hosts`; default: 1.
    - `hosts`: Participating hosts; default: all.
    - `matrix`: Bytes by sender and receiver, row by row, for an all-to-all-v instead of
      `vector-bytes`.
    - `pause_us`: Pause of a host between rounds. Unit: µs; default: 0.0.
    - `rounds`: Number of rounds, each after the one before. Default: 1.
    - `skew`: Zipf exponent of the receivers' popularity, 0 to 10, for an all-to-all-v with
      `vector-bytes`.
    - `start_us`: Start of the first round. Unit: µs; default: 0.0.
    - `vector_bytes`: The whole vector: the data of every host at the start (all-reduce,
      reduce-scatter, all-to-all) or at the end (all-reduce, all-gather, broadcast, pipeline). Of an
      all-to-all it includes the host's part for itself. Of an all-to-all-v with a skew it is the
      data that every host sends. Unit: bytes.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "collective")
    operation: Operation
    algorithm: Algorithm | None = None
    chunks: int | None = None
    compute_us: float | str | None = None
    group_size: int | None = None
    group_step: int | None = None
    hosts: Hosts | None = None
    matrix: Sequence[Sequence[int]] | None = None
    pause_us: float | str | None = None
    rounds: int | None = None
    skew: float | None = None
    start_us: float | str | None = None
    vector_bytes: int | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class SkewedAllToAll(PlanTable):
    """An all-to-all whose receivers differ in popularity, as phases at fixed instants.

    - `host_bytes`: Bytes that every host sends in a round. Unit: bytes.
    - `skew`: Zipf exponent of the receivers' popularity, 0 (all alike) to 10.
    - `flows`: Stop after this many flows.
    - `hosts`: Participating hosts; default: all.
    - `period_us`: Time from one round to the next; needed for more than one. Unit: µs.
    - `rounds`: Number of rounds. Default: 1.
    - `start_us`: Start of the first round. Unit: µs; default: 0.0.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "skewed-all-to-all")
    host_bytes: int | str
    skew: float
    flows: int | None = None
    hosts: Hosts | None = None
    period_us: float | str | None = None
    rounds: int | None = None
    start_us: float | str | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Bimodal(PlanTable):
    """Hosts that alternate between a high and a low rate, independently of each other.

    - `sizes`: Message sizes. Values: `imc10`, `web-search`, `data-mining`, `ns-2-web-search`,
      `ns-2-data-mining`, `hpcc-web-search`, `ali-storage`, `homa-w1`, `homa-w2`, `homa-w3`,
      `homa-w4`, `homa-w5`.
    - `load`: Mean load of every host, headers included, above 0 and at most 2: a share of the rate
      at which the slowest host sends. Receivers are uniformly random.
    - `on_us`: Mean length of a period that is on. Unit: µs.
    - `off_us`: Mean length of a period that is off. Unit: µs.
    - `flows`: Stop after this many flows.
    - `hosts`: Participating hosts; default: all.
    - `off_load`: Load in periods that are off, at most `load`. That in periods that are on follows
      from it. Default: 0.0.
    - `period_distribution`: Distribution of the lengths of periods. Values: `exponential`, `fixed`;
      default: "exponential".
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "bimodal")
    sizes: Sizes
    load: float
    on_us: float | str
    off_us: float | str
    flows: int | None = None
    hosts: Hosts | None = None
    off_load: float | None = None
    period_distribution: PeriodDistribution | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Trace(PlanTable):
    """Flows from a file.

    - `file`: The file.
    - `columns`: The file's names of columns, such as `{ src = "from", arrival_us = "start" }`.
      Other columns of the file are then left out.
    - `flows`: Stop after this many flows.
    - `format`: Format of the file; default: by its name or contents. Values: `csv`, `parquet`,
      `yaps`, `htsim`, `hpcc`, `goal`, `simai`, `chakra`, `msccl`.
    - `groups_file`: The file with the groups of ranks that a Chakra trace names: lists of ranks by
      name in JSON, the format of ASTRA-sim. Default: `comm_group.json` next to the trace, if there
      is one.
    - `sort`: Sort flows that are not in arrival order instead of rejecting the file. Default:
      false.
    - `until_us`: Stop before this instant. Unit: µs.
    - `vector_bytes`: The vector of an MSCCL algorithm, whose file has no sizes. It is all that a
      host has at the start or at the end, the larger of the two. Unit: bytes.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "trace")
    file: str | PathLike[str]
    columns: Mapping[str, str] | None = None
    flows: int | None = None
    format: Format | None = None
    groups_file: str | None = None
    sort: bool | None = None
    until_us: float | str | None = None
    vector_bytes: int | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Mix(PlanTable):
    """Several workloads at once.

    - `parts`: The workloads, which are merged in arrival order.
    - `flows`: Stop after this many flows.
    - `until_us`: Stop before this instant. Unit: µs.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "mix")
    parts: Sequence[PlanTable | Table]
    flows: int | None = None
    until_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Phases(PlanTable):
    """Several workloads one after the other, at each host.

    - `parts`: The phases in their order; each needs an end. Their times count from the start of the
      phase at a host.
    - `pause_us`: Pause of a host between two phases. Unit: µs; default: 0.0.
    - `rounds`: Number of times that hosts run all phases. Default: 1.

    Details: docs/plans/workload.md.
    """

    TAG = ("pattern", "phases")
    parts: Sequence[PlanTable | Table]
    pause_us: float | str | None = None
    rounds: int | None = None

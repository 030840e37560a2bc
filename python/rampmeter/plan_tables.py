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

PeriodLaw: TypeAlias = Literal["exponential", "fixed"]

PfcClasses: TypeAlias = Literal["data", "all"]

PfcMode: TypeAlias = Literal["dynamic", "static", "off"]

Scheduling: TypeAlias = Literal["fifo", "fair"]

Spray: TypeAlias = Literal["source-round-robin", "random", "ecmp", "ecmp-pair"]

SwitchingSpec: TypeAlias = Literal["store-and-forward", "cut-through", "shaped"]

TimeDistribution: TypeAlias = Literal["fixed", "exponential"]

TrimChoice: TypeAlias = Literal["coin", "arriving"]

Unit: TypeAlias = Literal["bytes", "packets"]

WarmUp: TypeAlias = int | Literal["auto", "mser-5"]


@dataclass(frozen=True, kw_only=True)
class Pfc(PlanTable):
    """The `fabric.pfc` table: switches that pause the other end of a link instead of dropping."""

    alpha: float | None = None
    """Dynamic threshold, as a factor of the free shared memory (HPCC §5.1: 11 %)."""
    classes: PfcClasses | None = None
    """Paused classes. If left out, `all` for transports with data in the highest class (TCP
    family), whose `express-bytes` is then 0, else `data`."""
    headroom_bytes: int | str | None = None
    """Memory of each port above the threshold. If left out, the bytes of two link delays and two
    packets, or three with cut-through. Less loses packets."""
    hysteresis_bytes: int | str | None = None
    """Distance below the threshold at which a pause ends, if the headroom is empty; two full
    packets if left out."""
    mode: PfcMode | None = None
    """Kind of threshold; `static` with `xoff-bytes` if left out, else `dynamic`."""
    xoff_bytes: int | str | None = None
    """Static threshold."""


@dataclass(frozen=True, kw_only=True)
class Fabric(PlanTable):
    """The `fabric` table. What is left out is as the transport needs it, or else as in the dcPIM
    paper (table 1); the manifest has every value."""

    alpha: float | None = None
    """Maximum memory of a port, as a factor of the free shared memory."""
    buffer_bytes: int | str | dict[str, int | str] | None = None
    """Packet memory of each switch port: a number, or a table by the rate or the tier of ports. 0
    for ports without memory."""
    cut_through_bytes: int | str | None = None
    """Bytes of a packet that a switch receives before it forwards the packet, if switching is
    cut-through."""
    drop_unscheduled_above_bytes: int | str | None = None
    """Queue of a switch's port above which it drops unscheduled packets, and no others (selective
    dropping, Aeolus)."""
    ecn_bytes: int | str | dict[str, int | str] | None = None
    """Queue of a port above which it marks ECN-capable packets: a number, or a table by the rate or
    the tier of ports. No marks if left out."""
    ecn_max_bytes: int | str | dict[str, int | str] | None = None
    """Queue of a port above which it marks all ECN-capable packets; `ecn-bytes` if left out. The
    share of marked packets grows linearly in between (RED, DCQCN)."""
    ecn_max_probability: float | None = None
    """Share of packets that are marked just below `ecn-max-bytes`, from 0 to 1; by default 1."""
    ecn_ports: MarkingPorts | None = None
    """Ports that mark."""
    express_bytes: int | str | None = None
    """Maximum length of packets of the highest priority that take no buffer, so that no queue
    overflows with them. 0 makes them compete for buffers."""
    header_overflow: HeaderOverflow | None = None
    """Fate of a trimmed packet that does not fit into the header queue."""
    header_queue_bytes: int | str | None = None
    """Memory of a port's queue of headers and control packets; that of 8 full packets if left
    out."""
    header_ratio: int | None = None
    """Packets of the header queue that a port sends for one data packet while both queues hold
    packets; 0 sends headers first."""
    interface: Interface | None = None
    """Place of the packet queue in hosts."""
    overflow: Overflow | None = None
    """Behaviour of a port if packet memory is full."""
    pfc: Pfc | Table | None = None
    """Priority flow control, a table; off if left out, unless the transport needs it."""
    scheduling: Scheduling | None = None
    """Order of packets of one class at a port."""
    shaper_burst_us: float | str | None = None
    """Idle time that a link makes up for later, if switching is shaped."""
    shared_buffer_bytes: int | str | None = None
    """Packet memory of a switch that its ports share, instead of `buffer-bytes`."""
    slot_bytes: int | str | None = None
    """Minimum memory of a queued packet. The length of a full packet makes buffers, marks and queue
    lengths count packets, as in ns-2 and ns-3."""
    spray: Spray | None = None
    """Path choice."""
    switching: SwitchingSpec | None = None
    """Time at which forwarding begins."""
    trim_bytes: int | str | None = None
    """Length of a packet whose payload a full port has removed (NDP)."""
    trim_choice: TrimChoice | None = None
    """Packet that a full data queue trims."""
    unscheduled: PacketFate | None = None
    """Fate of an unscheduled packet that is cut off at a port without memory."""


@dataclass(frozen=True, kw_only=True)
class Link(PlanTable):
    """One link of a topology file."""

    between: tuple[str, str]
    """Its two ends, such as `["h0", "s0"]`."""
    gbps: float | str | None = None
    """Its rate in Gbit/s."""
    gbps_back: float | str | None = None
    """Its rate in Gbit/s from the second end to the first; `gbps` if left out."""
    propagation_ns: float | str | None = None
    """Its propagation in nanoseconds."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(PlanTable):
    """The `run` table: when a run ends, and what it records."""

    capture: str | None = None
    """Name of a file in the folder of results for captured packets, such as `run.pcapng`."""
    capture_hosts: Sequence[int | str] | None = None
    """Captured hosts by number or name; arbiters are numbered after hosts. All if left out."""
    capture_packets: int | None = None
    """Maximum number of captured packets. Then the capture ends, the run continues and the manifest
    reports it."""
    drain_us: float | str | None = None
    """Time after the last arrival at which the run ends with unfinished flows."""
    links: bool | None = None
    """Records each link at every sample, in `links.parquet`."""
    paranoid: bool | None = None
    """Encodes and decodes every packet, and compares."""
    paths: bool | None = None
    """Writes the paths of the data packets of each flow, in `paths.parquet`."""
    rates_us: float | str | None = None
    """Interval of the rates of flows in `rates.parquet`, and of windows and credits in
    `windows.parquet`; 0 for no such tables."""
    sample_us: float | str | None = None
    """Interval of samples of queues and links; 0 for none. If left out, the maximum of 10 us, eight
    packets of the slowest host and a twentieth of a round trip."""
    threads: int | None = None
    """Threads among which the network is divided, 1 to 256. Results are the same. By default a long
    run uses all cores if no others run beside it. Runs that cannot be divided use one thread, and
    `manifest.json` has the reason."""
    trace: str | None = None
    """Name of a file in the folder of results for a timeline, such as `run.perfetto-trace`."""
    trace_events: int | None = None
    """Maximum number of events, after which the timeline ends and the manifest reports it."""
    trace_from_us: float | str | None = None
    """Start of the timeline."""
    trace_hosts: Sequence[int | str] | None = None
    """Hosts of the timeline by number or name; arbiters are numbered after hosts. All if left
    out."""
    trace_switches: Sequence[int | str] | None = None
    """Switches of the timeline by number or name. All if left out."""
    trace_until_us: float | str | None = None
    """End of the timeline; that of the run if left out."""


@dataclass(frozen=True, kw_only=True)
class Measure(PlanTable):
    """The `measure` table: which flows the statistics of the summary count. Every flow is in the
    table of flows in any case."""

    finished_before_arrival: int | None = None
    """The summary counts only flows that finish before this arrival, from 1."""
    warmup_flows: WarmUp | None = None
    """Number of first flows that the summary leaves out, `mser-5`, or `auto`."""


@dataclass(frozen=True, kw_only=True)
class Deadlines(PlanTable):
    """The `deadlines` table: every flow has an exponentially distributed one (pHost §4.1)."""

    mean_us: float | str
    """Mean time from submission to deadline."""
    at_least_ideals: float | None = None
    """No deadline is shorter than this times the flow's ideal (`delivered`)."""


@dataclass(frozen=True, kw_only=True)
class Clocks(PlanTable):
    """The `clocks` table: how far the clocks of hosts start apart, and drift."""

    drift_ppm: float | None = None
    """Maximum drift of host clocks."""
    offset_us: float | str | None = None
    """Maximum difference of host clocks at the start."""


@dataclass(frozen=True, kw_only=True)
class LinkFault(PlanTable):
    """Faults of one link, in both directions, instead of those of every link."""

    link: str | int
    """The link: its ends, such as `h0-s3`, or its place in the topology."""
    delay_us: float | str | None = None
    """Longest time that packets and twins are held back."""
    duplicate: float | None = None
    """Probability that it delivers a packet twice."""
    loss: float | None = None
    """Probability that it loses a packet."""
    reorder: float | None = None
    """Probability that it holds a packet back."""


@dataclass(frozen=True, kw_only=True)
class Outage(PlanTable):
    """A failure of one link, host, switch or arbiter."""

    from_us: float | str
    """Start of the failure."""
    arbiter: int | None = None
    """The arbiter that crashes, by number: its link fails, and it restarts without state."""
    host: int | str | None = None
    """The host that fails, by name or number: all its links fail, and it remembers everything."""
    link: str | int | None = None
    """The link that fails: its ends, such as `h0-s3`, or its place in the topology."""
    switch: int | str | None = None
    """The switch that fails, by name or number."""
    until_us: float | str | None = None
    """Time of the repair; never if left out."""


@dataclass(frozen=True, kw_only=True)
class LinkChange(PlanTable):
    """A change of one link at a time. Keys that are left out stay as they were."""

    link: str | int
    """The link: its ends, such as `h0-s3`, or its place in the topology."""
    at_us: float | str
    """Time of the change."""
    gbps: float | str | None = None
    """Its rate in Gbit/s."""
    gbps_back: float | str | None = None
    """Its rate in Gbit/s from the second end to the first; `gbps` if left out."""
    propagation_ns: float | str | None = None
    """Its propagation in nanoseconds."""


@dataclass(frozen=True, kw_only=True)
class Faults(PlanTable):
    """The `faults` table: what links do to packets, and what fails when."""

    changes: Sequence[LinkChange | Table] | None = None
    """Changes of links: `{ link = "s0-s4", at-us = 50, gbps = 25, propagation-ns = 5000 }`.
    `gbps-back` is the rate from the second end to the first; `gbps` if left out."""
    delay_us: float | str | None = None
    """Maximum delay of delayed packets and duplicates."""
    duplicate: float | None = None
    """Probability that a link duplicates a packet."""
    links: Sequence[LinkFault | Table] | None = None
    """Faults of one link instead, in both directions: `{ link = "h0-s0", loss = 0.001 }`, also
    `duplicate`, `reorder` and `delay-us`."""
    loss: float | None = None
    """Probability that a link loses a packet."""
    outages: Sequence[Outage | Table] | None = None
    """Failures, by number or name: `{ link = "s0-s4", from-us = 10, until-us = 20 }` or `{ switch =
    1, from-us = 5 }`."""
    reorder: float | None = None
    """Probability that a link delays a packet."""
    rerouting_us: float | str | None = None
    """Time that a link must have been down, or up again, until switches route by it (detection and
    convergence)."""


@dataclass(frozen=True, kw_only=True)
class Load(PlanTable):
    """The `load` table: the full packets that loads count, whatever those of the transport are.
    With the same table transports of different headers have the same arrivals."""

    payload_bytes: int | str
    """Payload of a packet."""
    header_bytes: int | str
    """Its headers."""


@dataclass(frozen=True, kw_only=True)
class Names(PlanTable):
    """The `names` table: the user's names of hosts and switches, in their order."""

    hosts: Sequence[str] | None = None
    """Names of all hosts; `h0`, `h1`, ... if left out."""
    switches: Sequence[str] | None = None
    """Names of all switches; `s0`, `s1`, ... if left out."""


@dataclass(frozen=True, kw_only=True)
class LeafSpine(PlanTable):
    """Two tiers: every rack's switch is joined to every spine."""

    TAG = ("kind", "leaf-spine")
    racks: int
    """Racks, 1 or more."""
    hosts_per_rack: int
    """Hosts in each rack, 1 or more."""
    spines: int
    """Spine switches, 1 or more."""
    access_gbps: float | str | None = None
    """Rate of host links."""
    core_gbps: float | str | None = None
    """Rate of links between switches. Oversubscription is hosts_per_rack x access over spines x
    core."""
    host_ns: float | str | None = None
    """Processing in every host."""
    propagation_ns: float | str | None = None
    """Propagation of every link."""
    rails: int | None = None
    """Leaf switches of a rack, to each of which every host of it has a link."""
    switch_ns: float | str | None = None
    """Processing in every switch."""


@dataclass(frozen=True, kw_only=True)
class FatTree(PlanTable):
    """Three tiers of k-port switches, k^2/4 hosts in each pod."""

    TAG = ("kind", "fat-tree")
    k: int
    """Ports a switch, even, 2 or more."""
    access_gbps: float | str | None = None
    """Rate of host links."""
    core_gbps: float | str | None = None
    """Rate of links between switches."""
    host_ns: float | str | None = None
    """Processing in every host."""
    pods: int | None = None
    """Pods, 2 to k; k if left out."""
    propagation_ns: float | str | None = None
    """Propagation of every link."""
    switch_ns: float | str | None = None
    """Processing in every switch."""


@dataclass(frozen=True, kw_only=True)
class Star(PlanTable):
    """All hosts at one switch."""

    TAG = ("kind", "star")
    hosts: int
    """Hosts, 2 or more."""
    access_gbps: float | str | None = None
    """Rate of host links."""
    host_ns: float | str | None = None
    """Processing in every host."""
    propagation_ns: float | str | None = None
    """Propagation of every link."""
    switch_ns: float | str | None = None
    """Processing in every switch."""


@dataclass(frozen=True, kw_only=True)
class Dumbbell(PlanTable):
    """Two switches with hosts and one link between them."""

    TAG = ("kind", "dumbbell")
    hosts_per_side: int
    """Hosts on each side, 1 or more."""
    access_gbps: float | str | None = None
    """Rate of host links."""
    core_gbps: float | str | None = None
    """Rate of the link in the middle."""
    host_ns: float | str | None = None
    """Processing in every host."""
    propagation_ns: float | str | None = None
    """Propagation of every link."""
    switch_ns: float | str | None = None
    """Processing in every switch."""


@dataclass(frozen=True, kw_only=True)
class Dragonfly(PlanTable):
    """Groups of switches (Kim et al., ISCA 2008). Those of a group are all joined, and any two
    groups by links between their switches."""

    TAG = ("kind", "dragonfly")
    switches_per_group: int
    """Switches of a group, 1 or more (the paper's a)."""
    hosts_per_switch: int
    """Hosts at each switch, 1 or more (p)."""
    global_links: int
    """Links of each switch to other groups, 1 or more (h)."""
    access_gbps: float | str | None = None
    """Rate of host links."""
    core_gbps: float | str | None = None
    """Rate of links between switches."""
    groups: int | None = None
    """Groups, 2 to a h + 1, which is the default."""
    host_ns: float | str | None = None
    """Processing in every host."""
    propagation_ns: float | str | None = None
    """Propagation of every link."""
    switch_ns: float | str | None = None
    """Processing in every switch."""


@dataclass(frozen=True, kw_only=True)
class Pod(PlanTable):
    """A pod of a fat-tree of k-port switches: k/2 racks of k/2 hosts, and k/2 switches above."""

    TAG = ("kind", "pod")
    k: int
    """Ports a switch, even, 4 to 32."""
    cable_spread_ns: float | str | None = None
    """By how much the propagation of hosts' and arbiters' links is longer at most."""
    gbps: float | str | None = None
    """Rate of all links."""
    host_ns: float | str | None = None
    """Processing in every host."""
    propagation_ns: float | str | None = None
    """Propagation of every link; of hosts' and arbiters' the least."""
    switch_ns: float | str | None = None
    """Processing in every switch."""


@dataclass(frozen=True, kw_only=True)
class Links(PlanTable):
    """Any graph: hosts `h0`, `h1`, ... and switches `s0`, `s1`, ... joined by `links`."""

    TAG = ("kind", "links")
    hosts: int
    """Hosts, 2 or more."""
    switches: int
    """Switches, 1 or more, or 0 if hosts forward."""
    links: Sequence[Link | Table]
    """The links."""
    host_ns: float | str | None = None
    """Processing in every host."""
    hosts_forward: bool | None = None
    """Hosts with several links, or with a link to a host, forward packets for others."""
    switch_ns: float | str | None = None
    """Processing in every switch."""


@dataclass(frozen=True, kw_only=True)
class TopologyFile(PlanTable):
    """A file with a table of kind `links`, relative to the plan."""

    TAG = ("kind", "file")
    file: str | PathLike[str]
    """The file."""
    hosts_forward: bool | None = None
    """Hosts with several links, or with a link to a host, forward packets for others."""


@dataclass(frozen=True, kw_only=True)
class AllToAll(PlanTable):
    """Every host sends to all others: at a load, every ordered pair is equally likely."""

    TAG = ("pattern", "all-to-all")
    sizes: Sizes
    """Lengths of messages."""
    flows: int | None = None
    """Stop after this many flows."""
    hosts: Hosts | None = None
    """Participating hosts; all if left out."""
    load: float | None = None
    """Offered load of every host, headers included, above 0 and at most 2: a share of the rate at
    which the slowest host sends. Without a load all hosts send at once, in rounds."""
    off_us: float | str | None = None
    """Mean time in which it then sends nothing. Both are drawn from exponential laws."""
    on_us: float | str | None = None
    """Mean time in which a host sends; with `load` and `off-us`. The load is that of all time."""
    period_us: float | str | None = None
    """Time from one round to the next; needed for more than one."""
    rounds: int | None = None
    """Number of rounds without a load; 1 if left out."""
    start_us: float | str | None = None
    """Start of the first round, or of arrivals; 0 if left out."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Permutation(PlanTable):
    """Every host sends to one other and receives from one."""

    TAG = ("pattern", "permutation")
    sizes: Sizes
    """Lengths of messages."""
    flows: int | None = None
    """Stop after this many flows."""
    hosts: Hosts | None = None
    """Participating hosts; all if left out."""
    load: float | None = None
    """Offered load of every host, headers included, above 0 and at most 2: a share of the rate at
    which the slowest host sends. Without a load all hosts send at once, in rounds."""
    off_us: float | str | None = None
    """Mean time in which it then sends nothing. Both are drawn from exponential laws."""
    on_us: float | str | None = None
    """Mean time in which a host sends; with `load` and `off-us`. The load is that of all time."""
    period_us: float | str | None = None
    """Time from one round to the next; needed for more than one."""
    rounds: int | None = None
    """Number of rounds without a load; 1 if left out."""
    start_us: float | str | None = None
    """Start of the first round, or of arrivals; 0 if left out."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Stride(PlanTable):
    """Every host sends to the one that is `stride` places on."""

    TAG = ("pattern", "stride")
    stride: int
    """Distance of partners: host `i` of `n` sends to host `i + stride`, around after `n - 1`."""
    sizes: Sizes
    """Lengths of messages."""
    flows: int | None = None
    """Stop after this many flows."""
    hosts: Hosts | None = None
    """Participating hosts; all if left out."""
    load: float | None = None
    """Offered load of every host, headers included, above 0 and at most 2: a share of the rate at
    which the slowest host sends. Without a load all hosts send at once, in rounds."""
    off_us: float | str | None = None
    """Mean time in which it then sends nothing. Both are drawn from exponential laws."""
    on_us: float | str | None = None
    """Mean time in which a host sends; with `load` and `off-us`. The load is that of all time."""
    period_us: float | str | None = None
    """Time from one round to the next; needed for more than one."""
    rounds: int | None = None
    """Number of rounds without a load; 1 if left out."""
    start_us: float | str | None = None
    """Start of the first round, or of arrivals; 0 if left out."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Bisection(PlanTable):
    """Every host sends to one of the other half, and receives from one there."""

    TAG = ("pattern", "bisection")
    sizes: Sizes
    """Lengths of messages."""
    flows: int | None = None
    """Stop after this many flows."""
    hosts: Hosts | None = None
    """Participating hosts; all if left out."""
    load: float | None = None
    """Offered load of every host, headers included, above 0 and at most 2: a share of the rate at
    which the slowest host sends. Without a load all hosts send at once, in rounds."""
    off_us: float | str | None = None
    """Mean time in which it then sends nothing. Both are drawn from exponential laws."""
    on_us: float | str | None = None
    """Mean time in which a host sends; with `load` and `off-us`. The load is that of all time."""
    period_us: float | str | None = None
    """Time from one round to the next; needed for more than one."""
    rounds: int | None = None
    """Number of rounds without a load; 1 if left out."""
    start_us: float | str | None = None
    """Start of the first round, or of arrivals; 0 if left out."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Staggered(PlanTable):
    """Messages are sent to the same rack, the same pod or farther with given probabilities."""

    TAG = ("pattern", "staggered")
    rack_share: float
    """Probability that a message is sent to a host of the same rack."""
    sizes: Sizes
    """Lengths of messages."""
    flows: int | None = None
    """Stop after this many flows."""
    hosts: Hosts | None = None
    """Participating hosts; all if left out."""
    hosts_per_pod: int | None = None
    """Number of hosts that share a pod; that of the topology if left out."""
    hosts_per_rack: int | None = None
    """Number of hosts that share a rack; that of the topology if left out."""
    load: float | None = None
    """Offered load of every host, headers included, above 0 and at most 2: a share of the rate at
    which the slowest host sends. Without a load all hosts send at once, in rounds."""
    off_us: float | str | None = None
    """Mean time in which it then sends nothing. Both are drawn from exponential laws."""
    on_us: float | str | None = None
    """Mean time in which a host sends; with `load` and `off-us`. The load is that of all time."""
    period_us: float | str | None = None
    """Time from one round to the next; needed for more than one."""
    pod_share: float | None = None
    """Probability that it is sent to another rack of the same pod; 0 if left out. All others are
    sent to other pods, or other racks if there are no pods."""
    rounds: int | None = None
    """Number of rounds without a load; 1 if left out."""
    start_us: float | str | None = None
    """Start of the first round, or of arrivals; 0 if left out."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class RackLocal(PlanTable):
    """Poisson arrivals with separate loads within racks and between them."""

    TAG = ("pattern", "rack-local")
    sizes: Sizes
    """Message sizes."""
    local_load: float
    """Load of every host on hosts of its rack, headers included, 0 to 2: a share of the rate at
    which the slowest host sends."""
    remote_load: float
    """Load of every host on hosts of other racks, headers included, 0 to 2: a share of the rate at
    which the slowest host sends."""
    flows: int | None = None
    """Stop after this many flows."""
    hosts_per_rack: int | None = None
    """Number of hosts of a rack; that of the topology if left out."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class IncastOverlay(PlanTable):
    """All-to-all plus incasts that arrive as a Poisson process."""

    TAG = ("pattern", "incast-overlay")
    sizes: Sizes
    """Message sizes of the all-to-all."""
    load: float
    """Load of the all-to-all alone, headers included, above 0 and at most 2: a share of the rate at
    which the slowest host sends."""
    fan_in: int | None = None
    """Senders of an incast."""
    flows: int | None = None
    """Stop after this many flows, incasts included."""
    incast_bytes: int | str | None = None
    """Size of every flow of an incast; by default 86 packets (the dcPIM study's 128 KB)."""
    incast_load: float | None = None
    """Load of the incasts on top of that, as a fraction of all hosts' capacity."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Incast(PlanTable):
    """Many senders to one receiver, all at once."""

    TAG = ("pattern", "incast")
    fan: int
    """Number of senders (incast) or receivers (outcast); drawn anew in every round."""
    flow_bytes: int | str | None = None
    """Size of every flow. Either this or `total-bytes`."""
    flows: int | None = None
    """Stop after this many flows."""
    hub: int | str | None = None
    """The receiver (incast) or sender (outcast); drawn anew in every round if left out."""
    peers: Hosts | None = None
    """The hosts among which the senders (incast) or receivers (outcast) are drawn; all if left out.
    The hub is never among them."""
    period_us: float | str | None = None
    """Time from one round to the next; needed for more than one."""
    rounds: int | None = None
    """Number of rounds."""
    start_us: float | str | None = None
    """Start of the first round."""
    total_bytes: int | str | None = None
    """Size of all flows of a round together. Either this or `flow-bytes`."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Outcast(PlanTable):
    """One sender to many receivers, all at once."""

    TAG = ("pattern", "outcast")
    fan: int
    """Number of senders (incast) or receivers (outcast); drawn anew in every round."""
    flow_bytes: int | str | None = None
    """Size of every flow. Either this or `total-bytes`."""
    flows: int | None = None
    """Stop after this many flows."""
    hub: int | str | None = None
    """The receiver (incast) or sender (outcast); drawn anew in every round if left out."""
    peers: Hosts | None = None
    """The hosts among which the senders (incast) or receivers (outcast) are drawn; all if left out.
    The hub is never among them."""
    period_us: float | str | None = None
    """Time from one round to the next; needed for more than one."""
    rounds: int | None = None
    """Number of rounds."""
    start_us: float | str | None = None
    """Start of the first round."""
    total_bytes: int | str | None = None
    """Size of all flows of a round together. Either this or `flow-bytes`."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Shuffle(PlanTable):
    """Every sender to every receiver, all at once."""

    TAG = ("pattern", "shuffle")
    senders: Hosts
    """Sending hosts."""
    receivers: Hosts
    """Receiving hosts."""
    flow_bytes: int | str
    """Size of every flow."""
    flows: int | None = None
    """Stop after this many flows."""
    period_us: float | str | None = None
    """Time from one round to the next; needed for more than one."""
    rounds: int | None = None
    """Number of rounds."""
    start_us: float | str | None = None
    """Start of the first round."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Dense(PlanTable):
    """Every ordered pair of hosts, all at once."""

    TAG = ("pattern", "dense")
    flow_bytes: int | str
    """Size of every flow."""
    flows: int | None = None
    """Stop after this many flows."""
    start_us: float | str | None = None
    """Start of the flows."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Rpc(PlanTable):
    """Requests and responses: calls of clients to servers."""

    TAG = ("pattern", "rpc")
    requests: Sizes
    """Lengths of requests."""
    responses: Sizes
    """Lengths of responses."""
    calls: int
    """Number of calls of each client."""
    clients: Hosts | None = None
    """Calling hosts; all if left out."""
    concurrency: int | None = None
    """Number of calls that a client has in flight at a time."""
    fan: int | None = None
    """Number of servers of a call, which ends with the last response."""
    interval_us: float | str | None = None
    """Time from one call of a client to the next, whether or not it has ended; instead of
    `think-us` and `concurrency`."""
    servers: Hosts | None = None
    """Called hosts, drawn again for each call and never the client itself; all if left out."""
    service_us: float | str | None = None
    """Time from a request to its response at a server."""
    start_us: float | str | None = None
    """Start of all clients."""
    think_us: float | str | None = None
    """Time from the end of a call to the next one of the client."""
    times: TimeDistribution | None = None
    """The law of `think-us`, `interval-us` and `service-us`, which are means."""


@dataclass(frozen=True, kw_only=True)
class Collective(PlanTable):
    """A collective operation, whose flows wait for each other."""

    TAG = ("pattern", "collective")
    operation: Operation
    """Operation that the collective carries out."""
    algorithm: Algorithm | None = None
    """Algorithm by which the data move; the first that the operation has if left out."""
    chunks: int | None = None
    """Number of chunks into which a ring, a tree or a chain cuts the data that a host sends."""
    compute_us: float | str | None = None
    """Time that a host computes after the flows that a flow waits for, before it sends the flow."""
    group_size: int | None = None
    """Number of hosts in each of several groups, which do the operation at once; one group of all
    if left out."""
    group_step: int | None = None
    """Distance of the hosts of a group among `hosts`; 1 if left out."""
    hosts: Hosts | None = None
    """Participating hosts; all if left out."""
    matrix: Sequence[Sequence[int]] | None = None
    """Of an all-to-all-v, instead of `vector-bytes`: bytes by sender and receiver, row by row."""
    pause_us: float | str | None = None
    """Pause of a host between rounds."""
    rounds: int | None = None
    """Number of rounds, each after the one before."""
    skew: float | None = None
    """Of an all-to-all-v with `vector-bytes`: Zipf exponent of the receivers' popularity, 0 to
    10."""
    start_us: float | str | None = None
    """Start of the first round."""
    vector_bytes: int | str | None = None
    """The whole vector: the data of every host at the start (all-reduce, reduce-scatter,
    all-to-all) or at the end (all-reduce, all-gather, broadcast, pipeline). Of an all-to-all it
    includes the host's part for itself. Of an all-to-all-v with a skew it is the data that every
    host sends."""


@dataclass(frozen=True, kw_only=True)
class SkewedAllToAll(PlanTable):
    """An all-to-all whose receivers differ in popularity, as phases at fixed instants."""

    TAG = ("pattern", "skewed-all-to-all")
    host_bytes: int | str
    """Bytes that every host sends in a round."""
    skew: float
    """Zipf exponent of the receivers' popularity, 0 (all alike) to 10."""
    flows: int | None = None
    """Stop after this many flows."""
    hosts: Hosts | None = None
    """Participating hosts; all if left out."""
    period_us: float | str | None = None
    """Time from one round to the next; needed for more than one."""
    rounds: int | None = None
    """Number of rounds."""
    start_us: float | str | None = None
    """Start of the first round."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Bimodal(PlanTable):
    """Hosts that alternate between a high and a low rate, independently of each other."""

    TAG = ("pattern", "bimodal")
    sizes: Sizes
    """Message sizes."""
    load: float
    """Mean load of every host, headers included, above 0 and at most 2: a share of the rate at
    which the slowest host sends. Receivers are uniformly random."""
    on_us: float | str
    """Mean length of a period that is on."""
    off_us: float | str
    """Mean length of a period that is off."""
    flows: int | None = None
    """Stop after this many flows."""
    hosts: Hosts | None = None
    """Participating hosts; all if left out."""
    off_load: float | None = None
    """Load in periods that are off, at most `load`. That in periods that are on follows from it."""
    periods: PeriodLaw | None = None
    """Law of the lengths of periods."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Trace(PlanTable):
    """Flows from a file."""

    TAG = ("pattern", "trace")
    file: str | PathLike[str]
    """The file."""
    columns: Mapping[str, str] | None = None
    """The file's names of columns, such as `{ src = "from", arrival_us = "start" }`. Other columns
    of the file are then left out."""
    flows: int | None = None
    """Stop after this many flows."""
    format: Format | None = None
    """Its format; by its name or contents if left out."""
    groups: str | PathLike[str] | None = None
    """The file with the groups of ranks that a Chakra trace names: lists of ranks by name in JSON,
    the format of ASTRA-sim. If left out, `comm_group.json` next to the trace, if there is one."""
    sort: bool | None = None
    """Sort flows that are not in arrival order instead of rejecting the file."""
    until_us: float | str | None = None
    """Stop before this instant."""
    vector_bytes: int | str | None = None
    """The vector of an MSCCL algorithm, whose file has no sizes: all that a host has at the start
    or at the end, the larger of the two."""


@dataclass(frozen=True, kw_only=True)
class Mix(PlanTable):
    """Several workloads at once."""

    TAG = ("pattern", "mix")
    parts: Sequence[PlanTable | Table]
    """The workloads, which are merged in arrival order."""
    flows: int | None = None
    """Stop after this many flows."""
    until_us: float | str | None = None
    """Stop before this instant."""


@dataclass(frozen=True, kw_only=True)
class Phases(PlanTable):
    """Several workloads one after the other, at each host."""

    TAG = ("pattern", "phases")
    parts: Sequence[PlanTable | Table]
    """The phases in their order; each needs an end. Their times count from the start of the phase
    at a host."""
    pause_us: float | str | None = None
    """Pause of a host between two phases."""
    rounds: int | None = None
    """Number of times that hosts run all phases."""

"""The transports that a plan may name: every key of its table is a field.

An omitted key has the value of the preset. Made by `python -m tools.generate`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from rampmeter.plan.base import Transport
from rampmeter.text.toml import Table

__all__ = [
    "Capton",
    "Cosy",
    "DcPim",
    "Dctcp",
    "Fastpass",
    "Fastpod",
    "Homa",
    "HomaAeolus",
    "Hpcc",
    "Hyline",
    "Ideal",
    "Ndp",
    "PFabric",
    "PHost",
    "Pias",
    "Python",
    "Sird",
    "Tcp",
]


@dataclass(frozen=True, kw_only=True, repr=False)
class Ideal(Transport):
    """Lower bound: a clairvoyant scheduler of all links, without a protocol.

    - `preset`: Preset of the values of omitted keys: `paper` (the default), `reference`.
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact` (paper),
      `full` (reference). Source: the simulators of dcPIM and pHost, which charge full packets.
    - `core_model`: Capacity of the network between racks. Values: `wide`, `core`; default: `wide`.
      Source: Rampmeter (the papers' cores are wide); CAPTON §V has a narrow one.
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/ideal.md.
    """

    name: str = field(default="ideal", init=False)
    preset: Literal["paper", "reference"] | None = None
    padding: Literal["exact", "full"] | None = None
    core_model: Literal["wide", "core"] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class DcPim(Transport):
    """Rounds of parallel iterative matching between hosts, then tokens (dcPIM).

    - `preset`: Preset of the values of omitted keys: `paper` (the default), `reference`.
    - `matching_rounds`: Matching rounds, r. Values: 1 to 32; default: 4. Derivation of
      `matching_rounds`, `channels`, `beta`: r = k = 4, beta = 1.3 (§4.1). Source: dcPIM §3.1, 4 in
      §4.1.
    - `channels`: Channels of a host in each direction, k. Values: 1 to 64; default: 4. Derivation
      of `matching_rounds`, `channels`, `beta`: r = k = 4, beta = 1.3 (§4.1). Source: dcPIM §3.4, 4
      in §4.1.
    - `beta`: Slack of a stage, beta. Values: 0.1 to 100; default: 1.3. Derivation of
      `matching_rounds`, `channels`, `beta`: r = k = 4, beta = 1.3 (§4.1). Source: dcPIM §3.3, 1.3
      in §4.1.
    - `channel_packets_min`: Full packets that a phase holds for each channel, at least: stages are
      longer than beta requires if round trips are short and links slow. Values: 1 to 1000; default:
      4 (paper), 1 (reference). Derivation: a phase holds 4 packets for each channel, or more.
      Source: Rampmeter (phases of slow or far networks would be too short).
    - `fct_round`: True if the first round prefers the smallest flows (§3.5). Values: true or false;
      default: true. Source: dcPIM §3.5.
    - `short_flow_packets`: Largest flow, in packets, that is sent without matching; default: one
      BDP. Values: at least 0. Derivation: one BDP in full packets: 49 in the paper's network.
      Source: dcPIM §3.5 (one BDP).
    - `phase_stages`: Stages of a phase. Values: `paper`, `overlapped`; default: `paper` (paper),
      `overlapped` (reference). Source: dcPIM §3.3, figure 2; the authors' simulator has one less.
    - `stage_check`: Treatment of messages out of their round. Values: `strict`, `local`; default:
      `local` (paper), `strict` (reference). Source: dcPIM §3.3; the authors' simulator.
    - `idle_capacity`: Use of the capacity of channels that no matching fills. Values: `unused`,
      `prompt`; default: `unused` (paper), `prompt` (reference). Source: the authors' simulator; the
      paper has no such use.
    - `demand`: Demand from which requests are derived. Values: `source`, `smallest-flow`; default:
      `source` (paper), `smallest-flow` (reference). Source: dcPIM §3.4; the authors' simulator
      counts one flow.
    - `notification`: Opening and end of flows: by packets of their own, or by the first and last
      data. Values: `explicit`, `implicit`; default: `explicit` (paper), `implicit` (reference).
      Source: dcPIM §3.2; the authors' simulator has no answers.
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact` (paper),
      `full` (reference). Source: `exact` as in real networks; the simulators of dcPIM and pHost
      send full packets.
    - `data_priority`: Priorities of data packets. Values: `token`, `size`; default: `token`
      (paper), `size` (reference). Source: dcPIM §3.4; by size in the authors' simulator.
    - `token_window`: Counting of tokens in flight. Values: `outstanding`, `number`; default:
      `outstanding` (paper), `number` (reference). Source: dcPIM §3.2; the authors' simulator.
    - `token_order`: Service at the sender. Values: `rank`, `rank-and-remaining`; default: `rank`
      (paper), `rank-and-remaining` (reference). Source: dcPIM §3.2; the authors' simulator.
    - `short_flow_pacing`: Reaction to announced short flows. Values: `ignore`, `withhold`; default:
      `ignore` (paper), `withhold` (reference). Source: the authors' simulator; the paper has no
      such reaction.
    - `grace_packets`: Time for which tokens are valid after their phase, beyond half a control
      round trip, in full packet times per channel of a host. Values: 0 to 1000; default: 0 (paper),
      1 (reference). Source: the authors' simulator; dcPIM §3.2 has half a control round trip.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: IPv4 and a transport header of 20 B, as in the simulators of dcPIM and pHost.
    - `attempts_max`: Unanswered repetitions after which a flow is reported as failed. Values: 1 to
      1000; default: 24. Source: Rampmeter (hosts must report failures, which the papers leave out).
    - `r`: The paper's name of `matching_rounds`.
    - `k`: The paper's name of `channels`.
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/dcpim.md.
    """

    SYMBOLS: ClassVar[Mapping[str, str]] = {"r": "matching_rounds", "k": "channels"}

    name: str = field(default="dcpim", init=False)
    preset: Literal["paper", "reference"] | None = None
    matching_rounds: int | None = None
    channels: int | None = None
    beta: float | None = None
    channel_packets_min: int | None = None
    fct_round: bool | None = None
    short_flow_packets: int | None = None
    phase_stages: Literal["paper", "overlapped"] | None = None
    stage_check: Literal["strict", "local"] | None = None
    idle_capacity: Literal["unused", "prompt"] | None = None
    demand: Literal["source", "smallest-flow"] | None = None
    notification: Literal["explicit", "implicit"] | None = None
    padding: Literal["exact", "full"] | None = None
    data_priority: Literal["token", "size"] | None = None
    token_window: Literal["outstanding", "number"] | None = None
    token_order: Literal["rank", "rank-and-remaining"] | None = None
    short_flow_pacing: Literal["ignore", "withhold"] | None = None
    grace_packets: int | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    attempts_max: int | None = None
    r: int | None = None
    k: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class PHost(Transport):
    """Tokens a packet from the destination, free tokens for first packets (pHost).

    - `preset`: Preset of the values of omitted keys: `paper` (the default), `reference`.
    - `free_tokens`: Free tokens of a flow; default: one more than a bandwidth-delay product has.
      Values: 0 to 1000000. Derivation: a BDP in packets, and one: 8 in the study's network. Source:
      pHost §3.2 (one BDP); 8 in the study's network (§4.1).
    - `free_tokens_for`: Flows that get free tokens. Values: `every-flow`, `short-flows`; default:
      `every-flow` (paper), `short-flows` (reference). Source: pHost §3.2; the authors' simulator
      gives them to short flows alone.
    - `token_lifetime`: Lifetime of a token at its source, in times of a full packet. Default: 1.5,
      and between real hosts at least a control round trip. Values: 0.001 to 10000. Derivation: 1.5
      packet times (§3.2); between real hosts at least a control round trip. Source: pHost §3.2 (1.5
      packet times).
    - `downgrade_on`: Tokens of a flow that count towards its downgrading. Values: `expired`,
      `unanswered`; default: `expired` (paper), `unanswered` (reference). Source: pHost §3.3,
      algorithm 2; the authors' simulator.
    - `downgrade_threshold`: Most expired tokens of a flow that is not downgraded, or unanswered
      tokens at which it is; default: as many as free tokens. Values: 1 to 1000000. Derivation: as
      many as free tokens. Source: pHost §3.3.
    - `downgrade_packets`: Time for which a flow stays downgraded, in full packet times after its
      last token or its downgrading. Default: three times as many as free tokens, and one. Values: 1
      to 1000000. Derivation: 3 BDP + 4: 25. Source: pHost §3.3; the number is that of the authors'
      simulator.
    - `retransmit_packets`: Time from a flow's last token to the next request for its missing
      packets, in full packet times. Default: one more than free tokens. Values: 1 to 1000000.
      Derivation: BDP + 2: 9. Source: the authors' simulator; pHost §3 has a timeout without a
      number.
    - `policy`: Flow or tenant that both ends serve first. Values: `srpt`, `edf`, `tenant-fair`;
      default: `srpt`. Source: pHost §3 (shortest first, deadlines, or tenants).
    - `data_priority`: Priorities of data packets. Values: `size`, `single`; default: `size`
      (paper), `single` (reference). Source: pHost §3; one for all in the authors' simulator.
    - `free_token_repair`: Time for which a destination waits for packets of free tokens before it
      requests them. Values: `measured`, `round-trip`, `twice-pace`; default: `measured` (paper),
      `twice-pace` (reference). Source: Rampmeter; the authors' simulator leaves out the round trip.
    - `free_token_expiry`: Expiry of free tokens at their source. Default: never, and between real
      hosts by pace. Values: `never`, `pace`; default: derived (paper), `pace` (reference). Source:
      the authors' simulator; the paper has no such expiry.
    - `token_suppression`: Suppression of tokens by announced free tokens. Values: `ignore`,
      `until-data`, `withhold`; default: `until-data` (paper), `withhold` (reference). Source: the
      authors' simulator; the paper does not state it.
    - `wake_event`: Event that wakes a destination without a flow to serve. Values: `on-data`,
      `on-clock`; default: `on-data` (paper), `on-clock` (reference). Source: the authors'
      simulator; the paper does not state it.
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact` (paper),
      `full` (reference). Source: `exact` as in real networks; the simulators of dcPIM and pHost
      send full packets.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: IPv4 and a transport header of 20 B, as in the simulators of dcPIM and pHost.
    - `attempts_max`: Unanswered repetitions after which a flow is reported as failed. Values: 1 to
      1000; default: 24. Source: Rampmeter (hosts must report failures, which the papers leave out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/phost.md.
    """

    name: str = field(default="phost", init=False)
    preset: Literal["paper", "reference"] | None = None
    free_tokens: int | None = None
    free_tokens_for: Literal["every-flow", "short-flows"] | None = None
    token_lifetime: float | None = None
    downgrade_on: Literal["expired", "unanswered"] | None = None
    downgrade_threshold: int | None = None
    downgrade_packets: int | None = None
    retransmit_packets: int | None = None
    policy: Literal["srpt", "edf", "tenant-fair"] | None = None
    data_priority: Literal["size", "single"] | None = None
    free_token_repair: Literal["measured", "round-trip", "twice-pace"] | None = None
    free_token_expiry: Literal["never", "pace"] | None = None
    token_suppression: Literal["ignore", "until-data", "withhold"] | None = None
    wake_event: Literal["on-data", "on-clock"] | None = None
    padding: Literal["exact", "full"] | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class PFabric(Transport):
    """Ports that order and drop by remaining size, hosts at line rate (pFabric).

    - `preset`: Preset of the values of omitted keys: `paper` (the default), `reference`, `ns-2`.
    - `window_initial`: First window in packets; default: one bandwidth-delay product. Values: 1 to
      1000000; default: derived (paper), 12 (reference), 70 (ns-2). Derivation: one BDP in packets:
      the paper's 12 at 10 Gbit/s (§5.1). Source: pFabric §5.1 (one BDP).
    - `window_max`: Maximum window in packets; default: five quarters of the first. Values: 1 to
      1000000; default: derived (paper), 15 (reference), 141 (ns-2). Derivation: five quarters of
      `window-initial`. Source: the simulators of pFabric and pHost (five quarters of the first
      window).
    - `rto_us`: Retransmission timeout; default: three round trips. Unit: µs; values: 0.1 to
      1000000; default: derived (paper), 45.0 (reference), 255.6 (ns-2). Derivation: three round
      trips: the paper's 45 us (§5.1). Source: pFabric §5.1 (three round trips, 45 us there).
    - `duplicate_acks`: Packets that must have arrived after a missing one for it to be lost; if
      left out, only timeouts find losses (§4.3). Values: 1 to 60; default: derived (paper), derived
      (reference), 3 (ns-2). Source: the ns-2 scripts of CAPTON's study, whose flows have one path.
    - `starvation_timeouts`: Consecutive timeouts after which a flow starves. Values: 1 to 1000000;
      default: 5. Source: pFabric §4.3 (five).
    - `starvation_reaction`: Reaction of a starving flow. Values: `probe`, `persist`; default:
      `probe` (paper), `persist` (reference), `probe` (ns-2). Source: pFabric §4.3; the simulator of
      pHost retransmits on.
    - `probe_priority`: The priority of its probes. Values: `first`, `flow`; default: `first`
      (paper), `first` (reference), `flow` (ns-2). Source: Rampmeter (the paper does not give the
      priority of probes).
    - `fabric_model`: Ports, paths and interfaces that it needs; keys of the fabric have precedence.
      Values: `paper`, `phost`, `capton`; default: `paper` (paper), `phost` (reference), `capton`
      (ns-2). Source: pFabric §5.1; the simulators of pHost and of CAPTON's study.
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact` (paper),
      `full` (reference), `full` (ns-2). Source: `exact` as in real networks; the simulators of
      dcPIM and pHost send full packets.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: IPv4 and a transport header of 20 B, as in the simulators of dcPIM and pHost.
    - `attempts_max`: Timeouts in a row after which a flow is reported as failed. Values: 1 to
      1000000; default: 400 (paper), 50000 (reference), 400 (ns-2). Source: Rampmeter (hosts must
      report failures, which the papers leave out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/pfabric.md.
    """

    name: str = field(default="pfabric", init=False)
    preset: Literal["paper", "reference", "ns-2"] | None = None
    window_initial: int | None = None
    window_max: int | None = None
    rto_us: float | str | None = None
    duplicate_acks: int | None = None
    starvation_timeouts: int | None = None
    starvation_reaction: Literal["probe", "persist"] | None = None
    probe_priority: Literal["first", "flow"] | None = None
    fabric_model: Literal["paper", "phost", "capton"] | None = None
    padding: Literal["exact", "full"] | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Fastpass(Transport):
    """An arbiter that grants time slots and paths (Fastpass).

    - `preset`: Preset of the values of omitted keys: `paper` (the default), `reference`.
    - `allocation_unit`: Unit of the allocation of links. Values: `slots`, `epochs`; default:
      `slots` (paper), `epochs` (reference). Source: Fastpass §3; epochs are those of pHost's study
      (§4.1 there).
    - `arbiters`: Arbiters: one, or one and its standby. Values: 1 to 2; default: 2 (paper), 1
      (reference). Source: Fastpass (a standby).
    - `batch`: Slots that are allocated together. Values: 1 to 16; default: 16. Derivation: 16
      slots. Source: Fastpass (16 slots in its implementation).
    - `compute_us`: Computation time of each batch; default: none. It must be shorter than a batch.
      Unit: µs; values: 0 to 1000000. Source: Rampmeter (Fastpass measures the arbiter's time, and
      pHost's study has none).
    - `slot_length`: Length of a slot, in times of a full packet: capacity for acknowledgements and
      requests next to a full packet. Values: 1 to 100; default: 1.05. Derivation: 1.05: a full
      packet and 5 % for acknowledgements and requests. Source: Rampmeter (acknowledgements and
      requests take 3.5 % of the traffic).
    - `epoch_packets`: Packets that a host may send in an epoch. Values: 1 to 16; default: 8.
      Source: pHost's study (8 packets).
    - `epoch_length`: Length of an epoch, in times of a full packet. Values: 0.5 to 1000; default:
      8.5. Source: pHost's study (8.5 packet times).
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact` (paper),
      `full` (reference). Source: `exact` as in real networks; the simulators of dcPIM and pHost
      send full packets.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: IPv4 and a transport header of 20 B, as in the simulators of dcPIM and pHost.
    - `attempts_max`: Unanswered repetitions after which a flow is reported as failed. Values: 1 to
      1000; default: 24. Source: Rampmeter (hosts must report failures, which the papers leave out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/fastpass.md.
    """

    name: str = field(default="fastpass", init=False)
    preset: Literal["paper", "reference"] | None = None
    allocation_unit: Literal["slots", "epochs"] | None = None
    arbiters: int | None = None
    batch: int | None = None
    compute_us: float | str | None = None
    slot_length: float | None = None
    epoch_packets: int | None = None
    epoch_length: float | None = None
    padding: Literal["exact", "full"] | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Cosy(Transport):
    """Delivery within a bound, or a reject (cosy).

    - `preset`: Preset of the values of omitted keys: `paper` (the default), `rsvp`.
    - `slots`: Virtual links of a link, and slots of a host each way (K, §3.3). Values: 1 to 256;
      default: 8 (paper), 1 (rsvp). Source: cosy §3.3.
    - `slots_per_message`: Maximum number of slots that one message may have; default: all of them.
      Values: 1 to 256. Source: cosy §3.3 (all that are free).
    - `hold_us`: Time for which a receiver holds a request that it cannot serve (appendix A,
      delta_E). Default: the time of a message of 128 KB in a single slot. Unit: µs; values: 0 to
      1000000000; default: derived (paper), 0.0 (rsvp). Source: cosy, appendix A.
    - `choices`: Number of requests, chosen at random, of which the one that has waited longest gets
      the next rsvp (§5.1: two). Values: 1 to 1000; default: 2. Source: cosy §5.1 (two).
    - `control_share`: Share of a link that is reserved for control packets. Values: 0 to 0.9;
      default: 0.05. Source: Rampmeter (the paper does not count control packets).
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact`. Source:
      `exact` as in real networks; the simulators of dcPIM and pHost send full packets.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: IPv4 and a transport header of 20 B, as in the simulators of dcPIM and pHost.
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `best_effort`: The transport of all tenants but the first: DcPim or PHost.
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/cosy.md.
    """

    name: str = field(default="cosy", init=False)
    preset: Literal["paper", "rsvp"] | None = None
    slots: int | None = None
    slots_per_message: int | None = None
    hold_us: float | str | None = None
    choices: int | None = None
    control_share: float | None = None
    padding: Literal["exact", "full"] | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None
    best_effort: Transport | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Tcp(Transport):
    """Connections of hosts: Cubic or NewReno (RFC 9293, 9438, 6582).

    - `preset`: Preset of the values of omitted keys: `cubic` (the default), `new-reno`,
      `reference`.
    - `congestion_control`: The congestion control. Values: `new-reno`, `cubic`, `dctcp`; default:
      `cubic` (cubic), `new-reno` (new-reno), `cubic` (reference). Source: RFC 9438 (Cubic), RFC
      8257 (DCTCP), RFC 5681 and 6582 (NewReno).
    - `connections`: Messages that share a connection. Values: `per-message`, `persistent`, `pool`;
      default: `per-message`. Source: Rampmeter; the ns-2 scripts of CAPTON's study keep connections
      open.
    - `handshake`: True if connections are opened by a handshake. Otherwise they are open when the
      run starts. Values: true or false; default: true. Source: RFC 9293 §3.5; the ns-2 scripts open
      connections beforehand.
    - `window_initial`: First window in segments. Values: 1 to 100000; default: 10. Source: RFC 6928
      (10 segments); 70 in CAPTON's study.
    - `window_max`: Maximum window in segments. Values: 1 to 100000; default: 100000. Source:
      Rampmeter (as large as the receiver's buffer); 141 in CAPTON's study.
    - `slow_start_exit`: Event that ends slow start before the first loss; Cubic only. Values:
      `never`, `hystart-pp`, `ack-train`; default: `never` (cubic), `never` (new-reno), `ack-train`
      (reference). Source: HyStart of Linux and ns-3; RFC 9406 for HyStart++.
    - `fast_initial_growth`: True if Cubic's window grows by at least 5 % a round trip before the
      first loss, as in Linux and ns-3. Values: true or false; default: true. Source: Linux and
      ns-3; RFC 9438 has no such rule.
    - `reno_friendly`: True if Cubic's window is at least that of NewReno (RFC 9438 §4.3). Values:
      true or false; default: true (cubic), true (new-reno), false (reference). Source: RFC 9438
      §4.3.
    - `reno_catch_up`: True if the estimate of NewReno's window grows by a segment a round trip
      beyond the window before the loss (RFC 9438 §4.3). Linux has 9/17. Values: true or false;
      default: true. Source: RFC 9438 §4.3.
    - `rtt_resolution`: Measurement of round trips. Values: `exact`, `milliseconds`; default:
      `exact` (cubic), `exact` (new-reno), `milliseconds` (reference). Source: Rampmeter; whole
      microseconds in ns-3.
    - `loss_detection`: Detection of losses. Values: `rack-tlp`, `dup-ack`; default: `rack-tlp`
      (cubic), `rack-tlp` (new-reno), `dup-ack` (reference). Source: RFC 8985 (RACK-TLP); RFC 6675
      for duplicate acknowledgements.
    - `duplicate_acks`: Segments that must have arrived above a missing one for it to be lost.
      Values: 1 to 1000; default: 3. Source: RFC 5681 §3.2 (three).
    - `reordering_window_rtts`: Reordering window of `rack-tlp`, in shortest round trips, rounded to
      quarters, regardless of earlier reordering. RFC 8985's if left out: none before segments
      overtook one another, then a quarter. Values: 0.25 to 16; default: derived. Source: RFC 8985
      §6.2 (a quarter of the shortest round trip).
    - `probe_slack_us`: Time in us that `rack-tlp` waits beyond two round trips before it probes the
      end of a flight. RFC 8985 §7.2 has none; Linux 8000, two ticks of 250 Hz. Unit: µs; values: 0
      to 1000000; default: 0. Source: Linux; RFC 8985 §7.2 has none.
    - `rto_mode`: Time for which a sender waits for an acknowledgement. Values: `estimated`,
      `fixed`; default: `estimated`. Source: RFC 6298; the ns-2 scripts have a fixed one.
    - `rto_min_us`: Minimum retransmission timeout in microseconds; default: 64 round trips, 200 ms
      at most. Unit: µs; values: 1 to 60000000; default: derived (cubic), derived (new-reno), 5000
      (reference). Derivation: 64 round trips, 200 ms at most (Linux). Source: Rampmeter (RFC 6298
      has 1 s and Linux 200 ms, here in round trips).
    - `rto_max_us`: Maximum retransmission timeout in microseconds, a round trip or more. Default:
      256 times the minimum or a round trip, whichever is longer, one minute at most. Unit: µs;
      values: 1 to 120000000; default: derived (cubic), derived (new-reno), 1000000 (reference).
      Derivation: 256 times the smallest or a round trip, whichever is longer, 60 s at most. Source:
      Rampmeter (RFC 6298 has 60 s or more, here a multiple of the minimum).
    - `rto_initial_us`: Retransmission timeout before there is a sample, in microseconds; default:
      64 round trips, 1 s at most. Unit: µs; values: 1 to 60000000; default: derived (cubic),
      derived (new-reno), 5000 (reference). Derivation: 64 round trips, 1 s at most (RFC 6298 §2.1).
      Source: RFC 6298 §2.1 (1 s, here in round trips).
    - `idle_restart`: True if the window returns to the first one when a connection was idle for
      longer than the retransmission timeout (RFC 5681 §4.1). Values: true or false; default: true
      (cubic), true (new-reno), false (reference). Source: RFC 5681 §4.1.
    - `segments_per_ack`: Segments for each acknowledgement. Values: 1 to 64; default: 1. Source:
      RFC 5681 §4.2 (two at most); one in DCTCP's simulators.
    - `ack_delay_us`: Longest time that an acknowledgement is delayed, in microseconds. Unit: µs;
      values: 1 to 500000; default: 1000. Source: RFC 5681 §4.2 (500 ms at most); Linux 40 ms.
    - `ecn`: True if senders support ECN (RFC 3168). Values: true or false; default: false. Source:
      RFC 3168.
    - `ecn_control`: True if handshakes and acknowledgements may be marked too. Values: true or
      false; default: false. Source: RFC 3168 leaves them unmarked; the ns-3 and ns-2 models mark
      them.
    - `ecn_packets`: Queue length in full packets above which ports mark. Default: 0.78
      bandwidth-delay products, which are 65 packets at 10 Gbit/s and 100 us (Alizadeh et al. §3.4,
      §4). Values: 0 to 100000. Source: DCTCP (65 packets at 10 Gbit/s).
    - `gain`: DCTCP's weight of a new measurement. Values: 0 to 1; default: 0.0625. Source: RFC 8257
      (1/16).
    - `alpha_initial`: DCTCP's first estimate of the share of marked bytes. Values: 0 to 1; default:
      1.0. Source: RFC 8257 (1); 0 in the ns-2 scripts.
    - `pacing`: True if packets are paced evenly over a round trip: twice the window a round trip in
      slow start, 1.2 times the window afterwards. Values: true or false; default: false. Source:
      Linux (200 % in slow start, 120 % afterwards).
    - `receive_buffer_bytes`: Receive window in bytes; default: two bandwidth-delay products, 16 MiB
      at least. Unit: bytes; values: 1000 to 2000000000. Source: Rampmeter (never the bottleneck);
      16 MiB in ns-3's recorded runs.
    - `switch_queue_packets`: Packet memory of a port in full packets; default: five bandwidth-delay
      products, 64 packets at least. Values: 1 to 1000000; default: derived (cubic), derived
      (new-reno), 240 (reference). Derivation: five bandwidth-delay products, 64 packets at least.
      Source: Rampmeter (five BDPs); the recorded runs have 240 and 4000 packets.
    - `count_packets`: True if `switch-queue-packets` and `ecn-packets` count packets of any length,
      as in ns-3's queues. Otherwise they mean the bytes of that number of full packets, as in
      switches. Values: true or false; default: false (cubic), false (new-reno), true (reference).
      Source: ns-3 (its queues count packets of any length).
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact`. Source:
      `exact` as in real networks; the simulators of dcPIM and pHost send full packets.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460
      (cubic), 1460 (new-reno), 1448 (reference). Source: 1500 B a packet, as in dcPIM §4.1 and
      pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40
      (cubic), 40 (new-reno), 54 (reference). Source: IPv4 and a transport header of 20 B, as in the
      simulators of dcPIM and pHost.
    - `attempts_max`: Timeouts in a row after which a connection is aborted. Values: 1 to 1000000;
      default: 15. Source: Rampmeter (hosts must report failures, which the papers leave out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/tcp.md.
    """

    name: str = field(default="tcp", init=False)
    preset: Literal["cubic", "new-reno", "reference"] | None = None
    congestion_control: Literal["new-reno", "cubic", "dctcp"] | None = None
    connections: Literal["per-message", "persistent", "pool"] | None = None
    handshake: bool | None = None
    window_initial: int | None = None
    window_max: int | None = None
    slow_start_exit: Literal["never", "hystart-pp", "ack-train"] | None = None
    fast_initial_growth: bool | None = None
    reno_friendly: bool | None = None
    reno_catch_up: bool | None = None
    rtt_resolution: Literal["exact", "milliseconds"] | None = None
    loss_detection: Literal["rack-tlp", "dup-ack"] | None = None
    duplicate_acks: int | None = None
    reordering_window_rtts: float | None = None
    probe_slack_us: int | str | None = None
    rto_mode: Literal["estimated", "fixed"] | None = None
    rto_min_us: int | str | None = None
    rto_max_us: int | str | None = None
    rto_initial_us: int | str | None = None
    idle_restart: bool | None = None
    segments_per_ack: int | None = None
    ack_delay_us: int | str | None = None
    ecn: bool | None = None
    ecn_control: bool | None = None
    ecn_packets: int | None = None
    gain: float | None = None
    alpha_initial: float | None = None
    pacing: bool | None = None
    receive_buffer_bytes: int | str | None = None
    switch_queue_packets: int | None = None
    count_packets: bool | None = None
    padding: Literal["exact", "full"] | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Dctcp(Transport):
    """TCP whose window follows the share of marked bytes (RFC 8257).

    - `preset`: Preset of the values of omitted keys: `rfc8257` (the default), `reference`, `ns-2`.
    - `congestion_control`: The congestion control. Values: `new-reno`, `cubic`, `dctcp`; default:
      `dctcp`. Source: RFC 8257.
    - `connections`: Messages that share a connection. Values: `per-message`, `persistent`, `pool`;
      default: `per-message` (rfc8257), `per-message` (reference), `pool` (ns-2). Source: Rampmeter;
      the ns-2 scripts of CAPTON's study keep connections open.
    - `handshake`: True if connections are opened by a handshake. Otherwise they are open when the
      run starts. Values: true or false; default: true (rfc8257), true (reference), false (ns-2).
      Source: RFC 9293 §3.5; the ns-2 scripts open connections beforehand.
    - `window_initial`: First window in segments. Values: 1 to 100000; default: 10 (rfc8257), 10
      (reference), 70 (ns-2). Source: RFC 6928 (10 segments); 70 in CAPTON's study.
    - `window_max`: Maximum window in segments. Values: 1 to 100000; default: 100000 (rfc8257),
      100000 (reference), 141 (ns-2). Source: Rampmeter (as large as the receiver's buffer); 141 in
      CAPTON's study.
    - `slow_start_exit`: Event that ends slow start before the first loss; Cubic only. Values:
      `never`, `hystart-pp`, `ack-train`; default: `never`. Source: HyStart of Linux and ns-3; RFC
      9406 for HyStart++.
    - `fast_initial_growth`: True if Cubic's window grows by at least 5 % a round trip before the
      first loss, as in Linux and ns-3. Values: true or false; default: true. Source: Linux and
      ns-3; RFC 9438 has no such rule.
    - `reno_friendly`: True if Cubic's window is at least that of NewReno (RFC 9438 §4.3). Values:
      true or false; default: true (rfc8257), false (reference), true (ns-2). Source: RFC 9438 §4.3.
    - `reno_catch_up`: True if the estimate of NewReno's window grows by a segment a round trip
      beyond the window before the loss (RFC 9438 §4.3). Linux has 9/17. Values: true or false;
      default: true. Source: RFC 9438 §4.3.
    - `rtt_resolution`: Measurement of round trips. Values: `exact`, `milliseconds`; default:
      `exact` (rfc8257), `milliseconds` (reference), `exact` (ns-2). Source: Rampmeter; whole
      microseconds in ns-3.
    - `loss_detection`: Detection of losses. Values: `rack-tlp`, `dup-ack`; default: `rack-tlp`
      (rfc8257), `dup-ack` (reference), `dup-ack` (ns-2). Source: RFC 8985 (RACK-TLP); RFC 6675 for
      duplicate acknowledgements.
    - `duplicate_acks`: Segments that must have arrived above a missing one for it to be lost.
      Values: 1 to 1000; default: 3. Source: RFC 5681 §3.2 (three).
    - `reordering_window_rtts`: Reordering window of `rack-tlp`, in shortest round trips, rounded to
      quarters, regardless of earlier reordering. RFC 8985's if left out: none before segments
      overtook one another, then a quarter. Values: 0.25 to 16; default: derived. Source: RFC 8985
      §6.2 (a quarter of the shortest round trip).
    - `probe_slack_us`: Time in us that `rack-tlp` waits beyond two round trips before it probes the
      end of a flight. RFC 8985 §7.2 has none; Linux 8000, two ticks of 250 Hz. Unit: µs; values: 0
      to 1000000; default: 0. Source: Linux; RFC 8985 §7.2 has none.
    - `rto_mode`: Time for which a sender waits for an acknowledgement. Values: `estimated`,
      `fixed`; default: `estimated` (rfc8257), `estimated` (reference), `fixed` (ns-2). Source: RFC
      6298; the ns-2 scripts have a fixed one.
    - `rto_min_us`: Minimum retransmission timeout in microseconds; default: 64 round trips, 200 ms
      at most. Unit: µs; values: 1 to 60000000; default: derived (rfc8257), 5000 (reference), 200000
      (ns-2). Source: Rampmeter (RFC 6298 has 1 s and Linux 200 ms, here in round trips).
    - `rto_max_us`: Maximum retransmission timeout in microseconds, a round trip or more. Default:
      256 times the minimum or a round trip, whichever is longer, one minute at most. Unit: µs;
      values: 1 to 120000000; default: derived (rfc8257), 1000000 (reference), 1000000 (ns-2).
      Source: Rampmeter (RFC 6298 has 60 s or more, here a multiple of the minimum).
    - `rto_initial_us`: Retransmission timeout before there is a sample, in microseconds; default:
      64 round trips, 1 s at most. Unit: µs; values: 1 to 60000000; default: derived (rfc8257), 5000
      (reference), 200000 (ns-2). Source: RFC 6298 §2.1 (1 s, here in round trips).
    - `idle_restart`: True if the window returns to the first one when a connection was idle for
      longer than the retransmission timeout (RFC 5681 §4.1). Values: true or false; default: true
      (rfc8257), false (reference), true (ns-2). Source: RFC 5681 §4.1.
    - `segments_per_ack`: Segments for each acknowledgement. Values: 1 to 64; default: 1. Source:
      RFC 8257 (marks are echoed for each packet).
    - `ack_delay_us`: Longest time that an acknowledgement is delayed, in microseconds. Unit: µs;
      values: 1 to 500000; default: 1000. Source: RFC 5681 §4.2 (500 ms at most); Linux 40 ms.
    - `ecn`: True if senders support ECN (RFC 3168). Values: true or false; default: true. Source:
      RFC 3168.
    - `ecn_control`: True if handshakes and acknowledgements may be marked too. Values: true or
      false; default: false (rfc8257), true (reference), true (ns-2). Source: RFC 3168 leaves them
      unmarked; the ns-3 and ns-2 models mark them.
    - `ecn_packets`: Queue length in full packets above which ports mark. Default: 0.78
      bandwidth-delay products, which are 65 packets at 10 Gbit/s and 100 us (Alizadeh et al. §3.4,
      §4). Values: 0 to 100000; default: derived (rfc8257), 65 (reference), 65 (ns-2). Derivation:
      0.78 bandwidth-delay products, 5 packets at least. Source: DCTCP (65 packets at 10 Gbit/s).
    - `gain`: DCTCP's weight of a new measurement. Values: 0 to 1; default: 0.0625. Derivation:
      1/16. Source: RFC 8257 (1/16).
    - `alpha_initial`: DCTCP's first estimate of the share of marked bytes. Values: 0 to 1; default:
      1.0 (rfc8257), 1.0 (reference), 0.0 (ns-2). Source: RFC 8257 (1); 0 in the ns-2 scripts.
    - `pacing`: True if packets are paced evenly over a round trip: twice the window a round trip in
      slow start, 1.2 times the window afterwards. Values: true or false; default: false. Source:
      Linux (200 % in slow start, 120 % afterwards).
    - `receive_buffer_bytes`: Receive window in bytes; default: two bandwidth-delay products, 16 MiB
      at least. Unit: bytes; values: 1000 to 2000000000. Source: Rampmeter (never the bottleneck);
      16 MiB in ns-3's recorded runs.
    - `switch_queue_packets`: Packet memory of a port in full packets; default: five bandwidth-delay
      products, 64 packets at least. Values: 1 to 1000000; default: derived (rfc8257), 4000
      (reference), 142 (ns-2). Derivation: five bandwidth-delay products, 64 packets at least.
      Source: Rampmeter (five BDPs); ns-3's recorded run has 4000 packets.
    - `count_packets`: True if `switch-queue-packets` and `ecn-packets` count packets of any length,
      as in ns-3's queues. Otherwise they mean the bytes of that number of full packets, as in
      switches. Values: true or false; default: false (rfc8257), true (reference), false (ns-2).
      Source: ns-3 (its queues count packets of any length).
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact`. Source:
      `exact` as in real networks; the simulators of dcPIM and pHost send full packets.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460
      (rfc8257), 1448 (reference), 1460 (ns-2). Source: 1500 B a packet, as in dcPIM §4.1 and pHost
      §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40
      (rfc8257), 54 (reference), 40 (ns-2). Source: IPv4 and a transport header of 20 B, as in the
      simulators of dcPIM and pHost.
    - `attempts_max`: Timeouts in a row after which a connection is aborted. Values: 1 to 1000000;
      default: 15 (rfc8257), 15 (reference), 60 (ns-2). Source: Rampmeter (hosts must report
      failures, which the papers leave out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/dctcp.md.
    """

    name: str = field(default="dctcp", init=False)
    preset: Literal["rfc8257", "reference", "ns-2"] | None = None
    congestion_control: Literal["new-reno", "cubic", "dctcp"] | None = None
    connections: Literal["per-message", "persistent", "pool"] | None = None
    handshake: bool | None = None
    window_initial: int | None = None
    window_max: int | None = None
    slow_start_exit: Literal["never", "hystart-pp", "ack-train"] | None = None
    fast_initial_growth: bool | None = None
    reno_friendly: bool | None = None
    reno_catch_up: bool | None = None
    rtt_resolution: Literal["exact", "milliseconds"] | None = None
    loss_detection: Literal["rack-tlp", "dup-ack"] | None = None
    duplicate_acks: int | None = None
    reordering_window_rtts: float | None = None
    probe_slack_us: int | str | None = None
    rto_mode: Literal["estimated", "fixed"] | None = None
    rto_min_us: int | str | None = None
    rto_max_us: int | str | None = None
    rto_initial_us: int | str | None = None
    idle_restart: bool | None = None
    segments_per_ack: int | None = None
    ack_delay_us: int | str | None = None
    ecn: bool | None = None
    ecn_control: bool | None = None
    ecn_packets: int | None = None
    gain: float | None = None
    alpha_initial: float | None = None
    pacing: bool | None = None
    receive_buffer_bytes: int | str | None = None
    switch_queue_packets: int | None = None
    count_packets: bool | None = None
    padding: Literal["exact", "full"] | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Pias(Transport):
    """DCTCP whose messages fall through classes by the bytes sent.

    - `preset`: Preset of the values of omitted keys: `web-search-0.5` (the default),
      `web-search-0.8`, `data-mining-0.5`, `data-mining-0.8`, `reference`.
    - `thresholds`: Packets of 1460 bytes. A packet falls a class for each of these numbers that the
      bytes of its message before it exceed. Equal numbers leave classes empty. Values: 7 whole
      numbers from 0 to 100000000 that ascend; default: [1059, 1412, 1643, 1869, 2008, 2115, 2184]
      (web-search-0.5), [909, 1329, 1648, 1960, 2143, 2337, 2484] (web-search-0.8), [805, 1106,
      1401, 10693, 11970, 21162, 22272] (data-mining-0.5), [745, 1083, 1391, 13689, 14936, 21149,
      27245] (data-mining-0.8), [909, 1329, 1648, 1960, 2143, 2337, 2484] (reference). Source:
      PIAS's ns-2 scripts, for the loads of CAPTON's study.
    - `congestion_control`: The congestion control. Values: `new-reno`, `cubic`, `dctcp`; default:
      `dctcp`. Source: PIAS (DCTCP).
    - `connections`: Messages that share a connection. Values: `per-message`, `persistent`, `pool`;
      default: `per-message` (web-search-0.5), `per-message` (web-search-0.8), `per-message`
      (data-mining-0.5), `per-message` (data-mining-0.8), `pool` (reference). Source: Rampmeter; the
      ns-2 scripts of CAPTON's study keep connections open.
    - `handshake`: True if connections are opened by a handshake. Otherwise they are open when the
      run starts. Values: true or false; default: true (web-search-0.5), true (web-search-0.8), true
      (data-mining-0.5), true (data-mining-0.8), false (reference). Source: RFC 9293 §3.5; the ns-2
      scripts open connections beforehand.
    - `window_initial`: First window in segments. Values: 1 to 100000; default: 10 (web-search-0.5),
      10 (web-search-0.8), 10 (data-mining-0.5), 10 (data-mining-0.8), 70 (reference). Source: RFC
      6928 (10 segments); 70 in CAPTON's study.
    - `window_max`: Maximum window in segments. Values: 1 to 100000; default: 100000
      (web-search-0.5), 100000 (web-search-0.8), 100000 (data-mining-0.5), 100000 (data-mining-0.8),
      141 (reference). Source: Rampmeter (as large as the receiver's buffer); 141 in CAPTON's study.
    - `slow_start_exit`: Event that ends slow start before the first loss; Cubic only. Values:
      `never`, `hystart-pp`, `ack-train`; default: `never`. Source: HyStart of Linux and ns-3; RFC
      9406 for HyStart++.
    - `fast_initial_growth`: True if Cubic's window grows by at least 5 % a round trip before the
      first loss, as in Linux and ns-3. Values: true or false; default: true. Source: Linux and
      ns-3; RFC 9438 has no such rule.
    - `reno_friendly`: True if Cubic's window is at least that of NewReno (RFC 9438 §4.3). Values:
      true or false; default: true. Source: RFC 9438 §4.3.
    - `reno_catch_up`: True if the estimate of NewReno's window grows by a segment a round trip
      beyond the window before the loss (RFC 9438 §4.3). Linux has 9/17. Values: true or false;
      default: true. Source: RFC 9438 §4.3.
    - `rtt_resolution`: Measurement of round trips. Values: `exact`, `milliseconds`; default:
      `exact`. Source: Rampmeter; whole microseconds in ns-3.
    - `loss_detection`: Detection of losses. Values: `rack-tlp`, `dup-ack`; default: `rack-tlp`
      (web-search-0.5), `rack-tlp` (web-search-0.8), `rack-tlp` (data-mining-0.5), `rack-tlp`
      (data-mining-0.8), `dup-ack` (reference). Source: RFC 8985 (RACK-TLP); RFC 6675 for duplicate
      acknowledgements.
    - `duplicate_acks`: Segments that must have arrived above a missing one for it to be lost.
      Values: 1 to 1000; default: 3. Source: RFC 5681 §3.2 (three).
    - `reordering_window_rtts`: Reordering window of `rack-tlp`, in shortest round trips, rounded to
      quarters, regardless of earlier reordering. RFC 8985's if left out: none before segments
      overtook one another, then a quarter. Values: 0.25 to 16; default: derived. Source: RFC 8985
      §6.2 (a quarter of the shortest round trip).
    - `probe_slack_us`: Time in us that `rack-tlp` waits beyond two round trips before it probes the
      end of a flight. RFC 8985 §7.2 has none; Linux 8000, two ticks of 250 Hz. Unit: µs; values: 0
      to 1000000; default: 0. Source: Linux; RFC 8985 §7.2 has none.
    - `rto_mode`: Time for which a sender waits for an acknowledgement. Values: `estimated`,
      `fixed`; default: `estimated` (web-search-0.5), `estimated` (web-search-0.8), `estimated`
      (data-mining-0.5), `estimated` (data-mining-0.8), `fixed` (reference). Source: RFC 6298; the
      ns-2 scripts have a fixed one.
    - `rto_min_us`: Minimum retransmission timeout in microseconds; default: 64 round trips, 200 ms
      at most. Unit: µs; values: 1 to 60000000; default: derived (web-search-0.5), derived
      (web-search-0.8), derived (data-mining-0.5), derived (data-mining-0.8), 200000 (reference).
      Derivation: 64 round trips. Source: Rampmeter (RFC 6298 has 1 s and Linux 200 ms, here in
      round trips).
    - `rto_max_us`: Maximum retransmission timeout in microseconds, a round trip or more. Default:
      256 times the minimum or a round trip, whichever is longer, one minute at most. Unit: µs;
      values: 1 to 120000000; default: derived (web-search-0.5), derived (web-search-0.8), derived
      (data-mining-0.5), derived (data-mining-0.8), 1000000 (reference). Source: Rampmeter (RFC 6298
      has 60 s or more, here a multiple of the minimum).
    - `rto_initial_us`: Retransmission timeout before there is a sample, in microseconds; default:
      64 round trips, 1 s at most. Unit: µs; values: 1 to 60000000; default: derived
      (web-search-0.5), derived (web-search-0.8), derived (data-mining-0.5), derived
      (data-mining-0.8), 200000 (reference). Source: RFC 6298 §2.1 (1 s, here in round trips).
    - `idle_restart`: True if the window returns to the first one when a connection was idle for
      longer than the retransmission timeout (RFC 5681 §4.1). Values: true or false; default: true.
      Source: RFC 5681 §4.1.
    - `segments_per_ack`: Segments for each acknowledgement. Values: 1 to 64; default: 1. Source:
      RFC 5681 §4.2 (two at most); one in DCTCP's simulators.
    - `ack_delay_us`: Longest time that an acknowledgement is delayed, in microseconds. Unit: µs;
      values: 1 to 500000; default: 1000. Source: RFC 5681 §4.2 (500 ms at most); Linux 40 ms.
    - `ecn`: True if senders support ECN (RFC 3168). Values: true or false; default: true. Source:
      RFC 3168.
    - `ecn_control`: True if handshakes and acknowledgements may be marked too. Values: true or
      false; default: false (web-search-0.5), false (web-search-0.8), false (data-mining-0.5), false
      (data-mining-0.8), true (reference). Source: RFC 3168 leaves them unmarked; the ns-3 and ns-2
      models mark them.
    - `ecn_packets`: Queue length in full packets above which ports mark. Default: 0.78
      bandwidth-delay products, which are 65 packets at 10 Gbit/s and 100 us (Alizadeh et al. §3.4,
      §4). Values: 0 to 100000; default: derived (web-search-0.5), derived (web-search-0.8), derived
      (data-mining-0.5), derived (data-mining-0.8), 65 (reference). Source: PIAS's ns-2 scripts (65
      packets at 10 Gbit/s).
    - `gain`: DCTCP's weight of a new measurement. Values: 0 to 1; default: 0.0625. Source: RFC 8257
      (1/16).
    - `alpha_initial`: DCTCP's first estimate of the share of marked bytes. Values: 0 to 1; default:
      1.0 (web-search-0.5), 1.0 (web-search-0.8), 1.0 (data-mining-0.5), 1.0 (data-mining-0.8), 0.0
      (reference). Source: RFC 8257 (1); 0 in the ns-2 scripts.
    - `pacing`: True if packets are paced evenly over a round trip: twice the window a round trip in
      slow start, 1.2 times the window afterwards. Values: true or false; default: false. Source:
      Linux (200 % in slow start, 120 % afterwards).
    - `receive_buffer_bytes`: Receive window in bytes; default: two bandwidth-delay products, 16 MiB
      at least. Unit: bytes; values: 1000 to 2000000000. Source: Rampmeter (never the bottleneck);
      16 MiB in ns-3's recorded runs.
    - `switch_queue_packets`: Packet memory of a port in full packets; default: five bandwidth-delay
      products, 64 packets at least. Values: 1 to 1000000; default: derived (web-search-0.5),
      derived (web-search-0.8), derived (data-mining-0.5), derived (data-mining-0.8), 142
      (reference). Derivation: five bandwidth-delay products. Source: PIAS's ns-2 scripts (240
      packets); CAPTON's study 142.
    - `count_packets`: True if `switch-queue-packets` and `ecn-packets` count packets of any length,
      as in ns-3's queues. Otherwise they mean the bytes of that number of full packets, as in
      switches. Values: true or false; default: false. Source: ns-3 (its queues count packets of any
      length).
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact`. Source:
      `exact` as in real networks; the simulators of dcPIM and pHost send full packets.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: IPv4 and a transport header of 20 B, as in the simulators of dcPIM and pHost.
    - `attempts_max`: Timeouts in a row after which a connection is aborted. Values: 1 to 1000000;
      default: 15 (web-search-0.5), 15 (web-search-0.8), 15 (data-mining-0.5), 15 (data-mining-0.8),
      60 (reference). Source: Rampmeter (hosts must report failures, which the papers leave out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/pias.md.
    """

    name: str = field(default="pias", init=False)
    preset: (
        Literal[
            "web-search-0.5", "web-search-0.8", "data-mining-0.5", "data-mining-0.8", "reference"
        ]
        | None
    ) = None
    thresholds: list[int] | None = None
    congestion_control: Literal["new-reno", "cubic", "dctcp"] | None = None
    connections: Literal["per-message", "persistent", "pool"] | None = None
    handshake: bool | None = None
    window_initial: int | None = None
    window_max: int | None = None
    slow_start_exit: Literal["never", "hystart-pp", "ack-train"] | None = None
    fast_initial_growth: bool | None = None
    reno_friendly: bool | None = None
    reno_catch_up: bool | None = None
    rtt_resolution: Literal["exact", "milliseconds"] | None = None
    loss_detection: Literal["rack-tlp", "dup-ack"] | None = None
    duplicate_acks: int | None = None
    reordering_window_rtts: float | None = None
    probe_slack_us: int | str | None = None
    rto_mode: Literal["estimated", "fixed"] | None = None
    rto_min_us: int | str | None = None
    rto_max_us: int | str | None = None
    rto_initial_us: int | str | None = None
    idle_restart: bool | None = None
    segments_per_ack: int | None = None
    ack_delay_us: int | str | None = None
    ecn: bool | None = None
    ecn_control: bool | None = None
    ecn_packets: int | None = None
    gain: float | None = None
    alpha_initial: float | None = None
    pacing: bool | None = None
    receive_buffer_bytes: int | str | None = None
    switch_queue_packets: int | None = None
    count_packets: bool | None = None
    padding: Literal["exact", "full"] | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Capton(Transport):
    """A controller that lets the flow with the least left transmit, over all paths (CAPTON).

    - `preset`: Preset of the values of omitted keys: `paper` (the default).
    - `short_flow_packets`: Maximum length of messages that are sent at once, without a request, in
      segments (§IV.E). Values: 0 to 1000000; default: 10. Derivation: 10 segments (§IV.E). Source:
      CAPTON §IV.E (10 segments).
    - `window_granted`: Packets that a flow with a grant has in flight at most; default: two
      bandwidth-delay products. Values: 1 to 100000. Derivation: two bandwidth-delay products (BDPs)
      in flight. Source: the ns-2 scripts of CAPTON's study (141 packets, two BDPs).
    - `link_sharing`: Sharing of links between flows. Values: `serial`, `split`; default: `serial`.
      Source: CAPTON §IV.D (one flow at a time); `split` is Rampmeter's.
    - `share_min`: Minimum share of a link that a flow takes with `split`. Values: 0.001 to 1;
      default: 0.1. Source: Rampmeter, for `split`.
    - `controllers`: Number of controllers: hosts use the second if the first is unresponsive.
      Values: 1 to 2; default: 1. Source: Rampmeter (the paper has one, which never fails).
    - `compute_us`: Time that a controller takes for an order. Default: 10 in 86 of a round trip,
      which is 10 us in the paper's network (§V.C). Unit: µs; values: 0 to 10000. Derivation: 10 in
      86 of a round trip. Source: CAPTON §V.C (10 us for 640 flows).
    - `retransmit_us`: Time after which a request without an answer is retransmitted, in
      microseconds; default: four round trips and the controller's time. Unit: µs; values: 1 to
      10000000. Derivation: four round trips and the controller's time. Source: Rampmeter (control
      messages of the paper are never lost).
    - `fallback_us`: Time without any answer after which a host sends without the controller, in
      microseconds; default: 16 times `retransmit-us`. Unit: µs; values: 1 to 60000000. Derivation
      of `fallback_us`, `lease_us`: 16 times `retransmit-us`, four times `fallback-us`. Source:
      Rampmeter (the paper's controller never fails).
    - `lease_us`: Time without a message after which the controller forgets a host, in microseconds;
      default: four times `fallback-us`. Unit: µs; values: 100 to 60000000. Derivation of
      `fallback_us`, `lease_us`: 16 times `retransmit-us`, four times `fallback-us`. Source:
      Rampmeter (the paper's hosts never fail).
    - `uplinks_gbps`: Capacity of all uplinks of a rack together, in Gbit/s; default: that of the
      network. Unit: Gbit/s; values: 0.001 to 100000. Source: CAPTON §IV.D (the controller knows the
      network).
    - `rack_hosts`: Hosts of a rack, where hosts are numbered rack by rack; default: as in the
      network. Values: 1 to 100000. Source: CAPTON §IV.D (the controller knows the network).
    - `rto_min_us`: Minimum retransmission timeout in microseconds; default: that of TCP. The
      paper's study has 200000 (table 3). The largest is four times as long, 256 round trips at
      least. Unit: µs; values: 1 to 60000000. Source: CAPTON, table 3 (200 ms); the default is that
      of TCP.
    - `reordering_window_rtts`: Reordering window before a segment counts as lost, in shortest round
      trips, rounded to quarters. Values: 0.25 to 16; default: 4.0. Source: Rampmeter (paths with
      full ports are four round trips longer).
    - `switch_queue_packets`: Packet memory of a port in full packets. Default: two bandwidth-delay
      products, at least 142. Values: 1 to 1000000. Derivation: a port holds two BDPs (§V), and at
      least the 142 packets of the study: unscheduled messages have up to ten, whatever the BDP.
      Source: CAPTON §V (two BDPs).
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact`. Source:
      `exact` as in real networks; the simulators of dcPIM and pHost send full packets.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: IPv4 and a transport header of 20 B, as in the simulators of dcPIM and pHost.
    - `attempts_max`: Timeouts in a row after which a message is reported as failed. Values: 1 to
      1000000; default: 15. Source: Rampmeter (hosts must report failures, which the papers leave
      out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/capton.md.
    """

    name: str = field(default="capton", init=False)
    preset: Literal["paper"] | None = None
    short_flow_packets: int | None = None
    window_granted: int | None = None
    link_sharing: Literal["serial", "split"] | None = None
    share_min: float | None = None
    controllers: int | None = None
    compute_us: float | str | None = None
    retransmit_us: int | str | None = None
    fallback_us: int | str | None = None
    lease_us: int | str | None = None
    uplinks_gbps: float | str | None = None
    rack_hosts: int | None = None
    rto_min_us: int | str | None = None
    reordering_window_rtts: float | None = None
    switch_queue_packets: int | None = None
    padding: Literal["exact", "full"] | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Hyline(Transport):
    """TCP for short messages; a controller schedules and routes long ones (Hyline).

    - `preset`: Preset of the values of omitted keys: `paper` (the default).
    - `short_flow_bytes`: Maximum length of messages that are sent at once, without a request, in
      bytes. Unit: bytes; values: 0 to 1000000000000; default: 4470000. Source: CAPTON, table 4.
    - `window_initial`: First window of messages that are not scheduled, in packets. Default: 25 in
      72 of a bandwidth-delay product, the share of 25 packets in the CAPTON paper's network.
      Values: 1 to 100000. Derivation: 25 in 72 of a BDP: 25 packets in the paper's network. Source:
      the scripts of CAPTON's study (25 packets).
    - `window_max`: Maximum window of messages that are not scheduled, in packets. Default: a
      bandwidth-delay product and a packet. The study has 50 of 72. Values: 1 to 100000. Derivation:
      a BDP and a packet, so that a message alone fills its links. Source: the scripts of CAPTON's
      study (50 packets); the default fills a link.
    - `window_granted`: Packets that a flow with a grant has in flight at most; default:
      `window-max`. Values: 1 to 100000. Derivation: `window-max`. Source: Hyline's code (that of
      all messages).
    - `priorities`: Priorities of data packets. With 2, scheduled messages have the lower one.
      Values: 1 to 2; default: 1. Source: Hyline's code (two).
    - `controllers`: Number of controllers: hosts use the second if the first is unresponsive.
      Values: 1 to 2; default: 1. Source: Rampmeter (the paper has one, which never fails).
    - `compute_us`: Time that a controller takes for an order. Default: 10 in 86 of a round trip,
      which is 10 us in the paper's network (§V.C). Unit: µs; values: 0 to 10000. Derivation: 10 in
      86 of a round trip: 10 us in the paper's network, as for CAPTON (§V.C). Source: CAPTON §V.C
      (10 us for 640 flows).
    - `retransmit_us`: Time after which a request without an answer is retransmitted, in
      microseconds; default: four round trips and the controller's time. Unit: µs; values: 1 to
      10000000. Source: Rampmeter (control messages of the paper are never lost).
    - `fallback_us`: Time without any answer after which a host sends without the controller, in
      microseconds; default: 16 times `retransmit-us`. Unit: µs; values: 1 to 60000000. Source:
      Rampmeter (the paper's controller never fails).
    - `lease_us`: Time without a message after which the controller forgets a host, in microseconds;
      default: four times `fallback-us`. Unit: µs; values: 100 to 60000000. Source: Rampmeter (the
      paper's hosts never fail).
    - `rto_min_us`: Minimum retransmission timeout in microseconds; default: that of TCP. The CAPTON
      paper's study has 4000 (table 3). Unit: µs; values: 1 to 60000000. Source: CAPTON, table 3 (4
      ms); the default is that of TCP.
    - `switch_queue_packets`: Packet memory of a port in full packets. Default: two bandwidth-delay
      products, at least 142. Values: 1 to 1000000. Derivation: two BDPs (table 3), and at least the
      142 packets of the study. Source: CAPTON, table 3 (two BDPs).
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact`. Source:
      `exact` as in real networks; the simulators of dcPIM and pHost send full packets.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: IPv4 and a transport header of 20 B, as in the simulators of dcPIM and pHost.
    - `attempts_max`: Timeouts in a row after which a message is reported as failed. Values: 1 to
      1000000; default: 15. Source: Rampmeter (hosts must report failures, which the papers leave
      out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/hyline.md.
    """

    name: str = field(default="hyline", init=False)
    preset: Literal["paper"] | None = None
    short_flow_bytes: int | str | None = None
    window_initial: int | None = None
    window_max: int | None = None
    window_granted: int | None = None
    priorities: int | None = None
    controllers: int | None = None
    compute_us: float | str | None = None
    retransmit_us: int | str | None = None
    fallback_us: int | str | None = None
    lease_us: int | str | None = None
    rto_min_us: int | str | None = None
    switch_queue_packets: int | None = None
    padding: Literal["exact", "full"] | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Fastpod(Transport):
    """An arbiter that grants slots of a pod whose switches have no memory (Fastpod).

    - `preset`: Preset of the values of omitted keys: `paper` (the default).
    - `arbiters`: Arbiters: one, or one and its standby. Values: 1 to 2; default: 1. Source: Fastpod
      §4 (a standby).
    - `optimistic`: True if messages are sent before they are scheduled when nothing else waits
      (§3.3). Values: true or false; default: true. Source: Fastpod §3.3.
    - `message_order`: Message to one destination that is sent first. Values: `srpt`, `fifo`;
      default: `srpt`. Source: Fastpod §3.3 (the earliest demand first); others are Rampmeter's.
    - `beacon_slots`: Slots from one control packet without content to the next, in each direction
      of each host. Values: 1 to 65536; default: 64. Derivation: 64: from one control packet without
      content to the next. Source: Rampmeter (empty control packets of every slot change no result).
    - `compute_us`: Computation time of each slot at the arbiter; default: none. Slots are computed
      in parallel. Unit: µs; values: 0 to 1000000. Source: Fastpod §3.3 counts the scheduling time,
      without a number.
    - `clock_drift_ppm`: Drift of clocks that guard bands allow for, in parts per million. Unit:
      parts per million; values: 0 to 1000; default: 0.0. Derivation of `clock_drift_ppm`,
      `clock_jitter_ns`: 0: no guard bands. Source: Fastpod §4 (guard bands).
    - `clock_jitter_ns`: Error of a time stamp that guard bands allow for, in nanoseconds. Unit: ns;
      values: 0 to 1000000; default: 0. Derivation of `clock_drift_ppm`, `clock_jitter_ns`: 0: no
      guard bands. Source: Fastpod §4 (guard bands).
    - `timestamp_error_ns`: Error of a time stamp at each end, either way, in nanoseconds. Guard
      bands allow for `clock-jitter-ns`; without an error simulated clocks are read exactly. Unit:
      ns; values: 0 to 1000000; default: 0. Source: Rampmeter (errors of the clocks that Fastpod §4
      allows for).
    - `padding`: Charged length of last cells. Values: `exact`, `full`; default: `full`. Source:
      `exact` as in real networks; the simulators of dcPIM and pHost send full packets.
    - `packing`: True if short packets to one destination share a scheduled cell, in the order of
      the queue (§3.2). Last packets are then charged their length, at least `control-bytes`.
      Values: true or false; default: false. Source: Fastpod §3.2.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Derivation: 1460: with N = 4 and 100 Gbit/s a slot takes 370.24 ns. Source: Fastpod §5 (cells
      of 1500 bytes).
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: Fastpod §5 (cells of 1500 bytes).
    - `control_bytes`: Bytes charged to an RTS or SCHD. Unit: bytes; values: 46 to 1000; default:
      64. Source: Fastpod §5 (64 bytes).
    - `core_queue_cells`: Cells for one pod that a core switch holds before arbiters of other pods
      are notified that they may not send more by it (§3.4). Values: 1 to 1000000; default: 512.
      Derivation of `core_queue_cells`, `core_buffer_cells`: 512, 2048: ours. Source: Fastpod §3.4,
      which has no number.
    - `core_buffer_cells`: Cells of all pods together that a core switch holds before it notifies
      arbiters not to send more by it (§3.4). Values: 1 to 16000000; default: 2048. Derivation of
      `core_queue_cells`, `core_buffer_cells`: 512, 2048: ours. Source: Fastpod §3.4, which has no
      number.
    - `attempts_max`: Unanswered repetitions after which a flow is reported as failed. Values: 1 to
      1000; default: 24. Source: Rampmeter (hosts must report failures, which the papers leave out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/fastpod.md.
    """

    name: str = field(default="fastpod", init=False)
    preset: Literal["paper"] | None = None
    arbiters: int | None = None
    optimistic: bool | None = None
    message_order: Literal["srpt", "fifo"] | None = None
    beacon_slots: int | None = None
    compute_us: float | str | None = None
    clock_drift_ppm: float | None = None
    clock_jitter_ns: int | str | None = None
    timestamp_error_ns: int | str | None = None
    padding: Literal["exact", "full"] | None = None
    packing: bool | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    control_bytes: int | str | None = None
    core_queue_cells: int | None = None
    core_buffer_cells: int | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Ndp(Transport):
    """Switches that trim packets, receivers that pull at the rate of their link (NDP).

    - `preset`: Preset of the values of omitted keys: `paper` (the default), `reference`.
    - `window_initial`: Packets that a flow sends without a pull; default: one bandwidth-delay
      product. Values: 1 to 1000000; default: derived (paper), 50 (reference). Derivation: one BDP
      in packets: 49 in dcPIM's network. Source: NDP §3.2 (one BDP).
    - `pull_bytes`: Bytes of its link that a receiver allows for each pull; default: a full packet.
      Unit: bytes; values: 1 to 1000000; default: derived (paper), 1580 (reference). Derivation: a
      full packet. Source: NDP §3.2 (a full packet); htsim's pacer has 99 % of the link.
    - `pull_order`: Order in which flows are pulled. Values: `fair`, `shortest-first`; default:
      `fair`. Source: NDP §3.2 (fair, with a priority if wanted).
    - `path_penalty`: Reaction of senders to paths with many trimmed packets. Values: `outliers`,
      `none`; default: `outliers` (paper), `none` (reference). Source: NDP §3.2; htsim's recorded
      run has none.
    - `fabric_model`: The ports that it needs of the fabric. Values: `paper`, `reference`; default:
      `paper` (paper), `reference` (reference). Derivation: data queue of eight full packets.
      Source: NDP §3.1 (eight packets, headers 10 to 1); htsim's queue.
    - `rto_us`: Time after which a packet is retransmitted that was neither acknowledged nor
      refused; doubled up to four times. Default: a millisecond, at least 64 round trips. Unit: µs;
      values: 0.1 to 10000000; default: derived (paper), 50000.0 (reference). Derivation: 64 control
      round trips, or the time of 64 full packets if longer. Source: Rampmeter; 50 ms in htsim's
      recorded run.
    - `padding`: Charged length of last packets. Values: `exact`, `full`; default: `exact` (paper),
      `full` (reference). Source: `exact` as in real networks; the simulators of dcPIM and pHost
      send full packets.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40
      (paper), 104 (reference). Source: IPv4 and a header of 20 B; htsim has 64 B on packets of 1500
      B.
    - `control_bytes`: Length of acknowledgements, refusals and pulls. Unit: bytes; values: 1 to
      1000; default: 64. Source: NDP §3.1 (64 B).
    - `attempts_max`: Timeouts in a row after which a flow is reported as failed. Values: 1 to
      1000000; default: 24. Source: Rampmeter (hosts must report failures, which the papers leave
      out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/ndp.md.
    """

    name: str = field(default="ndp", init=False)
    preset: Literal["paper", "reference"] | None = None
    window_initial: int | None = None
    pull_bytes: int | str | None = None
    pull_order: Literal["fair", "shortest-first"] | None = None
    path_penalty: Literal["outliers", "none"] | None = None
    fabric_model: Literal["paper", "reference"] | None = None
    rto_us: float | str | None = None
    padding: Literal["exact", "full"] | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    control_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Homa(Transport):
    """Grants from the receiver, priorities by remaining size, overcommitment (Homa).

    - `preset`: Preset of the values of omitted keys: `paper` (the default), `reference`.
    - `rtt_bytes`: Bytes of a message that may be in flight: those sent without a grant, and those
      granted that have not arrived. A bandwidth-delay product if left out. Unit: bytes; values: 1
      to 100000000; default: derived (paper), 100000 (reference). Derivation: one BDP, in whole
      packets. Source: Homa §3.3 (one BDP).
    - `priorities`: Priorities of data packets; the first of them is the highest of the fabric.
      Values: 2 to 8; default: 8. Source: Homa §3.4 (eight).
    - `unscheduled_priorities`: Number of `priorities` that are for unscheduled packets. Values: 1
      to 7; default: 1. Derivation: 1, as in the paper's W4 and W5. Source: Homa §5.2, for its
      workloads.
    - `cutoffs_bytes`: Largest messages of the first, second, ... priority for unscheduled packets.
      N priorities use the first N - 1 of these sizes. Unit: bytes; values: 7 whole numbers from 0
      to 4000000000 that ascend; default: [0, 0, 0, 0, 0, 0, 0]. Source: Homa §3.4 (equal bytes in
      each); `rampmeter.homa_cutoffs`.
    - `overcommitment`: Senders that have grants at the same time; default: as many as scheduled
      priorities. Values: 1 to 1000. Derivation: as many as scheduled priorities: 7 of 8. Source:
      Homa §3.5 (as many as scheduled priorities).
    - `grants`: Amount of data that a grant allows. Values: `window`, `packet`; default: `window`
      (paper), `packet` (reference). Source: Homa §3.3; the ns-2 port of SIRD's authors.
    - `unscheduled_treatment`: Treatment of unscheduled packets in switches. Values: `kept`,
      `droppable`; default: `kept`. Source: Homa §3.3; Aeolus §3.
    - `exchange`: Relation between messages: one-way messages, or remote procedure calls. Values:
      `messages`, `rpc`; default: `messages`. Source: Homa §3.1 (remote procedure calls); the ns-2
      port sends messages.
    - `incast_messages`: Messages that a host may await before its peers must send fewer unscheduled
      bytes; 0 for no incast control. Values: 0 to 1000000; default: 25 (paper), 0 (reference).
      Derivation of `incast_messages`, `incast_unscheduled_bytes`: 25, 400: §3.6 has "a few hundred
      bytes". Source: Homa §3.6, which has no number.
    - `incast_unscheduled_bytes`: Number of unscheduled bytes that a message then has, in whole
      packets. Unit: bytes; values: 0 to 1000000; default: 400. Derivation of `incast_messages`,
      `incast_unscheduled_bytes`: 25, 400: §3.6 has "a few hundred bytes". Source: Homa §3.6 (a few
      hundred bytes).
    - `timeout_rtts`: Timeout in control round trips, or in times of a full packet if these are
      longer. A receiver then requests missing packets, and a sender without a response probes.
      Values: 2 to 1000000; default: 64 (paper), 4096 (reference). Derivation: 64 control round
      trips, or as many times of a full packet on the link or at a host's share of the core, if
      longer. Source: Homa §3.7 (a few milliseconds, here in round trips).
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460
      (paper), 1456 (reference). Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40
      (paper), 82 (reference). Source: IPv4 and a transport header of 20 B, as in the simulators of
      dcPIM and pHost.
    - `unscheduled_payload_bytes`: Payload of a full unscheduled packet, which is as long on the
      wire as others; default: `payload-bytes`. Unit: bytes; values: 1 to 9000; default: derived
      (paper), 1442 (reference). Source: the ns-2 port of SIRD's authors (1442 B).
    - `grant_bytes`: Length of a grant, or a CREDIT of SIRD; default: the length of headers. Unit:
      bytes; values: 1 to 1500; default: derived (paper), 84 (reference). Source: the ns-2 port of
      SIRD's authors (84 B on the wire).
    - `ack_bytes`: Length of an acknowledgement; default: the length of headers. Unit: bytes;
      values: 1 to 1500; default: derived (paper), 116 (reference). Source: the ns-2 port of SIRD's
      authors (116 B on the wire).
    - `attempts_max`: Unanswered repetitions after which a message is reported as failed. Values: 1
      to 1000; default: 24. Source: Rampmeter (hosts must report failures, which the papers leave
      out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/homa.md.
    """

    name: str = field(default="homa", init=False)
    preset: Literal["paper", "reference"] | None = None
    rtt_bytes: int | str | None = None
    priorities: int | None = None
    unscheduled_priorities: int | None = None
    cutoffs_bytes: list[int] | list[str] | None = None
    overcommitment: int | None = None
    grants: Literal["window", "packet"] | None = None
    unscheduled_treatment: Literal["kept", "droppable"] | None = None
    exchange: Literal["messages", "rpc"] | None = None
    incast_messages: int | None = None
    incast_unscheduled_bytes: int | str | None = None
    timeout_rtts: int | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    unscheduled_payload_bytes: int | str | None = None
    grant_bytes: int | str | None = None
    ack_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class HomaAeolus(Transport):
    """Homa with selective dropping of unscheduled packets, and probes after them (Aeolus).

    - `preset`: Preset of the values of omitted keys: `paper` (the default).
    - `rtt_bytes`: Bytes of a message that may be in flight: those sent without a grant, and those
      granted that have not arrived. A bandwidth-delay product if left out. Unit: bytes; values: 1
      to 100000000; default: derived. Source: Homa §3.3 (one BDP).
    - `priorities`: Priorities of data packets; the first of them is the highest of the fabric.
      Values: 2 to 8; default: 8. Source: Homa §3.4 (eight).
    - `unscheduled_priorities`: Number of `priorities` that are for unscheduled packets. Values: 1
      to 7; default: 1. Source: Homa §5.2, for its workloads.
    - `cutoffs_bytes`: Largest messages of the first, second, ... priority for unscheduled packets.
      N priorities use the first N - 1 of these sizes. Unit: bytes; values: 7 whole numbers from 0
      to 4000000000 that ascend; default: [0, 0, 0, 0, 0, 0, 0]. Source: Homa §3.4 (equal bytes in
      each); `rampmeter.homa_cutoffs`.
    - `overcommitment`: Senders that have grants at the same time; default: as many as scheduled
      priorities. Values: 1 to 1000. Source: Homa §3.5 (as many as scheduled priorities).
    - `grants`: Amount of data that a grant allows. Values: `window`, `packet`; default: `window`.
      Source: Homa §3.3; the ns-2 port of SIRD's authors.
    - `unscheduled_treatment`: Treatment of unscheduled packets in switches. Values: `kept`,
      `droppable`; default: `droppable`. Source: Aeolus §3 (dropped above a threshold).
    - `exchange`: Relation between messages: one-way messages, or remote procedure calls. Values:
      `messages`, `rpc`; default: `messages`. Source: Homa §3.1 (remote procedure calls); the ns-2
      port sends messages.
    - `incast_messages`: Messages that a host may await before its peers must send fewer unscheduled
      bytes; 0 for no incast control. Values: 0 to 1000000; default: 25. Source: Homa §3.6, which
      has no number.
    - `incast_unscheduled_bytes`: Number of unscheduled bytes that a message then has, in whole
      packets. Unit: bytes; values: 0 to 1000000; default: 400. Source: Homa §3.6 (a few hundred
      bytes).
    - `timeout_rtts`: Timeout in control round trips, or in times of a full packet if these are
      longer. A receiver then requests missing packets, and a sender without a response probes.
      Values: 2 to 1000000; default: 64. Source: Homa §3.7 (a few milliseconds, here in round
      trips).
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: IPv4 and a transport header of 20 B, as in the simulators of dcPIM and pHost.
    - `unscheduled_payload_bytes`: Payload of a full unscheduled packet, which is as long on the
      wire as others; default: `payload-bytes`. Unit: bytes; values: 1 to 9000. Source: the ns-2
      port of SIRD's authors (1442 B).
    - `grant_bytes`: Length of a grant, or a CREDIT of SIRD; default: the length of headers. Unit:
      bytes; values: 1 to 1500. Source: the ns-2 port of SIRD's authors (84 B on the wire).
    - `ack_bytes`: Length of an acknowledgement; default: the length of headers. Unit: bytes;
      values: 1 to 1500. Source: the ns-2 port of SIRD's authors (116 B on the wire).
    - `attempts_max`: Unanswered repetitions after which a message is reported as failed. Values: 1
      to 1000; default: 48. Source: Rampmeter (hosts must report failures, which the papers leave
      out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/homa-aeolus.md.
    """

    name: str = field(default="homa-aeolus", init=False)
    preset: Literal["paper"] | None = None
    rtt_bytes: int | str | None = None
    priorities: int | None = None
    unscheduled_priorities: int | None = None
    cutoffs_bytes: list[int] | list[str] | None = None
    overcommitment: int | None = None
    grants: Literal["window", "packet"] | None = None
    unscheduled_treatment: Literal["kept", "droppable"] | None = None
    exchange: Literal["messages", "rpc"] | None = None
    incast_messages: int | None = None
    incast_unscheduled_bytes: int | str | None = None
    timeout_rtts: int | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    unscheduled_payload_bytes: int | str | None = None
    grant_bytes: int | str | None = None
    ack_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Sird(Transport):
    """Credit of receivers, limited by the queues that senders and switches report (SIRD).

    - `preset`: Preset of the values of omitted keys: `paper` (the default), `reference`.
    - `credit_bytes`: Bytes on the wire of all packets for which a receiver has given credit and
      that have not arrived. Default: 1.5 bandwidth-delay products. Unit: bytes; values: 1 to
      1000000000; default: derived (paper), 150000 (reference). Derivation: 1.5, on the wire.
      Source: SIRD (B, 1.5 BDPs).
    - `sender_credit_bytes`: Most of these bytes that one sender may have; default: a
      bandwidth-delay product. Unit: bytes; values: 1 to 1000000000; default: derived (paper),
      100000 (reference). Derivation: 1. Source: SIRD (one BDP).
    - `unscheduled_bytes`: Size up to which messages are sent without credit, all of them at once;
      default: a bandwidth-delay product. Unit: bytes; values: 0 to 1000000000; default: derived
      (paper), 94640 (reference). Derivation: 1, of payload. Source: SIRD (UnschT, one BDP).
    - `sender_mark_packets`: Full packets for which a sender has credit, of all receivers, above
      which it marks its data; default: half a bandwidth-delay product. Values: 1 to 1000000;
      default: derived (paper), 33 (reference). Derivation: 0.5. Source: SIRD (SThr, half a BDP).
    - `ecn_packets`: Full packets in a queue from which switches mark data (ECN); default: one and a
      quarter bandwidth-delay products. Values: 1 to 1000000; default: derived (paper), 82
      (reference). Derivation: 1.25, preferred as `fabric.ecn-bytes`. Source: SIRD (NThr, 1.25
      BDPs).
    - `gain`: Weight of the latest share of marked packets in its mean (g of DCTCP). Values: 0.001
      to 1; default: 0.08. Source: the authors' simulator (0.08).
    - `sender_limit_min`: Smallest limit of a sender's credit by its own marks, as a share of
      `sender-credit-bytes`. Values: 0.001 to 1; default: 0.1. Source: the authors' simulator (0.1).
    - `core_limit_min`: Smallest limit of a sender's credit by the marks of switches, as a share of
      `sender-credit-bytes`. Values: 0.001 to 1; default: 0.03. Source: the authors' simulator
      (0.03).
    - `receiver_policy`: Choice of the sender that a receiver gives its next credit. Values: `srpt`,
      `round-robin`; default: `srpt`. Source: SIRD (shortest remaining first, or in turn).
    - `sender_policy`: Choice of the data packet that a sender sends next. Values: `half-fair`,
      `srpt`; default: `half-fair`. Source: SIRD (half of the credit in turn).
    - `unscheduled_class`: The class of unscheduled packets. Values: `data`, `control`; default:
      `control`. Source: SIRD (two priorities, for control and data).
    - `credit_rate`: Rate of the packets for which a receiver gives credit, as a share of its
      link's. Values: 0.01 to 1; default: 0.99 (paper), 1.0 (reference). Derivation: 0.99: the paper
      paces slightly below the link's rate. Source: SIRD (slightly below the link's rate); 1 in the
      authors' simulator.
    - `timeout_rtts`: Timeout in control round trips, or in times of a full packet if these are
      longer. A receiver then takes credit back, and a sender repeats its request. Values: 2 to
      1000000; default: 64 (paper), 4096 (reference). Source: Rampmeter (the authors' simulator has
      none).
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460
      (paper), 1456 (reference). Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40
      (paper), 82 (reference). Source: IPv4 and a transport header of 20 B, as in the simulators of
      dcPIM and pHost.
    - `unscheduled_payload_bytes`: Payload of a full unscheduled packet, which is as long on the
      wire as others; default: `payload-bytes`. Unit: bytes; values: 1 to 9000; default: derived
      (paper), 1442 (reference). Source: the authors' simulator (1442 B).
    - `grant_bytes`: Length of a grant, or a CREDIT of SIRD; default: the length of headers. Unit:
      bytes; values: 1 to 1500; default: derived (paper), 84 (reference). Source: the authors'
      simulator (84 B on the wire).
    - `ack_bytes`: Length of an acknowledgement; default: the length of headers. Unit: bytes;
      values: 1 to 1500; default: derived (paper), 116 (reference). Source: the authors' simulator
      (116 B on the wire).
    - `attempts_max`: Unanswered repetitions after which a message is reported as failed. Values: 1
      to 1000; default: 24. Source: Rampmeter (hosts must report failures, which the papers leave
      out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/sird.md.
    """

    name: str = field(default="sird", init=False)
    preset: Literal["paper", "reference"] | None = None
    credit_bytes: int | str | None = None
    sender_credit_bytes: int | str | None = None
    unscheduled_bytes: int | str | None = None
    sender_mark_packets: int | None = None
    ecn_packets: int | None = None
    gain: float | None = None
    sender_limit_min: float | None = None
    core_limit_min: float | None = None
    receiver_policy: Literal["srpt", "round-robin"] | None = None
    sender_policy: Literal["half-fair", "srpt"] | None = None
    unscheduled_class: Literal["data", "control"] | None = None
    credit_rate: float | None = None
    timeout_rtts: int | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    unscheduled_payload_bytes: int | str | None = None
    grant_bytes: int | str | None = None
    ack_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Hpcc(Transport):
    """Windows from queue lengths and rates that switches write on packets (HPCC).

    - `preset`: Preset of the values of omitted keys: `paper` (the default), `dcpim-study`.
    - `eta`: The share of the fullest link that windows aim at: eta. Values: 0.1 to 1; default:
      0.95. Derivation of `eta`, `max_stage`: 0.95, 5 (§5.1). Source: HPCC §5.1 (95 %).
    - `max_stage`: Additive steps in a row before a multiplicative one: maxStage. Values: 0 to 1000;
      default: 5. Derivation of `eta`, `max_stage`: 0.95, 5 (§5.1). Source: HPCC §5.1 (5).
    - `flows_per_link`: Flows that a link should carry: N. The additive step is W_init (1 - eta) /
      N. Values: 1 to 1000000; default: 100. Derivation: 100: W_AI is W_init (1 - eta) / N (§3.3),
      80 bytes at 100 Gbit/s and T = 13 us. Source: HPCC §3.3, N; its W_AI of 80 B is that of 100
      flows at 100 Gbit/s.
    - `step_bytes`: The additive step in bytes, W_AI; default: from `flows-per-link`. Unit: bytes;
      values: 1 to 1000000. Source: HPCC §3.3, W_AI.
    - `base_rtt_us`: The base round-trip time T; default: that of the longest path. Unit: µs;
      values: 0.1 to 1000000; default: derived (paper), 12.0 (dcpim-study). Derivation: that of the
      longest path. Source: HPCC §3.3, T (13 us in its network).
    - `recovery`: Recovery of lost packets. Values: `go-back-n`, `selective-repeat`; default:
      `go-back-n`. Source: HPCC's evaluation (go back N, or selective retransmission).
    - `rto_min_us`: Minimum retransmission timeout; default: 32 base round trips. Unit: µs; values:
      0.1 to 1000000. Source: Rampmeter (the paper relies on pauses).
    - `rto_max_us`: Maximum retransmission timeout, and the one before a round trip is measured;
      default: 1024 base round trips. Unit: µs; values: 0.1 to 1000000. Source: Rampmeter (the paper
      relies on pauses).
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1000
      (paper), 1460 (dcpim-study). Source: the public simulator of HPCC (1000 B).
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: IPv4 and a transport header of 20 B, as in the simulators of dcPIM and pHost.
    - `int_bytes`: Bytes of telemetry charged to each packet in addition, on its whole path. Unit:
      bytes; values: 0 to 1000; default: 42. Source: HPCC §4.1 (42 B).
    - `attempts_max`: Timeouts in a row after which a flow is reported as failed. Values: 1 to
      1000000; default: 24. Source: Rampmeter (hosts must report failures, which the papers leave
      out).
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/protocols/hpcc.md.
    """

    name: str = field(default="hpcc", init=False)
    preset: Literal["paper", "dcpim-study"] | None = None
    eta: float | None = None
    max_stage: int | None = None
    flows_per_link: int | None = None
    step_bytes: int | str | None = None
    base_rtt_us: float | str | None = None
    recovery: Literal["go-back-n", "selective-repeat"] | None = None
    rto_min_us: float | str | None = None
    rto_max_us: float | str | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    int_bytes: int | str | None = None
    attempts_max: int | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Python(Transport):
    """Endpoints that are objects of a Python class, for trying ideas.

    - `preset`: Preset of the values of omitted keys: `stop-and-wait` (the default).
    - `file`: The Python file that has the endpoints' class, relative to the plan. Values: a text;
      default: none. Source: Rampmeter.
    - `module`: Module of the class, instead of `file`; `rampmeter.endpoints` if both are left out.
      Values: a text; default: none. Source: Rampmeter.
    - `endpoint`: The class of the endpoints, derived from `rampmeter.Endpoint`. Values: a text;
      default: `StopAndWait`. Source: Rampmeter.
    - `parameters`: Arguments of the class in addition to its host. Values: a table; default: {}.
      Source: Rampmeter.
    - `payload_bytes`: Payload of a full packet. Unit: bytes; values: 1 to 9000; default: 1460.
      Source: 1500 B a packet, as in dcPIM §4.1 and pHost §4.1.
    - `header_bytes`: Bytes of headers charged to each packet, and the length of a control packet
      without content and without a key of its own. Unit: bytes; values: 1 to 1000; default: 40.
      Source: IPv4 and a transport header of 20 B, as in the simulators of dcPIM and pHost.
    - `control_rtt_us`: Round trip of a control packet, for the transport's derived values. Unit:
      µs; default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `data_rtt_us`: Round trip of a full packet, for the transport's derived values. Unit: µs;
      default: the network's. Source: Rampmeter (a plan's network, or measured between hosts).
    - `options`: Further keys, by their names in plans.

    Details: docs/howto/python-transport.md.
    """

    name: str = field(default="python", init=False)
    preset: Literal["stop-and-wait"] | None = None
    file: str | None = None
    module: str | None = None
    endpoint: str | None = None
    parameters: Table | None = None
    payload_bytes: int | str | None = None
    header_bytes: int | str | None = None
    control_rtt_us: float | str | None = None
    data_rtt_us: float | str | None = None

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


@dataclass(frozen=True, kw_only=True)
class Ideal(Transport):
    """No protocol: what a clairvoyant scheduler over the links would reach."""

    name: str = field(default="ideal", init=False)
    preset: Literal["paper", "reference"] | None = None
    """Preset of the values of omitted keys: `paper` (the default), `reference`."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    reach: Literal["wide", "core"] | None = None
    """Capacity of the network between racks."""


@dataclass(frozen=True, kw_only=True)
class DcPim(Transport):
    """Rounds of parallel iterative matching between hosts, then tokens (dcPIM)."""

    SYMBOLS: ClassVar[Mapping[str, str]] = {"r": "rounds", "k": "channels"}

    name: str = field(default="dcpim", init=False)
    preset: Literal["paper", "reference"] | None = None
    """Preset of the values of omitted keys: `paper` (the default), `reference`."""
    rounds: int | None = None
    """Matching rounds, r (1 to 32)."""
    channels: int | None = None
    """Channels of a host in each direction, k (1 to 64)."""
    beta: float | None = None
    """Slack of a stage, beta (0.1 to 100)."""
    channel_packets_min: int | None = None
    """Full packets that a phase holds for each channel, at least: stages are longer than beta
    requires if round trips are short and links slow (1 to 1000)."""
    fct_round: bool | None = None
    """True if the first round prefers the smallest flows (§3.5)."""
    short_flow_packets: int | None = None
    """Largest flow, in packets, that is sent without matching; one BDP if left out (at least 0)."""
    phases: Literal["paper", "overlapped"] | None = None
    """Stages of a phase."""
    round_view: Literal["strict", "local"] | None = None
    """Treatment of messages out of their round."""
    idle_capacity: Literal["unused", "prompt"] | None = None
    """Use of idle capacity."""
    demand: Literal["source", "smallest-flow"] | None = None
    """Demand from which requests are derived."""
    handshake: Literal["explicit", "implicit"] | None = None
    """Announcement and end."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    data_priority: Literal["token", "size"] | None = None
    """Priorities of data packets."""
    token_window: Literal["outstanding", "number"] | None = None
    """Counting of tokens in flight."""
    token_order: Literal["rank", "rank-and-remaining"] | None = None
    """Service at the sender."""
    short_flows: Literal["ignore", "withhold"] | None = None
    """Reaction to announced short flows."""
    grace_packets: int | None = None
    """Time for which tokens are valid after their phase, beyond half a control round trip, in full
    packet times per channel of a host (0 to 1000)."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    attempts_max: int | None = None
    """Unanswered repetitions after which a flow is reported as failed (1 to 1000)."""
    r: int | None = None
    """The paper's name of `rounds`."""
    k: int | None = None
    """The paper's name of `channels`."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class PHost(Transport):
    """Tokens a packet from the destination, free tokens for first packets (pHost)."""

    name: str = field(default="phost", init=False)
    preset: Literal["paper", "reference"] | None = None
    """Preset of the values of omitted keys: `paper` (the default), `reference`."""
    free_tokens: int | None = None
    """Free tokens of a flow; one more than a bandwidth-delay product has if left out (0 to
    1000000)."""
    free_for: Literal["every-flow", "short-flows"] | None = None
    """Flows that get free tokens."""
    token_lifetime: float | None = None
    """Lifetime of a token at its source, in times of a full packet. If left out, 1.5, and between
    real hosts at least a control round trip (0.001 to 10000)."""
    downgrade_on: Literal["expired", "unanswered"] | None = None
    """Tokens of a flow that count towards its downgrading."""
    downgrade_threshold: int | None = None
    """Most expired tokens of a flow that is not downgraded, or unanswered tokens at which it is; as
    many as free tokens if left out (1 to 1000000)."""
    downgrade_packets: int | None = None
    """Time for which a flow stays downgraded, in full packet times after its last token or its
    downgrading. If left out, three times as many as free tokens, and one (1 to 1000000)."""
    resend_packets: int | None = None
    """Time from a flow's last token to the next request for its missing packets, in full packet
    times. If left out, one more than free tokens (1 to 1000000)."""
    policy: Literal["srpt", "edf", "tenant-fair"] | None = None
    """Flow or tenant that both ends serve first."""
    data_priority: Literal["size", "single"] | None = None
    """Priorities of data packets."""
    free_repair: Literal["measured", "round-trip", "twice-pace"] | None = None
    """Repair of packets of free tokens."""
    free_expiry: Literal["never", "pace"] | None = None
    """Expiry of free tokens at their source. If left out, never, and between real hosts by pace."""
    free_hold: Literal["ignore", "until-data", "withhold"] | None = None
    """Suppression of tokens by announced free tokens."""
    wake: Literal["on-data", "on-clock"] | None = None
    """Event that wakes a destination without a flow to serve."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    attempts_max: int | None = None
    """Unanswered repetitions after which a flow is reported as failed (1 to 1000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class PFabric(Transport):
    """Ports that order and drop by remaining size, hosts at line rate (pFabric)."""

    name: str = field(default="pfabric", init=False)
    preset: Literal["paper", "reference", "ns-2"] | None = None
    """Preset of the values of omitted keys: `paper` (the default), `reference`, `ns-2`."""
    window: int | None = None
    """First window in packets; one bandwidth-delay product if left out (1 to 1000000)."""
    window_max: int | None = None
    """Largest window in packets; five quarters of the first if left out (1 to 1000000)."""
    rto_us: float | str | None = None
    """Retransmission timeout; three round trips if left out (0.1 to 1000000)."""
    duplicate_acks: int | None = None
    """Packets that must have arrived after a missing one for it to be lost; if left out, only
    timeouts find losses (§4.3) (1 to 60)."""
    starving_after: int | None = None
    """Consecutive timeouts after which a flow starves (1 to 1000000)."""
    starving: Literal["probe", "persist"] | None = None
    """Reaction of a starving flow."""
    probe_rank: Literal["first", "flow"] | None = None
    """The priority of its probes."""
    network: Literal["paper", "phost", "capton"] | None = None
    """Ports, paths and interfaces that it needs; keys of the fabric have precedence."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    attempts_max: int | None = None
    """Timeouts in a row after which a flow is reported as failed (1 to 1000000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Fastpass(Transport):
    """An arbiter that gives out time slots and paths (Fastpass)."""

    name: str = field(default="fastpass", init=False)
    preset: Literal["paper", "reference"] | None = None
    """Preset of the values of omitted keys: `paper` (the default), `reference`."""
    model: Literal["slots", "epochs"] | None = None
    """Slots or epochs."""
    arbiters: int | None = None
    """Arbiters: one, or one and its standby (1 to 2)."""
    batch: int | None = None
    """Slots that are allocated together (1 to 16)."""
    compute_us: float | str | None = None
    """Computation time of each batch; none if left out. It must be shorter than a batch (0 to
    1000000)."""
    slot_length: float | None = None
    """Length of a slot, in times of a full packet: capacity for acknowledgements and requests next
    to a full packet (1 to 100)."""
    epoch_packets: int | None = None
    """Packets that a host may send in an epoch (1 to 16)."""
    epoch_length: float | None = None
    """Length of an epoch, in times of a full packet (0.5 to 1000)."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet (1 to 1000)."""
    attempts_max: int | None = None
    """Unanswered repetitions after which a flow is reported as failed (1 to 1000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Cosy(Transport):
    """Delivery within a bound, or a reject (cosy)."""

    name: str = field(default="cosy", init=False)
    preset: Literal["paper", "rsvp"] | None = None
    """Preset of the values of omitted keys: `paper` (the default), `rsvp`."""
    slots: int | None = None
    """Virtual links of a link, and slots of a host each way (K, §3.3) (1 to 256)."""
    slots_per_message: int | None = None
    """Maximum number of slots that one message may have; all of them if left out (1 to 256)."""
    hold_us: float | str | None = None
    """Time for which a receiver holds a request that it cannot serve (appendix A, delta_E). If left
    out, the time of a message of 128 KB in a single slot (0 to 1000000000)."""
    choices: int | None = None
    """Number of requests, chosen at random, of which the one that has waited longest gets the next
    rsvp (§5.1: two) (1 to 1000)."""
    control_share: float | None = None
    """Share of a link that is reserved for control packets (0 to 0.9)."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""
    best_effort: Transport | None = None
    """The transport of all tenants but the first: DcPim or PHost."""


@dataclass(frozen=True, kw_only=True)
class Tcp(Transport):
    """Connections of hosts: Cubic or NewReno (RFC 9293, 9438, 6582)."""

    name: str = field(default="tcp", init=False)
    preset: Literal["cubic", "new-reno", "reference"] | None = None
    """Preset of the values of omitted keys: `cubic` (the default), `new-reno`, `reference`."""
    congestion_control: Literal["new-reno", "cubic", "dctcp"] | None = None
    """The congestion control."""
    connections: Literal["per-message", "persistent", "pool"] | None = None
    """Messages that share a connection."""
    handshake: bool | None = None
    """True if connections are opened by a handshake. Otherwise they count as opened before the
    run."""
    window_initial: int | None = None
    """First window in segments (1 to 100000)."""
    window_max: int | None = None
    """Largest window in segments (1 to 100000)."""
    slow_start_exit: Literal["never", "hystart-pp", "ack-train"] | None = None
    """Event that ends slow start before the first loss; Cubic only."""
    early_growth: bool | None = None
    """True if Cubic's window grows by at least 5 % a round trip before the first loss, as in Linux
    and ns-3."""
    reno_friendly: bool | None = None
    """True if Cubic's window is at least that of NewReno (RFC 9438 §4.3)."""
    reno_catch_up: bool | None = None
    """True if the estimate of NewReno's window grows by a whole segment a round trip beyond the
    window before the loss (RFC 9438 §4.3). In Linux it grows by 9/17 of a segment."""
    round_trips: Literal["exact", "milliseconds"] | None = None
    """Measurement of round trips."""
    loss_detection: Literal["rack-tlp", "dup-ack"] | None = None
    """Detection of losses."""
    reordering: int | None = None
    """Segments that must have arrived above a missing one for it to be lost (1 to 1000)."""
    reordering_window_rtts: float | None = None
    """Reordering window of `rack-tlp`, in shortest round trips, rounded to quarters, regardless of
    earlier reordering. RFC 8985's if left out: none before segments overtook one another, then a
    quarter (0.25 to 16)."""
    probe_slack_us: int | str | None = None
    """Time that `rack-tlp` waits beyond two round trips before it probes the end of a flight, in
    microseconds. RFC 8985 §7.2 has none; Linux has two ticks of its clock, 8000 at 250 Hz (0 to
    1000000)."""
    rto: Literal["estimated", "fixed"] | None = None
    """Time for which a sender waits for an acknowledgement."""
    rto_min_us: int | str | None = None
    """Smallest retransmission timeout in microseconds; 64 round trips, 200 ms at most, if left out
    (1 to 60000000)."""
    rto_max_us: int | str | None = None
    """Largest retransmission timeout in microseconds; 256 times the smallest, one minute at most,
    if left out (1 to 120000000)."""
    rto_initial_us: int | str | None = None
    """Retransmission timeout before there is a sample, in microseconds; 64 round trips, 1 s at
    most, if left out (1 to 60000000)."""
    idle_restart: bool | None = None
    """True if the window returns to the first one when a connection was idle for longer than the
    retransmission timeout (RFC 5681 §4.1)."""
    ack_every: int | None = None
    """Segments for each acknowledgement (1 to 64)."""
    ack_delay_us: int | str | None = None
    """Longest time that an acknowledgement is delayed, in microseconds (1 to 500000)."""
    ecn: bool | None = None
    """True if senders support ECN (RFC 3168)."""
    ecn_control: bool | None = None
    """True if handshakes and acknowledgements may be marked too."""
    mark_above: int | None = None
    """Queue length in full packets above which ports mark. If left out, 0.78 bandwidth-delay
    products, which are 65 packets at 10 Gbit/s and 100 us (Alizadeh et al. §3.4, §4) (0 to
    100000)."""
    gain: float | None = None
    """DCTCP's weight of a new measurement (0 to 1)."""
    alpha: float | None = None
    """DCTCP's first estimate of the share of marked bytes (0 to 1)."""
    pacing: bool | None = None
    """True if packets are paced evenly over a round trip: twice the window a round trip in slow
    start, 1.2 times the window afterwards."""
    receive_buffer: int | None = None
    """Receive window in bytes; two bandwidth-delay products, 16 MiB at least, if left out (1000 to
    2000000000)."""
    queue: int | None = None
    """Packet memory of a port in full packets; five bandwidth-delay products, 64 packets at least,
    if left out (1 to 1000000)."""
    count_packets: bool | None = None
    """True if `queue` and `mark-above` count packets of any length, as in ns-3's queues. Otherwise
    they mean the bytes of that number of full packets, as in switches."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    payload_bytes: int | str | None = None
    """Payload of a full packet: the largest segment (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    attempts_max: int | None = None
    """Timeouts in a row after which a connection is aborted (1 to 1000000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Dctcp(Transport):
    """TCP whose window follows the share of marked bytes (RFC 8257)."""

    name: str = field(default="dctcp", init=False)
    preset: Literal["rfc8257", "reference", "ns-2"] | None = None
    """Preset of the values of omitted keys: `rfc8257` (the default), `reference`, `ns-2`."""
    congestion_control: Literal["new-reno", "cubic", "dctcp"] | None = None
    """The congestion control."""
    connections: Literal["per-message", "persistent", "pool"] | None = None
    """Messages that share a connection."""
    handshake: bool | None = None
    """True if connections are opened by a handshake. Otherwise they count as opened before the
    run."""
    window_initial: int | None = None
    """First window in segments (1 to 100000)."""
    window_max: int | None = None
    """Largest window in segments (1 to 100000)."""
    slow_start_exit: Literal["never", "hystart-pp", "ack-train"] | None = None
    """Event that ends slow start before the first loss; Cubic only."""
    early_growth: bool | None = None
    """True if Cubic's window grows by at least 5 % a round trip before the first loss, as in Linux
    and ns-3."""
    reno_friendly: bool | None = None
    """True if Cubic's window is at least that of NewReno (RFC 9438 §4.3)."""
    reno_catch_up: bool | None = None
    """True if the estimate of NewReno's window grows by a whole segment a round trip beyond the
    window before the loss (RFC 9438 §4.3). In Linux it grows by 9/17 of a segment."""
    round_trips: Literal["exact", "milliseconds"] | None = None
    """Measurement of round trips."""
    loss_detection: Literal["rack-tlp", "dup-ack"] | None = None
    """Detection of losses."""
    reordering: int | None = None
    """Segments that must have arrived above a missing one for it to be lost (1 to 1000)."""
    reordering_window_rtts: float | None = None
    """Reordering window of `rack-tlp`, in shortest round trips, rounded to quarters, regardless of
    earlier reordering. RFC 8985's if left out: none before segments overtook one another, then a
    quarter (0.25 to 16)."""
    probe_slack_us: int | str | None = None
    """Time that `rack-tlp` waits beyond two round trips before it probes the end of a flight, in
    microseconds. RFC 8985 §7.2 has none; Linux has two ticks of its clock, 8000 at 250 Hz (0 to
    1000000)."""
    rto: Literal["estimated", "fixed"] | None = None
    """Time for which a sender waits for an acknowledgement."""
    rto_min_us: int | str | None = None
    """Smallest retransmission timeout in microseconds; 64 round trips, 200 ms at most, if left out
    (1 to 60000000)."""
    rto_max_us: int | str | None = None
    """Largest retransmission timeout in microseconds; 256 times the smallest, one minute at most,
    if left out (1 to 120000000)."""
    rto_initial_us: int | str | None = None
    """Retransmission timeout before there is a sample, in microseconds; 64 round trips, 1 s at
    most, if left out (1 to 60000000)."""
    idle_restart: bool | None = None
    """True if the window returns to the first one when a connection was idle for longer than the
    retransmission timeout (RFC 5681 §4.1)."""
    ack_every: int | None = None
    """Segments for each acknowledgement (1 to 64)."""
    ack_delay_us: int | str | None = None
    """Longest time that an acknowledgement is delayed, in microseconds (1 to 500000)."""
    ecn: bool | None = None
    """True if senders support ECN (RFC 3168)."""
    ecn_control: bool | None = None
    """True if handshakes and acknowledgements may be marked too."""
    mark_above: int | None = None
    """Queue length in full packets above which ports mark. If left out, 0.78 bandwidth-delay
    products, which are 65 packets at 10 Gbit/s and 100 us (Alizadeh et al. §3.4, §4) (0 to
    100000)."""
    gain: float | None = None
    """DCTCP's weight of a new measurement (0 to 1)."""
    alpha: float | None = None
    """DCTCP's first estimate of the share of marked bytes (0 to 1)."""
    pacing: bool | None = None
    """True if packets are paced evenly over a round trip: twice the window a round trip in slow
    start, 1.2 times the window afterwards."""
    receive_buffer: int | None = None
    """Receive window in bytes; two bandwidth-delay products, 16 MiB at least, if left out (1000 to
    2000000000)."""
    queue: int | None = None
    """Packet memory of a port in full packets; five bandwidth-delay products, 64 packets at least,
    if left out (1 to 1000000)."""
    count_packets: bool | None = None
    """True if `queue` and `mark-above` count packets of any length, as in ns-3's queues. Otherwise
    they mean the bytes of that number of full packets, as in switches."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    payload_bytes: int | str | None = None
    """Payload of a full packet: the largest segment (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    attempts_max: int | None = None
    """Timeouts in a row after which a connection is aborted (1 to 1000000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Pias(Transport):
    """DCTCP whose messages fall through classes by the bytes sent."""

    name: str = field(default="pias", init=False)
    preset: (
        Literal[
            "web-search-0.5", "web-search-0.8", "data-mining-0.5", "data-mining-0.8", "reference"
        ]
        | None
    ) = None
    """Preset of the values of omitted keys: `web-search-0.5` (the default), `web-search-0.8`,
    `data-mining-0.5`, `data-mining-0.8`, `reference`."""
    thresholds: list[int] | None = None
    """Packets of 1460 bytes. A packet falls a class for each of these numbers that the bytes of its
    message before it exceed. Equal numbers leave the classes between them empty (7 whole numbers
    from 0 to 100000000 that ascend)."""
    congestion_control: Literal["new-reno", "cubic", "dctcp"] | None = None
    """The congestion control."""
    connections: Literal["per-message", "persistent", "pool"] | None = None
    """Messages that share a connection."""
    handshake: bool | None = None
    """True if connections are opened by a handshake. Otherwise they count as opened before the
    run."""
    window_initial: int | None = None
    """First window in segments (1 to 100000)."""
    window_max: int | None = None
    """Largest window in segments (1 to 100000)."""
    slow_start_exit: Literal["never", "hystart-pp", "ack-train"] | None = None
    """Event that ends slow start before the first loss; Cubic only."""
    early_growth: bool | None = None
    """True if Cubic's window grows by at least 5 % a round trip before the first loss, as in Linux
    and ns-3."""
    reno_friendly: bool | None = None
    """True if Cubic's window is at least that of NewReno (RFC 9438 §4.3)."""
    reno_catch_up: bool | None = None
    """True if the estimate of NewReno's window grows by a whole segment a round trip beyond the
    window before the loss (RFC 9438 §4.3). In Linux it grows by 9/17 of a segment."""
    round_trips: Literal["exact", "milliseconds"] | None = None
    """Measurement of round trips."""
    loss_detection: Literal["rack-tlp", "dup-ack"] | None = None
    """Detection of losses."""
    reordering: int | None = None
    """Segments that must have arrived above a missing one for it to be lost (1 to 1000)."""
    reordering_window_rtts: float | None = None
    """Reordering window of `rack-tlp`, in shortest round trips, rounded to quarters, regardless of
    earlier reordering. RFC 8985's if left out: none before segments overtook one another, then a
    quarter (0.25 to 16)."""
    probe_slack_us: int | str | None = None
    """Time that `rack-tlp` waits beyond two round trips before it probes the end of a flight, in
    microseconds. RFC 8985 §7.2 has none; Linux has two ticks of its clock, 8000 at 250 Hz (0 to
    1000000)."""
    rto: Literal["estimated", "fixed"] | None = None
    """Time for which a sender waits for an acknowledgement."""
    rto_min_us: int | str | None = None
    """Smallest retransmission timeout in microseconds; 64 round trips, 200 ms at most, if left out
    (1 to 60000000)."""
    rto_max_us: int | str | None = None
    """Largest retransmission timeout in microseconds; 256 times the smallest, one minute at most,
    if left out (1 to 120000000)."""
    rto_initial_us: int | str | None = None
    """Retransmission timeout before there is a sample, in microseconds; 64 round trips, 1 s at
    most, if left out (1 to 60000000)."""
    idle_restart: bool | None = None
    """True if the window returns to the first one when a connection was idle for longer than the
    retransmission timeout (RFC 5681 §4.1)."""
    ack_every: int | None = None
    """Segments for each acknowledgement (1 to 64)."""
    ack_delay_us: int | str | None = None
    """Longest time that an acknowledgement is delayed, in microseconds (1 to 500000)."""
    ecn: bool | None = None
    """True if senders support ECN (RFC 3168)."""
    ecn_control: bool | None = None
    """True if handshakes and acknowledgements may be marked too."""
    mark_above: int | None = None
    """Queue length in full packets above which ports mark. If left out, 0.78 bandwidth-delay
    products, which are 65 packets at 10 Gbit/s and 100 us (Alizadeh et al. §3.4, §4) (0 to
    100000)."""
    gain: float | None = None
    """DCTCP's weight of a new measurement (0 to 1)."""
    alpha: float | None = None
    """DCTCP's first estimate of the share of marked bytes (0 to 1)."""
    pacing: bool | None = None
    """True if packets are paced evenly over a round trip: twice the window a round trip in slow
    start, 1.2 times the window afterwards."""
    receive_buffer: int | None = None
    """Receive window in bytes; two bandwidth-delay products, 16 MiB at least, if left out (1000 to
    2000000000)."""
    queue: int | None = None
    """Packet memory of a port in full packets; five bandwidth-delay products, 64 packets at least,
    if left out (1 to 1000000)."""
    count_packets: bool | None = None
    """True if `queue` and `mark-above` count packets of any length, as in ns-3's queues. Otherwise
    they mean the bytes of that number of full packets, as in switches."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    payload_bytes: int | str | None = None
    """Payload of a full packet: the largest segment (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    attempts_max: int | None = None
    """Timeouts in a row after which a connection is aborted (1 to 1000000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Capton(Transport):
    """A controller that lets the flow with the least left transmit, over all paths (CAPTON)."""

    name: str = field(default="capton", init=False)
    preset: Literal["paper"] | None = None
    """Preset of the values of omitted keys: `paper` (the default)."""
    threshold: int | None = None
    """Maximum length of messages that are sent at once, without a request, in segments (§IV.E) (0
    to 1000000)."""
    window: int | None = None
    """Packets that a flow with a grant has in flight at most; two bandwidth-delay products if left
    out (1 to 100000)."""
    shares: Literal["serial", "split"] | None = None
    """Sharing of links between flows."""
    share_min: float | None = None
    """Minimum share of a link that a flow takes with `split` (0.001 to 1)."""
    controllers: int | None = None
    """Number of controllers: hosts use the second if the first is unresponsive (1 to 2)."""
    compute_us: float | str | None = None
    """Time that a controller takes for an order. If left out, 10 in 86 of a round trip, which is 10
    us in the paper's network (§V.C) (0 to 10000)."""
    repeat_us: int | str | None = None
    """Time after which a request without an answer is repeated, in microseconds; four round trips
    and the controller's time if left out (1 to 10000000)."""
    fallback_us: int | str | None = None
    """Time without any answer after which a host does without the controller, in microseconds; 16
    times `repeat-us` if left out (1 to 60000000)."""
    lease_us: int | str | None = None
    """Time without a message after which the controller forgets a host, in microseconds; four times
    `fallback-us` if left out (100 to 60000000)."""
    core_mbps: int | str | None = None
    """Capacity of all uplinks of a rack together, in Mbit/s; that of the network if left out (1 to
    100000000)."""
    rack_hosts: int | None = None
    """Hosts of a rack, where hosts are numbered rack by rack; as in the network if left out (1 to
    100000)."""
    rto_min_us: int | str | None = None
    """Smallest retransmission timeout in microseconds; that of TCP if left out. The paper's study
    has 200000 (table 3) (1 to 60000000)."""
    reordering_window_rtts: float | None = None
    """Reordering window before a segment counts as lost, in shortest round trips, rounded to
    quarters (0.25 to 16)."""
    queue: int | None = None
    """Packet memory of a port in full packets. If left out, two bandwidth-delay products, at least
    142 (1 to 1000000)."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    attempts_max: int | None = None
    """Timeouts in a row after which a message is reported as failed (1 to 1000000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Hyline(Transport):
    """TCP for short messages; a controller that gives long ones turns and paths (Hyline)."""

    name: str = field(default="hyline", init=False)
    preset: Literal["paper"] | None = None
    """Preset of the values of omitted keys: `paper` (the default)."""
    threshold_bytes: int | str | None = None
    """Maximum length of messages that are sent at once, without a request, in bytes (0 to
    1000000000000)."""
    window_initial: int | None = None
    """First window of messages that are not scheduled, in packets. If left out, 25 in 72 of a
    bandwidth-delay product, the share of 25 packets in the CAPTON paper's network (1 to 100000)."""
    window_max: int | None = None
    """Largest window of messages that are not scheduled, in packets. If left out, a bandwidth-delay
    product and a packet, so that a message alone fills its links. The study has 50 of 72 (1 to
    100000)."""
    window_granted: int | None = None
    """Packets that a flow with a grant has in flight at most; `window-max` if left out (1 to
    100000)."""
    classes: int | None = None
    """Classes of packets. With 2 those of scheduled messages are in the lower one (1 to 2)."""
    controllers: int | None = None
    """Number of controllers: hosts use the second if the first is unresponsive (1 to 2)."""
    compute_us: float | str | None = None
    """Time that a controller takes for an order. If left out, 10 in 86 of a round trip, which is 10
    us in the paper's network (§V.C) (0 to 10000)."""
    repeat_us: int | str | None = None
    """Time after which a request without an answer is repeated, in microseconds; four round trips
    and the controller's time if left out (1 to 10000000)."""
    fallback_us: int | str | None = None
    """Time without any answer after which a host does without the controller, in microseconds; 16
    times `repeat-us` if left out (1 to 60000000)."""
    lease_us: int | str | None = None
    """Time without a message after which the controller forgets a host, in microseconds; four times
    `fallback-us` if left out (100 to 60000000)."""
    rto_min_us: int | str | None = None
    """Smallest retransmission timeout in microseconds; that of TCP if left out. The CAPTON paper's
    study has 4000 (table 3) (1 to 60000000)."""
    queue: int | None = None
    """Packet memory of a port in full packets. If left out, two bandwidth-delay products, at least
    142 (1 to 1000000)."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    attempts_max: int | None = None
    """Timeouts in a row after which a message is reported as failed (1 to 1000000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Fastpod(Transport):
    """An arbiter that gives out slots of a pod whose switches have no memory (Fastpod)."""

    name: str = field(default="fastpod", init=False)
    preset: Literal["paper"] | None = None
    """Preset of the values of omitted keys: `paper` (the default)."""
    arbiters: int | None = None
    """Arbiters: one, or one and its standby (1 to 2)."""
    optimistic: bool | None = None
    """True if messages are sent before they are scheduled when nothing else waits (§3.3)."""
    order: Literal["srpt", "fifo"] | None = None
    """Message to one destination that is sent first."""
    beacon_slots: int | None = None
    """Slots from one control packet without content to the next, in each direction of each host (1
    to 65536)."""
    compute_us: float | str | None = None
    """Computation time of each slot at the arbiter; none if left out. Slots are computed in
    parallel (0 to 1000000)."""
    clock_drift_ppm: float | None = None
    """Drift of clocks that guard bands allow for, in parts per million (0 to 1000)."""
    clock_jitter_ns: int | str | None = None
    """Error of a time stamp that guard bands allow for, in nanoseconds (0 to 1000000)."""
    stamp_jitter_ns: int | str | None = None
    """Error of a time stamp at each end, either way, in nanoseconds. Guard bands allow for
    `clock-jitter-ns`; without an error simulated clocks are read exactly (0 to 1000000)."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last cells."""
    packing: bool | None = None
    """True if short packets to one destination, a host of the pod or another pod, share a cell
    (§3.2). Packets then fill the time of a scheduled cell back to back, in the order of the queue,
    as long as the next one fits. Last packets of messages are charged their length regardless of
    `padding`, but at least `control-bytes`. Otherwise a cell has bytes of one message."""
    payload_bytes: int | str | None = None
    """Payload of a full cell (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each cell (1 to 1000)."""
    control_bytes: int | str | None = None
    """Bytes charged to an RTS or SCHD (46 to 1000)."""
    core_queue_cells: int | None = None
    """Cells for one pod that a core switch holds before arbiters of other pods are notified that
    they may not send more by it (§3.4) (1 to 1000000)."""
    core_buffer_cells: int | None = None
    """The same for cells to all pods together (1 to 16000000)."""
    attempts_max: int | None = None
    """Unanswered repetitions after which a flow is reported as failed (1 to 1000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Ndp(Transport):
    """Switches that trim packets, receivers that pull at the rate of their link (NDP)."""

    name: str = field(default="ndp", init=False)
    preset: Literal["paper", "reference"] | None = None
    """Preset of the values of omitted keys: `paper` (the default), `reference`."""
    window: int | None = None
    """Packets that a flow sends without a pull; one bandwidth-delay product if left out (1 to
    1000000)."""
    pull_bytes: int | str | None = None
    """Bytes of its link that a receiver allows for each pull; a full packet if left out (1 to
    1000000)."""
    pull_order: Literal["fair", "shortest-first"] | None = None
    """Order in which flows are pulled."""
    path_penalty: Literal["outliers", "none"] | None = None
    """Reaction of senders to paths with many trimmed packets."""
    ports: Literal["paper", "reference"] | None = None
    """The ports that it needs of the fabric."""
    rto_us: float | str | None = None
    """Time after which a packet is retransmitted that was neither acknowledged nor refused. Up to
    four consecutive timeouts double it each. If left out, a millisecond, or 64 round trips if these
    are longer (0.1 to 10000000)."""
    padding: Literal["exact", "full"] | None = None
    """Charged length of last packets."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each data packet (1 to 1000)."""
    control_bytes: int | str | None = None
    """Length of acknowledgements, refusals and pulls (1 to 1000)."""
    attempts_max: int | None = None
    """Timeouts in a row after which a flow is reported as failed (1 to 1000000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Homa(Transport):
    """Grants from the receiver, priorities by remaining size, overcommitment (Homa)."""

    name: str = field(default="homa", init=False)
    preset: Literal["paper", "reference"] | None = None
    """Preset of the values of omitted keys: `paper` (the default), `reference`."""
    rtt_bytes: int | str | None = None
    """Bytes of a message that may be in flight: those sent without a grant, and those granted that
    have not arrived. A bandwidth-delay product if left out (1 to 100000000)."""
    priorities: int | None = None
    """Priorities of data packets; the first of them is the highest of the fabric (2 to 8)."""
    unscheduled_priorities: int | None = None
    """Number of them for unscheduled packets (1 to 7)."""
    cutoffs_bytes: list[int] | list[str] | None = None
    """Sizes up to which messages have the first, second, ... of these. Only as many count as there
    are borders between them (7 whole numbers from 0 to 4000000000 that ascend)."""
    overcommitment: int | None = None
    """Senders that have grants at the same time; as many as scheduled priorities if left out (1 to
    1000)."""
    grants: Literal["window", "packet"] | None = None
    """Amount of data that a grant allows."""
    first_round: Literal["kept", "droppable"] | None = None
    """Treatment of unscheduled packets in switches."""
    mode: Literal["messages", "rpc"] | None = None
    """Relation between messages."""
    incast_messages: int | None = None
    """Messages that a host may await before its peers must send fewer unscheduled bytes; 0 for no
    incast control (0 to 1000000)."""
    incast_bytes: int | str | None = None
    """Number of unscheduled bytes that a message then has, in whole packets (0 to 1000000)."""
    timeout_rtts: int | None = None
    """Timeout in control round trips, or in times of a full packet if these are longer. A receiver
    then requests missing packets, and a sender without a response probes (2 to 1000000)."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    unscheduled_payload_bytes: int | str | None = None
    """Payload of a full unscheduled packet, which is as long as others; that of others if left out
    (1 to 9000)."""
    grant_bytes: int | str | None = None
    """Length of a grant; the length of headers if left out (1 to 1500)."""
    ack_bytes: int | str | None = None
    """Length of an acknowledgement; the length of headers if left out (1 to 1500)."""
    attempts_max: int | None = None
    """Unanswered repetitions after which a message is reported as failed (1 to 1000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class HomaAeolus(Transport):
    """Homa whose unscheduled packets switches drop early (Aeolus), with a probe after them."""

    name: str = field(default="homa-aeolus", init=False)
    preset: Literal["paper"] | None = None
    """Preset of the values of omitted keys: `paper` (the default)."""
    rtt_bytes: int | str | None = None
    """Bytes of a message that may be in flight: those sent without a grant, and those granted that
    have not arrived. A bandwidth-delay product if left out (1 to 100000000)."""
    priorities: int | None = None
    """Priorities of data packets; the first of them is the highest of the fabric (2 to 8)."""
    unscheduled_priorities: int | None = None
    """Number of them for unscheduled packets (1 to 7)."""
    cutoffs_bytes: list[int] | list[str] | None = None
    """Sizes up to which messages have the first, second, ... of these. Only as many count as there
    are borders between them (7 whole numbers from 0 to 4000000000 that ascend)."""
    overcommitment: int | None = None
    """Senders that have grants at the same time; as many as scheduled priorities if left out (1 to
    1000)."""
    grants: Literal["window", "packet"] | None = None
    """Amount of data that a grant allows."""
    first_round: Literal["kept", "droppable"] | None = None
    """Treatment of unscheduled packets in switches."""
    mode: Literal["messages", "rpc"] | None = None
    """Relation between messages."""
    incast_messages: int | None = None
    """Messages that a host may await before its peers must send fewer unscheduled bytes; 0 for no
    incast control (0 to 1000000)."""
    incast_bytes: int | str | None = None
    """Number of unscheduled bytes that a message then has, in whole packets (0 to 1000000)."""
    timeout_rtts: int | None = None
    """Timeout in control round trips, or in times of a full packet if these are longer. A receiver
    then requests missing packets, and a sender without a response probes (2 to 1000000)."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    unscheduled_payload_bytes: int | str | None = None
    """Payload of a full unscheduled packet, which is as long as others; that of others if left out
    (1 to 9000)."""
    grant_bytes: int | str | None = None
    """Length of a grant; the length of headers if left out (1 to 1500)."""
    ack_bytes: int | str | None = None
    """Length of an acknowledgement; the length of headers if left out (1 to 1500)."""
    attempts_max: int | None = None
    """Unanswered repetitions after which a message is reported as failed (1 to 1000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Sird(Transport):
    """Credit of receivers, limited by the queues that senders and switches report (SIRD)."""

    name: str = field(default="sird", init=False)
    preset: Literal["paper", "reference"] | None = None
    """Preset of the values of omitted keys: `paper` (the default), `reference`."""
    credit_bytes: int | str | None = None
    """Bytes on the wire of all packets for which a receiver has given credit and that have not
    arrived. If left out, 1.5 bandwidth-delay products (1 to 1000000000)."""
    sender_credit_bytes: int | str | None = None
    """Most of these bytes that one sender may have; a bandwidth-delay product if left out (1 to
    1000000000)."""
    unscheduled_bytes: int | str | None = None
    """Size up to which messages are sent without credit, all of them at once; a bandwidth-delay
    product if left out (0 to 1000000000)."""
    sender_mark_packets: int | None = None
    """Full packets for which a sender has credit, of all receivers, above which it marks its data;
    half a bandwidth-delay product if left out (1 to 1000000)."""
    ecn_packets: int | None = None
    """Full packets in a queue from which switches mark data (ECN); one and a quarter
    bandwidth-delay products if left out (1 to 1000000)."""
    gain: float | None = None
    """Weight of the latest share of marked packets in its mean (g of DCTCP) (0.001 to 1)."""
    sender_limit_min: float | None = None
    """Smallest limit of a sender's credit by its own marks, as a share of `sender-credit-bytes`
    (0.001 to 1)."""
    core_limit_min: float | None = None
    """Smallest limit of a sender's credit by the marks of switches, as a share of
    `sender-credit-bytes` (0.001 to 1)."""
    receiver_policy: Literal["srpt", "round-robin"] | None = None
    """Choice of the sender that a receiver gives its next credit."""
    sender_policy: Literal["half-fair", "srpt"] | None = None
    """Choice of the data packet that a sender sends next."""
    unscheduled_class: Literal["data", "control"] | None = None
    """The class of unscheduled packets."""
    credit_rate: float | None = None
    """Rate of the packets for which a receiver gives credit, as a share of its link's (0.01 to
    1)."""
    timeout_rtts: int | None = None
    """Timeout in control round trips, or in times of a full packet if these are longer. A receiver
    then takes back the credit of missing packets, and a sender without a response repeats its
    request (2 to 1000000)."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    unscheduled_payload_bytes: int | str | None = None
    """Payload of a full unscheduled packet, which is as long as others; that of others if left out
    (1 to 9000)."""
    grant_bytes: int | str | None = None
    """Length of a CREDIT; the length of headers if left out (1 to 1500)."""
    ack_bytes: int | str | None = None
    """Length of an acknowledgement; the length of headers if left out (1 to 1500)."""
    attempts_max: int | None = None
    """Unanswered repetitions after which a message is reported as failed (1 to 1000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Hpcc(Transport):
    """Windows from queue lengths and rates that switches write on packets (HPCC)."""

    name: str = field(default="hpcc", init=False)
    preset: Literal["paper", "dcpim-study"] | None = None
    """Preset of the values of omitted keys: `paper` (the default), `dcpim-study`."""
    eta: float | None = None
    """The share of the fullest link that windows aim at: eta (0.1 to 1)."""
    max_stage: int | None = None
    """Additive steps in a row before a multiplicative one: maxStage (0 to 1000)."""
    flows: int | None = None
    """Flows that a link should carry: N. The additive step is W_init (1 - eta) / N (1 to
    1000000)."""
    step_bytes: int | str | None = None
    """The additive step in bytes, W_AI; from `flows` if left out (1 to 1000000)."""
    base_rtt_us: float | str | None = None
    """The base round-trip time T; that of the longest path if left out (0.1 to 1000000)."""
    recovery: Literal["go-back-n", "selective-repeat"] | None = None
    """Recovery of lost packets."""
    timeout_min_us: float | str | None = None
    """Minimum retransmission timeout; 32 base round trips if left out (0.1 to 1000000)."""
    timeout_max_us: float | str | None = None
    """Maximum retransmission timeout, and the one before a round trip is measured; 1024 base round
    trips if left out (0.1 to 1000000)."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet without telemetry (1 to 1000)."""
    int_bytes: int | str | None = None
    """Bytes of telemetry charged to each packet besides, on all of its way (0 to 1000)."""
    attempts_max: int | None = None
    """Timeouts in a row after which a flow is reported as failed (1 to 1000000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""


@dataclass(frozen=True, kw_only=True)
class Python(Transport):
    """Endpoints that are objects of a Python class, for trying ideas."""

    name: str = field(default="python", init=False)
    preset: Literal["stop-and-wait"] | None = None
    """Preset of the values of omitted keys: `stop-and-wait` (the default)."""
    file: str | None = None
    """The Python file that has the endpoints' class, relative to the plan."""
    module: str | None = None
    """Module of the class, instead of `file`; `rampmeter.endpoints` if both are left out."""
    endpoint: str | None = None
    """The class of the endpoints, derived from `rampmeter.Endpoint`."""
    parameters: Table | None = None
    """Arguments of the class, besides its host."""
    payload_bytes: int | str | None = None
    """Payload of a full packet (1 to 9000)."""
    header_bytes: int | str | None = None
    """Bytes of headers charged to each packet, and the length of a control packet (1 to 1000)."""
    control_rtt_us: float | str | None = None
    """Round trip of a control packet, for the transport's derived values."""
    data_rtt_us: float | str | None = None
    """Round trip of a full packet, for the transport's derived values."""

//! Description of a transport: its parameters, its needs of a fabric, and the values that follow
//! from both on one network.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{FabricNeeds, Racks, RegularPaths};
use rampmeter_types::wire::Formats;
use rampmeter_types::{
    Bytes, DuplexRates, FabricFacts, NodeId, Pairs, Rate, RoundTrip, Segmentation, Span, Stage,
    Transport, Wiring,
};

use crate::keys::{BadKey, Keys, PacketSizes};

/// A transport: a [`Transport`] with a name in plans, results and documents.
///
/// The rest of the project uses a transport by this trait only. So a new transport is a module and
/// a line in [`Builtin`](crate::catalogue::Builtin).
pub trait RegisteredTransport:
    Transport<Config: std::fmt::Debug + Send + Sync, Header: Formats>
{
    /// Parameters, with the names, ranges and documentation that plans have.
    type Keys: Keys;
    /// Name in text: `pHost`.
    const TITLE: &'static str;
    /// One sentence for documents and for the Python class.
    const SUMMARY: &'static str;
    /// Number in front of packets. Numbers from [`TransportId::PRIVATE`] on are for transports
    /// outside this repository.
    const WIRE: TransportId;

    /// Stages at which its messages wait for permission to send.
    const STAGES: &'static [&'static Stage] = &[];

    /// Its rules in the table that compares all transports (`docs/protocols.md`).
    const RULES: TransportRules = TransportRules::UNKNOWN;

    /// True if it runs between real hosts. Otherwise [`RegisteredTransport::configure`] returns the
    /// reason.
    const ON_HOSTS: bool = true;

    /// Returns the segmentation of messages into packets.
    fn segmentation(keys: &Self::Keys) -> Segmentation;

    /// Returns the bytes of control packets that a receiver sends for a full packet of data, at
    /// least: acknowledgements, tokens, grants, pulls. Zero if it sends none, or if it is not
    /// known.
    fn reply_bytes(keys: &Self::Keys) -> Bytes {
        Self::segmentation(keys).header
    }

    /// Returns its needs of the fabric, of which only `_facts` are known.
    fn needs(_keys: &Self::Keys, _facts: &FabricFacts) -> FabricNeeds {
        FabricNeeds::default()
    }

    /// Returns its needs of a simulated fabric with this wiring. Arbiters that it has already are
    /// ignored.
    fn network_needs(keys: &Self::Keys, facts: &FabricFacts, _wiring: &Wiring) -> FabricNeeds {
        Self::needs(keys, facts)
    }

    /// Checks the parameters and derives values from them at `site`.
    ///
    /// # Errors
    /// A parameter that cannot be used there.
    fn configure(keys: Self::Keys, site: &Site) -> Result<Self::Config, BadKey>;

    /// Returns the parameters of a host if rates differ between pairs: `own` follows from the rate
    /// at which it receives, `network` from the slowest rate of any host. Takes values that all
    /// hosts must agree on from `network`, and values of a pair of hosts from `peers`.
    fn adapt_to_peers(own: Self::Config, _network: &Self::Config, _peers: &Peers) -> Self::Config {
        own
    }

    /// Returns a time of `network` that all hosts must agree on, if it would be shorter with all
    /// hosts as fast as one with `own`.
    fn shared_time(_own: &Self::Config, _network: &Self::Config) -> Option<SharedTime> {
        None
    }

    /// Returns the minimum packet memory of a port with which the transport works; at least one
    /// full packet in any case.
    fn buffer_min(_config: &Self::Config) -> Bytes {
        Bytes::ZERO
    }

    /// Returns its assumptions about the network at `site`.
    fn assumptions(_config: &Self::Config, _site: &Site) -> Assumptions {
        Assumptions::default()
    }

    /// Returns the values that follow from the parameters: windows, timeouts, epochs.
    fn describe(_config: &Self::Config) -> Vec<DerivedValue> {
        Vec::new()
    }
}

/// The rules of a transport in a few words each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TransportRules {
    /// The host or program that decides when a packet is sent, and by which means.
    pub decided_by: &'static str,
    /// State of a host in addition to that of its peers.
    pub host_state: &'static str,
    /// Functions of switches beyond queues.
    pub switch_functions: &'static str,
    /// Recovery of a lost packet.
    pub after_loss: &'static str,
}

impl TransportRules {
    /// The rules of a transport that does not describe them.
    pub const UNKNOWN: Self =
        Self { decided_by: "", host_state: "", switch_functions: "", after_loss: "" };
}

/// Assumptions of a transport that a network may not satisfy. Results are then worse than they
/// could be, and a warning is issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assumptions {
    /// Only hosts' links are scheduled: a core that is narrower than these drops packets.
    pub full_bisection: bool,
    /// Receivers request packets at the rate of their links: a core that is narrower trims or drops
    /// the excess, and much is retransmitted.
    pub paced_by_receivers: bool,
    /// Receivers assume packets lost that wait in a narrow core, or that its ports have no room
    /// for. The windows of messages do not depend on one another.
    pub one_window_each: bool,
    /// Slots have one length, so that all hosts have the parameters of the slowest.
    pub one_rate: bool,
    /// Hosts share times that follow from the longest round trip of the network.
    pub one_round_trip: bool,
    /// A host sends one flow at a time and receives one, even if its peer is slower.
    pub one_flow: bool,
    /// Links between inner switches, of which no end is a rack's switch, do not limit.
    pub wide_inner_links: bool,
    /// Packets of a message arrive in order: those that overtake others count as signs of losses.
    pub in_order: bool,
    /// The transport chooses paths, at least of the data of long messages: the path choice of the
    /// fabric does not hold for these packets.
    pub chooses_paths: bool,
    /// Windows grow until links are full, whatever the rates from which parameters follow.
    pub window_grows: bool,
    /// Links between switches are scheduled at the rates that these have at the start of a run.
    pub schedules_core: bool,
    /// Hosts send in slots by clocks of their own, which nothing sets. Messages may wait for as
    /// long as the clocks are apart.
    pub one_clock: bool,
    /// Drift of clocks that guard bands allow for, in parts per billion. Packets of hosts whose
    /// clocks drift more are lost. `None` if it does not matter.
    pub drift_ppb: Option<u32>,
}

impl Assumptions {
    /// Returns true if a core that is narrower than hosts' links has packets dropped or trimmed.
    pub fn needs_full_bisection(self) -> bool {
        self.full_bisection || self.paced_by_receivers
    }

    /// Returns the assumptions of two transports together.
    pub fn union(self, other: Self) -> Self {
        Self {
            full_bisection: self.full_bisection || other.full_bisection,
            paced_by_receivers: self.paced_by_receivers || other.paced_by_receivers,
            one_window_each: self.one_window_each || other.one_window_each,
            one_rate: self.one_rate || other.one_rate,
            one_round_trip: self.one_round_trip || other.one_round_trip,
            one_flow: self.one_flow || other.one_flow,
            wide_inner_links: self.wide_inner_links || other.wide_inner_links,
            in_order: self.in_order || other.in_order,
            chooses_paths: self.chooses_paths || other.chooses_paths,
            window_grows: self.window_grows && other.window_grows,
            schedules_core: self.schedules_core || other.schedules_core,
            one_clock: self.one_clock || other.one_clock,
            drift_ppb: self.drift_ppb.into_iter().chain(other.drift_ppb).min(),
        }
    }
}

/// The rates and round trips between one host and its peers. A value of a pair of hosts follows
/// from the rate in the direction of its data, so that both ends have the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Peers {
    host: NodeId,
    /// The facts of the network at the host's own rate.
    facts: FabricFacts,
    pairs: Arc<Pairs>,
}

impl Peers {
    /// Creates the peers of `host`. `facts` are those at the host's rate.
    pub fn new(host: NodeId, facts: FabricFacts, pairs: Arc<Pairs>) -> Self {
        Self { host, facts, pairs }
    }

    /// Returns the rate at which the host sends by all its links.
    pub fn tx_rate(&self) -> Rate {
        self.pairs.tx_rate(self.host)
    }

    /// Returns the rate at which the host receives by all its links.
    pub fn rx_rate(&self) -> Rate {
        self.pairs.rx_rate(self.host)
    }

    /// Returns the highest rate at which any host sends or receives.
    pub fn max_rate(&self) -> Rate {
        self.pairs.max_rate()
    }

    /// Returns the facts of the network at the rate to `dst` and the round trip to it.
    pub fn facts_to(&self, dst: NodeId) -> FabricFacts {
        self.facts_at(self.pairs.rate(self.host, dst), dst)
    }

    /// Returns the facts of the network at the rate from `src` and the round trip to it.
    pub fn facts_from(&self, src: NodeId) -> FabricFacts {
        self.facts_at(self.pairs.rate(src, self.host), src)
    }

    /// Returns the facts of the network for peers to which they are not the host's own, each once.
    pub fn peer_facts(&self) -> impl Iterator<Item = FabricFacts> {
        let to = |dst| self.facts_to(NodeId::new(dst));
        let of = |facts: FabricFacts| (facts.access_rate, facts.data_rtt, facts.control_rtt);
        let all = (0..self.pairs.n_hosts()).map(to).map(|facts| (of(facts), facts));
        let known: BTreeMap<_, _> = all.filter(|(_, facts)| *facts != self.facts).collect();
        known.into_values()
    }

    /// Returns the value for `peer` of a time that is a number of control round trips of the
    /// network.
    pub fn scale_time(&self, time: Span, peer: NodeId) -> Span {
        self.pairs.round_trip(self.host, peer).map_or(time, |RoundTrip { control, .. }| {
            time.scale_floor(control.as_ps(), self.facts.control_rtt.as_ps())
        })
    }

    /// Returns the value for `peer` of a time that is a number of round trips of full packets. Near
    /// hosts with slow links have longer ones than the round trips of control packets suggest.
    pub fn scale_data_time(&self, time: Span, peer: NodeId) -> Span {
        self.pairs.round_trip(self.host, peer).map_or(time, |RoundTrip { data, .. }| {
            time.scale_floor(data.as_ps(), self.facts.data_rtt.as_ps())
        })
    }

    /// Returns the value for `peer` of a timeout of the network. It is `round_trips` control round
    /// trips, and no less than `round_trips` full packets of `packet` bytes on the slower link of
    /// the two, or by the pair's share of the core.
    pub fn scale_timeout(
        &self,
        timeout: Span,
        round_trips: u32,
        packet: Bytes,
        peer: NodeId,
    ) -> Span {
        let rate = |src, dst| self.pairs.rate(src, dst).unwrap_or(self.facts.access_rate);
        let slower = rate(self.host, peer).min(rate(peer, self.host));
        let slower = self.facts.core_rate.map_or(slower, |core| core.min(slower));
        let least = slower.tx_time(packet) * u64::from(round_trips);
        self.scale_time(timeout, peer).min(timeout).max(least)
    }

    fn facts_at(&self, rate: Option<Rate>, peer: NodeId) -> FabricFacts {
        let own = FabricFacts { access_rate: rate.unwrap_or(self.facts.access_rate), ..self.facts };
        match self.pairs.round_trip(self.host, peer) {
            None => own,
            Some(RoundTrip { data, control }) => {
                FabricFacts { data_rtt: data, control_rtt: control, ..own }
            }
        }
    }
}

/// Location of a transport: its network or its hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The facts of the network, with round trips as the plan gives them.
    pub facts: FabricFacts,
    /// A simulated network or real hosts.
    pub deployment: Deployment,
    /// The longest packet of another transport that shares the links, in lower classes.
    pub lower: Option<Bytes>,
}

/// A simulated network or real hosts.
#[expect(clippy::large_enum_variant, reason = "one is made for each run")]
#[derive(Clone, Debug, PartialEq)]
pub enum Deployment {
    /// A simulated network.
    Network(Network),
    /// Real hosts, whose packets have this payload. Their headers are all other bytes of the link
    /// that a packet takes.
    Hosts(PacketSizes),
}

/// Properties of a simulated network.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Switches on the path between hosts that has most.
    pub switches: u32,
    /// The fastest link's rate over the slowest host link's, rounded down.
    pub rate_ratio: u32,
    /// The most ports of any switch.
    pub ports: u32,
    /// The slowest link, if it is slower than the slowest one of hosts.
    pub slow_link: Option<SlowerLink>,
    /// True if links between switches carry less than hosts can send to one another.
    pub is_narrow: bool,
    /// The most links of any host.
    pub rails: u32,
    /// The slowest link.
    pub slowest: Rate,
    /// The fastest link.
    pub fastest: Rate,
    /// The highest rate of slots for which no link between hosts is too slow.
    pub slot_rate: Rate,
    /// The slowest link between switches, or the fastest link if there is none.
    pub core: Rate,
    /// The rates and round trips between hosts.
    pub pairs: Arc<Pairs>,
    /// The racks of hosts and the capacity of their links to other switches.
    pub racks: Racks,
    /// The paths between racks, if they are regular.
    pub paths: Option<RegularPaths>,
    /// The wiring, with arbiters.
    pub wiring: Arc<Wiring>,
    /// Bytes after which switches that cut through forward a packet; `None` if they store packets.
    pub cut_through: Option<Bytes>,
}

/// A link that is slower than the slowest one of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowerLink {
    /// The names of its ends: `s0-s2`.
    pub name: String,
    /// Rate of its slower direction.
    pub rate: Rate,
}

impl SlowerLink {
    /// Returns the error of `transport`, which divides the time of hosts' links alone.
    pub fn refusal(&self, transport: &str) -> BadKey {
        let gbps = self.rate.as_bps() as f64 / 1e9;
        let expected = format!(
            "a transport for links slower than those of hosts, such as {} of {gbps} Gbit/s",
            self.name
        );
        BadKey::new("name", expected, transport)
    }
}

impl Site {
    /// Returns the wiring of the network, if it is simulated.
    pub fn wiring(&self) -> Option<&Wiring> {
        match &self.deployment {
            Deployment::Network(network) => Some(&network.wiring),
            Deployment::Hosts(_) => None,
        }
    }

    /// Returns true if the paths between racks are regular, or the network is not simulated.
    pub fn has_regular_paths(&self) -> bool {
        !matches!(&self.deployment, Deployment::Network(Network { paths: None, .. }))
    }

    /// Returns the facts of the network at the rate of slots.
    pub fn slot_facts(&self) -> FabricFacts {
        let rate = match &self.deployment {
            Deployment::Network(Network { slot_rate, .. }) => {
                self.facts.access_rate.min(*slot_rate)
            }
            Deployment::Hosts(_) => self.facts.access_rate,
        };
        FabricFacts { access_rate: rate, ..self.facts }
    }

    /// Returns the rates at which a host sends and receives by all its links.
    pub fn host_rates(&self, host: u32) -> DuplexRates {
        let host = NodeId::new(host);
        match &self.deployment {
            Deployment::Network(Network { pairs, .. }) => {
                DuplexRates { tx: pairs.tx_rate(host), rx: pairs.rx_rate(host) }
            }
            Deployment::Hosts(_) => DuplexRates::equal(self.facts.access_rate),
        }
    }

    /// Returns the round trip with full packets between near hosts.
    pub fn shortest_data_rtt(&self) -> Span {
        let shortest = match &self.deployment {
            Deployment::Network(Network { pairs, .. }) => pairs.min_round_trip(),
            Deployment::Hosts(_) => None,
        };
        shortest.map_or(self.facts.data_rtt, |shortest| shortest.data)
    }

    /// Returns the lengths of packets: `own`, those of the parameters, but those of real hosts.
    pub fn packet(&self, own: PacketSizes) -> PacketSizes {
        match self.deployment {
            Deployment::Network(_) => own,
            Deployment::Hosts(packet) => packet,
        }
    }
}

/// A time that all hosts share, in a network of hosts of several rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedTime {
    /// Name in plans: `phase`.
    pub name: &'static str,
    /// Length, which follows from the slowest host.
    pub shared: Span,
    /// The length that would follow from the fastest host.
    pub fastest: Span,
}

/// A number that follows from the parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DerivedValue {
    /// Name in the words of plans: `token-lifetime`.
    pub name: &'static str,
    /// Value with its unit.
    pub quantity: Quantity,
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A time.
    Time(Span),
    /// A number of full packets.
    Packets(u64),
    /// A number of bytes.
    Bytes(u64),
    /// A number of anything else.
    Count(u64),
}

impl DerivedValue {
    /// A time.
    pub fn time(name: &'static str, span: Span) -> Self {
        Self { name, quantity: Quantity::Time(span) }
    }

    /// A number of packets.
    pub fn packets(name: &'static str, n: u32) -> Self {
        Self { name, quantity: Quantity::Packets(n.into()) }
    }

    /// A number.
    pub fn count(name: &'static str, n: u64) -> Self {
        Self { name, quantity: Quantity::Count(n) }
    }

    /// Name with unit, and value, as the manifest has them.
    pub fn entry(&self) -> (String, f64) {
        match self.quantity {
            Quantity::Time(span) => (format!("{}-us", self.name), span.as_us_f64()),
            Quantity::Packets(n) => (format!("{}-packets", self.name), n as f64),
            Quantity::Bytes(n) => (format!("{}-bytes", self.name), n as f64),
            Quantity::Count(n) => (self.name.to_owned(), n as f64),
        }
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Time(span) => write!(f, "{:.1} us", span.as_us_f64()),
            Self::Packets(n) => write!(f, "{n} packets"),
            Self::Bytes(n) => write!(f, "{n} bytes"),
            Self::Count(n) => write!(f, "{n}"),
        }
    }
}

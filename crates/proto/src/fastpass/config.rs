//! Fastpass's parameters and what they imply for one fabric.

use rampmeter_types::fabric::RegularPaths;
use rampmeter_types::{FabricFacts, Header, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::FastpassHeader;
use crate::keys::{BadKey, Keys, PacketSizes, Preset, Setting, check_ranges};
use crate::toolkit::{
    AttemptLimit, Padding, Segmentation, keepalive, paused_probe_interval, retransmit_gap,
};

/// AllocationUnit of arbitration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocationUnit {
    /// Time slots of pairs of hosts, least recently served first, with a path for each packet
    /// (Fastpass §3, §4).
    Slots,
    /// Epochs of flows, fewest remaining packets first, packets sprayed: what the pHost study calls
    /// Fastpass.
    Epochs,
}

/// Fastpass's parameters. [`FastpassConfig::paper`] and [`FastpassConfig::reference`] are the
/// presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct FastpassConfig {
    /// Unit of the allocation of links.
    pub allocation_unit: AllocationUnit,
    /// Arbiters: one, or one and its standby.
    #[schemars(range(min = 1, max = 2))]
    pub arbiters: u32,
    /// Slots that are allocated together.
    #[schemars(range(min = 1, max = 16))]
    pub batch: u32,
    /// Computation time of each batch; default: none. It must be shorter than a batch.
    #[serde(rename = "compute-us", with = "crate::keys::micros")]
    #[schemars(with = "Option<f64>", range(min = 0.0, max = 1e6))]
    pub compute: Option<Span>,
    /// Length of a slot, in times of a full packet: capacity for acknowledgements and requests next
    /// to a full packet.
    #[serde(rename = "slot-length", with = "crate::keys::milli")]
    #[schemars(with = "f64", range(min = 1.0, max = 100.0))]
    pub slot_milli: u32,
    /// Packets that a host may send in an epoch.
    #[schemars(range(min = 1, max = 16))]
    pub epoch_packets: u32,
    /// Length of an epoch, in times of a full packet.
    #[serde(rename = "epoch-length", with = "crate::keys::milli")]
    #[schemars(with = "f64", range(min = 0.5, max = 1_000.0))]
    pub epoch_milli: u32,
    /// Charged length of last packets.
    pub padding: Padding,
    /// Lengths of full packets.
    #[serde(flatten)]
    pub packet: PacketSizes,
    /// Unanswered repetitions after which a flow is reported as failed.
    #[schemars(range(min = 1, max = 1000))]
    pub attempts_max: u32,
}

impl Default for FastpassConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for FastpassConfig {
    const PRESETS: &'static [Preset<Self>] =
        &[("paper", FastpassConfig::paper), ("reference", FastpassConfig::reference)];
    const SETTINGS: &'static [Setting] =
        &[Setting { preset: "reference", gbps: 10, payload: None, window: None }];
}

impl FastpassConfig {
    /// Returns the paper's design: slots of one full packet, 16 a batch, one standby.
    pub fn paper() -> Self {
        Self {
            allocation_unit: AllocationUnit::Slots,
            arbiters: 2,
            batch: 16,
            compute: None,
            slot_milli: 1_050,
            epoch_packets: 8,
            epoch_milli: 8_500,
            padding: Padding::Exact,
            packet: PacketSizes::new(1460, 40),
            attempts_max: 24,
        }
    }

    /// Returns the Fastpass of the pHost study.
    pub fn reference() -> Self {
        Self {
            allocation_unit: AllocationUnit::Epochs,
            arbiters: 1,
            padding: Padding::Full,
            ..Self::paper()
        }
    }
}

/// The parameters of Fastpass on one fabric: a configuration that has been checked, and the times
/// and counts that follow from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fastpass {
    /// The parameters.
    pub config: FastpassConfig,
    /// Number of hosts; arbiters' numbers follow.
    pub n_hosts: u32,
    /// The paths between racks, where the network is regular enough to choose among them.
    pub paths: Option<RegularPaths>,
    /// Time of a full packet on an access link.
    pub mtu_time: Span,
    /// Length of a slot.
    pub slot: Span,
    /// Computation time of a batch.
    pub compute: Span,
    /// Slots between the present one and the start of a batch.
    pub lead_slots: u64,
    /// Length of an epoch.
    pub epoch: Span,
    /// Time after which a packet that has not been acknowledged counts as lost.
    pub rto: Span,
    /// Time after which a host repeats a request that has not been answered.
    pub retry: Span,
    /// Interval between an arbiter's watchdogs to its standby.
    pub watchdog: Span,
    /// Time after which a destination forgets a flow whose source is unresponsive.
    pub forget_timeout: Span,
    /// Unanswered attempts after which a message fails.
    pub attempt_limit: AttemptLimit,
    /// Pause between packets that probe a destination whose flow control pauses the flow.
    pub paused_probe_interval: Span,
    /// A quarter of the interval between probes of a paused message, if there are many: a full
    /// packet is a probe.
    pub probe_gap: Span,
}

/// Least time after its last packet at which a destination forgets a flow. A source whose flow
/// waits behind shorter ones sends nothing to the destination meanwhile.
const FORGET: Span = Span::from_us(5_000_000);

impl FastpassConfig {
    /// Checks the parameters and derives what follows from them on a fabric. `arbiter_time` is how
    /// long an arbiter's link takes for allocations to all hosts.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn derive(
        self,
        facts: &FabricFacts,
        paths: Option<RegularPaths>,
        arbiter_time: Span,
    ) -> Result<Fastpass, BadKey> {
        check_ranges(&self)?;
        let attempt_limit = AttemptLimit::new(self.attempts_max, facts);
        let mtu_time = facts.access_rate.tx_time(self.packet.wire());
        let slot = mtu_time.scale_floor(self.slot_milli.into(), 1_000);
        let batch = slot * u64::from(self.batch);
        let full_epoch = u64::from(self.epoch_packets) * 1_000;
        if u64::from(self.epoch_milli) < full_epoch {
            let expected = format!("{} (`epoch-packets`) to 1000", self.epoch_packets);
            let got = f64::from(self.epoch_milli) / 1e3;
            return Err(BadKey::new("epoch-length", expected, got));
        }
        let compute = self.compute.unwrap_or(Span::ZERO);
        if compute >= batch {
            let expected = format!("less than a batch, {} us", batch.as_us_f64());
            return Err(BadKey::new("compute-us", expected, compute.as_us_f64()));
        }
        // An allocation is used when it has been computed, has been sent behind all others and has
        // crossed the network.
        let answer = compute + arbiter_time;
        let lead_slots = (facts.control_rtt / 2 + answer).div_floor(slot) + 2;
        let retry = facts.control_rtt * 2 + answer * 2 + batch * 2;
        Ok(Fastpass {
            n_hosts: facts.n_hosts,
            paths,
            mtu_time,
            slot,
            compute,
            lead_slots,
            epoch: mtu_time.scale_floor(self.epoch_milli.into(), 1_000),
            rto: facts.data_rtt * 2 + batch,
            retry,
            watchdog: retry,
            forget_timeout: attempt_limit.forget_timeout(FORGET),
            attempt_limit,
            paused_probe_interval: paused_probe_interval(keepalive(facts, self.packet.wire())),
            probe_gap: retransmit_gap(facts) * 4,
            config: self,
        })
    }
}

impl Fastpass {
    /// Returns a control packet on the wire. Those of the epoch model have the length of its
    /// headers regardless of their content, as in the study's simulator.
    pub(super) fn control_bytes(&self, header: &FastpassHeader) -> u16 {
        let fixed = self.config.packet.header.get() as u16;
        match self.config.allocation_unit {
            AllocationUnit::Slots => fixed + header.wire_len() as u16,
            AllocationUnit::Epochs => fixed,
        }
    }

    #[inline]
    pub(super) fn segmentation(&self) -> Segmentation {
        self.config.packet.segmentation(self.config.padding)
    }
}

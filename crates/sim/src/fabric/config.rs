//! The settings of a fabric.

use super::by_port::{Marking, PortBytes};
pub use rampmeter_types::fabric::{Buffer, Interface, Overflow, Spray};
use rampmeter_types::fabric::{MarkingPorts, PfcClasses, PfcThreshold, Trim};
use rampmeter_types::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time at which a switch may begin to forward a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// After the last bit of the packet.
    StoreAndForward,
    /// After the header, if the output link does not run dry.
    CutThrough {
        /// Bytes that must be in.
        header: Bytes,
    },
    /// Links are token buckets, as shapers of operating systems are. A packet passes whole as soon
    /// as the link's rate allows. A link that was idle makes up for up to `burst` of the idle time.
    /// Only the last link, to the host, adds a packet's time.
    Shaped {
        /// The time that an idle link makes up for.
        burst: Span,
    },
}

/// Treatment of a packet that is cut off in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketFate {
    /// The part that has been sent is forwarded, and keeps the links ahead busy.
    #[default]
    CutOff,
    /// The packet frees the links ahead at once.
    Vanish,
}

/// Order of the packets of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// The order of arrival.
    #[default]
    Fifo,
    /// Equal shares of the link, in bytes, for flows that have packets.
    Fair,
}

/// The settings of a fabric; the default is the dcPIM paper's (table 1).
#[derive(Clone, Debug, PartialEq)]
pub struct FabricConfig {
    /// Packet memory.
    pub buffer: Buffer,
    /// Packet memory of ports that have another than `buffer`.
    pub buffer_by_port: PortBytes,
    /// Behaviour if packet memory is full.
    pub overflow: Overflow,
    /// Order of the packets of one class.
    pub scheduling: Scheduling,
    /// Path choice.
    pub spray: Spray,
    /// Time at which forwarding begins.
    pub switching: Switching,
    /// Treatment of packets without a schedule that are cut off for others, if packets may not
    /// wait.
    pub unscheduled_collision: PacketFate,
    /// Place of the packet queue in hosts.
    pub interface: Interface,
    /// Packets of the highest priority up to this length get their departure time when they reach a
    /// port, and do not count as waiting. Strict priority makes this time certain. It saves an
    /// event for most control packets. Zero for fabrics in which they compete for buffers.
    pub express_max: u16,
    /// Marks packets that find more than this many bytes queued at a switch's port, or at an
    /// interface that queues, if their sender is ECN-capable. This is DCTCP's K, compared with the
    /// queue at this moment. The packet on the link does not count, nor do express packets. `None`
    /// never marks.
    pub mark_above: Option<Bytes>,
    /// Thresholds of ports that have another than `mark_above`.
    pub mark_above_by_port: PortBytes,
    /// Bytes above which all packets are marked. `None` is `mark_above`: a step.
    pub mark_all_above: Option<Bytes>,
    /// Upper thresholds of ports that have another than `mark_all_above`.
    pub mark_all_above_by_port: PortBytes,
    /// Share of packets that are marked at the upper threshold, from 0 to 1.
    pub mark_share: f64,
    /// Ports that mark.
    pub marking_ports: MarkingPorts,
    /// Drops packets marked [`UNSCHEDULED`](rampmeter_types::packet::Marks::UNSCHEDULED) that find
    /// more than this many bytes queued at a switch's port (selective dropping, Aeolus). The
    /// packet on the link does not count, nor do express packets, which are never dropped so.
    /// `None` never drops them.
    pub drop_unscheduled_above: Option<Bytes>,
    /// Memory that a waiting packet takes at least, in bytes. It is that of a full packet if queues
    /// are counted in packets. Queue lengths in results are in such bytes too.
    pub buffer_cell: u16,
    /// Trimming at ports, if the transport's ports trim
    /// ([`Queueing::Trimming`](rampmeter_types::Queueing)).
    pub trim: Trim,
    /// Keep account of queued bytes by the port at which they arrived, as PFC's thresholds need:
    /// [`Fabric::waiting_from`](super::Fabric::waiting_from). Programs that need it in any case set
    /// `SwitchProgram::COUNTS_INGRESS`.
    pub counts_ingress: bool,
    /// Priority flow control: switches pause the other end of a link instead of dropping its
    /// packets. Needs [`Buffer::Shared`], whose `alpha` then limits no port. `None` drops.
    pub pfc: Option<PfcConfig>,
}

impl Default for FabricConfig {
    fn default() -> Self {
        Self {
            buffer: Buffer::PerPort(Bytes::new(500_000)),
            buffer_by_port: PortBytes::default(),
            overflow: Overflow::PushOut,
            scheduling: Scheduling::Fifo,
            spray: Spray::SourceRoundRobin,
            switching: Switching::StoreAndForward,
            unscheduled_collision: PacketFate::default(),
            interface: Interface::Pull,
            express_max: 64,
            mark_above: None,
            mark_above_by_port: PortBytes::default(),
            mark_all_above: None,
            mark_all_above_by_port: PortBytes::default(),
            mark_share: 1.0,
            marking_ports: MarkingPorts::All,
            drop_unscheduled_above: None,
            buffer_cell: 0,
            trim: Trim::paper(Bytes::new(1500)),
            counts_ingress: false,
            pfc: None,
        }
    }
}

impl FabricConfig {
    /// Returns the limit of a port's queue if buffers are per port.
    pub(crate) fn port_buffer(&self, tier: &str, rate: Rate) -> u32 {
        let bytes = match self.buffer {
            Buffer::PerPort(bytes) => self.buffer_by_port.get(tier, rate).unwrap_or(bytes),
            Buffer::Shared { .. } => return u32::MAX,
        };
        u32::try_from(bytes.get()).unwrap_or(u32::MAX)
    }

    /// Returns the thresholds of a port's marks.
    pub(super) fn marking(&self, tier: &str, rate: Rate) -> Marking {
        let above = self.mark_above_by_port.get(tier, rate).or(self.mark_above);
        let all_above = self.mark_all_above_by_port.get(tier, rate).or(self.mark_all_above);
        Marking::new(above, all_above, self.mark_share)
    }

    /// Returns true if no packet may wait in switches.
    pub fn is_memoryless(&self) -> bool {
        self.buffer == Buffer::PerPort(Bytes::ZERO) && self.buffer_by_port.is_empty()
    }

    /// The longest packet that is express. None is if nothing may wait.
    #[inline]
    pub(crate) fn express(&self) -> u16 {
        if self.is_memoryless() { 0 } else { self.express_max }
    }

    /// The longest queue at which no unscheduled packet is dropped.
    #[inline]
    pub(crate) fn drop_above(&self) -> u32 {
        let above = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        self.drop_unscheduled_above.map_or(u32::MAX, above)
    }

    /// Returns true if `bytes` more may be queued at a port that holds `queued`, in a switch that
    /// holds `used`.
    #[inline]
    pub(crate) fn admits(&self, queued: u32, buffer: u32, used: u64, bytes: u32) -> bool {
        match self.buffer {
            Buffer::PerPort(_) => queued + bytes <= buffer,
            Buffer::Shared { per_switch, alpha } => {
                let free = per_switch.get().saturating_sub(used);
                u64::from(bytes) <= free && f64::from(queued) < alpha * free as f64
            }
        }
    }
}

/// The settings of priority flow control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PfcConfig {
    /// Bytes of one ingress that may wait in shared memory.
    pub threshold: PfcThreshold,
    /// Classes that a pause stops.
    pub classes: PfcClasses,
    /// Distance below the threshold at which the other end is resumed.
    pub hysteresis: Bytes,
    /// Memory of each ingress beyond the threshold; `None` for what its link needs so that nothing
    /// is lost ([`PfcConfig::headroom_of`]).
    pub headroom: Option<Bytes>,
    /// The longest packet.
    pub packet: Bytes,
}

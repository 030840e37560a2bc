//! Causes and blockers, and the facts on which they depend.

use rampmeter_types::{MsgId, Span, Stage, Time};

use crate::engine::Handle;

/// Maximum number of blockers of a message and cause that are named; the others are a sum.
pub(super) const BLOCKERS_MAX: usize = 16;

/// Discovery of a loss after all bytes of a message had been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSignal {
    /// Detection by a deadline of the sender.
    Timeout,
    /// Detection by a packet: a negative or duplicate acknowledgement, a token for the packet, a
    /// returned header.
    Packet,
    /// The loss was not yet discovered.
    Open,
}

/// Cause of a part of a message's time. Tiers are numbers of [`Fabric::tier_names`].
///
/// [`Fabric::tier_names`]: crate::fabric::Fabric::tier_names
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The sender waited for permission, at this stage of the transport.
    Permission(&'static Stage),
    /// The packet that ended the stage was in flight to the sender.
    PermissionInFlight(&'static Stage),
    /// The sender had permission, and its link was busy.
    SenderLink,
    /// Bits of the message were put on a link. At the sender they are those of all its packets.
    /// Later they are those of the completing packet and of packets of the message in front of it.
    Serialisation,
    /// The sender retransmitted bytes.
    Retransmission,
    /// All bytes had been sent, and a loss was not yet repaired. The tier is that of the last drop.
    Loss(LossSignal, Option<u8>),
    /// The completing packet waited behind packets of others.
    Queueing(u8),
    /// The completing packet waited at a port that sent nothing, or the sender had permission and
    /// its link was idle: paused, or failed.
    Paused(u8),
    /// The completing packet waited for its own tail, in a fabric of cut-through switches.
    CutThrough(u8),
    /// All bytes had arrived, and the receiver waited for earlier ones of the connection.
    Ordering,
    /// Bits travelled along links.
    Propagation,
    /// Switches and hosts processed the completing packet.
    Switching,
}

impl Cause {
    /// Number of kinds.
    pub(super) const N_KINDS: usize = 12;

    /// Returns the number of its kind, below [`Cause::N_KINDS`].
    #[inline]
    pub(super) fn kind(self) -> usize {
        match self {
            Self::Permission(_) => 0,
            Self::PermissionInFlight(_) => 1,
            Self::SenderLink => 2,
            Self::Serialisation => 3,
            Self::Retransmission => 4,
            Self::Loss(..) => 5,
            Self::Queueing(_) => 6,
            Self::Paused(_) => 7,
            Self::CutThrough(_) => 8,
            Self::Ordering => 9,
            Self::Propagation => 10,
            Self::Switching => 11,
        }
    }
}

/// Time between two instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) from: Time,
    pub(crate) until: Time,
}

impl Period {
    pub(crate) fn length(self) -> Span {
        self.until - self.from
    }
}

/// Part of the time of a message during which others had a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The place of the part among those of the message.
    pub part: u32,
    /// The number in the workload of the message that used the link. `None` for control packets,
    /// and for the sum of messages beyond the first 16.
    pub flow: Option<u32>,
    /// Time for which it used the link.
    pub time: Span,
}

/// The causes of a message's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowBlame {
    /// The number of the message in the workload.
    pub number: u32,
    /// Time from its submission until its last byte arrived.
    pub time: Span,
    /// Parts, which sum to `time`.
    pub parts: Vec<(Cause, Span)>,
    /// Messages that used the link meanwhile. While a message waits for permission that is the link
    /// of its receiver.
    pub blockers: Vec<Blocker>,
}

/// Input of a sender, after which permissions may change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PermissionInput {
    /// A control packet arrived that was sent at this time.
    Packet(Time),
    /// A deadline passed.
    Deadline,
    /// The message was submitted, or a packet of it was sent.
    Own,
}

/// The packet with the last missing byte of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletingPacket {
    pub(crate) msg: MsgId,
    pub(crate) handle: Handle,
    /// Time of its departure from the sender.
    pub(crate) sent: Time,
}

/// Fields of a port on which parts depend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortFacts {
    pub(crate) tier: u8,
    /// Propagation and processing.
    pub(crate) delay: Span,
    /// Propagation alone.
    pub(crate) propagation: Span,
    /// The cause of waits in which the port sends nothing.
    pub(crate) idle_cause: Cause,
}

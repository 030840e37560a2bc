//! Parts that protocols are built of. A transport outside this crate may use them too.
//!
//! * [`Segmentation`]: packets of a message, by its size
//! * [`Output`]: control packets and events that wait for the driver
//! * [`OutgoingFlows`], [`RetryTimer`], [`SlotSet`]: flows of a sender, their timers, those that
//!   may send
//! * [`AttemptLimit`]: unanswered attempts after which a message fails
//! * [`Recovery`]: timeouts of messages whose receivers request missing packets
//! * [`ArrivingFlows`], [`FlowNumbers`]: flows of a receiver, and which it has had
//! * [`DataHeader`]: flows of data packets, as their headers name them
//! * [`Candidates`]: flows of which the most preferred is served next, while others wait
//! * [`AckReceiver`]: a receiver that answers every packet with an acknowledgement
//! * [`CreditPackets`]: lengths of packets, if receivers grant all but the first ones
//! * [`Stream`] and its [`Window`]: a flow sent by windows, with retransmission
//! * [`TokenCursor`]: which packet a receiver requests next
//! * [`UnscheduledTime`]: time for which announced packets may wait at the receiver's link
//! * [`TenantCounts`]: packets served by tenant
//! * [`Timers`]: many deadlines behind one
//!
//! Memory is bounded by submitted messages and arrived packets, never by a number in a header.

mod ack_receiver;
mod arriving_flows;
mod attempt_limit;
mod candidates;
mod config;
mod counters;
mod credit_packets;
mod data_header;
mod message_set;
mod numbers;
mod outgoing_flows;
mod output;
mod recovery;
mod retransmit_queue;
mod retry;
mod sides;
mod slot_set;
mod stream;
mod tenant;
mod timers;
mod token_delay;
mod tokens;
mod transport_macro;
mod unscheduled;

pub use ack_receiver::{AckContent, AckReceiver, sack_bits};
pub use arriving_flows::{Announcement, ArrivingFlow, ArrivingFlowId, ArrivingFlows, FlowStatus};
pub use attempt_limit::AttemptLimit;
pub use candidates::Candidates;
pub use config::{
    CAPTON_PORT_PACKETS, check_range, dcpim_study_buffer, forget_after, keepalive,
    paused_probe_interval, phost_study_buffer, timeout_of, two_bdps,
};
pub(crate) use counters::counters;
pub use credit_packets::CreditPackets;
pub use data_header::{DataHeader, FlowKey};
pub use numbers::{FlowNumbers, NextNumber, NumberState};
pub use outgoing_flows::{OutgoingFlow, OutgoingFlows};
pub use output::Output;
pub use rampmeter_types::segmentation::{OutgoingMessage, Padding, Segmentation};
pub use recovery::Recovery;
pub(crate) use retransmit_queue::RetransmitQueue;
pub use retransmit_queue::retransmit_gap;
pub use retry::RetryTimer;
pub(crate) use sides::sides;
pub use slot_set::SlotSet;
pub use stream::{Ack, AckEffect, RttEstimator, SendLimit, Stream, Window};
pub use tenant::TenantCounts;
pub use timers::Timers;
pub use token_delay::TokenDelay;
pub(crate) use token_delay::TokenId;
pub use tokens::{IssuedToken, TokenCursor};
pub(crate) use transport_macro::transport;
pub use unscheduled::{SizedFlow, UnscheduledTime};

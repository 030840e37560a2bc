//! Vocabulary that all parts of Rampmeter share.
//!
//! * [`units`], [`quantity`]: time, bytes and rates, as types and as texts
//! * [`clock`]: origins of clocks
//! * [`id`]: identifiers of hosts, messages and tenants
//! * [`rng`]: random streams
//! * [`packet`]: the packet
//! * [`segmentation`]: packets of a message, by its size
//! * [`wire`]: the wire codec
//! * [`envelope`]: the envelope of real networks
//! * [`fabric`]: the settings of a fabric
//! * [`wiring`], [`SourceRoute`]: nodes, links and ports, and paths by ports
//! * [`TypeError`]: errors of serde in the words of a user
//! * [`endpoint`], [`transport`]: the interface between protocols and the drivers that run them
//!
//! Nothing here does I/O, reads a clock or draws entropy.

pub mod clock;
pub mod collections;
pub mod endpoint;
pub mod envelope;
pub mod fabric;
pub mod id;
pub mod packet;
mod pairs;
pub mod quantity;
mod rates;
pub mod rng;
pub mod segmentation;
mod source_route;
pub mod transport;
mod type_error;
pub mod units;
pub mod wire;
pub mod wiring;

pub use clock::ClockOrigin;
pub use endpoint::{
    Endpoint, Event, Gauge, HostPolicy, LatencyBound, Message, Observation, Permission, Phase,
    Protocol, Receipt, Stage, merge_counters,
};
pub use id::{MsgId, NodeId, TenantId};
pub use packet::{Packet, PayloadRef, Priority};
pub use pairs::{HostLink, Pairs, Planes, RoundTrip, RoundTrips};
pub use rates::{DuplexRates, RateRange};
pub use rng::{Purpose, Rng};
pub use segmentation::{OutgoingMessage, Padding, Segmentation};
pub use source_route::SourceRoute;
pub use transport::{
    Departure, FabricFacts, ForwardOnly, NoArbiter, Queueing, RankProgram, SwitchFacts,
    SwitchProgram, TransitPacket, Transport, TrimmingProgram, Verdict,
};
pub use type_error::{NameError, TypeError, without_os_error};
pub use units::{Bytes, Rate, Span, Time};
pub use wire::{Header, WireError};
pub use wiring::Wiring;

//! Hyline's packets: requests and orders, next to those of TCP.
//!
//! A header starts with a type byte. Types below 16 are TCP's.

use rampmeter_types::wire::{Format, Formats, count, join};
use rampmeter_types::{Bytes, NodeId, Rate, headers};

use super::path_grant::PathGrant;
use crate::central::wire::OrderFormats;
use crate::central::{CentralHeader, Control, Request};
use crate::tcp::wire::TcpHeader;

headers! {
    /// Messages between hosts and controllers.
    pub enum SignalHeader {
        /// Host to controller: reports the remaining bytes of a flow.
        16 Request (request "request", H to C) "flow {flow} to {dst}, {remaining} bytes remaining" {
            /// The flow's number, that of its message at the source.
            flow: u32 as "Flow, numbered by its source",
            /// The destination.
            dst: u32 as "Destination",
            /// Remaining bytes on the wire.
            remaining: u64 as "Remaining bytes",
            /// The highest number of an order of this flow that the host has received.
            acked_order: u32 as "Latest order received",
        },
        /// Controller to host: transmit at this rate, by this path.
        17 Grant (permission "go", C to H) "flow {flow} may send at {rate} bit/s by path {path}" {
            /// The flow.
            flow: u32,
            /// The number of the order; those of a flow rise.
            order: u32 as "Order",
            /// The rate in bits per second.
            rate: u64 as "Rate (bit/s)" [rate at least 1],
            /// The number of the path; 65535 if switches choose.
            path: u16 as "Path",
        },
        /// Controller to host: do not transmit.
        18 Stop (control "stop", C to H) "flow {flow} must wait" {
            /// The flow.
            flow: u32,
            /// The number of the order.
            order: u32,
        },
        /// Host to controller: the flow has ended, or never existed.
        19 Done (control "done", H to C) "flow {flow} has ended" {
            /// The flow.
            flow: u32,
        },
    }
}

/// A Hyline header.
pub type HylineHeader = CentralHeader<SignalHeader>;

/// The number that represents no path.
const NO_PATH: u16 = u16::MAX;

impl OrderFormats for SignalHeader {
    const WITH_TCP: &'static [Format] = {
        const PARTS: &[&[Format]] = &[TcpHeader::FORMATS, SignalHeader::FORMATS];
        &join::<{ count(PARTS) }>(PARTS)
    };
}

impl From<Control<PathGrant>> for SignalHeader {
    fn from(control: Control<PathGrant>) -> Self {
        match control {
            Control::Request(Request { number: flow, dst, remaining, acked_order }) => {
                Self::Request { flow, dst: dst.get(), remaining: remaining.get(), acked_order }
            }
            Control::Order { number: flow, order, grant: Some(PathGrant { rate, path }) } => {
                Self::Grant { flow, order, rate: rate.as_bps(), path: path.unwrap_or(NO_PATH) }
            }
            Control::Order { number: flow, order, grant: None } => Self::Stop { flow, order },
            Control::Done { number: flow } => Self::Done { flow },
        }
    }
}

impl From<SignalHeader> for Control<PathGrant> {
    fn from(header: SignalHeader) -> Self {
        match header {
            SignalHeader::Request { flow: number, dst, remaining, acked_order } => {
                let (dst, remaining) = (NodeId::new(dst), Bytes::new(remaining));
                Self::Request(Request { number, dst, remaining, acked_order })
            }
            SignalHeader::Grant { flow: number, order, rate, path } => {
                let path = (path != NO_PATH).then_some(path);
                let grant = Rate::from_bps(rate).map(|rate| PathGrant { rate, path });
                Self::Order { number, order, grant }
            }
            SignalHeader::Stop { flow: number, order } => {
                Self::Order { number, order, grant: None }
            }
            SignalHeader::Done { flow: number } => Self::Done { number },
        }
    }
}

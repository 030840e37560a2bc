//! CAPTON's packets: requests and orders (figure 5), next to those of TCP.
//!
//! A header starts with a type byte. Types below 16 are TCP's.

use rampmeter_types::wire::{Format, Formats, count, join};
use rampmeter_types::{Bytes, NodeId, Rate, headers};

use crate::central::wire::OrderFormats;
use crate::central::{CentralHeader, Control, Request};
use crate::tcp::wire::TcpHeader;

headers! {
    /// Messages between hosts and controllers.
    pub enum OrderHeader {
        /// Host to controller: reports the remaining bytes of a flow (RT).
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
        /// Controller to host: transmit at this rate.
        17 Grant (permission "grant", C to H) "flow {flow} may send at {rate} bit/s" {
            /// The flow.
            flow: u32,
            /// The number of the order; those of a flow rise.
            order: u32 as "Order",
            /// The rate in bits per second.
            rate: u64 as "Rate (bit/s)" [rate at least 1],
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

/// A CAPTON header.
pub type CaptonHeader = CentralHeader<OrderHeader>;

impl OrderFormats for OrderHeader {
    const WITH_TCP: &'static [Format] = {
        const PARTS: &[&[Format]] = &[TcpHeader::FORMATS, OrderHeader::FORMATS];
        &join::<{ count(PARTS) }>(PARTS)
    };
}

impl From<Control<Rate>> for OrderHeader {
    fn from(control: Control<Rate>) -> Self {
        match control {
            Control::Request(Request { number: flow, dst, remaining, acked_order }) => {
                Self::Request { flow, dst: dst.get(), remaining: remaining.get(), acked_order }
            }
            Control::Order { number: flow, order, grant: Some(rate) } => {
                Self::Grant { flow, order, rate: rate.as_bps() }
            }
            Control::Order { number: flow, order, grant: None } => Self::Stop { flow, order },
            Control::Done { number: flow } => Self::Done { flow },
        }
    }
}

impl From<OrderHeader> for Control<Rate> {
    fn from(header: OrderHeader) -> Self {
        match header {
            OrderHeader::Request { flow: number, dst, remaining, acked_order } => {
                let (dst, remaining) = (NodeId::new(dst), Bytes::new(remaining));
                Self::Request(Request { number, dst, remaining, acked_order })
            }
            OrderHeader::Grant { flow: number, order, rate } => {
                Self::Order { number, order, grant: Rate::from_bps(rate) }
            }
            OrderHeader::Stop { flow: number, order } => Self::Order { number, order, grant: None },
            OrderHeader::Done { flow: number } => Self::Done { number },
        }
    }
}

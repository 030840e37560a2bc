//! CAPTON's packets: requests and orders (figure 5), beside those of TCP.
//!
//! A header starts with a type byte. Types below 16 are TCP's.

use rampmeter_core::wire::{Format, Formats, count, join};
use rampmeter_core::{Header, WireError, headers};

use crate::tcp::wire::TcpHeader;

headers! {
    /// What hosts and controllers say to each other.
    pub enum OrderHeader {
        /// Host to controller: a flow has so much to send (RT).
        16 Request (control "request", H to C) "flow {flow} to {dst}, {left} bytes left" {
            /// The flow's number, that of its message at the source.
            flow: u32 as "Flow, numbered by its source",
            /// The destination.
            dst: u32 as "Destination",
            /// What is left to send, in bytes on the wire.
            left: u64 as "Bytes left",
            /// The highest number of an order that the host has heard of this flow.
            heard: u32 as "Latest order heard",
        },
        /// Controller to host: transmit at this rate.
        17 Grant (control "grant", C to H) "flow {flow} may send at {rate} bit/s" {
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
        /// Host to controller: the flow is over, or never was.
        19 Done (control "done", H to C) "flow {flow} is over" {
            /// The flow.
            flow: u32,
        },
    }
}

/// A CAPTON header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptonHeader {
    /// Between hosts and controllers.
    Order(OrderHeader),
    /// Between hosts.
    Tcp(TcpHeader),
}

/// The first type byte that is not TCP's.
const FIRST: u8 = 16;

/// Asks whichever header it is.
macro_rules! whichever {
    ($self:ident, $header:ident => $call:expr) => {
        match $self {
            CaptonHeader::Order($header) => $call,
            CaptonHeader::Tcp($header) => $call,
        }
    };
}

impl Header for CaptonHeader {
    fn wire_len(&self) -> usize {
        whichever!(self, header => header.wire_len())
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        whichever!(self, header => header.encode(out))
    }

    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        if bytes.first().is_some_and(|&code| code >= FIRST) {
            OrderHeader::decode(bytes).map(|(header, read)| (Self::Order(header), read))
        } else {
            TcpHeader::decode(bytes).map(|(header, read)| (Self::Tcp(header), read))
        }
    }

    fn kind(&self) -> &'static str {
        whichever!(self, header => header.kind())
    }

    fn fields(&self, tell: &mut dyn FnMut(&'static str, &'static str, u64)) {
        whichever!(self, header => header.fields(tell));
    }
}

impl Formats for CaptonHeader {
    const FORMATS: &'static [Format] = {
        const PARTS: &[&[Format]] = &[TcpHeader::FORMATS, OrderHeader::FORMATS];
        &join::<{ count(PARTS) }>(PARTS)
    };

    #[inline]
    fn code(&self) -> u8 {
        whichever!(self, header => header.code())
    }

    fn arbitrary(code: u8, draw: &mut dyn FnMut() -> u64) -> Option<Self> {
        if code >= FIRST {
            OrderHeader::arbitrary(code, draw).map(Self::Order)
        } else {
            TcpHeader::arbitrary(code, draw).map(Self::Tcp)
        }
    }

    fn values(&self, tell: &mut dyn FnMut(&'static str, &'static str, u64)) {
        whichever!(self, header => header.values(tell));
    }
}

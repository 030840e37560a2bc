//! Control messages, and the packets that carry them or TCP.

use rampmeter_types::wire::{Format, Formats, PacketKind};
use rampmeter_types::{Header, WireError};

use super::controller::Request;
use crate::tcp::wire::TcpHeader;

/// Messages between hosts and controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<G> {
    /// Host to controller: a flow requests to transmit.
    Request(Request),
    /// Controller to host.
    Order {
        /// The flow's number at its source.
        number: u32,
        /// The number of the order; those of a flow rise.
        order: u32,
        /// Grant of the flow; `None` to stop.
        grant: Option<G>,
    },
    /// Host to controller: the flow has ended, or never existed.
    Done {
        /// The flow's number at its source.
        number: u32,
    },
}

/// Control messages as a transport encodes them, with type bytes from [`FIRST_CODE`] on.
pub trait Orders<G>: OrderFormats + From<Control<G>> + Into<Control<G>> {}

impl<G, O: OrderFormats + From<Control<G>> + Into<Control<G>>> Orders<G> for O {}

/// The formats of control messages.
pub trait OrderFormats: Formats {
    /// Formats of TCP, and then those of control messages.
    const WITH_TCP: &'static [Format];
}

/// A header of a transport with a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CentralHeader<O> {
    /// Control message between a host and a controller.
    Order(O),
    /// Segment between hosts.
    Tcp(TcpHeader),
}

/// The first type byte that is not TCP's.
pub const FIRST_CODE: u8 = 16;

/// Evaluates a call on the header, of either kind.
macro_rules! whichever {
    ($self:ident, $header:ident => $call:expr) => {
        match $self {
            CentralHeader::Order($header) => $call,
            CentralHeader::Tcp($header) => $call,
        }
    };
}

impl<O: Header> Header for CentralHeader<O> {
    fn wire_len(&self) -> usize {
        whichever!(self, header => header.wire_len())
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        whichever!(self, header => header.encode(out))
    }

    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        if bytes.first().is_some_and(|&code| code >= FIRST_CODE) {
            O::decode(bytes).map(|(header, read)| (Self::Order(header), read))
        } else {
            TcpHeader::decode(bytes).map(|(header, read)| (Self::Tcp(header), read))
        }
    }

    fn name(&self) -> &'static str {
        whichever!(self, header => header.name())
    }

    fn kind(&self) -> PacketKind {
        whichever!(self, header => header.kind())
    }

    fn fields(&self, visit: &mut dyn FnMut(&'static str, &'static str, u64)) {
        whichever!(self, header => header.fields(visit));
    }
}

impl<O: OrderFormats> Formats for CentralHeader<O> {
    const FORMATS: &'static [Format] = O::WITH_TCP;

    #[inline]
    fn code(&self) -> u8 {
        whichever!(self, header => header.code())
    }

    fn arbitrary(code: u8, draw: &mut dyn FnMut() -> u64) -> Option<Self> {
        if code >= FIRST_CODE {
            O::arbitrary(code, draw).map(Self::Order)
        } else {
            TcpHeader::arbitrary(code, draw).map(Self::Tcp)
        }
    }

    fn values(&self, visit: &mut dyn FnMut(&'static str, &'static str, u64)) {
        whichever!(self, header => header.values(visit));
    }
}

//! Types of a pair of transports on one network, and the headers of its packets.

use std::marker::PhantomData;
use std::sync::Arc;

use rampmeter_types::wire::{PacketKind, Reader, Writer};
use rampmeter_types::{FabricFacts, Header, Packet, Priority, WireError};

use crate::keys::{BadKey, PacketSizes};
use crate::registered::{RegisteredTransport, Site};
use crate::toolkit::Segmentation;

/// The transport of `A` above `B`. At most one of them has arbiters, and both need ports to queue
/// the same way; anything else does not compile.
#[derive(Clone, Copy, Debug)]
pub struct Coexisting<A, B>(PhantomData<fn() -> (A, B)>);

/// The parameters of both.
#[derive(Debug)]
pub struct CoexistingConfig<A, B> {
    /// Parameters of the upper transport.
    pub upper: Arc<A>,
    /// Parameters of the lower transport.
    pub lower: Arc<B>,
}

impl<A, B> CoexistingConfig<A, B> {
    /// Returns the parameters of both at `site`. The lower transport assumes the network
    /// `lower_facts`.
    ///
    /// # Errors
    /// A parameter that cannot be used there.
    pub fn configure<U, L>(
        upper: U::Keys,
        lower: L::Keys,
        site: &Site,
        lower_facts: FabricFacts,
    ) -> Result<Self, BadKey>
    where
        U: RegisteredTransport<Config = A>,
        L: RegisteredTransport<Config = B>,
    {
        let Segmentation { payload, header, .. } = L::segmentation(&lower);
        let packet = site.packet(PacketSizes { payload, header });
        let above = Site { lower: Some(packet.wire()), ..site.clone() };
        let upper = U::configure(upper, &above)?;
        let site = Site { facts: lower_facts, ..site.clone() };
        let lower = L::configure(lower, &site).map_err(prefix_lower_key)?;
        Ok(Self { upper: Arc::new(upper), lower: Arc::new(lower) })
    }
}

/// Returns an error of the lower transport's keys.
pub fn prefix_lower_key(bad: BadKey) -> BadKey {
    BadKey { key: format!("best-effort.{}", bad.key), ..bad }
}

/// A header of either.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CoexistingHeader<A, B> {
    /// A header of the upper transport.
    Upper(A),
    /// A header of the lower transport.
    Lower(B),
}

impl<A: Header, B: Header> Header for CoexistingHeader<A, B> {
    fn wire_len(&self) -> usize {
        match self {
            Self::Upper(header) => 1 + header.wire_len(),
            Self::Lower(header) => 1 + header.wire_len(),
        }
    }

    fn rank(&self) -> u32 {
        match self {
            Self::Upper(header) => header.rank(),
            Self::Lower(header) => header.rank(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Upper(header) => header.name(),
            Self::Lower(header) => header.name(),
        }
    }

    fn kind(&self) -> PacketKind {
        match self {
            Self::Upper(header) => header.kind(),
            Self::Lower(header) => header.kind(),
        }
    }

    fn fields(&self, visit: &mut dyn FnMut(&'static str, &'static str, u64)) {
        match self {
            Self::Upper(header) => header.fields(visit),
            Self::Lower(header) => header.fields(visit),
        }
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let got = out.len();
        let mut w = Writer::new(out);
        w.u8(u8::from(matches!(self, Self::Lower(_))))?;
        let rest = out.get_mut(1..).unwrap_or_default();
        let written = match self {
            Self::Upper(header) => header.encode(rest),
            Self::Lower(header) => header.encode(rest),
        };
        written.map(|n| n + 1).map_err(|error| shift_error(error, got))
    }

    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let tag = Reader::new(bytes).u8()?;
        let (got, rest) = (bytes.len(), bytes.get(1..).unwrap_or_default());
        let decoded = match tag {
            0 => A::decode(rest).map(|(header, n)| (Self::Upper(header), n + 1)),
            1 => B::decode(rest).map(|(header, n)| (Self::Lower(header), n + 1)),
            other => return Err(WireError::UnknownType(other)),
        };
        decoded.map_err(|error| shift_error(error, got))
    }
}

/// Returns an error of the bytes after the first, with lengths from the front.
fn shift_error(error: WireError, got: usize) -> WireError {
    match error {
        WireError::Truncated { needed, .. } => WireError::Truncated { needed: needed + 1, got },
        other => other,
    }
}

/// Returns the same packet with another header.
pub(crate) fn replace_header<H, G>(packet: &Packet<H>, header: G) -> Packet<G> {
    let Packet { payload, src, dst, wire_bytes, path, priority, marks, .. } = *packet;
    Packet { header, payload, src, dst, wire_bytes, path, priority, marks }
}

/// Classes that are the upper transport's: those of the lower start below.
const UPPER_CLASSES: u8 = 2;

/// Returns a packet of the lower transport, in its class below the upper's.
pub(super) fn wrap_lower<A, B: Copy>(packet: &Packet<B>) -> Packet<CoexistingHeader<A, B>> {
    let class = packet.priority.get().saturating_add(UPPER_CLASSES);
    Packet {
        priority: Priority::new(class),
        ..replace_header(packet, CoexistingHeader::Lower(packet.header))
    }
}

/// Returns a packet of the upper transport, in its own class.
pub(super) fn wrap_upper<A: Copy, B>(packet: &Packet<A>) -> Packet<CoexistingHeader<A, B>> {
    replace_header(packet, CoexistingHeader::Upper(packet.header))
}

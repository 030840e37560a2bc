//! Handshake of an application and a node, before they share memory.
//!
//! Two packets each way on a socket that preserves packet boundaries. Numbers are little-endian.
//!
//! | bytes of a request | field |
//! |---|---|
//! | 0-7 | magic `RMRING`, zero-padded |
//! | 8-11 | version, 3 |
//! | 12-13 | service |
//! | 14-15 | zero |
//! | 16-19 | maximum number of messages in flight |
//! | 20-23 | zero |
//! | 24-31 | bytes of the send arena |
//! | 32-39 | bytes of the receive arena |
//!
//! The answer starts with magic and version, too; then a code of four bytes. Zero means that two
//! descriptors are attached, the memory and the node's doorbell (an eventfd), and that a grant
//! follows. Any other code is an error, and its text follows.
//!
//! | bytes of a grant | field |
//! |---|---|
//! | 0-7 | bytes of the memory |
//! | 8-11 | maximum number of messages in flight |
//! | 12-15 | maximum number of received messages that are held |
//! | 16-23 | bytes of the send arena |
//! | 24-31 | bytes of the receive arena |
//! | 32-35 | messages that have a bound: 0 none, 1 all, 2 those of one tenant |
//! | 36-39 | the tenant, zero unless there is one |
//! | 40-47 | payload of a full packet in bytes |
//! | 48-55 | constant part of the bound in picoseconds |
//! | 56-63 | picoseconds that each packet of a message adds |
//!
//! The last three are zero if no messages have a bound.
//!
//! An application that has mapped the memory sends a packet of one byte, [`MAPPED`]. The node seals
//! the memory, so that nobody can punch holes into it, and answers with a packet of one byte. It
//! does not access the memory before.
//!
//! Later the node sends packets of one byte, each of which wakes a sleeping application. The
//! application sends nothing more on the socket: it writes to the doorbell. The other direction has
//! no eventfd for a reason. Any process with an eventfd can make writes to it block, so that an
//! application could stall the node.

use thiserror::Error;

use rampmeter_types::{Bytes, LatencyBound, Span, TenantId};

use crate::layout::{ARENA_MAX, DEPTH_MAX, Layout, LayoutError, MAGIC, VERSION};

/// Packet of an application that has mapped its memory.
pub const MAPPED: [u8; 1] = [1];

/// Request of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Service whose messages it receives.
    pub service: u16,
    /// Maximum number of messages in flight.
    pub depth: u32,
    /// Bytes of the send arena.
    pub send: u64,
    /// Bytes of the receive arena.
    pub receive: u64,
}

/// Reason for which a node refuses an application.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The request does not have the format of this protocol.
    #[error(
        "expected a request of {} bytes that starts with `RMRING`, got {got} bytes",
        Request::LEN
    )]
    Malformed {
        /// Bytes that were received.
        got: usize,
    },
    /// The application was built with another version.
    #[error("expected version {VERSION} of the handshake, got {got}")]
    Version {
        /// Version of the application.
        got: u32,
    },
    /// Depth out of range.
    #[error("expected a depth of 1 to {DEPTH_MAX} messages, got {got}")]
    Depth {
        /// Requested depth.
        got: u32,
    },
    /// Arenas larger than the node's maximum.
    #[error("expected at most {max} bytes for messages, got {requested}")]
    Memory {
        /// Requested bytes.
        requested: u64,
        /// Maximum in bytes.
        max: u64,
    },
    /// Another application is attached to the service.
    #[error("service {service} is taken")]
    ServiceInUse {
        /// The service.
        service: u16,
    },
    /// The maximum number of applications is attached.
    #[error("{max} applications are attached already")]
    TooManyClients {
        /// Maximum number of applications.
        max: usize,
    },
    /// The maximum number of applications of this user is attached.
    #[error("user {uid} has {max} applications attached already")]
    TooManyUserClients {
        /// The user.
        uid: u32,
        /// Maximum number of applications of one user.
        max: usize,
    },
    /// The applications' total memory has reached its maximum.
    #[error(
        "expected at most {available} bytes, which {} has available, got {requested}",
        user.map_or("the node".to_owned(), |uid| format!("user {uid}"))
    )]
    NoMemory {
        /// Requested bytes.
        requested: u64,
        /// Remaining bytes.
        available: u64,
        /// Owner of the limit: the user, or the node if `None`.
        user: Option<u32>,
    },
    /// The user has no access to the service.
    #[error("user {uid} may not have service {service}")]
    Forbidden {
        /// The user.
        uid: u32,
        /// The service.
        service: u16,
    },
    /// The user has too many connections without a request.
    #[error("user {uid} has {max} connections without a request already")]
    TooManyConnections {
        /// The user.
        uid: u32,
        /// Maximum number of such connections.
        max: usize,
    },
    /// The node has no memory or descriptors left.
    #[error("the node cannot set up the memory: {0}")]
    System(String),
}

impl Refusal {
    /// Returns the number of the reason in answers: 1 or more.
    pub const fn code(&self) -> u32 {
        match self {
            Self::Malformed { .. } => 1,
            Self::Version { .. } => 2,
            Self::Depth { .. } => 3,
            Self::Memory { .. } => 4,
            Self::ServiceInUse { .. } => 5,
            Self::TooManyClients { .. } => 6,
            Self::System(_) => 7,
            Self::TooManyUserClients { .. } => 8,
            Self::NoMemory { .. } => 9,
            Self::Forbidden { .. } => 10,
            Self::TooManyConnections { .. } => 11,
        }
    }
}

impl From<LayoutError> for Refusal {
    fn from(error: LayoutError) -> Self {
        match error {
            LayoutError::Depth { got } => Self::Depth { got },
            LayoutError::Arena { got } => Self::Memory { requested: got, max: ARENA_MAX },
        }
    }
}

/// Answer of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachReply {
    /// Accepted; the memory is attached to the answer.
    Granted(Grant),
    /// Refused.
    Refused {
        /// [`Refusal::code`].
        code: u32,
        /// Expected and actual value.
        text: String,
    },
}

/// Sizes that the memory was made with, and the bound of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Bytes of the memory.
    pub total: u64,
    /// Maximum number of messages in flight.
    pub depth: u32,
    /// Maximum number of received messages that are held.
    pub slots: u32,
    /// Bytes of the send arena.
    pub send: u64,
    /// Bytes of the receive arena.
    pub receive: u64,
    /// Bound that the node's transport promises, if it promises one.
    pub promise: Option<LatencyBound>,
}

const PRELUDE: usize = 12;
const TEXT_MAX: usize = 400;

impl Request {
    /// Bytes of a request.
    pub const LEN: usize = 40;

    /// Returns the encoded request.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&MAGIC.to_le_bytes());
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..14].copy_from_slice(&self.service.to_le_bytes());
        out[16..20].copy_from_slice(&self.depth.to_le_bytes());
        out[24..32].copy_from_slice(&self.send.to_le_bytes());
        out[32..40].copy_from_slice(&self.receive.to_le_bytes());
        out
    }

    /// Reads a request. Never panics.
    ///
    /// # Errors
    /// Anything that no application sends.
    pub fn decode(bytes: &[u8]) -> Result<Self, Refusal> {
        let got = bytes.len();
        if u64_at(bytes, 0) != Some(MAGIC) {
            return Err(Refusal::Malformed { got });
        }
        match u32_at(bytes, 8) {
            Some(VERSION) => {}
            Some(got) => return Err(Refusal::Version { got }),
            None => return Err(Refusal::Malformed { got }),
        }
        let Ok(bytes) = <&[u8; Self::LEN]>::try_from(bytes) else {
            return Err(Refusal::Malformed { got });
        };
        if bytes[14..16] != [0; 2] || bytes[20..24] != [0; 4] {
            return Err(Refusal::Malformed { got });
        }
        let word = |at| u64_at(bytes, at).unwrap_or(0);
        let service = u16::from_le_bytes([bytes[12], bytes[13]]);
        let depth = u32_at(bytes, 16).unwrap_or(0);
        Ok(Self { service, depth, send: word(24), receive: word(32) })
    }

    /// Returns the memory layout for the request, of which at most `arena_max` bytes are for
    /// messages.
    ///
    /// # Errors
    /// The request exceeds the maximum of all nodes, or of this one.
    pub fn layout(&self, arena_max: u64) -> Result<Layout, Refusal> {
        let requested = self.send.saturating_add(self.receive);
        let max = arena_max.min(2 * ARENA_MAX);
        if requested > max {
            return Err(Refusal::Memory { requested, max });
        }
        Ok(Layout::new(self.depth, self.send, self.receive)?)
    }
}

impl AttachReply {
    /// Bytes of the longest answer.
    pub const LEN_MAX: usize = PRELUDE + 4 + TEXT_MAX;

    /// Returns the encoded answer.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::LEN_MAX);
        out.extend(MAGIC.to_le_bytes());
        out.extend(VERSION.to_le_bytes());
        match self {
            Self::Granted(grant) => {
                out.extend(0u32.to_le_bytes());
                out.extend(grant.total.to_le_bytes());
                out.extend(grant.depth.to_le_bytes());
                out.extend(grant.slots.to_le_bytes());
                out.extend(grant.send.to_le_bytes());
                out.extend(grant.receive.to_le_bytes());
                out.extend(encode_promise(grant.promise));
            }
            Self::Refused { code, text } => {
                out.extend(code.to_le_bytes());
                let end = (0..=TEXT_MAX).rev().find(|&end| text.is_char_boundary(end));
                out.extend(&text.as_bytes()[..end.unwrap_or(0)]);
            }
        }
        out
    }

    /// Reads an answer. Never panics. `None` if no node of this version sends it.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if u64_at(bytes, 0)? != MAGIC || u32_at(bytes, 8)? != VERSION {
            return None;
        }
        match u32_at(bytes, PRELUDE)? {
            0 => {
                let rest = bytes.get(PRELUDE + 4..).filter(|rest| rest.len() == 64)?;
                Some(Self::Granted(Grant {
                    total: u64_at(rest, 0)?,
                    depth: u32_at(rest, 8)?,
                    slots: u32_at(rest, 12)?,
                    send: u64_at(rest, 16)?,
                    receive: u64_at(rest, 24)?,
                    promise: decode_promise(&rest[32..])?,
                }))
            }
            code => {
                let text = std::str::from_utf8(bytes.get(PRELUDE + 4..)?).ok()?;
                Some(Self::Refused { code, text: text.into() })
            }
        }
    }
}

impl Grant {
    pub(crate) fn new(layout: &Layout, promise: Option<LatencyBound>) -> Self {
        Self {
            total: layout.total,
            depth: layout.depth,
            slots: layout.slots,
            send: layout.send.len,
            receive: layout.receive.len,
            promise,
        }
    }
}

impl From<&Refusal> for AttachReply {
    fn from(refusal: &Refusal) -> Self {
        Self::Refused { code: refusal.code(), text: refusal.to_string() }
    }
}

fn encode_promise(promise: Option<LatencyBound>) -> [u8; 32] {
    let mut out = [0; 32];
    let Some(LatencyBound { fixed, per_packet, payload, tenant }) = promise else { return out };
    let (whose, only) = tenant.map_or((1u32, 0), |tenant| (2, tenant.get()));
    out[..4].copy_from_slice(&whose.to_le_bytes());
    out[4..8].copy_from_slice(&only.to_le_bytes());
    out[8..16].copy_from_slice(&payload.get().to_le_bytes());
    out[16..24].copy_from_slice(&fixed.as_ps().to_le_bytes());
    out[24..].copy_from_slice(&per_packet.as_ps().to_le_bytes());
    out
}

/// Reads the last 32 bytes of a grant. The outer `None` means that no node writes these bytes.
fn decode_promise(bytes: &[u8]) -> Option<Option<LatencyBound>> {
    let only = TenantId::new(u32_at(bytes, 4)?);
    let tenant = match u32_at(bytes, 0)? {
        0 => return bytes.iter().all(|&byte| byte == 0).then_some(None),
        1 if only.get() == 0 => None,
        2 => Some(only),
        _ => return None,
    };
    let payload = Bytes::new(u64_at(bytes, 8).filter(|&bytes| bytes > 0)?);
    let (fixed, per_packet) =
        (Span::from_ps(u64_at(bytes, 16)?), Span::from_ps(u64_at(bytes, 24)?));
    Some(Some(LatencyBound { fixed, per_packet, payload, tenant }))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn attach_requests_survive_encoding(n in any::<(u16, u32, u64, u64)>()) {
            let request = Request { service: n.0, depth: n.1, send: n.2, receive: n.3 };
            let bytes = request.encode();
            prop_assert_eq!(Request::decode(&bytes), Ok(request));
            for short in 0..bytes.len() {
                prop_assert!(Request::decode(&bytes[..short]).is_err());
            }
            prop_assert!(Request::decode(&[&bytes[..], &[0]].concat()).is_err());
        }

        #[test]
        fn attach_replies_survive_encoding(
            n in any::<(u64, u32, u32, u64, u64)>(),
            bound in any::<Option<(u64, u64, u64, Option<u32>)>>(),
            text in ".{0,100}",
        ) {
            let (total, depth, slots, send, receive) = n;
            let promise = bound.map(|(fixed, per_packet, payload, tenant)| LatencyBound {
                fixed: Span::from_ps(fixed),
                per_packet: Span::from_ps(per_packet),
                payload: Bytes::new(payload.max(1)),
                tenant: tenant.map(TenantId::new),
            });
            let grant = Grant { total, depth, slots, send, receive, promise };
            let granted = AttachReply::Granted(grant);
            let bytes = granted.encode();
            prop_assert_eq!(AttachReply::decode(&bytes), Some(granted));
            for short in 0..bytes.len() {
                prop_assert_eq!(AttachReply::decode(&bytes[..short]), None);
            }
            let refused = AttachReply::Refused { code: 5, text };
            prop_assert_eq!(AttachReply::decode(&refused.encode()), Some(refused));
        }

        /// Any bytes are refused or make a layout within the limits.
        #[test]
        fn any_bytes_get_a_reply_to_the_handshake(
            mut bytes in prop::collection::vec(any::<u8>(), 0..64),
            is_close in any::<bool>(),
            arena_max in any::<u64>(),
        ) {
            if is_close && bytes.len() >= 12 {
                let request = Request { service: 0, depth: 0, send: 0, receive: 0 };
                bytes[..12].copy_from_slice(&request.encode()[..12]);
            }
            let _ = AttachReply::decode(&bytes);
            match Request::decode(&bytes) {
                Ok(request) => {
                    prop_assert_eq!(&request.encode()[..], &bytes[..]);
                    if let Ok(layout) = request.layout(arena_max) {
                        prop_assert!(request.send + request.receive <= arena_max);
                        prop_assert!(layout.total() >= request.send + request.receive);
                    }
                }
                Err(refusal) => {
                    let encoded = AttachReply::from(&refusal).encode();
                    prop_assert!(encoded.len() <= AttachReply::LEN_MAX);
                }
            }
        }
    }
}

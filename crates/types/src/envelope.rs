//! Envelope that a node writes before the protocol's header: sender, incarnations, and position of
//! the payload.
//!
//! All fields are big-endian. A datagram is the [`Envelope`], then for control and data packets the
//! protocol's header, then for data packets the payload up to the datagram's end.
//!
//! | bytes | field |
//! |---|---|
//! | 0-1 | magic `RM` |
//! | 2 | version, 2 |
//! | 3 | kind, see below |
//! | 4 | transport, by its number in the catalogue; 64 and more for two on one network |
//! | 5 | protection: 0 none, 1 checksum, 2 sealed |
//! | 6-7 | service that a data packet's message is for |
//! | 8-11 | source node |
//! | 12-15 | destination node |
//! | 16-19 | incarnation of the source |
//! | 20-23 | incarnation of the destination as last received by the source, 0 if none |
//! | 24-27 | by kind: message, nonce, session or number of packets; see below |
//! | 28-31 | data only: offset of the payload in the message |
//! | 32-35 | data only: size of the message |
//! | 36-39 | data with digest only: CRC32C of the whole message; sealed if the payload is |
//!
//! Kinds: 0 hello, 1 here, 2 control, 3 data, 4 refused, 5 initiation, 6 response, 7 cookie, 8
//! confirmation, 9 bundle, 10 data with digest, 11 corrupt. Bytes 24-27 are the nonce (hello,
//! here), the session (initiation, response, cookie) or the number of packets (bundle). Kinds 2, 3,
//! 4, 10 and 11 have the message there.
//!
//! A packet has the digest if its sender has computed it, which requires that every byte of the
//! message has been sent. So a receiver that has all bytes has received the digest.
//!
//! A bundle has several control packets. Each is the length of the protocol's header (2 bytes), the
//! message (4 bytes) and the header. A hello and its answer may have digests of the sender's
//! settings: their number (1 byte), and 4 bytes each. The crate `rampmeter-runtime`, module
//! `agreement`, defines them. Zeros may follow those of a hello, which then has the length of the
//! packets that the path must carry.
//!
//! Hosts protect their datagrams, and a trailer follows the payload. With protection 1 it is the
//! CRC32C of everything before it (4 bytes). With protection 2 everything after the fields in the
//! clear is encrypted. The trailer is then the receiver's session number (2 bytes), the packet's
//! number in the session (6 bytes) and the authentication tag (16 bytes).
//!
//! The fields in the clear are bytes 0-35 of data and bytes 0-27 of all other packets. They are
//! authenticated, and none of them derives from the bytes of a message. The digest does: version 1
//! sent it in the clear, and an eavesdropper recovered short messages from it.
//!
//! # Threat model
//!
//! An outsider has no private key. It may record, drop, delay, reorder, replay and change every
//! datagram, and send datagrams from any address. Without encryption (protection 1) it may do all
//! that a peer may do. With encryption:
//!
//! | an outsider | result |
//! |---|---|
//! | reads a packet | it has the fields in the clear, the packet's number, length and time |
//! | reads a packet | header, digest, payload and settings are sealed |
//! | reads recorded packets, with a private key later | nothing: keys of sessions are ephemeral |
//! | changes or forges a packet | it is dropped and counted as unauthenticated |
//! | replays a packet | it is dropped and counted as replayed, or as of an unknown session |
//! | replays or delays an initiation | at most one handshake a second with the true peer |
//! | delays or drops packets | the transport retransmits until the message fails |
//! | floods a node with initiations | answers are limited, with a cookie for each peer |
//!
//! A peer has a key and may send anything in its own name: memory and work for it are limited per
//! peer. It cannot send in the name of another peer, or read packets of other pairs. Any host with
//! a node's private key can impersonate it, and any host with its key log can decrypt its packets.

pub use crate::id::TransportId;
use crate::id::{MsgId, NodeId};
use crate::wire::{Reader, WireError, Writer};

/// Incarnation of a node: a random number that is never zero, drawn when the node starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Incarnation(u32);

impl Incarnation {
    /// Creates the incarnation with this number; zero, which means none, becomes one.
    pub const fn new(n: u32) -> Self {
        Self(if n == 0 { 1 } else { n })
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        self.0
    }

    fn from_wire(n: u32) -> Option<Self> {
        (n != 0).then_some(Self(n))
    }
}

/// Position of a data packet's payload in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Service that the message is for.
    pub service: u16,
    /// First byte of the payload within the message.
    pub offset: u32,
    /// Bytes of the whole message.
    pub size: u32,
    /// CRC32C of the whole message, if the sender has computed it.
    pub digest: Option<u32>,
}

/// Kind of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramKind {
    /// Requests the receiver's incarnation.
    Hello {
        /// Random number that the answer repeats, as a proof that it is recent.
        nonce: u32,
    },
    /// Answers a hello.
    HelloAck {
        /// Nonce of the hello.
        nonce: u32,
    },
    /// A packet of the protocol without payload.
    Control {
        /// Message that it belongs to.
        msg: MsgId,
    },
    /// A packet of the protocol with payload.
    Data {
        /// Message that it belongs to.
        msg: MsgId,
        /// Position of the payload.
        fragment: Fragment,
    },
    /// No application receives the message: its sender should abort it.
    Refused {
        /// The message.
        msg: MsgId,
    },
    /// First message of a handshake.
    Initiation {
        /// Number of the session at the sender.
        session: u16,
    },
    /// Second message of a handshake.
    Response {
        /// Session number of the initiation.
        session: u16,
    },
    /// Answers an initiation of a node that must prove its address.
    Cookie {
        /// Session number of the initiation.
        session: u16,
    },
    /// First packet of a session, if there is no other to send.
    Confirmation,
    /// Several control packets of the protocol.
    Bundle {
        /// Number of packets: at least 2.
        n: u32,
    },
    /// The message that arrived differs from the one that was sent: its sender should abort it.
    Corrupt {
        /// The message.
        msg: MsgId,
    },
}

/// Protection of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// None: handshakes, whose bodies protect themselves, and simulated packets.
    Unprotected,
    /// Checksum, which detects damage but no forgery.
    Checksum,
    /// Encrypted and authenticated.
    Sealed,
}

impl Protection {
    /// Returns the bytes of the trailer.
    pub const fn trailer(self) -> usize {
        match self {
            Self::Unprotected => 0,
            Self::Checksum => 4,
            Self::Sealed => 24,
        }
    }
}

/// Fields before the protocol's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The protocol.
    pub transport: TransportId,
    /// Sending node.
    pub src: NodeId,
    /// Receiving node.
    pub dst: NodeId,
    /// Incarnation of the sender.
    pub src_incarnation: Incarnation,
    /// Incarnation of the receiver, if the sender has received it.
    pub dst_incarnation: Option<Incarnation>,
    /// Kind of the datagram.
    pub kind: DatagramKind,
    /// Protection of the datagram.
    pub protection: Protection,
}

const MAGIC: u16 = 0x524d;
const VERSION: u8 = 2;
const DATA: u8 = 3;
const DATA_WITH_DIGEST: u8 = 10;

impl Envelope {
    /// Bytes of the longest envelope, that of data with a digest.
    pub const LEN_MAX: usize = Self::DATA_LEN + Self::DIGEST;
    /// Bytes of the envelope of data without a digest.
    pub const DATA_LEN: usize = 36;
    /// Bytes of a digest.
    pub const DIGEST: usize = 4;
    /// Bytes of the envelope of all packets except data.
    pub const CONTROL_LEN: usize = 28;
    /// Bytes that a bundle has before the header of each packet.
    pub const BUNDLE_ENTRY: usize = 2 + 4;
    /// Maximum bytes of a transport's data header, which follows the envelope.
    pub const DATA_HEADER_MAX: usize = 32;

    /// Returns the bytes that [`Envelope::encode`] writes.
    pub fn wire_len(&self) -> usize {
        match self.kind {
            DatagramKind::Data { fragment, .. } if fragment.digest.is_some() => Self::LEN_MAX,
            DatagramKind::Data { .. } => Self::DATA_LEN,
            _ => Self::CONTROL_LEN,
        }
    }

    /// Returns the number of bytes at the front of `datagram` that stay in the clear when it is
    /// sealed.
    ///
    /// The digest of a message is not among them, as it derives from the message's bytes.
    pub fn cleartext_len(datagram: &[u8]) -> usize {
        match datagram.get(3) {
            Some(&(DATA | DATA_WITH_DIGEST)) => Self::DATA_LEN,
            _ => Self::CONTROL_LEN,
        }
    }

    /// Writes the digest into an encoded envelope, replacing another.
    pub fn set_digest(datagram: &mut [u8], digest: u32) {
        datagram[Self::DATA_LEN..Self::LEN_MAX].copy_from_slice(&digest.to_be_bytes());
    }

    /// Writes the envelope to the front of `out` and returns the bytes written.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if `out` is too short.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let (kind, word, fragment) = match self.kind {
            DatagramKind::Hello { nonce } => (0, nonce, None),
            DatagramKind::HelloAck { nonce } => (1, nonce, None),
            DatagramKind::Control { msg } => (2, msg.get(), None),
            DatagramKind::Data { msg, fragment } => {
                let kind = if fragment.digest.is_some() { DATA_WITH_DIGEST } else { DATA };
                (kind, msg.get(), Some(fragment))
            }
            DatagramKind::Refused { msg } => (4, msg.get(), None),
            DatagramKind::Initiation { session } => (5, session.into(), None),
            DatagramKind::Response { session } => (6, session.into(), None),
            DatagramKind::Cookie { session } => (7, session.into(), None),
            DatagramKind::Confirmation => (8, 0, None),
            DatagramKind::Bundle { n } => (9, n, None),
            DatagramKind::Corrupt { msg } => (11, msg.get(), None),
        };
        let protection = match self.protection {
            Protection::Unprotected => 0,
            Protection::Checksum => 1,
            Protection::Sealed => 2,
        };
        let mut writer = Writer::new(out);
        writer.u16(MAGIC)?.u8(VERSION)?.u8(kind)?.u8(self.transport.0)?.u8(protection)?;
        writer.u16(fragment.map_or(0, |f| f.service))?;
        writer.u32(self.src.get())?.u32(self.dst.get())?;
        writer
            .u32(self.src_incarnation.0)?
            .u32(self.dst_incarnation.map_or(0, |i| i.0))?
            .u32(word)?;
        if let Some(Fragment { offset, size, digest, .. }) = fragment {
            writer.u32(offset)?.u32(size)?;
            if let Some(digest) = digest {
                writer.u32(digest)?;
            }
        }
        Ok(writer.position())
    }

    /// Reads an envelope from the front of `bytes`; returns it and the bytes read. Never panics.
    ///
    /// # Errors
    /// The bytes are not a valid envelope.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let mut reader = Reader::new(bytes);
        expect("magic", "0x524d", MAGIC.into(), reader.u16()?.into())?;
        expect("version", "2", VERSION.into(), reader.u8()?.into())?;
        let kind = reader.u8()?;
        let transport = TransportId(reader.u8()?);
        let protection = match reader.u8()? {
            0 => Protection::Unprotected,
            1 => Protection::Checksum,
            2 => Protection::Sealed,
            other => {
                let (field, expected, got) = ("protection", "0 to 2", other.into());
                return Err(WireError::BadField { field, expected, got });
            }
        };
        let service = reader.u16()?;
        let (src, dst) = (NodeId::new(reader.u32()?), NodeId::new(reader.u32()?));
        let bad = WireError::BadField { field: "incarnation", expected: "1 or more", got: 0 };
        let src_incarnation = Incarnation::from_wire(reader.u32()?).ok_or(bad)?;
        let dst_incarnation = Incarnation::from_wire(reader.u32()?);
        let word = reader.u32()?;
        if kind != DATA && kind != DATA_WITH_DIGEST {
            expect("service", "0", 0, service.into())?;
        }
        let kind = match kind {
            0 => DatagramKind::Hello { nonce: word },
            1 => DatagramKind::HelloAck { nonce: word },
            2 => DatagramKind::Control { msg: MsgId::new(word) },
            DATA | DATA_WITH_DIGEST => {
                let (offset, size) = (reader.u32()?, reader.u32()?);
                let digest = (kind == DATA_WITH_DIGEST).then(|| reader.u32()).transpose()?;
                let fragment = Fragment { service, offset, size, digest };
                DatagramKind::Data { msg: MsgId::new(word), fragment }
            }
            4 => DatagramKind::Refused { msg: MsgId::new(word) },
            5 => DatagramKind::Initiation { session: session(word)? },
            6 => DatagramKind::Response { session: session(word)? },
            7 => DatagramKind::Cookie { session: session(word)? },
            8 => {
                expect("message", "0", 0, word.into())?;
                DatagramKind::Confirmation
            }
            9 if word >= 2 => DatagramKind::Bundle { n: word },
            9 => {
                let (field, expected, got) = ("packets of a bundle", "2 or more", word.into());
                return Err(WireError::BadField { field, expected, got });
            }
            11 => DatagramKind::Corrupt { msg: MsgId::new(word) },
            other => return Err(WireError::UnknownType(other)),
        };
        let envelope =
            Self { transport, src, dst, src_incarnation, dst_incarnation, kind, protection };
        Ok((envelope, reader.position()))
    }
}

/// Returns the number of a session.
fn session(word: u32) -> Result<u16, WireError> {
    let (field, expected, got) = ("session", "at most 65535", word.into());
    u16::try_from(word).map_err(|_| WireError::BadField { field, expected, got })
}

fn expect(
    field: &'static str,
    expected: &'static str,
    value: u64,
    got: u64,
) -> Result<(), WireError> {
    if got == value { Ok(()) } else { Err(WireError::BadField { field, expected, got }) }
}

/// Calls the handler with each of the `n` packets of a bundle: its message and the protocol's
/// header. `bytes` follow the envelope.
///
/// # Errors
/// The bytes are not `n` packets. The handler was called with those before the error.
pub fn for_each_bundled(
    n: u32,
    mut bytes: &[u8],
    mut each: impl FnMut(MsgId, &[u8]),
) -> Result<(), WireError> {
    for _ in 0..n {
        let mut reader = Reader::new(bytes);
        let (len, msg) = (usize::from(reader.u16()?), MsgId::new(reader.u32()?));
        let (needed, got) = (Envelope::BUNDLE_ENTRY + len, bytes.len());
        let header = bytes.get(Envelope::BUNDLE_ENTRY..needed);
        each(msg, header.ok_or(WireError::Truncated { needed, got })?);
        bytes = &bytes[needed..];
    }
    expect("bytes after a bundle", "0", 0, bytes.len() as u64)
}

/// Bytes that Ethernet adds to an IP packet on the link: preamble, header, check sequence and gap.
pub const LINK_OVERHEAD: usize = 38;
/// Bytes of the headers of IPv4 and UDP.
pub const IPV4_UDP: usize = 28;
/// Bytes of the headers of IPv6 and UDP.
pub const IPV6_UDP: usize = 48;

/// Composition of a full packet between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPacket {
    /// Bytes of its payload: the maximum that fits with the longest headers. Any packet may have a
    /// digest.
    pub payload: usize,
    /// Other bytes of the packet on the link.
    pub header: usize,
}

impl HostPacket {
    /// Computes a full packet for links that carry IP packets of `mtu` bytes, with `ip_udp` bytes
    /// of IP and UDP headers, and this protection.
    pub const fn new(mtu: usize, ip_udp: usize, protection: Protection) -> Self {
        let headers = ip_udp + Envelope::LEN_MAX + Envelope::DATA_HEADER_MAX + protection.trailer();
        let payload = mtu.saturating_sub(headers);
        Self { payload, header: headers + LINK_OVERHEAD }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = DatagramKind> {
        let msg = any::<u32>().prop_map(MsgId::new);
        let fragment = any::<(u16, u32, u32, Option<u32>)>().prop_map(|fields| {
            let (service, offset, size, digest) = fields;
            Fragment { service, offset, size, digest }
        });
        prop_oneof![
            any::<u32>().prop_map(|nonce| DatagramKind::Hello { nonce }),
            any::<u32>().prop_map(|nonce| DatagramKind::HelloAck { nonce }),
            msg.clone().prop_map(|msg| DatagramKind::Control { msg }),
            (msg.clone(), fragment)
                .prop_map(|(msg, fragment)| DatagramKind::Data { msg, fragment }),
            msg.clone().prop_map(|msg| DatagramKind::Refused { msg }),
            msg.prop_map(|msg| DatagramKind::Corrupt { msg }),
            any::<u16>().prop_map(|session| DatagramKind::Initiation { session }),
            any::<u16>().prop_map(|session| DatagramKind::Response { session }),
            any::<u16>().prop_map(|session| DatagramKind::Cookie { session }),
            Just(DatagramKind::Confirmation),
            (2..=u32::MAX).prop_map(|n| DatagramKind::Bundle { n }),
        ]
    }

    proptest! {
        #[test]
        fn envelopes_survive_encoding(
            ids in any::<(u8, u32, u32, u32, u32)>(),
            kind in kinds(),
            protection in prop::sample::select(
                [Protection::Unprotected, Protection::Checksum, Protection::Sealed].as_slice()
            ),
        ) {
            let (transport, src, dst, src_life, dst_life) = ids;
            let envelope = Envelope {
                transport: TransportId(transport),
                src: NodeId::new(src),
                dst: NodeId::new(dst),
                src_incarnation: Incarnation::new(src_life),
                dst_incarnation: Incarnation::from_wire(dst_life),
                kind,
                protection,
            };
            let mut bytes = [0; Envelope::LEN_MAX];
            let written = envelope.encode(&mut bytes).unwrap();
            prop_assert_eq!(written, envelope.wire_len());
            let clear = if matches!(kind, DatagramKind::Data { .. }) { 36 } else { written };
            prop_assert_eq!(clear, Envelope::cleartext_len(&bytes));
            prop_assert_eq!(Envelope::decode(&bytes[..written]), Ok((envelope, written)));
            for short in 0..written {
                prop_assert!(Envelope::decode(&bytes[..short]).is_err());
            }
        }

        #[test]
        fn any_bytes_are_a_bundle_or_an_error(
            n in 0..10u32,
            bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let (mut n_read, mut read) = (0, 0);
            let opened = for_each_bundled(n, &bytes, |_, header| {
                n_read += 1;
                read += Envelope::BUNDLE_ENTRY + header.len();
            });
            prop_assert!(read <= bytes.len());
            prop_assert_eq!(opened.is_ok(), n_read == n && read == bytes.len());
        }

        #[test]
        fn any_bytes_are_an_envelope_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..64)
        ) {
            if let Ok((envelope, read)) = Envelope::decode(&bytes) {
                let mut again = [0; Envelope::LEN_MAX];
                let written = envelope.encode(&mut again).unwrap();
                prop_assert_eq!(&again[..written], &bytes[..read]);
            }
        }
    }
}

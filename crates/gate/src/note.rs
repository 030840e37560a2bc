//! Notes: packets that programs send to their agent.
//!
//! A note is a packet of 48 bytes. Numbers are in the machine's byte order, addresses are IPv6
//! addresses.
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | kind: 1 a connection has a slot, 2 a burst begins, 3 a connection is closed |
//! | 4-7 | the slot |
//! | 8-23, 24-25 | the connection's own address and port |
//! | 26-41, 42-43 | those of its peer |
//! | 44-47 | zero |
//!
//! The agent's end of a gate is attached to the first kind. Addresses are zero in the others.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Length of a note in bytes.
pub const NOTE_LEN: usize = 48;

/// Addresses of both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionAddresses {
    /// Address of the program's end.
    pub local: SocketAddr,
    /// Address of the peer's end.
    pub remote: SocketAddr,
}

/// Note about a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotNote {
    /// A connection uses the slot. The agent's end of the gate is attached.
    Connected {
        /// The slot.
        slot: u32,
        /// The connection.
        tuple: ConnectionAddresses,
    },
    /// A burst begins; its number is in the slot.
    BurstStarted {
        /// The slot.
        slot: u32,
    },
    /// A program has closed the connection; the kernel may still send queued bytes.
    Closed {
        /// The slot.
        slot: u32,
    },
}

impl SlotNote {
    /// Returns the bytes of the note.
    pub fn encode(&self) -> [u8; NOTE_LEN] {
        let mut out = [0; NOTE_LEN];
        let (kind, slot) = match *self {
            Self::Connected { slot, .. } => (1u32, slot),
            Self::BurstStarted { slot } => (2, slot),
            Self::Closed { slot } => (3, slot),
        };
        out[..4].copy_from_slice(&kind.to_ne_bytes());
        out[4..8].copy_from_slice(&slot.to_ne_bytes());
        if let Self::Connected { tuple: ConnectionAddresses { local, remote }, .. } = self {
            put(&mut out[8..26], *local);
            put(&mut out[26..44], *remote);
        }
        out
    }

    /// Decodes a note; `None` for any other packet.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; NOTE_LEN] = bytes.try_into().ok()?;
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let slot = word(4);
        match word(0) {
            1 => {
                let tuple = ConnectionAddresses {
                    local: get(&bytes[8..26])?,
                    remote: get(&bytes[26..44])?,
                };
                Some(Self::Connected { slot, tuple })
            }
            2 => Some(Self::BurstStarted { slot }),
            3 => Some(Self::Closed { slot }),
            _ => None,
        }
    }
}

fn put(out: &mut [u8], address: SocketAddr) {
    let v6 = match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    out[..16].copy_from_slice(&v6.octets());
    out[16..18].copy_from_slice(&address.port().to_ne_bytes());
}

fn get(bytes: &[u8]) -> Option<SocketAddr> {
    let octets: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
    let port = u16::from_ne_bytes(bytes.get(16..18)?.try_into().ok()?);
    Some(SocketAddr::new(Ipv6Addr::from(octets).to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_notes_survive_encoding() {
        let v4 = ["10.0.0.1:5".parse().unwrap(), "10.0.0.2:70".parse().unwrap()];
        let v6 = ["[fd00::1]:65535".parse().unwrap(), "[fd00::2]:1".parse().unwrap()];
        for [local, remote] in [v4, v6] {
            let tuple = ConnectionAddresses { local, remote };
            let notes = [
                SlotNote::Connected { slot: 3, tuple },
                SlotNote::BurstStarted { slot: 4 },
                SlotNote::Closed { slot: u32::MAX },
            ];
            for note in notes {
                assert_eq!(SlotNote::decode(&note.encode()), Some(note));
            }
        }
        assert_eq!(SlotNote::decode(&[9; NOTE_LEN]), None);
        assert_eq!(SlotNote::decode(&[0; 3]), None);
    }
}

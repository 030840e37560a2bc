//! What programs tell their agent.
//!
//! A note is a packet of 48 bytes. Numbers are in the order of the machine, addresses are those of
//! IPv6.
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | what it says: 1 a connection has a slot, 2 a burst begins, 3 a connection is closed |
//! | 4-7 | the slot |
//! | 8-23, 24-25 | the connection's own address and port |
//! | 26-41, 42-43 | those of its peer |
//! | 44-47 | zero |
//!
//! The agent's end of a gate comes with the first kind. Addresses are zero in the others.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Bytes of a note.
pub const NOTE_LEN: usize = 48;

/// Both ends of a connection: the program's own, and its peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// The program's end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

/// What a program says of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A connection has it. The agent's end of the gate comes with this.
    Connected {
        /// The slot.
        slot: u32,
        /// The connection.
        tuple: Tuple,
    },
    /// A burst begins; the slot says which.
    Begins {
        /// The slot.
        slot: u32,
    },
    /// The connection was closed by a program; what it has given to the system may still be sent.
    Closed {
        /// The slot.
        slot: u32,
    },
}

impl Note {
    /// The bytes of the note.
    pub fn encode(&self) -> [u8; NOTE_LEN] {
        let mut out = [0; NOTE_LEN];
        let (kind, slot) = match *self {
            Self::Connected { slot, .. } => (1u32, slot),
            Self::Begins { slot } => (2, slot),
            Self::Closed { slot } => (3, slot),
        };
        out[..4].copy_from_slice(&kind.to_ne_bytes());
        out[4..8].copy_from_slice(&slot.to_ne_bytes());
        if let Self::Connected { tuple: Tuple { local, remote }, .. } = self {
            put(&mut out[8..26], *local);
            put(&mut out[26..44], *remote);
        }
        out
    }

    /// The note of a packet; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; NOTE_LEN] = bytes.try_into().ok()?;
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let slot = word(4);
        match word(0) {
            1 => {
                let tuple = Tuple { local: get(&bytes[8..26])?, remote: get(&bytes[26..44])? };
                Some(Self::Connected { slot, tuple })
            }
            2 => Some(Self::Begins { slot }),
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
    fn notes_come_back_as_they_were() {
        let v4 = ["10.0.0.1:5".parse().unwrap(), "10.0.0.2:70".parse().unwrap()];
        let v6 = ["[fd00::1]:65535".parse().unwrap(), "[fd00::2]:1".parse().unwrap()];
        for [local, remote] in [v4, v6] {
            let tuple = Tuple { local, remote };
            let notes = [
                Note::Connected { slot: 3, tuple },
                Note::Begins { slot: 4 },
                Note::Closed { slot: u32::MAX },
            ];
            for note in notes {
                assert_eq!(Note::decode(&note.encode()), Some(note));
            }
        }
        assert_eq!(Note::decode(&[9; NOTE_LEN]), None);
        assert_eq!(Note::decode(&[0; 3]), None);
    }
}

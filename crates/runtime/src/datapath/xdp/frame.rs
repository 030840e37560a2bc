//! Ethernet, IPv4 and UDP headers, as bytes.
//!
//! Fields that are equal in all packets to a peer are written once, and their part of the header's
//! checksum is computed once. A packet then costs one copy of 42 bytes and four fields.

use std::net::Ipv4Addr;

/// Address on the link.
pub(super) type Mac = [u8; 6];

/// Bytes of all three headers.
pub(super) const HEADERS: usize = ETHERNET + IPV4 + UDP;
pub(super) const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;

/// Maximum number of routers that a packet may cross, as in the kernel.
const TIME_TO_LIVE: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;
const PROTOCOL_UDP: u8 = 17;

/// Headers that are common to all packets to one peer.
#[derive(Clone, Debug)]
pub(super) struct Headers {
    bytes: [u8; HEADERS],
    /// Sum of the IPv4 header's words, without those that differ between packets.
    sum: u32,
}

/// Addresses of an end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameAddress {
    pub(super) mac: Mac,
    pub(super) ip: Ipv4Addr,
}

/// Fields that differ between packets to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VariableFields {
    /// DSCP and ECN.
    pub(super) traffic_class: u8,
    pub(super) port_from: u16,
    pub(super) port_to: u16,
    /// Bytes of the datagram.
    pub(super) len: usize,
}

impl Headers {
    /// Returns headers of packets from one address to another. The link address of `to` is that of
    /// the next hop.
    pub(super) fn new(from: FrameAddress, to: FrameAddress) -> Self {
        let mut bytes = [0; HEADERS];
        bytes[..6].copy_from_slice(&to.mac);
        bytes[6..12].copy_from_slice(&from.mac);
        bytes[12..14].copy_from_slice(&[0x08, 0x00]);
        let ip = &mut bytes[ETHERNET..ETHERNET + IPV4];
        // Version 4, five words. The identification is zero, which is allowed for packets that are
        // not fragmented.
        ip[0] = 0x45;
        ip[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
        ip[8] = TIME_TO_LIVE;
        ip[9] = PROTOCOL_UDP;
        ip[12..16].copy_from_slice(&from.ip.octets());
        ip[16..20].copy_from_slice(&to.ip.octets());
        let sum = sum_of_words(ip);
        Self { bytes, sum }
    }

    /// Writes the headers to the front of `out`. The UDP checksum is zero, which means none.
    ///
    /// # Panics
    /// If `out` is too short, or the datagram longer than IPv4 allows.
    pub(super) fn write(&self, out: &mut [u8], varying: VariableFields) {
        let VariableFields { traffic_class, port_from, port_to, len } = varying;
        assert!(len <= usize::from(u16::MAX) - IPV4 - UDP, "{len} bytes fit into no packet");
        let (ip_len, udp_len) = ((IPV4 + UDP + len) as u16, (UDP + len) as u16);
        let out = &mut out[..HEADERS];
        out.copy_from_slice(&self.bytes);
        out[15] = traffic_class;
        out[16..18].copy_from_slice(&ip_len.to_be_bytes());
        let sum = folded(self.sum + u32::from(traffic_class) + u32::from(ip_len));
        out[24..26].copy_from_slice(&(!sum).to_be_bytes());
        out[34..36].copy_from_slice(&port_from.to_be_bytes());
        out[36..38].copy_from_slice(&port_to.to_be_bytes());
        out[38..40].copy_from_slice(&udp_len.to_be_bytes());
    }
}

/// Returns the destination port of a frame, without checking any other field.
pub(super) fn port_to(frame: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(frame.get(36..38)?.try_into().ok()?))
}

/// Returns the sender of a frame, its traffic class, and the datagram within. `None` if [`Headers`]
/// does not write such a frame: its lengths contradict one another, or its header was damaged. The
/// UDP checksum is ignored, since senders on the same machine offload it to a device that does not
/// exist.
pub(super) fn parse(frame: &[u8]) -> Option<(Ipv4Addr, u8, &[u8])> {
    let ip = frame.get(ETHERNET..ETHERNET + IPV4)?;
    if frame[12..14] != [0x08, 0x00] || ip[0] != 0x45 || ip[9] != PROTOCOL_UDP {
        return None;
    }
    if folded(sum_of_words(ip)) != 0xffff {
        return None;
    }
    let word = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    // Short frames are padded, so the frame may be longer than the packet.
    let packet = frame.get(ETHERNET..ETHERNET + word(16))?;
    if packet.len() < IPV4 + UDP || word(38) != packet.len() - IPV4 {
        return None;
    }
    let from = Ipv4Addr::new(ip[12], ip[13], ip[14], ip[15]);
    Some((from, ip[1], &packet[IPV4 + UDP..]))
}

/// Returns the sum of big-endian words, without folding; at most 2^16 words.
fn sum_of_words(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum()
}

/// Returns the sum in ones' complement.
fn folded(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FROM: FrameAddress =
        FrameAddress { mac: [2, 0, 0, 0, 0, 1], ip: Ipv4Addr::new(192, 168, 0, 1) };
    const TO: FrameAddress =
        FrameAddress { mac: [2, 0, 0, 0, 0, 2], ip: Ipv4Addr::new(192, 168, 0, 199) };

    fn frame(varying: VariableFields) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..HEADERS + varying.len).map(|n| n as u8).collect();
        Headers::new(FROM, TO).write(&mut frame, varying);
        frame
    }

    /// The checksum of RFC 1071's text on the header that many textbooks compute: 4500 0073 0000
    /// 4000 4011 .... c0a8 0001 c0a8 00c7 has b861.
    #[test]
    fn the_checksum_is_that_of_the_known_example() {
        let varying = VariableFields { traffic_class: 0, port_from: 1, port_to: 2, len: 0x73 - 28 };
        assert_eq!(frame(varying)[24..26], [0xb8, 0x61]);
    }

    #[test]
    fn every_field_has_its_offset() {
        let varying =
            VariableFields { traffic_class: 0xe0, port_from: 0x1234, port_to: 7321, len: 100 };
        let frame = frame(varying);
        assert_eq!(frame[..6], TO.mac);
        assert_eq!(frame[6..12], FROM.mac);
        assert_eq!(frame[12..18], [8, 0, 0x45, 0xe0, 0, 128]);
        assert_eq!(frame[18..24], [0, 0, 0x40, 0, 64, 17]);
        assert_eq!(frame[26..34], [192, 168, 0, 1, 192, 168, 0, 199]);
        assert_eq!(frame[34..42], [0x12, 0x34, 0x1c, 0x99, 0, 108, 0, 0]);
        assert_eq!(port_to(&frame), Some(7321));
    }

    #[test]
    fn padding_is_not_part_of_the_datagram() {
        let varying = VariableFields { traffic_class: 0, port_from: 1, port_to: 2, len: 3 };
        let mut padded = frame(varying);
        let datagram = padded[HEADERS..].to_vec();
        padded.resize(60, 0xaa);
        assert_eq!(parse(&padded), Some((FROM.ip, 0, &datagram[..])));
    }

    proptest! {
        #[test]
        fn datagrams_survive_encoding(
            traffic_class in any::<u8>(),
            ports in any::<(u16, u16)>(),
            len in 0usize..1_473,
        ) {
            let (port_from, port_to) = ports;
            let frame = frame(VariableFields { traffic_class, port_from, port_to, len });
            let (from, class, datagram) = parse(&frame).unwrap();
            prop_assert_eq!((from, class), (FROM.ip, traffic_class));
            prop_assert_eq!(datagram, &frame[HEADERS..]);
        }

        /// No input causes a panic, and a flipped bit in the header is detected.
        #[test]
        fn random_bytes_are_no_packet(mut bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(parse(&bytes), None);
            if bytes.len() > HEADERS {
                bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
                bytes[23] = PROTOCOL_UDP;
                let _ = parse(&bytes);
            }
        }

        #[test]
        fn damage_to_the_header_is_noticed(bit in 0usize..160) {
            let varying = VariableFields { traffic_class: 32, port_from: 1, port_to: 2, len: 50 };
            let mut frame = frame(varying);
            frame[ETHERNET + bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(parse(&frame), None);
        }
    }
}

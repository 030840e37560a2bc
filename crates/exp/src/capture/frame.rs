//! Packets as the Ethernet frames that real hosts would send, headers only.
//!
//! A frame is Ethernet, IPv4, UDP, the envelope and the transport's header, as rampd sends them.
//! Node n has the address 10.77.0.1 + n and that address after `02:00` as its hardware address.
//! Packets of the highest class are sent to port 7321, all others to 7322; source ports distinguish
//! paths. The class is the DSCP, CS7 for the highest to CS0 for the lowest; the congestion marks
//! are ECN's. Payloads are omitted: a frame is as long as in a capture that stops after the
//! headers.
//!
//! The frame's length is that between real hosts. The bytes charged to a simulated link are a
//! setting (`header-bytes`) and mostly fewer. They are stored in an unused field: the IP packet's
//! identification.

use rampmeter_types::envelope::Envelope;
use rampmeter_types::wire::Writer;
use rampmeter_types::{Header, NodeId, Packet, Priority, WireError};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
/// Longest header of a transport.
const HEADER_MAX: usize = 256;
/// Bytes of the longest frame without payload.
pub(crate) const FRAME_MAX: usize = ETHERNET + IPV4 + UDP + Envelope::LEN_MAX + HEADER_MAX;

/// UDP port at which nodes receive packets of the highest class; the next port is for all others.
const PORT: u16 = 7_321;
/// First of the source ports.
const PORT_FIRST: u16 = 49_152;
/// Source ports over which a node spreads its packets.
const PORTS: u16 = 16;
/// 10.77.0.1.
const ADDRESS_FIRST: u32 = 0x0a4d_0001;

/// The start of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    bytes: [u8; FRAME_MAX],
    captured: usize,
    /// Bytes of the whole frame.
    pub(crate) original: usize,
}

impl Frame {
    /// Returns the frame of a packet.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the header is longer than any should be.
    pub(crate) fn from_packet<H: Header>(
        envelope: &Envelope,
        packet: &Packet<H>,
    ) -> Result<Self, WireError> {
        Self::new(envelope, packet, |out| packet.header.encode(out))
    }

    /// Returns a frame of an envelope and the bytes that `body` writes after it, with the addresses
    /// of `packet`.
    pub(crate) fn new<H>(
        envelope: &Envelope,
        packet: &Packet<H>,
        body: impl FnOnce(&mut [u8]) -> Result<usize, WireError>,
    ) -> Result<Self, WireError> {
        let mut bytes = [0; FRAME_MAX];
        let mut captured = ETHERNET + IPV4 + UDP;
        captured += envelope.encode(&mut bytes[captured..])?;
        captured += body(&mut bytes[captured..])?;
        let original = captured + usize::from(packet.payload.len);
        write_headers(&mut bytes, packet, original)?;
        // Short last packets may have been padded to full ones.
        let original = original.max(usize::from(packet.wire_bytes));
        Ok(Self { bytes, captured, original })
    }

    /// Returns the bytes up to the payload.
    pub(crate) fn captured(&self) -> &[u8] {
        &self.bytes[..self.captured]
    }
}

/// Writes the headers before the envelope into a frame of `length` bytes.
fn write_headers<H>(out: &mut [u8], packet: &Packet<H>, length: usize) -> Result<(), WireError> {
    let (src, dst) = (address(packet.src), address(packet.dst));
    let ip_length = (length - ETHERNET) as u16;
    let class = packet.priority.traffic_class() | packet.marks.ecn_bits();
    let mut writer = Writer::new(out);
    writer.u16(0x0200)?.u32(dst)?.u16(0x0200)?.u32(src)?.u16(0x0800)?;
    // Version 4, five words of header; not to be fragmented; 64 hops; UDP; the sum is written last.
    writer.u8(0x45)?.u8(class)?.u16(ip_length)?.u16(packet.wire_bytes)?;
    writer.u16(0x4000)?.u8(64)?.u8(17)?.u16(0)?.u32(src)?.u32(dst)?;
    let class_port = PORT + u16::from(packet.priority != Priority::HIGHEST);
    writer.u16(PORT_FIRST + packet.path % PORTS)?.u16(class_port)?;
    writer.u16(ip_length - IPV4 as u16)?.u16(0)?;
    let sum = checksum(&out[ETHERNET..ETHERNET + IPV4]).to_be_bytes();
    out[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum);
    Ok(())
}

fn address(node: NodeId) -> u32 {
    ADDRESS_FIRST + node.get()
}

/// Returns the internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_matches_the_published_example() {
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(checksum(&header), 0xb861);
    }
}

//! Files of packets in the pcapng format (draft-ietf-opsawg-pcapng), as much as writing them takes.
//!
//! A file is a sequence of blocks: one that describes the file, one for each interface, one for
//! each packet. A block is its type, its length, its content in units of four bytes, and its length
//! again. Times are counted in picoseconds, as the interfaces' blocks declare.

use std::io::{self, Write};

use rampmeter_sim::Direction;
use rampmeter_types::Time;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;

/// Number by which readers detect the order of bytes.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Frames start with an Ethernet header.
const LINK_ETHERNET: u16 = 1;

const OPTION_END: u16 = 0;
/// Option of a section: the program that wrote it.
const SECTION_APPLICATION: u16 = 4;
/// Option of an interface: its name.
const INTERFACE_NAME: u16 = 2;
/// Option of an interface: the negative decimal logarithm of a second's parts in which times are
const INTERFACE_RESOLUTION: u16 = 9;
const PICOSECONDS: u8 = 12;
/// Option of a packet. Its two lowest bits have the direction, among others.
const PACKET_FLAGS: u16 = 2;

/// The number of an interface in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceId(u32);

/// A packet of which a file holds the first bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturedPacket<'a> {
    pub(crate) at: Time,
    pub(crate) interface: InterfaceId,
    pub(crate) direction: Direction,
    /// The bytes held.
    pub(crate) bytes: &'a [u8],
    /// Bytes of the whole packet.
    pub(crate) original: u32,
}

/// Writes a file.
#[derive(Debug)]
pub(crate) struct PcapngWriter<W> {
    out: W,
    n_interfaces: u32,
    /// The content of the block being written.
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a file that `application` writes.
    pub(crate) fn new(out: W, application: &str) -> io::Result<Self> {
        let mut writer = Self { out, n_interfaces: 0, block: Vec::new() };
        writer.u32(BYTE_ORDER);
        // Version 1.0, of unknown length.
        writer.block.extend([1, 0, 0, 0]);
        writer.block.extend([0xff; 8]);
        writer.option(SECTION_APPLICATION, application.as_bytes());
        writer.option(OPTION_END, &[]);
        writer.end_block(SECTION)?;
        Ok(writer)
    }

    /// Adds an interface of which at most the first `snap` bytes of each packet are held.
    pub(crate) fn interface(&mut self, name: &str, snap: u32) -> io::Result<InterfaceId> {
        let id = InterfaceId(self.n_interfaces);
        self.n_interfaces += 1;
        self.block.extend(LINK_ETHERNET.to_le_bytes());
        self.block.extend([0, 0]);
        self.u32(snap);
        self.option(INTERFACE_NAME, name.as_bytes());
        self.option(INTERFACE_RESOLUTION, &[PICOSECONDS]);
        self.option(OPTION_END, &[]);
        self.end_block(INTERFACE)?;
        Ok(id)
    }

    /// Adds a packet.
    pub(crate) fn packet(&mut self, packet: &CapturedPacket<'_>) -> io::Result<()> {
        let CapturedPacket { at, interface, direction, bytes, original } = *packet;
        let ps = at.as_ps();
        self.u32(interface.0);
        self.u32((ps >> 32) as u32);
        self.u32(ps as u32);
        self.u32(bytes.len() as u32);
        self.u32(original);
        self.padded(bytes);
        let flags: u32 = match direction {
            Direction::Received => 1,
            Direction::Sent => 2,
        };
        self.option(PACKET_FLAGS, &flags.to_le_bytes());
        self.option(OPTION_END, &[]);
        self.end_block(PACKET)
    }

    /// Ends the file.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn u32(&mut self, value: u32) {
        self.block.extend(value.to_le_bytes());
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.padded(value);
    }

    fn end_block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.block.clear();
        self.out.write_all(&length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the blocks of a file: their types and contents.
    fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let word = |bytes: &[u8], at: usize| {
            u32::from_le_bytes(*bytes[at..].first_chunk().expect("a word is whole"))
        };
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let length = word(file, 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(file, length - 4) as usize, length, "the length stands at both ends");
            blocks.push((word(file, 0), file[8..length - 4].to_vec()));
            file = &file[length..];
        }
        blocks
    }

    fn file(bytes: &[u8], at: Time, direction: Direction) -> Vec<u8> {
        let mut writer = PcapngWriter::new(Vec::new(), "rampmeter").unwrap();
        let _other = writer.interface("h0", 64).unwrap();
        let interface = writer.interface("h1", 64).unwrap();
        let packet = CapturedPacket { at, interface, direction, bytes, original: 1_500 };
        writer.packet(&packet).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn a_file_is_a_section_its_interfaces_and_its_packets() {
        let blocks = blocks(&file(&[7; 5], Time::ZERO, Direction::Received));
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION, INTERFACE, INTERFACE, PACKET]);
        assert_eq!(blocks[0].1[..8], [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0]);
    }

    #[test]
    fn an_interface_block_has_its_name_and_picosecond_resolution() {
        let (_, interface) = &blocks(&file(&[], Time::ZERO, Direction::Received))[2];
        let expected =
            [1, 0, 0, 0, 64, 0, 0, 0, 2, 0, 2, 0, b'h', b'1', 0, 0, 9, 0, 1, 0, 12, 0, 0, 0];
        assert_eq!(interface[..24], expected);
        assert_eq!(interface[24..], [0; 4], "the end of the options");
    }

    #[test]
    fn a_packet_has_interface_time_lengths_bytes_and_direction() {
        let at = Time::from_ps(0x0001_0203_0405_0607);
        let (_, packet) = &blocks(&file(&[7; 5], at, Direction::Sent))[3];
        let expected = [1, 0, 0, 0, 3, 2, 1, 0, 7, 6, 5, 4, 5, 0, 0, 0, 0xdc, 5, 0, 0];
        assert_eq!(packet[..20], expected);
        assert_eq!(packet[20..28], [7, 7, 7, 7, 7, 0, 0, 0]);
        assert_eq!(packet[28..], [2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    }
}

//! `rampd decrypt`: decrypts the packets of a capture with keys that nodes have logged.
//!
//! The output is the capture with other bytes in place of encrypted ones: lengths, times and other
//! packets are the same. The envelope of a decrypted packet has a mark that it is decrypted, so
//! that it cannot be taken for one that was sent without protection.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{Block, LegacyPcapSlice, Linktype, PcapBlockOwned, PcapNGSlice};
use rampmeter_runtime::datapath::secure::{BadKeyLine, Decryption, DecryptionKeys};
use serde_json::json;

use crate::error::{Error, InputError};
use crate::json::Form;

/// Arguments of `rampd decrypt`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  rampd decrypt --keys keys.log host.pcapng plain.pcapng")]
pub(crate) struct DecryptArgs {
    /// Keys that a node has logged (`node.key-log`); may be repeated.
    #[arg(long, required = true)]
    keys: Vec<PathBuf>,
    /// The capture: pcap or pcapng, with whole packets.
    capture: PathBuf,
    /// The file for the decrypted capture, readable only by its owner.
    out: PathBuf,
}

/// Expected line of a log of keys.
const KEY_LINE: &str =
    "RAMPMETER_KEY, source, destination, session and a key of 64 hexadecimal digits";

/// A packet of a capture: its bytes in the file, and the type of its link.
type CapturedPacket = (Range<usize>, Linktype);

/// Runs `rampd decrypt`. The file appears when it is complete.
pub(crate) fn decrypt(args: &DecryptArgs, form: Form) -> Result<(), Error> {
    let mut keys = DecryptionKeys::default();
    for file in &args.keys {
        let text = fs::read_to_string(file)
            .map_err(|error| InputError::unreadable(&error).in_file(file))?;
        keys.add(&text).map_err(|BadKeyLine { line }| {
            InputError::unexpected(KEY_LINE, "another line").on_line(line as u64).in_file(file)
        })?;
    }
    let mut capture = fs::read(&args.capture)
        .map_err(|error| InputError::unreadable(&error).in_file(&args.capture))?;
    let packets = packets(&capture).map_err(|error| error.in_file(&args.capture))?;
    let (mut n_decrypted, mut n_without_key, mut n_wrong_tags) = (0u64, 0u64, 0u64);
    for (bytes, link) in &packets {
        match decrypt_frame(&mut capture[bytes.clone()], *link, &keys) {
            Decryption::Decrypted => n_decrypted += 1,
            Decryption::NoKey => n_without_key += 1,
            Decryption::WrongTag => n_wrong_tags += 1,
            Decryption::NotEncrypted => {}
        }
    }
    write_whole(&args.out, &capture)
        .map_err(|error| InputError::unwritable(&error).in_file(&args.out))?;
    let n_others = packets.len() as u64 - n_decrypted - n_without_key - n_wrong_tags;
    let text = format!(
        "{}: {n_decrypted} packets decrypted, {n_without_key} without a key, {n_wrong_tags} with a \
         wrong tag, {n_others} not encrypted\n",
        args.out.display()
    );
    form.print(&text, || {
        json!({
            "schema": "rampd.decrypt/1",
            "file": args.out,
            "decrypted": n_decrypted,
            "without_key": n_without_key,
            "wrong_tags": n_wrong_tags,
            "not_encrypted": n_others,
        })
    })?;
    Ok(())
}

/// Writes a file that only its owner can read, or nothing.
fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    let written = out.write_all(bytes).and_then(|()| out.sync_all());
    let renamed = written.and_then(|()| fs::rename(&part, file));
    if renamed.is_err() {
        let _ = fs::remove_file(&part);
    }
    renamed
}

/// Returns the packets of a capture.
fn packets(capture: &[u8]) -> Result<Vec<CapturedPacket>, Box<InputError>> {
    let start = capture.as_ptr() as usize;
    let bytes_of = |data: &[u8]| {
        let at = data.as_ptr() as usize - start;
        at..at + data.len()
    };
    let malformed = |n: usize| {
        InputError::unexpected(format!("a pcap or pcapng block after {n} packets"), "other bytes")
    };
    let (mut found, mut links) = (Vec::new(), Vec::new());
    if let Ok(blocks) = PcapNGSlice::from_slice(capture) {
        for block in blocks {
            match block.map_err(|_| malformed(found.len()))? {
                PcapBlockOwned::NG(Block::SectionHeader(_)) => links.clear(),
                PcapBlockOwned::NG(Block::InterfaceDescription(of)) => links.push(of.linktype),
                PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                    let link = links.get(packet.if_id as usize).copied();
                    let link = link.ok_or_else(|| {
                        let got =
                            format!("packet {} of interface {}", found.len() + 1, packet.if_id);
                        InputError::unexpected("packets of the capture's interfaces", got)
                    })?;
                    found.push((bytes_of(packet.packet_data()), link));
                }
                _ => {}
            }
        }
        return Ok(found);
    }
    let blocks = LegacyPcapSlice::from_slice(capture).map_err(|_| {
        InputError::unexpected("a capture in the format pcap or pcapng", "another file")
    })?;
    if blocks.header.is_bigendian() {
        let expected = "little-endian pcap (`editcap` converts the file)";
        return Err(InputError::unexpected(expected, "big-endian pcap"));
    }
    let link = blocks.header.network;
    for block in blocks {
        if let PcapBlockOwned::Legacy(packet) = block.map_err(|_| malformed(found.len()))? {
            found.push((bytes_of(packet.data), link));
        }
    }
    Ok(found)
}

/// Decrypts the datagram in a frame, and writes the checksum of the changed datagram.
fn decrypt_frame(frame: &mut [u8], link: Linktype, keys: &DecryptionKeys) -> Decryption {
    match decrypt_payload(frame, link, keys) {
        Ok((at, payload, checksum)) => {
            frame[at..at + payload.len()].copy_from_slice(&payload);
            frame[at - 2..at].copy_from_slice(&checksum.to_be_bytes());
            Decryption::Decrypted
        }
        Err(reason) => reason,
    }
}

/// Returns the range of the UDP payload in a frame, the decrypted payload, and the checksum.
/// Otherwise returns the reason for which it is not decrypted.
fn decrypt_payload(
    frame: &[u8],
    link: Linktype,
    keys: &DecryptionKeys,
) -> Result<(usize, Vec<u8>, u16), Decryption> {
    let parsed = match link {
        Linktype::ETHERNET => SlicedPacket::from_ethernet(frame),
        Linktype::LINUX_SLL => SlicedPacket::from_linux_sll(frame),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => SlicedPacket::from_ip(frame),
        _ => return Err(Decryption::NotEncrypted),
    };
    let Ok(SlicedPacket { net: Some(net), transport: Some(TransportSlice::Udp(udp)), .. }) = parsed
    else {
        return Err(Decryption::NotEncrypted);
    };
    let mut payload = udp.payload().to_vec();
    match keys.decrypt(&mut payload) {
        Decryption::Decrypted => {}
        reason => return Err(reason),
    }
    let header = udp.to_header();
    let checksum = match &net {
        NetSlice::Ipv4(ip) => header.calc_checksum_ipv4(&ip.header().to_header(), &payload),
        NetSlice::Ipv6(ip) => header.calc_checksum_ipv6(&ip.header().to_header(), &payload),
        NetSlice::Arp(_) => return Err(Decryption::NotEncrypted),
    };
    let at = udp.payload().as_ptr() as usize - frame.as_ptr() as usize;
    Ok((at, payload, checksum.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_captures_are_refused() {
        for other in [&b""[..], b"no capture", &[0x0a, 0x0d, 0x0d, 0x0a, 9, 9, 9, 9]] {
            assert!(packets(other).unwrap_err().to_string().contains("pcap"), "{other:?}");
        }
    }

    #[test]
    fn a_truncated_capture_is_refused() {
        let magic = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        let rest = [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
        let packet = [0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4];
        let capture = [&magic[..], &rest, &packet].concat();
        assert_eq!(packets(&capture), Ok(vec![(40..44, Linktype::ETHERNET)]));
        assert_eq!(
            packets(&capture[..capture.len() - 1]).unwrap_err().to_string(),
            "expected a pcap or pcapng block after 0 packets, got other bytes"
        );
    }
}

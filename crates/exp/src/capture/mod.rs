//! Captures: the packets of a simulated run as a file that Wireshark reads.
//!
//! Every packet that one of the chosen hosts sends or receives becomes a frame as between real
//! hosts ([`frame`]), with the simulated time. So one dissector reads both. A host is an interface
//! of the file. A capture stops at a number of packets; the run continues, and the manifest reports
//! it.

mod frame;
mod pcapng;
mod sample;

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use rampmeter_sim::InterfacePacket;
use rampmeter_sim::topo::Node;
use rampmeter_types::envelope::{
    DatagramKind, Envelope, Fragment, Incarnation, Protection, TransportId,
};
use rampmeter_types::{Header, PayloadRef};
use serde::Serialize;

use crate::error::{RunError, io as io_error};
use crate::topology::names::NamesSpec;
use crate::version::{COMMIT, VERSION};
use frame::{FRAME_MAX, Frame};
use pcapng::{CapturedPacket, InterfaceId, PcapngWriter};

pub use sample::every_packet;

/// Parameters of a capture.
#[derive(Clone, Debug)]
pub(crate) struct CaptureConfig {
    /// The file's name in the folder of results.
    pub(crate) file: String,
    /// Hosts, and arbiters after them, in order.
    pub(crate) ends: Vec<u32>,
    /// Maximum number of packets.
    pub(crate) packets_max: u64,
}

/// Contents of a capture file, for the manifest.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CaptureReport {
    file: String,
    packets: u64,
    /// True if there were more packets than the limit allows.
    limit_reached: bool,
}

/// A capture in progress.
#[derive(Debug)]
pub(crate) struct Capture {
    config: CaptureConfig,
    file: PathBuf,
    transport: TransportId,
    /// The interface of each host and arbiter that is captured.
    interfaces: Vec<Option<InterfaceId>>,
    /// `None` after an error.
    writer: Option<PcapngWriter<BufWriter<File>>>,
    error: Option<io::Error>,
    packets: u64,
    limit_reached: bool,
    /// Length of each message in bytes, by message number. Packets may arrive after the message has
    /// completed.
    message_bytes: Vec<u32>,
}

impl Capture {
    /// Starts a capture in the folder `out`, of packets of `transport` between `n_hosts` hosts
    /// with these names.
    pub(crate) fn create(
        config: &CaptureConfig,
        transport: TransportId,
        n_hosts: u32,
        names: &NamesSpec,
        out: &Path,
    ) -> Result<Self, RunError> {
        let file = out.join(&config.file);
        let partial = partial(&file);
        let started = start(&partial, config, n_hosts, names);
        let (writer, interfaces) = started.map_err(|source| io_error(&partial, source))?;
        Ok(Self {
            config: config.clone(),
            file,
            transport,
            interfaces,
            writer: Some(writer),
            error: None,
            packets: 0,
            limit_reached: false,
            message_bytes: Vec::new(),
        })
    }

    /// Ends the capture and gives the file its name.
    pub(crate) fn finish(mut self) -> Result<CaptureReport, RunError> {
        let partial = partial(&self.file);
        if let Some(writer) = self.writer.take()
            && let Err(error) = writer.finish()
        {
            self.error = Some(error);
        }
        if let Some(error) = self.error {
            return Err(io_error(&partial, error));
        }
        fs::rename(&partial, &self.file).map_err(|source| io_error(&self.file, source))?;
        let Self { packets, limit_reached, .. } = self;
        Ok(CaptureReport { file: self.config.file, packets, limit_reached })
    }

    /// Writes a packet that a captured host or arbiter sends or receives.
    pub(crate) fn on_packet<H: Header>(&mut self, passing: &InterfacePacket<'_, H>) {
        let end = passing.end.get() as usize;
        let Some(interface) = self.interfaces.get(end).copied().flatten() else { return };
        if self.limit_reached {
            return;
        }
        if self.packets == self.config.packets_max {
            self.limit_reached = true;
            return;
        }
        let envelope = self.envelope(passing);
        let Some(writer) = &mut self.writer else { return };
        let frame = Frame::from_packet(&envelope, passing.packet);
        let frame = frame.expect("headers are shorter than 256 bytes");
        let captured = CapturedPacket {
            at: passing.now,
            interface,
            direction: passing.direction,
            bytes: frame.captured(),
            original: frame.original as u32,
        };
        match writer.packet(&captured) {
            Ok(()) => self.packets += 1,
            Err(error) => {
                // The run continues to a clean end; the error is reported there.
                self.writer = None;
                self.error = Some(error);
            }
        }
    }

    fn envelope<H: Header>(&mut self, passing: &InterfacePacket<'_, H>) -> Envelope {
        let packet = passing.packet;
        let PayloadRef { msg, offset, len } = packet.payload;
        let word = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let kind = if len == 0 {
            DatagramKind::Control { msg }
        } else {
            let message = passing.message.map(|bytes| word(bytes.get()));
            let size = self.size(msg.get() as usize, message);
            // Simulated messages have no bytes, so the digest that their last bytes would carry is
            // zero.
            let is_last = offset + u64::from(len) == u64::from(size);
            let (offset, digest) = (word(offset), is_last.then_some(0));
            DatagramKind::Data { msg, fragment: Fragment { service: 0, offset, size, digest } }
        };
        Envelope {
            transport: self.transport,
            src: packet.src,
            dst: packet.dst,
            src_incarnation: Incarnation::new(1),
            dst_incarnation: Some(Incarnation::new(1)),
            kind,
            protection: Protection::Unprotected,
        }
    }

    /// Returns the bytes of a message: `known`, or else the value at its previous packet.
    fn size(&mut self, msg: usize, known: Option<u32>) -> u32 {
        if self.message_bytes.len() <= msg {
            self.message_bytes.resize(msg + 1, 0);
        }
        if let Some(size) = known {
            self.message_bytes[msg] = size;
        }
        self.message_bytes[msg]
    }
}

/// Returns the name of a file that is being written.
fn partial(file: &Path) -> PathBuf {
    file.with_extension("pcapng.partial")
}

type OpenCapture = (PcapngWriter<BufWriter<File>>, Vec<Option<InterfaceId>>);

fn start(
    file: &Path,
    config: &CaptureConfig,
    n_hosts: u32,
    names: &NamesSpec,
) -> io::Result<OpenCapture> {
    let application = format!("rampmeter {VERSION} ({COMMIT})");
    let mut writer = PcapngWriter::new(BufWriter::new(File::create(file)?), &application)?;
    let mut interfaces = Vec::new();
    for &end in &config.ends {
        let name = match end.checked_sub(n_hosts) {
            None => names.node(Node::Host(end)),
            Some(arbiter) => names.node(Node::Arbiter(arbiter)),
        };
        interfaces.resize(end as usize, None);
        interfaces.push(Some(writer.interface(&name, FRAME_MAX as u32)?));
    }
    Ok((writer, interfaces))
}

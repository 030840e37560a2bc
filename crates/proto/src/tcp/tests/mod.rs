//! TCP at the level of packets: scripts in the manner of packetdrill.
//!
//! A script has one host. It submits messages, plays the other end by hand, and checks the packets
//! of the host. Bytes are numbered in the stream: the SYN is 0, data starts at 1. Segments have
//! 1000 bytes. Times are in microseconds.

mod control;
mod ecn;
mod handshake;
mod holding;
mod loss;
mod rack;
mod receiver;
mod timeout;
mod window;

use std::sync::Arc;

use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, Event, FabricFacts, HostPolicy, Message, MsgId, NodeId, Observation, Packet, PayloadRef,
    Priority, Protocol, Purpose, Rate, Receipt, Rng, Span, Time,
};

use super::config::{LossDetection, TcpConfig};
use super::seq::wrap;
use super::wire::{List, SackBlock, TcpHeader};
use super::{TcpHost, TcpStats};
use crate::keys::{BadKey, PacketSizes};

const MSS: u64 = 1_000;
const HOST: NodeId = NodeId::new(0);
const PEER: NodeId = NodeId::new(1);

/// Parameters of most scripts: NewReno with duplicate acknowledgements, a timeout of 1 ms at least.
fn config() -> TcpConfig {
    TcpConfig {
        loss_detection: LossDetection::DupAck,
        rto_min_us: Some(1_000),
        rto_initial_us: Some(3_000),
        rto_max_us: Some(60_000),
        packet: PacketSizes::new(MSS, 40),
        window_initial: 4,
        ..TcpConfig::new_reno()
    }
}

/// Returns the network of most scripts.
fn facts() -> FabricFacts {
    FabricFacts {
        n_hosts: 2,
        access_rate: Rate::from_gbps(10),
        core_rate: None,
        data_rtt: Span::from_us(10),
        control_rtt: Span::from_us(8),
        abort_timeout_min: Span::ZERO,
    }
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// A host, and the time.
struct Script {
    host: TcpHost,
    now: Time,
    /// The initial sequence number of the connection.
    initial: u32,
    conn: u32,
    window: u32,
    /// True if the other end supports ECN: as the host does.
    ecn: bool,
    next_msg: u32,
}

impl Script {
    fn new(config: TcpConfig) -> Self {
        let ecn = config.ecn;
        let tcp = Arc::new(config.derive(&facts(), Vec::new()).unwrap());
        let window = tcp.receive_buffer_bytes as u32;
        let rng = Rng::new(1, 0, Purpose::Test);
        let host = TcpHost::new(tcp, HOST, rng, Time::ZERO);
        Self { host, now: Time::ZERO, initial: 0, conn: 0, window, ecn, next_msg: 0 }
    }

    /// Returns a connection that is open after a round trip of 100 us, with a message of `bytes` to
    /// send.
    fn open(config: TcpConfig, bytes: u64) -> Self {
        let mut script = Self::new(config);
        script.submit(bytes);
        assert_eq!(script.sent(), ["syn"]);
        script.at(100).syn_ack();
        script
    }

    /// Advances time and runs timers.
    fn at(&mut self, us: u64) -> &mut Self {
        let until = at(us);
        assert!(until >= self.now, "time goes on");
        while self.host.poll_timeout() <= until {
            self.now = self.host.poll_timeout().max(self.now);
            self.host.handle_timeout(self.now);
        }
        self.now = until;
        self
    }

    fn submit(&mut self, bytes: u64) -> MsgId {
        let msg = MsgId::new(self.next_msg);
        self.next_msg += 1;
        self.host.submit(self.now, Message::new(msg, PEER, Bytes::new(bytes)));
        msg
    }

    /// Everything that the host sends now, in words.
    fn sent(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        while let Some(packet) = self.host.poll_transmit(self.now) {
            sent.push(self.describe(&packet));
        }
        sent
    }

    /// Returns one packet that the host sends now.
    fn sent_one(&mut self) -> String {
        let packet = self.host.poll_transmit(self.now);
        packet.map_or_else(|| "nothing".to_owned(), |packet| self.describe(&packet))
    }

    fn describe(&mut self, packet: &Packet<TcpHeader>) -> String {
        let mark = if packet.marks.contains(Marks::ECN_CAPABLE) { " ect" } else { "" };
        let byte = |seq: u32| seq.wrapping_sub(self.initial);
        match packet.header {
            TcpHeader::Syn { conn, seq, .. } => {
                (self.initial, self.conn) = (seq, conn);
                format!("syn{mark}")
            }
            TcpHeader::SynAck { .. } => format!("syn-ack{mark}"),
            TcpHeader::Data { seq, cwr, .. } => {
                let start = byte(seq);
                let end = start + u32::from(packet.payload.len);
                format!("{start}..{end}{}{mark}", if cwr { " cwr" } else { "" })
            }
            TcpHeader::Fin { seq, .. } => format!("fin {}", byte(seq)),
            TcpHeader::Ack { ack, window, ece, sack, .. } => {
                let mut text = format!("ack {}", byte(ack));
                for block in sack.as_slice() {
                    text += &format!(" {}..{}", byte(block.start), byte(block.end));
                }
                text += if ece { " ece" } else { "" };
                if window == self.window { text } else { format!("{text} window {window}") }
            }
            TcpHeader::Reset { .. } => "reset".to_owned(),
            TcpHeader::Refused { .. } => "refused".to_owned(),
            TcpHeader::Ended { .. } => "ended".to_owned(),
        }
    }

    fn deliver(&mut self, header: TcpHeader, payload: PayloadRef, marks: Marks) -> Receipt {
        let packet = Packet {
            header,
            payload,
            src: PEER,
            dst: HOST,
            wire_bytes: 40 + payload.len,
            path: 0,
            priority: Priority::HIGHEST,
            marks,
        };
        self.host.handle_packet(self.now, &packet)
    }

    fn control(&mut self, header: TcpHeader) -> &mut Self {
        self.deliver(header, PayloadRef::default(), Marks::NONE);
        self
    }

    fn syn_ack(&mut self) -> &mut Self {
        self.syn_ack_to(self.ecn, wrap(1, self.initial))
    }

    /// The other end answers the SYN, with or without ECN, and acknowledges `ack`.
    fn syn_ack_to(&mut self, ecn: bool, ack: u32) -> &mut Self {
        let (conn, window) = (self.conn, self.window);
        self.control(TcpHeader::SynAck { conn, ack, window, ecn })
    }

    /// The other end acknowledges all below `ack`, and ranges above.
    fn ack(&mut self, ack: u64, sack: &[(u64, u64)]) -> &mut Self {
        self.acknowledge(ack, sack, false)
    }

    fn acknowledge(&mut self, ack: u64, sack: &[(u64, u64)], ece: bool) -> &mut Self {
        let mut list = List::default();
        for &(start, end) in sack {
            let (start, end) = (wrap(start, self.initial), wrap(end, self.initial));
            assert!(list.push(SackBlock { start, end }));
        }
        let (conn, window, ack) = (self.conn, self.window, wrap(ack, self.initial));
        self.control(TcpHeader::Ack { conn, ack, window, ece, sack: list })
    }

    /// The other end opens a connection.
    fn syn(&mut self, initial: u32) -> &mut Self {
        self.initial = initial;
        self.control(TcpHeader::Syn { conn: 0, seq: initial, ecn: true })
    }

    /// Returns a segment of a message that starts with the stream and has `size` bytes.
    fn data(&mut self, (start, end): (u64, u64), size: u64) -> Receipt {
        self.segment(start, end, size, false, Marks::NONE)
    }

    fn segment(&mut self, start: u64, end: u64, size: u64, cwr: bool, marks: Marks) -> Receipt {
        let seq = wrap(start, self.initial);
        let header = TcpHeader::Data { conn: 0, seq, size, cwr };
        let (offset, len) = (start - 1, (end - start) as u16);
        self.deliver(header, PayloadRef { msg: MsgId::new(7), offset, len }, marks)
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.host.poll_event()).collect()
    }

    fn stats(&self) -> TcpStats {
        self.host.stats()
    }
}

/// Segments of 1000 bytes from the `from`-th on, in words.
fn segments(from: u64, n: u64) -> Vec<String> {
    (from..from + n).map(|i| format!("{}..{}", 1 + i * MSS, 1 + (i + 1) * MSS)).collect()
}

/// Returns the byte after the first `n` segments.
fn after(n: u64) -> u64 {
    1 + n * MSS
}

//! The limit of one sender's credit by one signal: a law like DCTCP's (RFC 8257 §3.3).
//!
//! A receiver keeps two of these for each sender. One follows the marks of the sender, the other
//! those of switches. The smaller limit is the window: the credit that the sender may have. The
//! details are those of the authors' simulator. Every packet of the sender counts, control packets
//! as unmarked ones. Each adds a full packet's share of a window; a marked packet also cuts the
//! limit, once in one and a half windows. The share of marked packets is averaged window by window.

/// Parameters of a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitConfig {
    /// Weight of the latest share of marked packets in its mean.
    pub gain: f64,
    /// Smallest limit, in bytes.
    pub min: u64,
    /// Largest limit, in bytes: the first one.
    pub max: u64,
    /// A full packet, in bytes on the wire.
    pub full: u64,
}

/// Parameters of the two limits of a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitConfigs {
    /// Parameters of the limit by the marks of the sender.
    pub sender: LimitConfig,
    /// Parameters of the limit by the marks of switches.
    pub core: LimitConfig,
}

/// A limit, and the marks seen since it changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CreditLimit {
    bytes: u64,
    /// Mean share of marked packets.
    share: f64,
    /// Packets since the share was updated, the marked ones among them, and the packets at the next
    /// update.
    n_packets: u32,
    n_marked: u32,
    update_at: u32,
    /// Number of packets since the limit was cut, and the minimum before its next cut.
    since_cut: u32,
    cut_at: u32,
}

impl CreditLimit {
    /// Returns the limit of an unknown sender: the largest.
    pub fn new(law: &LimitConfig) -> Self {
        let cut_at = (law.max / law.full) as u32;
        Self {
            bytes: law.max,
            share: 0.0,
            n_packets: 0,
            n_marked: 0,
            update_at: 1,
            since_cut: 0,
            cut_at,
        }
    }

    /// Limit in bytes.
    #[inline]
    pub fn get(&self) -> u64 {
        self.bytes
    }

    /// Takes a packet of the sender into account. `window` is the smaller of its two limits, in
    /// bytes.
    #[inline]
    pub fn on_packet(&mut self, is_marked: bool, window: u64, law: &LimitConfig) {
        self.n_packets += 1;
        self.n_marked += u32::from(is_marked);
        self.since_cut += 1;
        let packets = window / law.full;
        if self.n_packets >= self.update_at {
            let latest = f64::from(self.n_marked) / f64::from(self.n_packets);
            self.share += law.gain * (latest - self.share);
            (self.n_packets, self.n_marked, self.update_at) = (0, 0, packets.max(1) as u32);
        }
        let mut bytes = self.bytes + law.full * law.full / window;
        if is_marked && self.since_cut >= self.cut_at {
            bytes -= (self.bytes as f64 * self.share / 2.0) as u64;
            (self.since_cut, self.cut_at) = (0, (packets * 3 / 2) as u32);
        }
        self.bytes = bytes.clamp(law.min, law.max);
    }
}

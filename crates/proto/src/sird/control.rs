//! The limit of one sender's credit by one signal: DCTCP's law (RFC 8257 §3.3).
//!
//! A receiver keeps two of these for each sender. One follows the marks of the sender, the other those
//! of switches. The smaller limit holds.

/// How limits follow marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Weight of the latest share of marked bytes in its mean.
    pub gain: f64,
    /// The largest limit, in bytes: the first one.
    pub max: u64,
    /// What a limit grows by where nothing was marked, and the smallest limit: a full packet.
    pub step: u64,
}

/// A limit, and the marks seen since it changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    bytes: u64,
    share: f64,
    seen: u64,
    marked: u64,
}

impl Limit {
    /// The limit of a sender that has not been heard: the largest. The share of marked bytes is 1, so
    /// that the first marks halve it (RFC 8257 §3.3).
    pub fn new(law: &Law) -> Self {
        Self { bytes: law.max, share: 1.0, seen: 0, marked: 0 }
    }

    /// The limit in bytes.
    #[inline]
    pub fn get(&self) -> u64 {
        self.bytes
    }

    /// Data has come, of so many bytes. The limit changes once a window of itself.
    #[inline]
    pub fn on_data(&mut self, bytes: u64, is_marked: bool, law: &Law) {
        self.seen += bytes;
        if is_marked {
            self.marked += bytes;
        }
        if self.seen >= self.bytes {
            self.turn(law);
        }
    }

    fn turn(&mut self, law: &Law) {
        let latest = self.marked as f64 / self.seen as f64;
        self.share += law.gain * (latest - self.share);
        self.bytes = if self.marked > 0 {
            let less = (self.bytes as f64 * (1.0 - self.share / 2.0)) as u64;
            less.max(law.step)
        } else {
            (self.bytes + law.step).min(law.max)
        };
        (self.seen, self.marked) = (0, 0);
    }
}

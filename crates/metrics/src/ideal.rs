//! Exact completion time of a message that is alone in the network.
//!
//! A message is divided into full packets and a last one. Packet `k` may start on hop `i` when its
//! head has arrived there and the hop has sent packet `k - 1`. All full packets are alike, so the
//! last arrival is the longest path through the grid of packets and hops. That path has a closed
//! form. The `n - 1` full packets queue behind each other at the slowest hop up to some hop `j`.
//! The last packet follows the one before it on hop `j` and is never delayed after that. The ideal
//! is the maximum over `j`; the tests compare it with the recurrence, packet by packet.
//!
//! Three ideals are in use, by name:
//! - `delivered`: until the last bit is at the receiver. The default.
//! - `acked`: until its acknowledgement has returned to the sender over the same hops. The oracle
//!   of the simulators of pHost and dcPIM.
//! - `figure`: as `acked`, but the first link carries only the payload, without headers, and later
//!   hops one full packet. The published figures of dcPIM divide by it.

use std::fmt;

use rampmeter_types::{Bytes, Rate, Segmentation, Span};
use serde::{Deserialize, Serialize};

/// Link of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathHop {
    /// Rate of the link.
    pub rate: Rate,
    /// Delay from the last bit sent to the last bit received, including processing.
    pub delay: Span,
}

/// Instant from which a switch forwards a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// After its last bit has arrived.
    StoreAndForward,
    /// After its header has arrived, but not so early that the output link would underrun.
    CutThrough {
        /// Bytes of the header.
        #[serde(with = "bytes")]
        header: Bytes,
    },
    /// Immediately, as shapers do. An idle link compensates for some of it, and only the last one
    /// adds a packet's time.
    Shaped {
        /// Time that an idle link compensates for.
        #[serde(with = "ps")]
        burst: Span,
    },
}

/// Definition of the ideal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ideal {
    /// Until the last bit is at the receiver.
    #[default]
    Delivered,
    /// Until its acknowledgement is at the sender.
    Acked,
    /// Divisor of the published figures of dcPIM.
    Figure,
}

impl Ideal {
    /// Returns its name in plans and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Acked => "acked",
            Self::Figure => "figure",
        }
    }
}

impl fmt::Display for Ideal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Model that computes ideals on any path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdealModel {
    /// Forwarding of switches.
    pub forwarding: Forwarding,
    /// Packets of messages. All of a message but the last are full.
    pub segmentation: Segmentation,
}

impl IdealModel {
    /// Returns the ideal completion time of a message of `size` over `path`, which is not empty.
    pub fn fct(&self, ideal: Ideal, size: Bytes, path: &[PathHop]) -> Span {
        assert!(!path.is_empty(), "a path has at least one hop");
        match ideal {
            Ideal::Delivered => self.delivered(size, path),
            Ideal::Acked => self.delivered(size, path) + self.ack(path),
            Ideal::Figure => {
                let first = path[0].rate.tx_time(size);
                let later = sum(path[1..]
                    .iter()
                    .map(|hop| hop.rate.tx_time(self.segmentation.full_wire_bytes())));
                first + later + propagation(path) + self.ack(path)
            }
        }
    }

    /// Returns the time until the last bit is at the receiver.
    pub(crate) fn delivered(&self, size: Bytes, path: &[PathHop]) -> Span {
        let n = u64::from(self.segmentation.packets(size));
        let last = self.segmentation.last_wire_bytes(size);
        let alone = self.packet_time(last, path);
        if n == 1 {
            return alone;
        }
        let full = self.segmentation.full_wire_bytes();
        if let Forwarding::Shaped { burst } = self.forwarding {
            // The last packet is sent on hop j after all others less the burst.
            let before = |hop: &PathHop| hop.rate.tx_time(full).as_ps().saturating_mul(n - 1);
            let longest = path.iter().map(before).max().unwrap_or(0);
            return Span::from_ps(longest.saturating_sub(burst.as_ps())) + alone;
        }
        // Up to hop j: the heads of full packets, then the slowest of these hops n - 2 times. Then
        // one more full packet on j itself, and from there the last packet.
        let (mut heads, mut last_heads, mut slowest) = (Span::ZERO, Span::ZERO, Span::ZERO);
        let mut longest = Span::ZERO;
        for (j, hop) in path.iter().enumerate() {
            let tx = hop.rate.tx_time(full);
            slowest = slowest.max(tx);
            let waiting = Span::from_ps(slowest.as_ps().saturating_mul(n - 2));
            let rest = alone - last_heads;
            longest = longest.max(heads + waiting + tx + rest);
            if let Some(next) = path.get(j + 1) {
                heads += self.head(full, hop, next);
                last_heads += self.head(last, hop, next);
            }
        }
        longest
    }

    /// Returns the time of one packet of `wire` bytes over the path.
    fn packet_time(&self, wire: Bytes, path: &[PathHop]) -> Span {
        let heads = path.windows(2).map(|pair| self.head(wire, &pair[0], &pair[1]));
        let tail = path[path.len() - 1].rate.tx_time(wire);
        sum(heads) + tail + propagation(path)
    }

    fn ack(&self, path: &[PathHop]) -> Span {
        let back: Vec<PathHop> = path.iter().rev().copied().collect();
        self.packet_time(self.segmentation.header, &back)
    }

    /// Returns the time from the start of a packet on one hop to its earliest start on the next,
    /// without propagation.
    pub(crate) fn head(&self, wire: Bytes, hop: &PathHop, next: &PathHop) -> Span {
        let whole = hop.rate.tx_time(wire);
        match self.forwarding {
            Forwarding::StoreAndForward => whole,
            Forwarding::CutThrough { header } => {
                let head = hop.rate.tx_time(header.min(wire));
                head.max(whole.saturating_sub(next.rate.tx_time(wire)))
            }
            Forwarding::Shaped { .. } => Span::ZERO,
        }
    }
}

fn propagation(path: &[PathHop]) -> Span {
    sum(path.iter().map(|hop| hop.delay))
}

fn sum(spans: impl Iterator<Item = Span>) -> Span {
    spans.fold(Span::ZERO, |total, span| total + span)
}

/// Picoseconds as a plain number in plans and results.
mod ps {
    use rampmeter_types::Span;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(span.as_ps())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Span, D::Error> {
        u64::deserialize(d).map(Span::from_ps)
    }
}

/// Bytes as a plain number in plans and results.
mod bytes {
    use rampmeter_types::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Bytes,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(bytes.get())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
        u64::deserialize(d).map(Bytes::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rampmeter_types::Padding;

    /// Returns the path of the published topologies: between racks, or within one.
    fn path(access_gbps: u64, delay_ns: u64, same_rack: bool) -> Vec<PathHop> {
        let delay = Span::from_ns(delay_ns);
        let access = PathHop { rate: Rate::from_gbps(access_gbps), delay };
        let core = PathHop { rate: Rate::from_gbps(4 * access_gbps), delay };
        if same_rack { vec![access; 2] } else { vec![access, core, core, access] }
    }

    /// Packets of the dcPIM and pHost studies.
    const PADDED: Segmentation =
        Segmentation::new(Bytes::new(1_460), Bytes::new(40), Padding::Full);
    const REFERENCE: IdealModel =
        IdealModel { forwarding: Forwarding::StoreAndForward, segmentation: PADDED };

    fn ps(ideal: Ideal, packets: u64, same_rack: bool) -> u64 {
        let size = Bytes::new(1460 * packets);
        REFERENCE.fct(ideal, size, &path(100, 650, same_rack)).as_ps()
    }

    #[test]
    fn the_ideal_of_one_packet_matches_the_published_times() {
        assert_eq!(ps(Ideal::Acked, 1, false), 5_508_000);
        assert_eq!(ps(Ideal::Acked, 1, true), 2_846_400);
        assert_eq!(ps(Ideal::Delivered, 1, false), 4 * 650_000 + 300_000);
        // Propagation in both directions, 1460 B, one and a half packets of 1500 B, 100 B.
        assert_eq!(ps(Ideal::Figure, 1, false), 5_200_000 + 116_800 + 180_000 + 8_000);
        // Propagation in both directions, 1460 B, one packet of 1500 B, 80 B.
        assert_eq!(ps(Ideal::Figure, 1, true), 2_600_000 + 116_800 + 120_000 + 6_400);
    }

    #[test]
    fn further_packets_cost_one_transmission_on_the_access_link_each() {
        assert_eq!(ps(Ideal::Acked, 873, false), 5_508_000 + 872 * 120_000);
        assert_eq!(ps(Ideal::Figure, 873, false), ps(Ideal::Figure, 1, false) + 872 * 116_800);
    }

    #[test]
    fn ideals_have_the_names_of_plans() {
        let names = [Ideal::Delivered, Ideal::Acked, Ideal::Figure].map(Ideal::name);
        assert_eq!(names, ["delivered", "acked", "figure"]);
        assert_eq!(serde_json::to_string(&Ideal::Figure).unwrap(), "\"figure\"");
    }

    /// Computes the start of each packet on each hop, packet by packet.
    fn recurrence(model: &IdealModel, size: Bytes, path: &[PathHop]) -> u64 {
        let segmentation = &model.segmentation;
        let n = u64::from(segmentation.packets(size));
        let mut free = vec![0; path.len()];
        let mut arrived = 0;
        for k in 0..n {
            let full = segmentation.full_wire_bytes();
            let wire = if k + 1 < n { full } else { segmentation.last_wire_bytes(size) };
            let (mut head, mut tail) = (0u64, 0u64);
            for (i, hop) in path.iter().enumerate() {
                let tx = hop.rate.tx_time(wire).as_ps();
                let start = match model.forwarding {
                    Forwarding::StoreAndForward => tail.max(free[i]),
                    Forwarding::CutThrough { .. } => head.max(tail.saturating_sub(tx)).max(free[i]),
                    Forwarding::Shaped { .. } => unreachable!("tests of ways have shapers"),
                };
                free[i] = start + tx;
                tail = start + tx + hop.delay.as_ps();
                if let Forwarding::CutThrough { header } = model.forwarding {
                    let head_tx = hop.rate.tx_time(header.min(wire));
                    head = start + head_tx.as_ps() + hop.delay.as_ps();
                }
            }
            arrived = tail;
        }
        arrived
    }

    prop_compose! {
        fn any_path()(hops in prop::collection::vec((1..500u64, 0..3_000_000u64), 1..8))
            -> Vec<PathHop> {
            hops.into_iter().map(|(gbps, delay)| PathHop {
                rate: Rate::from_gbps(gbps),
                delay: Span::from_ps(delay),
            }).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn the_closed_form_of_the_ideal_matches_its_recurrence(
            path in any_path(),
            size in 1..80_000u64,
            header in prop::option::of(1..1500u64),
            padded: bool,
        ) {
            let padding = if padded { Padding::Full } else { Padding::Exact };
            let forwarding = header.map_or(Forwarding::StoreAndForward, |header| {
                Forwarding::CutThrough { header: Bytes::new(header) }
            });
            let segmentation = Segmentation::new(PADDED.payload, PADDED.header, padding);
            let model = IdealModel { forwarding, segmentation };
            let size = Bytes::new(size);
            let ours = model.fct(Ideal::Delivered, size, &path).as_ps();
            prop_assert_eq!(ours, recurrence(&model, size, &path));
        }
    }
}

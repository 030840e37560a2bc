//! Bundles: several control packets to one node in one datagram.
//!
//! The problem: transports send a token, a grant or an acknowledgement for each data packet. The
//! simple way sends each in its own datagram. A datagram of 50 bytes costs hosts about as much as
//! one of 1500.
//!
//! The present way: the control packets of one iteration for a node are sent together. Several form
//! a bundle ([`DatagramKind::Bundle`]); one is sent alone. Under load a bundle also waits for
//! packets of later iterations, for at most `coalescing`. Hazard: the packets of a bundle are lost,
//! or marked by switches, together.

use rampmeter_types::packet::Marks;
use rampmeter_types::wire::Writer;
use rampmeter_types::{Header, MsgId, NodeId, Priority, Time, WireError};

use crate::datapath::{Rail, Route};
use rampmeter_types::envelope::{DatagramKind, Envelope, Incarnation};

/// Control packets that are sent together.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) route: Route,
    /// Incarnation of the receiver.
    pub(super) incarnation: Incarnation,
    n: u32,
    first: MsgId,
    /// All packets: length, message and header of each.
    bytes: Vec<u8>,
}

impl Bundle {
    /// Returns the kind of the datagram, and the bytes after the envelope.
    pub(super) fn contents(&self) -> (DatagramKind, &[u8]) {
        match self.n {
            1 => (DatagramKind::Control { msg: self.first }, &self.bytes[Envelope::BUNDLE_ENTRY..]),
            n => (DatagramKind::Bundle { n }, &self.bytes),
        }
    }
}

/// Bundles of an iteration, one for each receiver, class, marks and path. Reused in each iteration.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    all: Vec<Bundle>,
    /// Number of those in use, which are the first.
    n_open: usize,
    /// Time at which the first of them was opened.
    opened_at: Time,
}

impl Bundles {
    /// Adds a packet to a bundle with the same destination and path that then has at most
    /// `datagram_max` bytes. Opens one if there is none. Without `path` any path matches, and
    /// `choose_path` chooses that of a new bundle. Returns true if the bundle is new.
    pub(super) fn add<H: Header>(
        &mut self,
        now: Time,
        way: BundleKey,
        msg: MsgId,
        header: &H,
        datagram_max: usize,
        choose_path: impl FnOnce() -> u16,
    ) -> Result<bool, WireError> {
        let BundleKey { dst, incarnation, class, marks, path } = way;
        let len = header.wire_len();
        let has_room = |bundle: &&mut Bundle| {
            Envelope::CONTROL_LEN + bundle.bytes.len() + Envelope::BUNDLE_ENTRY + len
                <= datagram_max
        };
        let is_on = |bundle: &&mut Bundle| {
            let Route { dst: to, class: of, path: on, marks: with, .. } = bundle.route;
            (to, of, with) == (dst, class, marks) && path.is_none_or(|path| path == on)
        };
        // Only the latest for this destination and path, so that packets stay in order.
        let latest = self.all[..self.n_open].iter_mut().rfind(is_on);
        if let Some(bundle) = latest.filter(|bundle| has_room(bundle)) {
            bundle.n += 1;
            put(&mut bundle.bytes, msg, header)?;
            return Ok(false);
        }
        if self.n_open == 0 {
            self.opened_at = now;
        }
        let path = path.unwrap_or_else(choose_path);
        let route = Route { dst, class, marks, path, rail: Rail::Any };
        if self.n_open == self.all.len() {
            self.all.push(Bundle { route, incarnation, n: 0, first: msg, bytes: Vec::new() });
        }
        let bundle = &mut self.all[self.n_open];
        let mut bytes = std::mem::take(&mut bundle.bytes);
        bytes.clear();
        *bundle = Bundle { route, incarnation, n: 1, first: msg, bytes };
        put(&mut bundle.bytes, msg, header)?;
        self.n_open += 1;
        Ok(true)
    }

    /// Returns true if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.n_open == 0
    }

    /// Returns the time at which the first of them was opened.
    pub(super) fn opened_at(&self) -> Time {
        self.opened_at
    }

    /// Returns all bundles, which are empty afterwards.
    pub(super) fn take(&mut self) -> &[Bundle] {
        let n = std::mem::take(&mut self.n_open);
        &self.all[..n]
    }
}

/// Destination and path of a control packet; without `path` any.
#[derive(Clone, Copy, Debug)]
pub(super) struct BundleKey {
    pub(super) dst: NodeId,
    pub(super) incarnation: Incarnation,
    pub(super) class: Priority,
    pub(super) marks: Marks,
    pub(super) path: Option<u16>,
}

fn put<H: Header>(bytes: &mut Vec<u8>, msg: MsgId, header: &H) -> Result<(), WireError> {
    let (at, len) = (bytes.len(), header.wire_len());
    bytes.resize(at + Envelope::BUNDLE_ENTRY + len, 0);
    let (entry, rest) = bytes[at..].split_at_mut(Envelope::BUNDLE_ENTRY);
    Writer::new(entry).u16(len as u16)?.u32(msg.get())?;
    header.encode(rest)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rampmeter_proto::phost::wire::PhostHeader;
    use rampmeter_types::envelope::for_each_bundled;

    const ROOM: usize = 200;

    fn way(dst: u32, path: Option<u16>) -> BundleKey {
        let (class, marks) = (Priority::HIGHEST, Marks::NONE);
        BundleKey { dst: NodeId::new(dst), incarnation: Incarnation::new(1), class, marks, path }
    }

    proptest! {
        /// Every packet of a bundle is decoded again, for each receiver in order, and no bundle is
        /// longer than a datagram.
        #[test]
        fn every_packet_of_an_iteration_is_in_one_bundle(
            turns in prop::collection::vec(
                prop::collection::vec((0..3u32, any::<u32>(), any::<bool>()), 0..70), 1..3,
            ),
        ) {
            let mut bundles = Bundles::default();
            for packets in turns {
                let header = |slot, is_short| if is_short {
                    PhostHeader::Ack { tx_slot: slot }
                } else {
                    PhostHeader::RtsAck { tx_slot: slot, is_paused: false }
                };
                let mut n_new = 0;
                for &(dst, slot, is_short) in &packets {
                    let (msg, header) = (MsgId::new(slot), header(slot, is_short));
                    let is_new =
                        bundles.add(Time::ZERO, way(dst, None), msg, &header, ROOM, || 7).unwrap();
                    n_new += usize::from(is_new);
                }
                let sent = bundles.take();
                prop_assert_eq!(sent.len(), n_new);
                for dst in 0..3 {
                    let expected: Vec<_> = packets.iter().filter(|p| p.0 == dst).collect();
                    let mut got = Vec::new();
                    for bundle in sent.iter().filter(|b| b.route.dst == NodeId::new(dst)) {
                        let mut each = |msg: MsgId, bytes: &[u8]| {
                            got.push((msg, PhostHeader::decode(bytes).map(|(h, _)| h)));
                        };
                        let (kind, bytes) = bundle.contents();
                        prop_assert!(Envelope::CONTROL_LEN + bytes.len() <= ROOM);
                        match kind {
                            DatagramKind::Control { msg } => each(msg, bytes),
                            DatagramKind::Bundle { n } => for_each_bundled(n, bytes, each).unwrap(),
                            other => prop_assert!(false, "{other:?}"),
                        }
                    }
                    let expected: Vec<_> = expected.iter().map(|&&(_, slot, is_short)| {
                        (MsgId::new(slot), Ok(header(slot, is_short)))
                    }).collect();
                    prop_assert_eq!(got, expected);
                }
            }
        }
    }

    #[test]
    fn packets_of_other_paths_are_in_other_bundles() {
        let mut bundles = Bundles::default();
        let header = PhostHeader::Ack { tx_slot: 1 };
        for path in [1, 2, 1] {
            let way = way(1, Some(path));
            bundles.add(Time::ZERO, way, MsgId::new(0), &header, ROOM, || unreachable!()).unwrap();
        }
        let paths: Vec<_> = bundles.take().iter().map(|b| (b.route.path, b.n)).collect();
        assert_eq!(paths, [(1, 2), (2, 1)]);
    }
}

//! Received messages of handshakes, and the answers to them.

use std::net::IpAddr;

use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Priority, Time};

use super::super::cookie::{self, CODE, COOKIE_AGE, CookieMac};
use super::super::handshake::{self, HandshakeParties, INITIATION};
use super::super::session::Session;
use super::{HandshakeRefusal, Pairs, REKEY_INTERVAL, REPORTS_MAX};
use crate::datapath::{ArrivedPacket, Rail, Report, Route};
use rampmeter_types::envelope::{DatagramKind, Envelope, Protection, TransportId};

/// Answer to an initiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InitiationReply {
    Response,
    Cookie,
    Nothing,
}

impl Pairs {
    /// Returns the number of established sessions.
    pub(in super::super) fn n_handshakes(&self) -> u64 {
        self.handshakes
    }

    /// Returns the number of initiations whose time was not later than that of the one before.
    pub(in super::super) fn n_outdated_initiations(&self) -> u64 {
        self.outdated_initiations
    }

    /// Handles a message of a handshake.
    ///
    /// # Errors
    /// The reason for which this node cannot use it.
    pub(in crate::datapath::secure) fn on_message(
        &mut self,
        now: Time,
        envelope: &Envelope,
        arrived: ArrivedPacket<'_>,
    ) -> Result<(), HandshakeRefusal> {
        let Envelope { transport, src, dst, kind, .. } = *envelope;
        let is_for_here = dst == self.node && src != self.node;
        let is_known = self.pairs.get(src.idx()).is_some_and(|pair| !pair.keys.is_empty());
        if envelope.protection != Protection::Unprotected || !is_for_here || !is_known {
            return Err(HandshakeRefusal::Forged);
        }
        if transport != self.transport {
            return Err(self.refuse_transport(src, transport, arrived));
        }
        let body = &arrived.bytes[envelope.wire_len()..];
        let is_awaited = |session| {
            let calling = self.pairs[src.idx()].outgoing_handshake.as_ref();
            calling.is_some_and(|calling| calling.id == session)
        };
        let handled = match kind {
            DatagramKind::Initiation { session } => self.on_initiation(now, src, session, arrived),
            // The peer may have begun a session at the same time, or answers late.
            DatagramKind::Response { session } | DatagramKind::Cookie { session }
                if !is_awaited(session) =>
            {
                return Err(HandshakeRefusal::Unexpected);
            }
            DatagramKind::Response { .. } => self.on_response(now, src, body),
            DatagramKind::Cookie { .. } => self.on_cookie(now, src, body),
            _ => None,
        };
        handled.ok_or(HandshakeRefusal::Forged)
    }

    fn on_initiation(
        &mut self,
        now: Time,
        src: NodeId,
        session: u16,
        arrived: ArrivedPacket<'_>,
    ) -> Option<()> {
        let (message, second) = arrived.bytes.split_last_chunk::<CODE>()?;
        let (start, first) = message.split_last_chunk::<CODE>()?;
        let noise = start.get(start.len().checked_sub(INITIATION)?..)?;
        if !cookie::is_equal(&cookie::first_code(&self.public, start), first) {
            return None;
        }
        match self.may_answer(now, src, arrived.from, message, second) {
            InitiationReply::Response => {}
            InitiationReply::Cookie => {
                let body = self.cookies.issue(now, src, arrived.from, &self.public, first);
                let message = self.message(src, DatagramKind::Cookie { session }, &body);
                self.messages.push_back((src, Rail::Exactly(arrived.rail), message));
                return Some(());
            }
            InitiationReply::Nothing => return Some(()),
        }
        let ends =
            HandshakeParties { transport: self.transport, initiator: src, responder: self.node };
        let read = handshake::read(&ends, &self.key, noise)?;
        let pair = &self.pairs[src.idx()];
        if !pair.keys.contains(&read.remote) {
            self.report(src, Report::OtherKey);
            return None;
        }
        if read.time <= pair.latest_initiation {
            self.on_old_initiation(now, src);
            return Some(());
        }
        let time = read.time;
        let (agreed, response) = read.respond(self.new_id(src))?;
        let pair = &mut self.pairs[src.idx()];
        pair.latest_initiation = time;
        pair.next = Some(Session::new(now, &agreed));
        self.on_agreed(src, &agreed);
        let message = self.message(src, DatagramKind::Response { session }, &response);
        self.messages.push_back((src, Rail::Exactly(arrived.rail), message));
        Some(())
    }

    /// Handles an initiation whose time is not later than that of the one before. The peer's clock
    /// was set back, or the initiation was recorded. Begins a handshake, whose response proves that
    /// the peer is running now.
    fn on_old_initiation(&mut self, now: Time, src: NodeId) {
        self.outdated_initiations += 1;
        let pair = &mut self.pairs[src.idx()];
        if now < pair.rekey_at {
            return;
        }
        pair.rekey_at = now + REKEY_INTERVAL;
        tracing::warn!(
            code = "handshake-replayed",
            peer = src.get(),
            "handshake of peer has an earlier time than the last: its clock was set back, or \
             packets are replayed; this node begins the handshake"
        );
        self.call(now, src);
    }

    /// Refuses a message of a handshake for another transport. If its first code shows that the
    /// sender has the public key of this node, the configurations differ.
    fn refuse_transport(
        &mut self,
        src: NodeId,
        theirs: TransportId,
        arrived: ArrivedPacket<'_>,
    ) -> HandshakeRefusal {
        let is_coded = || {
            let (message, _) = arrived.bytes.split_last_chunk::<CODE>()?;
            let (start, first) = message.split_last_chunk::<CODE>()?;
            Some(cookie::is_equal(&cookie::first_code(&self.public, start), first))
        };
        if is_coded() != Some(true) {
            return HandshakeRefusal::Forged;
        }
        self.report(src, Report::OtherTransport(theirs));
        HandshakeRefusal::OtherTransport
    }

    fn report(&mut self, peer: NodeId, report: Report) {
        if self.reports.len() < REPORTS_MAX {
            self.reports.push_back((peer, report));
        }
    }

    /// Returns true if an initiation is answered: all while there are few, and those of senders
    /// with a cookie within the budget of their peer.
    fn may_answer(
        &mut self,
        now: Time,
        node: NodeId,
        from: Option<IpAddr>,
        message: &[u8],
        second: &CookieMac,
    ) -> InitiationReply {
        if self.answers.take(now) {
            InitiationReply::Response
        } else if !self.cookies.is_valid(now, node, from, message, second) {
            InitiationReply::Cookie
        } else if self.pairs[node.idx()].proven.take(now) {
            InitiationReply::Response
        } else {
            InitiationReply::Nothing
        }
    }

    fn on_response(&mut self, now: Time, src: NodeId, body: &[u8]) -> Option<()> {
        let pair = &mut self.pairs[src.idx()];
        let calling = pair.outgoing_handshake.as_mut()?;
        let agreed = calling.initiator.as_mut()?.finish(body)?;
        let key = calling.key;
        pair.outgoing_handshake = None;
        pair.previous = pair.current.replace(Session::new(now, &agreed));
        // The key in present use by the peer is tried first.
        if let Some(place) = pair.keys.iter().position(|other| *other == key) {
            pair.keys.swap(0, place);
        }
        self.on_agreed(src, &agreed);
        let pair = &mut self.pairs[src.idx()];
        if pair.queued.is_empty() {
            // The peer sends with the session after a packet of it has arrived.
            let confirmation = self.message(src, DatagramKind::Confirmation, &[]);
            let (class, marks) = (Priority::HIGHEST, Marks::NONE);
            let route = Route { dst: src, class, path: self.path(), rail: Rail::Any, marks };
            self.ready.push_back((route, confirmation));
        } else {
            self.release(src);
        }
        Some(())
    }

    fn on_cookie(&mut self, now: Time, src: NodeId, body: &[u8]) -> Option<()> {
        let pair = &mut self.pairs[src.idx()];
        let calling = pair.outgoing_handshake.as_mut()?;
        let cookie = cookie::find_cookie(&calling.key, &calling.first_code, body)?;
        pair.cookie = Some((cookie, now + COOKIE_AGE));
        Some(())
    }
}

//! The two messages of a handshake: the pattern IK of Noise.
//!
//! The initiation carries the time of its sender, encrypted. A receiver accepts only later times
//! than before, so that a recorded initiation is useless. The response carries the responder's
//! number of the session.

use rampmeter_types::NodeId;
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::keys::{PrivateKey, PublicKey};
use super::session::SessionKeys;
use rampmeter_types::envelope::TransportId;

const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_SHA256";
/// Bytes of a tag.
const TAG: usize = 16;
/// Bytes of the time, and of the initiator's session number.
const HELLO: usize = 8 + 2;
/// Bytes of an initiation: ephemeral key, static key, payload.
pub(super) const INITIATION: usize = 32 + (32 + TAG) + (HELLO + TAG);
/// Bytes of a response: ephemeral key, payload.
pub(super) const RESPONSE: usize = 32 + (2 + TAG);

/// Both ends of a handshake, which are part of the authenticated data.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandshakeParties {
    pub(super) transport: TransportId,
    pub(super) initiator: NodeId,
    pub(super) responder: NodeId,
}

impl HandshakeParties {
    fn prologue(&self) -> Vec<u8> {
        let mut text = b"rampmeter 2".to_vec();
        text.push(self.transport.0);
        text.extend(self.initiator.get().to_be_bytes());
        text.extend(self.responder.get().to_be_bytes());
        text
    }
}

fn builder<'a>(key: &'a PrivateKey, prologue: &'a [u8]) -> Result<Builder<'a>, snow::Error> {
    let pattern = PATTERN.parse().expect("the pattern is a valid one");
    Builder::new(pattern).local_private_key(key.bytes())?.prologue(prologue)
}

/// A handshake that this node has begun.
#[derive(Debug)]
pub(super) struct InitiatorState {
    state: HandshakeState,
    id: u16,
}

/// Begins a handshake. `time` increases from one of this node's handshakes to the next, also across
/// restarts.
pub(super) fn begin(
    ends: &HandshakeParties,
    key: &PrivateKey,
    remote: &PublicKey,
    id: u16,
    time: u64,
) -> Option<(InitiatorState, [u8; INITIATION])> {
    let prologue = ends.prologue();
    let builder = builder(key, &prologue).ok()?.remote_public_key(remote.bytes()).ok()?;
    let mut state = builder.build_initiator().ok()?;
    let mut hello = [0; HELLO];
    hello[..8].copy_from_slice(&time.to_be_bytes());
    hello[8..].copy_from_slice(&id.to_be_bytes());
    let mut message = [0; INITIATION];
    let len = state.write_message(&hello, &mut message).ok()?;
    debug_assert_eq!(len, INITIATION);
    Some((InitiatorState { state, id }, message))
}

impl InitiatorState {
    /// Returns the session, if `message` is the response. Any other message does not change the
    /// handshake.
    pub(super) fn finish(&mut self, message: &[u8]) -> Option<SessionKeys> {
        if message.len() != RESPONSE {
            return None;
        }
        let mut remote_id = [0; 2];
        let len = self.state.read_message(message, &mut remote_id).ok()?;
        if len != 2 || !self.state.is_handshake_finished() {
            return None;
        }
        let (send, receive) = self.state.dangerously_get_raw_split();
        let ids = (self.id, u16::from_be_bytes(remote_id));
        Some(SessionKeys { ids, keys: (send, receive), is_initiator: true })
    }
}

/// An initiation that has been read.
pub(super) struct Initiation {
    state: HandshakeState,
    remote_id: u16,
    /// Public key of the initiator.
    pub(super) remote: PublicKey,
    /// Time of the initiator.
    pub(super) time: u64,
}

/// Reads an initiation.
pub(super) fn read(
    ends: &HandshakeParties,
    key: &PrivateKey,
    message: &[u8],
) -> Option<Initiation> {
    if message.len() != INITIATION {
        return None;
    }
    let prologue = ends.prologue();
    let mut state = builder(key, &prologue).ok()?.build_responder().ok()?;
    let mut hello = Zeroizing::new([0; HELLO]);
    let len = state.read_message(message, &mut *hello).ok()?;
    let (time, id) = hello.split_first_chunk::<8>().filter(|_| len == HELLO)?;
    let (time, remote_id) = (u64::from_be_bytes(*time), u16::from_be_bytes(id.try_into().ok()?));
    let remote = PublicKey::from_bytes(state.get_remote_static()?)?;
    Some(Initiation { state, remote_id, remote, time })
}

impl Initiation {
    /// Responds with this node's number of the session.
    pub(super) fn respond(mut self, id: u16) -> Option<(SessionKeys, [u8; RESPONSE])> {
        let mut message = [0; RESPONSE];
        let len = self.state.write_message(&id.to_be_bytes(), &mut message).ok()?;
        debug_assert_eq!(len, RESPONSE);
        // The keys are first the initiator's, then the responder's.
        let (receive, send) = self.state.dangerously_get_raw_split();
        let agreed =
            SessionKeys { ids: (id, self.remote_id), keys: (send, receive), is_initiator: false };
        Some((agreed, message))
    }
}

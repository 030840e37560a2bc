//! Stages at which messages wait for permission to send.

use rampmeter_types::{MsgId, Permission, Stage, Time};

use super::{Grant, Sender};

pub(crate) const HANDSHAKE: &Stage =
    &Stage { name: "handshake", meaning: "The connection is not open (RFC 9293, section 3.5)." };

pub(crate) const CONNECTION: &Stage = &Stage {
    name: "connection",
    meaning: "Earlier messages of the connection have not been sent.",
};

pub(crate) const CONTROLLER: &Stage = &Stage {
    name: "controller",
    meaning: "A controller has stopped the message, or has not yet admitted it.",
};

pub(crate) const RECEIVE_WINDOW: &Stage = &Stage {
    name: "receive-window",
    meaning: "The receiver's buffer is full (RFC 9293, section 3.8.6).",
};

pub(crate) const PACING: &Stage =
    &Stage { name: "pacing", meaning: "The pace of the connection allows the next packet later." };

pub(crate) const WINDOW: &Stage = &Stage {
    name: "window",
    meaning: "As many bytes are in flight as the congestion window allows.",
};

/// Stages at which messages wait for permission to send, without controllers.
pub(crate) const STAGES: &[&Stage] = &[HANDSHAKE, CONNECTION, RECEIVE_WINDOW, PACING, WINDOW];

impl Sender {
    /// Returns the permission of a message to send its next packet.
    pub(crate) fn permission(&self, now: Time, msg: MsgId) -> Option<Permission> {
        let slot = *self.by_message.get(&msg.get())?;
        let connection = &self.connections[slot];
        let (board, sent) = (&connection.board, connection.board.next());
        let message = connection.messages.iter().find(|message| message.msg == msg)?;
        let (start, end) = (message.start, message.end());
        // The next segment of a connection may be the FIN behind its last message.
        let has_bytes = end > sent || board.has_lost(start, end);
        let is_ready = has_bytes && self.ready.get(&self.positions, slot).is_some();
        Some(match () {
            () if start > sent => Permission::Awaited(CONNECTION),
            () if is_ready => Permission::Granted,
            () if !connection.is_open => Permission::Awaited(HANDSHAKE),
            () if connection.grant == Grant::Stopped => Permission::Awaited(CONTROLLER),
            () if connection.is_window_closed() => Permission::Awaited(RECEIVE_WINDOW),
            () if connection.paced_until > now => Permission::Awaited(PACING),
            () => Permission::Awaited(WINDOW),
        })
    }
}

//! Keys of sessions as lines of a file, and the decryption of captured datagrams with them.
//!
//! A line is `RAMPMETER_KEY`, the sending node, the receiving node, the receiver's number of the
//! session, as in trailers, and the key in hexadecimal. A session has two lines, one per direction.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

use rampmeter_types::NodeId;
use rampmeter_types::envelope::{Envelope, Protection};
use thiserror::Error;
use zeroize::Zeroizing;

use super::layout::{DECRYPTED, PROTECTION_AT, SEALED};
use super::session::{PacketKey, SessionKeys, Trailer};

const LABEL: &str = "RAMPMETER_KEY";

/// Writer to which keys are logged. It must not block: the node's own thread writes to it.
pub(super) struct KeyLog(pub(super) Box<dyn Write + Send>);

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLog")
    }
}

impl KeyLog {
    /// Logs the keys of a session between a node and its peer.
    pub(super) fn log_session(
        &mut self,
        node: NodeId,
        peer: NodeId,
        agreed: &SessionKeys,
    ) -> io::Result<()> {
        let ((own, remote), (send, receive)) = (agreed.ids, &agreed.keys);
        let mut text = Zeroizing::new(String::new());
        for (src, dst, session, key) in [(node, peer, remote, send), (peer, node, own, receive)] {
            let (src, dst) = (src.get(), dst.get());
            // Writing to a string does not fail.
            let _ = write!(text, "{LABEL} {src} {dst} {session} ");
            for byte in key {
                let _ = write!(text, "{byte:02x}");
            }
            text.push('\n');
        }
        // In one write: the writer keeps a session's lines together.
        self.0.write_all(text.as_bytes())
    }
}

/// Keys of a log, to decrypt captured datagrams.
#[derive(Debug, Default)]
pub struct DecryptionKeys {
    /// Keys by source, destination and session, the latest last: session numbers repeat.
    by_session: HashMap<(u32, u32, u16), Vec<PacketKey>>,
}

/// Malformed line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("line {line}: expected {}", Self::EXPECTED)]
pub struct BadKeyLine {
    /// Line, from 1.
    pub line: usize,
}

impl BadKeyLine {
    /// The form of lines.
    pub const EXPECTED: &str =
        "RAMPMETER_KEY, source, destination, session and a key of 64 hexadecimal digits";
}

/// Result of the decryption of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decryption {
    /// The datagram is decrypted in place.
    Decrypted,
    /// The datagram is no encrypted packet of a node.
    NotEncrypted,
    /// The log has no key of the session.
    NoKey,
    /// The keys of the session make another tag: the datagram was changed, or truncated, or the
    /// session is another one with the same number.
    WrongTag,
}

impl DecryptionKeys {
    /// Adds the keys of a log. Lines with another label are ignored.
    ///
    /// # Errors
    /// A malformed line.
    pub fn add(&mut self, log: &str) -> Result<(), BadKeyLine> {
        for (number, line) in (1..).zip(log.lines()) {
            let mut words = line.split_whitespace();
            if words.next() != Some(LABEL) {
                continue;
            }
            let key = parse_key(words).ok_or(BadKeyLine { line: number })?;
            self.by_session.entry(key.0).or_default().push(key.1);
        }
        Ok(())
    }

    /// Decrypts a datagram. Its length is unchanged: the trailer is kept, and the envelope has a
    /// mark that the datagram is decrypted.
    pub fn decrypt(&self, datagram: &mut [u8]) -> Decryption {
        let envelope = match Envelope::decode(datagram) {
            Ok((envelope, _)) if envelope.protection == Protection::Sealed => envelope,
            _ => return Decryption::NotEncrypted,
        };
        let head_len = Envelope::cleartext_len(datagram);
        let Some((rest, trailer)) = datagram.split_last_chunk_mut::<SEALED>() else {
            return Decryption::WrongTag;
        };
        let Some((head, body)) = rest.split_at_mut_checked(head_len) else {
            return Decryption::WrongTag;
        };
        let trailer = Trailer::decode(trailer);
        let session = (envelope.src.get(), envelope.dst.get(), trailer.session);
        let Some(keys) = self.by_session.get(&session) else { return Decryption::NoKey };
        for key in keys.iter().rev() {
            let mut plain = body.to_vec();
            if key.open(head, &mut plain, &trailer) {
                body.copy_from_slice(&plain);
                head[PROTECTION_AT] = DECRYPTED;
                return Decryption::Decrypted;
            }
        }
        Decryption::WrongTag
    }
}

/// Returns the session and the key of the words of a line.
fn parse_key<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<((u32, u32, u16), PacketKey)> {
    let src = words.next()?.parse().ok()?;
    let dst = words.next()?.parse().ok()?;
    let session = words.next()?.parse().ok()?;
    let digits = words.next().filter(|digits| digits.len() == 64 && digits.is_ascii())?;
    let mut key = Zeroizing::new([0; 32]);
    for (byte, at) in key.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    words.next().is_none().then(|| ((src, dst, session), PacketKey::new(&key)))
}

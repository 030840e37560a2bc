//! Keys of sessions as lines of a file, to decrypt captures.
//!
//! A line is `RAMPMETER_KEY`, the sending node, the receiving node, the receiver's number of the
//! session, as in trailers, and the key in hexadecimal. A session has two lines, one per direction.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use rampmeter_core::NodeId;
use zeroize::Zeroizing;

use super::session::SessionKeys;

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
            let _ = write!(text, "RAMPMETER_KEY {src} {dst} {session} ");
            for byte in key {
                let _ = write!(text, "{byte:02x}");
            }
            text.push('\n');
        }
        // In one write: the writer keeps a session's lines together.
        self.0.write_all(text.as_bytes())
    }
}

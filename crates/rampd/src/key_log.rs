//! Writes keys of sessions to a file in a separate thread. A disk that is full or unresponsive
//! cannot block the node.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread;

use tracing::warn;

/// Maximum number of sessions that are not written yet.
const QUEUE: usize = 1_024;
/// Maximum length of the file in bytes.
const LEN_MAX: u64 = 1 << 30;

/// Queue of keys for the thread that writes them. A call of `write` queues the keys of one session
/// and does not block; it fails if the queue is full or the thread has ended.
pub(crate) struct KeyLogQueue(SyncSender<Vec<u8>>);

impl KeyLogQueue {
    /// Starts the thread that appends to `file`. It ends at the first error of the file, which it
    /// logs, and at a length of 1 GiB.
    ///
    /// # Errors
    /// The system starts no thread.
    pub(crate) fn start(file: File, path: String) -> io::Result<Self> {
        Self::start_with_max(file, path, LEN_MAX)
    }

    fn start_with_max(mut file: File, path: String, len_max: u64) -> io::Result<Self> {
        let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(QUEUE);
        thread::Builder::new().name("key-log".to_owned()).spawn(move || {
            for keys in receiver {
                if let Err(error) = append(&mut file, &keys, len_max) {
                    warn!(
                        code = "key-log-stopped",
                        file = path, %error, "node.key-log: cannot write"
                    );
                    return;
                }
            }
        })?;
        Ok(Self(sender))
    }
}

fn append(file: &mut File, keys: &[u8], len_max: u64) -> io::Result<()> {
    if file.metadata()?.len() + keys.len() as u64 > len_max {
        return Err(io::Error::other(format!("it has its maximum length of {len_max} bytes")));
    }
    // In one write, so that nodes may share a file.
    file.write_all(keys)
}

impl Write for KeyLogQueue {
    fn write(&mut self, keys: &[u8]) -> io::Result<usize> {
        self.0.try_send(keys.to_owned()).map_err(|error| match error {
            TrySendError::Full(_) => io::Error::other("the disk is too slow"),
            TrySendError::Disconnected(_) => io::Error::other("the file cannot be written"),
        })?;
        Ok(keys.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use super::*;

    /// Writes until an error comes, and returns it.
    fn first_error(queue: &mut KeyLogQueue, pause: Duration) -> String {
        for _ in 0..10_000 {
            if let Err(error) = queue.write(&[b'k'; 100]) {
                return error.to_string();
            }
            thread::sleep(pause);
        }
        panic!("no error");
    }

    #[test]
    fn an_unresponsive_file_does_not_block_the_node() {
        // A pipe that nobody reads.
        let (_reader, writer) = io::pipe().unwrap();
        let file = File::from(OwnedFd::from(writer));
        let mut queue = KeyLogQueue::start(file, "keys.log".to_owned()).unwrap();
        assert_eq!(first_error(&mut queue, Duration::ZERO), "the disk is too slow");
    }

    #[test]
    fn a_file_has_a_maximum_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.log");
        let file = File::options().append(true).create(true).open(&path).unwrap();
        let mut queue = KeyLogQueue::start_with_max(file, "keys.log".to_owned(), 250).unwrap();
        let error = first_error(&mut queue, Duration::from_millis(1));
        assert_eq!(error, "the file cannot be written");
        assert_eq!(fs::read(&path).unwrap().len(), 200);
    }
}

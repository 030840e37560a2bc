//! Unix socket at a path, owned by one process at a time.
//!
//! A file next to the socket, `<socket>.lock`, is locked while the process lives. The system
//! unlocks it at every end of the process. A socket file whose lock is free belongs to a dead
//! process and is replaced. The lock prevents two processes that start at the same time from
//! replacing each other's socket. Programs that clean folders may remove the lock file. So a socket
//! is replaced only if no process listens on it, in any state of the lock.
//!
//! A service manager may have opened the socket before the process started (systemd's socket
//! activation). Then it belongs to the manager: nothing is locked, replaced or removed.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec, ioctl_fionbio};
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname, listen,
    socket_with,
};
use thiserror::Error;

/// Reason for which there is no socket.
#[derive(Debug, Error)]
pub enum ListenError {
    /// A running node owns the socket.
    #[error("another node listens on {}", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The path exists and is not a socket.
    #[error("expected a socket or nothing at {}", path.display())]
    NotASocket {
        /// The socket's path.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot listen on {}: {source}", path.display())]
    System {
        /// The socket.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Listening, non-blocking socket. Its file is removed when it is dropped.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// The file; `None` if it belongs to the service manager.
    _own: Option<OwnSocket>,
}

/// File of a socket that this process has made.
#[derive(Debug)]
struct OwnSocket {
    path: PathBuf,
    /// Device and inode number, which identify the file.
    file: (u64, u64),
    /// Held while the socket exists.
    _lock: OwnedFd,
}

impl Listener {
    /// Listens at `path` with a backlog of `backlog` connections. Uses the socket of the service
    /// manager if that has one at the path.
    ///
    /// # Errors
    /// Another process listens there, the path exists and is not a socket, or the system refuses.
    pub fn open(path: &Path, kind: SocketType, backlog: i32) -> Result<Self, ListenError> {
        let owned = || path.to_owned();
        let system = |source: io::Error| ListenError::System { path: owned(), source };
        if let Some(socket) = inherited(path, kind).map_err(system)? {
            return Ok(Self { socket, _own: None });
        }
        let lock = lock(path).map_err(|error| match error {
            Errno::WOULDBLOCK => ListenError::InUse { path: owned() },
            error => system(error.into()),
        })?;
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => match visit(path, kind) {
                Err(Errno::CONNREFUSED) => fs::remove_file(path).map_err(system)?,
                // Removed meanwhile.
                Err(Errno::NOENT) => {}
                // Full, of another kind, or not for this user: a process listens.
                Ok(()) | Err(_) => return Err(ListenError::InUse { path: owned() }),
            },
            Ok(_) => return Err(ListenError::NotASocket { path: owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(system(error)),
        }
        let open = || -> io::Result<(OwnedFd, (u64, u64))> {
            let socket = endpoint(kind)?;
            bind(&socket, &SocketAddrUnix::new(path)?)?;
            listen(&socket, backlog)?;
            Ok((socket, identity(path)?))
        };
        let (socket, file) = open().map_err(system)?;
        Ok(Self { socket, _own: Some(OwnSocket { path: owned(), file, _lock: lock }) })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // If another process has replaced the file, it is not removed.
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns the socket at `path` that the service manager has opened for this process, if any.
fn inherited(path: &Path, kind: SocketType) -> io::Result<Option<OwnedFd>> {
    for fd in sd_notify::listen_fds()? {
        let socket = adopt(fd)?;
        let is_here = SocketAddrUnix::try_from(getsockname(&socket)?).is_ok_and(|addr| {
            addr.path().is_some_and(|at| at.to_bytes() == path.as_os_str().as_bytes())
        });
        if !is_here {
            continue;
        }
        let got = socket_type(&socket)?;
        if got != kind || !socket_acceptconn(&socket)? {
            let expected = format!("expected a listening {} socket", name_of(kind));
            let got = if got == kind { "one that does not listen" } else { name_of(got) };
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{expected} from the service manager, got {got}"),
            ));
        }
        ioctl_fionbio(&socket, true)?;
        return Ok(Some(socket));
    }
    Ok(None)
}

/// Returns the type of a socket, in words.
fn name_of(kind: SocketType) -> &'static str {
    match kind {
        SocketType::STREAM => "stream",
        SocketType::DGRAM => "datagram",
        SocketType::SEQPACKET => "sequential-packet",
        _ => "raw",
    }
}

/// Duplicates a descriptor that the service manager has passed to this process.
fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    #[expect(unsafe_code, reason = "descriptors are passed by number")]
    // SAFETY: the service manager has opened it for this process, and no code closes it.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(fcntl_dupfd_cloexec(fd, 0)?)
}

/// Returns the numbers that identify a file.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn endpoint(kind: SocketType) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, kind, flags, None)
}

/// Connects to the process that listens there.
fn visit(path: &Path, kind: SocketType) -> Result<(), Errno> {
    connect(&endpoint(kind)?, &SocketAddrUnix::new(path)?)
}

/// Locks the file next to the socket.
fn lock(path: &Path) -> Result<OwnedFd, Errno> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&name, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    const KIND: SocketType = SocketType::SEQPACKET;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        (folder, path)
    }

    #[test]
    fn a_socket_of_a_dead_process_is_replaced() {
        let (_folder, path) = folder();
        let dead = endpoint(KIND).unwrap();
        bind(&dead, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&dead, 1).unwrap();
        drop(dead);
        let listener = Listener::open(&path, KIND, 1).unwrap();
        assert!(visit(&path, KIND).is_ok());
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_living_socket_stays_without_its_lock_with_a_full_backlog_and_of_another_kind() {
        let (_folder, path) = folder();
        let lock = path.with_extension("lock");
        let one = Listener::open(&path, KIND, 0).unwrap();
        assert!(lock.exists());
        fs::remove_file(&lock).unwrap();
        let _full: Vec<_> = (0..4)
            .map(|_| {
                let socket = endpoint(KIND).unwrap();
                let _ = connect(&socket, &SocketAddrUnix::new(&path).unwrap());
                socket
            })
            .collect();
        assert_eq!(visit(&path, KIND), Err(Errno::WOULDBLOCK));
        assert!(matches!(Listener::open(&path, KIND, 1), Err(ListenError::InUse { .. })));
        drop(one);
        let _stream = UnixListener::bind(&path).unwrap();
        fs::remove_file(&lock).unwrap();
        assert!(matches!(Listener::open(&path, KIND, 1), Err(ListenError::InUse { .. })));
        assert!(path.exists());
    }

    #[test]
    fn a_socket_of_another_process_is_not_removed() {
        let (_folder, path) = folder();
        let one = Listener::open(&path, KIND, 1).unwrap();
        fs::remove_file(&path).unwrap();
        fs::remove_file(path.with_extension("lock")).unwrap();
        let _other = Listener::open(&path, KIND, 1).unwrap();
        drop(one);
        assert!(visit(&path, KIND).is_ok());
    }

    #[test]
    fn regular_files_at_the_path_of_a_socket_are_not_removed() {
        let (_folder, path) = folder();
        fs::write(&path, "precious").unwrap();
        assert!(matches!(Listener::open(&path, KIND, 1), Err(ListenError::NotASocket { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}

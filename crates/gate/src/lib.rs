//! What CAPTON's agent of a host and the programs of that host share.
//!
//! A program that `librampmeter_capton.so` is loaded into connects to its agent by a Unix socket
//! that keeps packets apart, at [`default_socket`]. The agent answers with memory
//! ([`Region`]). From then on the program sends [`Note`]s, and the agent writes orders into the
//! memory and opens gates.
//!
//! # Gates
//!
//! A [gate](close_gate) is what a program waits at that may not send. It must be a descriptor, as
//! programs wait for many things at once (`poll`, `epoll`), and the program must need no thread for
//! it. A gate is a pair of datagram sockets. The program keeps one, the agent has the other. The
//! program's end is not writable while a datagram waits at the agent's. The agent opens the gate by
//! taking it; the system does if the agent has gone. Neither end says that it is hung up, which a
//! program would take for the end of its connection.
//!
//! # Who writes what
//!
//! Programs claim slots and write what they ask for; agents write orders and free slots. Processes
//! that were forked share memory, socket and gates, and need no others. Neither side believes the
//! other: numbers may be anything, sizes are sealed.

mod gate;
mod memory;
mod note;
mod region;

pub use gate::{close_gate, gate_pair, open_gate};
pub use note::{NOTE_LEN, Note, Tuple};
pub use region::{Order, Orders, Region, SLOTS, Settings, Slot};

/// Where agents listen unless they are told otherwise.
pub const SOCKET: &str = "/run/rampd/capton.sock";

/// The environment variable with which programs are told of another place.
pub const SOCKET_VARIABLE: &str = "RAMPMETER_CAPTON_SOCKET";

/// Where a program expects its agent.
pub fn default_socket() -> std::path::PathBuf {
    std::env::var_os(SOCKET_VARIABLE).map_or_else(|| SOCKET.into(), Into::into)
}

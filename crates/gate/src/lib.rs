//! Interface of CAPTON's agent of a host and the programs of that host.
//!
//! A program that has loaded `librampmeter_capton.so` connects to its agent at [`default_socket`],
//! a Unix socket that preserves packet boundaries. The agent answers with memory ([`Region`]). From
//! then on the program sends [`SlotNote`]s, and the agent writes orders into the memory and opens
//! gates.
//!
//! # Gates
//!
//! A [gate](close_gate) is a descriptor on which a program waits until it may send. It must be a
//! descriptor, as programs wait for many descriptors at once (`poll`, `epoll`), and must not need a
//! thread of the program. A gate is a pair of datagram sockets, one of the program and one of the
//! agent. The program's end is not writable while a datagram is queued at the agent's. The agent
//! opens the gate by receiving the datagram; the system does so if the agent has ended. Neither end
//! reports a hang-up, which a program would interpret as the end of its connection.
//!
//! # Ownership
//!
//! Programs claim slots and write their requests; agents write orders and free slots. Forked
//! processes share memory, socket and gates. Neither side trusts the other: any value of a word is
//! tolerated, and sizes are sealed.

mod gate;
mod memory;
mod note;
mod region;

pub use gate::{close_gate, gate_pair, open_gate};
pub use note::{ConnectionAddresses, NOTE_LEN, SlotNote};
pub use region::{Activity, BurstOrder, BurstPermission, Region, SLOTS, Settings, Slot};

/// Default path of the agent's socket.
pub const SOCKET: &str = "/run/rampd/capton.sock";

/// Environment variable that overrides the path for programs.
pub const SOCKET_VARIABLE: &str = "RAMPMETER_CAPTON_SOCKET";

/// Returns the path at which a program expects its agent.
pub fn default_socket() -> std::path::PathBuf {
    std::env::var_os(SOCKET_VARIABLE).map_or_else(|| SOCKET.into(), Into::into)
}

//! TCP: connections that carry messages, by the standards of hosts' own.
//!
//! A connection carries messages one way, as bytes with sequence numbers (RFC 9293). Losses are
//! detected by selective acknowledgements and time (RFC 2018, 6675, 8985) or by a timer (RFC 6298),
//! and repaired by retransmission. The bytes in flight are limited by [`control`]: NewReno, Cubic
//! or DCTCP.
//!
//! * [`config`]: parameters, presets, derived values
//! * [`control`]: congestion control (RFC 5681, 6582, 9438, 8257, 9406)
//! * [`wire`]: the packets
//! * `connection`, `scoreboard`, `rack`, `prr`: one connection at its sender
//! * `sender`: the connections of a host, and the choice of the next to send
//! * `receiver`: received bytes, acknowledgements, ECN's echo
//!
//! PIAS and CAPTON run on the same machine. `docs/protocols/tcp.md` lists the packets, and what
//! differs from the standards.

pub mod config;
pub mod control;
pub mod wire;

mod connection;
mod host;
mod prr;
mod rack;
mod receiver;
mod scoreboard;
mod sender;
mod seq;
mod stats;
mod transport;

#[cfg(test)]
mod tests;

pub use config::{Tcp, TcpConfig};
pub(crate) use connection::Grant;
pub use host::TcpHost;
pub(crate) use sender::permission::{
    CONNECTION, CONTROLLER, HANDSHAKE, PACING, RECEIVE_WINDOW, STAGES, WINDOW,
};
pub use stats::TcpStats;
pub use transport::{DctcpConfig, DctcpTransport, TcpTransport};

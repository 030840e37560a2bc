//! CAPTON for unmodified programs (§IV.C): `LD_PRELOAD=librampmeter_capton.so program`.
//!
//! The library interposes the C library's functions for sockets. A *burst* is the data that a
//! program writes to a connection without a pause. Bytes within the threshold are sent at once. For
//! more bytes the library sends a request to the agent of the host (`rampd agent`), and the agent
//! sends one to the controller. The burst is held until a GRANT. Then the kernel paces it at the
//! granted rate (`SO_MAX_PACING_RATE`). It accepts no more bytes than it can soon send
//! (`TCP_NOTSENT_LOWAT`), so that a STOP takes effect.
//!
//! # Decisions
//!
//! * **Data is passed only to the kernel.** So streams, half-closed connections, `sendfile`, `exec`
//!   and peers that never read behave as usual. The price: the size of a burst is the data queued
//!   on the connection plus the present call, without later calls.
//! * **No threads.** A program waits on a descriptor, the [gate](rampmeter_gate). The agent opens
//!   it; the system does so if the agent has ended. The agent reads the number of bytes sent from
//!   the kernel (sock_diag). So nothing has to be restarted after a fork.
//! * **Readiness is true.** While a burst is held its connection is not writable: `poll` and
//!   `select` wait for the gate instead, and epoll descriptors have the gate in place of
//!   `EPOLLOUT`. A call on a non-blocking socket fails with `EAGAIN`; one that blocks waits, within
//!   `SO_SNDTIMEO` and until a signal.
//! * **After any failure the program continues** as if the library were not loaded: no agent, an
//!   agent that ends, no more descriptors or slots. Blocking calls also continue if the agent
//!   hangs. A program that installs a filter of system calls (seccomp) is not scheduled from then
//!   on.
//! * Calls that cannot be held are forwarded: `io_uring`, system calls without the C library
//!   (programs in Go), and the C library's own streams (`fdopen` on a socket).
//!
//! # Modules
//!
//! * `hooks`: the functions
//! * `transfer`: sending piece by piece, and waiting
//! * `burst`: requests of connections, and the permission to send
//! * `ready`, `watch`: waiting for several descriptors; epoll
//! * `link`: the agent
//! * `sandbox`: programs that disable system calls
//! * `table`, `lock`, `sys`, `real`: descriptors, the lock, the system, the C library
//!
//! Nothing here panics on purpose. `unsafe` is in `sys`, `real`, `table`, `link`, `burst` and the
//! hooks.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("rampmeter-preload: expected Linux on a machine of 64 bits");

mod burst;
mod control;
mod hooks;
mod link;
mod lock;
mod ready;
mod real;
mod sandbox;
mod sys;
mod table;
mod transfer;
mod watch;

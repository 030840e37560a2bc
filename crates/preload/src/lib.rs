//! CAPTON for programs as they are (§IV.C): `LD_PRELOAD=librampmeter_capton.so program`.
//!
//! The library stands in front of the C library's functions for sockets. A *burst* is what a
//! program gives to a connection without a pause. What is within the threshold goes through at once.
//! For more the library asks the agent of the host (`rampd agent`), which asks the controller, and
//! the burst waits for a GRANT. Then it is paced at the granted rate by the kernel
//! (`SO_MAX_PACING_RATE`), and the kernel takes no more than it can soon send
//! (`TCP_NOTSENT_LOWAT`), so that a STOP stops it.
//!
//! # Decisions
//!
//! * **Data goes to the kernel and nowhere else.** So streams, half-closed connections, `sendfile`,
//!   `exec` and peers that never read are as they always are. The price: the size of a burst is what
//!   the connection holds and what the present call asks for, not what later calls will.
//! * **No threads.** What a program waits at is a descriptor, the [gate](rampmeter_gate), which the
//!   agent opens, or the system if the agent has ended. The agent learns from the kernel how much is
//!   sent (sock_diag). So there is nothing to start again after a fork.
//! * **Readiness is true.** While a burst is held its connection is not writable: `poll` and `select`
//!   look at the gate instead, and epoll descriptors have the gate in place of `EPOLLOUT`. A call on
//!   a socket that does not block fails with `EAGAIN`; one that blocks waits, as long as
//!   `SO_SNDTIMEO` and signals let it.
//! * **Whatever fails, the program goes on**, as if the library were not there: no agent, one that
//!   ends, no more descriptors or slots. Calls that block go on without an agent that hangs, too.
//!   A program that installs a filter of system calls (seccomp) is on its own from then on.
//! * Calls that nobody can hold pass: `io_uring`, system calls without the C library (programs in
//!   Go), and the C library's own streams (`fdopen` on a socket).
//!
//! # Modules
//!
//! * `hooks`: the functions
//! * `transfer`: sending piece by piece, and waiting
//! * `burst`: when a connection asks and what it may do
//! * `ready`, `watch`: waiting for several descriptors; epoll
//! * `link`: the agent
//! * `sandbox`: programs that give up system calls
//! * `table`, `lock`, `sys`, `real`: descriptors, the lock, the system, the C library
//!
//! Nothing here panics on purpose. `unsafe` is in `sys`, `real`, `table`, `link`, `burst` and the
//! hooks.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("rampmeter-preload: expected Linux on a machine of 64 bits");

mod burst;
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

//! One pod: its hosts, its arbiter, and the places of packets in a slot (Fastpod §3.1 to §3.3).
//!
//! **Problem.** Switches without memory lose a packet that arrives at a busy port. A matching of
//! senders and receivers keeps data apart, but requests and grants are not matched.
//!
//! **Simple way.** Hosts and arbiter send RTSs and SCHDs on demand, as in Fastpass. They collide
//! with each other at the rack's port to the arbiter, and with data at the port to the host.
//!
//! **This way.** A slot has a place for one RTS and one SCHD of every host (`slots`). The places
//! follow from the numbers of sender and receiver in their racks, so nobody announces them.
//! `timing` converts places into instants of each host and arbiter, by the lengths of its cables.
//! The arbiter (`arbiter`, `demand_table`) decides a slot some slots ahead. Hosts request slots
//! (`requests`), send cells at their instants (`host`, `queues`), and acknowledge messages
//! (`receiver`, `backlog`). Cells of a message without a grant are sent optimistically until the
//! first SCHD that can answer is due (§3.3).
//!
//! **Hazards.** A wrong clock moves packets out of their places: `clocks` derives guard bands and
//! the time for which a clock may be used. A lost RTS or SCHD must cost a slot and no more, so both
//! carry totals. SCHDs of an arbiter that was replaced must not be followed: they carry its epoch.

pub(super) mod arbiter;
pub(super) mod backlog;
mod clocks;
mod demand_table;
pub(super) mod host;
pub(super) mod queues;
mod receiver;
pub(super) mod requests;
pub(super) mod stats;

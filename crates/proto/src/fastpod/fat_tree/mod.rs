//! Several pods, joined by core switches with memory (Fastpod §3.4).
//!
//! **Problem.** One arbiter cannot schedule a whole datacenter, and pods have clocks of their own.
//!
//! **Simple way.** Core switches forward cells between pods at once. These arrive in slots that the
//! arbiter of the destination has given to others, and are lost.
//!
//! **This way.** A message between pods is scheduled twice. The arbiter of the source's pod matches
//! a host with a pod and a core switch. The core switch (`core_switch`) keeps the cell. It requests
//! a slot from the arbiter of the destination's pod as hosts do, and sends the cell in it (`port`).
//! Each port follows the clock of its pod. Cells are sent at instants at which the port is idle, so
//! ports need no memory of their own. Acknowledgements of messages between pods pass from one port
//! to another.
//!
//! **Hazards.** Arbiters choose core switches independently, so memory may run out. RTSs of core
//! switches report to all arbiters the pods for which there is space. Cells that are in flight
//! until then must fit: their number is bounded, and the memory includes them. A core switch that
//! restarts has lost its cells, and hosts retransmit them.

pub(super) mod core_switch;
mod port;
mod stats;

#[cfg(test)]
mod tests;

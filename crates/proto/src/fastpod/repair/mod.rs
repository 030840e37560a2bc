//! Detection of failures in a pod, and paths around them (Fastpod §4).
//!
//! **Problem.** Switches without memory and tables cannot report or avoid a broken link. A source
//! route over it loses every cell, and only end hosts observe the loss.
//!
//! **Simple way.** Senders avoid a path after a timeout. Cells of a slot would then leave the
//! aggregation switch for which the arbiter has kept links free, and collide.
//!
//! **This way.** Hosts report the slots in which they sent, and those in which scheduled cells
//! arrived (`observations`). The arbiter compares the reports with its schedule, convicts links,
//! and probes them (`failures`). It gives pairs only paths over sound links, and moves earlier
//! pairs of the slot if it must (`paths`). Ends that send no RTS get no slots.
//!
//! **Hazards.** A lost cell implicates two links, one of which is sound: both are judged with other
//! losses, and a probe clears the sound one. Reports may be lost: a slot without reports proves
//! nothing. An unresponsive host must not hold up messages to it forever, so it may be sent to at
//! intervals.

pub(super) mod failures;
pub(super) mod observations;
pub(super) mod paths;

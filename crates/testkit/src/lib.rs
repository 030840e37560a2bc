//! Tests that hold of every transport, and the networks in which they run.
//!
//! A test target without the standard harness lists no transport. It names bodies, and runs each of
//! them for every transport and preset of a catalogue, as a separate test that can be filtered:
//!
//! ```no_run
//! use rampmeter_proto::Builtin;
//! use rampmeter_testkit::{Suite, bodies, here};
//!
//! fn main() {
//!     Suite::new(here!()).each_preset::<Builtin, _>(bodies::Faults).run();
//! }
//! ```
//!
//! [`bodies`] has those for endpoints alone; drivers add their own [`Body`]s. A transport is
//! configured as plans configure it: by `RegisteredTransport::configure`, for the site that
//! [`TestNetwork`] builds, with the arbiters of `RegisteredTransport::needs`.
//!
//! This crate is for development only. Its interface may change with any version.

pub mod bodies;
mod idle;
pub mod limit;
pub mod liveness;
pub mod message;
pub mod network;
pub mod reorder;
pub mod run;
pub mod scenario;
pub mod suite;
pub mod wire;

pub use network::{TestNetwork, facts, leaf_spine, leaf_spine_at, leaf_spine_of, star};
pub use run::{Records, arrival, imc10, run, spec};
pub use scenario::{Scenario, assert_sound, scenario};
pub use suite::{Body, Case, Suite, Target};

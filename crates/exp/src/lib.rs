//! Experiments: a plan becomes a checked plan, a run, and results with a manifest.
//!
//! This crate joins what the others keep apart. A [`Plan`] is TOML as a person writes it;
//! [`Plan::check`] turns it into a [`ValidPlan`], the only thing that can be run; the transport is
//! found in a [`Registry`] once, and everything below is compiled for it.

mod bench;
mod by_port;
mod capture;
mod caught;
mod check;
mod collective;
mod collisions;
mod context;
mod convert;
mod cut;
mod error;
mod fabric;
mod faults;
mod ideal;
mod ideals;
mod manifest;
mod names;
mod observe;
mod overload;
mod pace;
mod paths;
mod pfc;
mod plan;
mod progress;
mod ran;
mod rates;
mod record;
mod rpc;
mod run;
mod sampling;
mod schema;
mod simulate;
mod source;
mod summary;
mod testbed;
mod tier;
mod topology;
mod trace;
mod transport;
mod version;
mod warmup;
mod warnings;
mod window;
mod windows;

pub use bench::{BenchReport, bench};
pub use capture::every_packet;
pub use caught::{Broken, caught};
pub use check::ValidPlan;
pub use collective::CollectiveRound;
pub use collisions::{CollisionReport, PartyReport, ViolationReport};
pub use convert::{ConvertError, Converted, convert};
pub use error::RunError;
pub use plan::{NamesSpec, Plan, PlanError, WarmUp};
pub use progress::{Observer, Progress, Silent};
pub use ran::RunStatus;
pub use rpc::RpcSummary;
pub use run::run;
pub use schema::plan_schema;
pub use summary::Summary;
pub use testbed::{CollectError, HostRun, collect, host_packet, prepare};
pub use transport::{About, Registry, TransportSpec, Written};
pub use version::{COMMIT, PROFILE, VERSION};

//! Experiments: a plan becomes a checked plan, a run, and results with a manifest.
//!
//! This crate connects simulator, workloads, metrics and transports. A [`Plan`] is a TOML file.
//! [`Plan::check`] turns it into a [`ValidPlan`], the only type that runs. The transport is found
//! in a [`Registry`] once, and everything below is compiled for it.

mod capture;
mod convert;
mod error;
mod plan;
mod record;
mod results;
mod run;
mod simulation;
mod text;
mod timeline;
mod topology;
mod traffic;
mod transport;
mod version;
mod warning;

pub use capture::every_packet;
pub use convert::{ConvertError, ConvertedFile, convert};
pub use error::{
    DecoderProblem, FileProblem, PlanError, PlanErrorCode, Problem, READABLE, RunError,
    SourceLocation, UnlistedName,
};
pub use plan::Plan;
pub use plan::offered::{DrawnLink, DrawnSwitch, OfferedTier, OfferedTraffic, TopologyDrawing};
pub use plan::schema::plan_schema;
pub use plan::valid::ValidPlan;
pub use plan::warmup::WarmUp;
pub use results::Summary;
pub use results::collisions::{CollidingPacketReport, CollisionReport, ViolationReport};
pub use run::bench::{BenchReport, bench};
pub use run::invariant::{InvariantViolation, catch_violation};
pub use run::run;
pub use run::testbed::{CollectError, HostRun, collect, host_packet, prepare};
pub use simulation::progress::{NullObserver, Observer, Progress};
pub use simulation::status::RunStatus;
pub use text::migrate::{RenamedSetting, migrate};
pub use topology::names::NamesSpec;
pub use traffic::collective::CollectiveRound;
pub use traffic::rpc::RpcSummary;
pub use transport::{Registry, TransportInfo, TransportSpec};
pub use version::{COMMIT, PROFILE, VERSION};
pub use warning::{WARNINGS, Warning, WarningValues};

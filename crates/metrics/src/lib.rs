//! Results: what a run records, the statistics of it, and how it compares with others.
//!
//! A run streams one [`FlowRow`] a flow into a Parquet table ([`writer`]); [`ideal`] says how long
//! each flow would have taken alone; [`slowdown`] makes the statistics that papers print;
//! [`mod@compare`] sets two results side by side. [`histogram`] and [`series`] hold what is counted
//! rather than listed, and [`confidence`] says how far the numbers of a run may be off.

pub mod columns;
pub mod compare;
pub mod confidence;
pub mod histogram;
pub mod ideal;
pub mod paths;
pub mod row;
pub mod series;
pub mod slowdown;
pub mod table;
pub mod ways;
pub mod writer;

pub use columns::{About, Columns, Row};
pub use compare::{Comparison, compare};
pub use histogram::{LatencyHistogram, LatencySummary};
pub use ideal::{Forwarding, Framing, Ideal, IdealModel, LastPacket, PathHop};
pub use row::{FlowColumns, FlowRow, Status};
pub use slowdown::{BinStats, Bins, Order, Sample, Stats, by_size};
pub use table::TableError;
pub use ways::{Least, WayLink, Ways};
pub use writer::{FlowWriter, read_flows};

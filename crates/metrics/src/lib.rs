//! Results: records of a run, their statistics, and comparisons.
//!
//! A run streams one [`FlowRow`] a flow into a Parquet table ([`writer`]). [`ideal`] computes the
//! completion time of each flow alone in the network. [`slowdown`] has the statistics that papers
//! print, and [`mod@compare`] compares two results. [`histogram`] and [`series`] hold counts and
//! samples, and [`confidence`] computes confidence intervals of a run.

pub mod blame;
pub mod columns;
pub mod compare;
pub mod confidence;
pub mod detours;
pub mod histogram;
pub mod hop_graph;
pub mod ideal;
pub mod paths;
pub mod row;
pub mod series;
pub mod slowdown;
pub mod table;
pub mod writer;

pub use columns::{ColumnInfo, Columns, Row};
pub use compare::{Comparison, compare};
pub use detours::{DetourLink, Detours};
pub use histogram::{LatencyHistogram, LatencySummary};
pub use hop_graph::{HopGraph, HopLink, MinimumTime};
pub use ideal::{Forwarding, Ideal, IdealModel, PathHop};
pub use row::{FlowColumns, FlowRow, Status};
pub use slowdown::{BinStats, Bins, Sample, SampleOrder, Stats, by_size};
pub use table::TableError;
pub use writer::{FlowWriter, read_flows};

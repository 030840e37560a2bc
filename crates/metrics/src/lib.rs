//! Results: what a run records, the statistics of it, and how it compares with others.
//!
//! A run streams one [`FlowRow`] a flow into a Parquet table ([`writer`]); [`ideal`] says how long
//! each flow would have taken alone; [`slowdown`] makes the statistics that papers print, over an
//! explicit [`Selection`] of flows; [`mod@compare`] sets two results side by side. [`histogram`]
//! and [`series`] hold what is counted rather than listed, and [`stats`] joins runs over seeds.

pub mod columns;
pub mod compare;
pub mod confidence;
pub mod histogram;
pub mod ideal;
pub mod paths;
pub mod row;
pub mod selection;
pub mod series;
pub mod slowdown;
pub mod stats;
pub mod table;
pub mod writer;

pub use columns::{About, Columns, Row};
pub use compare::{Comparison, compare};
pub use histogram::{LatencyHistogram, LatencySummary};
pub use ideal::{Forwarding, Framing, Ideal, IdealModel, LastPacket, PathHop};
pub use row::{FlowColumns, FlowRow, Status};
pub use selection::{Mark, Selection};
pub use slowdown::{BinStats, Bins, Order, Sample, Stats, Summary, by_size, summarise};
pub use stats::Spread;
pub use table::TableError;
pub use writer::{FlowWriter, read_flows};

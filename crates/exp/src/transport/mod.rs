//! Transports: the name in the `transport` table of a plan becomes a run.
//!
//! | step | type |
//! |---|---|
//! | transports that plans may name | [`Registry`], a list of `RegistryEntry` |
//! | tables of a plan, read | [`TransportSpec`], which has `ErasedKeys` for each |
//! | transport of a network | [`ValidTransport`], which has a `RunnableTransport` |
//!
//! `RunnableTransport::simulate` runs it. Only the catalogue of [`rampmeter_proto`] names
//! transports.

mod coexisting;
mod erased;
mod ideal;
mod mixed;
mod registry;
mod single;
mod spec;
mod table;

pub use erased::TransportInfo;
pub use registry::Registry;
pub use spec::TransportSpec;
pub(crate) use spec::ValidTransport;

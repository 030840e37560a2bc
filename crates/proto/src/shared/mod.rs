//! What several protocols need in the same form.

mod config;
mod framing;
mod numbers;
mod output;
mod timers;

pub(crate) use config::within;
pub use config::{ConfigError, Padding};
pub(crate) use framing::{Framing, Outgoing};
pub(crate) use numbers::{FlowNumbers, Known, NextNumber};
pub(crate) use output::Output;
pub(crate) use timers::Timers;

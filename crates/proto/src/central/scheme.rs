//! Description of a transport with a central controller.

use std::fmt::Debug;

use super::flow::{FlowGrant, Schedule};
use super::settings::Settings;
use super::wire::Orders;

/// A transport with a central controller.
pub trait CentralScheme: Debug + 'static {
    /// Grant of its controller.
    type Grant: FlowGrant;
    /// Control messages of the scheme on the wire.
    type Orders: Orders<Self::Grant>;
    /// Scheduler of the scheme.
    type Schedule: Schedule<Grant = Self::Grant>;
    /// Parameters of the scheme on one network.
    type Config: Debug + Send + Sync;

    /// Returns the settings shared by hosts and controllers.
    fn settings(config: &Self::Config) -> &Settings;

    /// Returns a scheduler without flows.
    fn schedule(config: &Self::Config) -> Self::Schedule;
}

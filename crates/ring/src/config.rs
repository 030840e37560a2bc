//! Configuration of the acceptor.

use std::path::PathBuf;

use crate::users::{Limits, Services};

/// Configuration of the acceptor: its socket, limits and access rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptorConfig {
    /// Path of the socket. Users who may write to it may attach.
    pub path: PathBuf,
    /// Limits on the number and size of applications.
    pub limits: Limits,
    /// Services with restricted access.
    pub services: Services,
}

impl AcceptorConfig {
    /// Returns a configuration with the default limits and unrestricted services.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), limits: Limits::default(), services: Services::default() }
    }
}

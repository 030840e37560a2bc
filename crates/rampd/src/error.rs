//! Errors of the commands.

use std::io;

use rampmeter_types::without_os_error;
use thiserror::Error;

use crate::config::ConfigError;

/// Reason for which rampd ends.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// A configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An argument or a table is invalid.
    #[error("{0}")]
    Input(String),
    /// The system failed.
    #[error("{}", without_os_error(.0))]
    System(#[from] io::Error),
}

impl Error {
    /// Returns the stable name of the kind.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Config(error) => error.code(),
            Self::Input(_) => "bad-input",
            Self::System(_) => "system-failed",
        }
    }

    /// Returns true if the input is at fault.
    pub(crate) fn is_input(&self) -> bool {
        matches!(self, Self::Config(_) | Self::Input(_))
    }
}

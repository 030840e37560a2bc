//! Version of this build.

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit of this build, or `unknown`.
pub const COMMIT: &str = env!("RAMPMETER_COMMIT");
/// The build profile: `release` or `debug`.
pub const PROFILE: &str = env!("RAMPMETER_PROFILE");

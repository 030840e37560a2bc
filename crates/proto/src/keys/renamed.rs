//! Keys of transports that had other names and units in earlier versions.

/// A key that was renamed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenamedKey {
    /// The former name.
    pub old: &'static str,
    /// The present name.
    pub new: &'static str,
    /// Parts of the former unit in one present unit, by which former values are divided.
    pub parts: u32,
}

const fn renamed(old: &'static str, new: &'static str, parts: u32) -> RenamedKey {
    RenamedKey { old, new, parts }
}

/// All renamed keys. Former names are unique among all transports.
pub const RENAMED_KEYS: [RenamedKey; 13] = [
    renamed("base-rtt-ns", "base-rtt-us", 1_000),
    renamed("clock-ppb", "clock-drift-ppm", 1_000),
    renamed("compute-ns", "compute-us", 1_000),
    renamed("control-milli", "control-share", 1_000),
    renamed("epoch-milli", "epoch-length", 1_000),
    renamed("least-share-milli", "share-min", 1_000),
    renamed("pace-percent", "credit-rate", 100),
    renamed("rack-quarters", "reordering-window-rtts", 4),
    renamed("rto-ns", "rto-us", 1_000),
    renamed("slot-milli", "slot-length", 1_000),
    renamed("timeout-max-ns", "timeout-max-us", 1_000),
    renamed("timeout-min-ns", "timeout-min-us", 1_000),
    renamed("token-life-milli", "token-lifetime", 1_000),
];

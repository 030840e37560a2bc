//! Keys of transports and of hosts' configurations that had other names or units before.

/// A key that was renamed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenamedKey {
    /// The transports that had it; empty if all transports that have the present one did.
    pub transports: &'static [&'static str],
    /// The former name.
    pub old: &'static str,
    /// The present name.
    pub new: &'static str,
    /// Parts of the former unit in one present unit, by which former values are divided.
    pub parts: u32,
}

impl RenamedKey {
    /// Returns true if a transport had this key.
    pub fn is_of(&self, transport: &str) -> bool {
        self.transports.is_empty() || self.transports.contains(&transport)
    }
}

const fn renamed(old: &'static str, new: &'static str, parts: u32) -> RenamedKey {
    RenamedKey { transports: &[], old, new, parts }
}

/// A key that only `transports` had with this meaning.
const fn renamed_of(
    transports: &'static [&'static str],
    old: &'static str,
    new: &'static str,
) -> RenamedKey {
    RenamedKey { transports, old, new, parts: 1 }
}

/// All renamed keys. A former name is unique among the transports that had it.
pub const RENAMED_KEYS: [RenamedKey; 57] = [
    renamed("ack-every", "segments-per-ack", 1),
    renamed("alpha", "alpha-initial", 1),
    renamed("base-rtt-ns", "base-rtt-us", 1_000),
    renamed("classes", "priorities", 1),
    renamed("clock-ppb", "clock-drift-ppm", 1_000),
    renamed("compute-ns", "compute-us", 1_000),
    renamed("control-milli", "control-share", 1_000),
    renamed("core-mbps", "uplinks-gbps", 1_000),
    renamed("early-growth", "fast-initial-growth", 1),
    renamed("epoch-milli", "epoch-length", 1_000),
    renamed("first-round", "unscheduled-treatment", 1),
    renamed("flows", "flows-per-link", 1),
    renamed("free-expiry", "free-token-expiry", 1),
    renamed("free-for", "free-tokens-for", 1),
    renamed("free-hold", "token-suppression", 1),
    renamed("free-repair", "free-token-repair", 1),
    renamed("incast-bytes", "incast-unscheduled-bytes", 1),
    renamed("least-share-milli", "share-min", 1_000),
    renamed("mark-above", "ecn-packets", 1),
    renamed("mode", "exchange", 1),
    renamed("order", "message-order", 1),
    renamed("pace-percent", "credit-rate", 100),
    renamed("phases", "phase-stages", 1),
    renamed_of(&["ndp"], "ports", "fabric-model"),
    renamed("probe-rank", "probe-priority", 1),
    renamed("queue", "switch-queue-packets", 1),
    renamed("rack-quarters", "reordering-window-rtts", 4),
    renamed("reach", "core-model", 1),
    renamed("receive-buffer", "receive-buffer-bytes", 1),
    renamed("reordering", "duplicate-acks", 1),
    renamed("repeat-us", "retransmit-us", 1),
    renamed("resend-packets", "retransmit-packets", 1),
    renamed("round-trips", "rtt-resolution", 1),
    renamed("round-view", "stage-check", 1),
    renamed("rounds", "matching-rounds", 1),
    renamed("rto", "rto-mode", 1),
    renamed("rto-ns", "rto-us", 1_000),
    renamed("shares", "link-sharing", 1),
    renamed("short-flows", "short-flow-pacing", 1),
    renamed("slot-milli", "slot-length", 1_000),
    renamed("stamp-jitter-ns", "timestamp-error-ns", 1),
    renamed("starving", "starvation-reaction", 1),
    renamed("starving-after", "starvation-timeouts", 1),
    renamed("threshold", "short-flow-packets", 1),
    renamed("threshold-bytes", "short-flow-bytes", 1),
    renamed("timeout-max-ns", "rto-max-us", 1_000),
    renamed("timeout-max-us", "rto-max-us", 1),
    renamed("timeout-min-ns", "rto-min-us", 1_000),
    renamed("timeout-min-us", "rto-min-us", 1),
    renamed("token-life-milli", "token-lifetime", 1_000),
    renamed("wake", "wake-event", 1),
    renamed_of(&["dcpim"], "handshake", "notification"),
    renamed_of(&["fastpass"], "model", "allocation-unit"),
    renamed_of(&["pfabric"], "network", "fabric-model"),
    renamed_of(&["ndp"], "switch-ports", "fabric-model"),
    renamed_of(&["pfabric", "ndp"], "window", "window-initial"),
    renamed_of(&["capton"], "window", "window-granted"),
];

/// Returns the expected and the actual key, for the error of a former key whose values are
/// `changed`.
pub(super) fn former_name(old: &str, new: &str, changed: &str) -> (String, String) {
    let expected =
        format!("the present name `{new}`{changed} (`rampmeter migrate FILE` renames it)");
    (expected, format!("the former name `{old}`"))
}

/// A key of a table of a plan or of a host's configuration that was renamed. Its unit and its
/// values are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenamedTableKey {
    /// The table of the key.
    pub table: &'static str,
    /// The former name.
    pub old: &'static str,
    /// The present name.
    pub new: &'static str,
}

const fn renamed_in(table: &'static str, old: &'static str, new: &'static str) -> RenamedTableKey {
    RenamedTableKey { table, old, new }
}

/// Returns the table and the key of a path, such as `pfc` and `mode` of `fabric.pfc.mode`. Numbers
/// of tables in lists, as in `transports[1]`, are left out.
pub fn table_and_key(path: &str) -> Option<(&str, &str)> {
    let (table, key) = path.rsplit_once('.')?;
    let table = table.rsplit_once('.').map_or(table, |(_, last)| last);
    Some((table.split('[').next().unwrap_or(table), key))
}

impl RenamedTableKey {
    /// Returns the expected and the actual key, for the error of a former key.
    pub fn expected_and_got(&self) -> (String, String) {
        former_name(self.old, self.new, "")
    }
}

/// All renamed keys of plans outside of `transport`.
pub const RENAMED_PLAN_KEYS: [RenamedTableKey; 17] = [
    renamed_in("deadlines", "at-least-ideals", "ideal-factor-min"),
    renamed_in("fabric", "slot-bytes", "buffer-cell-bytes"),
    renamed_in("fabric", "unscheduled", "unscheduled-collision"),
    renamed_in("measure", "finished-before-arrival", "completed-before-flow"),
    renamed_in("parts", "groups", "groups-file"),
    renamed_in("parts", "periods", "period-distribution"),
    renamed_in("parts", "times", "time-distribution"),
    renamed_in("pfc", "mode", "threshold"),
    renamed_in("run", "trace", "timeline"),
    renamed_in("run", "trace-events", "timeline-events"),
    renamed_in("run", "trace-from-us", "timeline-from-us"),
    renamed_in("run", "trace-hosts", "timeline-hosts"),
    renamed_in("run", "trace-switches", "timeline-switches"),
    renamed_in("run", "trace-until-us", "timeline-until-us"),
    renamed_in("workload", "groups", "groups-file"),
    renamed_in("workload", "periods", "period-distribution"),
    renamed_in("workload", "times", "time-distribution"),
];

/// All renamed keys of hosts' configurations. A former name is unique in its table.
pub const RENAMED_NODE_KEYS: [RenamedTableKey; 12] = [
    renamed_in("network", "segment-offload", "segmentation-offload"),
    renamed_in("network", "spray", "spray-ports"),
    renamed_in("node", "gather-us", "coalesce-us"),
    renamed_in("node", "grace-ms", "drain-timeout-ms"),
    renamed_in("node", "message-max", "message-max-bytes"),
    renamed_in("node", "metrics", "metrics-address"),
    renamed_in("node", "patience-ms", "connect-timeout-ms"),
    renamed_in("node", "spin-us", "pacing-spin-us"),
    renamed_in("node", "status", "status-socket"),
    renamed_in("node", "wait", "wait-mode"),
    renamed_in("programs", "attached-per-user", "attached-max-per-user"),
    renamed_in("programs", "memory-per-user-mb", "memory-max-per-user-mb"),
];

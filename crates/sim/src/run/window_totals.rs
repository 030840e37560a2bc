//! Work and span of a run in windows.

/// Totals of the windows in which partitions ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WindowTotals {
    /// Windows.
    pub windows: u64,
    /// Events of all partitions.
    pub work: u64,
    /// Sum of the most events that one partition had in each window. `work / span` is the greatest
    /// possible gain by a core for each partition.
    pub span: u64,
}

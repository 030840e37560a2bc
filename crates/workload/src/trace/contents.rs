//! Formats of files by their contents.

use crate::table::separator;

/// Beginnings of common binary files, and their names.
const MAGIC: [(&[u8], &str); 9] = [
    (b"\x1f\x8b", "compressed by gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PAR1", "a Parquet table"),
    (b"ARROW1", "an Arrow table"),
    (b"\x89HDF", "of HDF5"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x93NUMPY", "an array of NumPy"),
    (b"\x7fELF", "a program"),
];

/// Returns a phrase for a file that is not text.
pub(super) fn binary(bytes: &[u8]) -> String {
    match MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        Some((_, kind)) => format!("a binary file, {kind}"),
        None => {
            let first: Vec<String> =
                bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            format!("a binary file that begins with {}", first.join(" "))
        }
    }
}

/// Bytes at the start of a file by which its format is recognised.
pub(super) const HEAD_BYTES: u64 = 1 << 20;

/// Returns a text without the byte-order mark that some editors write at its start.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns true for bytes that do not begin a text.
pub(super) fn has_control(bytes: &[u8]) -> bool {
    bytes.iter().take(4096).any(|byte| matches!(byte, 0..=8 | 14..=31))
}

/// Returns the first lines of a text that are neither empty nor comments.
fn lines(bytes: &[u8]) -> Vec<&str> {
    let end = bytes.len().min(4096);
    let text = match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => text,
        Err(error) if end == 4096 => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => "",
    };
    let text = without_mark(text);
    let is_content = |line: &&str| !line.is_empty() && !line.starts_with(['#', '/']);
    text.lines().map(str::trim).filter(is_content).take(8).collect()
}

/// Returns true for a header that names columns of a trace.
pub(super) fn is_csv(bytes: &[u8]) -> bool {
    let lines = lines(bytes);
    let columns: Vec<&str> = lines
        .first()
        .map(|line| line.split(char::from(separator(line))).collect())
        .unwrap_or_default();
    ["src", "dst", "size_bytes"].iter().all(|name| columns.contains(name))
}

/// Returns true for a connection matrix of htsim. Its topologies begin with the nodes, too, but
/// have tiers.
pub(super) fn is_htsim(bytes: &[u8]) -> bool {
    let is_head = |line: &&str| line.starts_with("Nodes ") || line.starts_with("Connections ");
    let is_connection = |line: &&str| {
        let ends = line.split_whitespace().next().and_then(|word| word.split_once("->"));
        ends.is_some_and(|(src, dst)| src.parse::<u64>().is_ok() && dst.parse::<u64>().is_ok())
    };
    let is_topology = |line: &&str| {
        let key = line.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        key.starts_with("tier") || key == "podsize" || key.starts_with("radix_")
    };
    let lines = lines(bytes);
    lines.first().is_some_and(|line| is_head(line) || is_connection(line))
        && !lines.iter().any(is_topology)
}

/// Returns true for a GOAL schedule.
pub(super) fn is_goal(bytes: &[u8]) -> bool {
    lines(bytes).first().is_some_and(|line| line.starts_with("num_ranks"))
}

/// Returns true for a flow file of the HPCC simulator: a number of flows, and lines of five or six
/// numbers. Those of ns3-rdma, whose last two are times, get the error of the reader.
pub(super) fn is_hpcc(bytes: &[u8]) -> bool {
    let lines = lines(bytes);
    let [count, flow, ..] = lines[..] else { return false };
    let fields: Vec<&str> = flow.split_whitespace().collect();
    let is_whole = |field: &&str| field.parse::<u64>().is_ok();
    count.parse::<u64>().is_ok()
        && matches!(fields.len(), 5 | 6)
        && fields[..4].iter().all(is_whole)
        && fields[4..].iter().all(|field| field.parse::<f64>().is_ok())
}

/// Returns true for an algorithm of MSCCL.
pub(super) fn is_msccl(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    without_mark(&head).trim_start().starts_with('<') && head.contains("<algo")
}

//! The formats of trace files: one line each, with a reader.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "parquet")]
use super::parquet;
use super::source::{Import, Source};
use super::{TraceError, contents, csv};
use crate::import;

/// A line of the table of formats.
struct Entry {
    format: Format,
    /// Names for commands; the first is the one of plans.
    names: &'static [&'static str],
    /// Suffixes of file names of the format.
    suffixes: &'static [&'static str],
    read: fn(&Source<'_>) -> Result<Import, TraceError>,
    /// True for the first [`contents::HEAD_BYTES`] of a file of the format.
    matches: fn(&[u8]) -> bool,
}

macro_rules! formats {
    ($(
        $(#[$doc:meta])*
        $variant:ident $(if $cfg:meta)?: $read:path, $names:expr, $suffixes:expr, $is:expr;
    )*) => {
        /// The formats of trace files.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Format {
            $($(#[$doc])* $(#[cfg($cfg)])? $variant,)*
        }

        const ENTRIES: &[Entry] = &[$($(#[cfg($cfg)])? Entry {
            format: Format::$variant,
            names: &$names,
            suffixes: &$suffixes,
            read: $read,
            matches: $is,
        },)*];
    };
}

formats! {
    /// Comma-separated values with a header, plain or, with the suffix `.gz`, compressed.
    Csv: csv::import, ["csv"], [".csv", ".csv.gz"], contents::is_csv;
    /// An Apache Parquet table.
    Parquet if feature = "parquet": parquet::import, ["parquet"], [".parquet"],
        |bytes| bytes.starts_with(b"PAR1");
    /// The output of YAPS, pHost's simulator, or of dcPIM's; see [`import::yaps`].
    Yaps: import::yaps::read, ["yaps", "dcpim"], [], |_| false;
    /// A connection matrix of htsim; see [`import::htsim`].
    Htsim: import::htsim::read, ["htsim"], [".cm"], contents::is_htsim;
    /// A flow file of the HPCC simulator and other ns-3 programs; see [`import::hpcc`].
    Hpcc: import::hpcc::read, ["hpcc", "ns-3"], [], contents::is_hpcc;
    /// A GOAL schedule; see [`import::goal`].
    Goal: import::goal::read, ["goal"], [".goal"], contents::is_goal;
    /// A workload of `SimAI`, AICB or ASTRA-sim; see [`import::simai`].
    Simai: import::simai::read, ["simai", "astra-sim"], [], import::simai::is_simai;
    /// Execution traces of Chakra, a file for each rank; see [`import::chakra`].
    Chakra: import::chakra::read, ["chakra"], [".et"], import::chakra::is_chakra;
    /// An algorithm of MSCCL; see [`import::msccl`].
    Msccl: import::msccl::read, ["msccl"], [], contents::is_msccl;
}

impl Format {
    /// Returns the format that the name of `file` suggests: `.csv` and `.csv.gz`, `.parquet`, `.cm`
    /// of htsim, `.goal`, `.et` of Chakra. The others have no suffix.
    pub fn from_name(file: &Path) -> Option<Self> {
        let name = file.file_name()?.to_str()?.to_ascii_lowercase();
        let has = |entry: &&Entry| entry.suffixes.iter().any(|suffix| name.ends_with(suffix));
        ENTRIES.iter().find(has).map(|entry| entry.format)
    }

    /// Returns the format that the contents of `file` suggest. Tables of numbers without a header
    /// suggest none.
    pub fn from_contents(file: &Path) -> Option<Self> {
        let mut bytes = Vec::new();
        File::open(file).ok()?.take(contents::HEAD_BYTES).read_to_end(&mut bytes).ok()?;
        ENTRIES.iter().find(|entry| (entry.matches)(&bytes)).map(|entry| entry.format)
    }

    /// Returns the name of the format in plans.
    pub fn name(self) -> &'static str {
        let entry = ENTRIES.iter().find(|entry| entry.format == self);
        entry.expect("every format has an entry").names[0]
    }

    /// Returns the format of this name.
    pub fn named(name: &str) -> Option<Self> {
        ENTRIES.iter().find(|entry| entry.names.contains(&name)).map(|entry| entry.format)
    }

    /// Returns the names of all formats in plans, separated by commas.
    pub fn names() -> String {
        let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.names[0]).collect();
        names.join(", ")
    }

    pub(super) fn read(self, source: &Source<'_>) -> Result<Import, TraceError> {
        let entry = ENTRIES.iter().find(|entry| entry.format == self);
        (entry.expect("every format has an entry").read)(source)
    }
}

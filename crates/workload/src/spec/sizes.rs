//! Message sizes as plans write them.

use std::fmt;
use std::path::{Path, PathBuf};

use rampmeter_types::Bytes;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::pattern::WorkloadError;
use crate::size::{SizeDist, SizeInterpolation, named, read_cdf};

/// Message sizes: `"imc10"`, `{ fixed = 71540 }` or `{ cdf = "file.txt" }`.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub enum SizeSpec {
    /// The name of a published distribution.
    #[schemars(extend("enum" = crate::size::NAMES))]
    Named(String),
    /// A fixed size or a file.
    Table(SizeTable),
}

/// One size for all messages, or a distribution from a file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SizeTable {
    /// Every message has this many bytes. Either this or `cdf`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<u64>,
    /// A file with a distribution: lines of size and cumulative probability. Either this or
    /// `fixed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cdf: Option<PathBuf>,
    /// The unit of the file's sizes.
    #[serde(default)]
    pub unit: Unit,
    /// Sizes between the file's points; `steps` if left out and the first line is a mean, as in
    /// Homa's files, else `linear`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpolation: Option<Interpolation>,
}

/// The unit of a file's sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// One byte.
    #[default]
    Bytes,
    /// The payload of a full packet.
    Packets,
}

/// Interpolation between a file's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interpolation {
    /// Sizes between two points occur, with equal probability.
    Linear,
    /// Only the sizes of the points occur.
    Steps,
}

impl SizeSpec {
    /// Returns the distribution, for the workload at `path` within the plan. Packets of files have
    /// `payload` bytes, and names of files are relative to `base_dir`.
    ///
    /// # Errors
    /// An unknown name, or a file without a valid distribution.
    pub fn resolve(
        &self,
        path: &str,
        payload: Bytes,
        base_dir: &Path,
    ) -> Result<SizeDist, WorkloadError> {
        self.resolve_with_notes(path, payload, base_dir).map(|(sizes, _)| sizes)
    }

    /// Resolves like [`SizeSpec::resolve`], with notes about likely mistakes in a file.
    ///
    /// # Errors
    /// As [`SizeSpec::resolve`].
    pub fn resolve_with_notes(
        &self,
        path: &str,
        payload: Bytes,
        base_dir: &Path,
    ) -> Result<(SizeDist, Vec<String>), WorkloadError> {
        self.resolve_at(&format!("{path}sizes"), payload, base_dir)
    }

    /// Resolves like [`SizeSpec::resolve_with_notes`], for the key `key`.
    pub(super) fn resolve_at(
        &self,
        key: &str,
        payload: Bytes,
        base_dir: &Path,
    ) -> Result<(SizeDist, Vec<String>), WorkloadError> {
        let key = key.to_owned();
        let wrong = |expected: &str, got: String| {
            Err(WorkloadError::Key { key: key.clone(), expected: expected.to_owned(), got })
        };
        let sizes = match self {
            Self::Named(name) => named(name).map(|sizes| (sizes, Vec::new())),
            Self::Table(table) => match (table.fixed, &table.cdf) {
                (Some(fixed), None) if (1..=1 << 50).contains(&fixed) => {
                    Ok((SizeDist::fixed(Bytes::new(fixed)), Vec::new()))
                }
                (Some(fixed), None) => {
                    return wrong("fixed from 1 to 2^50 bytes", fixed.to_string());
                }
                (None, Some(file)) => {
                    let unit = match table.unit {
                        Unit::Bytes => Bytes::new(1),
                        Unit::Packets => payload,
                    };
                    let shape = table.interpolation.map(|interpolation| match interpolation {
                        Interpolation::Linear => SizeInterpolation::Linear,
                        Interpolation::Steps => SizeInterpolation::Steps,
                    });
                    read_cdf(&base_dir.join(file), shape, unit)
                }
                (None, None) => return wrong("fixed or cdf", "neither".to_owned()),
                (Some(_), Some(_)) => return wrong("fixed or cdf", "both".to_owned()),
            },
        };
        sizes.map_err(|source| WorkloadError::Sizes { key, source })
    }
}

impl<'de> Deserialize<'de> for SizeSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

impl Serialize for SizeSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Named(name) => serializer.serialize_str(name),
            Self::Table(table) => table.serialize(serializer),
        }
    }
}

/// Written by hand, because an untagged enum reports every mistake as "did not match".
struct SizeVisitor;

impl<'de> Visitor<'de> for SizeVisitor {
    type Value = SizeSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a distribution, { fixed = bytes } or { cdf = \"file\" }")
    }

    fn visit_str<E>(self, name: &str) -> Result<SizeSpec, E> {
        Ok(SizeSpec::Named(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SizeSpec, A::Error> {
        SizeTable::deserialize(MapAccessDeserializer::new(map)).map(SizeSpec::Table)
    }
}

//! What checks of a plan share: where the plan came from, and errors that say so.

use std::path::{Component, Path, PathBuf};

use rampmeter_core::Span;

use crate::plan::PlanError;

/// Where a plan came from.
pub(crate) struct Context<'a> {
    origin: &'a str,
    base: &'a Path,
}

impl<'a> Context<'a> {
    /// A plan that errors call `origin`, whose file names are relative to `base`.
    pub(crate) fn new(origin: &'a str, base: &'a Path) -> Self {
        Self { origin, base }
    }

    /// The path of a file that the plan names.
    pub(crate) fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        self.base.join(file)
    }

    pub(crate) fn bad(&self, key: &str, message: impl ToString) -> PlanError {
        PlanError::Value {
            origin: self.origin.to_owned(),
            key: key.to_owned(),
            message: message.to_string(),
        }
    }

    /// The error of a key whose value is not what was expected.
    pub(crate) fn unexpected(&self, key: &str, expected: &str, got: impl ToString) -> PlanError {
        self.bad(key, format!("expected {expected}, got {}", got.to_string()))
    }

    /// Checks that a plan's `file` is a name without a folder that ends in one of `suffixes`.
    pub(crate) fn file_name(
        &self,
        key: &str,
        file: &str,
        suffixes: &[&str],
    ) -> Result<(), PlanError> {
        let is_name = Path::new(file).components().all(|c| matches!(c, Component::Normal(_)));
        let stem = suffixes.iter().find_map(|suffix| file.strip_suffix(suffix));
        if is_name && !file.contains('/') && stem.is_some_and(|stem| !stem.is_empty()) {
            return Ok(());
        }
        let suffixes = suffixes.join(" or ");
        Err(self.bad(key, format!("expected a file name that ends in {suffixes}, got {file:?}")))
    }

    pub(crate) fn range(
        &self,
        key: &str,
        value: f64,
        least: f64,
        most: f64,
    ) -> Result<f64, PlanError> {
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(self.bad(key, format!("expected a number from {least} to {most}, got {value}")))
    }

    /// Microseconds to a span in whole picoseconds.
    pub(crate) fn micros(&self, key: &str, us: f64, least: f64) -> Result<Span, PlanError> {
        let us = self.range(key, us, least, 1e12)?;
        Ok(Span::from_ps((us * 1e6).round() as u64))
    }
}

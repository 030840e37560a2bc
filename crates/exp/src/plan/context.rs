//! State that the checks of a plan share: the origin of the plan, and errors that name it.

use std::path::{Component, Path, PathBuf};

use rampmeter_proto::keys::BadKey;
use rampmeter_types::Span;

use crate::error::{PlanError, Problem};

/// Origin of a plan.
pub(crate) struct PlanOrigin<'a> {
    origin: &'a str,
    base: &'a Path,
}

impl<'a> PlanOrigin<'a> {
    /// Returns a plan that errors call `origin`, whose file names are relative to `base`.
    pub(crate) fn new(origin: &'a str, base: &'a Path) -> Self {
        Self { origin, base }
    }

    /// Returns the path of a file that the plan names.
    pub(crate) fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        self.base.join(file)
    }

    pub(crate) fn bad(&self, key: &str, message: impl ToString) -> PlanError {
        PlanError::value(self.origin, key, Problem::Other(message.to_string()))
    }

    /// Returns the error of a key with a problem.
    pub(crate) fn problem(&self, key: &str, problem: Problem) -> PlanError {
        PlanError::value(self.origin, key, problem)
    }

    /// Returns the error of a key of the transport.
    pub(crate) fn bad_transport(&self, bad: BadKey) -> PlanError {
        PlanError::of_transport(self.origin, bad)
    }

    /// Returns the error of a key with an unexpected value.
    pub(crate) fn unexpected(
        &self,
        key: &str,
        expected: impl ToString,
        got: impl ToString,
    ) -> PlanError {
        PlanError::value(self.origin, key, Problem::unexpected(expected, got))
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
        let expected = format!("a file name that ends in {suffixes}");
        Err(self.unexpected(key, expected, format_args!("{file:?}")))
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
        Err(self.unexpected(key, format_args!("a number from {least} to {most}"), value))
    }

    /// Microseconds to a span in whole picoseconds.
    pub(crate) fn micros(&self, key: &str, us: f64, least: f64) -> Result<Span, PlanError> {
        let us = self.range(key, us, least, 1e12)?;
        Ok(Span::from_ps((us * 1e6).round() as u64))
    }
}

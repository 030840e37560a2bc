//! Lines of files, and numbers in messages.

use crate::trace::TraceError;

/// A line of a file, for errors of its parser.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) file: &'a str,
    pub(super) number: u64,
}

impl Line<'_> {
    pub(super) fn wrong(&self, field: &'static str, expected: &str, got: &str) -> TraceError {
        self.wrong_as(field, expected, format!("\"{got}\""))
    }

    /// Returns an error with `got` as it is, not as a text of the file.
    pub(super) fn wrong_as(&self, field: &'static str, expected: &str, got: String) -> TraceError {
        TraceError::Field {
            file: self.file.to_owned(),
            place: self.number,
            field: field.to_owned(),
            expected: expected.to_owned(),
            got,
        }
    }

    pub(super) fn number(&self, field: &'static str, text: &str) -> Result<u64, TraceError> {
        text.parse().map_err(|_| self.wrong(field, "a whole number", text))
    }
}

/// Returns `n` with the noun, in the plural unless `n` is 1.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

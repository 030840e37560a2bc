//! Errors of a configuration, and their places in its text: line, column and key.

use std::io;
use std::path::Path;

use rampmeter_proto::keys::{RENAMED_NODE_KEYS, RenamedTableKey};
use rampmeter_types::{NameError, TypeError};
use toml::de::{DeTable, DeValue};

use crate::error::{Fault, InputError, InputErrorCode};

/// Returns the error of a configuration, or of a file that it names, that cannot be read.
pub(super) fn unreadable(file: &Path, error: &io::Error) -> Box<InputError> {
    InputError::unreadable(error).in_file(file).with_code(InputErrorCode::File)
}

/// Returns the error of an impossible value of a configuration, or of a file that it names.
pub(super) fn bad(
    file: &Path,
    key: &str,
    expected: impl ToString,
    got: impl ToString,
) -> Box<InputError> {
    let error = InputError::unexpected(expected, got).at(key).in_file(file);
    error.with_code(InputErrorCode::Value)
}

/// Returns the error of a text, with its place and key.
pub(super) fn syntax_error(text: &str, error: &toml::de::Error) -> Box<InputError> {
    let message = error.message().lines().collect::<Vec<_>>().join(" ");
    let span = error.span();
    let cited = span.clone().and_then(|span| text.get(span)).unwrap_or_default();
    let values = type_fault(&message, cited)
        .or_else(|| NameError::parse(&message).map(|name| name_fault(&name)))
        .or_else(|| values_of(&message, cited));
    let fault = match values {
        Some(TypeError { expected, got }) => Fault::Unexpected { expected, got },
        None => Fault::Other(message),
    };
    let error = InputError::new(fault).with_code(InputErrorCode::Syntax);
    let Some(span) = span else { return error };
    let (line, column) = line_and_column(text, span.start);
    let document = DeTable::parse(text).ok();
    // A key that the file lacks is of no table.
    let table = document.as_ref().filter(|_| !span.is_empty());
    let key = table.and_then(|table| key_at(table.get_ref(), span.start));
    error.at(key.unwrap_or_default()).on_line(line).in_column(column)
}

/// Returns the line and the column of an offset of a text, from 1.
fn line_and_column(text: &str, at: usize) -> (u64, u64) {
    let before = &text[..at.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    (line as u64, column as u64)
}

/// Returns the fault of a value of a wrong type. `cited` is the text at its place.
fn type_fault(message: &str, cited: &str) -> Option<TypeError> {
    let mut fault = match TypeError::parse(message) {
        Some(fault) => fault,
        // A name of a list that is not a text.
        None if message.starts_with("wanted ") => {
            TypeError { expected: "a text".to_owned(), got: cited.to_owned() }
        }
        None => return None,
    };
    // The decoder takes a date for a table.
    if fault.got == "a table" && cited.starts_with(|c: char| c.is_ascii_digit()) {
        fault.got = cited.to_owned();
    }
    Some(fault)
}

/// Returns the values of a message about a table of `tables.rs`, such as "expected a text, got 5".
/// Without an actual value it is `cited`, the text at the place of the error.
fn values_of(message: &str, cited: &str) -> Option<TypeError> {
    let expected = message.strip_prefix("expected ")?;
    let (expected, got) = match expected.split_once(", got ") {
        Some(values) => values,
        None => (expected, Some(cited).filter(|it| !it.is_empty() && !it.contains('\n'))?),
    };
    Some(TypeError { expected: expected.to_owned(), got: got.to_owned() })
}

/// Returns the line of a key, or of the innermost table on its path that the text has.
pub(super) fn line_of(text: &str, key: &str) -> Option<u64> {
    let document = DeTable::parse(text).ok()?;
    let (mut table, mut at) = (document.get_ref(), None);
    for part in key.split('.') {
        let (name, idx) = part.split_once('[').unwrap_or((part, ""));
        let Some((name, mut value)) = table.get_key_value(name) else { break };
        at = Some(name.span().start);
        if let (DeValue::Array(items), Ok(idx)) =
            (value.get_ref(), idx.trim_end_matches(']').parse::<usize>())
        {
            value = items.get(idx)?;
            at = Some(value.span().start);
        }
        let DeValue::Table(inner) = value.get_ref() else { break };
        table = inner;
    }
    at.map(|at| line_and_column(text, at).0)
}

/// Returns the fault of a former key, which names the present one.
fn former_key(name: &NameError) -> Option<TypeError> {
    let NameError::Unknown { name, names } = name else { return None };
    let is_former =
        |key: &&RenamedTableKey| key.old == name && names.iter().any(|known| known == key.new);
    let (expected, got) = RENAMED_NODE_KEYS.iter().find(is_former)?.expected_and_got();
    Some(TypeError { expected, got })
}

/// Returns the fault of a name that is unknown, or of a key that is missing.
fn name_fault(name: &NameError) -> TypeError {
    if let Some(renamed) = former_key(name) {
        return renamed;
    }
    let expected = name.expected(|key| format!("the key {key}"));
    TypeError { expected, got: name.got().to_owned() }
}

/// Returns the path of the innermost key whose name or value includes an offset of the text.
fn key_at(table: &DeTable<'_>, at: usize) -> Option<String> {
    table.iter().find_map(|(name, value)| {
        let path = |inner: Option<String>| match inner {
            Some(inner) => format!("{}.{inner}", name.get_ref()),
            None => name.get_ref().to_string(),
        };
        if name.span().contains(&at) {
            return Some(path(None));
        }
        match value.get_ref() {
            // The span of a table of a header is the header alone.
            DeValue::Table(inner) => key_at(inner, at).map(|inner| path(Some(inner))),
            DeValue::Array(items) => items.iter().enumerate().find_map(|(idx, item)| {
                let inner = match item.get_ref() {
                    DeValue::Table(inner) => key_at(inner, at).map(|inner| format!(".{inner}")),
                    _ => None,
                };
                let inner = inner.or_else(|| item.span().contains(&at).then(String::new))?;
                Some(format!("{}[{idx}]{inner}", name.get_ref()))
            }),
            _ => None,
        }
        .or_else(|| value.span().contains(&at).then(|| path(None)))
    })
}

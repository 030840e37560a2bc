//! Parsing of TOML texts: errors have the line, the column and the path of the key.
//!
//! One key of a table may select its form (`kind`, `pattern`). serde reads such a table only after
//! it has copied it, and the copy has no places. All errors in such a table would be at its first
//! line. [`parse`] therefore finds the key by trial: the key without which the text has another
//! error. It descends into that key's value until no part of it makes a difference. This costs a
//! read for each key on the path, and only texts with an error pay it.

use std::borrow::Cow;

use rampmeter_proto::keys::{RENAMED_PLAN_KEYS, RenamedTableKey, table_and_key};
use rampmeter_types::{NameError, TypeError};
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::place::{Path, PathElement, at_path, place, syntax_error};
use super::units::without_units;
use crate::error::{DecoderProblem, PlanError, Problem};

/// Keys that select the form of a table. Without one of them every table has another error.
const SELECTORS: [&str; 3] = ["kind", "pattern", "name"];

/// Reads a text, in which quantities may be texts with units. `origin` names the text in errors.
///
/// # Errors
/// The code is [`Syntax`](crate::PlanErrorCode::Syntax). The error has the line and column, and the
/// path of the key if there is one.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, PlanError> {
    let plain = without_units(text, origin)?;
    toml::from_str(&plain).map_err(|error| {
        let message = error.message().trim().replace('\n', " ");
        let root = toml::from_str(&plain).ok();
        match root.and_then(|root| find(&root, &message, |root| T::deserialize(root).err())) {
            Some(path) => {
                let value = toml::from_str(&plain).ok().and_then(|root| path.get(&root).cloned());
                let problem = renamed(&path).or_else(|| describe_value(&message, &value?));
                let problem = problem.unwrap_or_else(|| describe_type_error(&message));
                at_path(text, origin, &path, problem, is_unknown(&message))
            }
            // Numbers that no integer of TOML can hold, and errors of syntax.
            None => {
                let key = error.span().and_then(|span| key_at(&plain, span.start));
                let at = error.span().map(|span| same_line(&plain, text, span.start));
                let problem = describe_type_error(&message);
                let at = at.map(|at| place(text, at));
                syntax_error(origin, &key.unwrap_or_default().to_string(), problem, at)
            }
        }
    })
}

/// Reads a table that has no text, such as one of JSON.
///
/// # Errors
/// The path of the key and the fault.
pub(crate) fn of_table<T: DeserializeOwned>(table: &Table) -> Result<T, Problem> {
    T::deserialize(table.clone()).map_err(|error| {
        let message = error.message();
        match find(table, message, |root| T::deserialize(root).err()) {
            Some(path) if !path.is_empty() && !is_unknown(message) => {
                describe_type_error(message).at(None, &path.to_string())
            }
            _ => describe_type_error(message),
        }
    })
}

/// Returns the problem of a value whose types all have another form. The message of serde then has
/// only the expected ones.
fn describe_value(message: &str, value: &Value) -> Option<Problem> {
    let expected = message.strip_prefix("expected ")?.to_owned();
    let got = match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        value => value.to_string(),
    };
    Some(Problem::unexpected(expected, got))
}

/// Returns the path of the value at an offset of a text.
fn key_at(text: &str, at: usize) -> Option<Path> {
    let mut tables =
        vec![(Path::default(), DeValue::Table(DeTable::parse(text).ok()?.into_inner()))];
    while let Some((path, value)) = tables.pop() {
        let children: Vec<_> = match value {
            DeValue::Table(table) => {
                let key = |key: &Spanned<Cow<'_, str>>| PathElement::Key(key.get_ref().to_string());
                table.into_iter().map(|(name, value)| (key(&name), value)).collect()
            }
            DeValue::Array(items) => items
                .into_iter()
                .enumerate()
                .map(|(n, item)| (PathElement::Item(n), item))
                .collect(),
            _ => continue,
        };
        for (step, value) in children {
            let (path, span) = (path.join(step), value.span());
            let value = value.into_inner();
            let is_leaf = !matches!(value, DeValue::Table(_) | DeValue::Array(_));
            if is_leaf && span.contains(&at) {
                return Some(path);
            }
            tables.push((path, value));
        }
    }
    None
}

/// Returns true if a message of serde is about a key, not about its value.
pub(crate) fn is_unknown(message: &str) -> bool {
    message.starts_with("unknown field")
}

/// Returns the problem of a former key, which names the present one.
fn renamed(path: &Path) -> Option<Problem> {
    let path = path.to_string();
    let (table, name) = table_and_key(&path)?;
    let is_former = |key: &&RenamedTableKey| key.table == table && key.old == name;
    let (expected, got) = RENAMED_PLAN_KEYS.iter().find(is_former)?.expected_and_got();
    Some(Problem::unexpected(expected, got))
}

/// Returns a message of serde about a value of a wrong type in the words of other errors.
pub(crate) fn describe_type_error(message: &str) -> Problem {
    let message = message.trim().replace('\n', " ");
    match TypeError::parse(&message) {
        Some(TypeError { expected, got }) if expected == "variant identifier" => {
            Problem::unexpected("a text", got)
        }
        Some(TypeError { expected, got }) => Problem::unexpected(expected, got),
        None => match NameError::parse(&message) {
            Some(cause) => {
                let (before, after) = (String::new(), String::new());
                Problem::Decoder(Box::new(DecoderProblem { message, cause, before, after }))
            }
            None => Problem::Other(message),
        },
    }
}

/// Returns the offset in `text` of the place `at` of `plain`, which has the same lines. It is that
/// of the same column, or of the end of the line if that is shorter.
fn same_line(plain: &str, text: &str, at: usize) -> usize {
    let before = plain.get(..at).unwrap_or(plain);
    let line = before.matches('\n').count();
    let column = before.chars().rev().take_while(|&c| c != '\n').count();
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = text[start..].split('\n').next().unwrap_or_default();
    start + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at)
}

/// Returns the path of the value that `message` is about, if reading `root` has an error.
fn find(
    root: &Table,
    message: &str,
    read: impl Fn(Table) -> Option<toml::de::Error>,
) -> Option<Path> {
    let error = |root: &Table| read(root.clone()).map(|error| error.message().to_owned());
    let first = error(root)?;
    if let Some(field) = message.strip_prefix("missing field `") {
        let field = field.trim_end_matches('`');
        let unknown = format!("unknown field `{field}`");
        return without(root, field, |root| {
            error(root).is_none_or(|error| error != first && !error.starts_with(&unknown))
        });
    }
    let is_same = |root: &Table| error(root).as_ref() == Some(&first);
    let mut path = Path::default();
    while let Some(step) = next(root, &path, is_same) {
        path = path.join(step);
    }
    // A list of a wrong length is wrong as a whole.
    if message.starts_with("invalid length") && matches!(path.last(), Some(PathElement::Item(_))) {
        path.pop();
    }
    Some(path)
}

/// Returns the key or item of the value at `path` that the error is about.
fn next(root: &Table, path: &Path, is_same: impl Fn(&Table) -> bool) -> Option<PathElement> {
    if let Some(table) = path.table(root) {
        let is_selector = |key: &&String| SELECTORS.contains(&key.as_str());
        let (last, first): (Vec<_>, Vec<_>) = table.keys().partition(is_selector);
        let matters = |key: &&String| {
            let mut changed = root.clone();
            path.table_mut(&mut changed).is_some_and(|table| table.remove(*key).is_some())
                && !is_same(&changed)
        };
        return first.into_iter().chain(last).find(matters).cloned().map(PathElement::Key);
    }
    // Items are read in their order: the error is of the last of the shortest list that has it.
    let n_items = path.get(root)?.as_array()?.len();
    let is_same_with = |n: usize| {
        let mut changed = root.clone();
        if let Some(Value::Array(items)) = path.get_mut(&mut changed) {
            items.truncate(n);
        }
        is_same(&changed)
    };
    if is_same_with(0) {
        return None;
    }
    let (mut without, mut with) = (0, n_items);
    while with - without > 1 {
        let middle = without.midpoint(with);
        if is_same_with(middle) { with = middle } else { without = middle }
    }
    Some(PathElement::Item(with - 1))
}

/// Returns the path of the table that lacks `field`. With any value there the error is another. In
/// a table that may have the field, one of the values is accepted, and the error remains.
fn without(root: &Table, field: &str, differs: impl Fn(&Table) -> bool) -> Option<Path> {
    let mut tables = vec![Path::default()];
    let mut at = 0;
    while let Some(path) = tables.get(at).cloned() {
        at += 1;
        let table = path.table(root);
        if table.is_some_and(|table| !table.contains_key(field)) {
            let is_needed = |value: Value| {
                let mut changed = root.clone();
                if let Some(table) = path.table_mut(&mut changed) {
                    table.insert(field.to_owned(), value);
                }
                differs(&changed)
            };
            let (list, table) = (Value::Array(Vec::new()), Value::Table(Table::new()));
            let values = [1.into(), 0.5.into(), "x".into(), true.into(), list, table];
            if values.into_iter().all(is_needed) {
                return Some(path);
            }
        }
        let is_inner = |value: &Value| matches!(value, Value::Table(_) | Value::Array(_));
        let steps: Vec<PathElement> = match (table, path.get(root)) {
            (Some(table), _) => {
                let inner = table.iter().filter(|(_, value)| is_inner(value));
                inner.map(|(key, _)| PathElement::Key(key.clone())).collect()
            }
            (None, Some(Value::Array(items))) => (0..items.len().min(ITEMS_MAX))
                .filter(|&number| is_inner(&items[number]))
                .map(PathElement::Item)
                .collect(),
            _ => Vec::new(),
        };
        tables.extend(steps.into_iter().map(|step| path.join(step)));
    }
    None
}

/// Items of a list that are tried.
const ITEMS_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use crate::plan::Plan;

    const PLAN: &str = "seed = 1\n[topology]\nkind = \"star\"\nhosts = 4\n[transport]\nname = \
        \"ideal\"\n[workload]\npattern = \"mix\"\n[[workload.parts]]\npattern = \"all-to-all\"\n\
        sizes = \"imc10\"\nload = 0.5\n[[workload.parts]]\npattern = \"incast\"\nflow-bytes = 10\n\
        fan = 2\npeers = { first = 1, count = 2 }\n[[faults.outages]]\nfrom-us = 1\n";

    fn error(from: &str, to: &str) -> String {
        assert!(PLAN.contains(from), "{from}");
        super::parse::<Plan<toml::Table>>(&PLAN.replacen(from, to, 1), "").unwrap_err().to_string()
    }

    /// An error in a table with `kind` or `pattern` was at the first line of the table.
    #[test]
    fn errors_name_line_column_and_path_of_the_key() {
        let cases = [
            ("hosts = 4", "host = 4", "line 4, column 1: topology.host: unknown field `host`, "),
            (
                "hosts = 4",
                "hosts = \"4\"",
                "line 4, column 9: topology.hosts: expected a whole number, got \"4\" (at: ",
            ),
            ("hosts = 4", "", "line 2, column 2: topology: missing field `hosts` "),
            ("\"star\"", "\"sun\"", "line 3, column 8: topology.kind: unknown variant `sun`, "),
            (
                "load = 0.5",
                "load = []",
                "line 12, column 8: workload.parts[0].load: expected a number, got a list",
            ),
            ("flow-bytes", "flow-byte", "line 15, column 1: workload.parts[1].flow-byte: unknown"),
            ("first = 1", "from = 1", "line 17, column 11: workload.parts[1].peers"),
            ("from-us = 1", "form-us = 1", "line 19, column 1: faults.outages[0].form-us: unknown"),
            ("from-us = 1", "", "line 18, column 1: faults.outages[0]: missing field `from-us`"),
            (
                "seed = 1",
                "seed = true",
                "line 1, column 8: seed: expected a whole number, got true ",
            ),
            ("seed = 1", "seed = 0.5", "line 1, column 8: seed: expected a whole number, got 0.5 "),
            (
                "seed = 1",
                "seed = -3",
                "line 1, column 8: seed: expected a whole number from 0, got -3",
            ),
            (
                "fan = 2",
                "fan = \"2B\"",
                "line 16, column 7: workload.parts[1].fan: expected a whole",
            ),
            ("seed = 1", "sead = 1", "line 1, column 1: sead: unknown field `sead`, expected"),
            ("seed = 1", "seed = ", "line 1, column 8: "),
            (
                "hosts = 4",
                "hosts = 99999999999999999999",
                "line 4, column 9: topology.hosts: expected a whole number below 2^64, got 9999",
            ),
            (
                "load = 0.5",
                "load = 0.5\nhosts = [1, 1.5]",
                "line 13, column 13: workload.parts[0].hosts[1]: expected the number or the name \
                 of a host, got 1.5",
            ),
        ];
        for (from, to, message) in cases {
            let got = error(from, to);
            assert!(got.starts_with(message), "{from:?} to {to:?}: {got}");
        }
    }

    /// Units are read first, so that places are those of a shorter text.
    #[test]
    fn places_after_texts_with_units_are_those_of_the_text() {
        let text =
            "[run]\ndrain-us = \"0.000000001 s\" # \u{b5}\u{b5}\u{b5}\nx = 99999999999999999999\n";
        let error = super::parse::<Plan<toml::Value>>(text, "").unwrap_err().to_string();
        assert!(error.starts_with("line 3, column "), "{error}");
    }

    #[test]
    fn paths_have_the_line_of_their_nearest_table() {
        let line = |path| crate::text::place::line_of(PLAN, path);
        assert_eq!(line("topology.hosts"), Some(4));
        assert_eq!(line("topology.switch-ns"), Some(2));
        assert_eq!(line("workload.parts[1].flow-bytes"), Some(15));
        assert_eq!(line("run.drain-us"), None);
    }
}

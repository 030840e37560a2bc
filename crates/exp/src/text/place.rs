//! Paths to values of a TOML text, and their places in it.

use std::fmt;

use toml::de::{DeArray, DeTable, DeValue};
use toml::{Table, Value};

use crate::error::{PlanError, PlanErrorCode, Problem, SourceLocation};

/// A part of a path to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathElement {
    Key(String),
    Item(usize),
}

/// The place of a value in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Path(Vec<PathElement>);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                PathElement::Key(key) if at == 0 => f.write_str(key)?,
                PathElement::Key(key) => write!(f, ".{key}")?,
                PathElement::Item(number) => write!(f, "[{number}]")?,
            }
        }
        Ok(())
    }
}

impl Path {
    /// Reads a path such as `workload.parts[1].load`.
    fn parse(text: &str) -> Self {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let mut pieces = part.split('[');
            steps.extend(pieces.next().map(|key| PathElement::Key(key.to_owned())));
            let number =
                |piece: &str| piece.trim_end_matches(']').parse().ok().map(PathElement::Item);
            steps.extend(pieces.filter_map(number));
        }
        Self(steps)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn last(&self) -> Option<&PathElement> {
        self.0.last()
    }

    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    pub(super) fn join(&self, step: PathElement) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// Returns the value at the path.
    pub(super) fn get<'a>(&self, root: &'a Table) -> Option<&'a Value> {
        let (first, rest) = self.0.split_first()?;
        let PathElement::Key(key) = first else { return None };
        rest.iter().try_fold(root.get(key)?, |value, step| match step {
            PathElement::Key(key) => value.get(key),
            PathElement::Item(number) => value.get(number),
        })
    }

    /// Returns the value at the path, for changes.
    pub(super) fn get_mut<'a>(&self, root: &'a mut Table) -> Option<&'a mut Value> {
        let (first, rest) = self.0.split_first()?;
        let PathElement::Key(key) = first else { return None };
        rest.iter().try_fold(root.get_mut(key)?, |value, step| match step {
            PathElement::Key(key) => value.get_mut(key),
            PathElement::Item(number) => value.get_mut(number),
        })
    }

    pub(super) fn table<'a>(&self, root: &'a Table) -> Option<&'a Table> {
        if self.0.is_empty() { Some(root) } else { self.get(root)?.as_table() }
    }

    pub(super) fn table_mut<'a>(&self, root: &'a mut Table) -> Option<&'a mut Table> {
        if self.0.is_empty() { Some(root) } else { self.get_mut(root)?.as_table_mut() }
    }

    /// Returns the offset in `text` of the value, or of its key if that is wanted or the value is
    /// a table.
    fn offset(&self, text: &str, of_key: bool) -> Option<usize> {
        let document = DeTable::parse(text).ok()?;
        let (mut table, mut array) = (Some(document.get_ref()), None::<&DeArray<'_>>);
        let mut at = 0;
        for step in &self.0 {
            let value = match step {
                PathElement::Key(key) => {
                    let (name, value) = table?.iter().find(|(name, _)| name.get_ref() == key)?;
                    let has_key = of_key || matches!(value.get_ref(), DeValue::Table(_));
                    at = if has_key { name.span().start } else { value.span().start };
                    value
                }
                PathElement::Item(number) => {
                    let value = array?.get(*number)?;
                    at = value.span().start;
                    value
                }
            };
            (table, array) = (value.get_ref().as_table(), value.get_ref().as_array());
        }
        Some(at)
    }
}

impl PlanError {
    /// Returns the error with the line of its key in `text`, from which the plan was read.
    #[must_use]
    pub fn in_text(mut self, text: &str) -> Self {
        if self.place.is_none() {
            let line = line_of(text, &self.key);
            self.place = line.map(|line| Box::new(SourceLocation { line, column: None }));
        }
        self
    }
}

/// Returns the line of the key that a path such as `workload.parts[1].load` names, or of the table
/// that is nearest to it.
pub(super) fn line_of(text: &str, path: &str) -> Option<usize> {
    let Path(mut steps) = Path::parse(path);
    while !steps.is_empty() {
        if let Some(at) = Path(steps.clone()).offset(text, true) {
            return Some(text[..at].matches('\n').count() + 1);
        }
        steps.pop();
    }
    None
}

/// Returns the error of the value at `path`, or of the key itself, with its line and column.
pub(super) fn at_path(
    text: &str,
    origin: &str,
    path: &Path,
    problem: Problem,
    of_key: bool,
) -> PlanError {
    let at = path.offset(text, of_key);
    syntax_error(origin, &path.to_string(), problem, at.map(|at| place(text, at)))
}

pub(super) fn syntax_error(
    origin: &str,
    key: &str,
    problem: Problem,
    place: Option<SourceLocation>,
) -> PlanError {
    let place = place.map(Box::new);
    PlanError { code: PlanErrorCode::Syntax, place, ..PlanError::value(origin, key, problem) }
}

/// Returns the place of an offset in `text`.
pub(super) fn place(text: &str, at: usize) -> SourceLocation {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |i| i + 1) + 1;
    let source = text.lines().nth(line - 1).unwrap_or("").trim();
    SourceLocation { line, column: Some((column, source.to_owned())) }
}

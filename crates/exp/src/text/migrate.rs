//! Texts of earlier versions, with the present names and units of keys.
//!
//! Keys are found in the document, so that comments, texts in quotes and the order stay as they
//! are, and each key is one of its own table, however it is written.

use std::ops::Range;

use rampmeter_proto::keys::{
    RENAMED_KEYS, RENAMED_NODE_KEYS, RENAMED_PLAN_KEYS, RenamedKey, RenamedTableKey, table_and_key,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::place::{Path, PathElement, at_path, place, syntax_error};
use crate::error::{PlanError, Problem};

/// A key that was renamed in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenamedSetting {
    /// Line of the key, from 1.
    pub line: usize,
    /// The former key, and its value if that is a number.
    pub old: String,
    /// The present key, and its value if that is a number.
    pub new: String,
}

/// Returns a plan, a sweep or a configuration of `rampd` with the present names and units of keys,
/// and the keys that were renamed. Values with a unit, such as `"1.5 us"`, are kept, and so is all
/// else. `origin` names the text in errors.
///
/// # Errors
/// The text is not TOML, or a table has a former key and the present one.
pub fn migrate(text: &str, origin: &str) -> Result<(String, Vec<RenamedSetting>), PlanError> {
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map(|span| place(text, span.start));
        syntax_error(origin, "", Problem::Other(error.message().trim().replace('\n', " ")), at)
    })?;
    let root = document.get_ref();
    let is_node = ["node", "peer"].iter().any(|table| root.contains_key(*table));
    let former = if is_node { &RENAMED_NODE_KEYS[..] } else { &RENAMED_PLAN_KEYS[..] };
    let transports = transport_names(root);
    let mut migration =
        Migration { text, former, transports, edits: Vec::new(), settings: Vec::new() };
    migration
        .table(root, &Path::default())
        .map_err(|(path, problem)| at_path(text, origin, &path, problem, true))?;
    let Migration { mut edits, mut settings, .. } = migration;
    edits.sort_unstable_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut new = text.to_owned();
    for (span, replacement) in edits {
        new.replace_range(span, &replacement);
    }
    settings.sort_by_key(|setting| setting.line);
    Ok((new, settings))
}

/// Returns the names of the transports of a plan, or of those that its sweep has instead.
fn transport_names(root: &DeTable<'_>) -> Vec<String> {
    let sweep = root.get("sweep").and_then(|sweep| sweep.get_ref().get("transports"));
    let mut names = Vec::new();
    if let Some(transports) = sweep.or_else(|| root.get("transport")) {
        add_names(transports.get_ref(), &mut names);
    }
    names
}

/// Adds the names of a transport's table, a list of them, or a text such as `hpcc:paper,pfabric`.
fn add_names(transports: &DeValue<'_>, names: &mut Vec<String>) {
    match transports {
        DeValue::Array(items) => items.iter().for_each(|item| add_names(item.get_ref(), names)),
        DeValue::Table(table) => names.extend(name_of(table).map(str::to_owned)),
        DeValue::String(text) => names.extend(names_in(text).map(|(name, _)| name.to_owned())),
        _ => {}
    }
}

/// Returns the names of transports in a text such as `hpcc:paper,pfabric`, and their offsets.
fn names_in(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut at = 0;
    let mut after_name = false;
    text.split_inclusive([',', ':']).filter_map(move |piece| {
        let (start, is_preset) = (at, after_name);
        at += piece.len();
        after_name = piece.ends_with(':');
        let name = piece.trim_end_matches([',', ':']).trim();
        (!is_preset && !name.contains('=') && !name.is_empty()).then_some((name, start))
    })
}

/// Returns the name of the transport that a table describes, or a point of a sweep.
fn name_of<'a>(table: &'a DeTable<'_>) -> Option<&'a str> {
    ["name", "transport.name"].iter().find_map(|key| table.get(*key)?.get_ref().as_str())
}

struct Migration<'a> {
    text: &'a str,
    /// The renamed keys of this kind of text outside `transport`.
    former: &'static [RenamedTableKey],
    /// The names of all transports of the text.
    transports: Vec<String>,
    edits: Vec<(Range<usize>, String)>,
    settings: Vec<RenamedSetting>,
}

impl Migration<'_> {
    fn table(&mut self, table: &DeTable<'_>, path: &Path) -> Result<(), (Path, Problem)> {
        let mut renamed_keys: Vec<(String, &str)> = Vec::new();
        for (key, value) in table {
            let name: &str = key.get_ref();
            let path_of_key = path.join(PathElement::Key(name.to_owned()));
            // Tables of Python transports are their authors'.
            if name == "parameters" {
                continue;
            }
            let renamed = self.renamed(&path_of_key.to_string(), name_of(table));
            let Some((old, new, parts)) = renamed else {
                if path_of_key.to_string() == "sweep.transports" {
                    self.transports(value);
                }
                self.values(value, &path_of_key)?;
                continue;
            };
            let before = name.strip_suffix(old).unwrap_or_default();
            let present = format!("{before}{new}");
            let former = renamed_keys.iter().find(|(of_other, _)| *of_other == present);
            let other = former.map(|(_, other)| *other);
            if let Some(other) = other.or_else(|| table.get_key_value(&*present).map(|_| &*present))
            {
                let expected = format!("one of the keys `{name}` and `{other}`");
                return Err((path_of_key, Problem::Unexpected { expected, got: "both".into() }));
            }
            renamed_keys.push((present.clone(), name));
            if parts > 1 {
                self.divide(value, parts);
            }
            self.rename(key.span(), (old, new), &present, value.span());
        }
        Ok(())
    }

    fn values(&mut self, value: &Spanned<DeValue<'_>>, path: &Path) -> Result<(), (Path, Problem)> {
        match value.get_ref() {
            DeValue::Table(table) => self.table(table, path),
            DeValue::Array(items) => items.iter().enumerate().try_for_each(|(number, item)| {
                self.values(item, &path.join(PathElement::Item(number)))
            }),
            _ => Ok(()),
        }
    }

    /// Returns the former name, the present name and the divisor of values of a key. The last part
    /// of its `path` may be a path itself, as in the grid of a sweep. Without the name of its
    /// transport, the key is one of all transports of the text.
    fn renamed(
        &self,
        path: &str,
        transport: Option<&str>,
    ) -> Option<(&'static str, &'static str, u32)> {
        let (table, name) = table_and_key(path)?;
        if matches!(table, "transport" | "transports" | "best-effort") {
            let had_it = |key: &RenamedKey| match transport {
                Some(transport) => key.is_of(transport),
                // Without any transport a key that only some had may be another one.
                None if self.transports.is_empty() => key.transports.is_empty(),
                None => self.transports.iter().all(|name| key.is_of(name)),
            };
            let of_transport = |key: &&RenamedKey| key.old == name && had_it(key);
            let &RenamedKey { old, new, parts, .. } = RENAMED_KEYS.iter().find(of_transport)?;
            return Some((old, new, parts));
        }
        let of_table = |key: &&RenamedTableKey| key.table == table && key.old == name;
        self.former.iter().find(of_table).map(|key| (key.old, key.new, 1))
    }

    /// Renames keys in texts such as `hpcc:paper,flows=50`.
    fn transports(&mut self, value: &Spanned<DeValue<'_>>) {
        let text = match value.get_ref() {
            DeValue::Array(items) => return items.iter().for_each(|item| self.transports(item)),
            DeValue::String(text) => text,
            _ => return,
        };
        let (mut migrated, mut at) = (String::new(), 0);
        for piece in text.split_inclusive([',', ':']) {
            let end = piece.len() - usize::from(piece.ends_with([',', ':']));
            let transport = names_in(text).take_while(|&(_, start)| start <= at).last();
            let transport = transport.map(|(name, _)| name);
            at += piece.len();
            let renamed = piece[..end].split_once('=').and_then(|(key, number)| {
                let (indent, key) = key.split_at(key.len() - key.trim_start().len());
                let (key, space) = key.split_at(key.trim_end().len());
                let path = match key.starts_with("fabric.") {
                    true => key.to_owned(),
                    false => format!("transport.{key}"),
                };
                let (old, new, parts) = self.renamed(&path, transport)?;
                let number = match parts {
                    1 => number.to_owned(),
                    parts => number.replace(number.trim(), &divided(number.trim(), parts)?),
                };
                let line = self.text[..value.span().start].matches('\n').count() + 1;
                let (old, key) = (old.to_owned(), key.strip_suffix(old)?);
                self.settings.push(RenamedSetting { line, old, new: new.to_owned() });
                Some(format!("{indent}{key}{new}{space}={number}"))
            });
            migrated += renamed.as_deref().unwrap_or(&piece[..end]);
            migrated += &piece[end..];
        }
        let raw = &self.text[value.span()];
        // Texts with escapes stay as they are.
        if *text != migrated && raw.contains(&**text) {
            self.edits.push((value.span(), raw.replacen(&**text, &migrated, 1)));
        }
    }

    /// Divides all numbers of a value, those of a range in quotes too.
    fn divide(&mut self, value: &Spanned<DeValue<'_>>, parts: u32) {
        let divided = match value.get_ref() {
            DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
                .ok()
                .and_then(|mantissa| decimal(mantissa, 0, parts)),
            DeValue::Float(number) => divided(number.as_str(), parts),
            DeValue::String(text) => {
                divided_numbers(text, parts).map(|numbers| format!("\"{numbers}\""))
            }
            DeValue::Array(items) => {
                items.iter().for_each(|item| self.divide(item, parts));
                None
            }
            DeValue::Table(table) => {
                table.iter().for_each(|(_, value)| self.divide(value, parts));
                None
            }
            DeValue::Boolean(_) | DeValue::Datetime(_) => None,
        };
        self.edits.extend(divided.map(|divided| (value.span(), divided)));
    }

    /// Renames the key at `key`, whose value is at `value`, so that it is `present`.
    fn rename(
        &mut self,
        key: Range<usize>,
        (old, new): (&str, &str),
        present: &str,
        value: Range<usize>,
    ) {
        let number = self.edits.last().filter(|(at, _)| *at == value);
        let (of_old, of_new) = number.map_or_else(Default::default, |(at, number)| {
            (format!(" = {}", &self.text[at.clone()]), format!(" = {number}"))
        });
        self.settings.push(RenamedSetting {
            line: self.text[..key.start].matches('\n').count() + 1,
            old: format!("{old}{of_old}"),
            new: format!("{new}{of_new}"),
        });
        let raw = self.text[key.clone()].rsplit_once(old);
        let raw = raw.map(|(before, after)| format!("{before}{new}{after}"));
        self.edits.push((key, raw.unwrap_or_else(|| format!("\"{present}\""))));
    }
}

/// Returns a text in the syntax of sweeps with its numbers divided: a list of numbers and ranges
/// (`1000..3000:500`, `1..64*2`), or a distribution (`uniform(1, 2)`). Returns `None` for any other
/// text.
fn divided_numbers(text: &str, parts: u32) -> Option<String> {
    let text = text.trim();
    for kind in ["uniform", "log-uniform"] {
        let ends = text.strip_prefix(kind).and_then(|rest| rest.strip_prefix('('));
        if let Some((low, high)) = ends.and_then(|ends| ends.strip_suffix(')')?.split_once(',')) {
            let [low, high] = [low, high].map(|end| divided(end.trim(), parts));
            return Some(format!("{kind}({}, {})", low?, high?));
        }
    }
    let items: Option<Vec<String>> =
        text.split(',').map(|item| divided_item(item.trim(), parts)).collect();
    Some(items?.join(","))
}

/// Returns a number or a range with its numbers divided. Factors of ranges stay as they are, and a
/// range of integers has its step of one.
fn divided_item(item: &str, parts: u32) -> Option<String> {
    let Some((first, rest)) = item.split_once("..") else { return divided(item, parts) };
    let first = divided(first.trim(), parts)?;
    if let Some((last, factor)) = rest.split_once('*') {
        return Some(format!("{first}..{}*{factor}", divided(last.trim(), parts)?));
    }
    let (last, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let [last, step] = [last, step].map(|number| divided(number.trim(), parts));
    Some(format!("{first}..{}:{}", last?, step?))
}

/// Returns a decimal number, divided exactly.
fn divided(number: &str, parts: u32) -> Option<String> {
    let number = number.replace('_', "");
    let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((&number, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let exponent = exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?;
    decimal(format!("{whole}{fraction}").parse().ok()?, exponent, parts)
}

/// Returns `mantissa` times ten to the `exponent`, divided by `parts`, as a decimal number. `None`
/// if it has more than 40 digits, or `parts` divides no power of ten below 10^4.
fn decimal(mantissa: i128, exponent: i32, parts: u32) -> Option<String> {
    let shift = (0..4).find(|&shift| 10_u32.pow(shift) % parts == 0)?;
    let mut mantissa = mantissa.checked_mul((10_u32.pow(shift) / parts).into())?;
    let mut exponent = exponent.checked_sub(i32::try_from(shift).ok()?)?;
    while exponent < 0 && mantissa % 10 == 0 {
        if mantissa == 0 {
            return Some("0".to_owned());
        }
        (mantissa, exponent) = (mantissa / 10, exponent + 1);
    }
    if !(-40..=40).contains(&exponent) {
        return None;
    }
    let sign = if mantissa < 0 { "-" } else { "" };
    let digits = mantissa.unsigned_abs().to_string();
    let zeros = usize::try_from(exponent).unwrap_or(0);
    let n_fraction = usize::try_from(-exponent).unwrap_or(0);
    if n_fraction == 0 {
        return Some(format!("{sign}{digits}{}", "0".repeat(zeros)));
    }
    let digits = format!("{digits:0>width$}", width = n_fraction + 1);
    let (whole, fraction) = digits.split_at(digits.len() - n_fraction);
    Some(format!("{sign}{whole}.{fraction}"))
}

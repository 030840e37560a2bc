//! Parameters of a transport, and the description of each.

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// A parameter that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: expected {expected}, got {got}")]
pub struct BadKey {
    /// The parameter, as plans spell it.
    pub key: String,
    /// Values that are allowed.
    pub expected: String,
    /// Value as given, in its original notation if that is known.
    pub got: String,
    /// Names that are allowed, if the value must be one of a list.
    pub choice: Option<Box<Choice>>,
}

/// A name that is none of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Names that are allowed.
    pub names: Vec<String>,
    /// Name as given, without quotes.
    pub name: String,
}

impl BadKey {
    /// Returns the error of `key` with value `got`.
    pub fn new(key: &str, expected: impl Into<String>, got: impl ToString) -> Self {
        Self { key: key.to_owned(), expected: expected.into(), got: got.to_string(), choice: None }
    }

    /// Returns the error of `key` with the value `got`, which has `name`, if it must be one of
    /// `names`.
    pub fn unlisted(key: &str, names: &[&str], name: &str, got: impl ToString) -> Self {
        let bad = Self::new(key, format!("one of {}", names.join(", ")), got);
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Self { choice: Some(Box::new(Choice { names, name: name.to_owned() })), ..bad }
    }
}

/// The name of a preset, and its constructor.
pub type Preset<K> = (&'static str, fn() -> K);

/// The network of the simulator that a preset is transcribed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The preset.
    pub preset: &'static str,
    /// Rate of its hosts, in Gbit/s.
    pub gbps: u64,
    /// Payload bytes of its full packets, if constants depend on them.
    pub payload: Option<u64>,
    /// Bytes in flight of a pair of its hosts, if constants depend on them.
    pub window: Option<u64>,
}

/// The parameters of a transport. The [`Default`] is the first preset.
pub trait Keys:
    Clone + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// The presets by name, the default first.
    const PRESETS: &'static [Preset<Self>];
    /// Networks of presets that have values or rules of another simulator.
    const SETTINGS: &'static [Setting] = &[];
}

/// Description of a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyInfo {
    /// Name in plans.
    pub name: String,
    /// Documentation of the key.
    pub doc: String,
    /// Kind of its values.
    pub kind: KeyKind,
    /// True if the value is derived from the network if it is left out.
    pub derived: bool,
}

/// The values of a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum KeyKind {
    /// Whole numbers.
    Integer {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// Numbers.
    Number {
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// `true` or `false`.
    Bool,
    /// Whole numbers in ascending order.
    List {
        /// Number of elements.
        length: usize,
        /// The smallest of each.
        min: u64,
        /// The largest of each.
        max: u64,
    },
    /// A text.
    Text,
    /// A table of anything.
    Table,
    /// One of several names.
    Choice {
        /// Each name with its documentation.
        names: Vec<(String, String)>,
    },
}

impl KeyKind {
    /// Returns true if `value` is one of these.
    pub fn admits(&self, value: &Value) -> bool {
        match self {
            Self::Integer { min, max } => {
                value.as_u64().is_some_and(|n| (*min..=*max).contains(&n))
            }
            Self::Number { min, max } => value.as_f64().is_some_and(|x| (*min..=*max).contains(&x)),
            Self::Bool => value.is_boolean(),
            Self::List { length, min, max } => {
                let items: Option<Vec<u64>> =
                    value.as_array().and_then(|items| items.iter().map(Value::as_u64).collect());
                items.is_some_and(|items| {
                    let is_each = items.iter().all(|item| (*min..=*max).contains(item));
                    items.len() == *length && is_each && items.is_sorted()
                })
            }
            Self::Text => value.is_string(),
            Self::Table => value.is_object(),
            Self::Choice { names } => {
                value.as_str().is_some_and(|text| names.iter().any(|(name, _)| name == text))
            }
        }
    }
}

impl std::fmt::Display for KeyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer { min, max } if max - min == 1 => write!(f, "{min} or {max}"),
            Self::Integer { min, max } => write!(f, "{min} to {max}"),
            Self::Number { min, max } => write!(f, "a number from {min} to {max}"),
            Self::Bool => f.write_str("true or false"),
            Self::Text => f.write_str("a text"),
            Self::Table => f.write_str("a table"),
            Self::List { length, min, max } => {
                write!(f, "{length} whole numbers from {min} to {max} that ascend")
            }
            Self::Choice { names } => {
                let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
                match names.split_last() {
                    Some((last, rest)) if !rest.is_empty() => {
                        write!(f, "{} or {last}", rest.join(", "))
                    }
                    _ => f.write_str(&names.join("")),
                }
            }
        }
    }
}

/// Returns the keys of `K` in the order of its fields.
pub fn key_infos<K: Keys>() -> Vec<KeyInfo> {
    let schema = SchemaGenerator::default().into_root_schema_for::<K>().to_value();
    let definitions = schema.get("$defs").cloned().unwrap_or_default();
    let order = field_order::<K>();
    // A structure that wraps another refers to it.
    let inner = resolve_reference(&schema, &definitions).unwrap_or(&schema);
    let properties = inner.get("properties").and_then(Value::as_object).cloned();
    let mut infos: Vec<KeyInfo> = properties
        .unwrap_or_default()
        .iter()
        .map(|(name, property)| describe_key(name, property, &definitions))
        .collect();
    infos.sort_by_key(|info| order.iter().position(|name| *name == info.name));
    infos
}

/// Returns the names of the fields that a preset sets, in their order; others follow.
fn field_order<K: Keys>() -> Vec<String> {
    let Ok(text) = serde_json::to_string(&K::default()) else { return Vec::new() };
    let mut names: Vec<(usize, String)> = Vec::new();
    if let Ok(Value::Object(map)) = serde_json::from_str(&text) {
        for name in map.keys() {
            let at = text.find(&format!("\"{name}\":")).unwrap_or(usize::MAX);
            names.push((at, name.clone()));
        }
    }
    names.sort();
    names.into_iter().map(|(_, name)| name).collect()
}

fn describe_key(name: &str, property: &Value, definitions: &Value) -> KeyInfo {
    let described = |value: &Value| {
        let text = value.get("description").and_then(Value::as_str).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let is_null = |value: &Value| value.get("type").and_then(Value::as_str) == Some("null");
    let any_of = property.get("anyOf").and_then(Value::as_array).cloned().unwrap_or_default();
    let derived =
        any_of.iter().any(is_null) || value_types(property).contains(&Value::from("null"));
    let inner = any_of.iter().find(|value| !is_null(value)).unwrap_or(property);
    let kind = match resolve_reference(inner, definitions) {
        Some(definition) => KeyKind::Choice { names: choices(definition, described) },
        None => plain_kind(inner),
    };
    KeyInfo { name: name.to_owned(), doc: described(property), kind, derived }
}

/// Returns the definition that a schema refers to, if it does.
fn resolve_reference<'a>(schema: &Value, definitions: &'a Value) -> Option<&'a Value> {
    let reference = schema.get("$ref").and_then(Value::as_str)?;
    definitions.get(reference.rsplit('/').next()?)
}

/// Returns the types of a value of this schema.
fn value_types(value: &Value) -> Vec<Value> {
    match value.get("type") {
        Some(Value::Array(types)) => types.clone(),
        Some(one) => vec![one.clone()],
        None => Vec::new(),
    }
}

/// Returns the kind of a type that is not an enumeration.
fn plain_kind(schema: &Value) -> KeyKind {
    let bound = |name: &str, or: f64| schema.get(name).and_then(Value::as_f64).unwrap_or(or);
    let word =
        |schema: &Value, name: &str, or| schema.get(name).and_then(Value::as_u64).unwrap_or(or);
    let (all, items) = (value_types(schema), schema.get("items"));
    if all.contains(&Value::from("boolean")) {
        KeyKind::Bool
    } else if all.contains(&Value::from("string")) {
        KeyKind::Text
    } else if all.contains(&Value::from("object")) {
        KeyKind::Table
    } else if all.contains(&Value::from("integer")) {
        KeyKind::Integer { min: word(schema, "minimum", 0), max: word(schema, "maximum", u64::MAX) }
    } else if let Some(items) = items.filter(|_| all.contains(&Value::from("array"))) {
        KeyKind::List {
            length: word(schema, "minItems", 0) as usize,
            min: word(items, "minimum", 0),
            max: word(items, "maximum", u64::MAX),
        }
    } else {
        KeyKind::Number { min: bound("minimum", f64::MIN), max: bound("maximum", f64::MAX) }
    }
}

/// Returns the names of an enumeration, with or without documentation.
fn choices(definition: &Value, described: impl Fn(&Value) -> String) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(names) = definition.get("enum").and_then(Value::as_array) {
        return names.iter().map(|name| (text(name), String::new())).collect();
    }
    let variants = definition.get("oneOf").and_then(Value::as_array).cloned().unwrap_or_default();
    let name = |variant: &Value| variant.get("const").map(text).unwrap_or_default();
    variants.iter().map(|variant| (name(variant), described(variant))).collect()
}

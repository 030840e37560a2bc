//! JSON of users' files: objects have each key once, and errors have a position.

use std::collections::HashSet;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};
use serde_json::error::Category;

/// Reads a JSON text.
///
/// # Errors
/// The position and the problem of a text that is not JSON, is of another type, or has a key twice
/// in an object.
pub fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str::<UniqueKeys>(text)
        .and_then(|_| serde_json::from_str(text))
        .map_err(|error| json_problem(&error))
}

/// A JSON value whose objects have each key once. Types of serde keep the last value of a key.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format_args!(
                    "expected the key `{key}` once, got it twice"
                )));
            }
            entries.next_value::<Self>()?;
            keys.insert(key);
        }
        Ok(self)
    }
}

/// Returns the place and the problem of a text that cannot be read as JSON.
fn json_problem(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let problem = match error.classify() {
        Category::Eof => "expected more JSON, got the end of the text",
        _ => message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message),
    };
    format!("line {line}, column {column}: {problem}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_error_has_its_position_once() {
        for (text, expected) in [
            ("{\"a\": [1,\n", "line 2, column 0: expected more JSON, got the end of the text"),
            ("{\"a\": 1,}", "line 1, column 9: trailing comma"),
            ("{\"a\" 1}", "line 1, column 6: expected `:`"),
            (
                "{\"a\": [{\"b\": 1,\n\"b\": null}]}",
                "line 2, column 3: expected the key `b` once, got it twice",
            ),
        ] {
            assert_eq!(parse_json::<serde_json::Value>(text).unwrap_err(), expected);
        }
    }
}

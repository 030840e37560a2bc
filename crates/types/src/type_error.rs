//! Errors of serde about types and names, and of the system, in the words of a user.

use std::fmt;

/// Begins the number of an error of the operating system, which the standard library appends.
const OS_ERROR: &str = " (os error ";

/// Returns the text of an error without the number of the operating system's error.
pub fn without_os_error(error: impl fmt::Display) -> String {
    let text = error.to_string();
    match text.split_once(OS_ERROR) {
        Some((before, rest)) => {
            format!("{before}{}", rest.split_once(')').map_or("", |(_, after)| after))
        }
        None => text,
    }
}

/// A value of another type or range than its key has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// The values that the key may have.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

impl TypeError {
    /// Reads a message of serde, such as ``invalid value: integer `-1`, expected u32``. Returns
    /// `None` for messages that are not about a type, range or length.
    pub fn parse(message: &str) -> Option<Self> {
        if let Some((got, expected)) =
            message.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
        {
            let expected = match expected {
                "fewer elements in array" => "a list of fewer values".to_owned(),
                expected => list_of(expected).unwrap_or_else(|| expected.to_owned()),
            };
            return Some(Self { expected, got: got.to_owned() });
        }
        let is_of_range = message.starts_with("invalid value: ");
        let rest =
            ["invalid type: ", "invalid value: "].iter().find_map(|it| message.strip_prefix(it));
        let (got, expected) = rest?.split_once(", expected ")?;
        let beyond = ["` as i128", "` as u128"].iter().find_map(|kind| got.strip_suffix(kind));
        if let Some(number) = beyond.and_then(|got| got.strip_prefix("integer `")) {
            let expected = "a whole number below 2^64".to_owned();
            return Some(Self { expected, got: number.to_owned() });
        }
        if let Some(expected) = list_of(expected) {
            let got = got.strip_prefix("string ").unwrap_or(got).to_owned();
            return Some(Self { expected, got });
        }
        let expected = match (expected, is_of_range) {
            ("u64" | "usize" | "u32" | "u16" | "u8", false) => "a whole number",
            ("u64" | "usize", true) => "a whole number from 0",
            ("u32", true) => "a whole number from 0 to 4294967295",
            ("u16", true) => "a whole number from 0 to 65535",
            ("u8", true) => "a whole number from 0 to 255",
            ("i64" | "i32", _) => "a whole number",
            ("f64" | "f32", _) => "a number",
            ("a string" | "a borrowed string" | "string or map" | "path string", _) => "a text",
            ("a boolean", _) => "true or false",
            ("a sequence", _) => "a list",
            ("a map", _) => "a table",
            ("map with a single key", _) => "a text, or a table with one key",
            (other, _) if other.starts_with("struct ") || other.contains("enum ") => "a table",
            (other, _) => other,
        };
        let number = ["floating point `", "integer `", "boolean `"].iter().find_map(|kind| {
            let number = got.strip_prefix(kind)?;
            number.strip_suffix('`')
        });
        let got = match got {
            "sequence" => "a list",
            "map" => "a table",
            other => number.or_else(|| other.strip_prefix("string ")).unwrap_or(other),
        };
        Some(Self { expected: expected.to_owned(), got: got.to_owned() })
    }
}

/// A name that is not allowed, or a key that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// A name that is not one of `names`. Without names, none is allowed.
    Unknown {
        /// The actual name.
        name: String,
        /// The names that are allowed.
        names: Vec<String>,
    },
    /// A key that its table lacks.
    Missing {
        /// The key.
        key: String,
    },
}

impl NameError {
    /// Reads a message of serde, such as ``unknown field `a`, expected `b` or `c` ``. Returns
    /// `None` for messages that are not about a name.
    pub fn parse(message: &str) -> Option<Self> {
        if let Some(key) = message.strip_prefix("missing field `") {
            return Some(Self::Missing { key: key.strip_suffix('`')?.to_owned() });
        }
        let rest = ["unknown field `", "unknown variant `"]
            .iter()
            .find_map(|it| message.strip_prefix(it))?;
        let (name, rest) = rest.split_once("`, ")?;
        // Every second part between quotes is a name.
        let names = rest.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some(Self::Unknown { name: name.to_owned(), names })
    }

    /// Returns the allowed values. `missing` is that of a key that is missing.
    pub fn expected(&self, missing: impl FnOnce(&str) -> String) -> String {
        match self {
            Self::Unknown { names, .. } if names.is_empty() => "no key".to_owned(),
            Self::Unknown { names, .. } => format!("one of {}", names.join(", ")),
            Self::Missing { key } => missing(key),
        }
    }

    /// Returns the actual value.
    pub fn got(&self) -> &str {
        match self {
            Self::Unknown { name, .. } if name.is_empty() => "an empty name",
            Self::Unknown { name, .. } => name,
            Self::Missing { .. } => "none",
        }
    }
}

/// Returns the words for an array of a length, as serde names it.
fn list_of(expected: &str) -> Option<String> {
    let n = expected.strip_prefix("an array of length ")?;
    Some(format!("a list of {n} values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_serde_are_read() {
        let cases = [
            (
                "invalid value: integer `-1`, expected u32",
                ("a whole number from 0 to 4294967295", "-1"),
            ),
            ("invalid type: string \"fast\", expected f64", ("a number", "\"fast\"")),
            ("invalid type: map, expected a string", ("a text", "a table")),
            (
                "invalid type: map, expected map with a single key",
                ("a text, or a table with one key", "a table"),
            ),
            (
                "invalid type: integer `99999999999999999999` as i128, expected any value",
                ("a whole number below 2^64", "99999999999999999999"),
            ),
            ("invalid length 3, expected an array of length 2", ("a list of 2 values", "3")),
            ("invalid length 3, expected fewer elements in array", ("a list of fewer values", "3")),
            (
                "invalid type: string \"a-b\", expected an array of length 2",
                ("a list of 2 values", "\"a-b\""),
            ),
        ];
        for (message, (expected, got)) in cases {
            let (expected, got) = (expected.to_owned(), got.to_owned());
            assert_eq!(TypeError::parse(message), Some(TypeError { expected, got }));
        }
        assert_eq!(TypeError::parse("missing field `id`"), None);
    }

    #[test]
    fn messages_about_names_are_read() {
        let (name, names) = ("a".to_owned(), vec!["b".to_owned(), "c".to_owned()]);
        let unknown = NameError::parse("unknown field `a`, expected `b` or `c`").unwrap();
        assert_eq!(unknown, NameError::Unknown { name, names });
        assert_eq!((&*unknown.expected(str::to_owned), unknown.got()), ("one of b, c", "a"));
        let missing = NameError::parse("missing field `id`").unwrap();
        assert_eq!((&*missing.expected(str::to_owned), missing.got()), ("id", "none"));
        let none = NameError::parse("unknown field ``, there are no fields").unwrap();
        assert_eq!((&*none.expected(str::to_owned), none.got()), ("no key", "an empty name"));
        assert_eq!(NameError::parse("invalid type: map, expected a string"), None);
    }
}

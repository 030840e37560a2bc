//! Errors of texts that are not JSON.

use serde_json::error::Category;

/// Returns the place and the problem of a text that cannot be read as JSON.
pub fn json_problem(error: &serde_json::Error) -> String {
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
        ] {
            let error = serde_json::from_str::<serde_json::Value>(text).unwrap_err();
            assert_eq!(json_problem(&error), expected);
        }
    }
}

//! Rules for texts that code holds as literals: errors, log lines, and help of commands.

/// Phrases of messages for which the field has a term, in addition to those of all prose.
const PHRASES: [&str; 10] = [
    "say",
    "ask",
    "nobody",
    "whatever",
    "where",
    "left out",
    "send again",
    "goes on",
    "has gone",
    "none of any",
];

/// The least number of words of a message.
const WORDS_OF_MESSAGE: usize = 4;

/// Returns the first line and the fault of literals that break a rule. `phrases` and `questions`
/// are those of all prose.
pub(crate) fn bad_messages(
    file: &str,
    text: &str,
    phrases: &[&str],
    questions: &[&str],
) -> Vec<(usize, String)> {
    if !has_messages(file) {
        return Vec::new();
    }
    let fault = |literal: &str| {
        let plain = without_fields(literal);
        let words: Vec<&str> = plain.split_whitespace().collect();
        // A text with bars is a pattern or a table.
        if words.len() < WORDS_OF_MESSAGE || literal.contains('|') {
            return None;
        }
        let bare = |word: &&str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let lower = format!(" {} ", words.iter().map(bare).collect::<Vec<_>>().join(" "));
        let has = |phrase: &&&str| lower.contains(&format!(" {phrase} "));
        if let Some(phrase) = phrases.iter().chain(&PHRASES).find(has) {
            return Some((*phrase).to_owned());
        }
        let is_question = words.last().is_some_and(|word| word.ends_with('?'));
        let asks = questions.contains(&words[0]) && !is_question;
        asks.then(|| words.join(" "))
    };
    let found = literals(file, text).into_iter();
    found.filter_map(|(line, literal)| Some((line, fault(&literal)?))).collect()
}

/// Returns true for code of the product, texts about papers and explanations of codes. Tests quote
/// the messages of others.
fn has_messages(file: &str) -> bool {
    let is_test = file.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
    let is_code = (file.ends_with(".rs") || file.ends_with(".py")) && !is_test;
    let is_text = file.starts_with("papers/") || file.starts_with("python/");
    is_code || is_text && file.ends_with(".toml")
}

/// Returns the text with one character instead of each code span and format field.
fn without_fields(text: &str) -> String {
    let mut plain = String::new();
    let mut end = None;
    for c in text.chars() {
        if end.is_some() {
            end = end.filter(|mark| *mark != c);
            continue;
        }
        end = match c {
            '{' => Some('}'),
            '`' => Some('`'),
            _ => None,
        };
        plain.push(if end.is_some() { 'x' } else { c });
    }
    plain
}

/// Returns the first line and the text of each literal, without docstrings of Python.
fn literals(file: &str, text: &str) -> Vec<(usize, String)> {
    let comment = if file.ends_with(".rs") { "//" } else { "#" };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if rest.starts_with(comment) {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(Opening { length, mark, is_raw }) = opening(file, rest) {
            let body = &rest[length..];
            let body = &body[..length_of(body, &mark, is_raw)];
            let before = text[..at].rsplit('\n').next().unwrap_or_default();
            let is_docstring = mark == "\"\"\"" && before.trim().is_empty();
            if !is_docstring {
                let line = text[..at].matches('\n').count() + 1;
                found.push((line, body.replace("\\\n", " ").replace("\\n", " ")));
            }
            at = text.len().min(at + length + body.len() + mark.len());
        } else {
            at += first.len_utf8();
        }
    }
    found
}

/// The start of a literal.
struct Opening {
    length: usize,
    /// Characters that end the literal.
    mark: String,
    /// True if the literal has no escapes.
    is_raw: bool,
}

/// Returns the start of the literal that a text begins with.
fn opening(file: &str, text: &str) -> Option<Opening> {
    let escaped = |mark: &str| Opening { length: mark.len(), mark: mark.to_owned(), is_raw: false };
    if !file.ends_with(".rs") {
        let marks = ["\"\"\"", "'''", "\"", "'"];
        let mark = marks.into_iter().find(|mark| text.starts_with(mark))?;
        let is_raw = file.ends_with(".toml") && mark == "'";
        return Some(Opening { is_raw, ..escaped(mark) });
    }
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let mark = format!("\"{}", "#".repeat(hashes));
        let is_literal = raw[hashes..].starts_with('"');
        return is_literal.then_some(Opening { length: hashes + 2, mark, is_raw: true });
    }
    // A lifetime has no second quote.
    let is_char = text.starts_with('\'') && text.chars().nth(2) == Some('\'');
    if is_char || text.starts_with("'\\") {
        return Some(escaped("'"));
    }
    text.starts_with('"').then(|| escaped("\""))
}

/// Returns the number of bytes of a literal's text before the mark that ends it.
fn length_of(text: &str, mark: &str, is_raw: bool) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        if !is_escaped && text[at..].starts_with(mark) {
            return at;
        }
        is_escaped = !is_raw && !is_escaped && c == '\\';
    }
    text.len()
}

#[test]
fn bad_messages_are_found() {
    const PROSE: [&str; 4] = ["so many", "tell", "says", "beside"];
    let lines = |file, text: &str| -> Vec<usize> {
        let found = bad_messages(file, text, &PROSE, &["What"]).into_iter();
        found.map(|(line, _)| line).collect()
    };
    let rust = concat!(
        "let a = '\"'; // \"whoever reads this file may\"\n",
        "let b: &'static str = \"cannot find {whoever}: `left out` it\";\n",
        "let c = \"cannot \\\n    tell\\n the manager\";\n",
        "let d = r#\"a \"socket\" beside it\"#;\n",
        "let e = \"What is in here\"; let f = \"What is in here?\";\n",
        "let g = \"so many\"; let h = \"there are so many packets\";\n",
    );
    assert_eq!(lines("a.rs", rust), [3, 5, 6, 7]);
    assert_eq!(lines("crates/a/tests/b.rs", rust), [0; 0]);
    let python = concat!(
        "def f():\n    \"\"\"It says that it is.\"\"\"\n",
        "    raise E(f\"it says that {it} is\") # 'it says that it'\n",
        "    x = '''a\n    value left out here'''\n",
    );
    assert_eq!(lines("a.py", python), [3, 4]);
    let toml = "# it says that it is\na = 'it says \\'\nb = \"the node says nothing more\"\n";
    assert_eq!(lines("papers/a.toml", toml), [3]);
    assert_eq!(lines("a.toml", toml), [0; 0]);
}

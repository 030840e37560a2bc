//! Rules for names of tests: a claim in plain words, with its subject first.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const COLUMNS_OF_NAME: usize = 80;

/// Words that no name begins with: questions, and pronouns without a noun.
const STARTS: [&str; 13] = [
    "what", "how", "whether", "where", "who", "whose", "whatever", "whoever", "it", "its", "they",
    "there", "of",
];

/// Words and phrases for which the field has a term, such as "receives" for "hears".
const WORDS: [&str; 34] = [
    "what",
    "where",
    "how",
    "whom",
    "whatever",
    "whoever",
    "nobody",
    "hear",
    "hears",
    "heard",
    "tell",
    "tells",
    "told",
    "say",
    "says",
    "said",
    "ask",
    "asks",
    "asked",
    "come",
    "comes",
    "came",
    "go",
    "goes",
    "gone",
    "silent",
    "anew",
    "beside",
    "so_many",
    "under_way",
    "sent_again",
    "given_up",
    "put_off",
    "left_out",
];

/// Words that name no parameter and no field.
const PARAMETERS: [&str; 6] = ["of", "what", "told", "patience", "fate", "guest"];

/// Returns the lines and names of parameters and fields that say nothing about their values.
pub(crate) fn bad_parameters(file: &str, lines: &[&str]) -> Vec<(usize, String)> {
    let is_code = |line: &str| file.ends_with(".rs") && !line.trim_start().starts_with("//");
    let code = lines.iter().enumerate().filter(|(_, line)| is_code(line));
    let names = code.flat_map(|(i, line)| {
        let parts = line.split([',', '(', '|', '{']);
        parts.filter_map(move |part| Some((i + 1, part.split_once(": ")?.0)))
    });
    names
        .map(|(number, name)| (number, name.trim().trim_start_matches("mut ").to_owned()))
        .filter(|(_, name)| PARAMETERS.contains(&name.as_str()))
        .collect()
}

#[test]
fn bad_parameters_are_found() {
    let lines = [concat!("fn a(", "of: u8) {"), "// what: x", concat!("|", "what: u8, c: u8| of")];
    let found = bad_parameters("a.rs", &lines);
    assert_eq!(found, [(1, "of".to_owned()), (3, "what".to_owned())]);
}

/// Returns the line, the name and the fault of names of tests that break a rule.
pub(crate) fn bad_names(file: &str, lines: &[&str]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_test = false;
    for (i, line) in lines.iter().enumerate() {
        let line = line.trim();
        let name = if file.ends_with(".rs") {
            // `#[test]`, and those of other libraries such as `#[tokio::test]`.
            let is_attribute = line.starts_with("#[");
            is_test = if is_attribute { is_test || line.ends_with("test]") } else { is_test };
            let name = declared(line, "fn").filter(|_| is_test);
            is_test &= is_attribute || line.starts_with("//") || line.is_empty();
            name
        } else if file.ends_with(".py") {
            declared(line, "def").and_then(|name| name.strip_prefix("test_"))
        } else {
            None
        };
        if let Some(fault) = name.and_then(fault) {
            found.push((i + 1, format!("{}: {fault}", name.unwrap_or_default())));
        }
    }
    found
}

/// Returns the name that a line declares by a keyword.
fn declared<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let name = line.strip_prefix(keyword)?.strip_prefix(' ')?;
    name.split('(').next()
}

fn fault(name: &str) -> Option<String> {
    let first = name.split('_').next().unwrap_or_default();
    let padded = format!("_{name}_");
    if STARTS.contains(&first) {
        Some(format!("it begins with {first}"))
    } else if let Some(word) = WORDS.iter().find(|word| padded.contains(&format!("_{word}_"))) {
        Some(format!("it has {word}"))
    } else {
        (name.len() > COLUMNS_OF_NAME).then(|| format!("{} columns", name.len()))
    }
}

/// Returns the names of all functions and modules of the repository.
pub(crate) fn functions(root: &Path, files: &[String]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files.iter().filter(|file| file.ends_with(".rs") || file.ends_with(".py")) {
        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
        for keyword in ["fn ", "def ", "mod "] {
            for (at, _) in text.match_indices(keyword) {
                let name = text[at + keyword.len()..].split(|c: char| !is_of_name(c)).next();
                names.extend(name.map(str::to_owned));
            }
        }
    }
    names
}

/// Returns the lines and names of tests that design notes of a Rust file cite. A citation is a code
/// span of more than three words, without or with its module.
pub(crate) fn cited_names(file: &str, lines: &[&str]) -> Vec<(usize, String)> {
    let is_test = |name: &&str| {
        name.matches('_').count() >= 3 && name.chars().all(|c| is_of_name(c) && !c.is_uppercase())
    };
    let notes = lines.iter().enumerate().filter(|(_, line)| line.trim().starts_with("//!"));
    let spans = notes.flat_map(|(i, line)| {
        line.split('`')
            .skip(1)
            .step_by(2)
            .filter_map(move |span| Some((i + 1, span.rsplit("::").next()?)))
    });
    let n_lines = if file.ends_with(".rs") { usize::MAX } else { 0 };
    spans
        .take(n_lines)
        .filter(|(_, name)| is_test(name))
        .map(|(number, name)| (number, name.to_owned()))
        .collect()
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn bad_names_of_tests_are_found() {
    let long = format!("fn {}() {{", "a".repeat(81));
    let rust = [
        "#[test]",
        "#[ignore = \"slow\"]",
        "fn what_is_lost_is_found() {",
        "fn it_is_a_helper() {",
        "#[test]",
        "fn hosts_are_told_of_failures() {",
        "#[test]",
        "fn somewhat_comely_names_pass() {",
        "#[tokio::test]",
        &long,
    ];
    let lines = |file, lines: &[&str]| -> Vec<usize> {
        bad_names(file, lines).into_iter().map(|(line, _)| line).collect()
    };
    assert_eq!(lines("a.rs", &rust), [3, 6, 10]);
    let python = ["    def test_it_runs(self) -> None:", "def what_is_it(", "def test_runs_end():"];
    assert_eq!(lines("a.py", &python), [1]);
}

//! Rules of this repository's text that neither the compiler nor a linter checks.
//!
//! `tests/tidy.toml` holds the number of breaches of each rule in each area of the tree. A number
//! may only fall: more breaches fail the test with their places, and so do fewer, until the file
//! has the smaller number. `TIDY_WRITE=1 cargo test -p rampmeter-testkit --test tidy` writes it,
//! and `TIDY_LIST=function-length` prints every place of one rule.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[path = "tidy/commits.rs"]
mod commits;
#[path = "tidy/first_sentences.rs"]
mod first_sentences;
#[path = "tidy/literals.rs"]
mod literals;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/phrases.rs"]
mod phrases;

use phrases::PHRASES;

const COLUMNS: usize = 100;
const LINES_OF_FUNCTION: usize = 70;
const LINES_OF_FILE: usize = 500;
const WORDS_OF_SENTENCE: usize = 30;

/// The mark at the head of files that are made, not written.
const GENERATED: &str = "Made by `";

/// Words that no first sentence of documentation, and no sentence of a document, begins with.
const QUESTIONS: [&str; 6] = ["What", "How", "Whether", "Where", "Who", "When"];

/// A place that breaks a rule, as `file:line: text`.
type Breach = String;

/// Breaches by rule and area.
type Breaches = BTreeMap<&'static str, BTreeMap<String, Vec<Breach>>>;

#[test]
fn breaches_of_the_rules_for_text_only_fall() {
    let root = root();
    let Some(files) = tracked_files(&root) else {
        println!("tidy: skipped, this is no checkout of the repository");
        return;
    };
    let found = all_breaches(&root, &files);
    if let Ok(rule) = env::var("TIDY_LIST") {
        found.get(rule.as_str()).into_iter().flatten().flat_map(|(_, places)| places).for_each(
            |place| {
                println!("{place}");
            },
        );
    }
    let file = root.join("tests/tidy.toml");
    if env::var_os("TIDY_WRITE").is_some() {
        fs::write(&file, written(&found)).expect("tests/tidy.toml can be written");
        return;
    }
    let text = fs::read_to_string(&file).expect("tests/tidy.toml can be read");
    let recorded: BTreeMap<String, BTreeMap<String, usize>> =
        toml::from_str(&text).expect("tests/tidy.toml has a table of numbers for each rule");
    let differences = differences(&found, &recorded);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn breaches_of_each_kind_are_found() {
    let line = "a ".repeat(51);
    assert_eq!(long_lines("a.md", &[&line, "| a row |", "short"]), [(1, 102)]);
    assert_eq!(long_lines("a.md", &[&format!("| {line}"), &"a".repeat(200)]), []);

    let mut rust = vec!["    pub(crate) async fn long(", "        &self,", "    ) -> Found {"];
    rust.extend(["        step();"; LINES_OF_FUNCTION]);
    rust.extend(["    }", "    fn short() {}"]);
    assert_eq!(long_functions("a.rs", &rust), [(1, LINES_OF_FUNCTION + 4)]);
    let mut python = vec!["def long(", "    size: int,", ") -> int:"];
    python.extend(["    step()"; LINES_OF_FUNCTION]);
    python.extend(["", "def short() -> None: ..."]);
    assert_eq!(long_functions("a.py", &python), [(1, LINES_OF_FUNCTION + 4)]);

    let rust = ["/// What it is.", "/// How it is continued.", "fn f() {}", "//! Whether it is"];
    let found: Vec<_> = questions("a.rs", &rust).into_iter().map(|(line, _)| line).collect();
    assert_eq!(found, [1, 4]);
    assert_eq!(questions("a.py", &["    \"\"\"Whoever it is.", "    \"\"\"Who it is."]).len(), 1);
}

#[test]
fn breaches_in_sentences_are_found() {
    let words = |count| vec!["word"; count].join(" ");
    let (short, long) = (format!("A {}.", words(29)), format!("A {}.", words(30)));
    let long_sentence = |text: &str| -> Vec<usize> {
        let lines: Vec<&str> = text.lines().collect();
        let found = bad_sentences("a.md", &lines).into_iter();
        found.filter(|one| one.0 == "sentence-length").map(|(_, line, _)| line).collect()
    };
    assert_eq!(long_sentence(&format!("# A\n\n{short} {short}\n\n- {short}\n- {long}")), [6]);
    assert_eq!(long_sentence(&long.replace(' ', "\n")), [1]);
    assert_eq!(long_sentence(&format!("`{long}` and \"{long}\" {short}")), [0; 0]);
    assert_eq!(long_sentence(&format!("| {long}\n\n# {long}\n\n```\n{long}\n```")), [0; 0]);
    let block = format!("<!-- output -->\n{long}\n\n<!-- made -->\n{long}\n<!-- /made -->\n{long}");
    assert_eq!(long_sentence(&block), [2, 7]);

    let phrases = |file: &str, lines: &[&str]| -> Vec<usize> {
        let found = bad_sentences(file, lines).into_iter();
        found.filter(|one| one.0 == "glossary").map(|(_, line, _)| line).collect()
    };
    let document = ["It is under", "way (tells).", "", "`tells` is \"put off\"."];
    assert_eq!(phrases("a.md", &document), [1]);
    assert_eq!(phrases("a.rs", &["/// It is sent", "/// again.", "fn tells() {}"]), [1]);
    let python =
        ["x = \"\"\"", "It hears.", "\"\"\"", "    \"\"\"It hears.", "    \"\"\"", "hears = x"];
    assert_eq!(phrases("a.py", &python), [4]);
    assert_eq!(phrases("a.toml", &["# It tells."]), [0; 0]);

    assert_eq!(long_cells("a.md", &["| a | b |", &format!("| a | {long} | c |")]), [(2, 31)]);
    assert_eq!(
        bad_tables("a.md", &["| a |", "|---|", "", "|---|", "| b |", "| c |", "|---|"]),
        [4, 7]
    );
    assert_eq!(
        names::cited_names("a.rs", &["//! Test: `b::a_b_is_c`, `x`."]),
        [(1, "a_b_is_c".into())]
    );
    assert_eq!(long_cells("a.md", &[&long, &format!("| {short} | {short} |")]), []);

    let found = bad_sentences("a.md", &["A. What it is, is it.", "", "What is it?"]);
    assert_eq!(found, [("question-in-documentation", 1, "What it is, is it.".to_owned())]);
}

fn root() -> PathBuf {
    let package =
        env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).join("../..")
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the files that the rules are for, or nothing outside of a checkout.
fn tracked_files(root: &Path) -> Option<Vec<String>> {
    let listed = git(root, &["ls-files"])?;
    let ours = |file: &&str| {
        let extension = Path::new(file).extension().and_then(|e| e.to_str()).unwrap_or_default();
        matches!(extension, "rs" | "py" | "md" | "toml") && root.join(file).is_file()
    };
    Some(listed.lines().filter(ours).map(str::to_owned).collect())
}

fn all_breaches(root: &Path, files: &[String]) -> Breaches {
    let mut found = Breaches::new();
    let names = names::functions(root, files);
    for file in files {
        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
        if text.lines().take(5).any(|line| line.contains(GENERATED)) {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        let is_code = file.ends_with(".rs") || file.ends_with(".py");
        let mut add = |rule, line: usize, fault: String| {
            let place = format!("{file}:{line}: {fault}");
            found.entry(rule).or_default().entry(area(file)).or_default().push(place);
        };
        for (number, columns) in long_lines(file, &lines) {
            add("line-length", number, format!("{columns} columns"));
        }
        if is_code && lines.len() > LINES_OF_FILE {
            add("file-length", lines.len(), format!("{} lines", lines.len()));
        }
        for (number, length) in long_functions(file, &lines) {
            add("function-length", number, format!("{length} lines"));
        }
        for (number, text) in questions(file, &lines) {
            add("question-in-documentation", number, text.to_owned());
        }
        for (rule, number, what) in bad_sentences(file, &lines) {
            add(rule, number, what);
        }
        for (number, words) in long_cells(file, &lines) {
            add("table-cell", number, format!("{words} words"));
        }
        for number in bad_tables(file, &lines) {
            add("table-header", number, "expected one row above this line".to_owned());
        }
        for (number, name) in names::cited_names(file, &lines) {
            if !names.contains(&name) {
                add("cited-name", number, name);
            }
        }
        for (number, fault) in names::bad_names(file, &lines) {
            add("test-name", number, fault);
        }
        for (number, n) in first_sentences::long_first_sentences(file, &lines) {
            add("first-sentence", number, format!("{n} words"));
        }
        for (number, name) in names::bad_parameters(file, &lines) {
            add("parameter-name", number, name);
        }
        for (number, what) in literals::bad_messages(file, &text, &PHRASES, &QUESTIONS) {
            add("message", number, what);
        }
    }
    found
}

/// Returns the part of the tree whose breaches are counted together: a crate, or a folder of the
/// root.
fn area(file: &str) -> String {
    let folders: Vec<&str> = file.split('/').collect();
    match folders[..] {
        [_] => ".".to_owned(),
        ["crates", name, ..] => format!("crates/{name}"),
        [first, ..] => first.to_owned(),
        [] => unreachable!("a path has a part"),
    }
}

/// Returns the number and the columns of lines that are too long. Rows of tables and lines without
/// a space to break at, such as addresses, may be.
fn long_lines(file: &str, lines: &[&str]) -> Vec<(usize, usize)> {
    let may_be_long = |line: &str| {
        let is_row = file.ends_with(".md") && line.trim_start().starts_with('|');
        is_row || !line.trim().contains(' ')
    };
    let numbered = lines.iter().enumerate().map(|(i, line)| (i + 1, line));
    numbered
        .filter(|(_, line)| !may_be_long(line))
        .map(|(number, line)| (number, line.chars().count()))
        .filter(|(_, columns)| *columns > COLUMNS)
        .collect()
}

/// Returns the lines below the headers of tables that have none or several.
fn bad_tables(file: &str, lines: &[&str]) -> Vec<usize> {
    let is_row = |line: Option<&&str>| line.is_some_and(|line| line.starts_with('|'));
    let is_rule = |line: &str| {
        line.starts_with("|-") && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
    };
    let is_bad = |at: usize| {
        is_rule(lines[at])
            && (at == 0 || !is_row(lines.get(at - 1)) || at > 1 && is_row(lines.get(at - 2)))
    };
    let n_lines = if file.ends_with(".md") { lines.len() } else { 0 };
    (0..n_lines).filter(|&at| is_bad(at)).map(|at| at + 1).collect()
}

/// Returns the line and the words of cells that are too long, in tables of documents.
fn long_cells(file: &str, lines: &[&str]) -> Vec<(usize, usize)> {
    if !file.ends_with(".md") {
        return Vec::new();
    }
    let rows = lines.iter().enumerate().filter(|(_, line)| line.starts_with('|'));
    let cells = rows.flat_map(|(i, line)| line.split(" | ").map(move |cell| (i + 1, cell)));
    let words = |cell: &str| cell.split_whitespace().filter(|word| *word != "|").count();
    cells
        .map(|(number, cell)| (number, words(cell)))
        .filter(|(_, words)| *words > WORDS_OF_SENTENCE)
        .collect()
}

/// Returns the first line and the length of functions that are too long. Formatters put the end of
/// a Rust function into the column of its start, and indent the body of a Python function.
fn long_functions(file: &str, lines: &[&str]) -> Vec<(usize, usize)> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_rust = file.ends_with(".rs");
    let starts = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().take(6).collect();
        let keyword = if is_rust { "fn" } else { "def" };
        let before = words.iter().position(|word| *word == keyword)?;
        let is_declaration = words[..before].iter().all(|word| {
            let word = word.split('(').next().unwrap_or_default();
            matches!(word, "pub" | "const" | "async" | "unsafe" | "extern" | "\"C\"")
        });
        is_declaration.then(|| indent(line))
    };
    let end = |first: usize, column: usize| {
        let mut after = lines[first + 1..].iter().enumerate();
        let last = after.find(|(_, line)| {
            let line = **line;
            if is_rust {
                indent(line) == column && matches!(line.trim(), "}" | "};" | ");")
            } else {
                !line.trim().is_empty()
                    && indent(line) <= column
                    && !line.trim_start().starts_with([')', '#'])
            }
        });
        last.map_or(lines.len() - first, |(i, _)| i + if is_rust { 2 } else { 1 })
    };
    if !is_rust && !file.ends_with(".py") {
        return Vec::new();
    }
    let one_line = |line: &str| is_rust && (line.ends_with('}') || line.ends_with(';'));
    (0..lines.len())
        .filter(|&i| !one_line(lines[i]))
        .filter_map(|i| Some((i + 1, end(i, starts(lines[i])?))))
        .filter(|(_, length)| *length > LINES_OF_FUNCTION)
        .collect()
}

/// Returns the lines at which documentation begins with the word of a question.
fn questions<'a>(file: &str, lines: &[&'a str]) -> Vec<(usize, &'a str)> {
    let sentence = |line: &'a str, before: &str| -> Option<&'a str> {
        let line = line.trim_start();
        if file.ends_with(".rs") {
            let mark = ["///", "//!"].into_iter().find(|mark| line.starts_with(mark))?;
            let continues =
                before.trim_start().strip_prefix(mark).is_some_and(|text| !text.trim().is_empty());
            (!continues).then(|| line[mark.len()..].trim_start())
        } else if file.ends_with(".py") {
            line.strip_prefix("\"\"\"")
        } else {
            None
        }
    };
    let asks = |text: &str| {
        let first = text.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        QUESTIONS.contains(&first)
    };
    lines
        .iter()
        .enumerate()
        .filter_map(|(i, line)| {
            let before = if i == 0 { "" } else { lines[i - 1] };
            sentence(line, before).filter(|text| asks(text)).map(|text| (i + 1, text))
        })
        .collect()
}

/// Returns the rule, the first line of the paragraph and the text of sentences of prose that break
/// a rule. All of prose has the rule for phrases, and documents have those for whole sentences.
fn bad_sentences(file: &str, lines: &[&str]) -> Vec<(&'static str, usize, String)> {
    let is_document = file.ends_with(".md");
    let mut found = Vec::new();
    for (number, paragraph) in paragraphs(&prose(file, lines)) {
        let plain = without_spans(&paragraph);
        let words: Vec<&str> = plain.split_whitespace().collect();
        for sentence in words.split_inclusive(|word| ends_sentence(word)) {
            let bare = |word: &&str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
            let bare: Vec<String> = sentence.iter().map(bare).filter(|w| !w.is_empty()).collect();
            let text = format!(" {} ", bare.join(" ").to_lowercase());
            let has = |phrase: &&&str| text.contains(&format!(" {phrase} "));
            if let Some(phrase) = PHRASES.iter().find(has) {
                found.push(("glossary", number, (*phrase).to_owned()));
            }
            if is_document && bare.len() > WORDS_OF_SENTENCE {
                let what = format!("{} words: {} ...", bare.len(), bare[..8].join(" "));
                found.push(("sentence-length", number, what));
            }
            let is_question = sentence.last().is_some_and(|word| word.contains('?'));
            let asks = bare.first().is_some_and(|word| QUESTIONS.contains(&word.as_str()));
            if is_document && asks && !is_question {
                found.push(("question-in-documentation", number, sentence.join(" ")));
            }
        }
    }
    found
}

/// Returns true for the last word of a sentence.
fn ends_sentence(word: &str) -> bool {
    word.trim_end_matches([')', ']', '*', '_', '\'']).ends_with(['.', '!', '?'])
}

/// Returns the prose of each line, which is empty for lines of other kinds. Prose is the text of
/// documents, of comments in Rust and of docstrings in Python, without code, tables, headings,
/// quoted paragraphs, targets of links, and blocks that are made.
fn prose<'a>(file: &str, lines: &[&'a str]) -> Vec<&'a str> {
    let (mut is_code, mut is_made) = (false, false);
    let (mut is_string, mut is_docstring) = (false, false);
    let mut prose: Vec<&str> = Vec::new();
    for line in lines {
        let is_indented =
            line.starts_with("    ") && prose.last().is_none_or(|before| before.is_empty());
        let line = line.trim();
        let text = if file.ends_with(".md") {
            if is_indented { "" } else { line }
        } else if file.ends_with(".rs") {
            line.strip_prefix("//").unwrap_or("").trim_start_matches(['/', '!']).trim_start()
        } else if file.ends_with(".py") {
            is_docstring = if is_string { is_docstring } else { line.starts_with("\"\"\"") };
            is_string ^= line.matches("\"\"\"").count() % 2 == 1;
            if is_docstring { line.trim_matches('"') } else { "" }
        } else {
            ""
        };
        let is_fence = text.starts_with("```");
        is_code ^= is_fence;
        if let Some(mark) = text.strip_prefix("<!-- ") {
            let end = format!("<!-- /{mark}");
            is_made = !mark.starts_with('/') && (is_made || lines.contains(&end.as_str()));
        }
        let is_link = text.starts_with('[') && text.contains("]: ");
        let is_other = is_fence || is_code || is_made || is_link;
        prose.push(if is_other || text.starts_with(['|', '#', '<', '>']) { "" } else { text });
    }
    prose
}

/// Returns the first line and the text of each paragraph, and of each item of a list.
fn paragraphs(prose: &[&str]) -> Vec<(usize, String)> {
    let item = |line: &str| {
        let (mark, text) = line.split_once(' ')?;
        let is_number = mark.strip_suffix('.').is_some_and(|mark| mark.parse::<u32>().is_ok());
        (is_number || matches!(mark, "-" | "*")).then(|| text.to_owned())
    };
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (i, line) in prose.iter().enumerate() {
        let text = item(line);
        let is_new = !is_open || text.is_some();
        is_open = !line.is_empty();
        if is_new && is_open {
            found.push((i + 1, text.unwrap_or_else(|| (*line).to_owned())));
        } else if let Some((_, text)) = found.last_mut() {
            text.push(' ');
            text.push_str(line);
        }
    }
    found
}

/// Returns the text with one word instead of each code span and each quotation.
fn without_spans(text: &str) -> String {
    let mut plain = String::new();
    let (mut span, mut before) = (None, ' ');
    for c in text.chars() {
        match span {
            None if matches!(c, '`' | '"') => {
                span = Some(c);
                plain.push('x');
            }
            None => plain.push(c),
            Some(mark) if mark == c => {
                span = None;
                plain.extend(matches!(before, '.' | '!' | '?').then_some(before));
            }
            Some(_) => {}
        }
        before = c;
    }
    plain
}

/// Returns the file of recorded numbers.
fn written(found: &Breaches) -> String {
    let mut text = String::from(
        "# Breaches of the rules for text, by rule and area. Numbers may only fall. See tidy.rs.\n",
    );
    for (rule, areas) in found {
        text.push_str(&format!("\n[{rule}]\n"));
        for (area, places) in areas {
            text.push_str(&format!("\"{area}\" = {}\n", places.len()));
        }
    }
    text
}

/// Returns a line for each rule and area whose number differs from the recorded one, and the first
/// places of those that have more.
fn differences(
    found: &Breaches,
    recorded: &BTreeMap<String, BTreeMap<String, usize>>,
) -> Vec<String> {
    let none = Vec::new();
    let mut keys: Vec<(&str, &str)> = recorded
        .iter()
        .flat_map(|(rule, areas)| areas.keys().map(move |area| (rule.as_str(), area.as_str())))
        .chain(
            found.iter().flat_map(|(rule, areas)| areas.keys().map(move |a| (*rule, a.as_str()))),
        )
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let mut lines = Vec::new();
    for (rule, area) in keys {
        let places = found.get(rule).and_then(|areas| areas.get(area)).unwrap_or(&none);
        let limit = recorded.get(rule).and_then(|areas| areas.get(area)).copied().unwrap_or(0);
        if places.len() < limit {
            lines.push(format!(
                "{rule}, {area}: expected {limit} breaches, got {}: write the smaller number into \
                 tests/tidy.toml",
                places.len()
            ));
        } else if places.len() > limit {
            lines.push(format!(
                "{rule}, {area}: expected at most {limit} breaches, got {}; some of them:",
                places.len()
            ));
            lines.extend(places.iter().take(20).map(|place| format!("    {place}")));
        }
    }
    lines
}

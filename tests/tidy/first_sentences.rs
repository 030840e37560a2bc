//! Rule for documentation comments of Rust: a short first sentence.

const WORDS_MAX: usize = 25;

/// Returns the lines of documentation comments whose first sentence is too long, and its words.
pub(crate) fn long_first_sentences(file: &str, lines: &[&str]) -> Vec<(usize, usize)> {
    let n_lines = if file.ends_with(".rs") { lines.len() } else { 0 };
    let text_of = |i: usize, mark: &str| {
        let text = lines.get(i)?.trim().strip_prefix(mark)?;
        (!text.starts_with('/')).then(|| text.trim())
    };
    let mut found = Vec::new();
    for mark in ["///", "//!"] {
        for i in (0..n_lines).filter(|&i| text_of(i, mark).is_some()) {
            if i > 0 && text_of(i - 1, mark).is_some() {
                continue;
            }
            let paragraph =
                (i..n_lines).map_while(|at| text_of(at, mark).filter(|t| !t.is_empty()));
            let words: Vec<&str> = paragraph.flat_map(str::split_whitespace).collect();
            // A sentence begins with a capital letter or a code span.
            let begins = |word: &str| word.starts_with(|c: char| c.is_uppercase() || c == '`');
            let ends = |word: &str| word.ends_with(['.', ':', '!', '?']);
            let end = words.windows(2).position(|pair| ends(pair[0]) && begins(pair[1]));
            let n = end.map_or(words.len(), |at| at + 1);
            if n > WORDS_MAX {
                found.push((i + 1, n));
            }
        }
    }
    found
}

#[test]
fn long_first_sentences_are_found() {
    let long = format!("/// {}", "word ".repeat(26));
    let lines = ["/// Short. And more.", "fn a() {}", &long];
    assert_eq!(long_first_sentences("a.rs", &lines), [(3, 26)]);
    assert_eq!(long_first_sentences("a.py", &lines), []);
}

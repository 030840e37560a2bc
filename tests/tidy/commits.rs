//! Rules for messages of commits.

use super::{COLUMNS, git, root};

const COLUMNS_OF_SUBJECT: usize = 72;

/// The commit after which the rule for lengths of subjects holds.
const SUBJECTS_SINCE: &str = "c1d0684143cc";

/// The commit after which the rules for imperatives and bodies hold.
const BODIES_SINCE: &str = "3e25d368";

#[test]
fn commits_have_imperative_subjects_of_72_columns_and_a_body() {
    let log = |since: &str| {
        let range = format!("{since}..HEAD");
        let log = git(&root(), &["log", "--no-merges", "--format=%h%n%B%x00", &range]);
        if log.is_none() {
            println!("tidy: skipped, the history does not reach back to {since}");
        }
        log.unwrap_or_default()
    };
    let mut bad = Vec::new();
    for (since, has_rules_of_body) in [(SUBJECTS_SINCE, false), (BODIES_SINCE, true)] {
        for commit in log(since).split('\0').map(str::trim).filter(|text| !text.is_empty()) {
            let (hash, message) = commit.split_once('\n').unwrap_or((commit, ""));
            bad.extend(
                commit_breach(message, has_rules_of_body).map(|what| format!("{hash}: {what}")),
            );
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Returns the rule that the message of a commit breaks.
fn commit_breach(message: &str, has_rules_of_body: bool) -> Option<String> {
    let (subject, body) = message.split_once('\n').unwrap_or((message, ""));
    let first = subject.split(' ').next().unwrap_or_default();
    let is_imperative = first.chars().next().is_some_and(char::is_uppercase)
        && !["ed", "ing", ":"].iter().any(|end| first.ends_with(end));
    match subject.chars().count() {
        columns if columns > COLUMNS_OF_SUBJECT => Some(format!("{columns} columns: {subject}")),
        _ if !has_rules_of_body => None,
        _ if !is_imperative || subject.ends_with('.') => Some(format!("no imperative: {subject}")),
        _ if body.trim().is_empty() => Some(format!("no body: {subject}")),
        _ => body.lines().find(|line| line.chars().count() > COLUMNS).map(str::to_owned),
    }
}

#[test]
fn messages_of_commits_are_checked() {
    let breach = |message| commit_breach(message, true).is_some();
    assert!(!breach("Name a thing\n\nIt had no name."));
    for bad in ["Name a thing", "Named it\n\nx", "tcp: name it\n\nx", "Name it.\n\nx"] {
        assert!(breach(bad), "{bad}");
    }
    assert!(breach(&format!("Name it\n\n{}", "x".repeat(COLUMNS + 1))));
    assert!(commit_breach(&"x".repeat(COLUMNS_OF_SUBJECT + 1), false).is_some());
}

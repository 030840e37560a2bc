//! Kinds of nodes by their names.

/// Kind of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Host,
    Switch,
}

/// Names of nodes before their numbers.
const NAMES: [(Kind, &[&str]); 2] = [
    (Kind::Host, &["h", "host", "gpu", "npu", "server", "srv", "client", "nic", "rank", "vm"]),
    (
        Kind::Switch,
        &[
            "s", "sw", "switch", "leaf", "spine", "tor", "agg", "core", "edge", "rail", "nvswitch",
            "l", "t", "sp",
        ],
    ),
];

/// Returns the letters at the start of a name.
pub(super) fn first_word(name: &str) -> String {
    let end = name.find(|c: char| !c.is_alphabetic()).unwrap_or(name.len());
    name[..end].to_lowercase()
}

/// Returns the kind of a node whose name begins with one of [`NAMES`], as `leaf-1` does.
pub(super) fn kind_of_name(name: &str) -> Option<Kind> {
    let word = first_word(name);
    NAMES.iter().find(|(_, words)| words.contains(&&*word)).map(|(kind, _)| *kind)
}

/// Returns the kind of nodes that all have the same by their names.
pub(super) fn kind_of_names(names: &[impl AsRef<str>]) -> Option<Kind> {
    let first = kind_of_name(names.first()?.as_ref())?;
    names.iter().all(|name| kind_of_name(name.as_ref()) == Some(first)).then_some(first)
}

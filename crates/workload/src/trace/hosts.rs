//! The user's names of hosts, for files that use them.

use super::decimal::parse_whole;
use std::collections::HashMap;

/// Names of a network's nodes, and the hosts among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNames {
    /// The host of each name; `None` for switches.
    by_name: HashMap<String, Option<u32>>,
    /// The host of each number that the topology file has for its nodes; `None` for switches.
    by_number: HashMap<u64, Option<u32>>,
    /// True if a node has a number for a name.
    are_numeric: bool,
}

impl HostNames {
    /// Returns true if a number in a text could be one of these names.
    pub fn has_number(names: &[String]) -> bool {
        names.iter().any(|name| is_number(name))
    }

    /// Adds a node that is called `name`; `host` is `None` for a switch.
    pub fn insert(&mut self, name: &str, host: Option<u32>) {
        self.are_numeric |= is_number(name);
        self.by_name.insert(name.to_owned(), host);
    }

    /// Adds a node that the topology file calls by a number; `host` is `None` for a switch.
    pub fn insert_number(&mut self, number: u64, host: Option<u32>) {
        self.by_number.insert(number, host);
    }

    /// Returns true if the topology file has separate numbers for nodes.
    pub fn has_numbers(&self) -> bool {
        !self.by_number.is_empty()
    }

    /// Returns true if there are names.
    pub fn has_names(&self) -> bool {
        !self.by_name.is_empty()
    }

    /// Returns the host of this name. Nodes without names are called `h0`, `h1`, ...
    ///
    /// # Errors
    /// The expected host, and the node of that name.
    pub fn host(&self, name: &str) -> Result<u32, (String, String)> {
        let place = || name.strip_prefix('h')?.parse().ok();
        match self.by_name.is_empty().then(place).flatten() {
            Some(host) => Ok(host),
            None => Self::host_number(self.by_name.get(name).copied(), &format!("{name:?}")),
        }
    }

    /// Returns true if a node has a number for a name.
    pub fn are_numeric(&self) -> bool {
        self.are_numeric
    }

    /// Returns the host that a text in a file names: the host of that name, otherwise of that
    /// number. If a node has a number for a name, numbers are names. `n_hosts` is the number of
    /// hosts if it is known.
    ///
    /// # Errors
    /// The expected host, and the node that the text names.
    pub fn host_of_text(&self, text: &str, n_hosts: Option<u32>) -> Result<u64, (String, String)> {
        let is_name = self.are_numeric() || self.by_name.contains_key(text);
        match parse_whole(text) {
            Some(number) if !is_name => Ok(number),
            _ => match (self.host(text)?, n_hosts) {
                (host, Some(n)) if host >= n => {
                    Err((format!("a host of h0 to h{}", n - 1), format!("{text:?}")))
                }
                (host, _) => Ok(host.into()),
            },
        }
    }

    /// Returns the host of this number in the topology file.
    ///
    /// # Errors
    /// The expected host, and the node of that number.
    pub fn node(&self, number: u64) -> Result<u32, (String, String)> {
        Self::host_number(self.by_number.get(&number).copied(), &format!("node {number}"))
    }

    /// Returns the name of a host; `None` if it has none.
    pub fn name_of(&self, host: u32) -> Option<&str> {
        let named = self.by_name.iter().find(|(_, of)| **of == Some(host));
        named.map(|(name, _)| name.as_str())
    }

    fn host_number(host: Option<Option<u32>>, node: &str) -> Result<u32, (String, String)> {
        let expected = "a host of the topology".to_owned();
        match host {
            Some(Some(host)) => Ok(host),
            Some(None) => Err((expected, format!("{node}, a switch"))),
            None => Err((expected, format!("{node}, which is not in the topology"))),
        }
    }
}

/// Returns true if a text is a whole number.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

//! Addresses at which a node serves its counters.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use super::{GOOD, rampd};

/// Returns the log of a node with `metrics` at an address until it serves them and has stopped, and
/// the description of its configuration.
fn with_metrics(address: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let config = GOOD.replace("76", "78");
    let config = config.replacen("[node]", &format!("[node]\nmetrics-address = \"{address}\""), 1);
    fs::write(folder.path().join("n.toml"), config).unwrap();
    let checked = rampd(&["check", "n.toml"], folder.path());
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rampd"));
    command.args(["node", "n.toml"]).current_dir(folder.path());
    let mut node = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(node.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut log = String::new();
    // The warning follows the line that metrics are served, and precedes the line that the node has
    // started.
    for line in lines.by_ref() {
        log += &line;
        if line.contains("started") {
            break;
        }
    }
    assert!(Command::new("kill").arg(node.id().to_string()).status().unwrap().success());
    assert_eq!(node.wait().unwrap().code(), Some(0));
    (log, String::from_utf8(checked.stdout).unwrap())
}

/// Metrics that other hosts can read cause a warning at the start, and are described by `check`.
#[test]
fn metrics_that_other_hosts_can_read_are_warned_of() {
    const WARNING: &str = "node.metrics-address: other hosts can read counters and the status";
    // Machines without IPv6 have only the other addresses.
    let exists = |address: &&str| !address.starts_with('[') || TcpListener::bind(address).is_ok();
    for address in ["0.0.0.0:7898", "[::]:7898"].into_iter().filter(exists) {
        let (log, checked) = with_metrics(address);
        assert!(log.contains("serving metrics") && log.contains(WARNING), "{log}");
        assert!(
            checked.contains(&format!("at {address}, for any host that can reach it")),
            "{checked}"
        );
    }
    let own = ["127.0.0.1:7898", "[::1]:7898", "[::ffff:127.0.0.1]:7898"];
    for address in own.into_iter().filter(exists) {
        let (log, checked) = with_metrics(address);
        assert!(log.contains("serving metrics") && !log.contains(WARNING), "{log}");
        assert!(checked.contains(&format!("at {address}, for this host alone")), "{checked}");
    }
}

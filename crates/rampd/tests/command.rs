//! The command by hand: its output for valid and invalid configurations, and its exit codes.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Runs a command that ends by itself. A node that starts by mistake is stopped.
fn rampd(args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new("timeout");
    command.arg("60").arg(env!("CARGO_BIN_EXE_rampd")).args(args);
    command.current_dir(folder).output().expect("rampd starts")
}

const GOOD: &str = r#"
[node]
id = 0
clock = "monotonic"

[network]
rate-mbps = 100
control-rtt-us = 300
security = "none"

[transport]
name = "dcpim"

[[peer]]
id = 0
address = "127.0.0.1:7621"

[[peer]]
id = 1
address = "127.0.0.1:7631"
"#;

fn error_of(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("n.toml"), text).unwrap();
    let output = rampd(&["check", "n.toml"], folder.path());
    assert_eq!(output.status.code(), Some(2), "{text}\n{output:?}");
    assert!(output.stdout.is_empty());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(error.lines().count(), 1, "{error}");
    error.trim().to_owned()
}

/// Replacements in [`GOOD`] that make it invalid, and a part of the error of each.
const BROKEN: &[(&str, &str, &str)] = &[
    ("[node]", "[nod]", "n.toml: line 2, column 2: nod: expected one of "),
    (
        "id = 0\nclock",
        "id = -1\nclock",
        "line 3, column 6: node.id: expected a whole number from 0 to 4294967295, got -1",
    ),
    ("id = 0\nclock", "clock", "expected the key id, got none"),
    ("id = 0\nclock", "id = 9\nclock", "node.id: expected the id of one of the peers, got 9"),
    ("\"monotonic\"", "\"sundial\"", "node.clock: expected one of "),
    ("clock", "speed = 1\nclock", "node.speed: expected one of "),
    ("id = 1", "id = \"one\"", "peer[1].id: expected a whole number, got \"one\""),
    ("clock", "pacing-spin-us = -1\nclock", "node.pacing-spin-us: expected a number from 0"),
    (
        "clock",
        "gather-us = 20\nclock",
        "node.gather-us: expected the present name `coalesce-us` (`rampmeter",
    ),
    ("clock", "coalesce-us = 20000\nclock", "node.coalesce-us: expected a number from 0 to 10000"),
    ("clock", "message-max-bytes = 0\nclock", "node.message-max-bytes: expected a number from 1"),
    ("clock", "datapath = \"xdp\"\nclock", "node.interface: expected the interface"),
    ("clock", "interface = \"eth0\"\nclock", "node.interface: expected node.datapath = \"xdp\""),
    ("clock", "connect-timeout-ms = 0\nclock", "node.connect-timeout-ms"),
    ("[node]", "[programs]\nattached-max = 0\n[node]", "programs.attached-max: expected 1 or"),
    (
        "[node]",
        "[programs]\nattached-max = 3\n[node]",
        "programs: expected none at an arbiter, or without node.socket, got one",
    ),
    (
        "[node]",
        "[[service]]\nid = 7\nusers = [\"nobody-at-all\"]\n[node]",
        "service[0].users: expected users of this machine, got nobody-at-all",
    ),
    (
        "[node]",
        "[[service]]\nid = 7\n[[service]]\nid = 7\n[node]",
        "service[1].id: expected a service that no other table has, got 7",
    ),
    (
        "127.0.0.1:7631",
        "0.0.0.0:7631",
        "peer[1].address: expected the address of one host, got 0.0.0.0:7631",
    ),
    (
        "127.0.0.1:7631",
        "224.0.0.9:7631",
        "peer[1].address: expected the address of one host, got 224.0.0.9:7631",
    ),
    (
        "127.0.0.1:7631",
        "255.255.255.255:7631",
        "peer[1].address: expected the address of one host, got 255.255.255.255:7631",
    ),
    (
        "127.0.0.1:7631",
        "127.255.255.255:7631",
        "peer[1].address: expected the address of one host, got 127.255.255.255:7631",
    ),
    (
        "127.0.0.1:7631",
        "10.9.9.9:7631",
        "peer[1].address: expected a loopback address, as this node's own is 127.0.0.1:7621, \
         got 10.9.9.9:7631",
    ),
    ("clock", "metrics-address = \"here\"\nclock", "invalid socket address syntax"),
    ("rate-mbps = 100", "rate-mbps = 0", "network.rate-mbps: expected a number from 0.1"),
    ("rate-mbps = 100", "rate-mbps = \"fast\"", "rate-mbps: expected a number, got \"fast\""),
    ("rate-mbps = 100\n", "", "expected the key rate-mbps, got none"),
    ("rate-mbps = 100", "rate-mbps = 100\nmtu = 100", "network.mtu: expected a number from 576"),
    ("rate-mbps = 100", "rate-mbps = 1\nspray-ports = 0", "spray-ports: expected a number from 1"),
    (
        "clock = \"monotonic\"\n\n[network]",
        "datapath = \"xdp\"\ninterface = \"eth0\"\n\n[network]\nspray-ports = 1\n\
         segmentation-offload = true",
        "node.datapath: expected udp, if segmentation-offload = true, got xdp",
    ),
    ("rtt-us = 300", "rtt-us = 0", "network.control-rtt-us: expected a number from 0.1"),
    ("rtt-us = 300", "rtt-us = 1e9", "expected a number from 0.1 to 1000000, got 1000000000"),
    (
        "rtt-us = 300",
        "rtt-us = 300\ndata-rtt-us = 2e6",
        "network.data-rtt-us: expected a number from 300 to 1000000, got 2000000",
    ),
    (
        "rtt-us = 300",
        "rtt-us = 300\nunreachable-after-ms = 1",
        "network.unreachable-after-ms: expected a number from 3.1",
    ),
    (
        "rtt-us = 300",
        "rtt-us = 300\ndata-rtt-us = 200",
        "network.data-rtt-us: expected a number from 300",
    ),
    ("\"dcpim\"", "\"quic\"", "transport.name: expected one of dcpim, phost"),
    ("\"dcpim\"", "\"fastpass\"", "peer: expected 2 with arbiter = true"),
    ("\"dcpim\"", "\"ideal\"", "transport.name: expected one of dcpim, phost"),
    ("\"dcpim\"", "\"dcpim\"\nchannels = 99", "transport.channels: expected 1 to 64, got 99"),
    ("\"dcpim\"", "\"phost\"\npayload-bytes = 9", "transport.payload-bytes: expected no value"),
    (
        "\"dcpim\"",
        "\"dcpim\"\ncontrol-rtt-us = -1",
        "transport.control-rtt-us: expected a number from 0.001",
    ),
    (
        "\"dcpim\"",
        "\"dcpim\"\nbest-effort = { name = \"phost\" }",
        "transport.best-effort: expected no such key for dcpim, got phost",
    ),
    (
        "\"dcpim\"",
        "\"cosy\"\nbest-effort = { name = \"fastpass\" }",
        "transport.best-effort.name: expected dcpim or phost, got \"fastpass\"",
    ),
    (
        "\"dcpim\"",
        "\"cosy\"\nbest-effort = { preset = \"paper\" }",
        "transport.best-effort.name: expected the name of a transport, got none",
    ),
    (
        "\"dcpim\"",
        "\"cosy\"\nbest-effort = \"phost\"",
        "transport.best-effort: expected a transport table, got \"phost\"",
    ),
    (
        "\"dcpim\"",
        "\"cosy\"\nbest-effort = { name = \"dcpim\", matching-rounds = 99 }",
        "transport.best-effort.matching-rounds: expected 1 to 32, got 99",
    ),
    (
        "\"dcpim\"",
        "\"cosy\"\nbest-effort = { name = \"dcpim\", payload-bytes = 9 }",
        "transport.best-effort.payload-bytes: expected no value",
    ),
    ("id = 1", "id = 2", "peer[1].id: expected ids from 0 to 1, without gaps, got 2"),
    ("id = 1", "id = 0", "peer[1].id: expected a unique id, got 0"),
    ("id = 1", "arbiter = true\nid = 1", "peer: expected at least 2 hosts, got 1"),
    ("0.1:7631", "0.1:7622", "peer[1].address: expected two ports that peer 0 does not use"),
    ("0.1:7631", "0.1:65535", "peer[1].address: expected a port from 1 to 65534"),
    ("127.0.0.1:7631", "[::1]:7631", "peer[1].address: expected all IPv4 or all IPv6"),
    (
        "127.0.0.1:7631",
        "localhost",
        "expected an address or a host name, and a port, got \"localhost\"",
    ),
    ("security = \"none\"\n", "", "node.private-key: expected the file that `rampd keygen`"),
    (
        "clock",
        "private-key = \"a.key\"\nclock",
        "node.private-key: expected network.security = \"encrypted\" in the file, got a.key",
    ),
    (
        "clock",
        "key-log = \"keys.log\"\nclock",
        "node.key-log: expected network.security = \"encrypted\" in the file, got keys.log",
    ),
    ("security = \"none\"", "security = \"some\"", "expected one of encrypted, none, got some"),
    (
        "0.1:7631\"",
        "0.1:7631\"\npublic-key = \"AAAA\"",
        "peer[1].public-key: expected network.security = \"encrypted\" in the file, got AAAA",
    ),
    ("[network]", "[network", "n.toml: line 6, column 9"),
];

/// Every mistake is one line with the place, the expected and the actual value.
#[test]
fn broken_configurations_are_explained() {
    for (from, to, expected) in BROKEN {
        assert!(GOOD.contains(from), "{from}");
        let error = error_of(&GOOD.replacen(from, to, 1));
        assert!(error.starts_with("rampd: n.toml: "), "{error}");
        assert!(error.contains(expected), "{to:?} gave {error}, expected {expected}");
    }
}

#[test]
fn addresses_of_a_link_are_refused() {
    let text = GOOD.replace("127.0.0.1:7621", "[fe80::1%1]:7621");
    let error = error_of(&text.replace("127.0.0.1:7631", "[fe80::2%1]:7631"));
    let expected = "peer[0].address: expected an address that is valid on all hosts";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn segmentation_offload_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let joined =
        GOOD.replacen("[network]", "[network]\nspray-ports = 1\nsegmentation-offload = true", 1);
    fs::write(folder.path().join("n.toml"), joined).unwrap();
    let output = rampd(&["check", "n.toml"], folder.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn valid_configurations_are_described_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.toml", GOOD);
    write("b.toml", &GOOD.replacen("id = 0", "id = 1", 1));
    let output = rampd(&["check", "a.toml", "b.toml"], folder.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("a.toml: good\n") && table.contains("1 (host) at 127.0.0.1:7631"));
    let changes = [
        ("rate-mbps = 100", "[network]"),
        ("7631", "[[peer]]"),
        ("\"monotonic\"", "node.clock"),
        ("name = \"phost\"", "[transport]"),
    ];
    let coexisting = "\"cosy\"\nbest-effort = { name = \"phost\" }";
    let good = GOOD.replacen("\"dcpim\"", coexisting, 1);
    write("a.toml", &good);
    for (change, what) in changes {
        let to = match change {
            "7631" => "7641",
            "rate-mbps = 100" => "rate-mbps = 50",
            "name = \"phost\"" => "name = \"dcpim\"",
            _ => "\"time-of-day\"",
        };
        write("b.toml", &good.replacen("id = 0", "id = 1", 1).replacen(change, to, 1));
        let output = rampd(&["check", "a.toml", "b.toml"], folder.path());
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).unwrap();
        let fault = "expected that of a.toml, got another";
        assert_eq!(error, format!("rampd: b.toml: {what}: {fault} [bad-input]\n"));
    }
}

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

#[test]
fn a_missing_file_and_the_wrong_role_are_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let output = rampd(&["node", "none.toml"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("rampd: none.toml: No such"));
    fs::write(folder.path().join("n.toml"), GOOD).unwrap();
    let output = rampd(&["arbiter", "n.toml"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    let fault = "peer.arbiter of this node: expected true, got false: use `rampd node`";
    assert_eq!(error, format!("rampd: n.toml: {fault} [configuration-value]\n"));
}

/// SIGTERM ends a node with exit code 0; a port that is in use is an error of the system that names
/// it.
#[test]
fn a_node_starts_and_stops_and_its_port_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let config = GOOD.replace("76", "77");
    fs::write(folder.path().join("n.toml"), &config).unwrap();
    let with_socket = config.replacen("[node]", "[node]\nsocket = \"second.sock\"", 1);
    fs::write(folder.path().join("second.toml"), with_socket).unwrap();
    let start = |file: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rampd"));
        command.args(["--log-format", "json", "node", file]).current_dir(folder.path());
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut first = start("n.toml");
    thread::sleep(Duration::from_millis(300));
    let second = start("second.toml").wait_with_output().unwrap();
    assert!(!folder.path().join("second.sock.lock").exists(), "it came as far as its socket");
    assert_eq!(second.status.code(), Some(1));
    let error = String::from_utf8(second.stderr).unwrap();
    let last: serde_json::Value = serde_json::from_str(error.lines().last().unwrap()).unwrap();
    let message = last["fields"]["message"].as_str().unwrap();
    assert!(message.contains("cannot open UDP socket 127.0.0.1:7721: Address already in use"));
    assert_eq!(last["fields"]["code"], "system-failed");
    assert!(first.try_wait().unwrap().is_none(), "the first node runs on");
    let kill = Command::new("kill").arg(first.id().to_string()).status().unwrap();
    assert!(kill.success());
    let ended = first.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let error = String::from_utf8(ended.stderr).unwrap();
    assert!(error.lines().all(|line| line.starts_with('{')), "{error}");
    assert!(error.contains("\"started\"") && error.contains("\"stopped\""));
}

fn keygen(folder: &Path, file: &str) -> String {
    let output = rampd(&["keygen", file], folder);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Keys of sessions are appended only to a key log.
#[test]
fn keys_are_not_logged_to_links_or_files_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let [a, b] = ["a.key", "b.key"].map(|file| keygen(path, file));
    let error = |command: &str, log: &str| {
        let keys = format!("private-key = \"a.key\"\nkey-log = {log:?}\nclock");
        let text = GOOD
            .replacen("security = \"none\"\n", "", 1)
            .replacen("clock", &keys, 1)
            .replacen("0.1:7621\"", &format!("0.1:7621\"\npublic-key = {a:?}"), 1)
            .replacen("0.1:7631\"", &format!("0.1:7631\"\npublic-key = {b:?}"), 1);
        fs::write(path.join("n.toml"), text).unwrap();
        String::from_utf8(rampd(&[command, "n.toml"], path).stderr).unwrap()
    };
    fs::write(path.join("notes"), "mine").unwrap();
    fs::set_permissions(path.join("notes"), Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("notes", path.join("keys.log")).unwrap();
    let link = error("node", "keys.log");
    assert!(link.contains("keys.log: type: expected a key log that is a file, got a link"));
    let other = error("node", "notes");
    assert!(other.contains("notes: contents: expected an empty file, or a key log"), "{other}");
    assert_eq!(fs::read(path.join("notes")).unwrap(), b"mine");
    let own = error("check", "a.key");
    assert!(own.contains("node.key-log: expected a file other than node.private-key"), "{own}");
}

/// Configurations with keys: missing, wrong and readable ones are reported.
#[test]
fn keys_are_made_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let [a, b] = ["a.key", "b.key"].map(|file| keygen(path, file));
    assert!(a.len() == 44 && a != b);
    assert_eq!(keygen(path, "a.key"), a, "a key that is there is left alone");
    let mode =
        |mode| fs::set_permissions(path.join("a.key"), Permissions::from_mode(mode)).unwrap();
    assert_eq!(fs::metadata(path.join("a.key")).unwrap().permissions().mode() & 0o777, 0o600);
    let config = |of_a: &str, of_b: &str| {
        GOOD.replacen("security = \"none\"\n", "", 1)
            .replacen("clock", "private-key = \"a.key\"\nclock", 1)
            .replacen("0.1:7621\"", &format!("0.1:7621\"\npublic-key = {of_a}"), 1)
            .replacen("0.1:7631\"", &format!("0.1:7631\"\npublic-key = {of_b}"), 1)
    };
    let quoted = |key: &str| format!("{key:?}");
    let check = |text: &str| {
        fs::write(path.join("n.toml"), text).unwrap();
        let output = rampd(&["check", "n.toml"], path);
        let text = if output.status.success() { output.stdout } else { output.stderr };
        String::from_utf8(text).unwrap()
    };
    let good = config(&quoted(&a), &quoted(&b));
    assert!(check(&good).contains("packets               encrypted\n"), "{}", check(&good));
    let changing = config(&quoted(&a), &format!("[{b:?}, {:?}]", keygen(path, "next.key")));
    assert!(check(&changing).contains("encrypted\n"));
    let error = check(&config(&quoted(&b), &quoted(&a)));
    assert!(error.contains(&format!("expected that of the public-key of peer 0, {b}")), "{error}");
    let error = check(&config(&quoted(&a), "\"AAAA\""));
    assert!(error.contains("peer[1].public-key: expected 32 bytes in base64, got AAAA"), "{error}");
    let error = check(&config(&quoted(&a), &quoted(&a)));
    assert!(error.contains("peer[1].public-key: expected a key that no other peer has"), "{error}");
    let error = check(&config(&quoted(&a), "[]"));
    assert!(error.contains("peer[1].public-key: expected the key that `rampd keygen`"), "{error}");
    mode(0o644);
    let error = check(&good);
    assert!(error.contains("a private key that its owner alone can read (0600), got 0644"));
    mode(0o600);
    let error = check(&config(&quoted(&a), &quoted(&format!("{}=", "A".repeat(43)))));
    assert!(error.contains("with which anybody passes for the peer"), "{error}");
    // A file that another user owns is not secret in any mode.
    if std::os::unix::fs::chown(path.join("a.key"), Some(65_534), None).is_ok() {
        let error = check(&good);
        assert!(error.contains("owner: expected a private key that user"), "{error}");
        std::os::unix::fs::chown(path.join("a.key"), Some(0), None).unwrap();
    }
    fs::write(path.join("a.key"), "short").unwrap();
    let error = check(&good);
    assert!(error.contains("a.key: private key: expected 32 bytes in base64 (44 characters)"));
    // Configurations may be checked on machines without the private keys; a node needs its own.
    fs::remove_file(path.join("a.key")).unwrap();
    assert!(check(&good).contains("encrypted; no a.key here"), "{}", check(&good));
    let output = rampd(&["node", "n.toml"], path);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("rampd: a.key: No such file"));
}

/// A service manager may reload a node that it has just started. The configuration arrives by a
/// pipe, so that the test detects that the node is reading it.
#[test]
fn a_reload_during_the_start_does_not_stop_a_node() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("node.toml");
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    let mut node = Command::new(env!("CARGO_BIN_EXE_rampd"))
        .arg("node")
        .arg(&file)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Waits until the node reads.
    let writing = fs::OpenOptions::new().write(true).open(&file).unwrap();
    let signalled = Command::new("kill").args(["-HUP", &node.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    thread::sleep(Duration::from_millis(100));
    let ended = node.try_wait().unwrap();
    node.kill().unwrap();
    node.wait().unwrap();
    drop(writing);
    assert_eq!(ended, None);
}

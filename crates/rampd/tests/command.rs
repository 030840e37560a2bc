//! The command by hand: its output for valid and invalid configurations, and its exit codes.

#[path = "command/keys.rs"]
mod keys;
#[path = "command/metrics.rs"]
mod metrics;

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixListener;
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
    (
        "clock",
        "metrics-address = \"here\"\nclock",
        "address: expected an IP address and a port, got \"here\"",
    ),
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

/// The parts `file`, `line`, `key`, `expected` and `got` of an error; `-` for none. The last two
/// may be beginnings.
type Parts = [&'static str; 5];

/// Replacements in [`GOOD`], and the parts of the error of each.
const BROKEN_PARTS: &[(&str, &str, Parts)] = &[
    ("rate-mbps = 100\n", "", ["n.toml", "6", "network", "the key rate-mbps", "none"]),
    ("id = 1", "id = 1.5", ["n.toml", "19", "peer[1].id", "a whole number", "1.5"]),
    ("id = 1\n", "", ["n.toml", "18", "peer[1]", "the key id", "none"]),
    ("clock", "speed = 1\nclock", ["n.toml", "4", "node.speed", "one of id,", "speed"]),
    ("127.0.0.1:7631", "here", ["n.toml", "20", "peer[1].address", "an address or", "\"here\""]),
    ("id = 1", "id = 0", ["n.toml", "19", "peer[1].id", "a unique id", "0"]),
    ("\"monotonic\"", "7", ["n.toml", "4", "node.clock", "a text", "7"]),
    ("= 100", "= 1979-05-27", ["n.toml", "7", "network.rate-mbps", "a number", "1979-05-27"]),
    ("= 100", "= 0", ["n.toml", "7", "network.rate-mbps", "a number from 0.1", "0"]),
    ("\"dcpim\"", "\"quic\"", ["n.toml", "12", "transport.name", "one of dcpim,", "\"quic\""]),
    (
        "[node]",
        "[[service]]\nid = 7\nusers = [true]\n[node]",
        ["n.toml", "4", "service[0].users", "a name, or a number", "[true]"],
    ),
    ("security = \"none\"", "", ["n.toml", "2", "node.private-key", "the file that", "none"]),
];

const LOAD: &[&str] = &["load", "n.toml", "--flows", "t.csv", "--log", "l", "--start-ns", "0"];

/// A file with its content, a command, and the parts of its error. `n.toml` is [`GOOD`].
const BAD_INPUTS: &[((&str, &str), &[&str], Parts)] = &[
    (("", ""), &["check", "no"], ["no", "-", "-", "a file that can be read", "No such file"]),
    (
        ("t.csv", "flow,src\n"),
        LOAD,
        ["t.csv", "1", "arrival_ps", "the columns flow, arrival_ps,", "flow,src"],
    ),
    (
        ("t.csv", "flow,arrival_ps,src,dst,size_bytes\n\n1,x,0,1,9\n"),
        LOAD,
        ["t.csv", "3", "arrival_ps", "a whole number from 0", "\"x\""],
    ),
    (
        ("t.csv", "flow,arrival_ps,src,dst,size_bytes\n1,0,0,2,9\n"),
        LOAD,
        ["t.csv", "2", "dst", "a host from 0 to 1", "2"],
    ),
    (
        ("t.csv", "flow,arrival_ps,src,dst,size_bytes,after\n1,0,0,1,9,8\n"),
        LOAD,
        ["t.csv", "2", "after", "flows of the table", "8"],
    ),
    (
        ("a.key", "short"),
        &["keygen", "a.key"],
        ["a.key", "-", "private key", "32 bytes in base64", "5 characters"],
    ),
    (
        ("k", "\nRAMPMETER_KEY 1\n"),
        &["decrypt", "--keys", "k", "c", "o"],
        ["k", "2", "-", "RAMPMETER_KEY, source,", "another line"],
    ),
    (
        ("", ""),
        &["init", "n", "--rate-mbps", "0"],
        ["-", "-", "--rate-mbps", "a number from 0.1", "0"],
    ),
    (("", ""), &["init", "n", "--port", "x"], ["-", "-", "--port", "a port from 0 to 65535", "x"]),
    (("", ""), &["check"], ["-", "-", "CONFIGS", "a value", "none"]),
    (("", ""), &["check", "--nope", "n"], ["-", "-", "--nope", "a known option", "--nope"]),
];

/// Asserts that a command with `--json` has an error with such parts.
fn assert_parts(folder: &Path, args: &[&str], parts: &Parts) {
    let output = rampd(&[&["--json"], args].concat(), folder);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    for (name, part) in ["file", "line", "key", "expected", "got"].iter().zip(parts) {
        let value = match &error[name] {
            serde_json::Value::Null => "-".to_owned(),
            serde_json::Value::String(text) => text.clone(),
            number => number.to_string(),
        };
        let is_start = matches!(*name, "expected" | "got") && value.starts_with(part);
        assert!(is_start || value == *part, "{args:?}, {parts:?}: {name}: {error}");
    }
}

/// Each error of input has its place, and the expected and the actual value.
#[test]
fn errors_of_input_have_parts() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    for (from, to, parts) in BROKEN_PARTS {
        write("n.toml", &GOOD.replacen(from, to, 1));
        assert_parts(folder.path(), &["check", "n.toml"], parts);
    }
    write("n.toml", GOOD);
    for ((name, text), args, parts) in BAD_INPUTS {
        if !name.is_empty() {
            write(name, text);
        }
        assert_parts(folder.path(), args, parts);
    }
    write("b.toml", &GOOD.replacen("= 300", "= 400", 1));
    let parts = ["b.toml", "-", "[network]", "that of n.toml", "another"];
    assert_parts(folder.path(), &["check", "n.toml", "b.toml"], &parts);
}

#[test]
fn files_and_answers_of_another_kind_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("n.toml"), GOOD).unwrap();
    let table = b"flow,arrival_ps,src,dst,size_bytes\n1,\xff,0,1,9\n";
    fs::write(path.join("t.csv"), table).unwrap();
    assert_parts(path, LOAD, &["t.csv", "2", "-", "text in UTF-8", "other bytes"]);
    let socket = UnixListener::bind(path.join("other")).unwrap();
    let answering = thread::spawn(move || socket.accept().unwrap().0.write_all(b"hello").unwrap());
    let output = rampd(&["status", "other"], path);
    answering.join().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    let expected = "rampd: other: expected the status of a node, got another answer [bad-input]\n";
    assert_eq!(error, expected);
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
        assert_eq!(
            error,
            format!("rampd: b.toml: {what}: expected that of a.toml, got another [bad-input]\n")
        );
    }
}

#[test]
fn a_missing_file_and_the_wrong_role_are_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let output = rampd(&["node", "none.toml"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    let expected = "rampd: none.toml: expected a file that can be read, got No such file";
    assert!(error.starts_with(expected), "{error}");
    fs::write(folder.path().join("n.toml"), GOOD).unwrap();
    let output = rampd(&["arbiter", "n.toml"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        error,
        "rampd: n.toml: node.id: expected the id of an arbiter, got that of a host (use `rampd \
         node`) [bad-input]\n"
    );
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

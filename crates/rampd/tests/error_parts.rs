//! Errors with `--json`: file, line, key, expected and actual value are data.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const GOOD: &str = r#"
[node]
id = 0
clock = "monotonic"
socket = "0.sock"

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

const TABLE: &str = "flow,arrival_ps,src,dst,size_bytes\n0,0,0,1,100\n";

/// Returns the error of a command that must fail, with the parts that it has, in the order of keys.
fn error_of(command: &str, folder: &Path) -> (String, String) {
    let mut rampd = Command::new("timeout");
    rampd.arg("60").arg(env!("CARGO_BIN_EXE_rampd")).arg("--json");
    let output = rampd.args(command.split(' ')).current_dir(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{command}: {output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    let object: Value = serde_json::from_str(stderr.trim()).expect("one object");
    assert_eq!(object["schema"], "rampd.error/1");
    let text = |key: &str| match &object[key] {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let parts = ["file", "line", "key", "expected", "got"].map(text).join(" | ");
    (text("message"), parts)
}

/// Commands in a folder with `good.toml` and `table.csv`, a file, what is replaced in it, and the
/// parts of the error.
const CASES: &[(&str, &str, &str, &str, &str)] = &[
    (
        "check good.toml other.toml",
        "other.toml",
        "rate-mbps = 100",
        "rate-mbps = 50",
        "other.toml | - | [network] | that of good.toml | another",
    ),
    (
        "check other.toml",
        "other.toml",
        "id = 0\nclock",
        "id = -1\nclock",
        "other.toml | 3 | node.id | a whole number from 0 to 4294967295 | -1",
    ),
    (
        "arbiter good.toml",
        "",
        "",
        "",
        "good.toml | - | peer.arbiter of this node | true | false: use `rampd node`",
    ),
    (
        "agent good.toml",
        "",
        "",
        "",
        "good.toml | - | transport.name | capton, which agents are for | dcpim",
    ),
    ("check none.toml", "", "", "", "none.toml | - | - | - | -"),
    ("keygen good.toml", "", "", "", "good.toml | - | private key | - | -"),
    ("keygen none/a.key", "", "", "", "none/a.key | - | - | - | -"),
    ("init new --hosts 127.0.0.1", "", "", "", "- | - | --hosts | two hosts or more | 127.0.0.1"),
    (
        "init new --hosts 127.0.0.1,127.0.0.1 --port 65534",
        "",
        "",
        "",
        "- | - | --port | ports below 65535 | 65534 and 2 nodes of 127.0.0.1",
    ),
    (
        "init good.toml --hosts 10.0.0.1,10.0.0.2",
        "",
        "",
        "",
        "good.toml | - | - | a folder | another file",
    ),
    (
        "decrypt --keys good.toml table.csv out",
        "",
        "",
        "",
        "table.csv | - | - | a capture in the format pcap or pcapng | another file",
    ),
    ("decrypt --keys none table.csv out", "", "", "", "none | - | - | - | -"),
    (
        "load good.toml --flows table.csv --start-ns 0 --log log",
        "table.csv",
        "0,1,100",
        "0,one,100",
        "table.csv | 2 | dst | a whole number from 0 to 4294967295 | \"one\"",
    ),
    (
        "load good.toml --flows table.csv --start-ns 0 --log log",
        "table.csv",
        ",dst,",
        ",to,",
        "table.csv | 1 | - | a column dst | flow, arrival_ps, src, to, size_bytes",
    ),
    (
        "load good.toml --flows table.csv --start-ns 0 --log log",
        "table.csv",
        "0,1,100",
        "0,1",
        "table.csv | 2 | - | 5 fields | 4",
    ),
    (
        "load good.toml --flows table.csv --start-ns 0 --log log",
        "table.csv",
        "0,1,100",
        "0,7,100",
        "table.csv | 2 | src, dst | two of 2 hosts | 0 and 7",
    ),
];

#[test]
fn errors_of_input_have_parts() {
    for (command, file, from, to, expected) in CASES {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("good.toml", GOOD), ("other.toml", GOOD), ("table.csv", TABLE)] {
            let text = if name == *file { text.replacen(from, to, 1) } else { text.to_owned() };
            fs::write(folder.path().join(name), text).unwrap();
        }
        let (message, parts) = error_of(command, folder.path());
        assert_eq!(parts, *expected, "{command}: {message}");
        // The message of a person has all of them.
        for part in expected.split(" | ").filter(|part| *part != "-") {
            assert!(message.contains(part), "{command}: {message}: {part}");
        }
    }
}

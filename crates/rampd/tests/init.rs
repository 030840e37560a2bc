//! `rampd init` by hand: its files, and its errors. `tests/test_daemons.py` starts its nodes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn rampd(args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rampd"));
    command.args(args).current_dir(folder).output().expect("rampd starts")
}

/// Runs `rampd init` with bad input, and returns its error.
fn error_of(args: &[&str], folder: &Path) -> String {
    let output = rampd(&[&["init"], args].concat(), folder);
    assert_eq!(output.status.code(), Some(2), "{args:?}\n{output:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn written_files_agree_and_only_their_owner_reads_the_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for more in [&[][..], &["--hosts", "10.0.0.1,10.0.0.2,10.0.0.1", "--transport", "homa"]] {
        let name = format!("nodes \"{}\"", more.len());
        let output = rampd(&[&["init", &*name], more].concat(), path);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let configs: Vec<_> = (0..3).map(|id| format!("{name}/node{id}.toml")).collect();
        let n = if more.is_empty() { 2 } else { 3 };
        let check: Vec<_> = std::iter::once("check").chain(configs.iter().map(|c| &**c)).collect();
        let checked = rampd(&check[..=n], path);
        assert_eq!(checked.status.code(), Some(0), "{checked:?}");
        for id in 0..n {
            let key = path.join(&name).join(format!("{id}.key"));
            assert_eq!(fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let text = fs::read_to_string(path.join(&configs[n - 1])).unwrap();
        assert_eq!(text.contains("clock = \"monotonic\""), more.is_empty());
        // A further node of a host has other ports.
        let last = ["127.0.0.1:7331", "10.0.0.1:7331"][n - 2];
        assert!(text.contains(last), "{text}");
        assert_eq!(text.contains("socket = \"/run/rampd/2.sock\""), n == 3);
    }
}

fn json_of(args: &[&str], folder: &Path, exit_code: i32) -> Value {
    let output = rampd(&[&["--json"], args].concat(), folder);
    assert_eq!(output.status.code(), Some(exit_code), "{output:?}");
    let text = if exit_code == 0 { &output.stdout } else { &output.stderr };
    serde_json::from_slice(text).unwrap_or_else(|e| panic!("{args:?}: {e}: {output:?}"))
}

#[test]
fn commands_print_objects_with_a_schema() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let made = json_of(&["init", "n"], path, 0);
    assert_eq!(made["schema"], "rampd.init/1");
    assert_eq!(made["nodes"][1]["config"], "n/node1.toml");
    assert_eq!(made["nodes"][1]["role"], "host");
    let checked = json_of(&["check", "n/node0.toml", "n/node1.toml"], path, 0);
    assert_eq!(checked["schema"], "rampd.check/1");
    let of = &checked["configurations"][1];
    assert_eq!((&of["node"], &of["security"]), (&1.into(), &"encrypted".into()));
    assert_eq!(of["addresses"][0], made["nodes"][1]["address"]);
    assert!(of["derived"]["phase-us"].as_f64().unwrap() > 0.0, "{of}");
    let key = json_of(&["keygen", "n/0.key"], path, 0);
    assert_eq!((&key["schema"], &key["is_new"]), (&"rampd.keygen/1".into(), &false.into()));
    let text = fs::read_to_string(path.join("n/node1.toml")).unwrap();
    assert!(text.contains(key["public_key"].as_str().unwrap()));
}

#[test]
fn errors_are_objects_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    json_of(&["init", "n"], path, 0);
    let file = path.join("n/node0.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("rate-mbps = 1000", "rate-mbps = 0")).unwrap();
    let error = json_of(&["check", "n/node0.toml"], path, 2);
    assert_eq!((&error["schema"], &error["exit_code"]), (&"rampd.error/1".into(), &2.into()));
    assert_eq!((&error["file"], &error["got"]), (&"n/node0.toml".into(), &"0".into()));
    assert_eq!(error["key"], "network.rate-mbps");
    // Types, former and unknown names, and missing keys.
    for (wrong, line, key, expected, got) in [
        ("[node]\nid = 'x'\n", 2, Some("node.id"), "a whole number", "\"x\""),
        (
            "[node]\ngather-us = 1\n",
            2,
            Some("node.gather-us"),
            "the present name `coalesce-us`",
            "the former name `gather-us`",
        ),
        ("[node]\nnumber = 1\n", 2, Some("node.number"), "one of id, ", "number"),
        ("[node]\nid = 1\n", 1, None, "the key network", "none"),
    ] {
        fs::write(&file, wrong).unwrap();
        let error = json_of(&["check", "n/node0.toml"], path, 2);
        assert_eq!(
            (&error["code"], &error["line"]),
            (&"configuration-syntax".into(), &line.into())
        );
        assert_eq!((&error["key"], &error["got"]), (&key.into(), &got.into()), "{error}");
        assert!(error["expected"].as_str().unwrap().starts_with(expected), "{error}");
    }
    let error = json_of(&["check", "absent.toml"], path, 2);
    assert_eq!((&error["code"], &error["key"]), (&"configuration-file".into(), &Value::Null));
}

#[test]
fn arbiters_are_the_last_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (transport, arbiters, n) in
        [("fastpass", "127.0.0.1,127.0.0.1", 4), ("capton", "127.0.0.1", 3)]
    {
        let args = ["init", transport, "--transport", transport, "--arbiters", arbiters];
        let output = rampd(&args, path);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed.matches("rampd node ").count(), 2, "{printed}");
        assert_eq!(printed.matches("rampd arbiter ").count(), n - 2, "{printed}");
        let configs: Vec<_> = (0..n).map(|id| format!("{transport}/node{id}.toml")).collect();
        let check: Vec<_> = std::iter::once("check").chain(configs.iter().map(|c| &**c)).collect();
        let checked = rampd(&check, path);
        assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    }
}

#[test]
fn no_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for name in ["0.key", "1.key", "node0.toml", "node1.toml"] {
        fs::create_dir(path.join("nodes")).unwrap();
        fs::write(path.join("nodes").join(name), "mine").unwrap();
        let error = error_of(&["nodes"], path);
        let expected = format!("rampd: nodes/{name}: expected no such file, got one, which stays");
        assert!(error.starts_with(&expected), "{error}");
        assert_eq!(fs::read_to_string(path.join("nodes").join(name)).unwrap(), "mine");
        assert_eq!(fs::read_dir(path.join("nodes")).unwrap().count(), 1);
        fs::remove_dir_all(path.join("nodes")).unwrap();
    }
    fs::write(path.join("nodes"), "mine").unwrap();
    let error = error_of(&["nodes"], path);
    assert_eq!(error, "rampd: nodes: expected a folder, got another file [bad-input]\n");
}

#[test]
fn bad_options_are_explained_and_leave_no_files() {
    let folder = tempfile::tempdir().unwrap();
    for (option, value, expected) in [
        ("--hosts", "10.0.0.1", "--hosts: expected two hosts or more, got 10.0.0.1"),
        (
            "--hosts",
            "10.0.0.1,a:b",
            "--hosts: expected addresses, or names that have one, got \"a:b\"",
        ),
        ("--hosts", "10.0.0.1,127.0.0.1", "expected a loopback address, as this node's own is"),
        ("--hosts", "10.0.0.1,no-such.invalid", "or names that have one, got \"no-such.invalid\""),
        ("--port", "65530", "--port: expected ports below 65535, got 65530 and 2 nodes of 127.0"),
        ("--rate-mbps", "0", "--rate-mbps: expected a number from 0.1 to 1000000, got 0"),
        ("--transport", "fastpass", "expected 2 with arbiter = true, as the transport has"),
        ("--arbiters", "127.0.0.1", "expected 0 with arbiter = true, as the transport has"),
        ("--transport", "\"", "--transport: expected one of dcpim, phost"),
    ] {
        let error = error_of(&["nodes", option, value], folder.path());
        assert!(error.contains(expected), "{option} {value}: {error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn the_version_has_the_commit() {
    let output = rampd(&["--version"], Path::new("."));
    let text = String::from_utf8(output.stdout).unwrap();
    let commit = text.strip_prefix(concat!("rampd ", env!("CARGO_PKG_VERSION"), " ("));
    let commit = commit.and_then(|rest| rest.strip_suffix(")\n")).expect("a version and a commit");
    let is_hash = commit.len() >= 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_hash || commit == "unknown", "{text}");
}

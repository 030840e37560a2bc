//! The C example, compiled and run.

#[path = "../../ring/tests/common/mod.rs"]
mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Testbed, TestbedConfig};
use rampmeter_proto::cosy::CosyTransport;
use rampmeter_types::{Bytes, Span};

/// Returns the static library that was built with this test.
fn library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let entries = std::fs::read_dir(deps).unwrap().map(|entry| entry.unwrap());
    let is_it = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("librampmeter_capi") && name.ends_with(".a")
    };
    let found = entries.filter(|entry| is_it(&entry.path()));
    let newest = found.max_by_key(|entry| entry.metadata().and_then(|m| m.modified()).unwrap());
    newest.expect("a static library is built before tests").path()
}

/// Compiles an example, in a folder.
fn compile(dir: &Path, example: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = dir.join(example);
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(root.join("include"))
        .arg(root.join("examples").join(example).with_extension("c"))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm"])
        .status()
        .unwrap();
    assert!(compiled.success());
    program
}

#[test]
fn programs_in_c_exchange_messages() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "echo");
    let bed = Testbed::start(dir.path(), &TestbedConfig::default());
    let mut server = Command::new(&program)
        .arg(&bed.sockets[1])
        .arg("7")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "attached");
    let run = |service: &str| {
        Command::new(&program).arg(&bed.sockets[0]).args([service, "1", "100"]).output().unwrap()
    };
    let printed = run("7");
    assert_eq!(String::from_utf8_lossy(&printed.stdout), "attached\n100 echoes\n", "{printed:?}");
    assert!(printed.status.success());
    let refused = run("9");
    assert_eq!(
        String::from_utf8_lossy(&refused.stderr),
        "message 0 failed: no program there receives messages of this service or size\n"
    );
    bed.stop();
    assert!(server.wait().unwrap().success(), "it ends well when the node is gone");
}

#[test]
fn programs_in_c_receive_the_bound_of_the_state_machine() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "echo");
    let config = TestbedConfig { rtt: Span::from_us(50_000), ..TestbedConfig::default() };
    let bed = Testbed::of::<CosyTransport>(dir.path(), &config);
    // The program on service 9 sends to itself, through its node.
    let printed =
        Command::new(&program).arg(&bed.sockets[0]).args(["9", "0", "1"]).output().unwrap();
    let size = Bytes::new("message 0\0".len() as u64);
    let bound = config.protocol::<CosyTransport>().bound(size).as_ps().div_ceil(1_000);
    let expected = format!("attached\n1 echoes, the last within {bound} ns\n");
    assert_eq!(String::from_utf8_lossy(&printed.stdout), expected, "{printed:?}");
    bed.stop();
}

#[test]
fn round_trips_of_messages_and_of_bare_udp_are_timed() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "ping");
    let bed = Testbed::start(dir.path(), &TestbedConfig::default());
    let start = |args: &[&str]| {
        let mut server = Command::new(&program).args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        assert!(["attached", "bound"].contains(&&*lines.next().unwrap().unwrap()));
        server
    };
    let query = |args: &[&str]| {
        let printed = Command::new(&program).args(args).output().unwrap();
        assert!(printed.status.success(), "{printed:?}");
        let times = String::from_utf8(printed.stdout).unwrap();
        times.lines().map(|line| line.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    let [here, there] = [0, 1].map(|node: usize| bed.sockets[node].to_str().unwrap());
    let mut server = start(&["serve", there, "7"]);
    let times = query(&["ask", here, "7", "1", "20"]);
    assert!(times.len() == 20 && times.iter().all(|ns| *ns > 1_000), "{times:?}");
    let port = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut udp = start(&["udp-serve", &port.to_string()]);
    let times = query(&["udp-ask", &port.to_string(), "20"]);
    assert!(times.len() == 20 && times.iter().all(|ns| *ns > 1_000), "{times:?}");
    udp.kill().unwrap();
    udp.wait().unwrap();
    bed.stop();
    assert!(server.wait().unwrap().success(), "it ends well when the node is gone");
}

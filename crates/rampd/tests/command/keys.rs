//! Keys of nodes, and logs of the keys of sessions.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{GOOD, rampd};

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
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("rampd: a.key: expected a file that can be read, got No"));
}

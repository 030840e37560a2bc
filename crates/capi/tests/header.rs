//! The header matches the sources.

use std::path::Path;

#[test]
fn the_header_is_that_of_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut made = Vec::new();
    cbindgen::generate(root).unwrap().write(&mut made);
    let path = root.join("include/rampmeter.h");
    if std::env::var_os("RAMPMETER_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let hint = "write it with RAMPMETER_HEADER=write cargo test -p rampmeter-capi --test header";
    assert!(committed.as_bytes() == made, "include/rampmeter.h is out of date: {hint}");
}

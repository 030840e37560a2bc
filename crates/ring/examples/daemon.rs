//! Nodes for tests of programs that use the rings. `daemon <folder> [nodes]` makes the sockets
//! `node0.sock`, `node1.sock` and so on in the folder, prints `ready`, and ends with its standard
//! input.

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::{env, io};

use common::{Testbed, TestbedConfig};

fn main() -> io::Result<()> {
    let mut args = env::args_os().skip(1);
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, "usage: daemon <folder> [nodes]");
    let dir = PathBuf::from(args.next().ok_or_else(usage)?);
    let n_nodes = match args.next() {
        Some(n) => n.to_str().and_then(|n| n.parse().ok()).ok_or_else(usage)?,
        None => 2,
    };
    let bed = Testbed::start(&dir, &TestbedConfig { n_nodes, ..TestbedConfig::default() });
    let mut out = io::stdout();
    out.write_all(b"ready\n")?;
    out.flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    bed.stop();
    Ok(())
}

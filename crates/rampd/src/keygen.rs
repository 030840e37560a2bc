//! `rampd keygen`: key of a node.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rampmeter_runtime::PrivateKey;

use crate::error::Error;

/// Runs `rampd keygen`: writes a new private key to `file`, readable only by its owner, and prints
/// its public key. If the file exists, prints the public key of its content.
pub(crate) fn keygen(file: &Path) -> Result<(), Error> {
    let path = file.display();
    let key = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(mut out) => {
            let key = PrivateKey::generate()?;
            let written = writeln!(out, "{}", key.to_base64()).and_then(|()| out.sync_all());
            if let Err(error) = written {
                // A partial file would be used as an existing key.
                let _ = fs::remove_file(file);
                let message = format!("cannot write {path}: {error}");
                return Err(io::Error::new(error.kind(), message).into());
            }
            key
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let text = fs::read_to_string(file)
                .map_err(|error| Error::Input(format!("{path}: {error}")))?;
            text.parse().map_err(|error| Error::Input(format!("{path}: private key: {error}")))?
        }
        Err(error) => return Err(Error::Input(format!("{path}: {error}"))),
    };
    writeln!(std::io::stdout(), "{}", key.public())?;
    Ok(())
}

//! `rampd keygen`: key of a node.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rampmeter_runtime::PrivateKey;

use serde_json::json;

use crate::config::parse_private_key;
use crate::error::{Error, InputError};
use crate::json::Form;

/// Runs `rampd keygen`: writes a new private key to `file`, readable only by its owner, and prints
/// its public key. If the file exists, prints the public key of its content.
pub(crate) fn keygen(file: &Path, form: Form) -> Result<(), Error> {
    let mut is_new = false;
    let key = match create(file, 0o600) {
        Ok(out) => {
            is_new = true;
            let key = PrivateKey::generate()?;
            fill(out, file, &format!("{}\n", key.to_base64()))?;
            key
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let text = fs::read_to_string(file)
                .map_err(|error| InputError::unreadable(&error).in_file(file))?;
            parse_private_key(&text).map_err(|error| error.in_file(file))?
        }
        Err(error) => return Err(InputError::unwritable(&error).in_file(file).into()),
    };
    let public = key.public().to_string();
    form.print(&format!("{public}\n"), || {
        let file = file.display().to_string();
        json!({"schema": "rampd.keygen/1", "file": file, "public_key": public, "is_new": is_new})
    })?;
    Ok(())
}

/// Creates a file that does not exist yet.
pub(crate) fn create(file: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(file)
}

/// Writes the content of a new file. A file that cannot be written completely is removed: part of a
/// key would be used as an existing key.
pub(crate) fn fill(mut out: File, file: &Path, text: &str) -> Result<(), Error> {
    out.write_all(text.as_bytes()).and_then(|()| out.sync_all()).map_err(|error| {
        let _ = fs::remove_file(file);
        let message = format!("cannot write {}: {error}", file.display());
        io::Error::new(error.kind(), message).into()
    })
}

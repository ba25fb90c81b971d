//! The identity on disk: one PEM file, made once, never changed.
//!
//! ```text
//!   .identity.key.<random>.new   write, fsync          (mode 0600 from its first moment)
//!            | link, which fails when the name is taken
//!            v
//!   identity.key                 fsync the directory, then load what is there
//! ```
//!
//! A link instead of a rename: a rename would replace the key of a process that was faster. So the
//! file is whole whenever it is visible, and everybody loads the winner's. A crash in between
//! leaves a `.new` file that nobody uses. Invariant: nothing here opens `identity.key` for writing.
//!
//! Sources: RFC 7468 (PEM), RFC 8410 (Ed25519 in PKCS#8), XDG base directory specification 0.8.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::signature::Ed25519KeyPair;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

use crate::base64;
use crate::identity::{IdentityError, new_key};

const KEY_FILE: &str = "identity.key";
/// A key takes about 120 bytes; comments before it may take the rest.
const KEY_FILE_LEN_MAX: u64 = 4096;
const PEM_COLUMNS: usize = 64;

/// Where the identity is kept: `$XDG_STATE_HOME/dacapo`, else `$HOME/.local/state/dacapo`.
///
/// `var` looks up an environment variable: `default_dir(|name| std::env::var_os(name))`. Relative
/// and empty values do not count, as the XDG specification asks; `None` when neither is set.
#[must_use]
pub fn default_dir(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("dacapo"))
}

/// The key in `dir`, made there when there is none.
pub(crate) fn load_or_create(dir: &Path) -> Result<PrivatePkcs8KeyDer<'static>, IdentityError> {
    let path = dir.join(KEY_FILE);
    if let Some(key) = load(&path)? {
        tidy_up(dir);
        return Ok(key);
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| IdentityError::CreateDirectory { path: dir.to_path_buf(), source })?;
    create(dir, &path, &new_key()?)?;
    // Another process may have been faster, so what counts is what is there now.
    load(&path)?.ok_or_else(|| {
        let source = io::Error::new(io::ErrorKind::NotFound, "it vanished after it was made");
        IdentityError::Read { path, source }
    })
}

fn load(path: &Path) -> Result<Option<PrivatePkcs8KeyDer<'static>>, IdentityError> {
    match read(path) {
        Ok(text) => parse(path, &text?).map(Some),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(IdentityError::Read { path: path.to_path_buf(), source }),
    }
}

/// The bytes of the file, at most one more than is allowed; the inner error is about what it is.
fn read(path: &Path) -> io::Result<Result<Vec<u8>, IdentityError>> {
    // Asked before opening too, because opening a FIFO waits for its other end.
    if !fs::metadata(path)?.is_file() {
        return Ok(Err(IdentityError::NotAFile { path: path.to_path_buf() }));
    }
    let file = File::open(path)?;
    let mode = file.metadata()?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Ok(Err(IdentityError::Exposed { path: path.to_path_buf(), mode }));
    }
    let mut text = Vec::new();
    file.take(KEY_FILE_LEN_MAX + 1).read_to_end(&mut text)?;
    Ok(Ok(text))
}

fn parse(path: &Path, text: &[u8]) -> Result<PrivatePkcs8KeyDer<'static>, IdentityError> {
    let fits = text.len() as u64 <= KEY_FILE_LEN_MAX;
    let key = fits.then(|| PrivatePkcs8KeyDer::from_pem_slice(text).ok()).flatten();
    key.filter(|key| Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.secret_pkcs8_der()).is_ok())
        .ok_or_else(|| IdentityError::Malformed { path: path.to_path_buf() })
}

/// Puts `key` at `path` unless something is there already.
fn create(dir: &Path, path: &Path, key: &PrivatePkcs8KeyDer<'_>) -> Result<(), IdentityError> {
    let mut nonce = [0; 8];
    aws_lc_rs::rand::fill(&mut nonce)
        .map_err(|_| IdentityError::key("the system gave no randomness"))?;
    let temporary = dir.join(format!(".{KEY_FILE}.{:016x}.new", u64::from_be_bytes(nonce)));
    let written = write_new(&temporary, &pem(key)).and_then(|()| link_new(&temporary, path));
    // Best effort: a second name of the winner, or a key that nobody uses; both 0600.
    let _ = fs::remove_file(&temporary);
    written
        .and_then(|()| File::open(dir)?.sync_all())
        .map_err(|source| IdentityError::Write { path: path.to_path_buf(), source })
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    // A strange umask may have taken the owner's own bits.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Somebody who found the winner's key has tidied up.
        Err(error) if error.kind() == io::ErrorKind::NotFound && to.exists() => Ok(()),
        result => result,
    }
}

/// Removes what processes have left that were killed while they made a key; only where there is a
/// key already, because then no other can win any more.
fn tidy_up(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&format!(".{KEY_FILE}.")) && name.ends_with(".new") {
            // Best effort: both 0600, and nobody uses it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn pem(key: &PrivatePkcs8KeyDer<'_>) -> String {
    let mut letters = base64::encode(key.secret_pkcs8_der());
    while !letters.len().is_multiple_of(4) {
        letters.push('=');
    }
    let mut text = String::from("-----BEGIN PRIVATE KEY-----\n");
    for (at, letter) in letters.chars().enumerate() {
        if at > 0 && at.is_multiple_of(PEM_COLUMNS) {
            text.push('\n');
        }
        text.push(letter);
    }
    text.push_str("\n-----END PRIVATE KEY-----\n");
    text
}

#[cfg(test)]
mod tests;

//! Where this user's things are: the identity, and the folder of the players' sockets.
//!
//! Invariant: a key that is not there is not made, and one that is there is not changed.
//!
//! Source: XDG base directory specification 0.8; `dacapo-security` keeps the identity by it.

use super::finding::Finding;
use crate::local;
use dacapo::Endpoint;
use dacapo_sys::process;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The findings.
pub fn examine() -> Vec<Finding> {
    vec![identity(), runtime_folder(std::env::var_os("XDG_RUNTIME_DIR"))]
}

/// The file of the identity, which need not be there; nothing when the environment names no folder.
pub fn key_file() -> Option<PathBuf> {
    key_file_by(|name| std::env::var_os(name))
}

fn key_file_by(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("dacapo/identity.key"))
}

fn identity() -> Finding {
    let Some(path) = key_file() else {
        let found = "neither XDG_STATE_HOME nor HOME is an absolute path";
        return Finding::fail("identity", found, "set one of them: the identity is kept there");
    };
    let shown = path.display();
    match look(&path) {
        Ok(None) => {
            Finding::info("identity", format!("{shown} is not there; the first start makes it"))
        }
        Ok(Some(mode)) if mode & 0o077 != 0 => Finding::fail(
            "identity",
            format!("{shown} may be used by others (mode {mode:04o})"),
            format!("chmod 600 {shown}; if others may have read it, remove it and be a new one"),
        ),
        Ok(Some(mode)) => present(&path, mode),
        Err(error) => Finding::fail(
            "identity",
            format!("{shown}: {error}"),
            "give the file and its folders to this user, or set XDG_STATE_HOME to another folder",
        ),
    }
}

/// The permissions of a key that can be read; nothing when there is none.
fn look(path: &Path) -> io::Result<Option<u32>> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !about.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    File::open(path)?;
    Ok(Some(about.permissions().mode() & 0o7777))
}

/// There is a key: whether it is one, a start says.
fn present(path: &Path, mode: u32) -> Finding {
    match Endpoint::new() {
        Ok(endpoint) => {
            let found =
                format!("{} in {} (mode {mode:04o})", endpoint.fingerprint(), path.display());
            Finding::ok("identity", found)
        }
        Err(error) => Finding::fail(
            "identity",
            error.to_string(),
            "restore it from a backup, or move it away: the next start makes a new one",
        ),
    }
}

fn runtime_folder(runtime: Option<OsString>) -> Finding {
    let check = "runtime-folder";
    let players = local::folder();
    let Some(runtime) = runtime.map(PathBuf::from).filter(|path| path.is_absolute()) else {
        let found = format!("XDG_RUNTIME_DIR is not set; players are in {}", players.display());
        let advice = "it works within one login; a session manager sets it (pam_systemd), else: \
                      export XDG_RUNTIME_DIR to a folder of yours with mode 0700";
        return Finding::warn(check, found, advice);
    };
    let fault = fs::metadata(&runtime).map_or_else(|error| Some(error.to_string()), fault);
    let inner = fs::symlink_metadata(&players).ok().and_then(fault_of_own);
    let faults = [(runtime, fault), (players, inner)];
    match faults.iter().find_map(|(path, fault)| Some((path, fault.as_ref()?))) {
        None => Finding::ok(check, faults[0].0.display().to_string()),
        Some((path, fault)) => Finding::warn(
            check,
            format!("{}: {fault}", path.display()),
            "`dacapo control` finds no player; the folder must be this user's alone (mode 0700)",
        ),
    }
}

fn fault(about: Metadata) -> Option<String> {
    if !about.is_dir() {
        return Some("it is no folder".to_owned());
    }
    (about.uid() != process::uid()).then(|| "it belongs to another user".to_owned())
}

/// The folder in it is ours, so nobody else may enter it.
fn fault_of_own(about: Metadata) -> Option<String> {
    let mode = about.permissions().mode() & 0o7777;
    let exposed = (mode & 0o077 != 0).then(|| format!("others may enter it (mode {mode:04o})"));
    fault(about).or(exposed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    #[test]
    fn the_identity_is_where_the_library_keeps_it() {
        let by = |state: Option<&str>, home: Option<&str>| {
            key_file_by(|name| match name {
                "XDG_STATE_HOME" => state.map(OsString::from),
                "HOME" => home.map(OsString::from),
                _ => None,
            })
        };
        assert_eq!(by(Some("/s"), Some("/h")), Some("/s/dacapo/identity.key".into()));
        let home = "/h/.local/state/dacapo/identity.key";
        assert_eq!(by(Some("relative"), Some("/h")), Some(home.into()));
        assert_eq!(by(None, None), None);
    }

    #[test]
    fn a_runtime_folder_that_is_missing_or_none_is_a_warning() {
        assert_eq!(runtime_folder(None).state, State::Warn);
        assert_eq!(runtime_folder(Some("run".into())).state, State::Warn);
        assert_eq!(runtime_folder(Some("/nonexistent/run".into())).state, State::Warn);
        assert!(runtime_folder(Some("/dev/null".into())).found.contains("no folder"));
    }
}

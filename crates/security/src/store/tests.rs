//! The identity on disk: what is made, what is refused, and who wins.

use std::collections::HashSet;
use std::sync::Barrier;

use super::*;
use crate::Identity;

/// A directory that is removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dacapo-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn key_file(&self) -> PathBuf {
        self.0.join(KEY_FILE)
    }

    /// The directory with a key file of this text and mode.
    fn with_file(name: &str, text: &[u8], mode: u32) -> Self {
        let scratch = Self::new(name);
        fs::create_dir_all(&scratch.0).unwrap();
        fs::write(scratch.key_file(), text).unwrap();
        fs::set_permissions(scratch.key_file(), Permissions::from_mode(mode)).unwrap();
        scratch
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn an_identity_survives_a_restart() {
    let scratch = Scratch::new("restart");
    let dir = scratch.0.join("state/dacapo");
    let first = Identity::load_or_create(&dir).unwrap();
    let text = fs::read(dir.join(KEY_FILE)).unwrap();
    let second = Identity::load_or_create(&dir).unwrap();
    assert_eq!(first.fingerprint(), second.fingerprint());
    assert_eq!(fs::read(dir.join(KEY_FILE)).unwrap(), text);
}

#[test]
fn the_directory_is_0700_and_holds_only_a_key_of_0600() {
    let scratch = Scratch::new("modes");
    Identity::load_or_create(&scratch.0).unwrap();
    assert_eq!((mode(&scratch.0), mode(&scratch.key_file())), (0o700, 0o600));
    let names: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, [KEY_FILE]);
}

#[test]
fn the_key_file_is_pem_that_other_tools_read() {
    let text = pem(&new_key().unwrap());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "-----BEGIN PRIVATE KEY-----");
    assert_eq!(lines[lines.len() - 1], "-----END PRIVATE KEY-----");
    assert!(lines.iter().all(|line| line.len() <= 64), "{lines:?}");
    // Every Ed25519 key in PKCS#8 version 1 begins so; `openssl genpkey` writes the same.
    assert!(lines[1].starts_with("MC4CAQAwBQYDK2VwBCIEI"), "{lines:?}");
}

#[test]
fn a_key_of_openssl_is_accepted() {
    // The private key of RFC 8410, section 10.3.
    let text = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
        -----END PRIVATE KEY-----\n";
    let scratch = Scratch::with_file("openssl", text.as_bytes(), 0o600);
    Identity::load_or_create(&scratch.0).unwrap();
}

#[test]
fn a_key_that_others_can_read_is_refused_with_the_command_that_helps() {
    for bits in [0o644, 0o640, 0o604, 0o620, 0o601] {
        let text = pem(&new_key().unwrap());
        let scratch = Scratch::with_file("exposed", text.as_bytes(), bits);
        let error = Identity::load_or_create(&scratch.0).unwrap_err();
        assert!(matches!(error, IdentityError::Exposed { mode, .. } if mode == bits), "{error:?}");
        let help = format!("chmod 600 {}", scratch.key_file().display());
        assert!(error.to_string().contains(&help), "{error}");
        assert_eq!(mode(&scratch.key_file()), bits);
    }
}

#[test]
fn a_file_that_is_no_key_is_refused_and_left_alone() {
    let whole = pem(&new_key().unwrap());
    let long = format!("{}{whole}", "# comment\n".repeat(1000));
    let foreign = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n";
    let texts =
        ["", &whole[..whole.len() / 2], "notes to myself\n", foreign, &long, "\0\u{1}\u{2}"];
    for text in texts {
        let scratch = Scratch::with_file("foreign", text.as_bytes(), 0o600);
        let error = Identity::load_or_create(&scratch.0).unwrap_err();
        assert!(matches!(error, IdentityError::Malformed { .. }), "{text:?}: {error:?}");
        let shown = error.to_string();
        assert!(shown.contains(&*scratch.key_file().to_string_lossy()), "{shown}");
        assert!(shown.contains("restore") && shown.contains("move it away"), "{shown}");
        assert_eq!(fs::read(scratch.key_file()).unwrap(), text.as_bytes());
    }
}

#[test]
fn every_truncation_of_a_key_is_refused() {
    let whole = pem(&new_key().unwrap());
    let path = Path::new("identity.key");
    // Without the last line end it is still whole.
    for len in 0..whole.len() - 1 {
        let cut = &whole.as_bytes()[..len];
        assert!(parse(path, cut).is_err(), "{len} of {} bytes", whole.len());
    }
    assert!(parse(path, whole.as_bytes()).is_ok());
}

#[test]
fn a_directory_in_place_of_the_key_is_refused() {
    let scratch = Scratch::new("directory");
    fs::create_dir_all(scratch.key_file()).unwrap();
    let error = Identity::load_or_create(&scratch.0).unwrap_err();
    assert!(matches!(error, IdentityError::NotAFile { .. }), "{error:?}");
}

#[test]
fn a_place_where_nothing_can_be_made_is_refused_with_its_path() {
    // In /proc nobody makes files, not even root, for whom permission bits do not count.
    let error = Identity::load_or_create(Path::new("/proc/self")).unwrap_err();
    assert!(matches!(error, IdentityError::Write { .. }), "{error:?}");
    assert!(error.to_string().contains("/proc/self/identity.key"), "{error}");
    assert!(error.to_string().contains("writable"), "{error}");
    let error = Identity::load_or_create(Path::new("/proc/self/state")).unwrap_err();
    assert!(matches!(error, IdentityError::CreateDirectory { .. }), "{error:?}");
}

#[test]
fn eight_that_start_at_once_end_with_one_identity() {
    for round in 0..20 {
        let scratch = Scratch::new("race");
        let start = Barrier::new(8);
        let seen: HashSet<_> = std::thread::scope(|scope| {
            let run = || {
                start.wait();
                Identity::load_or_create(&scratch.0).unwrap().fingerprint()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(seen.len(), 1, "round {round}");
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1, "round {round}");
    }
}

#[test]
fn a_key_that_appeared_meanwhile_is_not_replaced() {
    let scratch = Scratch::new("late");
    let winner = Identity::load_or_create(&scratch.0).unwrap();
    // The loser looked before the winner's link, and comes to its own link now.
    create(&scratch.0, &scratch.key_file(), &new_key().unwrap()).unwrap();
    let again = Identity::load_or_create(&scratch.0).unwrap();
    assert_eq!(again.fingerprint(), winner.fingerprint());
}

#[test]
fn the_default_directory_follows_xdg_and_ignores_relative_paths() {
    let dir = |state: Option<&str>, home: Option<&str>| {
        default_dir(|name| match name {
            "XDG_STATE_HOME" => state.map(OsString::from),
            "HOME" => home.map(OsString::from),
            _ => None,
        })
    };
    assert_eq!(dir(Some("/s"), Some("/h")), Some(PathBuf::from("/s/dacapo")));
    for unset in [None, Some(""), Some("relative")] {
        assert_eq!(dir(unset, Some("/h")), Some(PathBuf::from("/h/.local/state/dacapo")));
        assert_eq!(dir(unset, None), None);
        assert_eq!(dir(unset, Some("")), None);
    }
}

//! The identity file, and fingerprints as people write them.

use crate::input::Input;
use crate::oracle;
use dacapo_security::{Fingerprint, Identity, IdentityError};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

thread_local! {
    static FOLDER: Folder = Folder::new();
}

/// A folder of this thread's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let thread = format!("{:?}", std::thread::current().id());
        let number: String = thread.chars().filter(char::is_ascii_digit).collect();
        let name = format!("dacapo-fuzz-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is a small file in the folder for such files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One byte chooses a fingerprint or a file.
pub fn identity(data: &[u8]) {
    let mut input = Input(data);
    let (kind, bytes) = (input.u8(), input.rest());
    if kind % 4 == 0 { fingerprint(bytes) } else { file(bytes) }
}

fn fingerprint(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = oracle::bounded("a fingerprint", text.len(), || text.parse::<Fingerprint>());
    match read {
        Ok(fingerprint) => {
            assert_eq!(fingerprint.to_string(), text, "a fingerprint has two forms");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn file(bytes: &[u8]) {
    let folder = FOLDER.with(|folder| folder.0.clone());
    let path = folder.join("identity.key");
    let made = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, bytes))
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o600)));
    made.expect("the folder for temporary files can be written to");
    let read = oracle::bounded("an identity", bytes.len(), || Identity::load_or_create(&folder));
    match read {
        Ok(identity) => assert!(!identity.certificate_der().is_empty()),
        Err(IdentityError::Malformed { .. } | IdentityError::Key { .. }) => {}
        Err(error) => panic!("a file that can be read is {error}"),
    }
    let kept = fs::read(&path).expect("it was written");
    assert_eq!(kept, bytes, "an identity file was changed");
}

/// A key that only these seeds have.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g\n\
    -----END PRIVATE KEY-----\n";

/// A key file, parts of one, another kind of key, and fingerprints.
pub fn identity_seeds() -> Vec<Vec<u8>> {
    let file = |text: &str| [&[1], text.as_bytes()].concat();
    let word = |text: &str| [&[0], text.as_bytes()].concat();
    vec![
        file(KEY),
        file(&format!("# a comment\n{KEY}")),
        file(KEY.get(..60).unwrap_or_default()),
        file(&KEY.replace("PRIVATE", "PUBLIC")),
        file(""),
        word("SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"),
        word("SHA256:47DEQpj8HBSa"),
        word("MD5:00:11"),
    ]
}

//! [`TransferProgress`]: how far a transfer is, shared by its access module and whoever shows it.

use super::form::{Digest, hex};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most files whose results are kept; of more only the number is.
const RESULTS_MAX: usize = 65_536;

/// What became of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileResult {
    /// Its name, as sent.
    pub name: String,
    /// Where it was saved; none at the sender, and for standard output.
    pub path: Option<PathBuf>,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes of it that did not come, or too late, where it may be so; at the sender: that had
    /// waited before the flow began, and were not sent.
    pub bytes_missing: u64,
    /// The SHA-256 of what was read or written, in hexadecimal.
    pub sha256: String,
    /// What is wrong with it; none when it is whole.
    pub fault: Option<String>,
}

impl FileResult {
    pub(super) fn new(name: &str, path: Option<PathBuf>, bytes: u64, digest: &Digest) -> Self {
        let (name, sha256) = (name.to_owned(), hex(digest));
        Self { name, path, bytes, bytes_missing: 0, sha256, fault: None }
    }
}

/// How far a transfer is at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TransferSnapshot {
    /// The file that is under way.
    pub current: Option<String>,
    /// Bytes of all files so far.
    pub bytes: u64,
    /// Bytes of all files that are known to come; none when that is not known.
    pub bytes_total: Option<u64>,
    /// The files that are over.
    pub files: Vec<FileResult>,
    /// What ended the transfer before its end.
    pub error: Option<String>,
    /// Nothing more will happen.
    pub is_over: bool,
}

/// How far a transfer is; copies share it.
#[derive(Clone, Debug, Default)]
pub struct TransferProgress(Arc<Mutex<TransferSnapshot>>);

impl TransferProgress {
    /// How far it is now.
    #[must_use]
    pub fn snapshot(&self) -> TransferSnapshot {
        self.lock().clone()
    }

    /// Bytes so far, and of how many where that is known.
    #[must_use]
    pub fn bytes(&self) -> (u64, Option<u64>) {
        let now = self.lock();
        (now.bytes, now.bytes_total)
    }

    /// What ended it before its end.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        self.lock().error.clone()
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut TransferSnapshot)) {
        change(&mut self.lock());
    }

    /// Keeps the first reason.
    pub(super) fn fail(&self, text: &str) {
        self.lock().error.get_or_insert_with(|| text.to_owned());
    }

    pub(super) fn done(&self, result: FileResult) {
        let mut now = self.lock();
        now.current = None;
        if now.files.len() < RESULTS_MAX {
            now.files.push(result);
        }
    }

    /// What is in it cannot be half done in a way that matters, so a poisoned lock is used.
    fn lock(&self) -> MutexGuard<'_, TransferSnapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! [`Lock`]: one run at a time on a machine, as two would measure each other.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Held by a run; the kernel lets go of it when the process is gone, however that went.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Where it is.
pub fn usual() -> PathBuf {
    std::env::temp_dir().join("dacapo-eval.lock")
}

impl Lock {
    /// Takes it, and says in it who has it.
    ///
    /// # Errors
    /// Another run has it, which is named.
    pub fn take(path: &Path, who: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut other = String::new();
                let _ = file.read_to_string(&mut other);
                let other = other.trim();
                return Err(format!("another run is under way: {other}; wait for it, or end it"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)).map(drop)).map_err(failed)?;
        writeln!(file, "{who} (process {})", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_run_is_refused_naming_the_first() {
        let path = std::env::temp_dir().join(format!("dacapo-eval-lock-{}", std::process::id()));
        let first = Lock::take(&path, "run network of today").unwrap();
        let error = Lock::take(&path, "run lift").unwrap_err();
        let own = format!("run network of today (process {})", std::process::id());
        assert!(error.contains(&own), "{error}");
        drop(first);
        assert!(Lock::take(&path, "run lift").is_ok());
        std::fs::remove_file(path).unwrap();
    }
}

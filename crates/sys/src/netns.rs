//! [`Namespace`]: a network namespace with a name, as `ip netns` makes and finds them.
//!
//! A file in [`DIR`] that keeps a namespace alive, and a way to do something in it.
//!
//! ```text
//!   /run/netns/NAME  <- bind mount of /proc/thread-self/ns/net      (create)
//!   run(work):  a thread -> setns -> work -> the end of the thread
//! ```
//!
//! Invariants: a namespace that was made here loses its name with the value, and is gone when
//! nothing in it lives any more; one that was there before stays. A process that is killed leaves
//! its namespaces behind; `ip netns delete NAME` removes them.
//!
//! Source: network_namespaces(7), setns(2), unshare(2); `ip-netns(8)` for the folder.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where namespaces have their names.
pub const DIR: &str = "/run/netns";

/// What the namespace of a thread is, for itself.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace with a name.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    path: PathBuf,
    file: File,
    is_made: bool,
}

impl Namespace {
    /// The namespace of this name.
    ///
    /// # Errors
    /// `NotFound` when there is none, `InvalidInput` when it cannot be a name.
    pub fn open(name: &str) -> io::Result<Self> {
        let path = path_of(name)?;
        let file = File::open(&path)?;
        Ok(Self { name: name.to_owned(), path, file, is_made: false })
    }

    /// A new namespace, with its loopback interface up; it loses its name with this value.
    ///
    /// # Errors
    /// `AlreadyExists` when the name is taken, `PermissionDenied` when this is not root.
    pub fn create(name: &str) -> io::Result<Self> {
        let path = path_of(name)?;
        fs::DirBuilder::new().recursive(true).mode(0o755).create(DIR)?;
        share_dir()?;
        OpenOptions::new().write(true).create_new(true).mode(0o444).open(&path)?;
        let mounted = std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                enter_new()?;
                mount(Path::new(OWN), &path, libc::MS_BIND)?;
                crate::interface::up("lo")
            });
            made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let opened = mounted.and_then(|()| File::open(&path));
        match opened {
            Ok(file) => Ok(Self { name: name.to_owned(), path, file, is_made: true }),
            Err(error) => {
                remove(&path);
                Err(error)
            }
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether this value has made it, and removes it.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.is_made
    }

    /// Does something in this namespace, in a thread of its own.
    ///
    /// # Errors
    /// `PermissionDenied` without the right to enter it; `InvalidInput` when the file in [`DIR`] is
    /// no namespace. What `work` says is inside the `Ok`.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.enter()?;
                Ok(work())
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread into it.
    fn enter(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open, and the call changes nothing but the namespace of this
        // thread.
        let result = unsafe { libc::setns(self.file.as_raw_fd(), libc::CLONE_NEWNET) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.is_made {
            remove(&self.path);
        }
    }
}

fn path_of(name: &str) -> io::Result<PathBuf> {
    let is_name = !name.is_empty()
        && name.len() <= 255
        && !name.contains(['/', '\0'])
        && !matches!(name, "." | "..");
    if is_name {
        return Ok(Path::new(DIR).join(name));
    }
    let text = format!("{name:?} is no name of a network namespace");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Moves the calling thread into a namespace that nobody else is in.
fn enter_new() -> io::Result<()> {
    // SAFETY: the call takes flags and changes nothing but the namespace of this thread.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets mounts below the folder be seen in every mount namespace, as `ip netns` does; without it a
/// name that is removed in one would live on in another.
fn share_dir() -> io::Result<()> {
    let dir = Path::new(DIR);
    let flags = libc::MS_SHARED | libc::MS_REC;
    if mount(Path::new(""), dir, flags).is_ok() {
        return Ok(());
    }
    // It is no mount point yet.
    mount(dir, dir, libc::MS_BIND | libc::MS_REC)?;
    mount(Path::new(""), dir, flags)
}

fn mount(source: &Path, target: &Path, flags: libc::c_ulong) -> io::Result<()> {
    let (source, target) = (text(source)?, text(target)?);
    // SAFETY: the three texts end with a zero and outlive the call, which only reads them; the data
    // pointer is null, as these flags have none.
    let result = unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), c"none".as_ptr(), flags, std::ptr::null())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes a name away. Nothing can be done about one that stays.
fn remove(path: &Path) {
    if let Ok(text) = text(path) {
        // SAFETY: the text ends with a zero and outlives the call, which only reads it.
        unsafe { libc::umount2(text.as_ptr(), libc::MNT_DETACH) };
    }
    let _ = fs::remove_file(path);
}

fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_name_is_refused_before_anything_is_done() {
        for name in ["", ".", "..", "a/b", "../etc/passwd", "a\0b", "x".repeat(256).as_str()] {
            for refused in [Namespace::open(name), Namespace::create(name)] {
                assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name:?}");
            }
        }
    }

    #[test]
    fn a_namespace_that_there_is_not_is_not_found() {
        let error = Namespace::open("dacapo-no-such-namespace").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}

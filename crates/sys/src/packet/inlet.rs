//! [`Inlet`]: how the frames of a socket come in, and why not otherwise.

use super::ring;
use std::fmt;
use std::io;

/// How the frames of a socket come in.
#[derive(Debug)]
#[non_exhaustive]
pub enum Inlet {
    /// By memory that is shared with the kernel.
    Ring,
    /// By a call for each, because there is no ring, for this reason.
    Calls(io::Error),
}

impl Inlet {
    /// Its name, for programs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Calls(_) => "calls",
        }
    }
}

impl fmt::Display for Inlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = ring::LEN >> 20;
        let Self::Calls(error) = self else {
            return write!(f, "a ring of {mib} MiB shared with the kernel (TPACKET_V2)");
        };
        write!(f, "a call for each frame, as there is no ring: {error}")?;
        match error.raw_os_error() {
            Some(libc::ENOMEM) => write!(f, "; it needs {mib} MiB of the kernel's memory"),
            Some(libc::EINVAL | libc::ENOPROTOOPT) => {
                f.write_str("; this kernel knows none of this kind")
            }
            Some(libc::EPERM | libc::EACCES) => {
                f.write_str("; a sandbox forbids it, or mmap of a socket")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_there_is_no_ring_is_said_with_what_it_needs() {
        let said = |errno| Inlet::Calls(io::Error::from_raw_os_error(errno)).to_string();
        assert!(said(libc::ENOMEM).ends_with("needs 4 MiB of the kernel's memory"));
        assert!(said(libc::EINVAL).contains("this kernel knows none"));
        assert!(said(libc::EPERM).contains("a sandbox forbids it"));
        assert!(said(libc::EMFILE).starts_with("a call for each frame, as there is no ring: "));
        assert_eq!(Inlet::Ring.to_string(), "a ring of 4 MiB shared with the kernel (TPACKET_V2)");
    }
}

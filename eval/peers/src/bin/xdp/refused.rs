//! [`Refused`]: what the system does not do here, in which step, and with which error.
//!
//! Invariant: its text is what stands in the row, so it begins with what follows from it.

use nix::errno::Errno;
use peers::Failure;
use std::fmt;

/// What was asked of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A socket of the family AF_XDP.
    Socket,
    /// Memory that both share.
    Memory,
    /// Rings in that memory.
    Rings,
    /// Queue 0 of the interface.
    Bind,
    /// The map that names sockets.
    Map,
    /// The program that steers packets.
    Load,
    /// The program at the interface.
    Attach,
    /// Waiting and sending.
    Call,
}

/// A step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which.
    pub step: Step,
    /// Why, as the system says it.
    pub error: Errno,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.step {
            Step::Socket => "socket(AF_XDP)",
            Step::Memory => "setsockopt(XDP_UMEM_REG)",
            Step::Rings => "the rings of AF_XDP",
            Step::Bind => "bind to queue 0 of the interface",
            Step::Map => "bpf(BPF_MAP_CREATE) of an XSKMAP",
            Step::Load => "bpf(BPF_PROG_LOAD) of an XDP program",
            Step::Attach => "bpf(BPF_LINK_CREATE) at the interface",
            Step::Call => "a call of the AF_XDP socket",
        };
        write!(f, "cannot run here: {what}: {:?}, {}", self.error, self.error.desc())
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self(refused.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_follows_which_step_it_was_and_the_error() {
        let refused = Refused { step: Step::Load, error: Errno::EPERM };
        let text = Failure::from(refused).to_string();
        assert!(text.starts_with("cannot run here: bpf(BPF_PROG_LOAD)"), "{text}");
        assert!(text.contains("EPERM"), "{text}");
    }
}

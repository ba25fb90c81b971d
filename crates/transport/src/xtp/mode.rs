//! [`Mode`]: the two ways in which datagrams go over XTP.

use super::spec::{SPEC, SPEC_DATAGRAM};
use dacapo_lift::TransportSpec;

/// How datagrams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As records of a reliable stream.
    Streams,
    /// Each as a message that is sent once.
    Datagrams,
}

impl Mode {
    /// What a choice of protocols has to know of it.
    #[must_use]
    pub fn spec(self) -> &'static TransportSpec {
        match self {
            Self::Streams => &SPEC,
            Self::Datagrams => &SPEC_DATAGRAM,
        }
    }
}

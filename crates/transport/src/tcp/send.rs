//! Sending: into the stream to the remote, 64 records per call of the kernel.
//!
//! What it is not: a queue; what the kernel does not take stays with the core.

use super::Tcp;
use crate::{Outgoing, SendError, Sent};

impl Tcp {
    pub(super) fn send_to_stream(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let result = self.streams.send(outgoing);
        self.settle_watches();
        result
    }
}

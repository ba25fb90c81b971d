//! Sending: into the stream to the remote, as much as its buffer takes.

use super::Sim;
use crate::{Outgoing, SendError, Sent};

impl Sim {
    pub(super) fn send_to_stream(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let result = self.streams.send(outgoing);
        self.settle_watches();
        result
    }
}

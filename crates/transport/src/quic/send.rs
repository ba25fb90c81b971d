//! Sending records: into the stream to the remote, and its packets to the socket at once.

use super::Quic;
use super::link::Link;
use crate::{Outgoing, SendError, Sent};
use dacapo_base::Address;

impl Quic {
    pub(super) fn send_records(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let sent = self.streams.send(outgoing);
        self.transmit_to(outgoing.remote);
        sent
    }

    /// Sends the packets of the connection to `remote`.
    pub(super) fn transmit_to(&mut self, remote: Address) {
        if let Some((place, _)) = self.streams.place_of(remote) {
            self.transmit_at(place);
        }
    }

    pub(super) fn transmit_at(&mut self, place: usize) {
        let Some(handle) = self.links.at_place(place) else { return };
        // What is more goes out in the next receive: the connection stays stirred.
        self.links.transmit(self.now, handle, &mut self.sockets);
    }

    /// Runs `body` with the connection to `remote`.
    pub(super) fn with_link<T>(
        &self,
        remote: Address,
        body: impl FnOnce(&mut Link) -> T,
    ) -> Option<T> {
        let (place, _) = self.streams.place_of(remote)?;
        let entry = self.links.entry(self.links.at_place(place)?)?;
        Some(body(&mut entry.stream.link()))
    }
}

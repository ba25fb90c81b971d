//! [`StreamTransport`]: a [`Transport`] whose ways are streams, opened one by one.

use super::{StreamParams, Token};
use crate::{Outgoing, SendError, Sent, TrafficClass, Transport};
use dacapo_base::{Address, Time};
use dacapo_lift::BelowSeen;
use dacapo_packet::Pool;
use std::time::Duration;

/// What happened to a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// It is open: datagrams go both ways.
    Open {
        /// Its token.
        token: Token,
        /// Its other end.
        remote: Address,
    },
    /// It ended, or could not be opened, not by [`StreamTransport::close_stream`]. What came before
    /// was handed up.
    Closed {
        /// Its token.
        token: Token,
        /// Its other end; the unspecified address when it never had one.
        remote: Address,
        /// Why, as a sentence without an end.
        reason: String,
    },
}

/// A transport whose ways are opened one by one: each remote is a stream with a token.
///
/// One call order per turn, as with any [`Transport`]: receive, then [`Self::poll_stream`] until it
/// has no more, then send. Prefaces, what waits to be written and what is being closed go on in
/// [`Transport::recv`].
pub trait StreamTransport: Transport {
    /// A stream with this token may come up to `until`, once. Expecting it again changes the time.
    /// A dialed transport expects nobody.
    ///
    /// Beyond [`crate::DATA_LANES_MAX`] tokens the answer is a [`StreamEvent::Closed`]. So it is
    /// where a transport has a lower bound of its own: XTP takes 8 tokens with the same first four
    /// bytes, which are the label of its packets. What is refused is not expected.
    fn expect(&mut self, token: Token, until: Time);

    /// Says what the flow is like whose stream has this token, after the token is expected or
    /// dialed, and before the stream is open. What has no use for it does nothing.
    fn set_terms(&mut self, token: &Token, terms: &StreamParams) {
        let _ = (token, terms);
    }

    /// Expects a token no longer. A stream that it opened lives on.
    fn forget(&mut self, token: &Token);

    /// What happened to streams since the last call.
    fn poll_stream(&mut self) -> Option<StreamEvent>;

    /// Ends a stream; what was sent is still written if the network takes it. What comes by it from
    /// now on is dropped and counted, and no event tells of it any more.
    fn close_stream(&mut self, remote: Address);

    /// Sends one datagram whose bytes lie in two places; [`Sent::Blocked`] when nothing of it was
    /// taken.
    ///
    /// # Errors
    /// As [`Transport::send`].
    fn send_split(&mut self, remote: Address, head: &[u8], body: &[u8]) -> Result<Sent, SendError> {
        self.send_joined(remote, head, body)
    }

    /// The same by [`Transport::send`], which takes bytes that lie in one place.
    ///
    /// # Errors
    /// As [`Transport::send`].
    fn send_joined(
        &mut self,
        remote: Address,
        head: &[u8],
        body: &[u8],
    ) -> Result<Sent, SendError> {
        self.send(&Outgoing::datagram(TrafficClass::Data, remote, &[head, body].concat()))
    }

    /// Reads by a stream no longer, or again. What comes meanwhile waits in the network until the
    /// other end finds it full. A stream that is being closed is read in any case.
    fn set_reading(&mut self, remote: Address, is_reading: bool);

    /// Keeps a stream on which nothing is acknowledged for so long. A stream begins with
    /// [`super::PATIENCE`]. Networks that lose no bytes have nothing to wait for.
    fn set_patience(&mut self, remote: Address, patience: Duration);

    /// What a stream that controls itself has measured of its path so far; `None` where there is no
    /// such stream, or it measures nothing.
    fn estimates(&self, remote: Address) -> Option<BelowSeen> {
        let _ = remote;
        None
    }

    /// When [`Transport::recv`] has something to do although nothing comes: somebody is late.
    fn next_deadline(&self) -> Option<Time>;

    /// How many streams there are: open, being opened, or being closed. A dialed transport without
    /// any is done with.
    fn stream_count(&self) -> usize;

    /// Ends everything at once and gives back what half-arrived records hold of the pool: the last
    /// call before the transport is dropped.
    fn release(&mut self, pool: &mut Pool);
}

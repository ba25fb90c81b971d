//! [`Channel`]: the byte stream of a flow, and [`Channels`]: what is asked of who drives the core.
//!
//! A flow over a transport of streams, such as TCP, has one of its own. The Creator draws a token
//! for it and says it in the ACCEPT; the Participant dials and shows it.
//!
//! ```text
//!   creator      Expect(transport, token) --.              .----- ChannelEvent::Open
//!                                            > who drives the core
//!   participant  Dial(transport, remote, ..) '             '----- ChannelEvent::Open
//!
//!   Opening --open--> Open --REPORT--> Close        closed before: the flow ends with a reason
//!      | 10 s           | ready, not ready
//!      v                v
//!   the flow ends    the flow is asked for packets while it is ready
//! ```
//!
//! Invariants: each stream that is asked for is closed or reported closed, once; a flow has at most
//! one stream in its life.

mod requests;

pub(crate) use requests::Channels;

use crate::ids::{PeerId, StreamId};
use crate::transmit::Way;
use dacapo_base::{Address, Time};
use dacapo_lift::StreamParams;
use dacapo_wire::session::STREAM_TOKEN_LEN;
use std::time::Duration;

/// How long a stream may take to open after the ACCEPT.
pub(crate) const OPEN_MAX: Duration = Duration::from_secs(10);

/// What a core asks of who drives it, about streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamAsk {
    /// Dial a stream to this address and show the token.
    Dial {
        /// The stream.
        stream: StreamId,
        /// The number of the transport whose stream it is.
        transport: u16,
        /// Whose stream it is: who answers must be the same.
        peer: PeerId,
        /// Where the peer listens.
        remote: Address,
        /// What the peer knows the stream by.
        token: [u8; STREAM_TOKEN_LEN],
        /// What its flow is like.
        terms: StreamParams,
    },
    /// Wait for a stream that shows this token.
    Expect {
        /// The stream.
        stream: StreamId,
        /// The number of the transport whose stream it is.
        transport: u16,
        /// What it is known by.
        token: [u8; STREAM_TOKEN_LEN],
        /// What its flow is like.
        terms: StreamParams,
    },
    /// Read by a stream no longer, because its flow's sink has no room, or again.
    Read {
        /// The stream.
        stream: StreamId,
        /// Again.
        is_reading: bool,
    },
    /// Keep a stream on which nothing is acknowledged so much longer than usual: while contact is
    /// lost.
    Wait {
        /// The stream.
        stream: StreamId,
        /// How much longer.
        longer: Duration,
    },
    /// End a stream, whatever its state; what was sent is still delivered if the network takes it.
    /// Nothing is to be reported about it any more.
    Close {
        /// The stream.
        stream: StreamId,
    },
}

impl StreamAsk {
    /// The stream that it is about.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        match *self {
            Self::Dial { stream, .. }
            | Self::Expect { stream, .. }
            | Self::Read { stream, .. }
            | Self::Wait { stream, .. }
            | Self::Close { stream } => stream,
        }
    }
}

/// The stream of a flow at this end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    id: StreamId,
    state: State,
    /// It is not read now, because the flow's sink has no room.
    is_held_up: bool,
}

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It may open until then.
    Opening(Time),
    /// It takes datagrams, now or later.
    Open { ready: bool },
    /// It is over, or was given up.
    Closed,
}

impl Channel {
    /// A stream that has been asked for.
    pub fn new(now: Time, id: StreamId) -> Self {
        Self { id, state: State::Opening(now + OPEN_MAX), is_held_up: false }
    }

    pub fn id(&self) -> StreamId {
        self.id
    }

    /// How the flow may send now.
    pub fn way(&self) -> Option<Way> {
        (self.state == State::Open { ready: true }).then_some(Way::Stream(self.id))
    }

    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// When it is given up, while it opens.
    pub fn due(&self) -> Option<Time> {
        match self.state {
            State::Opening(until) => Some(until),
            State::Open { .. } | State::Closed => None,
        }
    }

    /// It is open in both directions.
    pub fn handle_open(&mut self) {
        if matches!(self.state, State::Opening(_)) {
            self.state = State::Open { ready: true };
        }
    }

    /// It takes no more, or has room again.
    pub fn handle_ready(&mut self, ready: bool) {
        if self.is_open() {
            self.state = State::Open { ready };
        }
    }

    /// It ended; what that is called.
    pub fn handle_closed(&mut self) -> &'static str {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Opening(_) => "did not open",
            State::Open { .. } | State::Closed => "ended",
        }
    }

    /// It is needed no longer; false when it was over.
    pub fn close(&mut self) -> bool {
        std::mem::replace(&mut self.state, State::Closed) != State::Closed
    }

    /// Its flow's sink is full, or has room: whether it is read from now on, if that is news.
    pub fn hold_up(&mut self, is_full: bool) -> Option<bool> {
        let is_news = self.is_open() && is_full != self.is_held_up;
        if is_news {
            self.is_held_up = is_full;
        }
        is_news.then_some(!is_full)
    }

    /// This time does not count.
    pub fn shift(&mut self, by: Duration) {
        if let State::Opening(until) = &mut self.state {
            *until += by;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Channel {
        let mut channel = Channel::new(Time::ZERO, StreamId(7));
        channel.handle_open();
        channel
    }

    #[test]
    fn it_may_open_for_ten_seconds_that_are_counted() {
        let mut channel = Channel::new(Time::ZERO, StreamId(7));
        assert_eq!((channel.way(), channel.due()), (None, Some(Time::ZERO + OPEN_MAX)));
        channel.shift(Duration::from_secs(2));
        assert_eq!(channel.due(), Some(Time::ZERO + Duration::from_secs(12)));
        channel.handle_open();
        assert_eq!((channel.way(), channel.due()), (Some(Way::Stream(StreamId(7))), None));
        channel.shift(Duration::from_secs(2));
        assert!(channel.is_open(), "that does not concern what is open");
    }

    #[test]
    fn it_sends_while_it_is_open_and_ready() {
        let mut channel = Channel::new(Time::ZERO, StreamId(7));
        channel.handle_ready(true);
        assert_eq!(channel.way(), None, "it is not open yet");
        channel.handle_open();
        channel.handle_ready(false);
        assert_eq!(channel.way(), None);
        channel.handle_open();
        assert_eq!(channel.way(), None, "opening again means nothing");
        channel.handle_ready(true);
        assert!(channel.way().is_some());
    }

    #[test]
    fn it_ends_once_and_nothing_opens_it_again() {
        let mut channel = Channel::new(Time::ZERO, StreamId(7));
        assert_eq!(channel.handle_closed(), "did not open");
        assert_eq!(channel.handle_closed(), "ended");
        let mut channel = open();
        assert!(channel.close() && !channel.close());
        channel.handle_open();
        channel.handle_ready(true);
        assert_eq!((channel.way(), channel.due(), channel.is_open()), (None, None, false));
    }

    #[test]
    fn a_full_sink_holds_it_up_once_and_only_while_it_is_open() {
        let mut channel = Channel::new(Time::ZERO, StreamId(7));
        assert_eq!(channel.hold_up(true), None);
        channel.handle_open();
        assert_eq!(channel.hold_up(false), None, "it is read");
        assert_eq!(channel.hold_up(true), Some(false));
        assert_eq!(channel.hold_up(true), None);
        assert_eq!(channel.hold_up(false), Some(true));
        channel.close();
        assert_eq!(channel.hold_up(true), None);
    }
}

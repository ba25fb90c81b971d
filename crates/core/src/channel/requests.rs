//! [`Channels`]: whose each stream is, and what is asked of who drives the core.
//!
//! Invariants: of what is asked about one stream only the newest waits; what nobody has been asked
//! for yet is not asked for, so that the requests are bounded by the flows there are.

use super::StreamAsk;
use crate::ids::{SessionId, StreamId};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;
use std::time::Duration;

/// The streams of a core.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    /// Where this end listens for the streams of a transport, where it is not the port of control.
    ports: BTreeMap<u16, NonZeroU16>,
    flows: BTreeMap<StreamId, (SessionId, usize)>,
    asks: VecDeque<StreamAsk>,
}

impl Channels {
    pub fn set_port(&mut self, transport: u16, port: NonZeroU16) {
        self.ports.insert(transport, port);
    }

    pub fn port(&self, transport: u16) -> Option<NonZeroU16> {
        self.ports.get(&transport).copied()
    }

    pub fn poll(&mut self) -> Option<StreamAsk> {
        self.asks.pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// Whose a stream is.
    pub fn owner(&self, stream: StreamId) -> Option<(SessionId, usize)> {
        self.flows.get(&stream).copied()
    }

    /// Asks for the stream of a flow.
    pub fn open(&mut self, owner: (SessionId, usize), ask: StreamAsk) {
        self.flows.insert(ask.stream(), owner);
        self.asks.push_back(ask);
    }

    /// A stream ended by itself; whose it was.
    pub fn handle_closed(&mut self, stream: StreamId) -> Option<(SessionId, usize)> {
        self.flows.remove(&stream)
    }

    /// A stream is read no longer, or again.
    pub fn read(&mut self, stream: StreamId, is_reading: bool) {
        self.asks.retain(|ask| !matches!(ask, StreamAsk::Read { stream: it, .. } if *it == stream));
        self.asks.push_back(StreamAsk::Read { stream, is_reading });
    }

    /// A stream lives so much longer than usual while nothing is acknowledged.
    pub fn wait(&mut self, stream: StreamId, longer: Duration) {
        self.asks.retain(|ask| !matches!(ask, StreamAsk::Wait { stream: it, .. } if *it == stream));
        self.asks.push_back(StreamAsk::Wait { stream, longer });
    }

    pub fn close(&mut self, stream: StreamId) {
        self.flows.remove(&stream);
        let opens =
            |ask: &StreamAsk| matches!(ask, StreamAsk::Dial { .. } | StreamAsk::Expect { .. });
        let unasked = self.asks.iter().any(|ask| ask.stream() == stream && opens(ask));
        self.asks.retain(|ask| ask.stream() != stream);
        if !unasked {
            self.asks.push_back(StreamAsk::Close { stream });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_lift::StreamParams;

    const ONE: StreamId = StreamId(1);
    const OTHER: StreamId = StreamId(2);

    fn expect(stream: StreamId) -> StreamAsk {
        let (token, terms) = ([0; 16], StreamParams::default());
        StreamAsk::Expect { stream, transport: 2, token, terms }
    }

    fn all(channels: &mut Channels) -> Vec<StreamAsk> {
        std::iter::from_fn(|| channels.poll()).collect()
    }

    #[test]
    fn what_nobody_was_asked_for_is_not_asked_for_when_it_ends() {
        let mut channels = Channels::default();
        channels.open((SessionId(1), 0), expect(ONE));
        channels.open((SessionId(1), 1), expect(OTHER));
        channels.close(ONE);
        assert_eq!(all(&mut channels), [expect(OTHER)]);
        channels.close(OTHER);
        assert_eq!(all(&mut channels), [StreamAsk::Close { stream: OTHER }]);
        assert_eq!((channels.owner(ONE), channels.owner(OTHER)), (None, None));
    }

    #[test]
    fn of_what_is_asked_about_a_stream_only_the_newest_waits() {
        let mut channels = Channels::default();
        channels.read(ONE, false);
        channels.wait(ONE, Duration::from_secs(9));
        channels.read(OTHER, false);
        channels.read(ONE, true);
        channels.wait(ONE, Duration::ZERO);
        let read = |stream, is_reading| StreamAsk::Read { stream, is_reading };
        let wait = StreamAsk::Wait { stream: ONE, longer: Duration::ZERO };
        assert_eq!(all(&mut channels), [read(OTHER, false), read(ONE, true), wait]);
        assert!(channels.is_empty());
    }

    #[test]
    fn a_stream_that_ended_by_itself_belonged_to_one_flow_once() {
        let mut channels = Channels::default();
        channels.open((SessionId(4), 3), expect(ONE));
        assert_eq!(channels.owner(ONE), Some((SessionId(4), 3)));
        assert_eq!(channels.handle_closed(ONE), Some((SessionId(4), 3)));
        assert_eq!(channels.handle_closed(ONE), None);
    }
}

//! Dialing a stream: by the transport that was agreed, or by the one that stands in for it.
//!
//! ```text
//!   Dial --> agreed transport --fails, or ends before it is open--> stand-in --fails--> closed
//!   Expect --> listeners of both
//! ```
//!
//! What can be agreed was found to work before, but memory or a descriptor may lack by now. A
//! stand-in gives a flow all that was agreed on, carries the same preface and records, and listens
//! where control does; so nothing is asked of the other end anew.
//!
//! Invariants: each of both is dialed at most once for a stream; a stream that was open has no
//! stand-in, because what was sent by it may have been lost.

use super::{Attached, Streams};
use dacapo_base::{Address, Time, failpoint};
use dacapo_core::{ChannelEvent, Core, PeerId, StreamId};
use dacapo_lift::StreamParams;
use dacapo_sys::poll::Poller;
use dacapo_transport::entry::Dial;
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// Who is dialed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub peer: PeerId,
    pub remote: Address,
    /// What the flow of the stream is like.
    pub terms: StreamParams,
}

/// What stands in for what, and where it is to now.
#[derive(Debug, Default)]
pub(crate) struct Fallbacks {
    by_number: BTreeMap<u16, u16>,
    /// Streams that are to be dialed by a stand-in, and why; at most those that were asked for.
    due: VecDeque<(StreamId, String)>,
}

impl Fallbacks {
    /// From now on the second stands in for the first.
    pub fn set(&mut self, agreed: u16, fallback: u16) {
        self.by_number.insert(agreed, fallback);
    }

    /// What stands in for a transport.
    pub(super) fn of(&self, agreed: u16) -> Option<u16> {
        self.by_number.get(&agreed).copied()
    }

    /// Whether somebody is to be dialed.
    pub fn are_due(&self) -> bool {
        !self.due.is_empty()
    }
}

impl Streams {
    /// Dials a stream by the transport of a number; `key` is free for what that makes.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) fn dial(
        &mut self,
        core: &mut Core,
        poller: &mut Poller,
        (id, number): (StreamId, u16),
        Call { peer, remote, terms }: Call,
        key: u64,
    ) -> Result<(), String> {
        let Some(token) = self.streams.get(&id).map(|stream| stream.token) else { return Ok(()) };
        failpoint!("stream.dial");
        let dial = Dial { remote, token, identity: core.peer_identity(peer), terms };
        let dialed = match self.carriers.get_mut(&number) {
            Some(carrier) => carrier.dial(dial),
            None => Err(io::Error::other("this host does not dial them")),
        };
        let attached = dialed.and_then(|it| self.attach(poller, key, (number, it), true));
        attached.map_err(|error| error.to_string())?;
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.transport = Some(key);
        }
        Ok(())
    }

    /// Whether the transport with this key is the one that says what became of a stream. Of those
    /// that a stream is waited for by, it is the one that was agreed.
    pub(super) fn is_of(&self, id: StreamId, key: u64) -> bool {
        let number = self.transports.get(&key).map(|attached: &Attached| attached.number);
        self.streams.get(&id).is_some_and(|stream| match stream.transport {
            Some(its) => its == key,
            None => Some(stream.number) == number,
        })
    }

    /// A stream is over, or was not opened: then it is dialed by a stand-in, if there is one.
    pub(super) fn handle_end(&mut self, now: Time, core: &mut Core, id: StreamId, why: &str) {
        let stream = self.streams.get_mut(&id).filter(|stream| stream.call.is_some());
        if let Some(stream) = stream
            && self.fallbacks.of(stream.number).is_some()
        {
            stream.transport = None;
            self.fallbacks.due.push_back((id, why.to_owned()));
            return;
        }
        self.forget(core, id);
        core.handle_channel(now, id, ChannelEvent::closed(why));
    }

    /// Dials the next stream that is to be dialed by a stand-in; `key` is free for it.
    pub fn dial_fallback(&mut self, now: Time, core: &mut Core, poller: &mut Poller, key: u64) {
        let Some((id, why)) = self.fallbacks.due.pop_front() else { return };
        let agreed = self.streams.get_mut(&id).and_then(|it| Some((it.number, it.call.take()?)));
        // Who has given it up meanwhile wants none.
        let Some((agreed, call)) = agreed else { return };
        let Some(number) = self.fallbacks.of(agreed) else { return };
        self.due_at = Some(now);
        match self.dial(core, poller, (id, number), call, key) {
            Ok(()) => core.handle_channel(
                now,
                id,
                ChannelEvent::Fallback { transport: number, reason: why.clone() },
            ),
            Err(error) => self.handle_end(now, core, id, &format!("{why}; then {error}")),
        }
    }
}

//! [`Pace`]: how fast a flow may send, and what may go now.
//!
//! What it is not: the bucket itself (`dacapo_path`), or an order among flows.
//!
//! Invariant: what is taken is paid for, at once or as a debt of at most one datagram.

use crate::flow::Around;
use dacapo_base::Time;
use dacapo_packet::Packet;
use dacapo_path::TokenBucket;
use std::collections::VecDeque;
use std::time::Duration;

/// Units are fed while fewer bytes wait for the pace than go out in this time, within these bounds:
/// what has entered the graph can no longer be held back by a pause, a change or the end.
const QUEUE_TIME: Duration = Duration::from_millis(20);
const QUEUE_BYTES_MIN: usize = 2 * 1024;
const QUEUE_BYTES: usize = 64 * 1024;

/// What goes out at the bound in this time may go out together.
const QUANTUM: Duration = Duration::from_micros(500);

/// The bucket gives at once what the bound gives in this time.
const BUCKET_DEPTH: Duration = Duration::from_millis(2);

/// How fast a flow may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// At most this many bit/s.
    Bound(u64),
    /// As fast as its transport takes it.
    Transport,
}

impl Pace {
    /// What keeps it; `None` where the transport does.
    pub(super) fn bucket(self, now: Time) -> Option<TokenBucket> {
        match self {
            Self::Bound(bound_bps) => Some(TokenBucket::new(now, bound_bps, BUCKET_DEPTH)),
            Self::Transport => None,
        }
    }

    /// The most bytes that wait for it below the graph.
    pub(super) fn queue_max(self) -> usize {
        let Self::Bound(bound_bps) = self else { return QUEUE_BYTES };
        let bits = u128::from(bound_bps) * QUEUE_TIME.as_millis() / 1_000;
        usize::try_from(bits / 8).unwrap_or(usize::MAX).clamp(QUEUE_BYTES_MIN, QUEUE_BYTES)
    }
}

/// The next packet, or as much of it as the pace allows now.
pub(super) fn take_paced(
    around: &mut Around<'_>,
    bucket: &mut TokenBucket,
    queue: &mut VecDeque<Packet>,
) -> Option<Packet> {
    let now = around.now;
    if !bucket.covers(now, queue.front()?.payload_len()) {
        let tokens = bucket.available(now);
        if tokens == 0 || bucket.ready_at(now, wanted(bucket, queue.front())) > now {
            return None;
        }
        let front = queue.front_mut()?;
        let segments = (tokens / front.segment_len(0).max(1)).max(1);
        if let Some(first) = around.pool.split_first(front, segments) {
            bucket.take(now, first.payload_len());
            return Some(first);
        }
    }
    let packet = queue.pop_front()?;
    bucket.take(now, packet.payload_len());
    Some(packet)
}

/// How many bytes the pace must allow before something is sent: what waits in front, but at most
/// what goes out in [`QUANTUM`], so that a fast flow sends trains and a slow one single datagrams.
pub(super) fn wanted(bucket: &TokenBucket, front: Option<&Packet>) -> usize {
    let bits = u128::from(bucket.rate_bps()) * QUANTUM.as_micros() / 1_000_000;
    let most = usize::try_from(bits / 8).unwrap_or(usize::MAX);
    front.map_or(0, |front| front.payload_len().min(most))
}

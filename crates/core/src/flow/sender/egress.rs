//! [`Egress`]: what a sender has for the network, with its label, as far as the pace lets it out.
//!
//! ```text
//!   graph --take_down--> label in front, small ones joined --> queue --pop, paced--> the way
//! ```
//!
//! Invariants: what is taken is paid for, at once or as a debt of at most one datagram; after the
//! way is cut nothing waits.

use crate::flow::Context;
use crate::flow::epoch::TxEpoch;
use dacapo_base::Time;
use dacapo_packet::{Packet, Pool, TRAIN_BYTES_MAX, TRAIN_SEGMENTS_MAX};
use dacapo_path::TokenBucket;
use dacapo_wire::data;
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
    /// The most bytes that wait for it below the graph.
    fn bytes_max(self) -> usize {
        let Self::Bound(bound_bps) = self else { return QUEUE_BYTES };
        let bits = u128::from(bound_bps) * QUEUE_TIME.as_millis() / 1_000;
        usize::try_from(bits / 8).unwrap_or(usize::MAX).clamp(QUEUE_BYTES_MIN, QUEUE_BYTES)
    }
}

/// What waits below the graph.
#[derive(Debug)]
pub(crate) struct Egress {
    /// `None`: the transport keeps the pace.
    bucket: Option<TokenBucket>,
    queue: VecDeque<Packet>,
    bytes: usize,
    bytes_max: usize,
    is_cut: bool,
}

impl Egress {
    /// One that keeps this pace, in which at most so many bytes and one unit wait.
    pub fn new(now: Time, pace: Pace, bytes_max: usize) -> Self {
        let bucket = match pace {
            Pace::Bound(bound_bps) => Some(TokenBucket::new(now, bound_bps, BUCKET_DEPTH)),
            Pace::Transport => None,
        };
        let bytes_max = pace.bytes_max().min(bytes_max);
        Self { bucket, queue: VecDeque::new(), bytes: 0, bytes_max, is_cut: false }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes that wait.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// With so many the graph is fed no more.
    #[inline]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Whether the transport keeps the pace.
    #[inline]
    pub fn is_unpaced(&self) -> bool {
        self.bucket.is_none()
    }

    /// Whether the way is gone.
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Takes what an epoch's graph has for the network, with the epoch's label in front. Below the
    /// graph nobody looks at units: those that lie one behind the other become a train.
    pub fn take_down(&mut self, pool: &mut Pool, epoch: &mut TxEpoch) {
        let header = data::Header { label: epoch.label_tx }.emit();
        for mut packet in epoch.runner.take_down().drain() {
            if self.is_cut || pool.put_head(&mut packet, |_| header).is_err() {
                // The layout reserves these bytes. Better lost than a loop.
                pool.free(packet);
                continue;
            }
            self.bytes += packet.payload_len();
            let packet = match self.queue.back_mut() {
                Some(last) if fit_one_train(last, &packet) => pool.join_any(last, packet).err(),
                _ => Some(packet),
            };
            self.queue.extend(packet);
        }
    }

    /// The next packet, or as much of it as the pace allows now.
    #[inline]
    pub fn pop(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = match &mut self.bucket {
            None => self.queue.pop_front()?,
            Some(bucket) => take_paced(cx, bucket, &mut self.queue)?,
        };
        self.bytes -= packet.payload_len();
        Some(packet)
    }

    /// When [`Egress::pop`] gives something.
    #[inline]
    pub fn due(&self, now: Time) -> Option<Time> {
        let front = self.queue.front()?;
        let ready_at = |it: &TokenBucket| it.ready_at(now, wanted(it, front));
        Some(self.bucket.as_ref().map_or(now, ready_at))
    }

    /// The way is gone: nothing waits any more.
    pub fn cut(&mut self, pool: &mut Pool) {
        self.is_cut = true;
        self.clear(pool);
    }

    /// Gives every view back.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.queue.drain(..).for_each(|packet| pool.free(packet));
        self.bytes = 0;
    }
}

fn fit_one_train(one: &Packet, next: &Packet) -> bool {
    one.segment_count() + next.segment_count() <= TRAIN_SEGMENTS_MAX
        && one.payload_len() + next.payload_len() <= TRAIN_BYTES_MAX
}

/// The next packet, or as much of it as the pace allows now.
fn take_paced(
    cx: &mut Context<'_>,
    bucket: &mut TokenBucket,
    queue: &mut VecDeque<Packet>,
) -> Option<Packet> {
    let now = cx.now;
    let front = queue.front_mut()?;
    if !bucket.covers(now, front.payload_len()) {
        let tokens = bucket.available(now);
        if tokens == 0 || bucket.ready_at(now, wanted(bucket, front)) > now {
            return None;
        }
        let segments = (tokens / front.segment_len(0).max(1)).max(1);
        if let Some(first) = cx.pool.split_first(front, segments) {
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
fn wanted(bucket: &TokenBucket, front: &Packet) -> usize {
    let bits = u128::from(bucket.rate_bps()) * QUANTUM.as_micros() / 1_000_000;
    let most = usize::try_from(bits / 8).unwrap_or(usize::MAX);
    front.payload_len().min(most)
}

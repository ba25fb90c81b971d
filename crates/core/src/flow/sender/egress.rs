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
use dacapo_path::Bound;
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
    bound: Option<Bound>,
    /// How many bytes the pace must allow before something longer is sent: what goes out in
    /// [`QUANTUM`], so that a fast flow sends trains and a slow one single datagrams.
    quantum: usize,
    queue: VecDeque<Packet>,
    bytes: usize,
    bytes_max: usize,
    /// How many bytes the path allowed lately.
    allowed: usize,
    is_cut: bool,
    /// The path has let nothing out: it says when it does.
    is_held: bool,
}

impl Egress {
    /// One that keeps this pace, in which at most so many bytes and one unit wait.
    pub fn new(now: Time, pace: Pace, bytes_max: usize) -> Self {
        let (bound, quantum) = match pace {
            Pace::Bound(bound_bps) => (Some(Bound::new(now, bound_bps)), quantum(bound_bps)),
            Pace::Transport => (None, 0),
        };
        let bytes_max = pace.bytes_max().min(bytes_max);
        Self {
            bound,
            quantum,
            queue: VecDeque::new(),
            bytes: 0,
            bytes_max,
            allowed: usize::MAX,
            is_cut: false,
            is_held: false,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// When the unit in front was handed over.
    pub fn since(&self) -> Option<Time> {
        self.queue.front().map(|packet| packet.time)
    }

    /// Bytes that wait.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// With so many the graph is fed no more.
    #[inline]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// The path allows so many bytes now: what it does not let out is to wait before the graph,
    /// where it can still be held back, and modules do not take it for sent.
    #[inline]
    pub fn allow(&mut self, allowed: usize) {
        self.allowed = allowed;
    }

    /// How many more bytes the graph may be fed; at least one unit while nothing waits.
    #[inline]
    pub fn room(&self) -> usize {
        self.bytes_max.min(self.allowed.max(1)).saturating_sub(self.bytes)
    }

    /// Whether the pace lets so many bytes out at once; to be asked while nothing waits.
    #[inline]
    pub fn lets_pass(&mut self, now: Time, len: usize) -> bool {
        self.bound.as_mut().is_none_or(|it| it.covers(now, len))
    }

    /// So many bytes have left without having waited here.
    #[inline]
    pub fn note_passed(&mut self, now: Time, len: usize) {
        if let Some(bound) = &mut self.bound {
            bound.take(now, len);
        }
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

    /// The next packet, or as much of it as the pace allows now, and the path `allowed` bytes.
    #[inline]
    pub fn pop(&mut self, cx: &mut Context<'_>, allowed: usize) -> Option<Packet> {
        let front = self.queue.front_mut()?;
        self.is_held = allowed == 0;
        if self.is_held {
            return None;
        }
        let len = front.payload_len();
        let quantum = self.quantum;
        let paced = self.bound.as_mut().map_or(Some(len), |it| paced(cx.now, it, quantum, len));
        let most = paced?.min(allowed);
        let segments = most / front.segment_len(0).max(1);
        let split = (most < len).then(|| cx.pool.split_first(front, segments.max(1))).flatten();
        let packet = split.or_else(|| self.queue.pop_front())?;
        if let Some(bound) = &mut self.bound {
            bound.take(cx.now, packet.payload_len());
        }
        self.bytes -= packet.payload_len();
        Some(packet)
    }

    /// Whether something waits for the path.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.is_held && !self.queue.is_empty()
    }

    /// When [`Egress::pop`] gives something, as far as that is its own to say.
    #[inline]
    pub fn due(&self, now: Time) -> Option<Time> {
        let front = self.queue.front().filter(|_| !self.is_held)?;
        let ready_at = |it: &Bound| it.ready_at(now, front.payload_len().min(self.quantum));
        Some(self.bound.as_ref().map_or(now, ready_at))
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

/// How many of the `len` bytes in front the pace allows now.
fn paced(now: Time, bound: &mut Bound, quantum: usize, len: usize) -> Option<usize> {
    if bound.covers(now, len) {
        return Some(len);
    }
    bound.is_ready(now, len.min(quantum)).then(|| bound.available(now))
}

/// What goes out at this rate in [`QUANTUM`], in bytes.
fn quantum(rate_bps: u64) -> usize {
    let bits = u128::from(rate_bps) * QUANTUM.as_micros() / 1_000_000;
    usize::try_from(bits / 8).unwrap_or(usize::MAX)
}

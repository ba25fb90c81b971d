//! [`Sending`]: the last sources that were sent, and the repairs that are made of them.
//!
//! ```text
//!   sources    s0 s1 s2 s3   s4 s5 s6 s7   …  s9  (nothing for half a span)
//!   credit     25 50 75 100! 25 50 75 100!    50                     what s8 and s9 have claim to
//!   repairs               r             r                            r
//! ```
//!
//! A repair is made with the source with which it is due, of all sources that are kept, and leaves
//! behind it. Behind a train, in which several may be due, they leave as a train.
//!
//! Invariants: at most as many sources as a window has, and the rest of the first one's train, none
//! older than a span and no more than [`BYTES_MAX`] bytes are kept, as views; a repair is as long
//! as the longest of its sources.

use super::code::{Factors, set_sources};
use crate::blocks::leaving::Leaving;
use crate::parity::sliding;
use dacapo_base::Time;
use dacapo_lift::{Cx, Setup};
use dacapo_packet::{Packet, Pool};
use dacapo_wire::sliding::{CODED_AT, Header, low};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// How many bytes of sources may be kept.
pub(super) const BYTES_MAX: usize = 4 << 20;

/// What counts as one repair that is due.
const WHOLE: u64 = 100;

/// How many repairs there are, and of what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Repairs for every 100 sources.
    pub percent: u64,
    /// The most sources of a repair.
    pub window: usize,
    /// How old these may be.
    pub span: Duration,
}

#[derive(Debug)]
struct Sent {
    view: Packet,
    at: Time,
}

#[derive(Debug)]
pub(super) struct Sending {
    /// The number of the next source.
    next: u64,
    sent: VecDeque<Sent>,
    /// How many sources these are, and their bytes.
    count: usize,
    bytes: usize,
    /// What of a repair is due, in hundredths.
    credit: u64,
    /// How many sources have come since the flow paused last.
    since_pause: usize,
    /// Of the next repair.
    key: u8,
    class: u8,
    sums: Vec<Vec<u8>>,
    factors: Vec<Factors>,
    leaving: Leaving,
}

impl Sending {
    pub fn new(setup: &Setup) -> Self {
        Self {
            next: 0,
            sent: VecDeque::new(),
            count: 0,
            bytes: 0,
            credit: 0,
            since_pause: 0,
            key: 0,
            class: 0,
            sums: Vec::new(),
            factors: Vec::new(),
            leaving: Leaving::new(setup),
        }
    }

    /// When the last source was sent of those that are kept.
    pub fn last(&self) -> Option<Time> {
        self.sent.back().map(|sent| sent.at)
    }

    /// Whether sources have come since the flow paused.
    pub fn is_flowing(&self) -> bool {
        self.since_pause > 0
    }

    /// Numbers as many sources as the packet has segments, and keeps a view of them; how many
    /// repairs are due with them. `None`, and nothing done, when there is no room for the header.
    pub fn add(&mut self, cx: &mut Cx<'_>, packet: &mut Packet, terms: &Terms) -> Option<usize> {
        let segments = packet.segment_count();
        sliding::number(cx, packet, self.next)?;
        let view = cx.pool.share(packet);
        self.next += segments as u64;
        self.class = packet.class;
        self.count += segments;
        self.since_pause = self.since_pause.saturating_add(segments);
        self.bytes += view.payload_len();
        self.sent.push_back(Sent { view, at: cx.now() });
        self.forget_old(cx.pool, cx.now(), terms);
        self.credit += terms.percent * segments as u64;
        let due = self.credit / WHOLE;
        self.credit %= WHOLE;
        Some(due as usize)
    }

    /// Lets go of what no repair is made of any more.
    pub fn forget_old(&mut self, pool: &mut Pool, now: Time, terms: &Terms) {
        while let Some(first) = self.sent.front() {
            let segments = first.view.segment_count();
            let is_outside = self.count - segments >= terms.window;
            if !is_outside && first.at + terms.span > now && self.bytes <= BYTES_MAX {
                break;
            }
            self.forget_first(pool);
        }
    }

    fn forget_first(&mut self, pool: &mut Pool) {
        if let Some(first) = self.sent.pop_front() {
            self.count -= first.view.segment_count();
            self.bytes -= first.view.payload_len();
            pool.free(first.view);
        }
    }

    /// The flow pauses: how many repairs its last sources have claim to, as many again as those
    /// that came since the pause before this one have had.
    pub fn pause(&mut self, terms: &Terms) -> usize {
        let sources = std::mem::take(&mut self.since_pause).min(self.count);
        self.credit = 0;
        (sources * terms.percent as usize).div_ceil(WHOLE as usize)
    }

    /// Makes so many repairs of what is kept, which wait to be sent.
    pub fn repair(&mut self, cx: &mut Cx<'_>, repairs: usize, terms: &Terms) {
        let sources = self.count.min(terms.window);
        if sources == 0 || repairs == 0 {
            return;
        }
        let first_key = self.key;
        self.key = self.key.wrapping_add(repairs as u8);
        self.sum(cx.pool, first_key, repairs, sources);
        let most = self.leaving.most(self.sums.first().map_or(0, Vec::len));
        for from in (0..repairs).step_by(most) {
            let key = first_key.wrapping_add(from as u8);
            self.wait(cx, from..repairs.min(from + most), key, sources as u8);
        }
    }

    /// Makes the sums of the last so many sources.
    fn sum(&mut self, pool: &Pool, key: u8, repairs: usize, sources: usize) {
        let last = self.next - 1;
        self.factors.clear();
        self.factors.extend((0..repairs).map(|at| Factors::of(last, key.wrapping_add(at as u8))));
        if self.sums.len() < repairs {
            self.sums.resize_with(repairs, Vec::new);
        }
        let longest = self.sent.iter().map(|sent| sent.view.segment_len(0)).max().unwrap_or(0);
        let segments = self.sent.iter().flat_map(|sent| {
            let coded = |at| pool.segment(&sent.view, at).get(CODED_AT..).unwrap_or_default();
            (0..sent.view.segment_count()).map(coded)
        });
        let known = (self.next - self.count as u64..).zip(segments);
        let sums = self.sums.get_mut(..repairs).unwrap_or_default();
        sums.iter_mut().for_each(|sum| sum.resize(longest.saturating_sub(CODED_AT), 0));
        set_sources(sums, &self.factors, known.skip(self.count - sources));
    }

    /// Makes a train of some of the sums, the first of them with this key.
    fn wait(&mut self, cx: &mut Cx<'_>, sums: Range<usize>, key: u8, sources: u8) {
        let number = low(self.next - 1);
        let header = |at: usize| {
            let key = key.wrapping_add(at as u8);
            Header { number, sources, key, length: 0 }.emit()
        };
        let sums = self.sums.get(sums).unwrap_or_default().iter().enumerate();
        let len = self.sums.first().map_or(0, Vec::len);
        let sums = sums.map(|(at, sum)| (header(at), sum.as_slice()));
        self.leaving.push(cx, (cx.now(), self.class), len, sums);
    }

    /// The repairs that wait.
    pub fn leaving(&mut self) -> &mut Leaving {
        &mut self.leaving
    }

    /// Forgets all that was sent; the numbers go on, and what waits is still to leave.
    pub fn forget(&mut self, pool: &mut Pool) {
        while !self.sent.is_empty() {
            self.forget_first(pool);
        }
        (self.credit, self.since_pause) = (0, 0);
    }
}

//! Sending: into the association with the remote, and its packets to the socket at once.
//!
//! ```text
//!   engine --packet, packet--> label | packet | label | packet | ...   one train per remote
//! ```
//!
//! Invariant: one call sends at most [`TRAINS_MAX`] trains; what is more goes out in the next.

use super::Xtp;
use super::label::{HEAD_LEN, head};
use super::links::{Links, Route};
use super::messages::Kind;
use super::stream_of::lock;
use crate::stream::Phase;
use crate::{Outgoing, RecvOutcome, SendError, Sent};
use dacapo_base::{Address, Ecn};
use dacapo_io::{Departure, SendOutcome};
use dacapo_sys::udp::{SEGMENTS_MAX, TRAIN_BYTES_MAX};
use std::net::SocketAddr;
use std::time::Duration;

/// The most trains of one call.
const TRAINS_MAX: usize = 32;

/// While a socket is full, what is due is looked at so often.
const FULL_CALLS: Duration = Duration::from_millis(100);

/// Packets that go to one address, and one that does not fit among them.
#[derive(Debug, Default)]
pub(super) struct Train {
    bytes: Vec<u8>,
    segment_len: usize,
    count: usize,
    /// The packet that comes next, and where it goes.
    next: Option<(SocketAddr, Vec<u8>)>,
}

impl Train {
    /// Fills it with the packets that come next; where they go, and from where.
    fn fill(&mut self, links: &mut Links) -> Option<(SocketAddr, Route)> {
        self.bytes.clear();
        self.count = 0;
        let mut way: Option<(SocketAddr, Route)> = None;
        loop {
            let start = self.bytes.len();
            let Some(to) = self.poll(links) else { break };
            let Some(route) = links.route_of(to) else {
                // An answer to somebody who is forgotten.
                self.bytes.truncate(start);
                continue;
            };
            if let Some(front) = self.bytes.get_mut(start..start + HEAD_LEN) {
                front.copy_from_slice(&head(route.label));
            }
            if !self.fits(way, to, start) {
                self.next = Some((to, self.bytes.split_off(start)));
                break;
            }
            way.get_or_insert((to, route));
            self.count += 1;
            let len = self.bytes.len() - start;
            self.segment_len = if start == 0 { len } else { self.segment_len };
            if len < self.segment_len || self.count == SEGMENTS_MAX {
                break;
            }
        }
        way
    }

    /// Appends the next packet, room for its head before it.
    fn poll(&mut self, links: &mut Links) -> Option<SocketAddr> {
        if let Some((to, packet)) = self.next.take() {
            self.bytes.extend_from_slice(&packet);
            return Some(to);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEAD_LEN]);
        let to = links.poll_packet(&mut self.bytes);
        if to.is_none() {
            self.bytes.truncate(start);
        }
        to
    }

    /// True when the packet from `start` on can go with those before it.
    fn fits(&self, way: Option<(SocketAddr, Route)>, to: SocketAddr, start: usize) -> bool {
        let is_same = way.is_none_or(|(address, _)| address == to);
        let is_equal = start == 0 || self.bytes.len() - start <= self.segment_len;
        is_same && is_equal && (start == 0 || self.bytes.len() <= TRAIN_BYTES_MAX)
    }

    fn departure(&self, to: SocketAddr) -> Departure {
        let segment_len = u16::try_from(self.segment_len).ok().filter(|_| self.count > 1);
        Departure { to, segment_len, ecn: Ecn::NotEct }
    }
}

impl Xtp {
    /// Sends what there is to send, as far as the sockets take it; false when there is more.
    pub(super) fn transmit(&mut self) -> bool {
        let mut is_refused = false;
        let mut is_all = true;
        for turn in 0..=TRAINS_MAX {
            let mut links = lock(&self.links);
            if !self.sockets.all_have_capacity() {
                // Room is told of; until then the time need not be told often.
                links.look_up_deadline(FULL_CALLS);
                break;
            }
            if turn == TRAINS_MAX {
                links.look_up_deadline(Duration::ZERO);
                is_all = false;
                break;
            }
            let Some((to, route)) = self.train.fill(&mut links) else {
                links.look_up_deadline(Duration::ZERO);
                break;
            };
            drop(links);
            match self.send_train(route.door, to) {
                SendOutcome::Refused => is_refused = true,
                // Whoever turns the transport is to hear of it at once.
                SendOutcome::TooLong => is_all &= !self.handle_too_long(to),
                SendOutcome::Gone | SendOutcome::Kept => {}
            }
        }
        if is_refused {
            self.handle_refused();
        }
        self.is_unsent = !is_all;
        is_all
    }

    fn send_train(&mut self, door: usize, to: SocketAddr) -> SendOutcome {
        let departure = self.train.departure(to);
        let outcome = self.sockets.send(door, &departure, &self.train.bytes);
        if outcome != SendOutcome::TooLong {
            return outcome;
        }
        // It may be what ICMP says of an earlier one: anybody can, and it is told once.
        let outcome = self.sockets.send(door, &departure, &self.train.bytes);
        if outcome == SendOutcome::TooLong {
            self.streams.stats.too_large += self.train.count as u64;
        }
        outcome
    }

    /// The device takes no more packets as long as both ends have agreed upon: shortens them, or,
    /// where no path may take less, ends what goes there; true when that was not over.
    fn handle_too_long(&mut self, to: SocketAddr) -> bool {
        let told = lock(&self.links).handle_too_long(to, self.train.segment_len);
        let is_told = told.is_some();
        told.into_iter().for_each(|told| self.tell(told, &mut RecvOutcome::default()));
        is_told
    }

    pub(super) fn send_records(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        self.expect_records(outgoing.remote, outgoing.datagram_len());
        let sent = self.streams.send(outgoing);
        self.transmit();
        sent
    }

    pub(super) fn expect_records(&mut self, remote: Address, len: usize) {
        let mut links = lock(&self.links);
        if let Some(number) = link_to(&links, remote) {
            links.expect_records(number, len);
        }
    }

    pub(super) fn send_datagrams(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let longest = super::DATAGRAM_LEN_MAX;
        if outgoing.datagram_len() > longest {
            self.streams.stats.too_large += 1;
            return Err(SendError::TooLarge { mtu: Some(longest) });
        }
        let count = match self.streams.place_of(outgoing.remote) {
            Some((_, Phase::Open)) => self.put_train(outgoing),
            // Whoever waits is told when it is open.
            Some((_, Phase::Dialing)) => Some(0),
            _ => None,
        };
        let Some(count) = count else {
            self.streams.stats.errors += 1;
            return Err(SendError::Closed);
        };
        self.transmit();
        Ok(self.streams.stats.count_front(outgoing, count))
    }

    /// Gives the datagrams of a train to the engine; how many it took, `None` when it is over.
    fn put_train(&mut self, outgoing: &Outgoing<'_>) -> Option<usize> {
        let mut links = lock(&self.links);
        let number = link_to(&links, outgoing.remote)?;
        if links.link(number)?.lost.is_some() {
            return None;
        }
        let len = outgoing.datagram_len();
        for index in 0..outgoing.datagram_count() {
            let end = outgoing.bytes.len().min((index + 1) * len);
            let datagram = outgoing.bytes.get(index * len..end).unwrap_or_default();
            let kind = if datagram.is_empty() { Kind::Empty } else { Kind::Datagram };
            if !links.put(number, kind, datagram) {
                links.link(number)?.is_awaited = true;
                return Some(index);
            }
        }
        Some(outgoing.datagram_count())
    }
}

/// The number of the link to a remote.
fn link_to(links: &Links, remote: Address) -> Option<usize> {
    links.route_of(remote.ip()?)?.link
}

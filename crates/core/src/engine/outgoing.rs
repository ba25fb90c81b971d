//! [`Outgoing`]: what goes out next.
//!
//! ```text
//!   whose turn it is of those that have any, see Schedule -> a packet, its peer, its way
//!   a flow over several paths -> a packet by the first, copies by the others
//!   a fan-out -> a packet for the first of its origins, copies for the others
//!             -> a view for the stream of each member
//! ```

use super::router::Router;
use crate::effect::Out;
use crate::error::{Code, Error};
use crate::fanout::BACKLOG_BYTES_MAX;
use crate::flow::FlowOut;
use crate::ids::{FanOutId, Place, SessionId};
use crate::peer::{PathSet, Peer};
use crate::schedule::{Asked, Asker, Polled, Schedule};
use crate::session::Flow;
use crate::transmit::{Payload, Transmit, Way};
use dacapo_base::{Ecn, Time};
use dacapo_packet::{Packet, Pool};
use std::collections::VecDeque;

/// Packets of a fan-out that are given to streams before other flows have their turn.
const FAN_OUT_PACKETS_MAX: usize = 64;

/// Which flow sends next, and what is left of what it sent.
#[derive(Default)]
pub(super) struct Outgoing {
    schedule: Schedule,
    /// Of the packet of a flow to a group that was given last, for further origins.
    copies: VecDeque<Transmit>,
}

impl Outgoing {
    /// Whether copies for further origins wait.
    pub fn has_copies(&self) -> bool {
        !self.copies.is_empty()
    }

    /// The next packet of the flows, if one has any that may leave.
    pub fn poll(&mut self, now: Time, router: &mut Router) -> Option<Transmit> {
        if !self.copies.is_empty() {
            return self.copies.pop_front();
        }
        let (sessions, fan_outs) = (&mut router.sessions, &mut router.fan_outs);
        sessions.wake_due(now);
        fan_outs.wake_due(now);
        if !fan_outs.over_streams().is_empty() {
            fan_out(now, router);
        }
        let (sessions, fan_outs) = (&mut router.sessions, &mut router.fan_outs);
        if sessions.take_changed() | fan_outs.take_changed() {
            self.schedule.set(sessions.turns().chain(fan_outs.turns()));
        }
        sessions.set_may_give(false);
        fan_outs.set_may_give(false);
        let mut asking = Asking { now, router, copies: &mut self.copies };
        let found = self.schedule.poll(now, &mut asking);
        if found.is_some() {
            router.sessions.set_may_give(true);
        }
        found
    }
}

/// Asks flows and fan-outs for the schedule.
struct Asking<'a> {
    now: Time,
    router: &'a mut Router,
    copies: &'a mut VecDeque<Transmit>,
}

impl Asker for Asking<'_> {
    type Packet = Transmit;

    fn waits_since(&mut self, asked: Asked) -> Option<Time> {
        match asked {
            Asked::Flow(id, index) => {
                self.router.sessions.get(id)?.flows().get(index)?.end.waits_since(self.now)
            }
            Asked::FanOut(id) => self.router.fan_outs.get(id)?.waits_since(self.now),
        }
    }

    fn poll(&mut self, asked: Asked) -> Polled<Transmit> {
        let polled = match asked {
            Asked::Flow(id, index) => poll_flow(self.now, self.router, (id, index), self.copies),
            Asked::FanOut(id) => {
                self.poll_fan_out(id).ok_or_else(|| self.waits_since(asked).is_some())
            }
        };
        match polled {
            Ok(transmit) => {
                // Those for further origins leave, too.
                let len = transmit.payload.len() * (1 + self.copies.len());
                Polled::Given(transmit, len)
            }
            Err(true) => Polled::Held,
            Err(false) => Polled::Nothing,
        }
    }
}

impl Asking<'_> {
    /// The next packet of a fan-out to a group, from the first of its origins; copies of it are
    /// kept for the others, and go before the next packet of any flow.
    fn poll_fan_out(&mut self, id: FanOutId) -> Option<Transmit> {
        let (now, router) = (self.now, &mut *self.router);
        let mut out = Out::default();
        let packet = router.fan_outs.poll_packet(&mut router.shared.flow(now), id, &mut out);
        router.route(now, out);
        router.counters.flows_asked += u64::from(packet.is_some());
        let mut packet = packet.flatten()?;
        let it = router.fan_outs.get(id);
        let Some((it, remote)) = it.and_then(|it| Some((it, it.group()?))) else {
            router.shared.pool.free(packet);
            return None;
        };
        // What goes to a group has no path, and nobody who would hear of marks.
        let ecn = Ecn::NotEct;
        for origin in it.origins().iter().skip(1) {
            let payload = Payload::Packet(router.shared.pool.share(&mut packet));
            let local = Some(*origin);
            self.copies.push_back(Transmit { way: Way::Data, local, remote, payload, ecn });
        }
        let (local, payload) = (it.origins().first().copied(), Payload::Packet(packet));
        Some(Transmit { way: Way::Data, local, remote, payload, ecn })
    }
}

/// The next packet of a flow, or whether it has anything that may not leave yet. Where it goes by
/// several paths copies for the others are kept, and go before the next packet of any flow.
fn poll_flow(
    now: Time,
    router: &mut Router,
    (id, index): (SessionId, usize),
    copies: &mut VecDeque<Transmit>,
) -> Result<Transmit, bool> {
    let mut told = None;
    let (peers, shared, counters) = (&mut router.peers, &mut router.shared, &mut router.counters);
    // Who is only asked is not touched.
    let asked = router.sessions.ask(id, |session, is_touched| {
        if !session.flows().get(index).is_some_and(|flow| flow.end.may_give(now)) {
            return Err(false);
        }
        *is_touched = true;
        let told = told.insert(FlowOut::default());
        // It is asked about with the next question that is due anyway.
        let sent = peers.adjust(session.peer(), |peer| {
            let poll = |flow: &mut Flow| flow.poll_packet(now, shared, peer, told);
            let (way, by, packet) = session.on_flow(index, poll)??;
            counters.flows_asked += 1;
            let packet = packet?;
            let is_spread = way == Way::Data && by != PathSet::FIRST;
            let remote = match way {
                Way::Data if !is_spread => peer.data().remote()?,
                _ => peer.remote(),
            };
            let spread = is_spread.then_some((session.peer(), by));
            Some((way, peer.local(), remote, packet, spread))
        });
        let is_held = || session.flows().get(index).is_some_and(|flow| flow.end.may_give(now));
        sent.flatten().ok_or_else(is_held)
    });
    if let Some(told) = told.filter(|told| !told.is_empty()) {
        router.apply_told(now, id, index, told);
    }
    let (way, local, remote, packet, by_several) = asked.unwrap_or(Err(false))?;
    if let Some((peer, by)) = by_several {
        return spread(by, router.peers.get(peer), &mut router.shared.pool, packet, copies);
    }
    let ecn = packet.ecn();
    Ok(Transmit { way, local, remote, payload: Payload::Packet(packet), ecn })
}

/// The transmit of a packet by the first of these paths; copies are kept for the others.
#[cold]
fn spread(
    by: PathSet,
    peer: Option<&Peer>,
    pool: &mut Pool,
    mut packet: Packet,
    copies: &mut VecDeque<Transmit>,
) -> Result<Transmit, bool> {
    let (way, ecn) = (Way::Data, packet.ecn());
    let mut ways = by.iter().filter_map(|place| peer?.way_by(place));
    let first = ways.next();
    for (local, remote) in ways {
        let payload = Payload::Packet(pool.share(&mut packet));
        copies.push_back(Transmit { way, local, remote, payload, ecn });
    }
    let Some((local, remote)) = first else {
        pool.free(packet);
        return Err(false);
    };
    Ok(Transmit { way, local, remote, payload: Payload::Packet(packet), ecn })
}

/// Gives what fan-outs over streams have to the streams of their members: a view for each.
fn fan_out(now: Time, router: &mut Router) {
    let mut at = 0;
    // None begins meanwhile; when one ends, the one behind it is asked the next time.
    while let Some(&id) = router.fan_outs.over_streams().get(at) {
        at += 1;
        for _ in 0..FAN_OUT_PACKETS_MAX {
            let mut out = Out::default();
            let is_awake = router.fan_outs.is_awake(id);
            let packet = is_awake
                .then(|| router.fan_outs.poll_packet(&mut router.shared.flow(now), id, &mut out));
            router.route(now, out);
            let Some(packet) = packet.flatten().flatten() else { break };
            share_out(now, router, id, packet);
        }
    }
}

fn share_out(now: Time, router: &mut Router, id: FanOutId, mut packet: Packet) {
    let members: Vec<Place> =
        router.fan_outs.get(id).into_iter().flat_map(|it| it.members()).collect();
    let mut behind = Vec::new();
    let pool = &mut router.shared.pool;
    for (session, index) in members {
        let push = |flow: &mut Flow| flow.push_copy(pool, &mut packet);
        let pushed = router.sessions.with(session, |it| it.on_flow(index, push));
        if pushed.flatten() == Some(false) {
            behind.push((session, index));
        }
    }
    pool.free(packet);
    if behind.is_empty() {
        return;
    }
    let most = BACKLOG_BYTES_MAX >> 20;
    let text = format!("the participant is {most} MiB behind what is sent to all");
    let mut out = Out::default();
    for (session, index) in behind {
        let error = Error::new(Code::ContactLost, text.as_str());
        router.with_session(now, session, &mut out, |it, cx, out| {
            it.with_flow(cx, index, out, |it, cx, told| it.lose_member(cx, &error, told));
            it.on_flow(index, |flow| flow.close_channel(cx));
        });
    }
    router.route(now, out);
}

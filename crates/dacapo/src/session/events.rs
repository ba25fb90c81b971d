//! What the core tells, followed: sessions get on, peers open and are lost, who joins comes in.
//!
//! ```text
//!   a turn -> who has joined gets an entry -> events of the core -> phases, accounts, backlogs
//! ```
//!
//! Invariant: an offer is answered in the turn in which it comes, with an end for each flow of
//! bytes.

use super::account::{Account, Final, ModuleFigures};
use super::asked::Asked;
use super::entry::{Entry, Handle, Phase};
use super::event::Event;
use super::flow::{Flow, FlowInfo};
use super::state::{Serving, State};
use crate::access::raw::{RawReceiver, RawSender};
use crate::plan::RawEnd;
use dacapo_base::failpoint;
use dacapo_core::table::Role;
use dacapo_core::{Code, Command, CoreEvent, Error, Port, SessionId};
use dacapo_lift::Catalogue;
use dacapo_sys::clock;
use dacapo_wire::medium::Medium;
use dacapo_wire::session::FlowOffer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A session was joined that has nothing for calls, and its media were not asked for.
const NOTHING_TAKEN: &str = "the session has no flow of bytes, only pictures and sound: \
     join with Join::save, play or count, or use `dacapo play`";

/// What is asked of a session and not answered yet.
fn asked(sessions: &mut BTreeMap<SessionId, Entry>, id: SessionId) -> Option<&mut Asked> {
    sessions.get_mut(&id)?.asked.as_deref_mut()
}

impl State {
    /// Does what the core tells; true when it was told something back.
    pub fn follow_core(&mut self) -> bool {
        self.adopt();
        let mut answered = false;
        while let Some(event) = self.host.reactor().poll_event() {
            answered |= self.follow(event);
        }
        answered
    }

    /// Gives those who have joined in this turn an entry, with their ends of the flows.
    ///
    /// A publisher is not told for which session it is asked, but ids ascend in the order in which
    /// it is, and before the turn is over nothing of a session but its JOIN has come.
    fn adopt(&mut self) {
        for (name, serving) in &self.serving {
            let mut joined = serving.join_queue.take_joined();
            if joined.is_empty() {
                continue;
            }
            let catalogue = Arc::clone(self.host.catalogue());
            let core = self.host.reactor().core();
            let newer = core
                .sessions()
                .filter(|(id, its_name, _)| Some(*id) > self.newest && *its_name == name);
            let newer: Vec<_> = newer.map(|(id, _, peer)| (id, peer)).collect();
            for (id, peer) in newer {
                let Some(remote) = core.peer_address(peer) else { continue };
                let Some(at) = joined.iter().position(|it| it.remote == remote) else { continue };
                let mut entry = Entry::new(name, Role::Creator, peer, remote);
                entry.title.clone_from(&serving.title);
                entry.keep_events(self.driver.background.notice.is_watched());
                let ends = joined.remove(at).ends;
                let offers = core.status(id).into_iter().map(|flow| flow.offer);
                entry.flows = make_flows(offers, ends, &catalogue);
                self.sessions.insert(id, entry);
            }
        }
        let newest = self.sessions.last_key_value().map(|(id, _)| *id);
        self.newest = self.newest.max(newest);
    }

    fn follow(&mut self, event: CoreEvent) -> bool {
        self.tell(&event);
        match event {
            CoreEvent::PeerOpen { peer } => {
                self.peers.opened(peer);
                self.watch.opened(peer);
            }
            CoreEvent::PeerLost { peer, error } => {
                let was_open = self.peers.is_open(peer);
                if self.driver.background.notice.is_watched() {
                    self.watch.lost(peer, was_open, &error);
                }
                self.peers.lost(peer, error);
            }
            CoreEvent::Offered { session, title, flows } => {
                self.answer(session, title, &flows);
                return true;
            }
            CoreEvent::Ready { session } => return self.follow_ready(session),
            CoreEvent::Active { session } => self.set_phase(session, Phase::Active),
            CoreEvent::Inactive { session } => self.set_phase(session, Phase::Ready),
            CoreEvent::ContactLost { session } => self.set_contact(session, false),
            CoreEvent::ContactRestored { session, .. } => self.set_contact(session, true),
            CoreEvent::FlowEnded { session, flow, ledger, hash, failure, modules } => {
                if let Some(flow) = self.flow(session, flow) {
                    flow.account = Some(Box::new(Final {
                        ledger: *ledger,
                        same_bytes: hash,
                        modules: ModuleFigures::all_of(&modules),
                    }));
                }
                if let Some(entry) = self.sessions.get_mut(&session) {
                    entry.tell_account(flow);
                }
                // The session ends before the peer takes for kept what a sink does not keep.
                return failure.is_some_and(|failure| {
                    let why = Error::new(Code::AccessFailed, failure);
                    let end = Command::CloseBecause(session, why);
                    self.core().handle_command(clock::now(), end).is_ok()
                });
            }
            CoreEvent::FlowFailed { session, flow, error } => {
                if let Some(flow) = self.flow(session, flow) {
                    flow.failure.get_or_insert(error);
                }
                self.fail_messages(session, flow);
            }
            CoreEvent::Redirected { session, port } => {
                if let Some(entry) = self.sessions.get_mut(&session) {
                    entry.redirect = Some(port);
                }
            }
            CoreEvent::SessionEnded { session, error } => self.follow_end(session, error),
            CoreEvent::Changed { session, flow, epoch } => self.settle(session, flow, Ok(epoch)),
            CoreEvent::ChangeFailed { session, flow, error } => {
                self.settle(session, flow, Err(error));
            }
            CoreEvent::ControlAnswered { session, request, answer } => {
                if let Some(asked) = asked(&mut self.sessions, session) {
                    asked.answer(request, answer);
                }
            }
            CoreEvent::Listing { peer, sessions } => self.watch.listed(peer, sessions),
            CoreEvent::PathMtuChanged { .. }
            | CoreEvent::PathHeld { .. }
            | CoreEvent::Fallback { .. } => {}
        }
        false
    }

    fn settle(&mut self, id: SessionId, flow: usize, outcome: Result<u64, Error>) {
        if let Some(asked) = asked(&mut self.sessions, id) {
            asked.settle(flow, outcome);
        }
    }

    /// Keeps what happens to a session for who wants to know; its end is told where it is followed.
    fn tell(&mut self, event: &CoreEvent) {
        let (id, event) = match event {
            CoreEvent::Active { session } => (session, Event::Active),
            CoreEvent::Inactive { session } => (session, Event::Inactive),
            CoreEvent::ContactLost { session } => (session, Event::ContactLost),
            CoreEvent::ContactRestored { session, after } => {
                (session, Event::ContactRestored { after: *after })
            }
            CoreEvent::PathMtuChanged { session, from, to } => {
                (session, Event::PathMtuChanged { from: *from, to: *to })
            }
            CoreEvent::PathHeld { session, loss_ppm, rate_bps } => {
                (session, Event::PathHeld { loss_ppm: *loss_ppm, rate_bps: *rate_bps })
            }
            CoreEvent::Fallback { session, flow, transport, reason } => {
                let transport = transport_name(self.host.catalogue(), *transport);
                let event =
                    |flow| Event::TransportReplaced { flow, transport, reason: reason.clone() };
                return self.tell_of_flow(*session, *flow, event);
            }
            CoreEvent::Changed { session, flow, epoch } => {
                let event = |flow| Event::Changed { flow, epoch: *epoch };
                return self.tell_of_flow(*session, *flow, event);
            }
            CoreEvent::ChangeFailed { session, flow, error } => {
                let event = |flow| Event::ChangeFailed { flow, error: error.clone() };
                return self.tell_of_flow(*session, *flow, event);
            }
            CoreEvent::FlowFailed { session, flow, error } => {
                let event = |flow| Event::FlowFailed { flow, error: error.clone() };
                return self.tell_of_flow(*session, *flow, event);
            }
            _ => return,
        };
        if let Some(entry) = self.sessions.get_mut(id) {
            entry.tell(|| event);
        }
    }

    fn tell_of_flow(&mut self, id: SessionId, flow: usize, event: impl FnOnce(String) -> Event) {
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        let Some(name) = entry.flows.get(flow).map(|flow| flow.info.name.clone()) else { return };
        entry.tell(|| event(name));
    }

    fn flow(&mut self, id: SessionId, flow: usize) -> Option<&mut Flow> {
        self.sessions.get_mut(&id)?.flows.get_mut(flow)
    }

    fn set_contact(&mut self, id: SessionId, has_contact: bool) {
        if let Some(entry) = self.sessions.get_mut(&id) {
            entry.has_contact = has_contact;
        }
    }

    fn set_phase(&mut self, id: SessionId, phase: Phase) {
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        entry.was_active |= phase == Phase::Active;
        if !entry.is_over() {
            entry.phase = phase;
        }
    }

    /// Answers an offer: ends for flows of bytes, access modules for media where they are wanted.
    fn answer(&mut self, id: SessionId, title: String, offers: &[FlowOffer]) {
        let now = clock::now();
        let catalogue = Arc::clone(self.host.catalogue());
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        entry.title.clone_from(&title);
        if entry.decides {
            let infos = offers.iter().map(|it| FlowInfo::of(it, Role::Participant, &catalogue));
            entry.flows = infos.map(|info| Flow::new(info, None)).collect();
            return entry.tell(|| Event::Offered { title, flows: offers.to_vec() });
        }
        let answered = entry
            .open_ends(offers, &catalogue)
            .map_err(|text| Error::new(Code::AccessFailed, text));
        let answered = answered.and_then(|ports| {
            if ports.iter().all(Option::is_none) {
                return Err(Error::new(Code::Unsupported, NOTHING_TAKEN));
            }
            self.host.reactor().core().answer(now, id, ports)
        });
        if let Err(error) = answered {
            // The reason is ours; what the core tells of the end does not replace it.
            self.set_phase(id, Phase::Over(Some(error)));
            self.close(id);
        }
    }

    /// A session is set up. One that nobody waits for is let go.
    fn follow_ready(&mut self, id: SessionId) -> bool {
        let status = self.core().status(id);
        let Some(entry) = self.sessions.get_mut(&id) else { return false };
        entry.phase = Phase::Ready;
        for (flow, its) in entry.flows.iter_mut().zip(status) {
            flow.info.refused = its.refused;
        }
        if entry.role == Role::Participant {
            return false;
        }
        let is_awaited = match self.serving.get_mut(&entry.name) {
            Some(Serving { origin: Some(origin), .. }) => origin.hand_over(id),
            Some(serving) => {
                serving.backlog.push_back(id);
                serving.join_queue.set_backlog(serving.backlog.len());
                true
            }
            None => false,
        };
        if !is_awaited {
            self.turn_away(id);
        }
        !is_awaited
    }

    fn follow_end(&mut self, id: SessionId, error: Option<Error>) {
        let is_watched = self.driver.background.notice.is_watched();
        let Some(entry) = self.sessions.get_mut(&id) else {
            return self.watch.refused(error.filter(|_| is_watched));
        };
        failpoint!("endpoint.ended");
        if entry.is_over() {
            return;
        }
        // Nobody has been told of who never was a participant.
        let unknown = entry.role == Role::Creator && entry.phase == Phase::Joining;
        let refused = error.clone().filter(|_| is_watched);
        let is_gone = entry.handle == Handle::Gone;
        entry.tell(|| Event::Ended { error: error.clone() });
        entry.phase = Phase::Over(error);
        let had_others = entry.flows.iter_mut().map(Flow::let_go).fold(false, |any, it| any | it);
        let name = had_others.then(|| entry.name.clone());
        let flows = 0..entry.flows.len();
        flows.for_each(|flow| self.fail_messages(id, flow));
        if unknown || is_gone {
            self.sessions.remove(&id);
        }
        if unknown {
            self.watch.refused(refused);
        }
        if let Some(name) = name {
            self.wake_finished(&name);
        }
    }

    /// What has become of the units of a session so far.
    pub fn account(&mut self, id: SessionId) -> Option<Account> {
        let running = self.core().status(id);
        let entry = self.sessions.get(&id)?;
        Some(Account::of(&entry.name, &entry.flows, &running))
    }
}

fn transport_name(catalogue: &Catalogue, id: u16) -> String {
    catalogue.transport(id).map_or_else(|| id.to_string(), |spec| spec.name.to_owned())
}

/// This end of an offered flow, for the application and for the core.
pub(super) fn make_end(offer: &FlowOffer) -> (Option<RawEnd>, Option<Port>) {
    use dacapo_wire::session::Direction;
    match (&offer.medium, offer.direction) {
        (Medium::Raw, Direction::ToCreator) => {
            let (sender, source) = RawSender::pair();
            (Some(RawEnd::Sender(sender)), Some(Port::Source(Box::new(source))))
        }
        (Medium::Raw, Direction::ToParticipant) => {
            let (receiver, sink) = RawReceiver::of(offer);
            (Some(RawEnd::Receiver(receiver)), Some(Port::Sink(Box::new(sink))))
        }
        _ => (None, None),
    }
}

/// The flows of a session that is served and waits to be accepted, with their ends by name.
fn make_flows(
    offers: impl Iterator<Item = FlowOffer>,
    mut ends: Vec<(String, RawEnd)>,
    catalogue: &Catalogue,
) -> Vec<Flow> {
    let flow = |offer: FlowOffer| {
        let at = ends.iter().position(|(name, _)| *name == offer.name);
        let end = at.map(|at| ends.swap_remove(at).1);
        let mut flow = Flow::new(FlowInfo::of(&offer, Role::Creator, catalogue), end);
        flow.wait();
        flow
    };
    offers.map(flow).collect()
}

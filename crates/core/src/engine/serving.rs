//! What a core serves: sessions under their names, and how each is offered to who joins.
//!
//! ```text
//!   Core::publish ----> Published { spec, publisher }
//!   JOIN -> Joining ----> publisher.offer(joining) -> flows -> checked -> OFFER
//!                         publisher.open(flow, joining) -> access modules
//!                         publisher.share(flow, joining), where others are sent it already
//! ```
//!
//! Invariants: what is offered is legal here, and has no module or transport that the participant
//! has said it lacks; numbers that nobody here knows are passed over.

use super::{Core, GIVE_UP_AFTER, SESSIONS_MAX, SessionId};
use crate::error::{Code, Error};
use crate::peer::PeerId;
use crate::port::Port;
use crate::session::table::{HubRole, Role};
use dacapo_base::{Random, Time};
use dacapo_lift::TransportSpec;
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::limits::{FLOWS_MAX, JOIN_MODULES_MAX, JOIN_TRANSPORTS_MAX};
use dacapo_wire::message::Message;
use dacapo_wire::session::{FlowOffer, Join, Offer};
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Numbers that are never assigned: some are said in each JOIN, so that nobody ever builds a
/// Creator that stumbles over what it does not know.
const STRANGE_MODULES: RangeInclusive<u16> = 0xF000..=0xFFFF;
const STRANGE_TRANSPORTS: RangeInclusive<u16> = 0x8000..=0xFFFF;

/// What a Participant wants besides the session's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// What every flow must be, besides what the Creator asks of it; at most
    /// [`dacapo_wire::limits::JOIN_ATTRIBUTES_MAX`].
    pub attributes: Vec<AttributeForm>,
    /// Media begin where those are who have joined before, not at their beginning.
    pub live: bool,
    /// The session may be joined at another port of the same host when the peer says so:
    /// [`crate::CoreEvent::Elsewhere`].
    pub follows: bool,
}

/// Who joins a session, and what it can and wants, for its [`Publisher`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joining {
    /// The session's name.
    pub name: String,
    /// Where the control connection of the Participant comes from.
    pub remote: SocketAddr,
    /// The modules that both ends have, by number; all of this end when the Participant does not
    /// say which it has.
    pub modules: Vec<u16>,
    /// The same of transports; those of one host only when the Participant has found this end so.
    pub transports: Vec<u16>,
    /// What every flow must be, besides what the Creator asks of it. Keys may be unknown.
    pub attributes: Vec<AttributeForm>,
    /// Media are to begin where those are who have joined before.
    pub live: bool,
    /// It may be sent to another port: it says that it follows, and has no other session here.
    pub is_free: bool,
}

/// What the access modules of a served session are made with, anew for each Participant.
pub trait Publisher: Send {
    /// The port of this host at which a Participant is to join instead; asked only about one that
    /// may be sent there.
    fn elsewhere(&mut self, _joining: &Joining) -> Option<NonZeroU16> {
        None
    }

    /// The flows for a Participant: those that were published, as they are or tightened for this
    /// one. `flow` and `datagram_len` are set by the core, which checks the graphs too.
    ///
    /// # Errors
    /// Why there is no session for this Participant; it is refused with that.
    fn offer(&mut self, joining: &Joining, flows: &[FlowOffer]) -> Result<Vec<FlowOffer>, Error> {
        let _ = joining;
        Ok(flows.to_vec())
    }

    /// Opens the access module of a flow at the Creator: a source if the Creator sends, else a
    /// sink.
    ///
    /// # Errors
    /// Why it cannot, for the Participant.
    fn open(&mut self, flow: &FlowOffer, joining: &Joining) -> Result<Port, String>;

    /// The Participant takes part in a flow to several that runs: what was opened last for the
    /// same offer feeds this one too, and nothing is opened.
    fn share(&mut self, _flow: &FlowOffer, _joining: &Joining) {}
}

/// Why a session is not served to who asks for it, and at which port it is.
pub(super) struct Refusal {
    pub error: Error,
    pub port: Option<NonZeroU16>,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { error, port: None }
    }
}

/// A session that a Creator serves.
pub struct SessionSpec {
    /// The name it is asked for by.
    pub name: String,
    /// For people.
    pub title: String,
    /// The flows; `flow` and `datagram_len` are set by the core.
    pub flows: Vec<FlowOffer>,
    /// The most Participants at a time.
    pub participants_max: usize,
    /// How long contact may be lost before the session is given up, at both ends unless
    /// [`Core::set_give_up_after`] says otherwise. Zero ends it as soon as contact is lost;
    /// [`GIVE_UP_AFTER`] is the usual.
    pub give_up_after: Duration,
}

pub(crate) struct Published {
    pub spec: SessionSpec,
    publisher: Box<dyn Publisher>,
}

/// A session as it is offered to one Participant, with the Creator's access modules.
pub(super) struct Served {
    pub title: String,
    pub give_up_ms: Option<u32>,
    pub flows: Vec<FlowOffer>,
    pub ports: Vec<Option<Port>>,
}

impl Core {
    /// Serves a session under its name, in place of one that had it.
    ///
    /// # Errors
    /// [`Code::IllegalGraph`] with the flow and the reason, [`Code::Unsupported`] for a transport
    /// that this core does not have, or [`Code::TooMany`] flows.
    pub fn publish(
        &mut self,
        mut spec: SessionSpec,
        publisher: Box<dyn Publisher>,
    ) -> Result<(), Error> {
        dacapo_wire::name::check(&spec.name)
            .map_err(|error| Error::new(Code::NoSuchThing, format!("{}: {error}", spec.name)))?;
        self.number_flows(&mut spec.flows)?;
        self.published.insert(spec.name.clone(), Published { spec, publisher });
        Ok(())
    }

    /// Serves a session no longer; those who have joined stay.
    pub fn unpublish(&mut self, name: &str) {
        self.published.remove(name);
    }

    /// Numbers the flows of a session, says how long their datagrams are, and checks their graphs.
    fn number_flows(&self, flows: &mut [FlowOffer]) -> Result<(), Error> {
        if flows.is_empty() || flows.len() > FLOWS_MAX {
            return Err(Error::new(Code::TooMany, "a session has 1 to 64 flows"));
        }
        for (index, flow) in flows.iter_mut().enumerate() {
            flow.flow = index as u16;
            let len = self.datagram_len(flow.transport, dacapo_path::DATAGRAM_LEN_FULL);
            flow.datagram_len = len.map_err(|error| named(flow, &error))?;
            let legal = self.check_graph(flow, usize::from(flow.datagram_len));
            legal.map_err(|error| named(flow, &error))?;
        }
        Ok(())
    }

    /// What is said in the JOIN of a session.
    pub(super) fn introduce(&mut self, peer: PeerId, name: &str, wishes: Wishes) -> Join {
        let catalogue = &self.config.catalogue;
        let entries = catalogue.entries().iter().map(|entry| entry.spec.id);
        let mut modules: Vec<u16> = entries.take(JOIN_MODULES_MAX - 2).collect();
        for _ in 0..2 {
            modules.extend(stranger(&mut self.random, STRANGE_MODULES, &modules));
        }
        let specs = catalogue.transports().iter().filter(|spec| self.has_found(peer, spec));
        let specs = specs.map(|spec| spec.id);
        let mut transports: Vec<u16> = specs.take(JOIN_TRANSPORTS_MAX - 1).collect();
        transports.extend(stranger(&mut self.random, STRANGE_TRANSPORTS, &transports));
        let Wishes { attributes, live, follows } = wishes;
        Join { name: name.to_owned(), modules, transports, attributes, live, follows }
    }

    /// Who joins, as far as this core understands it.
    fn joining(&self, id: SessionId, join: Join) -> Option<Joining> {
        let session = self.sessions.get(&id)?;
        let peer = self.peers.get(&session.peer)?;
        let catalogue = &self.config.catalogue;
        let modules = catalogue.entries().iter().map(|entry| entry.spec.id);
        let is_offered = |spec: &&&'static TransportSpec| {
            !spec.same_host || (peer.is_here() && join.transports.contains(&spec.id))
        };
        let transports = catalogue.transports().iter().filter(is_offered).map(|spec| spec.id);
        Some(Joining {
            name: join.name,
            remote: peer.remote,
            modules: common(modules, &join.modules),
            transports: common(transports, &join.transports),
            attributes: join.attributes,
            live: join.live,
            is_free: join.follows && self.sessions.with(session.peer).nth(1).is_none(),
        })
    }

    /// Makes the session that somebody asks for, for this Participant.
    pub(super) fn serve(
        &mut self,
        now: Time,
        id: SessionId,
        join: Join,
    ) -> Result<Served, Refusal> {
        let joined = self.participants_of(&join.name);
        let Some(published) = self.published.get(&join.name) else {
            return Err(Error::new(Code::NotServed, join.name).into());
        };
        let participants_max = published.spec.participants_max;
        let has_place = joined < participants_max || self.free_place(now, &join.name);
        if !has_place || self.sessions.len() > SESSIONS_MAX {
            let text = format!("{} has {joined} participants already", join.name);
            return Err(Error::new(Code::TooMany, text).into());
        }
        let Some(joining) = self.joining(id, join) else {
            return Err(Error::new(Code::Internal, "a session without a peer").into());
        };
        if let Some(port) = self.elsewhere(&joining) {
            let error = Error::new(Code::Elsewhere, format!("{}: port {port}", joining.name));
            return Err(Refusal { error, port: Some(port) });
        }
        let flows = self.tailor(id, &joining)?;
        let is_running = |flow| self.running_cast(&joining.name, flow).is_some();
        let running: Vec<bool> = flows.iter().map(is_running).collect();
        let Some(Published { spec, publisher }) = self.published.get_mut(&joining.name) else {
            return Err(Error::new(Code::NotServed, joining.name).into());
        };
        check_sendable(&spec.title, &flows)?;
        let mut ports = Vec::new();
        for (flow, is_running) in flows.iter().zip(running) {
            if is_running {
                publisher.share(flow, &joining);
                ports.push(None);
                continue;
            }
            let port = publisher.open(flow, &joining);
            let failed = |text| named(flow, &Error::new(Code::AccessFailed, text));
            ports.push(Some(port.map_err(failed)?));
        }
        let give_up_ms = give_up_ms(spec.give_up_after);
        Ok(Served { title: spec.title.clone(), give_up_ms, flows, ports })
    }

    fn elsewhere(&mut self, joining: &Joining) -> Option<NonZeroU16> {
        let published = self.published.get_mut(&joining.name).filter(|_| joining.is_free)?;
        published.publisher.elsewhere(joining)
    }

    /// The flows for one Participant: the publisher's, checked.
    fn tailor(&mut self, id: SessionId, joining: &Joining) -> Result<Vec<FlowOffer>, Error> {
        let Some(Published { spec, publisher }) = self.published.get_mut(&joining.name) else {
            return Err(Error::new(Code::NotServed, joining.name.as_str()));
        };
        let mut flows = publisher.offer(joining, &spec.flows)?;
        self.number_flows(&mut flows)?;
        let dialed = self.sessions.get(&id).and_then(|session| self.peers.get(&session.peer));
        let dialed = dialed.is_some_and(|peer| peer.role == HubRole::Dialer);
        for flow in &flows {
            self.check_common(flow, joining).map_err(|error| named(flow, &error))?;
            if dialed && flow.multicast.is_some() {
                let text = "only who listens sends to a group: its address is that of the source";
                return Err(named(flow, &Error::new(Code::Unsupported, text)));
            }
            if dialed && self.is_stream(flow.transport) {
                let text = "the participant dials the streams of flows, and this end does not \
                            listen where it would";
                return Err(named(flow, &Error::new(Code::Unsupported, text)));
            }
        }
        Ok(flows)
    }

    /// Checks that the Participant has what a flow is made of.
    fn check_common(&self, flow: &FlowOffer, joining: &Joining) -> Result<(), Error> {
        if !joining.transports.contains(&flow.transport) {
            let name = self.transport(flow.transport).map_or("", |spec| spec.name);
            let text =
                format!("the participant has no transport \"{name}\" (number {})", flow.transport);
            return Err(Error::new(Code::Unsupported, text));
        }
        let modules = flow.graph.nodes.iter().map(|node| node.module);
        match modules.into_iter().find(|module| !joining.modules.contains(module)) {
            None => Ok(()),
            Some(id) => {
                let entry = self.config.catalogue.by_id(id);
                let name = entry.map_or("", |entry| entry.spec.name);
                let text = format!("the participant has no module \"{name}\" ({id:#06x})");
                Err(Error::new(Code::UnknownModule, text))
            }
        }
    }

    /// Gives up the participant of a session that has been without contact for longest, for
    /// another one; false when all have contact.
    fn free_place(&mut self, now: Time, name: &str) -> bool {
        let served = self.sessions.iter().filter(|(_, it)| it.role == Role::Creator);
        let named = served.filter(|(_, it)| it.name == name && !it.told);
        let lost = named.filter_map(|(id, it)| Some((self.peers.get(&it.peer)?.suspended?, *id)));
        let Some((_, id)) = lost.min() else { return false };
        let text = "its place was needed for another participant";
        self.break_session(now, id, Error::new(Code::GivenUp, text));
        true
    }

    /// How many participants a session that is served here has.
    pub(super) fn participants_of(&self, name: &str) -> usize {
        self.sessions.joined(name)
    }
}

/// Checks that flows can be written as an OFFER: a publisher may have named them as it liked.
fn check_sendable(title: &str, flows: &[FlowOffer]) -> Result<(), Error> {
    let offer =
        Offer { session: 0, title: title.to_owned(), give_up_ms: None, flows: flows.to_vec() };
    let written = Message::Offer(offer).encode(&mut Vec::new());
    written.map_err(|error| Error::new(Code::Internal, error.to_string()))
}

/// How an OFFER says for how long contact may be lost: up to 49 days.
fn give_up_ms(after: Duration) -> Option<u32> {
    (after != GIVE_UP_AFTER).then(|| u32::try_from(after.as_millis()).unwrap_or(u32::MAX))
}

/// An error with the name of the flow that it is about.
pub(super) fn named(flow: &FlowOffer, error: &Error) -> Error {
    Error::new(error.code, format!("{}: {}", flow.name, error.text))
}

/// Those of `ours` that are among `theirs`; all when nothing was said.
fn common(ours: impl Iterator<Item = u16>, theirs: &[u16]) -> Vec<u16> {
    ours.filter(|id| theirs.is_empty() || theirs.contains(id)).collect()
}

/// A random number of `range` that is not among `taken`.
fn stranger(random: &mut Random, range: RangeInclusive<u16>, taken: &[u16]) -> Option<u16> {
    let len = u64::try_from(range.len()).ok()?;
    let first = range.start().checked_add(u16::try_from(random.below(len)).ok()?)?;
    let cycle = (first..=*range.end()).chain(range);
    cycle.into_iter().find(|id| !taken.contains(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strange_number_is_in_its_range_and_not_taken() {
        let mut random = Random::from_number(3);
        let mut taken: Vec<u16> = (0xFF00..=0xFFFF).chain(0xF000..=0xFEFD).collect();
        for expected in [2, 1] {
            let found = stranger(&mut random, STRANGE_MODULES, &taken);
            assert!(matches!(found, Some(0xFEFE | 0xFEFF)), "{expected} are left: {found:?}");
            taken.extend(found);
        }
        assert_eq!(stranger(&mut random, STRANGE_MODULES, &taken), None);
        for _ in 0..1_000 {
            let found = stranger(&mut random, STRANGE_TRANSPORTS, &[]);
            assert!(found.is_some_and(|id| id >= 0x8000), "{found:?}");
        }
    }

    #[test]
    fn who_says_nothing_has_all_of_ours_and_what_we_do_not_know_is_passed_over() {
        let ours = [1, 2, 3];
        assert_eq!(common(ours.into_iter(), &[]), [1, 2, 3]);
        assert_eq!(common(ours.into_iter(), &[0xF123, 3, 1, 9]), [1, 3]);
        assert_eq!(common(ours.into_iter(), &[0xF123]), []);
    }
}

//! [`ServedSessions`]: what a core serves, under their names, and how each is offered to who joins.
//!
//! ```text
//!   Core::publish ----> ServedSession { spec, publisher }
//!   JOIN -> Joining ----> publisher.offer(joining) -> flows -> checked -> OFFER
//!                         publisher.open(flow, joining) -> access modules
//!                         publisher.share(flow, joining), where others are sent it already
//! ```
//!
//! Invariants: what is offered is legal here, and has no module or transport that the participant
//! has said it lacks; numbers that nobody here knows are passed over.

use crate::config::GIVE_UP_AFTER;
use crate::error::{Code, Error};
use crate::graphs::Graphs;
use crate::known::PathKnown;
use crate::peer::Peer;
use crate::port::Port;
use crate::session::{check_names, named};
use dacapo_base::{Address, Random};
use dacapo_lift::TransportSpec;
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::hub::SessionEntry;
use dacapo_wire::limits::{
    BODY_LEN_MAX, FLOWS_MAX, JOIN_ATTRIBUTES_MAX, JOIN_MODULES_MAX, JOIN_TRANSPORTS_MAX,
};
use dacapo_wire::message::Message;
use dacapo_wire::session::{FlowOffer, Join, Offer};
use std::collections::BTreeMap;
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
pub struct JoinParams {
    /// What every flow must be, besides what the Creator asks of it; at most
    /// [`dacapo_wire::limits::JOIN_ATTRIBUTES_MAX`].
    pub attributes: Vec<AttributeForm>,
    /// Media begin where those are who have joined before, not at their beginning.
    pub live: bool,
    /// The session may be joined at another port of the same host when the peer says so:
    /// [`crate::CoreEvent::Redirected`].
    pub follows: bool,
}

/// Who joins a session, and what it can and wants, for its [`SessionProvider`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRequest {
    /// The session's name.
    pub name: String,
    /// Where the control connection of the Participant comes from.
    pub remote: Address,
    /// The modules that both ends have, by number; all of this end when the Participant does not
    /// say which it has.
    pub modules: Vec<u16>,
    /// The same of transports; those of one host only when the Participant has found this end so.
    pub transports: Vec<u16>,
    /// What every flow must be, besides what the Creator asks of it. Keys may be unknown.
    pub attributes: Vec<AttributeForm>,
    /// What is known of the path to it.
    pub path: PathKnown,
    /// Media are to begin where those are who have joined before.
    pub live: bool,
    /// It may be sent to another port: it says that it follows, and has no other session here.
    pub is_free: bool,
}

/// What the access modules of a served session are made with, anew for each Participant.
pub trait SessionProvider: Send {
    /// The port of this host at which a Participant is to join instead; asked only about one that
    /// may be sent there.
    fn redirect(&mut self, _joining: &JoinRequest) -> Option<NonZeroU16> {
        None
    }

    /// The flows for a Participant: those that were published, as they are or tightened for this
    /// one. `flow` and `datagram_len` are set by the core, which checks the graphs too.
    ///
    /// # Errors
    /// Why there is no session for this Participant; it is refused with that.
    fn offer(
        &mut self,
        joining: &JoinRequest,
        flows: &[FlowOffer],
    ) -> Result<Vec<FlowOffer>, Error> {
        let _ = joining;
        Ok(flows.to_vec())
    }

    /// Opens the access module of a flow at the Creator: a source if the Creator sends, else a
    /// sink.
    ///
    /// # Errors
    /// Why it cannot, for the Participant.
    fn open(&mut self, flow: &FlowOffer, joining: &JoinRequest) -> Result<Port, String>;

    /// The Participant takes part in a flow to several that runs: what was opened last for the
    /// same offer feeds this one too, and nothing is opened.
    fn share(&mut self, _flow: &FlowOffer, _joining: &JoinRequest) {}
}

/// Why a session is not served to who asks for it, and at which port it is.
pub(crate) struct Refusal {
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
    /// [`crate::Command::GiveUpAfter`] says otherwise. Zero ends it as soon as contact is lost;
    /// [`GIVE_UP_AFTER`] is the usual.
    pub give_up_after: Duration,
}

struct ServedSession {
    spec: SessionSpec,
    publisher: Box<dyn SessionProvider>,
}

/// A session as it is offered to one Participant, with the Creator's access modules.
pub(crate) struct Served {
    pub name: String,
    pub title: String,
    pub give_up_ms: Option<u32>,
    /// Where this end is reached besides, if a flow goes by several paths.
    pub further: Vec<SocketAddr>,
    pub flows: Vec<FlowOffer>,
    pub ports: Vec<Option<Port>>,
}

/// Who asks for a session.
pub(crate) struct Asking<'a> {
    pub peer: &'a Peer,
    /// What is known of the path to it.
    pub path: PathKnown,
    /// Where this end is reached besides.
    pub further: Vec<SocketAddr>,
    /// It has no other session here.
    pub is_only: bool,
}

/// What a core serves.
#[derive(Default)]
pub(crate) struct ServedSessions {
    all: BTreeMap<String, ServedSession>,
    /// How many have joined each, those included that is served no longer.
    participants: BTreeMap<String, usize>,
}

impl ServedSessions {
    /// Serves a session under its name, in place of one that had it.
    ///
    /// # Errors
    /// [`Code::IllegalGraph`] with the flow and the reason, [`Code::Unsupported`] for a transport
    /// that is not there, [`Code::SessionFile`] for two flows of one name, or [`Code::TooMany`]
    /// flows.
    pub fn publish(
        &mut self,
        graphs: &Graphs,
        mut spec: SessionSpec,
        publisher: Box<dyn SessionProvider>,
    ) -> Result<(), Error> {
        dacapo_wire::name::check(&spec.name)
            .map_err(|error| Error::new(Code::NoSuchThing, format!("{}: {error}", spec.name)))?;
        number_flows(graphs, &mut spec.flows)?;
        self.all.insert(spec.name.clone(), ServedSession { spec, publisher });
        Ok(())
    }

    /// Serves a session no longer; those who have joined stay.
    pub fn unpublish(&mut self, name: &str) {
        self.all.remove(name);
    }

    /// What is served, as much of it as fits in a LISTING.
    pub fn entries(&self) -> Vec<SessionEntry> {
        let entry = |served: &ServedSession| SessionEntry {
            name: served.spec.name.clone(),
            title: served.spec.title.clone(),
            flow_count: served.spec.flows.len() as u16,
            participants: self.participants_of(&served.spec.name) as u32,
        };
        // The list's number, and of each entry its header, four fields' headers, and two numbers.
        let mut room = BODY_LEN_MAX - 8;
        let fits = |entry: &SessionEntry| {
            let len = entry.name.len() + entry.title.len() + 26;
            let fits = len <= room;
            room = room.saturating_sub(len);
            fits
        };
        let most = dacapo_wire::limits::SESSIONS_MAX;
        self.all.values().take(most).map(entry).take_while(fits).collect()
    }

    /// How many participants a session has.
    pub fn participants_of(&self, name: &str) -> usize {
        self.participants.get(name).copied().unwrap_or(0)
    }

    /// Whether a session has no place for a further participant.
    pub fn is_full(&self, name: &str) -> bool {
        let most = self.all.get(name).map(|served| served.spec.participants_max);
        most.is_some_and(|most| self.participants_of(name) >= most)
    }

    /// Somebody has joined a session.
    pub fn enter(&mut self, name: &str) {
        *self.participants.entry(name.to_owned()).or_default() += 1;
    }

    /// A participant is gone.
    pub fn leave(&mut self, name: &str) {
        let Some(count) = self.participants.get_mut(name) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.participants.remove(name);
        }
    }

    /// Makes the session that somebody asks for, for this Participant; `is_running` says of a flow
    /// to several that it is sent already.
    pub fn serve(
        &mut self,
        graphs: &Graphs,
        join: Join,
        asking: &Asking<'_>,
        is_running: impl Fn(&FlowOffer) -> bool,
    ) -> Result<Served, Refusal> {
        let Some(ServedSession { spec, publisher }) = self.all.get_mut(&join.name) else {
            return Err(Error::new(Code::NotServed, join.name).into());
        };
        let joining = joining(graphs, join, asking);
        if let Some(port) = joining.is_free.then(|| publisher.redirect(&joining)).flatten() {
            let error = Error::new(Code::Elsewhere, format!("{}: port {port}", joining.name));
            return Err(Refusal { error, port: Some(port) });
        }
        let mut flows = publisher.offer(&joining, &spec.flows)?;
        number_flows(graphs, &mut flows)?;
        for flow in &flows {
            check_common(graphs, flow, &joining).map_err(|error| named(flow, &error))?;
            check_listens(graphs, flow, asking).map_err(|error| named(flow, &error))?;
        }
        check_sendable(&spec.title, &flows)?;
        let mut ports = Vec::new();
        for flow in &flows {
            if is_running(flow) {
                publisher.share(flow, &joining);
                ports.push(None);
                continue;
            }
            let port = publisher.open(flow, &joining);
            let failed = |text| named(flow, &Error::new(Code::AccessFailed, text));
            ports.push(Some(port.map_err(failed)?));
        }
        let (title, give_up_ms) = (spec.title.clone(), give_up_ms(spec.give_up_after));
        let is_spread = flows.iter().any(|flow| graphs.spread(flow.transport).is_some());
        let further = if is_spread { asking.further.clone() } else { Vec::new() };
        Ok(Served { name: joining.name, title, give_up_ms, further, flows, ports })
    }
}

/// Numbers the flows of a session, says how long their datagrams are, and checks their names and
/// graphs.
fn number_flows(graphs: &Graphs, flows: &mut [FlowOffer]) -> Result<(), Error> {
    if flows.is_empty() || flows.len() > FLOWS_MAX {
        return Err(Error::new(Code::TooMany, "a session has 1 to 64 flows"));
    }
    check_names(flows, Code::SessionFile)?;
    for (index, flow) in flows.iter_mut().enumerate() {
        flow.flow = index as u16;
        let len = graphs.datagram_len(flow.transport, dacapo_path::DATAGRAM_LEN_FULL);
        flow.datagram_len = len.map_err(|error| named(flow, &error))?;
        let legal = graphs.check(flow, usize::from(flow.datagram_len));
        legal.map_err(|error| named(flow, &error))?;
    }
    Ok(())
}

/// What is said in the JOIN of a session with this peer.
///
/// # Errors
/// [`Code::NoSuchThing`] when the name is none; [`Code::TooMany`] wishes.
pub(crate) fn introduce(
    graphs: &Graphs,
    random: &mut Random,
    peer: &Peer,
    name: &str,
    wishes: JoinParams,
) -> Result<Join, Error> {
    dacapo_wire::name::check(name)
        .map_err(|error| Error::new(Code::NoSuchThing, format!("{name:?}: {error}")))?;
    let JoinParams { attributes, live, follows } = wishes;
    if attributes.len() > JOIN_ATTRIBUTES_MAX {
        let text = format!("attributes in a wish; at most {JOIN_ATTRIBUTES_MAX}");
        return Err(Error::new(Code::TooMany, text));
    }
    let entries = graphs.catalogue().entries().iter().map(|entry| entry.spec.id);
    let mut modules: Vec<u16> = entries.take(JOIN_MODULES_MAX - 2).collect();
    for _ in 0..2 {
        modules.extend(stranger(random, STRANGE_MODULES, &modules));
    }
    // Any that reads the peer's address, and goes between hosts or has found it.
    let is_there = |spec: &&&'static TransportSpec| {
        peer.is_read_by(spec) && (!spec.same_host || peer.is_found_by(spec.id))
    };
    let specs = graphs.catalogue().transports().iter().filter(is_there);
    let mut transports: Vec<u16> =
        specs.map(|spec| spec.id).take(JOIN_TRANSPORTS_MAX - 1).collect();
    transports.extend(stranger(random, STRANGE_TRANSPORTS, &transports));
    Ok(Join { name: name.to_owned(), modules, transports, attributes, live, follows })
}

/// Who joins, as far as this core understands it.
fn joining(graphs: &Graphs, join: Join, asking: &Asking<'_>) -> JoinRequest {
    let catalogue = graphs.catalogue();
    let modules = catalogue.entries().iter().map(|entry| entry.spec.id);
    let is_offered = |spec: &&&'static TransportSpec| {
        let is_near = || asking.peer.is_here() && join.transports.contains(&spec.id);
        asking.peer.is_read_by(spec) && (!spec.same_host || is_near())
    };
    let transports = catalogue.transports().iter().filter(is_offered).map(|spec| spec.id);
    JoinRequest {
        remote: asking.peer.remote(),
        modules: common(modules, &join.modules),
        transports: common(transports, &join.transports),
        name: join.name,
        attributes: join.attributes,
        path: asking.path,
        live: join.live,
        // Where there are no ports there is no other one to go to.
        is_free: join.follows && asking.is_only && asking.peer.remote().port().is_some(),
    }
}

/// Checks that the Participant has what a flow is made of.
fn check_common(graphs: &Graphs, flow: &FlowOffer, joining: &JoinRequest) -> Result<(), Error> {
    if !joining.transports.contains(&flow.transport) {
        let name = graphs.transport(flow.transport).map_or("", |spec| spec.name);
        let text =
            format!("the participant has no transport \"{name}\" (number {})", flow.transport);
        return Err(Error::new(Code::Unsupported, text));
    }
    let modules = flow.graph.nodes.iter().map(|node| node.module);
    match modules.into_iter().find(|module| !joining.modules.contains(module)) {
        None => Ok(()),
        Some(id) => {
            let entry = graphs.catalogue().by_id(id);
            let name = entry.map_or("", |entry| entry.spec.name);
            let text = format!("the participant has no module \"{name}\" ({id:#06x})");
            Err(Error::new(Code::UnknownModule, text))
        }
    }
}

/// Checks that this end listens where a flow needs it: it does not where it has dialed.
fn check_listens(graphs: &Graphs, flow: &FlowOffer, asking: &Asking<'_>) -> Result<(), Error> {
    let is_spread = graphs.spread(flow.transport).is_some();
    let text = match asking.peer.is_dialed() {
        _ if is_spread && asking.further.is_empty() => {
            "it goes by several paths, and this end is known to listen at one address only: listen \
             at two and more, each named, not at a wildcard"
        }
        true if is_spread => {
            "the participant finds the further paths of a flow where the creator listens, and this \
             end has dialed"
        }
        true if flow.multicast.is_some() => {
            "only who listens sends to a group: its address is that of the source"
        }
        true if graphs.is_stream(flow.transport) => {
            "the participant dials the streams of flows, and this end does not listen where it \
             would"
        }
        _ => return Ok(()),
    };
    Err(Error::new(Code::Unsupported, text))
}

/// Checks that flows can be written as an OFFER: a publisher may have named them as it liked.
fn check_sendable(title: &str, flows: &[FlowOffer]) -> Result<(), Error> {
    let offer = Offer { title: title.to_owned(), flows: flows.to_vec(), ..Offer::default() };
    let written = Message::Offer(offer).encode(&mut Vec::new());
    written.map_err(|error| Error::new(Code::Internal, error.to_string()))
}

/// How an OFFER says for how long contact may be lost: up to 49 days.
fn give_up_ms(after: Duration) -> Option<u32> {
    (after != GIVE_UP_AFTER).then(|| u32::try_from(after.as_millis()).unwrap_or(u32::MAX))
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

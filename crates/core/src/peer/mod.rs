//! [`Peer`]: another core, its control connection and the data path to it.
//!
//! The state that lives as long as the connection of a pair of hosts; [`Peers`] holds all.
//!
//! ```text
//!   dialed   Dialing --connected--> Greeting --WELCOME--> Open
//!   came in                         Greeting --HELLO----> Open
//!   Open: the dialer probes the data path with the listener's token; the listener learns from the
//!   first probe where the dialer's data port is, and probes back.
//!
//!   Peer = PeerLink (connections, greeting, lists)   DataPath (probes, data port), Further ones
//!          Liveness (signs of life)                  Contact (lost, back)
//! ```

mod contact;
mod data_path;
mod dialing;
mod further;
mod link;
mod liveness;
mod set;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use data_path::DataPath;
pub use dialing::DialParams;
pub(crate) use further::{Further, PathSet};

pub(crate) use set::{Identity, PeerCx, Peers, Routed, control_origin, control_way};

use crate::config::Controllers;
use crate::control::ConnId;
use crate::error::{Code, Error};
use crate::flow::{FlowSeen, PathTimes};
use crate::ids::PeerId;
use crate::session::table::HubRole;
use crate::transmit::ListenerId;
use contact::Contact;
use dacapo_base::{Address, Ecn, Time, earlier};
use dacapo_lift::{Spread, TransportSpec};
use dacapo_path::{ControllerEntry, Life, Sent};
use further::{FurtherPath, Towards};
use link::PeerLink;
use liveness::Liveness;
use std::time::Duration;

/// Whether a peer can be reached by a transport of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLookup {
    /// The peer.
    pub peer: PeerId,
    /// The number of the transport.
    pub transport: u16,
    /// The address of the peer's control port.
    pub remote: Address,
}

pub(crate) struct Peer {
    remote: Address,
    /// Where it has come in; `None` for one that was dialed.
    local: Option<ListenerId>,
    /// At which place of this end the first path has answered last.
    place: Option<ListenerId>,
    role: HubRole,
    link: PeerLink,
    /// The first path.
    data: DataPath,
    further: Further,
    life: Liveness,
    contact: Contact,
    /// The transports of one host by which the peer was found, by number.
    same_host: Vec<u16>,
    /// How many sessions there are with it.
    sessions: usize,
}

impl Peer {
    /// One that is dialed.
    pub fn dialed(
        remote: Address,
        now: Time,
        params: DialParams,
        controller: &ControllerEntry,
    ) -> Self {
        let data = DataPath::new(now, controller);
        Self::new(remote, None, HubRole::Dialer, PeerLink::dialed(now, params), data, now)
    }

    /// One that has come in.
    pub fn came_in(
        remote: Address,
        local: Option<ListenerId>,
        conn: ConnId,
        now: Time,
        controller: &ControllerEntry,
    ) -> Self {
        let data = DataPath::new(now, controller);
        Self::new(remote, local, HubRole::Listener, PeerLink::came_in(now, conn), data, now)
    }

    fn new(
        remote: Address,
        local: Option<ListenerId>,
        role: HubRole,
        link: PeerLink,
        data: DataPath,
        now: Time,
    ) -> Self {
        Self {
            remote,
            local,
            place: None,
            role,
            link,
            data,
            further: Further::default(),
            life: Liveness::new(now),
            contact: Contact::default(),
            same_host: Vec::new(),
            sessions: 0,
        }
    }

    /// The address of its control port.
    pub fn remote(&self) -> Address {
        self.remote
    }

    pub fn local(&self) -> Option<ListenerId> {
        self.local
    }

    /// This end has dialed it.
    pub fn is_dialed(&self) -> bool {
        self.role == HubRole::Dialer
    }

    /// The connection in use; `None` while dialing.
    pub fn conn(&self) -> Option<ConnId> {
        self.link.conn()
    }

    pub fn data(&self) -> &DataPath {
        &self.data
    }

    /// Contact is lost and flows wait for it.
    pub fn is_suspended(&self) -> bool {
        self.contact.lost_since().is_some()
    }

    /// Since when contact is lost.
    pub fn lost_since(&self) -> Option<Time> {
        self.contact.lost_since()
    }

    pub fn has_sessions(&self) -> bool {
        self.sessions > 0
    }

    /// The connection, if sessions and lists may be asked for over it now.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when it is not open; [`Code::ContactLost`] for the moment.
    pub fn open_conn(&self) -> Result<ConnId, Error> {
        let conn = self.link.open_conn().ok_or_else(not_open)?;
        if self.is_suspended() {
            return Err(Error::new(Code::ContactLost, format!("{}: for the moment", self.remote)));
        }
        Ok(conn)
    }

    /// True while probes are asked and none was answered: then only QUIC can say whether the peer
    /// lives.
    pub fn waits_for_path(&self, now: Time) -> bool {
        self.link.open_conn().is_some() && self.data.is_unanswered(now)
    }

    /// What its paths know of their times: a packet may come by the slowest.
    #[inline]
    pub fn times(&self) -> PathTimes {
        let first = PathTimes { is_lost: self.is_suspended(), ..self.data.times() };
        if self.further.is_empty() { first } else { self.further.slowest(first) }
    }

    /// The path at a place.
    fn path(&self, place: usize) -> Option<&DataPath> {
        match place {
            0 => Some(&self.data),
            _ => self.further.get(place).map(|path| &path.data),
        }
    }

    fn path_mut(&mut self, place: usize) -> Option<&mut DataPath> {
        match place {
            0 => Some(&mut self.data),
            _ => self.further.get_mut(place).map(|path| &mut path.data),
        }
    }

    /// By which paths a packet goes of a flow that spreads so.
    #[inline]
    pub fn route(&self, spread: Option<Spread>) -> PathSet {
        match spread {
            _ if self.further.is_empty() => PathSet::FIRST,
            Some(Spread::Copies) => self.further.live(),
            Some(Spread::Backup) | None => PathSet::one(self.further.carrier()),
        }
    }

    /// From where and to where a packet goes by a path.
    pub fn way_by(&self, place: usize) -> Option<Towards> {
        match self.further.get(place) {
            None => Some((self.local, self.data.remote()?)),
            Some(path) => Some((path.local, path.data.remote()?)),
        }
    }

    /// The congestion codepoint with which what leaves now by these does: theirs, where it is the
    /// same, for copies have one header.
    #[inline]
    pub fn ecn(&self, by: PathSet, is_acknowledged: bool) -> Ecn {
        if by == PathSet::FIRST {
            return self.data.ecn(is_acknowledged);
        }
        let of = |place| self.path(place).map_or(Ecn::NotEct, |it| it.ecn(is_acknowledged));
        let mut all = by.iter().map(of);
        let first = all.next().unwrap_or_default();
        if all.all(|ecn| ecn == first) { first } else { Ecn::NotEct }
    }

    /// How many bytes of its flows may leave as datagrams now by the one of these paths that lets
    /// out most.
    #[inline]
    pub fn allowance(&mut self, now: Time, by: PathSet, is_acknowledged: bool) -> usize {
        if by == PathSet::FIRST {
            return self.data.allowance(now, is_acknowledged);
        }
        self.allowance_by(now, by, is_acknowledged)
    }

    #[cold]
    fn allowance_by(&mut self, now: Time, by: PathSet, is_acknowledged: bool) -> usize {
        let of = |place| Some(self.path_mut(place)?.allowance(now, is_acknowledged));
        by.iter().filter_map(of).max().unwrap_or(0)
    }

    /// A packet of a flow goes out to it as datagrams, by those of these paths that have room for
    /// it, and one at least: which. What a path has no room for it would drop; the others bring it.
    #[inline]
    pub fn note_sent(&mut self, now: Time, by: PathSet, sent: &Sent) -> PathSet {
        if by == PathSet::FIRST {
            self.data.handle_sent(now, sent);
            return by;
        }
        self.note_sent_by(now, by, sent)
    }

    #[cold]
    fn note_sent_by(&mut self, now: Time, by: PathSet, sent: &Sent) -> PathSet {
        let most = self.allowance(now, by, sent.is_acknowledged).min(sent.bytes as usize);
        let mut taken = PathSet::default();
        for place in by.iter() {
            if let Some(path) = self.path_mut(place)
                && path.allowance(now, sent.is_acknowledged) >= most
            {
                path.handle_sent(now, sent);
                taken = taken.with(PathSet::one(place));
            }
        }
        taken
    }

    /// So many packets of a flow have come from there by datagrams, with a mark of congestion or
    /// without.
    #[inline]
    pub fn note_received(&mut self, from: Address, packets: usize, is_marked: bool) {
        if self.further.is_empty() {
            return self.data.note_received(packets, is_marked);
        }
        let is_there = |path: &FurtherPath| path.data.remote() == Some(from);
        match self.further.iter_mut().find(|(_, path)| is_there(path)) {
            None => self.data.note_received(packets, is_marked),
            Some((_, path)) => path.data.note_received(packets, is_marked),
        }
    }

    /// A packet of a flow may not leave now.
    pub fn await_room(&mut self, by: PathSet, is_acknowledged: bool) {
        if by == PathSet::FIRST {
            return self.data.await_room(is_acknowledged);
        }
        by.iter().for_each(|place| {
            if let Some(path) = self.path_mut(place) {
                path.await_room(is_acknowledged);
            }
        });
    }

    /// Whether packets that wait may leave now by any path; once.
    fn poll_room(&mut self, now: Time) -> bool {
        let mut has_room = self.data.poll_room(now);
        for (_, path) in self.further.iter_mut() {
            has_room |= path.data.poll_room(now);
        }
        has_room
    }

    /// Whether a path may be due earlier than it has said; once.
    fn poll_earlier(&mut self) -> bool {
        let mut is_earlier = self.data.poll_earlier();
        for (_, path) in self.further.iter_mut() {
            is_earlier |= path.data.poll_earlier();
        }
        is_earlier
    }

    /// Modules have seen more of the path that carries what goes by one.
    fn handle_seen(&mut self, now: Time, seen: &FlowSeen) {
        let carrier = self.further.carrier();
        if let Some(path) = self.path_mut(carrier) {
            path.handle_seen(now, seen);
        }
    }

    /// Whether it lives, as far as any of its paths says, once it is known where to ask: `is_heard`
    /// when something else has come of it.
    fn watch(&mut self, now: Time, is_heard: bool) -> Option<Life> {
        let first = self.data.watch(now, is_heard);
        if self.further.is_alive(now) { Some(Life::Alive) } else { first }
    }

    /// Whether it is known where datagrams of flows are to go.
    #[inline]
    pub fn is_reached(&self) -> bool {
        let has_answered = |path: &FurtherPath| path.data.remote().is_some();
        self.data.remote().is_some() || self.further.iter().any(|(_, path)| has_answered(path))
    }

    /// Opens paths besides the first, at the addresses that it has told where it was dialed: what
    /// names those that are new in probes, and their places.
    fn open_further(
        &mut self,
        now: Time,
        controllers: &Controllers,
        told: &[Address],
    ) -> Vec<(u64, usize)> {
        let remote = self.remote;
        // A peer elsewhere has nothing to say of what is on this host.
        let is_like = |at: &&Address| **at != remote && at.is_loopback() == remote.is_loopback();
        let told: Vec<Address> = told.iter().filter(is_like).copied().collect();
        let told = self.is_dialed().then_some(&told[..]);
        let of = |at: Option<&Address>| controllers.of(at.unwrap_or(&remote)).clone();
        let made = self.further.open(now, told, &self.data, of);
        self.place.into_iter().for_each(|place| self.further.set_place(place));
        made.into_iter().map(|(key, place)| (key.connection(), place)).collect()
    }

    /// A path has answered, at this place of this end.
    fn handle_place(&mut self, path: usize, local: ListenerId) {
        if let Some(further) = self.further.get_mut(path) {
            further.local = Some(local);
        } else if self.is_dialed() && self.place != Some(local) {
            self.place = Some(local);
            self.further.set_place(local);
        }
    }

    /// Looks anew at which paths carry; whether that has changed.
    fn settle(&mut self, now: Time) -> bool {
        self.further.settle(now, &self.data)
    }

    /// This end did not run until now.
    fn shift(&mut self, now: Time, by: Duration) {
        self.link.shift(by);
        self.life.shift(by);
        self.data.shift(now);
        self.further.iter_mut().for_each(|(_, path)| path.data.shift(now));
    }

    /// True when the peer is a process of this host, as far as its clock and its address say.
    pub fn is_here(&self) -> bool {
        self.data.is_one_clock() && self.remote.is_loopback()
    }

    /// Whether a transport reads the address that it is reached at.
    pub fn is_read_by(&self, transport: &TransportSpec) -> bool {
        transport.scheme == self.remote.scheme()
    }

    /// Whether a transport of one host has found it.
    pub fn is_found_by(&self, transport: u16) -> bool {
        self.same_host.contains(&transport)
    }

    /// Whether QUIC is to be asked for signs of life: until probes are answered it says whether the
    /// peer lives, for a data path that does not open is no loss of contact; and after something
    /// was said (see [`Liveness::solicit_acks`]).
    fn is_to_be_pinged(&self, now: Time) -> bool {
        let is_there = !self.is_suspended() && self.link.conn().is_some();
        is_there && (self.waits_for_path(now) || self.life.solicits())
    }

    /// When it is due: of one that nothing touches that does not change, but to become later.
    /// `give_up_at` is when the first of its sessions waits for contact no longer.
    fn due(&self, now: Time, give_up_at: impl FnOnce(Time) -> Option<Time>) -> Option<Time> {
        let life = match self.data.next_deadline(now) {
            Some(at) => Some(at),
            None => self.link.conn().map(|_| self.life.unprobed_due(self.has_sessions())),
        };
        let ping = self.is_to_be_pinged(now).then(|| self.life.ping_at());
        let contact = match self.lost_since() {
            None => self.contact.calm_at(),
            Some(since) => {
                let retry = self.is_dialed().then(|| self.link.next_attempt());
                earlier(give_up_at(since), retry)
            }
        };
        let path = match self.further.is_empty() {
            true => self.data.due(now),
            false => earlier(self.data.due(now), self.further.due(now)),
        };
        [self.link.due(), life, ping, contact, path].into_iter().fold(None, earlier)
    }
}

fn not_open() -> Error {
    Error::new(Code::NoSuchThing, "the peer is not open")
}

/// Nothing listens where a core was dialed.
fn not_listening(remote: Address) -> Error {
    Error::new(Code::NotListening, format!("{remote}; is a dacapo serving there?"))
}

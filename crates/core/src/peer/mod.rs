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
//!   Peer = PeerLink (connections, greeting, lists)   DataPath (probes, data port)
//!          Liveness (signs of life)                  Contact (lost, back)
//! ```

mod contact;
mod data_path;
mod dialing;
mod link;
mod liveness;
mod set;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use data_path::DataPath;
pub use dialing::DialParams;

pub(crate) use set::{Identity, PeerCx, Peers, Routed};

use crate::control::ConnId;
use crate::error::{Code, Error};
use crate::flow::PathTimes;
use crate::ids::PeerId;
use crate::session::table::HubRole;
use crate::transmit::ListenerId;
use contact::Contact;
use dacapo_base::{Address, Time, earlier};
use dacapo_lift::TransportSpec;
use dacapo_path::{ControllerEntry, Sent};
use link::PeerLink;
use liveness::Liveness;

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
    role: HubRole,
    link: PeerLink,
    data: DataPath,
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
            role,
            link,
            data,
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

    pub fn times(&self) -> PathTimes {
        PathTimes { is_lost: self.is_suspended(), ..self.data.times() }
    }

    /// How many bytes of its flows may leave as datagrams now.
    #[inline]
    pub fn allowance(&mut self, now: Time, is_acknowledged: bool) -> usize {
        self.data.allowance(now, is_acknowledged)
    }

    /// A packet of a flow goes out to it as datagrams.
    #[inline]
    pub fn note_sent(&mut self, now: Time, sent: &Sent) {
        self.data.handle_sent(now, sent);
    }

    /// So many packets of a flow have come from it by datagrams, with a mark of congestion or
    /// without.
    #[inline]
    pub fn note_received(&mut self, packets: usize, is_marked: bool) {
        self.data.note_received(packets, is_marked);
    }

    /// A packet of a flow may not leave now.
    pub fn await_room(&mut self, is_acknowledged: bool) {
        self.data.await_room(is_acknowledged);
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
            None => self.link.conn().map(|_| self.life.unprobed_due()),
        };
        let ping = self.is_to_be_pinged(now).then(|| self.life.ping_at());
        let contact = match self.lost_since() {
            None => self.contact.calm_at(),
            Some(since) => {
                let retry = self.is_dialed().then(|| self.link.next_attempt());
                earlier(give_up_at(since), retry)
            }
        };
        let path = self.data.due(now);
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

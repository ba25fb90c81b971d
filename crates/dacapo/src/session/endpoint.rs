//! [`Endpoint`]: a core in this process that serves sessions and joins them.
//!
//! ```text
//!   Endpoint --+-- Creator "notes" -- Session, Session        one identity, one thread besides the
//!              +-- Session to 192.0.2.7 --+                   callers', one connection per peer
//!              +-- Session to 192.0.2.7 --+ one connection
//! ```
//!
//! What it is not: a process-wide thing; a program can have several, which do not know each other.

use super::background;
use super::creator::Creator;
use super::drive::{Counters, Drive, Guard, Shared};
use super::entry::Phase;
use super::handle::Session;
use super::misuse;
use super::sleeper::Sleeper;
use super::state::{PeerPhase, State};
use crate::host::{self, Host};
use crate::plan::{Assumptions, Plan, attribute_forms};
use crate::uri::Uri;
use dacapo_base::{Time, failpoint};
use dacapo_core::{Code, Error, PeerId, SessionId, Wishes};
use dacapo_qos::Attributes;
use dacapo_security::Fingerprint;
use dacapo_transport::StatsByKind;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What errors call a session file that is a text in a program.
const ORIGIN: &str = "session file";

/// Serves the session that a text describes; an endpoint of its own, which lives as long as a
/// handle of it. Files that the session names are relative to the current folder.
///
/// # Errors
/// As [`Endpoint::new`] and [`Endpoint::create`].
pub fn create(session_file: &str) -> Result<Creator, Error> {
    Endpoint::new()?.create(session_file)
}

/// Joins a session: `dacapo://HOST[:PORT]/NAME`; an endpoint of its own, which lives as long as a
/// handle of it.
///
/// # Errors
/// As [`Endpoint::new`] and [`Endpoint::connect`].
pub fn connect(uri: &str) -> Result<Session, Error> {
    Endpoint::new()?.connect(uri)
}

/// Joins a session, and asks of every flow what its Creator does not.
///
/// # Errors
/// As [`Endpoint::new`] and [`Endpoint::connect_with`].
pub fn connect_with(uri: &str, asks: &Attributes) -> Result<Session, Error> {
    Endpoint::new()?.connect_with(uri, asks)
}

/// A core in this process. Clones are the same endpoint; it says goodbye to its peers when the last
/// handle of it, of its creators and of its sessions is gone.
///
/// ```no_run
/// // Two sessions over one connection.
/// let endpoint = dacapo::Endpoint::new()?;
/// let notes = endpoint.connect("dacapo://192.0.2.7/notes")?;
/// let orders = endpoint.connect("dacapo://192.0.2.7/orders")?;
/// # Ok::<(), dacapo::Error>(())
/// ```
#[derive(Clone)]
pub struct Endpoint(pub(super) Arc<Handle>);

/// What handles share.
pub(super) struct Handle {
    pub shared: Arc<Shared>,
    background: Mutex<Option<JoinHandle<()>>>,
}

impl Endpoint {
    /// An endpoint with the identity of this user, made at the first start.
    ///
    /// # Errors
    /// [`Code::System`] with what to do, when there is no identity, descriptor or thread to be had.
    pub fn new() -> Result<Self, Error> {
        Self::with_host(Host::new()?)
    }

    /// An endpoint on this host, whose identity it has and whose addresses it listens on.
    ///
    /// # Errors
    /// [`Code::System`] when there is no descriptor or thread left.
    pub fn with_host(mut host: Host) -> Result<Self, Error> {
        let system = |error: std::io::Error| Error::new(Code::System, error.to_string());
        let reactor = host.reactor();
        let calls = Sleeper::of_calls(reactor).map_err(system)?;
        let background = Sleeper::of_background(reactor).map_err(system)?;
        let drive = Drive::new(calls, &background);
        let shared = Arc::new(Shared::new(State::new(host, drive)));
        let its = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("dacapo".to_owned());
        let thread = thread.spawn(move || background::run(&its, background)).map_err(system)?;
        shared.background.is_at(thread.thread());
        Ok(Self(Arc::new(Handle { shared, background: Mutex::new(Some(thread)) })))
    }

    /// Serves the session that a text describes, in the form of a session file. Files that it names
    /// are relative to the current folder.
    ///
    /// # Errors
    /// [`Code::SessionFile`] with every mistake and its line; misuse when this endpoint serves a
    /// session of that name.
    pub fn create(&self, session_file: &str) -> Result<Creator, Error> {
        let plan = Plan::parse(session_file, ORIGIN, &Assumptions::default());
        let wrong = |errors: dacapo_qos::Errors| Error::new(Code::SessionFile, errors.to_string());
        self.serve(&plan.map_err(wrong)?)
    }

    /// Serves the session of a plan.
    ///
    /// # Errors
    /// As `Core::publish`; misuse when this endpoint serves a session of that name.
    pub fn serve(&self, plan: &Plan) -> Result<Creator, Error> {
        Creator::new(self, plan)
    }

    /// Joins a session: `dacapo://HOST[:PORT]/NAME`. It is set up when this returns, and its flows
    /// run from [`Session::activate`] on. A connection to that host that is there is used.
    ///
    /// # Errors
    /// Misuse for a text that is no such address; [`Code::Unreachable`] or [`Code::NoDataPath`]
    /// when the host does not answer, within 10 s; [`Code::NotServed`]; what the Creator refuses
    /// with; [`Code::Unsupported`] when the session has no flow of bytes.
    pub fn connect(&self, uri: &str) -> Result<Session, Error> {
        self.connect_with(uri, &Attributes::default())
    }

    /// Joins a session, and asks of every flow what its Creator does not.
    ///
    /// # Errors
    /// As [`Endpoint::connect`]; what is asked may be refused.
    pub fn connect_with(&self, uri: &str, asks: &Attributes) -> Result<Session, Error> {
        let uri: Uri =
            uri.parse().map_err(|error: crate::uri::UriError| misuse(error.to_string()))?;
        let remote = host::resolve(&uri.authority())?;
        let (state, peer) = self.dial(remote)?;
        let id = self.join(state, peer, &uri.name, asks)?;
        Ok(Session::new(self, id, &uri.name))
    }

    /// The peer at an address, open, for as long as the state stays locked.
    fn dial(&self, remote: SocketAddr) -> Result<(Guard<'_>, PeerId), Error> {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        let id = state.dial(remote)?;
        shared.act(&mut state);
        let (mut state, outcome) = shared.wait(state, Time::NEVER, move |state| {
            let peer = state.peers.get(&id);
            peer.is_none_or(|peer| !matches!(peer.phase, PeerPhase::Dialing))
        });
        state.dialed(id)?;
        outcome.map(|_| (state, id))
    }

    fn join(
        &self,
        mut state: Guard<'_>,
        peer: PeerId,
        name: &str,
        asks: &Attributes,
    ) -> Result<SessionId, Error> {
        let shared = &self.0.shared;
        let wishes = Wishes { attributes: attribute_forms(asks), live: false };
        let id = state.join(peer, name, wishes)?;
        shared.act(&mut state);
        let (mut state, outcome) = shared.wait(state, Time::NEVER, move |state| {
            state.sessions.get(&id).is_none_or(|entry| entry.phase != Phase::Joining)
        });
        let closed = || Error::new(Code::Closed, "the session ended while it was set up");
        let failure = match state.sessions.get(&id).map(|entry| &entry.phase) {
            Some(Phase::Joining) => outcome.err(),
            Some(Phase::Over(error)) => Some(error.clone().unwrap_or_else(closed)),
            Some(_) => None,
            None => Some(closed()),
        };
        let Some(failure) = failure else { return Ok(id) };
        state.sessions.remove(&id);
        Err(failure)
    }

    /// The addresses that this endpoint listens on.
    #[must_use]
    pub fn listening(&self) -> Vec<SocketAddr> {
        self.0.shared.lock().host.listening().to_vec()
    }

    /// This endpoint's identity as others see it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.shared.lock().host.fingerprint()
    }

    /// The peers that it has a connection to.
    #[must_use]
    pub fn peer_count(&self) -> usize {
        let state = self.0.shared.lock();
        state.peers.values().filter(|peer| matches!(peer.phase, PeerPhase::Open)).count()
    }

    /// What its transports have sent and received so far, by kind.
    #[must_use]
    pub fn transport_stats(&self) -> StatsByKind {
        self.0.shared.lock().host.reactor().transport_stats()
    }

    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let shared = &self.0.shared;
        let background_looks = shared.background.looks();
        let mut state = shared.lock();
        let turns = state.host.reactor().counters().turns;
        Counters { turns, background_looks, ..state.drive.counters }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        failpoint!("endpoint.stop");
        state.leave();
        self.shared.background.stop();
        drop(state);
        let thread = self.background.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // It has at most one turn to make; a panic of it has been printed.
        let _ = thread.map(JoinHandle::join);
    }
}

//! [`Endpoint`]: a core in this process that serves sessions and joins them.
//!
//! ```text
//!   Endpoint --+-- Creator "notes" -- Session, Session        one identity, one thread besides the
//!              +-- Session to 192.0.2.7 --+                   callers', one connection per peer
//!              +-- Session to 192.0.2.7 --+ one connection
//! ```

use super::builder::Builder;
use super::creator::Creator;
use super::driver::{Counters, Guard, Shared};
use super::entry::{self, Phase};
use super::handle::Session;
use super::ids;
use super::join::Join;
use super::state::check_works;
use super::waiting::{Wait, Waiting};
use super::wanted::Wanted;
use super::watch::Notice;
use super::worker::{Worker, Workers};
use crate::host::Host;
use crate::misuse::misuse;
use crate::plan::{Assumptions, Plan};
use crate::uri::Uri;
use dacapo_base::{Address, Time};
use dacapo_core::{
    Code, DialParams, Error, Fault, PeerId, Port, SessionId, SessionProvider, SessionSpec,
};
use dacapo_lift::TransportSpec;
use dacapo_qos::Attributes;
use dacapo_security::Fingerprint;
use dacapo_sys::clock;
use dacapo_transport::StatsByKind;
use dacapo_wire::session::FlowOffer;
use std::fmt;
use std::num::NonZeroU16;
use std::sync::Arc;

/// What errors call a session file that is a text in a program.
const ORIGIN: &str = "session file";

/// Serves the session that a text or a [`SessionBuilder`](crate::SessionBuilder) describes; an
/// endpoint of its own, which lives as long as a handle of it. Files that the session names are
/// relative to the current folder.
///
/// # Errors
/// As [`Endpoint::new`] and [`Endpoint::create`].
pub fn create(session_file: impl fmt::Display) -> Result<Creator, Error> {
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
    pub first: Arc<Worker>,
    pub further: Workers,
    /// What shows that something waits at any of them.
    pub notice: Arc<Notice>,
}

impl Endpoint {
    /// An endpoint with the identity of this user, made at the first start.
    ///
    /// # Errors
    /// [`Code::System`] with what to do, when there is no identity, descriptor or thread to be had.
    pub fn new() -> Result<Self, Error> {
        Self::with_host(Host::new()?)
    }

    /// An endpoint that is told more before it starts: modules of its own, its identity.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// An endpoint on this host, whose identity it has and whose addresses it listens on.
    ///
    /// # Errors
    /// [`Code::System`] when there is no descriptor or thread left.
    pub fn with_host(host: Host) -> Result<Self, Error> {
        let notice = Notice::new().map_err(|error| Error::caused(Code::System, error))?;
        let notice = Arc::new(notice);
        let first = Arc::new(Worker::new(host, Arc::clone(&notice), 0)?);
        Ok(Self(Arc::new(Handle { first, further: Workers::default(), notice })))
    }

    /// Serves the session that a text describes, in the form of a session file, or a
    /// [`SessionBuilder`](crate::SessionBuilder). Files that it names are relative to the current
    /// folder.
    ///
    /// # Errors
    /// [`Code::SessionFile`] with every mistake and its line; misuse when this endpoint serves a
    /// session of that name.
    pub fn create(&self, session_file: impl fmt::Display) -> Result<Creator, Error> {
        self.0.first.shared.check_here()?;
        let catalogue = Some(Arc::clone(self.0.first.shared.lock().host.parts()));
        let assumptions = Assumptions { catalogue, ..Assumptions::default() };
        let plan = Plan::parse(&session_file.to_string(), ORIGIN, &assumptions);
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

    /// Serves a session whose access modules come from the program. All who join are served by the
    /// first of the endpoint's reactors.
    ///
    /// # Errors
    /// As [`Endpoint::serve`].
    pub fn serve_by(
        &self,
        spec: SessionSpec,
        provider: Box<dyn SessionProvider>,
    ) -> Result<Creator, Error> {
        Creator::of_provider(self, spec, provider)
    }

    /// Lets others join what is served here at these addresses: at the same port of each, for flows
    /// in streams too. Port 0 lets the system choose. It can be called again.
    ///
    /// # Errors
    /// [`Code::System`] when the system does not let us, for example because the port is in use.
    pub fn listen(&self, addrs: &[Address]) -> Result<(), Error> {
        let shared = &self.0.first.shared;
        let mut state = shared.lock();
        check_works(&state)?;
        state.host.listen(addrs)?;
        shared.act(&mut state);
        Ok(())
    }

    /// Joins a session: `dacapo://HOST[:PORT]/NAME`, or `dacapo+SCHEME://ADDRESS/NAME` where a
    /// transport of one's own has addresses that are none of IP. It is set up when this returns,
    /// and its flows run from [`Session::activate`] on. A connection to that host that is there is
    /// used.
    ///
    /// # Errors
    /// Misuse for a text that is no such address; [`Code::NotListening`] when the host says so, on
    /// loopback at once and elsewhere in a second or two ([`Join::wait`] goes on);
    /// [`Code::Unreachable`] or [`Code::NoDataPath`] when it does not answer, within 10 s;
    /// [`Code::NotServed`]; what the Creator refuses with; [`Code::Unsupported`] when the session
    /// has no flow of bytes.
    pub fn connect(&self, uri: &str) -> Result<Session, Error> {
        self.connect_with(uri, &Attributes::default())
    }

    /// Joins a session, and asks of every flow what its Creator does not.
    ///
    /// # Errors
    /// As [`Endpoint::connect`]; what is asked may be refused.
    pub fn connect_with(&self, uri: &str, asks: &Attributes) -> Result<Session, Error> {
        self.join(uri, &Join::new().asks(asks))
    }

    /// Joins a session as [`Endpoint::connect`] does, told how, and what becomes of its media.
    ///
    /// # Errors
    /// As [`Endpoint::connect_with`]; [`Code::AccessFailed`] when a file, a player or an access
    /// module cannot be opened; misuse when there is no such access module.
    pub fn join(&self, uri: &str, how: &Join) -> Result<Session, Error> {
        self.0.first.shared.check_here()?;
        let uri: Uri =
            uri.parse().map_err(|error: crate::uri::UriError| misuse(error.to_string()))?;
        let parts = Arc::clone(self.0.first.shared.lock().host.parts());
        how.access.iter().try_for_each(|wish| wish.find(&parts).map(drop))?;
        let remote = parts.address_of(&uri)?;
        let outcome = match self.join_at(remote, &uri.name, how, true) {
            Err(Refused { redirect: Some(redirect), .. }) => {
                match self.follow_redirect(remote, redirect, &uri.name, how)? {
                    Some(session) => return Ok(session),
                    None => self.join_at(remote, &uri.name, how, false),
                }
            }
            outcome => outcome,
        };
        outcome.map_err(|refused| refused.error)
    }

    /// Joins a session where its host says; `None` when it cannot be reached there: a firewall may
    /// let the port through that everybody knows, and no other; or when somebody else is.
    fn follow_redirect(
        &self,
        remote: Address,
        Redirect { port, host }: Redirect,
        name: &str,
        how: &Join,
    ) -> Result<Option<Session>, Error> {
        let there = remote.at_port(port.get());
        // It listens there, or the first port does as well.
        let how = Join { wait: None, ..how.clone() };
        match self.join_at(there, name, &how, false) {
            Ok(session) => Ok((session.peer_fingerprint() == host).then_some(session)),
            Err(Refused { error, .. }) if error.code.fault() == Fault::Network => Ok(None),
            Err(Refused { error, .. }) => Err(error),
        }
    }

    /// Joins a session at an address; `follows`: or learns where else.
    fn join_at(
        &self,
        remote: Address,
        name: &str,
        how: &Join,
        follows: bool,
    ) -> Result<Session, Refused> {
        let worker = self.0.further.place(&self.0.first, remote)?;
        let (state, peer) = worker.dial(remote, DialParams { wait: how.wait })?;
        let id = join(&worker.shared, state, peer, name, (how, follows))?;
        Ok(Session::new(self, worker, id, name))
    }

    /// The addresses that this endpoint listens on.
    #[must_use]
    pub fn listening(&self) -> Vec<Address> {
        self.0.first.shared.lock().host.listening().to_vec()
    }

    /// The transports that cannot be served here, and why.
    #[must_use]
    pub fn missing(&self) -> Vec<(&'static TransportSpec, String)> {
        self.0.first.shared.lock().host.missing().to_vec()
    }

    /// The transports that can be served here, by number.
    #[must_use]
    pub fn transports(&self) -> Vec<u16> {
        self.0.first.shared.lock().host.transports()
    }

    /// This endpoint's identity as others see it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.first.shared.lock().host.fingerprint()
    }

    /// Answers the offer of a session that was joined so that the program decides
    /// ([`Join::decide`]): a source or a sink for each flow, in their order; without one it is
    /// declined.
    ///
    /// # Errors
    /// Misuse when there is no such session, or nothing was offered; a port that does not fit its
    /// flow.
    pub fn answer(
        &mut self,
        session: ids::SessionId,
        ports: Vec<Option<Port>>,
    ) -> Result<(), Error> {
        let worker = self.worker_of(session)?;
        let mut state = worker.shared.lock();
        state.open_entry(session.id)?;
        let now = clock::now();
        state.core().answer(now, session.id, ports)?;
        worker.shared.act(&mut state);
        Ok(())
    }

    /// Asks the source of a flow again, which had nothing.
    ///
    /// # Errors
    /// Misuse when there is no such session.
    pub fn wake(&self, flow: ids::FlowId) -> Result<(), Error> {
        let worker = self.worker_of(flow.session)?;
        let mut state = worker.shared.lock();
        check_works(&state)?;
        state.wake(flow.session.id, flow.flow);
        worker.shared.act(&mut state);
        Ok(())
    }

    /// The handle of a session that was joined by a command: once, for whoever asks first; without
    /// it the session is there until the endpoint is gone.
    #[must_use]
    pub fn session(&self, session: ids::SessionId) -> Option<Session> {
        let worker = self.worker_of(session).ok()?;
        let mut state = worker.shared.lock();
        let entry = state.sessions.get_mut(&session.id);
        let entry = entry.filter(|entry| entry.handle == entry::Handle::Free)?;
        entry.handle = entry::Handle::Out;
        let name = entry.name.clone();
        drop(state);
        Some(Session::new(self, worker, session.id, &name))
    }

    /// The flows of a session, as they were offered; nothing when it is over.
    #[must_use]
    pub fn offers(&self, session: ids::SessionId) -> Vec<FlowOffer> {
        let Ok(worker) = self.worker_of(session) else { return Vec::new() };
        let all = worker.shared.lock().core().status(session.id);
        all.into_iter().map(|flow| flow.offer).collect()
    }

    /// The other end of a session, as long as there is a connection to it.
    #[must_use]
    pub fn peer_of(&self, session: ids::SessionId) -> Option<ids::PeerId> {
        let worker = self.worker_of(session).ok()?;
        let state = worker.shared.lock();
        let peer = state.sessions.get(&session.id)?.peer;
        state.peers.is_open(peer).then(|| state.watch.peer(peer))
    }

    fn worker_of(&self, session: ids::SessionId) -> Result<Arc<Worker>, Error> {
        self.0.first.shared.check_here()?;
        let worker = self.workers().into_iter().nth(session.worker);
        worker.ok_or_else(|| misuse("this endpoint has no such session"))
    }

    /// The address of a peer's control connection, while there is one.
    #[must_use]
    pub fn peer_address(&self, peer: ids::PeerId) -> Option<Address> {
        let workers = self.workers();
        workers.get(peer.worker)?.shared.lock().core().peer_address(peer.id)
    }

    /// Who a peer says it is, while there is a connection.
    #[must_use]
    pub fn peer_fingerprint(&self, peer: ids::PeerId) -> Option<Fingerprint> {
        let workers = self.workers();
        workers.get(peer.worker)?.shared.lock().host.peer_fingerprint(peer.id)
    }

    /// The peers that it has a connection to.
    #[must_use]
    pub fn peer_count(&self) -> usize {
        self.workers().iter().map(|worker| worker.peer_count()).sum()
    }

    /// What its transports have sent and received so far, by kind.
    #[must_use]
    pub fn transport_stats(&self) -> StatsByKind {
        let mut all = StatsByKind::default();
        for worker in self.workers() {
            all.add_all(&worker.shared.lock().host.reactor().transport_stats());
        }
        all
    }

    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.workers()
            .iter()
            .map(|worker| worker.counters())
            .fold(Counters::default(), Counters::and)
    }

    pub(super) fn workers(&self) -> Vec<Arc<Worker>> {
        self.0.further.with(&self.0.first)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

/// Why a session was not joined, and where it is to be.
struct Refused {
    error: Error,
    redirect: Option<Redirect>,
}

/// At which port of the same host, which shows the same identity there.
struct Redirect {
    port: NonZeroU16,
    host: Option<Fingerprint>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { error, redirect: None }
    }
}

/// A session with an open peer, set up.
fn join(
    shared: &Shared,
    mut state: Guard<'_>,
    peer: PeerId,
    name: &str,
    (how, follows): (&Join, bool),
) -> Result<SessionId, Refused> {
    let id = state.join(peer, name, (how, follows))?;
    shared.act(&mut state);
    let joined = Wanted::Joined(id);
    let (mut state, outcome) = shared.wait(state, Time::NEVER, Wait::default(), &joined);
    let closed = || Error::new(Code::Closed, "the session ended while it was set up");
    let failure = match state.sessions.get(&id).map(|entry| &entry.phase) {
        Some(Phase::Joining) => outcome.err(),
        Some(Phase::Over(error)) => Some(error.clone().unwrap_or_else(closed)),
        Some(_) => None,
        None => Some(closed()),
    };
    let Some(failure) = failure else { return Ok(id) };
    let entry = state.sessions.remove(&id);
    let Some(port) = entry.and_then(|entry| entry.redirect) else { return Err(failure.into()) };
    let redirect = Redirect { port, host: state.host.peer_fingerprint(peer) };
    state.leave_unused(peer);
    shared.act(&mut state);
    Err(Refused { error: failure, redirect: Some(redirect) })
}

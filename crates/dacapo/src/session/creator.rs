//! [`Creator`]: who owns a session file, listens, and gets a session with everybody who joins.

use super::driver::Shared;
use super::endpoint::{Endpoint, Handle};
use super::handle::Session;
use super::publish::JoinQueue;
use super::shard::Shards;
use super::state::{Serving, check_works};
use super::waiting::{Wait, Waiting};
use super::wanted::Wanted;
use crate::misuse::misuse;
use crate::plan::Plan;
use crate::uri::Uri;
use dacapo_base::{Time, failpoint};
use dacapo_core::{Command, Error, SessionProvider, SessionSpec};
use dacapo_sys::clock;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The most sessions that wait to be accepted; who joins then is refused.
pub const BACKLOG_MAX: usize = 256;

/// Serves a session. Clones are the same creator; when the last is gone, nobody can join any more
/// and those who were not accepted are let go, while accepted sessions go on.
///
/// ```no_run
/// # fn serve(creator: dacapo::Creator) -> Result<(), dacapo::Error> {
/// loop {
///     let session = creator.accept()?;
///     std::thread::spawn(move || -> Result<(), dacapo::Error> {
///         let mut text = session.receiver("text")?;
///         while let Some(unit) = text.recv()? {
///             println!("{}: {}", session.remote(), String::from_utf8_lossy(&unit));
///         }
///         session.close().map(drop)
///     });
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Creator(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    name: Arc<str>,
    join_queue: JoinQueue,
    /// Where else it is served; nowhere when its access modules come from the program.
    shards: Option<Shards>,
}

impl Creator {
    pub(super) fn new(endpoint: &Endpoint, plan: &Plan) -> Result<Self, Error> {
        let join_queue = JoinQueue::default();
        let publisher = join_queue.publisher(plan, &join_queue);
        let shards = Shards::new(plan, &join_queue);
        Self::publish(endpoint, plan.spec(), publisher, join_queue, Some(shards))
    }

    /// That of a session whose access modules come from the program.
    pub(super) fn of_provider(
        endpoint: &Endpoint,
        spec: SessionSpec,
        provider: Box<dyn SessionProvider>,
    ) -> Result<Self, Error> {
        let catalogue = (**endpoint.0.first.shared.lock().host.catalogue()).clone();
        let join_queue = JoinQueue::default();
        let provider = join_queue.accepting(provider, catalogue, &join_queue);
        Self::publish(endpoint, spec, provider, join_queue, None)
    }

    fn publish(
        endpoint: &Endpoint,
        spec: SessionSpec,
        provider: Box<dyn SessionProvider>,
        join_queue: JoinQueue,
        shards: Option<Shards>,
    ) -> Result<Self, Error> {
        let mut state = endpoint.0.first.shared.lock();
        check_works(&state)?;
        let (name, title) = (spec.name.clone(), spec.title.clone());
        if state.serving.contains_key(&name) {
            return Err(misuse(format!("this endpoint serves \"{name}\"; give it another name")));
        }
        state.core().publish(spec, provider)?;
        failpoint!("endpoint.publish");
        let serving = Serving {
            title,
            join_queue: join_queue.clone(),
            backlog: VecDeque::new(),
            origin: None,
        };
        state.serving.insert(name.clone(), serving);
        drop(state);
        let (endpoint, name) = (endpoint.clone(), name.into());
        Ok(Self(Arc::new(Inner { endpoint, name, join_queue, shards })))
    }

    /// The session's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The endpoint that serves it.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// Lets others join at an address: `HOST`, `HOST:PORT`, `[::1]:PORT`; port 0 lets the system
    /// choose. `SCHEME:TEXT` is one of a transport of one's own that has no addresses of IP. It can
    /// be called for several addresses; all that the endpoint serves can be joined at each, for as
    /// long as the endpoint lives.
    ///
    /// # Errors
    /// [`Code::Unreachable`](dacapo_core::Code::Unreachable) for a name that is no address,
    /// [`Code::System`](dacapo_core::Code::System) when the system does not let us, for example
    /// because the port is in use.
    pub fn listen(&self, address: &str) -> Result<(), Error> {
        let shared = &self.0.endpoint.0.first.shared;
        let parts = Arc::clone(shared.lock().host.parts());
        let address = parts.resolve(address)?;
        let state = shared.lock();
        check_works(&state)?;
        if address.port() != Some(0) && state.host.listening().contains(&address) {
            return Ok(());
        }
        drop(state);
        self.0.endpoint.listen(&[address])
    }

    /// What others connect to: at the first address that the endpoint listens on; `None` before
    /// [`Creator::listen`]. A wildcard address is to be replaced by one of this host.
    #[must_use]
    pub fn uri(&self) -> Option<Uri> {
        let address = *self.0.endpoint.listening().first()?;
        Some(Uri::at(address, &self.0.name))
    }

    /// The session with the next participant, once it has joined.
    ///
    /// # Errors
    /// Misuse when nobody can join yet.
    pub fn accept(&self) -> Result<Session, Error> {
        loop {
            if let Some(session) = self.accept_until(Time::NEVER)? {
                return Ok(session);
            }
        }
    }

    /// The same; `None` when nobody has joined in time.
    ///
    /// # Errors
    /// As [`Creator::accept`].
    pub fn accept_timeout(&self, most: Duration) -> Result<Option<Session>, Error> {
        self.accept_until(clock::now() + most)
    }

    fn accept_until(&self, until: Time) -> Result<Option<Session>, Error> {
        let first = &self.0.endpoint.0.first;
        first.shared.check_here()?;
        loop {
            self.spread();
            let mut state = first.shared.lock();
            if state.host.listening().is_empty() {
                let text = format!("nobody can join \"{}\" yet; call listen() first", self.0.name);
                return Err(misuse(text));
            }
            if let Some((worker, id)) = self.0.join_queue.pop_of_shard() {
                drop(state);
                worker.shared.lock().take_in(id);
                return Ok(Some(Session::new(&self.0.endpoint, worker, id, &self.0.name)));
            }
            if let Some(serving) = state.serving.get_mut(&*self.0.name)
                && let Some(id) = serving.backlog.pop_front()
            {
                serving.join_queue.set_backlog(serving.backlog.len());
                state.take_in(id);
                let worker = Arc::clone(first);
                return Ok(Some(Session::new(&self.0.endpoint, worker, id, &self.0.name)));
            }
            let (name, join_queue) = (Arc::clone(&self.0.name), self.0.join_queue.clone());
            let guest = Wanted::Guest { name, join_queue };
            // The lock is let go of: it is taken anew once all are looked at.
            let outcome = first.shared.wait(state, until, Wait::default(), &guest).1;
            if !outcome? {
                return Ok(None);
            }
        }
    }

    /// Says where those are served best who join next.
    fn spread(&self) {
        let Inner { endpoint, join_queue, shards, .. } = &*self.0;
        let Some(shards) = shards.as_ref().filter(|shards| shards.may_be()) else { return };
        let Handle { first, further, .. } = &*endpoint.0;
        // Where none can be had they are served here.
        let worker = further.spare(first);
        join_queue.send_to(worker.and_then(|worker| shards.port_on(first, &worker).ok()));
    }
}

impl fmt::Debug for Creator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Creator").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.endpoint.0.first.shared.is_here() {
            return;
        }
        stop_serving(&self.endpoint.0.first.shared, &self.name);
        self.shards.iter().for_each(Shards::close);
    }
}

/// Nobody can join any more, and those who were not accepted are let go.
pub(super) fn stop_serving(shared: &Shared, name: &str) {
    let mut state = shared.lock();
    let now = clock::now();
    let _ = state.core().handle_command(now, Command::Unpublish(name.into()));
    let serving = state.serving.remove(name);
    for id in serving.into_iter().flat_map(|serving| serving.backlog) {
        state.turn_away(id);
    }
    state.wake_finished(name);
    shared.act(&mut state);
}

//! [`AsyncEndpoint`]: an endpoint in a program on tokio.

use super::deadline::Deadline;
use super::endpoint::Endpoint;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, RawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// An [`Endpoint`] whose turns are awaited. It stands on [`Endpoint::as_fd`] alone: its own threads
/// do the work, and the task wakes when something is there.
///
/// A future that is dropped before it is ready has taken nothing: events and units are taken by
/// [`Endpoint::poll_event`] and [`Endpoint::poll_unit`], which do not wait.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let mut endpoint = dacapo::AsyncEndpoint::new(dacapo::Endpoint::new()?)?;
/// loop {
///     endpoint.ready().await?;
///     while let Some((session, event)) = endpoint.poll_event() {
///         println!("{session:?}: {event:?}");
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncEndpoint {
    endpoint: Endpoint,
    watched: AsyncFd<Watched>,
}

/// A handle of the endpoint that nobody else has: its descriptor is there as long as it is watched.
#[derive(Debug)]
struct Watched(Endpoint);

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl AsyncEndpoint {
    /// Watches an endpoint, in a runtime of tokio with I/O.
    ///
    /// # Errors
    /// What the system says when it cannot be watched.
    ///
    /// # Panics
    /// Outside a runtime, and in one without I/O, as all of tokio.
    pub fn new(endpoint: Endpoint) -> io::Result<Self> {
        #[expect(deprecated, reason = "what it asks of its caller `Watched` keeps, without unsafe")]
        let watched = AsyncFd::with_interest(Watched(endpoint.clone()), Interest::READABLE)?;
        Ok(Self { endpoint, watched })
    }

    /// Waits until something is there for the application: an event, a unit, room or a guest. Take
    /// all of it before it is asked again, for until then it is ready at once.
    ///
    /// # Errors
    /// As [`Endpoint::turn`].
    pub async fn ready(&mut self) -> io::Result<()> {
        loop {
            // It says no more than that somebody should look; what comes now wakes again.
            self.watched.readable().await?.clear_ready();
            if self.endpoint.turn(Deadline::PAST)?.is_ready {
                return Ok(());
            }
        }
    }

    /// The endpoint, watched no longer.
    #[must_use]
    pub fn into_inner(self) -> Endpoint {
        self.endpoint
    }
}

impl Deref for AsyncEndpoint {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl DerefMut for AsyncEndpoint {
    fn deref_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }
}

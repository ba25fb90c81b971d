//! [`Switchboard`]: the endpoints of one process and the queues between them.
//!
//! Invariants: every queue is bounded in datagrams and bytes; an endpoint has at most
//! [`crate::DATA_LANES_MAX`] data queues; a sender that was blocked is woken when there is room.

use super::InProc;
use super::config::{Config, EndpointError};
use crate::transport::datagrams_in;
use crate::{Drops, TransportStats};
use dacapo_base::Address;
use dacapo_packet::Layout;
use dacapo_sys::poll::Waker;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The port of every fake address.
const PORT: u16 = 19_980;

/// The endpoints of one process; clones are the same hub.
#[derive(Clone, Debug)]
pub struct Switchboard {
    config: Config,
    state: Arc<Mutex<State>>,
}

impl Switchboard {
    /// A hub without endpoints.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self { config: *config, state: Arc::default() }
    }

    /// A new endpoint; its name is free again when it is dropped.
    ///
    /// # Errors
    /// [`EndpointError`] when the name is in use or no descriptor is left.
    pub fn endpoint(&self, name: &str) -> Result<InProc, EndpointError> {
        let waker = Arc::new(Waker::new().map_err(EndpointError::NoWaker)?);
        let local = self
            .state()
            .join(name, Arc::clone(&waker))
            .ok_or_else(|| EndpointError::NameInUse { name: name.to_owned() })?;
        Ok(InProc {
            hub: self.clone(),
            local_addrs: [local],
            waker,
            ready: VecDeque::new(),
            stats: TransportStats::default(),
        })
    }

    /// The address of the endpoint with this name.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Option<Address> {
        self.state().names.get(name).copied()
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way; a thread that panicked elsewhere leaves the state whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the endpoints share.
#[derive(Debug, Default)]
pub(super) struct State {
    names: BTreeMap<String, Address>,
    endpoints: BTreeMap<Address, Endpoint>,
    joined: u64,
}

/// The receiving side of an endpoint.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) control: Queue,
    pub(super) data: BTreeMap<Address, Queue>,
    pub(super) waker: Arc<Waker>,
    /// Who found a queue of this endpoint full and waits for room.
    pub(super) blocked: BTreeSet<Address>,
    /// A queue where this endpoint was blocked has room.
    pub(super) writable: bool,
    pub(super) drops: Drops,
}

/// A datagram that waits, or a train that fits a body of a pool.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) from: Address,
    pub(super) bytes: Vec<u8>,
    pub(super) segment: usize,
    pub(super) datagrams: usize,
}

/// How the datagrams of a message lie in a body.
pub(super) fn layout(segment: usize) -> Layout {
    Layout { head: 0, tail: 0, segment: segment.max(1), segmented: true }
}

/// What waits in one lane of one endpoint.
#[derive(Debug, Default)]
pub(super) struct Queue {
    messages: VecDeque<Message>,
    datagrams: usize,
    bytes: usize,
}

impl Queue {
    /// Adds what was sent, in runs that fit a body each.
    pub(super) fn push_runs(&mut self, from: Address, bytes: &[u8], segment: usize) {
        if bytes.is_empty() {
            self.push(Message { from, bytes: Vec::new(), segment, datagrams: 1 });
        }
        for run in bytes.chunks(layout(segment).payload_per_train()) {
            let datagrams = datagrams_in(run.len(), segment);
            self.push(Message { from, bytes: run.to_vec(), segment, datagrams });
        }
    }

    fn push(&mut self, message: Message) {
        self.datagrams += message.datagrams;
        self.bytes += message.bytes.len();
        self.messages.push_back(message);
    }

    pub(super) fn first(&self) -> Option<&Message> {
        self.messages.front()
    }

    pub(super) fn remove_first(&mut self) {
        if let Some(message) = self.messages.pop_front() {
            self.datagrams -= message.datagrams;
            self.bytes -= message.bytes.len();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// How many of `datagrams` datagrams of `segment` bytes find room.
    pub(super) fn room(&self, datagrams: usize, segment: usize, config: &Config) -> usize {
        let slots = config.queue_datagrams_max.saturating_sub(self.datagrams);
        let bytes = config.queue_bytes_max.saturating_sub(self.bytes);
        datagrams.min(slots).min(bytes.checked_div(segment).unwrap_or(usize::MAX))
    }
}

impl State {
    fn join(&mut self, name: &str, waker: Arc<Waker>) -> Option<Address> {
        if self.names.contains_key(name) {
            return None;
        }
        // Never the address of an endpoint that has left: its datagrams are not for a new one.
        self.joined += 1;
        let ip = Ipv6Addr::from_bits((0x100_u128 << 112) | u128::from(self.joined));
        let address = Address::Ip(SocketAddr::new(IpAddr::V6(ip), PORT));
        self.names.insert(name.to_owned(), address);
        self.endpoints.insert(address, Endpoint::new(waker));
        Some(address)
    }

    pub(super) fn leave(&mut self, address: Address) {
        self.names.retain(|_, named| *named != address);
        if let Some(left) = self.endpoints.remove(&address) {
            self.wake_blocked(left.blocked);
        }
    }

    pub(super) fn endpoint(&mut self, address: Address) -> Option<&mut Endpoint> {
        self.endpoints.get_mut(&address)
    }

    pub(super) fn has_lane(&self, of: Address, remote: Address) -> bool {
        self.endpoints.get(&of).is_some_and(|endpoint| endpoint.data.contains_key(&remote))
    }

    pub(super) fn open_lane(
        &mut self,
        of: Address,
        remote: Address,
        limit: usize,
    ) -> io::Result<()> {
        let endpoint = self.endpoint(of).ok_or(io::ErrorKind::NotConnected)?;
        if endpoint.data.len() >= limit && !endpoint.data.contains_key(&remote) {
            let text = format!("{limit} data lanes are open: close one before another is opened");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        endpoint.data.entry(remote).or_default();
        Ok(())
    }

    pub(super) fn close_lane(&mut self, of: Address, remote: Address) {
        let Some(endpoint) = self.endpoint(of) else {
            return;
        };
        let closed = endpoint.data.remove(&remote);
        endpoint.drops.closed += closed.map_or(0, |queue| queue.datagrams as u64);
        let blocked = std::mem::take(&mut endpoint.blocked);
        self.wake_blocked(blocked);
    }

    pub(super) fn drops(&self, of: Address) -> Drops {
        self.endpoints.get(&of).map_or_else(Drops::default, |endpoint| endpoint.drops)
    }

    /// Tells the endpoints that were blocked that there is room.
    pub(super) fn wake_blocked(&mut self, blocked: BTreeSet<Address>) {
        for address in blocked {
            if let Some(endpoint) = self.endpoint(address) {
                endpoint.writable = true;
                endpoint.waker.wake();
            }
        }
    }
}

impl Endpoint {
    fn new(waker: Arc<Waker>) -> Self {
        Self {
            control: Queue::default(),
            data: BTreeMap::new(),
            waker,
            blocked: BTreeSet::new(),
            writable: false,
            drops: Drops::default(),
        }
    }

    /// True while something waits to be received.
    pub(super) fn is_ready(&self) -> bool {
        self.writable || !self.control.is_empty() || self.data.values().any(|q| !q.is_empty())
    }
}

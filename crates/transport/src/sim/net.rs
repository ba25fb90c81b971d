//! [`Net`]: who listens where in a simulated world, and the pipes between them.
//!
//! Invariants: an address is given once; a pipe is gone when both of its ends are.

use super::{Config, Pipe, Side, Sim};
use crate::stream::{Connection, Token};
use dacapo_base::{Address, Random, Time};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The port of every address here.
const PORT: u16 = 19_980;

/// The most connections that wait for one listener; more are refused.
const WAITING_MAX: usize = 128;

/// A world of simulated byte streams; clones are the same world.
#[derive(Clone, Debug)]
pub struct Net {
    config: Config,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    random: Random,
    now: Time,
    pipes: BTreeMap<u64, Entry>,
    /// Who listens, and the connections that it has not taken.
    listeners: BTreeMap<Address, VecDeque<u64>>,
    made: u64,
}

#[derive(Debug)]
struct Entry {
    pipe: Pipe,
    /// The addresses of the ends, the dialer's first.
    ends: [Address; 2],
    is_open: [bool; 2],
}

impl Net {
    /// A world in which nobody listens.
    #[must_use]
    pub fn new(config: &Config, seed: u64) -> Self {
        let state = State {
            random: Random::from_number(seed),
            now: Time::ZERO,
            pipes: BTreeMap::new(),
            listeners: BTreeMap::new(),
            made: 0,
        };
        Self { config: *config, state: Arc::new(Mutex::new(state)) }
    }

    /// A transport that listens at an address of its own.
    #[must_use]
    pub fn serve(&self) -> Sim {
        let mut state = self.state();
        let local = state.next_address();
        state.listeners.insert(local, VecDeque::new());
        drop(state);
        Sim::new(self.clone(), local, true)
    }

    /// A transport with one stream to `remote`, opened with `token`.
    #[must_use]
    pub fn dial(&self, remote: Address, token: Token) -> Sim {
        let wire = self.connect(remote);
        let local = wire.local;
        Sim::dialed(Sim::new(self.clone(), local, false), wire, remote, token)
    }

    /// A bare connection to `remote`, whose bytes the caller writes; where nobody listens it says
    /// `ConnectionRefused`.
    #[must_use]
    pub fn connect(&self, remote: Address) -> Wire {
        let mut state = self.state();
        let local = state.next_address();
        let id = state.made;
        let waiting = state.listeners.get_mut(&remote);
        let is_taken = waiting.is_some_and(|waiting| {
            let has_capacity = waiting.len() < WAITING_MAX;
            if has_capacity {
                waiting.push_back(id);
            }
            has_capacity
        });
        let pipe = if is_taken {
            Pipe::new(&self.config, state.random.fork())
        } else {
            Pipe::refused(&self.config)
        };
        let (ends, is_open) = ([local, remote], [true, is_taken]);
        state.pipes.insert(id, Entry { pipe, ends, is_open });
        drop(state);
        Wire { net: self.clone(), id, side: Side::Dialer, local }
    }

    /// Cuts the stream that was dialed from `dialer` now, with what is on its way; false when there
    /// is none.
    pub fn cut(&self, dialer: Address) -> bool {
        self.with_pipe_of(dialer, Pipe::cut)
    }

    /// Cuts the stream that was dialed from `dialer` when `side` has written its first `bytes`
    /// bytes, the preface counted; false when there is none.
    pub fn cut_after(&self, dialer: Address, side: Side, bytes: u64) -> bool {
        self.with_pipe_of(dialer, |pipe| pipe.cut_after(side, bytes))
    }

    fn with_pipe_of(&self, dialer: Address, act: impl FnOnce(&mut Pipe)) -> bool {
        let mut state = self.state();
        let found = state.pipes.values_mut().find(|entry| entry.ends[0] == dialer);
        found.map(|entry| act(&mut entry.pipe)).is_some()
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Moves the time on.
    pub(super) fn advance(&self, now: Time) {
        let mut state = self.state();
        state.now = state.now.max(now);
        let now = state.now;
        state.pipes.values_mut().for_each(|entry| entry.pipe.advance(now));
    }

    /// When something arrives next at the ends that `local` has.
    pub(super) fn next_arrival(&self, local: Address) -> Option<Time> {
        let state = self.state();
        let sides = [Side::Dialer, Side::Listener];
        let arrivals = state.pipes.values().flat_map(|entry| {
            let own =
                |side: &Side| entry.is_open[side.index()] && entry.ends[side.index()] == local;
            sides.into_iter().filter(own).filter_map(|side| entry.pipe.next_arrival_at(side))
        });
        arrivals.min()
    }

    /// The next connection that waits for a listener, and who made it.
    pub(super) fn accept(&self, local: Address) -> Option<(Wire, Address)> {
        let mut state = self.state();
        let id = state.listeners.get_mut(&local)?.pop_front()?;
        let [dialer, _] = state.pipes.get(&id)?.ends;
        Some((Wire { net: self.clone(), id, side: Side::Listener, local }, dialer))
    }

    /// Nobody listens there any more; who waits is cut off.
    pub(super) fn leave(&self, local: Address) {
        let waiting = self.state().listeners.remove(&local).unwrap_or_default();
        for id in waiting {
            drop(Wire { net: self.clone(), id, side: Side::Listener, local });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way; a thread that panicked elsewhere leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// An address of the prefix 100::/64, which no network routes (RFC 6666).
    fn next_address(&mut self) -> Address {
        self.made += 1;
        let ip = (0x0100_u128 << 112) | u128::from(self.made);
        Address::Ip(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(ip)), PORT))
    }
}

/// One end of a stream in a [`Net`]. Its drop closes it.
#[derive(Debug)]
pub struct Wire {
    net: Net,
    id: u64,
    side: Side,
    local: Address,
}

impl Wire {
    /// The address of this end.
    #[must_use]
    pub fn local_addr(&self) -> Address {
        self.local
    }

    /// True when writing makes progress.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.with(|pipe, side| Ok(pipe.end(side).is_writable())).unwrap_or(true)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Pipe, Side) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.net.state();
        let now = state.now;
        let entry = state.pipes.get_mut(&self.id).ok_or(io::ErrorKind::NotConnected)?;
        entry.pipe.advance(now);
        act(&mut entry.pipe, self.side)
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.with(|pipe, side| pipe.end(side).read(into))
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.with(|pipe, side| pipe.end(side).read_vectored(into))
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|pipe, side| pipe.end(side).write(bytes))
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.with(|pipe, side| pipe.end(side).write_vectored(parts))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection for Wire {
    const SHORT_READ_IS_ALL: bool = false;

    fn end_writing(&mut self) {
        // A pipe that is gone has nobody left to tell.
        let _ = self.with(|pipe, side| {
            pipe.end(side).end_writing();
            Ok(())
        });
    }

    /// Nothing gets lost in a pipe.
    fn set_patience(&mut self, _: Duration) {}
}

impl Drop for Wire {
    fn drop(&mut self) {
        let mut state = self.net.state();
        let Some(entry) = state.pipes.get_mut(&self.id) else { return };
        entry.pipe.end(self.side).close();
        entry.is_open[self.side.index()] = false;
        if entry.is_open == [false; 2] {
            state.pipes.remove(&self.id);
        }
    }
}

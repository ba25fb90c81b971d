//! `Clients`: who talks through a relay, each with a socket of its own to the server.
//!
//! A program with two sockets is two.
//!
//! ```text
//!   address ──> token ──> { address, socket to the server, when it was last heard }
//! ```
//!
//! Invariants: at most so many at a time; a token is never used again, so that what is still on the
//! way for a client that is gone reaches nobody else. One that was silent for as long as allowed,
//! in both directions, is forgotten; one that is not silent is never forgotten for a new one.

use dacapo_base::Time;
use dacapo_sys::udp::Socket;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

/// A client.
pub(crate) struct Client {
    /// Where it is.
    pub addr: SocketAddr,
    /// Its socket to the server.
    pub upstream: Socket,
    /// When something last came from it or for it.
    pub heard: Time,
    /// Arrivals for it that the kernel has dropped so far.
    pub kernel_drops: u64,
}

/// All of them.
pub(crate) struct Clients {
    by_addr: HashMap<SocketAddr, u64>,
    by_token: BTreeMap<u64, Client>,
    next: u64,
    count_max: usize,
    idle_max: Duration,
}

impl Clients {
    /// None yet; tokens from `first` on.
    pub fn new(first: u64, count_max: usize, idle_max: Duration) -> Self {
        let (by_addr, by_token) = (HashMap::new(), BTreeMap::new());
        Self { by_addr, by_token, next: first, count_max, idle_max }
    }

    pub fn token_of(&self, addr: SocketAddr) -> Option<u64> {
        self.by_addr.get(&addr).copied()
    }

    pub fn get_mut(&mut self, token: u64) -> Option<&mut Client> {
        self.by_token.get_mut(&token)
    }

    pub fn len(&self) -> usize {
        self.by_token.len()
    }

    pub fn has_capacity(&self) -> bool {
        self.by_token.len() < self.count_max
    }

    /// The token of the next client.
    pub fn next_token(&self) -> u64 {
        self.next
    }

    pub fn insert(&mut self, addr: SocketAddr, upstream: Socket, now: Time) -> u64 {
        let token = self.next;
        self.next += 1;
        self.by_addr.insert(addr, token);
        self.by_token.insert(token, Client { addr, upstream, heard: now, kernel_drops: 0 });
        token
    }

    /// Takes one out that has been silent for too long, if there is one.
    pub fn take_idle(&mut self, now: Time) -> Option<Client> {
        let is_idle = |client: &Client| now.since(client.heard) >= self.idle_max;
        let (&token, _) = self.by_token.iter().find(|(_, client)| is_idle(client))?;
        let client = self.by_token.remove(&token)?;
        self.by_addr.remove(&client.addr);
        Some(client)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Client> {
        self.by_token.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_sys::udp::Config;
    use std::net::Ipv4Addr;

    fn addr(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    fn socket() -> Socket {
        Socket::bind(addr(0), &Config::default()).unwrap()
    }

    #[test]
    fn who_was_silent_for_too_long_is_forgotten_and_its_token_is_not_used_again() {
        let mut clients = Clients::new(1, 2, Duration::from_secs(300));
        let first = clients.insert(addr(1), socket(), Time::ZERO);
        let second = clients.insert(addr(2), socket(), Time::ZERO);
        assert!(!clients.has_capacity());
        let later = Time::ZERO + Duration::from_secs(300);
        clients.get_mut(second).unwrap().heard = later;
        assert!(clients.take_idle(later - Duration::from_nanos(1)).is_none());
        assert_eq!(clients.take_idle(later).map(|client| client.addr), Some(addr(1)));
        assert!(clients.take_idle(later).is_none() && clients.has_capacity());
        assert_eq!((clients.token_of(addr(1)), clients.len()), (None, 1));
        assert!(clients.get_mut(first).is_none());
        let again = clients.insert(addr(1), socket(), later);
        assert!(again != first && again != second);
    }
}

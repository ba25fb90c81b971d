//! Sockets at the ends of a cable `v`, 10.81.0.1 and .2, fd81::1 and ::2.

pub use crate::veth::{Cable, ip};
use crate::{ETHERTYPE, LONG, PROTOCOL};
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::{interface, packet, raw};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

impl Cable {
    pub fn new() -> Option<Self> {
        Self::of_net(81)
    }

    pub fn raw(&self, end: usize, local: &str) -> raw::Socket {
        let local = SocketAddr::new(local.parse().unwrap(), 0);
        self.ends[end].run(|| raw::Socket::bind(local, PROTOCOL)).unwrap().unwrap()
    }

    /// A socket for frames without a ring, and the address of its interface.
    pub fn ethernet(&self, end: usize) -> (packet::Socket, packet::Address) {
        let open = || {
            let socket = packet::Socket::open(interface::index("v").unwrap(), ETHERTYPE);
            (socket.unwrap(), interface::ethernet_address("v").unwrap().unwrap())
        };
        self.ends[end].run(open).unwrap()
    }
}

pub fn wait(fd: BorrowedFd<'_>) {
    let mut poller = Poller::new().unwrap();
    poller.add(fd, 0, Interest::Read).unwrap();
    let mut events = Vec::new();
    poller.wait(Some(LONG), &mut events).unwrap();
    assert!(!events.is_empty(), "nothing came");
}

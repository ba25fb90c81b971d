//! The sockets of a UDP transport: some for control, one per peer for data.
//!
//! Invariants: at most [`crate::DATA_LANES_MAX`] data lanes; one per remote address; a token names
//! one socket at a time.

use super::Udp;
use super::channel::Channel;
use crate::Membership;
use dacapo_io::Watching;
use dacapo_io::address::{any_port, scoped};
use dacapo_sys::poll::Interest;
use dacapo_sys::udp::Socket;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// Data sockets have numbers from here up, control sockets below.
const DATA_PLACES: usize = 1_000;

/// Which socket of which lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Control(usize),
    Data(usize),
}

impl Place {
    pub(super) fn of_token(token: u64) -> Self {
        let number = usize::try_from(token).unwrap_or(0);
        match number.checked_sub(DATA_PLACES) {
            Some(index) => Self::Data(index),
            None => Self::Control(number),
        }
    }

    /// What it is watched by.
    pub(super) fn number(self) -> u16 {
        let number = match self {
            Self::Control(index) => index,
            Self::Data(index) => DATA_PLACES + index,
        };
        // There are at most so many lanes; beyond them a socket would be nobody's.
        u16::try_from(number).unwrap_or(u16::MAX)
    }
}

/// The sockets of a transport.
#[derive(Debug)]
pub(super) struct Lanes {
    controls: Vec<Channel>,
    data: Vec<Option<Channel>>,
    by_remote: HashMap<SocketAddr, usize>,
    /// Whose lane was asked for last: mostly the next is the same.
    last: Option<(SocketAddr, usize)>,
    memberships: HashMap<Membership, usize>,
}

impl Lanes {
    pub(super) fn new(controls: Vec<Channel>) -> Self {
        let (by_remote, memberships) = (HashMap::new(), HashMap::new());
        Self { controls, data: Vec::new(), by_remote, last: None, memberships }
    }

    pub(super) fn channel(&mut self, place: Place) -> Option<&mut Channel> {
        match place {
            Place::Control(index) => self.controls.get_mut(index),
            Place::Data(index) => self.data.get_mut(index)?.as_mut(),
        }
    }

    /// The socket of the data lane to `remote`.
    pub(super) fn data_to(&mut self, remote: SocketAddr) -> Option<Place> {
        let is_last = |(of, index): (SocketAddr, usize)| (of == remote).then_some(index);
        if let Some(index) = self.last.and_then(is_last) {
            return Some(Place::Data(index));
        }
        let index = self.by_remote.get(&remote).copied()?;
        self.last = Some((remote, index));
        Some(Place::Data(index))
    }

    /// The control socket from which `remote` is best reached.
    pub(super) fn control_to(&self, remote: SocketAddr) -> Option<Place> {
        let places = 0..self.controls.len();
        let best = places
            .filter(|&index| self.suits(index, remote).is_some())
            .max_by_key(|&index| (self.suits(index, remote), std::cmp::Reverse(index)));
        best.map(Place::Control)
    }

    /// How well a control socket suits a remote address; `None` when it cannot reach it.
    fn suits(&self, index: usize, remote: SocketAddr) -> Option<u8> {
        let local = self.controls.get(index)?.local;
        if local.is_ipv4() != remote.is_ipv4() {
            return None;
        }
        if local.ip().is_unspecified() {
            return Some(1);
        }
        // From a loopback address nothing but loopback can be reached, and the other way round the
        // answers of a remote would not find the way.
        Some(if local.ip().is_loopback() == remote.ip().is_loopback() { 2 } else { 0 })
    }

    /// The data sockets that may have something to read are read in turn; tells whether this one
    /// was not in the queue yet.
    pub(super) fn enqueue(&mut self, place: Place) -> bool {
        let Some(channel) = self.channel(place).filter(|channel| !channel.queued) else {
            return false;
        };
        channel.queued = true;
        channel.prediction.begin();
        true
    }

    /// Watches every socket.
    pub(super) fn watch_all(&self, watching: &Watching) -> io::Result<()> {
        let controls = self.controls.iter().enumerate();
        let controls = controls.map(|(index, channel)| (Place::Control(index), channel));
        let data = self.data.iter().enumerate();
        let data = data.filter_map(|(index, it)| Some((Place::Data(index), it.as_ref()?)));
        for (place, channel) in controls.chain(data) {
            watching.add(channel.socket.as_fd(), place.number(), channel.interest())?;
        }
        Ok(())
    }

    /// Arrivals that the kernel dropped for full buffers of the open sockets.
    pub(super) fn kernel_drops(&self) -> u64 {
        let data = self.data.iter().flatten();
        self.controls.iter().chain(data).map(Channel::kernel_drops).sum()
    }

    pub(super) fn membership(&self, membership: &Membership) -> Option<usize> {
        self.memberships.get(membership).copied()
    }

    pub(super) fn enter(&mut self, membership: Membership, index: usize, channel: Channel) {
        self.memberships.insert(membership, index);
        self.data[index] = Some(channel);
    }

    pub(super) fn leave(&mut self, membership: &Membership) -> Option<usize> {
        self.memberships.remove(membership)
    }

    pub(super) fn free_slot(&mut self) -> usize {
        let free = self.data.iter().position(Option::is_none);
        free.unwrap_or_else(|| {
            self.data.push(None);
            self.data.len() - 1
        })
    }
}

impl Udp {
    pub(super) fn open_lane(&mut self, remote: SocketAddr) -> io::Result<SocketAddr> {
        let open = self.lanes.data_to(remote).and_then(|place| self.lanes.channel(place));
        if let Some(channel) = open {
            return Ok(channel.local);
        }
        self.check_room()?;
        let socket = match self.dialled {
            Some(_) => self.connected_to(any_port(remote), remote, false)?,
            None => self.share_port(remote)?,
        };
        let local = socket.local_addr()?;
        let index = self.lanes.free_slot();
        let place = Place::Data(index).number();
        self.watching.add(socket.as_fd(), place, Interest::Read)?;
        self.lanes.data[index] = Some(Channel::of_peer(socket, local, remote, self.config.gro));
        self.lanes.by_remote.insert(remote, index);
        Ok(local)
    }

    /// Whether another data socket may be opened.
    pub(super) fn check_room(&self) -> io::Result<()> {
        let limit = self.config.data_lanes_max.min(crate::DATA_LANES_MAX);
        if self.lanes.by_remote.len() + self.lanes.memberships.len() >= limit {
            let text = format!("{limit} data lanes are open: close one before another is opened");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        Ok(())
    }

    /// A data socket at `local`, connected to `remote`, which may be a group.
    fn connected_to(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
        reuse: bool,
    ) -> io::Result<Socket> {
        let config = self.config.socket(reuse);
        let gro = config.gro && remote.ip().is_multicast();
        // What comes from a group says nothing about the way to one peer.
        let marks = !remote.ip().is_multicast();
        let socket = Socket::bind(local, &dacapo_sys::udp::Config { gro, marks, ..config })?;
        if remote.ip().is_multicast() {
            let interface = self.prepare_delivery(&socket, local.ip())?;
            socket.connect(scoped(remote, interface))?;
        } else {
            socket.connect(remote)?;
        }
        Ok(socket)
    }

    /// A socket at the port of the control socket that suits `remote`, connected to `remote`.
    fn share_port(&mut self, remote: SocketAddr) -> io::Result<Socket> {
        let no_way = || io::Error::from(io::ErrorKind::NetworkUnreachable);
        let place = self.lanes.control_to(remote).ok_or_else(no_way)?;
        let control = self.lanes.channel(place).ok_or_else(no_way)?;
        let local = control.local;
        control.socket.set_reuse(true)?;
        let socket = self.connected_to(local, remote, true);
        if let Some(control) = self.lanes.channel(place) {
            control.socket.set_reuse(false)?;
        }
        socket
    }

    pub(super) fn close_lane(&mut self, remote: SocketAddr) {
        if let Some(index) = self.lanes.by_remote.remove(&remote) {
            self.lanes.last = None;
            self.close_slot(index);
        }
    }

    /// Closes the data socket in a slot.
    pub(super) fn close_slot(&mut self, index: usize) {
        if let Some(channel) = self.lanes.data.get_mut(index).and_then(Option::take) {
            self.stats.drops.kernel_overflow += channel.kernel_drops();
            // Closing the descriptor would take it out of the poller, too.
            let _ = self.watching.remove(channel.socket.as_fd());
        }
        self.data.forget(Place::Data(index));
    }

    /// Watches a socket for room to send, or no longer.
    pub(super) fn watch_write(&mut self, place: Place, on: bool) {
        let Some(channel) = self.lanes.channel(place) else {
            return;
        };
        if channel.wants_write == on {
            return;
        }
        channel.wants_write = on;
        let (fd, interest) = (channel.socket.as_fd(), channel.interest());
        if self.watching.modify(fd, place.number(), interest).is_err() {
            channel.wants_write = !on;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::Config;
    use crate::{RecvOutcome, Transport};
    use dacapo_base::Time;
    use dacapo_packet::Pool;
    use dacapo_sys::poll::Poller;
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn server() -> Udp {
        Udp::serve(&[SocketAddr::new(HERE, 0)], &Config::default()).unwrap()
    }

    fn turn(udp: &mut Udp) -> RecvOutcome {
        udp.recv(Time::ZERO, &mut Pool::new(0), &mut Vec::new())
    }

    /// True when the transport's descriptor is readable now.
    fn is_readable(udp: &Udp) -> bool {
        let mut poller = Poller::new().unwrap();
        poller.add(udp.fd().unwrap(), 0, Interest::Read).unwrap();
        let mut events = Vec::new();
        poller.wait(Some(Duration::ZERO), &mut events).unwrap();
        !events.is_empty()
    }

    // Over loopback a send never blocks, so what a blocked send asks for is asked for here.
    #[test]
    fn a_lane_that_waits_for_room_says_once_that_there_is_some() {
        let mut udp = server();
        let remote = SocketAddr::new(HERE, 9_999);
        udp.open_lane(remote).unwrap();
        for place in [Place::Control(0), udp.lanes.data_to(remote).unwrap()] {
            assert!(!is_readable(&udp));
            assert!(!turn(&mut udp).writable);
            udp.watch_write(place, true);
            udp.watch_write(place, true);
            assert!(is_readable(&udp));
            assert!(turn(&mut udp).writable);
            assert!(!is_readable(&udp));
            assert!(!turn(&mut udp).writable);
        }
    }

    #[test]
    fn every_place_has_a_token_of_its_own() {
        for place in [Place::Control(0), Place::Control(15), Place::Data(0), Place::Data(255)] {
            assert_eq!(Place::of_token(place.number().into()), place);
        }
    }

    #[test]
    fn the_slot_of_a_closed_lane_is_used_again() {
        let mut udp = server();
        for port in 10_000..11_000 {
            let remote = SocketAddr::new(HERE, port);
            udp.open_lane(remote).unwrap();
            udp.close_lane(remote);
        }
        assert_eq!(udp.lanes.data.len(), 1);
        assert!(udp.lanes.by_remote.is_empty());
    }
}

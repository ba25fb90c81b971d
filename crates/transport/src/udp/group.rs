//! Groups: a socket for each membership, and one for each group that is sent to.
//!
//! ```text
//!   join(group, source)   a socket at group:port; from the source? ------------> data lane, up
//!   open_data(group)      a socket at the control port, connected to the group <--- data lane
//! ```
//!
//! A socket of its own for each membership gives each its own receive buffer. It is not connected
//! to its source: on interfaces without link addresses, such as tunnels, Linux gives a datagram for
//! a connected socket to the first one only, and the other members on the host would get nothing.
//!
//! The interface is the one by which the source of a membership is reached, and for sending the one
//! that has the address of the control socket, unless the configuration names another.
//!
//! Invariants: memberships and data lanes together are at most [`crate::DATA_LANES_MAX`]; a
//! membership that was left hands up nothing more.

use super::Udp;
use super::channel::Channel;
use super::lanes::Place;
use crate::{JoinError, Membership};
use dacapo_io::address::scoped;
use dacapo_io::connected;
use dacapo_lift::is_source_specific;
use dacapo_sys::poll::Interest;
use dacapo_sys::udp::{Delivery, Join, Socket};
use dacapo_sys::{interface, udp};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

impl Udp {
    pub(super) fn join_group(&mut self, wanted: &Membership) -> Result<(), JoinError> {
        let Membership { group, source, .. } = *wanted;
        if !group.ip().is_multicast() {
            return Err(JoinError::NotGroup { group });
        }
        if group.is_ipv4() != source.is_ipv4() {
            return Err(JoinError::NoWay { group, source });
        }
        if self.lanes.membership(wanted).is_some() {
            return Ok(());
        }
        let mut interface = 0;
        self.check_room()
            .and_then(|()| {
                interface = self.interface_towards(source)?;
                self.member_socket(wanted, interface)
            })
            .and_then(|socket| {
                let (index, local) = (self.lanes.free_slot(), socket.local_addr()?);
                let place = Place::Data(index).number();
                self.watching.add(socket.as_fd(), place, Interest::Read)?;
                let channel = Channel::of_member(socket, local, source);
                self.lanes.enter(*wanted, index, channel);
                Ok(())
            })
            .map_err(|error| JoinError::of(wanted, interface, error))
    }

    pub(super) fn leave_group(&mut self, membership: &Membership) {
        if let Some(index) = self.lanes.leave(membership) {
            self.close_slot(index);
        }
    }

    /// A socket that gets what is sent to the group, where it can be helped from the source only.
    fn member_socket(&self, wanted: &Membership, interface: u32) -> io::Result<Socket> {
        let config = udp::Config { reuse: true, ..self.config.socket(false) };
        let socket = Socket::bind(scoped(wanted.group, interface), &config)?;
        let is_specific = wanted.source_specific || is_source_specific(wanted.group.ip());
        let source = is_specific.then_some(wanted.source.ip());
        socket.join(&Join { group: wanted.group.ip(), source, interface })?;
        Ok(socket)
    }

    /// The number of the interface by which an address is reached, as far as addresses tell.
    fn interface_towards(&self, remote: SocketAddr) -> io::Result<u32> {
        if let Some(interface) = self.config.groups.interface {
            return Ok(interface);
        }
        let local = connected(remote, &self.config.socket(false))?.local_addr()?;
        Ok(interface::index_of(local.ip())?.unwrap_or(0))
    }

    /// Makes a socket of this transport's send to groups as the configuration says.
    pub(super) fn prepare_delivery(&self, socket: &Socket, local: IpAddr) -> io::Result<u32> {
        let groups = self.config.groups;
        let interface = match groups.interface {
            Some(interface) => interface,
            None if local.is_unspecified() => 0,
            None => interface::index_of(local)?.unwrap_or(0),
        };
        socket.set_delivery(&Delivery { interface, hops: groups.hops, loops: groups.loops })?;
        Ok(interface)
    }
}

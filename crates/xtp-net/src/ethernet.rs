//! [`Ethernet`]: XTP in frames of its own type, on one interface.
//!
//! ```text
//!   | to 6 | from 6 | 81 7D | XTP packet | padding up to 46 bytes |
//! ```
//!
//! Peers are known by the form of `eui64.rs`. A short packet comes with the padding that Ethernet
//! asks for; `dlen` of the packet says where it ends. Frames come in by a ring that is shared with
//! the kernel, where it gives one, and are read where they lie; else by a call for each.
//!
//! Invariants: only frames to this card or to groups are given; what the kernel has dropped, as it
//! had no room, is counted; needs CAP_NET_RAW.
//!
//! Source: the list of Ethertypes of the IANA's page of IEEE 802 numbers (817D, XTP).

use crate::capture::Carriage;
use crate::eui64::MacAddr;
use crate::fault::{AddressError, BindError, Fault, JoinError};
use crate::network::{Arrival, Connectionless, Group, RecvError, SendError};
use crate::numbers::ETHERTYPE;
use dacapo_base::Time;
use dacapo_sys::packet::{self, Inlet};
use dacapo_sys::poll::{Interest, Registry};
use dacapo_sys::{interface, udp};
use dacapo_xtp::wire::stated_len;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// The most frames for others that one call passes over.
const PASSED_OVER_MAX: usize = 64;
const GROUPS_MAX: usize = 16;
/// A ring says that frames were dropped; without one that is asked once in so many frames.
const ASK_EVERY: u32 = 1_024;

/// XTP over Ethernet.
#[derive(Debug)]
pub struct Ethernet {
    socket: packet::Socket,
    inlet: Inlet,
    /// Frames that came since it was asked how many were dropped.
    unasked: u32,
    registry: Option<Registry>,
    interface: u32,
    local: SocketAddr,
    packet_len_max: usize,
    group_count: usize,
}

impl Ethernet {
    /// XTP at the interface of this name; packets are as long as it takes, or as asked.
    ///
    /// # Errors
    /// [`BindError`]: no such interface, not Ethernet, a right lacks.
    pub fn open(name: &str, packet_len_max: Option<usize>) -> Result<Self, BindError> {
        Self::open_by(name, packet_len_max, |interface, most| {
            packet::Socket::open_either(interface, ETHERTYPE, most)
        })
    }

    /// The same without a ring, as where the kernel gives none; to be compared with.
    ///
    /// # Errors
    /// As [`Ethernet::open`].
    pub fn open_by_calls(name: &str, packet_len_max: Option<usize>) -> Result<Self, BindError> {
        Self::open_by(name, packet_len_max, |interface, _| {
            let unasked = io::Error::other("none was asked for");
            Ok((packet::Socket::open(interface, ETHERTYPE)?, Inlet::Calls(unasked)))
        })
    }

    fn open_by(
        name: &str,
        packet_len_max: Option<usize>,
        open: impl FnOnce(u32, usize) -> io::Result<(packet::Socket, Inlet)>,
    ) -> Result<Self, BindError> {
        let unknown = |_| BindError::NoInterface(name.to_owned());
        let interface = interface::index(name).map_err(unknown)?;
        let address = interface::ethernet_address(name).map_err(unknown)?;
        let address = address.ok_or_else(|| BindError::NotEthernet(name.to_owned()))?;
        let most = interface::mtu(name).map_err(unknown)?;
        let packet_len_max = match packet_len_max {
            Some(len) if !(128..=most).contains(&len) => {
                return Err(BindError::PacketLen { len, most });
            }
            asked => asked.unwrap_or(most),
        };
        let local = MacAddr(address).at(interface);
        let (socket, inlet) = open(interface, most)
            .map_err(|error| BindError::of(error, Some("XTP over Ethernet"), local))?;
        Ok(Self {
            socket,
            inlet,
            unasked: 0,
            registry: None,
            interface,
            local,
            packet_len_max,
            group_count: 0,
        })
    }

    /// How frames come in, and why not otherwise.
    #[must_use]
    pub const fn inlet(&self) -> &Inlet {
        &self.inlet
    }

    /// The address of the card.
    #[must_use]
    pub fn mac(&self) -> Option<MacAddr> {
        MacAddr::of(&self.local)
    }

    /// The address of a peer at this interface.
    #[must_use]
    pub fn peer(&self, mac: MacAddr) -> SocketAddr {
        mac.at(self.interface)
    }
}

/// The bytes of the packet at the front of a frame's payload: all but the padding.
fn without_padding(payload: &[u8]) -> usize {
    // One that says that it is longer is the engine's to refuse.
    stated_len(payload).map_or(payload.len(), |len| len.min(payload.len()))
}

impl Connectionless for Ethernet {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn packet_len_max(&self) -> usize {
        self.packet_len_max
    }

    fn carriage(&self) -> Carriage {
        Carriage::Ethernet
    }

    fn address(&self, peer: SocketAddr) -> Result<SocketAddr, AddressError> {
        MacAddr::of(&peer).map(|mac| self.peer(mac)).ok_or(AddressError::NotEthernet(peer))
    }

    fn watch(&mut self, registry: Registry) -> io::Result<()> {
        registry.add(self.socket.as_fd(), 0, Interest::Read)?;
        self.registry = Some(registry);
        Ok(())
    }

    fn watch_capacity(&mut self, is_wanted: bool) -> io::Result<()> {
        let interest = if is_wanted { Interest::ReadWrite } else { Interest::Read };
        let registry = self.registry.as_ref();
        registry.map_or(Ok(()), |registry| registry.modify(self.socket.as_fd(), 0, interest))
    }

    fn send(
        &mut self,
        _now: Time,
        to: SocketAddr,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, SendError> {
        let Some(MacAddr(to)) = MacAddr::of(&to) else {
            return Err(SendError::Fault(Fault::Unreachable));
        };
        self.socket.send_train(to, train, segment).map_err(|error| send_error(&error))
    }

    fn recv<'a>(&'a mut self, _now: Time, into: &'a mut [u8]) -> Result<Arrival<'a>, RecvError> {
        let fault = |fault| RecvError::Fault { to: None, fault };
        for _ in 0..PASSED_OVER_MAX {
            let recv = self.socket.recv(into).map_err(|error| match error {
                udp::RecvError::WouldBlock => RecvError::WouldBlock,
                udp::RecvError::Other(error) => fault(Fault::of(&error)),
                _ => fault(Fault::Unreachable),
            })?;
            self.unasked = self.unasked.saturating_add(1);
            if !recv.is_for_us {
                continue;
            }
            if recv.truncated {
                return Err(fault(Fault::Truncated));
            }
            let payload = self.socket.payload(&recv, into);
            let train = payload.get(..without_padding(payload)).unwrap_or_default();
            let from = self.peer(MacAddr(recv.from));
            return Ok(Arrival { from, train, segment: train.len(), gap: 0 });
        }
        Err(RecvError::WouldBlock)
    }

    fn join(&mut self, group: Group) -> Result<(), JoinError> {
        let mac = MacAddr::of(&group.address).filter(|mac| mac.is_group());
        let mac = mac.ok_or(JoinError::NotGroup { group: group.address, local: self.local })?;
        if self.group_count >= GROUPS_MAX {
            return Err(JoinError::Full { count: GROUPS_MAX });
        }
        self.socket.join(mac.0).map_err(JoinError::System)?;
        self.group_count += 1;
        Ok(())
    }

    fn take_missed(&mut self) -> u64 {
        let is_due = match self.inlet {
            Inlet::Calls(_) => self.unasked >= ASK_EVERY,
            _ => self.socket.take_has_lost(),
        };
        if !is_due {
            return 0;
        }
        self.unasked = 0;
        self.socket.take_drops().map_or(0, u64::from)
    }
}

fn send_error(error: &udp::SendError) -> SendError {
    match error {
        udp::SendError::WouldBlock => SendError::WouldBlock,
        udp::SendError::NoBuffers => SendError::Busy,
        udp::SendError::MessageTooLarge => SendError::Fault(Fault::TooLong { mtu: None }),
        udp::SendError::Other(error) => SendError::Fault(Fault::of(error)),
        _ => SendError::Fault(Fault::Unreachable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_cut_where_the_packet_says_that_it_ends() {
        let mut frame = [0; 60];
        frame[15] = 5;
        assert_eq!(without_padding(&frame), 37);
        frame[12] = 0xFF;
        assert_eq!(without_padding(&frame), 60, "longer than there is: not ours to judge");
        assert_eq!(without_padding(&frame[..15]), 15);
        assert_eq!(without_padding(&[]), 0);
    }

    #[test]
    fn interfaces_that_there_are_not_or_that_are_no_ethernet_are_named() {
        let unknown = Ethernet::open("no-such-one", None).unwrap_err();
        assert!(unknown.to_string().contains("\"no-such-one\""), "{unknown}");
        let loopback = Ethernet::open("lo", None).unwrap_err();
        assert!(matches!(loopback, BindError::NotEthernet(_)), "{loopback}");
    }
}

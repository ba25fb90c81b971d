//! [`Udp`] and [`Ip`]: XTP over UDP at a port of its own, and as protocol 36 directly over IP.
//!
//! ```text
//!   Internet<L>   lanes[0]   bound to the local address: sends everything, receives
//!                 lanes[1…]  bound to a group each, where the first is bound to one address only
//!   L: udp::Socket, trains by GSO and GRO     raw::Socket, 64 a call to send, one to receive
//! ```
//!
//! Invariants: at most [`GROUPS_MAX`] groups; an error that the system has kept of an earlier
//! packet costs the next one nothing: it is sent again.
//!
//! Sources: RFC 768; the registry of protocol numbers of the IANA (36, XTP). No port of UDP is
//! registered for XTP; 4040 is decided here.

use crate::capture::Carriage;
use crate::fault::{AddressError, BindError, Fault, JoinError};
use crate::lane::{Came, Lane};
use crate::network::{Arrival, Connectionless, Group, RecvError, SendError};
use dacapo_base::Time;
use dacapo_io::address::{one_form, scoped};
use dacapo_io::send_past;
use dacapo_sys::poll::{Event, Interest, Registry};
use dacapo_sys::udp::{self, Delivery, Join};
use dacapo_sys::{icmp, raw};
use std::io;
use std::net::SocketAddr;

/// The port of UDP where nothing else is said (decided here; none is registered).
pub const UDP_PORT: u16 = 4_040;
/// The most groups that are joined at a time.
pub const GROUPS_MAX: usize = 16;
/// The least that `packet_len_max` may be: XTP's longest header and some data.
const PACKET_LEN_MIN: usize = 128;
/// What IPv4 takes at most, and what every link of today takes, bytes.
const IP_LEN_MAX: usize = 65_535;
const LINK_LEN: usize = 1_500;

/// XTP over UDP.
pub type Udp = Internet<udp::Socket>;
/// XTP as a protocol of IP.
pub type Ip = Internet<raw::Socket>;

/// Where a network is, and how it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InternetConfig {
    /// The address of this end; with UDP, port 0 takes a free one, and without it none counts.
    pub local: SocketAddr,
    /// The longest packet, bytes; `None`: what fits links of 1,500 bytes.
    pub packet_len_max: Option<usize>,
    /// How packets to groups leave.
    pub delivery: Delivery,
}

impl InternetConfig {
    /// This end, with packets for usual links, which go to groups on the link by the route.
    #[must_use]
    pub const fn new(local: SocketAddr) -> Self {
        let delivery = Delivery { interface: 0, hops: 1, loops: true };
        Self { local, packet_len_max: None, delivery }
    }
}

/// A network of the internet.
#[derive(Debug)]
pub struct Internet<L> {
    lanes: Vec<L>,
    registry: Option<Registry>,
    local: SocketAddr,
    packet_len_max: usize,
    /// The lane that is looked at first the next time.
    turn: usize,
    groups: Vec<Group>,
    /// The system may have kept messages of ICMP.
    has_reports: bool,
}

impl<L: Lane> Internet<L> {
    /// A network at this end.
    ///
    /// # Errors
    /// [`BindError`]: the port is taken, the address is not here, a right lacks.
    pub fn bind(config: &InternetConfig) -> Result<Self, BindError> {
        let failed = |error| BindError::of(error, L::NEEDS_RAW, config.local);
        let lane = L::bind(config.local, false).map_err(failed)?;
        let v6 = config.local.is_ipv6();
        let packet_len_max = packet_len::<L>(v6, config.packet_len_max)?;
        lane.set_delivery(&config.delivery).map_err(failed)?;
        // Without it nobody is told why nobody answers.
        let _ = icmp::enable(lane.as_fd(), v6);
        let local = lane.local().map_err(failed)?;
        Ok(Self {
            lanes: vec![lane],
            registry: None,
            local,
            packet_len_max,
            turn: 0,
            groups: Vec::new(),
            has_reports: false,
        })
    }

    /// The next message of ICMP that the system has kept.
    fn report(&mut self) -> Option<RecvError> {
        if !self.has_reports {
            return None;
        }
        let reported = self.lanes.first().and_then(|lane| icmp::next(lane.as_fd()));
        self.has_reports = reported.is_some();
        reported.map(|it| RecvError::Fault { to: Some(it.to), fault: it.why.into() })
    }

    fn add_lane(&mut self, group: SocketAddr) -> io::Result<&L> {
        let lane = L::bind(group, true)?;
        let place = u16::try_from(self.lanes.len()).unwrap_or(u16::MAX);
        if let Some(registry) = &self.registry {
            registry.add(lane.as_fd(), place, Interest::Read)?;
        }
        self.lanes.push(lane);
        self.lanes.last().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn join_at_lane(&mut self, group: Group) -> io::Result<()> {
        let join = Join { group: group.address.ip(), source: None, interface: group.interface };
        if self.local.ip().is_unspecified() {
            return self.lanes.first().map_or(Ok(()), |lane| lane.join(&join));
        }
        let joined = self.add_lane(scoped(group.address, group.interface))?.join(&join);
        if joined.is_err() {
            // A socket that is closed is watched no more.
            self.lanes.pop();
        }
        joined
    }
}

/// The longest packet: what is asked, or what fits usual links.
fn packet_len<L: Lane>(v6: bool, asked: Option<usize>) -> Result<usize, BindError> {
    let headers = L::HEADER_LEN + if v6 { 40 } else { 20 };
    let most = IP_LEN_MAX - headers;
    match asked {
        // Links with a header of their own on the way are frequent over UDP.
        None if L::HAS_PORTS => Ok(LINK_LEN - 48),
        None => Ok(LINK_LEN - headers),
        Some(len) if (PACKET_LEN_MIN..=most).contains(&len) => Ok(len),
        Some(len) => Err(BindError::PacketLen { len, most }),
    }
}

impl<L: Lane> Connectionless for Internet<L> {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn packet_len_max(&self) -> usize {
        self.packet_len_max
    }

    fn carriage(&self) -> Carriage {
        if L::HAS_PORTS { Carriage::Udp } else { Carriage::Ip }
    }

    fn address(&self, peer: SocketAddr) -> Result<SocketAddr, AddressError> {
        if peer.is_ipv4() != self.local.is_ipv4() {
            return Err(AddressError::Family { peer, local: self.local });
        }
        let mut address = one_form(peer, peer);
        if !L::HAS_PORTS {
            address.set_port(0);
        } else if peer.port() == 0 {
            return Err(AddressError::NoPort(peer));
        }
        match address {
            SocketAddr::V6(it) if it.scope_id() == 0 && it.ip().is_unicast_link_local() => {
                Err(AddressError::NoInterface(peer))
            }
            _ => Ok(address),
        }
    }

    fn watch(&mut self, registry: Registry) -> io::Result<()> {
        for (place, lane) in (0..).zip(&self.lanes) {
            registry.add(lane.as_fd(), place, Interest::Read)?;
        }
        self.registry = Some(registry);
        Ok(())
    }

    fn watch_capacity(&mut self, is_wanted: bool) -> io::Result<()> {
        let interest = if is_wanted { Interest::ReadWrite } else { Interest::Read };
        match (&self.registry, self.lanes.first()) {
            (Some(registry), Some(lane)) => registry.modify(lane.as_fd(), 0, interest),
            _ => Ok(()),
        }
    }

    fn handle_event(&mut self, _place: u16, event: Event) {
        self.has_reports |= event.closed;
    }

    fn send(
        &mut self,
        _now: Time,
        to: SocketAddr,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, SendError> {
        let Some(lane) = self.lanes.first_mut() else { return Err(SendError::WouldBlock) };
        let (kept, sent) = send_past(|_| true, || lane.send(to, train, segment));
        self.has_reports |= kept.is_some();
        sent.map_err(|error| match error {
            udp::SendError::WouldBlock => SendError::WouldBlock,
            udp::SendError::NoBuffers => SendError::Busy,
            udp::SendError::MessageTooLarge => SendError::Fault(Fault::TooLong { mtu: None }),
            udp::SendError::Refused => SendError::Fault(Fault::Refused),
            udp::SendError::Unreachable => SendError::Fault(Fault::Unreachable),
            udp::SendError::Other(error) => SendError::Fault(Fault::of(&error)),
        })
    }

    fn recv<'a>(&'a mut self, _now: Time, into: &'a mut [u8]) -> Result<Arrival<'a>, RecvError> {
        if let Some(report) = self.report() {
            return Err(report);
        }
        for _ in 0..self.lanes.len() {
            let at = self.turn % self.lanes.len();
            let Some(lane) = self.lanes.get(at) else { break };
            let fault = match lane.recv(into) {
                Ok(came) if came.is_truncated => Fault::Truncated,
                Ok(Came { from, start, end, segment, .. }) => {
                    let train = into.get(start..end).unwrap_or_default();
                    let segment = segment.map_or(train.len(), usize::from);
                    return Ok(Arrival { from, train, segment, gap: 0 });
                }
                Err(udp::RecvError::WouldBlock) => {
                    self.turn = at + 1;
                    continue;
                }
                Err(udp::RecvError::Refused) => Fault::Refused,
                Err(udp::RecvError::Unreachable) => Fault::Unreachable,
                Err(udp::RecvError::TooLarge) => Fault::TooLong { mtu: None },
                Err(udp::RecvError::Other(error)) => Fault::of(&error),
            };
            // The queue of messages says of whom.
            self.has_reports = fault != Fault::Truncated;
            return Err(self.report().unwrap_or(RecvError::Fault { to: None, fault }));
        }
        Err(RecvError::WouldBlock)
    }

    fn join(&mut self, group: Group) -> Result<(), JoinError> {
        let (address, local) = (group.address, self.local);
        let is_family = address.is_ipv4() == local.is_ipv4();
        let is_port = !L::HAS_PORTS || address.port() == local.port();
        if !address.ip().is_multicast() || !is_family || !is_port {
            return Err(JoinError::NotGroup { group: address, local });
        }
        if self.groups.contains(&group) {
            return Ok(());
        }
        if self.groups.len() >= GROUPS_MAX {
            return Err(JoinError::Full { count: GROUPS_MAX });
        }
        self.join_at_lane(group).map_err(JoinError::System)?;
        self.groups.push(group);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::patience;
    use std::time::{Duration, Instant};

    fn udp(local: &str) -> Udp {
        Udp::bind(&InternetConfig::new(local.parse().unwrap())).unwrap()
    }

    #[test]
    fn an_address_has_one_form() {
        let four = udp("127.0.0.1:0");
        assert_eq!(four.address("192.0.2.1:7".parse().unwrap()).unwrap().port(), 7);
        let no_port = four.address("192.0.2.1:0".parse().unwrap()).unwrap_err();
        assert!(no_port.to_string().contains("needs a port, such as 4040"), "{no_port}");
        let family = four.address("[::1]:7".parse().unwrap()).unwrap_err();
        assert!(family.to_string().contains("IPv6"), "{family}");
    }

    #[test]
    fn the_port_is_taken_or_the_address_is_not_here() {
        let first = udp("127.0.0.1:0");
        let again = Udp::bind(&InternetConfig::new(first.local())).unwrap_err();
        assert!(matches!(again, BindError::InUse(at) if at == first.local()));
        assert!(again.to_string().contains("another port"), "{again}");
        let elsewhere = InternetConfig::new("203.0.113.7:0".parse().unwrap());
        let elsewhere = Udp::bind(&elsewhere).unwrap_err();
        assert!(matches!(elsewhere, BindError::NotHere(_)), "{elsewhere}");
    }

    #[test]
    fn packets_are_as_long_as_asked_or_fit_usual_links() {
        let len = |v6, asked| packet_len::<udp::Socket>(v6, asked);
        assert_eq!((len(false, None).unwrap(), len(true, None).unwrap()), (1_452, 1_452));
        assert_eq!(packet_len::<raw::Socket>(false, None).unwrap(), 1_480);
        assert_eq!(len(false, Some(65_507)).unwrap(), 65_507);
        for wrong in [0, 127, 65_508] {
            let error = len(false, Some(wrong)).unwrap_err();
            assert!(error.to_string().contains("128 to 65507"), "{error}");
        }
    }

    #[test]
    fn a_group_is_joined_once_it_is_one_and_up_to_a_bound() {
        let mut network = udp("127.0.0.1:0");
        let port = network.local().port();
        let group = |text: &str, port| Group {
            address: SocketAddr::new(text.parse().unwrap(), port),
            interface: 1,
        };
        for wrong in [group("192.0.2.1", port), group("ff02::1", port), group("239.1.1.1", 1)] {
            assert!(matches!(network.join(wrong), Err(JoinError::NotGroup { .. })), "{wrong:?}");
        }
        for at in 0..GROUPS_MAX {
            for _ in 0..2 {
                network.join(group(&format!("239.77.0.{at}"), port)).unwrap();
            }
        }
        assert!(matches!(network.join(group("239.77.1.1", port)), Err(JoinError::Full { .. })));
    }

    /// What comes next, which the system may bring a moment after it was sent.
    fn next(network: &mut Udp, buffer: &mut [u8]) -> Result<(SocketAddr, Vec<u8>), RecvError> {
        let come = patience::until(Instant::now, Duration::from_secs(60), || {
            let come = network.recv(Time::ZERO, buffer);
            if come == Err(RecvError::WouldBlock) {
                std::thread::sleep(Duration::from_millis(1));
                return None;
            }
            Some(come.map(|arrival| (arrival.from, arrival.train.to_vec())))
        });
        come.expect("nothing came")
    }

    #[test]
    fn what_an_earlier_packet_met_does_not_stop_the_next_and_is_told_of_the_right_peer() {
        let (mut sender, mut receiver) = (udp("127.0.0.1:0"), udp("127.0.0.1:0"));
        let gone = udp("127.0.0.1:0").local();
        assert_eq!(sender.send(Time::ZERO, gone, b"nobody", 6), Ok(6));
        let to = receiver.local();
        assert_eq!(sender.send(Time::ZERO, to, b"somebody", 8), Ok(8));
        let mut buffer = [0; 100];
        let arrival = next(&mut receiver, &mut buffer).unwrap();
        assert_eq!(arrival, (sender.local(), b"somebody".to_vec()));
        let told = next(&mut sender, &mut buffer);
        assert_eq!(told, Err(RecvError::Fault { to: Some(gone), fault: Fault::Refused }));
        assert_eq!(sender.recv(Time::ZERO, &mut buffer), Err(RecvError::WouldBlock));
    }
}

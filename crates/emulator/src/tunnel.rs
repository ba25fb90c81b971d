//! [`Tunnel`]: a bad network between two network namespaces, for everything that is IP.
//!
//! ```text
//!   namespace 1                                               namespace 2
//!   10.77.0.1/24  dacapo0 ── TUN ── forward ──> TUN ── dacapo0  10.77.0.2/24
//!                              └─────── back <──┘
//! ```
//!
//! Needs root, because namespaces and devices do. What is too long for a link vanishes without a
//! message to its sender.
//!
//! Here `corrupt` is real: the packet goes on with a wrong checksum and it is the receiving
//! kernel that drops it; with `corrupt-undetected` the checksums are right for the altered bytes.
//!
//! Invariants: what was made here (devices, and namespaces that did not exist) is gone with the
//! handle; the kernel sends no IPv6 of its own over the devices, so that what the links carry is
//! what programs send.

use crate::packet::IpPacket;
use crate::path::{Path, PathStats, Way};
use crate::runner::{Ends, Runner};
use dacapo_base::Time;
use dacapo_link::{ConfigError, Delivery, LinkConfig};
use dacapo_sys::interface::{self, Address};
use dacapo_sys::netns::{self, Namespace};
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::process;
use dacapo_sys::tun::{self, Tun};
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Reads of a device in a turn.
const READS_MAX: usize = 128;
/// The longest packet of IP.
const BUFFER_LEN: usize = 65_536;
/// What the kernel counts at the devices of a namespace.
const COUNTERS: &str = "/proc/thread-self/net/dev";
/// As much of it is read.
const COUNTERS_LEN_MAX: usize = 65_536;
/// The column of what was sent and dropped, after the eight of what was received.
const SENT_DROPPED: usize = 8 + 3;
/// How often drops are counted.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// Packets that may wait at a device for a turn.
const QUEUE_LEN: u16 = 10_000;
/// How often an address is tried that cannot be used yet, a millisecond apart.
const ADDRESS_TRIES_MAX: usize = 5_000;
/// The name of the devices: the first free one of its kind in each namespace.
const DEVICE: &str = "dacapo%d";

/// What a tunnel connects and what it does to packets.
#[derive(Clone, Debug)]
pub struct TunnelConfig {
    /// The names of the two namespaces; those that do not exist are made, and removed at the end.
    pub namespaces: [String; 2],
    /// The address of each device.
    pub addresses: [Address; 2],
    /// The longest packet that the devices take, bytes; longer ones are refused to their sender.
    pub device_mtu: u16,
    /// The link from the first to the second.
    pub forward: LinkConfig,
    /// The link from the second to the first.
    pub back: LinkConfig,
    /// What both links draw their chances from ([`crate::directions`]).
    pub seed: u64,
}

impl TunnelConfig {
    /// Perfect links between these namespaces, addresses 10.77.0.1/24 and 10.77.0.2/24.
    #[must_use]
    pub fn new(first: &str, second: &str) -> Self {
        let address = |last| Address { ip: Ipv4Addr::new(10, 77, 0, last).into(), prefix_len: 24 };
        Self {
            namespaces: [first.to_owned(), second.to_owned()],
            addresses: [address(1), address(2)],
            device_mtu: 1_500,
            forward: LinkConfig::default(),
            back: LinkConfig::default(),
            seed: 1,
        }
    }
}

/// Why there is no tunnel: what, where, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum TunnelError {
    /// A device cannot be made or set up.
    Device {
        /// The namespace.
        namespace: String,
        /// Why.
        error: io::Error,
    },
    /// A link cannot do what it is told.
    Link(ConfigError),
    /// A namespace cannot be opened or made.
    Namespace {
        /// Its name.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// The kernel has no TUN.
    NoTun,
    /// The process may not make namespaces and devices.
    NotRoot,
    /// Both ends would be in one namespace.
    SameNamespace {
        /// Its name.
        name: String,
    },
    /// No thread or descriptor is left.
    System(io::Error),
}

impl fmt::Display for TunnelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { namespace, error } => {
                write!(f, "the device in the network namespace {namespace}: {error}")
            }
            Self::Link(error) => error.fmt(f),
            Self::Namespace { name, error } => {
                write!(f, "the network namespace {name} ({}/{name}): {error}", netns::DIR)
            }
            Self::NoTun => write!(
                f,
                "there is no {}: load the kernel module (modprobe tun), or give the container the \
                 device; a relay (--listen, --to) needs neither",
                tun::PATH
            ),
            Self::NotRoot => f.write_str(
                "network namespaces and TUN devices need root (CAP_NET_ADMIN and CAP_SYS_ADMIN): \
                 use sudo; a relay (--listen, --to) needs no rights",
            ),
            Self::SameNamespace { name } => {
                write!(f, "both ends would be in the network namespace {name}: name two")
            }
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TunnelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Device { error, .. } | Self::Namespace { error, .. } | Self::System(error) => {
                Some(error)
            }
            Self::Link(error) => Some(error),
            Self::NoTun | Self::NotRoot | Self::SameNamespace { .. } => None,
        }
    }
}

/// Where tunnels come from.
#[derive(Debug)]
pub struct Tunnel;

impl Tunnel {
    /// Connects two namespaces. The times of partitions count from now on.
    ///
    /// # Errors
    /// [`TunnelError`]; nothing that was made until then is left.
    pub fn spawn(config: TunnelConfig) -> Result<TunnelHandle, TunnelError> {
        let TunnelConfig { namespaces: [first, second], addresses, device_mtu, .. } = config;
        if first == second {
            return Err(TunnelError::SameNamespace { name: first });
        }
        let path = Path::new(config.forward, config.back, config.seed);
        let path = path.map_err(TunnelError::Link)?;
        check_rights()?;
        let namespaces = [open_or_make(&first)?, open_or_make(&second)?];
        let [near, far] = &namespaces;
        let tuns =
            [device(near, addresses[0], device_mtu)?, device(far, addresses[1], device_mtu)?];
        let ends = Devices::new(tuns).map_err(TunnelError::System)?;
        let runner = Runner::spawn("link tunnel", path, ends).map_err(TunnelError::System)?;
        Ok(TunnelHandle { runner, namespaces, addresses })
    }
}

fn check_rights() -> Result<(), TunnelError> {
    if process::uid() != 0 {
        return Err(TunnelError::NotRoot);
    }
    if std::fs::metadata(tun::PATH).is_err() {
        return Err(TunnelError::NoTun);
    }
    Ok(())
}

fn open_or_make(name: &str) -> Result<Namespace, TunnelError> {
    let opened = match Namespace::open(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Namespace::create(name),
        opened => opened,
    };
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => TunnelError::NotRoot,
        _ => TunnelError::Namespace { name: name.to_owned(), error },
    })
}

fn device(namespace: &Namespace, address: Address, mtu: u16) -> Result<Device, TunnelError> {
    let made = namespace.run(|| {
        let tun = Tun::create(DEVICE)?;
        interface::set_queue_len(tun.name(), QUEUE_LEN)?;
        interface::set_no_link_local(tun.name())?;
        interface::set_mtu(tun.name(), mtu)?;
        interface::set_address(tun.name(), address)?;
        interface::up(tun.name())?;
        await_address(address.ip)?;
        Ok(Device { tun, counters: File::open(COUNTERS)? })
    });
    made.flatten().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => TunnelError::NotRoot,
        _ => TunnelError::Device { namespace: namespace.name().to_owned(), error },
    })
}

/// Waits until an address can be used: the kernel finishes a new one of IPv6 in a thread of its
/// own.
fn await_address(ip: IpAddr) -> io::Result<()> {
    let is_unfinished = |it: &io::Result<UdpSocket>| {
        it.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
    };
    let mut bound = UdpSocket::bind((ip, 0));
    for _ in 0..ADDRESS_TRIES_MAX {
        if !is_unfinished(&bound) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        bound = UdpSocket::bind((ip, 0));
    }
    bound.map(drop)
}

/// A tunnel that runs; it ends with this value.
pub struct TunnelHandle {
    // Before the namespaces: the devices go first.
    runner: Runner<IpPacket>,
    namespaces: [Namespace; 2],
    addresses: [Address; 2],
}

impl TunnelHandle {
    /// The two namespaces, in which programs can be started ([`Namespace::run`]).
    #[must_use]
    pub const fn namespaces(&self) -> &[Namespace; 2] {
        &self.namespaces
    }

    /// The addresses of the devices.
    #[must_use]
    pub const fn addresses(&self) -> [Address; 2] {
        self.addresses
    }

    /// Changes a link from now on; what is on the way keeps its fate.
    ///
    /// # Errors
    /// When the configuration is not valid; the link then goes on as before.
    pub fn set_link(&self, way: Way, config: LinkConfig) -> Result<(), ConfigError> {
        self.runner.set_link(way, config)
    }

    /// Cuts a link (`true`) or heals it; what is on the way still arrives.
    pub fn partition(&self, way: Way, is_cut: bool) {
        self.runner.partition(way, is_cut);
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> PathStats {
        self.runner.stats()
    }

    /// Ends it; what is on the way stays there and is counted as in flight.
    #[must_use]
    pub fn stop(mut self) -> PathStats {
        self.runner.stop()
    }
}

impl fmt::Debug for TunnelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelHandle").field("namespaces", &self.namespaces).finish_non_exhaustive()
    }
}

/// A device, and the counters of its namespace.
struct Device {
    tun: Tun,
    /// Shows the namespace in which it was opened, whoever reads it.
    counters: File,
}

impl Device {
    /// What waited at the device and was dropped, because it was not read in time.
    fn dropped(&self) -> u64 {
        let mut text = vec![0; COUNTERS_LEN_MAX];
        let len = self.counters.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(text.get(..len).unwrap_or_default());
        dropped_of(&text, self.tun.name())
    }
}

/// The packets that a device did not take, in the text of [`COUNTERS`].
fn dropped_of(text: &str, name: &str) -> u64 {
    let mut rows = text.lines().filter_map(|line| line.split_once(':'));
    let row = rows.find(|(device, _)| device.trim() == name);
    let column = row.and_then(|(_, row)| row.split_whitespace().nth(SENT_DROPPED));
    column.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The devices of a tunnel; the token of each is its place.
struct Devices {
    poller: Poller,
    ends: [Device; 2],
    buffer: Vec<u8>,
    /// When the drops are counted next.
    count: Option<Time>,
}

impl Devices {
    fn new(ends: [Device; 2]) -> io::Result<Self> {
        let poller = Poller::new()?;
        for (token, end) in (0..).zip(&ends) {
            poller.add(end.tun.as_fd(), token, Interest::Read)?;
        }
        Ok(Self { poller, ends, buffer: vec![0; BUFFER_LEN], count: None })
    }
}

impl Ends<IpPacket> for Devices {
    fn poller(&mut self) -> &mut Poller {
        &mut self.poller
    }

    fn handle_ready(&mut self, now: Time, token: u64, path: &mut Path<IpPacket>) -> io::Result<()> {
        let [near, far] = &self.ends;
        let (end, way) = if token == 0 { (near, Way::Forward) } else { (far, Way::Back) };
        self.count.get_or_insert(now + COUNT_EVERY);
        for _ in 0..READS_MAX {
            let Some(len) = end.tun.recv(&mut self.buffer)? else { break };
            let packet = self.buffer.get(..len).unwrap_or_default();
            path.handle_send(now, way, IpPacket(packet.to_vec()));
        }
        Ok(())
    }

    fn send(&mut self, _: Time, way: Way, delivery: Delivery<IpPacket>, counts: &mut PathStats) {
        let [near, far] = &self.ends;
        let end = if way == Way::Forward { far } else { near };
        counts.unsent += u64::from(end.tun.send(&delivery.item.0).is_err());
    }

    fn flush(&mut self, _: &mut PathStats) {}

    fn next_deadline(&self) -> Option<Time> {
        self.count
    }

    fn handle_timeout(&mut self, _: Time, counts: &mut PathStats) {
        // Again when something has come: an idle tunnel has no timer.
        self.count = None;
        self.close(counts);
    }

    fn close(&mut self, counts: &mut PathStats) {
        counts.kernel_drops = self.ends.iter().map(Device::dropped).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_dropped_is_found_in_the_text_of_the_kernel() {
        let text = "Inter-|   Receive                            |  Transmit\n \
                    face |bytes packets errs drop fifo frame compressed multicast|bytes …\n\
                    lo:    1  2 3 4 5 6 7 8   9 10 11 12 13 14 15 16\n\
                    dacapo0: 1 2 3 4 5 6 7 8  9 10 11 77 13 14 15 16\n";
        assert_eq!((dropped_of(text, "dacapo0"), dropped_of(text, "lo")), (77, 12));
        assert_eq!((dropped_of(text, "dacapo"), dropped_of("", "lo")), (0, 0));
    }
}

//! [`Place`]: where the ends are; [`Network`]: what carries XTP there.
//!
//! ```text
//!   Loopback   127.0.0.1 near, 127.0.0.2 and .3 far      UDP; needs no rights
//!   Cable      10.82.0.1 near, 10.82.0.2 and .3 far      UDP, IP protocol 36, Ethernet
//! ```

use super::cable::{Cable, INTERFACE};
use dacapo::xtp_net::Config;
use dacapo::xtp_net::{Connectionless, Ethernet, Group, Host, InternetConfig, Ip, Udp};
use dacapo_sys::interface;
use dacapo_sys::udp::Delivery;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Bytes that an association keeps of each direction.
const BUFFER_LEN: usize = 256 << 10;

/// Where the ends are.
#[derive(Clone, Debug)]
pub enum Place {
    /// This host's own network.
    Loopback,
    /// Two namespaces.
    Cable(Arc<Cable>),
}

impl Place {
    /// A new cable; or why there is none.
    pub fn cable() -> Result<Self, String> {
        Ok(Self::Cable(Arc::new(Cable::new()?)))
    }

    /// In words.
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Cable(_) => "a cable between two network namespaces",
        }
    }

    /// Does something where an end is: 0 is near.
    pub fn at<T: Send>(&self, end: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
        match self {
            Self::Loopback => Ok(work()),
            Self::Cable(cable) => cable.at(end, work),
        }
    }

    /// The address of an end.
    pub fn ip(&self, end: usize) -> IpAddr {
        let last = u8::try_from(end).unwrap_or(u8::MAX - 1).saturating_add(1);
        match self {
            Self::Loopback => Ipv4Addr::new(127, 0, 0, last).into(),
            Self::Cable(_) => Ipv4Addr::new(10, 82, 0, last).into(),
        }
    }

    /// The name of the interface of every end.
    pub const fn interface(&self) -> &'static str {
        match self {
            Self::Loopback => "lo",
            Self::Cable(_) => INTERFACE,
        }
    }
}

/// Which way a group is heard.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// From the near end to the far ones.
    There,
    /// From a far end to the near one.
    Back,
}

/// What carries XTP's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// UDP.
    Udp,
    /// IP protocol 36; only over a cable.
    Ip,
    /// Frames of Ethernet; only over a cable.
    Ethernet,
}

impl Carrier {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Ip => "ip",
            Self::Ethernet => "ethernet",
        }
    }
}

/// A network at a place.
#[derive(Clone, Debug)]
pub struct Network {
    /// Where.
    pub place: Place,
    /// Which.
    pub over: Carrier,
    /// XTP's checksum covers headers only.
    pub without_check: bool,
}

impl Network {
    /// The group that is heard one way, as this network says it; over UDP at the port of those who
    /// hear it, elsewhere that is 0.
    pub fn group(&self, way: Way, port: u16) -> SocketAddr {
        let last = match way {
            Way::There => 1,
            Way::Back => 2,
        };
        match self.over {
            Carrier::Udp => ([239, 82, 1, last], port).into(),
            Carrier::Ip => ([239, 82, 1, last], 0).into(),
            Carrier::Ethernet => ([0xFF02, 0, 0, 0, 0, 0, 0x82, u16::from(last)], 0).into(),
        }
    }

    /// A host at an end, over UDP at this port or at any (0), which hears a group where one is
    /// named.
    pub fn host(&self, end: usize, port: u16, hears: Option<Way>) -> Result<Host, String> {
        let local = SocketAddr::new(self.place.ip(end), port);
        let made = self.place.at(end, || {
            let failed = |error: &dyn std::fmt::Display| error.to_string();
            let name = self.place.interface();
            let interface = interface::index(name).map_err(|error| format!("{name}: {error}"))?;
            let network = self.bind(local, interface).map_err(|error| failed(&error))?;
            let config = Config { buffer_len: BUFFER_LEN, ..Config::default() };
            let mut host = Host::new(network, config).map_err(|error| failed(&error))?;
            if let Some(way) = hears {
                let address = self.group(way, host.local().port());
                let group = Group { address, interface };
                host.join(group).map_err(|error| failed(&error))?;
            }
            Ok(host)
        });
        made.flatten()
    }

    fn bind(
        &self,
        local: SocketAddr,
        interface: u32,
    ) -> Result<Box<dyn Connectionless>, dacapo::xtp_net::BindError> {
        let config = InternetConfig::new(local);
        let delivery = Delivery { interface, ..config.delivery };
        let config = InternetConfig { delivery, ..config };
        Ok(match self.over {
            Carrier::Udp => Box::new(Udp::bind(&config)?),
            Carrier::Ip => Box::new(Ip::bind(&config)?),
            Carrier::Ethernet => Box::new(Ethernet::open(self.place.interface(), None)?),
        })
    }
}

//! [`Lane`]: a socket that carries packets of XTP: of UDP, or of a protocol of IP.
//!
//! ```text
//!   Internet<L> -> L: udp::Socket   send: a train by GSO      recv: a train by GRO
//!                     raw::Socket   send: in one call         recv: a packet, behind its IP header
//! ```
//!
//! Invariant: what `send` says was taken ends at the edge of a packet.

use crate::numbers::PROTOCOL;
use dacapo_base::Ecn;
use dacapo_sys::raw;
use dacapo_sys::udp::{self, Delivery, Join};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// What came out of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    /// Who sent it.
    pub from: SocketAddr,
    /// Where in the buffer it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The length of each packet of a train.
    pub segment: Option<u16>,
    /// It was longer than the buffer.
    pub is_truncated: bool,
}

/// A socket of a kind; not implemented elsewhere.
pub trait Lane: AsFd + Send + Sized {
    /// What it is called where CAP_NET_RAW lacks; `None` where it needs none.
    const NEEDS_RAW: Option<&'static str>;
    /// Bytes before the payload, without those of IP.
    const HEADER_LEN: usize;
    /// Whether its addresses have ports.
    const HAS_PORTS: bool;
    /// Bound; `is_group` when others of this host may be there too.
    ///
    /// # Errors
    /// As the system says.
    fn bind(local: SocketAddr, is_group: bool) -> io::Result<Self>;
    /// Its address.
    ///
    /// # Errors
    /// As the system says.
    fn local(&self) -> io::Result<SocketAddr>;
    /// Bytes of the train that were taken.
    ///
    /// # Errors
    /// As the system says.
    fn send(
        &mut self,
        to: SocketAddr,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, udp::SendError>;
    /// What is next.
    ///
    /// # Errors
    /// As the system says.
    fn recv(&self, into: &mut [u8]) -> Result<Came, udp::RecvError>;
    /// Joins a group.
    ///
    /// # Errors
    /// As the system says.
    fn join(&self, join: &Join) -> io::Result<()>;
    /// How packets leave to groups.
    ///
    /// # Errors
    /// As the system says.
    fn set_delivery(&self, delivery: &Delivery) -> io::Result<()>;
}

impl Lane for udp::Socket {
    const NEEDS_RAW: Option<&'static str> = None;
    const HEADER_LEN: usize = 8;
    const HAS_PORTS: bool = true;

    fn bind(local: SocketAddr, is_group: bool) -> io::Result<Self> {
        Self::bind(local, &udp::Config { marks: false, reuse: is_group, ..Default::default() })
    }

    fn local(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    fn send(
        &mut self,
        to: SocketAddr,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, udp::SendError> {
        let segment = u16::try_from(segment).ok();
        Self::send(self, Some(to), train, segment, Ecn::NotEct).map(|sent| sent.bytes)
    }

    fn recv(&self, into: &mut [u8]) -> Result<Came, udp::RecvError> {
        let recv = Self::recv(self, into)?;
        Ok(Came {
            from: recv.from,
            start: 0,
            end: recv.len,
            segment: recv.segment_size,
            is_truncated: recv.truncated,
        })
    }

    fn join(&self, join: &Join) -> io::Result<()> {
        Self::join(self, join)
    }

    fn set_delivery(&self, delivery: &Delivery) -> io::Result<()> {
        Self::set_delivery(self, delivery)
    }
}

impl Lane for raw::Socket {
    const NEEDS_RAW: Option<&'static str> = Some("IP protocol 36");
    const HEADER_LEN: usize = 0;
    const HAS_PORTS: bool = false;

    fn bind(local: SocketAddr, _is_group: bool) -> io::Result<Self> {
        Self::bind(local, PROTOCOL)
    }

    fn local(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    fn send(
        &mut self,
        to: SocketAddr,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, udp::SendError> {
        Self::send_train(self, to, train, segment)
    }

    fn recv(&self, into: &mut [u8]) -> Result<Came, udp::RecvError> {
        let recv = Self::recv(self, into)?;
        let (start, end) = (recv.payload.start, recv.payload.end);
        Ok(Came { from: recv.from, start, end, segment: None, is_truncated: recv.truncated })
    }

    fn join(&self, join: &Join) -> io::Result<()> {
        Self::join(self, join)
    }

    fn set_delivery(&self, delivery: &Delivery) -> io::Result<()> {
        Self::set_delivery(self, delivery)
    }
}

//! [`Channel`]: a socket of a UDP transport, and how it is read.
//!
//! ```text
//!   not connected             recvmsg: who it is from, trains
//!   connected   not drained   recvmsg: some came before it was connected
//!               drained       recv, without GRO, and each 16th time recvmsg, until trains or
//!                             packets that can be marked come; then recvmsg for good
//! ```
//!
//! A mark of congestion (ECN) is told by recvmsg only, and the one time in 16 shows whether the
//! other end sends what can be marked.
//!
//! Invariant: a train is never read by `recv`, which would join its datagrams.

use crate::TooLong;
use dacapo_base::Ecn;
use dacapo_io::ReadPrediction;
use dacapo_sys::poll::Interest;
use dacapo_sys::udp::{Recv, RecvError, Socket};
use std::net::SocketAddr;

/// How often what is read is looked at for whether it can be marked.
const LOOK_EVERY: u8 = 16;

/// A socket and what is known about it.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) socket: Socket,
    pub(super) local: SocketAddr,
    /// The only address that it reaches, when it is connected.
    pub(super) remote: Option<SocketAddr>,
    /// It stands in the queue of sockets that may have something to read.
    pub(super) queued: bool,
    pub(super) prediction: ReadPrediction,
    /// What comes from now on comes from its remote.
    pub(super) is_drained: bool,
    /// It is connected, and trains come as the datagrams they are made of: the lean way to read.
    is_lean: bool,
    takes_trains: bool,
    /// How often it was read so since it was looked for marks.
    unlooked: u8,
    /// The one source of a membership whose datagrams are handed up.
    source: Option<SocketAddr>,
    pub(super) wants_write: bool,
}

impl Channel {
    pub(super) fn new(socket: Socket, local: SocketAddr, remote: Option<SocketAddr>) -> Self {
        let (queued, wants_write) = (false, false);
        let prediction = ReadPrediction::default();
        Self {
            socket,
            local,
            remote,
            queued,
            prediction,
            is_drained: false,
            is_lean: false,
            takes_trains: false,
            unlooked: 0,
            source: None,
            wants_write,
        }
    }

    /// One that is connected, and takes trains once they come.
    pub(super) fn of_peer(
        socket: Socket,
        local: SocketAddr,
        remote: SocketAddr,
        takes_trains: bool,
    ) -> Self {
        let is_lean = !remote.ip().is_multicast();
        Self { is_lean, takes_trains, ..Self::new(socket, local, Some(remote)) }
    }

    /// Receives what is next.
    pub(super) fn recv(&mut self, into: &mut [u8]) -> Result<Recv, RecvError> {
        match self.remote {
            Some(remote) if self.is_lean && self.is_drained => self.recv_lean(into, remote),
            _ => self.socket.recv(into),
        }
    }

    fn recv_lean(&mut self, into: &mut [u8], remote: SocketAddr) -> Result<Recv, RecvError> {
        if self.unlooked < LOOK_EVERY - 1 {
            let recv = self.socket.recv_from_peer(into, remote)?;
            self.unlooked += 1;
            return Ok(recv);
        }
        let recv = self.socket.recv(into)?;
        self.unlooked = 0;
        if recv.ecn != Ecn::NotEct {
            self.read_all();
        }
        Ok(recv)
    }

    /// From now on everything is told of what comes.
    fn read_all(&mut self) {
        self.is_lean = false;
        if self.takes_trains {
            self.socket.enable_gro();
        }
    }

    /// Where datagrams come in trains they are to come as such from now on.
    pub(super) fn expect_trains(&mut self) {
        if self.is_lean && self.takes_trains && self.prediction.sees_trains() {
            self.read_all();
        }
    }

    /// One that is for the datagrams of this source to a group.
    pub(super) fn of_member(socket: Socket, local: SocketAddr, source: SocketAddr) -> Self {
        Self { source: Some(source), ..Self::new(socket, local, None) }
    }

    /// Whether what has come from this address is handed up.
    pub(super) fn is_wanted(&self, from: SocketAddr) -> bool {
        self.source.is_none_or(|it| (it.ip(), it.port()) == (from.ip(), from.port()))
    }

    pub(super) fn interest(&self) -> Interest {
        if self.wants_write { Interest::ReadWrite } else { Interest::Read }
    }

    /// What the kernel says that the way to `remote` takes.
    pub(super) fn hint(&self, remote: SocketAddr) -> TooLong {
        TooLong { remote: remote.into(), datagram_len: self.socket.datagram_len_max() }
    }

    pub(super) fn kernel_drops(&self) -> u64 {
        self.socket.drops().map_or(0, u64::from)
    }
}

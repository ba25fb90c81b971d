//! Sending: a datagram, or a train of equal datagrams in as few calls as the kernel allows.
//!
//! Invariants: `Sent::bytes` ends at the edge of a segment; an error after the first segment of a
//! train is kept and reported by the next call, so that the caller knows exactly what was taken.

use super::control::Buffer;
use super::{SEGMENTS_MAX, Socket, TRAIN_BYTES_MAX};
use crate::faults::{self, Call};
use dacapo_base::Ecn;
use socket2::{MsgHdr, SockAddr};
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;

/// What the kernel took of a datagram or a train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes taken, whole segments only. Fewer than were given: the socket is full or an error
    /// waits, and the next call says which.
    pub bytes: usize,
    /// System calls that took them.
    pub calls: u32,
    /// What the call that took most took of them; of all others but the last it is the same, unless
    /// the kernel refused to segment half-way.
    pub call_bytes_max: usize,
}

/// Why nothing was sent.
#[derive(Debug)]
pub enum SendError {
    /// The send buffer is full; wait until the socket is writable.
    WouldBlock,
    /// A datagram is longer than the first link takes (EMSGSIZE).
    MessageTooLarge,
    /// An earlier datagram found no listener at the other end (ICMP port unreachable). This one was
    /// not sent and may be tried again.
    Refused,
    /// There is no route to the network or the host.
    Unreachable,
    /// The queue of the device is full (ENOBUFS); no event tells when it has room.
    NoBuffers,
    /// Another error of the kernel.
    Other(io::Error),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldBlock => f.write_str("the send buffer is full: wait until it has room"),
            Self::MessageTooLarge => {
                f.write_str("the datagram is longer than the link takes: send shorter ones")
            }
            Self::Refused => f.write_str("nobody listens at the remote port"),
            Self::Unreachable => f.write_str("there is no route to the remote address"),
            Self::NoBuffers => f.write_str("the device's queue is full: send again later"),
            Self::Other(error) => write!(f, "the kernel refused to send: {error}"),
        }
    }
}

impl std::error::Error for SendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other(error) => Some(error),
            _ => None,
        }
    }
}

impl SendError {
    pub(crate) fn of(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EAGAIN) => Self::WouldBlock,
            Some(libc::EMSGSIZE) => Self::MessageTooLarge,
            Some(libc::ECONNREFUSED) => Self::Refused,
            Some(libc::ENOBUFS) => Self::NoBuffers,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN) => {
                Self::Unreachable
            }
            _ => Self::Other(error),
        }
    }

    /// True for the answers of kernels and devices that cannot segment this train.
    fn is_gso_refused(&self) -> bool {
        match self {
            Self::Other(error) => {
                matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP))
            }
            _ => false,
        }
    }
}

/// Where the datagrams of one call go and how they are marked.
struct Envelope {
    to: Option<SockAddr>,
    ecn: Ecn,
}

impl Socket {
    /// Sends `bytes` as one datagram, or, when they are more than `segment_size`, as datagrams of
    /// that size of which the last may be shorter. `to` is `None` on a connected socket.
    ///
    /// # Errors
    /// [`SendError`] when not even the first segment was taken, or when an error ended the train
    /// before this one.
    pub fn send(
        &mut self,
        to: Option<SocketAddr>,
        bytes: &[u8],
        segment_size: Option<u16>,
        ecn: Ecn,
    ) -> Result<Sent, SendError> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        let envelope = Envelope { to: to.map(SockAddr::from), ecn };
        match segment_size.map(usize::from) {
            Some(segment) if segment > 0 && bytes.len() > segment => {
                self.send_train(&envelope, bytes, segment)
            }
            _ => {
                self.send_message(&envelope, bytes, None)?;
                Ok(Sent { bytes: bytes.len(), calls: 1, call_bytes_max: bytes.len() })
            }
        }
    }

    fn send_train(
        &mut self,
        envelope: &Envelope,
        mut bytes: &[u8],
        segment: usize,
    ) -> Result<Sent, SendError> {
        let mut sent = Sent::default();
        if faults::is_partial(Call::SendMsg) {
            bytes = &bytes[..segment];
        }
        while !bytes.is_empty() {
            match self.send_run(envelope, bytes, segment) {
                Ok(len) => {
                    sent.bytes += len;
                    sent.calls += 1;
                    sent.call_bytes_max = sent.call_bytes_max.max(len);
                    bytes = &bytes[len..];
                }
                Err(error) if sent.bytes == 0 => return Err(error),
                Err(error) => {
                    self.keep_for_later(error);
                    break;
                }
            }
        }
        Ok(sent)
    }

    fn keep_for_later(&mut self, error: SendError) {
        // A full buffer is found again by the next call; the other errors the kernel tells once.
        if !matches!(error, SendError::WouldBlock) {
            self.pending = Some(error);
        }
    }

    /// Sends the first run of `bytes` that fits one call; returns its length.
    fn send_run(
        &mut self,
        envelope: &Envelope,
        bytes: &[u8],
        segment: usize,
    ) -> Result<usize, SendError> {
        let count = if self.offloads.gso { segments_per_call(segment) } else { 1 };
        let run = &bytes[..bytes.len().min(count * segment)];
        if run.len() <= segment {
            self.send_message(envelope, run, None)?;
            return Ok(run.len());
        }
        match self.send_message(envelope, run, u16::try_from(segment).ok()) {
            Ok(()) => Ok(run.len()),
            Err(error) if error.is_gso_refused() => self.send_without_gso(envelope, run, segment),
            Err(error) => Err(error),
        }
    }

    /// Sends one segment of a train that the kernel refused. When it goes, segmentation was at
    /// fault, and this socket does without from now on; kernels answer a segment that is too long
    /// for the link the same way, and then it stays on.
    fn send_without_gso(
        &mut self,
        envelope: &Envelope,
        run: &[u8],
        segment: usize,
    ) -> Result<usize, SendError> {
        self.send_message(envelope, &run[..segment], None)?;
        self.offloads.gso = false;
        Ok(segment)
    }

    fn send_message(
        &self,
        envelope: &Envelope,
        bytes: &[u8],
        segment: Option<u16>,
    ) -> Result<(), SendError> {
        if let (None, Ecn::NotEct, None) = (&envelope.to, envelope.ecn, segment) {
            // The kernel has less to copy and to check.
            return repeat(|| self.inner.send(bytes));
        }
        let mut control = Buffer::new();
        if let Some(segment) = segment {
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
        }
        if envelope.ecn != Ecn::NotEct {
            self.push_ecn(&mut control, envelope.ecn);
        }
        let parts = [IoSlice::new(bytes)];
        let mut message = MsgHdr::new().with_buffers(&parts);
        if !control.as_bytes().is_empty() {
            message = message.with_control(control.as_bytes());
        }
        if let Some(to) = &envelope.to {
            message = message.with_addr(to);
        }
        repeat(|| self.inner.sendmsg(&message, 0))
    }

    fn push_ecn(&self, control: &mut Buffer, ecn: Ecn) {
        let value = i32::from(ecn.bits()).to_ne_bytes();
        if self.v6 {
            control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &value);
        } else {
            control.push(libc::IPPROTO_IP, libc::IP_TOS, &value);
        }
    }
}

/// Sends; again when a signal came between.
fn repeat(send: impl Fn() -> io::Result<usize>) -> Result<(), SendError> {
    loop {
        match faults::before(Call::SendMsg).and_then(|()| send()) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(SendError::of(error)),
        }
    }
}

/// How many segments of this size one call takes.
fn segments_per_call(segment: usize) -> usize {
    (TRAIN_BYTES_MAX / segment.max(1)).clamp(1, SEGMENTS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockopt;
    use crate::udp::Config;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::os::fd::AsFd;

    #[test]
    fn a_call_takes_no_more_than_every_kernel_does() {
        for segment in [1, 100, 1_015, 1_016, 1_452, 32_500, 40_000, 65_000] {
            let count = segments_per_call(segment);
            assert!((1..=SEGMENTS_MAX).contains(&count));
            assert!(count * segment <= TRAIN_BYTES_MAX, "{segment}");
        }
    }

    #[test]
    fn every_errno_has_its_class() {
        let of = |errno| SendError::of(io::Error::from_raw_os_error(errno));
        assert!(matches!(of(libc::EAGAIN), SendError::WouldBlock));
        assert!(matches!(of(libc::EMSGSIZE), SendError::MessageTooLarge));
        assert!(matches!(of(libc::ECONNREFUSED), SendError::Refused));
        assert!(matches!(of(libc::EHOSTUNREACH), SendError::Unreachable));
        assert!(matches!(of(libc::ENETUNREACH), SendError::Unreachable));
        assert!(matches!(of(libc::ENOBUFS), SendError::NoBuffers));
        assert!(matches!(of(libc::EPERM), SendError::Other(_)));
        assert!(of(libc::EIO).is_gso_refused() && of(libc::EINVAL).is_gso_refused());
        assert!(!of(libc::EMSGSIZE).is_gso_refused() && !of(libc::EPERM).is_gso_refused());
    }
    fn pair(sender: SocketAddr) -> (Socket, Socket) {
        let receiver = Socket::bind(sender, &Config { gro: false, ..Config::default() }).unwrap();
        let sender = Socket::bind(sender, &Config::default()).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        (sender, receiver)
    }

    /// Every datagram up to the one that is empty.
    fn lens_up_to_an_empty_one(receiver: &Socket) -> Vec<usize> {
        let mut lens = Vec::new();
        for _ in 0..1_000_000 {
            match receiver.recv(&mut [0; 2_000]) {
                Ok(recv) if recv.len == 0 => return lens,
                Ok(recv) => lens.push(recv.len),
                Err(_) => std::thread::yield_now(),
            }
        }
        panic!("the last datagram is lost")
    }

    #[test]
    fn a_train_that_the_kernel_will_not_segment_goes_datagram_by_datagram() {
        let (mut sender, receiver) = pair((Ipv4Addr::LOCALHOST, 0).into());
        if !sender.offloads().gso {
            dacapo_base::skip("this kernel has no UDP offload");
            return;
        }
        // Linux segments no datagrams that have no checksum.
        sockopt::set(sender.as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
        let sent = sender.send(None, &[1; 2_500], Some(1_000), Ecn::NotEct).unwrap();
        assert_eq!(sent, Sent { bytes: 2_500, calls: 3, call_bytes_max: 1_000 });
        assert!(!sender.offloads().gso, "it is not tried again");
        sender.send(None, &[], None, Ecn::NotEct).unwrap();
        assert_eq!(lens_up_to_an_empty_one(&receiver), [1_000, 1_000, 500]);
    }

    #[test]
    fn a_train_of_datagrams_too_long_for_the_link_is_too_large_and_offload_stays() {
        let here: SocketAddr = (Ipv6Addr::LOCALHOST, 0).into();
        if Socket::bind(here, &Config::default()).is_err() {
            dacapo_base::skip("this host has no ::1");
            return;
        }
        let (mut sender, receiver) = pair(here);
        let before = sender.offloads();
        sockopt::set(sender.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU, 1_280).unwrap();
        let result = sender.send(None, &[1; 3_000], Some(1_300), Ecn::NotEct);
        assert!(matches!(result, Err(SendError::MessageTooLarge)), "{result:?}");
        assert_eq!(sender.offloads(), before);
        sender.send(None, &[1; 3_000], Some(1_200), Ecn::NotEct).unwrap();
        sender.send(None, &[], None, Ecn::NotEct).unwrap();
        assert_eq!(lens_up_to_an_empty_one(&receiver), [1_200, 1_200, 600]);
    }

    #[test]
    fn what_ended_a_train_is_told_once_by_the_next_send() {
        let (mut sender, _receiver) = pair((Ipv4Addr::LOCALHOST, 0).into());
        sender.keep_for_later(SendError::WouldBlock);
        sender
            .send(None, b"a full buffer is found again, if it still is", None, Ecn::NotEct)
            .unwrap();
        sender.keep_for_later(SendError::Refused);
        assert!(matches!(sender.send(None, b"one", None, Ecn::NotEct), Err(SendError::Refused)));
        let sent = sender.send(None, b"two", None, Ecn::NotEct).unwrap();
        assert_eq!(sent, Sent { bytes: 3, calls: 1, call_bytes_max: 3 });
    }
}

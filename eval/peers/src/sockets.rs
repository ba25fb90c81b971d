//! UDP sockets of the programs that choose their own: bound with large buffers, then connected.

use crate::{Failure, PATIENCE, SOCKET_BUFFER_BYTES, say_ready};
use socket2::SockRef;
use std::net::{SocketAddr, UdpSocket};

/// The most bytes of a train: what IPv4 takes as one datagram before it is segmented.
const TRAIN_BYTES_MAX: usize = 65_507;
/// The most datagrams of a train.
const SEGMENTS_MAX: usize = 64;

/// How many datagrams of `size` bytes go in a train.
#[must_use]
pub fn segments(size: usize) -> usize {
    (TRAIN_BYTES_MAX / size.max(1)).clamp(1, SEGMENTS_MAX)
}

/// A bound socket with large buffers.
///
/// # Errors
/// What the system says.
pub fn bind(address: SocketAddr) -> Result<UdpSocket, Failure> {
    let socket = UdpSocket::bind(address)?;
    let options = SockRef::from(&socket);
    options.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    options.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// A socket connected to the other end.
///
/// # Errors
/// What the system says.
pub fn call(address: SocketAddr) -> Result<UdpSocket, Failure> {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = bind(any.parse().map_err(|_| Failure("no local address".to_owned()))?)?;
    socket.connect(address)?;
    Ok(socket)
}

/// Says that somebody listens, and connects the socket to whoever sends first, as the fast way of
/// the kernel is.
///
/// # Errors
/// Nobody came, or what the system says.
pub fn answer(socket: &UdpSocket) -> Result<(), Failure> {
    say_ready()?;
    let (_, from) = socket.peek_from(&mut [0])?;
    Ok(socket.connect(from)?)
}

//! What lies below, without XTP: datagrams of plain UDP sockets, and frames of Ethernet.
//!
//! ```text
//!   | 1 kind: 0 echo, 1 discard | 1 last of its message | 4 length of the message | bytes |
//! ```
//!
//! What it is not: reliable. A message that does not come back is an error, and its point begun
//! anew; of what is sent one way the share is told that arrived. A datagram is one call, without
//! GSO: a plain program's.
//!
//! Source: RFC 862, RFC 863; the Ethertype is the first of those for experiments (IEEE 802).

use super::far::{Far, Near, PATIENCE, SLICE, Tally, until_arrived};
use super::place::Place;
use dacapo_sys::poll::{Event, Interest, Poller};
use dacapo_sys::{interface, packet, udp};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The longest datagram: XTP's own over UDP.
const DATAGRAM_LEN: usize = 1_452;
/// The longest frame, without its header.
const PAYLOAD_LEN: usize = 1_500;
const HEAD_LEN: usize = 6;
/// The most bytes of a message in one frame.
pub const FRAME_LEN_MAX: usize = PAYLOAD_LEN - HEAD_LEN;
const ETHERTYPE: u16 = 0x88B5;
const ECHO: u8 = 0;
const DISCARD: u8 = 1;

/// What carries datagrams between two ends.
trait Line: Send {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// The length of what came, or nothing within [`SLICE`].
    fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>>;
}

impl Line for UdpSocket {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        Self::send(self, bytes).map(|_| ())
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match Self::recv(self, into) {
            Ok(len) => Ok(Some(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// An interface of Ethernet.
struct Frames {
    socket: packet::Socket,
    poller: Poller,
    ready: Vec<Event>,
    to: packet::Address,
}

impl Frames {
    fn open(place: &Place, end: usize) -> Result<Self, String> {
        let name = place.interface();
        let made = place.at(end, || -> io::Result<Self> {
            let socket = packet::Socket::open(interface::index(name)?, ETHERTYPE)?;
            let poller = Poller::new()?;
            poller.add(socket.as_fd(), 0, Interest::Read)?;
            Ok(Self { socket, poller, ready: Vec::new(), to: [0xFF; 6] })
        });
        made?.map_err(|error| format!("frames at the interface {name}: {error}"))
    }

    fn address(place: &Place, end: usize) -> Result<packet::Address, String> {
        let name = place.interface();
        let address = place.at(end, || interface::ethernet_address(name))?;
        let address = address.map_err(|error| format!("the interface {name}: {error}"))?;
        address.ok_or_else(|| format!("the interface {name} is no Ethernet"))
    }
}

impl Line for Frames {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        loop {
            match self.socket.send(self.to, bytes) {
                Ok(()) => return Ok(()),
                // The other end's processor is behind.
                Err(udp::SendError::WouldBlock | udp::SendError::NoBuffers) => {
                    std::thread::yield_now();
                }
                Err(udp::SendError::Other(error)) => return Err(error),
                Err(error) => return Err(io::Error::other(format!("{error:?}"))),
            }
        }
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let began = Instant::now();
        loop {
            match self.socket.recv(into) {
                Ok(recv) if recv.is_for_us => return Ok(Some(recv.len)),
                Ok(_) => {}
                Err(udp::RecvError::WouldBlock) if began.elapsed() >= SLICE => return Ok(None),
                Err(udp::RecvError::WouldBlock) => {
                    self.poller.wait(Some(SLICE), &mut self.ready)?
                }
                Err(udp::RecvError::Other(error)) => return Err(error),
                Err(error) => return Err(io::Error::other(format!("{error:?}"))),
            }
        }
    }
}

/// The near end.
pub struct Plain {
    end: End,
    fars: Vec<Far>,
    sent: u64,
}

impl Plain {
    /// Datagrams of UDP.
    pub fn datagrams(place: &Place) -> Result<Self, String> {
        let bind = |end| -> Result<UdpSocket, String> {
            let bound = place.at(end, || -> io::Result<UdpSocket> {
                let socket = UdpSocket::bind((place.ip(end), 0))?;
                socket.set_read_timeout(Some(SLICE))?;
                Ok(socket)
            });
            bound?.map_err(|error| format!("a UDP socket at {}: {error}", place.ip(end)))
        };
        let (near, far) = (bind(0)?, bind(1)?);
        let connect = |one: &UdpSocket, other: &UdpSocket| one.connect(other.local_addr()?);
        let connected = connect(&near, &far).and_then(|()| connect(&far, &near));
        connected.map_err(|error| format!("UDP sockets cannot be connected: {error}"))?;
        Self::new(Box::new(near), Box::new(far), DATAGRAM_LEN)
    }

    /// Frames of Ethernet.
    pub fn frames(place: &Place) -> Result<Self, String> {
        let (mut near, mut far) = (Frames::open(place, 0)?, Frames::open(place, 1)?);
        (near.to, far.to) = (Frames::address(place, 1)?, Frames::address(place, 0)?);
        Self::new(Box::new(near), Box::new(far), PAYLOAD_LEN)
    }

    fn new(near: Box<dyn Line>, far: Box<dyn Line>, len_max: usize) -> Result<Self, String> {
        let mut far = End::new(far, len_max);
        let far = Far::start(move |tally| far.work(tally).map_err(|error| error.to_string()))?;
        Ok(Self { end: End::new(near, len_max), fars: vec![far], sent: 0 })
    }
}

impl Near for Plain {
    fn round_trip(&mut self, len: usize) -> Result<(), String> {
        let failed = |error: io::Error| error.to_string();
        self.end.send(ECHO, len).map_err(failed)?;
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            match self.end.recv().map_err(failed)? {
                Some((_, got, _)) if got == len => return Ok(()),
                Some((_, got, _)) => return Err(format!("{got} of {len} bytes have come back")),
                None => {}
            }
        }
        Err("nothing has come back".to_owned())
    }

    fn send(&mut self, len: usize) -> Result<(), String> {
        self.sent += 1;
        self.end.send(DISCARD, len).map_err(|error| error.to_string())
    }

    fn settle(&mut self) -> Result<(), String> {
        until_arrived(&self.fars, self.sent, || {
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        })?;
        // What was lost is not waited for the next time.
        self.sent = self.arrived().into_iter().min().unwrap_or(0);
        Ok(())
    }

    fn fars(&self) -> &[Far] {
        &self.fars
    }
}

/// An end of a line.
struct End {
    line: Box<dyn Line>,
    buffer: Vec<u8>,
    /// Bytes of a message that is not whole yet.
    got: usize,
}

impl End {
    fn new(line: Box<dyn Line>, len_max: usize) -> Self {
        Self { line, buffer: vec![0; len_max], got: 0 }
    }

    /// Sends a message in as many datagrams as it takes.
    fn send(&mut self, kind: u8, len: usize) -> io::Result<()> {
        let room = self.buffer.len() - HEAD_LEN;
        let mut left = len;
        loop {
            let some = left.min(room);
            left -= some;
            let datagram = self.buffer.get_mut(..HEAD_LEN + some).unwrap_or_default();
            if let Some(head) = datagram.first_chunk_mut::<HEAD_LEN>() {
                let [a, b, c, d] = u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
                *head = [kind, u8::from(left == 0), a, b, c, d];
            }
            self.line.send(datagram)?;
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Receives datagrams up to the last of a message: its kind, how many bytes have come of it,
    /// and whether those are all.
    fn recv(&mut self) -> io::Result<Option<(u8, usize, bool)>> {
        loop {
            let Some(len) = self.line.recv(&mut self.buffer)? else { return Ok(None) };
            let datagram = self.buffer.get(..len).unwrap_or_default();
            let Some((head, bytes)) = datagram.split_first_chunk::<HEAD_LEN>() else { continue };
            let [kind, is_last, len @ ..] = *head;
            self.got += bytes.len();
            if is_last != 0 {
                let got = std::mem::take(&mut self.got);
                return Ok(Some((kind, got, got == u32::from_be_bytes(len) as usize)));
            }
        }
    }

    fn work(&mut self, tally: &Tally) -> io::Result<()> {
        match self.recv()? {
            Some((ECHO, got, _)) => self.send(ECHO, got)?,
            Some((_, _, true)) => tally.count(),
            Some((_, _, false)) | None => {}
        }
        Ok(())
    }
}

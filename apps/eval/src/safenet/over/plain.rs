//! What lies below, without XTP: datagrams of plain UDP sockets, and frames of Ethernet.
//!
//! ```text
//!   | 1 kind: 0 echo, 1 discard | 1 last of its message | 4 length of the message | 4 number | bytes |
//! ```
//!
//! A message that does not come back is an error, and its point begun anew; of what is sent one way
//! the share is told that arrived. A datagram is one call, without GSO: a plain program's.
//!
//! Source: RFC 862, RFC 863; the Ethertype is the first of those for experiments (IEEE 802).

use super::far::{Far, SLICE, Tally};
use super::near::{Near, PATIENCE, Talk, Trouble};
use super::place::Place;
use dacapo::patience::Tolerance;
use dacapo_io::Coalescing;
use dacapo_sys::poll::{Event, Interest, Poller};
use dacapo_sys::{clock, interface, packet, udp};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The longest datagram: XTP's own over UDP.
const DATAGRAM_LEN: usize = 1_452;
/// The longest frame, without its header.
const PAYLOAD_LEN: usize = 1_500;
const HEAD_LEN: usize = 10;
/// The most bytes of a message in one frame.
pub const FRAME_LEN_MAX: usize = PAYLOAD_LEN - HEAD_LEN;
const ETHERTYPE: u16 = 0x88B5;
const ECHO: u8 = 0;
const DISCARD: u8 = 1;

/// How frames come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// By memory that is shared with the kernel.
    Ring,
    /// By a call for each.
    Calls,
}

impl Frames {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Calls => "calls",
        }
    }

    /// Why frames cannot come in so there; `None` when they can.
    pub fn lacks(self, place: &Place) -> Option<String> {
        // Both at a time, as a measurement has them.
        let ends: Result<Vec<Card>, String> =
            (0..2).map(|end| Card::open(place, end, self)).collect();
        ends.err()
    }
}

/// What carries datagrams between two ends.
trait Line: Send {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// The length of what came, or nothing within [`SLICE`].
    fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>>;
    /// What came last: in `into`, unless it lies elsewhere.
    fn datagram<'a>(&'a self, into: &'a [u8], len: usize) -> &'a [u8] {
        into.get(..len).unwrap_or_default()
    }
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
struct Card {
    socket: packet::Socket,
    /// What came last.
    came: Option<packet::Recv>,
    received: u64,
    coalescing: Coalescing,
    poller: Poller,
    ready: Vec<Event>,
    to: packet::Address,
}

impl Card {
    fn open(place: &Place, end: usize, by: Frames) -> Result<Self, String> {
        let name = place.interface();
        let made = place.at(end, || -> io::Result<Self> {
            let interface = interface::index(name)?;
            let socket = match by {
                Frames::Ring => packet::Socket::with_ring(interface, ETHERTYPE, PAYLOAD_LEN)?,
                Frames::Calls => packet::Socket::open(interface, ETHERTYPE)?,
            };
            let poller = Poller::new()?;
            poller.add(socket.as_fd(), 0, Interest::Read)?;
            Ok(Self {
                socket,
                came: None,
                received: 0,
                coalescing: Coalescing::of_packets(),
                poller,
                ready: Vec::new(),
                to: [0xFF; 6],
            })
        });
        made?.map_err(|error| format!("frames at the interface {name}: {error}"))
    }

    /// Waits for frames; while they come one close behind the other several are let gather.
    fn wait(&mut self) -> io::Result<()> {
        if let Some(rest) = self.coalescing.rest(clock::now(), self.received) {
            std::thread::sleep(rest);
        }
        self.poller.wait(Some(SLICE), &mut self.ready)?;
        self.coalescing.looked(clock::now());
        Ok(())
    }

    fn address(place: &Place, end: usize) -> Result<packet::Address, String> {
        let name = place.interface();
        let address = place.at(end, || interface::ethernet_address(name))?;
        let address = address.map_err(|error| format!("the interface {name}: {error}"))?;
        address.ok_or_else(|| format!("the interface {name} is no Ethernet"))
    }
}

impl Line for Card {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut patience = None;
        loop {
            match self.socket.send(self.to, bytes) {
                Ok(()) => return Ok(()),
                // The other end's processor is behind.
                Err(udp::SendError::WouldBlock | udp::SendError::NoBuffers) => {
                    let now = Instant::now();
                    if !patience.get_or_insert_with(|| Tolerance::new(now, PATIENCE)).lasts(now) {
                        return Err(io::Error::other("the interface takes no more frames"));
                    }
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
                Ok(recv) if recv.is_for_us => {
                    self.came = Some(recv);
                    self.received += recv.len as u64;
                    return Ok(Some(recv.len));
                }
                // What others send, however much of it, does not keep it here.
                Ok(_) | Err(udp::RecvError::WouldBlock) if began.elapsed() >= SLICE => {
                    return Ok(None);
                }
                Ok(_) => {}
                Err(udp::RecvError::WouldBlock) => self.wait()?,
                Err(udp::RecvError::Other(error)) => return Err(error),
                Err(error) => return Err(io::Error::other(format!("{error:?}"))),
            }
        }
    }

    fn datagram<'a>(&'a self, into: &'a [u8], _len: usize) -> &'a [u8] {
        self.came.as_ref().map_or(&[], |recv| self.socket.payload(recv, into))
    }
}

/// How the near end talks.
pub struct Plain(End);

impl Plain {
    /// Datagrams of UDP.
    pub fn datagrams(place: &Place) -> Result<Near, String> {
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
        Self::near(Box::new(near), Box::new(far), DATAGRAM_LEN)
    }

    /// Frames of Ethernet.
    pub fn frames(place: &Place, by: Frames) -> Result<Near, String> {
        let (mut near, mut far) = (Card::open(place, 0, by)?, Card::open(place, 1, by)?);
        (near.to, far.to) = (Card::address(place, 1)?, Card::address(place, 0)?);
        Self::near(Box::new(near), Box::new(far), PAYLOAD_LEN)
    }

    fn near(near: Box<dyn Line>, far: Box<dyn Line>, len_max: usize) -> Result<Near, String> {
        let mut far = End::new(far, len_max);
        let far = Far::start(move |tally| far.work(tally).map_err(|error| error.to_string()))?;
        Ok(Near::new(Self(End::new(near, len_max)), vec![far], false))
    }
}

impl Talk for Plain {
    fn round_trip(&mut self, len: usize) -> Result<(), Trouble> {
        let Self(end) = self;
        let number = end.send_next(ECHO, len).map_err(broken)?;
        let mut patience = Tolerance::new(Instant::now(), PATIENCE);
        while patience.lasts(Instant::now()) {
            match end.recv().map_err(broken)? {
                // An answer that came too late for its own round trip.
                Some(came) if came.number != number => {}
                Some(came) if came.got == len => return Ok(()),
                Some(Came { got, .. }) => {
                    return Err(Trouble::Lost(format!("{got} of {len} bytes have come back")));
                }
                None => {}
            }
        }
        Err(Trouble::Lost("nothing has come back".to_owned()))
    }

    fn send(&mut self, len: usize) -> Result<(), Trouble> {
        self.0.send_next(DISCARD, len).map(drop).map_err(broken)
    }

    fn turn(&mut self, most: Duration) -> Result<(), Trouble> {
        std::thread::sleep(most);
        Ok(())
    }
}

fn broken(error: io::Error) -> Trouble {
    Trouble::Broken(error.to_string())
}

/// What has come of a message whose last datagram has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Came {
    kind: u8,
    number: u32,
    got: usize,
    is_whole: bool,
}

/// Puts datagrams together; those of a message come in their order, or not at all.
#[derive(Debug, Default)]
struct Joiner {
    /// The message whose datagrams come.
    kind: u8,
    number: u32,
    /// How many bytes of it have come.
    got: usize,
}

impl Joiner {
    /// Takes a datagram; what has come of its message, when it is the last of it.
    fn take(&mut self, datagram: &[u8]) -> Option<Came> {
        let (head, bytes) = datagram.split_first_chunk::<HEAD_LEN>()?;
        let [kind, is_last, a, b, c, d, number @ ..] = *head;
        let number = u32::from_be_bytes(number);
        if (self.kind, self.number) != (kind, number) {
            (self.kind, self.number, self.got) = (kind, number, 0);
        }
        self.got += bytes.len();
        if is_last == 0 {
            return None;
        }
        let got = std::mem::take(&mut self.got);
        let is_whole = got == u32::from_be_bytes([a, b, c, d]) as usize;
        Some(Came { kind, number, got, is_whole })
    }
}

/// An end of a line.
struct End {
    line: Box<dyn Line>,
    buffer: Vec<u8>,
    joiner: Joiner,
    /// How many messages of each kind were sent from here.
    sent: [u32; 2],
}

impl End {
    fn new(line: Box<dyn Line>, len_max: usize) -> Self {
        Self { line, buffer: vec![0; len_max], joiner: Joiner::default(), sent: [0; 2] }
    }

    /// Sends a message of its own; its number, from 0 for each kind.
    fn send_next(&mut self, kind: u8, len: usize) -> io::Result<u32> {
        let Some(next) = self.sent.get_mut(usize::from(kind)) else { return Ok(0) };
        let number = *next;
        *next = next.wrapping_add(1);
        self.send((kind, number), len)?;
        Ok(number)
    }

    /// Sends a message in as many datagrams as it takes.
    fn send(&mut self, (kind, number): (u8, u32), len: usize) -> io::Result<()> {
        let room = self.buffer.len() - HEAD_LEN;
        let mut left = len;
        loop {
            let some = left.min(room);
            left -= some;
            let datagram = self.buffer.get_mut(..HEAD_LEN + some).unwrap_or_default();
            if let Some(into) = datagram.first_chunk_mut::<HEAD_LEN>() {
                *into = head((kind, number), left == 0, len);
            }
            self.line.send(datagram)?;
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Receives datagrams up to the last of a message, or none within [`SLICE`].
    fn recv(&mut self) -> io::Result<Option<Came>> {
        loop {
            let Some(len) = self.line.recv(&mut self.buffer)? else { return Ok(None) };
            let came = self.joiner.take(self.line.datagram(&self.buffer, len));
            if came.is_some() {
                return Ok(came);
            }
        }
    }

    fn work(&mut self, tally: &Tally) -> io::Result<()> {
        match self.recv()? {
            Some(Came { kind: ECHO, number, got, .. }) => self.send((ECHO, number), got)?,
            Some(Came { number, is_whole: true, .. }) => tally.count(number.into()),
            Some(_) | None => {}
        }
        Ok(())
    }
}

/// The head of a datagram.
fn head((kind, number): (u8, u32), is_last: bool, len: usize) -> [u8; HEAD_LEN] {
    let [a, b, c, d] = u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
    let [e, f, g, h] = number.to_be_bytes();
    [kind, u8::from(is_last), a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The datagrams of a message of 30 bytes, ten in each.
    fn three(number: u32) -> [Vec<u8>; 3] {
        [false, false, true]
            .map(|is_last| [&head((DISCARD, number), is_last, 30)[..], &[0; 10]].concat())
    }

    fn take(datagrams: &[&Vec<u8>]) -> Vec<(u32, usize, bool)> {
        let mut joiner = Joiner::default();
        let came = datagrams.iter().filter_map(|datagram| joiner.take(datagram));
        came.map(|came| (came.number, came.got, came.is_whole)).collect()
    }

    #[test]
    fn a_lost_end_does_not_lengthen_the_next_message() {
        let (a, b) = (three(0), three(1));
        assert_eq!(take(&[&a[0], &a[1], &b[0], &b[1], &b[2]]), [(1, 30, true)]);
    }

    #[test]
    fn what_lacks_is_not_made_up_from_the_message_before() {
        let (a, b) = (three(0), three(1));
        assert_eq!(take(&[&a[0], &a[1], &b[2]]), [(1, 10, false)]);
        assert_eq!(take(&[&a[2], &b[2]]), [(0, 10, false), (1, 10, false)]);
    }
}

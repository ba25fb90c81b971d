//! What io_uring would give: the controls `gso` and `udp` with their sends and receives in a ring.
//!
//! ```text
//!   gso   sink, source   DEPTH trains on their way, one call for as many as are done
//!   udp   echo, ping     the receive waits in the ring before the send goes; one call for both
//! ```
//!
//! Sockets, sizes and counting are those of `plain`. Invariant: a buffer is touched by this program
//! only while no entry for it is in the ring.

#![allow(unsafe_code, reason = "what is pushed to a ring is not borrowed by it")]

use io_uring::{IoUring, opcode, squeue, types};
use nix::sys::socket::{setsockopt, sockopt};
use peers::{Failure, Order, Role, RoundTrips, Sequence, Window, sockets};
use serde_json::{Value, json};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::ExitCode;

/// Trains on their way at a time.
const DEPTH: usize = 8;

/// What the receive of an echo or ping is known by; sends have the number 0.
const RECEIVE: u64 = 1;

fn main() -> ExitCode {
    peers::run(|order| match (order.kind.as_str(), order.role) {
        ("gso", Role::Sink) => sink(order),
        ("gso", Role::Source) => source(order),
        ("udp", Role::Echo) => echo(order),
        ("udp", Role::Ping) => ping(order),
        _ => Err(Failure("the kinds are gso (sink, source) and udp (echo, ping)".to_owned())),
    })
}

/// A ring and the socket that its entries are for.
struct Ring {
    ring: IoUring,
    socket: UdpSocket,
}

impl Ring {
    fn new(socket: UdpSocket) -> io::Result<Self> {
        Ok(Self { ring: IoUring::new(DEPTH as u32 * 2)?, socket })
    }

    fn push(&mut self, entry: &squeue::Entry) -> Result<(), Failure> {
        // SAFETY: every buffer is allocated before the ring and dropped after it, and is touched
        // only between the completion of its entry and the next one for it.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.map_err(|_| Failure("the ring is full".to_owned()))
    }

    fn send(&mut self, bytes: &[u8], number: u64) -> Result<(), Failure> {
        let fd = types::Fd(self.socket.as_raw_fd());
        let entry = opcode::Send::new(fd, bytes.as_ptr(), bytes.len() as u32);
        self.push(&entry.build().user_data(number))
    }

    fn receive(&mut self, into: &mut [u8], number: u64) -> Result<(), Failure> {
        let fd = types::Fd(self.socket.as_raw_fd());
        let entry = opcode::Recv::new(fd, into.as_mut_ptr(), into.len() as u32);
        self.push(&entry.build().user_data(number))
    }

    /// Hands over what was pushed, and waits for something to be done, unless it spins.
    fn submit(&mut self, is_spinning: bool) -> io::Result<()> {
        match self.ring.submit_and_wait(usize::from(!is_spinning)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// What is done: its number and its length.
    fn done(&mut self) -> Option<(u64, io::Result<usize>)> {
        let entry = self.ring.completion().next()?;
        let failed = |_| io::Error::from_raw_os_error(-entry.result());
        Some((entry.user_data(), usize::try_from(entry.result()).map_err(failed)))
    }
}

fn source(order: &Order) -> Result<Value, Failure> {
    let (socket, count) = (sockets::call(order.address)?, sockets::segments(order.size));
    let size = i32::try_from(order.size).map_err(|_| Failure("SIZE is too large".into()))?;
    setsockopt(&socket, sockopt::UdpGsoSegment, &size)?;
    let mut trains = vec![vec![7; order.size * count]; DEPTH];
    let (mut window, mut sequence) = (Window::new(order.window), Sequence::default());
    let mut ring = Ring::new(socket)?;
    let mut free: Vec<usize> = (0..DEPTH).collect();
    while !window.is_past_grace() {
        while let Some(index) = free.pop() {
            let train = &mut trains[index];
            train.chunks_mut(order.size).for_each(|datagram| sequence.put(datagram));
            ring.send(train, index as u64)?;
        }
        ring.submit(order.is_spinning)?;
        while let Some((number, sent)) = ring.done() {
            free.push(number as usize);
            match sent {
                Ok(len) => _ = window.count(len, count as u64, 0),
                // The sink leaves when its window is over.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    window.end();
                    return window.report("source");
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    window.end();
    window.report("source")
}

fn sink(order: &Order) -> Result<Value, Failure> {
    let socket = sockets::bind(order.address)?;
    setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
    sockets::answer(&socket)?;
    let mut buffers = vec![vec![0; 1 << 16]; DEPTH];
    let (mut window, mut sequence) = (Window::new(order.window), Sequence::default());
    let mut ring = Ring::new(socket)?;
    for (index, buffer) in buffers.iter_mut().enumerate() {
        ring.receive(buffer, index as u64)?;
    }
    loop {
        ring.submit(order.is_spinning)?;
        while let Some((number, received)) = ring.done() {
            let (len, buffer) = (received?, &mut buffers[number as usize]);
            let (count, lost) = sequence.take_all(&buffer[..len], order.size);
            if !window.count(len, count, lost) {
                return window.report("sink");
            }
            ring.receive(buffer, number)?;
        }
    }
}

/// Waits for the datagram that a receive is in the ring for.
fn await_receive(ring: &mut Ring, order: &Order) -> Result<usize, Failure> {
    loop {
        while let Some((number, result)) = ring.done() {
            let len = result?;
            if number == RECEIVE {
                return Ok(len);
            }
        }
        if order.is_spinning {
            std::hint::spin_loop();
        } else {
            ring.submit(false)?;
        }
    }
}

fn echo(order: &Order) -> Result<Value, Failure> {
    let socket = sockets::bind(order.address)?;
    sockets::answer(&socket)?;
    let mut ring = Ring::new(socket)?;
    let (mut message, mut answer) = (vec![0; order.size], vec![0; order.size]);
    ring.receive(&mut message, RECEIVE)?;
    ring.submit(true)?;
    // The ping leaves when its window is over, which the next send hears of.
    while let Ok(len) = await_receive(&mut ring, order) {
        answer[..len].copy_from_slice(&message[..len]);
        ring.receive(&mut message, RECEIVE)?;
        ring.send(&answer[..len], 0)?;
        ring.submit(true)?;
    }
    Ok(json!({ "role": "echo" }))
}

fn ping(order: &Order) -> Result<Value, Failure> {
    let mut ring = Ring::new(sockets::call(order.address)?)?;
    let (question, mut answer) = (vec![7; order.size], vec![0; order.size]);
    let mut round_trips = RoundTrips::new(order.window);
    loop {
        let sent = std::time::Instant::now();
        ring.receive(&mut answer, RECEIVE)?;
        ring.send(&question, 0)?;
        ring.submit(true)?;
        await_receive(&mut ring, order)?;
        if !round_trips.book(sent) {
            return Ok(round_trips.report(order.is_spinning));
        }
    }
}

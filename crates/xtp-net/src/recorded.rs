//! [`Recorded`]: a network whose packets are written into a capture as they pass.
//!
//! ```text
//!   Host -> Recorded -> Udp | Ip | Ethernet | …
//!               `----> CaptureWriter: what was taken to be sent, and what came
//! ```
//!
//! Packets to and from a group are written with the address of the group or the sender and this
//! end's.
//!
//! Invariant: a capture that cannot be written any more stops, and nothing else does; the error is
//! kept for who asks. It is all there is to say once the network is dropped, which writes out what
//! is buffered.

use crate::capture::{CaptureWriter, Carriage, clothe};
use crate::network::{Arrival, Connectionless, RecvError, SendError};
use crate::pass_on;
use dacapo_base::Time;
use dacapo_sys::clock;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// What ended a capture, shared with who began it.
pub type CaptureError = Arc<Mutex<Option<io::Error>>>;

/// A network whose packets are written down.
pub struct Recorded<W: Write> {
    inner: Box<dyn Connectionless>,
    tape: Tape<W>,
}

/// The capture, until it has failed.
struct Tape<W: Write> {
    writer: Option<CaptureWriter<W>>,
    failed: CaptureError,
    clothed: Vec<u8>,
}

impl<W: Write + Send> Recorded<W> {
    /// Writes the packets of `inner` into a capture.
    ///
    /// # Errors
    /// Not even its beginning can be written.
    pub fn new(inner: Box<dyn Connectionless>, into: W) -> io::Result<Self> {
        let writer = Some(CaptureWriter::new(into, inner.carriage().link_type())?);
        let tape = Tape { writer, failed: CaptureError::default(), clothed: Vec::new() };
        Ok(Self { inner, tape })
    }

    /// Where it is said why the capture has ended, if it has; of what is buffered only after this
    /// is dropped.
    #[must_use]
    pub fn failed(&self) -> CaptureError {
        Arc::clone(&self.tape.failed)
    }
}

impl<W: Write> Tape<W> {
    /// Packets from one end to another.
    fn record<'p>(
        &mut self,
        carriage: Carriage,
        (from, to): (SocketAddr, SocketAddr),
        packets: impl Iterator<Item = &'p [u8]>,
    ) {
        let Some(writer) = &mut self.writer else { return };
        let at_ns = clock::wall_ns();
        for packet in packets {
            clothe(carriage, from, to, packet, &mut self.clothed);
            if let Err(error) = writer.packet(at_ns, &self.clothed) {
                return self.fail(error);
            }
        }
    }

    fn fail(&mut self, error: io::Error) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.writer = None;
    }
}

#[deny(clippy::missing_trait_methods, reason = "one that is forgotten would not be passed on")]
impl<W: Write + Send> Connectionless for Recorded<W> {
    pass_on!(
        inner: local, packet_len_max, carriage, address, watch, watch_capacity, poll_capacity,
        handle_event, join, take_missed, deadline, handle_time,
    );

    fn send(
        &mut self,
        now: Time,
        to: SocketAddr,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, SendError> {
        let taken = self.inner.send(now, to, train, segment)?;
        let (local, carriage) = (self.inner.local(), self.inner.carriage());
        let taken_of = train.get(..taken).unwrap_or_default();
        self.tape.record(carriage, (local, to), taken_of.chunks(segment.max(1)));
        Ok(taken)
    }

    fn recv<'a>(&'a mut self, now: Time, into: &'a mut [u8]) -> Result<Arrival<'a>, RecvError> {
        let (local, carriage) = (self.inner.local(), self.inner.carriage());
        let arrival = self.inner.recv(now, into)?;
        let packets = arrival.packets().filter(|packet| !packet.is_empty());
        self.tape.record(carriage, (arrival.from, local), packets);
        Ok(arrival)
    }
}

impl<W: Write> Drop for Tape<W> {
    fn drop(&mut self) {
        // A buffer that writes itself out at its end tells nobody that it could not.
        if let Some(Err(error)) = self.writer.as_mut().map(CaptureWriter::flush) {
            self.fail(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InternetConfig, Udp};
    use std::io::BufWriter;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A disk that is full at some time.
    struct Disk(Arc<AtomicBool>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let is_full = self.0.load(Ordering::Relaxed);
            if is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_buffer_cannot_write_at_the_end_is_told() {
        for is_full in [false, true] {
            let network = Udp::bind(&InternetConfig::new("127.0.0.1:0".parse().unwrap())).unwrap();
            let (full, to) = (Arc::new(AtomicBool::new(false)), network.local());
            let disk = BufWriter::new(Disk(Arc::clone(&full)));
            let mut recorded = Recorded::new(Box::new(network), disk).unwrap();
            let failed = recorded.failed();
            full.store(is_full, Ordering::Relaxed);
            assert_eq!(recorded.send(Time::ZERO, to, b"packet", 6), Ok(6));
            assert!(failed.lock().unwrap().is_none(), "the packet is in the buffer");
            drop(recorded);
            let kind = failed.lock().unwrap().as_ref().map(io::Error::kind);
            assert_eq!(kind, is_full.then_some(io::ErrorKind::StorageFull));
        }
    }
}

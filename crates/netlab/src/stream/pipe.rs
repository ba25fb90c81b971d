//! [`Pipe`]: one direction of a simulated stream: bytes in order, none lost, each after a delay.
//!
//! ```text
//!   Mouth -> [ piece, due ][ piece, due ] … -> Drain      at most `capacity` bytes in between
//! ```
//!
//! It has no windows, no slow start and no acknowledgements; what it keeps of TCP is what a core
//! can see: order, delay, stalls after a loss, and that it takes no more.
//!
//! Invariants: bytes come out once and in order, in pieces of random length; at most the capacity
//! is on the way.

use dacapo_base::{Random, Time};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::time::Duration;

/// The longest piece in which bytes travel.
const PIECE_LEN_MAX: u64 = 2_896;

/// What a link does to a stream.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// The time from one end to the other.
    pub delay: Duration,
    /// By how much it varies, up and down.
    pub jitter: Duration,
    /// The share of pieces that is lost once and sent again.
    pub loss: f64,
}

/// Bytes on their way.
#[derive(Debug)]
pub struct Pipe {
    pieces: VecDeque<(Time, VecDeque<u8>)>,
    len: usize,
    capacity: usize,
    last_due: Time,
}

impl Pipe {
    pub fn new(capacity: usize) -> Self {
        Self { pieces: VecDeque::new(), len: 0, capacity, last_due: Time::ZERO }
    }

    /// Takes bytes from the front of `bytes`, as many as there is room for; how many.
    pub fn take(
        &mut self,
        now: Time,
        weather: &Weather,
        random: &mut Random,
        bytes: &[u8],
    ) -> usize {
        let room = self.capacity.saturating_sub(self.len).min(bytes.len());
        let mut rest = &bytes[..room];
        while !rest.is_empty() {
            let len = 1 + random.below(PIECE_LEN_MAX) as usize;
            let (piece, after) = rest.split_at(len.min(rest.len()));
            let due = (now + travel(weather, random)).max(self.last_due);
            self.last_due = due;
            self.pieces.push_back((due, piece.to_vec().into()));
            rest = after;
        }
        self.len += room;
        room
    }

    /// Nothing is written any more: an empty piece follows the last one.
    pub fn finish(&mut self, now: Time, weather: &Weather) {
        let due = (now + weather.delay).max(self.last_due);
        self.pieces.push_back((due, VecDeque::new()));
    }

    /// Fills `into` with what has arrived, at most to the end of a piece; 0: nothing follows.
    fn give(&mut self, now: Time, into: &mut [u8]) -> io::Result<usize> {
        let blocked = || io::Error::from(io::ErrorKind::WouldBlock);
        let (due, piece) = self.pieces.front_mut().ok_or_else(blocked)?;
        if *due > now {
            return Err(blocked());
        }
        // The empty piece at the end stays.
        let count = piece.len().min(into.len());
        for (to, from) in into.iter_mut().zip(piece.drain(..count)) {
            *to = from;
        }
        if count > 0 && piece.is_empty() {
            self.pieces.pop_front();
        }
        self.len -= count;
        Ok(count)
    }

    /// Throws away what has arrived; true when nothing follows.
    pub fn discard(&mut self, now: Time) -> bool {
        let mut bytes = [0; 4_096];
        loop {
            match self.give(now, &mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    pub fn next_due(&self) -> Option<Time> {
        self.pieces.front().map(|(due, _)| *due)
    }
}

/// How long a piece takes: once more there and back for every time it is lost.
fn travel(weather: &Weather, random: &mut Random) -> Duration {
    let spread = weather.jitter.as_nanos() as u64 * 2;
    let jitter = Duration::from_nanos(random.below(spread + 1));
    let mut delay = (weather.delay + jitter).saturating_sub(weather.jitter);
    while random.chance(weather.loss) && delay < Duration::from_secs(5) {
        delay += weather.delay * 2 + Duration::from_millis(1);
    }
    delay
}

/// The end of a pipe that is written to.
pub struct Mouth<'a> {
    pub pipe: &'a mut Pipe,
    pub now: Time,
    pub weather: &'a Weather,
    pub random: &'a mut Random,
    /// What was taken.
    pub taken: &'a mut Vec<u8>,
}

impl Write for Mouth<'_> {
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A kernel takes any part.
        let most = if bytes.len() > 1 { 1 + self.random.below(bytes.len() as u64) } else { 1 };
        let part = if self.random.chance(0.5) { bytes.len() } else { most as usize };
        let bytes = bytes.get(..part).unwrap_or(bytes);
        match self.pipe.take(self.now, self.weather, self.random, bytes) {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            taken => {
                self.taken.extend_from_slice(&bytes[..taken]);
                Ok(taken)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The end of a pipe that is read from.
pub struct Drain<'a> {
    pub pipe: &'a mut Pipe,
    pub now: Time,
    pub random: &'a mut Random,
}

impl Read for Drain<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    /// What has arrived: mostly all of it, now and then less, as a kernel does.
    fn read_vectored(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut total = 0;
        for part in parts {
            let mut filled = 0;
            while filled < part.len() {
                match self.pipe.give(self.now, &mut part[filled..]) {
                    Ok(0) | Err(_) if total > 0 => return Ok(total),
                    Ok(0) => return Ok(0),
                    Ok(count) => (filled, total) = (filled + count, total + count),
                    Err(error) => return Err(error),
                }
                if self.random.chance(0.1) {
                    return Ok(total);
                }
            }
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_and_never_more_than_the_capacity_is_on_the_way() {
        for seed in 0..20 {
            let mut random = Random::from_number(seed);
            let ms = Duration::from_millis;
            let weather = Weather { delay: ms(20), jitter: ms(5), loss: 0.1 };
            let mut pipe = Pipe::new(10_000);
            let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at * 7) as u8).collect();
            let (mut now, mut sent, mut got) = (Time::ZERO, 0, Vec::<u8>::new());
            while got.len() < bytes.len() {
                sent += pipe.take(now, &weather, &mut random, &bytes[sent..]);
                assert!(sent - got.len() <= 10_000, "seed {seed}");
                now = now.max(pipe.next_due().expect("something is on the way"));
                let mut piece = [0; 700];
                while let Ok(count) =
                    (Drain { pipe: &mut pipe, now, random: &mut random }).read(&mut piece)
                {
                    got.extend(&piece[..count]);
                }
            }
            assert_eq!(got, bytes, "seed {seed}");
            pipe.finish(now, &weather);
            assert!(!pipe.discard(now) && pipe.discard(now + ms(20)), "its end takes its time");
        }
    }
}

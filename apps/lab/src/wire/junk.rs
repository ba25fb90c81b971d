//! [`Junk`]: a thread that sends datagrams that nobody asked for, at a rate, from many addresses.
//!
//! ```text
//!   a bucket of tokens --> a datagram of each kind in turn --> a socket of each stranger in turn
//! ```
//!
//! Invariants: the thread is gone with its handle; what could not be sent was not counted as sent;
//! a rate that cannot be reached is not made up for later.

use super::tap::stranger;
use dacapo_base::{Ecn, Random};
use dacapo_sys::udp::{Config, Socket};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest datagram of random bytes.
const RANDOM_LEN_MAX: u64 = 1_400;

/// The most that is sent at once.
const BURST: u64 = 64;

/// What is missing for longer than this is not made up for.
const DEBT_MAX: Duration = Duration::from_millis(20);

/// How many different datagrams of a kind there are.
const VARIETY: usize = 512;

/// What kinds of junk there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Random bytes, the first one included.
    Random,
    /// The label of a flow that runs, and random bytes behind it.
    Label,
    /// Datagrams of the flow that runs, cut off somewhere.
    Truncated,
    /// The first datagram of a QUIC client.
    Initial,
}

/// All kinds, in the order of [`Junk::sent`].
pub const KINDS: [Kind; 4] = [Kind::Random, Kind::Label, Kind::Truncated, Kind::Initial];

/// Datagrams of every kind, made before they are needed.
pub struct Ammunition {
    by_kind: [Vec<Vec<u8>>; 4],
}

impl Ammunition {
    /// Junk of all kinds; `samples` are datagrams of the flow that runs.
    #[must_use]
    pub fn all(seed: u64, samples: &[Vec<u8>], initials: Vec<Vec<u8>>) -> Self {
        let mut random = Random::from_number(seed);
        let mut bytes = |len: u64| {
            let mut bytes = vec![0; len as usize];
            random.fill(&mut bytes);
            bytes
        };
        let by_random = (0..VARIETY as u64).map(|at| bytes(1 + at * 131 % RANDOM_LEN_MAX));
        let by_random = by_random.collect();
        let by_label = samples.iter().cycle().take(VARIETY.min(samples.len() * VARIETY));
        let by_label = by_label.map(|sample| {
            let (head, body) = sample.split_at(sample.len().min(dacapo_wire::data::LEN));
            [head, &bytes(body.len() as u64)].concat()
        });
        let by_label = by_label.collect();
        let cut = |(at, sample): (usize, &Vec<u8>)| {
            let len = 1 + at * 37 % sample.len().saturating_sub(1).max(1);
            sample.iter().take(len).copied().collect()
        };
        let truncated = samples.iter().cycle().take(VARIETY.min(samples.len() * VARIETY));
        let truncated = truncated.enumerate().map(cut).collect();
        Self { by_kind: [by_random, by_label, truncated, initials] }
    }

    /// First datagrams of QUIC alone.
    #[must_use]
    pub fn initials(initials: Vec<Vec<u8>>) -> Self {
        Self { by_kind: [Vec::new(), Vec::new(), Vec::new(), initials] }
    }
}

/// A sender of junk.
pub struct Junk {
    sent: Arc<[AtomicU64; 4]>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    begun: Instant,
    sources: usize,
}

impl Junk {
    /// Begins to send `per_second` datagrams to `to`, from as many strangers as there may be
    /// sockets, at most `sources`.
    ///
    /// # Errors
    /// Not one socket can be made.
    pub fn begin(
        to: SocketAddr,
        per_second: u64,
        sources: usize,
        ammunition: Ammunition,
    ) -> io::Result<Self> {
        // What is answered waits in small buffers, and nobody reads it.
        let small = Config {
            gso: false,
            gro: false,
            recv_buffer_bytes: 2_048,
            send_buffer_bytes: 65_536,
            reuse: false,
            marks: false,
        };
        let mut sockets = Vec::new();
        for number in 0..sources.max(1) {
            match Socket::bind(stranger(number), &small) {
                Ok(socket) => sockets.push(socket),
                Err(error) if sockets.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        let (sent, stop) = (Arc::<[AtomicU64; 4]>::default(), Arc::<AtomicBool>::default());
        let (begun, sources) = (Instant::now(), sockets.len());
        let work = Work { to, per_second, sockets, ammunition, sent: Arc::clone(&sent), turn: 0 };
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("junk".into());
        let thread = thread.spawn(move || work.run(&told))?;
        Ok(Self { sent, stop, thread: Some(thread), begun, sources })
    }

    /// How many of each kind were sent.
    #[must_use]
    pub fn sent(&self) -> [u64; 4] {
        self.sent.each_ref().map(|count| count.load(Relaxed))
    }

    /// From how many addresses.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.sources
    }

    /// Ends it; how many were sent and how many that were in a second.
    #[must_use]
    pub fn stop(mut self) -> ([u64; 4], f64) {
        self.end();
        let sent = self.sent();
        let seconds = self.begun.elapsed().as_secs_f64();
        (sent, sent.iter().sum::<u64>() as f64 / seconds.max(1e-9))
    }

    fn end(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Junk {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the thread has.
struct Work {
    to: SocketAddr,
    per_second: u64,
    sockets: Vec<Socket>,
    ammunition: Ammunition,
    sent: Arc<[AtomicU64; 4]>,
    turn: usize,
}

impl Work {
    fn run(mut self, stop: &AtomicBool) {
        let mut since = Instant::now();
        let mut taken = 0_u64;
        while !stop.load(Relaxed) {
            let due = (since.elapsed().as_secs_f64() * self.per_second as f64) as u64;
            let missing = due.saturating_sub(taken);
            let debt_max = DEBT_MAX.as_secs_f64() * self.per_second as f64;
            if missing as f64 > debt_max.max(BURST as f64) {
                (since, taken) = (Instant::now(), 0);
                self.burst(BURST);
                continue;
            }
            self.burst(missing.min(BURST));
            taken += missing.min(BURST);
            if missing < BURST {
                std::thread::sleep(Duration::from_micros(500));
            }
        }
    }

    fn burst(&mut self, count: u64) {
        for _ in 0..count {
            self.turn = self.turn.wrapping_add(1);
            let kind = self.turn % KINDS.len();
            let round = self.turn / KINDS.len();
            // A kind that there is none of leaves its part to the next one.
            let kinds = (kind..kind + KINDS.len()).map(|kind| kind % KINDS.len());
            let mut there = kinds.filter(|kind| !self.ammunition.by_kind[*kind].is_empty());
            let Some(kind) = there.next() else { return };
            let all = &self.ammunition.by_kind[kind];
            let source = self.turn % self.sockets.len();
            let bytes = &all[round % all.len()];
            if self.sockets[source].send(Some(self.to), bytes, None, Ecn::NotEct).is_ok() {
                self.sent[kind].fetch_add(1, Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn each_kind_is_sent_in_equal_parts_from_many_addresses() {
        let to = UdpSocket::bind("127.0.0.1:0").expect("a port");
        to.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        let sample = vec![vec![0x80, 1, 2, 3, 4, 9, 9, 9, 9, 9]];
        let ammunition = Ammunition::all(1, &sample, vec![vec![0xC0; 1_200]]);
        let to_addr = to.local_addr().expect("an address");
        let junk = Junk::begin(to_addr, 5_000, 20, ammunition).expect("sockets");
        let mut sources = std::collections::BTreeSet::new();
        let (mut labels, mut initials) = (0, 0);
        for _ in 0..400 {
            let mut bytes = [0; 2_000];
            let (len, from) = to.recv_from(&mut bytes).expect("it comes");
            sources.insert(from);
            let is_label = bytes[..len].starts_with(&[0x80, 1, 2, 3, 4]) && len == 10;
            labels += u32::from(is_label && bytes[5..10] != [9; 5]);
            initials += u32::from(len == 1_200 && bytes[..len] == [0xC0; 1_200]);
        }
        let (sent, _) = junk.stop();
        assert_eq!(sources.len(), 20);
        assert!((90..=110).contains(&labels) && (90..=110).contains(&initials), "{labels}");
        let (most, least) = (sent.iter().max(), sent.iter().min());
        assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{sent:?}");
    }
}

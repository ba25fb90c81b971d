//! TCP connections that say nothing, and those that say a preface byte by byte.
//!
//! ```text
//!   silent: connect ...................      slow: connect d . a . c . a . p . o . 00 . 01 ...
//! ```
//!
//! Invariant: at most [`HELD_MAX`] connections are held open, the newest ones.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections that are held open at a time.
pub const HELD_MAX: usize = 2_000;

/// Every so manieth connection is a slow one.
const SLOW_EVERY: u64 = 10;

/// What a slow one says.
const PREFACE: &[u8; 24] = b"dacapo\x00\x010123456789abcdef";

/// A connect on loopback that takes longer has failed.
const CONNECT_MAX: Duration = Duration::from_millis(200);

/// A thread that knocks at a TCP port.
pub struct Knocks {
    made: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Knocks {
    /// Begins `per_second` connections to `to`, at most `count`.
    #[must_use]
    pub fn begin(to: SocketAddr, per_second: u64, count: u64) -> Self {
        let (made, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (counted, told) = (Arc::clone(&made), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let (begun, mut held, mut tried) = (Instant::now(), VecDeque::new(), 0_u64);
            while !told.load(Relaxed) {
                let due = (begun.elapsed().as_secs_f64() * per_second as f64) as u64;
                let (from, to_number) = (tried, due.min(count).min(tried + 100));
                tried = tried.max(to_number);
                for number in from..to_number {
                    if let Ok(stream) = TcpStream::connect_timeout(&to, CONNECT_MAX) {
                        counted.fetch_add(1, Relaxed);
                        let said = (number.is_multiple_of(SLOW_EVERY)).then_some(0);
                        held.push_back((stream, said));
                    }
                }
                held.drain(..held.len().saturating_sub(HELD_MAX));
                held.iter_mut().for_each(say_more);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Self { made, stop, thread: Some(thread) }
    }

    /// How many connections were made.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made.load(Relaxed)
    }
}

/// A slow one says its next byte; it never says the last.
fn say_more((stream, said): &mut (TcpStream, Option<usize>)) {
    let Some(at) = said.filter(|at| at + 1 < PREFACE.len()) else { return };
    // One that was closed says nothing any more.
    *said = stream.write_all(&PREFACE[at..=at]).is_ok().then_some(at + 1);
}

impl Drop for Knocks {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

//! [`Near`]: the end that sends, and what a run of it came to.
//!
//! ```text
//!   ack-rel, ack-un   send, wait until it is read | send, wait | …
//!   blast             send send … send, wait | rest 100 ms, which is not counted | …
//!   others            send send …                                           send, wait
//! ```
//!
//! Invariant: the time of a run begins when the association is open and ends when its last byte has
//! been read, less the pauses.

use super::course::Course;
use super::{Point, WHAT, below, window};
use crate::cli::{BenchXtpArgs, XtpMode};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::words::{bytes_words, rate_words};
use dacapo::xtp_net::Service;
use dacapo::xtp_net::{CallError, Counters, Host};
use dacapo::xtp_net::{ContextId, Event, Message, Mode, Open, Read};
use dacapo_sys::process::cpu_time;
use dacapo_term::xtp::below::{self as network, End};
use dacapo_term::xtp::patience::{self, patiently};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The bursts of the paper, bytes, and the pauses between them.
const BURST_LEN: u64 = 1_000_000;
const PAUSE: Duration = Duration::from_millis(100);
/// A far end of which nothing comes for so long is given up.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Packets leave at the latest when so many bytes have been given.
const GIVEN_MAX: u64 = 256 << 10;
/// What the far end tells is shorter: its course has 6,100 figures at most.
const REPORT_LEN_MAX: usize = 128 << 10;

/// What a run, or several, came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Bytes that the sender gave.
    pub bytes_sent: u64,
    /// Those that the far end's user has read.
    pub bytes_read: u64,
    /// Those that it was told are lost.
    pub bytes_lost: u64,
    /// From the first byte given to the last read, without pauses.
    pub seconds: f64,
    /// From the first read of the far end to its last, with pauses.
    pub read_seconds: f64,
    /// Pauses.
    pub paused_seconds: f64,
    /// Processor time of the near end.
    pub near_cpu_s: f64,
    /// Processor time of the far end.
    pub far_cpu_s: f64,
    /// Packets that left the near end, and the calls that they took.
    pub packets_sent: u64,
    /// Calls of the system.
    pub sends: u64,
    /// Packets that came to the far end.
    pub packets_received: u64,
    /// Calls of the system.
    pub receives: u64,
    /// What the far end had read, of the last run (`course.rs`).
    pub course: Course,
}

impl Run {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.bytes_sent += other.bytes_sent;
        self.bytes_read += other.bytes_read;
        self.bytes_lost += other.bytes_lost;
        self.seconds += other.seconds;
        self.read_seconds += other.read_seconds;
        self.paused_seconds += other.paused_seconds;
        self.near_cpu_s += other.near_cpu_s;
        self.far_cpu_s += other.far_cpu_s;
        self.packets_sent += other.packets_sent;
        self.sends += other.sends;
        self.packets_received += other.packets_received;
        self.receives += other.receives;
        self.course.clone_from(&other.course);
    }

    /// Whether every byte was read or is known to be lost.
    pub fn closes(&self) -> bool {
        self.bytes_read.checked_add(self.bytes_lost) == Some(self.bytes_sent)
    }

    /// What was read in the time, Mbit/s.
    pub fn mbit_s(&self) -> f64 {
        self.bytes_read as f64 * 8e-6 / self.seconds.max(1e-9)
    }

    /// The same with the pauses.
    pub fn mbit_s_with_pauses(&self) -> f64 {
        self.bytes_read as f64 * 8e-6 / (self.seconds + self.paused_seconds).max(1e-9)
    }
}

/// An end that sends.
pub struct Near<'a> {
    args: &'a BenchXtpArgs,
    host: &'a str,
    peer: SocketAddr,
    end: End,
    /// What is sent, the longest.
    bytes: Vec<u8>,
}

impl<'a> Near<'a> {
    /// An end with packets of this length.
    pub fn open(args: &'a BenchXtpArgs, host: &'a str, packet_len: u32) -> Result<Self, Failure> {
        let below = below(args, None, Some(packet_len as usize));
        let peer = network::resolve(WHAT, &below, host)?;
        let local = network::on_the_way_to(peer);
        let end = End::with_buffers(WHAT, &below, local, window(args))?;
        let longest = args.send_len.iter().copied().max().unwrap_or(0);
        let bytes = (0..longest).map(|at| (at % 251) as u8).collect();
        Ok(Self { args, host, peer, end, bytes })
    }

    /// One run.
    pub fn run(&mut self, point: Point, progress: &mut Progress) -> Result<Run, Failure> {
        let failed = |this: &mut Self, error: &CallError| {
            let what = format!("{WHAT} to {}", this.host);
            this.end.failure(&what, error)
        };
        let open = self.end.with_ends(self.what_to_open(point.mode), self.args.port);
        let id = self.end.host.open(&open).map_err(|error| failed(self, &error))?;
        let run = self.run_in(id, point, progress);
        if run.is_err() {
            // However it ended, the peer is not left waiting.
            let _ = self.end.host.release(id);
        }
        let (mut run, report) = run.map_err(|error| failed(self, &error))?;
        run.take_report(&report)?;
        Ok(run)
    }

    fn what_to_open(&self, mode: XtpMode) -> Open {
        let is_lossy = !mode.is_reliable();
        let mode = Mode {
            without_repair: is_lossy,
            without_check: is_lossy || self.args.no_check,
            fast_report: !is_lossy,
            limits: network::limits_at(self.args.rate),
            ..Mode::default()
        };
        Open { peer: self.peer, ends: None, service: Service::Stream, mode }
    }

    fn run_in(
        &mut self,
        id: ContextId,
        point: Point,
        progress: &mut Progress,
    ) -> Result<(Run, Vec<u8>), CallError> {
        let until = self.end.host.after(SILENCE_MAX);
        self.end.host.wait_open(id, until)?;
        let (cpu, before) = (cpu_time(), *self.end.host.counters());
        let mut run = Run::default();
        self.send_all(id, point, &mut run, progress)?;
        run.near_cpu_s = cpu_time().saturating_sub(cpu).as_secs_f64();
        run.count_packets(&before, self.end.host.counters());
        self.end.host.finish(id)?;
        let report = self.read_report(id)?;
        let until = self.end.host.after(SILENCE_MAX);
        self.end.host.close(id, until)?;
        Ok((run, report))
    }

    fn send_all(
        &mut self,
        id: ContextId,
        point: Point,
        run: &mut Run,
        progress: &mut Progress,
    ) -> Result<(), CallError> {
        let send_len = u64::from(point.send_len.max(1));
        let burst_len = if point.mode == XtpMode::Blast { BURST_LEN } else { u64::MAX };
        let (mut sends, burst) = (self.args.bytes.div_ceil(send_len), burst_len.div_ceil(send_len));
        let over_at = self.args.run_max.and_then(|most| Instant::now().checked_add(most));
        loop {
            let count = sends.min(burst);
            let began = Instant::now();
            let sent = self.send_burst(id, point, (count, over_at), &mut |bytes, took| {
                show(progress, point, run.bytes_sent + bytes, run.seconds + took);
            })?;
            run.bytes_sent += sent;
            run.seconds += began.elapsed().as_secs_f64();
            sends -= count;
            if sends == 0 || is_over(over_at) {
                return Ok(());
            }
            let began = Instant::now();
            let left = over_at.map_or(PAUSE, |at| at.saturating_duration_since(began));
            self.rest(PAUSE.min(left))?;
            run.paused_seconds += began.elapsed().as_secs_f64();
            if is_over(over_at) {
                return Ok(());
            }
        }
    }

    /// Sends so many messages, or fewer where the time is over, and waits until the last one has
    /// been read; how many bytes they were.
    fn send_burst(
        &mut self,
        id: ContextId,
        point: Point,
        (count, over_at): (u64, Option<Instant>),
        shows: &mut dyn FnMut(u64, f64),
    ) -> Result<u64, CallError> {
        let (began, len) = (Instant::now(), point.send_len as usize);
        let (mut given, mut sent) = (0, 0);
        for number in 1..=count {
            let is_last = number == count || is_over(over_at);
            let asks_delivery = point.mode.waits() || is_last;
            let data = self.bytes.get(..len).unwrap_or_default();
            let is_end = is_last || point.mode.sends_messages();
            let message = Message { data, is_end, tag: None, asks_delivery, has_more: !is_end };
            patience::write(&mut self.end.host, id, &message, SILENCE_MAX)?;
            sent += len as u64;
            given += len as u64;
            if asks_delivery {
                self.wait_delivered(id)?;
            } else if given >= GIVEN_MAX {
                turn(&mut self.end.host, Duration::ZERO)?;
            } else {
                continue;
            }
            given = 0;
            shows(sent, began.elapsed().as_secs_f64());
            if is_last {
                break;
            }
        }
        Ok(sent)
    }

    /// Waits until the far end's user has read everything for which that was asked.
    fn wait_delivered(&mut self, id: ContextId) -> Result<(), CallError> {
        let peer = self.peer;
        patiently(&mut self.end.host, SILENCE_MAX, |host, until| {
            loop {
                while let Some(event) = host.engine().poll_event() {
                    match event {
                        Event::Delivered(of) if of == id => return Ok(()),
                        Event::Ended(of, end) if of == id => {
                            return Err(CallError::Ended(end, host.fault_of(peer)));
                        }
                        _ => {}
                    }
                }
                let now = host.now();
                if now >= until {
                    return Err(CallError::TimedOut);
                }
                turn(host, until.since(now))?;
            }
        })
    }

    fn rest(&mut self, pause: Duration) -> Result<(), CallError> {
        let until = self.end.host.after(pause);
        loop {
            let now = self.end.host.now();
            if now >= until {
                return Ok(());
            }
            turn(&mut self.end.host, until.since(now))?;
        }
    }

    /// What the far end tells, whole or as long as may be.
    fn read_report(&mut self, id: ContextId) -> Result<Vec<u8>, CallError> {
        let (mut report, mut len) = (vec![0; REPORT_LEN_MAX], 0);
        while let Some(room) = report.get_mut(len..).filter(|room| !room.is_empty()) {
            let host = &mut self.end.host;
            match patiently(host, SILENCE_MAX, |host, until| host.read(id, room, until))? {
                Read::Data { len: more, is_end, .. } => {
                    len += more;
                    if is_end {
                        break;
                    }
                }
                _ => break,
            }
        }
        report.truncate(len);
        Ok(report)
    }
}

impl Run {
    fn count_packets(&mut self, before: &Counters, after: &Counters) {
        self.packets_sent = after.packets_sent.saturating_sub(before.packets_sent);
        self.sends = after.sends.saturating_sub(before.sends);
    }

    fn take_report(&mut self, report: &[u8]) -> Result<(), Failure> {
        let told: Value = serde_json::from_slice(report).unwrap_or_default();
        let number = |key: &str| told.get(key).and_then(Value::as_u64);
        let told = || {
            self.bytes_read = number("bytes")?;
            self.bytes_lost = number("lost")?;
            self.read_seconds = number("read_us")? as f64 * 1e-6;
            self.far_cpu_s = number("cpu_us")? as f64 * 1e-6;
            self.packets_received = number("packets")?;
            self.receives = number("receives")?;
            self.course = Course::from_json(told.get("course")?)?;
            Some(())
        };
        let mut told = told;
        told().ok_or_else(|| {
            let text = "the far end does not tell what it has read: is it `dacapo bench xtp \
                        --listen`, of this version?";
            Failure::new(Exit::Failure, WHAT, text)
        })
    }
}

/// Whether the time of a run is over, when it has one.
fn is_over(at: Option<Instant>) -> bool {
    at.is_some_and(|at| Instant::now() >= at)
}

fn turn(host: &mut Host, most: Duration) -> Result<(), CallError> {
    host.turn(most)?;
    host.take_alarm().map_or(Ok(()), |token| Err(CallError::Interrupted(token)))
}

fn show(progress: &mut Progress, point: Point, bytes: u64, seconds: f64) {
    if progress.is_due() {
        let rate = bytes as f64 * 8.0 / seconds.max(1e-9);
        let so_far = format!("{} sent, {}", bytes_words(bytes), rate_words(rate));
        progress.show(&format!("{}: {so_far}", point.in_words()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_far_end_tells_is_taken_and_sums_close_or_do_not() {
        let mut run = Run { bytes_sent: 10, seconds: 8e-6, ..Run::default() };
        let told = br#"{"bytes":7,"lost":3,"read_us":4,"cpu_us":5,"packets":2,"receives":1,
            "course":[2,7]}"#;
        run.take_report(told).unwrap();
        assert!(run.closes() && run.mbit_s() == 7.0 && run.read_seconds == 4e-6);
        let both = Run { paused_seconds: 8e-6, ..run.clone() };
        assert_eq!(both.mbit_s_with_pauses(), 3.5);
        run.add(&both);
        assert_eq!((run.bytes_sent, run.bytes_read, run.packets_received), (20, 14, 4));
        run.bytes_read += 1;
        assert!(!run.closes());
    }

    #[test]
    fn what_is_no_report_is_said_to_be_none() {
        for wrong in [&b""[..], b"{}", b"no", br#"{"bytes":7,"lost":-3}"#] {
            let failure = Run::default().take_report(wrong).unwrap_err();
            assert!(failure.text.contains("bench xtp --listen"), "{}", failure.text);
        }
    }
}

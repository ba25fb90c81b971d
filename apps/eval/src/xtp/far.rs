//! The far end: reads what comes, one association after the other, and tells what it has read.
//!
//! ```text
//!   accept -> read to the end -> JSON, as a message of the other stream -> close
//! ```
//!
//! Invariants: one association is read at a time, others wait within their windows, [`WAITING_MAX`]
//! at most; one that says nothing for [`IDLE_MAX`] is let go; nothing that a peer does ends the far
//! end.

use super::course::Course;
use super::{WHAT, below, window};
use crate::cli::{BenchXtpArgs, Over};
use crate::exit::{Exit, Failure};
use crate::output::{line, note};
use dacapo::Place;
use dacapo::xtp_net::{CallError, Incoming};
use dacapo::xtp_net::{Listen, Message, Mode, Read};
use dacapo_sys::process::cpu_time;
use dacapo_term::xtp::below::{End, loopback};
use serde_json::{Value, json};
use std::io::stdin;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The token of standard input at the host; that of signals is 0.
const INPUT: u16 = 1;
/// How long an association may say nothing.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// How long is waited for the next one at once.
const SLICE: Duration = Duration::from_secs(60);
/// Associations that wait to be read.
const WAITING_MAX: usize = 4;
/// What is read at once.
const READ_LEN: usize = 256 << 10;

/// Listens until it is interrupted, or as its arguments say.
pub fn serve(args: &BenchXtpArgs, place: Place) -> Result<Exit, Failure> {
    let what = "bench xtp --listen";
    // Over Ethernet the interface says how long packets can be.
    let longest = args.packet_len.iter().copied().max().map(|len| len as usize);
    let packet_len = longest.filter(|_| args.over != Over::Ethernet);
    let below = below(args, Some(place), packet_len);
    let mut end = End::with_buffers(what, &below, loopback(), window(args))?;
    let listen = Listen { backlog_max: WAITING_MAX, mode: mode(), ..Listen::on(args.port) };
    let failed = |text: &dyn std::fmt::Display| Failure::run_time(what, text);
    end.host.listen(listen).map_err(|error| failed(&error))?;
    if args.until_eof {
        end.host.watch(stdin().as_fd(), INPUT).map_err(|error| failed(&error))?;
    }
    announce(args, &end);
    let mut far = Far { args, end, buffer: vec![0; READ_LEN] };
    let mut count = 0;
    loop {
        match far.serve_next() {
            Ok(has_come) => count += u32::from(has_come),
            Err(CallError::Interrupted(INPUT)) => return Ok(Exit::Success),
            Err(error) => return Err(far.end.failure(what, &error)),
        }
        if args.count.is_some_and(|most| count >= most) {
            // The last word to the peer may have been lost; who comes now is refused.
            far.end.host.engine().unlisten(args.port);
            far.end.linger();
            return Ok(Exit::Success);
        }
    }
}

fn mode() -> Mode {
    Mode { fast_report: true, ..Mode::default() }
}

fn announce(args: &BenchXtpArgs, end: &End) {
    let address = end.host.local();
    match args.json {
        true => line(json!({ "event": "listening", "addresses": [address.to_string()] })),
        false => line(format_args!(
            "listening on {address}; on the other host: dacapo bench xtp HOST (the same --over)"
        )),
    }
}

struct Far<'a> {
    args: &'a BenchXtpArgs,
    end: End,
    buffer: Vec<u8>,
}

impl Far<'_> {
    /// Whether an association came, and went, however it did.
    fn serve_next(&mut self) -> Result<bool, CallError> {
        let until = self.end.host.after(SLICE);
        let incoming = match self.end.host.accept(until) {
            Ok(incoming) => incoming,
            Err(CallError::TimedOut) => return Ok(false),
            Err(error) => return Err(error),
        };
        let served = self.attend(&incoming);
        match served {
            Ok(report) => self.tell(&incoming, "measured", &report),
            Err(error @ (CallError::Interrupted(_) | CallError::Host(_))) => return Err(error),
            Err(error) => {
                // It may have gone by itself.
                let _ = self.end.host.release(incoming.id);
                self.tell(&incoming, "left", &json!({ "error": error.to_string() }));
            }
        }
        Ok(true)
    }

    fn attend(&mut self, incoming: &Incoming) -> Result<Value, CallError> {
        let (host, id) = (&mut self.end.host, incoming.id);
        let (cpu, before) = (cpu_time(), *host.counters());
        let (mut bytes, mut lost, mut reads) = (0_u64, 0_u64, None);
        let mut course = Course::default();
        loop {
            let until = host.after(IDLE_MAX);
            match host.read(id, &mut self.buffer, until)? {
                Read::Data { len, .. } => {
                    let now = Instant::now();
                    let first = reads.map_or(now, |(first, _)| first);
                    reads = Some((first, now));
                    course.pass(now.duration_since(first), bytes);
                    bytes = bytes.saturating_add(len as u64);
                }
                Read::Hole { len } => lost = lost.saturating_add(len),
                Read::Finished => break,
                // A call that waits does not say so.
                Read::Nothing => {}
            }
        }
        let after = *host.counters();
        let took = reads.map_or(Duration::ZERO, |(first, last)| last.duration_since(first));
        let report = json!({
            "bytes": bytes,
            "lost": lost,
            "read_us": took.as_micros() as u64,
            "cpu_us": cpu_time().saturating_sub(cpu).as_micros() as u64,
            "packets": after.packets_received.saturating_sub(before.packets_received),
            "receives": after.receives.saturating_sub(before.receives),
            "course": course.to_json(),
        });
        let until = host.after(IDLE_MAX);
        host.write(id, &Message::whole(report.to_string().as_bytes()), until)?;
        host.close(id, until)?;
        Ok(report)
    }

    /// Tells who watches the far end. Nobody watches one that the command has started: what is not
    /// read would fill the pipe, and stop it.
    fn tell(&self, incoming: &Incoming, event: &str, about: &Value) {
        if self.args.until_eof {
            return;
        }
        let peer = incoming.peer;
        match (self.args.json, about.get("error").and_then(Value::as_str)) {
            (true, _) => {
                line(json!({ "event": event, "peer": peer.to_string(), "about": about }));
            }
            (false, Some(error)) => note(format_args!("{WHAT}: {peer} {event}: {error}")),
            (false, None) => line(format_args!("{peer}: {about}")),
        }
    }
}

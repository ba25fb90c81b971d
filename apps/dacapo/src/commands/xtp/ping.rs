//! `dacapo xtp ping`: round trips of transactions.
//!
//! ```text
//!   FIRST [request, WCLOSE] ->  <- DATA [response, …]  -> END       a transaction, a time
//! ```

use super::below::{self, End};
use crate::app::interrupted;
use crate::cli::XtpPingArgs;
use crate::exit::{Exit, Failure};
use dacapo::xtp_net::CallError;
use dacapo::xtp_net::Service;
use dacapo::xtp_net::{ContextId, Message, Mode, Open, Read};
use dacapo::{Random, Time};
use dacapo_sys::signal::Signal;
use serde_json::json;
use std::fmt;
use std::time::Duration;

const WHAT: &str = "xtp ping";

/// Runs the command.
pub fn run(args: &XtpPingArgs) -> Result<Exit, Failure> {
    let peer = below::resolve(WHAT, &args.below, &args.host)?;
    let end = End::open(WHAT, &args.below, below::on_the_way_to(peer))?;
    let open = Open { peer, ends: None, service: Service::Transaction, mode: Mode::default() };
    let open = end.with_ends(open, args.below.port);
    let mut request = vec![0; args.size as usize];
    Random::from_number(u64::from(args.size)).fill(&mut request);
    let mut pinger = Pinger { args, end, open, request, times_ns: Vec::new(), sent: 0, last: None };
    let signal = pinger.ping_all();
    if signal.is_none() {
        pinger.end.linger();
    }
    pinger.tell();
    pinger.end.check_capture()?;
    match (signal, pinger.last) {
        (Some(signal), _) => Err(interrupted(signal)),
        (None, Some(failure)) if pinger.times_ns.is_empty() => Err(failure),
        _ => Ok(Exit::Success),
    }
}

/// Why there was no answer.
#[derive(Debug)]
enum PingError {
    /// The call failed.
    Call(CallError),
    /// What came was not what had been sent.
    Different,
}

impl From<CallError> for PingError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl fmt::Display for PingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => write!(f, "{error}"),
            Self::Different => {
                f.write_str("other bytes came back; does `dacapo xtp listen` run there?")
            }
        }
    }
}

struct Pinger<'a> {
    args: &'a XtpPingArgs,
    end: End,
    open: Open,
    request: Vec<u8>,
    times_ns: Vec<u64>,
    sent: u32,
    /// Why the last that was not answered was not.
    last: Option<Failure>,
}

impl Pinger<'_> {
    fn ping_all(&mut self) -> Option<Signal> {
        for number in 0..self.args.count {
            let began = self.end.host.now();
            self.sent += 1;
            match self.ping(began) {
                Ok(took) => {
                    self.times_ns.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
                    self.tell_one(number, Ok(took));
                }
                Err(PingError::Call(CallError::Interrupted(_))) => return self.end.signal(),
                Err(error) => {
                    self.tell_one(number, Err(&error));
                    self.last = Some(self.failure(&error));
                }
            }
            if number + 1 < self.args.count {
                let rested = self.rest(began + self.args.interval);
                if rested.is_some() {
                    return rested;
                }
            }
        }
        None
    }

    fn failure(&mut self, error: &PingError) -> Failure {
        let what = format!("{WHAT} {}", self.args.host);
        match error {
            PingError::Call(error) => self.end.failure(&what, error),
            PingError::Different => Failure::new(Exit::Mismatch, &what, error),
        }
    }

    /// Lets time pass.
    fn rest(&mut self, until: Time) -> Option<Signal> {
        loop {
            let now = self.end.host.now();
            if now >= until {
                return None;
            }
            if let Err(error) = self.end.host.turn(until.since(now)) {
                self.last = Some(Failure::run_time(WHAT, error));
                return None;
            }
            if self.end.host.take_alarm().is_some() {
                return self.end.signal();
            }
        }
    }

    fn ping(&mut self, began: Time) -> Result<Duration, PingError> {
        let until = began + self.args.wait;
        let id = self.end.host.open(&self.open)?;
        let answered = self.transact(id, until);
        let took = self.end.host.now().since(began);
        let closed = match answered {
            Ok(()) => self.end.host.close(id, until).map_err(PingError::Call),
            Err(error) => {
                self.end.host.release(id)?;
                Err(error)
            }
        };
        closed.map(|()| took)
    }

    fn transact(&mut self, id: ContextId, until: Time) -> Result<(), PingError> {
        self.end.host.write(id, &Message::whole(&self.request), until)?;
        self.end.host.finish(id)?;
        let mut response = vec![0; self.request.len() + 1];
        let mut len = 0;
        loop {
            let room = response.get_mut(len..).unwrap_or_default();
            match self.end.host.read(id, room, until)? {
                Read::Data { len: more, is_end, .. } => {
                    len += more;
                    if is_end || len > self.request.len() {
                        break;
                    }
                }
                _ => break,
            }
        }
        if response.get(..len) == Some(self.request.as_slice()) {
            return Ok(());
        }
        Err(PingError::Different)
    }

    fn tell_one(&self, number: u32, result: Result<Duration, &PingError>) {
        let (host, size) = (&self.args.host, self.args.size);
        let (event, text) = match result {
            Ok(took) => {
                let us = took.as_nanos() as f64 / 1e3;
                let text = format!("{size} bytes from {host}: {:.3} ms", us / 1e3);
                (json!({ "event": "answered", "number": number, "us": us }), text)
            }
            Err(error) => {
                let error = error.to_string();
                let text = format!("no answer from {host}: {error}");
                (json!({ "event": "failed", "number": number, "error": error }), text)
            }
        };
        below::tell(self.args.below.json, &event, &text);
    }

    fn tell(&mut self) {
        self.times_ns.sort_unstable();
        let answered = self.times_ns.len() as u64;
        let at = |percent: u64| place(&self.times_ns, percent).map(|ns| ns as f64 / 1e3);
        let event = json!({
            "event": "totals",
            "sent": self.sent,
            "answered": answered,
            "us": { "min": at(0), "p50": at(50), "p99": at(99), "max": at(100) },
            "packets": below::packets_json(&self.end.host),
        });
        let ms =
            |percent| at(percent).map_or_else(|| "-".to_owned(), |us| format!("{:.3}", us / 1e3));
        let text = format!(
            "{} sent, {answered} answered; min/p50/p99/max {}/{}/{}/{} ms; {}",
            self.sent,
            ms(0),
            ms(50),
            ms(99),
            ms(100),
            below::packets_words(&self.end.host)
        );
        below::tell(self.args.below.json, &event, &text);
    }
}

/// The value below or at which so many of a hundred are (nearest rank); `None` without values.
fn place(sorted: &[u64], percent: u64) -> Option<u64> {
    let count = sorted.len() as u64;
    let rank = (count * percent).div_ceil(100).max(1);
    sorted.get(usize::try_from(rank - 1).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!([0, 50, 99, 100].map(|at| place(&values, at)), [1, 100, 198, 200].map(Some));
        assert_eq!([0, 50, 99, 100].map(|at| place(&[7], at)), [Some(7); 4]);
        assert_eq!(place(&[], 50), None);
    }
}

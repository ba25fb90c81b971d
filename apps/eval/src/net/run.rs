//! [`End`]: one end of a run: its flows, each in a thread, and what it took.
//!
//! ```text
//!   near: activate   send, receive, ping        finish   close
//!   far:  activate   receive, send, answer      finish   close
//!         |--------------- processor time of each ---------|
//! ```
//!
//! Of what is sent once for several, the near end has a session with each, and sends by the first.
//!
//! Invariants: every thread has ended when a run returns; what became of the units is asked when
//! the session is closed, and the account is the session's own.

use super::ask::{Ask, Run};
use super::asked::lost;
use super::echo::{self, Echoes};
use super::flow::{self, Got, Pulse, Sent};
use crate::exit::Failure;
use dacapo::{Account, SegmentCounts, Session};
use dacapo::{Code, Error};
use dacapo_sys::process::cpu_time;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often who watches is asked.
const TICK: Duration = Duration::from_millis(100);

/// Which end of a run this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It has asked.
    Near,
    /// It was asked.
    Far,
}

/// Packets of a flow that have come by now, when they were counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packets {
    /// Packets.
    pub count: u64,
    /// How long they took to come.
    pub seconds: f64,
}

/// A session of a run.
pub struct Party {
    /// The other end, as the user has named it; at the far end nobody is named.
    pub host: Option<String>,
    /// The session with the other end.
    pub session: Session,
}

impl Party {
    fn failed(&self, error: &Error) -> Failure {
        match &self.host {
            Some(host) => lost(host, error),
            None => Failure::core("bench net", error),
        }
    }
}

/// What a run was at one end.
#[derive(Debug, Default)]
pub struct End {
    /// The flows that this end sent.
    pub sent: Vec<Sent>,
    /// Those that it received.
    pub got: Vec<Got>,
    /// Packets that came, of all flows; none when no module counts them.
    pub packets: Option<Packets>,
    /// How long units were there and back; of the near end of an echo.
    pub echoes: Option<Echoes>,
    /// Processor time of this process.
    pub cpu_seconds: f64,
    /// Turns of the loop.
    pub turns: u64,
    /// Calls that sent something, by how many datagrams each took; control included.
    pub sends: SegmentCounts,
    /// What became of every unit, in each session.
    pub accounts: Vec<Account>,
}

/// What a thread brings.
enum Brought {
    Sent(Sent),
    Got(Got),
    Echoes(Echoes),
}

impl End {
    /// Runs this end. `watch` is asked again and again whether it may go on.
    ///
    /// # Errors
    /// Why the run ended before its end; what `watch` says.
    pub fn run(
        side: Side,
        parties: &[Party],
        ask: &Ask,
        mut watch: impl FnMut(&Pulse) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let mut end = Self::default();
        let Some((first, others)) = parties.split_first() else { return Ok(end) };
        let endpoint = first.session.endpoint();
        let (cpu, turns) = (cpu_time(), endpoint.counters().turns);
        let sends = || endpoint.transport_stats().sum().segments_per_call;
        let sent_before = sends();
        parties.iter().try_for_each(|party| activate(side, party))?;
        end.flows(side, first, ask, &mut watch)?;
        let (out, _) = flow_names(side, ask);
        for party in others {
            let mut finished = out
                .iter()
                .map(|name| party.session.sender(name).and_then(|mut flow| flow.finish()));
            finished.try_for_each(|it| it.map_err(|error| party.failed(&error)))?;
        }
        for Party { session, .. } in parties {
            // The account of who ended in disorder is there too, and shows it.
            end.accounts.push(session.close().unwrap_or_else(|_| session.account()));
        }
        end.cpu_seconds = cpu_time().saturating_sub(cpu).as_secs_f64();
        end.turns = endpoint.counters().turns.saturating_sub(turns);
        end.sends = sends().since(&sent_before);
        Ok(end)
    }

    fn flows(
        &mut self,
        side: Side,
        party: &Party,
        ask: &Ask,
        watch: &mut dyn FnMut(&Pulse) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (pulse, session) = (Pulse::default(), &party.session.waiting(ask.wait.into()));
        let (out, into) = flow_names(side, ask);
        let began = Instant::now();
        std::thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            for task in tasks(side, ask, &out, &into) {
                let (tell, pulse) = (tell.clone(), &pulse);
                // Who is told waits until all have told.
                scope.spawn(move || drop(tell.send(task(session, pulse))));
            }
            drop(tell);
            let mut failure = None;
            let mut stop = |why: Failure| {
                pulse.is_over.store(true, Ordering::Relaxed);
                failure.get_or_insert(why);
            };
            loop {
                let came = told.recv_timeout(TICK);
                self.count_packets(session, &into, began);
                match came {
                    Ok(Ok(brought)) => self.take(brought),
                    Ok(Err(error)) => stop(party.failed(&error)),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => watch(&pulse).unwrap_or_else(&mut stop),
                }
            }
            failure.map_or(Ok(()), Err)
        })
    }

    fn take(&mut self, brought: Brought) {
        match brought {
            Brought::Sent(sent) => self.sent.push(sent),
            Brought::Got(got) => self.got.push(got),
            Brought::Echoes(echoes) => self.echoes = Some(echoes),
        }
    }

    /// Looks how many packets have come. A flow that has ended is not counted any more.
    fn count_packets(&mut self, session: &Session, into: &[String], began: Instant) {
        let lowest = |name: &String| {
            let measured = session.measured(name)?;
            measured.modules.last().map(|it| it.counters.up.packets)
        };
        let count: Option<u64> = into.iter().map(lowest).sum();
        if let Some(count) = count.filter(|count| *count > 0) {
            let seconds = began.elapsed().as_secs_f64();
            let packets = self.packets.get_or_insert_default();
            if count > packets.count {
                *packets = Packets { count, seconds };
            }
        }
    }
}

/// Lets the flows of a session run.
fn activate(side: Side, party: &Party) -> Result<(), Failure> {
    match party.session.activate() {
        // A near end with little to send is through before we look; what it sent is there.
        Err(error) if side == Side::Far && error.code == Code::Closed => Ok(()),
        activated => activated.map_err(|error| party.failed(&error)),
    }
}

/// The flows that an end sends, and those that it receives.
fn flow_names(side: Side, ask: &Ask) -> (Vec<String>, Vec<String>) {
    let (up, down) = ask.flow_names();
    if side == Side::Near { (up, down) } else { (down, up) }
}

/// What a thread does.
type Task<'a> = Box<dyn FnOnce(&Session, &Pulse) -> Result<Brought, Error> + Send + 'a>;

/// A task for each flow; those of an echo are one.
fn tasks<'a>(side: Side, ask: &'a Ask, out: &'a [String], into: &'a [String]) -> Vec<Task<'a>> {
    match (ask.run, side) {
        (Run::Echo, Side::Near) => {
            vec![Box::new(|session, pulse| echo::ask(session, ask, pulse).map(Brought::Echoes))]
        }
        (Run::Echo, Side::Far) => {
            vec![Box::new(|session, pulse| echo::answer(session, ask, pulse).map(Brought::Sent))]
        }
        (Run::Bulk, _) => {
            let send = |name: &'a String| -> Task<'a> {
                Box::new(|session, pulse| flow::send(session, name, ask, pulse).map(Brought::Sent))
            };
            let receive = |name: &'a String| -> Task<'a> {
                Box::new(|session, pulse| {
                    flow::receive(session, name, ask, pulse).map(Brought::Got)
                })
            };
            out.iter().map(send).chain(into.iter().map(receive)).collect()
        }
    }
}

//! [`FanOutMember`]: one receiver of a flow that is sent once for several.
//!
//! The account of one Participant with a flow whose sender belongs to all ([`super::FanOut`]):
//! from which unit on it takes part, what END it was told, its REPORT. Nothing that a member does
//! holds another up.
//!
//! ```text
//!   units fed   0 1 2 3 4 5 6 7 8 9            to all, once
//!   member A    |<------ 10 ------->|          took part before the first
//!   member B            |<-- 4 -->|  END       took part from 4 on, left after 7
//! ```
//!
//! Invariant: what a member is told at its END is what was fed since it takes part.

use crate::error::Error;
use crate::flow::sender::ledger_from;
use crate::flow::{FlowEvent, FlowOut, hash_bytes};
use crate::ids::FanOutId;
use crate::ledger::{Ledger, UnitHash};
use dacapo_packet::{Packet, Pool};
use dacapo_wire::message::Message;
use dacapo_wire::session::{CODE_SUCCESS, End, Report};
use std::collections::VecDeque;

/// The most that waits for the stream of a member, in bytes; who is further behind is cut off, so
/// that the others need not wait.
pub(crate) const BACKLOG_BYTES_MAX: usize = 1 << 20;

/// What a sender has fed so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fed {
    pub units: u64,
    pub bytes: u64,
    /// Where one was agreed.
    pub hash: Option<UnitHash>,
}

impl Fed {
    /// What was fed since then.
    fn since(&self, before: &Self) -> Self {
        let hash = self.hash.zip(before.hash).map(|(now, then)| now.minus(then));
        let (units, bytes) = (self.units - before.units, self.bytes - before.bytes);
        Self { units, bytes, hash }
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    Runs,
    /// END was said after so much.
    Ended(Fed),
    /// It is accounted for.
    Reported,
}

/// One receiver of a flow that is sent once for several.
#[derive(Debug)]
pub(crate) struct FanOutMember {
    /// What it takes part in.
    fan_out: FanOutId,
    /// The flow's number in the session with the participant.
    id: u16,
    base: Fed,
    state: State,
    /// What waits for its stream, where it has one.
    backlog: VecDeque<Packet>,
    backlog_bytes: usize,
}

impl FanOutMember {
    /// Takes part from now on.
    pub fn new(fan_out: FanOutId, id: u16, fed: Fed) -> Self {
        let (state, backlog, backlog_bytes) = (State::Runs, VecDeque::new(), 0);
        Self { fan_out, id, base: fed, state, backlog, backlog_bytes }
    }

    /// What it takes part in.
    pub fn fan_out(&self) -> FanOutId {
        self.fan_out
    }

    /// Keeps a packet for its stream; gives it back when too much waits already.
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        let bytes = self.backlog_bytes + packet.payload_len();
        if bytes > BACKLOG_BYTES_MAX {
            return Err(packet);
        }
        self.backlog_bytes = bytes;
        self.backlog.push_back(packet);
        Ok(())
    }

    /// The next packet for its stream.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.backlog.pop_front()?;
        self.backlog_bytes -= packet.payload_len();
        Some(packet)
    }

    pub fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Gives every view back.
    pub fn flush(&mut self, pool: &mut Pool) {
        self.backlog.drain(..).for_each(|packet| pool.free(packet));
        self.backlog_bytes = 0;
    }

    /// How many units had been fed before it took part.
    pub fn base(&self) -> u64 {
        self.base.units
    }

    /// It is sent to: END has not been said.
    pub fn runs(&self) -> bool {
        matches!(self.state, State::Runs)
    }

    pub fn is_reported(&self) -> bool {
        matches!(self.state, State::Reported)
    }

    /// Says END, once: it gets nothing that is fed from now on.
    pub fn end(&mut self, fed: &Fed, failure: Option<&Error>, out: &mut FlowOut) {
        if !self.runs() {
            return;
        }
        let fed = fed.since(&self.base);
        self.state = State::Ended(fed);
        out.messages.push(Message::End(End {
            flow: self.id,
            epoch: 0,
            units: fed.units,
            bytes: fed.bytes,
            hash: hash_bytes(fed.hash.as_ref()),
            code: failure.map_or(CODE_SUCCESS, |error| error.code as u16),
            text: failure.map_or_else(String::new, |error| error.text.clone()),
        }));
    }

    /// The receiver's account has come.
    ///
    /// # Errors
    /// What is wrong with it; nothing is taken then.
    pub fn handle_report(&mut self, report: &Report, out: &mut FlowOut) -> Result<(), String> {
        let State::Ended(fed) = self.state else {
            return Err("REPORT that no END has asked for".into());
        };
        let ledger = ledger_from(fed.units, report);
        if !ledger.closes() {
            return Err(format!("REPORT does not add up to the {} units", fed.units));
        }
        let hash = fed.hash.filter(|_| ledger.delivered == fed.units);
        let hash = hash.map(|hash| report.hash == hash.to_bytes());
        self.state = State::Reported;
        out.events.push(FlowEvent::Ended { ledger: Box::new(ledger), hash, failure: None });
        Ok(())
    }

    /// The session ended abnormally: nobody can say what became of the units.
    pub fn give_up(&mut self, fed: &Fed, out: &mut FlowOut) {
        let units = match self.state {
            State::Runs => fed.since(&self.base).units,
            State::Ended(fed) => fed.units,
            State::Reported => return,
        };
        self.state = State::Reported;
        let mut ledger = Ledger { sent: units, ..Ledger::default() };
        ledger.give_up();
        out.events.push(FlowEvent::Ended { ledger: Box::new(ledger), hash: None, failure: None });
    }
}

//! [`RxAccount`]: what became of the units of a flow at its receiver, and what its sender is told.
//!
//! Invariants: END counts once; the account is told once to the application and once to the
//! sender; at the end it closes, whatever the sender says there was.

use crate::error::{Error, Fault};
use crate::flow::{FlowEvent, FlowOut, FlowParams, hash_bytes};
use crate::ledger::{Ledger, UnitHash};
use crate::port::{Ending, Taken, UnitView};
use dacapo_wire::message::Message;
use dacapo_wire::session::{CODE_SUCCESS, End, Report};

#[derive(Debug)]
pub(crate) struct RxAccount {
    id: u16,
    ledger: Ledger,
    /// Where one was agreed.
    hash: Option<UnitHash>,
    /// What the sender has said at its end.
    end: Option<End>,
    /// The application knows that the flow failed: one cause is reported once.
    failure_told: bool,
    is_finished: bool,
    is_reported: bool,
}

impl RxAccount {
    pub fn new(params: &FlowParams) -> Self {
        Self {
            id: params.id,
            ledger: Ledger::default(),
            hash: params.hash(),
            end: None,
            failure_told: false,
            is_finished: false,
            is_reported: false,
        }
    }

    /// The flow's number.
    #[inline]
    pub fn id(&self) -> u16 {
        self.id
    }

    #[inline]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The flow is over at this end.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Whether the sender has said END.
    #[inline]
    pub fn has_end(&self) -> bool {
        self.end.is_some()
    }

    /// How many units there were, once the sender has said so.
    #[inline]
    pub fn units_said(&self) -> Option<u64> {
        Some(self.end.as_ref()?.units)
    }

    /// The sender says END: true when it is news. Who hears it after giving up answers at once with
    /// what came.
    pub fn handle_end(&mut self, end: End, out: &mut FlowOut) -> bool {
        if self.end.is_some() || self.is_reported {
            return false;
        }
        if self.is_finished {
            self.report(end.units, out);
            return false;
        }
        self.end = Some(end);
        true
    }

    /// Whether a hash is made of what is delivered.
    #[inline]
    pub fn has_hash(&self) -> bool {
        self.hash.is_some()
    }

    /// Adds a unit that was delivered to the hash; its number in the flow of all is `number`.
    #[inline]
    pub fn hash(&mut self, number: u64, unit: &UnitView<'_>, taken: Taken) {
        if let (Some(hash), Taken::Delivered) = (&mut self.hash, taken) {
            hash.add(number, unit.len(), unit.pieces());
        }
    }

    /// The sink had a unit of `len` bytes.
    #[inline]
    pub fn note_taken(&mut self, len: usize, taken: Taken) {
        match taken {
            Taken::Delivered => {
                self.ledger.delivered += 1;
                self.ledger.bytes += len as u64;
            }
            Taken::Late => self.ledger.late += 1,
            Taken::Dropped(reason) => self.ledger.dropped[reason.index()] += 1,
        }
    }

    pub fn note_duplicate(&mut self) {
        self.ledger.duplicates += 1;
    }

    pub fn note_after_lost(&mut self) {
        self.ledger.after_lost += 1;
    }

    pub fn note_lost(&mut self, count: u64) {
        self.ledger.lost += count;
    }

    /// There were at least so many units.
    #[inline]
    pub fn note_seen(&mut self, units: u64) {
        self.ledger.sent = self.ledger.sent.max(units);
    }

    /// The way is gone: told, unless the sender has told the cause in its END.
    pub fn note_failed(&mut self, error: &Error, out: &mut FlowOut) {
        if self.end.as_ref().is_none_or(|end| end.code == CODE_SUCCESS) {
            self.failure_told = true;
            out.events.push(FlowEvent::Failed(error.clone()));
        }
    }

    /// How the flow ends after END, for its sink; `lost` is why the way is gone.
    pub fn ending(&self, lost: Option<&Error>) -> Ending {
        match self.failure().as_ref().or(lost) {
            None => Ending::Complete,
            Some(error) if error.fault() == Fault::Network => Ending::Abnormal(error.to_string()),
            Some(error) => Ending::SourceFailed(error.to_string()),
        }
    }

    /// Why the sender ended before its end.
    #[inline]
    fn failure(&self) -> Option<Error> {
        let end = self.end.as_ref().filter(|end| end.code != CODE_SUCCESS)?;
        Some(Error::from_peer(end.code, &end.text))
    }

    /// Everything is booked: the ledger closes with what the sender said.
    #[inline]
    pub fn settle(&mut self) {
        let units = self.units_said();
        units.into_iter().for_each(|units| self.ledger.end(units));
    }

    /// Nobody can say what became of the rest.
    #[inline]
    pub fn give_up(&mut self) {
        self.ledger.sent_at_least = self.end.is_none();
        self.ledger.give_up();
    }

    /// The application is told the account, and why its sink does not keep what came.
    #[inline]
    pub fn finish(&mut self, failure: Option<String>, out: &mut FlowOut) {
        self.is_finished = true;
        let hash = self.end.as_ref().zip(self.hash).and_then(|(end, hash)| {
            (self.ledger.delivered == end.units).then(|| end.hash == hash.to_bytes())
        });
        let ledger = Box::new(self.ledger.clone());
        out.events.push(FlowEvent::Ended { ledger, hash, failure });
    }

    /// The application is told why the flow failed, unless it knows, and the sender gets the
    /// account.
    #[inline]
    pub fn answer(&mut self, out: &mut FlowOut) {
        let Some(units) = self.units_said() else { return };
        if !self.failure_told {
            out.events.extend(self.failure().map(FlowEvent::Failed));
        }
        self.report(units, out);
    }

    /// Gives the sender, who has fed so many units, the account.
    fn report(&mut self, units: u64, out: &mut FlowOut) {
        self.is_reported = true;
        // The sender's sum closes whatever has come here beyond what it says there was.
        let mut left = units;
        let mut take = |count: u64| {
            let taken = count.min(left);
            left -= taken;
            taken
        };
        let ledger = &self.ledger;
        let (delivered, late, lost) =
            (take(ledger.delivered), take(ledger.late), take(ledger.lost));
        let dropped = ledger.dropped.iter().enumerate().filter(|(_, count)| **count > 0);
        let dropped = dropped.map(|(code, count)| (code as u8, take(*count))).collect();
        out.messages.push(Message::Report(Report {
            flow: self.id,
            delivered,
            late,
            lost,
            dropped,
            duplicates: ledger.duplicates,
            // What was sent after this end had given up is unknown too.
            unknown: left,
            bytes: ledger.bytes,
            hash: hash_bytes(self.hash.as_ref()),
        }));
    }
}

//! Accounts: the ledger of a flow as a row of a table and as JSON, and the verdict over all.
//!
//! ```text
//!   sent = delivered + late + lost + dropped + unknown        (duplicates apart)
//! ```

use crate::exit::Exit;
use crate::output::{Cell, Ink, Table};
use dacapo::Ledger;
use dacapo::spec::{DirectionCounters, DropReason};
use dacapo::{FlowAccount, ModuleFigures};
use serde_json::{Map, Value, json};

/// The ledger of a flow that has ended, and whether both ends saw the same bytes.
#[derive(Clone, Debug)]
pub struct Account {
    /// The flow's place in the session.
    pub place: usize,
    /// The flow's name.
    pub flow: String,
    /// What became of every unit.
    pub ledger: Ledger,
    /// `None` when not all units were delivered, so that there is nothing to compare.
    pub hash: Option<bool>,
    /// What its modules did at this end.
    pub modules: Vec<ModuleFigures>,
}

impl Account {
    /// That of a flow at this place.
    pub fn of(place: usize, flow: FlowAccount) -> Self {
        let FlowAccount { flow, ledger, same_bytes: hash, modules, .. } = flow;
        Self { place, flow, ledger, hash, modules }
    }

    /// True when every unit is accounted for and no hash differs.
    pub fn is_right(&self) -> bool {
        self.ledger.closes() && self.ledger.unknown == 0 && self.hash != Some(false)
    }

    fn hash_word(&self) -> &'static str {
        match self.hash {
            Some(true) => "equal",
            Some(false) => "differs",
            None => "not comparable",
        }
    }

    fn row(&self) -> Vec<Cell> {
        let ledger = &self.ledger;
        let (closes, ink) = match ledger.closes() {
            true if ledger.sent_at_least => ("open end", Ink::Bad),
            true => ("closes", Ink::Good),
            false => ("DOES NOT CLOSE", Ink::Bad),
        };
        let sent = match ledger.sent_at_least {
            true => format!("≥ {}", ledger.sent).into(),
            false => ledger.sent.into(),
        };
        let hash_ink = match self.hash {
            Some(true) => Ink::Good,
            Some(false) => Ink::Bad,
            None => Ink::Plain,
        };
        vec![
            self.flow.as_str().into(),
            sent,
            ledger.delivered.into(),
            ledger.late.into(),
            ledger.lost.into(),
            dropped(ledger).into(),
            ledger.unknown.into(),
            ledger.duplicates.into(),
            Cell::new(closes, ink),
            Cell::new(self.hash_word(), hash_ink),
        ]
    }

    /// The account for programs.
    pub fn to_json(&self) -> Value {
        let ledger = &self.ledger;
        let reasons: Map<String, Value> =
            reasons(ledger).map(|(reason, count)| (reason.to_owned(), json!(count))).collect();
        json!({
            "flow": self.flow,
            "units_sent": ledger.sent,
            "units_sent_at_least": ledger.sent_at_least,
            "units_delivered": ledger.delivered,
            "units_late": ledger.late,
            "units_lost": ledger.lost,
            "units_dropped": ledger.dropped_count(),
            "units_dropped_by_reason": reasons,
            "units_unknown": ledger.unknown,
            "units_duplicate": ledger.duplicates,
            "units_after_lost": ledger.after_lost,
            "bytes_delivered": ledger.bytes,
            "closes": ledger.closes(),
            "hash": self.hash_word(),
            "modules": self.modules.iter().map(module).collect::<Vec<_>>(),
        })
    }
}

/// What a module did, and how long it took for a packet where that was timed.
fn module(it: &ModuleFigures) -> Value {
    let way = |way: &DirectionCounters| {
        json!({
            "packets": way.packets,
            "bytes": way.bytes,
            "packets_dropped": way.dropped_count(),
            "packets_timed": way.timed_packets,
            "packet_ns": way.ns_per_packet().map(|ns| (ns * 10.0).round() / 10.0),
        })
    };
    let notes: Map<String, Value> =
        it.notes.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({
        "module": it.name,
        "down": way(&it.counters.down),
        "up": way(&it.counters.up),
        "packets_lost": it.counters.lost,
        "signals_refused": it.counters.refused,
        "notes": notes,
    })
}

/// Prints the accounts as a table, in the order of the flows.
pub fn print(accounts: &[Account]) {
    if accounts.is_empty() {
        return;
    }
    let mut accounts: Vec<&Account> = accounts.iter().collect();
    accounts.sort_by_key(|account| account.place);
    let mut table = Table::new(&[
        "flow",
        "sent",
        "= delivered",
        "+ late",
        "+ lost",
        "+ dropped",
        "+ unknown",
        "duplicates",
        "sum",
        "hash",
    ]);
    accounts.iter().for_each(|account| table.row(account.row()));
    table.print();
}

/// What the accounts say about how a command ends.
pub fn verdict(accounts: &[Account]) -> Exit {
    if accounts.iter().all(Account::is_right) { Exit::Success } else { Exit::Mismatch }
}

fn dropped(ledger: &Ledger) -> String {
    let parts: Vec<String> =
        reasons(ledger).map(|(reason, count)| format!("{reason} {count}")).collect();
    match parts.is_empty() {
        true => "0".to_owned(),
        false => format!("{} ({})", ledger.dropped_count(), parts.join(", ")),
    }
}

fn reasons(ledger: &Ledger) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    let counts = DropReason::ALL.iter().zip(ledger.dropped);
    counts.filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.name(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(delivered: u64, unknown: u64, hash: Option<bool>) -> Account {
        let mut ledger = Ledger { sent: 10, delivered, unknown, ..Ledger::default() };
        ledger.dropped[DropReason::Checksum.index()] = 1;
        Account { place: 0, flow: "video".to_owned(), ledger, hash, modules: Vec::new() }
    }

    #[test]
    fn drops_are_shown_by_reason() {
        assert_eq!(dropped(&account(9, 0, None).ledger), "1 (checksum 1)");
        assert_eq!(dropped(&Ledger::default()), "0");
        let json = account(9, 0, None).to_json();
        assert_eq!(json["units_dropped_by_reason"], json!({ "checksum": 1 }));
    }

    #[test]
    fn a_ledger_that_does_not_close_unknown_units_and_a_different_hash_are_a_mismatch() {
        assert_eq!(verdict(&[account(9, 0, None)]), Exit::Success);
        assert_eq!(verdict(&[account(9, 0, None), account(8, 0, None)]), Exit::Mismatch);
        assert_eq!(verdict(&[account(8, 1, None)]), Exit::Mismatch);
        assert_eq!(verdict(&[account(9, 0, Some(false))]), Exit::Mismatch);
    }
}

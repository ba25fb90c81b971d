//! [`Account`]: what became of every unit of a session, flow by flow.
//!
//! ```text
//!   sent = delivered + late + lost + dropped + unknown        (not sent and duplicates apart)
//! ```

use super::flow::{Direction, Flow};
use dacapo_core::{FlowStatus, Ledger, ModuleStatus, PathStatus};
use dacapo_lift::{DropReason, ModuleCounters};
use std::fmt;

/// What a module of a flow's protocol has done at this end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFigures {
    /// Its name.
    pub name: &'static str,
    /// What went through it, and how long that took where it was timed.
    pub counters: ModuleCounters,
    /// What it shows of itself: the last value of each figure, by its name, or its code where it
    /// has none.
    pub notes: Vec<(String, i64)>,
}

impl ModuleFigures {
    /// Those of a graph, as the core tells them.
    #[must_use]
    pub fn all_of(modules: &[ModuleStatus]) -> Vec<Self> {
        let figures = |it: &ModuleStatus| Self {
            name: it.spec.name,
            counters: it.counters,
            notes: it
                .notes
                .iter()
                .map(|(code, value)| (it.spec.note_name(*code), *value))
                .collect(),
        };
        modules.iter().map(figures).collect()
    }
}

/// What was measured of a flow, as this end knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Its modules, from the application to the network.
    pub modules: Vec<ModuleFigures>,
    /// What is known of the path: of a flow by datagrams of the one that all such flows with the
    /// peer share, its round trip from probes, and what modules have seen; of a flow over a stream
    /// what its transport has measured, where it measures.
    pub path: PathStatus,
}

impl Measured {
    /// Of the flow of this name; what is known of the path to its peer holds where nothing is known
    /// of its stream. `None` when there is no such flow, or no peer any more.
    pub(super) fn of(
        flows: Vec<FlowStatus>,
        name: &str,
        of_peer: Option<PathStatus>,
    ) -> Option<Self> {
        let flow = flows.into_iter().find(|it| it.offer.name == name)?;
        let of_peer = of_peer?;
        // The clock is the peer's, whatever carries the flow.
        let of_stream = flow.path.map(|path| PathStatus { clock: of_peer.clock, ..path });
        let path = of_stream.unwrap_or(of_peer);
        Some(Self { modules: ModuleFigures::all_of(&flow.modules), path })
    }
}

/// How a flow ended.
#[derive(Debug)]
pub(super) struct Final {
    pub ledger: Ledger,
    /// `None` when not all units were delivered.
    pub same_bytes: Option<bool>,
    pub modules: Vec<ModuleFigures>,
}

/// What became of the units of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowAccount {
    /// The flow's name.
    pub flow: String,
    /// Which way its units went.
    pub direction: Direction,
    /// The account in units.
    pub ledger: Ledger,
    /// Whether both ends saw the same bytes; `None` when not all units were delivered, or nobody
    /// knows yet.
    pub same_bytes: Option<bool>,
    /// Units that this end's application handed over and that were not sent, or not yet.
    pub not_sent: u64,
    /// The flow has ended, and this does not change any more.
    pub is_final: bool,
    /// What its modules did at this end, from the application to the network: those that run, or
    /// ran at the end.
    pub modules: Vec<ModuleFigures>,
}

/// What became of the units of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The session's name.
    pub session: String,
    /// Its flows at this end, without those that it has declined.
    pub flows: Vec<FlowAccount>,
}

impl Account {
    /// The account of the flows of a session now, with what the core knows of those that run.
    pub(super) fn of(session: &str, flows: &[Flow], running: &[FlowStatus]) -> Self {
        let is_here = |flow: &Flow| flow.info.is_usable || flow.account.is_some();
        let flows = flows.iter().enumerate().filter(|(_, flow)| is_here(flow));
        let flows = flows.map(|(index, flow)| FlowAccount::of(flow, running.get(index)));
        Self { session: session.to_owned(), flows: flows.collect() }
    }

    /// The account of the flow with this name.
    #[must_use]
    pub fn flow(&self, name: &str) -> Option<&FlowAccount> {
        self.flows.iter().find(|flow| flow.flow == name)
    }

    /// Whether every unit that was handed over was delivered, as far as this end knows.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.flows.iter().all(FlowAccount::is_complete)
    }
}

impl FlowAccount {
    /// The account of a flow, with what the core knows of it while it runs.
    pub(super) fn of(flow: &Flow, running: Option<&FlowStatus>) -> Self {
        let (ledger, same_bytes) = match (flow.account.as_deref(), running) {
            (Some(end), _) => (end.ledger.clone(), end.same_bytes),
            (None, Some(FlowStatus { ledger: Some(ledger), .. })) => (ledger.clone(), None),
            // What becomes of what this end sends, only the peer knows.
            (None, Some(status)) => {
                let sent = status.sent;
                (Ledger { sent, unknown: sent, ..Ledger::default() }, None)
            }
            (None, None) => (Ledger::default(), None),
        };
        let modules = match (flow.account.as_deref(), running) {
            (Some(end), _) => end.modules.clone(),
            (None, Some(status)) => ModuleFigures::all_of(&status.modules),
            (None, None) => Vec::new(),
        };
        Self {
            flow: flow.info.name.clone(),
            direction: flow.info.direction,
            not_sent: flow.handed.saturating_sub(ledger.sent),
            ledger,
            same_bytes,
            is_final: flow.account.is_some(),
            modules,
        }
    }

    /// Whether every unit that was handed over was delivered, as far as this end knows.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_final
            && self.not_sent == 0
            && self.ledger.delivered == self.ledger.sent
            && !self.ledger.sent_at_least
            && self.same_bytes != Some(false)
    }
}

impl fmt::Display for FlowAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ledger = &self.ledger;
        let at_least = if ledger.sent_at_least { "at least " } else { "" };
        write!(
            f,
            "{}: {at_least}{} sent = {} delivered + {} late + {} lost + {} dropped + {} unknown",
            self.flow,
            ledger.sent,
            ledger.delivered,
            ledger.late,
            ledger.lost,
            ledger.dropped_count(),
            ledger.unknown,
        )?;
        let reasons = ledger.dropped.iter().enumerate().filter(|(_, count)| **count > 0);
        for (reason, count) in reasons {
            let reason = u8::try_from(reason).ok().and_then(DropReason::from_code);
            write!(f, "; {count} {}", reason.map_or("dropped", DropReason::name))?;
        }
        if self.not_sent > 0 {
            write!(f, "; {} not sent", self.not_sent)?;
        }
        write!(f, "; {} bytes delivered", ledger.bytes)?;
        match self.same_bytes {
            Some(true) => f.write_str(", the same at both ends"),
            Some(false) => f.write_str(", which DIFFER at the two ends"),
            None if self.is_final => Ok(()),
            None => f.write_str(", so far"),
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.session)?;
        self.flows.iter().try_for_each(|flow| write!(f, "\n  {flow}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_says_in_a_line_what_became_of_every_unit() {
        let ledger = Ledger { sent: 3, delivered: 3, bytes: 12, ..Ledger::default() };
        let mut flow = FlowAccount {
            flow: "text".to_owned(),
            direction: Direction::Outgoing,
            ledger,
            same_bytes: Some(true),
            not_sent: 0,
            is_final: true,
            modules: Vec::new(),
        };
        assert!(flow.is_complete());
        assert_eq!(
            flow.to_string(),
            "text: 3 sent = 3 delivered + 0 late + 0 lost + 0 dropped + 0 unknown; \
             12 bytes delivered, the same at both ends"
        );
        flow.ledger.dropped[DropReason::Overflow.index()] = 2;
        flow.ledger.sent = 5;
        (flow.not_sent, flow.same_bytes) = (1, None);
        let account = Account { session: "notes".to_owned(), flows: vec![flow] };
        assert!(!account.is_complete());
        let overflow = DropReason::Overflow.name();
        assert_eq!(
            account.to_string(),
            format!(
                "notes\n  text: 5 sent = 3 delivered + 0 late + 0 lost + 2 dropped + 0 unknown; \
                 2 {overflow}; 1 not sent; 12 bytes delivered"
            )
        );
    }
}

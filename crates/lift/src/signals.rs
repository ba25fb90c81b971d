//! [`Signals`]: what the modules of a graph tell beyond their packets, until who holds it asks.
//!
//! ```text
//!   Cx::control_to_peer --> messages, in order ----> the same module of the peer, which answers
//!   Cx::report_…        --> sums (PathSeen) -------> the path of the flow
//!   Cx::note            --> the last value of each code --> whoever looks at the flow
//! ```
//!
//! Invariants: of one module at most [`OPEN_MAX`] messages are on their way unanswered, and at most
//! [`MESSAGES_PER_SECOND`] leave in a second; at most [`NOTES_MAX`] notes are kept. What goes
//! beyond is refused and counted.

use dacapo_base::Time;
use dacapo_path::PathSeen;
use std::collections::VecDeque;
use std::time::Duration;

/// The most messages of one module that wait for their answers.
pub const OPEN_MAX: u8 = 8;

/// The most messages of one module in a second.
pub const MESSAGES_PER_SECOND: u8 = 64;

/// The most notes of one graph.
pub const NOTES_MAX: usize = 32;

/// The longest message, and the longest answer, in bytes.
pub(crate) const MESSAGE_LEN_MAX: usize = 4_096;

/// A message for the module at the same place of the peer's graph, out of band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToPeer {
    /// The place of the module in the graph.
    pub module: usize,
    /// The message; at most 4 KiB.
    pub message: Vec<u8>,
}

/// What modules told since they were asked last.
#[derive(Debug, Default)]
pub struct Told {
    /// Messages for modules of the peer, in order. Whoever takes them gives an answer to each back
    /// ([`crate::Runner::handle_answer`]).
    pub messages: Vec<ToPeer>,
    /// What was seen of the path.
    pub seen: PathSeen,
    /// Which module has panicked, and what it said: the graph lets nothing pass any more.
    pub failure: Option<String>,
}

/// A figure that a module shows of itself; its codes are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The place of the module in the graph.
    pub module: usize,
    /// What it is.
    pub code: u16,
    /// How much it is now.
    pub value: i64,
}

/// How much a module has said lately.
#[derive(Clone, Debug, Default)]
struct Talk {
    open: u8,
    /// When the last messages left, as many as may in a second.
    sent: VecDeque<Time>,
}

impl Talk {
    /// Whether another message may leave now; it is counted.
    fn admit(&mut self, now: Time) -> bool {
        let is_recent = |at: &Time| now.since(*at) < Duration::from_secs(1);
        self.sent.pop_front_if(|at| !is_recent(at));
        if self.open >= OPEN_MAX || self.sent.len() >= usize::from(MESSAGES_PER_SECOND) {
            return false;
        }
        self.open += 1;
        self.sent.push_back(now);
        true
    }
}

#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// By the place of the module.
    talks: Vec<Talk>,
    told: Told,
    /// Something is in `told`.
    has_told: bool,
    /// The place of the lowest module that has given up packets.
    lowest: usize,
    notes: Vec<Note>,
}

impl Signals {
    pub fn new(modules: usize) -> Self {
        Self { talks: vec![Talk::default(); modules], ..Self::default() }
    }

    /// Queues a message; false, and nothing queued, when it is too long or the module says too
    /// much.
    pub fn send(&mut self, now: Time, module: usize, message: &[u8]) -> bool {
        let is_admitted = message.len() <= MESSAGE_LEN_MAX
            && self.talks.get_mut(module).is_some_and(|talk| talk.admit(now));
        if is_admitted {
            self.told.messages.push(ToPeer { module, message: message.to_vec() });
            self.has_told = true;
        }
        is_admitted
    }

    /// A message of a module was answered; false when none was open.
    pub fn close(&mut self, module: usize) -> bool {
        let Some(talk) = self.talks.get_mut(module).filter(|talk| talk.open > 0) else {
            return false;
        };
        talk.open -= 1;
        true
    }

    /// A module has given up packets: what those above the lowest miss is the same.
    pub fn see_lost(&mut self, module: usize, count: u64, sent_at: Option<Time>) {
        self.lowest = self.lowest.max(module);
        if self.lowest == module {
            let (lost_packets, lost_sent_at) = (count, sent_at);
            self.see(&PathSeen { lost_packets, lost_sent_at, ..PathSeen::default() });
        }
    }

    pub fn see(&mut self, seen: &PathSeen) {
        self.told.seen.add(seen);
        self.has_told = true;
    }

    /// The graph is over, for this reason.
    pub fn fail(&mut self, failure: String) {
        self.told.failure = Some(failure);
        self.has_told = true;
    }

    #[inline]
    pub fn has_told(&self) -> bool {
        self.has_told
    }

    pub fn take_told(&mut self) -> Told {
        self.has_told = false;
        std::mem::take(&mut self.told)
    }

    /// Keeps a note; false when there are too many.
    pub fn note(&mut self, note: Note) -> bool {
        let same = |known: &&mut Note| (known.module, known.code) == (note.module, note.code);
        if let Some(known) = self.notes.iter_mut().find(same) {
            known.value = note.value;
            return true;
        }
        let is_kept = self.notes.len() < NOTES_MAX;
        if is_kept {
            self.notes.push(note);
        }
        is_kept
    }

    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn a_module_has_eight_messages_open_and_says_64_in_a_second() {
        let mut signals = Signals::new(2);
        (0..8).for_each(|_| assert!(signals.send(ms(0), 0, b"x")));
        assert!(!signals.send(ms(0), 0, b"x"), "eight are open");
        assert!(signals.send(ms(0), 1, b"x"), "each module has its own");
        for _ in 8..64 {
            assert!(signals.close(0) && signals.send(ms(999), 0, b"x"));
        }
        assert!(signals.close(0) && !signals.send(ms(999), 0, b"x"), "64 in a second");
        let again = (0..20).filter(|_| signals.send(ms(1_000), 0, b"x") && signals.close(0));
        assert_eq!(again.count(), 8, "as many as left a second ago");
        let mut said = [0; 2];
        signals.take_told().messages.iter().for_each(|it| said[it.module] += 1);
        assert_eq!((said, signals.has_told()), ([72, 1], false));
    }

    #[test]
    fn what_is_refused_takes_no_place() {
        let mut signals = Signals::new(1);
        assert!(!signals.send(ms(0), 0, &[0; MESSAGE_LEN_MAX + 1]) && !signals.send(ms(0), 1, b""));
        assert!(!signals.close(0) && !signals.close(1) && !signals.has_told());
    }

    #[test]
    fn what_is_lost_is_told_to_the_path_once() {
        let mut signals = Signals::new(3);
        // By the upper one alone; then by the lower, and by the upper what it misses of that.
        [(0, 1), (2, 10), (0, 10), (2, 5)].into_iter().for_each(|(at, n)| {
            signals.see_lost(at, n, (n > 1).then(|| ms(n)));
        });
        let seen = signals.take_told().seen;
        assert_eq!((seen.lost_packets, seen.lost_sent_at), (16, Some(ms(10))));
    }

    #[test]
    fn a_note_is_the_last_value_of_its_code() {
        let mut signals = Signals::new(1);
        for code in 0..NOTES_MAX as u16 {
            assert!(signals.note(Note { module: 0, code, value: 1 }));
        }
        assert!(!signals.note(Note { module: 0, code: 99, value: 1 }));
        assert!(signals.note(Note { module: 0, code: 3, value: -7 }));
        assert_eq!((signals.notes().len(), signals.notes()[3].value), (NOTES_MAX, -7));
    }
}

//! What a call asks of the peer and waits for: commands to the media of a session, and changes of a
//! flow.
//!
//! ```text
//!   command() -> CONTROL ----> the peer's access modules      change() -> PREPARE … READY, DONE
//!             <- its answer <-                                         <- Changed or ChangeFailed
//! ```
//!
//! Invariants: nothing is kept of what nobody waits for; a call that waits ends when the session
//! does.

use super::change::Change;
use super::driver::Guard;
use super::entry::Phase;
use super::flow::Direction;
use super::handle::Session;
use super::state::State;
use super::waiting::Waiting;
use super::wanted::Wanted;
use crate::command::{Answer, MediaCommand};
use crate::misuse::misuse;
use dacapo_base::Time;
use dacapo_core::{self as core, Code, Done, Error, SessionId};
use dacapo_sys::clock;
use dacapo_wire::session::{FLOW_ALL, MODULE_ACCESS};
use std::collections::BTreeMap;

/// Calls that wait for the peer.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Answers to commands by the number of the request; none yet while it is waited for.
    answers: BTreeMap<u32, Option<Result<Vec<u8>, Error>>>,
    /// What became of changes by the flow's place, likewise.
    changes: BTreeMap<usize, Option<Result<u64, Error>>>,
}

impl Asked {
    /// The peer has answered a command.
    pub fn answer(&mut self, request: u32, answer: Result<Vec<u8>, Error>) {
        if let Some(awaited) = self.answers.get_mut(&request) {
            *awaited = Some(answer);
        }
    }

    /// A flow has changed, and runs in this epoch; or it has not.
    pub fn settle(&mut self, flow: usize, outcome: Result<u64, Error>) {
        if let Some(awaited) = self.changes.get_mut(&flow) {
            *awaited = Some(outcome);
        }
    }

    /// The answer to a command, when it is there; nobody waits for it any more then.
    pub fn take_answer(&mut self, request: u32) -> Option<Result<Vec<u8>, Error>> {
        self.is_answered(request).then(|| self.answers.remove(&request).flatten()).flatten()
    }

    /// What became of a change, likewise.
    pub fn take_change(&mut self, flow: usize) -> Option<Result<u64, Error>> {
        self.is_settled(flow).then(|| self.changes.remove(&flow).flatten()).flatten()
    }

    pub fn is_answered(&self, request: u32) -> bool {
        self.answers.get(&request).is_some_and(Option::is_some)
    }

    pub fn is_settled(&self, flow: usize) -> bool {
        self.changes.get(&flow).is_some_and(Option::is_some)
    }
}

impl Session {
    /// Tells the media of the session at the peer's end something (PLAY, STOP, FF, FR, FWD, RWD,
    /// FPS …), and waits for the answer, at most 10 s: how the medium stands then. A
    /// session without media answers too, and does nothing.
    ///
    /// # Errors
    /// Misuse when the session is closed or has never been active; what the peer refuses with;
    /// [`Code::NoAnswer`]; why the session ended meanwhile.
    pub fn command(&self, command: MediaCommand) -> Result<Answer, Error> {
        let id = self.core_id();
        let mut state = self.lock();
        let request = begin_command(&mut state, id, command)?;
        let answer = Wanted::Answer(id, request);
        let bytes = self.take_asked(state, &answer, |asked| asked.answers.remove(&request))?;
        let garbled = |fault| Error::new(Code::Violation, format!("the peer's answer: {fault}"));
        Answer::decode(&bytes).map_err(garbled)
    }

    /// Changes the protocol of a flow that this end sends while it runs, and waits until it runs by
    /// the new one: the number of its epoch. No unit is lost, repeated or reordered by it. When it
    /// cannot be done the flow goes on as it was.
    ///
    /// # Errors
    /// Misuse when the session is closed, there is no such flow, it is received here, or a change
    /// of it is going on; [`Code::IllegalGraph`] with what is wrong; [`Code::Unsupported`] for a
    /// flow that is sent once for several; what the peer refuses with; [`Code::NoAnswer`].
    pub fn change(&self, flow: &str, to: &Change) -> Result<u64, Error> {
        let id = self.core_id();
        let mut state = self.lock();
        let index = state.open_entry(id)?.flow_index(flow, Direction::Outgoing)?;
        begin_change(&mut state, id, index, to)?;
        let settled = Wanted::Settled(id, index);
        self.take_asked(state, &settled, |asked| asked.changes.remove(&index))
    }

    /// Lets go out what was asked, waits for what comes of it, and takes that.
    fn take_asked<'a, T>(
        &'a self,
        mut state: Guard<'a>,
        wanted: &Wanted,
        take: impl FnOnce(&mut Asked) -> Option<Option<Result<T, Error>>>,
    ) -> Result<T, Error> {
        self.shared().act(&mut state);
        let (mut state, outcome) = self.wait(state, Time::NEVER, wanted);
        let entry = state.sessions.get_mut(&self.core_id());
        let taken = entry.and_then(|entry| entry.asked.as_mut()).and_then(|asked| take(asked));
        outcome?;
        taken.flatten().unwrap_or_else(|| Err(ended(&mut state, self.core_id())))
    }
}

/// Asks the media at the peer's end something: the number of the request.
///
/// # Errors
/// As [`Session::command`].
pub(super) fn begin_command(
    state: &mut Guard<'_>,
    id: SessionId,
    command: MediaCommand,
) -> Result<u32, Error> {
    state.open_entry(id)?.check_begun()?;
    let now = clock::now();
    let (flow, module, payload) = (FLOW_ALL, MODULE_ACCESS, command.encode().to_vec());
    let control = core::Command::Control { session: id, flow, module, payload };
    let request = state.core().handle_command(now, control).and_then(Done::request)?;
    state.open_entry(id)?.asked.get_or_insert_default().answers.insert(request, None);
    Ok(request)
}

/// Begins to change a flow that this end sends.
///
/// # Errors
/// As [`Session::change`].
pub(super) fn begin_change(
    state: &mut Guard<'_>,
    id: SessionId,
    flow: usize,
    to: &Change,
) -> Result<(), Error> {
    let change = to.command(id, flow, state.host.catalogue())?;
    state.open_entry(id)?.check_begun()?;
    let now = clock::now();
    state.core().handle_command(now, change)?;
    state.open_entry(id)?.asked.get_or_insert_default().changes.insert(flow, None);
    Ok(())
}

/// Why a call that waited has nothing.
fn ended(state: &mut State, id: SessionId) -> Error {
    match state.open_entry(id).map(|entry| entry.phase.clone()) {
        Ok(Phase::Over(Some(error))) => error,
        Ok(_) => misuse("the session ended before the peer had answered"),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_waits_for_is_not_kept() {
        let mut asked = Asked::default();
        asked.answer(7, Ok(vec![1]));
        asked.settle(0, Ok(3));
        assert!(!asked.is_answered(7) && !asked.is_settled(0));
        asked.answers.insert(7, None);
        asked.changes.insert(0, None);
        assert!(!asked.is_answered(7) && !asked.is_settled(0));
        asked.answer(7, Ok(vec![1]));
        asked.settle(0, Ok(3));
        assert!(asked.is_answered(7) && asked.is_settled(0));
    }
}

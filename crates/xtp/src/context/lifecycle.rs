//! [`Lifecycle`]: the state of an association, how it ended, and what its user is told.
//!
//! ```text
//!   Opening | Joining --open--> Open --leave(end)--> Inactive      the peer ends it
//!                                 '----give_up(end)--> END is due --close--> Inactive
//! ```
//!
//! Invariants: the first end is the one that holds, and is told once; a context that has let go
//! says nothing more.

use crate::event::{End, Events};
use crate::serial::is_at_least;
use crate::table::{Act, Input, State, step};
use crate::wire::{Code, Options, Reason};

/// The state of one end of an association.
#[derive(Debug)]
pub struct Lifecycle {
    state: State,
    end: Option<End>,
    events: Events,
    is_end_due: bool,
    is_aborting: bool,
    /// The request that asks a peer which says that it has no such context.
    disowned: Option<u32>,
    /// What the peer has remarked last.
    remark: Option<(Code, Reason)>,
}

impl Lifecycle {
    /// A context in this state.
    pub fn new(state: State) -> Self {
        Self {
            state,
            end: None,
            events: Events::default(),
            is_end_due: false,
            is_aborting: false,
            disowned: None,
            remark: None,
        }
    }

    /// A context that the user has asked for.
    pub fn begun(input: Input) -> Self {
        Self::new(step(State::Quiescent, input).map_or(State::Quiescent, |(state, _)| state))
    }

    pub const fn state(&self) -> State {
        self.state
    }

    /// How it ended, when it has for the user.
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    /// Whether END is still to be sent.
    pub const fn is_end_due(&self) -> bool {
        self.is_end_due && self.state.is_live()
    }

    /// Whether it ends before what was to be sent has been: no orderly end.
    pub const fn is_aborting(&self) -> bool {
        self.is_aborting
    }

    /// What the table says to an input; `None` where it cannot come.
    pub const fn step(&self, input: Input) -> Option<(State, Act)> {
        step(self.state, input)
    }

    /// Goes where an input leads that does not end it; false where it leads nowhere.
    pub fn enter(&mut self, input: Input) -> bool {
        let next = self.step(input).map(|(next, _)| next).filter(|next| next.is_live());
        if next == Some(State::Open) && matches!(self.state, State::Opening | State::Joining) {
            self.events.insert(Events::OPENED);
        }
        self.state = next.unwrap_or(self.state);
        next.is_some()
    }

    /// The association is over for the user, in this way where it was not; what has come can still
    /// be read.
    pub fn finish(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
            self.events.insert(Events::ENDED);
        }
    }

    /// The association is over, and nothing more is said.
    pub fn leave(&mut self, end: End) {
        self.finish(end);
        self.state = State::Inactive;
    }

    /// A packet with these options has been sent: the last one of a service that lets nothing come
    /// back is the end.
    pub fn handle_sent(&mut self, options: Options) {
        if options.has(Options::END) {
            self.leave(End::Complete);
        }
    }

    /// It ends by a decision here, the first that is made: true then, and END is to be sent.
    pub fn give_up(&mut self, input: Input, end: End) -> bool {
        let is_one = self.end.is_none() && matches!(self.step(input), Some((_, Act::SayEnd)));
        if is_one {
            self.is_aborting = end != End::Complete;
            self.is_end_due = true;
            self.finish(end);
        }
        is_one
    }

    /// END is sent, or is not to be.
    pub fn close(&mut self) {
        self.is_end_due = false;
        self.state = State::Inactive;
    }

    /// The context is nobody's any more: it says no END.
    pub fn let_go(&mut self) {
        self.is_end_due = false;
    }

    /// The peer does not know the context. That may be the answer to data which overtook the FIRST,
    /// so it is asked, when this says so; a second word, to that very question where the peer says
    /// it (`said` is not 0), is final. `sync` is the latest request.
    pub fn handle_disowned(&mut self, said: u32, sync: u32, end: End) -> bool {
        let Some(question) = self.disowned else {
            self.disowned = Some(sync.wrapping_add(1));
            return true;
        };
        if is_at_least(sync, question) && (said == 0 || is_at_least(said, question)) {
            self.leave(end);
        }
        false
    }

    /// The peer has shown that it knows the context.
    pub fn handle_status(&mut self) {
        self.disowned = None;
    }

    /// The peer has remarked this; the association goes on.
    pub fn handle_remark(&mut self, code: Code, reason: Reason) {
        self.remark = Some((code, reason));
        self.events.insert(Events::REMARK);
    }

    /// What the peer has remarked last.
    pub const fn remark(&self) -> Option<(Code, Reason)> {
        self.remark
    }

    /// The user is to be told one of [`Events`].
    pub fn tell(&mut self, event: u8) {
        self.events.insert(event);
    }

    /// The same, where that `is_one`.
    pub fn tell_if(&mut self, is_one: bool, event: u8) {
        if is_one {
            self.events.insert(event);
        }
    }

    /// Takes the first that the user is to be told.
    pub fn take_event(&mut self) -> Option<u8> {
        self.events.take()
    }

    pub const fn has_events(&self) -> bool {
        !self.events.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(lifecycle: &mut Lifecycle) -> Vec<u8> {
        std::iter::from_fn(|| lifecycle.take_event()).collect()
    }

    /// Section "States": whatever the table says is what happens, in every state.
    #[test]
    fn inputs_lead_where_the_table_says_and_never_out_of_inactive() {
        for (state, input) in State::ALL.into_iter().flat_map(|s| Input::ALL.map(|i| (s, i))) {
            let mut lifecycle = Lifecycle::new(state);
            let next = step(state, input).map(|(next, _)| next).filter(|next| next.is_live());
            assert_eq!(lifecycle.enter(input), next.is_some(), "{state:?} {input:?}");
            assert_eq!(lifecycle.state(), next.unwrap_or(state), "{state:?} {input:?}");
            let is_answered = matches!(state, State::Opening | State::Joining);
            let is_opened = is_answered && next == Some(State::Open);
            let expected: &[u8] = if is_opened { &[Events::OPENED] } else { &[] };
            assert_eq!(events(&mut lifecycle), expected, "{state:?} {input:?}");
        }
    }

    #[test]
    fn the_first_end_holds_and_is_told_once() {
        let mut lifecycle = Lifecycle::new(State::Open);
        assert!(lifecycle.give_up(Input::UserAborts, End::Abandoned));
        assert!(!lifecycle.give_up(Input::GivenUp, End::TimedOut));
        lifecycle.finish(End::Complete);
        assert_eq!(events(&mut lifecycle), [Events::ENDED]);
        lifecycle.leave(End::Aborted);
        assert_eq!((lifecycle.end(), lifecycle.has_events()), (Some(End::Abandoned), false));
        assert_eq!(lifecycle.state(), State::Inactive);
    }

    /// END: "the last word", which is due until it is said or the context is let go.
    #[test]
    fn who_gives_up_says_end_once_and_aborts_unless_all_is_complete() {
        for (input, end) in [
            (Input::BothClosed, End::Complete),
            (Input::UserAborts, End::Abandoned),
            (Input::GivenUp, End::TimedOut),
        ] {
            let mut lifecycle = Lifecycle::new(State::Open);
            assert!(lifecycle.give_up(input, end) && lifecycle.is_end_due());
            assert_eq!(lifecycle.is_aborting(), end != End::Complete);
            assert_eq!(lifecycle.state(), State::Open, "until END is sent");
            lifecycle.close();
            assert_eq!((lifecycle.state(), lifecycle.is_end_due()), (State::Inactive, false));
        }
        for state in [State::Quiescent, State::Listening, State::Inactive] {
            assert!(!Lifecycle::new(state).give_up(Input::UserAborts, End::Abandoned), "{state:?}");
        }
        let mut lifecycle = Lifecycle::new(State::Joining);
        assert!(lifecycle.give_up(Input::UserAborts, End::Abandoned));
        lifecycle.let_go();
        assert!(!lifecycle.is_end_due());
    }

    /// DIAG 3: the first is asked about, the answer to that question is final.
    #[test]
    fn a_peer_disowns_only_in_answer_to_the_question() {
        let open = || Lifecycle::new(State::Open);
        let mut lifecycle = open();
        assert!(lifecycle.handle_disowned(7, 7, End::Disowned));
        assert!(!lifecycle.handle_disowned(0, 7, End::Disowned), "nothing was asked yet");
        assert!(!lifecycle.handle_disowned(7, 8, End::Disowned), "to what was before it");
        assert_eq!(lifecycle.end(), None);
        assert!(!lifecycle.handle_disowned(8, 8, End::Complete));
        assert_eq!((lifecycle.end(), lifecycle.state()), (Some(End::Complete), State::Inactive));

        let mut silent = open();
        assert!(silent.handle_disowned(0, u32::MAX, End::Disowned));
        assert!(!silent.handle_disowned(0, 0, End::Disowned));
        assert_eq!(silent.end(), Some(End::Disowned), "one that says no number");

        let mut known = open();
        assert!(known.handle_disowned(0, 1, End::Disowned));
        known.handle_status();
        assert!(known.handle_disowned(0, 2, End::Disowned), "status shows that it knows");
    }

    #[test]
    fn each_kind_is_told_once_in_order_and_the_last_remark_holds() {
        let mut lifecycle = Lifecycle::begun(Input::UserOpens);
        assert_eq!(lifecycle.state(), State::Opening);
        lifecycle.handle_remark(Code::PROTOCOL_ERROR, Reason::UNSPECIFIED);
        lifecycle.handle_remark(Code::PACKET_SIZE, Reason::NO_RESOURCE);
        for event in [Events::READABLE, Events::INCOMING, Events::READABLE] {
            lifecycle.tell(event);
        }
        assert_eq!(events(&mut lifecycle), [Events::INCOMING, Events::READABLE, Events::REMARK]);
        assert_eq!(lifecycle.remark(), Some((Code::PACKET_SIZE, Reason::NO_RESOURCE)));
    }
}

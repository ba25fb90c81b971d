//! The table of a session's stream, and that of the hub, by themselves.

use crate::session::table::{HubRole, HubState, Role, State, Step, hub_step, step};
use dacapo_wire::message::MessageKind as M;

const STATES: [State; 10] = [
    State::Idle,
    State::Offered,
    State::Joining,
    State::Answering,
    State::Ready,
    State::Activating,
    State::Active,
    State::Deactivating,
    State::Closing,
    State::Closed,
];

const RUNNING: [State; 4] = [State::Ready, State::Activating, State::Active, State::Deactivating];

/// What a kind means in each state, at both ends.
fn each(kind: M, means: impl Fn(State) -> Step) {
    for role in [Role::Creator, Role::Participant] {
        for state in STATES {
            assert_eq!(step(role, state, kind), means(state), "{role:?} {state:?} {kind:?}");
        }
    }
}

#[test]
fn a_session_runs_from_its_set_up_until_it_closes() {
    for state in STATES {
        assert_eq!(state.is_running(), RUNNING.contains(&state), "{state:?}");
    }
}

#[test]
fn messages_about_flows_come_while_it_runs_and_may_cross_its_end() {
    let kinds = [
        M::Control,
        M::ControlAnswer,
        M::Prepare,
        M::Ready,
        M::Cannot,
        M::Abort,
        M::Switched,
        M::Done,
        M::Request,
    ];
    for kind in kinds {
        each(kind, |state| match state {
            state if RUNNING.contains(&state) => Step::To(state),
            State::Closing | State::Closed => Step::Ignore,
            _ => Step::Violation,
        });
    }
}

#[test]
fn accounts_come_while_it_runs_and_while_it_closes() {
    for kind in [M::End, M::Report] {
        each(kind, |state| match state {
            State::Closed => Step::Ignore,
            State::Closing => Step::To(state),
            state if RUNNING.contains(&state) => Step::To(state),
            _ => Step::Violation,
        });
    }
}

#[test]
fn an_end_may_come_at_any_time_and_a_refusal_at_set_up() {
    each(M::Close, |state| match state {
        State::Closed => Step::Ignore,
        State::Idle => Step::To(State::Closed),
        _ => Step::To(State::Closing),
    });
    each(M::Closed, |state| match state {
        State::Closed => Step::Ignore,
        State::Closing => Step::To(State::Closed),
        _ => Step::Violation,
    });
    each(M::Refuse, |state| match state {
        State::Closing | State::Closed => Step::Ignore,
        State::Offered | State::Joining | State::Answering => Step::To(State::Closed),
        _ => Step::Violation,
    });
}

/// The commands of one end: in one state each leads to the next, while it closes it is passed over.
fn commands(role: Role, steps: &[(M, State, State)], late: &[M]) {
    for &(kind, from, to) in steps {
        for state in STATES {
            let means = match state {
                State::Closed => Step::Ignore,
                State::Closing if late.contains(&kind) => Step::Ignore,
                state if state == from => Step::To(to),
                _ => Step::Violation,
            };
            assert_eq!(step(role, state, kind), means, "{role:?} {state:?} {kind:?}");
        }
    }
}

#[test]
fn a_creator_is_asked_and_answered_in_order() {
    let steps = [
        (M::Join, State::Idle, State::Offered),
        (M::Answer, State::Offered, State::Ready),
        (M::Activate, State::Ready, State::Active),
        (M::Deactivate, State::Active, State::Ready),
    ];
    commands(Role::Creator, &steps, &[M::Answer, M::Activate, M::Deactivate]);
    for kind in [M::Offer, M::Accept, M::Activated, M::Deactivated] {
        assert_eq!(step(Role::Creator, State::Closing, kind), Step::Violation);
    }
}

#[test]
fn a_participant_is_told_in_order() {
    let steps = [
        (M::Offer, State::Joining, State::Answering),
        (M::Accept, State::Answering, State::Ready),
        (M::Activated, State::Activating, State::Active),
        (M::Deactivated, State::Deactivating, State::Ready),
    ];
    let late = [M::Offer, M::Accept, M::Activated, M::Deactivated];
    commands(Role::Participant, &steps, &late);
    for kind in [M::Join, M::Answer, M::Activate, M::Deactivate] {
        assert_eq!(step(Role::Participant, State::Closing, kind), Step::Violation);
    }
}

#[test]
fn the_hub_is_greeted_at_once_and_then_asked_for_lists() {
    use HubRole::{Dialer, Listener};
    use HubState::{Closed, Greeting, Open};
    let cases = [
        (Listener, Greeting, M::Hello, Some(Open)),
        (Dialer, Greeting, M::Hello, None),
        (Dialer, Greeting, M::Welcome, Some(Open)),
        (Listener, Greeting, M::Welcome, None),
        (Dialer, Greeting, M::Refuse, Some(Closed)),
        (Listener, Greeting, M::Refuse, None),
        (Dialer, Open, M::Refuse, None),
        (Listener, Open, M::Hello, None),
        (Dialer, Greeting, M::Goodbye, Some(Closed)),
        (Listener, Open, M::Goodbye, Some(Closed)),
        (Listener, Greeting, M::List, None),
        (Listener, Open, M::List, Some(Open)),
        (Dialer, Open, M::Listing, Some(Open)),
        (Dialer, Closed, M::Listing, Some(Closed)),
        (Listener, Closed, M::Hello, Some(Closed)),
        (Dialer, Open, M::Join, None),
    ];
    for (role, state, kind, expected) in cases {
        assert_eq!(hub_step(role, state, kind).ok(), expected, "{role:?} {state:?} {kind:?}");
    }
}

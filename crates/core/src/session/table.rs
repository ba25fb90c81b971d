//! Which message may come in which state of a session's stream, and of the hub.
//!
//! The state machine as one pure function, [`step`]. The same table is written by hand in
//! `docs/protocol.md`, and `tests/protocol_tables.rs` compares the two, cell by cell.
//!
//! ```text
//!  participant   Joining -OFFER-> Answering -ACCEPT-> Ready -> Activating -ACTIVATED-> Active
//!                                                       ^---- Deactivating <------------|
//!  creator       Idle -JOIN-> Offered -ANSWER-> Ready <-DEACTIVATE/ACTIVATE-> Active
//!  both          Ready, Active … -CLOSE sent-> Closing -CLOSED-> Closed
//! ```

use dacapo_wire::message::MessageKind;
use dacapo_wire::session::Direction;

/// Which end of a session this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It owns the session file, listens, decides.
    Creator,
    /// It joined.
    Participant,
}

impl Role {
    /// Whether this end sends what goes in a direction.
    pub(crate) fn sends(self, direction: Direction) -> bool {
        match direction {
            Direction::ToParticipant => self == Self::Creator,
            Direction::ToCreator => self == Self::Participant,
        }
    }
}

/// The state of a session's stream at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Creator: the stream is open, nothing has come.
    Idle,
    /// Creator: OFFER is sent.
    Offered,
    /// Participant: JOIN is sent.
    Joining,
    /// Participant: the offer is here; ANSWER is sent or will be.
    Answering,
    /// Set up; flows do not run.
    Ready,
    /// Participant: ACTIVATE is sent.
    Activating,
    /// Flows run.
    Active,
    /// Participant: DEACTIVATE is sent.
    Deactivating,
    /// CLOSE is sent or has come; flows are being accounted for.
    Closing,
    /// Over.
    Closed,
}

/// What a message means in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is right; this is the state after it.
    To(State),
    /// It may come because messages cross; it changes nothing.
    Ignore,
    /// The peer broke the protocol: the session ends.
    Violation,
}

/// What a message means that has come on the stream of a session.
#[must_use]
pub fn step(role: Role, state: State, kind: MessageKind) -> Step {
    use MessageKind as M;
    use State as S;
    match (kind, state) {
        // After the end nothing is read; what crosses it on the way is no fault.
        (_, S::Closed) => Step::Ignore,
        (M::Refuse, S::Closing) => Step::Ignore,
        (M::Refuse, S::Offered | S::Joining | S::Answering) => Step::To(S::Closed),
        (M::Close, S::Idle) => Step::To(S::Closed),
        (M::Close, _) => Step::To(S::Closing),
        (M::Closed, S::Closing) => Step::To(S::Closed),
        (M::End | M::Report, _) if state.is_running() || state == S::Closing => Step::To(state),
        (kind, _) if is_of_flows(kind) && state.is_running() => Step::To(state),
        (kind, S::Closing) if is_of_flows(kind) => Step::Ignore,
        _ => match role {
            Role::Creator => step_creator(state, kind),
            Role::Participant => step_participant(state, kind),
        },
    }
}

impl State {
    /// True when the session is set up and does not end.
    #[must_use]
    pub fn is_running(self) -> bool {
        matches!(self, Self::Ready | Self::Activating | Self::Active | Self::Deactivating)
    }
}

/// Messages about flows that run: control of modules, and changes.
fn is_of_flows(kind: MessageKind) -> bool {
    use MessageKind as M;
    matches!(
        kind,
        M::Control
            | M::ControlAnswer
            | M::Prepare
            | M::Ready
            | M::Cannot
            | M::Abort
            | M::Switched
            | M::Done
            | M::Request
    )
}

fn step_creator(state: State, kind: MessageKind) -> Step {
    match (state, kind) {
        (State::Idle, MessageKind::Join) => Step::To(State::Offered),
        (State::Offered, MessageKind::Answer) => Step::To(State::Ready),
        (State::Ready, MessageKind::Activate) => Step::To(State::Active),
        (State::Active, MessageKind::Deactivate) => Step::To(State::Ready),
        (State::Closing, MessageKind::Answer | MessageKind::Activate | MessageKind::Deactivate) => {
            Step::Ignore
        }
        _ => Step::Violation,
    }
}

fn step_participant(state: State, kind: MessageKind) -> Step {
    match (state, kind) {
        (State::Joining, MessageKind::Offer) => Step::To(State::Answering),
        (State::Answering, MessageKind::Accept) => Step::To(State::Ready),
        (State::Activating, MessageKind::Activated) => Step::To(State::Active),
        (State::Deactivating, MessageKind::Deactivated) => Step::To(State::Ready),
        (
            State::Closing,
            MessageKind::Offer
            | MessageKind::Accept
            | MessageKind::Activated
            | MessageKind::Deactivated,
        ) => Step::Ignore,
        _ => Step::Violation,
    }
}

/// Which end of the hub this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubRole {
    /// It dialed.
    Dialer,
    /// It listens.
    Listener,
}

/// The state of the hub at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubState {
    /// Nothing but the greeting may come.
    Greeting,
    /// Versions are agreed.
    Open,
    /// Over.
    Closed,
}

/// What a message means that has come on the hub.
///
/// # Errors
/// [`HubViolation`] when it must not come in this state.
pub fn hub_step(
    role: HubRole,
    state: HubState,
    kind: MessageKind,
) -> Result<HubState, HubViolation> {
    use MessageKind as M;
    match (role, state, kind) {
        (_, HubState::Closed, _) => Ok(HubState::Closed),
        (HubRole::Listener, HubState::Greeting, M::Hello)
        | (HubRole::Dialer, HubState::Greeting, M::Welcome) => Ok(HubState::Open),
        (HubRole::Dialer, HubState::Greeting, M::Refuse)
        | (_, HubState::Greeting | HubState::Open, M::Goodbye) => Ok(HubState::Closed),
        (_, HubState::Open, M::List | M::Listing) => Ok(HubState::Open),
        _ => Err(HubViolation),
    }
}

/// The peer broke the protocol on the hub: the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubViolation;

//! What happens in which state of a context: the state machine as one pure function, [`step`].
//!
//! `docs/xtp.md` shows it as a table and a diagram; both are made from it, and a test compares.
//!
//! ```text
//!   Quiescent -open-> Opening -answer-> Open -closed, END, given up-> Inactive -> Quiescent
//!   Listening -FIRST-----------------> Open
//!   Listening -FIRST of a group, or join-> Joining -admitted-> Open
//! ```
//!
//! Of the transmitter of a reliable group it is the state of the whole: what ends one membership
//! (END, a diagnostic) leaves it as it is.

use crate::wire::{Body, Code, Format, Header, Options, Service};

/// The state of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// There is none.
    Quiescent,
    /// There is none, and who asks for one gets it.
    Listening,
    /// FIRST is sent, or will be.
    Opening,
    /// A reliable group is to be joined, and its transmitter has not admitted this end yet.
    Joining,
    /// Both ends know each other.
    Open,
    /// It is over; a peer that does not know it yet is told.
    Inactive,
}

/// What comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// The user opens an association.
    UserOpens,
    /// The user gives it up.
    UserAborts,
    /// The user asks to join a group.
    UserJoins,
    /// A FIRST.
    First,
    /// A FIRST of a reliable group.
    Invitation,
    /// A DATA.
    Data,
    /// A CNTL, ECNTL or TCNTL.
    Status,
    /// Any packet but FIRST with END.
    End,
    /// A DIAG that the peer refused or abandoned the association: code 1 or 2.
    Refused,
    /// A DIAG that the peer has no such context: code 3.
    Disowned,
    /// A DIAG that nobody may join: code 5.
    JoinRefused,
    /// Another DIAG.
    Remark,
    /// A JCNTL.
    Join,
    /// A JOIN of revision 4.0.
    Obsolete,
    /// Enough members have joined.
    Gathered,
    /// The transmitter has admitted this end.
    Admitted,
    /// Both halves are closed, at both ends.
    BothClosed,
    /// The peer does not answer any more.
    GivenUp,
    /// The inactive period is over.
    PeriodOver,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Nothing; a packet is counted.
    Drop,
    /// The context takes it.
    Take,
    /// A context is made, if there is room.
    Create,
    /// DIAG 1/1, no listener.
    Refuse,
    /// DIAG 3/0, invalid context.
    Disown,
    /// END is sent.
    SayEnd,
    /// The context lets go; nothing is sent.
    Leave,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Quiescent,
        Self::Listening,
        Self::Opening,
        Self::Joining,
        Self::Open,
        Self::Inactive,
    ];

    /// Whether there is a context that is not over.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Opening | Self::Joining | Self::Open)
    }
}

impl Input {
    /// Every input.
    pub const ALL: [Self; 19] = [
        Self::UserOpens,
        Self::UserJoins,
        Self::UserAborts,
        Self::First,
        Self::Invitation,
        Self::Data,
        Self::Status,
        Self::End,
        Self::Refused,
        Self::Disowned,
        Self::JoinRefused,
        Self::Remark,
        Self::Join,
        Self::Obsolete,
        Self::Gathered,
        Self::Admitted,
        Self::BothClosed,
        Self::GivenUp,
        Self::PeriodOver,
    ];

    /// What a packet is.
    #[must_use]
    pub fn of_packet(header: &Header, body: &Body<'_>) -> Self {
        let code = if let Body::Diag(diagnostic) = body { Some(diagnostic.code) } else { None };
        match body {
            Body::First(_, traffic, _)
                if header.options.has(Options::MULTI)
                    && traffic.service == Service::ReliableMulticast as u8 =>
            {
                Self::Invitation
            }
            _ => Self::of(header.format, header.options, code),
        }
    }

    /// What a packet is, but for invitations; of a diagnostic its code counts.
    #[must_use]
    pub fn of(format: Format, options: Options, code: Option<Code>) -> Self {
        match format {
            Format::First => Self::First,
            Format::Diag => match code {
                Some(Code::CONTEXT_REFUSED | Code::CONTEXT_ABANDONED) => Self::Refused,
                Some(Code::INVALID_CONTEXT) => Self::Disowned,
                Some(Code::JOIN_REFUSED) => Self::JoinRefused,
                _ => Self::Remark,
            },
            Format::Jcntl => Self::Join,
            Format::Join => Self::Obsolete,
            _ if options.has(Options::END) => Self::End,
            Format::Data => Self::Data,
            Format::Cntl | Format::Ecntl | Format::Tcntl => Self::Status,
        }
    }

    /// Whether it comes from the network.
    #[must_use]
    pub const fn is_packet(self) -> bool {
        matches!(
            self,
            Self::First
                | Self::Invitation
                | Self::Data
                | Self::Status
                | Self::End
                | Self::Refused
                | Self::Disowned
                | Self::JoinRefused
                | Self::Remark
                | Self::Join
                | Self::Obsolete
        )
    }
}

/// The state after an input, and what is done; `None` where the input cannot come.
#[must_use]
pub const fn step(state: State, input: Input) -> Option<(State, Act)> {
    use Input as I;
    use State as S;
    Some(match (state, input) {
        (S::Quiescent, I::UserOpens) => (S::Opening, Act::Take),
        (S::Quiescent, I::UserJoins) => (S::Joining, Act::Take),
        (S::Opening | S::Joining | S::Open, I::UserAborts) => (S::Inactive, Act::SayEnd),

        (S::Quiescent, I::First) => (S::Quiescent, Act::Refuse),
        (S::Listening, I::First) => (S::Open, Act::Create),
        // Its key is ours, so it is no FIRST of the peer's; who joins has asked for another one.
        (S::Opening | S::Joining, I::First) => (state, Act::Drop),
        (S::Open, I::First) => (S::Open, Act::Take),
        (S::Listening, I::Invitation) => (S::Joining, Act::Create),
        (S::Joining | S::Open, I::Invitation) => (state, Act::Take),
        (S::Quiescent | S::Opening | S::Inactive, I::Invitation) => (state, Act::Drop),

        (S::Quiescent, I::Data | I::Status) => (S::Quiescent, Act::Disown),
        (S::Opening | S::Open, I::Data | I::Status) => (S::Open, Act::Take),
        // Where the stream begins is not known yet.
        (S::Joining, I::Data | I::Status) => (S::Joining, Act::Drop),
        (S::Inactive, I::First | I::Data | I::Status) => (S::Inactive, Act::SayEnd),

        (S::Opening | S::Joining | S::Open, I::End | I::Refused) => (S::Inactive, Act::Leave),
        (S::Joining, I::JoinRefused) => (S::Inactive, Act::Leave),
        // Data overtook the FIRST, which is sent until it is answered.
        (S::Opening | S::Joining, I::Disowned) => (state, Act::Drop),
        // The answer may be to data that overtook the FIRST: the context asks whether it holds.
        (S::Open, I::Disowned) => (S::Open, Act::Take),
        (S::Opening | S::Open, I::Remark | I::JoinRefused) => (state, Act::Take),
        (S::Joining, I::Remark) => (S::Joining, Act::Take),
        (
            S::Quiescent | S::Inactive,
            I::End | I::Refused | I::Disowned | I::Remark | I::JoinRefused,
        ) => (state, Act::Drop),

        (S::Opening | S::Joining | S::Open, I::Join) => (state, Act::Take),
        (S::Quiescent, I::Join) => (S::Quiescent, Act::Drop),
        (S::Inactive, I::Join) => (S::Inactive, Act::SayEnd),
        (S::Quiescent | S::Opening | S::Joining | S::Open | S::Inactive, I::Obsolete) => {
            (state, Act::Drop)
        }
        (S::Opening, I::Gathered) | (S::Joining, I::Admitted) => (S::Open, Act::Take),

        (S::Open, I::BothClosed) => (S::Inactive, Act::SayEnd),
        (S::Opening | S::Joining | S::Open, I::GivenUp) => (S::Inactive, Act::SayEnd),
        (S::Inactive, I::PeriodOver) => (S::Quiescent, Act::Leave),
        _ => return None,
    })
}

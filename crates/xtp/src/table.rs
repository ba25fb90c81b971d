//! What happens in which state of a context: the state machine as one pure function, [`step`].
//!
//! `docs/xtp.md` shows it as a table and a diagram; both are made from it, and a test compares.
//!
//! ```text
//!   Quiescent -open-> Opening -answer-> Open -closed, END, given up-> Inactive -> Quiescent
//!   Listening -FIRST-----------------> Open
//! ```
//!
//! What it is not: the two halves of an open association, which close one by one (`close.rs`).

use crate::wire::{Code, Format, Options};

/// The state of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// There is none.
    Quiescent,
    /// There is none, and who asks for one gets it.
    Listening,
    /// FIRST is sent, or will be.
    Opening,
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
    /// A FIRST.
    First,
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
    /// Another DIAG.
    Remark,
    /// A JOIN or JCNTL: there are no members here, because no group is reliable.
    Group,
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
    pub const ALL: [Self; 5] =
        [Self::Quiescent, Self::Listening, Self::Opening, Self::Open, Self::Inactive];
}

impl Input {
    /// Every input.
    pub const ALL: [Self; 13] = [
        Self::UserOpens,
        Self::UserAborts,
        Self::First,
        Self::Data,
        Self::Status,
        Self::End,
        Self::Refused,
        Self::Disowned,
        Self::Remark,
        Self::Group,
        Self::BothClosed,
        Self::GivenUp,
        Self::PeriodOver,
    ];

    /// What a packet is; of a diagnostic its code counts.
    #[must_use]
    pub fn of(format: Format, options: Options, code: Option<Code>) -> Self {
        match format {
            Format::First => Self::First,
            Format::Diag => match code {
                Some(Code::CONTEXT_REFUSED | Code::CONTEXT_ABANDONED) => Self::Refused,
                Some(Code::INVALID_CONTEXT) => Self::Disowned,
                _ => Self::Remark,
            },
            Format::Join | Format::Jcntl => Self::Group,
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
                | Self::Data
                | Self::Status
                | Self::End
                | Self::Refused
                | Self::Disowned
                | Self::Remark
                | Self::Group
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
        (S::Opening | S::Open, I::UserAborts) => (S::Inactive, Act::SayEnd),

        (S::Quiescent, I::First) => (S::Quiescent, Act::Refuse),
        (S::Listening, I::First) => (S::Open, Act::Create),
        // Its key is ours, so it is no FIRST of the peer's.
        (S::Opening, I::First) => (S::Opening, Act::Drop),
        (S::Open, I::First) => (S::Open, Act::Take),

        (S::Quiescent, I::Data | I::Status) => (S::Quiescent, Act::Disown),
        (S::Opening | S::Open, I::Data | I::Status) => (S::Open, Act::Take),
        (S::Inactive, I::First | I::Data | I::Status) => (S::Inactive, Act::SayEnd),

        (S::Opening | S::Open, I::End | I::Refused) => (S::Inactive, Act::Leave),
        // Data overtook the FIRST, which is sent until it is answered.
        (S::Opening, I::Disowned) => (S::Opening, Act::Drop),
        // The answer may be to data that overtook the FIRST: the context asks whether it holds.
        (S::Open, I::Disowned) => (S::Open, Act::Take),
        (S::Opening | S::Open, I::Remark) => (state, Act::Take),
        (S::Quiescent | S::Inactive, I::End | I::Refused | I::Disowned | I::Remark) => {
            (state, Act::Drop)
        }
        (S::Quiescent | S::Opening | S::Open | S::Inactive, I::Group) => (state, Act::Drop),

        (S::Open, I::BothClosed) => (S::Inactive, Act::SayEnd),
        (S::Opening | S::Open, I::GivenUp) => (S::Inactive, Act::SayEnd),
        (S::Inactive, I::PeriodOver) => (S::Quiescent, Act::Leave),
        _ => return None,
    })
}

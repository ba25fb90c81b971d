//! [`Error`]: what can go wrong, by whose fault it is, with stable numbers.
//!
//! The one list behind the codes on the wire (field 8), the C API and the exit codes; it is printed
//! in `docs/errors.md`.

use std::fmt;
use std::sync::Arc;

/// Whose fault an error is; what a program does about it depends on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The calling program: a call that was wrong.
    Misuse,
    /// The configuration: a file or option says something impossible.
    Config,
    /// The peer: it broke the protocol or refused.
    Peer,
    /// The versions or modules of the two ends do not meet.
    Version,
    /// The network between them.
    Network,
    /// Something is used up.
    Resource,
    /// This host: a file, a device, the operating system.
    Local,
    /// The daemon went away.
    DaemonLost,
    /// A mistake of ours.
    Internal,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal, $fault:ident, $text:literal;)*) => {
        /// The kind of an error, with its stable number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Code {
            $($(#[doc = $doc])* $name = $code,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code with this number; `None` for a number of a later version.
            #[must_use]
            pub fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Whose fault it is.
            #[must_use]
            pub fn fault(self) -> Fault {
                match self {
                    $(Self::$name => Fault::$fault,)*
                }
            }

            /// What happened, in a few words.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    /// The session, flow or request that a call names does not exist, or not in this state.
    NoSuchThing = 101, Misuse, "no such session, flow or request, or not in this state";
    /// A unit is larger than the flow allows.
    UnitTooLarge = 102, Misuse, "the unit is larger than the flow allows";
    /// A unit is longer than the memory that a call has for it.
    BufferTooShort = 103, Misuse, "the unit is longer than the buffer";
    /// A handle was made before this process was forked; it is its parent's.
    Forked = 104, Misuse, "the handle belongs to the process that this one was forked from";
    /// A graph is not legal over the transport.
    IllegalGraph = 201, Config, "the graph is not legal";
    /// Nothing that exists makes of the network what is asked for.
    Infeasible = 202, Config, "no protocol meets the request";
    /// What is asked for cannot be at the same time.
    Contradiction = 203, Config, "the attributes contradict each other";
    /// A session file is wrong; the text has every mistake with its line.
    SessionFile = 204, Config, "the session file is invalid";
    /// A record came in a state in which it must not.
    Violation = 301, Peer, "the peer broke the protocol";
    /// A record is not of its form.
    Malformed = 302, Peer, "the peer sent a malformed record";
    /// A command got no answer in time.
    NoAnswer = 303, Peer, "the peer did not answer in time";
    /// The peer refused.
    Refused = 304, Peer, "the peer refused";
    /// The name asked for is not served.
    NotServed = 305, Peer, "no session of this name is served";
    /// The two ends have no protocol version in common.
    NoCommonVersion = 401, Version, "no protocol version in common";
    /// A module of the graph does not exist at one end.
    UnknownModule = 402, Version, "a module of the graph does not exist at one end";
    /// A transport or command does not exist at one end.
    Unsupported = 403, Version, "not supported at one end";
    /// Nothing answers at the address.
    Unreachable = 501, Network, "nothing answers at the address";
    /// The peer gives no sign of life any more.
    ContactLost = 502, Network, "contact lost";
    /// Control works and datagrams of flows do not come through.
    NoDataPath = 503, Network, "control works, but no datagram of a flow comes through";
    /// Contact was lost for longer than the session waits.
    GivenUp = 504, Network, "contact did not come back";
    /// The peer was started anew: it knows nothing of the sessions that ran.
    PeerRestarted = 505, Network, "the peer was started anew";
    /// The host that was dialed says that nothing listens at the port.
    NotListening = 506, Network, "nothing listens at the address";
    /// A bound on sessions, peers or requests is reached.
    TooMany = 601, Resource, "a bound on sessions, peers or requests is reached";
    /// The packet pool is used up.
    OutOfMemory = 602, Resource, "the memory budget is used up";
    /// Who was asked has enough to do; the same host serves the session at another port.
    Elsewhere = 603, Resource, "the session is served at another port of the host";
    /// The application or its user ended it.
    Closed = 701, Local, "closed";
    /// An access module (file, device, application) failed.
    AccessFailed = 702, Local, "an access module failed";
    /// The operating system refused something.
    System = 703, Local, "the operating system refused";
    /// A module of a flow's graph panicked.
    ModuleFailed = 704, Local, "a module of the graph failed";
    /// A mistake of ours.
    Internal = 901, Internal, "an internal mistake";
}

/// What went wrong, and the particulars. Two are equal when kind and particulars are, whatever
/// caused them.
#[derive(Clone, Debug)]
pub struct Error {
    /// The kind.
    pub code: Code,
    /// The particulars: what, where and what to do; may be empty.
    pub text: String,
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error with its particulars.
    #[must_use]
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), cause: None }
    }

    /// An error that another one has caused; its text are the particulars, `source` gives it back.
    #[must_use]
    pub fn caused(code: Code, by: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { code, text: by.to_string(), cause: Some(Arc::new(by)) }
    }

    /// An error that the peer named; an unknown number is a refusal.
    #[must_use]
    pub fn from_peer(number: u16, text: &str) -> Self {
        Self::new(Code::from_number(number).unwrap_or(Code::Refused), text)
    }

    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.code.fault()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() {
            write!(f, "{} (error {})", self.code.summary(), self.code as u16)
        } else {
            write!(f, "{}: {} (error {})", self.code.summary(), self.text, self.code as u16)
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        (self.code, &self.text) == (other.code, &other.text)
    }
}

impl Eq for Error {}

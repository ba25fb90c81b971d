//! [`Link`]: one association of XTP, and why it is over.

use super::messages::Messages;
use super::options;
use dacapo_base::Time;
use dacapo_xtp::{ContextId, End};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Why an association is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// In order, or by this end.
    Closed,
    /// Nobody listens there.
    Refused,
    /// The other end has broken it off, or does not know it any more.
    Reset,
    /// It was not answered for as long as was to be waited.
    Silent,
    /// Packets as long as agreed, in bytes of UDP, get no further than this host.
    TooLong { len: usize },
    /// The protocol ended it: why.
    Protocol(String),
}

impl Lost {
    pub(super) fn of(end: End) -> Self {
        match end {
            End::Complete | End::Abandoned => Self::Closed,
            End::Aborted | End::Disowned => Self::Reset,
            End::TimedOut => Self::Silent,
            End::Refused(..) | End::TooFewMembers => Self::Protocol(end.to_string()),
        }
    }

    /// What reading finds behind the last byte.
    pub(super) fn end(&self) -> io::Result<usize> {
        match self {
            Self::Closed => Ok(0),
            Self::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
            Self::Reset => Err(io::ErrorKind::ConnectionReset.into()),
            Self::Silent => Err(io::ErrorKind::TimedOut.into()),
            Self::TooLong { len } => Err(io::Error::other(format!(
                "XTP: this host sends no datagrams of {len} bytes there any more: \
                 check the MTU of its devices, and open the flow again"
            ))),
            Self::Protocol(text) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, format!("XTP: {text}")))
            }
        }
    }
}

/// An association.
#[derive(Debug)]
pub(super) struct Link {
    /// Its context; a dialer has none before the time is known.
    pub(super) context: Option<ContextId>,
    /// The other end.
    pub(super) remote: SocketAddr,
    /// What stands before its packets.
    pub(super) label: u32,
    pub(super) is_dialer: bool,
    /// Its place in the table of streams.
    pub(super) place: usize,
    pub(super) lost: Option<Lost>,
    /// The other end sends no more, and all of it was read.
    pub(super) is_finished: bool,
    /// The table of streams has let it go.
    pub(super) is_left: bool,
    /// When it is ended, however far its orderly end is.
    pub(super) until: Option<Time>,
    /// What has come is not handed up now.
    pub(super) is_paused: bool,
    /// Somebody was told that there is no room.
    pub(super) is_awaited: bool,
    /// It ends when the rest is gone.
    pub(super) is_ending: bool,
    /// How long it lives while nothing is acknowledged, once that was said.
    pub(super) patience: Option<Duration>,
    /// The most bits per second that its flow sends; 0 when it has no bound.
    pub(super) bound_bps: u64,
    /// None of its datagrams was shorter, in bytes, as far as that matters.
    pub(super) shortest: usize,
    /// The rest of a message of which the engine has taken a part.
    pub(super) rest: Vec<u8>,
    /// What was said of the stream, while it may have to be said again, and when.
    pub(super) said: Vec<u8>,
    pub(super) say_again_at: Option<Time>,
    /// What has come, in the unreliable mode.
    pub(super) messages: Messages,
}

impl Link {
    pub(super) fn new(remote: SocketAddr, label: u32, context: Option<ContextId>) -> Self {
        Self {
            context,
            remote,
            label,
            is_dialer: context.is_none(),
            place: usize::MAX,
            lost: None,
            is_finished: false,
            is_left: false,
            until: None,
            is_paused: false,
            is_awaited: false,
            is_ending: false,
            patience: None,
            bound_bps: 0,
            shortest: options::SHORT_LEN,
            rest: Vec::new(),
            said: Vec::new(),
            say_again_at: None,
            messages: Messages::default(),
        }
    }

    /// What reading finds when nothing more is there now.
    pub(super) fn end(&self) -> io::Result<usize> {
        match &self.lost {
            // What came before the end is handed up before it.
            _ if !self.messages.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            _ if self.is_finished => Ok(0),
            Some(lost) => lost.end(),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

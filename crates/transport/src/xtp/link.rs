//! [`Link`]: one association of XTP as bytes to read and write, for the table of streams.
//!
//! ```text
//!   Streams (table)  --Read, Write-->  StreamOf --number--> Links: engine, associations
//! ```

use super::links::Links;
use super::messages::Messages;
use super::options;
use crate::stream::Connection;
use dacapo_base::Time;
use dacapo_xtp::{ContextId, End};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// A [`Link`] as the table of streams holds it.
pub(super) struct StreamOf {
    links: Arc<Mutex<Links>>,
    number: usize,
}

impl StreamOf {
    pub(super) fn new(links: &Arc<Mutex<Links>>, number: usize) -> Self {
        Self { links: links.clone(), number }
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        lock(&self.links)
    }
}

/// The links; nobody holds them while the table of streams is called.
pub(super) fn lock(links: &Mutex<Links>) -> MutexGuard<'_, Links> {
    // A poisoned lock still holds them.
    links.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Read for StreamOf {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.links().read(self.number, into)
    }
}

impl Write for StreamOf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.links().write(self.number, parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection for StreamOf {
    // The end may stand behind what was read, and no event tells of it again.
    const SHORT_READ_IS_ALL: bool = false;

    fn end_writing(&mut self) {
        self.links().end_writing(self.number);
    }

    fn set_patience(&mut self, patience: Duration) {
        self.links().set_patience(self.number, patience);
    }
}

impl Drop for StreamOf {
    fn drop(&mut self) {
        self.links().let_go(self.number);
    }
}

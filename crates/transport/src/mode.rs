//! [`Mode`]: how datagrams go over a transport that has streams, QUIC or XTP.

/// How datagrams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As records of a stream, which repairs what is lost.
    Streams,
    /// Each by itself, and sent once.
    Datagrams,
}

impl Mode {
    /// What holds for this mode, of what holds for streams and for datagrams.
    pub(crate) fn pick<T>(self, streams: T, datagrams: T) -> T {
        match self {
            Self::Streams => streams,
            Self::Datagrams => datagrams,
        }
    }
}

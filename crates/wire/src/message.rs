//! [`Message`]: every record of the control protocol, and the table of their numbers and names.
//!
//! ```text
//!   stream -> record::Reader -> Message -> the core        (record.rs bounds and reassembles)
//!   the core -> Message::encode -> stream
//! ```
//!
//! Invariants: what [`Message::encode`] writes, [`Message::decode`] reads; the two differ at most
//! in texts, which are made safe and cut on the way out. Every record is in the table below once.
//!
//! Source: docs/protocol.md, "Records".

use crate::change::{Abort, Cannot, Done, Prepare, Ready, Request, Switched};
use crate::hub::{Goodbye, Hello, List, Listing, Refuse, Welcome};
use crate::limits::BODY_LEN_MAX;
use crate::record::{EncodeError, HEADER_LEN, RecordError};
use crate::session::{
    Accept, Activate, Activated, Answer, Close, Closed, Control, ControlAnswer, Deactivate,
    Deactivated, End, Join, Offer, Report,
};
use crate::tlv::{Fault, Fields, Form, Writer};

/// Where a record may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// On the first stream of the connection.
    Hub,
    /// On the stream of a session.
    Session,
    /// On either.
    Both,
}

macro_rules! records {
    ($($variant:ident = $code:literal $name:literal on $stream:ident,)*) => {
        /// What a record is, by its type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum MessageKind {
            $(#[doc = concat!("`", $name, "`")] $variant = $code,)*
        }

        impl MessageKind {
            /// Every kind, in the order of the numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name on the page.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Where it may be.
            #[must_use]
            pub const fn stream(self) -> Stream {
                match self {
                    $(Self::$variant => Stream::$stream,)*
                }
            }

            /// The kind of that type; `None` when there is none in this version.
            #[must_use]
            pub const fn from_code(code: u16) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }

            fn read(self, fields: Fields<'_>) -> Result<Message, Fault> {
                match self {
                    $(Self::$variant => $variant::read(fields).map(Message::$variant),)*
                }
            }
        }

        /// A record of the control protocol.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Message {
            $(#[doc = concat!("`", $name, "`")] $variant($variant),)*
        }

        impl Message {
            /// What it is.
            #[must_use]
            pub const fn kind(&self) -> MessageKind {
                match self {
                    $(Self::$variant(_) => MessageKind::$variant,)*
                }
            }

            fn write(&self, to: &mut Writer) {
                match self {
                    $(Self::$variant(record) => record.write(to),)*
                }
            }
        }

        $(impl From<$variant> for Message {
            fn from(record: $variant) -> Self {
                Self::$variant(record)
            }
        })*
    };
}

records! {
    Hello = 0x0001 "HELLO" on Hub,
    Welcome = 0x0002 "WELCOME" on Hub,
    Refuse = 0x0003 "REFUSE" on Both,
    List = 0x0004 "LIST" on Hub,
    Listing = 0x0005 "LISTING" on Hub,
    Goodbye = 0x0006 "GOODBYE" on Hub,
    Join = 0x0010 "JOIN" on Session,
    Offer = 0x0011 "OFFER" on Session,
    Answer = 0x0012 "ANSWER" on Session,
    Accept = 0x0013 "ACCEPT" on Session,
    Activate = 0x0015 "ACTIVATE" on Session,
    Activated = 0x0016 "ACTIVATED" on Session,
    Deactivate = 0x0017 "DEACTIVATE" on Session,
    Deactivated = 0x0018 "DEACTIVATED" on Session,
    End = 0x0019 "END" on Session,
    Report = 0x001A "REPORT" on Session,
    Close = 0x001B "CLOSE" on Session,
    Closed = 0x001C "CLOSED" on Session,
    Control = 0x001D "CONTROL" on Session,
    ControlAnswer = 0x001E "CONTROL_ANSWER" on Session,
    Prepare = 0x0020 "PREPARE" on Session,
    Ready = 0x0021 "READY" on Session,
    Cannot = 0x0022 "CANNOT" on Session,
    Abort = 0x0023 "ABORT" on Session,
    Switched = 0x0024 "SWITCHED" on Session,
    Done = 0x0025 "DONE" on Session,
    Request = 0x0026 "REQUEST" on Session,
}

impl MessageKind {
    /// The type on the wire.
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }
}

impl Message {
    /// Reads the body of a record of type `code`.
    ///
    /// # Errors
    /// [`RecordError`]: the type is not known, which the caller may pass over when it is
    /// [`crate::record::TYPE_OPTIONAL_MIN`] or above; or the body is too long or not of its form.
    pub fn decode(code: u16, body: &[u8]) -> Result<Self, RecordError> {
        let kind = MessageKind::from_code(code).ok_or(RecordError::UnknownType(code))?;
        if body.len() > BODY_LEN_MAX {
            let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
            return Err(RecordError::TooLong { kind: code, len });
        }
        let message = Fields::parse(body).and_then(|fields| kind.read(fields));
        message.map_err(|Fault { field, what }| RecordError::Malformed { kind: code, field, what })
    }

    /// Appends the whole record: type, length and body. Texts are made safe to print, and cut at a
    /// character's boundary to what the protocol allows.
    ///
    /// # Errors
    /// [`EncodeError`], and nothing is appended, when [`Self::decode`] would refuse the record.
    pub fn encode(&self, into: &mut Vec<u8>) -> Result<(), EncodeError> {
        let kind = self.kind();
        let mut writer = Writer::default();
        self.write(&mut writer);
        let body = writer.finish();
        let body =
            body.map_err(|Fault { field, what }| EncodeError::Field { kind, field, what })?;
        let len = u32::try_from(body.len()).ok().filter(|_| body.len() <= BODY_LEN_MAX);
        let len = len.ok_or(EncodeError::TooLong { kind, len: body.len() })?;
        into.reserve(HEADER_LEN.saturating_add(body.len()));
        into.extend_from_slice(&kind.code().to_be_bytes());
        into.extend_from_slice(&len.to_be_bytes());
        into.extend_from_slice(&body);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_are_distinct_and_come_back() {
        assert!(MessageKind::ALL.is_sorted_by(|a, b| a.code() < b.code()));
        for &kind in MessageKind::ALL {
            assert_eq!(MessageKind::from_code(kind.code()), Some(kind));
            assert!(kind.code() < crate::record::TYPE_OPTIONAL_MIN);
        }
        assert_eq!(MessageKind::from_code(0x0014), None);
        assert_eq!(Message::from(Closed).kind(), MessageKind::Closed);
    }

    #[test]
    fn a_body_beyond_the_bound_is_refused_both_ways() {
        let body = vec![0; BODY_LEN_MAX + 1];
        let error = RecordError::TooLong { kind: 0x1C, len: 65_537 };
        assert_eq!(Message::decode(0x1C, &body), Err(error));
        let entry = crate::hub::SessionEntry {
            name: "n".repeat(64),
            title: "t".repeat(256),
            ..crate::hub::SessionEntry::default()
        };
        let mut into = vec![7];
        let listing =
            |count| Message::from(Listing { request: 1, sessions: vec![entry.clone(); count] });
        let error = EncodeError::TooLong { kind: MessageKind::Listing, len: 8 + 256 * 346 };
        assert_eq!(listing(256).encode(&mut into), Err(error));
        assert_eq!(into, [7]);
        assert_eq!(listing(189).encode(&mut into), Ok(()));
    }
}

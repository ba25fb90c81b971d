//! Decoder: [`Diagnostic`], what a peer says went wrong.
//!
//! ```text
//!   0        4        8
//!  +--------+--------+-----------------+
//!  | code   | val    | message, text   |
//!  +--------+--------+-----------------+
//! ```
//!
//! The message is what another host wrote: any bytes, of any length. It is shown escaped.

use super::Fault;
use dacapo_wire::bytes::Reader;
use std::fmt;

/// What has become of an association or a request. Numbers that nobody has assigned stay numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reason(pub u32);

macro_rules! numbers {
    ($of:ident: $($name:ident = $number:literal $text:literal;)*) => {
        impl $of {
            $(#[doc = concat!("\"", $text, "\".")] pub const $name: Self = Self($number);)*

            /// Every number that is assigned.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name of the number; `None` when it is not assigned.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $of {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "number {}", self.0),
                }
            }
        }
    };
}

numbers! { Code:
    CONTEXT_REFUSED = 1 "context refused";
    CONTEXT_ABANDONED = 2 "context abandoned";
    INVALID_CONTEXT = 3 "invalid context";
    REQUEST_REFUSED = 4 "request refused";
    JOIN_REFUSED = 5 "join refused";
    PROTOCOL_ERROR = 6 "protocol error";
    PACKET_SIZE = 7 "maximum packet size error";
}

numbers! { Reason:
    UNSPECIFIED = 0 "unspecified";
    NO_LISTENER = 1 "no listener";
    OPTIONS_REFUSED = 2 "options refused";
    ADDRESS_FORMAT = 3 "address format not supported";
    ADDRESS_MALFORMED = 4 "malformed address format";
    TRAFFIC_FORMAT = 5 "traffic format not supported";
    TRAFFIC_REFUSED = 6 "traffic specification refused";
    TRAFFIC_MALFORMED = 7 "malformed traffic format";
    NO_PROVIDER = 8 "no provider for service";
    NO_RESOURCE = 9 "no resource";
    GOING_DOWN = 10 "host going down";
    RETRANSMISSION = 11 "invalid retransmission request";
    IMPROPER_STATE = 12 "context in improper state";
    JOIN_DENIED = 13 "join request denied";
}

/// A diagnostic segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diagnostic<'a> {
    /// What has become of the association.
    pub code: Code,
    /// Why.
    pub reason: Reason,
    /// Text for people, of any bytes.
    pub message: &'a [u8],
}

impl<'a> Diagnostic<'a> {
    /// Reads the segment; the message is all that follows the numbers.
    ///
    /// # Errors
    /// [`Fault::Diagnostic`] when there are fewer than 8 bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Fault> {
        let mut reader = Reader(bytes);
        let mut number = || reader.u32().or(Err(Fault::Diagnostic));
        let (code, reason) = (Code(number()?), Reason(number()?));
        Ok(Self { code, reason, message: reader.0 })
    }

    /// Appends the bytes.
    pub fn emit(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.code.0.to_be_bytes());
        into.extend_from_slice(&self.reason.0.to_be_bytes());
        into.extend_from_slice(self.message);
    }
}

/// At most this many bytes of a message are shown.
const SHOWN_LEN_MAX: usize = 200;

impl fmt::Display for Diagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)?;
        let shown = self.message.get(..SHOWN_LEN_MAX).unwrap_or(self.message);
        if !shown.is_empty() {
            write!(f, " (\"{}\")", shown.escape_ascii())?;
        }
        Ok(())
    }
}

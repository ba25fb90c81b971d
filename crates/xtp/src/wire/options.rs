//! [`Options`] and [`Format`]: the command word of a header.
//!
//! ```text
//!   31  30 ………………………………………………………………… 16  15 … 8   7 … 5    4 … 0
//!  +---+---------------------------------+--------+-------+---------+
//!  | 0 | NOCHECK EDGE … END BTAG         |   0    | ver=1 | pformat |
//!  +---+---------------------------------+--------+-------+---------+
//! ```

use super::Fault;
use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of options. Reserved bits are never in it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Options(u32);

macro_rules! options {
    ($($(#[doc = $about:literal])+ $name:ident = $bit:literal;)*) => {
        impl Options {
            $($(#[doc = $about])+ pub const $name: Self = Self(1 << $bit);)*

            /// Every option with its name, from the highest bit down.
            pub const ALL: [(Self, &'static str); 15] = [$((Self::$name, stringify!($name)),)*];
        }
    };
}

options! {
    /// The checksum covers the header only.
    NOCHECK = 30;
    /// When its value changes, status is asked for.
    EDGE = 29;
    /// Nothing is to be sent again.
    NOERR = 28;
    /// The packet belongs to a multicast association.
    MULTI = 27;
    /// The receiver's window is what its user has posted.
    RES = 26;
    /// The `sort` field holds a priority.
    SORT = 25;
    /// The sender does not heed the receiver's window.
    NOFLOW = 24;
    /// A gap is to be reported at once.
    FASTNAK = 23;
    /// Status is asked for now.
    SREQ = 22;
    /// Status is asked for once everything up to here is delivered.
    DREQ = 21;
    /// The sender's reader is closed.
    RCLOSE = 20;
    /// The sender's writer is closed.
    WCLOSE = 19;
    /// The last byte of the packet ends a message.
    EOM = 18;
    /// The sender lets go of the association.
    END = 17;
    /// The data segment begins with a tag of 8 bytes.
    BTAG = 16;
}

impl Options {
    /// No option.
    pub const NONE: Self = Self(0);
    const MASK: u32 = 0x7FFF_0000;

    /// The options of a command word; reserved bits are ignored (decided here).
    #[must_use]
    pub const fn from_command(word: u32) -> Self {
        Self(word & Self::MASK)
    }

    /// Their bits in the command word.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all of `other` are here.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether one of `other` is here.
    #[must_use]
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// These if `condition` holds, else none.
    #[must_use]
    pub const fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::NONE }
    }
}

impl BitOr for Options {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Options {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::ALL.into_iter().filter(|(option, _)| self.has(*option));
        f.debug_set().entries(names.map(|(_, name)| format_args!("{name}").to_string())).finish()
    }
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Bytes of the stream.
    Data = 0,
    /// Status.
    Cntl = 1,
    /// Opens an association.
    First = 2,
    /// Status with what is missing.
    Ecntl = 3,
    /// Status with a traffic specification and the sender's key.
    Tcntl = 5,
    /// Joined a group in revision 4.0; 4.0b has `Jcntl` in its place.
    Join = 6,
    /// Joins a group, or lets one join.
    Jcntl = 7,
    /// Says what went wrong.
    Diag = 8,
}

impl Format {
    /// Every format that has a number.
    pub const ALL: [Self; 8] = [
        Self::Data,
        Self::Cntl,
        Self::First,
        Self::Ecntl,
        Self::Tcntl,
        Self::Join,
        Self::Jcntl,
        Self::Diag,
    ];

    /// The name in capitals, as it is written in the literature.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "DATA",
            Self::Cntl => "CNTL",
            Self::First => "FIRST",
            Self::Ecntl => "ECNTL",
            Self::Tcntl => "TCNTL",
            Self::Join => "JOIN",
            Self::Jcntl => "JCNTL",
            Self::Diag => "DIAG",
        }
    }

    /// The format of this number.
    ///
    /// # Errors
    /// [`Fault::Format`] for a number that is not assigned.
    pub fn from_number(number: u8) -> Result<Self, Fault> {
        let known = Self::ALL.into_iter().find(|format| *format as u8 == number);
        known.ok_or(Fault::Format(number))
    }

    /// Whether it carries bytes of the stream.
    #[must_use]
    pub const fn is_information(self) -> bool {
        matches!(self, Self::Data | Self::First)
    }
}

//! [`Verdict`]: what a module decided about the packet in its slot, and [`DropReason`].

use std::fmt;

/// What becomes of the packet in the slot, said by the module and done by the runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It goes on to the next module in its direction.
    Forward,
    /// The module has taken it out of the slot and keeps it or has emitted it.
    Held,
    /// The runner frees it and counts the reason.
    Drop(DropReason),
}

macro_rules! drop_reasons {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal, $text:literal;)*) => {
        /// Why a packet or a unit was given up; the numbers are those of the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DropReason {
            $($(#[doc = $doc])* $name = $code,)*
        }

        impl DropReason {
            /// Every reason, in the order of the numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The reason with this number; `None` for a number of a later version.
            #[must_use]
            pub fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The reason as one word, for tables and metrics.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// A header that no peer of ours writes.
    Malformed = 0, "malformed";
    /// A check over the bytes failed.
    Checksum = 1, "checksum";
    /// It was there already.
    Duplicate = 2, "duplicate";
    /// It belongs before what was already passed on.
    Stale = 3, "stale";
    /// A queue or window was at its bound.
    Overflow = 4, "overflow";
    /// The packet pool was at its budget.
    NoMemory = 5, "no_memory";
    /// It exceeds the largest unit of the flow.
    TooLarge = 6, "too_large";
    /// It belongs to a time before a jump of the medium.
    OldGeneration = 7, "old_generation";
    /// The flow or epoch was shut down with it inside.
    Shutdown = 8, "shutdown";
    /// The application did not take it.
    Refused = 9, "refused";
    /// A test took it.
    Injected = 10, "injected";
}

impl DropReason {
    /// The number of reasons: the length of a table of counters.
    pub const COUNT: usize = Self::ALL.len();

    /// The place of this reason in a table of counters.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_dense_so_that_they_index_tables() {
        for (index, &reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), index);
            assert_eq!(DropReason::from_code(index as u8), Some(reason));
        }
        assert_eq!(DropReason::from_code(DropReason::COUNT as u8), None);
    }

    #[test]
    fn a_verdict_is_one_word() {
        assert!(size_of::<Verdict>() <= 2);
    }
}

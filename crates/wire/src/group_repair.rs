//! What the ends of module `nak-group` say to each other beside the packets of its blocks, whose
//! header is that of the [parity modules](crate::parity).
//!
//! ```text
//!   0                    24        32        40                  56
//!  +--------------------+---------+---------+-------------------+----------
//!  |  block (low 24)     |  kind   |    0    |  number            | …
//!  +--------------------+---------+---------+-------------------+----------
//!   kind  0   the block has ended with so many sources; nothing follows
//!         1   a receiver asks: `block` is how many ms an answer takes to come, `number` what its
//!             echo is to say u8 (0: none is wanted), and how many blocks follow u8: each block
//!             u24, have u8, rows u8
//!         2   the echo: `block` and the upper byte of `number` as they came; nothing follows
//!         3   what modules above say to each other: `block` and `number` are 0, and it follows
//! ```
//!
//! No packet of a block has 0 sources, so the fifth byte tells both apart. `have` is how many
//! packets of the block have come, whichever; `rows` how many of its parities have been made as far
//! as the receiver has seen. From both the sender knows how many more it needs, and of these how
//! many may be under way already. An echo goes to the group, as parities do: from that of its own
//! asking a receiver knows how long answers take, for parities may be answers to others.
//!
//! Own. RFC 5740 section 4.3.1 asks for packets by their numbers too; here any parity is as good as
//! another, so a count says all.

use crate::Malformed;
use crate::bytes::{Reader, all};
use crate::parity::LEN;

/// The most sources that a block can have.
pub const SOURCES_MAX: u8 = 127;

/// The most blocks in one asking.
pub const ASKS_MAX: usize = 64;

/// The length of what is asked of a block, in bytes.
pub const ASK_LEN: usize = 5;

const ENDED: u8 = 0;
const ASKED: u8 = 1;
const HEARD: u8 = 2;
const BESIDE: u8 = 3;

/// Where the byte is that is 0.
const SOURCES_AT: usize = 4;

/// What an end says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// A block has ended.
    Ended {
        /// The low 24 bits of its number.
        block: u32,
        /// How many sources it has, 1 to [`SOURCES_MAX`].
        sources: u8,
    },
    /// A receiver asks for so many blocks: [`asks`] follow.
    Asked {
        /// How many ms an answer takes to come; below 2^24.
        answer_ms: u32,
        /// What the echo is to say; 0: none is wanted.
        echo: u8,
        /// How many blocks, 1 to [`ASKS_MAX`].
        count: u8,
    },
    /// The sender has heard an asking that said this.
    Heard {
        /// As it came.
        answer_ms: u32,
        /// As it came; not 0.
        echo: u8,
    },
    /// What modules above say to each other follows: it is in no block.
    Beside,
}

impl Said {
    /// True where a packet is of this kind, and not one of a block.
    #[must_use]
    pub fn is(packet: &[u8]) -> bool {
        packet.get(SOURCES_AT) == Some(&0)
    }

    /// Reads the header at the front of a packet.
    ///
    /// # Errors
    /// [`Malformed`] when the packet is too short or too long, is of no kind, or a number is out of
    /// its bounds.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(packet);
        let (place, sources, number) = (reader.u32()?, reader.u8()?, reader.u16()?);
        let (block, kind, rest) = (place >> 8, place as u8, reader.0.len());
        let [upper, lower] = number.to_be_bytes();
        let said = match kind {
            ENDED if upper == 0 => Self::Ended { block, sources: lower },
            ASKED => Self::Asked { answer_ms: block, echo: upper, count: lower },
            HEARD if lower == 0 => Self::Heard { answer_ms: block, echo: upper },
            BESIDE if block == 0 && number == 0 => Self::Beside,
            _ => return Err(Malformed),
        };
        let is_legal = match said {
            Self::Ended { sources, .. } => (1..=SOURCES_MAX).contains(&sources) && rest == 0,
            Self::Heard { echo, .. } => echo != 0 && rest == 0,
            Self::Beside => rest > 0,
            Self::Asked { count, .. } => {
                let count = usize::from(count);
                (1..=ASKS_MAX).contains(&count) && rest == count.saturating_mul(ASK_LEN)
            }
        };
        if sources == 0 && is_legal { Ok(said) } else { Err(Malformed) }
    }

    /// The bytes; of the block's number, or the time, the low 24 bits.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let (first, kind, upper, lower) = match *self {
            Self::Ended { block, sources } => (block, ENDED, 0, sources),
            Self::Asked { answer_ms, echo, count } => (answer_ms, ASKED, echo, count),
            Self::Heard { answer_ms, echo } => (answer_ms, HEARD, echo, 0),
            Self::Beside => (0, BESIDE, 0, 0),
        };
        let [_, a, b, c] = first.to_be_bytes();
        [a, b, c, kind, 0, upper, lower]
    }
}

/// What a receiver asks of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The low 24 bits of the block's number.
    pub block: u32,
    /// How many packets of it have come.
    pub have: u8,
    /// How many of its parities have been made, as far as is known.
    pub rows: u8,
}

impl Ask {
    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; ASK_LEN] {
        let [_, a, b, c] = self.block.to_be_bytes();
        [a, b, c, self.have, self.rows]
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (place, rows) = (reader.u32()?, reader.u8()?);
        Ok(Self { block: place >> 8, have: place as u8, rows })
    }
}

/// What follows a header of [`Said::Asked`].
///
/// # Errors
/// [`Malformed`] where there is nothing, more than [`ASKS_MAX`], or a part of one.
pub fn asks(bytes: &[u8]) -> Result<impl Iterator<Item = Ask>, Malformed> {
    if bytes.is_empty() { Err(Malformed) } else { all::<ASK_LEN, _>(bytes, ASKS_MAX, Ask::parse) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity;

    fn asked(asked: &[Ask]) -> Vec<u8> {
        let head = Said::Asked { answer_ms: 90, echo: 7, count: asked.len() as u8 }.emit();
        head.into_iter().chain(asked.iter().flat_map(Ask::emit)).collect()
    }

    const ASK: Ask = Ask { block: 0xFF_FFFE, have: 30, rows: 2 };

    #[test]
    fn emit_and_parse_are_inverse() {
        let ended = Said::Ended { block: 0xAB_CDEF, sources: 127 };
        assert_eq!(Said::parse(&ended.emit()), Ok(ended));
        let bytes = asked(&[ASK, Ask { block: 3, have: 0, rows: 0 }]);
        assert_eq!(Said::parse(&bytes), Ok(Said::Asked { answer_ms: 90, echo: 7, count: 2 }));
        let heard = Said::Heard { answer_ms: 90, echo: 7 };
        assert_eq!(Said::parse(&heard.emit()), Ok(heard));
        let beside = [&Said::Beside.emit()[..], &[9]].concat();
        assert_eq!(Said::parse(&beside), Ok(Said::Beside));
        let found: Vec<Ask> = asks(&bytes[LEN..]).unwrap().collect();
        assert_eq!(found, [ASK, Ask { block: 3, have: 0, rows: 0 }]);
    }

    #[test]
    fn no_packet_of_a_block_is_taken_for_one() {
        let header = parity::Header { block: 1, index: 0, sources: 1, length: 0 };
        assert!(!Said::is(&header.emit()) && !Said::is(&[0; 4]));
        let ended = Said::Ended { block: 1, sources: 1 }.emit();
        assert!(Said::is(&ended));
        assert_eq!(parity::Header::parse(&ended), Err(Malformed));
    }

    #[test]
    fn what_no_peer_writes_is_refused() {
        let ended = Said::Ended { block: 1, sources: 1 }.emit();
        for len in 0..LEN {
            assert_eq!(Said::parse(&ended[..len]), Err(Malformed));
        }
        assert_eq!(Said::parse(&[&ended[..], &[0]].concat()), Err(Malformed), "nothing follows");
        for sources in [0, SOURCES_MAX + 1, u8::MAX] {
            let bytes = Said::Ended { block: 1, sources }.emit();
            assert_eq!(Said::parse(&bytes), Err(Malformed), "{sources} sources");
        }
        let bytes = asked(&[ASK]);
        assert_eq!(Said::parse(&bytes[..bytes.len() - 1]), Err(Malformed));
        assert_eq!(Said::parse(&asked(&[])), Err(Malformed), "it asks for nothing");
        assert_eq!(Said::parse(&asked(&[ASK; ASKS_MAX + 1])), Err(Malformed));
        let mut strange = ended;
        strange[3] = 4;
        assert_eq!(Said::parse(&strange), Err(Malformed), "of no kind");
        assert_eq!(Said::parse(&Said::Beside.emit()), Err(Malformed), "nothing is said");
        let mut numbered = [&Said::Beside.emit()[..], &[9]].concat();
        numbered[6] = 1;
        assert_eq!(Said::parse(&numbered), Err(Malformed));
        let heard = Said::Heard { answer_ms: 1, echo: 0 }.emit();
        assert_eq!(Said::parse(&heard), Err(Malformed), "of what nobody wanted");
    }

    #[test]
    fn what_is_asked_is_read_whole_or_not_at_all() {
        assert!(asks(&[]).is_err() && asks(&[0; 4]).is_err() && asks(&[0; 6]).is_err());
        assert!(asks(&[0; ASK_LEN * (ASKS_MAX + 1)]).is_err());
        assert_eq!(asks(&[0; ASK_LEN * ASKS_MAX]).unwrap().count(), ASKS_MAX);
    }
}

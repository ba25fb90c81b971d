//! Decoder: [`Records`], the bytes of a connection: its preface, and records that hold a packet
//! each.
//!
//! ```text
//!   who dials   "dXTP" | version 2 | port 2      at which it can be dialed itself
//!   both ends   length 2 | packet                0 is no length
//! ```
//!
//! Invariant: no more is kept than what was read last and a record that is not whole.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use crate::connected::Received;
use std::ops::Range;
use std::{fmt, io};

const MAGIC: [u8; 4] = *b"dXTP";
const VERSION: u16 = 1;
/// Bytes of a preface.
pub const PREFACE_LEN: usize = 8;
const HEAD_LEN: usize = 2;

/// What came is not what a connection says; nothing after it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRecords;

impl fmt::Display for NotRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a connection are no preface and no records of XTP packets")
    }
}

impl std::error::Error for NotRecords {}

/// Bytes that came by a connection and were not taken.
#[derive(Debug, Default)]
pub struct Records {
    /// What came is from `at` to `end`; the rest is room.
    bytes: Vec<u8>,
    at: usize,
    end: usize,
    /// The preface was taken, and said this port.
    port: Option<u16>,
    /// The packets that were taken last, and how long each is.
    run: (Range<usize>, usize),
}

impl Records {
    /// Takes what is read into at most so much room; gives how much that was.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn fill(
        &mut self,
        len_max: usize,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.move_to_front();
        let wanted = self.end.saturating_add(len_max);
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        let tailroom = self.bytes.get_mut(self.end..wanted).unwrap_or_default();
        let len = read(tailroom)?.min(len_max);
        self.end = self.end.saturating_add(len);
        Ok(len)
    }

    /// What was taken goes, so that no more than a record is kept.
    fn move_to_front(&mut self) {
        let (at, end) = (std::mem::take(&mut self.at), self.end);
        self.bytes.copy_within(at..end, 0);
        self.end = end.saturating_sub(at);
        self.run = Default::default();
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..self.end).unwrap_or_default()
    }

    /// The port of the preface, which is taken the first time; `None` while it is not whole.
    ///
    /// # Errors
    /// [`NotRecords`]: another magic or version, or no port.
    pub fn preface(&mut self) -> Result<Option<u16>, NotRecords> {
        if self.port.is_some() {
            return Ok(self.port);
        }
        let Some(&[a, b, c, d, v0, v1, p0, p1]) = self.rest().first_chunk::<PREFACE_LEN>() else {
            return Ok(None);
        };
        let port = u16::from_be_bytes([p0, p1]);
        self.at = PREFACE_LEN;
        let is_one = [a, b, c, d] == MAGIC && u16::from_be_bytes([v0, v1]) == VERSION && port != 0;
        self.port = is_one.then_some(port);
        self.port.map(Some).ok_or(NotRecords)
    }

    /// Goes on to the next records that are whole and of one length, of which the last may be
    /// shorter; false while there is none.
    ///
    /// # Errors
    /// [`NotRecords`]: the next has a length of 0.
    pub fn next_run(&mut self) -> Result<bool, NotRecords> {
        let Some(segment) = packet_len(self.rest())? else { return Ok(false) };
        let start = self.at.saturating_add(HEAD_LEN);
        let mut last = segment;
        self.at = start.saturating_add(last);
        // One that is none ends the run, and is found when its turn comes.
        while let Ok(Some(len)) = packet_len(self.rest()) {
            if last != segment || len > segment {
                break;
            }
            last = len;
            self.at = self.at.saturating_add(HEAD_LEN).saturating_add(len);
        }
        self.run = (start..self.at, segment);
        Ok(true)
    }

    /// The packets to which [`Records::next_run`] has gone on last.
    #[must_use]
    pub fn run(&self) -> Received<'_> {
        let (range, segment) = self.run.clone();
        let train = self.bytes.get(range).unwrap_or_default();
        Received { train, segment, gap: HEAD_LEN }
    }
}

/// The length of the packet in the first record; `None` while that is not whole.
fn packet_len(bytes: &[u8]) -> Result<Option<usize>, NotRecords> {
    let Some((len, rest)) = bytes.split_first_chunk::<HEAD_LEN>() else { return Ok(None) };
    match usize::from(u16::from_be_bytes(*len)) {
        0 => Err(NotRecords),
        len => Ok((rest.len() >= len).then_some(len)),
    }
}

/// What an end that dials says first: at which port it listens.
#[must_use]
pub fn preface_of(port: u16) -> [u8; PREFACE_LEN] {
    let ([a, b, c, d], [v0, v1], [p0, p1]) = (MAGIC, VERSION.to_be_bytes(), port.to_be_bytes());
    [a, b, c, d, v0, v1, p0, p1]
}

/// What goes before a packet of this length.
#[must_use]
pub const fn record_head(len: u16) -> [u8; HEAD_LEN] {
    len.to_be_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    fn push(records: &mut Records, bytes: &[u8]) {
        let pushed = records.fill(bytes.len(), |tailroom| {
            tailroom.copy_from_slice(bytes);
            Ok(bytes.len())
        });
        assert_eq!(pushed.unwrap(), bytes.len());
    }

    fn with(bytes: &[u8]) -> Records {
        let mut records = Records::default();
        push(&mut records, bytes);
        records
    }

    /// The packets of the next run; none when there is none.
    fn run(records: &mut Records) -> Result<Vec<&[u8]>, NotRecords> {
        let is_one = records.next_run()?;
        let Received { train, segment, gap } = records.run();
        let chunks = train.chunks(segment.max(1) + gap).filter(|_| is_one);
        Ok(chunks.map(|bytes| &bytes[..segment.min(bytes.len())]).collect())
    }

    #[test]
    fn records_of_one_length_come_together_and_only_when_they_are_whole() {
        let bytes =
            [&[0, 3][..], b"one", &[0, 3], b"two", &[0, 1], b"3", &[0, 9], b"half"].concat();
        let mut records = with(&bytes);
        assert_eq!(run(&mut records), Ok(vec![&b"one"[..], b"two", b"3"]));
        assert_eq!(run(&mut records), Ok(vec![]));
        push(&mut records, b" more");
        assert_eq!(run(&mut records), Ok(vec![&b"half more"[..]]));
        assert_eq!(with(&[0, 0]).next_run(), Err(NotRecords), "a packet has a byte");
    }

    #[test]
    fn a_run_ends_before_a_longer_one_after_a_shorter_one_and_before_what_is_none() {
        let bytes = [&[0, 1][..], b"a", &[0, 2], b"bb", &[0, 1], b"c", &[0, 1], b"d", &[0, 0]];
        let mut records = with(&bytes.concat());
        assert_eq!(run(&mut records), Ok(vec![&b"a"[..]]));
        assert_eq!(run(&mut records), Ok(vec![&b"bb"[..], b"c"]));
        assert_eq!(run(&mut records), Ok(vec![&b"d"[..]]));
        assert_eq!(records.next_run(), Err(NotRecords));
    }

    #[test]
    fn a_preface_is_taken_once() {
        let bytes = [&preface_of(7)[..], &[0, 1], b"a", &[0, 2], b"bb"].concat();
        let mut records = with(&bytes);
        for packet in [&b"a"[..], b"bb"] {
            assert_eq!(records.preface(), Ok(Some(7)));
            assert_eq!(run(&mut records), Ok(vec![packet]));
        }
        assert_eq!(records.next_run(), Ok(false));
    }

    /// However what comes is cut, and however long it is, the same packets come out.
    #[test]
    fn no_more_is_kept_than_a_record_and_what_was_read() {
        let mut random = Random::from_number(2);
        let (mut records, mut pending, mut got) = (Records::default(), Vec::new(), Vec::new());
        let mut sent = Vec::new();
        for _ in 0..2_000 {
            let packet = vec![random.next_u32() as u8; 1 + random.below(300) as usize];
            pending.extend(record_head(packet.len() as u16));
            pending.extend(&packet);
            sent.push(packet);
            let cut = random.below(pending.len() as u64 + 1) as usize;
            push(&mut records, &pending.drain(..cut).collect::<Vec<u8>>());
            assert!(records.end <= 302 + cut);
            loop {
                let packets = run(&mut records).unwrap();
                if packets.is_empty() {
                    break;
                }
                got.extend(packets.into_iter().map(<[u8]>::to_vec));
            }
        }
        push(&mut records, &pending);
        while let Some(more) = Some(run(&mut records).unwrap()).filter(|it| !it.is_empty()) {
            got.extend(more.into_iter().map(<[u8]>::to_vec));
        }
        assert!(got == sent);
    }

    #[test]
    fn a_preface_is_one_or_is_none() {
        assert_eq!(with(&preface_of(4_040)).preface(), Ok(Some(4_040)));
        assert_eq!(with(&preface_of(4_040)[..7]).preface(), Ok(None));
        assert_eq!(with(&preface_of(0)).preface(), Err(NotRecords));
        let mut random = Random::from_number(1);
        for at in 0..6 {
            let mut bytes = preface_of(7);
            bytes[at] ^= 1 + random.below(255) as u8;
            assert_eq!(with(&bytes).preface(), Err(NotRecords), "byte {at}");
        }
    }
}

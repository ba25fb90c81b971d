//! Decoder: what this service writes into the streams of XTP: a [`Head`] before each message, and
//! [`Report`]s on the way back.
//!
//! ```text
//!   there  BTAG: number of the message, 8 bytes, from 0
//!          | 1 version | 1 flags | 2 priority | 2 port | 8 len |  len bytes of the message  EOM
//!   back   | 1 version | 1 kind  | 8 count |  EOM
//! ```
//!
//! XTP cannot carry an empty message in a stream; with a head none is empty. The length stands
//! before the message, so that who takes it in parts knows what is to come. All integers are
//! big-endian. Decided here: the published description has no format.
#![deny(clippy::arithmetic_side_effects)]

/// The version of both formats.
const VERSION: u8 = 1;
/// Flag: the sender waits for the report.
const URGENT: u8 = 1;

/// Length of a head in bytes.
pub const HEAD_LEN: usize = 14;
/// Length of a report in bytes.
pub const REPORT_LEN: usize = 10;

/// These bytes are not what this service writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// What stands before a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Whether the report is to be sent as soon as the message is taken.
    pub is_urgent: bool,
    /// The sender's priority; smaller is more urgent.
    pub priority: u16,
    /// The port of XTP at which the sender takes answers; 0: none.
    pub port: u16,
    /// Length of the message in bytes, without the head.
    pub len: u64,
}

impl Head {
    /// The bytes.
    pub fn emit(&self) -> [u8; HEAD_LEN] {
        let flags = if self.is_urgent { URGENT } else { 0 };
        let ([p0, p1], [q0, q1]) = (self.priority.to_be_bytes(), self.port.to_be_bytes());
        let [a, b, c, d, e, f, g, h] = self.len.to_be_bytes();
        [VERSION, flags, p0, p1, q0, q1, a, b, c, d, e, f, g, h]
    }

    /// Reads the bytes; flags that are not known are passed over.
    pub fn parse(bytes: [u8; HEAD_LEN]) -> Result<Self, Malformed> {
        let [version, flags, p0, p1, q0, q1, a, b, c, d, e, f, g, h] = bytes;
        if version != VERSION {
            return Err(Malformed);
        }
        Ok(Self {
            is_urgent: flags & URGENT != 0,
            priority: u16::from_be_bytes([p0, p1]),
            port: u16::from_be_bytes([q0, q1]),
            len: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        })
    }
}

/// What a report says beside its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// So many messages are with the user.
    Taken,
    /// The same, and nothing after them will be taken.
    LetGo(LetGo),
}

/// Why a receiver takes no more of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LetGo {
    /// It has no room for another association.
    Full,
    /// What came was not of this service.
    Malformed,
    /// Others needed the room of this association, which rested.
    Rested,
    /// It ends.
    Closing,
}

const LET_GO: [LetGo; 4] = [LetGo::Full, LetGo::Malformed, LetGo::Rested, LetGo::Closing];

/// What a receiver says of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it is.
    pub kind: Kind,
    /// How many messages the user has taken whole, from the first of the association on.
    pub count: u64,
}

impl Report {
    /// The bytes.
    pub fn emit(&self) -> [u8; REPORT_LEN] {
        let kind = match self.kind {
            Kind::Taken => 0,
            Kind::LetGo(LetGo::Full) => 1,
            Kind::LetGo(LetGo::Malformed) => 2,
            Kind::LetGo(LetGo::Rested) => 3,
            Kind::LetGo(LetGo::Closing) => 4,
        };
        let [a, b, c, d, e, f, g, h] = self.count.to_be_bytes();
        [VERSION, kind, a, b, c, d, e, f, g, h]
    }

    /// Reads the bytes.
    pub fn parse(bytes: [u8; REPORT_LEN]) -> Result<Self, Malformed> {
        let [version, kind, a, b, c, d, e, f, g, h] = bytes;
        let let_go = usize::from(kind).checked_sub(1).map(|place| LET_GO.get(place).copied());
        let kind = match let_go {
            None => Kind::Taken,
            Some(let_go) => Kind::LetGo(let_go.ok_or(Malformed)?),
        };
        let count = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        if version == VERSION { Ok(Self { kind, count }) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn what_is_written_reads_back() {
        let random = &mut Random::from_number(1);
        for _ in 0..1_000 {
            let (is_urgent, len) = (random.chance(0.5), random.next_u64());
            let (priority, port) = (random.next_u32() as u16, random.next_u32() as u16);
            let head = Head { is_urgent, priority, port, len };
            assert_eq!(Head::parse(head.emit()), Ok(head));
        }
        for kind in std::iter::once(Kind::Taken).chain(LET_GO.map(Kind::LetGo)) {
            let report = Report { kind, count: random.next_u64() };
            assert_eq!(Report::parse(report.emit()), Ok(report));
        }
    }

    #[test]
    fn any_bytes_are_read_as_what_they_are_written_as_or_refused() {
        let random = &mut Random::from_number(2);
        let (mut heads, mut reports) = (0, 0);
        for round in 0..10_000 {
            let (mut head, mut report) = ([0; HEAD_LEN], [0; REPORT_LEN]);
            random.fill(&mut head);
            random.fill(&mut report);
            if round % 2 == 0 {
                (head[0], head[1]) = (VERSION, head[1] & URGENT);
                (report[0], report[1]) = (VERSION, report[1] % 8);
            }
            if let Ok(read) = Head::parse(head) {
                head[1] &= URGENT;
                assert_eq!(read.emit(), head);
                heads += 1;
            }
            if let Ok(read) = Report::parse(report) {
                assert_eq!(read.emit(), report);
                reports += 1;
            }
        }
        assert!((5_000..6_000).contains(&heads) && (2_500..4_000).contains(&reports));
    }

    #[test]
    fn another_version_is_refused() {
        let mut head = Head { is_urgent: true, priority: 1, port: 3, len: 2 }.emit();
        head[0] = 2;
        assert_eq!(Head::parse(head), Err(Malformed));
        let mut report = Report { kind: Kind::Taken, count: 1 }.emit();
        report[0] = 0;
        assert_eq!(Report::parse(report), Err(Malformed));
    }
}

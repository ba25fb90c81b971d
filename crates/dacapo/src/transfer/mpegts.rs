//! [`Cutter`]: an MPEG transport stream, cut into units of whole packets.
//!
//! ```text
//!   read   ..47 packet 47 packet 47 pac|ket 47 packet ..
//!   unit       | up to 7 packets, 1,316 bytes | the next ...
//! ```
//!
//! As is usual over UDP and RTP (RFC 2250, section 2): a lost unit takes whole packets with it, and
//! what follows can be read.
//!
//! Invariants: no byte is lost or repeated, and what is passed over is counted; a unit begins with
//! a sync byte, but for what is left at the end; at most a unit waits.

use super::form::HEAD_LEN;

/// The length of a packet, in bytes (ISO/IEC 13818-1, section 2.4.3.2).
const PACKET_LEN: usize = 188;

/// Packets in a unit, as many as fit a datagram of Ethernet.
const PACKETS_MAX: usize = 7;

/// The largest unit of a transfer of transport streams, in bytes.
pub const MPEGTS_UNIT_LEN_MAX: usize = HEAD_LEN + UNIT_LEN;

/// The longest unit, in bytes, without the header of a transfer.
const UNIT_LEN: usize = PACKET_LEN * PACKETS_MAX;

/// What each packet begins with.
const SYNC: u8 = 0x47;

/// What has been read and not yet cut.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    /// At most a unit.
    bytes: Vec<u8>,
    /// Where the first of them lies in the stream.
    at: u64,
    /// What is left of a packet whose beginning was passed over.
    rest_len: usize,
}

impl Cutter {
    /// How many bytes more it takes now.
    pub fn room(&self) -> usize {
        UNIT_LEN.saturating_sub(self.bytes.len())
    }

    /// Takes what has been read, at most [`Cutter::room`].
    pub fn push(&mut self, bytes: &[u8]) {
        let rest = self.rest_len.min(bytes.len());
        self.rest_len -= rest;
        self.bytes.extend(bytes.iter().skip(rest));
    }

    /// So many bytes more than were pushed are passed over, and the rest of the last packet, with
    /// what waits here; returns how many those are together, from the last that was cut.
    pub fn pass_over(&mut self, len: u64) -> u64 {
        let counted = (self.rest_len as u64).min(len);
        self.rest_len -= counted as usize;
        let passed = (len - counted).saturating_add(self.bytes.len() as u64);
        self.bytes.clear();
        let whole = passed.next_multiple_of(PACKET_LEN as u64);
        self.rest_len += (whole - passed) as usize;
        self.at = self.at.saturating_add(whole);
        whole
    }

    /// Whether a packet is whole.
    pub fn has_packet(&self) -> bool {
        self.bytes.len() >= PACKET_LEN
    }

    /// Moves the whole packets to `into`; at the end of the stream also what is left of one.
    ///
    /// # Errors
    /// It is no transport stream: where.
    pub fn cut(&mut self, into: &mut Vec<u8>, is_end: bool) -> Result<(), String> {
        let whole = self.bytes.len() / PACKET_LEN * PACKET_LEN;
        let len = if is_end { self.bytes.len() } else { whole };
        let mut begins = (0..len).step_by(PACKET_LEN);
        let wrong = begins.find(|at| self.bytes.get(*at) != Some(&SYNC));
        if let Some((at, byte)) = wrong.and_then(|at| Some((at, self.bytes.get(at)?))) {
            let place = self.at.saturating_add(at as u64);
            return Err(format!(
                "no MPEG transport stream: byte {place} is 0x{byte:02x}, and packets begin with \
                 0x47; leave --format out to send it as it is"
            ));
        }
        into.clear();
        into.extend(self.bytes.drain(..len));
        self.at = self.at.saturating_add(len as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    fn stream(packets: usize, rest: usize) -> Vec<u8> {
        let mut random = Random::from_number(7);
        let mut bytes = vec![0; packets * PACKET_LEN + rest];
        random.fill(&mut bytes);
        bytes.iter_mut().step_by(PACKET_LEN).for_each(|byte| *byte = SYNC);
        bytes
    }

    #[test]
    fn however_it_is_read_units_are_whole_packets_and_nothing_is_lost() {
        for seed in 0..200 {
            let mut random = Random::from_number(seed);
            let bytes = stream(1 + random.below(50) as usize, random.below(188) as usize);
            let (mut cutter, mut rest, mut got, mut unit) =
                (Cutter::default(), &bytes[..], Vec::new(), Vec::new());
            while !rest.is_empty() {
                let most = cutter.room().min(rest.len());
                let (now, later) = rest.split_at(1 + random.below(most as u64) as usize);
                cutter.push(now);
                rest = later;
                if cutter.has_packet() {
                    cutter.cut(&mut unit, false).unwrap();
                    assert!(unit.len() <= UNIT_LEN && unit.len() % PACKET_LEN == 0);
                    got.extend_from_slice(&unit);
                }
            }
            cutter.cut(&mut unit, true).unwrap();
            got.extend_from_slice(&unit);
            assert!(got == bytes, "seed {seed}");
        }
    }

    #[test]
    fn behind_what_was_passed_over_it_begins_with_a_packet_and_no_byte_is_uncounted() {
        for seed in 0..300 {
            let mut random = Random::from_number(seed);
            let bytes = stream(40, 0);
            let (mut cutter, mut read, mut counted) = (Cutter::default(), 0, 0);
            let mut unit = Vec::new();
            while read < bytes.len() {
                let most = (bytes.len() - read).min(cutter.room()) as u64;
                let len = 1 + random.below(most) as usize;
                if random.chance(0.3) {
                    counted += cutter.pass_over(len as u64) as usize;
                } else {
                    cutter.push(&bytes[read..read + len]);
                    if cutter.has_packet() {
                        cutter.cut(&mut unit, false).unwrap();
                        assert!(unit == bytes[counted..counted + unit.len()], "seed {seed}");
                        counted += unit.len();
                    }
                }
                read += len;
            }
            cutter.cut(&mut unit, true).unwrap();
            assert_eq!(counted + unit.len(), bytes.len(), "seed {seed}");
        }
    }

    #[test]
    fn what_is_none_is_told_with_its_place() {
        let mut cutter = Cutter::default();
        let mut bytes = stream(12, 0);
        bytes[9 * PACKET_LEN] = 0x12;
        let (first, second) = bytes.split_at(UNIT_LEN);
        let mut unit = Vec::new();
        cutter.push(first);
        cutter.cut(&mut unit, false).unwrap();
        cutter.push(second);
        let text = cutter.cut(&mut unit, false).unwrap_err();
        assert!(text.starts_with("no MPEG transport stream: byte 1692 is 0x12"), "{text}");
    }
}

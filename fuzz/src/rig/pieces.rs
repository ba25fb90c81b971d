//! [`pieces`]: how many frames of a packet bring bytes of a stream or of the handshake.
//!
//! Source: RFC 9000, section 19.

/// How many frames of type CRYPTO and STREAM stand before what is no frame, the end included.
#[must_use]
pub fn pieces(frames: &[u8]) -> usize {
    let mut frames = Frames(frames);
    std::iter::from_fn(|| frames.next()).filter(|is_piece| *is_piece).count()
}

/// What is left of a packet.
struct Frames<'a>(&'a [u8]);

impl Frames<'_> {
    /// Passes over a frame; whether it is a piece.
    fn next(&mut self) -> Option<bool> {
        let kind = self.var()?;
        match kind {
            0x00 | 0x01 | 0x1E => {}
            0x02 | 0x03 => self.acknowledgement(kind == 0x03)?,
            0x06 => self.vars(1).and_then(|()| self.bytes())?,
            0x07 => self.bytes()?,
            0x08..=0x0F => self.stream(kind)?,
            0x05 | 0x11 | 0x15 => self.vars(2)?,
            0x04 => self.vars(3)?,
            0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => self.vars(1)?,
            0x18 => {
                self.vars(2)?;
                let (&len, rest) = self.0.split_first()?;
                self.0 = rest;
                self.skip(usize::from(len) + 16)?;
            }
            0x1A | 0x1B => self.skip(8)?,
            0x1C => self.vars(2).and_then(|()| self.bytes())?,
            0x1D => self.vars(1).and_then(|()| self.bytes())?,
            _ => return None,
        }
        Some(matches!(kind, 0x06 | 0x08..=0x0F))
    }

    fn stream(&mut self, kind: u64) -> Option<()> {
        self.vars(1 + usize::from(kind & 4 != 0))?;
        if kind & 2 != 0 { self.bytes() } else { self.skip(self.0.len()) }
    }

    fn acknowledgement(&mut self, has_counts: bool) -> Option<()> {
        self.vars(2)?;
        let ranges = usize::try_from(self.var()?).ok()?;
        self.vars(ranges.checked_mul(2)?.checked_add(1 + 3 * usize::from(has_counts))?)
    }

    fn var(&mut self) -> Option<u64> {
        let len = 1 << (self.0.first()? >> 6);
        let (number, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        let first = u64::from(number.first()? & 0x3F);
        Some(number.iter().skip(1).fold(first, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn vars(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.var().map(drop))
    }

    /// Bytes whose length stands before them.
    fn bytes(&mut self) -> Option<()> {
        let len = usize::try_from(self.var()?).ok()?;
        self.skip(len)
    }

    fn skip(&mut self, len: usize) -> Option<()> {
        self.0 = self.0.get(len..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::{crypto, stream};
    use super::*;

    #[test]
    fn pieces_are_counted_between_all_other_frames_and_up_to_what_is_none() {
        let others: [&[u8]; 14] = [
            &[0, 1, 0x1E],
            &[2, 9, 0, 2, 1, 1, 1, 1, 1],
            &[3, 9, 0, 0, 1, 5, 5, 5],
            &[4, 1, 1, 1],
            &[5, 1, 1],
            &[7, 2, 8, 8],
            &[0x10, 0x40, 9],
            &[0x11, 1, 1, 0x12, 1, 0x13, 1, 0x14, 1],
            &[0x15, 1, 1, 0x16, 1, 0x17, 1],
            &[&[0x18, 2, 1, 8][..], &[8; 24]].concat(),
            &[0x19, 1],
            &[0x1A, 8, 8, 8, 8, 8, 8, 8, 8, 0x1B, 8, 8, 8, 8, 8, 8, 8, 8],
            &[0x1C, 1, 6, 1, 8],
            &[0x1D, 1, 2, 8, 8],
        ];
        let piece = [crypto(500, &[6; 3]), stream(4, 70_000, &[8; 70])].concat();
        let mut frames = Vec::new();
        for (count, other) in others.iter().enumerate() {
            assert_eq!(pieces(&frames), 2 * count, "{other:?}");
            frames = [&frames[..], other, &piece].concat();
        }
        assert_eq!(pieces(&[&frames[..], &[0x21], &piece].concat()), 28);
        assert_eq!(pieces(&[&frames[..], &[0x08, 4, 6, 6, 6]].concat()), 29, "to the end");
        assert_eq!(pieces(&[0x06, 0, 9, 1]), 0, "longer than it is");
    }
}

//! [`Carry`]: what a link needs to know about the things it carries.
//!
//! A link never reads content; it asks for the length and the congestion codepoint, has a copy
//! made, bits flipped and a mark set. So the same engine carries datagrams, cells or counters in a
//! test.

use dacapo_base::Ecn;
use dacapo_base::Random;

/// How a corrupted item presents itself to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Corruption {
    /// A checksum below the receiver sees it (the receiving kernel's UDP checksum): the item never
    /// arrives. The link drops it and does not call [`Carry::corrupt`], unless the item carries
    /// that checksum itself ([`Carry::CHECKED`]).
    Detected,
    /// The checksums of the carrier are right for the altered bytes: the item arrives altered.
    Undetected,
}

/// Something that a [`crate::Link`] can carry.
pub trait Carry {
    /// Whether items carry the checksums of the layers below the receiver, as IP packets do. Such
    /// an item is altered and handed out also for [`Corruption::Detected`], so that it is the
    /// receiver that sees the wrong checksum and drops it.
    const CHECKED: bool = false;

    /// Length on the wire in bytes: what the rate, the queue and the MTU count.
    fn len(&self) -> usize;

    /// Whether the length is 0; such an item cannot be corrupted.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Alters the content so that it differs from before. A carrier with checksums of its own
    /// repairs them for [`Corruption::Undetected`] and leaves them wrong for
    /// [`Corruption::Detected`]. `random` belongs to this call alone: how much
    /// is drawn from it shifts nothing else.
    fn corrupt(&mut self, random: &mut Random, kind: Corruption);

    /// An equal second item.
    #[must_use]
    fn duplicate(&self) -> Self;

    /// The congestion codepoint. One that has none cannot be marked: it is dropped instead.
    #[must_use]
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    /// Changes the codepoint, and the checksums over it as the hop would: to CE, of an item that is
    /// ECN-capable, or to Not-ECT. Whoever does not say [`Carry::ecn`] needs to do nothing.
    fn set_ecn(&mut self, ecn: Ecn) {
        let _ = ecn;
    }
}

/// Plain bytes: corruption flips one to three different bits.
impl Carry for Vec<u8> {
    fn len(&self) -> usize {
        Self::len(self)
    }

    fn corrupt(&mut self, random: &mut Random, _kind: Corruption) {
        let bit_count = (Self::len(self) as u64).saturating_mul(8);
        let flip_count = 1 + random.below(3) as usize;
        let mut flipped = Vec::with_capacity(flip_count);
        for _ in 0..flip_count {
            let mut bit = random.below(bit_count);
            // Flipping a bit twice would undo it; eight bits or more always leave a free one.
            while flipped.contains(&bit) && bit_count >= 8 {
                bit = (bit + 1) % bit_count;
            }
            flipped.push(bit);
            if let Some(byte) = self.get_mut((bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corruption_of_bytes_flips_one_to_three_bits() {
        let mut random = Random::from_number(3);
        let mut seen = [0_u32; 4];
        for len in (1..200).cycle().take(3_000) {
            let mut bytes = vec![0_u8; len];
            bytes.corrupt(&mut random, Corruption::Undetected);
            seen[bytes.iter().map(|byte| byte.count_ones()).sum::<u32>() as usize] += 1;
            assert_eq!(bytes.len(), len);
        }
        assert_eq!(seen[0], 0);
        assert!(seen[1..].iter().all(|&n| (850..1_150).contains(&n)), "{seen:?}");
    }

    #[test]
    fn corruption_reaches_every_bit_of_the_bytes() {
        let mut random = Random::from_number(4);
        let mut hit = [0_u8; 16];
        for _ in 0..2_000 {
            let mut bytes = vec![0_u8; 16];
            bytes.corrupt(&mut random, Corruption::Undetected);
            hit.iter_mut().zip(&bytes).for_each(|(hit, byte)| *hit |= byte);
        }
        assert_eq!(hit, [0xFF; 16]);
    }

    #[test]
    fn corrupting_nothing_is_harmless() {
        let mut bytes = Vec::<u8>::new();
        bytes.corrupt(&mut Random::from_number(5), Corruption::Undetected);
        assert!(bytes.is_empty() && Carry::is_empty(&bytes));
    }
}

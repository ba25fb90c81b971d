//! Seeded mutations of corpus files: what a test does where there is no fuzzer.
//!
//! Invariant: the same seed and samples give the same input.

use dacapo_base::Random;

/// Numbers at which decoders go wrong, as big-endian words.
const EDGES: [u64; 10] =
    [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, u64::MAX];

/// A mutation of one of the `samples`, at most `len_max` bytes long.
#[must_use]
pub fn mutated(random: &mut Random, samples: &[Vec<u8>], len_max: usize) -> Vec<u8> {
    let mut bytes = pick(random, samples);
    for _ in 0..=random.below(4) {
        change(random, &mut bytes, samples);
    }
    bytes.truncate(len_max);
    bytes
}

fn pick(random: &mut Random, samples: &[Vec<u8>]) -> Vec<u8> {
    let at = random.below(samples.len().max(1) as u64) as usize;
    samples.get(at).cloned().unwrap_or_default()
}

fn place(random: &mut Random, len: usize) -> usize {
    random.below(len.max(1) as u64) as usize
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, samples: &[Vec<u8>]) {
    let at = place(random, bytes.len());
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at.min(bytes.len()), random.next_u32() as u8),
        2 => drop((at < bytes.len()).then(|| bytes.remove(at))),
        3 => write_edge(random, bytes, at),
        4 => repeat(random, bytes, at),
        5 => splice(random, bytes, at, samples),
        6 => flip(random, bytes, at),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.next_u32() as u8;
            }
        }
    }
}

fn flip(random: &mut Random, bytes: &mut [u8], at: usize) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

/// Writes a word of 1, 2, 4 or 8 bytes.
fn write_edge(random: &mut Random, bytes: &mut [u8], at: usize) {
    let edge = EDGES.get(place(random, EDGES.len())).copied().unwrap_or(0).to_be_bytes();
    let len = 1 << random.below(4);
    let word = edge.get(edge.len() - len..).unwrap_or_default();
    bytes.iter_mut().skip(at).zip(word).for_each(|(to, from)| *to = *from);
}

/// Says a piece twice.
fn repeat(random: &mut Random, bytes: &mut Vec<u8>, at: usize) {
    let len = place(random, (bytes.len() - at.min(bytes.len())).min(64) + 1);
    let piece: Vec<u8> = bytes.iter().skip(at).take(len).copied().collect();
    let at = at.min(bytes.len());
    bytes.splice(at..at, piece);
}

/// Goes on as another sample does.
fn splice(random: &mut Random, bytes: &mut Vec<u8>, at: usize, samples: &[Vec<u8>]) {
    let other = pick(random, samples);
    let from = place(random, other.len());
    bytes.truncate(at);
    bytes.extend_from_slice(other.get(from..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_input_and_other_seeds_give_others() {
        let samples = [b"one sample".to_vec(), b"another, longer sample".to_vec()];
        let input = |seed| mutated(&mut Random::from_number(seed), &samples, 4_096);
        assert!((0..200).all(|seed| input(seed) == input(seed)));
        let different: std::collections::BTreeSet<_> = (0..200).map(input).collect();
        assert!(different.len() > 150, "{} different inputs", different.len());
    }

    #[test]
    fn nothing_and_empty_samples_can_be_mutated_and_the_length_is_bounded() {
        for samples in [&[][..], &[Vec::new()], &[vec![1; 300]]] {
            for seed in 0..500 {
                assert!(mutated(&mut Random::from_number(seed), samples, 256).len() <= 256);
            }
        }
    }
}

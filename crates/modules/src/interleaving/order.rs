//! In which order the packets of a block leave: by the fractions of multiples of the golden ratio.
//!
//! ```text
//!   handed down   0 1 2 3 4 5 6 7        neighbours leave 3 to 5 places apart, those that leave
//!   leave         4 1 6 3 0 5 2 7        one after the other were 3 to 5 apart, too
//! ```
//!
//! Nobody knows how long the next run of losses is, and these fractions are spread evenly whatever
//! part of them is taken: of a block of 64, two packets that leave in a row are at least 21 apart,
//! three 13, four 8. Even packets first and odd ones then would put neighbours half of a block
//! apart, and a run of losses would take every second packet, of which a block of parity bears no
//! more than of the run itself.
//!
//! Source: Crozier, Lodge, Guinand, Hunt, "Performance of turbo codes with relative prime and
//! golden interleaving strategies" (1999): the golden vector, sorted.
//!
//! Invariant: each place of a block is there once.

/// 2^32 divided by the golden ratio.
const GOLDEN: u32 = 0x9E37_79B9;

/// Which packet of a block of so many leaves first, second, and so on.
pub(super) fn order(count: u8, into: &mut Vec<u8>) {
    into.clear();
    into.extend(0..count);
    into.sort_unstable_by_key(|place| GOLDEN.wrapping_mul(u32::from(*place) + 1));
}

/// When each packet of a block of so many leaves, counted in packets.
pub(super) fn places(count: u8) -> Vec<u8> {
    let mut order_of = Vec::new();
    order(count, &mut order_of);
    let mut places: Vec<u8> = (0..count).collect();
    // The inverse: what leaves when, by what it is.
    places.sort_unstable_by_key(|at| order_of.get(usize::from(*at)).copied());
    places
}

/// How many places lie from each packet to the next one when they leave, of blocks of so many that
/// follow each other: one for each packet.
pub(super) fn apart(places: &[u8]) -> impl Iterator<Item = u64> {
    let count = places.len() as u64;
    let next = places.iter().skip(1).map(|place| u64::from(*place));
    let first_of_next = places.first().map(|place| count + u64::from(*place));
    let following = next.chain(first_of_next);
    places.iter().zip(following).map(|(place, next)| u64::from(*place).abs_diff(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u8) -> Vec<u8> {
        let mut into = Vec::new();
        order(count, &mut into);
        into
    }

    #[test]
    fn each_leaves_once_and_places_are_when() {
        assert_eq!(of(8), [4, 1, 6, 3, 0, 5, 2, 7]);
        for count in 0..=64 {
            let (order, places) = (of(count), places(count));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count).collect::<Vec<_>>());
            let back = order.iter().map(|it| places[usize::from(*it)]);
            assert_eq!(back.collect::<Vec<_>>(), (0..count).collect::<Vec<_>>(), "{count}");
        }
    }

    #[test]
    fn neighbours_leave_a_third_of_a_block_apart() {
        for count in 2..=64_u8 {
            let places = places(count);
            assert_eq!(apart(&places).count(), usize::from(count));
            let least = apart(&places).min().unwrap();
            assert!(least * 3 >= u64::from(count), "{count}: {least}");
        }
        assert_eq!(apart(&places(64)).min(), Some(24));
        assert_eq!(apart(&[0]).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn what_leaves_in_a_row_was_far_apart_whatever_its_length() {
        let blocks: Vec<u64> = (0..3)
            .flat_map(|at| of(64).into_iter().map(move |it| 64 * at + u64::from(it)))
            .collect();
        let least = |count: usize| {
            let of_row = |row: &[u64]| {
                let mut row = row.to_vec();
                row.sort_unstable();
                row.windows(2).map(|it| it[1] - it[0]).min().unwrap()
            };
            blocks.windows(count).map(of_row).min().unwrap()
        };
        assert_eq!([2, 3, 4, 6, 8].map(least), [21, 13, 8, 5, 5]);
    }
}

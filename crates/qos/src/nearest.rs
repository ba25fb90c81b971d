//! "Did you mean": the allowed word that is nearest to a mistyped one.
//!
//! The edit distance that counts a swap of neighbours as one step (optimal string alignment), with
//! a bound beyond which nothing is suggested: a wrong suggestion is worse than none.
//!
//! ```text
//!            t h r o u g h p u t        one row per character of the word, of which
//!        t   0 1 2 …                    three are kept: this one, the one above and,
//!        h   1 0 1 …                    for swaps, the one before that
//! ```
//!
//! Invariant: nothing is allocated for a candidate, of which there are many for a word.
//!
//! Source: Damerau, CACM 7(3), 1964; the restricted form.

const MAX_WORD_LEN: usize = 64;

/// The candidate with the fewest edits from `word`, or none when all are far from it: more than
/// one edit per three characters.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(MAX_WORD_LEN.saturating_add(1)).collect();
    if word.is_empty() || word.len() > MAX_WORD_LEN {
        return None;
    }
    let far = word.len().div_ceil(3);
    let candidates =
        candidates.into_iter().map(|candidate| (distance(&word, candidate), candidate));
    candidates.filter(|&(edits, _)| edits <= far).min_by_key(|&(edits, _)| edits).map(|(_, c)| c)
}

/// A row of the table, as long as the longest word and one more.
type Row = [usize; MAX_WORD_LEN + 1];

fn distance(word: &[char], candidate: &str) -> usize {
    let mut letters = ['\0'; MAX_WORD_LEN];
    let known = letters.iter_mut().zip(candidate.chars());
    let len = known.map(|(place, letter)| *place = letter).count();
    let candidate = letters.get(..len).unwrap_or_default();
    let mut above: Row = std::array::from_fn(|column| column);
    let mut before = above;
    let mut previous = None;
    for &letter in word {
        let row = next_row(letter, previous, candidate, &above, &before);
        before = std::mem::replace(&mut above, row);
        previous = Some(letter);
    }
    above.get(len).copied().unwrap_or(usize::MAX)
}

fn next_row(
    letter: char,
    previous: Option<char>,
    candidate: &[char],
    above: &Row,
    before: &Row,
) -> Row {
    let at = |row: &Row, column: usize| row.get(column).copied().unwrap_or(usize::MAX);
    let mut left = at(above, 0).saturating_add(1);
    let mut row = [left; MAX_WORD_LEN + 1];
    for ((column, &wanted), place) in candidate.iter().enumerate().zip(row.iter_mut().skip(1)) {
        let replace = at(above, column).saturating_add(usize::from(letter != wanted));
        let delete = at(above, column.saturating_add(1)).saturating_add(1);
        let mut edits = replace.min(delete).min(left.saturating_add(1));
        let left_letter = column.checked_sub(1).and_then(|c| candidate.get(c).copied());
        if previous == Some(wanted) && left_letter == Some(letter) {
            edits = edits.min(at(before, column.saturating_sub(1)).saturating_add(1));
        }
        *place = edits;
        left = edits;
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_edits_and_swaps() {
        let edits = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), b);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("grpah", "graph"), 1);
        assert_eq!(edits("same", "same"), 0);
        assert_eq!(edits("abc", ""), 3);
        assert_eq!(edits("x", "abc"), 3);
    }

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not_offered() {
        let keys = ["throughput", "delay", "jitter", "loss", "min", "max"];
        assert_eq!(nearest("thruput", keys), Some("throughput"));
        assert_eq!(nearest("dealy", keys), Some("delay"));
        assert_eq!(nearest("Max", keys), Some("max"));
        assert_eq!(nearest("banana", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest(&"m".repeat(100_000), keys), None);
    }
}

//! [`Word`]: a word of a file that stands for one of a few values.
//!
//! The table of the words. Invariant: a word stands for one value.

/// One of a few values, each with its word.
pub(crate) trait Word: Copy + 'static {
    /// The words with what they stand for.
    const ALL: &'static [(&'static str, Self)];

    /// The value of a word.
    fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
    }

    /// The words.
    fn words() -> Vec<&'static str> {
        Self::ALL.iter().map(|(word, _)| *word).collect()
    }
}

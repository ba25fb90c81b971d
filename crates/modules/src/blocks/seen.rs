//! [`Seen`]: what blocks that are over have shown of losses.

/// What a receiver has seen in some blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// How many sources the blocks had.
    pub sources: u64,
    /// How many of these did not come.
    pub lost: u64,
    /// In how many runs.
    pub runs: u64,
}

impl Seen {
    /// What a block that is over has shown: which of its sources are missing, in order.
    pub fn of(sources: u8, missing: impl Iterator<Item = u8>) -> Self {
        let mut seen = Self { sources: sources.into(), ..Self::default() };
        let mut before = None;
        for index in missing {
            seen.lost += 1;
            seen.runs += u64::from(before.is_none_or(|before| before + 1 != u16::from(index)));
            before = Some(u16::from(index));
        }
        seen
    }

    pub fn add(&mut self, other: &Self) {
        self.sources += other.sources;
        self.lost += other.lost;
        self.runs += other.runs;
    }
}

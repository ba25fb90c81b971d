//! [`Members`]: the sources that a repair is made of.

/// Sources that are as far apart: the numbers `first`, `first` + `step` and so on, `count` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::parity) struct Members {
    pub first: u64,
    pub step: u64,
    pub count: u64,
}

impl Members {
    /// So many that end with `last`; none where there are none, or some would lie before 0.
    pub fn up_to(last: u64, count: u64, step: u64) -> Option<Self> {
        let before = count.checked_sub(1)?.checked_mul(step.max(1))?;
        let first = last.checked_sub(before)?;
        Some(Self { first, step: step.max(1), count })
    }

    /// Which of them this number is.
    pub fn place_of(&self, number: u64) -> Option<u64> {
        let behind = number.checked_sub(self.first)?;
        let place = behind / self.step;
        (behind % self.step == 0 && place < self.count).then_some(place)
    }

    /// The number at a place.
    pub fn at(&self, place: u64) -> u64 {
        self.first.saturating_add(place.saturating_mul(self.step))
    }

    /// All their numbers, the first one first.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        let Self { first, step, count } = *self;
        (0..count).map(move |place| first + place * step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_places_are_inverse_and_nothing_lies_before_0() {
        let column = Members::up_to(44, 4, 10).unwrap();
        assert_eq!(column.numbers().collect::<Vec<_>>(), [14, 24, 34, 44]);
        let places = [4, 14, 25, 44, 54].map(|number| column.place_of(number));
        assert_eq!(places, [None, Some(0), None, Some(3), None]);
        assert_eq!(column.at(3), 44);
        assert_eq!(Members::up_to(29, 4, 10), None);
        assert_eq!(Members::up_to(9, 0, 1), None);
        let one = Members::up_to(3, 1, 0).unwrap();
        assert_eq!((one.place_of(3), one.place_of(2), one.place_of(4)), (Some(0), None, None));
        assert_eq!(Members::up_to(u64::MAX, u64::MAX, u64::MAX), None);
    }
}

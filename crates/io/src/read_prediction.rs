//! [`ReadPrediction`]: whether a socket that has given a datagram is asked for another at once.
//!
//! ```text
//!   datagrams one by one:  read, done                  the look that finds nothing is saved
//!   trains, several:       read, read, … nothing       one visit takes all
//! ```
//!
//! What is not read now makes the socket ready again.
//!
//! Invariant: a socket at which several wait is found out within [`PROBE_EVERY`] visits.

/// Visits that look for more after one that has found more.
const CREDIT: u8 = 8;

/// One visit in so many looks for more in any case.
const PROBE_EVERY: u8 = 16;

/// So many more come together than by themselves where trains come: less than one train has, and
/// more than the questions that a path is asked at once.
const TOGETHER: u8 = 32;

/// What was seen at the last visits of a socket.
#[derive(Debug, Default)]
pub struct ReadPrediction {
    has_read: bool,
    credit: u8,
    count: u8,
    /// Datagrams that came together, less visits at which one came by itself.
    together: u8,
}

impl ReadPrediction {
    /// The socket may have something to read.
    pub fn begin(&mut self) {
        self.has_read = false;
    }

    /// Something was read; whether to look for more.
    pub fn goes_on(&mut self, is_train: bool) -> bool {
        let is_another = std::mem::replace(&mut self.has_read, true);
        if is_train || is_another {
            self.credit = CREDIT;
            self.together = self.together.saturating_add(1);
            return true;
        }
        self.together = self.together.saturating_sub(1);
        self.count = self.count.wrapping_add(1) % PROBE_EVERY;
        self.credit > 0 || self.count == 0
    }

    /// Whether so many have come together that it is worth asking for trains.
    pub fn sees_trains(&self) -> bool {
        self.together >= TOGETHER
    }

    /// There was nothing, or nothing more.
    pub fn found_nothing(&mut self) {
        self.credit = self.credit.saturating_sub(u8::from(self.has_read));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Visits a socket with so many datagrams; how many are read, and how many looks that takes.
    fn visit(prediction: &mut ReadPrediction, waiting: u32) -> (u32, u32) {
        prediction.begin();
        let (mut read, mut looks) = (0, 0);
        loop {
            looks += 1;
            if read == waiting {
                prediction.found_nothing();
                return (read, looks);
            }
            read += 1;
            if !prediction.goes_on(false) {
                return (read, looks);
            }
        }
    }

    #[test]
    fn what_comes_one_by_one_takes_one_look_each() {
        let mut it = ReadPrediction::default();
        let looks: u32 = (0..160).map(|_| visit(&mut it, 1).1).sum();
        assert_eq!(looks, 170);
    }

    #[test]
    fn what_comes_together_is_soon_read_together() {
        let mut it = ReadPrediction::default();
        let first = (1..=16).find(|_| visit(&mut it, 5).0 == 5);
        assert!(first.is_some(), "found out within {PROBE_EVERY} visits");
        for _ in 0..100 {
            assert_eq!(visit(&mut it, 5), (5, 6));
        }
        // And once it comes one by one again, that is soon seen too.
        let looks: u32 = (0..16).map(|_| visit(&mut it, 1).1).sum();
        assert!(looks <= 16 + u32::from(CREDIT) + 1, "{looks} looks");
    }

    #[test]
    fn behind_a_train_there_may_be_another() {
        let mut it = ReadPrediction::default();
        it.begin();
        assert!(it.goes_on(true));
    }
}

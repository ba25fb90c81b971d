//! [`TokenTable`]: which tokens may come, and until when.
//!
//! Invariant: at most [`crate::DATA_LANES_MAX`] tokens.

use super::Token;
use crate::DATA_LANES_MAX;
use dacapo_base::Time;
use std::collections::BTreeMap;

/// The tokens that are expected.
#[derive(Debug, Default)]
pub(super) struct TokenTable {
    expected: BTreeMap<Token, Time>,
}

/// There are as many tokens as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GateFull;

impl TokenTable {
    /// Expects a token until `until`; what was expected up to before `now` is forgotten first.
    pub(super) fn expect(&mut self, token: Token, until: Time, now: Time) -> Result<(), GateFull> {
        self.expected.retain(|_, until| *until >= now);
        if self.expected.len() >= DATA_LANES_MAX && !self.expected.contains_key(&token) {
            return Err(GateFull);
        }
        self.expected.insert(token, until);
        Ok(())
    }

    pub(super) fn forget(&mut self, token: &Token) {
        self.expected.remove(token);
    }

    /// True when the token is expected now; it is used up by that.
    pub(super) fn take(&mut self, token: &Token, now: Time) -> bool {
        self.expected.remove(token).is_some_and(|until| until >= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u16) -> Token {
        let mut token = Token::default();
        token[..2].copy_from_slice(&number.to_be_bytes());
        token
    }

    #[test]
    fn a_token_is_good_once_and_up_to_its_time() {
        let mut tokens = TokenTable::default();
        let at = Time::from_millis;
        tokens.expect(token(1), at(10), at(0)).unwrap();
        tokens.expect(token(2), at(10), at(0)).unwrap();
        tokens.expect(token(3), at(10), at(0)).unwrap();
        tokens.forget(&token(3));
        assert!(tokens.take(&token(1), at(10)));
        assert!(!tokens.take(&token(1), at(10)));
        assert!(!tokens.take(&token(2), at(11)));
        assert!(!tokens.take(&token(3), at(1)));
    }

    #[test]
    fn the_gate_is_bounded_and_what_is_over_makes_room() {
        let mut tokens = TokenTable::default();
        let at = Time::from_millis;
        for number in 0..DATA_LANES_MAX as u16 {
            tokens.expect(token(number), at(5 + u64::from(number % 2)), at(0)).unwrap();
        }
        assert_eq!(tokens.expect(token(999), at(9), at(5)), Err(GateFull));
        tokens.expect(token(7), at(9), at(5)).unwrap();
        tokens.expect(token(999), at(9), at(6)).unwrap();
        assert!(tokens.take(&token(999), at(9)) && tokens.take(&token(7), at(9)));
    }
}

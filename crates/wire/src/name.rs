//! Names of sessions and flows: 1 to 64 of `a-z 0-9 . _ -`, the first a letter or digit, so that
//! neither `..` nor what looks like an option is a name.

use std::error::Error;
use std::fmt;

pub use crate::limits::NAME_LEN_MAX as LEN_MAX;

/// Whether `name` is one.
///
/// # Errors
/// [`NameError`], the first thing that is wrong.
pub fn check(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > LEN_MAX {
        return Err(NameError::TooLong { len: name.len() });
    }
    let is_wrong = |&(at, character): &(usize, char)| {
        !is_allowed(character) || (at == 0 && !character.is_ascii_alphanumeric())
    };
    match name.char_indices().find(is_wrong) {
        Some((at, character)) => Err(NameError::Character { at, character }),
        None => Ok(()),
    }
}

const fn is_allowed(character: char) -> bool {
    matches!(character, 'a'..='z' | '0'..='9' | '.' | '_' | '-')
}

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// It is empty.
    Empty,
    /// It is longer than [`LEN_MAX`].
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// It has a character that names do not have.
    Character {
        /// Where, in bytes from its front.
        at: usize,
        /// Which.
        character: char,
    },
}

impl NameError {
    /// What is wrong, without the place.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Empty => "a name is empty",
            Self::TooLong { .. } => "a name is longer than 64 bytes",
            Self::Character { .. } => "a name has a character other than a-z 0-9 . _ -",
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the name is empty")?,
            Self::TooLong { len } => write!(f, "the name has {len} bytes")?,
            Self::Character { at, character } => {
                write!(f, "the name has {character:?} at byte {at}")?
            }
        }
        write!(f, "; a name is 1 to {LEN_MAX} of a-z 0-9 . _ -, the first a letter or digit")
    }
}

impl Error for NameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_1_to_64_of_its_characters() {
        for name in ["a", "video-1", "0.9_z", &"x".repeat(64)] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        assert_eq!(check(""), Err(NameError::Empty));
        assert_eq!(check(&"x".repeat(65)), Err(NameError::TooLong { len: 65 }));
        for (name, at, character) in
            [("Ab", 0, 'A'), ("a b", 1, ' '), ("ä", 0, 'ä'), ("a/", 1, '/'), ("..", 0, '.')]
        {
            assert_eq!(check(name), Err(NameError::Character { at, character }));
        }
    }

    #[test]
    fn an_error_shows_no_raw_control_character() {
        let error = check("a\x1b").expect_err("no name");
        assert_eq!(
            error.to_string(),
            "the name has '\\u{1b}' at byte 1; a name is 1 to 64 of a-z 0-9 . _ -, \
             the first a letter or digit"
        );
        assert!(NameError::TooLong { len: 65 }.what().contains(&LEN_MAX.to_string()));
    }
}

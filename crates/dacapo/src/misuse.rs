//! What a call that was wrong is told.

use dacapo_core::{Code, Error};

/// A call that was wrong; the text says what to do.
pub(crate) fn misuse(text: impl Into<String>) -> Error {
    Error::new(Code::NoSuchThing, text)
}

//! [`panic::said`](said): what somebody said who panicked.

use std::any::Any;

/// The words of a panic that was caught; where there are none, that nobody knows why.
#[must_use]
pub fn said(why: &(dyn Any + Send)) -> &str {
    let text = why.downcast_ref::<&str>().copied();
    let text = text.or_else(|| why.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("nobody knows why")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{catch_unwind, panic_any};

    #[test]
    fn a_panic_says_its_words_whatever_it_is_made_of() {
        let of = |body: fn()| said(&*catch_unwind(body).expect_err("it panics")).to_owned();
        assert_eq!(of(|| panic!("plain")), "plain");
        assert_eq!(of(|| panic!("with {}", 7)), "with 7");
        assert_eq!(of(|| panic_any(7)), "nobody knows why");
    }
}

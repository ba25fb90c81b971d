//! A spec can be shown: what shows a catalogue, as failures of tests do, comes to an end.

use crate::ModuleSpec;
use std::fmt::{self, Write};

/// The most bytes of a spec in the form of `{:?}`.
const LEN_MAX: usize = 16 * 1024;

/// Counts what is written, and refuses what is beyond the bound.
struct Bounded(usize);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.checked_sub(text.len()).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// A profile that holds its own spec shows it for ever.
pub(super) fn a_spec_is_shown_in_bounded_text(spec: &ModuleSpec) {
    let shown = write!(Bounded(LEN_MAX), "{spec:?}");
    assert!(shown.is_ok(), "{}: more than {LEN_MAX} bytes to show", spec.name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    #[derive(Debug)]
    struct OfItself(&'static ModuleSpec);

    impl Profile for OfItself {
        fn suits(&self, setting: &crate::Setting) -> bool {
            self.0.profile.suits(setting)
        }
    }

    static ENDLESS: ModuleSpec =
        ModuleSpec { profile: &OfItself(&ENDLESS), ..ModuleSpec::plain("endless", 1) };

    #[test]
    #[should_panic(expected = "endless: more than")]
    fn a_spec_that_holds_itself_is_found() {
        a_spec_is_shown_in_bounded_text(&ENDLESS);
    }
}

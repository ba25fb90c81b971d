//! The catalogue: the modules and transports that exist in this build, and in one that a program
//! has added its own to.

use dacapo_core::{Code, Error};
use dacapo_lift::{Catalogue, Entry};

/// The modules and transports that exist in this build.
#[must_use]
pub fn catalogue() -> Catalogue {
    Catalogue::new(dacapo_modules::entries()).with_transports(dacapo_transport::specs())
}

/// The same with modules of a program's own.
///
/// # Errors
/// [`Code::IllegalGraph`] naming both, when two have one name or number.
pub(crate) fn with_modules(own: &[Entry]) -> Result<Catalogue, Error> {
    let all = own.iter().fold(catalogue(), |all, entry| all.with_module(*entry));
    match all.duplicate() {
        Some(text) => Err(Error::new(Code::IllegalGraph, format!("the catalogue has {text}"))),
        None => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_have_one_name_or_number() {
        assert_eq!(catalogue().duplicate(), None);
        let segment = *catalogue().by_name("segment").unwrap();
        let error = with_modules(&[segment]).unwrap_err();
        assert!(error.text.contains("\"segment\" (number 0x0001) and \"segment\""), "{error}");
    }
}

//! [`entropy`]: 32 bytes from the system's generator, to seed a `Random`.
//!
//! Source: getrandom(2).

use std::fmt;

/// The system gave no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEntropy(getrandom::Error);

impl fmt::Display for NoEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the system gave no random bytes ({}): allow the getrandom system call or make \
             /dev/urandom readable",
            self.0
        )
    }
}

impl std::error::Error for NoEntropy {}

/// 32 unpredictable bytes, for a seed.
///
/// # Errors
/// [`NoEntropy`] when the system's generator is out of reach (a sandbox without getrandom).
pub fn entropy() -> Result<[u8; 32], NoEntropy> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(NoEntropy)?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seeds_differ() {
        assert_ne!(entropy().unwrap(), entropy().unwrap());
    }
}

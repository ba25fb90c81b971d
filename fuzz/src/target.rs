//! [`Target`]: what is fuzzed, by name.

/// A decoder, or something that holds decoders, as a function of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: the folder of its corpus, and the word on the command line.
    pub name: &'static str,
    /// What it reads and what is checked, in one line.
    pub about: &'static str,
    /// Takes any bytes. Panics where something does not hold that must.
    pub run: fn(&[u8]),
    /// Valid samples, made by our own encoders.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// The longest input in bytes that is of use.
    pub len_max: usize,
}

/// The target of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    crate::TARGETS.iter().find(|target| target.name == name)
}

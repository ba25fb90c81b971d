//! What the tests share.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod raw;
pub mod world;

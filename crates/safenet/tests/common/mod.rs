//! What the tests share.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod raw;
#[path = "../../../xtp/tests/common/way.rs"]
pub mod way;
pub mod world;

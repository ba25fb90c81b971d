//! What runs experiments: places, processes, rounds.
//!
//! ```text
//!   lock -> needs -> round 1: every row once, each behind its control -> round 2 … -> the store
//!                    with a burden on both processors in loaded rounds
//! ```

pub mod burden;
mod lock;
pub mod machine;
mod perf;
pub mod place;
pub mod process;
mod profile;
mod rounds;
mod scratch;
pub mod stop;

pub use profile::profile;
pub use rounds::{Asked, run};

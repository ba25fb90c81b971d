//! Fuzz targets for every decoder, with the allocation oracle.
//!
//! One function per decoder that takes any bytes and checks what must hold for all of them: no
//! panic, what decodes encodes again, what a model says comes out, and no more memory than the
//! bytes justify. The same functions are driven by libFuzzer (`cargo xtask fuzz`) and by plain
//! tests over the corpora (`cargo test -p dacapo-fuzz`), so a finding is repeated without a fuzzer.
//!
//! ```text
//!   corpus/NAME/* --+                      +-- no panic
//!   mutations    ---+--> targets/NAME.rs --+-- round trip, model
//!   libFuzzer    --+                       +-- allocated <= 2 * input + 64 KiB   (oracle.rs)
//!                       rig/: a whole core in virtual time, and a peer that says anything
//! ```
//!
//! Invariants: a target draws nothing from a clock or the system's randomness, so the same input
//! fails the same way; it keeps no state between two inputs.

pub mod corpus;
pub mod input;
pub mod known;
pub mod mutate;
pub mod oracle;
pub mod rig;
pub mod target;
pub mod targets;

pub use target::{Target, find};
pub use targets::TARGETS;

/// What the oracle counts with.
#[global_allocator]
static HEAP: dacapo_heap::Counting = dacapo_heap::Counting;

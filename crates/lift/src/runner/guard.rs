//! [`Guard`]: what becomes of a graph one of whose modules panics. It ends, and nothing else does.
//!
//! ```text
//!   [module] panics --> what lies before modules, and in them, goes back to the pool
//!                   --> in the place of each module stands one that drops what comes
//!                   --> Told::failure: which module it was, and what it said
//! ```
//!
//! What has passed all modules before goes on: it is whole.
//!
//! Invariants: what has panicked is called once more, to give its views back, and then dropped;
//! afterwards no view of the pool is in the runner: those that the panic took along are counted
//! ([`Pool::write_off`]).

use dacapo_base::panic;
use dacapo_packet::Packet;
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a runner knows of panics, and how many views are out for it.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// Which module has panicked, and what it said.
    pub said: OnceCell<String>,
    /// The modules are gone.
    pub is_over: bool,
    /// Views in lanes and modules, as of the last call.
    pub inside: usize,
    /// Views that are somewhere else, as of the last call.
    pub elsewhere: usize,
}

impl Guard {
    /// Notes a panic; the first one counts.
    #[cold]
    pub fn note(&self, name: &str, said: &str) {
        self.said.get_or_init(|| failure(name, said));
    }

    /// A packet comes in, behind others.
    #[inline]
    pub fn note_entered(&mut self, packet: &Packet) {
        self.inside += usize::from(!packet.is_empty_slot());
    }
}

/// The panic of a module in words.
pub(crate) fn failure(name: &str, said: &str) -> String {
    format!("module \"{name}\" panicked: {said}")
}

/// Calls `body`, which is a module's; what that said where it panics.
#[inline(always)]
pub(crate) fn guarded<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    // Who has panicked is only asked for its views from then on.
    catch_unwind(AssertUnwindSafe(body)).map_err(|why| panic::said(&*why).to_owned())
}

//! The libFuzzer binary of all targets: `FUZZ_TARGET=name dacapo-fuzz CORPUS… -max_total_time=15`.
//!
//! Without `FUZZ_TARGET` it prints the names of the targets and the longest input of each, and
//! ends. `cargo xtask fuzz` builds and runs it; see there.
#![no_main]

use dacapo_fuzz::{TARGETS, Target, find};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static CHOSEN: OnceLock<Target> = OnceLock::new();

fn choose() {
    let Some(name) = std::env::var_os("FUZZ_TARGET") else {
        TARGETS.iter().for_each(|target| println!("{} {}", target.name, target.len_max));
        std::process::exit(0);
    };
    let name = name.to_string_lossy();
    let Some(target) = find(&name) else {
        eprintln!("no target is called `{name}`; without FUZZ_TARGET all are listed");
        std::process::exit(2);
    };
    assert!(dacapo_heap::is_counting(), "without the counting allocator its oracle says nothing");
    CHOSEN.get_or_init(|| *target);
}

fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        (target.run)(data);
    }
});

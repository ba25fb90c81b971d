//! Every corpus file of every target, and 2,000 mutations of them, under all oracles.
//!
//! A crash that it found is a file of the corpus, so the test of the target repeats it: `cargo test
//! -p dacapo-fuzz --test replay -- --exact NAME`.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_base::Random;
use dacapo_fuzz::{TARGETS, corpus, find, mutate};
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Once;

/// The mutations of each target.
const MUTATIONS: u64 = 2_000;

/// Bounds of what is kept in the tree.
const FILES_MAX: usize = 48;
const CORPORA_BYTES_MAX: u64 = 2 << 20;

/// Where an input that fails for the first time is put.
fn kept(name: &str, what: &str, input: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dacapo-fuzz-{name}-{what}"));
    // The test fails in any case; without the file its seed still repeats it.
    let _ = std::fs::write(&path, input);
    path
}

thread_local! {
    /// Panics of this thread, those too that a core bears because a module is not all of it.
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// From now on panics are counted, whoever catches them.
fn count_panics() {
    static IS_COUNTED: Once = Once::new();
    IS_COUNTED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PANICS.with(|panics| panics.set(panics.get() + 1));
            before(info);
        }));
    });
    PANICS.with(|panics| panics.set(0));
}

fn try_input(name: &str, what: &str, input: &[u8]) {
    let target = find(name).expect("the test names a target");
    count_panics();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    if outcome.is_err() || PANICS.with(Cell::get) > 0 {
        let (path, len) = (kept(name, what, input), input.len());
        panic!(
            "{name}: {what} ({len} bytes, kept as {}); repeat it with:\n  \
             cargo test -p dacapo-fuzz --test replay -- --exact {name}",
            path.display()
        );
    }
}

fn replay(name: &str) {
    assert!(dacapo_heap::is_counting(), "without the counting allocator its oracle says nothing");
    let target = find(name).expect("the test names a target");
    let files = corpus::read(target).expect("every target has a corpus");
    assert!(files.len() > 2, "{name} has a corpus of {} files", files.len());
    for (file, input) in &files {
        try_input(name, file, input);
    }
    let samples: Vec<Vec<u8>> = files.into_iter().map(|(_, input)| input).collect();
    for seed in 0..MUTATIONS {
        let input = mutate::mutated(&mut Random::from_number(seed), &samples, target.len_max);
        try_input(name, &format!("mutation-{seed}"), &input);
    }
}

macro_rules! replays {
    ($($name:ident)*) => {
        const REPLAYED: &[&str] = &[$(stringify!($name),)*];

        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*
    };
}

replays! {
    wire_record wire_message wire_graph wire_datagram wire_unit wire_headers wire_forms wire_text
    stream_end stream_listener shm_rings modules_up modules_way modules_sequence
    qos_session_file qos_attributes qos_units dacapo_words address dacapo_messages link_config
    link_trace media_avi media_wav media_au media_mjpeg media_playout security_identity
    core_datagram core_quic core_listener core_dialer agreement commands events
    xtp_packet xtp_engine xtp_label xtp_net_frames xtp_net_records safenet_service
}

#[test]
fn every_target_is_replayed_and_nothing_else_has_a_corpus() {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(REPLAYED, names);
    assert!(names.len() >= 20);
    for entry in std::fs::read_dir(corpus::root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&name.as_str()), "corpus/{name} is of no target");
    }
}

#[test]
fn the_corpora_are_small_and_hold_every_seed() {
    let mut all = 0;
    for target in TARGETS {
        let files = corpus::read(target).unwrap();
        assert!(files.len() <= FILES_MAX, "{}: {} files", target.name, files.len());
        all += files.iter().map(|(_, input)| input.len() as u64).sum::<u64>();
        for (number, seed) in (target.seeds)().iter().enumerate() {
            let name = format!("seed-{number:02}");
            let is_kept = files.iter().any(|(file, kept)| *file == name && kept == seed);
            let remedy = "run `cargo run -p dacapo-fuzz --bin dacapo-fuzz-seeds`";
            assert!(is_kept, "{} {name} is missing or out of date: {remedy}", target.name);
        }
    }
    assert!(all <= CORPORA_BYTES_MAX, "{all} bytes");
}

//! What one authenticated peer can make a core keep, in bytes.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

#[path = "hostile_control/arena.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod arena;
mod common;
#[path = "hostile_control/expect.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod expect;

use arena::{Arena, As, At, usual_flows};
use common::{Opens, offer};
use dacapo_core::{Port, SessionSpec};
use dacapo_netlab::traffic::PatternSource;
use dacapo_wire::session::{Control, MODULE_ACCESS};
use std::sync::{Mutex, PoisonError};

/// What one peer may cost, in bytes, whatever it does.
const PEER_BYTES_MAX: usize = 8 << 20;

static ALONE: Mutex<()> = Mutex::new(());

/// The memory of the process that is in use, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let number = line.split_whitespace().nth(1).and_then(|it| it.parse::<usize>().ok());
    number.unwrap_or(0) * 1_024
}

/// Half a record of the greatest length on each of so many streams; the growth in bytes.
fn half_records(count: usize) -> usize {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut arena = Arena::new(As::Dialer, At::Greeted, "");
    // A JOIN of 65,536 bytes but for its last.
    let half = [&[0, 0x10, 0, 1, 0, 0][..], &[0; 65_535]].concat();
    let before = memory();
    for _ in 0..count {
        let Some(stream) = arena.raw.open() else { break };
        arena.raw.push(stream, &half);
        arena.run(2);
        while arena.raw.unsent_len(stream) > 0 && arena.raw.lost.is_none() {
            arena.run(1);
        }
    }
    let grown = memory().saturating_sub(before);
    arena.finish();
    grown
}

/// So many sessions ask for 248 KiB of answers each and read none; the growth in bytes.
fn unread_answers(count: usize) -> usize {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut arena = Arena::new(As::Dialer, At::Greeted, "");
    let pattern = arena.lab.pattern;
    let open = move |_: &_| Ok(Port::Source(Box::new(PatternSource::new(pattern))));
    let spec = SessionSpec {
        name: "many".into(),
        title: String::new(),
        flows: vec![offer("down", &[])],
        participants_max: 1_000,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    };
    arena.lab.world.core(arena.core).publish(spec, Box::new(Opens(open))).unwrap();
    let mut streams = Vec::new();
    for _ in 0..count {
        arena.begin(At::Active, "many", usual_flows());
        streams.push(arena.stream);
    }
    let before = memory();
    for stream in streams {
        arena.raw.streams.remove(&stream);
        let (flow, module, payload) = (0, MODULE_ACCESS, vec![3; 4_096]);
        for request in 0..62 {
            let payload = payload.clone();
            arena.raw.say(stream, Control { request, flow, epoch: 0, module, payload });
        }
        arena.run(40);
    }
    let grown = memory().saturating_sub(before);
    arena.finish();
    grown
}

#[test]
fn one_stream_of_half_a_record_or_of_answers_that_nobody_reads_takes_little_memory() {
    let (half, unread) = (half_records(1), unread_answers(1));
    println!("{} KiB for half a record, {} KiB for unread answers", half >> 10, unread >> 10);
    assert!(half <= PEER_BYTES_MAX && unread <= PEER_BYTES_MAX);
}

#[test]
fn half_records_on_all_streams_of_a_peer_take_little_memory() {
    let grown = half_records(1_000);
    assert!(grown <= PEER_BYTES_MAX, "{} MiB for one peer", grown >> 20);
}

#[test]
fn answers_that_nobody_reads_take_little_memory_over_all_sessions_of_a_peer() {
    let grown = unread_answers(200);
    assert!(grown <= PEER_BYTES_MAX, "{} MiB for one peer", grown >> 20);
}

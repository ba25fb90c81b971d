//! What associations and messages take of memory: counted, and bounded.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::raw::Pair;
use common::world::{PORT, host};
use dacapo_heap::{Counting, is_counting, measure};
use dacapo_safenet::{Config, Mode, Route};
use dacapo_xtp::wire::Service;
use std::time::Duration;

#[global_allocator]
static HEAP: Counting = Counting;

const COUNT: u16 = 1_000;

#[test]
fn a_thousand_idle_associations_take_less_than_three_kilobytes_each_at_an_end() {
    assert!(is_counting());
    let mut pair = Pair::new(|config| Config { incoming_max: 2_000, ..config });
    let mut other = Pair::new(|config| config);
    let ((), used) = measure(|| {
        for priority in 0..COUNT {
            let route = Route::host(host(0), PORT).with_priority(priority);
            let service = &mut other.service;
            service.send_message(other.now, route, Mode::Synchronous, Vec::new()).unwrap();
            let mut packet = Vec::new();
            for _ in 0..3 {
                while service.poll_packet(other.now, &mut packet).is_some() {
                    let packet = std::mem::take(&mut packet);
                    pair.service.handle_packet(pair.now, host(1), &packet);
                }
                assert!(
                    pair.service.get_message(pair.now, PORT).is_none_or(|part| part.is_whole())
                );
                while pair.service.poll_packet(pair.now, &mut packet).is_some() {
                    service.handle_packet(other.now, host(0), &std::mem::take(&mut packet));
                }
            }
            while service.poll_event().is_some() {}
            while pair.service.poll_event().is_some() {}
        }
    });
    assert_eq!(other.service.messages().sums().delivered, u64::from(COUNT));
    assert_eq!(pair.service.messages().incoming_count(), usize::from(COUNT));
    let each = used.live_bytes / i64::from(COUNT) / 2;
    println!("{each} bytes for each of {COUNT} idle associations at an end, those of XTP included");
    assert!(each < 3_000, "{each} bytes each");
}

#[test]
fn a_message_that_is_not_taken_is_kept_up_to_a_part_and_the_windows() {
    let mut pair = Pair::new(|config| Config { part_len_max: 10_000, ..config });
    let id = pair.open(Service::Stream, dacapo_xtp::Mode::default());
    let ((), used) = measure(|| {
        let head = [&[1, 0, 0, 5, 0, 7][..], &u64::MAX.to_be_bytes()].concat();
        pair.write(id, Some(0), &head, false);
        for _ in 0..200 {
            pair.write(id, Some(0), &[7; 10_000], false);
            // Nobody takes.
            let mut packet = Vec::new();
            while pair.peer.poll_packet(pair.now, &mut packet).is_some() {
                pair.service.handle_packet(pair.now, host(1), &std::mem::take(&mut packet));
            }
            while pair.service.poll_packet(pair.now, &mut packet).is_some() {
                pair.peer.handle_packet(pair.now, host(0), &std::mem::take(&mut packet));
            }
        }
    });
    // XTP keeps 64 KiB at each end; its buffers grow by doubling.
    assert!(used.live_bytes < 2 * (128 << 10) + 32_000, "{used:?}");
}

#[test]
fn what_has_ended_gives_its_memory_back() {
    let mut pair = Pair::new(|config| Config { idle_max: Duration::from_secs(1), ..config });
    let mut round = |count: usize| {
        for _ in 0..count {
            let id = pair.open(Service::Stream, dacapo_xtp::Mode::default());
            pair.write(id, Some(0), &[1, 0, 0, 5, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0], true);
            pair.peer.finish(pair.now, id).unwrap();
            pair.run_for(Duration::from_secs(5));
            pair.peer.release(pair.now, id).unwrap();
            let (events, told, parts) = (pair.events.len(), pair.told.len(), pair.parts.len());
            assert!(events <= 1 && told > 0 && parts == 1);
            (pair.events, pair.told, pair.parts) = (Vec::new(), Vec::new(), Vec::new());
        }
    };
    round(100);
    let ((), used) = measure(|| round(1_000));
    assert!(used.live_bytes.abs() < 4_096, "{used:?}");
}

//! Two threads that share memory and bells, in small rings, asleep as often as they can: every byte
//! comes, in order, and nobody sleeps on.

use super::super::ring::{CAPACITY_MIN, Rings};
use super::pair;
use dacapo_base::{Random, patience};
use dacapo_sys::memory::SharedMemory;
use std::io::{IoSlice, IoSliceMut};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// So long nobody sleeps who is woken; only a lost wake-up waits for it.
const ASLEEP_MAX: Duration = Duration::from_secs(20);

const BYTES: usize = 4_000_000;

/// A byte of the stream by its place.
fn byte(at: usize) -> u8 {
    (at.wrapping_mul(31) >> 3) as u8
}

fn wake(doorbell: &SyncSender<()>) {
    // One that was not heard yet is enough.
    let _ = doorbell.try_send(());
}

/// Sleeps until the doorbell is rung.
fn sleep(rung: &Receiver<()>, who: &str) {
    let woken = patience::until(Instant::now, ASLEEP_MAX, || {
        let told = rung.recv_timeout(patience::STEP_MAX);
        (told != Err(RecvTimeoutError::Timeout)).then_some(told)
    });
    assert_eq!(woken, Some(Ok(())), "the {who} was not woken");
}

fn write_all(mut rings: Rings<SharedMemory>, rung: &Receiver<()>, ring: &SyncSender<()>) {
    let mut random = Random::from_number(1);
    let mut at = 0;
    while at < BYTES {
        let len = (1 + random.below(3 * CAPACITY_MIN as u64 / 2) as usize).min(BYTES - at);
        let bytes: Vec<u8> = (at..at + len).map(byte).collect();
        let moved = rings.write(&[IoSlice::new(&bytes)]).unwrap();
        at += moved.len;
        if moved.wakes {
            wake(ring);
        }
        while moved.len < len && !rings.has_capacity() {
            sleep(rung, "writer");
        }
    }
}

fn read_all(mut rings: Rings<SharedMemory>, rung: &Receiver<()>, ring: &SyncSender<()>) {
    let mut random = Random::from_number(2);
    let mut at = 0;
    while at < BYTES {
        let mut bytes = vec![0; 1 + random.below(CAPACITY_MIN as u64) as usize];
        let mut look = |rings: &mut Rings<SharedMemory>| {
            let moved = rings.read(&mut [IoSliceMut::new(&mut bytes)]).unwrap();
            assert!((at..).zip(&bytes[..moved.len]).all(|(at, it)| byte(at) == *it), "at {at}");
            at += moved.len;
            if moved.wakes {
                wake(ring);
            }
            moved.len
        };
        if look(&mut rings) == 0 {
            rings.await_data();
            if look(&mut rings) == 0 {
                sleep(rung, "reader");
            }
        }
    }
}

#[test]
fn two_threads_lose_neither_bytes_nor_wake_ups() {
    let [here, there] = pair(CAPACITY_MIN);
    let (to_reader, reader_rung) = sync_channel(1);
    let (to_writer, writer_rung) = sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(move || write_all(here, &writer_rung, &to_reader));
        scope.spawn(move || read_all(there, &reader_rung, &to_writer));
    });
}

//! In steady state a graph allocates nothing; and what it has held it lets go whole.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, end, feed_chain, number, unit};
use dacapo_heap::Counting;
use dacapo_lift::Runner;
use dacapo_lift::conformance::End;
use dacapo_packet::{Batch, Layout, Packet};
use std::time::Duration;

#[global_allocator]
static HEAP: Counting = Counting;

const GRAPHS: [&[Place<'_>]; 12] = [
    &[("segment", &[]), ("sequence", &[]), ("checksum", &[])],
    &[("segment", &[]), ("sequence", &[]), ("fec-rs", &[])],
    &[("segment", &[]), ("sequence", &[]), ("fec-rlc", &[])],
    &[("segment", &[]), ("sequence", &[]), ("fec-xor", &[])],
    &[("segment", &[]), ("sequence", &[]), ("arq-nak", &[(0, 1_000_000)])],
    &[("segment", &[]), ("arq-sr", &[]), ("checksum", &[])],
    &[("credit", &[]), ("segment", &[]), ("arq-gbn", &[]), ("checksum", &[])],
    &[("window", &[(0, 2 << 20)]), ("segment", &[]), ("arq-sr", &[])],
    &[("use-by", &[]), ("segment", &[]), ("sequence", &[])],
    &[("segment", &[]), ("dedup", &[]), ("checksum", &[])],
    &[("lz4", &[]), ("segment", &[]), ("checksum", &[])],
    &[("zstd", &[]), ("segment", &[])],
];

/// Two ends and the packets between them, which are copied from pool to pool as a network does it:
/// trains stay trains or, where `singly` says so, come one by one.
struct Pair {
    a: End,
    b: End,
    sent: Batch,
    singly: bool,
}

impl Pair {
    fn new(graph: &[Place<'_>], singly: bool) -> Self {
        let end = || end(graph, 200_000);
        Self { a: end(), b: end(), sent: Batch::new(), singly }
    }

    /// Sends a unit in as many trains as it takes; how many bytes came, headers not counted.
    fn carry(&mut self, unit: &[u8]) -> usize {
        let a = &mut self.a;
        feed_chain(a, unit);
        if a.runner.next_deadline().is_some_and(|due| due <= a.now) {
            a.with(Runner::handle_timeout);
        }
        self.sent.append(a.runner.take_down());
        self.a.now += Duration::from_micros(10);
        self.b.now = self.a.now;
        let mut sent = std::mem::take(&mut self.sent);
        for mut packet in sent.drain() {
            while self.singly
                && let Some(first) = self.a.pool.split_first(&mut packet, 1)
            {
                self.receive(first);
            }
            self.receive(packet);
        }
        self.sent = sent;
        self.answer();
        let mut bytes = 0;
        for packet in self.b.runner.take_up().drain() {
            bytes += packet.payload_len();
            self.b.pool.free(packet);
        }
        bytes
    }

    /// What the receiver says goes back.
    fn answer(&mut self) {
        let (a, b) = (&mut self.a, &mut self.b);
        if b.runner.next_deadline().is_some_and(|due| due <= b.now) {
            b.with(Runner::handle_timeout);
        }
        self.sent.append(b.runner.take_down());
        for said in self.sent.drain() {
            let mut came = a.pool.alloc(0, said.payload_len(), 0).unwrap();
            a.pool.write_payload(&came, 0, b.pool.segment(&said, 0));
            came.time = a.now;
            b.pool.free(said);
            a.with(|runner, around| {
                runner.handle_up(around, came);
                runner.run(around);
            });
        }
    }

    fn receive(&mut self, sent: Packet) {
        let (a, b) = (&mut self.a, &mut self.b);
        let (segment, len) = (sent.segment_len(0), sent.payload_len());
        let layout = Layout { head: 0, tail: 0, segment, segmented: true };
        let mut came = b.pool.alloc_train(&layout, len).unwrap();
        let mut at = 0;
        for index in 0..sent.segment_count() {
            at += b.pool.write_payload(&came, at, a.pool.segment(&sent, index));
        }
        came.set_unit_ends(true, true);
        came.time = b.now;
        a.pool.free(sent);
        b.with(|runner, around| {
            runner.handle_up(around, came);
            runner.run(around);
        });
    }
}

#[test]
fn nothing_is_allocated_for_packets_trains_and_units_of_several_trains() {
    assert!(dacapo_heap::is_counting());
    for (graph, singly) in GRAPHS.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        for len in [64, 40_000, 150_000] {
            let mut pair = Pair::new(graph, singly);
            let unit = vec![7; len];
            let mut run = || (0..600).for_each(|_| assert_eq!(pair.carry(&unit), len));
            // Windows of blocks are full after twice as many.
            (0..2).for_each(|_| run());
            let ((), used) = dacapo_heap::measure(run);
            let what = format!("{graph:?}, units of {len} bytes, singly: {singly}");
            assert_eq!(used.allocated_bytes, 0, "{what}");
            pair.a.flush();
            pair.b.flush();
        }
    }
}

#[test]
fn nothing_is_allocated_where_packets_wait_for_others_of_their_block() {
    for len in [64, 40_000] {
        let mut a = end(&[("segment", &[]), ("interleave", &[(0, 40)])], 200_000);
        let unit = vec![7; len];
        let mut left = 0;
        let mut run = || {
            for _ in 0..2_000 {
                feed_chain(&mut a, &unit);
                a.now += Duration::from_micros(900);
                a.fire();
                let End { runner, pool, .. } = &mut a;
                left += runner.take_down().drain().map(|packet| pool.free(packet)).count();
            }
        };
        run();
        let ((), used) = dacapo_heap::measure(run);
        assert_eq!(used.allocated_bytes, 0, "units of {len} bytes");
        assert!(left + 80 > 4_000 * len.div_ceil(1_439), "{left} packets");
        a.flush();
    }
}

#[test]
fn thousands_of_packets_that_waited_for_one_all_go_up() {
    let mut a = end(&[("sequence", &[])], 200);
    let mut b = end(&[("sequence", &[])], 200);
    let count = 6_000;
    (0..count).for_each(|number| assert!(a.feed(&unit(number, 100))));
    let datagrams = a.wire();
    datagrams.iter().skip(1).for_each(|datagram| assert!(b.handle_bytes(datagram)));
    assert_eq!(b.units().len(), 0, "all wait for the first");
    assert!(b.handle_bytes(&datagrams[0]));
    let order: Vec<u64> = b.units().iter().map(|unit| number(unit)).collect();
    assert_eq!(order, (0..count).collect::<Vec<_>>());
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

//! Advisories about bytes of flows, streams and files: lengths that lie, pieces that never end.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_base::{Random, Time};
use dacapo_fuzz::find;
use dacapo_fuzz::oracle::bounded;
use dacapo_heap::measure;
use dacapo_lift::{Context, Graph, Node, Params, Runner};
use dacapo_packet::Pool;
use dacapo_wire::segment::Header;

fn run(target: &str, input: &[u8]) {
    (find(target).expect("the test names a target").run)(input);
}

/// The receiver of a flow of this one module.
fn runner(name: &str, unit_len_max: usize) -> Runner {
    let catalogue = dacapo::catalogue();
    let module = catalogue.by_name(name).unwrap().spec.id;
    let graph = Graph { nodes: vec![Node { module, params: Params::new() }] };
    Runner::new(catalogue.build(&graph, 5, 1_200, unit_len_max).unwrap().modules)
}

/// What `segment` allocates beside the pool for one packet of each of `units` units.
fn first_segments(index: u16, units: u16, unit_len_max: usize) -> u64 {
    let (mut pool, mut random) = (Pool::new(4 << 20), Random::from_number(1));
    let mut runner = runner("segment", unit_len_max);
    let ((), used) = measure(|| {
        for unit in 0..units {
            let bytes = [&Header { unit, index, last: false }.emit()[..], &[7]].concat();
            let packet = pool.packet_from(0, &bytes, 0).unwrap();
            let now = Time::from_millis(1);
            let mut around = Context { now, pool: &mut pool, random: &mut random };
            bounded("a segment", bytes.len(), || {
                runner.handle_up(&mut around, packet);
                runner.run(&mut around);
            });
        }
    });
    used.peak_bytes.saturating_sub(pool.stats().bytes as u64)
}

/// Reassembly bombs (R1.4; F36 of the fault matrix): first pieces of many units, each far behind
/// its beginning.
#[test]
fn adv_aal5_reassembly_bombs() {
    // The oracle is asked for each; a node of the map that each begins takes half a kilobyte.
    let used = first_segments(30_000, 256, 1 << 20);
    assert!(used <= 192 << 10, "{used} bytes for 256 packets");
}

/// RUSTSEC-2025-0141 (bincode) and the like: a length says gigabytes, and nothing follows.
#[test]
fn adv_bincode_2025_0141_lengths_of_files_that_lie() {
    let lies = [u32::MAX, u32::MAX - 7, 0x7FFF_FFFF, 1 << 30];
    for len in lies.map(u32::to_le_bytes) {
        let riff = |kind: &[u8; 4]| [b"RIFF", &len[..], kind].concat();
        let list = [&riff(b"AVI ")[..], b"LIST", &len, b"hdrl", b"avih", &len, &[0; 56]].concat();
        let index = [&riff(b"AVI ")[..], b"idx1", &len, &[0; 64]].concat();
        let movi = [&riff(b"AVI ")[..], b"LIST", &len, b"movi", b"00dc", &len].concat();
        [list, index, movi].iter().for_each(|file| run("media_avi", file));
        let sound = [&riff(b"WAVE")[..], b"fmt ", &len, &[1, 0, 1, 0], b"data", &len].concat();
        run("media_wav", &sound);
    }
    for len in lies.map(u32::to_be_bytes) {
        run(
            "media_au",
            &[b".snd", &len[..], &len, &[0, 0, 0, 3], &[0, 0, 0x1F, 0x40], &len].concat(),
        );
        run("media_mjpeg", &[&[0xFF, 0xD8, 0xFF, 0xE0, 0xFF, 0xFF][..], &len].concat());
    }
}

/// The same with the seeds: each 32-bit word of every valid file, in turn, says the most.
#[test]
fn adv_cve_2023_4863_every_length_of_a_valid_file_lies() {
    for name in ["media_avi", "media_wav", "media_au", "media_mjpeg"] {
        let target = find(name).unwrap();
        for seed in (target.seeds)().iter().take(3) {
            let step = (seed.len() / 400).max(1);
            for at in (0..seed.len().saturating_sub(4)).step_by(step) {
                let mut lying = seed.clone();
                lying[at..at + 4].copy_from_slice(&[0xFF; 4]);
                (target.run)(&lying);
            }
        }
    }
}

/// RUSTSEC-2026-0154 (russh) on the streams of flows: a record of the longest length, and of more.
#[test]
fn adv_rustsec_2026_0154_lengths_on_the_streams_of_flows() {
    let preface = [&b"dacapo\x00\x01"[..], &[2; 16]].concat();
    for len in [65_535_u32, 65_536, 0x7FFF_FFFF, u32::MAX] {
        for bytes in [0, 1, 100] {
            let record = [&len.to_be_bytes()[..], &vec![7; bytes]].concat();
            run("stream_end", &[&[0, 200][..], &preface, &record].concat());
            run("stream_end", &[&[1, 1][..], &b"dacapo\x00\x01"[..], &record].concat());
        }
    }
}

/// tungstenite RUSTSEC-2023-0065: minutes of work by the length of a header. The longest lists of
/// fields, each looked for again and again: the time is bounded by libFuzzer's, the memory here.
#[test]
fn adv_rustsec_2023_0065_the_longest_records_of_the_smallest_parts() {
    let list = [0, 31, 0, 2, 0, 1];
    let attribute = [&[0, 45, 0, 20][..], &[0; 20]].concat();
    for (kind, part) in [(6_u8, list.to_vec()), (6, attribute), (4, vec![0, 13, 0, 0])] {
        let body = part.repeat(65_000 / part.len());
        run("wire_message", &[&[kind][..], &body].concat());
    }
}

/// Positions that wrap (R6.2): numbers at both ends of every counter, in any order.
#[test]
fn adv_rustsec_2024_0011_numbers_at_their_ends() {
    let edges = [0, 1, u32::MAX, u32::MAX - 1, 1 << 31, (1 << 31) - 1, 1 << 28, 8_192];
    for graph in 0..12_u8 {
        let mut script = vec![graph];
        for one in edges {
            for other in edges {
                for number in [one, other, one.wrapping_add(1)] {
                    script.extend_from_slice(&[2, 8]);
                    script.extend_from_slice(&number.to_be_bytes());
                    script.extend_from_slice(&other.to_be_bytes());
                }
                script.extend_from_slice(&[7, 60]);
            }
        }
        run("modules_up", &script);
    }
}

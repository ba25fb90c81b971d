//! [`Call`]: what a module's arithmetic is measured beside: the library's function, a plain loop,
//! or another program.

use crate::cost::readings;
use serde_json::Value;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

/// The bytes of a packet.
pub const LEN: usize = 1_400;

/// The packets of a train.
pub const TRAIN: usize = 45;

/// What stands beside a module.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// Nothing: its bound is a time.
    Nothing,
    /// All that a unit takes by hand, made anew for each measurement.
    Once(fn() -> Box<dyn FnMut()>),
    /// What it takes at each of two ends.
    AtEachEnd(fn() -> Box<dyn FnMut()>),
    /// ISA-L, by `peer-isal` and this word: of blocks in a row, so rather faster than one alone.
    Isal(&'static str),
}

/// How long ISA-L takes for a block, in ns.
///
/// # Errors
/// The program is not there, or says something else.
pub fn isal(program: &Path, what: &str) -> Result<f64, String> {
    let name = program.display();
    let output = Command::new(program).arg(what).output();
    let output = output.map_err(|error| format!("{name}: {error}; `make eval-peers` builds it"))?;
    let said: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    let ns = said.and_then(|said| said["ns"].as_f64()).filter(|_| output.status.success());
    ns.ok_or_else(|| format!("{name} {what}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// The sum of ten packets, as a loop that a compiler makes vectors of.
pub fn xor() -> Box<dyn FnMut()> {
    let packets: Vec<Vec<u8>> = (0..10_u8).map(|at| vec![at; LEN]).collect();
    let mut sum = vec![0; LEN];
    Box::new(move || {
        sum.fill(0);
        for packet in &packets {
            for (into, byte) in sum.iter_mut().zip(black_box(packet)) {
                *into ^= byte;
            }
        }
        black_box(&sum);
    })
}

/// A function for each of so many packets.
fn of_each(packets: usize, call: fn(&[u8])) -> Box<dyn FnMut()> {
    let bytes = readings(packets * LEN);
    Box::new(move || bytes.chunks(LEN).for_each(|packet| call(black_box(packet))))
}

fn crc32c_of(packet: &[u8]) {
    black_box(crc_fast::crc32_iscsi(packet));
}

fn xxh3_of(packet: &[u8]) {
    black_box(twox_hash::XxHash3_64::oneshot(packet));
}

/// CRC-32C of a packet.
pub fn crc32c() -> Box<dyn FnMut()> {
    of_each(1, crc32c_of)
}

/// CRC-32C of each of a train.
pub fn crc32c_train() -> Box<dyn FnMut()> {
    of_each(TRAIN, crc32c_of)
}

/// XXH3 of a packet.
pub fn xxh3() -> Box<dyn FnMut()> {
    of_each(1, xxh3_of)
}

/// XXH3 of each of a train.
pub fn xxh3_train() -> Box<dyn FnMut()> {
    of_each(TRAIN, xxh3_of)
}

/// LZ4 there and back.
pub fn lz4() -> Box<dyn FnMut()> {
    use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into};
    let (bytes, mut back) = (readings(LEN), vec![0; LEN]);
    let mut packed = vec![0; lz4_flex::block::get_maximum_output_size(LEN)];
    let mut table = CompressTable::small();
    Box::new(move || {
        let len = compress_into_with_table(black_box(&bytes), &mut packed, &mut table);
        let len = len.unwrap_or(0);
        black_box(decompress_into(&packed[..len], &mut back)).ok();
    })
}

/// Zstandard there and back, at the module's usual level.
pub fn zstd() -> Box<dyn FnMut()> {
    let (bytes, mut back) = (readings(LEN), vec![0; LEN]);
    let mut packed = vec![0; ::zstd::zstd_safe::compress_bound(LEN)];
    let packs = ::zstd::bulk::Compressor::new(1).ok();
    let unpacks = ::zstd::bulk::Decompressor::new().ok();
    let (Some(mut packs), Some(mut unpacks)) = (packs, unpacks) else { return Box::new(|| {}) };
    Box::new(move || {
        let len = packs.compress_to_buffer(black_box(&bytes), &mut packed).unwrap_or(0);
        black_box(unpacks.decompress_to_buffer(&packed[..len], &mut back)).ok();
    })
}

//! Datagrams of anybody at the port of a core: nobody has proved anything.

use crate::input::Input;
use crate::rig::balance::Balance;
use crate::rig::{Rig, packet, ports};
use dacapo_wire::data;
use dacapo_wire::probe::{Count, Probe};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// More than the half-open connections that a core admits.
const CONNECTIONS_MAX: usize = 300;

/// What a core may hold beside its pool for addresses that have proved nothing, in bytes: the
/// global bound of requirement R1.4.
const HELD_MAX: i64 = 4 << 20;

/// What a core keeps when nobody is there: room in maps and queues that were larger once.
const KEPT_MAX: i64 = 128 << 10;

fn somebody(number: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(198, 51, 100, number), 4_000 + u16::from(number)))
}

/// A script of datagrams, each from one of 256 addresses, and of time.
pub fn datagram(bytes: &[u8]) {
    let mut rig = Rig::new(1);
    ports::publish(&mut rig);
    let (mut input, mut balance) = (Input(bytes), Balance::default());
    while !input.is_empty() {
        step(&mut rig, &mut balance, &mut input);
        let count = rig.core().connection_count();
        assert!(count <= CONNECTIONS_MAX, "{count} connections");
        assert!(rig.meter.live <= HELD_MAX, "{} bytes are held: {:?}", rig.meter.live, rig.meter);
    }
    // Who does not go on is given up.
    for _ in 0..4 {
        rig.pass(Duration::from_secs(10));
        balance.collect(&mut rig);
    }
    rig.check_empty(KEPT_MAX);
}

fn step(rig: &mut Rig, balance: &mut Balance, input: &mut Input<'_>) {
    let (kind, from) = (input.u8() % 8, somebody(input.u8()));
    match kind {
        0 | 1 => balance.give(rig, from, input.long_piece()),
        2 => {
            let (dcid, token) = ([input.u8(); 8], input.piece());
            let frames = input.piece();
            let first = packet::initial(&dcid, &[7; 8], token, input.u8().into(), frames);
            balance.give_frames(rig, from, &first, frames);
        }
        3 => {
            let label = data::Header { label: input.u32() }.emit();
            balance.give(rig, from, &[&label[..], input.piece()].concat());
        }
        4 => balance.give(rig, from, &probe(input)),
        5 => {
            rig.pass(Duration::from_millis(u64::from(input.u8()) * 8));
            balance.collect(rig);
        }
        6 => {
            let hello = crate::rig::peer::Peer::client(rig, 1, input.u8().into()).begin(rig);
            balance.give(rig, from, &hello);
        }
        _ => {
            for number in 0..input.u8() {
                let first = packet::initial(&[number; 8], &[7; 8], &[], 0, &[1]);
                balance.give(rig, somebody(number), &first);
            }
        }
    }
}

fn probe(input: &mut Input<'_>) -> Vec<u8> {
    let probe = Probe {
        answer: input.u8().is_multiple_of(2),
        size: input.u16(),
        connection: input.number(),
        number: input.number(),
        asked_ns: input.number(),
        received_ns: 0,
        answered_ns: 0,
        tag: input.number(),
        count: None,
    };
    let marked = probe.number as u32 >> 8;
    let count = Count { packets: probe.number as u32, marked, tag: probe.tag };
    let probe = Probe { count: probe.size.is_multiple_of(3).then_some(count), ..probe };
    let mut bytes = Vec::new();
    probe.emit(usize::from(input.u8()) * 6, &mut bytes);
    bytes
}

/// Noise, first packets that are right and wrong, labels, probes, a flood, and time.
pub fn datagram_seeds() -> Vec<Vec<u8>> {
    let crypto = packet::crypto(0, &[1, 0x01, 0x2C]);
    let first = [&[2, 9, 5, 0, crypto.len() as u8], crypto.as_slice(), &[0, 5, 0, 200]].concat();
    let unknown = vec![2, 9, 5, 0, 2, 0x40, 0x21, 0, 5, 0, 9];
    vec![
        first,
        unknown,
        vec![6, 1, 3, 5, 0, 30, 6, 2, 4, 5, 0, 255],
        vec![3, 4, 0xDE, 0xAD, 0xBE, 0xEF, 4, 1, 2, 3, 4, 4, 5, 0, 5, 0xDC, 7, 8, 9, 10, 200],
        vec![7, 0, 40, 5, 0, 100, 7, 0, 20],
        [&[0, 3, 0, 60, 0xC0, 0, 0, 0, 9], &[0x11; 55][..], &[1, 4, 0, 30], &[0x40; 30]].concat(),
        [&[0, 5, 0, 21, 0xC3, 0xFA, 0xCE, 0xB0, 0x0C], &[8; 17][..]].concat(),
    ]
}

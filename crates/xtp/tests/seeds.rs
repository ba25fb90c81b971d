//! Associations over links with every fault. Reliable streams both ways: what was written is read,
//! byte by byte. Without repair: every byte is read, or part of a hole. Transactions: each is
//! carried out once.
//!
//! A seed that fails prints the command that repeats it. `XTP_SEEDS` says how many there are.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::seeds::{config, each, mode};
use common::way::link;
use common::world::{Side, World, address};
use dacapo_base::Random;
use dacapo_link::LinkConfig;
use dacapo_xtp::wire::Service;
use dacapo_xtp::{ContextId, End, Event, Listen, Message, Mode, Open, Read, Retransmission};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs one seed; returns how many packets there were.
fn run(seed: u64) -> u64 {
    let hint = format!("seed {seed}: XTP_SEED={seed} cargo test -p dacapo-xtp --test seeds");
    let random = &mut Random::from_number(seed);
    let (config, mut link) = (config(random), link(random));
    let modes = [mode(random), mode(random)];
    // Who keeps nothing behind a gap gets two packets of a shuffled window, and asks for the rest.
    let goes_back = |mode: &Mode| mode.retransmission == Retransmission::GoBackN;
    link.keep_order |= modes.iter().any(goes_back);
    let mut world = World::new(seed, config, &link);
    world.ends[1].listen(Listen { mode: modes[1], ..Listen::on(7) }).unwrap();
    let ends = (([192, 0, 2, 2], 7).into(), ([192, 0, 2, 1], 9).into());
    let open = Open { mode: modes[0], ..Open::stream(address(1), ends.0, ends.1) };
    // Each message has a packet of its own at least.
    let message_max = 1 + random.below(9_000);
    let len_max = (message_max * 300).min(120_000);
    let (len, back) = (1 + random.below(len_max) as usize, random.below(len_max / 2) as usize);
    let mut sides = [Side::new(random, len, message_max), Side::new(random, back, message_max)];
    sides[0].id = Some(world.ends[0].open(world.now, &open).unwrap());
    world.run(|world| {
        sides.iter_mut().enumerate().for_each(|(end, side)| side.work(world, end));
    });
    let [here, there] = &sides;
    assert!(there.has_all_of(here), "{hint}: there: {}\n{link}", there.progress(here));
    assert!(here.has_all_of(there), "{hint}: here: {}\n{link}", here.progress(there));
    for (end, side) in sides.iter().enumerate() {
        let id = side.id.unwrap();
        assert_eq!(world.ended(end, id), Some(End::Complete), "{hint}: end {end}");
        world.ends[end].release(world.now, id).unwrap();
        assert_eq!(world.ends[end].context_count(), 0, "{hint}");
        assert_eq!(world.ends[end].inactive_count(), 0, "{hint}");
    }
    world.sent.len() as u64
}

#[test]
fn streams_over_bad_links_arrive_whole() {
    each("streams", run);
}

/// Reads what is there; bytes that are there are the right ones, and holes are counted.
fn read_lossy(world: &mut World, id: ContextId, data: &[u8], at: &mut usize) -> (usize, bool) {
    let (mut lost, mut piece) = (0, [0; 1_500]);
    loop {
        match world.ends[1].read(world.now, id, &mut piece).unwrap() {
            Read::Data { len, .. } => {
                assert!(piece[..len] == data[*at..*at + len], "other bytes at {at}");
                *at += len;
            }
            Read::Hole { len } => {
                lost += len as usize;
                *at += len as usize;
            }
            Read::Nothing => return (lost, false),
            Read::Finished => return (lost, true),
        }
    }
}

/// A stream without repair: what is lost is lost, and every byte is accounted for.
fn run_lossy(seed: u64, balance: &(AtomicU64, AtomicU64)) -> u64 {
    let hint = format!("seed {seed}: XTP_SEED={seed} cargo test -p dacapo-xtp --test seeds");
    let random = &mut Random::from_number(seed);
    // What overtakes makes what it has overtaken late, and with it lost.
    let (config, link) = (config(random), LinkConfig { keep_order: true, ..link(random) });
    let mut world = World::new(seed, config, &link);
    world.ends[1].listen(Listen::on(7)).unwrap();
    let ends = (([192, 0, 2, 2], 7).into(), ([192, 0, 2, 1], 9).into());
    let mode = Mode { without_repair: true, ..mode(random) };
    let open = Open { mode, ..Open::stream(address(1), ends.0, ends.1) };
    let id = world.ends[0].open(world.now, &open).unwrap();
    let mut data = vec![0; 20_000 + random.below(60_000) as usize];
    random.fill(&mut data);
    let (mut written, mut at, mut lost, mut is_over) = (0, 0, 0, false);
    world.run(|world| {
        if written < data.len() {
            let piece = Message::part(&data[written..]);
            written += world.ends[0].write(world.now, id, &piece).unwrap();
        }
        if written == data.len() {
            world.ends[0].finish(world.now, id).unwrap();
        }
        if let Some(id) = world.incoming(1) {
            world.ends[1].finish(world.now, id).unwrap();
            let (holes, end) = read_lossy(world, id, &data, &mut at);
            (lost, is_over) = (lost + holes, is_over || end);
        }
    });
    assert!(is_over && at == data.len(), "{hint}: {at} of {} bytes, {lost} lost", data.len());
    assert_eq!(world.ended(0, id), Some(End::Complete), "{hint}");
    balance.0.fetch_add(data.len() as u64, Ordering::Relaxed);
    balance.1.fetch_add(lost as u64, Ordering::Relaxed);
    world.sent.len() as u64
}

#[test]
fn streams_without_repair_account_for_every_byte() {
    let balance = (AtomicU64::new(0), AtomicU64::new(0));
    each("without repair", |seed| run_lossy(seed, &balance));
    let (sent, lost) = (balance.0.into_inner(), balance.1.into_inner());
    println!("{sent} bytes, {lost} of them lost");
    assert!(lost < sent / 2, "the links lose 15 % on average, and what is overtaken");
}

/// Requests and responses; each request is carried out once, however often its packets come.
fn run_transactions(seed: u64) -> u64 {
    const COUNT: usize = 20;
    let hint = format!("seed {seed}: XTP_SEED={seed} cargo test -p dacapo-xtp --test seeds");
    let random = &mut Random::from_number(seed);
    let (config, link) = (config(random), link(random));
    let mut world = World::new(seed, config, &link);
    world.ends[1].listen(Listen { mode: mode(random), ..Listen::on(7) }).unwrap();
    let ends = (([192, 0, 2, 2], 7).into(), ([192, 0, 2, 1], 9).into());
    let mode = mode(random);
    let stream = Open::stream(address(1), ends.0, ends.1);
    let open = Open { mode, service: Service::Transaction, ..stream };
    let request = |number: usize| vec![number as u8; 1 + number * 150];
    let asked: Vec<ContextId> = (0..COUNT)
        .map(|number| {
            let id = world.ends[0].open(world.now, &open).unwrap();
            let message = request(number);
            world.ends[0].write(world.now, id, &Message::whole(&message)).unwrap();
            world.ends[0].finish(world.now, id).unwrap();
            id
        })
        .collect();
    let (mut carried_out, mut requests) = ([0; COUNT], HashMap::<ContextId, Vec<u8>>::new());
    let mut answers = vec![Vec::new(); COUNT];
    world.run(|world| {
        let incoming = world.events[1].iter().filter_map(|event| match event {
            Event::Incoming { id, .. } => Some(*id),
            _ => None,
        });
        for id in incoming.collect::<Vec<_>>() {
            let so_far = requests.entry(id).or_default();
            if !world.read_all(1, id, so_far).is_empty() {
                let number = usize::from(so_far[0]);
                assert_eq!(*so_far, request(number), "{hint}");
                carried_out[number] += 1;
                world.ends[1].write(world.now, id, &Message::whole(so_far)).unwrap();
                world.ends[1].finish(world.now, id).unwrap();
            }
        }
        for (id, answer) in asked.iter().zip(&mut answers) {
            world.read_all(0, *id, answer);
        }
    });
    for (number, id) in asked.iter().enumerate() {
        assert_eq!(carried_out[number], 1, "{hint}: request {number}");
        assert_eq!(answers[number], request(number), "{hint}: answer {number}");
        assert_eq!(world.ended(0, *id), Some(End::Complete), "{hint}: request {number}");
    }
    world.sent.len() as u64
}

#[test]
fn every_transaction_is_carried_out_once() {
    each("transactions", run_transactions);
}

//! Peers that speak XTP and write what this service does not: nothing panics, nothing is kept
//! beyond its bound, every ticket ends once.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::raw::Pair;
use common::world::{PORT, host};
use dacapo_base::Random;
use dacapo_safenet::{Cause, Config, Ending, Event, LetGo, Mode, Outcome, Route, Ticket};
use dacapo_xtp::wire::Service;
use dacapo_xtp::{ContextId, Read};
use std::time::Duration;

/// A head: version, flags, priority, port, length.
fn head(version: u8, len: u64) -> Vec<u8> {
    [&[version, 0, 0, 5, 0, 7][..], &len.to_be_bytes()].concat()
}

/// A report: version, kind, count.
fn report(version: u8, kind: u8, count: u64) -> Vec<u8> {
    [&[version, kind][..], &count.to_be_bytes()].concat()
}

fn stream(pair: &mut Pair) -> ContextId {
    pair.open(Service::Stream, dacapo_xtp::Mode::default())
}

/// What the service reports last on an association of the peer.
fn last_report(pair: &mut Pair, id: ContextId) -> Vec<u8> {
    let (mut last, mut piece) = (Vec::new(), [0; 100]);
    while let Ok(Read::Data { len, .. }) = pair.peer.read(pair.now, id, &mut piece) {
        last = piece[..len].to_vec();
    }
    last
}

#[test]
fn what_is_no_message_is_told_and_let_go() {
    let whole = |tag, bytes: Vec<u8>| vec![(tag, bytes, true)];
    let scripts = [
        whole(None, [head(1, 1), vec![7]].concat()),
        whole(Some(1), [head(1, 1), vec![7]].concat()),
        whole(Some(u64::MAX), head(1, 0)),
        whole(Some(0), head(0, 0)),
        whole(Some(0), head(2, 0)),
        whole(Some(0), vec![1]),
        whole(Some(0), head(1, 5)),
        whole(Some(0), [head(1, 5), vec![7; 4]].concat()),
        whole(Some(0), [head(1, 5), vec![7; 6]].concat()),
        whole(Some(0), [head(1, 0), vec![7]].concat()),
        whole(Some(0), [head(1, u64::MAX), vec![7; 9]].concat()),
        vec![(Some(0), head(1, 0), true), (Some(0), head(1, 0), true)],
        vec![(Some(0), head(1, 0), true), (Some(2), head(1, 0), true)],
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        let mut pair = Pair::new(|config| config);
        let id = stream(&mut pair);
        for (tag, bytes, is_end) in &script {
            pair.write(id, *tag, bytes, *is_end);
        }
        pair.run_for(Duration::from_millis(100));
        let taken = script.len() as u64 - 1;
        assert_eq!(pair.parts.len() as u64, taken, "script {number}");
        assert_eq!(last_report(&mut pair, id), report(1, 2, taken), "script {number}");
        assert_eq!(pair.service.messages().counters().malformed, 1, "script {number}");
        assert_eq!(pair.service.messages().incoming_count(), 0, "script {number}");
        pair.peer.finish(pair.now, id).unwrap();
        pair.run_for(Duration::from_secs(20));
        assert!(pair.service.messages().is_quiet(), "script {number}");
    }
}

#[test]
fn a_length_takes_no_memory_and_parts_are_given_as_they_come() {
    let mut pair = Pair::new(|config| Config { part_len_max: 1_000, ..config });
    let id = stream(&mut pair);
    pair.write(id, Some(0), &head(1, u64::MAX), false);
    pair.write(id, Some(0), &[7; 10_500], false);
    pair.exchange();
    let offsets: Vec<u64> = pair.parts.iter().map(|part| part.offset).collect();
    assert_eq!(offsets, (0..10).map(|number| number * 1_000).collect::<Vec<u64>>());
    assert!(pair.parts.iter().all(|part| part.len == u64::MAX && part.ending == Ending::More));
    pair.peer.abort(pair.now, id).unwrap();
    pair.exchange();
    let last = pair.parts.last().unwrap();
    assert_eq!((last.ending, last.offset), (Ending::Broken, 10_000));
    assert!(pair.service.messages().is_quiet() && pair.service.messages().counters().broken == 1);
}

#[test]
fn other_services_of_xtp_are_not_accepted() {
    for service in [
        Service::Unspecified,
        Service::Datagram,
        Service::AcknowledgedDatagram,
        Service::Transaction,
    ] {
        let mut pair = Pair::new(|config| config);
        let id = pair.open(service, dacapo_xtp::Mode::default());
        pair.write(id, Some(0), &head(1, 0), true);
        pair.run_for(Duration::from_secs(20));
        assert!(pair.parts.is_empty());
        assert!(pair.service.messages().is_quiet(), "{service:?}");
        assert_eq!(pair.service.engine().context_count(), 0, "{service:?}");
    }
}

#[test]
fn a_stream_with_holes_is_let_go() {
    let mut pair = Pair::new(|config| config);
    let mode = dacapo_xtp::Mode { without_repair: true, ..dacapo_xtp::Mode::default() };
    let id = pair.open(Service::Stream, mode);
    pair.write(id, Some(0), &[head(1, 9_000), vec![7; 9_000]].concat(), true);
    let mut packets = Vec::new();
    let mut packet = Vec::new();
    while pair.peer.poll_packet(pair.now, &mut packet).is_some() {
        packets.push(std::mem::take(&mut packet));
    }
    for packet in packets.iter().take(1).chain(packets.iter().skip(2)) {
        pair.service.handle_packet(pair.now, host(1), packet);
    }
    pair.run_for(Duration::from_secs(15));
    assert_eq!((pair.parts.len(), pair.service.messages().counters().malformed), (0, 1));
}

fn send(pair: &mut Pair, count: usize) -> Vec<Ticket> {
    let route = Route::host(host(1), PORT);
    let (now, service) = (pair.now, &mut pair.service);
    (0..count)
        .map(|_| service.send_message(now, route, Mode::Asynchronous, vec![7; 100]).unwrap())
        .collect()
}

fn outcomes(pair: &Pair) -> Vec<Outcome> {
    let ended = |event: &Event| if let Event::Ended(_, how) = event { Some(*how) } else { None };
    pair.events.iter().filter_map(ended).collect()
}

#[test]
fn what_is_no_report_ends_the_association_and_every_message_once() {
    let whole = |bytes: Vec<u8>| vec![(bytes, true)];
    let scripts = [
        whole(report(0, 0, 1)),
        whole(report(1, 5, 0)),
        whole(report(1, 255, 0)),
        whole(report(1, 0, 4)),
        whole(report(1, 0, u64::MAX)),
        whole(vec![1]),
        vec![(report(1, 0, 1), false), (vec![0], true)],
        vec![(report(1, 0, 2), true), (report(1, 0, 1), true)],
        vec![(report(1, 0, 1), true), (vec![1, 0, 0], true)],
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        let mut pair = Pair::new(|config| config);
        send(&mut pair, 3);
        pair.exchange();
        let id = pair.incoming().unwrap();
        for (bytes, is_end) in &script {
            pair.write(id, None, bytes, *is_end);
        }
        pair.run_for(Duration::from_secs(1));
        let unknown = Outcome::Unknown(Cause::Malformed);
        let delivered =
            if let [(first, true), _] = &script[..] { usize::from(first[9]) } else { 0 };
        let mut expected = vec![Outcome::Delivered; delivered];
        expected.resize(3, unknown);
        assert_eq!(outcomes(&pair), expected, "script {number}");
        assert!(
            pair.service.messages().sums().closes() && pair.service.messages().sums().open == 0
        );
    }
}

#[test]
fn who_lets_go_again_and_again_is_sent_each_message_once() {
    let mut pair = Pair::new(|config| config);
    send(&mut pair, 20);
    for round in 0..100 {
        pair.exchange();
        let Some(id) = pair.incoming() else { break };
        pair.told.clear();
        pair.write(id, None, &report(1, 3, 0), true);
        assert!(round < 21, "each association costs a message its end");
    }
    pair.run_for(Duration::from_secs(20));
    let rested = Outcome::Failed(Cause::LetGo(LetGo::Rested));
    assert_eq!(outcomes(&pair), [rested; 20]);
}

#[test]
fn a_peer_that_takes_no_bytes_and_says_nothing_is_cut_off() {
    let mut pair = Pair::new(|config| config);
    send(&mut pair, 1);
    pair.exchange();
    let id = pair.incoming().unwrap();
    pair.peer.stop_reading(pair.now, id).unwrap();
    pair.exchange();
    send(&mut pair, 1);
    pair.run_for(Duration::from_secs(30));
    // The second goes by another association, which the peer has not closed.
    assert_eq!(outcomes(&pair), [Outcome::Unknown(Cause::Ended(dacapo_xtp::End::Abandoned))]);
    assert_eq!(pair.service.messages().sums().open, 1);
    assert!(pair.incoming().unwrap() != id);
}

#[test]
fn a_peer_that_closes_its_stream_without_a_report_leaves_messages_unknown() {
    let mut pair = Pair::new(|config| config);
    send(&mut pair, 2);
    pair.exchange();
    let id = pair.incoming().unwrap();
    pair.peer.finish(pair.now, id).unwrap();
    pair.run_for(Duration::from_secs(1));
    let aborted = Cause::Ended(dacapo_xtp::End::Aborted);
    assert_eq!(outcomes(&pair), [Outcome::Unknown(aborted); 2]);
}

#[test]
fn any_bytes_in_any_order_keep_every_bound_and_every_sum() {
    let bound = |config| Config {
        incoming_max: 4,
        group_incoming_max: 2,
        leaving_max: 4,
        part_len_max: 500,
        routes_max: 2,
        ..config
    };
    for seed in 0..200 {
        let random = &mut Random::from_number(seed);
        let mut pair = Pair::new(bound);
        let mut ids = Vec::new();
        for _ in 0..200 {
            step(random, &mut pair, &mut ids);
            let service = &pair.service;
            assert!(service.messages().sums().closes(), "seed {seed}");
            assert!(
                service.messages().route_count() <= 2 && service.messages().incoming_count() <= 10,
                "seed {seed}"
            );
            assert!(pair.parts.iter().all(|part| part.data.len() <= 500), "seed {seed}");
            pair.parts.clear();
        }
        pair.service.close(pair.now);
        pair.run_for(Duration::from_secs(400));
        assert!(pair.service.messages().is_quiet(), "seed {seed}");
        assert_eq!(pair.service.messages().sums().open, 0, "seed {seed}");
        assert_eq!(pair.service.engine().context_count(), 0, "seed {seed}");
    }
}

/// Something that a peer, a user or time does.
fn step(random: &mut Random, pair: &mut Pair, ids: &mut Vec<ContextId>) {
    ids.extend(pair.incoming());
    pair.told.clear();
    let id = ids.get(random.below(ids.len().max(1) as u64) as usize).copied();
    let mut junk = vec![0; random.below(40) as usize];
    random.fill(&mut junk);
    match (random.below(12), id) {
        (0, _) => {
            let kinds = [Service::Stream, Service::Stream, Service::Multicast, Service::Datagram];
            let service = kinds[random.below(4) as usize];
            if pair.peer.context_count() < 100 {
                ids.push(pair.open(service, dacapo_xtp::Mode::default()));
            }
        }
        (1..5, Some(id)) => {
            let len = random.below(3) * random.below(1_000);
            let bytes = [head(1, len), vec![7; len as usize]].concat();
            let cut = if random.chance(0.9) { bytes.len() } else { 5.min(bytes.len()) };
            pair.write(id, Some(random.below(3)), &bytes[..cut], random.chance(0.9));
        }
        (5, Some(id)) => pair.write(id, random.chance(0.5).then_some(0), &junk, true),
        (6, Some(id)) => {
            pair.write(id, None, &report(1, random.below(6) as u8, random.below(4)), true);
        }
        (7, Some(id)) => {
            let _ = pair.peer.finish(pair.now, id);
        }
        (8, Some(id)) => {
            let _ = pair.peer.release(pair.now, id);
        }
        (9, _) => {
            let priority = random.below(4) as u16;
            let route = Route::host(host(1), PORT).with_priority(priority);
            let data = vec![7; random.below(5_000) as usize];
            let _ = pair.service.send_message(pair.now, route, Mode::Asynchronous, data);
        }
        (10, _) => return pair.run_for(Duration::from_millis(random.below(10_000))),
        _ => {}
    }
    pair.exchange();
}

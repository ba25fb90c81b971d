//! What a peer has no room for does not leave, neither new nor again, until it has said that it has
//! room, however much was sent before it had said anything.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::uut::{Sent, Uut, bytes, stream};
use common::world::{World, address};
use dacapo_base::Time;
use dacapo_link::LinkConfig;
use dacapo_xtp::wire::{Control, Format, Limits, Options};
use dacapo_xtp::{Config, End, Listen, Message, Open};
use std::time::Duration;

/// The stretches of data in packets that come one after the other, joined.
fn stretches(sent: &[Sent]) -> Vec<(u64, u64)> {
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    for sent in sent.iter().filter(|sent| sent.format() == Format::Data) {
        let (left, right) = (sent.header().seq, sent.header().seq + sent.data().len() as u64);
        match stretches.last_mut() {
            Some(last) if last.1 == left => last.1 = right,
            _ => stretches.push((left, right)),
        }
    }
    stretches
}

/// A unit that has sent 10,000 of 20,000 bytes before the peer said that it takes 4,000.
fn beyond_the_window() -> Uut {
    let config = Config { first_window: 10_000, ..Config::default() };
    let mut uut = Uut::new(config);
    uut.id = Some(uut.engine.open(uut.now, &stream()).unwrap());
    uut.write(&bytes(20_000));
    let sent = uut.take();
    let last = sent.last().unwrap().header();
    assert_eq!(stretches(&sent).last().unwrap().1, 10_000);
    uut.xkey = sent[0].header().key.value();
    uut.pass(Duration::from_millis(10));
    let control = Control { rseq: 4_000, alloc: 4_000, echo: last.sync };
    uut.traffic(control, Limits::default());
    uut
}

#[test]
fn what_was_sent_beyond_a_window_is_not_sent_again_before_it_opens() {
    let mut uut = beyond_the_window();
    let mut asked = Vec::new();
    let until = uut.now + Duration::from_secs(600);
    while uut.now < until {
        let sent = uut.take();
        assert_eq!(stretches(&sent), [], "the peer takes up to 4,000");
        for probe in sent {
            assert!(probe.has(Options::SREQ), "{probe:?}");
            asked.push(uut.now);
            let echo = probe.header().sync;
            uut.control(Options::NONE, Control { rseq: 4_000, alloc: 4_000, echo });
        }
        uut.pass_to_deadline();
    }
    let waits: Vec<Duration> = asked.windows(2).map(|two| two[1].since(two[0])).collect();
    assert!(waits.is_sorted() && (10..40).contains(&waits.len()), "less and less often: {waits:?}");

    let echo = uut.take().last().map_or(0, |probe| probe.header().sync);
    uut.control(Options::NONE, Control { rseq: 4_000, alloc: 7_000, echo });
    let sent = uut.take();
    assert_eq!(stretches(&sent), [(4_000, 7_000)], "as much again as there is room for");
    assert!(sent.last().unwrap().has(Options::SREQ), "nothing more can go");
    let echo = sent.last().unwrap().header().sync;
    uut.control(Options::NONE, Control { rseq: 7_000, alloc: 1 << 20, echo });
    assert_eq!(stretches(&uut.take()), [(7_000, 20_000)]);
}

#[test]
fn what_lacks_within_the_window_goes_although_more_lacks_beyond() {
    let config = Config { first_window: 10_000, ..Config::default() };
    let mut uut = Uut::new(config);
    uut.id = Some(uut.engine.open(uut.now, &stream()).unwrap());
    uut.write(&bytes(10_000));
    let sent = uut.take();
    uut.xkey = sent[0].header().key.value();
    uut.pass(Duration::from_millis(10));
    let echo = sent.last().unwrap().header().sync;
    uut.traffic(Control { rseq: 2_000, alloc: 5_000, echo }, Limits::default());
    let sent = uut.take();
    assert_eq!(stretches(&sent), [(2_000, 5_000)]);
    let asks: Vec<bool> = sent.iter().map(|sent| sent.has(Options::SREQ)).collect();
    assert!(asks.ends_with(&[false, true]), "the last within the window asks: {asks:?}");
}

#[test]
fn a_user_who_does_not_read_is_not_sent_the_same_again_and_again() {
    for without_window in [false, true] {
        let sent = send_to_one_who_reads_late(without_window);
        assert!(sent < 200, "{sent} packets in 100 s, without window: {without_window}");
    }
}

/// Sends 30,000 bytes to one with room for 8,192 who reads after 100 s, and gets all; how many
/// packets there were before that.
fn send_to_one_who_reads_late(without_window: bool) -> usize {
    let config = Config { buffer_len: 8_192, first_window: 66_000, ..Config::default() };
    let link = LinkConfig { delay: Duration::from_millis(1), ..LinkConfig::default() };
    let mut world = World::new(1, config, &link);
    world.ends[1].listen(Listen::on(7)).unwrap();
    let mut open = Open::stream(address(1), ([192, 0, 2, 2], 7).into(), address(0));
    open.mode.without_window = without_window;
    let near = world.ends[0].open(world.now, &open).unwrap();
    let data = bytes(30_000);
    let mut written = 0;
    let mut write = |world: &mut World| {
        let message = Message::part(&data[written..]);
        written += world.ends[0].write(world.now, near, &message).unwrap();
        if written == data.len() {
            world.ends[0].finish(world.now, near).unwrap();
        }
        written == data.len()
    };
    let until = world.now + Duration::from_secs(100);
    for second in 1..=100 {
        write(&mut world);
        world.run_until(Time::from_millis(1) + Duration::from_secs(second));
    }
    assert!(world.now >= until);
    let sent = world.sent.len();

    let far = world.incoming(1).unwrap();
    world.ends[1].finish(world.now, far).unwrap();
    let (mut got, mut is_written) = (Vec::new(), false);
    world.run(|world| {
        is_written = is_written || write(world);
        world.read_all(1, far, &mut got);
    });
    assert_eq!(got, data);
    assert_eq!([world.ended(0, near), world.ended(1, far)], [Some(End::Complete); 2]);
    sent
}

/// A unit with room for 4,000 bytes.
fn with_little_room() -> Uut {
    let config = Config { buffer_len: 4_000, ..Config::default() };
    Uut::opened_in(config, Listen::on(7), None)
}

#[test]
fn what_fills_a_gap_has_room_however_much_came_behind_it_that_heeds_no_window() {
    let (mut uut, data) = (with_little_room(), bytes(6_000));
    for seq in [1_000, 2_000, 3_000, 4_000, 5_000] {
        uut.data(Options::NOFLOW, seq as u64, &data[seq..seq + 1_000]);
    }
    uut.data(Options::NOFLOW | Options::SREQ, 0, &data[..1_000]);
    assert_eq!(uut.take_one().control(), Control { rseq: 4_000, alloc: 4_000, echo: uut.sync });
    assert_eq!(uut.read_bytes(), data[..4_000]);
}

#[test]
fn a_window_that_opens_is_told_also_when_the_end_came_before_what_lacks() {
    let (mut uut, data) = (with_little_room(), bytes(10_000));
    uut.data(Options::NOFLOW, 0, &data[..4_000]);
    uut.data(Options::NOFLOW | Options::WCLOSE | Options::SREQ, 9_000, &data[9_000..]);
    assert_eq!(uut.take_one().control(), Control { rseq: 4_000, alloc: 4_000, echo: uut.sync });
    assert_eq!(uut.read_bytes(), data[..4_000]);
    let told = uut.take_one().control();
    assert_eq!((told.rseq, told.alloc), (4_000, 8_000), "nobody asked");
    uut.data(Options::NOFLOW, 4_000, &data[4_000..8_000]);
    assert_eq!(uut.read_bytes(), data[4_000..8_000]);
    assert_eq!(uut.take_one().control().alloc, 12_000);
    uut.data(Options::NOFLOW | Options::WCLOSE, 8_000, &data[8_000..]);
    assert!(uut.take_one().has(Options::RCLOSE));
    assert_eq!(uut.read_bytes(), data[8_000..]);
    // All that is still to come had room before.
    uut.silent();
}

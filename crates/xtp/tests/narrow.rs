//! A path that becomes too narrow for the packets of an association, at a router and without a
//! word: the stream goes on with shorter ones, and what was lost is cut anew.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::seeds::{each, mode};
use common::uut::{Uut, bytes, stream};
use common::way::link;
use common::world::{Side, World, address};
use dacapo_base::{Random, Time};
use dacapo_link::{LinkConfig, Mtu};
use dacapo_xtp::wire::{Body, Control, Format, Limits, Options};
use dacapo_xtp::{Config, End, Listen, Mode, Open, Retransmission, Timers};
use std::time::Duration;

const BASE: usize = 1_200;

fn narrow_from(from: Time) -> Option<Mtu> {
    Some(Mtu { from, ..Mtu::black_hole(BASE) })
}

fn open(random: &mut Random) -> Open {
    let ends = (([192, 0, 2, 2], 7).into(), ([192, 0, 2, 1], 9).into());
    Open { mode: mode(random), ..Open::stream(address(1), ends.0, ends.1) }
}

/// Streams both ways over links with every fault that become narrow at some time: all arrives.
fn run(seed: u64) -> u64 {
    let hint = format!("seed {seed}: XTP_SEED={seed} cargo test -p dacapo-xtp --test narrow");
    let random = &mut Random::from_number(seed);
    let timers = Timers {
        retries_max: 60,
        wait_max: Duration::from_secs(2),
        give_up: Duration::from_secs(600),
        inactive_min: Duration::from_secs(600),
        ..Timers::default()
    };
    let packet_len_max = BASE + 1 + random.below(8_000) as usize;
    let config = Config { packet_len_max, buffer_len: 64 << 10, timers, ..Config::default() };
    let from = Time::from_millis(random.below(2_000));
    let open = open(random);
    let far = mode(random);
    let goes_back = |retransmission| retransmission == Retransmission::GoBackN;
    let mut link = LinkConfig { mtu: narrow_from(from), ..link(random) };
    link.keep_order |= goes_back(open.mode.retransmission) || goes_back(far.retransmission);
    let mut world = World::new(seed, config, &link);
    world.ends[1].listen(Listen { mode: far, ..Listen::on(7) }).unwrap();
    let mut sides = [Side::new(random, 200_000, 9_000), Side::new(random, 100_000, 9_000)];
    sides[0].id = Some(world.ends[0].open(world.now, &open).unwrap());
    world.run(|world| {
        sides.iter_mut().enumerate().for_each(|(end, side)| side.work(world, end));
    });
    let [here, there] = &sides;
    assert!(there.has_all_of(here), "{hint}: there: {}\n{link}", there.progress(here));
    assert!(here.has_all_of(there), "{hint}: here: {}\n{link}", here.progress(there));
    let ended = [0, 1].map(|end| world.ended(end, sides[end].id.unwrap()));
    assert_eq!(ended, [Some(End::Complete); 2], "{hint}");
    world.sent.len() as u64
}

#[test]
fn streams_over_paths_that_become_narrow_arrive_whole() {
    each("streams over narrow paths", run);
}

/// A unit whose long packets are answered as lost again and again, by a peer that says how much it
/// has or names `gaps`; in how many rounds there was one, and what was sent then.
fn until_short(uut: &mut Uut, alloc: u64, gaps: &[(u64, u64)]) -> (usize, Vec<usize>) {
    let (mut longs, mut last) = (0, Vec::new());
    for _ in 0..100 {
        uut.pass_to_deadline();
        let sent = uut.take();
        let data = sent.iter().filter(|sent| sent.format() == Format::Data);
        let lens: Vec<usize> = data.map(|sent| sent.bytes.len()).collect();
        let is_long = lens.iter().any(|len| *len > BASE);
        longs += usize::from(is_long);
        if !lens.is_empty() {
            last = lens;
        }
        if !is_long && !last.is_empty() && last.iter().all(|len| *len <= BASE) {
            break;
        }
        // What is short gets there: the request, which says that nothing has come.
        let mut asked =
            sent.iter().filter(|sent| sent.bytes.len() <= BASE && sent.has(Options::SREQ));
        if let Some(request) = asked.next_back() {
            let echo = request.header().sync;
            uut.pass(Duration::from_millis(10));
            let control = Control { rseq: 0, alloc, echo };
            match gaps {
                [] => uut.control(Options::NONE, control),
                _ => uut.error_control(control, gaps),
            }
        }
    }
    (longs, last)
}

#[test]
fn what_was_lost_in_four_rounds_goes_again_in_packets_of_the_base_length() {
    let unheeded = Open { mode: without_window(), ..stream() };
    // A peer that names gaps, and a user who heeds no window where there is one.
    for (open, gaps) in [(stream(), &[][..]), (stream(), &[(0, 5_000)]), (unheeded, &[])] {
        let mut uut = Uut::opening(&open, 1 << 20);
        uut.take();
        uut.write(&bytes(5_000));
        let (longs, lens) = until_short(&mut uut, 1 << 20, gaps);
        assert_eq!(longs, 4, "once, and thrice again: {gaps:?}");
        let data_len: usize = lens.iter().map(|len| len - 32).sum();
        assert_eq!((lens.iter().max(), data_len), (Some(&BASE), 5_000), "{lens:?}");
        assert_eq!(uut.engine.packet_len_max(uut.id()), Ok(BASE));
    }
}

fn without_window() -> Mode {
    Mode { without_window: true, ..Mode::default() }
}

/// Long packets in eight rounds, each with the answer that nothing has come; true when packets are
/// short after it. `skew` is how much newer the number is that is answered.
fn is_shortened(open: &Open, alloc: u64, skew: u32) -> bool {
    let mut uut = Uut::opening(open, alloc);
    uut.take();
    for round in 0..8 {
        assert_eq!(uut.write(&bytes(5_000)), 5_000);
        let sent = uut.take();
        assert!(sent.iter().any(|sent| sent.bytes.len() > BASE) || round > 3, "{sent:?}");
        let request = sent.iter().rfind(|sent| sent.has(Options::SREQ)).unwrap();
        let echo = request.header().sync.wrapping_add(skew);
        uut.pass(Duration::from_millis(1));
        uut.control(Options::NONE, Control { rseq: 0, alloc, echo });
    }
    uut.engine.packet_len_max(uut.id()).unwrap() == BASE
}

#[test]
fn who_answers_no_request_says_nothing_of_what_was_sent() {
    assert!(is_shortened(&stream(), 1 << 20, 0));
    assert!(!is_shortened(&stream(), 1 << 20, 1_000));
}

/// With NOFLOW more is sent than a slow reader takes: it is refused there, and not lost.
#[test]
fn a_reader_that_is_slow_is_no_black_hole() {
    let open = Open { mode: without_window(), ..stream() };
    assert!(!is_shortened(&open, 0, 0));
    assert!(is_shortened(&open, 1 << 20, 0));
}

/// Over a path that takes no longer packets status of many gaps would never arrive.
#[test]
fn status_of_many_gaps_is_as_short_as_the_peer_asked_for() {
    for len in [BASE, 700] {
        let limits = Limits { data_len_max: len as u32 - 32, ..Limits::default() };
        let mut uut = Uut::opened(Listen::on(0), Some(limits));
        assert!(uut.engine.packet_len_max(uut.id()).unwrap() > BASE);
        (1..=100).for_each(|place| uut.data(Options::NONE, 200 * place, &[7; 100]));
        uut.data(Options::SREQ, 20_200, &[]);
        let sent = uut.take();
        let errors: Vec<_> = sent.iter().filter(|sent| sent.format() == Format::Ecntl).collect();
        let count = (len - 56) / 16;
        assert_eq!(errors.len(), 99_usize.div_ceil(count - 1), "{sent:?}");
        assert_eq!(errors[0].spans().len(), count);
        assert!(errors.iter().all(|sent| sent.bytes.len() <= len), "{errors:?}");
        // All of the gaps, each once, behind the first, by which it is known that they are gaps.
        let gaps: Vec<(u64, u64)> =
            (1..=100).map(|place| (200 * place - 100, 200 * place)).collect();
        let said = errors.iter().flat_map(|sent| sent.spans().split_off(1));
        assert_eq!(said.collect::<Vec<_>>(), gaps[1..]);
        assert!(errors.iter().all(|sent| sent.spans()[0] == (0, 200)));
    }
}

#[test]
fn the_peer_is_asked_for_packets_as_short() {
    let mut uut = Uut::opening(&stream(), 1 << 20);
    uut.take();
    let (now, id) = (uut.now, uut.id());
    uut.engine.shorten_packets(now, id, 700).unwrap();
    let sent = uut.take_one();
    let Body::Tcntl(_, traffic) = sent.body() else { panic!("{sent:?}") };
    assert_eq!(traffic.limits.unwrap().data_len_max, 700 - 32);
    uut.write(&bytes(2_000));
    let longest = uut.take().iter().map(|sent| sent.bytes.len()).max();
    assert_eq!(longest, Some(700));
    // Longer than they are asks for nothing.
    uut.engine.shorten_packets(now, id, 1_000).unwrap();
    uut.silent();
    assert_eq!(uut.engine.packet_len_max(id), Ok(700));
}

#[test]
fn a_first_packet_that_is_never_answered_becomes_shorter() {
    let mut uut = Uut::new(Config::default());
    uut.id = Some(uut.engine.open(uut.now, &stream()).unwrap());
    uut.write(&bytes(1_300));
    let first = uut.take_one();
    assert!(first.bytes.len() > BASE);
    let mut again = Vec::new();
    for _ in 0..6 {
        uut.pass_to_deadline();
        again.extend(uut.take());
    }
    let firsts = again.iter().filter(|sent| sent.format() == Format::First);
    let lens: Vec<usize> = firsts.map(|sent| sent.bytes.len()).collect();
    assert_eq!(lens[0], first.bytes.len());
    assert!(*lens.last().unwrap() <= BASE, "{lens:?}");
    // What the shorter one has no room for lacks, and goes when the peer says so.
    let last = again.last().unwrap();
    uut.xkey = last.header().key.value();
    let rseq = last.data().len() as u64;
    let control = Control { rseq, alloc: 1 << 20, echo: last.header().sync };
    uut.traffic(control, Limits::default());
    let sent = uut.take();
    let data = sent.iter().find(|sent| sent.format() == Format::Data).unwrap();
    assert_eq!((data.header().seq, data.data().len() as u64), (rseq, 1_300 - rseq));
}

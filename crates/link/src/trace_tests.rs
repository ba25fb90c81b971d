//! Traces as text, and what a link does by them.

use super::*;
use crate::config::LinkConfig;
use crate::engine::Link;
use crate::fate::Delivery;
use dacapo_base::Random;

fn trace(text: &str) -> Trace {
    Trace::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// A link with this trace, and what else there is.
fn link(lines: &str, more: &str) -> Link<Vec<u8>> {
    let text = format!("trace=FILE{more}");
    let config = LinkConfig::parse_with(&text, |_| Trace::parse(lines));
    let config = config.unwrap_or_else(|error| panic!("{text}: {error}"));
    Link::new(config, Random::from_number(1)).unwrap()
}

fn send(link: &mut Link<Vec<u8>>, at_us: u64, lens: &[usize]) {
    for &len in lens {
        let _ = link.handle_send(Time::from_micros(at_us), vec![0; len]);
    }
}

fn arrivals(link: &mut Link<Vec<u8>>, now: Time) -> Vec<Delivery<Vec<u8>>> {
    std::iter::from_fn(|| link.poll_deliver(now)).collect()
}

/// When everything that is on the way arrives, ms.
fn due_ms(link: &mut Link<Vec<u8>>) -> Vec<u64> {
    let all = arrivals(link, Time::NEVER);
    all.iter().map(|delivery| delivery.delivered.as_nanos() / 1_000_000).collect()
}

/// With and without an active queue management, which has nothing to do.
const BOTH: [&str; 3] = ["", ",aqm=codel,aqm-target=60s", ",aqm=dualpi2,aqm-target=60s"];

#[test]
fn lines_are_opportunities_and_the_last_is_the_duration() {
    let read = trace("0\n1\n1\n4\n");
    assert_eq!((read.at_ms(), read.duration()), (&[0, 1, 1, 4][..], Duration::from_millis(4)));
    assert_eq!(read.mean_bits_per_s(), 4 * 1_500 * 8 * 1_000 / 4);
    assert_eq!(trace("0\r\n1\r\n1\r\n004"), read, "ends of lines of any kind");
    assert_eq!(trace(&read.to_string()), read);
    assert_eq!(trace("86400000").mean_bits_per_s(), 1);
}

#[test]
fn what_is_no_trace_is_refused_with_its_line() {
    for (text, part) in [
        ("", "no line"),
        ("0\n0\n", "the last line is 0"),
        ("1\nx\n", "line 2: `x` is not a number"),
        ("1\n\n2\n", "line 2: `` is not a number"),
        ("+1", "line 1: `+1` is not"),
        ("-1", "line 1: `-1` is not"),
        (" 1", "line 1: ` 1` is not"),
        ("1.5", "line 1: `1.5` is not"),
        ("\u{feff}1", "line 1: `\\u{feff}1` is not"),
        ("٣", "is not a number of whole milliseconds"),
        ("1\n3\n2\n", "line 3: 2 ms after 3 ms"),
        ("86400001", "line 1: beyond 86400s"),
        ("99999999999999999999999", "line 1: beyond 86400s"),
    ] {
        let error = Trace::parse(text).expect_err(text).to_string();
        assert!(error.contains(part), "{text:?}: {error}");
    }
    let long = Trace::parse(&"é\u{7}".repeat(5_000)).unwrap_err().to_string();
    assert!(long.len() < 200 && !long.chars().any(char::is_control), "{long}");
    let lines = "1\n".repeat(Trace::LINE_COUNT_MAX + 1);
    let many = Trace::parse(&lines).unwrap_err();
    let said = "4194305 lines; at most 4194304 are read: leave out lines at its end";
    assert_eq!(many.to_string(), said);
    let most = trace(&lines[2..]);
    assert_eq!(most.at_ms().len(), Trace::LINE_COUNT_MAX);
    let text = " ".repeat(Trace::TEXT_LEN_MAX + 1);
    assert_eq!(Trace::parse(&text), Err(TraceError::TooLong));
    let said = "longer than 50331648 bytes, of which no more are read: leave out lines at its end";
    assert_eq!(TraceError::TooLong.to_string(), said);
}

#[test]
fn any_text_is_a_trace_or_an_error() {
    let pieces = ["0", "1", "7", "\n", "\n", "\r\n", " ", "-", "4294967296", "é", "\0"];
    let mut read = 0;
    for seed in 0..20_000 {
        let mut random = Random::from_number(seed);
        let text: String = (0..random.below(12))
            .map(|_| pieces[random.below(pieces.len() as u64) as usize])
            .collect();
        if let Ok(trace) = Trace::parse(&text) {
            read += 1;
            assert!(trace.at_ms().is_sorted() && !trace.duration().is_zero(), "seed {seed}");
            assert_eq!(Trace::parse(&trace.to_string()), Ok(trace), "seed {seed}");
        }
    }
    assert!(read > 300, "{read} were traces");
}

#[test]
fn opportunities_are_found_in_every_pass_and_one_after_the_other() {
    let trace = trace("0\n1\n1\n4\n");
    let time = |place| trace.time_of(place).as_nanos() / 1_000_000;
    let first = |us| trace.first_after(Time::from_micros(us));
    for (us, ms) in [(0, 1), (999, 1), (1_000, 4), (3_999, 4), (4_000, 5), (4_001, 5), (5_000, 8)] {
        assert_eq!(time(first(us)), ms, "after {us} us");
    }
    let times: Vec<u64> = (0..8).map(|count| time(trace.later(first(0), count))).collect();
    assert_eq!(times, [1, 1, 4, 4, 5, 5, 8, 8]);
    let late = trace.later(trace.first_after(Time::NEVER), u64::MAX);
    assert_eq!(trace.time_of(late), Time::NEVER);
}

#[test]
fn a_link_that_always_has_something_to_send_carries_what_its_trace_does() {
    for more in BOTH {
        let made = Trace::cellular(5, Duration::from_secs(3));
        let (count, duration) = (made.at_ms().len(), made.duration());
        let wide = format!(",queue=1000000,queue-bytes=1000MB,in-flight=1000000{more}");
        let mut link = link(&made.to_string(), &wide);
        let at_zero = made.at_ms().iter().filter(|ms| **ms == 0).count();
        // Two passes, in packets that do not divide an opportunity; those at 0 are missed once.
        let items = (2 * count * 1_500) / 700 + 1;
        send(&mut link, 0, &vec![700; items]);
        let arrived = arrivals(&mut link, Time::ZERO + duration * 2);
        let opportunities = 2 * count;
        assert_eq!(arrived.len(), opportunities * 1_500 / 700, "{more}: {at_zero} at zero");
        // None before its opportunity: as many as were there until then.
        for (number, delivery) in (1..).zip(&arrived).step_by(97) {
            let ms = delivery.delivered.as_nanos() / 1_000_000;
            let passes = ms / duration.as_millis() as u64;
            let rest = (ms % duration.as_millis() as u64) as u32;
            let there = passes as usize * count + made.at_ms().partition_point(|at| *at <= rest);
            assert!(there - at_zero >= (number * 700_usize).div_ceil(1_500), "{more}: {number}");
        }
    }
}

#[test]
fn an_opportunity_that_finds_nothing_is_lost() {
    for more in BOTH {
        // Two at 1, two at 10, then again at 11 (1 of the next pass), and so on.
        let mut link = link("1\n1\n10\n10\n", more);
        // Those at 1 pass unused; what comes at 10 sharp is too late for those of 10.
        send(&mut link, 1_000, &[1_500]);
        send(&mut link, 10_000, &[1_500]);
        assert_eq!(due_ms(&mut link), [10, 11], "{more}");
        // Half an opportunity is not kept for later, nor is the second of two.
        let mut link = self::link("1\n1\n10\n", more);
        send(&mut link, 500, &[700]);
        send(&mut link, 1_500, &[900, 900]);
        assert_eq!(due_ms(&mut link), [1, 10, 11], "{more}");
    }
}

#[test]
fn packets_share_an_opportunity_and_what_does_not_fit_leaves_with_the_next() {
    for more in BOTH {
        let lines = "1\n2\n3\n4\n5\n6\n";
        let mut shared = link(lines, more);
        send(&mut shared, 0, &[500, 500, 500, 500]);
        assert_eq!(due_ms(&mut shared), [1, 1, 1, 2], "{more}");
        let mut cut = link(lines, more);
        send(&mut cut, 0, &[1_000, 1_000, 1_000, 1]);
        assert_eq!(due_ms(&mut cut), [1, 2, 2, 3], "{more}");
        let mut long = link(lines, more);
        send(&mut long, 0, &[4_500, 4_501, 0, 1_498]);
        assert_eq!(due_ms(&mut long), [3, 7, 7, 7], "{more}");
        let mut later = link(lines, &format!(",delay=20ms{more}"));
        send(&mut later, 6_400, &[1_500]);
        assert_eq!(due_ms(&mut later), [27], "{more}");
    }
}

#[test]
fn the_queue_of_a_trace_is_bounded() {
    let mut one = link("1000\n", ",queue=3");
    send(&mut one, 0, &[1_500; 10]);
    // The next one in turn does not wait in the queue.
    assert_eq!((one.in_flight(), one.stats().dropped_queue), (4, 6));
    let mut none = link("1000\n", ",queue=0");
    send(&mut none, 0, &[1_500; 2]);
    assert_eq!((none.in_flight(), none.stats().dropped_queue), (1, 1));
    assert!(none.closes());
}

#[test]
fn a_managed_queue_of_a_trace_holds_one_less() {
    for more in &BOTH[1..] {
        for (limit, in_flight) in
            [("queue=3", 3), ("queue-bytes=4500B", 3), ("queue=1", 1), ("queue=0", 1)]
        {
            let mut link = link("1000\n", &format!(",{limit}{more}"));
            send(&mut link, 0, &[1_500; 10]);
            let dropped = link.stats().dropped_queue;
            assert_eq!((link.in_flight(), dropped), (in_flight, 10 - in_flight as u64), "{limit}");
        }
    }
}

#[test]
fn a_change_between_rate_and_trace_moves_what_waits() {
    for more in BOTH {
        let mut changed = link("10\n20\n30\n", more);
        send(&mut changed, 0, &[1_500; 3]);
        let rate = LinkConfig {
            trace: None,
            rate_bits_per_s: Some(12_000_000),
            ..changed.config().clone()
        };
        let back = changed.config().clone();
        changed.set_config(Time::from_micros(11_500), rate).unwrap();
        send(&mut changed, 11_500, &[1_500; 2]);
        // Without a management the second is in turn, and leaves as it was to; with one it begins
        // anew, not before the change.
        let expected = if more.is_empty() { [10, 20, 21, 22, 23] } else { [10, 12, 13, 14, 15] };
        assert_eq!(due_ms(&mut changed), expected, "{more}");
        changed.set_config(Time::from_millis(25), back).unwrap();
        send(&mut changed, 25_000, &[1_500; 2]);
        assert_eq!(due_ms(&mut changed), [30, 40], "{more}");
        assert!(changed.closes());
    }
}

#[test]
fn a_trace_from_a_seed_is_the_one_that_its_seed_says() {
    let config: LinkConfig = "trace=cellular:7".parse().unwrap();
    let source = config.trace.clone().unwrap();
    assert_eq!(*source.trace(), Trace::cellular(7, TraceSource::CELLULAR_DURATION));
    let mut link = Link::new(config, Random::from_number(1)).unwrap();
    send(&mut link, 0, &[1_500]);
    let first = source.trace().at_ms().iter().find(|ms| **ms > 0).copied();
    assert_eq!(due_ms(&mut link).first().copied(), first.map(u64::from));
}

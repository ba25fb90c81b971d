//! Calls that wait, over real sockets on loopback.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use dacapo_base::{Random, patience};
use dacapo_safenet::{
    Cause, Config, Ending, Event, Mode, Outcome, Part, Route, SendError, Traffic,
};
use dacapo_safenet_net::{Awaited, CallError, MessageHost};
use dacapo_xtp::Timers;
use dacapo_xtp_net::{Fault, Host, InternetConfig, Udp};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PORT: u16 = 7;
/// Nothing but a hang uses it up.
const LONG: Duration = Duration::from_secs(300);
/// Long enough that a turn has been made, and nothing comes of it.
const SHORT: Duration = Duration::from_millis(20);

fn end_with(config: Config, timers: Timers) -> MessageHost {
    let network = Udp::bind(&InternetConfig::new(([127, 0, 0, 1], 0).into())).unwrap();
    let engine = dacapo_xtp::Config { timers, ..dacapo_xtp::Config::default() };
    MessageHost::new(Host::new(Box::new(network), engine).unwrap(), config)
}

fn config() -> Config {
    Config::new(([127, 0, 0, 1], PORT).into())
}

fn end() -> MessageHost {
    end_with(config(), Timers::default())
}

/// A host in a thread that takes what comes, and sends it back to who takes answers.
struct Echo {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Echo {
    fn new() -> Self {
        let (mut host, is_over) = (end(), Arc::new(AtomicBool::new(false)));
        host.listen(PORT).unwrap();
        let (address, ending) = (host.local(), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !ending.load(Ordering::Relaxed) {
                echo_one(&mut host);
            }
            let until = host.after(LONG);
            host.close(until).unwrap();
            host.messages().counters().taken
        });
        Self { address, is_over, thread }
    }

    fn stop(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn echo_one(host: &mut MessageHost) {
    let until = host.after(SHORT);
    let first = match host.get_message(PORT, until) {
        Ok(part) => part,
        Err(CallError::TimedOut { awaited: Awaited::Message { port: PORT }, fault: None }) => {
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let answer = first.answer();
    let bytes = whole(host, first);
    if let Some(answer) = answer {
        let until = host.after(LONG);
        host.send_message(answer, bytes, until).unwrap();
    }
    while host.poll_event().is_some() {}
}

/// The message that begins with this part.
fn whole(host: &mut MessageHost, first: Part) -> Vec<u8> {
    let (mut bytes, mut ending) = (first.data, first.ending);
    while ending == Ending::More {
        let until = host.after(LONG);
        let part = host.get_message(PORT, until).unwrap();
        assert_eq!(part.offset, bytes.len() as u64);
        bytes.extend_from_slice(&part.data);
        ending = part.ending;
    }
    assert_eq!(ending, Ending::Last);
    bytes
}

#[test]
fn a_synchronous_call_returns_when_the_peers_user_has_the_message() {
    let (echo, mut near) = (Echo::new(), end());
    near.listen(PORT).unwrap();
    let route = Route::host(echo.address, PORT);
    let random = &mut Random::from_number(1);
    for len in [0, 1, 100, 1_400, 20_000, 65_536, 1_000_000] {
        let mut sent = vec![0; len];
        random.fill(&mut sent);
        let until = near.after(LONG);
        let outcome = near.send_message_and_wait(route, sent.clone(), until).unwrap();
        assert_eq!(outcome, Outcome::Delivered, "{len} bytes");
        let first = near.get_message(PORT, until).unwrap();
        assert_eq!(first.mode, Mode::Asynchronous);
        assert!(whole(&mut near, first) == sent, "{len} bytes: other ones come back");
    }
    let until = near.after(LONG);
    near.close(until).unwrap();
    assert_eq!(near.messages().sums().delivered, 7);
    assert_eq!(echo.stop(), 7);
}

#[test]
fn who_does_not_take_is_waited_for_until_the_time_and_its_ticket_goes_on() {
    let (mut near, mut far) = (end(), end());
    far.listen(PORT).unwrap();
    let route = Route::host(far.local(), PORT);
    let until = near.after(LONG);
    let ticket = near.send_message(route, b"first".to_vec(), until).unwrap();
    let until = near.after(SHORT);
    let error = near.send_message_and_wait(route, b"second".to_vec(), until).unwrap_err();
    let CallError::TimedOut { awaited: Awaited::End(second, of), fault: None } = error else {
        panic!("{error}");
    };
    assert_eq!(of, route);
    let text = error.to_string();
    assert!(text.contains(&route.peer.to_string()) && text.contains("abandon"), "{text}");
    let taker = std::thread::spawn(move || {
        let until = far.after(LONG);
        let got = [0; 2].map(|_| far.get_message(PORT, until).unwrap().data);
        // The word of the first was gathered, and left with that of the second.
        (far, got)
    });
    let until = near.after(LONG);
    assert_eq!(near.wait(second, until).unwrap(), Outcome::Delivered);
    assert_eq!(near.wait(ticket, until).unwrap(), Outcome::Delivered);
    let error = near.wait(ticket, until).unwrap_err();
    assert!(matches!(error, CallError::NotOpen(of) if of == ticket), "{error}");
    assert_eq!(taker.join().unwrap().1, [b"first".to_vec(), b"second".to_vec()]);
}

#[test]
fn who_does_not_wait_still_gets_what_has_come() {
    let (mut near, mut far) = (end(), end());
    far.listen(PORT).unwrap();
    let route = Route::host(far.local(), PORT);
    let until = near.after(LONG);
    let ticket = near.send_message(route, b"unasked".to_vec(), until).unwrap();
    let over = far.host().now();
    assert_eq!(far.take_message(PORT), None, "no turn was made");
    // Each call is too late, and carries packets all the same; so does the other end's.
    let got = patience::until(Instant::now, LONG, || {
        let over_there = near.host().now();
        let waited = near.wait(ticket, over_there);
        assert!(!matches!(waited, Err(CallError::NotOpen(_))));
        far.get_message(PORT, over).ok()
    });
    assert_eq!(got.expect("nothing came").data, b"unasked");
}

#[test]
fn room_is_waited_for_and_what_lacks_it_is_not_accepted() {
    let few = Config { messages_max: 2, ..config() };
    let (mut near, mut far) = (end_with(few, Timers::default()), end());
    far.listen(PORT).unwrap();
    let route = Route::host(far.local(), PORT);
    let until = near.after(LONG);
    for number in 0..2 {
        near.send_message(route, vec![number], until).unwrap();
    }
    let until = near.after(SHORT);
    let error = near.send_message(route, vec![2], until).unwrap_err();
    let CallError::TimedOut { awaited: Awaited::Capacity(of), .. } = &error else {
        panic!("{error}");
    };
    assert!(*of == route && error.to_string().contains("not accepted"), "{error}");
    assert_eq!(near.messages().sums().accepted, 2);
    let taker = std::thread::spawn(move || {
        let until = far.after(LONG);
        let got = [0; 3].map(|_| far.get_message(PORT, until).unwrap().data);
        (far, got)
    });
    let until = near.after(LONG);
    // The last is the one that is reported at once; the others were with the gathered ones.
    assert_eq!(near.send_message_and_wait(route, vec![2], until).unwrap(), Outcome::Delivered);
    assert_eq!(taker.join().unwrap().1, [vec![0], vec![1], vec![2]]);
    let ends = std::iter::from_fn(|| near.poll_event())
        .filter(|event| matches!(event, Event::Ended(_, Outcome::Delivered)));
    assert_eq!(ends.count(), 2, "those that nobody waited for are told");
}

#[test]
fn a_peer_that_is_not_there_is_named_and_what_the_network_said_of_it() {
    let timers = Timers { give_up: Duration::from_secs(2), ..Timers::default() };
    let mut near = end_with(config(), timers);
    let gone: SocketAddr = "127.9.9.9:9".parse().unwrap();
    let route = Route::host(gone, PORT);
    let until = near.after(Duration::from_millis(300));
    let error = near.send_message_and_wait(route, vec![1], until).unwrap_err();
    let CallError::TimedOut { fault: Some(Fault::Refused), .. } = error else {
        panic!("{error}");
    };
    assert!(error.to_string().contains(&gone.to_string()), "{error}");
    near.abandon(route).unwrap();
    let is_closed = |outcome| {
        matches!(outcome, Outcome::Unknown(Cause::Closed) | Outcome::Failed(Cause::Closed))
    };
    let told = near.poll_event();
    assert!(matches!(told, Some(Event::Ended(_, outcome)) if is_closed(outcome)), "{told:?}");
    let until = near.after(LONG);
    let other = Route::host("[::1]:4040".parse().unwrap(), PORT);
    let error = near.send_message(other, vec![1], until).unwrap_err();
    assert!(matches!(error, CallError::Address(_)) && error.to_string().contains("IPv6"));
}

#[test]
fn a_descriptor_that_is_ready_ends_a_wait() {
    let mut near = end();
    near.listen(PORT).unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    near.host().watch(reader.as_fd(), 3).unwrap();
    writer.write_all(b"!").unwrap();
    let until = near.after(LONG);
    let error = near.get_message(PORT, until).unwrap_err();
    let awaited = Awaited::Message { port: PORT };
    assert!(
        matches!(error, CallError::Interrupted { token: 3, awaited: of } if of == awaited),
        "{error}"
    );
    assert_eq!(error.ticket(), None);
}

#[test]
fn who_is_interrupted_while_a_message_is_under_way_has_its_ticket_and_sends_it_once() {
    let (mut near, mut far) = (end(), end());
    far.listen(PORT).unwrap();
    let route = Route::host(far.local(), PORT);
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    near.host().watch(reader.as_fd(), 3).unwrap();
    writer.write_all(b"!").unwrap();
    let until = near.after(LONG);
    let error = near.send_message_and_wait(route, b"once".to_vec(), until).unwrap_err();
    assert!(matches!(error, CallError::Interrupted { token: 3, .. }), "{error}");
    let ticket = error.ticket().expect("the message was accepted");
    let text = error.to_string();
    assert!(text.contains(&route.peer.to_string()) && text.contains("under way"), "{text}");
    // As often as it is waited for.
    let again = near.wait(ticket, until).unwrap_err();
    assert_eq!(again.ticket(), Some(ticket), "{again}");
    reader.read_exact(&mut [0]).unwrap();
    let taker = std::thread::spawn(move || {
        let until = far.after(LONG);
        let part = far.get_message(PORT, until).unwrap();
        (far, part.data)
    });
    // The bell that was heard before its pipe was empty.
    let _ = near.host().take_alarm();
    assert_eq!(near.wait(ticket, until).unwrap(), Outcome::Delivered);
    let (mut far, data) = taker.join().unwrap();
    assert_eq!(data, b"once");
    let soon = far.after(SHORT);
    assert!(far.get_message(PORT, soon).is_err(), "it came twice");
    assert_eq!((near.messages().sums().accepted, near.messages().sums().delivered), (1, 1));
}

#[test]
fn who_is_interrupted_while_there_is_no_room_has_no_ticket() {
    let (mut near, mut far) =
        (end_with(Config { messages_max: 1, ..config() }, Timers::default()), end());
    far.listen(PORT).unwrap();
    let route = Route::host(far.local(), PORT);
    let until = near.after(LONG);
    near.send_message(route, vec![1], until).unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    near.host().watch(reader.as_fd(), 3).unwrap();
    writer.write_all(b"!").unwrap();
    let error = near.send_message_and_wait(route, vec![2], until).unwrap_err();
    assert!(matches!(error, CallError::Interrupted { .. }) && error.ticket().is_none(), "{error}");
    assert!(error.to_string().contains("not accepted"), "{error}");
    assert_eq!(near.messages().sums().accepted, 1);
}

#[test]
fn ends_that_nobody_asks_for_are_bounded_by_refusing_more() {
    // Who names no port takes no answers.
    let config = Config::new(([127, 0, 0, 1], 0).into());
    let (mut near, sink) = (end_with(config, Timers::default()), Echo::new());
    let route = Route::host(sink.address, PORT);
    let until = near.after(LONG);
    let mut accepted = 0;
    let refused = loop {
        match near.send_message(route, vec![1], until) {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted <= 10_000, "more and more are accepted");
    };
    let is_told = |error: &CallError| {
        let unheard = matches!(error, CallError::Send { error: SendError::Unheard { .. }, .. });
        unheard && error.to_string().contains(&route.peer.to_string())
    };
    assert!(is_told(&refused), "{refused}");
    assert!(refused.to_string().contains("poll the events"), "{refused}");
    assert!(near.poll_event().is_some());
    let until = near.after(LONG);
    near.close(until).unwrap();
    sink.stop();
}

#[test]
fn limits_of_a_route_too_many_name_it_and_say_what_to_do() {
    let mut near = end_with(Config { routes_max: 1, ..config() }, Timers::default());
    let some = Traffic { rate: 1_000, burst: 100 };
    let [first, second] = [9, 10].map(|port| Route::host(([127, 0, 0, 1], port).into(), PORT));
    near.set_traffic(first, some).unwrap();
    let error = near.set_traffic(second, some).unwrap_err();
    assert!(matches!(error, CallError::Traffic { route, .. } if route == second), "{error}");
    let text = error.to_string();
    assert!(text.contains("127.0.0.1:10") && text.contains("Traffic::default()"), "{text}");
    near.set_traffic(first, Traffic::default()).unwrap();
    near.set_traffic(second, some).unwrap();
}

#[test]
fn a_group_of_another_family_is_refused_and_named() {
    let mut near = end();
    near.listen(PORT).unwrap();
    let group: SocketAddr = "[ff05::7]:4040".parse().unwrap();
    let error = near.join_group(group, PORT).unwrap_err();
    assert!(matches!(error, CallError::Address(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("ff05::7") && text.contains("IPv6"), "{text}");
    let group: SocketAddr = "239.77.4.9:4040".parse().unwrap();
    let error = near.join_group(group, PORT + 1).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, CallError::Join { .. }) && text.contains("239.77.4.9:4040"), "{text}");
}

#[test]
fn each_of_two_joins_that_nobody_answers_is_told() {
    let moment = Duration::from_millis(5);
    let timers =
        Timers { first_wait: moment, wait_max: moment, give_up: moment * 4, ..Timers::default() };
    let mut near = end_with(config(), timers);
    near.listen(PORT).unwrap();
    let group: SocketAddr = "239.77.4.9:4040".parse().unwrap();
    for _ in 0..3 {
        // One at a time is asked.
        let asked = patience::until(Instant::now, LONG, || {
            near.turn(moment).unwrap();
            near.join_group(group, PORT).ok()
        });
        asked.expect("the join before did not end");
    }
    let told: Vec<Event> = std::iter::from_fn(|| near.poll_event()).collect();
    let is_refused =
        |event: &Event| matches!(event, Event::NotJoined { group: of, .. } if *of == group);
    assert!(told.len() == 2 && told.iter().all(is_refused), "{told:?}");
}

//! Calls of the system that fail: what a call has done is given to its caller all the same, and the
//! failure is told by the next call.

#![cfg(debug_assertions)]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use dacapo_safenet::{Config, Outcome, Route};
use dacapo_safenet_net::{CallError, MessageHost};
use dacapo_sys::faults;
use dacapo_xtp_net::{Host, InternetConfig, Udp};
use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::time::Duration;

const PORT: u16 = 7;
/// Nothing but a hang uses it up.
const LONG: Duration = Duration::from_secs(300);

/// An end that looks at its poller with every turn, because a pipe is watched there.
fn end() -> (MessageHost, (PipeReader, PipeWriter)) {
    let network = Udp::bind(&InternetConfig::new(([127, 0, 0, 1], 0).into())).unwrap();
    let host = Host::new(Box::new(network), dacapo_xtp::Config::default()).unwrap();
    let mut end = MessageHost::new(host, Config::new(([127, 0, 0, 1], PORT).into()));
    end.listen(PORT).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    end.host().watch(reader.as_fd(), 3).unwrap();
    // A pipe without writers would be ready.
    (end, (reader, writer))
}

/// What this gives while nothing can be polled.
fn unpolled<T>(call: impl FnOnce() -> T) -> T {
    faults::plan(&faults::parse("wait:EINVAL:1/1").unwrap());
    let result = call();
    assert!(faults::hits() > 0, "it never struck");
    faults::plan(&[]);
    result
}

#[test]
fn a_message_that_was_accepted_has_its_ticket_and_the_next_call_tells_what_failed() {
    let ((mut near, _watched), (mut far, _other)) = (end(), end());
    let (route, until) = (Route::host(far.local(), PORT), near.after(LONG));
    let ticket = unpolled(|| near.send_message(route, b"once".to_vec(), until)).unwrap();
    let error = near.send_message(route, b"twice".to_vec(), until).unwrap_err();
    assert!(matches!(error, CallError::Host { .. }) && error.ticket().is_none(), "{error}");
    assert!(error.to_string().contains(&route.peer.to_string()), "{error}");
    assert_eq!(near.messages().sums().accepted, 1);
    // One that was waited for says which it was.
    let sent = unpolled(|| near.send_message_and_wait(route, b"again".to_vec(), until));
    let second = sent.unwrap_err().ticket().expect("it was accepted");
    let taker = std::thread::spawn(move || {
        let until = far.after(LONG);
        let got = [0; 2].map(|_| far.get_message(PORT, until).unwrap().data);
        (far, got)
    });
    assert_eq!(near.wait(second, until).unwrap(), Outcome::Delivered);
    assert_eq!(near.wait(ticket, until).unwrap(), Outcome::Delivered);
    assert_eq!(taker.join().unwrap().1, [b"once".to_vec(), b"again".to_vec()]);
}

#[test]
fn a_part_that_was_taken_is_given_and_the_next_call_tells_what_failed() {
    let ((mut near, _watched), (mut far, _other)) = (end(), end());
    let route = Route::host(far.local(), PORT);
    let sender = std::thread::spawn(move || {
        let until = near.after(LONG);
        near.send_message_and_wait(route, b"only".to_vec(), until).unwrap()
    });
    let until = far.after(LONG);
    while far.poll_event().is_none() {
        assert!(far.host().now() < until, "nothing came");
        far.turn(Duration::from_millis(1)).unwrap();
    }
    let part = unpolled(|| far.get_message(PORT, until)).unwrap();
    assert_eq!(part.data, b"only");
    let error = far.get_message(PORT, until).unwrap_err();
    assert!(matches!(error, CallError::Host { .. }), "{error}");
    assert!(error.to_string().contains("port 7"), "{error}");
    far.turn(Duration::ZERO).unwrap();
    assert_eq!(sender.join().unwrap(), Outcome::Delivered);
}

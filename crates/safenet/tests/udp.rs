//! Messages over real sockets: the service on the engine that a host of `dacapo-xtp-net` turns.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use dacapo_base::patience::Tolerance;
use dacapo_base::{Random, Time};
use dacapo_safenet::{Config, Event, Messages, Mode, Outcome, Route};
use dacapo_xtp_net::{Host, InternetConfig, Udp};
use std::time::{Duration, Instant};

const PORT: u16 = 7;
const LONG: Duration = Duration::from_secs(120);
const TURN: Duration = Duration::from_millis(1);

struct End {
    host: Host,
    messages: Messages,
}

impl End {
    fn new() -> Self {
        let network = Udp::bind(&InternetConfig::new(([127, 0, 0, 1], 0).into())).unwrap();
        let mut host = Host::new(Box::new(network), dacapo_xtp::Config::default()).unwrap();
        let mut messages = Messages::new(Config::new(([127, 0, 0, 1], PORT).into()));
        messages.listen(host.engine(), PORT).unwrap();
        Self { host, messages }
    }

    /// One turn of the driver.
    fn turn(&mut self) {
        let now = self.host.now();
        self.messages.handle_turn(now, self.host.engine());
        let due = self.messages.deadline();
        let most = if due == Time::NEVER { TURN } else { TURN.min(due.since(now)) };
        self.host.turn(most).unwrap();
        self.messages.handle_turn(self.host.now(), self.host.engine());
    }

    fn send(&mut self, route: Route, mode: Mode, data: Vec<u8>) {
        let now = self.host.now();
        self.messages.send_message(now, self.host.engine(), route, mode, data).unwrap();
    }

    fn get(&mut self) -> Option<dacapo_safenet::Part> {
        self.messages.get_message(self.host.now(), self.host.engine(), PORT)
    }
}

#[test]
fn messages_go_there_and_back_over_udp() {
    let mut ends = [End::new(), End::new()];
    let route = Route::host(ends[1].host.local(), PORT);
    let random = &mut Random::from_number(1);
    let lens = [0, 1, 100, 1_400, 20_000, 65_536, 250_000];
    let mut patience = Tolerance::new(Instant::now(), LONG);
    for round in 0..70 {
        let mut sent = vec![0; lens[round % lens.len()]];
        random.fill(&mut sent);
        let mode = if round % 2 == 0 { Mode::Synchronous } else { Mode::Asynchronous };
        ends[0].send(route, mode, sent.clone());
        let (mut back, mut has_ended) = (None, false);
        while back.is_none() || !has_ended {
            assert!(patience.lasts(Instant::now()), "round {round} does not come to an end");
            ends.iter_mut().for_each(End::turn);
            if let Some(part) = ends[1].get() {
                let answer = part.answer().unwrap();
                ends[1].send(answer, mode, part.data);
            }
            back = back.or_else(|| ends[0].get());
            while let Some(event) = ends[0].messages.poll_event() {
                if let Event::Ended(_, outcome) = event {
                    assert_eq!(outcome, Outcome::Delivered);
                    has_ended = true;
                }
            }
            while ends[1].messages.poll_event().is_some() {}
        }
        assert!(back.unwrap().data == sent, "round {round}: other bytes");
    }
    assert_eq!(ends[0].messages.sums().delivered, 70);
    for end in &mut ends {
        let (messages, now) = (&mut end.messages, end.host.now());
        messages.close(now, end.host.engine());
    }
    while !ends.iter().all(|end| end.messages.is_quiet()) {
        assert!(patience.lasts(Instant::now()), "they do not close");
        ends.iter_mut().for_each(End::turn);
    }
}

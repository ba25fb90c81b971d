//! Messages over whole cores in virtual time: links that lose, and protocols that change in the
//! middle of a long message.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod lab;

use dacapo::access::Progress;
use dacapo::access::messages::{Ending, Inbox, Outcome, Ticket};
use dacapo::access::raw::{RawReceiver, RawSender, RawSource};
use dacapo_core::{
    Command, GIVE_UP_AFTER, JoinParams, JoinRequest, Port, SessionId, SessionProvider, SessionSpec,
};
use dacapo_lift::DropReason;
use dacapo_netlab::scenario::raw_offer;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::FlowOffer;
use lab::Lab;
use std::collections::BTreeMap;

/// The number of tcp, as the emulated streams take it.
const TCP: u16 = 3;

/// Opens the one flow with a source that stands ready.
struct Ready(Option<RawSource>);

impl SessionProvider for Ready {
    fn open(&mut self, _: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        let source = self.0.take().ok_or("it is open")?;
        Ok(Port::Source(Box::new(source)))
    }
}

fn graph(names: &[&str]) -> GraphForm {
    let catalogue = dacapo::catalogue();
    GraphForm::line(names.iter().map(|name| {
        let entry = catalogue.by_name(name).unwrap();
        (entry.spec.id, Vec::new())
    }))
}

/// The flow of a test: 50 Mbit/s, units of up to 16 KiB.
fn flow(transport: u16, names: &[&str]) -> FlowOffer {
    let bound_bps = if transport == TCP { 0 } else { 50_000_000 };
    FlowOffer { transport, ..raw_offer("flow", graph(names), bound_bps, 16 << 10) }
}

fn message(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + number + (at >> 8)) as u8).collect()
}

/// A flow of messages between two cores.
struct Run {
    lab: Lab,
    sender: Option<RawSender>,
    receiver: RawReceiver,
    inbox: Inbox,
    accepted: Vec<(Ticket, usize, usize)>,
    /// Bytes of messages that are not whole yet, by their numbers.
    partial: BTreeMap<u64, Vec<u8>>,
    /// Priority and bytes of whole messages, as they were given.
    given: Vec<(u16, Vec<u8>)>,
    broken: u64,
}

impl Run {
    fn new(seed: u64, link: &str, offer: FlowOffer) -> Self {
        let (sender, source) = RawSender::pair();
        sender.begin_messages(offer.unit_len_max as usize).unwrap();
        let (receiver, sink) = RawReceiver::pair(Progress::new("flow"));
        let spec = SessionSpec {
            name: "messages".into(),
            title: "A test".into(),
            flows: vec![offer],
            participants_max: 1,
            give_up_after: GIVE_UP_AFTER,
        };
        let mut lab = Lab::new(seed, link, spec, Box::new(Ready(Some(source))));
        let ports = Box::new(|_: &[FlowOffer]| vec![Some(Port::Sink(Box::new(sink)))]);
        lab.join(JoinParams::default(), ports);
        assert!(lab.wait(20_000, |lab| lab.viewers[0].began.is_some()), "seed {seed}");
        Self {
            lab,
            sender: Some(sender),
            receiver,
            inbox: Inbox::default(),
            accepted: Vec::new(),
            partial: BTreeMap::new(),
            given: Vec::new(),
            broken: 0,
        }
    }

    fn sender(&self) -> &RawSender {
        self.sender.as_ref().unwrap()
    }

    fn session(&mut self) -> SessionId {
        let creator = self.lab.creator;
        self.lab.world.core(creator).sessions().next().unwrap().0
    }

    /// Hands a message over; its bytes follow from its place among all and its length.
    fn send(&mut self, priority: u16, len: usize) -> Ticket {
        let number = self.accepted.len();
        let (ticket, _) = self.sender().send_message(priority, message(number, len)).unwrap();
        self.accepted.push((ticket, number, len));
        ticket
    }

    /// A while passes, and the application takes what has come.
    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.lab.run(1);
            self.take();
        }
    }

    fn take(&mut self) {
        while let Some(unit) = self.receiver.try_recv() {
            self.inbox.handle_unit(&unit);
            while let Some(part) = self.inbox.get_message() {
                let so_far = self.partial.entry(part.number).or_default();
                assert_eq!(part.offset, so_far.len() as u64);
                so_far.extend_from_slice(&part.data);
                self.broken += u64::from(part.ending == Ending::Broken);
                if part.ending == Ending::Last {
                    let whole = self.partial.remove(&part.number).unwrap();
                    self.given.push((part.priority, whole));
                }
            }
        }
    }

    fn change(&mut self, names: &[&str]) {
        let (session, now, creator) = (self.session(), self.lab.world.now(), self.lab.creator);
        self.lab
            .world
            .core(creator)
            .handle_command(now, Command::Change { session, flow: 0, graph: graph(names) })
            .unwrap();
    }

    /// The modules of the flow that runs.
    fn modules(&mut self) -> Vec<&'static str> {
        let (session, creator) = (self.session(), self.lab.creator);
        let status = self.lab.world.core(creator).status(session).remove(0);
        status.modules.iter().map(|it| it.spec.name).collect()
    }

    /// All that was handed over goes out, and the flow ends.
    fn finish(&mut self) {
        let sender = self.sender.take().unwrap();
        let share = sender.share();
        drop(sender);
        for _ in 0..60_000 {
            if self.lab.viewers[0].ledgers.len() == 1 {
                break;
            }
            self.run(1);
        }
        let ledger = self.lab.viewers[0].ledgers.get(&0).expect("the flow ends");
        assert!(ledger.closes() && ledger.unknown == 0, "{ledger:?}");
        assert_eq!(ledger.dropped[DropReason::Overflow.index()], 0);
        self.take();
        self.inbox.finish();
        let broken = std::iter::from_fn(|| self.inbox.get_message()).count() as u64;
        self.broken += broken;
        assert!(share.is_gone() || share.sender().is_some_and(|it| it.is_finished()));
        let sums = self.inbox.sums();
        assert!(sums.closes() && sums.open == 0, "{sums:?}");
        assert_eq!((sums.given, sums.broken), (self.given.len() as u64, self.broken));
        assert_eq!(self.inbox.counters().malformed, 0);
    }

    /// What was given was sent, each once.
    fn check_given(&self) {
        let mut left: Vec<Vec<u8>> =
            self.accepted.iter().map(|(_, number, len)| message(*number, *len)).collect();
        left.sort();
        for (_, whole) in &self.given {
            let at = left.binary_search(whole).expect("it was sent, and not given before");
            left.remove(at);
        }
    }
}

/// Graphs for a flow over a stream, and over datagrams that all arrive.
const ON_STREAM: [&[&str]; 3] = [&["segment"], &["segment", "checksum"], &["segment", "sequence"]];
const ON_DATAGRAMS: [&[&str]; 3] =
    [&["segment", "sequence", "checksum"], &["segment", "sequence"], &["segment", "checksum"]];

/// Long messages go while their flow's protocol is changed; urgent ones go between.
fn change(seed: u64, link: &str, transport: u16, graphs: &[&[&str]]) {
    let mut run = Run::new(seed, link, flow(transport, graphs[0]));
    let long = run.send(100, 8_000_000);
    run.run(100);
    for turn in 1..=6 {
        assert_eq!(run.sender().outcome(long), None, "seed {seed}: it is over before the change");
        let names = graphs[turn % graphs.len()];
        run.change(names);
        run.run(60);
        run.send(1, 10 * turn);
        run.run(60);
        assert_eq!(run.modules(), names, "seed {seed}: change {turn}");
    }
    let before = run.given.len();
    assert!(before >= 1, "seed {seed}: no urgent message has overtaken the long one");
    assert!(run.given.iter().all(|(priority, _)| *priority == 1), "seed {seed}");
    run.finish();
    assert_eq!((run.given.len(), run.broken), (7, 0), "seed {seed}");
    assert_eq!(run.given.last().map(|(priority, _)| *priority), Some(100), "seed {seed}");
    run.check_given();
}

#[test]
fn a_change_in_the_middle_of_a_long_message_loses_nothing_over_a_stream() {
    for seed in 0..3 {
        change(seed, "rate=40Mbit/s,loss=1%,delay=5ms,jitter=1ms", TCP, &ON_STREAM);
    }
}

#[test]
fn a_change_in_the_middle_of_a_long_message_loses_nothing_where_the_link_takes_nothing() {
    for seed in 0..3 {
        change(seed, "delay=5ms,jitter=1ms", 1, &ON_DATAGRAMS);
    }
}

/// Losses, copies and overtaking of datagrams, in graphs that repair nothing.
#[test]
fn over_links_that_lose_each_message_is_given_as_it_was_or_reported() {
    let graphs: [&[&str]; 3] = [ON_DATAGRAMS[0], &["segment", "checksum"], &["segment"]];
    let (mut given, mut broken) = (0, 0);
    for seed in 0..12 {
        let link = "delay=10ms,jitter=3ms,loss=1%,dup=2%,reorder=2%";
        let mut run = Run::new(seed, link, flow(1, graphs[seed as usize % 3]));
        for turn in 0..150 {
            run.send([100, 7, 0x8000][turn % 3], [0, 90, 3_000, 40_000, 20_000][turn % 5]);
            run.run(2);
        }
        let tickets: Vec<Ticket> = run.accepted.iter().map(|(ticket, ..)| *ticket).collect();
        run.run(3_000);
        for ticket in tickets {
            assert_eq!(run.sender().outcome(ticket), Some(Outcome::Sent), "seed {seed}");
        }
        assert!(run.sender().message_sums().closes());
        run.finish();
        run.check_given();
        let known = run.given.len() as u64 + run.broken + run.inbox.counters().missed;
        assert!((145..=150).contains(&known), "seed {seed}: {known} of 150");
        (given, broken) = (given + run.given.len(), broken + run.broken);
    }
    assert!(given > 500 && broken > 100, "{given} given, {broken} broken");
}

/// It waits for what the flow has taken, which is what its bound lets out in a moment, and for
/// nothing that was handed over.
#[test]
fn an_urgent_message_overtakes_what_was_handed_over_before() {
    let mut run = Run::new(9, "delay=5ms", flow(1, ON_DATAGRAMS[0]));
    // Two seconds at the bound of the flow.
    let long = run.send(100, 12_500_000);
    run.run(500);
    let at = run.lab.world.now();
    let urgent = run.send(0, 1_000);
    while run.given.is_empty() {
        run.run(1);
        assert_eq!(run.sender().outcome(long), None, "it waits behind the long one");
    }
    assert_eq!(run.sender().outcome(urgent), Some(Outcome::Sent));
    let waited = run.lab.world.now().since(at);
    // Of the pace and before it at most 64 KiB each and a unit, at 50 Mbit/s, and 5 ms on the link.
    assert!(waited.as_millis() <= 35, "{waited:?}");
    run.finish();
    assert_eq!(run.given.len(), 2);
}

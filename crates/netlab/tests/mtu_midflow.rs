//! The path shortens its MTU while flows run: long datagrams vanish without a word, and later do
//! not any more.
//!
//! The bound: a flow that sends 64 KiB in half a second has its length asked every 500 ms, the
//! answer is waited for 100 ms (three round trips on a longer path), 17 pairs of questions follow
//! 40 ms apart, of which the last is waited for as well: 1.4 s where nothing else is lost. At 10 %
//! loss each way it takes up to 40 pairs, 0.9 s more, and the flow may send less.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, ms, offer, offer_back, pattern};
use dacapo_base::{Random, Time};
use dacapo_core::{CoreEvent, NetworkEvent};
use dacapo_netlab::NodeId;
use dacapo_path::{DATAGRAM_LEN_FULL, DATAGRAM_LEN_MIN};
use dacapo_wire::data::TYPE_DATA;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const FOUND: Duration = ms(1_500);
const FOUND_AT_10_PER_CENT: Duration = ms(3_500);
/// Raised every 60 s, and four lengths are tried on the way.
const RAISED: Duration = ms(62_000);

/// A flow of large units, and the longest datagram of data since the last look.
struct Run {
    lab: Lab,
    joined: Joined,
    longest: Arc<Mutex<usize>>,
}

impl Run {
    fn new(seed: u64, link: &str, modules: &[&str], lens: (usize, usize), count: u64) -> Self {
        let mut lab = Lab::with(seed, link, common::config(), common::config());
        lab.pattern = pattern(count);
        (lab.pattern.every, lab.pattern.len_min, lab.pattern.len_max) = (ms(10), lens.0, lens.1);
        let longest = Arc::new(Mutex::new(0));
        let seen = longest.clone();
        lab.world.observe(move |crossing| {
            if crossing.bytes.first() == Some(&TYPE_DATA) {
                let mut longest = seen.lock().unwrap();
                *longest = crossing.bytes.len().max(*longest);
            }
        });
        let mut flow = offer("a", modules);
        flow.unit_len_max = 9_016.min(lens.1 as u32);
        let joined = lab.start(vec![flow]);
        Self { lab, joined, longest }
    }

    fn set_link(&mut self, link: &str) {
        let nodes = [self.lab.creator, self.lab.participant];
        for (from, to) in [(0, 1), (1, 0)] {
            let now = self.lab.now();
            let link = link.parse().unwrap();
            self.lab.world.link(nodes[from], nodes[to]).set_config(now, link).unwrap();
        }
    }

    fn changes(&self, node: NodeId) -> Vec<(Time, usize, usize)> {
        let of_node = self.lab.log.iter().filter(|(at, ..)| *at == node);
        let changes = of_node.filter_map(|(_, when, event)| match event {
            CoreEvent::PathMtuChanged { from, to, .. } => Some((*when, *from, *to)),
            _ => None,
        });
        changes.collect()
    }

    fn len(&mut self) -> usize {
        let session = self.joined.there;
        self.lab.world.core(self.lab.creator).path_mtu(session).unwrap()
    }

    /// Closes, and both accounts are the same and close.
    fn end(mut self) -> dacapo_core::Ledger {
        self.lab.close(self.lab.participant, self.joined.here);
        let (here, there) = self.lab.ledgers(&self.joined, 0, ms(15_000));
        assert_eq!(
            (here.sent, here.delivered, here.lost),
            (there.sent, there.delivered, there.lost)
        );
        assert!(here.closes() && there.closes(), "{here:?} {there:?}");
        self.lab.end_of(self.lab.participant, self.joined.here, ms(10_000));
        self.lab.check_empty();
        here
    }
}

const MODULES: [&str; 3] = ["segment", "sequence", "checksum"];

#[test]
fn a_shorter_path_is_found_in_time_and_used_and_a_longer_one_again() {
    for (loss, bound) in [(0, FOUND), (1, FOUND_AT_10_PER_CENT), (10, FOUND_AT_10_PER_CENT)] {
        for seed in 0..4 {
            let again = format!("seed {seed}, {loss} % loss");
            let wide = format!("delay=20ms,loss={loss}%");
            let narrow = format!("{wide},mtu=1280");
            let mut run = Run::new(seed, &wide, &MODULES, (4_000, 9_000), 10_000);
            run.lab.run(ms(3_000));
            assert_eq!(*run.longest.lock().unwrap(), DATAGRAM_LEN_FULL, "{again}");
            let creator = run.lab.creator;
            assert_eq!(run.changes(creator), [], "{again}");

            run.set_link(&narrow);
            let from = run.lab.now();
            run.lab.run(ms(15_000));
            let (at, before, after) = run.changes(creator)[0];
            assert_eq!((before, after), (DATAGRAM_LEN_FULL, DATAGRAM_LEN_MIN), "{again}");
            assert!(at.since(from) <= bound, "{again}: found after {:?}", at.since(from));
            let len = run.len();
            assert!((DATAGRAM_LEN_MIN..=1_280).contains(&len), "{again}: {len}");
            if loss == 0 {
                assert!(len > 1_264, "{again}: {len}");
            }
            // Whatever was under way has gone long since: nothing longer is sent, all units fit.
            *run.longest.lock().unwrap() = 0;
            let lost = || run.joined.seen[0].as_ref().unwrap().record().lost.len();
            let lost_before = lost();
            run.lab.run(ms(3_000));
            assert_eq!(*run.longest.lock().unwrap(), len, "{again}");
            let lost = run.joined.seen[0].as_ref().unwrap().record().lost.len();
            assert!(loss > 0 || lost == lost_before, "{again}: {lost_before} to {lost} lost");

            run.set_link(&wide);
            let from = run.lab.now();
            let is_long = |run: &mut Run| run.len() > 1_400;
            let mut raised = false;
            for _ in 0..620 {
                run.lab.run(ms(100));
                raised = is_long(&mut run);
                if raised {
                    break;
                }
            }
            assert!(raised && run.lab.now().since(from) <= RAISED, "{again}: {}", run.len());
            run.lab.run(ms(200));
            let longest = *run.longest.lock().unwrap();
            let len = run.len();
            assert_eq!(longest, len, "{again}");
            let ledger = run.end();
            assert!(loss > 0 || ledger.lost <= 160, "{again}: {} lost", ledger.lost);
        }
    }
}

#[test]
fn loss_alone_changes_no_length_in_a_thousand_seeds() {
    for seed in 0..1_000 {
        let mut random = Random::from_number(seed);
        let loss = random.below(101) as f64 / 10.0;
        let delay = 1 + random.below(60);
        let burst = 1 + random.below(3);
        let link = format!("delay={delay}ms,jitter=5ms,loss={loss}%,burst={burst}");
        let mut run = Run::new(seed, &link, &MODULES, (1_000, 9_000), 400);
        run.lab.run(ms(4_000));
        for node in [run.lab.creator, run.lab.participant] {
            let shrinks = run.changes(node).iter().filter(|(_, from, to)| to < from).count();
            assert_eq!(shrinks, 0, "seed {seed}, {link}: {:?}", run.changes(node));
        }
    }
}

#[test]
fn where_nothing_cuts_the_application_hears_of_it_and_what_vanishes_is_booked() {
    let mut run = Run::new(1, "delay=20ms", &["sequence", "checksum"], (900, 1_400), 2_000);
    run.lab.run(ms(3_000));
    run.set_link("delay=20ms,mtu=1280");
    run.lab.run(ms(10_000));
    for node in [run.lab.creator, run.lab.participant] {
        let heard = run.changes(node).first().is_some_and(|change| change.2 == DATAGRAM_LEN_MIN);
        // Only who sends long datagrams finds out; to the other nothing has happened.
        assert_eq!(heard, node == run.lab.creator);
    }
    run.set_link("delay=20ms");
    run.lab.run(ms(8_000));
    let vanished = run.lab.world.link(run.lab.creator, run.lab.participant).stats().dropped_mtu;
    let ledger = run.end();
    assert!(ledger.lost > 100 && ledger.lost <= vanished, "{ledger:?}, {vanished} vanished");
    assert_eq!(ledger.delivered + ledger.lost, 2_000);
}

#[test]
fn both_directions_find_out_for_themselves() {
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(2_000);
    (lab.pattern.every, lab.pattern.len_min, lab.pattern.len_max) = (ms(5), 3_000, 5_000);
    let mut flows = vec![offer("a", &MODULES), offer_back("b", &MODULES)];
    flows.iter_mut().for_each(|flow| flow.unit_len_max = 5_016);
    let joined = lab.start(flows);
    lab.run(ms(2_000));
    let (creator, participant) = (lab.creator, lab.participant);
    let narrow = "delay=20ms,mtu=1300".parse().unwrap();
    let now = lab.now();
    lab.world.link(creator, participant).set_config(now, narrow).unwrap();
    lab.run(ms(7_000));
    for (node, session) in [(creator, joined.there), (participant, joined.here)] {
        let len = lab.world.core(node).path_mtu(session).unwrap();
        assert!((1_285..=1_300).contains(&len), "{node:?}: {len}");
    }
    for flow in 0..2 {
        let (here, there) = lab.ledgers(&joined, flow, ms(10_000));
        assert!(here.closes() && there.closes());
        // What is lost at all is lost in the second and a half before it is found.
        assert!(here.lost <= 300, "flow {flow}: {here:?}");
    }
}

#[test]
fn what_somebody_says_of_the_length_changes_nothing() {
    let mut run = Run::new(1, "delay=20ms,loss=5%", &MODULES, (4_000, 9_000), 1_000);
    for at in 0..400_usize {
        let (now, creator) = (run.lab.now(), run.lab.creator);
        let remote = run.lab.world.address(run.lab.participant);
        run.lab.world.core(creator).handle_network(
            now,
            NetworkEvent::TooLarge { remote: remote.into(), len: Some(at * 4) },
        );
        run.lab.run(ms(10));
    }
    assert_eq!(run.changes(run.lab.creator), []);
    assert_eq!(run.len(), DATAGRAM_LEN_FULL);
}

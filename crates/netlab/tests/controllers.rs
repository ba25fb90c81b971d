//! Flows share the path to their peer: its controller holds them to a window and a pace, whatever
//! they are bounded to, and lets them go on when modules report what came.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, config, ms, offer};
use dacapo_base::Time;
use dacapo_core::{Command, CoreConfig, CoreEvent, PathStatus};
use dacapo_lift::{
    Catalogue, ControlError, Cx, DropReason, Entry, Module, ModuleSpec, TimerId, Verdict,
};
use dacapo_modules::integrity::checksum;
use dacapo_netlab::catalogue;
use dacapo_netlab::traffic::Pattern;
use dacapo_packet::Packet;
use dacapo_path::controllers::reserved;
use dacapo_path::{
    Controller, ControllerCx, ControllerEntry, ControllerSpec, Delivered, Lost, Prior,
};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::FlowOffer;
use std::time::Duration;

/// What one datagram is at most: a unit of 400 bytes, heads and tails.
const DATAGRAM_LEN: u64 = 450;

/// Numbers packets and stamps them; the other end says which came, every [`SAYS_EVERY`].
#[derive(Default)]
struct Counts {
    next: u32,
    /// At the receiver: how many came, the highest number, its stamp, and when that was told.
    came: u32,
    highest: u32,
    stamp: u64,
    told: Option<Time>,
    /// What has come is to be told.
    is_due: bool,
    /// At the sender: what was reported.
    reported: (u32, u32),
}

const TAIL_LEN: usize = 12;
const SAYS_EVERY: Duration = ms(16);
const TELLS: TimerId = 0;

static SPEC: ModuleSpec = ModuleSpec {
    name: "counts",
    id: 0xF0AC,
    function: "counting",
    tail: TAIL_LEN as u16,
    trains_up: false,
    trains_down: false,
    acknowledges: true,
    orders: None,
    provides: &[],
    ..checksum::SPEC
};

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

impl Module for Counts {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let mut tail = [0; TAIL_LEN];
        tail[..4].copy_from_slice(&self.next.to_be_bytes());
        tail[4..].copy_from_slice(&cx.now().as_nanos().to_be_bytes());
        self.next += 1;
        cx.pool.put_tail(slot, |_| tail).unwrap();
        Verdict::Forward
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let segment = cx.pool.segment(slot, 0);
        let Some(tail) = segment.last_chunk::<TAIL_LEN>().copied() else {
            return Verdict::Drop(DropReason::Malformed);
        };
        self.came += 1;
        if word(&tail, 0) >= self.highest {
            self.highest = word(&tail, 0);
            self.stamp = u64::from_be_bytes(tail[4..].try_into().unwrap());
        }
        if !self.is_due {
            self.is_due = true;
            cx.arm(TELLS, self.told.map_or(cx.now(), |at| at + SAYS_EVERY));
        }
        cx.pool.pull_tail(slot, TAIL_LEN).unwrap();
        Verdict::Forward
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        let mut message = [self.highest.to_be_bytes(), self.came.to_be_bytes()].concat();
        message.extend(self.stamp.to_be_bytes());
        (self.told, self.is_due) = (Some(cx.now()), !cx.control_to_peer(&message));
        if self.is_due {
            cx.arm(TELLS, cx.now() + SAYS_EVERY);
        }
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        let (highest, came) = (word(message, 0), word(message, 4));
        let sent_at = Time::from_nanos(u64::from_be_bytes(message[8..16].try_into().unwrap()));
        let lost = (highest + 1).saturating_sub(came);
        let packets = u64::from(came.saturating_sub(self.reported.0));
        cx.report_rtt(cx.now().since(sent_at), Duration::ZERO);
        cx.report_delivered(packets, packets * 400, sent_at);
        cx.report_lost(u64::from(lost.saturating_sub(self.reported.1)));
        self.reported = (came, lost.max(self.reported.1));
        Ok(Vec::new())
    }
}

/// A window and a rate that do not change.
struct Fixed {
    window: u64,
    rate_bps: Option<u64>,
}

impl Controller for Fixed {
    fn window(&self) -> u64 {
        self.window
    }

    fn rate_bps(&self) -> Option<u64> {
        self.rate_bps
    }
}

static FIXED: ControllerSpec =
    ControllerSpec { name: "fixed", summary: "", source: "own", datagrams: true, usual: None };

fn fixed(window: u64, rate_bps: Option<u64>) -> ControllerEntry {
    ControllerEntry::new(&FIXED, move |_, _| Box::new(Fixed { window, rate_bps }))
}

/// Half the window for a loss in a round trip, else four packets more in each (after RFC 5681,
/// section 3.1), paced over the round trip because reports come in lumps.
struct Halving {
    window: u64,
    rtt: Duration,
    halved: Option<Time>,
    grown: Time,
}

impl Controller for Halving {
    fn on_delivered(&mut self, cx: &ControllerCx, delivered: &Delivered) {
        self.rtt = cx.rtt.unwrap_or_default();
        if self.halved.is_none() {
            self.window += delivered.bytes;
        } else if cx.now.since(self.grown) >= self.rtt {
            (self.window, self.grown) = (self.window + 4 * DATAGRAM_LEN, cx.now);
        }
    }

    fn on_lost(&mut self, cx: &ControllerCx, _: &Lost) {
        if self.halved.is_none_or(|at| cx.now.since(at) >= 2 * self.rtt) {
            self.window = (self.window / 2).max(4 * DATAGRAM_LEN);
            self.halved = Some(cx.now);
        }
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn rate_bps(&self) -> Option<u64> {
        let ms = self.rtt.as_millis() as u64;
        (ms > 0).then(|| self.window * 8 * 1_000 / ms * 5 / 4)
    }
}

static HALVING: ControllerSpec = ControllerSpec { name: "halving", ..FIXED };

fn halving() -> ControllerEntry {
    let open = |now: Time, _: &Prior| -> Box<dyn Controller> {
        let window = 10 * DATAGRAM_LEN;
        Box::new(Halving { window, rtt: Duration::ZERO, halved: None, grown: now })
    };
    ControllerEntry::new(&HALVING, open)
}

fn counting(controller: ControllerEntry) -> CoreConfig {
    let mut config = config();
    let mut entries = catalogue().entries().to_vec();
    entries.push(Entry { spec: &SPEC, build: |_, _| Box::new(Counts::default()) });
    let transports = catalogue().transports().to_vec();
    config.catalogue = Catalogue::new(entries).with_transports(transports);
    config.controllers = controller.into();
    config
}

/// A flow of 64 Mbit/s, of which each packet is told.
fn counted(name: &str) -> FlowOffer {
    let graph = GraphForm::line([(SPEC.id, Vec::new())]);
    FlowOffer { graph, ..offer(name, &[]) }
}

fn start(link: &str, controller: ControllerEntry, flows: Vec<FlowOffer>) -> (Lab, Joined) {
    let mut lab = Lab::with(1, link, counting(controller), counting(reserved::entry()));
    let every = Duration::from_micros(50);
    lab.pattern = Pattern { count: 1_000_000, every, len_min: 400, len_max: 400, seed: 7 };
    let joined = lab.start(flows);
    (lab, joined)
}

fn path(lab: &mut Lab) -> PathStatus {
    let core = lab.world.core(lab.creator);
    let peer = core.sessions().next().unwrap().2;
    core.path(peer).unwrap()
}

/// How many units each flow brought in the time that the flows run.
fn run(lab: &mut Lab, joined: &Joined, time: Duration) -> Vec<u64> {
    let before: Vec<usize> = (0..joined.seen.len()).map(|at| joined.numbers(at).len()).collect();
    lab.run(time);
    let came = before.iter().enumerate().map(|(at, before)| joined.numbers(at).len() - before);
    came.map(|count| count as u64).collect()
}

fn end(mut lab: Lab, joined: &Joined) {
    lab.close(lab.creator, joined.there);
    for flow in 0..joined.seen.len() {
        let (here, there) = lab.ledgers(joined, flow, ms(20_000));
        assert!(here.closes() && there.closes() && here.unknown == 0, "{here:?} {there:?}");
    }
    lab.end_of(lab.participant, joined.here, ms(20_000));
    lab.check_empty();
}

#[test]
fn what_is_not_controlled_is_sent_at_the_bounds_of_its_flows() {
    let flows = vec![counted("one"), counted("two")];
    let (mut lab, joined) = start("delay=25ms", reserved::entry(), flows);
    let came = run(&mut lab, &joined, ms(2_000));
    assert!(came.iter().all(|count| (38_000..=40_000).contains(count)), "{came:?}");
    let path = path(&mut lab);
    assert_eq!(path.controller, "reserved");
    assert!(path.estimates.seen.delivered_packets > 70_000, "{path:?}");
    let rate = path.estimates.delivery_rate_bps.unwrap();
    let sent = 2 * 20_000 * (400 + 4 + 5 + TAIL_LEN as u64) * 8;
    assert!((sent * 9 / 10..=sent * 11 / 10).contains(&rate), "{rate} of {sent} bit/s");
    end(lab, &joined);
}

#[test]
fn a_window_is_shared_by_the_flows_of_a_path_and_never_exceeded() {
    let window = 100 * DATAGRAM_LEN;
    let flows = vec![counted("one"), counted("two")];
    let (mut lab, joined) = start("delay=25ms", fixed(window, None), flows);
    lab.run(ms(500));
    let mut came = [0; 2];
    for _ in 0..400 {
        let step = run(&mut lab, &joined, ms(5));
        (came[0], came[1]) = (came[0] + step[0], came[1] + step[1]);
        let in_flight = path(&mut lab).in_flight_bytes;
        assert!(in_flight <= window + DATAGRAM_LEN, "{in_flight}");
    }
    // A window each round trip of 50 ms, of 421 bytes a packet, and one that is under way.
    let most = window * (2_000 / 50 + 1) / 421;
    assert!(came[0] + came[1] <= most && came[0] + came[1] >= most * 4 / 5, "{came:?} of {most}");
    assert!(came[0].abs_diff(came[1]) * 10 <= came[0], "in turn: {came:?}");
    end(lab, &joined);
}

#[test]
fn a_rate_paces_all_flows_of_a_path_together() {
    let rate = 8_000_000;
    let flows = vec![counted("one"), counted("two")];
    let (mut lab, joined) = start("delay=25ms", fixed(u64::MAX, Some(rate)), flows);
    lab.run(ms(500));
    // At each step what goes out in 2 ms, and a packet of each flow, may come early.
    for step in 0..200 {
        let came = run(&mut lab, &joined, ms(10));
        let bytes = (came[0] + came[1]) * 421;
        let most = rate / 8 / 100 + rate / 8 / 500 + 2 * 421;
        assert!(bytes <= most, "step {step}: {bytes} of {most}");
    }
    let came = run(&mut lab, &joined, ms(2_000));
    let bytes = (came[0] + came[1]) * 421;
    let all = rate / 8 * 2;
    assert!((all * 97 / 100..=all * 101 / 100).contains(&bytes), "{bytes} of {all}");
    end(lab, &joined);
}

#[test]
fn a_controller_that_yields_fills_a_bottleneck_without_flooding_it() {
    let link = "delay=25ms,rate=20Mbit/s,queue=60";
    let share_lost = |controller| {
        let (mut lab, joined) = start(link, controller, vec![counted("one")]);
        lab.run(ms(3_000));
        let came = run(&mut lab, &joined, ms(10_000))[0];
        let seen = path(&mut lab).estimates.seen;
        let lost = seen.lost_packets as f64 / (seen.lost_packets + seen.delivered_packets) as f64;
        end(lab, &joined);
        (came as f64 * 421.0 * 8.0 / 10.0 / 20e6, lost)
    };
    let (goodput, lost) = share_lost(halving());
    assert!(goodput > 0.7 && lost < 0.02, "{goodput:.3} of the link, {lost:.4} lost");
    let (_, flooded) = share_lost(reserved::entry());
    assert!(flooded > 0.5, "{flooded:.3} is lost by who does not yield");
}

#[test]
fn silence_and_a_pause_leave_no_flow_behind() {
    let window = 50 * DATAGRAM_LEN;
    let (mut lab, joined) = start("delay=25ms", fixed(window, None), vec![counted("one")]);
    lab.run(ms(500));
    let (creator, participant) = (lab.creator, lab.participant);
    // All of a window is lost, and no report comes; contact is not.
    lab.world.cut(creator, participant, true);
    lab.run(ms(400));
    lab.world.cut(creator, participant, false);
    let came = run(&mut lab, &joined, ms(3_000))[0];
    assert!(came > 1_000, "{came}: it goes on when what was in flight is given up");
    lab.command(participant, Command::Deactivate(joined.here)).unwrap();
    lab.run(ms(1_000));
    assert_eq!(run(&mut lab, &joined, ms(1_000))[0], 0);
    lab.command(participant, Command::Activate(joined.here)).unwrap();
    let came = run(&mut lab, &joined, ms(1_000))[0];
    assert!(came > 300, "{came} after a pause");
    end(lab, &joined);
}

#[test]
fn what_waits_for_the_path_survives_changes_and_lost_contact() {
    let window = 50 * DATAGRAM_LEN;
    let (mut lab, joined) = start("delay=10ms", fixed(window, None), vec![counted("one")]);
    let (creator, participant) = (lab.creator, lab.participant);
    for turn in 1..=5 {
        lab.run(ms(300));
        let graph = GraphForm::line([(SPEC.id, Vec::new())]);
        let change = Command::Change { session: joined.there, flow: 0, graph };
        lab.command(creator, change).unwrap();
        let changed = |event: &CoreEvent| matches!(event, CoreEvent::Changed { .. });
        let is_done = |lab: &mut Lab| lab.count(lab.creator, changed) == turn;
        let is_done = lab.wait(ms(2_000), is_done);
        let path = path(&mut lab);
        assert!(is_done, "change {turn}: {:#?} {path:?}", lab.log);
    }
    lab.run(ms(1_000));
    [(creator, participant), (participant, creator)]
        .iter()
        .for_each(|&(from, to)| lab.world.cut(from, to, true));
    lab.run(ms(5_000));
    [(creator, participant), (participant, creator)]
        .iter()
        .for_each(|&(from, to)| lab.world.cut(from, to, false));
    lab.run(ms(3_000));
    let came = run(&mut lab, &joined, ms(1_000))[0];
    assert!(came > 1_000, "{came}");
    end(lab, &joined);
}

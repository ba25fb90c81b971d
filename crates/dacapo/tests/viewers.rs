//! Participants of one plan: several at once, late ones, and those who ask for more than the file.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod lab;
mod media;

use dacapo::plan::{Assumptions, attribute_forms};
use dacapo::{Attributes, Plan};
use dacapo_base::Time;
use dacapo_core::{Code, JoinParams, Port, Sink, Taken, UnitView};
use dacapo_media::TestMovie;
use dacapo_media::testmovie::TestSound;
use dacapo_qos::AttributeKey;
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::media::{Header, LEN};
use lab::{Lab, Ports, catalogue_without, without_quic};
use media::{Folder, GRAPH, movie_session};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LINK: &str = "delay=10ms";
/// Pictures of 40 ms and pieces of sound of 20 ms in three seconds.
const PICTURES: u32 = 75;
const SOUNDS: u32 = 150;

/// One flow of sound, 128 kbit/s, for which a protocol is chosen.
const RADIO: &str = r#"
[session]
name = "radio"

[[flow]]
name = "sound"
from = "creator"
source = { file = "sound.wav" }

[flow.attributes]
order = "ordered"
"#;

fn movie(folder: &Folder) -> Plan {
    folder.plan_movie(Duration::from_secs(3), &movie_session("", GRAPH))
}

fn radio(folder: &Folder, session: &str) -> Plan {
    let movie = TestMovie {
        duration: Duration::from_secs(1),
        sound: Some(TestSound { rate_hz: 8_000, channels: 1 }),
        ..TestMovie::default()
    };
    folder.write_wav("sound.wav", &movie);
    folder.plan(session)
}

fn serve(plan: &Plan) -> Lab {
    Lab::new(1, LINK, plan.spec(), plan.publisher(1.0))
}

/// The media headers that came, by flow.
#[derive(Clone, Default)]
struct Came(Arc<Mutex<[Vec<Header>; 2]>>);

impl Came {
    fn ports(&self) -> Ports {
        let came = self.clone();
        Box::new(move |flows| {
            let sink = |flow| Some(Port::Sink(Box::new(Witness(flow, came.clone())) as _));
            (0..flows.len()).map(sink).collect()
        })
    }

    fn indexes(&self, flow: usize) -> Vec<u32> {
        self.0.lock().unwrap()[flow].iter().map(|header| header.index).collect()
    }

    fn last_ms(&self, flow: usize) -> u64 {
        self.0.lock().unwrap()[flow].last().map_or(0, |header| header.media_ns / 1_000_000)
    }

    fn first_ms(&self, flow: usize) -> u64 {
        self.0.lock().unwrap()[flow][0].media_ns / 1_000_000
    }

    #[track_caller]
    fn assert_all(&self) {
        assert_eq!(self.indexes(0), (0..PICTURES).collect::<Vec<_>>());
        assert_eq!(self.indexes(1), (0..SOUNDS).collect::<Vec<_>>());
    }
}

struct Witness(usize, Came);

impl Sink for Witness {
    fn handle_unit(&mut self, _: Time, unit: &UnitView<'_>) -> Taken {
        let mut bytes = Vec::new();
        unit.copy_to(&mut bytes);
        assert!(bytes.len() > LEN, "a unit has a medium behind its header");
        self.1.0.lock().unwrap()[self.0].push(Header::parse(&bytes).unwrap());
        Taken::Delivered
    }
}

/// Nothing is answered: the session is to be refused.
fn none() -> Ports {
    Box::new(|flows| flows.iter().map(|_| None).collect())
}

fn live() -> JoinParams {
    JoinParams { live: true, ..JoinParams::default() }
}

fn asking(asked: &Attributes) -> JoinParams {
    JoinParams { attributes: attribute_forms(asked), live: false, follows: false }
}

#[track_caller]
fn assert_closed(lab: &Lab, viewer: usize) {
    for (flow, ledger) in &lab.viewers[viewer].ledgers {
        assert!(ledger.closes() && ledger.unknown == 0, "viewer {viewer}, {flow}: {ledger:?}");
        assert_eq!(ledger.delivered, ledger.sent, "viewer {viewer}, flow {flow}");
        assert_eq!(lab.viewers[viewer].hashes[flow], Some(true), "viewer {viewer}, flow {flow}");
    }
}

#[test]
fn several_viewers_of_one_plan_each_get_all_of_it_whenever_they_come() {
    let folder = Folder::new("several");
    let plan = movie(&folder);
    let mut lab = serve(&plan);
    let mut came = Vec::new();
    for pause_ms in [0, 0, 700, 1_900] {
        lab.run(pause_ms);
        came.push(Came::default());
        lab.join(JoinParams::default(), came.last().unwrap().ports());
    }
    for (viewer, came) in came.iter().enumerate() {
        lab.finish(viewer, 2, 20_000);
        came.assert_all();
        assert_closed(&lab, viewer);
        lab.close(viewer);
    }
}

#[test]
fn a_late_live_viewer_begins_where_the_first_one_is_and_its_flows_begin_together() {
    for late_ms in [430, 1_000, 1_777] {
        let folder = Folder::new(&format!("live-{late_ms}"));
        let plan = movie(&folder);
        let mut lab = serve(&plan);
        let (first, late) = (Came::default(), Came::default());
        let one = lab.join(JoinParams::default(), first.ports());
        assert!(lab.wait(5_000, |lab| lab.viewers[one].began.is_some()));
        lab.run(late_ms);
        let two = lab.join(live(), late.ports());
        assert!(lab.wait(5_000, |_| !late.indexes(0).is_empty() && !late.indexes(1).is_empty()));
        let (picture, sound, other) = (late.first_ms(0), late.first_ms(1), first.last_ms(0));
        assert!(picture >= late_ms, "{late_ms}: the late one begins at {picture} ms");
        assert!(picture.abs_diff(other) <= 80, "{late_ms}: {picture} ms, the first at {other} ms");
        assert!(picture.abs_diff(sound) <= 40, "{late_ms}: pictures {picture}, sound {sound}");
        lab.finish(two, 2, 20_000);
        lab.finish(one, 2, 20_000);
        first.assert_all();
        let (pictures, sounds) = (late.indexes(0), late.indexes(1));
        assert_eq!(pictures, (pictures[0]..PICTURES).collect::<Vec<_>>(), "{late_ms}");
        assert_eq!(sounds, (sounds[0]..SOUNDS).collect::<Vec<_>>(), "{late_ms}");
        assert_closed(&lab, one);
        assert_closed(&lab, two);
    }
}

#[test]
fn a_live_viewer_who_is_alone_begins_at_the_start() {
    let folder = Folder::new("live-alone");
    let plan = movie(&folder);
    let mut lab = serve(&plan);
    let came = Came::default();
    let viewer = lab.join(live(), came.ports());
    lab.finish(viewer, 2, 20_000);
    came.assert_all();
}

#[test]
fn a_second_session_over_the_same_connection_gets_all_too() {
    let folder = Folder::new("again");
    let plan = movie(&folder);
    let mut lab = serve(&plan);
    let (one, two, three) = (Came::default(), Came::default(), Came::default());
    let first = lab.join(JoinParams::default(), one.ports());
    assert!(lab.wait(5_000, |lab| lab.viewers[first].began.is_some()));
    lab.run(500);
    let second = lab.join_again(first, JoinParams::default(), two.ports());
    lab.finish(first, 2, 20_000);
    lab.close(first);
    // The other goes on, and there is room for a third after one is over.
    let third = lab.join_again(second, JoinParams::default(), three.ports());
    for (viewer, came) in [(second, &two), (third, &three)] {
        lab.finish(viewer, 2, 20_000);
        assert_closed(&lab, viewer);
        came.assert_all();
    }
    one.assert_all();
}

#[test]
fn who_asks_for_more_gets_another_protocol_and_the_others_keep_theirs() {
    let folder = Folder::new("tightened");
    let plan = radio(&folder, RADIO);
    let mut lab = serve(&plan);
    let came = [Came::default(), Came::default(), Came::default()];
    let plain = lab.join(JoinParams::default(), came[0].ports());
    let lossless = asking(&Attributes::new().max(AttributeKey::Loss, 0));
    let strict = lab.join(lossless, came[1].ports());
    let checked = asking(&Attributes::new().min(AttributeKey::Integrity, 1));
    let third = lab.join(checked, came[2].ports());
    for viewer in [plain, strict, third] {
        lab.finish(viewer, 1, 20_000);
        assert_eq!(came[viewer].indexes(0), (0..50).collect::<Vec<_>>(), "viewer {viewer}");
        assert_closed(&lab, viewer);
    }
    let udp = lab.chain(plain, 0);
    assert!(udp.contains("sequence") && udp.ends_with(" ! udp"), "{udp}");
    assert!(lab.chain(strict, 0).ends_with("tcp"), "{}", lab.chain(strict, 0));
    let with_sum = lab.chain(third, 0);
    assert_eq!(with_sum, udp.replace(" ! udp", " ! checksum ! udp"));
    let asked = &lab.viewers[strict].offers[0].attributes;
    assert!(asked.iter().any(|form| (form.key, form.max) == (4, Some(0))), "{asked:?}");
    assert_eq!(lab.viewers[plain].offers[0].attributes.len(), 1);
}

#[test]
fn who_asks_for_the_impossible_is_refused_with_the_nearest_and_who_contradicts_with_the_bound() {
    let folder = Folder::new("impossible");
    let session = format!("{RADIO}delay = \"2 s\"\nthroughput = {{ max = \"1 Mbit/s\" }}\n");
    // The path that there is, which would be measured, is shorter.
    let plan = radio(&folder, &format!("{session}[path]\nassume = \"internet\"\n"));
    let mut lab = serve(&plan);
    let asked = Attributes::new().max(AttributeKey::Loss, 0).max(AttributeKey::Delay, 60_000_000);
    let viewer = lab.join_with(catalogue_without("arq-sr"), asking(&asked), none());
    let error = lab.refusal(viewer);
    assert_eq!((error.code, error.code as u16), (Code::Infeasible, 202), "{error}");
    assert!(error.text.starts_with("sound: ") && error.text.contains("nearest: "), "{error}");
    assert!(error.text.contains("loss") && error.text.contains("delay"), "{error}");
    let secret = Attributes::new().min(AttributeKey::Confidentiality, 2);
    let viewer = lab.join_with(without_quic(&dacapo::catalogue()), asking(&secret), none());
    let error = lab.refusal(viewer);
    assert_eq!(error.code, Code::Infeasible, "{error}");
    assert!(error.text.contains("confidentiality"), "{error}");
    let much = Attributes::new().min(AttributeKey::Throughput, 5_000_000);
    let viewer = lab.join(asking(&much), none());
    let error = lab.refusal(viewer);
    assert_eq!((error.code, error.code as u16), (Code::Contradiction, 203), "{error}");
    assert!(error.text.contains("throughput") && error.text.contains("1 Mbit/s"), "{error}");
    // Who was refused has not harmed who asks for nothing.
    let came = Came::default();
    let viewer = lab.join(JoinParams::default(), came.ports());
    lab.finish(viewer, 1, 20_000);
    assert_eq!(came.indexes(0).len(), 50);
}

#[test]
fn an_attribute_that_nobody_here_knows_is_refused_by_its_number() {
    let folder = Folder::new("unknown");
    let mut lab = serve(&radio(&folder, RADIO));
    let strange = AttributeForm { key: 0x7777, min: Some(1), max: None, weight: None };
    let known = attribute_forms(&Attributes::new().max(AttributeKey::Loss, 0));
    let attributes = known.into_iter().chain([strange]).collect();
    let viewer = lab.join(JoinParams { attributes, live: false, follows: false }, none());
    let error = lab.refusal(viewer);
    assert_eq!((error.code, error.code as u16), (Code::Unsupported, 403), "{error}");
    assert!(error.text.contains(&0x7777.to_string()), "{error}");
}

#[test]
fn who_lacks_checksum_is_refused_where_integrity_is_asked_and_gets_along_where_it_is_not() {
    let folder = Folder::new("lacks");
    let session = format!("{RADIO}integrity = \"checked\"\n");
    let mut lab = serve(&radio(&folder, &session));
    let few = without_quic(&catalogue_without("checksum"));
    let viewer = lab.join_with(few, JoinParams::default(), none());
    let error = lab.refusal(viewer);
    assert_eq!(error.code, Code::Infeasible, "{error}");
    assert!(error.text.starts_with("sound: ") && error.text.contains("integrity"), "{error}");
    assert!(error.text.contains("\"checksum\""), "{error}");
    let pinned = RADIO
        .replace("[flow.attributes]", "graph = [\"sequence\", \"checksum\"]\n[flow.attributes]");
    let mut lab = serve(&radio(&folder, &pinned));
    let viewer = lab.join_with(catalogue_without("checksum"), JoinParams::default(), none());
    let error = lab.refusal(viewer);
    assert_eq!(error.code, Code::UnknownModule, "{error}");
    assert!(error.text.contains("\"checksum\""), "{error}");
    let mut lab = serve(&radio(&folder, RADIO));
    let came = Came::default();
    let viewer = lab.join_with(catalogue_without("checksum"), JoinParams::default(), came.ports());
    lab.finish(viewer, 1, 20_000);
    assert_eq!(came.indexes(0).len(), 50);
}

#[test]
fn what_was_changed_before_it_was_published_is_offered_so() {
    let folder = Folder::new("changed");
    let plan = movie(&folder);
    let mut spec = plan.spec();
    let only = spec.flows.remove(1);
    spec.flows = vec![only];
    spec.flows[0].bound_bps = 3_000_000;
    spec.flows[0].playout_ns = 250_000_000;
    let udp = spec.flows[0].transport;
    spec.flows[0].graph.nodes.remove(2);
    let graph = spec.flows[0].graph.clone();
    let mut lab = Lab::new(1, LINK, spec, plan.publisher(1.0));
    let came = Came::default();
    let viewer = lab.join(JoinParams::default(), came.ports());
    lab.finish(viewer, 1, 20_000);
    let offer = &lab.viewers[viewer].offers[0];
    assert_eq!((offer.name.as_str(), offer.group.as_str()), ("audio", ""));
    assert_eq!((offer.bound_bps, offer.playout_ns), (3_000_000, 250_000_000));
    assert_eq!((offer.transport, &offer.graph), (udp, &graph));
    // It is the sound, though it is now the first flow.
    assert_eq!(came.indexes(0), (0..SOUNDS).collect::<Vec<_>>());
}

#[test]
fn a_transport_that_this_host_has_not_is_not_offered_to_who_asks_for_it() {
    let folder = Folder::new("no-tcp");
    radio(&folder, RADIO);
    let assumptions = Assumptions { transports: Some(vec![1]), ..Assumptions::default() };
    let plan = Plan::load_for(&folder.path("session.toml"), &assumptions).unwrap();
    let mut lab = serve(&plan);
    let lossless = asking(&Attributes::new().max(AttributeKey::Loss, 0));
    let viewer = lab.join_with(catalogue_without("arq-sr"), lossless, none());
    let error = lab.refusal(viewer);
    assert_eq!(error.code, Code::Infeasible, "{error}");
    assert!(error.text.contains("loss"), "{error}");
}

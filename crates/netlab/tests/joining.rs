//! A participant says what it has and wants; the creator makes its offer of that, and what nobody
//! knows is passed over.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::raw::RawPeer;
use common::{Lab, catalogue_without, code, config, graph, ms, offer, offer_tcp, plain};
use dacapo_core::{
    Code, Command, CoreEvent, DialParams, Done, Error, JoinParams, JoinRequest, Port, SessionId,
    SessionProvider, SessionSpec,
};
use dacapo_netlab::catalogue;
use dacapo_netlab::traffic::{Pattern, PatternSource};
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::limits::JOIN_ATTRIBUTES_MAX;
use dacapo_wire::message::Message;
use dacapo_wire::session::{FlowOffer, Join};
use std::sync::{Arc, Mutex};

const LINK: &str = "delay=20ms";

type Tailor = Box<dyn FnMut(&JoinRequest, &[FlowOffer]) -> Result<Vec<FlowOffer>, Error> + Send>;

/// Notes who joins, and makes the offer with a function.
struct Tailors {
    pattern: Pattern,
    joined: Arc<Mutex<Vec<JoinRequest>>>,
    opened: Arc<Mutex<Vec<(FlowOffer, JoinRequest)>>>,
    tailor: Tailor,
}

impl SessionProvider for Tailors {
    fn offer(
        &mut self,
        joining: &JoinRequest,
        flows: &[FlowOffer],
    ) -> Result<Vec<FlowOffer>, Error> {
        self.joined.lock().unwrap().push(joining.clone());
        (self.tailor)(joining, flows)
    }

    fn open(&mut self, flow: &FlowOffer, joining: &JoinRequest) -> Result<Port, String> {
        self.opened.lock().unwrap().push((flow.clone(), joining.clone()));
        Ok(Port::Source(Box::new(PatternSource::new(self.pattern))))
    }
}

struct Served {
    lab: Lab,
    joined: Arc<Mutex<Vec<JoinRequest>>>,
    opened: Arc<Mutex<Vec<(FlowOffer, JoinRequest)>>>,
}

/// Serves the usual flow with a function that makes the offer.
fn served<F>(tailor: F) -> Served
where
    F: FnMut(&JoinRequest, &[FlowOffer]) -> Result<Vec<FlowOffer>, Error> + Send + 'static,
{
    let mut lab = Lab::new(LINK);
    let (joined, opened) = (Arc::default(), Arc::default());
    let publisher = Tailors {
        pattern: lab.pattern,
        joined: Arc::clone(&joined),
        opened: Arc::clone(&opened),
        tailor: Box::new(tailor),
    };
    let (name, title) = ("test".into(), String::new());
    let spec = SessionSpec {
        name,
        title,
        flows: plain(),
        participants_max: 100,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    };
    lab.world.core(lab.creator).publish(spec, Box::new(publisher)).unwrap();
    Served { lab, joined, opened }
}

impl Served {
    fn join(&mut self, wishes: JoinParams) -> SessionId {
        let peer = self.lab.dial();
        let now = self.lab.now();
        self.lab
            .world
            .core(self.lab.participant)
            .handle_command(now, Command::Join { peer, name: "test".into(), params: wishes })
            .and_then(Done::session)
            .unwrap()
    }
}

fn ids() -> (Vec<u16>, Vec<u16>) {
    let catalogue = catalogue();
    let modules = catalogue.entries().iter().map(|entry| entry.spec.id).collect();
    // Virtual hosts are different ones.
    let specs = catalogue.transports().iter().filter(|spec| !spec.same_host);
    let transports = specs.map(|spec| spec.id).collect();
    (modules, transports)
}

#[test]
fn a_publisher_learns_who_joins_and_gets_only_numbers_that_it_knows() {
    let mut it = served(|_, flows| Ok(flows.to_vec()));
    let wish = AttributeForm { key: 0x7777, min: Some(1), max: None, weight: Some(3) };
    let wishes = JoinParams { attributes: vec![wish], live: true, follows: false };
    let session = it.join(wishes);
    it.lab.offered(session);
    let (modules, transports) = ids();
    let known = it.joined.lock().unwrap()[0].path;
    assert!(known.rtt_min.is_some_and(|rtt| !rtt.is_zero()), "of the handshake: {known:?}");
    let expected = JoinRequest {
        name: "test".into(),
        remote: it.lab.world.address(it.lab.participant).into(),
        modules,
        transports,
        attributes: vec![wish],
        path: known,
        live: true,
        is_free: false,
    };
    assert_eq!(it.joined.lock().unwrap().as_slice(), std::slice::from_ref(&expected));
    assert_eq!(it.opened.lock().unwrap()[0].1, expected, "the same for each flow");
    let plain = it.join(JoinParams::default());
    it.lab.offered(plain);
    let joined = it.joined.lock().unwrap();
    assert_eq!((joined[1].attributes.len(), joined[1].live), (0, false));
}

#[test]
fn an_offer_may_be_tightened_and_the_core_numbers_and_measures_it() {
    let mut it = served(|_, flows| {
        let mut tighter = flows[0].clone();
        tighter.graph = graph(&["sequence"]);
        (tighter.flow, tighter.datagram_len, tighter.bound_bps) = (77, 9, 1_000_000);
        let mut second = offer_tcp("second", &[]);
        second.flow = 77;
        Ok(vec![tighter, second])
    });
    let session = it.join(JoinParams::default());
    let flows = it.lab.offered(session);
    let seen: Vec<_> = flows.iter().map(|flow| (flow.flow, flow.datagram_len)).collect();
    let longest = catalogue().transport(3).unwrap().datagram_len as u16;
    assert_eq!(seen, [(0, 1_452), (1, longest)]);
    assert_eq!((flows[0].bound_bps, flows[0].graph.nodes.len()), (1_000_000, 1));
    assert_eq!(it.opened.lock().unwrap().len(), 2);
    it.lab.publish("other", plain());
    let peer = it.lab.dial();
    let joined = it.lab.set_up(peer, "other");
    it.lab.close(it.lab.participant, joined.here);
}

#[test]
fn what_a_publisher_refuses_or_gets_wrong_is_refused_at_both_ends() {
    let name = |name: &'static str| {
        move |flows: &[FlowOffer]| {
            let mut flows = flows.to_vec();
            flows[0].graph = graph(&[name, "segment"]);
            Ok(flows)
        }
    };
    let wrong_order = name("checksum");
    type Case = (Code, &'static str, Tailor);
    let cases: Vec<Case> = vec![
        (
            Code::Infeasible,
            "not with 1 ms",
            Box::new(|_, _| Err(Error::new(Code::Infeasible, "not with 1 ms"))),
        ),
        (
            Code::Contradiction,
            "loss 0 and 1",
            Box::new(|_, _| Err(Error::new(Code::Contradiction, "loss 0 and 1"))),
        ),
        (Code::IllegalGraph, "flow: ", Box::new(move |_, flows| wrong_order(flows))),
        (Code::TooMany, "1 to 64 flows", Box::new(|_, _| Ok(Vec::new()))),
        (
            Code::Unsupported,
            "transport number 99",
            Box::new(|_, flows| Ok(vec![FlowOffer { transport: 99, ..flows[0].clone() }])),
        ),
        (
            Code::Internal,
            "OFFER",
            Box::new(|_, flows| Ok(vec![FlowOffer { name: "No Name".into(), ..flows[0].clone() }])),
        ),
    ];
    for (expected, text, tailor) in cases {
        let mut it = served(tailor);
        let session = it.join(JoinParams::default());
        let (_, error) = it.lab.end_of(it.lab.participant, session, ms(1_000));
        let error = error.unwrap();
        assert_eq!(error.code, expected, "{error}");
        assert!(error.text.contains(text), "{error}");
        let ended = it.lab.find(it.lab.creator, |event| match event {
            CoreEvent::SessionEnded { error, .. } => Some(error.clone()),
            _ => None,
        });
        assert_eq!(ended.and_then(|ended| code(&ended)), Some(expected));
        assert_eq!(it.opened.lock().unwrap().len(), 0, "{expected:?}: nothing was opened");
        it.lab.check_empty();
    }
}

#[test]
fn a_participant_that_lacks_a_module_or_a_transport_is_refused_by_name() {
    let mut poor = config();
    poor.catalogue = catalogue_without("checksum");
    let mut lab = Lab::with(1, LINK, config(), poor);
    lab.publish("test", plain());
    let peer = lab.dial();
    let session = lab.join(peer, "test");
    let (_, error) = lab.end_of(lab.participant, session, ms(1_000));
    let error = error.unwrap();
    assert_eq!(error.code, Code::UnknownModule);
    assert_eq!(error.text, "flow: the participant has no module \"checksum\" (0x0003)");
    let mut poor = config();
    poor.catalogue = catalogue().only(|_| true, |id| id != 3);
    let mut lab = Lab::with(1, LINK, config(), poor);
    lab.publish("test", vec![offer("udp", &[]), offer_tcp("tcp", &[])]);
    let peer = lab.dial();
    let session = lab.join(peer, "test");
    let (_, error) = lab.end_of(lab.participant, session, ms(1_000));
    let error = error.unwrap();
    assert_eq!(error.code, Code::Unsupported);
    assert_eq!(error.text, "tcp: the participant has no transport \"tcp\" (number 3)");
    lab.check_empty();
}

#[test]
fn a_publisher_may_do_without_what_a_participant_lacks() {
    let mut it = served(|joining, flows| {
        let mut flows = flows.to_vec();
        flows[0].graph.nodes.retain(|node| joining.modules.contains(&node.module));
        Ok(flows)
    });
    let node = it.lab.world.add({
        let mut poor = config();
        poor.catalogue = catalogue_without("checksum");
        poor
    });
    it.lab.world.dials(node);
    let first = it.join(JoinParams::default());
    assert_eq!(it.lab.offered(first)[0].graph, graph(&["segment", "sequence", "checksum"]));
    let (now, address) = (it.lab.now(), it.lab.world.address(it.lab.creator));
    let world = &mut it.lab.world;
    let peer = world
        .core(node)
        .handle_command(
            now,
            Command::Connect { remote: address.into(), params: DialParams::default() },
        )
        .and_then(Done::peer)
        .unwrap();
    let mut offered = None;
    let mut session = None;
    world.run(now + ms(5_000), |world| {
        let now = world.now();
        while let Some(event) = world.poll_event(node) {
            match event {
                CoreEvent::PeerOpen { .. } => {
                    let join = world
                        .core(node)
                        .handle_command(
                            now,
                            Command::Join {
                                peer,
                                name: "test".into(),
                                params: JoinParams::default(),
                            },
                        )
                        .and_then(Done::session);
                    session = join.ok();
                }
                CoreEvent::Offered { flows, .. } => offered = Some(flows),
                _ => {}
            }
        }
        offered.is_some()
    });
    assert!(session.is_some());
    assert_eq!(offered.unwrap()[0].graph, graph(&["segment", "sequence"]));
}

#[test]
fn every_join_says_numbers_that_nobody_has_and_they_are_different_ones() {
    let mut seen = Vec::new();
    for seed in 0..20 {
        let mut lab = Lab::with(seed, LINK, config(), config());
        // The raw peer serves nothing, but reads what a core that joins says.
        lab.publish("test", plain());
        let join = said_join(&mut lab);
        let (modules, transports) = ids();
        let strange: Vec<u16> =
            join.modules.iter().copied().filter(|id| !modules.contains(id)).collect();
        assert_eq!(join.modules.len(), modules.len() + 2, "seed {seed}");
        assert!(strange.iter().all(|id| *id >= 0xF000) && strange[0] != strange[1], "{strange:?}");
        assert!(modules.iter().all(|id| join.modules.contains(id)));
        let foreign: Vec<u16> =
            join.transports.iter().copied().filter(|id| !transports.contains(id)).collect();
        assert!(foreign.len() == 1 && foreign[0] >= 0x8000, "{foreign:?}");
        seen.extend(strange);
        // And the creator was not bothered.
        assert_eq!(lab.count(lab.participant, |it| matches!(it, CoreEvent::Offered { .. })), 1);
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 35, "they are random: {seen:x?}");
}

/// What a participant says when it joins, as the creator's publisher cannot see it: from the
/// numbers that the creator passes over.
fn said_join(lab: &mut Lab) -> Join {
    let said = Arc::new(Mutex::new(None));
    let peer = lab.dial();
    let session = lab.join(peer, "test");
    let kept = said.clone();
    let participant = lab.participant;
    lab.world.observe(move |crossing| {
        if crossing.node == participant {
            let found = find_join(crossing.bytes);
            let mut kept = kept.lock().unwrap();
            *kept = kept.take().or(found);
        }
    });
    lab.offered(session);
    let join = said.lock().unwrap().take();
    join.expect("the stand-in for TLS leaves records in clear")
}

/// The record of a JOIN, wherever it lies in a datagram.
fn find_join(bytes: &[u8]) -> Option<Join> {
    (0..bytes.len().saturating_sub(6)).find_map(|at| {
        let rest = &bytes[at..];
        let len = u32::from_be_bytes(rest[2..6].try_into().ok()?) as usize;
        let body = rest.get(6..6 + len).filter(|_| rest.starts_with(&[0, 0x10]))?;
        match Message::decode(0x10, body) {
            Ok(Message::Join(join)) => Some(join),
            _ => None,
        }
    })
}

#[test]
fn a_join_that_says_nothing_of_itself_is_served_with_everything() {
    let mut it = served(|_, flows| Ok(flows.to_vec()));
    let address = it.lab.world.address(it.lab.creator);
    let creator = it.lab.creator;
    let mut raw = RawPeer::new(&it.lab.world, address, 66, 1);
    raw.greet(&mut it.lab.world, creator);
    let mut ask = |join: Join| {
        let stream = raw.open().unwrap();
        raw.say(stream, join);
        RawPeer::run(&mut [&mut raw], &mut it.lab.world, creator, ms(100));
        raw.next(stream)
    };
    let bare = Join { name: "test".into(), ..Join::default() };
    assert!(matches!(ask(bare.clone()), Some(Message::Offer(_))));
    let joined = it.joined.lock().unwrap()[0].clone();
    assert_eq!((joined.modules, joined.transports), ids());
    // One that has nothing of ours is told the first thing that it lacks.
    let nothing = Join { modules: vec![0xF123], ..bare.clone() };
    match ask(nothing) {
        Some(Message::Refuse(refuse)) => {
            assert_eq!(refuse.code, Code::UnknownModule as u16);
            assert!(refuse.text.contains("\"segment\" (0x0001)"), "{}", refuse.text);
        }
        other => panic!("no REFUSE but {other:?}"),
    }
    let elsewhere = Join { transports: vec![0x9999], ..bare };
    match ask(elsewhere) {
        Some(Message::Refuse(refuse)) => assert_eq!(refuse.code, Code::Unsupported as u16),
        other => panic!("no REFUSE but {other:?}"),
    }
}

#[test]
fn too_many_wishes_are_refused_before_they_are_sent() {
    let mut it = served(|_, flows| Ok(flows.to_vec()));
    let peer = it.lab.dial();
    let now = it.lab.now();
    let wish = AttributeForm::default();
    let core = it.lab.world.core(it.lab.participant);
    let mut ask = |count| {
        let wishes = JoinParams { attributes: vec![wish; count], live: false, follows: false };
        core.handle_command(now, Command::Join { peer, name: "test".into(), params: wishes })
            .and_then(Done::session)
            .map_err(|error| error.code)
    };
    assert_eq!(ask(JOIN_ATTRIBUTES_MAX + 1), Err(Code::TooMany));
    assert!(ask(JOIN_ATTRIBUTES_MAX).is_ok());
}

#[test]
fn a_creator_that_dialed_offers_no_streams_that_nobody_could_dial() {
    let mut lab = Lab::new(LINK);
    lab.dial();
    let pattern = lab.pattern;
    let open = common::Opens(move |_: &_| Ok(Port::Source(Box::new(PatternSource::new(pattern)))));
    let (name, title) = ("back".into(), String::new());
    let spec = SessionSpec {
        name,
        title,
        flows: vec![offer_tcp("tcp", &[])],
        participants_max: 1,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    };
    lab.world.core(lab.participant).publish(spec, Box::new(open)).unwrap();
    let back = lab.find(lab.creator, |event| match event {
        CoreEvent::PeerOpen { peer } => Some(*peer),
        _ => None,
    });
    let now = lab.now();
    let core = lab.world.core(lab.creator);
    let session = core
        .handle_command(
            now,
            Command::Join {
                peer: back.unwrap().1,
                name: "back".into(),
                params: JoinParams::default(),
            },
        )
        .and_then(Done::session)
        .unwrap();
    let (_, error) = lab.end_of(lab.creator, session, ms(1_000));
    let error = error.unwrap();
    assert_eq!(error.code, Code::Unsupported, "{error}");
    assert!(error.text.starts_with("tcp: the participant dials"), "{error}");
}

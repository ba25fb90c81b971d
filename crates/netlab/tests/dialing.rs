//! Dialing where nothing listens, or where somebody says so who is not to be believed.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, config, ms};
use dacapo_base::Time;
use dacapo_core::{Code, Command, CoreEvent, DialParams, Done, Error, NetworkEvent, PeerId};
use std::net::SocketAddr;
use std::time::Duration;

/// What nobody answers at, on this host and elsewhere.
const HERE: &str = "127.0.0.1:19980";
const THERE: &str = "203.0.113.1:19980";

fn dial(lab: &mut Lab, address: SocketAddr, wait: Option<Duration>) -> PeerId {
    let now = lab.now();
    lab.world
        .core(lab.participant)
        .handle_command(
            now,
            Command::Connect { remote: address.into(), params: DialParams { wait } },
        )
        .and_then(Done::peer)
        .unwrap()
}

fn lost(event: &CoreEvent) -> Option<(PeerId, Error)> {
    match event {
        CoreEvent::PeerLost { peer, error } => Some((*peer, error.clone())),
        _ => None,
    }
}

fn open(event: &CoreEvent) -> Option<PeerId> {
    match event {
        CoreEvent::PeerOpen { peer } => Some(*peer),
        _ => None,
    }
}

/// Refuses what goes to an address every so often, until something comes of the dial; when.
fn refused_every(lab: &mut Lab, address: SocketAddr, every: Duration, most: Duration) -> Duration {
    let (node, since) = (lab.participant, lab.now());
    while lab.now().since(since) < most && lab.find(node, lost).is_none() {
        let now = lab.now();
        lab.world.core(node).handle_network(now, NetworkEvent::Refused(address.into()));
        lab.run(every);
    }
    lab.find(node, lost).map_or(most, |(when, _)| when.since(since))
}

fn refusal(lab: &Lab, peer: PeerId, address: SocketAddr) {
    let (_, (lost, error)) = lab.find(lab.participant, lost).unwrap();
    assert_eq!((lost, error.code), (peer, Code::NotListening));
    for word in [&address.to_string(), "is a dacapo serving", "nothing listens"] {
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn on_loopback_a_refusal_ends_the_dial_at_once() {
    let mut lab = Lab::new("delay=20ms");
    let address = HERE.parse().unwrap();
    let peer = dial(&mut lab, address, None);
    assert_eq!(refused_every(&mut lab, address, ms(1), ms(100)), ms(0));
    refusal(&lab, peer, address);
    lab.run(ms(10_000));
    assert_eq!(lab.world.core(lab.participant).connection_count(), 0);
}

#[test]
fn elsewhere_refusals_end_it_when_they_go_on_for_a_second() {
    for (every, when) in [(ms(10), 1_000), (ms(500), 1_000), (ms(700), 1_400), (ms(2_000), 4_000)] {
        let mut lab = Lab::new("delay=20ms");
        let address = THERE.parse().unwrap();
        let peer = dial(&mut lab, address, None);
        assert_eq!(refused_every(&mut lab, address, every, ms(9_000)), ms(when), "{every:?}");
        refusal(&lab, peer, address);
    }
}

#[test]
fn who_waits_is_not_ended_by_refusals_and_hears_in_the_end_that_nothing_listens() {
    for address in [HERE, THERE] {
        for secs in [3, 25] {
            let mut lab = Lab::new("delay=20ms");
            let address = address.parse().unwrap();
            let peer = dial(&mut lab, address, Some(Duration::from_secs(secs)));
            let most = Duration::from_secs(60);
            let took = refused_every(&mut lab, address, ms(500), most);
            assert_eq!(took, Duration::from_secs(secs));
            refusal(&lab, peer, address);
        }
    }
}

#[test]
fn who_waits_finds_a_peer_that_starts_later() {
    let mut lab = Lab::new("delay=20ms");
    let (creator, address) = (lab.creator, lab.world.address(lab.creator));
    lab.world.kill(creator);
    let peer = dial(&mut lab, address, Some(Duration::from_secs(60)));
    assert_eq!(refused_every(&mut lab, address, ms(500), ms(13_000)), ms(13_000));
    lab.world.restart(creator, config());
    let started = lab.now();
    let (when, opened) = lab.expect(lab.participant, ms(2_000), open);
    assert_eq!(opened, peer);
    assert!(when.since(started) < ms(1_000), "{:?} after its start", when.since(started));
}

#[test]
fn forged_refusals_beside_a_peer_that_answers_do_not_keep_it_from_being_reached() {
    // A round trip of 900 ms: many refusals, over most of a second, before anything is heard.
    for delay in ["20ms", "450ms"] {
        for seed in 0..20 {
            let link = format!("delay={delay},jitter=10ms");
            let mut lab = Lab::with(seed, &link, config(), config());
            let address = lab.world.address(lab.creator);
            let peer = dial(&mut lab, address, None);
            let until = lab.now() + ms(10_000);
            while lab.find(lab.participant, open).is_none() && lab.now() < until {
                let now = lab.now();
                lab.world
                    .core(lab.participant)
                    .handle_network(now, NetworkEvent::Refused(address.into()));
                lab.run(ms(50));
                assert!(lab.find(lab.participant, lost).is_none(), "seed {seed}: {:?}", lab.log);
            }
            assert_eq!(lab.find(lab.participant, open).map(|it| it.1), Some(peer), "seed {seed}");
            // And once it is open neither.
            assert_eq!(refused_every(&mut lab, address, ms(100), ms(3_000)), ms(3_000));
        }
    }
}

#[test]
fn silence_takes_ten_seconds_or_as_long_as_was_said() {
    for (wait, most) in [(None, 10), (Some(2), 2), (Some(30), 30)] {
        let mut lab = Lab::new("delay=20ms");
        let address = THERE.parse().unwrap();
        let peer = dial(&mut lab, address, wait.map(Duration::from_secs));
        let since: Time = lab.now();
        let (when, (gone, error)) = lab.expect(lab.participant, ms(60_000), lost);
        assert_eq!((gone, error.code), (peer, Code::Unreachable));
        assert_eq!(when.since(since), Duration::from_secs(most));
        assert!(error.text.contains(&format!("no answer in {most} s")), "{error}");
    }
}

#[test]
fn two_who_dial_one_address_wait_as_long_as_the_one_who_waits_longer() {
    let mut lab = Lab::new("delay=20ms");
    let address = HERE.parse().unwrap();
    let first = dial(&mut lab, address, Some(Duration::from_secs(4)));
    lab.run(ms(1_000));
    assert_eq!(dial(&mut lab, address, Some(Duration::from_secs(6))), first);
    assert_eq!(dial(&mut lab, address, None), first);
    let took = refused_every(&mut lab, address, ms(500), ms(30_000));
    assert_eq!(took, ms(10_000), "the last of them counts with its ten seconds");
}

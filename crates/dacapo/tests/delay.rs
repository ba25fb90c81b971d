//! The one-way delay that a player shows agrees with the link emulator's own record within 1 ms.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod media;

use dacapo::Plan;
use dacapo::access::{Progress, Sinks, Snapshot, Wanted};
use dacapo_core::{Command, CoreConfig, CoreEvent, DialParams, Done, SessionId};
use dacapo_link::{LinkConfig, LinkStats};
use dacapo_media::TestMovie;
use dacapo_media::testmovie::TestSound;
use dacapo_netlab::{NodeId, World};
use media::{Folder, GRAPH, flow};
use std::time::Duration;

/// Thirty seconds of sound whose units lie in one datagram each.
fn plan(name: &str) -> (Plan, Folder) {
    let folder = Folder::new(&format!("delay-{name}"));
    let movie = TestMovie {
        duration: Duration::from_secs(30),
        sound: Some(TestSound { rate_hz: 8_000, channels: 1 }),
        ..TestMovie::default()
    };
    folder.write_wav("sound.wav", &movie);
    let flow = flow("sound", "{ file = \"sound.wav\" }", GRAPH);
    let session = format!("[session]\nname = \"radio\"\n{flow}bound = \"100 Mbit/s\"\n");
    (folder.plan(&session), folder)
}

fn config(boot: u8) -> CoreConfig {
    let mut config = CoreConfig::new(dacapo::catalogue());
    config.boot = [boot; 16];
    config
}

/// Plays the session over a link; what the player shows at the end, and the link's record.
fn play(plan: &Plan, seed: u64, link: &LinkConfig, boots: (u8, u8)) -> (Snapshot, LinkStats) {
    let mut world = World::new(seed, link.clone());
    let creator = world.add(config(boots.0));
    let participant = world.add(config(boots.1));
    world.dials(participant);
    world.core(creator).publish(plan.spec(), plan.publisher(1.0)).unwrap();
    let (now, address) = (world.now(), world.address(creator));
    world
        .core(participant)
        .handle_command(
            now,
            Command::Connect { remote: address.into(), params: DialParams::default() },
        )
        .and_then(Done::peer)
        .unwrap();
    let mut progress: Option<Progress> = None;
    let until = now + Duration::from_secs(60);
    let ended = world.run(until, |world| turn(world, participant, &mut progress));
    assert!(ended, "seed {seed}: the flow did not end");
    let shown = progress.unwrap().snapshot();
    (shown, world.link_stats(creator, participant))
}

/// Does what a player does; true when the flow has ended.
fn turn(world: &mut World, node: NodeId, progress: &mut Option<Progress>) -> bool {
    let now = world.now();
    let answer = |world: &mut World, session: SessionId, sinks: Sinks| {
        world.core(node).answer(now, session, sinks.ports).unwrap();
    };
    while let Some(event) = world.poll_event(node) {
        match event {
            CoreEvent::PeerOpen { peer } => {
                world
                    .core(node)
                    .handle_command(
                        now,
                        Command::Join { peer, name: "radio".into(), params: Default::default() },
                    )
                    .and_then(Done::session)
                    .unwrap();
            }
            CoreEvent::Offered { session, flows, .. } => {
                let sinks = Sinks::for_offer("radio", &flows, &Wanted::Count).unwrap();
                *progress = sinks.progress.first().cloned();
                answer(world, session, sinks);
            }
            CoreEvent::Ready { session } => {
                _ = world.core(node).handle_command(now, Command::Activate(session)).unwrap();
            }
            CoreEvent::FlowEnded { ledger, .. } => {
                assert!(ledger.closes() && ledger.unknown == 0);
                return true;
            }
            CoreEvent::PeerLost { error, .. } => panic!("{error}"),
            _ => {}
        }
    }
    false
}

fn apart(shown_ns: i64, truth: Option<Duration>) -> Duration {
    let truth_ns = i64::try_from(truth.unwrap().as_nanos()).unwrap();
    Duration::from_nanos(shown_ns.abs_diff(truth_ns))
}

#[test]
fn the_delay_shown_is_that_of_the_link_within_a_millisecond() {
    let link: LinkConfig = "delay=20ms,jitter=5ms".parse().unwrap();
    let (plan, _folder) = plan("one-clock");
    for seed in 0..5 {
        let (shown, link) = play(&plan, seed, &link, (1, 1));
        let delay = shown.delay.unwrap();
        assert_eq!((shown.delay_error_ns, delay.count), (0, 1_500), "seed {seed}");
        let (p50, p99) =
            (apart(delay.ns_p50, link.delay.p50()), apart(delay.ns_p99, link.delay.p99()));
        println!(
            "seed {seed}: shown {:.2}/{:.2} ms, link {:.2?}/{:.2?}",
            delay.ns_p50 as f64 / 1e6,
            delay.ns_p99 as f64 / 1e6,
            link.delay.p50().unwrap(),
            link.delay.p99().unwrap()
        );
        assert!(p50 < Duration::from_millis(1), "seed {seed}: p50 {p50:?} apart");
        assert!(p99 < Duration::from_millis(1), "seed {seed}: p99 {p99:?} apart");
    }
}

/// Where the clocks are not one, the figure is wrong by at most what is shown beside it.
#[test]
fn the_error_shown_bounds_the_error_between_two_clocks() {
    let link: LinkConfig = "delay=20ms,jitter=5ms".parse().unwrap();
    let (plan, _folder) = plan("two-clocks");
    let (shown, link) = play(&plan, 9, &link, (1, 2));
    let delay = shown.delay.unwrap();
    assert!(shown.delay_error_ns > 0);
    let wrong = apart(delay.ns_p50, link.delay.p50());
    let bound = Duration::from_nanos(shown.delay_error_ns) + Duration::from_millis(1);
    assert!(wrong <= bound, "{wrong:?} wrong, {bound:?} shown");
}

//! Contact is lost while a movie plays and while one is saved: the picture stands, and goes on
//! where it stopped.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod lab;
mod media;

use dacapo::Plan;
use dacapo::access::{Sinks, Wanted};
use dacapo_core::{JoinParams, Ledger};
use lab::{Lab, Ports};
use media::{Folder, GRAPH, movie_session};
use std::time::Duration;

/// Pictures of 40 ms and pieces of sound of 20 ms in ten seconds.
const PICTURES: u64 = 250;
const SOUNDS: u64 = 500;

fn movie(folder: &Folder) -> Plan {
    folder.plan_movie(Duration::from_secs(10), &movie_session("give_up = \"2 min\"", GRAPH))
}

fn ports(wanted: Wanted) -> Ports {
    Box::new(move |flows| {
        let mut sinks = Sinks::for_offer("movie", flows, &wanted).unwrap();
        std::mem::take(&mut sinks.ports)
    })
}

/// Plays with a cut of `cut_ms` after two seconds; the accounts of pictures and sound.
fn play(plan: &Plan, wanted: Wanted, cut_ms: u64) -> [Ledger; 2] {
    let mut lab = Lab::new(1, "delay=20ms", plan.spec(), plan.publisher(1.0));
    let viewer = lab.join(JoinParams::default(), ports(wanted));
    lab.run(2_000);
    let (here, there) = (lab.viewers[viewer].node, lab.creator);
    let set = |lab: &mut Lab, cut: bool| {
        lab.world.cut(here, there, cut);
        lab.world.cut(there, here, cut);
    };
    set(&mut lab, true);
    lab.run(cut_ms);
    set(&mut lab, false);
    lab.finish(viewer, 2, 20_000);
    lab.close(viewer);
    let ledgers = &lab.viewers[viewer].ledgers;
    [ledgers[&0].clone(), ledgers[&1].clone()]
}

#[test]
fn what_is_played_goes_on_where_it_stopped_and_nothing_is_late() {
    let folder = Folder::new("contact-played");
    let plan = movie(&folder);
    for cut_ms in [4_000, 10_000, 60_000] {
        let ledgers = play(&plan, Wanted::Player, cut_ms);
        for (ledger, count) in ledgers.iter().zip([PICTURES, SOUNDS]) {
            assert!(ledger.closes() && ledger.unknown == 0, "{cut_ms} ms: {ledger:?}");
            assert_eq!((ledger.sent, ledger.late), (count, 0), "{cut_ms} ms: {ledger:?}");
            // Only what was sent before the loss of contact was known is lost.
            let lost_max = count * 3_000 / 10_000;
            assert!(ledger.lost > 0 && ledger.lost <= lost_max, "{cut_ms} ms: {ledger:?}");
        }
    }
}

#[test]
fn what_is_saved_has_every_picture_that_came_and_its_gap_in_its_place() {
    let folder = Folder::new("contact-saved");
    let plan = movie(&folder);
    let dir = folder.path("saved");
    std::fs::create_dir_all(&dir).unwrap();
    let [pictures, sounds] = play(&plan, Wanted::Save { dir: dir.clone(), force: false }, 10_000);
    assert_eq!((pictures.sent, sounds.sent), (PICTURES, SOUNDS));
    assert!(pictures.lost > 0 && sounds.lost > 0);
    let file = std::fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    let read = dacapo_media::avi::Reader::open(
        dacapo_media::FileInput::new(std::fs::File::open(&file).unwrap()).unwrap(),
    )
    .unwrap();
    let seen: Vec<u64> = (0..2).map(|stream| read.duration_ns(stream)).collect();
    // The place of what is missing is kept, so that sound and picture stay together.
    assert!(seen.iter().all(|ns| ns.abs_diff(10_000_000_000) <= 40_000_000), "{seen:?}");
}

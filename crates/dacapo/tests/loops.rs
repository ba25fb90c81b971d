//! Media that are repeated, in virtual time: every pass arrives whole, has the hash of its file,
//! and is saved behind the one before.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod media;
#[path = "world/mod.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod world;

use dacapo::access::progress::Passes;
use dacapo::access::{Sinks, Wanted};
use dacapo::plan::Assumptions;
use dacapo::{Inspection, MediaCommand, Plan};
use dacapo_media::TestMovie;
use media::{Folder, movie_session};
use std::time::Duration;
use world::World;

const GRAPH: &str = r#"["segment", { module = "sequence", hold = "20 ms" }, "checksum"]"#;

/// A movie of 1 s, played so often.
fn movie(folder: &Folder, again: &str) -> Plan {
    let session = movie_session("", GRAPH);
    let looped = session.replace("source = { file", &format!("source = {{ loop = {again}, file"));
    assert_ne!(looped, session, "the flows play a file");
    folder.plan_movie(Duration::from_secs(1), &looped)
}

fn begin(world: &mut World, wanted: &Wanted) -> Sinks {
    let offer = world.join("movie");
    let mut sinks = Sinks::for_offer("movie", &offer, wanted).unwrap();
    world.begin(std::mem::take(&mut sinks.ports));
    sinks
}

/// The passes of each flow that came.
fn passes(sinks: &Sinks) -> Vec<Vec<Passes>> {
    sinks.progress.iter().map(|progress| progress.snapshot().passes).collect()
}

/// What is seen when each stream of the file came whole so often.
fn expected(folder: &Folder, count: u64) -> Vec<Vec<Passes>> {
    let file = Inspection::of(&folder.path("movie.avi")).unwrap();
    file.streams.into_iter().map(|it| vec![Passes { count, sha256: it.sha256 }]).collect()
}

#[test]
fn three_passes_arrive_whole_and_are_saved_one_after_the_other() {
    let folder = Folder::new("loop-saved");
    let plan = movie(&folder, "3");
    assert!(plan.describe().contains(", 1 s 3 times, "), "{}", plan.describe());
    let mut world = World::new(plan.spec(), plan.publisher(1.0));
    let dir = folder.path("saved");
    std::fs::create_dir_all(&dir).unwrap();
    let sinks = begin(&mut world, &Wanted::Save { dir, force: false });
    world.run_to_end(2, 10_000);
    assert_eq!(passes(&sinks), expected(&folder, 3));
    for flow in &sinks.progress {
        let flow = flow.snapshot();
        assert_eq!((flow.old_generation, flow.late, flow.lost, flow.refused), (0, 0, 0, 0));
    }
    let source = Inspection::of(&folder.path("movie.avi")).unwrap().streams;
    let copy = Inspection::of(&folder.path("saved/movie.avi")).unwrap().streams;
    let counts = |streams: &[dacapo::inspect::StreamInspection]| {
        streams.iter().map(|it| (it.count, it.bytes)).collect::<Vec<_>>()
    };
    let thrice: Vec<_> = counts(&source).iter().map(|(n, bytes)| (n * 3, bytes * 3)).collect();
    assert_eq!(counts(&copy), thrice);
}

#[test]
fn a_medium_that_is_repeated_for_ever_goes_on_until_somebody_leaves() {
    let folder = Folder::new("loop-ever");
    let plan = movie(&folder, "true");
    assert!(plan.describe().contains(", 1 s over and over, "), "{}", plan.describe());
    let mut world = World::new(plan.spec(), plan.publisher(1.0));
    let sinks = begin(&mut world, &Wanted::Count);
    world.run(20_500);
    assert_eq!(passes(&sinks), expected(&folder, 20));
    world.try_command(MediaCommand::Fwd).unwrap();
    world.run(1_000);
    world.try_command(MediaCommand::Play).unwrap();
    world.run(3_500);
    // That of FWD is none, and three whole ones came behind it.
    assert_eq!(passes(&sinks), expected(&folder, 23));
}

#[test]
fn a_medium_that_is_too_short_to_be_repeated_is_refused_with_its_line() {
    let folder = Folder::new("loop-short");
    let movie = TestMovie { duration: Duration::from_millis(40), ..TestMovie::default() };
    folder.write_wav("a.wav", &movie);
    let text = "[session]\nname = \"s\"\n\n[[flow]]\nname = \"f\"\nfrom = \"creator\"\n\
                source = { file = \"a.wav\", loop = true }\n";
    let origin = folder.path("s.toml").display().to_string();
    let error = Plan::parse(text, &origin, &Assumptions::loopback()).unwrap_err().to_string();
    assert!(error.contains("s.toml:7: flow[0].source.loop: a medium of 40 ms"), "{error}");
    assert!(error.contains("100 ms and more"), "{error}");
}

//! Processes that are killed at every named point: the other end is told why or goes on, nothing is
//! left half done, and who starts again at the same place works at once.
//!
//! ```text
//!   failpoint::NAMES x KILLS -> scenario (serve, play, send, recv, testmovie, endpoint)
//!                                 victim: SIGKILL at the point    survivor: a reason, or goes on
//!                                 files: whole or marked          again: same port, same folder
//! ```
//!
//! Each point once; with `DACAPO_KILLS=N` N kills more at random points and hits, with
//! `DACAPO_SEED=S` those of another seed.

#![cfg(debug_assertions)]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../common/mod.rs"]
mod common;
mod endpoints;
#[path = "../faulty/mod.rs"]
mod faulty;
mod scenarios;

use dacapo::Random;
use dacapo::failpoint::NAMES;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Kills at the same time.
const AT_ONCE: usize = 2;

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// `serve`.
    Server,
    /// `play --save`.
    Player,
    /// `send`.
    Sender,
    /// `recv`.
    Receiver,
    /// `testmovie`.
    Maker,
    /// An application that serves a session.
    Creator,
    /// An application that joins one.
    Joiner,
}

/// A kill: where, at which hit, who.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    /// Where.
    pub point: &'static str,
    /// At which hit, from 1.
    pub hit: u64,
    /// Who.
    pub victim: Victim,
    /// It may happen that the point is not reached so often: then nobody is killed.
    pub is_random: bool,
}

impl Kill {
    /// What the victim is told.
    pub fn text(&self) -> String {
        format!("{}:{}", self.point, self.hit)
    }
}

/// Every point with the hit at which it is most interesting.
const KILLS: [(&str, u64, Victim); 69] = [
    ("core.connected", 1, Victim::Server),
    ("core.hello", 1, Victim::Server),
    ("core.join", 1, Victim::Server),
    ("core.accept", 1, Victim::Server),
    ("core.activate", 1, Victim::Server),
    ("core.report", 1, Victim::Server),
    ("core.close", 1, Victim::Server),
    ("core.connected", 1, Victim::Player),
    ("core.welcome", 1, Victim::Player),
    ("core.offer", 1, Victim::Player),
    ("core.answer", 1, Victim::Player),
    ("core.ready", 1, Victim::Player),
    ("core.end", 1, Victim::Player),
    ("core.report", 1, Victim::Sender),
    ("core.end", 1, Victim::Receiver),
    ("config.read", 1, Victim::Server),
    ("plan.made", 1, Victim::Server),
    ("identity.before", 1, Victim::Server),
    ("identity.ready", 1, Victim::Server),
    ("host.before_bind", 1, Victim::Server),
    ("host.bound_udp", 1, Victim::Server),
    ("host.listening", 1, Victim::Server),
    ("serve.published", 1, Victim::Server),
    ("serve.listening", 1, Victim::Server),
    ("plan.offer", 1, Victim::Server),
    ("source.open", 2, Victim::Server),
    ("source.unit", 10, Victim::Server),
    ("serve.joined", 1, Victim::Server),
    ("serve.signal", 1, Victim::Server),
    ("serve.left", 1, Victim::Server),
    ("identity.ready", 1, Victim::Player),
    ("play.connecting", 1, Victim::Player),
    ("play.offered", 1, Victim::Player),
    ("sink.begin", 1, Victim::Player),
    ("play.ready", 1, Victim::Player),
    ("control.bound", 1, Victim::Player),
    ("recording.begin", 1, Victim::Player),
    ("recording.header", 1, Victim::Player),
    ("recording.unit", 40, Victim::Player),
    ("recording.sync", 1, Victim::Player),
    ("recording.index", 1, Victim::Player),
    ("recording.trailer", 1, Victim::Player),
    ("sound.trailer", 1, Victim::Player),
    ("play.closing", 1, Victim::Player),
    ("play.over", 1, Victim::Player),
    ("send.offered", 1, Victim::Sender),
    ("stream.dial", 1, Victim::Sender),
    ("transfer.begin", 1, Victim::Sender),
    ("transfer.data", 3, Victim::Sender),
    ("transfer.hash", 1, Victim::Sender),
    ("transfer.end", 1, Victim::Sender),
    ("send.closing", 1, Victim::Sender),
    ("recv.ready", 1, Victim::Receiver),
    ("file.create", 1, Victim::Receiver),
    ("file.part", 1, Victim::Receiver),
    ("file.data", 3, Victim::Receiver),
    ("file.hash", 1, Victim::Receiver),
    ("file.place", 1, Victim::Receiver),
    ("file.placed", 1, Victim::Receiver),
    ("recv.received", 1, Victim::Receiver),
    ("testmovie.picture", 5, Victim::Maker),
    ("testmovie.place", 1, Victim::Maker),
    ("endpoint.thread", 1, Victim::Joiner),
    ("endpoint.command", 3, Victim::Joiner),
    ("endpoint.stop", 1, Victim::Joiner),
    ("endpoint.publish", 1, Victim::Creator),
    ("endpoint.joining", 1, Victim::Creator),
    ("endpoint.command", 2, Victim::Creator),
    ("endpoint.ended", 1, Victim::Creator),
];

/// The kills of this run: each point once, and so many at random.
fn kills() -> Vec<Kill> {
    let kill = |(point, hit, victim)| Kill { point, hit, victim, is_random: false };
    let mut kills: Vec<Kill> = KILLS.into_iter().map(kill).collect();
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("DACAPO_SEED").unwrap_or(1);
    let mut random = Random::from_number(seed);
    for _ in 0..number("DACAPO_KILLS").unwrap_or(0) {
        let (point, hit, victim) = KILLS[random.below(KILLS.len() as u64) as usize];
        let hit = 1 + random.below(3 * hit);
        kills.push(Kill { point, hit, victim, is_random: true });
    }
    kills
}

#[test]
fn whoever_is_killed_at_any_point_leaves_nothing_half_done_and_nobody_without_a_word() {
    let began = Instant::now();
    let (kills, stage) = (kills(), scenarios::Stage::new());
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(kill) = kills.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = catch_unwind(AssertUnwindSafe(|| stage.play(kill)));
                    if let Err(panic) = done {
                        failures.lock().unwrap().push((*kill, text_of(&*panic)));
                    }
                }
            });
        }
    });
    let ended = catch_unwind(AssertUnwindSafe(|| stage.end()));
    let failures = failures.into_inner().unwrap();
    println!("kills: {}, failures: {} ({:?})", kills.len(), failures.len(), began.elapsed());
    for (kill, text) in &failures {
        println!("{kill:?}: {text}");
    }
    let again = "DACAPO_KILLS and DACAPO_SEED as here, cargo test -p dacapo-cli --test kills";
    assert!(failures.is_empty(), "{} kills failed; again: {again}", failures.len());
    ended.unwrap();
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

#[test]
fn every_failpoint_has_one_place_in_the_tree_and_a_kill() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for folder in ["crates", "apps"] {
        find(&root.join(folder), &mut places);
    }
    for (name, files) in &places {
        assert_eq!(files.len(), 1, "{name:?} is in several places: {files:?}");
    }
    let named: BTreeSet<&str> = NAMES.iter().copied().collect();
    assert_eq!(named.len(), NAMES.len(), "a name is twice in the table");
    let placed: BTreeSet<&str> = places.keys().map(String::as_str).collect();
    assert_eq!(placed, named, "the tree and the table differ");
    assert!(named.len() >= 40, "{} failpoints", named.len());
    let killed: BTreeSet<&str> = KILLS.iter().map(|(point, ..)| *point).collect();
    assert_eq!(killed, named, "a point without a kill, or a kill without a point");
}

/// Notes the failpoints in the sources of a folder; tests have none of their own.
fn find(folder: &Path, places: &mut BTreeMap<String, Vec<PathBuf>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["tests", "target"].contains(&name) {
            find(&path, places);
        } else if name.ends_with(".rs") && name != "failpoint.rs" {
            let text = fs::read_to_string(&path).unwrap();
            for part in text.split("failpoint!(\"").skip(1) {
                let name = part.split('"').next().unwrap().to_owned();
                places.entry(name).or_default().push(path.clone());
            }
        }
    }
}

#[test]
fn a_failpoint_or_fault_that_there_is_not_is_wrong_usage_with_those_that_there_are() {
    let place = common::Place::new();
    for (variable, wrong, known) in [
        (faulty::FAILPOINT, "file.nowhere", "file.placed"),
        (faulty::FAILPOINT, "file.placed:0", "file.placed"),
        (faulty::SYS_FAULTS, "sendmsg:EFOO:1/2", "ENOBUFS"),
    ] {
        let run = faulty::start(&place, &["--version"], Some((variable, wrong)));
        let run = run.wait(common::LONG).expect(2);
        run.says(&["dacapo: ", variable, wrong, known]);
    }
}

/// What a start leaves that is killed between the writing of its key and the giving of its name.
#[test]
fn a_key_that_a_killed_start_has_left_is_removed_by_the_next_and_never_used() {
    let place = common::Place::new();
    let start = || {
        let args = ["recv", "--port", "0", "--json", "--out", "in"];
        let run = faulty::start(&place, &args, None);
        faulty::address(&run);
        run.signal("INT");
        run.wait(common::LONG).expect(130);
    };
    start();
    let folder = place.path("state/dacapo");
    let key = fs::read(folder.join("identity.key")).unwrap();
    fs::write(folder.join(".identity.key.0123456789abcdef.new"), "half a key").unwrap();
    let second_name = folder.join(".identity.key.fedcba9876543210.new");
    fs::hard_link(folder.join("identity.key"), second_name).unwrap();
    start();
    assert_eq!(faulty::names(&folder), ["identity.key"]);
    assert_eq!(fs::read(folder.join("identity.key")).unwrap(), key);
}

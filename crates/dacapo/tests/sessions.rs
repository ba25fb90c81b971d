//! Whole sessions of media in virtual time: what is played arrives, commands change what arrives,
//! and what is saved can be read whatever happens.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod media;
#[path = "world/mod.rs"]
mod world;

use dacapo::access::{Progress, Sinks, Speed, Wanted};
use dacapo::command::State;
use dacapo::plan::Assumptions;
use dacapo::{Inspection, MediaCommand, Plan};
use dacapo_base::{Random, Time};
use dacapo_core::{Ending, Ledger, Port, Sink, Taken, UnitView};
use dacapo_lift::DropReason;
use dacapo_media::{FileInput, TestMovie, avi};
use dacapo_wire::media::{FLAG_TRICK, Header, LEN};
use media::{Folder, movie_session};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use world::World;

/// A small movie of so many milliseconds, and the session that plays it.
fn movie(folder: &Folder, ms: u64) -> Plan {
    let graph = r#"["segment", { module = "sequence", hold = "20 ms" }, "checksum"]"#;
    folder.plan_movie(Duration::from_millis(ms), &movie_session("", graph))
}

fn save(folder: &Folder) -> Wanted {
    let dir = folder.path("saved");
    std::fs::create_dir_all(&dir).unwrap();
    Wanted::Save { dir, force: false }
}

/// Joins and begins with sinks for the whole offer.
fn begin(world: &mut World, wanted: &Wanted) -> Sinks {
    let offer = world.join("movie");
    let mut sinks = Sinks::for_offer("movie", &offer, wanted).unwrap();
    world.begin(std::mem::take(&mut sinks.ports));
    sinks
}

/// One unit as it came: flow, header, when, bytes behind the header.
type Came = (usize, Header, Time, usize);

/// Keeps the headers of what comes.
struct Witness(usize, Arc<Mutex<Vec<Came>>>);

impl Sink for Witness {
    fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Taken {
        let mut bytes = Vec::new();
        unit.copy_to(&mut bytes);
        let header = Header::parse(&bytes).unwrap();
        self.1.lock().unwrap().push((self.0, header, now, bytes.len() - LEN));
        Taken::Delivered
    }
}

struct Watched {
    world: World,
    came: Arc<Mutex<Vec<Came>>>,
}

impl Watched {
    fn new(plan: &Plan, speed: f64) -> Self {
        let mut world = World::new(plan.spec(), plan.publisher(speed));
        let offer = world.join("movie");
        let came = Arc::<Mutex<Vec<Came>>>::default();
        let sink = |flow| Some(Port::Sink(Box::new(Witness(flow, Arc::clone(&came))) as _));
        world.begin((0..offer.len()).map(sink).collect());
        Self { world, came }
    }

    /// What came since the last call, of one flow: (index, trick, milliseconds).
    fn take(&mut self) -> [Vec<(u32, bool, u64)>; 2] {
        let mut flows = [Vec::new(), Vec::new()];
        for (flow, header, at, _) in self.came.lock().unwrap().drain(..) {
            let ms = at.as_nanos() / 1_000_000;
            flows[flow].push((header.index, header.flags & FLAG_TRICK != 0, ms));
        }
        flows
    }

    /// What was on its way when a command came, for as long as the pace holds it.
    fn settle(&mut self) -> [Vec<(u32, bool, u64)>; 2] {
        self.run(10)
    }

    fn run(&mut self, ms: u64) -> [Vec<(u32, bool, u64)>; 2] {
        self.world.run(ms);
        self.take()
    }
}

fn indexes(came: &[(u32, bool, u64)]) -> Vec<u32> {
    came.iter().map(|(index, ..)| *index).collect()
}

#[test]
fn what_is_played_is_saved_picture_by_picture_and_sample_by_sample() {
    let folder = Folder::new("saved");
    let plan = movie(&folder, 3_000);
    let mut world = World::new(plan.spec(), plan.publisher(1.0));
    let sinks = begin(&mut world, &save(&folder));
    world.run_to_end(2, 10_000);
    let (source, copy) = (folder.path("movie.avi"), folder.path("saved/movie.avi"));
    let (source, copy) = (Inspection::of(&source).unwrap(), Inspection::of(&copy).unwrap());
    assert_eq!(copy.streams, source.streams);
    assert_eq!((copy.streams[0].count, copy.streams[1].count), (75, 132_300));
    assert_eq!(copy.warnings, [""; 0]);
    for (flow, ledger) in &world.ledgers {
        assert!(ledger.closes() && ledger.delivered == ledger.sent, "{ledger:?}");
        assert_eq!(world.hashes[flow], Some(true));
    }
    let seen = sinks.progress[0].snapshot();
    assert_eq!((seen.media_frames, seen.lost, seen.late, seen.repeated), (75, 0, 0, 0));
    assert!(seen.ended && seen.errors.is_empty(), "{seen:?}");
    let delay = seen.delay.unwrap();
    assert!(delay.count == 75 && seen.delay_error_ns > 0, "{seen:?}");
    // Nothing is between the cores; what a picture takes, it waits for the pace.
    assert!(delay.ns_max < 20_000_000 && delay.ns_min >= 0, "{delay:?}");
    assert_eq!(world.creator.pool().live_views() + world.participant.pool().live_views(), 0);
}

#[test]
fn stops_and_pauses_leave_no_trace_in_what_is_saved() {
    let folder = Folder::new("paused");
    let plan = movie(&folder, 3_000);
    for seed in 0..4 {
        let mut world = World::new(plan.spec(), plan.publisher(1.0));
        let _ = std::fs::remove_dir_all(folder.path("saved"));
        let _sinks = begin(&mut world, &save(&folder));
        let mut random = Random::from_number(seed);
        for _ in 0..5 {
            world.run(random.below(500));
            world.command(MediaCommand::Stop);
            world.run(random.below(3_000));
            world.command(MediaCommand::Play);
            world.run(random.below(500) / 5);
            world.pause(random.below(2_000));
        }
        world.run_to_end(2, 10_000);
        let (source, copy) = (folder.path("movie.avi"), folder.path("saved/movie.avi"));
        let (source, copy) = (Inspection::of(&source).unwrap(), Inspection::of(&copy).unwrap());
        assert_eq!(copy.streams, source.streams, "seed {seed}");
    }
}

#[test]
fn lost_units_keep_their_time_in_what_is_saved() {
    let folder = Folder::new("lossy");
    let plan = movie(&folder, 3_000);
    for seed in 0..6 {
        let mut world = World::new(plan.spec(), plan.publisher(1.0));
        let mut random = Random::from_number(seed);
        world.lose = Box::new(move |_| random.chance(0.03));
        let _ = std::fs::remove_dir_all(folder.path("saved"));
        let sinks = begin(&mut world, &save(&folder));
        world.run_to_end(2, 10_000);
        let lost: u64 = world.ledgers.values().map(|ledger| ledger.lost).sum();
        assert!(lost > 0, "seed {seed}");
        let copy = Inspection::of(&folder.path("saved/movie.avi")).unwrap();
        let lost = world.ledgers[&0].lost;
        assert_eq!((copy.streams[0].count, copy.streams[0].repeated), (75, lost), "seed {seed}");
        assert_eq!(copy.streams[1].count, 132_300, "seed {seed}");
        let seen = sinks.progress[0].snapshot();
        assert_eq!((seen.lost, seen.repeated), (lost, lost), "seed {seed}");
        assert!(world.ledgers.values().all(Ledger::closes), "seed {seed}");
    }
}

#[test]
fn fast_forward_and_reverse_step_through_the_pictures_and_are_silent() {
    let folder = Folder::new("ff");
    let plan = movie(&folder, 20_000);
    let mut watched = Watched::new(&plan, 1.0);
    let [video, audio] = watched.run(1_000);
    assert_eq!(indexes(&video), (0..video.len() as u32).collect::<Vec<_>>());
    assert_eq!(indexes(&audio), (0..audio.len() as u32).collect::<Vec<_>>());
    assert!((24..=26).contains(&video.len()) && (49..=51).contains(&audio.len()));
    let answer = watched.world.command(MediaCommand::Ff);
    assert_eq!((answer.state, answer.speed_permille), (State::FastForward, 8_000));
    watched.settle();
    let [video, audio] = watched.run(1_000);
    assert_eq!(audio, []);
    assert!((24..=26).contains(&video.len()), "{video:?}");
    assert!(video.windows(2).all(|pair| pair[1].0 == pair[0].0 + 8 && pair[1].1), "{video:?}");
    let top = video.last().unwrap().0;
    watched.world.command(MediaCommand::Fr);
    watched.settle();
    let [video, audio] = watched.run(500);
    assert_eq!(audio, []);
    assert!(video.windows(2).all(|pair| pair[1].0 + 8 == pair[0].0 && pair[1].1), "{video:?}");
    assert!(video[0].0 <= top + 8 && video.len() >= 11, "{video:?}");
    let answer = watched.world.command(MediaCommand::Play);
    let [video, audio] = watched.run(1_000);
    let video: Vec<_> = video.into_iter().filter(|(_, trick, _)| !trick).collect();
    assert!(video.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1), "{video:?}");
    let (picture_ms, sound_ms) = (u64::from(video[0].0) * 40, u64::from(audio[0].0) * 20);
    let at_ms = answer.position_ns / 1_000_000;
    assert!(picture_ms >= at_ms && picture_ms <= at_ms + 40, "{picture_ms} {at_ms}");
    assert!(sound_ms >= at_ms && sound_ms <= at_ms + 20, "{sound_ms} {at_ms}");
}

#[test]
fn stop_play_fwd_and_rwd_do_what_they_say() {
    let folder = Folder::new("stop");
    let plan = movie(&folder, 4_000);
    let mut watched = Watched::new(&plan, 1.0);
    watched.run(1_000);
    let stopped = watched.world.command(MediaCommand::Stop);
    assert_eq!(stopped.state, State::Stopped);
    let before = watched.settle();
    assert_eq!(watched.run(2_000), [vec![], vec![]]);
    assert_eq!(watched.world.command(MediaCommand::Status), stopped);
    watched.world.command(MediaCommand::Play);
    let [video, audio] = watched.run(500);
    let last = |came: &[(u32, bool, u64)]| came.last().map(|(index, ..)| *index);
    if let (Some(picture), Some(sound)) = (last(&before[0]), last(&before[1])) {
        assert_eq!((video[0].0, audio[0].0), (picture + 1, sound + 1));
    }
    let answer = watched.world.command(MediaCommand::Rwd);
    assert_eq!((answer.state, answer.position_ns), (State::Playing, 0));
    watched.take();
    let [video, audio] = watched.run(500);
    // What was on its way before the jump may come first.
    let is_new = |came: &[(u32, bool, u64)]| came.iter().take(3).any(|(index, ..)| *index <= 1);
    assert!(is_new(&video) && is_new(&audio) && video.len() >= 11, "{video:?} {audio:?}");
    let answer = watched.world.command(MediaCommand::Fwd);
    assert_eq!((answer.state, answer.position_ns), (State::Stopped, 4_000_000_000));
    watched.settle();
    assert_eq!(watched.run(10_000), [vec![], vec![]]);
    assert!(watched.world.ledgers.is_empty(), "the flows wait at the end");
    let answer = watched.world.command(MediaCommand::Rwd);
    assert_eq!((answer.state, answer.position_ns), (State::Stopped, 0));
    assert_eq!(watched.run(1_000), [vec![], vec![]]);
    watched.world.command(MediaCommand::Play);
    watched.world.run_to_end(2, 10_000);
    let [video, audio] = watched.take();
    assert_eq!((video.len(), audio.len()), (100, 200));
    assert_eq!(watched.world.failures, [""; 0]);
}

#[test]
fn fps_slows_the_pictures_down_and_silences_the_sound_until_it_is_nominal() {
    let folder = Folder::new("fps");
    let plan = movie(&folder, 20_000);
    let mut watched = Watched::new(&plan, 1.0);
    watched.run(1_000);
    let answer = watched.world.command(MediaCommand::Fps(5_000));
    assert_eq!((answer.speed_permille, answer.fps), (200, 5_000));
    watched.settle();
    let [video, audio] = watched.run(2_000);
    assert_eq!(audio, []);
    assert!((9..=11).contains(&video.len()), "{video:?}");
    assert!(video.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1), "{video:?}");
    assert!(video.windows(2).all(|pair| pair[1].2.abs_diff(pair[0].2 + 200) <= 2), "{video:?}");
    watched.world.command(MediaCommand::Fps(0));
    let [video, audio] = watched.run(1_000);
    assert!((24..=26).contains(&video.len()) && (48..=51).contains(&audio.len()));
    let apart = i64::from(video[0].0) * 40 - i64::from(audio[0].0) * 20;
    assert!(apart.abs() <= 40, "pictures and sound are {apart} ms apart");
}

#[test]
fn the_speed_of_the_server_makes_everything_faster_and_loses_nothing() {
    let folder = Folder::new("speed");
    let plan = movie(&folder, 4_000);
    let mut world = World::new(plan.spec(), plan.publisher(4.0));
    let start = world.now;
    let sinks = begin(&mut world, &save(&folder));
    world.run_to_end(2, 10_000);
    assert!(world.now.since(start) < Duration::from_millis(1_600), "{:?}", world.now);
    let (source, copy) = (folder.path("movie.avi"), folder.path("saved/movie.avi"));
    let (source, copy) = (Inspection::of(&source).unwrap(), Inspection::of(&copy).unwrap());
    assert_eq!(copy.streams, source.streams);
    drop(sinks);
}

#[test]
fn no_unit_of_an_older_generation_is_taken_after_a_newer_one() {
    let folder = Folder::new("generations");
    let plan = movie(&folder, 30_000);
    for seed in 0..4 {
        let mut watched = Watched::new(&plan, 1.0);
        let mut random = Random::from_number(seed);
        for _ in 0..25 {
            watched.world.run(random.below(400));
            let command = match random.below(6) {
                0 => MediaCommand::Play,
                1 => MediaCommand::Stop,
                2 => MediaCommand::Ff,
                3 => MediaCommand::Fr,
                4 => MediaCommand::Rwd,
                _ => MediaCommand::Fps(5_000 + random.below(40_000) as u32),
            };
            watched.world.command(command);
        }
        let mut newest = [0; 2];
        for (flow, header, ..) in watched.came.lock().unwrap().iter() {
            assert!(header.generation >= newest[*flow], "seed {seed}");
            newest[*flow] = header.generation;
        }
        assert!(newest[0] > 3, "seed {seed}: {newest:?}");
    }
}

#[test]
fn a_recording_over_commands_keeps_pictures_and_sound_together() {
    let folder = Folder::new("together");
    let plan = movie(&folder, 30_000);
    for seed in 0..4 {
        let mut world = World::new(plan.spec(), plan.publisher(1.0));
        let _ = std::fs::remove_dir_all(folder.path("saved"));
        let sinks = begin(&mut world, &save(&folder));
        let mut random = Random::from_number(seed);
        let commands = [
            MediaCommand::Stop,
            MediaCommand::Play,
            MediaCommand::Ff,
            MediaCommand::Play,
            MediaCommand::Rwd,
            MediaCommand::Fr,
        ];
        for _ in 0..20 {
            world.run(200 + random.below(700));
            world.command(commands[random.below(6) as usize]);
        }
        world.command(MediaCommand::Play);
        world.run(1_000);
        world.close();
        let copy = Inspection::of(&folder.path("saved/movie.avi")).unwrap();
        let (video, audio) = (copy.streams[0].duration_ns, copy.streams[1].duration_ns);
        let apart_ms = video.abs_diff(audio) / 1_000_000;
        assert!(
            apart_ms <= 60,
            "seed {seed}: {apart_ms} ms apart after {} s",
            video / 1_000_000_000
        );
        assert!(world.ledgers.values().all(Ledger::closes), "seed {seed}");
        let seen = sinks.progress[0].snapshot();
        assert!(seen.errors.is_empty() && seen.newest.generation > 3, "seed {seed}: {seen:?}");
    }
}

#[test]
fn closing_half_way_leaves_a_readable_file_and_closed_ledgers() {
    let folder = Folder::new("half");
    let plan = movie(&folder, 20_000);
    let mut world = World::new(plan.spec(), plan.publisher(1.0));
    let sinks = begin(&mut world, &save(&folder));
    world.run(2_500);
    // What a crash would leave now.
    let bytes = std::fs::read(folder.path("saved/movie.avi")).unwrap();
    let crashed = avi::Reader::open(bytes).unwrap();
    assert!(crashed.video_count(0) >= 37, "{}", crashed.video_count(0));
    world.run(500);
    world.close();
    let copy = Inspection::of(&folder.path("saved/movie.avi")).unwrap();
    assert!(copy.warnings.is_empty(), "{copy}");
    for (flow, ledger) in &world.ledgers {
        assert!(ledger.closes() && ledger.unknown == 0, "{ledger:?}");
        assert_eq!(ledger.delivered, sinks.progress[*flow].snapshot().media_frames);
    }
    assert_eq!(copy.streams[0].count, world.ledgers[&0].delivered);
    let source = FileInput::new(std::fs::File::open(folder.path("movie.avi")).unwrap()).unwrap();
    let mut source = avi::Reader::open(source).unwrap();
    let mut copy =
        avi::Reader::open(std::fs::read(folder.path("saved/movie.avi")).unwrap()).unwrap();
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for index in 0..copy.video_count(0) {
        source.video_frame(0, index, &mut one).unwrap();
        copy.video_frame(0, index, &mut other).unwrap();
        assert_eq!(one, other, "picture {index}");
    }
}

#[test]
fn sound_alone_becomes_a_wav_file_and_fps_is_refused() {
    let folder = Folder::new("radio");
    let movie = TestMovie { duration: Duration::from_millis(1_010), ..TestMovie::default() };
    folder.write_wav("a.wav", &movie);
    let session = r#"
[session]
name = "movie"
[[flow]]
name = "sound"
from = "creator"
source = { file = "a.wav" }
graph = ["sequence", "checksum"]
transport = "udp"
"#;
    let plan = folder.plan(session);
    let mut world = World::new(plan.spec(), plan.publisher(1.0));
    let _sinks = begin(&mut world, &save(&folder));
    let refused = world.try_command(MediaCommand::Fps(5_000)).unwrap_err();
    assert!(refused.contains("no pictures"), "{refused}");
    world.run_to_end(1, 5_000);
    let source = Inspection::of(&folder.path("a.wav")).unwrap();
    let copy = Inspection::of(&folder.path("saved/movie-sound.wav")).unwrap();
    assert_eq!(copy.streams, source.streams);
}

#[test]
fn the_test_movie_needs_no_file_and_is_counted_with_delay() {
    let folder = Folder::new("test");
    let session = r#"
[session]
name = "movie"
[[flow]]
name = "picture"
from = "creator"
source = { test = "movie", stream = "video", duration = "1 s" }
graph = ["segment", "sequence", "checksum"]
transport = "udp"
[[flow]]
name = "tone"
from = "creator"
source = { test = "movie", stream = "audio", duration = "1 s" }
graph = ["segment", "sequence", "checksum"]
transport = "udp"
"#;
    let plan = folder.plan(session);
    let mut world = World::new(plan.spec(), plan.publisher(1.0));
    let sinks = begin(&mut world, &Wanted::Count);
    world.run_to_end(2, 5_000);
    let seen: Vec<_> = sinks.progress.iter().map(Progress::snapshot).collect();
    assert_eq!((seen[0].media_frames, seen[1].media_frames), (25, 50));
    assert!(seen.iter().all(|seen| seen.delay.is_some() && seen.late == 0), "{seen:?}");
    assert!(seen.iter().all(|seen| seen.lateness.ns_p99 < 0), "{seen:?}");
    assert_eq!(world.hashes[&0], Some(true));
}

#[test]
fn bytes_go_both_ways_between_applications() {
    use dacapo::plan::RawEnd;
    let folder = Folder::new("raw");
    let session = r#"
[session]
name = "movie"
[[flow]]
name = "there"
from = "creator"
source = { raw = true }
digest = true
graph = ["segment", "sequence", "checksum"]
transport = "udp"
[[flow]]
name = "back"
from = "participant"
source = { raw = true }
digest = true
graph = ["segment", "sequence", "checksum"]
transport = "udp"
"#;
    let plan = folder.plan(session);
    let ends = Arc::<Mutex<Vec<(String, RawEnd)>>>::default();
    let kept = Arc::clone(&ends);
    let on_raw = Box::new(move |name: &str, end| kept.lock().unwrap().push((name.into(), end)));
    let mut world = World::new(plan.spec(), plan.publisher_with(1.0, on_raw));
    let mut sinks = begin(&mut world, &save(&folder));
    let mut ends = std::mem::take(&mut *ends.lock().unwrap());
    let (Some((_, RawEnd::Receiver(back))), Some((_, RawEnd::Sender(there)))) =
        (ends.pop(), ends.pop())
    else {
        panic!("the ends of both flows");
    };
    for number in 0..20_u8 {
        there.send(vec![number; usize::from(number) * 1_000]).unwrap();
        sinks.senders[0].1.send(vec![number]).unwrap();
    }
    world.run(500);
    // Commands for the media of a session do not fail because of its flows of bytes.
    assert_eq!(world.command(MediaCommand::Play).state, State::Playing);
    assert_eq!(back.try_recv(), Some(vec![0]));
    drop(there);
    sinks.senders.clear();
    world.run_to_end(2, 5_000);
    let rest: Vec<_> = std::iter::from_fn(|| back.try_recv()).collect();
    assert!(rest.len() == 19 && back.is_finished());
    let expected: Vec<u8> =
        (0..20_u8).flat_map(|number| vec![number; usize::from(number) * 1_000]).collect();
    assert_eq!(std::fs::read(folder.path("saved/movie-there.bin")).unwrap(), expected);
}

/// Keeps how its flow ended.
#[derive(Clone, Default)]
struct Endings(Arc<Mutex<Vec<Ending>>>);

impl Sink for Endings {
    fn handle_unit(&mut self, _: Time, _: &UnitView<'_>) -> Taken {
        Taken::Dropped(DropReason::Refused)
    }

    fn finish(&mut self, _: Time, ending: &Ending, ledger: &Ledger) {
        assert!(ledger.closes());
        self.0.lock().unwrap().push(ending.clone());
    }
}

#[test]
fn a_picture_that_is_too_large_ends_its_flow_with_the_reason() {
    let folder = Folder::new("large");
    let plan = movie(&folder, 400);
    let mut spec = plan.spec();
    spec.flows[0].unit_len_max = 500;
    let mut world = World::new(spec, plan.publisher(1.0));
    let offer = world.join("movie");
    let endings = Endings::default();
    let port = |_| Some(Port::Sink(Box::new(endings.clone()) as _));
    world.begin(offer.iter().map(port).collect());
    world.run(1_000);
    assert_eq!(world.failures.len(), 1);
    let text = &world.failures[0];
    assert!(text.starts_with("picture 0 has ") && text.contains("more than a unit"), "{text}");
    assert_eq!(world.ledgers[&0].sent, 0);
    let endings = endings.0.lock().unwrap();
    assert!(matches!(endings[0], Ending::SourceFailed(_)), "{endings:?}");
    assert_eq!(endings[1..], [Ending::Complete]);
}

#[test]
fn ten_times_as_fast_takes_less_than_half_of_the_time_and_every_unit_comes() {
    let folder = Folder::new("fast");
    let movie = TestMovie { duration: Duration::from_secs(10), ..TestMovie::default() };
    folder.write_wav("radio.wav", &movie);
    let text = "[session]\nname = \"movie\"\n[[flow]]\nname = \"sound\"\nfrom = \"creator\"\n\
                source = { file = \"radio.wav\" }\nattributes = { order = \"ordered\" }\n";
    let path = folder.write("session.toml", text.as_bytes());
    let assumptions = Assumptions { speed: Speed::from_factor(10.0), ..Assumptions::loopback() };
    let plan = Plan::load_for(&path, &assumptions).unwrap();
    let mut world = World::new(plan.spec(), plan.publisher(1.0));
    let sinks = begin(&mut world, &Wanted::Count);
    let began = world.now;
    world.run_to_end(1, 20_000);
    let took = world.now.since(began);
    assert!(took < Duration::from_secs(5), "{took:?}");
    let ledger = &world.ledgers[&0];
    assert!(ledger.closes() && ledger.delivered == ledger.sent, "{ledger:?}");
    assert_eq!(sinks.progress[0].snapshot().bytes, 10 * 192_000);
}

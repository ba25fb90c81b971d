//! Session files with everything that they name: what is found, and every mistake with its line.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

#[path = "world/mod.rs"]
#[allow(dead_code)]
mod world;

use dacapo::Plan;
use dacapo::plan::PlanErrors;
use dacapo_media::TestMovie;
use dacapo_wire::medium::Medium;
use dacapo_wire::session::Direction;
use std::io::Cursor;
use std::path::Path;
use std::time::Duration;
use world::Folder;

fn movie(folder: &Folder) {
    let movie = TestMovie {
        width: 64,
        height: 48,
        duration: Duration::from_millis(400),
        ..TestMovie::default()
    };
    folder.write("movie.avi", &movie.write_avi(Cursor::new(Vec::new())).unwrap().into_inner());
    folder.write("radio.wav", &movie.write_wav(Cursor::new(Vec::new())).unwrap().into_inner());
}

fn flow(name: &str, source: &str, graph: &str) -> String {
    format!(
        "[[flow]]\nname = \"{name}\"\nfrom = \"creator\"\nsource = {source}\ngraph = {graph}\n\
         transport = \"udp\"\n"
    )
}

fn load(folder: &Folder, flows: &[String]) -> Result<Plan, String> {
    let text = format!("[session]\nname = \"s\"\n{}", flows.concat());
    let path = folder.write("s.toml", text.as_bytes());
    Plan::load(&path).map_err(|errors| {
        let errors = errors.to_string();
        errors.replace(&format!("{}", folder.0.display()), "DIR")
    })
}

const GRAPH: &str = "[\"segment\", \"sequence\", \"checksum\"]";

#[test]
fn the_shipped_sessions_load_once_their_media_are_there() {
    let conf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf");
    for name in ["testcard.toml", "two-way.toml"] {
        Plan::load(&conf.join(name)).unwrap_or_else(|errors| panic!("{errors}"));
    }
    let folder = Folder::new("shipped");
    for name in ["movie.toml", "radio.toml"] {
        folder.write(name, &std::fs::read(conf.join(name)).unwrap());
        let missing = Plan::load(&folder.path(name)).unwrap_err().to_string();
        assert!(missing.contains("flow[0].source.file: ") && missing.contains("No such file"));
    }
    movie(&folder);
    let plan = Plan::load(&folder.path("movie.toml")).unwrap();
    let offers: Vec<_> = plan.offers().cloned().collect();
    assert_eq!((plan.name(), plan.title(), offers.len()), ("movie", "The test movie", 2));
    assert_eq!(offers[0].bound_bps, 20_000_000);
    assert_eq!((offers[0].group.as_str(), offers[1].group.as_str()), ("video", "video"));
    assert!(matches!(offers[0].medium, Medium::Video { width: 64, height: 48, rate: 25, .. }));
    assert!(matches!(offers[1].medium, Medium::Audio { rate_hz: 48_000, channels: 2, .. }));
    assert_eq!(offers[0].graph.nodes[1].params, [(0, 60_000_000)]);
    assert_eq!((offers[0].attributes.len(), offers[0].playout_ns), (5, 100_000_000));
    assert_eq!(plan.extent().duration_ns, 400_000_000);
    let text = plan.describe();
    assert!(text.contains("segment ! sequence hold=60ms ! checksum ! udp"), "{text}");
    assert!(text.contains("Motion JPEG 64x48, 25 /s, 10 pictures, 400 ms"), "{text}");
    assert!(
        text.contains("room: 1435 of a datagram's 1452 bytes, 13 before and 4 after"),
        "{text}"
    );
    assert!(text.contains("delay at most 150 ms"), "{text}");
    let plan = Plan::load(&folder.path("radio.toml")).unwrap();
    assert_eq!(plan.offers().next().unwrap().group, "");
}

#[test]
fn every_mistake_is_told_at_once_with_its_line_and_what_is_allowed() {
    let folder = Folder::new("mistakes");
    movie(&folder);
    folder.write("film.mp4", b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41");
    let raw = "{ raw = true }";
    let errors = load(
        &folder,
        &[
            flow("a", raw, "[\"segmnt\", \"checksum\"]"),
            flow("b", raw, "[{ module = \"sequence\", hold = \"11 s\" }]"),
            flow("c", raw, "[{ module = \"sequence\", hold = \"4 Mbit/s\", hodl = 1 }]"),
            flow("d", raw, "[\"checksum\", \"segment\"]"),
            flow("e", "{ file = \"film.mp4\" }", GRAPH),
            flow("f", "{ file = \"movie.avi\" }", GRAPH),
            flow("g", "{ file = \"movie.avi\", stream = \"audio:1\" }", GRAPH),
            flow("h", "{ file = \"radio.wav\", stream = \"video\" }", GRAPH),
            flow("i", "{ file = \"movie.avi\", stream = \"video\" }", "[\"checksum\"]"),
            flow("j", "{ file = \".\" }", GRAPH),
        ],
    );
    let errors = errors.unwrap_err();
    let expected = [
        "DIR/s.toml:7: flow[0].graph[0]: \"segmnt\" is no module (did you mean \"segment\"?); \
         allowed: \"checksum\", \"segment\", \"sequence\"",
        "DIR/s.toml:13: flow[1].graph[0].hold: 11 s is out of range; allowed: \"0 ns\" to \"10 s\
         \", \"40 ms\" when left out",
        "DIR/s.toml:19: flow[2].graph[0].hold: \"4 Mbit/s\" is not a duration; allowed: \"0 ns\" \
         to \"10 s\", \"40 ms\" when left out",
        "DIR/s.toml:19: flow[2].graph[0].hodl: \"sequence\" has no parameter \"hodl\" (did you \
         mean \"hold\"?); allowed: \"hold\"",
        "DIR/s.toml:25: flow[3].graph[1]: \"segment\" (segment) cannot stand below \"checksum\" \
         (protect): the order from the application is shape, compress, segment, repair, protect, \
         number",
        "DIR/s.toml:30: flow[4].source.file: DIR/film.mp4: this is MP4, expected AVI or WAV; \
         convert it with: ffmpeg -i DIR/film.mp4 -c:v mjpeg -q:v 3 -c:a pcm_s16le DIR/film.avi",
        "DIR/s.toml:36: flow[5].source.stream: DIR/movie.avi: say which stream is meant, as stream \
         = …; there are: \"video\", \"audio\"",
        "DIR/s.toml:42: flow[6].source.stream: DIR/movie.avi: there is no stream audio:1; there \
         are: \"video\", \"audio\"",
        "DIR/s.toml:48: flow[7].source.stream: DIR/radio.wav: a WAV file has no video, only audio",
        "DIR/s.toml:55: flow[8].graph: units may have 1048604 bytes and a packet carries 1443; add \
         \"segment\"",
        "DIR/s.toml:60: flow[9].source.file: DIR/.: this is a folder",
    ];
    let errors: Vec<&str> = errors.lines().collect();
    for (found, expected) in errors.iter().zip(expected) {
        assert_eq!(*found, expected);
    }
    assert_eq!(errors.len(), expected.len());
}

#[test]
fn a_session_file_that_cannot_be_read_is_named() {
    let folder = Folder::new("unread");
    let error = Plan::load(&folder.path("none.toml")).unwrap_err();
    assert!(matches!(error, PlanErrors::Read { .. }));
    assert!(error.to_string().contains("none.toml: No such file"), "{error}");
    let error = Plan::load(&folder.write("bad.toml", b"\xFF")).unwrap_err();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
}

#[test]
fn defaults_follow_the_medium() {
    let folder = Folder::new("defaults");
    movie(&folder);
    let back = flow("back", "{ raw = true }", "[\"checksum\"]").replace("creator", "participant");
    let plan = load(
        &folder,
        &[
            flow("video", "{ file = \"movie.avi\", stream = \"video\" }", GRAPH),
            flow("sound", "{ file = \"radio.wav\" }", "[\"sequence\", \"checksum\"]"),
            back,
        ],
    );
    let plan = plan.unwrap();
    let offers: Vec<_> = plan.offers().collect();
    assert_eq!((offers[0].bound_bps, offers[0].unit_len_max), (10_000_000, (1 << 20) + 24));
    assert_eq!((offers[1].bound_bps, offers[1].unit_len_max), (10_000_000, 1_452 - 5 - 4 - 4 - 4));
    assert_eq!((offers[2].bound_bps, offers[2].direction), (0, Direction::ToCreator));
    assert_eq!(offers[2].medium, Medium::Raw);
    assert!(offers.iter().all(|offer| offer.group.is_empty() && offer.playout_ns == 100_000_000));
    assert_eq!(plan.spec().participants_max, 64);
    let mut publisher = plan.publisher(1.0);
    std::fs::remove_file(folder.path("radio.wav")).unwrap();
    let opened: Vec<bool> = offers.iter().map(|offer| publisher.open(offer).is_ok()).collect();
    assert_eq!(opened, [true, false, true], "a file that has vanished is refused, and only it");
}

#[test]
fn a_transport_that_no_host_opens_is_refused_and_not_replaced() {
    let folder = Folder::new("transport");
    movie(&folder);
    let source = "{ file = \"radio.wav\" }";
    let asked = flow("sound", source, "[\"segment\"]").replace("\"udp\"", "\"inproc\"");
    let said = load(&folder, &[asked]).err().unwrap();
    assert!(said.contains("s.toml:8: flow[0].transport: \"inproc\""), "{said}");
    assert!(said.contains("allowed: udp"), "{said}");
}

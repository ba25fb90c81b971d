//! Session files with everything that they name: what is found, and every mistake with its line.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod media;

use dacapo::access::Speed;
use dacapo::attributes::AttributeKey;
use dacapo::plan::{Assumptions, FlowExplanation, PlanErrors};
use dacapo::{Attributes, Plan};
use dacapo_media::TestMovie;
use dacapo_wire::medium::Medium;
use dacapo_wire::session::Direction;
use media::{Folder, flow};
use std::path::Path;
use std::time::Duration;

fn movie(folder: &Folder) {
    let movie = TestMovie {
        width: 64,
        height: 48,
        duration: Duration::from_millis(400),
        ..TestMovie::default()
    };
    folder.write_avi("movie.avi", &movie);
    folder.write_wav("radio.wav", &movie);
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
        assert!(missing.contains("; make one with: dacapo testmovie "), "{missing}");
    }
    movie(&folder);
    let plan = Plan::load(&folder.path("movie.toml")).unwrap();
    let offers: Vec<_> = plan.offers().cloned().collect();
    assert_eq!((plan.name(), plan.title(), offers.len()), ("movie", "The test movie", 2));
    assert_eq!(offers[0].bound_bps, 20_000_000);
    assert_eq!((offers[0].group.as_str(), offers[1].group.as_str()), ("video", "video"));
    assert!(matches!(offers[0].medium, Medium::Video { width: 64, height: 48, rate: 25, .. }));
    assert!(matches!(offers[1].medium, Medium::Audio { rate_hz: 48_000, channels: 2, .. }));
    assert_eq!((offers[0].attributes.len(), offers[0].playout_ns), (6, 100_000_000));
    assert_eq!((offers[1].attributes.len(), offers[1].playout_ns), (7, 100_000_000));
    assert_eq!(plan.extent().duration_ns, 400_000_000);
    let text = plan.describe();
    assert!(text.contains("segment ! sequence hold=10ms ! checksum ! udp"), "{text}");
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
    let mut names: Vec<_> = dacapo::catalogue().entries().iter().map(|it| it.spec.name).collect();
    names.sort_unstable();
    let unknown = format!(
        "DIR/s.toml:7: flow[0].graph[0]: \"segmnt\" is no module (did you mean \"segment\"?); \
         allowed: \"{}\"",
        names.join("\", \"")
    );
    let expected = [
        unknown.as_str(),
        "DIR/s.toml:13: flow[1].graph[0].hold: 11 s is out of range; allowed: \"0 ns\" to \"10 s\
         \", \"40 ms\" when left out",
        "DIR/s.toml:19: flow[2].graph[0].hold: \"4 Mbit/s\" is not a duration; allowed: \"0 ns\" \
         to \"10 s\", \"40 ms\" when left out",
        "DIR/s.toml:19: flow[2].graph[0].hodl: \"sequence\" has no parameter \"hodl\" (did you \
         mean \"hold\"?); allowed: \"hold\"",
        "DIR/s.toml:25: flow[3].graph[1]: \"segment\" (segment) cannot stand below \"checksum\" \
         (protect): the order from the application is shape, compress, segment, repair, protect, \
         number",
        "DIR/s.toml:30: flow[4].source.file: DIR/film.mp4: this is MP4, expected AVI, WAV, AU or \
         JPEG; convert it with: ffmpeg -i DIR/film.mp4 -c:v mjpeg -q:v 3 -c:a pcm_s16le \
         DIR/film.avi",
        "DIR/s.toml:36: flow[5].source.stream: DIR/movie.avi: say which stream is meant, as stream \
         = …; there are: \"video\", \"audio\"",
        "DIR/s.toml:42: flow[6].source.stream: DIR/movie.avi: there is no stream audio:1; there \
         are: \"video\", \"audio\"",
        "DIR/s.toml:48: flow[7].source.stream: DIR/radio.wav: a WAV file has no video, only audio",
        "DIR/s.toml:55: flow[8].graph: the pinned graph \"checksum ! udp\" does not meet units of \
         up to 1048.6 kB (it gives at most 1.439 kB); without the pin: segment ! udp",
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
    // Sound is cut to what a datagram carries over any IPv6 path, less label, numbers and sum.
    assert_eq!((offers[1].bound_bps, offers[1].unit_len_max), (10_000_000, 1_232 - 5 - 4 - 4 - 4));
    assert_eq!((offers[2].bound_bps, offers[2].direction), (0, Direction::ToCreator));
    assert_eq!(offers[2].medium, Medium::Raw);
    assert!(offers.iter().all(|offer| offer.group.is_empty() && offer.playout_ns == 100_000_000));
    assert_eq!(plan.spec().participants_max, 64);
    let mut publisher = plan.publisher(1.0);
    std::fs::remove_file(folder.path("radio.wav")).unwrap();
    let joining = joining(&plan);
    let opened = offers.iter().map(|offer| publisher.open(offer, &joining).is_ok());
    let opened: Vec<bool> = opened.collect();
    assert_eq!(opened, [true, false, true], "a file that has vanished is refused, and only it");
}

/// Somebody who joins, from this host.
fn joining(plan: &Plan) -> dacapo_core::JoinRequest {
    dacapo_core::JoinRequest {
        name: plan.spec().name,
        remote: "127.0.0.1:1".parse().unwrap(),
        modules: Vec::new(),
        transports: Vec::new(),
        attributes: Vec::new(),
        path: dacapo_core::PathKnown::default(),
        live: false,
        is_free: false,
    }
}

#[test]
fn a_transport_that_no_host_opens_is_refused_and_not_replaced() {
    let folder = Folder::new("transport");
    movie(&folder);
    let source = "{ file = \"radio.wav\" }";
    let asked = flow("sound", source, "[\"segment\"]").replace("\"udp\"", "\"inproc\"");
    let said = load(&folder, &[asked]).err().unwrap();
    assert!(said.contains("s.toml:8: flow[0].transport: \"inproc\""), "{said}");
    assert!(said.contains("allowed: \"udp\", \"tcp\""), "{said}");
}

#[test]
fn a_transport_is_one_of_the_catalogue_and_carries_what_its_specification_says() {
    let plan = |rest: &str, from: &str| {
        let text = format!(
            "[session]\nname = \"s\"\n[[flow]]\nname = \"f\"\nfrom = \"{from}\"\n\
             source = {{ raw = true }}\nbound = \"1 Mbit/s\"\n{rest}\n"
        );
        let plan = Plan::parse(&text, "s.toml", &Assumptions::default());
        plan.map_err(|errors| errors.to_string())
    };
    let transport = |rest: &str| plan(rest, "creator").unwrap().offers().next().unwrap().transport;
    let error = |rest: &str, from: &str| plan(rest, from).unwrap_err();
    let unknown = error("transport = \"upd\"", "creator");
    assert!(unknown.contains("s.toml:8: flow[0].transport: \"upd\": this host opens no such"));
    assert!(unknown.contains("(did you mean \"udp\"?)"), "{unknown}");
    let allowed = "\"udp\", \"tcp\", \"tcp-multicast\", \"shm\", \"quic\", \"quic-datagram\", \
                   \"xtp\", \"xtp-datagram\"";
    for gone in ["inproc", "udp-multicast"] {
        let gone = error(&format!("transport = \"{gone}\""), "creator");
        assert!(gone.contains(allowed), "{gone}");
    }
    let group = "multicast = \"239.1.2.3:5004\"";
    let graph = "graph = [\"segment\", \"sequence\"]";
    for way in ["", "transport = \"udp\""] {
        assert_eq!(transport(&format!("{group}\n{graph}\n{way}")), 6, "{way}");
    }
    for stream in ["tcp", "quic", "tcp-multicast"] {
        let wrong = error(&format!("{group}\n{graph}\ntransport = \"{stream}\""), "creator");
        assert!(
            wrong.contains(
                "s.toml:8: flow[0].multicast: a group gets no byte stream, which line 10"
            ),
            "{wrong}"
        );
        assert!(wrong.contains("only without transport, or with \"udp\""), "{wrong}");
    }
    assert_eq!(transport("transport = \"tcp-multicast\""), 10);
    let back = error("transport = \"tcp-multicast\"", "participant");
    assert!(back.contains("nobody to send to but the creator"), "{back}");
    assert!(back.contains("\"tcp\", or from = \"creator\""), "{back}");
}

/// One flow of sound, 1.536 Mbit/s, that may lose less than the path does.
fn sound(rest: &str, attributes: &str) -> String {
    format!(
        "[session]\nname = \"s\"\n[[flow]]\nname = \"sound\"\nfrom = \"creator\"\n\
         source = {{ file = \"radio.wav\" }}\nplayout = \"100 ms\"\n{rest}\n\
         [flow.attributes]\nloss = \"0.1 %\"\norder = \"ordered\"\n{attributes}\n"
    )
}

#[test]
fn a_graph_that_multiplies_leaves_the_medium_its_rate_within_the_bound() {
    let folder = Folder::new("bound");
    movie(&folder);
    let load = |rest: &str, attributes: &str| {
        let text = sound(rest, attributes);
        Plan::load(&folder.write("s.toml", text.as_bytes())).map_err(|errors| errors.to_string())
    };
    let copies = |plan: &Plan| {
        let catalogue = dacapo::catalogue();
        let repeat = catalogue.by_name("repeat").unwrap().spec;
        let offer = plan.offers().next().unwrap();
        let node = offer.graph.nodes.iter().find(|node| node.module == repeat.id);
        node.map(|node| node.params.iter().find(|(number, _)| *number == 0).unwrap().1)
    };
    for (rest, attributes) in [
        ("bound = \"2 Mbit/s\"", ""),
        ("bound = \"2 Mbit/s\"", "throughput = { min = \"64 kbit/s\" }"),
        ("", "throughput = { min = \"64 kbit/s\", max = \"2 Mbit/s\" }"),
        ("bound = \"20 Mbit/s\"", "throughput = { max = \"2 Mbit/s\" }"),
        ("bound = \"2.5 Mbit/s\"", "throughput = { min = \"1 bit/s\" }"),
    ] {
        let refused = load(rest, attributes).err();
        let refused = refused.unwrap_or_else(|| panic!("{rest} {attributes}: it does not fit"));
        assert!(refused.contains("throughput at least 1.54 Mbit/s"), "{refused}");
        assert!(refused.contains("nearest: "), "{refused}");
    }
    let plan = load("bound = \"8 Mbit/s\"", "throughput = { min = \"64 kbit/s\" }").unwrap();
    let copies = copies(&plan).expect("the path loses too much");
    assert!(8_000_000 / (copies + 1) >= 1_536_000, "{copies} copies");
}

#[test]
fn mistakes_of_the_file_and_of_what_it_names_are_told_together_in_the_order_of_lines() {
    let folder = Folder::new("together");
    movie(&folder);
    let raw = "{ raw = true }";
    let impossible = "[flow.attributes]\nloss = 0\ndelay = \"1 ms\"\n";
    let flows = [
        flow("a", "{ file = \"none.wav\" }", GRAPH),
        // Not read at all; those behind it keep their numbers.
        flow("b", raw, "[\"segment\"]").replace("creator", "nobody"),
        flow("c", raw, "[\"segmnt\"]"),
        // Half read: its graph is looked at, and no protocol is chosen for it.
        flow("d", raw, "[\"seqence\"]") + "bound = \"1 mm\"\n" + impossible,
        format!("[[flow]]\nname = \"e\"\nfrom = \"creator\"\nsource = {raw}\n{impossible}"),
    ];
    let errors = load(&folder, &flows).unwrap_err();
    let expected = [
        "DIR/s.toml:6: flow[0].source.file: DIR/none.wav: No such file",
        "DIR/s.toml:11: flow[1].from: \"nobody\" is not known",
        "DIR/s.toml:19: flow[2].graph[0]: \"segmnt\" is no module",
        "DIR/s.toml:25: flow[3].graph[0]: \"seqence\" is no module",
        "DIR/s.toml:27: flow[3].bound: ",
        "DIR/s.toml:37: flow[4].attributes.delay: ",
    ];
    for (found, expected) in errors.lines().zip(expected) {
        assert!(found.starts_with(expected), "{expected}\n{errors}");
    }
    assert_eq!(errors.lines().count(), expected.len(), "{errors}");
}

#[test]
fn what_stands_outside_of_flows_keeps_nobody_from_looking_at_them() {
    let session = |head: &str| {
        let flow = "[[flow]]\nname = \"a\"\nfrom = \"creator\"\nsource = { raw = true }\n\
                    [flow.attributes]\nloss = 0\ndelay = \"1 ms\"\n";
        let errors = Plan::parse(&format!("{head}\n{flow}"), "f", &Assumptions::default());
        errors.unwrap_err().to_string()
    };
    let named = session("[session]\nname = \"No Name\"");
    assert!(
        named.starts_with("f:2: session.name: ") && named.contains("\nf:9: flow[0]."),
        "{named}"
    );
    // Over a path that was not understood, nobody knows what can be had.
    let path = session("[session]\nname = \"s\"\n[path]\nassume = \"moon\"");
    assert!(path.starts_with("f:4: path.assume: ") && path.lines().count() == 1, "{path}");
    let nothing = Plan::parse("[session", "f", &Assumptions::default()).unwrap_err();
    assert_eq!(nothing.problems().len(), 1, "{nothing}");
}

#[test]
fn a_text_finds_its_media_in_the_folder_of_its_origin_and_without_one_in_the_current_folder() {
    let folder = Folder::new("relative");
    movie(&folder);
    let text = sound("bound = \"20 Mbit/s\"", "");
    let origin = folder.path("no-such-file.toml").display().to_string();
    let plan = Plan::parse(&text, &origin, &Assumptions::default()).unwrap();
    assert_eq!(plan.extent().duration_ns, 400_000_000);
    // Tests run in the folder of their crate, which has no such file but another.
    let errors = Plan::parse(&text, "text", &Assumptions::default()).unwrap_err().to_string();
    assert!(errors.contains("flow[0].source.file: radio.wav: No such file"), "{errors}");
    let here = text.replace("radio.wav", "Cargo.toml");
    let errors = Plan::parse(&here, "text", &Assumptions::default()).unwrap_err().to_string();
    assert!(errors.contains("flow[0].source.file: Cargo.toml: "), "{errors}");
    assert!(!errors.contains("No such file"), "{errors}");
}

/// What is explained of these flows, when what is missing is assumed.
fn explained(folder: &Folder, flows: &[String]) -> Result<Vec<FlowExplanation>, String> {
    let text = format!("[session]\nname = \"s\"\n{}", flows.concat());
    let path = folder.write("s.toml", text.as_bytes());
    let assumptions = Assumptions { assumes_missing_media: true, ..Assumptions::default() };
    let plan = Plan::load_for(&path, &assumptions).map_err(|errors| errors.to_string())?;
    Ok(plan.explain())
}

#[test]
fn a_medium_that_is_missing_is_assumed_as_the_command_makes_it() {
    let folder = Folder::new("assumed");
    let command = |source: &str, rest: &str| {
        let flow = format!(
            "[[flow]]\nname = \"a\"\nfrom = \"creator\"\nsource = {{ {source} }}\n{rest}\n"
        );
        let explained = explained(&folder, &[flow]).unwrap_or_else(|text| panic!("{text}"));
        let assumed = explained[0].assumed_medium.clone().unwrap();
        let text = explained[0].to_string();
        assert!(
            text.contains("\nassumed of the medium: ") && text.contains(&assumed.file),
            "{text}"
        );
        let dir = folder.0.display().to_string();
        (assumed.format.clone(), assumed.command.replace(&dir, "DIR"))
    };
    let fast = "attributes = { frame_rate = { min = \"50 /s\" } }";
    let movie = "Motion JPEG 640x360, 25 /s";
    for (source, rest, format, line) in [
        ("file = \"m.avi\"", "", movie, "dacapo testmovie DIR/m.avi --no-sound"),
        (
            "file = \"m.avi\"",
            fast,
            "Motion JPEG 640x360, 50 /s",
            "dacapo testmovie DIR/m.avi --fps 50 --no-sound",
        ),
        (
            "file = \"m.avi\", stream = \"audio\"",
            "",
            "PCM s16 48000 Hz, stereo",
            "dacapo testmovie DIR/m.avi",
        ),
        (
            "file = \"a b/r.WAV\"",
            "",
            "PCM s16 48000 Hz, stereo",
            "mkdir -p 'DIR/a b' && dacapo testmovie 'DIR/a b/r.WAV' --wav",
        ),
        (
            "file = \"p.jpg\"",
            "",
            "JPEG 640x360",
            "ffmpeg -f lavfi -i testsrc=size=640x360:rate=25 -frames:v 1 DIR/p.jpg",
        ),
        (
            "file = \"p.mjpg\", rate = \"15 /s\"",
            "",
            "Motion JPEG 640x360, 15 /s",
            "ffmpeg -f lavfi -i testsrc=size=640x360:rate=15 -t 30 -c:v mjpeg -f mjpeg DIR/p.mjpg",
        ),
    ] {
        assert_eq!(command(source, rest), (format.to_owned(), line.to_owned()), "{source}");
    }
    let beyond = "{ file = \"m.avi\", stream = \"audio:1\" }";
    let refused = explained(&folder, &[flow("a", beyond, GRAPH)]).unwrap_err();
    assert!(refused.contains("no command here makes one with a stream audio:1"), "{refused}");
}

#[test]
fn a_medium_that_is_there_and_broken_is_not_assumed() {
    let folder = Folder::new("broken");
    folder.write("m.avi", b"RIFF\0\0\0\0");
    let broken = explained(&folder, &[flow("a", "{ file = \"m.avi\" }", GRAPH)]).unwrap_err();
    assert!(broken.contains("s.toml:6: flow[0].source.file: "), "{broken}");
    let within = explained(&folder, &[flow("a", "{ file = \"m.avi/x.avi\" }", GRAPH)]);
    assert!(within.unwrap_err().contains("Not a directory"));
}

#[test]
fn a_refusal_over_a_medium_that_is_assumed_says_so() {
    let folder = Folder::new("assumed-refused");
    let flow = "[[flow]]\nname = \"a\"\nfrom = \"creator\"\nsource = { file = \"m.avi\" }\n\
                attributes = { loss = 0, delay = \"1 ms\" }\n";
    let refused = explained(&folder, &[flow.to_owned()]).unwrap_err();
    assert!(refused.contains("m.avi is missing; taken for Motion JPEG 640x360"), "{refused}");
}

#[test]
fn a_plan_that_assumes_a_medium_opens_none() {
    let folder = Folder::new("assumed-served");
    let path = folder.write(
        "s.toml",
        format!("[session]\nname = \"s\"\n{}", flow("a", "{ file = \"r.wav\" }", GRAPH)).as_bytes(),
    );
    let assumptions = Assumptions { assumes_missing_media: true, ..Assumptions::default() };
    let plan = Plan::load_for(&path, &assumptions).unwrap();
    let offer = plan.offers().next().unwrap().clone();
    let opened = plan.publisher(1.0).open(&offer, &joining(&plan));
    assert!(opened.err().unwrap().contains("r.wav: it was missing"));
}

/// The bounds of the flows of a text, when its media are sent so fast to this host.
fn bounds(text: &str, speed: f64) -> Result<Vec<u64>, String> {
    let speed = Speed::from_factor(speed);
    let assumptions = Assumptions { speed, ..Assumptions::loopback() };
    let plan = Plan::parse(text, "s.toml", &assumptions).map_err(|errors| errors.to_string())?;
    Ok(plan.offers().map(|offer| offer.bound_bps).collect())
}

/// The pictures of the test movie, 4.1 Mbit/s, and what else is said of them.
fn card(rest: &str) -> String {
    format!(
        "[session]\nname = \"s\"\n[[flow]]\nname = \"a\"\nfrom = \"creator\"\n\
         source = {{ test = \"movie\", stream = \"video\" }}\n\
         attributes = {{ integrity = \"checked\", order = \"ordered\" }}\n{rest}\n"
    )
}

/// The test card's pictures and sound over a path of this rate.
fn over(rate: &str) -> Result<Plan, String> {
    let flow = |stream: &str| {
        format!(
            "[[flow]]\nname = \"{stream}\"\nfrom = \"creator\"\nplayout = \"100 ms\"\n\
             source = {{ test = \"movie\", stream = \"{stream}\", duration = \"1 s\" }}\n"
        )
    };
    let path = format!("[path]\nrate = \"{rate}\"\nloss = \"0%\"");
    let flows = flow("video") + &flow("audio");
    let text = format!("[session]\nname = \"s\"\n{path}\n{flows}");
    Plan::parse(&text, "s.toml", &Assumptions::default()).map_err(|errors| errors.to_string())
}

#[test]
fn flows_that_fit_alone_and_not_together_are_refused_with_what_each_takes() {
    assert!(over("8 Mbit/s").is_ok());
    let error = over("5 Mbit/s").map(|_| ()).unwrap_err();
    let told = "s.toml:12: flow[1]: what the creator sends takes 5.8";
    assert!(error.contains(told), "{error}");
    assert!(error.contains("(video 4.2") && error.contains("audio 1.5"), "{error}");
    assert!(error.contains("and the path is assumed to carry 5 Mbit/s; allowed: less throughput"));
}

#[test]
fn what_a_participant_asks_besides_is_not_more_than_the_path_carries() {
    let plan = over("12 Mbit/s").unwrap();
    let asked = |rate| Attributes::default().min(AttributeKey::Throughput, rate);
    assert!(plan.explain_for(&asked(5_000_000)).is_ok());
    let error = plan.explain_for(&asked(8_000_000)).unwrap_err().to_string();
    assert!(error.contains("what the creator sends takes 16."), "{error}");
}

#[test]
fn the_bounds_that_come_from_media_follow_the_speed_upwards() {
    let normal = bounds(&card(""), 1.0).unwrap();
    assert!((16_000_000..17_000_000).contains(&normal[0]), "{normal:?}");
    assert_eq!(bounds(&card(""), 10.0).unwrap(), [normal[0] * 10]);
    assert_eq!(bounds(&card(""), 0.1).unwrap(), normal);
}

#[test]
fn a_bound_of_the_file_that_is_too_low_for_the_speed_is_refused_with_the_speed_that_fits() {
    let folder = Folder::new("speed");
    movie(&folder);
    let text = sound("bound = \"2 Mbit/s\"", "").replace("loss = \"0.1 %\"\n", "");
    let origin = folder.path("s.toml").display().to_string();
    let at = |speed: f64, text: &str| {
        let speed = Speed::from_factor(speed);
        let assumptions = Assumptions { speed, ..Assumptions::loopback() };
        Plan::parse(text, &origin, &assumptions)
            .map_err(|errors| errors.to_string().replace(&folder.0.display().to_string(), "DIR"))
    };
    for speed in [0.5, 1.0, 1.2] {
        at(speed, &text).unwrap_or_else(|text| panic!("{speed}: {text}"));
    }
    assert_eq!(
        at(10.0, &text).unwrap_err(),
        "DIR/s.toml:8: flow[0].bound: at 10 times its speed the medium takes 15.3 Mbit/s, and at \
         most 2 Mbit/s are let pass; let more pass, or send at most 1.2 times as fast"
    );
    let asked =
        text.replace("bound = \"2 Mbit/s\"\n", "") + "throughput = { max = \"3 Mbit/s\" }\n";
    let refused = at(10.0, &asked).unwrap_err();
    assert!(refused.contains("flow[0].attributes.throughput: at 10 times"), "{refused}");
    assert!(refused.contains("at most 1.8 times as fast"), "{refused}");
    // Who joins may ask for less, too.
    let plan = at(10.0, &text.replace("2 Mbit/s", "20 Mbit/s")).unwrap();
    let asks = dacapo::Attributes::new().max(dacapo_qos::AttributeKey::Throughput, 3_000_000);
    let refused = plan.explain_for(&asks).unwrap_err();
    assert!(refused.text.contains("sound: at 10 times its speed"), "{refused}");
}

/// Readings of which 1 in 1,000 may be missing after half a second; nothing is said of the path.
const READINGS: &str = "[session]\nname = \"readings\"\n[[flow]]\nname = \"data\"\n\
    from = \"creator\"\nsource = { raw = true }\nunit_max = \"1000 B\"\n\
    attributes = { loss = \"0.1 %\", frame_rate = \"100 /s\", delay = \"500 ms\" }\n";

/// The modules that are chosen for who joins from far away, over a path of which so much is known.
fn chosen_for(plan: &Plan, path: dacapo_core::PathKnown) -> Result<Vec<u16>, String> {
    let catalogue = dacapo::catalogue();
    let joining = dacapo_core::JoinRequest {
        remote: "192.0.2.1:1".parse().unwrap(),
        modules: catalogue.entries().iter().map(|entry| entry.spec.id).collect(),
        transports: catalogue.transports().iter().map(|spec| spec.id).collect(),
        path,
        ..joining(plan)
    };
    let offers = plan.publisher(1.0).offer(&joining, &plan.spec().flows);
    let offers = offers.map_err(|error| error.text)?;
    Ok(offers[0].graph.nodes.iter().map(|node| node.module).collect())
}

#[test]
fn who_is_far_away_gets_another_graph_where_nobody_describes_the_path() {
    let away = |rtt_ms, is_probed| dacapo_core::PathKnown {
        rtt_min: Some(Duration::from_millis(rtt_ms)),
        is_probed,
        ..dacapo_core::PathKnown::default()
    };
    let plan = Plan::parse(READINGS, "readings", &Assumptions::default()).unwrap();
    let assumed = chosen_for(&plan, dacapo_core::PathKnown::default()).unwrap();
    let far = chosen_for(&plan, away(500, false)).unwrap();
    assert_ne!(assumed, far, "no question is answered in time");
    assert_eq!(chosen_for(&plan, away(60, false)).unwrap(), assumed, "as the internet is assumed");
    // What one round trip would refuse is chosen as assumed, what many refuse is refused.
    assert_eq!(chosen_for(&plan, away(1_200, false)).unwrap(), assumed);
    let refused = chosen_for(&plan, away(1_200, true)).unwrap_err();
    assert!(refused.contains("delay"), "{refused}");
    let described = format!("{READINGS}[path]\nassume = \"internet\"\n");
    let plan = Plan::parse(&described, "readings", &Assumptions::default()).unwrap();
    assert_eq!(chosen_for(&plan, away(1_200, true)).unwrap(), assumed, "an order");
}

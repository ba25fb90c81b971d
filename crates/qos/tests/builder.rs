//! What a session file says a program can say by calls: each of `conf/` both ways.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_qos::{Fields, FlowBuilder, Role, SessionBuilder, SessionFile};
use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn bounds(min: &str, max: &str) -> Fields {
    Fields::new().with("min", min).with("max", max)
}

fn most(max: &str, weight: f64) -> Fields {
    Fields::new().with("max", max).with("weight", weight)
}

fn raw() -> Fields {
    Fields::new().with("raw", true)
}

fn movie() -> SessionBuilder {
    let stream = |stream: &str| Fields::new().with("file", "movie.avi").with("stream", stream);
    let video = FlowBuilder::new("video", Role::Creator, stream("video"))
        .bound_bps(20_000_000)
        .playout(ms(100))
        .attribute("throughput", bounds("2 Mbit/s", "20 Mbit/s"))
        .attribute("delay", most("150 ms", 0.5))
        .attribute("jitter", "40 ms")
        .attribute("loss", "1 %")
        .attribute("order", "ordered")
        .attribute("integrity", "checked");
    let audio = FlowBuilder::new("audio", Role::Creator, stream("audio"))
        .playout(ms(100))
        .attribute("throughput", bounds("64 kbit/s", "8 Mbit/s"))
        .attribute("delay", most("150 ms", 0.5))
        .attribute("jitter", ms(20))
        .attribute("loss", "0.1 %")
        .attribute("order", "ordered")
        .attribute("integrity", "checked")
        .attribute("priority", 6);
    SessionBuilder::new("movie").title("The test movie").flow(video).flow(audio)
}

fn radio() -> SessionBuilder {
    let record = Fields::new().with("file", "radio.wav").with("loop", true);
    let sound = FlowBuilder::new("sound", Role::Creator, record)
        .bound_bps(2_000_000)
        .playout(ms(200))
        .attribute("delay", most("2 s", 0.1))
        .attribute("loss", "100 ppm")
        .attribute("order", "ordered")
        .attribute("duplicates", "none")
        .attribute("integrity", "checked");
    SessionBuilder::new("radio").title("One record, over and over").flow(sound)
}

fn testcard() -> SessionBuilder {
    let made = |stream: &str| {
        let made = Fields::new().with("test", "movie").with("stream", stream);
        made.with("duration", Duration::from_secs(30))
    };
    let flow = |name: &str, stream: &str, bound_bps| {
        FlowBuilder::new(name, Role::Creator, made(stream))
            .bound_bps(bound_bps)
            .playout(ms(100))
            .attribute("delay", "500 ms")
            .attribute("order", "ordered")
            .attribute("integrity", "checked")
    };
    let picture = flow("picture", "video", 20_000_000);
    let picture = picture.attribute("frame_rate", Fields::new().with("min", "25 /s"));
    let tone = flow("tone", "audio", 2_000_000);
    SessionBuilder::new("testcard").title("Test card and tone").flow(picture).flow(tone)
}

fn two_way() -> SessionBuilder {
    let path = Fields::new()
        .with("assume", "lan")
        .with("rate", "100 Mbit/s")
        .with("delay", ms(2))
        .with("jitter", ms(1))
        .with("loss", "100 ppm")
        .with("burst", 1.5);
    let there = FlowBuilder::new("there", Role::Creator, raw())
        .unit_len_max(1_400)
        .bound_bps(10_000_000)
        .digest(false)
        .playout(ms(0))
        .attribute("throughput", bounds("1 Mbit/s", "10 Mbit/s").with("weight", 0.3))
        .attribute("delay", most("50 ms", 1.0))
        .attribute("jitter", "30 ms")
        .attribute("loss", "0.1 %")
        .attribute("order", "ordered")
        .attribute("duplicates", "none")
        .attribute("integrity", "checked")
        .attribute("deadline", ms(200))
        .attribute("priority", 5)
        .attribute("frame_rate", bounds("10 /s", "1000 /s"))
        .attribute("cpu", most("20 %", 0.1))
        .attribute("receivers", Fields::new().with("min", 1).with("max", 8))
        .attribute("confidentiality", "preferred")
        .attribute("authenticity", Fields::new().with("min", "preferred").with("weight", 0.5))
        .attribute("newest", "any")
        .attribute("share", 4);
    let back = FlowBuilder::new("back", Role::Participant, raw())
        .bound_bps(1_000_000)
        .attribute("delay", "500 ms")
        .attribute("loss", 0)
        .attribute("order", "ordered")
        .attribute("duplicates", "none")
        .attribute("integrity", "checked");
    let session = SessionBuilder::new("two-way").title("Bytes there and back");
    session.give_up(Duration::from_secs(300)).path(path).flow(there).flow(back)
}

/// What was read, but for where it stood.
fn meaning(text: &str) -> String {
    let read = SessionFile::parse(text, "conf").unwrap_or_else(|errors| panic!("{text}\n{errors}"));
    let all = format!("{read:#?}");
    let is_place = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("line: ") && !line.starts_with("column: ")
    };
    all.lines().filter(is_place).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_session_file_of_conf_is_the_same_by_calls() {
    let conf = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf");
    let mut files: Vec<_> =
        std::fs::read_dir(conf).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let built = [movie(), radio(), testcard(), two_way()];
    assert_eq!(files.len(), built.len(), "a file of conf/ that is not built here: {files:?}");
    for (file, built) in files.iter().zip(built) {
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(meaning(&text), meaning(&built.to_string()), "{}\n{built}", file.display());
    }
}

#[test]
fn what_is_wrong_is_told_with_the_line_of_the_text_that_is_shown() {
    let flow = FlowBuilder::new("there", Role::Creator, raw()).attribute("dealy", "50 ms");
    let built = SessionBuilder::new("notes").flow(flow).to_string();
    let errors = SessionFile::parse(&built, "notes").unwrap_err().to_string();
    let line = 1 + built.lines().position(|line| line.starts_with("dealy")).unwrap();
    assert!(errors.contains(&format!("notes:{line}:")) && errors.contains("delay"), "{errors}");
    let none = SessionFile::parse(&SessionBuilder::new("notes").to_string(), "notes");
    assert!(none.unwrap_err().to_string().contains("flow"));
}

#[test]
fn graph_transport_group_and_sink_are_written_as_the_reader_wants_them() {
    let hold = Fields::new().with("module", "sequence").with("hold", "60 ms");
    let flow = FlowBuilder::new("news", Role::Creator, raw())
        .graph([Fields::new().with("module", "segment"), hold])
        .transport("udp-multicast")
        .multicast("239.1.2.3:7000".parse().unwrap());
    let back = FlowBuilder::new("back", Role::Participant, raw());
    let back = back.sink(Fields::new().with("access", "numbers").with("count", 5));
    let text = SessionBuilder::new("news").flow(flow).flow(back).to_string();
    let read = SessionFile::parse(&text, "news").unwrap_or_else(|errors| panic!("{text}{errors}"));
    let graph = read.flows[0].graph.as_ref().unwrap();
    assert_eq!((graph.len(), graph[1].param("hold").is_some()), (2, true));
    assert_eq!(read.flows[0].multicast.as_ref().unwrap().value.port(), 7_000);
    assert_eq!(read.flows[1].sink.as_ref().unwrap().value.access.value, "numbers");
}

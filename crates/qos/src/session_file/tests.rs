//! Session files: good ones, bad ones, and what is said of them.

#![allow(clippy::arithmetic_side_effects)]

use super::*;
use crate::attribute::{AttributeKey, Requirement, level};
use crate::value::Value;

const FLOW: &str = r#"
[session]
name = "movie"
title = "The test movie"

[[flow]]
name = "video"
from = "creator"
source = { file = "movie.avi", stream = "video" }
graph = ["segment", { module = "sequence", hold = "60 ms", window = 8, on = true }, "checksum"]
transport = "udp"
bound = "20 Mbit/s"
playout = "100 ms"
[flow.attributes]
throughput = { min = "2 Mbit/s", max = "20 Mbit/s" }
delay = { max = "150 ms", weight = 0.5 }
loss = { max = "0.1 %" }
order = "ordered"
priority = 5
"#;

fn parse(text: &str) -> Result<SessionFile, Errors> {
    SessionFile::parse(text, "movie.toml")
}

/// The problems of `FLOW` after a replacement, one text each.
fn problems(from: &str, to: &str) -> Vec<String> {
    assert!(FLOW.contains(from), "{from:?} is not in the sample");
    let errors = parse(&FLOW.replacen(from, to, 1)).expect_err(to);
    errors.problems().iter().map(ToString::to_string).collect()
}

/// The one problem of `FLOW` after a replacement.
fn problem(from: &str, to: &str) -> String {
    let all = problems(from, to);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.concat()
}

#[test]
fn everything_that_is_written_is_read() {
    let file = parse(FLOW).unwrap();
    assert_eq!(file.name.value, "movie");
    assert_eq!(file.title.as_deref().map(String::as_str), Some("The test movie"));
    let flow = file.flow("video").unwrap();
    assert_eq!(flow.from.value, Role::Creator);
    assert_eq!(flow.transport.as_ref().unwrap().value, "udp");
    assert_eq!((flow.unit_max, file.path), (None, None));
    assert_eq!(flow.bound.unwrap().value, 20_000_000);
    assert_eq!(flow.playout.unwrap().value, 100_000_000);
    let Source::File { path, stream, .. } = &flow.source.value else { panic!("{:?}", flow.source) };
    assert_eq!(path.value, "movie.avi");
    assert_eq!(stream.unwrap().value, StreamSelector { kind: StreamKind::Video, index: 0 });
    let graph = flow.graph.as_ref().unwrap();
    let modules: Vec<_> = graph.iter().map(|module| module.module.as_str()).collect();
    assert_eq!(modules, ["segment", "sequence", "checksum"]);
    let sequence = &graph[1].value;
    assert_eq!(sequence.param("hold").unwrap().value, Value::Duration(60_000_000));
    assert_eq!(sequence.param("window").unwrap().as_count(), Ok(8));
    assert_eq!(sequence.param("on").unwrap().as_bool(), Ok(true));
    assert_eq!(sequence.param("module"), None);
}

#[test]
fn attributes_are_read_in_base_units() {
    let file = parse(FLOW).unwrap();
    let attributes = &file.flows[0].attributes;
    assert_eq!(attributes.len(), 5);
    let delay = Requirement { max: Some(150_000_000), weight: Some(50), ..Requirement::default() };
    assert_eq!(attributes.get(AttributeKey::Delay), Some(&delay));
    let order = Requirement { min: Some(level::ORDERED), ..Requirement::default() };
    assert_eq!(attributes.get(AttributeKey::Order), Some(&order));
    let priority = Requirement { min: Some(5), ..Requirement::default() };
    assert_eq!(attributes.get(AttributeKey::Priority), Some(&priority));
}

#[test]
fn every_value_knows_its_line_and_column() {
    let file = parse(FLOW).unwrap();
    let flow = &file.flows[0];
    assert_eq!((file.name.line, file.name.column), (3, 8));
    assert_eq!((flow.source.line, flow.source.column), (9, 10));
    let graph = flow.graph.as_ref().unwrap();
    assert_eq!((graph[0].line, graph[0].column), (10, 10));
    assert_eq!((graph[2].line, graph[2].column), (10, 85));
    let param = &graph[1].params[0];
    assert_eq!((param.key.line, param.key.column), (10, 44));
    assert_eq!((param.value.line, param.value.column), (10, 51));
    assert_eq!(flow.transport.as_ref().unwrap().line, 11);
    assert_eq!(flow.attribute_place(AttributeKey::Delay).unwrap().line, 16);
    assert_eq!(flow.attribute_place(AttributeKey::Cpu), None);
    let late = file.problem(&graph[0], "flow[0].graph[0]", "no such module");
    assert_eq!(late.to_string(), "movie.toml:10: flow[0].graph[0]: no such module");
}

#[test]
fn a_wrong_unit_is_told_with_those_that_are_allowed() {
    assert_eq!(
        problem("150 ms", "50 mm"),
        "movie.toml:16: flow[0].attributes.delay.max: \"50 mm\" is not a duration; \
         allowed: a number with a unit of ns, us, ms, s, min, for example \"50 ms\""
    );
    assert_eq!(
        problem("bound = \"20 Mbit/s\"", "bound = \"20 Mbps\""),
        "movie.toml:12: flow[0].bound: \"20 Mbps\" is not a rate; allowed: a number with a unit \
         of bit/s, kbit/s, Mbit/s, Gbit/s, for example \"4 Mbit/s\""
    );
}

#[test]
fn an_unknown_key_is_answered_with_the_nearest_one() {
    assert_eq!(
        problem("title", "titel"),
        "movie.toml:4: session.titel: unknown key (did you mean \"title\"?); \
         allowed: name, title, give_up"
    );
    let all = problem("delay = ", "dealy = ");
    assert!(all.starts_with(
        "movie.toml:16: flow[0].attributes.dealy: unknown key (did you mean \"delay\"?); \
         allowed: throughput, delay, jitter,"
    ));
    assert!(problem("bound", "colour").contains("flow[0].colour: unknown key; allowed: name,"));
    assert!(problem("weight", "wieght").contains("delay.wieght: unknown key (did you mean"));
}

#[test]
fn the_time_without_contact_is_a_duration_of_a_day_at_most() {
    let with =
        |value: &str| problem("name = \"movie\"", &format!("name = \"movie\"\ngive_up = {value}"));
    for wrong in ["\"25 h\"", "\"soon\"", "30", "\"-1 s\""] {
        let told = with(wrong);
        assert!(
            told.contains("session.give_up") && told.contains("0 s to 24 h"),
            "{wrong}: {told}"
        );
    }
}

#[test]
fn missing_keys_and_wrong_types_are_told_with_what_is_wanted() {
    assert_eq!(
        problem("from = \"creator\"\n", "\n"),
        "movie.toml:6: flow[0].from: is missing; allowed: \"creator\", \"participant\""
    );
    assert_eq!(
        problem("\"udp\"", "5"),
        "movie.toml:11: flow[0].transport: is a whole number; allowed: \
         1 to 64 of a-z, 0-9, '.', '_', '-', the first a letter or a digit"
    );
    assert!(problem("\"segment\"", "5").contains("flow[0].graph[0]: is a whole number"));
    assert!(problem("module = ", "modul = ").contains("graph[1].module: is missing"));
    assert!(problem("window = 8", "window = []").contains("graph[1].window: is a list"));
    assert!(problem("window = 8", "window = nan").contains("graph[1].window: is too large"));
    assert!(problem("{ max = \"0.1 %\" }", "true").contains("loss: is true or false; allowed: a"));
    assert!(problem("\"100 ms\"", "100").contains("playout: is a whole number; allowed: a number"));
}

#[test]
fn the_frame_of_the_file_is_checked() {
    let empty = parse("").unwrap_err().to_string();
    assert_eq!(empty.lines().count(), 2, "{empty}");
    assert!(empty.contains("movie.toml:1: session: is missing"));
    assert!(empty.contains("movie.toml:1: flow: is missing; allowed: one [[flow]] or more"));
    assert!(
        problem("[session]", "[[session]]").contains("session: is a list of tables; allowed: one")
    );
    let single = FLOW.replace("[[flow]]", "[flow]");
    assert!(
        parse(&single).unwrap_err().to_string().contains("flow: is a table; allowed: one [[flow]]")
    );
    assert!(
        parse("flow = []\nsession = { name = \"x\" }")
            .unwrap_err()
            .to_string()
            .contains("0 elements")
    );
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_file() {
    let text = FLOW
        .replace("name = \"movie\"", "name = \"The Movie\"")
        .replace("creator", "nobody")
        .replace("\"udp\"", "\"carrier pigeon\"")
        .replace("2 Mbit/s", "2 Mbit")
        .replace("\"ordered\"", "\"sorted\"");
    let errors = parse(&text).unwrap_err();
    let lines: Vec<_> = errors.problems().iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [3, 8, 11, 15, 18], "{errors}");
}

#[test]
fn a_text_that_is_no_toml_is_told_with_line_and_column() {
    let error = problem("transport = \"udp\"", "transport = = \"udp\"");
    assert!(error.starts_with("movie.toml:11:13: not TOML: "), "{error}");
    let error = problem("playout", "bound");
    assert!(error.starts_with("movie.toml:13:1: not TOML: duplicate key"), "{error}");
    let error = parse("[session").unwrap_err().to_string();
    assert!(error.starts_with("movie.toml:1:9: not TOML: "), "{error}");
    let error = SessionFile::parse_bytes(b"[session]\nname = \"\xff\"", "f").unwrap_err();
    assert_eq!(error.to_string(), "f:2:9: this is not UTF-8; allowed: text in UTF-8");
}

#[test]
fn contradictions_name_both_sides() {
    assert_eq!(
        problem("throughput = { min = \"2 Mbit/s\"", "throughput = { min = \"21 Mbit/s\""),
        "movie.toml:15: flow[0].attributes.throughput: min = 21 Mbit/s exceeds max = 20 Mbit/s; \
         allowed: a min of at most max"
    );
    assert_eq!(
        problem("bound = \"20 Mbit/s\"", "bound = \"1 Mbit/s\""),
        "movie.toml:12: flow[0].bound: 1 Mbit/s is below attributes.throughput.min = 2 Mbit/s \
         at line 15; allowed: a bound that lets the least throughput pass"
    );
    assert!(problem("bound = \"20 Mbit/s\"", "bound = \"0 bit/s\"").contains("sends nothing"));
}

#[test]
fn a_value_alone_is_the_bound_that_the_attribute_takes() {
    let text = FLOW
        .replace("{ max = \"150 ms\", weight = 0.5 }", "\"150 ms\"")
        .replace("{ min = \"2 Mbit/s\", max = \"20 Mbit/s\" }", "\"4 Mbit/s\"")
        .replace("{ max = \"0.1 %\" }", "0");
    let file = parse(&text).unwrap();
    let asked = |key| *file.flows[0].attributes.get(key).unwrap();
    let at_most = |max| Requirement { max: Some(max), ..Requirement::default() };
    assert_eq!(asked(AttributeKey::Delay), at_most(150_000_000));
    assert_eq!(asked(AttributeKey::Loss), at_most(0));
    let exactly = Requirement { min: Some(4_000_000), max: Some(4_000_000), weight: None };
    assert_eq!(asked(AttributeKey::Throughput), exactly);
}

#[test]
fn a_bound_that_an_attribute_does_not_take_is_refused_with_the_one_that_it_does() {
    assert_eq!(
        problem("delay = { max = \"150 ms\"", "delay = { min = \"150 ms\""),
        "movie.toml:16: flow[0].attributes.delay.min: delay takes max, not min; \
         allowed: max, weight"
    );
    assert!(problem("\"ordered\"", "{ max = \"any\" }").contains("order takes min, not max"));
    assert!(
        problem("{ max = \"0.1 %\" }", "{ max = 0, wieght = 1 }")
            .contains("loss.wieght: unknown key (did you mean \"weight\"?); allowed: max, weight")
    );
}

#[test]
fn requirements_that_are_none_are_refused() {
    assert!(
        problem("{ max = \"0.1 %\" }", "{}").contains(
            "loss: asks for nothing; allowed: a table of max, weight, for example { max = "
        )
    );
    assert!(problem("priority = 5", "priority = \"5\"").contains("is a text; allowed: a whole"));
    assert!(problem("weight = 0.5", "weight = \"0.5\"").contains("weight: is a text; allowed"));
    assert!(
        problem("\"ordered\"", "{ weight = 2 }").contains("order.weight: \"2\" is not a weight")
    );
    assert!(problem("priority = 5", "priority = 8").contains("a whole number from 0 to 7"));
    let share = parse(&FLOW.replace("\"0.1 %\"", "0.001")).unwrap();
    assert_eq!(share.flows[0].attributes.get(AttributeKey::Loss).unwrap().max, Some(1_000_000));
}

#[test]
fn sources_are_exactly_one_of_the_four_kinds() {
    let source = "{ file = \"movie.avi\", stream = \"video\" }";
    let read = |to: &str| parse(&FLOW.replace(source, to)).map(|f| f.flows[0].source.value.clone());
    assert_eq!(read("{ raw = true }").unwrap(), Source::Raw);
    assert!(matches!(read("{ file = \"a.wav\" }"), Ok(Source::File { stream: None, .. })));
    let test = read("{ test = \"movie\", stream = \"audio\", duration = \"30 s\" }").unwrap();
    let Source::Test { stream, duration, .. } = test else { panic!("{test:?}") };
    assert_eq!(stream.to_string(), "audio");
    assert_eq!(duration.unwrap().value, 30_000_000_000);
    for (to, said) in [
        ("{}", "none of file, test, raw and access"),
        ("{ raw = true, test = \"movie\" }", "more than one kind"),
        ("{ raw = false }", "source.raw: is not true; allowed: true"),
        ("{ raw = true, stream = \"video\" }", "source.stream: unknown key"),
        ("{ file = \"\" }", "\"\" is not a path"),
        ("{ file = \"a\\u0000b\" }", "is not a path"),
        ("{ file = \"a.avi\", stream = \"audio:+1\" }", "\"audio:+1\" is not a stream"),
        ("{ file = \"a.avi\", stream = \"text\" }", "\"text\" is not a stream"),
        ("{ test = \"movie\" }", "source.stream: is missing"),
        ("{ test = \"movei\", stream = \"video\" }", "did you mean \"movie\"?"),
        ("{ test = \"movie\", stream = \"video\", duration = \"0 s\" }", "duration: is zero"),
        ("\"movie.avi\"", "source: is a text; allowed: { file"),
        ("{ access = \"file\" }", "source.access: \"file\" has a form of its own; allowed: { file"),
        ("{ access = \"Big\" }", "source.access: \"Big\" is not a name"),
        ("{ access = \"a\", raw = true }", "more than one kind"),
        ("{ access = \"a\", b = [1] }", "source.b: is a list; allowed: a text, a number"),
    ] {
        let error = problem(source, to);
        assert!(error.contains(said), "{to}: {error}");
    }
    let second = read("{ file = \"a.avi\", stream = \"audio:1\" }").unwrap();
    let Source::File { stream: Some(stream), .. } = second else { panic!("{second:?}") };
    assert_eq!((stream.index, stream.to_string().as_str()), (1, "audio:1"));
}

#[test]
fn a_participant_is_never_told_to_open_a_file() {
    let error = problem("\"creator\"", "\"participant\"");
    assert!(error.starts_with("movie.toml:9: flow[0].source: a participant cannot be told"));
}

#[test]
fn names_follow_one_rule() {
    for name in ["a", "0", "a.b_c-d", &"x".repeat(64)] {
        assert!(is_name(name), "{name}");
    }
    for name in ["", ".", "..", "-x", "_x", "A", "a b", "a/b", "ä", &"x".repeat(65)] {
        assert!(!is_name(name), "{name}");
    }
    assert!(problem("\"video\"\nfrom", "\"Video\"\nfrom").contains("\"Video\" is not a name"));
    assert!(
        problem("\"checksum\"", "\"check sum\"").contains("graph[2]: \"check sum\" is not a name")
    );
    assert!(problem("hold", "\"a b\"").contains("graph[1].\"a b\": not a parameter's name"));
    assert!(problem("The test movie", "bell \\u0007").contains("is not a title"));
}

#[test]
fn two_flows_of_one_name_are_refused_with_the_line_of_the_first() {
    let flow = FLOW.split_once("[[flow]]").unwrap().1;
    let error = parse(&format!("{FLOW}[[flow]]{flow}")).unwrap_err().to_string();
    assert_eq!(
        error,
        "movie.toml:21: flow[1].name: \"video\" is the name of the flow at line 7 too; \
         allowed: a different name for every flow"
    );
}

fn raw(extra: &str) -> String {
    format!(
        "[session]\nname = \"s\"\n[[flow]]\nname = \"f\"\nfrom = \"creator\"\n\
         source = {{ raw = true }}\n{extra}\n"
    )
}

#[test]
fn a_graph_and_a_transport_may_be_left_to_the_attributes() {
    let chosen = parse(&raw("")).unwrap();
    assert_eq!((&chosen.flows[0].graph, &chosen.flows[0].transport), (&None, &None));
    let pinned = parse(&raw("graph = []\ntransport = \"tcp\"")).unwrap();
    assert!(pinned.flows[0].graph.as_ref().unwrap().is_empty());
    assert_eq!(pinned.flows[0].transport.as_ref().unwrap().value, "tcp");
    let wrong = parse(&raw("transport = \"in proc\"")).unwrap_err().to_string();
    assert!(wrong.contains("flow[0].transport: \"in proc\""), "{wrong}");
}

#[test]
fn a_group_is_an_address_of_one_with_a_port_and_gets_datagrams_of_the_creator() {
    let read = |text: &str| parse(&raw(text));
    let error = |text: &str| read(text).unwrap_err().to_string();
    for group in ["239.1.2.3:5004", "232.0.0.1:1", "[ff15::1:2]:5004"] {
        let file = read(&format!("multicast = \"{group}\"\ntransport = \"udp\"")).unwrap();
        assert_eq!(file.flows[0].multicast.unwrap().value, group.parse().unwrap());
    }
    let interface = "[ff02::1%1]:5004";
    for wrong in ["239.1.2.3", "10.0.0.1:5004", "239.1.2.3:0", "ff15::1:5004", "group", interface] {
        let error = error(&format!("multicast = \"{wrong}\""));
        assert!(error.contains("multicast") && error.contains("is not a group"), "{error}");
        assert!(error.contains("239.1.2.3:5004"), "what is allowed: {error}");
    }
    let back = raw("multicast = \"239.1.2.3:5004\"").replace("\"creator\"", "\"participant\"");
    let back = parse(&back).unwrap_err().to_string();
    assert!(back.contains("each participant would send to the group"), "{back}");
}

#[test]
fn a_digest_is_asked_for_or_not() {
    let digest = |text: &str| parse(&raw(&format!("digest = {text}")));
    assert_eq!(parse(&raw("")).unwrap().flows[0].digest, None);
    assert!(digest("true").unwrap().flows[0].digest.unwrap().value);
    assert!(!digest("false").unwrap().flows[0].digest.unwrap().value);
    let error = digest("\"yes\"").unwrap_err().to_string();
    assert!(error.contains("flow[0].digest: is a text; allowed: true, false"), "{error}");
}

#[test]
fn the_longest_unit_is_said_of_bytes_of_the_application_only() {
    let unit_max = |text: &str| parse(&raw(&format!("unit_max = {text}")));
    assert_eq!(unit_max("\"1400 B\"").unwrap().flows[0].unit_max.unwrap().value, 1_400);
    for (text, len) in [("\"1 B\"", 1), ("\"64 MiB\"", MAX_UNIT_LEN)] {
        assert_eq!(unit_max(text).unwrap().flows[0].unit_max.unwrap().value, len);
    }
    for (text, said) in [
        ("\"0 B\"", "flow[0].unit_max: a unit of 0 B; allowed: 1 B to 64 MiB"),
        ("\"65 MiB\"", "a unit of 65 MiB"),
        ("\"1400\"", "the unit is missing"),
        ("1400", "is a whole number; allowed: a number with a unit of B,"),
    ] {
        let error = unit_max(text).unwrap_err().to_string();
        assert!(error.starts_with("movie.toml:7: ") && error.contains(said), "{error}");
    }
    assert_eq!(
        problem("playout", "unit_max = \"1 kB\"\nplayout"),
        "movie.toml:13: flow[0].unit_max: the units of the source at line 9 are known; \
         allowed: only with source = { raw = true } or { access = … }"
    );
}

#[test]
fn the_path_is_read_with_its_figures() {
    let path = |text: &str| parse(&format!("[path]\n{text}\n{}", raw("")));
    let full = "assume = \"wireless\"\nrate = \"4 Mbit/s\"\ndelay = \"5 ms\"\njitter = \"1 ms\"\n\
                loss = \"1 %\"\nburst = 2.5";
    let read = path(full).unwrap().path.unwrap();
    assert_eq!((read.line, read.preset), (1, Some(crate::PathPreset::Wireless)));
    assert_eq!((read.rate_bps, read.delay_ns), (Some(4_000_000), Some(5_000_000)));
    assert_eq!((read.jitter_ns, read.loss_ppb), (Some(1_000_000), Some(10_000_000)));
    assert_eq!(read.burst_milli, Some(2_500));
    assert_eq!(path("loss = 0.5").unwrap().path.unwrap().loss_ppb, Some(500_000_000));
    assert_eq!(path("").unwrap().path.unwrap().value, crate::PathAssumption::default());
    for (text, said) in [
        ("assume = \"wifi\"", "path.assume: \"wifi\" is not known; allowed: \"loopback\", \"lan\""),
        ("lose = 0", "path.lose: unknown key (did you mean \"loss\"?); allowed: assume, rate,"),
        ("rate = \"0 bit/s\"", "path.rate: \"0 bit/s\" is out of range; allowed: a number with"),
        ("rate = 5", "path.rate: is a whole number"),
        ("delay = \"2 h\"", "path.delay: \"2 h\" is not a duration"),
        ("loss = 1.5", "path.loss: \"1.5\" is out of range"),
        ("burst = \"3\"", "path.burst: is a text; allowed: a number from 1 to 1000"),
        ("burst = 0", "path.burst: \"0\" is out of range; allowed: a number from 1 to 1000 with"),
        ("burst = 1.0005", "path.burst: \"1.0005\" is not a run"),
    ] {
        let error = path(text).unwrap_err();
        assert_eq!(error.problems()[0].line, 2, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    let inline = parse(&format!("path = 5\n{}", raw(""))).unwrap_err().to_string();
    assert!(inline.contains("path: is a whole number; allowed: a table of assume"), "{inline}");
}

#[test]
fn keys_that_contradict_each_other_are_told_with_both_lines() {
    assert_eq!(
        problem("playout = \"100 ms\"", "playout = \"200 ms\""),
        "movie.toml:13: flow[0].playout: 200 ms is above attributes.delay.max = 150 ms at line 16; \
         allowed: a playout within the bounds of the delay"
    );
    assert!(
        problem("priority = 5", "deadline = \"90 ms\"").contains("deadline.max = 90 ms at line 19")
    );
    let small = "unit_max = \"1 kB\"\n[flow.attributes]\nframe_rate = \"100 /s\"\n\
                 throughput = { min = \"801 kbit/s\" }";
    assert_eq!(
        parse(&raw(small)).unwrap_err().to_string(),
        "movie.toml:10: flow[0].attributes.throughput: min = 801 kbit/s is above the 800 kbit/s of \
         frame_rate.max at line 9 with unit_max at line 7; allowed: a min that units so small and \
         so rare can reach"
    );
    assert!(parse(&raw(&small.replace("801", "800"))).is_ok());
    assert!(parse(&raw(&small.replace("frame_rate = \"100 /s\"\n", ""))).is_ok());
    for nothing in ["throughput.max = \"0 bit/s\"", "frame_rate = \"0 /s\""] {
        let error = parse(&raw(&format!("attributes.{nothing}"))).unwrap_err().to_string();
        assert!(error.contains(": a flow with this max sends nothing; allowed: a max"), "{error}");
    }
    let raw_playout = raw("playout = \"1 s\"\nattributes.delay = \"150 ms\"");
    assert!(parse(&raw_playout).is_ok(), "nothing is played");
}

fn flows(count: usize, extra: &str) -> String {
    let mut text = "[session]\nname = \"many\"\n".to_owned();
    for i in 0..count {
        text +=
            &format!("[[flow]]\nname = \"f{i}\"\nfrom = \"creator\"\nsource = {{ raw = true }}\n");
        text += &format!("graph = []\ntransport = \"udp\"\n{extra}\n");
    }
    text
}

#[test]
fn the_limits_hold_at_their_ends_and_no_further() {
    assert_eq!(parse(&flows(MAX_FLOWS, "")).unwrap().flows.len(), MAX_FLOWS);
    let error = parse(&flows(MAX_FLOWS + 1, "")).unwrap_err().to_string();
    assert!(error.contains("flow: has 65 elements; allowed: 1 to 64"), "{error}");

    let graph = |count| flows(1, "").replace("[]", &format!("{:?}", vec!["m"; count]));
    assert_eq!(
        parse(&graph(MAX_MODULES)).unwrap().flows[0].graph.as_ref().unwrap().len(),
        MAX_MODULES
    );
    assert!(parse(&graph(MAX_MODULES + 1)).unwrap_err().to_string().contains("33 elements"));

    let params = |count: usize| {
        let params: String = (0..count).map(|i| format!(", p{i} = {i}")).collect();
        flows(1, "").replace("[]", &format!("[{{ module = \"m\"{params} }}]"))
    };
    assert!(parse(&params(MAX_PARAMS)).is_ok());
    assert!(
        parse(&params(MAX_PARAMS + 1)).unwrap_err().to_string().contains("too many parameters")
    );

    let attributes =
        "attributes = { order = \"any\", cpu.max = 1, loss.max = 0, delay.weight = 1 }";
    assert!(parse(&flows(64, attributes)).is_ok());
    let five = attributes.replace(" }", ", priority = 1 }");
    let error = parse(&flows(52, &five)).unwrap_err().to_string();
    assert!(error.contains("the flows have 260 attributes; allowed: at most 256"), "{error}");

    let exact = flows(1, "") + &"#".repeat(MAX_FILE_LEN - flows(1, "").len());
    assert!(parse(&exact).is_ok());
    let error = parse(&(exact + "#")).unwrap_err().to_string();
    assert_eq!(error, "movie.toml:1:1: the file has 1048577 bytes; allowed: at most 1048576");
    let text = problem("\"60 ms\"", &format!("\"{}\"", "x".repeat(1_025)));
    assert!(text.ends_with("has 1025 bytes; allowed: at most 1024") && text.len() < 200, "{text}");
}

#[test]
fn tables_in_every_way_of_toml_are_the_same() {
    let dotted = r#"
session.name = "x"
flow = [{ name = "f", from = "creator", source.raw = true, graph = ["m"], transport = "tcp",
          attributes.delay.max = "1 mm" }]
"#;
    let error = parse(dotted).unwrap_err().to_string();
    assert!(error.starts_with("movie.toml:4: flow[0].attributes.delay.max: \"1 mm\""), "{error}");
    let file = parse(&dotted.replace("mm", "ms")).unwrap();
    assert_eq!(file.flows[0].attributes.len(), 1);
    assert_eq!(file.flows[0].source.value, Source::Raw);
    assert_eq!(file.flows[0].source.line, 3);
}

#[test]
fn paths_lead_from_the_folder_of_the_file() {
    let resolve =
        |origin: &str, path: &str| SessionFile::parse(FLOW, origin).unwrap().resolve(path);
    assert_eq!(resolve("conf/movie.toml", "movie.avi"), Path::new("conf/movie.avi"));
    assert_eq!(resolve("movie.toml", "movie.avi"), Path::new("movie.avi"));
    assert_eq!(resolve("conf/movie.toml", "/srv/a.avi"), Path::new("/srv/a.avi"));
    assert_eq!(resolve("", "movie.avi"), Path::new("movie.avi"));
}

#[test]
fn large_hostile_texts_are_refused_in_bounded_space() {
    let open = "[".repeat(MAX_FILE_LEN);
    let keys: String = (0..100_000).map(|i| format!("k{i}=1\n")).collect();
    let nested = "flow.".repeat(MAX_FILE_LEN / 5) + "x";
    let braces = "flow = ".to_owned() + &"{a=".repeat(MAX_FILE_LEN / 3 - 10);
    let numbers = format!("flow=[{}]", "1,".repeat(MAX_FILE_LEN / 2 - 10));
    for text in [open, keys, nested, braces, numbers] {
        let errors = parse(&text).unwrap_err();
        let len = errors.to_string().len();
        assert!(len < 100_000, "{len} bytes of problems for {:?}", text.get(..20));
    }
}

#[test]
fn places_are_found_in_bounded_steps_however_many_empty_lines_follow() {
    let params: String = (0..MAX_PARAMS).map(|i| format!(",p{i}=1")).collect();
    let graph = format!("{{module=\"m\"{params}}},").repeat(MAX_MODULES);
    // 130,000 places: were the end of the text looked for at each, this would take minutes.
    let text = flows(MAX_FLOWS, "").replace("[]", &format!("[{graph}]"));
    let text = format!("{text}{}", "\n".repeat(MAX_FILE_LEN - text.len()));
    let file = parse(&text).unwrap();
    let last = file.flows.last().unwrap().graph.as_ref().unwrap();
    assert_eq!(last[0].params.len(), MAX_PARAMS);
    assert_eq!(text.lines().nth(last.line as usize - 1).unwrap().find("[{module"), Some(8));
}

#[test]
fn of_a_file_with_mistakes_the_rest_is_there_with_the_numbers_of_its_flows() {
    let flow = |name: &str, from: &str| {
        format!("[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nsource = {{ raw = true }}\n")
    };
    let flows = [flow("a", "creator"), flow("b", "nobody"), flow("c", "creator")].concat();
    let text = format!("[session]\nname = \"s\"\n{flows}");
    let flawed = *SessionFile::parse_lenient(&text, "f").unwrap_err();
    assert_eq!(flawed.errors, SessionFile::parse(&text, "f").unwrap_err());
    assert_eq!((flawed.errors.problems().len(), flawed.flow_numbers), (1, vec![0, 2]));
    let rest = flawed.rest.unwrap();
    let names: Vec<&str> = rest.flows.iter().map(|flow| flow.name.value.as_str()).collect();
    assert_eq!((rest.name.value.as_str(), names), ("s", vec!["a", "c"]));
    // Without a name there are the flows; without flows, or TOML, there is nothing.
    let nameless = *SessionFile::parse_lenient(&flows, "f").unwrap_err();
    assert_eq!(nameless.rest.map(|rest| rest.flows.len()), Some(2));
    for text in ["[session]\nname = \"s\"", "[session"] {
        let nothing = *SessionFile::parse_lenient(text, "f").unwrap_err();
        assert_eq!((nothing.rest, nothing.flow_numbers), (None, Vec::new()));
    }
    assert!(SessionFile::parse_bytes_lenient(b"\xFF", "f").unwrap_err().rest.is_none());
    let right = text.replace("nobody", "creator");
    assert_eq!(SessionFile::parse_lenient(&right, "f").unwrap().flows.len(), 3);
}

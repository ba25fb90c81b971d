//! The example files of `conf/` are read, and show what can be written.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod support;

use dacapo_qos::{
    AttributeKey, AttributeNumbers, Attributes, PathPreset, Role, SessionFile, Source,
};
use support::examples;

fn example(name: &str) -> SessionFile {
    let (origin, text) = examples().into_iter().find(|(file, _)| file == name).unwrap();
    SessionFile::parse(&text, &origin).unwrap()
}

#[test]
fn every_example_is_read_and_named_as_its_file() {
    let examples = examples();
    assert!(examples.len() >= 4, "only {} examples", examples.len());
    for (origin, text) in &examples {
        let file = SessionFile::parse(text, origin).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(format!("{}.toml", file.name.value), *origin);
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{origin} has a long line");
    }
}

#[test]
fn the_examples_show_every_source_role_and_attribute() {
    let two_way = example("two-way.toml");
    let keys: Vec<_> = two_way.flows[0].attributes.entries().map(|(key, _)| key).collect();
    assert_eq!(keys, AttributeKey::ALL);
    let numbers: Vec<AttributeNumbers> = two_way.flows[0].attributes.numbers().collect();
    let back = Attributes::from_numbers(numbers).unwrap();
    assert_eq!(back, (two_way.flows[0].attributes.clone(), vec![]));
    assert_eq!(two_way.path.unwrap().preset, Some(PathPreset::Lan));
    assert_eq!(two_way.flows[0].unit_max.unwrap().value, 1_400);
    assert_eq!(two_way.flows[1].from.value, Role::Participant);
    assert_eq!(two_way.flows[1].source.value, Source::Raw);
    let radio = example("radio.toml");
    assert!(matches!(radio.flows[0].source.value, Source::File { stream: None, .. }));
    let testcard = example("testcard.toml");
    assert!(matches!(testcard.flows[0].source.value, Source::Test { duration: Some(_), .. }));
    let movie = example("movie.toml");
    assert_eq!(movie.flows.len(), 2);
    assert!(matches!(movie.flows[1].source.value, Source::File { stream: Some(_), .. }));
}

#[test]
fn the_examples_leave_the_protocol_to_the_attributes() {
    for (origin, text) in &examples() {
        let file = SessionFile::parse(text, origin).unwrap();
        for flow in &file.flows {
            assert!(flow.graph.is_none() && flow.transport.is_none(), "{origin}: {}", *flow.name);
            assert!(!flow.attributes.is_empty(), "{origin}: {}", *flow.name);
        }
    }
}

#[test]
fn the_pinned_graph_that_two_way_shows_as_a_comment_can_be_used() {
    let (_, text) = examples().into_iter().find(|(name, _)| name == "two-way.toml").unwrap();
    let shown = ["graph", "transport", "multicast"];
    let pinned = shown
        .iter()
        .fold(text, |text, key| text.replace(&format!("#   {key} = "), &format!("{key} = ")));
    let file = SessionFile::parse(&pinned, "two-way.toml").unwrap();
    assert_eq!(file.flows[0].graph.as_ref().unwrap().len(), 3);
    assert_eq!(file.flows[0].transport.as_ref().unwrap().value, "udp");
    assert_eq!(file.flows[0].multicast.unwrap().value, "239.1.2.3:5004".parse().unwrap());
}

#[test]
fn no_example_demands_what_no_module_gives() {
    for (origin, text) in &examples() {
        let file = SessionFile::parse(text, origin).unwrap();
        for flow in &file.flows {
            for key in [AttributeKey::Confidentiality, AttributeKey::Authenticity] {
                let level = flow.attributes.get(key).and_then(|asked| asked.min).unwrap_or(0);
                assert!(
                    key.format(level) == "none" || key.format(level) == "preferred",
                    "{origin}"
                );
            }
        }
    }
}

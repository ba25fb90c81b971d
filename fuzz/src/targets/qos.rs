//! What people write: session files, attributes, paths, figures with units; and attributes as a
//! peer sends them.

use crate::input::Input;
use crate::oracle;
use dacapo_lift::{Setting, Units};
use dacapo_qos::configure::{Pins, Request, Use, choose};
use dacapo_qos::{
    AttributeNumbers, Attributes, Dimension, Errors, PathAssumption, SessionFile, TextError,
};

/// A session file is the host's own and not a peer's: its reader keeps a tree of the text, with the
/// place of every value, which takes so many bytes for each byte of the file (dotted keys most).
const TREE_RATIO: usize = 1_024;

/// A session file.
pub fn session_file(data: &[u8]) {
    let received = data.len() * TREE_RATIO;
    let lenient = oracle::bounded("a session file", received, || {
        SessionFile::parse_bytes_lenient(data, "a.toml")
    });
    let strict = SessionFile::parse_bytes(data, "a.toml");
    match (&lenient, &strict) {
        (Ok(lenient), Ok(strict)) => {
            assert_eq!(lenient, strict, "two readings of one file");
            strict.flows.iter().for_each(|flow| ask(&flow.attributes, strict));
        }
        (Err(flawed), Err(errors)) => {
            assert_eq!(&flawed.errors, errors, "two readings of one file");
            check_problems(errors, data);
            if let Some(rest) = &flawed.rest {
                assert_eq!(rest.flows.len(), flawed.flow_numbers.len());
            }
        }
        _ => panic!("strict and lenient reading differ: {lenient:?}, {strict:?}"),
    }
}

/// Every problem has a place in the file and words that are safe to print.
fn check_problems(errors: &Errors, data: &[u8]) {
    let line_count = data.split(|byte| *byte == b'\n').count();
    assert!(!errors.problems().is_empty(), "wrong, and nobody says why");
    for problem in errors.problems() {
        let text = problem.to_string();
        let is_safe = !text.chars().any(|it| it.is_control() && it != '\n');
        assert!(is_safe, "a control character of the file is in its problem: {text:?}");
        assert!(problem.line as usize <= line_count + 1, "line {} of {line_count}", problem.line);
    }
}

/// Chooses a protocol; it may be refused, but not fail.
fn ask(attributes: &Attributes, session: &SessionFile) {
    let path = session.path.map_or_else(PathAssumption::default, |path| path.value).path();
    let units = Units {
        len_mean: 1_000,
        len_max: 60_000,
        per_ks: 25_000,
        divisible: false,
        is_paced: true,
    };
    let setting = Setting { bound_bps: 10_000_000, ..Setting::new(path, units) };
    let used = Use::Played { playout_ns: None };
    let request = Request::new(attributes.clone(), setting, used);
    match choose(&dacapo::catalogue(), &request, &Pins::NONE) {
        Ok(choice) => assert!(!choice.explanation.to_string().is_empty()),
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
}

/// One byte chooses: attributes in words, a path in words, attributes as numbers.
pub fn attributes(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 3 {
        0 => words(&String::from_utf8_lossy(input.rest())),
        1 => path(&String::from_utf8_lossy(input.rest())),
        _ => numbers(input),
    }
}

fn words(text: &str) {
    let read = oracle::bounded("attributes", text.len(), || Attributes::parse_text(text));
    match read {
        Ok(attributes) => {
            assert!(attributes.check().is_ok(), "{text:?} is read to what is wrong");
            let again = Attributes::from_numbers(attributes.numbers());
            assert_eq!(again, Ok((attributes, Vec::new())), "{text:?} is not its own numbers");
        }
        Err(error) => check_text_error(&error),
    }
}

fn path(text: &str) {
    match oracle::bounded("a path", text.len(), || PathAssumption::parse(text)) {
        Ok(path) => {
            let path = path.path();
            assert!(path.rate_bps > 0 && path.loss_ppb <= dacapo_qos::PPB, "{path:?}");
        }
        Err(error) => check_text_error(&error),
    }
}

fn check_text_error(error: &TextError) {
    let text = error.to_string();
    assert!(!text.chars().any(char::is_control), "not safe to print: {text:?}");
}

/// Attributes as they come in a JOIN or an OFFER: unknown keys, bounds that are none.
fn numbers(mut input: Input<'_>) {
    let mut entries = Vec::new();
    while !input.is_empty() && entries.len() < 256 {
        let (key, flags) = (u16::from(input.u8()), input.u8());
        let bound =
            |is_there: bool, input: &mut Input<'_>| is_there.then(|| input.number().cast_signed());
        entries.push(AttributeNumbers {
            key: if flags & 8 == 0 { key % 20 } else { key | 0xF000 },
            min: bound(flags & 1 != 0, &mut input),
            max: bound(flags & 2 != 0, &mut input),
            weight: (flags & 4 != 0).then(|| input.u8()),
        });
    }
    let len = entries.len() * dacapo_wire::attribute::LEN;
    let read = oracle::bounded("attributes of a peer", len, || Attributes::from_numbers(entries));
    match read {
        Ok((attributes, _)) => {
            let again = Attributes::from_numbers(attributes.numbers());
            assert_eq!(again, Ok((attributes, Vec::new())), "numbers that are not their own");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

const DIMENSIONS: [Dimension; 5] =
    [Dimension::Duration, Dimension::Rate, Dimension::Size, Dimension::Ratio, Dimension::Frequency];

/// One byte chooses the dimension, the rest is a figure with its unit.
pub fn units(data: &[u8]) {
    let mut input = Input(data);
    let kind = usize::from(input.u8()) % DIMENSIONS.len();
    let Some(&dimension) = DIMENSIONS.get(kind) else { return };
    let bytes = input.rest();
    let text = String::from_utf8_lossy(bytes);
    let read = oracle::bounded("a figure", text.len(), || dimension.parse(&text));
    match read {
        Ok(value) => {
            let printed = dimension.format(value);
            assert_eq!(dimension.parse(&printed), Ok(value), "{text:?} is printed as {printed:?}");
        }
        Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error}"),
    }
    if let Some(value) = bytes.first_chunk().copied().map(u64::from_be_bytes) {
        let printed = dimension.format(value);
        if let Ok(again) = dimension.parse(&printed) {
            assert_eq!(again, value, "printed as {printed:?}");
        }
    }
}

/// The session files that are shipped, and files with one mistake each.
pub fn session_file_seeds() -> Vec<Vec<u8>> {
    let shipped = [
        include_str!("../../../conf/movie.toml"),
        include_str!("../../../conf/radio.toml"),
        include_str!("../../../conf/testcard.toml"),
        include_str!("../../../conf/two-way.toml"),
    ];
    let flow = "name = \"a\"\n[[flow]]\nname = \"f\"\nfrom = \"creator\"\n";
    let written = [
        "name = \"bytes\"\n[path]\npreset = \"wireless\"\nloss = \"1 %\"\n[[flow]]\n\
         name = \"f\"\nfrom = \"participant\"\nsource = \"raw\"\nunit_max = \"1 kB\"\n\
         graph = [\"segment\", { module = \"sequence\", hold = \"60 ms\" }, \"checksum\"]\n\
         transport = \"udp\"\nbound = \"5 Mbit/s\"\nplayout = \"120 ms\"\n\
         [flow.attributes]\ndelay = { max = \"150 ms\", weight = 0.5 }\nloss = 0\n"
            .to_owned(),
        format!("{flow}source = \"nowhere\"\n"),
        format!("{flow}sourc = \"raw\"\n"),
        "name = \"unfinished".to_owned(),
        "\u{feff}name = 3".to_owned(),
        String::new(),
    ];
    shipped.iter().map(|text| text.as_bytes().to_vec()).chain(written.map(Vec::from)).collect()
}

/// Words and numbers.
pub fn attributes_seeds() -> Vec<Vec<u8>> {
    let words = [
        "delay<=150ms@0.5",
        "throughput>=4Mbit/s,order=ordered,loss=0",
        "reliable",
        "reliable,delay@0.5",
        "jitter≤20ms, integrity=checked",
        "delay=",
    ];
    let paths = ["lan", "wireless,loss=1%,delay=20ms", "rate=5Mbit/s,burst=3", "moon"];
    let mut seeds: Vec<Vec<u8>> =
        words.iter().map(|text| [&[0], text.as_bytes()].concat()).collect();
    seeds.extend(paths.iter().map(|text| [&[1], text.as_bytes()].concat()));
    seeds.push(vec![2, 1, 1, 0xC2, 0x10, 2, 7, 9, 50, 200, 3, 8]);
    seeds
}

/// Figures of every dimension.
pub fn units_seeds() -> Vec<Vec<u8>> {
    let figures = [
        (0, "150 ms"),
        (0, "1.5s"),
        (1, "4 Mbit/s"),
        (2, "64 KiB"),
        (3, "0.5 %"),
        (3, "1e-3"),
        (4, "29.97 /s"),
        (4, "25 Hz"),
        (0, "18446744073709551615ns"),
    ];
    figures.iter().map(|(kind, text)| [&[*kind], text.as_bytes()].concat()).collect()
}

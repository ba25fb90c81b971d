//! Words for and from a session: its address, commands to media, and their answers.

use crate::input::Input;
use crate::oracle;
use dacapo::{Answer, MediaCommand, Uri};

/// One byte chooses: an address, a command in words, a command in bytes, an answer in bytes.
pub fn words(data: &[u8]) {
    let mut input = Input(data);
    let (kind, bytes) = (input.u8() % 4, input.rest());
    let text = String::from_utf8_lossy(bytes);
    match kind {
        0 => match oracle::bounded("an address", text.len(), || text.parse::<Uri>()) {
            Ok(uri) => {
                let printed = uri.to_string();
                assert_eq!(printed.parse::<Uri>().as_ref(), Ok(&uri), "{text:?} as {printed:?}");
            }
            Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error}"),
        },
        1 => match oracle::bounded("a command", text.len(), || text.parse::<MediaCommand>()) {
            Ok(command) => {
                assert_eq!(command.to_string().parse::<MediaCommand>().as_ref(), Ok(&command));
                assert_eq!(MediaCommand::decode(&command.encode()).as_ref(), Ok(&command));
            }
            Err(fault) => assert!(!fault.to_string().is_empty()),
        },
        2 => match oracle::bounded("a command", bytes.len(), || MediaCommand::decode(bytes)) {
            Ok(command) => {
                assert_eq!(command.encode()[..], bytes[..], "a command has two encodings");
            }
            Err(fault) => assert!(!fault.to_string().is_empty()),
        },
        _ => match oracle::bounded("an answer", bytes.len(), || Answer::decode(bytes)) {
            Ok(answer) => {
                assert_eq!(answer.encode(), bytes, "an answer has two encodings");
                assert!(!answer.to_string().chars().any(char::is_control), "{answer}");
            }
            Err(fault) => assert!(!fault.to_string().is_empty()),
        },
    }
}

/// Of each kind some.
pub fn words_seeds() -> Vec<Vec<u8>> {
    let addresses = [
        "dacapo://localhost/movie",
        "dacapo://[2001:db8::1]:19980/movie",
        "DACAPO://10.0.0.1:7/a.b-c_d",
        "dacapo://[::1%eth0]/x",
        "http://example.org/",
    ];
    let commands = ["play", "FF", "fps 12.5", "fps nominal", "status", "pause"];
    let mut seeds: Vec<Vec<u8>> =
        addresses.iter().map(|text| [&[0], text.as_bytes()].concat()).collect();
    seeds.extend(commands.iter().map(|text| [&[1], text.as_bytes()].concat()));
    seeds.push([&[2], &MediaCommand::Fps(12_500).encode()[..]].concat());
    seeds.push([&[2], &MediaCommand::Play.encode()[..]].concat());
    seeds.push([&[3], Answer::default().encode().as_slice()].concat());
    seeds
}

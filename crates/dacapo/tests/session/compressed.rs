//! Units in fewer bytes: equal, in order, however large, over datagrams and where they are secret.

use crate::world::{WINDOW, active_pair, watched};

/// A flow with this graph.
fn session_file(graph: &str, transport: &str, asked: &str) -> String {
    format!(
        "[session]\nname = \"compressed\"\n[[flow]]\nname = \"there\"\nfrom = \"creator\"\n\
         source = {{ raw = true }}\nunit_max = \"100 kB\"\ndigest = true\ngraph = [{graph}]\n\
         transport = \"{transport}\"\nbound = \"200 Mbit/s\"\n[flow.attributes]\n{asked}\n"
    )
}

/// Lines that say their number, of any length; every fourth is noise.
fn unit(number: usize) -> Vec<u8> {
    let len = [1, 40, 1_300, 2_000, 30_000, 99_000, 100_000][number % 7];
    let line = |at: usize| match number % 4 {
        3 => (number * 31 + at).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec(),
        _ => format!("unit {number}, line {at}: nothing new\n").into_bytes(),
    };
    let mut bytes: Vec<u8> = (0..).flat_map(line).take(len).collect();
    bytes.truncate(len);
    bytes
}

#[test]
fn compressed_units_of_every_length_arrive_as_they_were() {
    let trusted = "{ module = \"lz4\", trusted = 1 }, \"segment\"";
    let flows = [
        ("\"lz4\", \"segment\", \"sequence\", \"checksum\"", "udp", ""),
        ("\"use-by\", { module = \"zstd\", level = 3 }, \"segment\", \"arq-sr\"", "udp", ""),
        (trusted, "quic", "confidentiality = \"required\""),
        ("\"zstd\", \"segment\"", "tcp", ""),
    ];
    for (graph, transport, asked) in flows {
        let file = session_file(graph, transport, asked);
        watched(move || {
            let (creator, participant) = active_pair(&file);
            let count = 200;
            let window = WINDOW / 8;
            for number in 0..count + window {
                if number < count {
                    creator.sender("there").unwrap().send(&unit(number)).unwrap();
                }
                if let Some(number) = number.checked_sub(window) {
                    let came = participant.receiver("there").unwrap().recv().unwrap();
                    assert!(came == Some(unit(number)), "{file}: unit {number}");
                }
            }
            creator.sender("there").unwrap().finish().unwrap();
            assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), None);
            let (here, there) = (creator.close().unwrap(), participant.close().unwrap());
            for account in [here, there] {
                assert!(account.is_complete(), "{file}: {account}");
                assert_eq!(account.flows[0].same_bytes, Some(true), "{file}");
            }
        });
    }
}

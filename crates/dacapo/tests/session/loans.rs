//! Long units are lent where they came in: by each way of receiving, over each transport, and their
//! memory comes back.

use crate::world::{active_pair, watched};
use dacapo::{Deadline, Received};

const FILE: &str = r#"
[session]
name = "long"

[[flow]]
name = "there"
from = "creator"
source = { raw = true }
graph = GRAPH
transport = "TRANSPORT"
unit_max = "MOST B"
bound = "2 Gbit/s"
"#;

fn file(transport: &str, graph: &str, most: usize) -> String {
    let file = FILE.replace("TRANSPORT", transport).replace("GRAPH", graph);
    file.replace("MOST", &most.to_string())
}

/// From short ones, which are copied, to those of several trains.
const LENS: [usize; 8] = [0, 100, 4_095, 4_096, 20_000, 61_000, 100_000, 250_000];

fn body(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 31 + at * 7 + at / 256) as u8).collect()
}

fn check(transport: &str, graph: &str, most: usize, pieces_of_most: std::ops::Range<usize>) {
    let file = file(transport, graph, most);
    watched(move || {
        let (creator, participant) = active_pair(&file);
        let mut there = creator.sender("there").unwrap();
        let mut here = participant.receiver("there").unwrap();
        let mut pieces_most = 0;
        for round in 0..40 {
            let lens = LENS.into_iter().filter(|&len| len <= most);
            for (number, len) in lens.enumerate() {
                let sent = body(number, len);
                there.send(&sent).unwrap();
                match round % 4 {
                    0 => {
                        let looked = here.recv_with(|unit| {
                            assert_eq!((unit.len(), unit.is_empty()), (len, len == 0));
                            let count = unit.pieces().filter(|piece| !piece.is_empty()).count();
                            let pieces: Vec<u8> = unit.pieces().flatten().copied().collect();
                            (pieces, unit.to_vec(), count)
                        });
                        let (pieces, whole, count) = looked.unwrap().unwrap();
                        assert!(pieces == sent && whole == sent, "{len}");
                        pieces_most = pieces_most.max(count);
                    }
                    1 => assert!(here.recv().unwrap().unwrap() == sent, "{len}"),
                    2 => {
                        let mut into = vec![9; len + 1];
                        assert_eq!(here.recv_into(&mut into).unwrap(), Some(len));
                        assert!(into[..len] == sent && into[len] == 9, "{len}");
                    }
                    _ => {
                        let soon = Deadline::after(std::time::Duration::from_secs(10));
                        let seen = here.recv_with_by(soon, |unit| *unit == *sent).unwrap();
                        assert_eq!(seen, Received::Unit(true), "{len}");
                    }
                }
            }
        }
        assert!(pieces_of_most.contains(&pieces_most), "{pieces_most} pieces");
        assert_eq!(here.recv_with_by(Deadline::PAST, |_| ()).unwrap(), Received::Nothing);
        there.finish().unwrap();
        assert_eq!(here.recv_with_by(Deadline::NEVER, |_| ()).unwrap(), Received::End);
        let account = creator.close().unwrap();
        assert!(account.is_complete(), "{account}");
    });
}

#[test]
fn long_units_over_udp_are_seen_in_the_pieces_that_came() {
    check("udp", r#"["segment", "sequence"]"#, 250_000, 20..1_000);
}

#[test]
fn long_units_over_tcp_are_seen_in_the_pieces_that_came() {
    check("tcp", "[]", 61_000, 1..3);
    check("tcp", r#"["segment"]"#, 250_000, 2..100);
}

#[test]
fn long_units_over_quic_and_xtp_come_whole_by_every_call() {
    check("quic", "[]", 61_000, 1..1_000);
    check("xtp", "[]", 61_000, 1..1_000);
}

#[test]
fn units_that_many_threads_hold_lend_memory_and_flows_go_on_without_it() {
    watched(|| {
        let (creator, participant) = active_pair(&file("tcp", "[]", 60_000));
        let mut there = creator.sender("there").unwrap();
        let here = participant.receiver("there").unwrap();
        // As long as all hold theirs, each of them waits for the next.
        let all = std::sync::Barrier::new(16);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                let (mut here, all) = (here.clone(), &all);
                scope.spawn(move || {
                    for _ in 0..20 {
                        let seen = here.recv_with(|unit| {
                            all.wait();
                            let number = usize::from(unit[0]);
                            unit.len() == 60_000 && unit.iter().all(|&byte| byte as usize == number)
                        });
                        assert_eq!(seen.unwrap(), Some(true));
                    }
                });
            }
            (0..16 * 20).for_each(|number| there.send(&[number as u8; 60_000]).unwrap());
        });
        there.finish().unwrap();
        assert!(creator.close().unwrap().is_complete());
    });
}

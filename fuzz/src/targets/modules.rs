//! Every graph of modules as hostile packets come up through it.

use crate::input::Input;
use crate::oracle;
use dacapo_heap::{Use, measure};
use dacapo_lift::conformance::{Bounds, End};
use dacapo_lift::{Graph, Node, Params, Runner};
use dacapo_packet::Layout;
use std::time::Duration;

/// The graphs that are tried, from the application down.
pub(super) const GRAPHS: [&[&str]; 42] = [
    &[],
    &["segment"],
    &["sequence"],
    &["checksum"],
    &["repeat"],
    &["segment", "sequence"],
    &["segment", "checksum"],
    &["sequence", "repeat"],
    &["sequence", "checksum"],
    &["segment", "sequence", "checksum"],
    &["segment", "sequence", "repeat"],
    &["segment", "sequence", "repeat", "checksum"],
    &["fec-rs"],
    &["sequence", "fec-rs"],
    &["segment", "sequence", "repeat", "fec-rs", "checksum"],
    &["arq-nak"],
    &["segment", "sequence", "arq-nak", "checksum"],
    &["sequence", "arq-nak", "repeat", "fec-rs"],
    &["arq-sr"],
    &["segment", "arq-sr", "checksum"],
    &["use-by", "segment", "arq-nak in order", "checksum"],
    &["dedup", "repeat"],
    &["segment", "xxh3"],
    &["sequence", "sum16"],
    &["fec-rlc"],
    &["segment", "sequence", "fec-rlc", "checksum"],
    &["latest"],
    &["latest", "segment", "repeat", "checksum"],
    &["fec-xor"],
    &["segment", "sequence", "fec-xor", "interleave", "checksum"],
    &["lz4"],
    &["use-by", "lz4", "segment", "checksum"],
    &["zstd"],
    &["latest", "zstd", "segment"],
    &["rate-burst"],
    &["use-by", "rate-burst", "segment", "arq-sr"],
    &["credit"],
    &["window", "segment", "arq-sr"],
    &["arq-gbn"],
    &["segment", "arq-gbn", "checksum"],
    &["nak-group"],
    &["segment", "nak-group", "checksum"],
];

/// Behind the name of a module that is to hand packets over in order.
const IN_ORDER: &str = " in order";
/// The modules that check what comes.
const CHECKS: [&str; 3] = ["checksum", "xxh3", "sum16"];

const PATH_HEAD: usize = 5;

/// The longest datagram of what is built here.
pub(super) const DATAGRAM_LEN: usize = 200;

/// The longest unit.
pub(super) const UNIT_LEN_MAX: usize = 4_000;

/// One end of a flow with these modules.
pub(super) fn end(names: &[&str]) -> End {
    try_end(names).expect("the graphs of GRAPHS can be built")
}

/// The same; none where these modules make no graph.
pub(super) fn try_end(names: &[&str]) -> Option<End> {
    let catalogue = dacapo::catalogue();
    let node = |name: &&str| {
        let (name, is_ordered) =
            name.strip_suffix(IN_ORDER).map_or((*name, false), |it| (it, true));
        let spec = catalogue.by_name(name)?.spec;
        let mut params = Params::new();
        spec.orders.filter(|_| is_ordered).into_iter().for_each(|number| params.set(number, 1));
        Some(Node { module: spec.id, params })
    };
    let graph = Graph { nodes: names.iter().map(node).collect::<Option<_>>()? };
    let bounds = Bounds {
        path_head: PATH_HEAD,
        datagram_len: DATAGRAM_LEN,
        unit_len_max: UNIT_LEN_MAX,
        pool_bytes: 4 << 20,
        seed: 1,
    };
    End::build(&catalogue, &graph, &bounds)
}

/// One byte chooses the graph; then packets, trains, controls, units down, and time.
pub fn up(data: &[u8]) {
    let mut input = Input(data);
    let names = GRAPHS.get(usize::from(input.u8()) % GRAPHS.len()).copied().unwrap_or_default();
    let mut end = end(names);
    // Who sends can compute a checksum, too.
    let check = CHECKS.into_iter().find(|check| names.contains(check));
    let mut seal = check.map(|check| self::end(&[check]));
    let mut seals = move |bytes: &[u8]| {
        let Some(seal) = &mut seal else { return bytes.to_vec() };
        seal.feed(bytes);
        let sealed = seal.wire().concat();
        if sealed.is_empty() { bytes.to_vec() } else { sealed }
    };
    while !input.is_empty() {
        let step = Step::read(&mut input, &mut seals);
        handle(step, &mut end, names);
        end.wire();
        end.units();
        end.runner.take_told();
    }
    assert!(end.pool.stats().bytes <= 4 << 20, "the pool exceeds its budget");
    end.flush();
}

/// Lets a step happen, which may allocate what its bytes justify. Bodies are the pool's, which has
/// a budget of its own.
pub(super) fn handle(step: Step<'_>, end: &mut End, names: &[&str]) {
    let (received, before) = (step.len(), end.pool.stats().bytes);
    let ((), used) = measure(|| step.apply(end));
    let bodies = end.pool.stats().bytes.saturating_sub(before) as u64;
    let allocated_bytes = used.allocated_bytes.saturating_sub(bodies);
    oracle::check(&names.join("-"), received, Use { allocated_bytes, ..used });
}

/// Something that happens to a receiver.
pub(super) enum Step<'a> {
    Packet(Vec<u8>),
    Train { segment: usize, bytes: &'a [u8] },
    Control { module: usize, message: &'a [u8] },
    Answer { module: usize, answer: &'a [u8] },
    Feed(&'a [u8]),
    Pass(Duration),
    Drain,
}

impl<'a> Step<'a> {
    fn read(input: &mut Input<'a>, seal: &mut impl FnMut(&[u8]) -> Vec<u8>) -> Self {
        match input.u8() % 8 {
            0 | 1 => Self::Packet(input.piece().to_vec()),
            2 | 3 => Self::Packet(seal(input.piece())),
            4 => Self::Train { segment: usize::from(input.u8()).max(1), bytes: input.piece() },
            5 => Self::Control { module: usize::from(input.u8()), message: input.piece() },
            6 => Self::Feed(input.piece()),
            _ => match input.u8() {
                255 => Self::Drain,
                254 => Self::Answer { module: usize::from(input.u8()), answer: input.piece() },
                time => Self::Pass(Duration::from_millis(u64::from(time) * 5)),
            },
        }
    }

    /// How many bytes come with it.
    fn len(&self) -> usize {
        match self {
            Self::Packet(bytes) => bytes.len(),
            Self::Train { bytes, .. }
            | Self::Control { message: bytes, .. }
            | Self::Answer { answer: bytes, .. }
            | Self::Feed(bytes) => bytes.len(),
            Self::Pass(_) | Self::Drain => 0,
        }
    }

    fn apply(self, end: &mut End) {
        match self {
            Self::Packet(bytes) => drop(end.handle_bytes(&bytes)),
            Self::Train { segment, bytes } => {
                let layout = Layout { head: 0, tail: 0, segment, segmented: true };
                if bytes.len().div_ceil(segment) > dacapo_packet::TRAIN_SEGMENTS_MAX {
                    return;
                }
                if let Ok(packet) = end.pool.alloc_train(&layout, bytes.len()) {
                    end.pool.write_payload(&packet, 0, bytes);
                    end.handle(packet);
                }
            }
            Self::Control { module, message } => {
                let answer = end.with(|runner, around| runner.control(around, module, message));
                assert!(module < end.runner.modules().count() || answer.is_err(), "nobody answers");
                assert!(!answer.is_ok_and(|it| it.len() > 4_096), "a long answer");
            }
            Self::Answer { module, answer } => {
                end.with(|runner, around| runner.handle_answer(around, module, Ok(answer)));
            }
            Self::Feed(unit) => drop(end.feed(unit)),
            Self::Pass(time) => end.pass(time),
            Self::Drain => end.with(Runner::drain),
        }
    }
}

/// What an honest sender of each graph says, as packets of a script.
pub fn up_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, names) in GRAPHS.iter().enumerate() {
        let mut sender = end(names);
        let mut script = vec![number as u8];
        for len in [20, 60, 330] {
            let is_fed = sender.feed(&vec![len as u8; len]);
            let mut wire = sender.wire();
            if is_fed && wire.is_empty() {
                // It waits for others.
                sender.with(Runner::drain);
                wire = sender.wire();
            }
            for datagram in wire {
                script.extend_from_slice(&[0, datagram.len() as u8]);
                script.extend_from_slice(&datagram);
            }
            script.extend_from_slice(&[7, 9]);
        }
        script.extend_from_slice(&[5, 0, 9, 1, 0, 0, 0, 0, 0, 1, 0, 0, 7, 255]);
        seeds.push(script);
        sender.flush();
    }
    seeds
}

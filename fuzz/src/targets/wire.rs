//! Records, messages and graphs: what comes on the control streams.

use super::samples;
use crate::input::Input;
use crate::oracle;
use dacapo_base::{Random, Time, earlier};
use dacapo_lift::{Context, Graph, Needs, Node, Offer, Params, Runner, check};
use dacapo_packet::Pool;
use dacapo_wire::graph::{GraphError, GraphForm};
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::record::{EncodeError, HEADER_LEN, Reader, RecordError};

/// What a stream says: how many records, and the error that ended it. `each` sees every message.
fn read_all(
    bytes: &[u8],
    mut piece_len: impl FnMut() -> usize,
    mut each: impl FnMut(Message),
) -> Result<bool, RecordError> {
    let mut reader = Reader::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let len = piece_len().clamp(1, reader.room().max(1)).min(rest.len());
        let (piece, after) = rest.split_at(len);
        reader.push(piece)?;
        rest = after;
        while let Some(message) = reader.next()? {
            each(message);
        }
        assert!(reader.room() > 0, "a reader without records has room");
    }
    Ok(reader.is_between_records())
}

/// The first byte chooses the pieces, the rest is the stream.
pub fn record(data: &[u8]) {
    let mut input = Input(data);
    let (step, bytes) = (usize::from(input.u8()), input.rest());
    let mut count = 0_usize;
    let whole = oracle::bounded("a stream of records", bytes.len(), || {
        read_all(bytes, || usize::MAX, |_| count += 1)
    });
    let (mut messages, mut pieces) = (Vec::new(), 0_usize);
    let cut = read_all(
        bytes,
        || {
            pieces += 1;
            1 + (pieces * step) % 61
        },
        |message| messages.push(message),
    );
    assert_eq!(whole, cut, "the pieces in which a stream comes change what it says");
    assert_eq!(count, messages.len(), "the pieces change how many records there are");
    messages.iter().for_each(comes_back);
}

/// What was decoded has bytes, and they say the same.
fn comes_back(message: &Message) {
    let mut bytes = Vec::new();
    match message.encode(&mut bytes) {
        Ok(()) => {}
        // A character that is made safe may be longer than it was.
        Err(EncodeError::TooLong { .. }) => return,
        Err(error) => panic!("what was decoded cannot be encoded: {error}: {message:?}"),
    }
    let body = bytes.get(HEADER_LEN..).unwrap_or_default();
    let again = Message::decode(message.kind().code(), body);
    assert_eq!(again.as_ref(), Ok(message), "it decodes to another message");
    let mut twice = Vec::new();
    message.encode(&mut twice).expect("it was encoded once");
    assert_eq!(bytes, twice, "one message has two encodings");
}

/// The first byte chooses the kind, the rest is the body.
pub fn message(data: &[u8]) {
    let mut input = Input(data);
    let kinds = MessageKind::ALL;
    let Some(&kind) = kinds.get(usize::from(input.u8()) % kinds.len()) else { return };
    let body = input.rest();
    let decoded = oracle::bounded(kind.name(), body.len(), || Message::decode(kind.code(), body));
    match decoded {
        Ok(message) => {
            assert_eq!(message.kind(), kind);
            comes_back(&message);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The first two bytes are a length of datagrams, the rest is a graph.
pub fn graph(data: &[u8]) {
    let mut input = Input(data);
    let (datagram_len, bytes) = (usize::from(input.u16()), input.rest());
    let decoded = oracle::bounded("a graph", bytes.len(), || GraphForm::decode(bytes));
    let Ok(form) = decoded else {
        let error = decoded.map(|_| ()).expect_err("it was one");
        return assert!(!error.to_string().is_empty());
    };
    let mut again = Vec::new();
    assert_eq!(form.encode(&mut again), Ok(()), "{form:?}");
    assert_eq!(again, bytes, "a graph has two encodings");
    if form.is_line() {
        run_if_legal(&form, datagram_len, bytes.len());
    }
}

/// What the check passes is built, and carries a unit from one end to the other.
fn run_if_legal(form: &GraphForm, datagram_len: usize, len: usize) {
    const PATH_HEAD: usize = 5;
    const UNIT_LEN_MAX: usize = 400;
    let catalogue = dacapo::catalogue();
    let node = |node: &dacapo_wire::graph::NodeForm| {
        let mut params = Params::new();
        node.params.iter().for_each(|(number, value)| params.set(*number, *value));
        Node { module: node.module, params }
    };
    let graph = Graph { nodes: form.nodes.iter().map(node).collect() };
    for transport in catalogue.transports() {
        let datagram_len = datagram_len.min(dacapo_packet::TRAIN_BYTES_MAX);
        let (name, properties) = (transport.name, transport.properties);
        let offer = Offer { transport: name, properties, datagram_len, path_head: PATH_HEAD };
        let needs = Needs { unit_len_max: UNIT_LEN_MAX };
        // The words of a refusal count too.
        let legal = oracle::bounded("the check of a graph", len, || {
            check(&catalogue, &graph, &offer, needs).map_err(|illegal| illegal.to_string())
        });
        if legal.is_err() {
            continue;
        }
        let build = || catalogue.build(&graph, PATH_HEAD, datagram_len, UNIT_LEN_MAX);
        let (here, there) = (build(), build());
        let (Some(here), Some(there)) = (here, there) else {
            panic!("a graph that is legal cannot be built: {graph:?} for {datagram_len}");
        };
        carry(here, there);
    }
}

/// How often both ends may say something until a unit has come that is sent again: it has no more
/// packets than bytes, and who goes back to what is missing takes one at a time.
const ROUNDS_MAX: usize = 512;

/// What one end has for the network comes to the other.
fn pass(around: &mut Context<'_>, from: &mut Runner, to: &mut Runner) {
    for packet in from.take_down().drain().collect::<Vec<_>>() {
        for index in 0..packet.segment_count() {
            let bytes = around.pool.segment(&packet, index).to_vec();
            let arrived = around.pool.packet_from(0, &bytes, 0).expect("room for a datagram");
            to.handle_up(around, arrived);
            to.run(around);
        }
        around.pool.free(packet);
    }
}

/// Both ends do what they waited for, and may send again what they want to.
fn ends_at_their_times(around: &mut Context<'_>, down: &mut Runner, up: &mut Runner) {
    for end in [down, up] {
        if end.next_deadline().is_some_and(|at| at <= around.now) {
            end.handle_timeout(around);
        }
        if end.wants_room() {
            end.handle_room(around, dacapo_packet::TRAIN_BYTES_MAX);
        }
        end.run(around);
    }
}

fn carry(here: dacapo_lift::Built, there: dacapo_lift::Built) {
    let (mut pool, mut random) = (Pool::new(1 << 20), Random::from_number(1));
    let (layout, unit) = (here.layout, [0xA5; 100]);
    let mut ends = [here.into_runner(), there.into_runner()];
    let now = Time::from_millis(1);
    let mut around = Context { now, pool: &mut pool, random: &mut random };
    let mut packet = around.pool.alloc_train(&layout, unit.len()).expect("the pool is empty");
    around.pool.write_payload(&packet, 0, &unit);
    packet.set_unit_ends(true, true);
    let [down, up] = &mut ends;
    down.feed(&mut around, packet);
    down.run(&mut around);
    down.drain(&mut around);
    let mut came = Vec::new();
    for _ in 0..ROUNDS_MAX {
        pass(&mut around, down, up);
        for packet in up.take_up().drain().collect::<Vec<_>>() {
            around.pool.read_payload(&packet, &mut came);
            around.pool.free(packet);
        }
        if came.starts_with(&unit) {
            break;
        }
        pass(&mut around, up, down);
        let Some(next) = earlier(down.next_deadline(), up.next_deadline()) else { break };
        around.now = around.now.max(next);
        ends_at_their_times(&mut around, down, up);
    }
    // Repeated units come as often as nothing above takes the copies out.
    assert!(came.starts_with(&unit), "a legal graph does not carry {unit:?}: {came:?}");
    ends.iter_mut().for_each(|end| {
        end.flush(&mut around);
    });
    assert_eq!(pool.live_views(), 0, "views are kept after a flush");
}

/// Every record alone, and all of them on one stream.
pub fn record_seeds() -> Vec<Vec<u8>> {
    let mut seeds = samples::records();
    seeds.push(seeds.iter().take(6).flatten().copied().collect());
    let unknown = [&0x8123_u16.to_be_bytes()[..], &4_u32.to_be_bytes(), b"what"].concat();
    seeds.push([unknown, samples::record(&samples::message(MessageKind::List))].concat());
    seeds.iter().map(|seed| [&[17], seed.as_slice()].concat()).collect()
}

/// Every body behind the number of its kind.
pub fn message_seeds() -> Vec<Vec<u8>> {
    let seed = |(place, &kind): (usize, &MessageKind)| {
        let record = samples::record(&samples::message(kind));
        [&[place as u8], record.get(HEADER_LEN..).unwrap_or_default()].concat()
    };
    MessageKind::ALL.iter().enumerate().map(seed).collect()
}

/// Lines, a tree, and graphs that are not legal.
pub fn graph_seeds() -> Vec<Vec<u8>> {
    let line = |modules: &[u16]| GraphForm::line(modules.iter().map(|&module| (module, vec![])));
    let mut tree = line(&[1, 2, 3]);
    if let Some(node) = tree.nodes.last_mut() {
        node.parent = 0;
    }
    let graphs = [
        GraphForm::default(),
        line(&[1]),
        line(&[2, 3]),
        line(&[1, 2, 4, 3]),
        line(&[3, 1]),
        line(&[0xF001]),
        samples::graph(),
        GraphForm::line([(4, vec![(0, 3), (1, 5_000_000)]), (3, vec![])]),
        tree,
    ];
    let bytes = |graph: &GraphForm| {
        let mut bytes = vec![0x05, 0xAC];
        let encoded: Result<(), GraphError> = graph.encode(&mut bytes);
        encoded.map(|()| bytes).unwrap_or_default()
    };
    graphs.iter().map(bytes).collect()
}

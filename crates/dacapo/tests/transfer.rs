//! Files through a flow, in virtual time: whole over a stream, whole or with exactly what is
//! missing over datagrams that are lost, and never anywhere but in their folder.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod lab;
mod media;

use dacapo::Attributes;
use dacapo::attributes::AttributeKey;
use dacapo::plan::{Assumptions, BytesFlow, Plan};
use dacapo::transfer::{
    DATA_LEN, FileSink, FileSource, Input, MPEGTS_UNIT_LEN_MAX, Place, TransferProgress,
    TransferSnapshot, UNIT_LEN_MAX,
};
use dacapo_base::{Random, Time};
use dacapo_core::{BeginError, JoinParams, Ledger, Port, Source, SourcePoll, UnitWriter};
use dacapo_wire::session::Direction;
use lab::Lab;
use media::Folder;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a transfer came to.
struct Outcome {
    sender: Option<TransferSnapshot>,
    receiver: TransferSnapshot,
    ledger: Ledger,
    chain: String,
}

/// A folder to send from and one to save in.
fn folders(name: &str) -> (Folder, PathBuf) {
    let folder = Folder::new(name);
    let out = folder.path("out");
    std::fs::create_dir_all(&out).unwrap();
    (folder, out)
}

/// Sends by a source to who saves in a folder.
fn transfer(
    (seed, link): (u64, &str),
    attributes: &Attributes,
    source: Box<dyn Source>,
    out: &Path,
) -> (Ledger, TransferSnapshot, String) {
    let dir = out.to_owned();
    let place = move || Place::Folder { dir: dir.clone(), force: false };
    transfer_to((seed, link), attributes, source, UNIT_LEN_MAX, Box::new(place))
}

/// Sends units of at most `len_max` bytes by a source to who puts them in their place.
fn transfer_to(
    (seed, link): (u64, &str),
    attributes: &Attributes,
    source: Box<dyn Source>,
    len_max: usize,
    place: Box<dyn Fn() -> Place + Send>,
) -> (Ledger, TransferSnapshot, String) {
    let flow = BytesFlow {
        session: "files",
        title: "files",
        flow: "files",
        direction: Direction::ToCreator,
        unit_len_max: len_max as u32,
        attributes: attributes.clone(),
        participants_max: 1,
    };
    let plan = Plan::of_bytes(&flow, &Assumptions::default()).unwrap();
    let opened = Arc::<Mutex<Option<TransferProgress>>>::default();
    let kept = Arc::clone(&opened);
    let open = Box::new(move |_: &_, _: &_| {
        let (sink, progress) = FileSink::new(place());
        *kept.lock().unwrap() = Some(progress);
        Ok(Port::Sink(Box::new(sink)))
    });
    let mut lab = Lab::new(seed, link, plan.spec(), plan.publisher_of(1.0, open));
    let ports = Box::new(move |_: &[_]| vec![Some(Port::Source(source))]);
    let sender = lab.join(JoinParams::default(), ports);
    lab.finish(sender, 1, 120_000);
    let chain = lab.chain(sender, 0);
    lab.close(sender);
    let progress = opened.lock().unwrap().take().unwrap();
    (lab.viewers[sender].ledgers[&0].clone(), progress.snapshot(), chain)
}

/// Sends files.
fn send(at: (u64, &str), attributes: &Attributes, files: &[PathBuf], out: &Path) -> Outcome {
    let inputs = files.iter().map(|path| Input::file(path).unwrap()).collect();
    let is_reliable = *attributes == Attributes::reliable();
    let (source, progress, _) = FileSource::new(inputs, is_reliable);
    let (ledger, receiver, chain) = transfer(at, attributes, Box::new(source), out);
    Outcome { sender: Some(progress.snapshot()), receiver, ledger, chain }
}

/// Bytes of which none is zero.
fn bytes(random: &mut Random, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    random.fill(&mut bytes);
    bytes.iter_mut().for_each(|byte| *byte |= 1);
    bytes
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_over_a_stream_come_whole_whatever_the_link_loses() {
    for (seed, link) in [(1, "delay=10ms"), (2, "delay=10ms,loss=5%"), (3, "delay=1ms,loss=1%")] {
        let (folder, out) = folders(&format!("stream-{seed}"));
        let mut random = Random::from_number(seed);
        let sizes = [0, 1, DATA_LEN - 1, DATA_LEN, DATA_LEN + 1, 5 * DATA_LEN + 77];
        let contents = sizes.map(|size| bytes(&mut random, size));
        let named = contents.iter().enumerate();
        let files: Vec<PathBuf> =
            named.map(|(at, bytes)| folder.write(&format!("f{at}"), bytes)).collect();
        let outcome = send((seed, link), &Attributes::reliable(), &files, &out);
        assert_eq!(outcome.chain, "checksum ! tcp", "seed {seed}");
        let (ledger, receiver) = (&outcome.ledger, &outcome.receiver);
        assert!(ledger.closes() && ledger.delivered == ledger.sent, "seed {seed}: {ledger:?}");
        assert_eq!((&receiver.error, receiver.is_over), (&None, true), "seed {seed}");
        let total: usize = sizes.iter().sum();
        assert_eq!((receiver.bytes, receiver.bytes_total), (total as u64, Some(total as u64)));
        for ((at, content), result) in contents.iter().enumerate().zip(&receiver.files) {
            assert_eq!(std::fs::read(out.join(format!("f{at}"))).unwrap(), *content, "seed {seed}");
            assert_eq!((&result.sha256, &result.fault), (&sha256(content), &None), "seed {seed}");
        }
        let sent = outcome.sender.unwrap();
        assert_eq!((sent.files.len(), receiver.files.len()), (6, 6), "seed {seed}");
        let sums = |snapshot: &TransferSnapshot| {
            snapshot.files.iter().map(|file| file.sha256.clone()).collect::<Vec<_>>()
        };
        assert_eq!(sums(&sent), sums(receiver), "seed {seed}");
        assert_eq!(names(&out).len(), 6, "nothing else is left: {:?}", names(&out));
    }
}

/// The bytes of a file that are there; those that are not must be holes.
fn present(content: &[u8], saved: &[u8], seed: u64) -> u64 {
    assert!(saved.len() <= content.len(), "seed {seed}");
    let pieces = content.chunks(DATA_LEN).zip(saved.chunks(DATA_LEN));
    let pieces = pieces.map(|(sent, came)| {
        let is_hole = came.iter().all(|byte| *byte == 0);
        assert!(is_hole || sent == came, "seed {seed}: a piece is neither whole nor missing");
        if is_hole { 0 } else { came.len() as u64 }
    });
    pieces.sum()
}

#[test]
fn files_over_lossy_datagrams_are_whole_or_say_exactly_what_came() {
    let (mut whole, mut incomplete) = (0, 0);
    for seed in 0..12 {
        let (folder, out) = folders(&format!("lossy-{seed}"));
        let mut random = Random::from_number(seed);
        // One datagram; a few; many units.
        let size = [900, 3_000, 20 * DATA_LEN + 5_000][seed as usize % 3];
        let content = bytes(&mut random, size);
        let file = folder.write("film.bin", &content);
        let outcome = send((seed, "delay=10ms,loss=5%"), &Attributes::new(), &[file], &out);
        assert_eq!(outcome.chain, "segment ! udp", "seed {seed}");
        let (ledger, receiver) = (&outcome.ledger, &outcome.receiver);
        assert!(ledger.closes() && ledger.unknown == 0, "seed {seed}: {ledger:?}");
        assert_eq!(ledger.delivered + ledger.lost, ledger.sent, "seed {seed}: {ledger:?}");
        assert_eq!((&receiver.error, receiver.is_over), (&None, true), "seed {seed}");
        let [result] = receiver.files.as_slice() else {
            panic!("seed {seed}: {:?}", receiver.files);
        };
        let path = result.path.as_ref().unwrap();
        let saved = std::fs::read(path).unwrap();
        let came = present(&content, &saved, seed);
        assert_eq!((result.bytes, receiver.bytes), (came, came), "seed {seed}: {result:?}");
        assert_eq!(result.sha256, sha256(&saved), "seed {seed}");
        match &result.fault {
            None => {
                assert_eq!((path, saved), (&out.join("film.bin"), content), "seed {seed}");
                whole += 1;
            }
            Some(fault) => {
                let text = format!("not whole: {came} of {size} bytes came");
                assert!(came < size as u64 && *fault == text, "seed {seed}: {fault}");
                assert_eq!(*path, out.join("film.bin.incomplete"), "seed {seed}");
                incomplete += 1;
            }
        }
        assert_eq!(names(&out).len(), 1, "seed {seed}: {:?}", names(&out));
    }
    assert!(whole > 0 && incomplete > 0, "{whole} whole, {incomplete} incomplete");
}

/// A transport stream whose packets say their number.
fn mpegts(packets: u32) -> Vec<u8> {
    let packet = |number: u32| {
        let mut packet = [0x47; 188];
        packet[1..5].copy_from_slice(&number.to_be_bytes());
        packet
    };
    (0..packets).flat_map(packet).collect()
}

#[test]
fn of_a_transport_stream_with_a_deadline_whole_packets_come_in_order_and_gaps_are_told() {
    let attributes = Attributes::new()
        .min(AttributeKey::Order, 1)
        .max(AttributeKey::Deadline, 150_000_000)
        .min(AttributeKey::Throughput, 4_000_000);
    let mut gaps = 0;
    for seed in 0..12 {
        let (folder, out) = folders(&format!("live-{seed}"));
        // What is left at the end is less than a packet.
        let content = [mpegts(3_000), vec![0x47; 77]].concat();
        let input = Input::file(&folder.write("live.ts", &content)).unwrap();
        let (source, sent, _) = FileSource::new(vec![input], false);
        let path = out.join("out.ts");
        let file = std::fs::File::create(&path).unwrap();
        let place = Box::new(move || Place::Live(file.try_clone().unwrap()));
        let source = Box::new(source.of_mpegts());
        let link = ["delay=10ms", "delay=40ms,loss=5%", "delay=25ms,loss=1%"][seed as usize % 3];
        let (ledger, receiver, chain) =
            transfer_to((seed, link), &attributes, source, MPEGTS_UNIT_LEN_MAX, place);
        assert_eq!(chain, "use-by ! sequence ! udp", "seed {seed}");
        assert!(ledger.closes() && ledger.unknown == 0, "seed {seed}: {ledger:?}");
        let came = std::fs::read(&path).unwrap();
        let numbers: Vec<u32> = came
            .chunks(188)
            .map(|packet| u32::from_be_bytes(packet[1..5].try_into().unwrap()))
            .collect();
        assert!(numbers.is_sorted(), "seed {seed}");
        let [result] = receiver.files.as_slice() else { panic!("{:?}", receiver.files) };
        assert_eq!((&result.fault, &receiver.error), (&None, &None), "seed {seed}");
        assert_eq!(result.bytes, came.len() as u64, "seed {seed}");
        let whole = result.bytes + result.bytes_missing;
        assert_eq!((whole, sent.snapshot().bytes), (content.len() as u64, whole), "seed {seed}");
        let is_whole = result.sha256 == sha256(&content);
        assert_eq!(is_whole, result.bytes_missing == 0, "seed {seed}");
        gaps += u32::from(!is_whole);
    }
    assert!((4..12).contains(&gaps), "{gaps} of 12 have gaps");
}

#[test]
fn of_a_transport_stream_that_comes_later_than_its_deadline_nothing_is_written() {
    let attributes = Attributes::new().max(AttributeKey::Deadline, 50_000_000);
    let (folder, out) = folders("too-late");
    let input = Input::file(&folder.write("live.ts", &mpegts(300))).unwrap();
    let (source, ..) = FileSource::new(vec![input], false);
    let path = out.join("out.ts");
    let file = std::fs::File::create(&path).unwrap();
    let place = Box::new(move || Place::Live(file.try_clone().unwrap()));
    let source = Box::new(source.of_mpegts());
    let (ledger, receiver, chain) =
        transfer_to((1, "delay=60ms"), &attributes, source, MPEGTS_UNIT_LEN_MAX, place);
    assert_eq!(chain, "use-by ! udp");
    assert!(ledger.closes() && ledger.sent > 40 && ledger.late == ledger.sent, "{ledger:?}");
    assert_eq!(receiver.error.unwrap(), "nothing came in time: all of it was lost or late");
    assert_eq!(std::fs::read(&path).unwrap(), b"");
}

/// A live transport stream that is written to its pipe in pieces, one every so often.
struct Broadcast {
    source: FileSource,
    pipe: Option<std::io::PipeWriter>,
    pieces: std::collections::VecDeque<Vec<u8>>,
    every: Duration,
    next: Option<Time>,
}

impl Source for Broadcast {
    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        while *self.next.get_or_insert(now + Duration::from_millis(500)) <= now {
            self.next = self.next.map(|at| at + self.every);
            match (self.pieces.pop_front(), &mut self.pipe) {
                (Some(piece), Some(pipe)) => pipe.write_all(&piece).unwrap(),
                _ => self.pipe = None,
            }
        }
        self.source.poll_unit(now, unit)
    }
}

/// Sends so many packets in pieces of so many bytes, and says how many units those were.
fn broadcast(packets: u32, piece: usize, every: Duration) -> (u64, bool) {
    let attributes = Attributes::new().max(AttributeKey::Deadline, 150_000_000);
    let (_folder, out) = folders(&format!("pieces-{piece}-{}", every.as_micros()));
    let (reader, writer) = std::io::pipe().unwrap();
    let from = std::fs::File::from(std::os::fd::OwnedFd::from(reader));
    let input = Input::Stream { name: "live.ts".into(), from };
    let (source, ..) = FileSource::new(vec![input], false);
    let source = source.of_mpegts().live(Duration::from_millis(150));
    let content = mpegts(packets);
    // The first piece is no whole number of packets, and so none of the units ends with a piece.
    let pieces = [&content[..500]].into_iter().chain(content[500..].chunks(piece));
    let pieces = pieces.map(<[u8]>::to_vec).collect();
    let source = Broadcast { source, pipe: Some(writer), pieces, every, next: None };
    let path = out.join("out.ts");
    let file = std::fs::File::create(&path).unwrap();
    let place = Box::new(move || Place::Live(file.try_clone().unwrap()));
    let (ledger, ..) =
        transfer_to((1, "delay=5ms"), &attributes, Box::new(source), MPEGTS_UNIT_LEN_MAX, place);
    assert!(ledger.closes() && ledger.late == 0, "{ledger:?}");
    (ledger.sent, std::fs::read(&path).unwrap() == content)
}

#[test]
fn packets_of_a_live_transport_stream_wait_for_others_that_fill_their_unit_and_not_for_long() {
    // Beside the units with packets three begin it and three end it.
    let (sent, is_whole) = broadcast(700, 1_316, Duration::from_micros(2_400));
    assert!(is_whole && (106..=108).contains(&sent), "{sent} units of seven packets");
    // One packet every 2 ms: 6 ms, to the next look 2 ms later.
    let (sent, is_whole) = broadcast(300, 188, Duration::from_millis(2));
    assert!(is_whole && (75..=110).contains(&sent), "{sent} units of three or four packets");
    // One every 20 ms waits for nothing.
    let (sent, is_whole) = broadcast(60, 188, Duration::from_millis(20));
    assert!(is_whole && (60..=68).contains(&sent), "{sent} units of one packet");
}

#[test]
fn what_is_no_transport_stream_is_told_and_ends_the_transfer() {
    let (folder, out) = folders("no-mpegts");
    let input = Input::file(&folder.write("notes.txt", b"these are words")).unwrap();
    let (source, _, _) = FileSource::new(vec![input], false);
    let source = Box::new(source.of_mpegts());
    let (_, receiver, _) = transfer((1, "delay=1ms"), &Attributes::new(), source, &out);
    let error = receiver.error.unwrap();
    let text = "notes.txt: no MPEG transport stream: byte 0 is 0x74, and packets begin with 0x47";
    assert!(error.contains(text), "{error}");
}

/// Sends units as they are: whoever sends need not be this library.
struct Units(std::collections::VecDeque<Vec<u8>>);

impl Source for Units {
    fn poll_unit(&mut self, _: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        let Some(bytes) = self.0.front() else { return SourcePoll::End };
        match unit.begin(bytes.len()) {
            Ok(()) => unit.write(bytes),
            Err(BeginError::NoMemory) => return SourcePoll::Blocked,
            Err(BeginError::TooLarge) => return SourcePoll::Failed("too large".into()),
        }
        self.0.pop_front();
        SourcePoll::Unit
    }
}

/// A file under any name, in the form of `transfer::form`.
fn named(file: u16, name: &[u8], content: &[u8]) -> [Vec<u8>; 3] {
    let unit = |kind: u8, at: u64, rest: &[u8]| {
        let [high, low] = file.to_be_bytes();
        [&[kind, 0, high, low], at.to_be_bytes().as_slice(), rest].concat()
    };
    let size = content.len() as u64;
    [unit(1, size, name), unit(2, 0, content), unit(3, size, &Sha256::digest(content))]
}

/// In the second byte of an end: no file follows.
const LAST: u8 = 1;

#[test]
fn a_sender_that_ends_before_its_last_file_is_told_from_one_that_is_through() {
    let (_folder, out) = folders("early");
    let source = Box::new(Units(named(0, b"first", b"content").into()));
    let (ledger, receiver, _) = transfer((1, "delay=1ms"), &Attributes::reliable(), source, &out);
    assert!(ledger.closes() && receiver.files[0].fault.is_none(), "{receiver:?}");
    assert_eq!(receiver.error.unwrap(), "the sender ended before its last file was through");
    assert_eq!(names(&out), ["first"]);
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let (folder, out) = folders("names");
    folder.write("victim", b"untouched");
    let absolute = folder.path("absolute").to_str().unwrap().to_owned();
    let given: Vec<(Vec<u8>, &str)> = vec![
        (b"../victim".to_vec(), "victim"),
        (b"../../../../../../etc/passwd".to_vec(), "passwd"),
        (absolute.into_bytes(), "absolute"),
        (b"..".to_vec(), "_."),
        (b".".to_vec(), "_"),
        (b"sub/.profile".to_vec(), "_profile"),
        (b"..\\dos".to_vec(), "dos"),
        (b"-rf".to_vec(), "_rf"),
        (b"nul\0l".to_vec(), "nul_l"),
        (b"\xFF\xFE".to_vec(), "\u{FFFD}\u{FFFD}"),
    ];
    let units = given.iter().enumerate().flat_map(|(at, (name, _))| named(at as u16, name, b"new"));
    let mut units: std::collections::VecDeque<_> = units.collect();
    units.back_mut().unwrap()[1] = LAST;
    let source = Box::new(Units(units));
    let (ledger, receiver, _) = transfer((1, "delay=1ms"), &Attributes::reliable(), source, &out);
    assert!(ledger.closes() && receiver.error.is_none(), "{receiver:?}");
    let mut expected: Vec<String> = given.iter().map(|(_, safe)| (*safe).to_owned()).collect();
    expected.sort();
    assert_eq!(names(&out), expected);
    assert_eq!(names(&folder.0), ["out", "victim"]);
    assert_eq!(std::fs::read(folder.path("victim")).unwrap(), b"untouched");
}

#[test]
fn a_sum_that_is_wrong_and_bytes_that_come_twice_leave_no_file_under_its_name() {
    let (_folder, out) = folders("wrong");
    let [begin, data, mut end] = named(0, b"a", b"content");
    *end.last_mut().unwrap() ^= 1;
    let source = Box::new(Units([begin, data, end].into()));
    let (_, receiver, _) = transfer((1, "delay=1ms"), &Attributes::reliable(), source, &out);
    let fault = receiver.files[0].fault.as_deref();
    assert_eq!(fault, Some("its SHA-256 is not the one that was sent"));
    assert_eq!(names(&out), ["a.incomplete"]);
    let [begin, data, end] = named(0, b"b", b"content");
    let source = Box::new(Units([begin, data.clone(), data, end].into()));
    let (ledger, receiver, _) = transfer((1, "delay=1ms"), &Attributes::reliable(), source, &out);
    assert!(receiver.error.unwrap().contains("twice") && ledger.closes());
    assert_eq!(names(&out), ["a.incomplete", "b.incomplete"]);
}

//! `dacapo send` and `recv`: files arrive whole, or both ends say why not.
//!
//! Where a transfer has to be under way, the sender reads a pipe that the test holds open: it is
//! under way until the test says otherwise, however fast the machine is.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{Finished, LONG, Place, Running, wait_until};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};

/// Bytes of a file in a unit.
const DATA_LEN: usize = 61_440;

/// A receiver that saves in `in`, and its address.
fn recv(place: &Place, args: &[&str]) -> (Running, String) {
    let mut all = vec!["recv", "--port", "0", "--json"];
    if !args.contains(&"--stdout") {
        all.extend(["--out", "in"]);
    }
    all.extend_from_slice(args);
    listening(place.start(&all))
}

fn listening(run: Running) -> (Running, String) {
    // With --stdout the events are on standard error.
    let text = || format!("{}{}", run.out(), run.err());
    assert!(wait_until(LONG, || text().contains("}\n")), "it does not listen:\n{}", text());
    let event = events(&text()).remove(0);
    assert_eq!(event["event"], "listening", "{event}");
    let addr = event["addresses"][0].as_str().unwrap().to_owned();
    (run, addr)
}

fn events(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a receiver says of the last sender.
fn received(run: &Finished) -> Value {
    let all = events(&format!("{}{}", run.out, run.err));
    let last = all.into_iter().rfind(|event| event["event"] == "received");
    last.unwrap_or_else(|| panic!("nothing was received: {}", run.all()))
}

fn send(place: &Place, addr: &str, args: &[&str]) -> Finished {
    place.run(&[&["send", addr], args].concat())
}

/// A sender of a pipe that the test writes.
fn send_pipe(place: &Place, addr: &str, args: &[&str]) -> (Running, ChildStdin) {
    let mut command = place.command(&[&["send", addr, "-"], args].concat());
    command.stdin(Stdio::piped());
    let mut run = place.start_command(command);
    let pipe = run.take_stdin();
    (run, pipe)
}

/// A sender of a pipe of which so many bytes have arrived, and no more will come unless written.
fn send_half(place: &Place, addr: &str, bytes: &[u8]) -> (Running, ChildStdin) {
    let (sender, mut pipe) = send_pipe(place, addr, &["--name", "half.bin"]);
    pipe.write_all(bytes).unwrap();
    let part = place.path("in/.half.bin.0.part");
    let arrived = wait_until(LONG, || len(&part) == bytes.len() as u64);
    assert!(arrived, "{} bytes arrived:\n{}\n{}", len(&part), sender.out(), sender.err());
    (sender, pipe)
}

fn len(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |about| about.len())
}

/// Bytes none of which is zero, so that no stretch is left as a hole.
fn bytes(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8 | 1).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The names in a folder, hidden ones too.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn read(path: PathBuf) -> Vec<u8> {
    fs::read(path).unwrap()
}

#[test]
fn files_of_every_length_arrive_with_the_hash_that_they_were_sent_with() {
    let place = Place::new();
    let lens = [0, 1, DATA_LEN - 1, DATA_LEN, DATA_LEN + 1, 5 * DATA_LEN + 7, 1_000_000];
    let files = lens.map(|len| format!("{len}.bin"));
    for (name, len) in files.iter().zip(lens) {
        place.write(name, bytes(len));
    }
    let each = files.iter().map(|name| vec![name.as_str()]);
    let all = files.iter().map(String::as_str).collect();
    for sent in each.chain([all]) {
        let (receiver, addr) = recv(&place, &["--force"]);
        let run = send(&place, &addr, &[&sent[..], &["--json"]].concat()).expect(0);
        let sender: Value = serde_json::from_str(&run.out).unwrap();
        let receiver = received(&receiver.wait(LONG).expect(0));
        assert_eq!((&sender["error"], &receiver["error"]), (&Value::Null, &Value::Null));
        assert_eq!(receiver["files"].as_array().unwrap().len(), sent.len(), "{receiver}");
        for (at, name) in sent.iter().enumerate() {
            let (ours, theirs) = (&sender["files"][at], &receiver["files"][at]);
            let content = read(place.path(name));
            assert_eq!((&ours["name"], &theirs["name"]), (&(*name).into(), &(*name).into()));
            assert_eq!(theirs["bytes"], content.len(), "{theirs}");
            assert_eq!(ours["sha256"], sha256(&content), "{name}");
            assert_eq!(theirs["sha256"], ours["sha256"], "{name}");
            assert_eq!((&ours["fault"], &theirs["fault"]), (&Value::Null, &Value::Null));
            assert!(read(place.path("in").join(name)) == content, "{name} differs");
        }
    }
    let mut expected = files.to_vec();
    expected.sort();
    assert_eq!(names(&place.path("in")), expected, "nothing else stays");
}

#[test]
fn people_see_the_protocol_and_every_file() {
    let place = Place::new();
    place.write("a.bin", bytes(100_000));
    let (receiver, addr) = recv(&place, &[]);
    let run = send(&place, &addr, &["a.bin"]).expect(0);
    common::in_order(&run.out, &["peer SHA256:", "protocol ", "a.bin", "whole", "97.7 KiB in "]);
    receiver.wait(LONG).expect(0);
    let run = send(&place, &addr, &["a.bin", "--quiet"]).expect(3);
    assert_eq!(run.out, "", "nobody listens any more");
}

#[test]
fn what_is_written_to_a_pipe_arrives_while_the_pipe_is_open() {
    let place = Place::new();
    let (receiver, addr) = recv(&place, &[]);
    let (sender, mut pipe) = send_pipe(&place, &addr, &[]);
    let content = bytes(200_000);
    let part = place.path("in/.stdin.0.part");
    let mut written = 0;
    for piece in [1, 2, 4_096, 1, 70_000, 125_900] {
        pipe.write_all(&content[written..written + piece]).unwrap();
        written += piece;
        let has_come = wait_until(LONG, || len(&part) == written as u64);
        assert!(has_come, "{} of {written} bytes came\n{}", len(&part), sender.err());
    }
    assert_eq!(written, content.len());
    drop(pipe);
    sender.wait(LONG).expect(0);
    let receiver = received(&receiver.wait(LONG).expect(0));
    assert_eq!(receiver["files"][0]["sha256"], sha256(&content));
    assert!(read(place.path("in/stdin")) == content);
}

#[test]
fn standard_output_gets_one_file_after_the_other_and_nothing_else() {
    let place = Place::new();
    // ASCII, so that what was printed compares byte by byte as text.
    let content: Vec<u8> = bytes(DATA_LEN + 1).iter().map(|byte| byte & 0x7F).collect();
    place.write("a.bin", &content);
    place.write("b.bin", "the end\n");
    for quiet in [false, true] {
        let args: &[&str] = if quiet { &["--stdout", "--quiet"] } else { &["--stdout"] };
        let (receiver, addr) = recv(&place, args);
        send(&place, &addr, &["a.bin", "b.bin"]).expect(0);
        let run = receiver.wait(LONG).expect(0);
        let expected = [&content[..], b"the end\n"].concat();
        assert!(run.out.as_bytes() == expected, "{} bytes were printed", run.out.len());
    }
}

#[test]
fn a_transport_stream_is_broadcast_with_a_deadline() {
    let place = Place::new();
    let mut packet = [b'.'; 188];
    packet[0] = 0x47;
    let content = packet.repeat(500);
    place.write("live.ts", &content);
    let (receiver, addr) = recv(&place, &["--stdout", "--format", "mpegts"]);
    let args = ["live.ts", "--format", "mpegts", "--deadline", "10s"];
    let run = send(&place, &addr, &args).expect(0);
    assert!(run.out.contains("use-by(age"), "{}", run.all());
    let receiver = receiver.wait(LONG).expect(0);
    assert!(receiver.out.as_bytes() == content, "{} bytes were printed", receiver.out.len());
    assert_eq!(received(&receiver)["files"][0]["bytes_missing"], 0);
    // Who receives files takes none, and says what would.
    let (receiver, addr) = recv(&place, &[]);
    let run = send(&place, &addr, &args).expect(1);
    run.says(&["nothing there receives as \"mpegts\"", "dacapo recv --stdout --format mpegts"]);
    drop(receiver);
    // Wrong usage names what is missing.
    send(&place, &addr, &["live.ts", "--deadline", "1s"]).expect(2).says(&["--format"]);
    place.run(&["recv", "--format", "mpegts"]).expect(2).says(&["--stdout"]);
}

#[test]
fn a_file_that_exists_is_refused_and_untouched_unless_forced() {
    let place = Place::new();
    fs::create_dir(place.path("in")).unwrap();
    place.write("in/a.txt", "precious");
    place.write("a.txt", "new");
    let (receiver, addr) = recv(&place, &[]);
    let run = send(&place, &addr, &["a.txt"]).expect(1);
    run.says(&["in/a.txt", "exists", "--force"]);
    assert!(run.out.contains("had left by then"), "{}", run.all());
    assert!(!run.out.contains("whole") && !run.out.contains("bit/s"), "{}", run.all());
    let run = receiver.wait(LONG).expect(1);
    run.says(&["in/a.txt", "exists", "--force"]);
    assert!(!run.out.contains("bit/s"), "{}", run.all());
    assert_eq!(read(place.path("in/a.txt")), b"precious");
    assert_eq!(names(&place.path("in")), ["a.txt"]);
    let (receiver, addr) = recv(&place, &["--force"]);
    send(&place, &addr, &["a.txt"]).expect(0);
    receiver.wait(LONG).expect(0);
    assert_eq!(read(place.path("in/a.txt")), b"new");
    assert_eq!(names(&place.path("in")), ["a.txt"]);
}

#[test]
fn a_name_never_leads_out_of_the_folder() {
    let place = Place::new();
    let (receiver, addr) = recv(&place, &["--keep"]);
    let place_names = || {
        let all = names(&place.dir).into_iter();
        let is_output = |name: &String| name.ends_with(".out") || name.ends_with(".err");
        all.filter(|name| !is_output(name)).collect::<Vec<_>>()
    };
    let before = place_names();
    for (name, saved) in [
        ("../evil", "evil"),
        ("../../../../../../tmp/worse", "worse"),
        ("/etc/worst", "worst"),
        ("..", "_."),
        (".bashrc", "_bashrc"),
        ("-rf", "_rf"),
        ("folder/", "_"),
    ] {
        let (sender, mut pipe) = send_pipe(&place, &addr, &[&format!("--name={name}")]);
        pipe.write_all(name.as_bytes()).unwrap();
        drop(pipe);
        sender.wait(LONG).expect(0);
        assert_eq!(read(place.path("in").join(saved)), name.as_bytes());
    }
    let expected = ["_", "_.", "_bashrc", "_rf", "evil", "worse", "worst"];
    assert_eq!(names(&place.path("in")), expected);
    assert_eq!(place_names(), before, "nothing beside the folder");
    receiver.signal("TERM");
    receiver.wait(LONG).expect(143);
}

#[test]
fn what_cannot_be_sent_is_said_before_anybody_is_asked() {
    let place = Place::new();
    fs::create_dir(place.path("photos")).unwrap();
    place.write("a.txt", "a");
    // Nothing listens there: code 3 would say that it was tried.
    let run = send(&place, "127.0.0.1:1", &["a.txt", "photos"]).expect(1);
    run.says(&["dacapo: send: photos: is a folder", "tar -c photos | dacapo send"]);
    let run = send(&place, "127.0.0.1:1", &["a.txt", "none.txt"]).expect(1);
    run.says(&["dacapo: send: none.txt: "]);
    assert!(!run.err.contains("dacapo: dacapo: "), "{}", run.all());
    send(&place, "127.0.0.1:1", &["a.txt"]).expect(3).says(&["127.0.0.1:1"]);
}

#[test]
fn a_flow_that_may_lose_goes_over_udp_and_ends_whole_or_says_what_is_missing() {
    let place = Place::new();
    let content = bytes(1_000_000);
    place.write("a.bin", &content);
    let (receiver, addr) = recv(&place, &[]);
    let ask = ["a.bin", "--ask", "throughput<=50Mbit/s"];
    let run = send(&place, &addr, &ask).expect(0);
    common::in_order(&run.out, &["protocol ", "segment", "udp"]);
    let run = receiver.wait(LONG);
    let file = &received(&run)["files"][0];
    if run.code == Some(0) {
        assert_eq!(file["sha256"], sha256(&content), "{file}");
        assert!(read(place.path("in/a.bin")) == content);
    } else {
        assert_eq!(run.code, Some(6), "{}", run.all());
        assert!(file["fault"].as_str().unwrap().contains("not whole"), "{file}");
        assert!(file["path"].as_str().unwrap().ends_with(".incomplete"), "{file}");
        assert!(!place.path("in/a.bin").exists());
    }
}

#[test]
fn a_request_that_nothing_meets_is_refused_with_the_nearest() {
    let place = Place::new();
    place.write("a.txt", "a");
    let (receiver, addr) = recv(&place, &[]);
    let run = send(&place, &addr, &["a.txt", "--ask", "delay<=1us"]).expect(1);
    run.says(&["delay at most 1 us", "nearest: delay"]);
    let has_said = || events(&receiver.out()).iter().any(|event| event["event"] == "refused");
    assert!(wait_until(LONG, has_said), "{}", receiver.out());
    // Who was refused has not sent: the next may.
    send(&place, &addr, &["a.txt"]).expect(0);
    receiver.wait(LONG).expect(0);
}

#[test]
fn a_receiver_that_asks_what_nothing_meets_ends_at_once() {
    let place = Place::new();
    let run = place.run(&["recv", "--port", "0", "--ask", "delay<=1us"]).expect(5);
    run.says(&["dacapo: recv: ", "delay at most 1 us", "nearest"]);
    assert!(!run.err.contains("dacapo: dacapo: "), "{}", run.all());
}

#[test]
fn what_is_secret_goes_over_quic_and_arrives_whole() {
    let place = Place::new();
    place.write("a.txt", "between us");
    let (receiver, addr) = recv(&place, &[]);
    let run = send(&place, &addr, &["a.txt", "--ask", "confidentiality=required"]).expect(0);
    common::in_order(&run.out, &["protocol ", "quic"]);
    receiver.wait(LONG).expect(0);
    assert_eq!(read(place.path("in/a.txt")), b"between us");
}

#[test]
fn what_the_receiver_asks_binds_a_sender_that_asks_less() {
    let place = Place::new();
    place.write("a.txt", "a");
    let (receiver, addr) = recv(&place, &["--reliable", "--path", "lan"]);
    let run = send(&place, &addr, &["a.txt", "--ask", "throughput<=50Mbit/s"]).expect(0);
    common::in_order(&run.out, &["protocol ", "tcp"]);
    receiver.wait(LONG).expect(0);
}

#[test]
fn a_request_that_is_wrong_is_wrong_usage_and_names_the_word() {
    let place = Place::new();
    place.write("a.txt", "a");
    let wrong = |args: &[&str], words: &[&str]| {
        let (sent, got) = ([&["send", "127.0.0.1:1", "a.txt"], args].concat(), [&["recv"], args]);
        place.run(&sent).expect(2).says(words);
        place.run(&got.concat()).expect(2).says(words);
    };
    wrong(&["--ask", "los=0"], &["los", "did you mean \"loss\"?"]);
    wrong(&["--ask", "delay<=5 ells"], &["5 ells"]);
    wrong(&["--ask", "throughput>=2Mbit/s", "--ask", "throughput<=1Mbit/s"], &["throughput"]);
}

#[test]
fn a_full_disk_at_the_receiver_is_said_at_both_ends() {
    let place = Place::new();
    place.write("a.bin", bytes(2_000_000));
    // A limit of 100 or 200 KiB, by the shell; the signal that tells of it would end the program.
    let limited = "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\"";
    let program = env!("CARGO_BIN_EXE_dacapo");
    let args = ["-c", limited, program, "recv", "--port", "0", "--json", "--out", "in"];
    let (receiver, addr) = listening(place.start_command(place.program("sh", &args)));
    send(&place, &addr, &["a.bin"]).expect(1).says(&["in/a.bin: ", "too large"]);
    let run = receiver.wait(LONG).expect(1);
    run.says(&["in/a.bin: ", "too large"]);
    let kept = names(&place.path("in"));
    // On a disk that is full even the end of what came may not fit: then it stays hidden.
    let is_kept = |name: &str| kept == [name];
    assert!(is_kept("a.bin.incomplete"), "{kept:?}");
    assert!(len(&place.path("in").join(&kept[0])) > 50_000, "what came is kept");
    assert!(received(&run)["error"].as_str().unwrap().contains("too large"), "{}", run.all());
}

#[test]
fn a_sender_that_is_killed_leaves_what_came_under_another_name() {
    let place = Place::new();
    let (receiver, addr) = recv(&place, &[]);
    let content = bytes(DATA_LEN + 5);
    let (sender, _pipe) = send_half(&place, &addr, &content);
    sender.kill();
    let run = receiver.wait(LONG).expect(1);
    run.says(&["dacapo: recv: ", "contact lost"]);
    assert_eq!(names(&place.path("in")), ["half.bin.incomplete"]);
    assert!(read(place.path("in/half.bin.incomplete")) == content);
    let file = &received(&run)["files"][0];
    assert!(file["fault"].as_str().unwrap().contains("not whole"), "{file}");
}

#[test]
fn a_receiver_that_is_killed_ends_the_sender_with_a_reason() {
    let place = Place::new();
    let (receiver, addr) = recv(&place, &[]);
    let (sender, _pipe) = send_half(&place, &addr, &bytes(DATA_LEN + 5));
    receiver.kill();
    sender.wait(LONG).expect(1).says(&["dacapo: send: ", "contact lost"]);
}

#[test]
fn an_interrupted_sender_closes_in_order_and_what_came_is_kept() {
    let place = Place::new();
    let (receiver, addr) = recv(&place, &[]);
    let content = bytes(DATA_LEN + 5);
    let (sender, _pipe) = send_half(&place, &addr, &content);
    sender.signal("INT");
    let run = sender.wait(LONG).expect(130);
    common::in_order(&run.out, &["half.bin", "61445", "not sent to its end", "flow ", "closes"]);
    let run = receiver.wait(LONG).expect(1);
    let file = &received(&run)["files"][0];
    assert!(file["fault"].as_str().unwrap().contains("not whole"), "{file}");
    assert!(read(place.path("in/half.bin.incomplete")) == content);
}

#[test]
fn a_receiver_that_closes_too_soon_is_a_failure_of_the_sender() {
    for signal in ["INT", "TERM"] {
        let place = Place::new();
        let (receiver, addr) = recv(&place, &["--keep"]);
        let content = bytes(DATA_LEN + 5);
        let (sender, _pipe) = send_half(&place, &addr, &content);
        receiver.signal(signal);
        let run = receiver.wait(LONG).expect(if signal == "INT" { 130 } else { 143 });
        assert_eq!(received(&run)["files"][0]["name"], "half.bin");
        assert!(read(place.path("in/half.bin.incomplete")) == content);
        let run = sender.wait(LONG).expect(1);
        run.says(&["dacapo: send: ", "the receiver ended the session before everything"]);
    }
}

#[test]
fn a_receiver_that_is_interrupted_before_anybody_sends_ends_with_the_signal() {
    let place = Place::new();
    let (receiver, _) = recv(&place, &[]);
    receiver.signal("INT");
    let run = receiver.wait(LONG).expect(130);
    assert_eq!(events(&run.out).len(), 1, "{}", run.all());
}

#[test]
fn a_receiver_that_keeps_listening_takes_one_sender_after_the_other() {
    let place = Place::new();
    place.write("a.bin", bytes(70_000));
    place.write("b.bin", bytes(10));
    let (mut receiver, addr) = recv(&place, &["--keep"]);
    for (file, count) in [("a.bin", 1), ("b.bin", 2)] {
        send(&place, &addr, &[file]).expect(0);
        let is_received = || {
            let all = events(&receiver.out());
            all.iter().filter(|event| event["event"] == "received").count() == count
        };
        assert!(wait_until(LONG, is_received), "{}", receiver.out());
        assert!(receiver.is_running());
    }
    assert_eq!(names(&place.path("in")), ["a.bin", "b.bin"]);
    receiver.signal("INT");
    receiver.wait(LONG).expect(130);
}

#[test]
fn a_second_sender_at_the_same_time_is_refused_and_does_not_disturb_the_first() {
    let place = Place::new();
    place.write("a.txt", "a");
    let (receiver, addr) = recv(&place, &[]);
    let content = bytes(DATA_LEN + 5);
    let (first, pipe) = send_half(&place, &addr, &content);
    let run = send(&place, &addr, &["a.txt"]).expect(1);
    run.says(&["dacapo: send to "]);
    drop(pipe);
    first.wait(LONG).expect(0);
    receiver.wait(LONG).expect(0);
    assert_eq!(names(&place.path("in")), ["half.bin"]);
    assert!(read(place.path("in/half.bin")) == content);
}

#[test]
#[ignore = "sends a file of 4.3 GB with holes: make large"]
fn a_file_of_more_than_4_gib_arrives_and_its_holes_stay_holes() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let place = Place::new();
    let file = fs::File::create(place.path("large.bin")).unwrap();
    let len = (4 << 30) + 100_u64;
    file.set_len(len).unwrap();
    let marks = [0, (1 << 31) - 3, (1 << 32) - 2, len - 5];
    for at in marks {
        file.write_all_at(b"there", at).unwrap();
    }
    let (receiver, addr) = recv(&place, &[]);
    let mut sender = place.start(&["send", &addr, "large.bin", "--json"]);
    // Two hashes of 4 GiB take longer than what other tests wait for.
    assert!(wait_until(LONG * 5, || !sender.is_running()), "it has not ended");
    let sent: Value = serde_json::from_str(&sender.wait(LONG).expect(0).out).unwrap();
    let got = received(&receiver.wait(LONG).expect(0));
    assert_eq!(got["files"][0]["bytes"], len);
    assert_eq!(got["files"][0]["sha256"], sent["files"][0]["sha256"]);
    let saved = fs::File::open(place.path("in/large.bin")).unwrap();
    for at in marks {
        let mut found = [0; 5];
        saved.read_exact_at(&mut found, at).unwrap();
        assert_eq!(&found, b"there", "at {at}");
    }
    // A block has 512 bytes.
    let allocated = saved.metadata().unwrap().blocks() * 512;
    assert!(allocated < 1 << 20, "{allocated} bytes are allocated");
}

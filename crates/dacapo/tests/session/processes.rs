//! The programs of `examples/`, and a peer that is killed, as processes.
//!
//! A process is this test program again with the name of a test that is an example's `main`; its
//! argument comes before the name, where the example looks for it. Without one such a test has
//! nothing to do.

use crate::media;
use crate::world::{TWO_WAY, endpoint, uri, watched};
use dacapo::Code;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

#[path = "../../../../examples/builder.rs"]
mod builder;
#[path = "../../../../examples/change.rs"]
mod change;
#[path = "../../../../examples/futures.rs"]
mod futures;
#[path = "../../../../examples/own_loop.rs"]
mod own_loop;
#[path = "../../../../examples/receiver.rs"]
mod receiver;
#[path = "../../../../examples/remote.rs"]
mod remote;
#[path = "../../../../examples/save.rs"]
mod save;
#[path = "../../../../examples/sender.rs"]
mod sender;

/// Says to a process which program it is.
const PROGRAM: &str = "DACAPO_TEST_PROGRAM";

fn is_program(name: &str) -> bool {
    std::env::var(PROGRAM).is_ok_and(|program| program == name)
}

#[test]
fn program_receiver() {
    if is_program("receiver") {
        receiver::main().unwrap();
    }
}

#[test]
fn program_sender() {
    if is_program("sender") {
        sender::main().unwrap();
    }
}

#[test]
fn program_change() {
    if is_program("change") {
        change::main().unwrap();
    }
}

#[test]
fn program_own_loop() {
    if is_program("own_loop") {
        own_loop::main().unwrap();
    }
}

#[test]
fn program_builder() {
    if is_program("builder") {
        builder::main().unwrap();
    }
}

#[test]
fn program_futures() {
    if is_program("futures") {
        futures::main().unwrap();
    }
}

#[test]
fn program_remote() {
    if is_program("remote") {
        remote::main().unwrap();
    }
}

#[test]
fn program_save() {
    if is_program("save") {
        save::main().unwrap();
    }
}

/// Joins a session, sends a unit and does nothing more until it is killed.
#[test]
fn program_victim() {
    if is_program("victim") {
        let session = dacapo::connect(&std::env::args().nth(1).unwrap()).unwrap();
        session.activate().unwrap();
        session.sender("back").unwrap().send(b"farewell").unwrap();
        while session.receiver("there").unwrap().recv().unwrap().is_some() {}
    }
}

/// Kills a process that a test leaves behind.
struct Process(Child);

impl Process {
    fn start(program: &str, argument: &str, folder: &std::path::Path) -> Self {
        Self::start_with(program, &[argument], folder)
    }

    fn start_with(program: &str, arguments: &[&str], folder: &std::path::Path) -> Self {
        let test = format!("processes::program_{program}");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(arguments)
            .args([&test, "--exact", "--nocapture", "--test-threads=1"])
            .env(PROGRAM, program)
            .env("XDG_STATE_HOME", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self(child.unwrap())
    }

    /// Waits until it ends; its lines, with those of the test around it.
    fn lines(&mut self) -> Vec<String> {
        let lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        let lines = lines.map(Result::unwrap).collect();
        assert!(self.0.wait().unwrap().success(), "{lines:?}");
        lines
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder for the identity of processes, removed at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("dacapo-session-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn two_programs_of_ten_lines_send_and_print_lines() {
    watched(|| {
        let folder = Folder::new("lines");
        let mut receiver = Process::start("receiver", "127.0.0.1:0", &folder.0);
        let mut uri = String::new();
        let mut told = BufReader::new(receiver.0.stderr.take().unwrap());
        told.read_line(&mut uri).unwrap();
        let mut sender = Process::start("sender", uri.trim(), &folder.0);
        let mut typed = sender.0.stdin.take().unwrap();
        let lines: Vec<String> = (0..100).map(|line| format!("line {line} of a note")).collect();
        lines.iter().for_each(|line| writeln!(typed, "{line}").unwrap());
        drop(typed);
        let account = sender.lines().join("\n");
        let sent = "text: 100 sent = 100 delivered + 0 late + 0 lost + 0 dropped + 0 unknown";
        assert!(account.contains("notes\n") && account.contains(sent), "{account}");
        assert!(account.contains("the same at both ends"), "{account}");
        // The first stands behind the name of the test.
        let printed = receiver.lines();
        let printed = printed.iter().filter_map(|line| Some(&line[line.find("line ")?..]));
        assert_eq!(printed.collect::<Vec<_>>(), lines);
    });
}

/// What a program prints that sends 30 numbers to `receiver`, which prints each.
fn sends_numbers(program: &str) -> String {
    sends_numbers_to("receiver", program)
}

fn sends_numbers_to(receiver: &str, program: &str) -> String {
    let folder = Folder::new(&format!("{receiver}-{program}"));
    let mut receiver = Process::start(receiver, "127.0.0.1:0", &folder.0);
    let mut uri = String::new();
    let mut told = BufReader::new(receiver.0.stderr.take().unwrap());
    told.read_line(&mut uri).unwrap();
    let printed = Process::start(program, uri.trim(), &folder.0).lines().join("\n");
    assert!(printed.contains("30 sent = 30 delivered"), "{printed}");
    assert!(printed.contains("the same at both ends"), "{printed}");
    let lines = receiver.lines();
    let numbers = lines.iter().filter_map(|line| line.rsplit(' ').next()?.parse::<u32>().ok());
    assert_eq!(numbers.collect::<Vec<_>>(), (0..30).collect::<Vec<_>>(), "{lines:?}");
    printed
}

#[test]
fn a_program_changes_the_protocol_under_its_lines() {
    watched(|| {
        let printed = sends_numbers("change");
        assert!(printed.contains("epoch 1: segment ! checksum\nepoch 2: segment\n"), "{printed}");
    });
}

#[test]
fn a_program_sends_from_a_loop_of_its_own() {
    watched(|| drop(sends_numbers("own_loop")));
}

#[test]
fn a_session_that_is_told_by_calls_is_served() {
    watched(|| drop(sends_numbers_to("builder", "own_loop")));
}

#[test]
fn a_task_of_tokio_sends_to_the_receiver() {
    watched(|| drop(sends_numbers("futures")));
}

/// A movie of so long, served; what else is kept for it.
fn serve_movie(folder: &media::Folder, seconds: u64) -> dacapo::Creator {
    let duration = std::time::Duration::from_secs(seconds);
    let plan = folder.plan_movie(duration, &media::movie_session("", media::GRAPH));
    let creator = endpoint().serve(&plan).unwrap();
    creator.listen("127.0.0.1:0").unwrap();
    creator
}

#[test]
fn a_program_saves_a_movie() {
    watched(|| {
        let (folder, made) = (Folder::new("save"), media::Folder::new("program-save"));
        let creator = serve_movie(&made, 1);
        let into = made.path("in");
        std::fs::create_dir(&into).unwrap();
        let arguments = [&uri(&creator), into.to_str().unwrap()];
        let mut program = Process::start_with("save", &arguments, &folder.0);
        let _session = creator.accept().unwrap();
        let printed = program.lines().join("\n");
        assert!(printed.contains("video: 25 frames, saved Some("), "{printed}");
        assert!(printed.contains("the same at both ends"), "{printed}");
        assert!(into.join("movie.avi").is_file());
    });
}

#[test]
fn a_program_stops_a_movie_and_lets_it_play() {
    watched(|| {
        let (folder, made) = (Folder::new("remote"), media::Folder::new("program-remote"));
        let creator = serve_movie(&made, 3);
        let mut program = Process::start("remote", &uri(&creator), &folder.0);
        let _session = creator.accept().unwrap();
        let printed = program.lines().join("\n");
        for (command, stands) in
            [("stop: ", "stopped"), ("ff: ", "fast forward"), ("play: ", "playing")]
        {
            let line = printed.lines().find(|line| line.contains(command)).unwrap_or_default();
            assert!(line.contains(stands), "{printed}");
        }
        assert!(printed.contains("FlowEnded"), "{printed}");
    });
}

#[test]
fn a_peer_that_is_killed_ends_the_session_with_contact_lost() {
    watched(|| {
        let folder = Folder::new("killed");
        let creator = endpoint().create(TWO_WAY).unwrap();
        creator.listen("127.0.0.1:0").unwrap();
        let mut victim = Process::start("victim", &uri(&creator), &folder.0);
        let session = creator.accept().unwrap();
        assert_eq!(session.receiver("back").unwrap().recv().unwrap().unwrap(), b"farewell");
        session.set_give_up(std::time::Duration::ZERO).unwrap();
        assert!(session.has_contact());
        victim.0.kill().unwrap();
        // The time is the core's own: three seconds without a sign of life.
        let error = session.receiver("back").and_then(|mut it| it.recv()).unwrap_err();
        assert_eq!(error.code, Code::ContactLost, "{error}");
        assert_eq!(
            session.receiver("back").and_then(|mut it| it.recv()).unwrap_err(),
            error,
            "it stays so"
        );
        assert_eq!(session.sender("there").and_then(|mut it| it.send(b"?")).unwrap_err(), error);
        assert_eq!(session.close().unwrap_err(), error);
        let account = session.account();
        let back = account.flow("back").unwrap();
        assert!(back.is_final && back.ledger.sent_at_least && !back.is_complete(), "{account}");
        assert_eq!(back.ledger.delivered, 1);
        assert_eq!(creator.endpoint().peer_count(), 0);
    });
}

/// Silence would be waited for for minutes: what ends the flow is the end of the socket.
#[test]
fn a_peer_that_is_killed_while_it_shares_memory_ends_its_flow_with_a_reason() {
    watched(|| {
        let folder = Folder::new("memory");
        let modules = "[\"segment\", \"sequence\", \"checksum\"]";
        let file = TWO_WAY.replace(modules, "[]").replace("\"udp\"", "\"shm\"");
        let creator = endpoint().create(&file).unwrap();
        creator.listen("127.0.0.1:0").unwrap();
        let mut victim = Process::start("victim", &uri(&creator), &folder.0);
        let session = creator.accept().unwrap();
        assert_eq!(session.receiver("back").unwrap().recv().unwrap().unwrap(), b"farewell");
        victim.0.kill().unwrap();
        let error = session.receiver("back").and_then(|mut it| it.recv()).unwrap_err();
        assert_eq!(error.code, Code::ContactLost, "{error}");
    });
}

//! Limits of a process: descriptors and memory. What does not fit is refused, what runs goes on,
//! nobody spins, and everything works again when there is room.
//!
//! ```text
//!   prlimit --nofile=(in use + 0..5)    a server, a player        turns are counted, not time
//!   cgroup, 64 MiB (v1 or v2, root)     a server, a receiver      no OOM kill
//! ```

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;
mod faulty;

use common::{LONG, Place, Running, flow, movie_session, session, wait_until};
use dacapo::host::Host;
use dacapo::patience::Tolerance;
use faulty::{address, bytes, events, fails_typed, ledgers_close, start};
use std::fs;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// The lowest number that no descriptor of another process has: with a limit of so many it gets no
/// further one.
fn lowest_free(pid: u32) -> usize {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let used: Vec<usize> = entries
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    (0..).find(|number| !used.contains(number)).unwrap()
}

/// Lets a process have `count` descriptors; false where that cannot be said from outside.
fn limit(pid: u32, count: usize) -> bool {
    // The hard limit stays, so that the soft one can be raised again.
    let (pid, count) = (pid.to_string(), format!("{count}:"));
    let args = ["--pid", &pid, &format!("--nofile={count}")];
    let is_set = Command::new("prlimit").args(args).status().is_ok_and(|status| status.success());
    if !is_set {
        dacapo_base::skip("prlimit(1) is not here");
    }
    is_set
}

/// Processor time of a process, in ticks.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Flows of both kinds: pictures by UDP, sound by a stream.
fn both_kinds(place: &Place) {
    place.movie("movie.avi", "2");
    let video = flow("video", "{ file = \"movie.avi\", stream = \"video\" }");
    let audio = flow("audio", "{ file = \"movie.avi\", stream = \"audio\" }");
    let audio = audio.replace("graph = [\"segment\", \"sequence\", \"checksum\"]", "graph = []");
    let audio = audio.replace("transport = \"udp\"", "transport = \"tcp\"");
    place.write("movie.toml", session("movie", &[video, audio]));
}

#[test]
fn a_server_without_descriptors_refuses_lives_and_serves_when_there_are_some() {
    let place = Place::new();
    both_kinds(&place);
    let args = ["serve", "movie.toml", "--json", "--port", "0", "--speed", "8"];
    let server = start(&place, &args, None);
    let uri = format!("dacapo://{}/movie", address(&server));
    let plays = |folder: &str| {
        let args = ["play", &uri, "--save", folder, "--force", "--json"];
        start(&place, &args, None).wait(LONG)
    };
    ledgers_close(&plays("before").expect(0));
    for spare in 0..=5 {
        if !limit(server.pid(), lowest_free(server.pid()) + spare) {
            return;
        }
        let run = plays("tight");
        assert!(!run.err.contains("panicked"), "{}", run.all());
        match run.code {
            // What could be had was enough, or one flow of two was.
            Some(0) => drop(ledgers_close(&run)),
            _ => fails_typed(&run),
        }
        assert!(limit(server.pid(), 1_024));
        // At once, because a descriptor is there at once.
        let run = plays("after");
        assert_eq!(run.code, Some(0), "{spare} descriptors before: {}", run.all());
        ledgers_close(&run);
    }
    assert!(!server.err().contains("panicked"), "{}", server.err());
    server.signal("INT");
    server.wait(LONG).expect(130);
}

/// A socket of its own is for who has a data path; many ask and leave before they have one.
#[test]
fn those_who_ask_and_leave_leave_no_descriptor_behind() {
    let place = Place::new();
    both_kinds(&place);
    let args = ["serve", "movie.toml", "--json", "--port", "0", "--speed", "8"];
    let server = start(&place, &args, None);
    let authority = address(&server);
    let in_use = descriptors(server.pid());
    let uri = format!("dacapo://{authority}/nothing");
    for _ in 0..20 {
        place.run(&["ls", &authority]).expect(0);
        fails_typed(&start(&place, &["play", &uri, "--save", "out"], None).wait(LONG));
    }
    let is_back = || descriptors(server.pid()) <= in_use;
    assert!(wait_until(LONG / 4, is_back), "{} of {in_use}", descriptors(server.pid()));
    server.signal("INT");
    server.wait(LONG).expect(130);
}

/// Says to a process that it is the host without descriptors.
const PROGRAM: &str = "DACAPO_TEST_PROGRAM";

/// A host that listens, has no descriptor left, and counts its turns; then has some again.
#[test]
fn program_host_without_descriptors() {
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    let mut host = Host::new().unwrap();
    host.listen(&[(std::net::Ipv4Addr::LOCALHOST, 0).into()]).unwrap();
    println!("listening {}; .", host.listening()[0]);
    let mut tokens = Vec::new();
    let pid = std::process::id();
    // What is opened gets the lowest number that is free.
    let free = fs::File::open("/dev/null").unwrap().as_raw_fd();
    assert!(limit(pid, usize::try_from(free).unwrap()));
    let mut turn_for = |host: &mut Host, span: Duration| {
        let (before, end) = (host.reactor().counters().turns, Instant::now() + span);
        while Instant::now() < end {
            host.next_event(end - Instant::now(), &mut tokens).unwrap();
        }
        host.reactor().counters().turns - before
    };
    turn_for(&mut host, Duration::from_millis(300));
    println!("ready .");
    println!("turns {} .", turn_for(&mut host, Duration::from_secs(3)));
    assert!(limit(pid, 1_024));
    let before = descriptors(pid);
    let mut patience = Tolerance::new(Instant::now(), LONG);
    // Those who wait are taken in; what they do not say ends them, so it is looked at often.
    while descriptors(pid) <= before && patience.lasts(Instant::now()) {
        turn_for(&mut host, Duration::from_millis(10));
    }
    println!("took {} .", descriptors(pid) > before);
}

#[test]
fn a_listener_without_descriptors_does_not_spin_and_takes_in_who_waited() {
    let place = Place::new();
    let this = std::env::current_exe().unwrap();
    let args = ["program_host_without_descriptors", "--exact", "--nocapture", "--test-threads=1"];
    let mut command = place.program(this.to_str().unwrap(), &args);
    command.env(PROGRAM, "host");
    let host = place.start_command(command);
    let out = host.wait_for_out("; .", LONG);
    let address = out.split("listening ").nth(1).unwrap().split(';').next().unwrap();
    host.wait_for_out("ready .", LONG);
    let waiting: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    let run = host.wait(LONG).expect(0);
    let turns = run.out.split("turns ").nth(1).unwrap().split_whitespace().next().unwrap();
    let turns: u64 = turns.parse().unwrap();
    // A pause of 100 ms after each attempt makes some 30; a loop that spins makes 10,000 and more.
    println!("turns in 3 s without descriptors: {turns}");
    assert!(turns < 500, "{turns} turns");
    assert!(run.out.contains("took true"), "{}", run.all());
    drop(waiting);
}

#[test]
fn a_player_without_descriptors_turns_programs_away_and_does_not_spin() {
    let place = Place::new();
    place.movie("movie.avi", "60");
    place.write("movie.toml", movie_session("movie", "movie.avi"));
    let server = start(&place, &["serve", "movie.toml", "--json", "--port", "0"], None);
    let uri = format!("dacapo://{}/movie", address(&server));
    let player = start(&place, &["play", &uri, "--save", "out"], None);
    let socket = place.path(&format!("run/dacapo/{}.sock", player.pid()));
    assert!(wait_until(LONG, || socket.exists()));
    place.run(&["control", "stop"]).expect(0);
    if !limit(player.pid(), lowest_free(player.pid())) {
        return;
    }
    let programs: Vec<UnixStream> = (0..5).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let (before, began) = (ticks(player.pid()), Instant::now());
    std::thread::sleep(Duration::from_secs(2));
    let (used, span) = (ticks(player.pid()) - before, began.elapsed());
    // A tick is 10 ms. Who waits for nothing uses none or one; a loop that spins uses all of its
    // processor, or what others leave of it.
    println!("ticks in {span:?} without descriptors: {used}");
    assert!(u128::from(used) * 10 < span.as_millis() / 20, "{used} ticks in {span:?}");
    drop(programs);
    assert!(limit(player.pid(), 1_024));
    place.run(&["control", "status"]).expect(0);
    player.signal("INT");
    player.wait(LONG).expect(130);
}

/// A group of processes with a limit of memory.
struct Group {
    folder: PathBuf,
    is_v1: bool,
}

impl Group {
    /// Nothing where this user may not make one.
    fn new(name: &str, bytes: u64) -> Option<Self> {
        let name = format!("dacapo-{}-{name}", std::process::id());
        let roots = [("/sys/fs/cgroup/memory", true), ("/sys/fs/cgroup", false)];
        for (root, is_v1) in roots {
            let folder = PathBuf::from(root).join(&name);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Self { folder, is_v1 };
            let limit = if is_v1 { "memory.limit_in_bytes" } else { "memory.max" };
            if fs::write(group.folder.join(limit), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        dacapo_base::skip("this user may not make a group with a limit of memory");
        None
    }

    /// The program, in the group from its first instruction on.
    fn start(&self, place: &Place, args: &[&str]) -> Running {
        let script = "echo $$ > \"$GROUP/cgroup.procs\" && exec \"$0\" \"$@\"";
        let all = [&["-c", script, env!("CARGO_BIN_EXE_dacapo")], args].concat();
        let mut command = place.program("sh", &all);
        command.env("GROUP", &self.folder);
        place.start_command(command)
    }

    /// How often the kernel has ended somebody for lack of memory, and the most that was used.
    fn kills_and_peak(&self) -> (u64, u64) {
        let (events, peak) = match self.is_v1 {
            true => ("memory.oom_control", "memory.max_usage_in_bytes"),
            false => ("memory.events", "memory.peak"),
        };
        let text = fs::read_to_string(self.folder.join(events)).unwrap();
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        let peak = fs::read_to_string(self.folder.join(peak)).unwrap_or_default();
        (kills.unwrap().parse().unwrap(), peak.trim().parse().unwrap_or(0))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The processes of the group may take a moment to be gone.
        wait_until(Duration::from_secs(10), || fs::remove_dir(&self.folder).is_ok());
    }
}

const MIB: u64 = 1 << 20;

#[test]
fn a_server_with_64_mib_serves_eight_viewers_one_of_whom_does_not_read() {
    let place = Place::new();
    let Some(group) = Group::new("server", 64 * MIB) else { return };
    let args = ["testmovie", "movie.avi", "--duration", "10", "--size", "640x360"];
    place.run(&args).expect(0);
    place.write("movie.toml", movie_session("movie", "movie.avi"));
    let args = ["serve", "movie.toml", "--json", "--port", "0", "--speed", "4"];
    let server = group.start(&place, &args);
    let uri = format!("dacapo://{}/movie", address(&server));
    let play = |number: usize| {
        let folder = format!("out-{number}");
        start(&place, &["play", &uri, "--save", &folder, "--json"], None)
    };
    let mut viewers: Vec<Running> = (0..8).map(play).collect();
    let lazy = viewers.remove(3);
    assert!(wait_until(LONG, || events(&server.out(), "joined").len() == 8));
    lazy.signal("STOP");
    for viewer in viewers {
        let json = ledgers_close(&viewer.wait(LONG).expect(0));
        assert_eq!(json["flows"][0]["account"]["units_sent"], 250, "{json}");
    }
    lazy.signal("CONT");
    lazy.kill();
    let (kills, peak) = group.kills_and_peak();
    println!("eight viewers: at most {} MiB of 64, {kills} kills", peak / MIB);
    assert_eq!(kills, 0);
    ledgers_close(&play(8).wait(LONG).expect(0));
    server.signal("INT");
    server.wait(LONG).expect(130);
}

#[test]
fn a_receiver_with_64_mib_takes_a_file_that_is_larger() {
    let place = Place::new();
    let Some(group) = Group::new("receiver", 64 * MIB) else { return };
    let content = bytes(160 << 20);
    place.write("a.bin", &content);
    let receiver = group.start(&place, &["recv", "--port", "0", "--json", "--out", "in"]);
    let addr = address(&receiver);
    start(&place, &["send", &addr, "a.bin", "--quiet"], None).wait(LONG).expect(0);
    receiver.wait(LONG).expect(0);
    assert!(fs::read(place.path("in/a.bin")).unwrap() == content);
    let (kills, peak) = group.kills_and_peak();
    println!("a file of 160 MiB: at most {} MiB of 64, {kills} kills", peak / MIB);
    assert_eq!(kills, 0);
}

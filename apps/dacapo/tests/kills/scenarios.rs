//! The scenarios of the command: a victim that dies, a survivor, and the same again.

use crate::common::{Finished, LONG, Place, Running, flow, movie_session, session};
use crate::common::{in_order, wait_until};
use crate::faulty::{
    FAILPOINT, KILLED, address, bytes, events, fails_typed, free_port, is_readable_or_nothing,
    names, start,
};
use crate::{Kill, Victim, endpoints};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that are sent: several units, and a rest.
const LEN: usize = 300_000;

/// What the scenarios share: a movie, and a server that has to survive every player.
pub struct Stage {
    place: Place,
    server: Running,
    authority: String,
    /// Players that were killed, or played to the end.
    players: AtomicUsize,
    hashes: Vec<String>,
}

impl Stage {
    pub fn new() -> Self {
        let place = Place::new();
        place.movie("movie.avi", "2");
        place.movie("long.avi", "16");
        write_sessions(&place);
        place.write("long.toml", movie_session("long", "long.avi"));
        let mut args = vec!["movie.toml", "sound.toml", "long.toml", "--speed", "8", "--json"];
        args.extend(crate::faulty::give_up_args());
        let server = place.start(&[&["serve", "--port", "0"], &args[..]].concat());
        let authority = address(&server);
        let hashes = place.hashes("movie.avi");
        Self { place, server, authority, players: AtomicUsize::new(0), hashes }
    }

    /// Plays one kill to its end.
    pub fn play(&self, kill: &Kill) {
        match kill.victim {
            Victim::Server => self.kill_server(kill),
            Victim::Player => self.kill_player(kill),
            Victim::Sender => kill_sender(kill),
            Victim::Receiver => kill_receiver(kill),
            Victim::Maker => kill_maker(kill),
            Victim::Creator => endpoints::kill_creator(kill),
            Victim::Joiner => endpoints::kill_joiner(kill),
        }
    }

    /// The server that all players had has let every one of them go, and ends in order.
    pub fn end(self) {
        let out = || self.server.out();
        let count = |kind| events(&out(), kind).len();
        let is_empty = wait_until(LONG, || count("left") == count("joined"));
        assert!(is_empty, "{} joined, {} left", count("joined"), count("left"));
        assert!(count("left") > 0 && count("left") <= self.players.into_inner());
        for left in events(&out(), "left") {
            let accounts = left["accounts"].as_array().unwrap();
            assert!(accounts.iter().all(|account| account["closes"] == true), "{left}");
        }
        self.server.signal("INT");
        self.server.wait(LONG).expect(130);
    }

    /// A folder with the movie in it.
    fn place(&self) -> Place {
        let place = Place::new();
        fs::hard_link(self.place.path("movie.avi"), place.path("movie.avi")).unwrap();
        write_sessions(&place);
        place
    }

    fn kill_server(&self, kill: &Kill) {
        let (place, port) = (self.place(), free_port().to_string());
        let serve = ["serve", "movie.toml", "--port", &port, "--speed", "8"];
        let fault = kill.text();
        let server = start(&place, &serve, Some((FAILPOINT, &fault)));
        let uri = format!("dacapo://127.0.0.1:{port}/movie");
        if is_up(&server) {
            let player = start(&place, &["play", &uri, "--save", "out", "--json"], None);
            if kill.point == "serve.signal" {
                let saves = || names(&place.path("out")).len() == 1;
                assert!(wait_until(LONG, saves), "{}", player.err());
                server.signal("INT");
            }
            let run = player.wait(LONG);
            if run.code != Some(0) {
                fails_typed(&run);
            }
        }
        ended(server, kill);
        files_are_sound(&place);
        let key = fs::read(place.path("state/dacapo/identity.key")).ok();
        // The same port, at once.
        let again = start(&place, &serve, None);
        assert!(is_up(&again), "{}", again.err());
        self.plays(&place, &uri, "out");
        again.signal("INT");
        again.wait(LONG).expect(130);
        let after = fs::read(place.path("state/dacapo/identity.key")).unwrap();
        assert!(key.is_none_or(|key| key == after), "another identity");
        assert_eq!(names(&place.path("state/dacapo")), ["identity.key"]);
    }

    fn kill_player(&self, kill: &Kill) {
        let (place, fault) = (self.place(), kill.text());
        let name = match kill.point {
            "sound.trailer" => "sound",
            // Long enough for the file to be brought up to date on the way.
            "recording.sync" => "long",
            _ => "movie",
        };
        let uri = format!("dacapo://{}/{name}", self.authority);
        let play = ["play", &uri, "--save", "out", "--json"];
        let player = start(&place, &play, Some((FAILPOINT, &fault)));
        self.players.fetch_add(1, Ordering::Relaxed);
        ended(player, kill);
        files_are_sound(&place);
        self.plays(&place, &format!("dacapo://{}/movie", self.authority), "again");
        // A file of which nothing is known is no obstacle.
        let out = place.path("out");
        if names(&out).iter().all(|name| fs::metadata(out.join(name)).unwrap().len() == 0) {
            start(&place, &play, None).wait(LONG).expect(0);
            self.players.fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(names(&place.path("run/dacapo")), [""; 0], "a socket is left");
    }

    /// A player that nobody disturbs gets the whole movie.
    fn plays(&self, place: &Place, uri: &str, folder: &str) {
        let args = ["play", uri, "--save", folder, "--force", "--json"];
        let run = start(place, &args, None).wait(LONG).expect(0);
        self.players.fetch_add(1, Ordering::Relaxed);
        let json = crate::faulty::ledgers_close(&run);
        let whole = json["flows"].as_array().unwrap().iter().all(|flow| {
            let account = &flow["account"];
            account["units_delivered"] == account["units_sent"]
        });
        // What is lost on a busy machine is in the ledger; then there is nothing to compare.
        if whole {
            let path = format!("{folder}/movie.avi");
            assert_eq!(place.hashes(&path), self.hashes, "{json}");
        }
    }
}

fn write_sessions(place: &Place) {
    place.write("movie.toml", movie_session("movie", "movie.avi"));
    let sound = flow("audio", "{ file = \"movie.avi\", stream = \"audio\" }");
    place.write("sound.toml", session("sound", &[sound]));
}

/// Whether a server gets as far as to listen before it ends.
fn is_up(server: &Running) -> bool {
    let ends = || !std::path::Path::new(&format!("/proc/{}/fd/0", server.pid())).exists();
    assert!(wait_until(LONG, || server.out().contains("identity ") || ends()));
    // It may have died after it said so.
    server.out().contains("identity ") && !ends()
}

/// The victim has died where it should; one that was meant to die at a random hit may live.
fn ended(mut victim: Running, kill: &Kill) -> Finished {
    if kill.is_random && !wait_until(LONG / 20, || !victim.is_running()) {
        victim.signal("TERM");
    }
    let run = victim.wait(LONG);
    let is_fine = run.code == KILLED || kill.is_random;
    assert!(is_fine, "the point is not reached: {:?} {}", run.code, run.all());
    assert!(!run.err.contains("panicked"), "{}", run.all());
    run
}

/// Whatever is saved can be read, and there is nothing besides.
fn files_are_sound(place: &Place) {
    for name in names(&place.path("out")) {
        assert!(name.ends_with(".avi") || name.ends_with(".wav"), "{name} is left");
        is_readable_or_nothing(place, &place.path("out").join(name));
    }
}

fn kill_sender(kill: &Kill) {
    let (place, fault) = (Place::new(), kill.text());
    place.write("a.bin", bytes(LEN));
    let receiver = start(&place, &["recv", "--port", "0", "--json", "--out", "in", "--keep"], None);
    let addr = address(&receiver);
    let sender = start(&place, &["send", &addr, "a.bin"], Some((FAILPOINT, &fault)));
    ended(sender, kill);
    // As soon as the receiver has noticed, the next one may send.
    place.write("again.bin", bytes(LEN + 1));
    let sends = || {
        let run = start(&place, &["send", &addr, "again.bin"], None).wait(LONG);
        assert!(!run.err.contains("panicked"), "{}", run.all());
        run.code == Some(0)
    };
    assert!(wait_until(LONG, sends), "{}\n{}", receiver.out(), receiver.err());
    files_are_whole_or_marked(&place);
    assert_eq!(fs::read(place.path("in/again.bin")).unwrap(), bytes(LEN + 1));
    receiver.signal("INT");
    let run = receiver.wait(LONG).expect(130);
    for event in events(&run.out, "received") {
        let is_whole = event["files"].as_array().unwrap().iter().all(|it| it["fault"].is_null());
        assert!(is_whole || event["error"].is_string(), "neither whole nor a reason: {event}");
    }
    assert!(!names(&place.path("in")).iter().any(|name| name.ends_with(".part")));
}

/// What has its final name is what was sent; what is not whole says so.
fn files_are_whole_or_marked(place: &Place) {
    for name in names(&place.path("in")) {
        if name == "a.bin" {
            assert!(fs::read(place.path("in/a.bin")).unwrap() == bytes(LEN), "a.bin is not whole");
        } else {
            let is_marked = [".a.bin.0.part", "a.bin.incomplete", "again.bin"];
            assert!(is_marked.contains(&name.as_str()), "{name} is left");
        }
    }
}

fn kill_receiver(kill: &Kill) {
    let (place, fault, port) = (Place::new(), kill.text(), free_port().to_string());
    place.write("a.bin", bytes(LEN));
    let recv = ["recv", "--port", &port, "--json", "--out", "in"];
    let receiver = start(&place, &recv, Some((FAILPOINT, &fault)));
    let addr = address(&receiver);
    let run = start(&place, &["send", &addr, "a.bin"], None).wait(LONG);
    ended(receiver, kill);
    files_are_whole_or_marked(&place);
    let is_there = place.path("in/a.bin").exists();
    if run.code == Some(0) {
        assert!(is_there, "the sender was told that it is there: {}", run.all());
    } else {
        fails_typed(&run);
    }
    // The same port and the same folder, at once.
    let again = start(&place, &recv, None);
    let addr = address(&again);
    place.write("again.bin", bytes(LEN + 1));
    let name = if is_there { "again.bin" } else { "a.bin" };
    start(&place, &["send", &addr, name], None).wait(LONG).expect(0);
    let run = again.wait(LONG).expect(0);
    in_order(&run.out, &["\"event\":\"received\""]);
    files_are_whole_or_marked(&place);
    let left = names(&place.path("in"));
    assert!(left.iter().all(|name| !name.starts_with('.')), "{left:?}");
}

fn kill_maker(kill: &Kill) {
    let (place, fault) = (Place::new(), kill.text());
    fs::create_dir(place.path("out")).unwrap();
    let args = ["testmovie", "out/movie.avi", "--duration", "1", "--size", "160x96"];
    let run = ended(start(&place, &args, Some((FAILPOINT, &fault))), kill);
    if run.code == KILLED {
        assert!(!place.path("out/movie.avi").exists(), "half a movie has its name");
        place.run(&args).expect(0);
    }
    assert_eq!(names(&place.path("out")), ["movie.avi"]);
    assert_eq!(place.hashes("out/movie.avi").len(), 2);
}

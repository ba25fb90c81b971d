//! Disks that are full, and files that may not grow: the error names the file, what came is kept
//! and readable, the other end is told, and nobody is ended by a signal.
//!
//! ```text
//!   a limit of file sizes   ulimit -f         any user      EFBIG
//!   a disk of some KiB      tmpfs in a mount  root, else    ENOSPC
//!                           name space        skipped
//! ```

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;
mod faulty;

use common::{Finished, LONG, Place, Running, movie_session, wait_until};
use faulty::{address, bytes, events, fails_typed, ledgers_close, names, start};
use serde_json::Value;
use std::fs;

const PROGRAM: &str = env!("CARGO_BIN_EXE_dacapo");

/// The program by a shell whose files may have so many blocks of 512 or 1,024 bytes.
fn limited(place: &Place, blocks: u32, args: &[&str]) -> Running {
    let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let all = [&["-c", &script, PROGRAM], args].concat();
    place.start_command(place.program("sh", &all))
}

/// The program with a disk of its own of so many KiB at `full`; says at the end what is left there,
/// and what `inspect` says of the first movie. Nothing where this user may not mount.
fn on_small_disk(place: &Place, kib: u32, args: &[&str]) -> Option<Running> {
    fs::create_dir_all(place.path("full")).unwrap();
    let mount = format!("mount -t tmpfs -o size={kib}k none full");
    let can = place.program("unshare", &["-m", "sh", "-c", &mount]);
    if place.start_command(can).wait(LONG).code != Some(0) {
        dacapo_base::skip("this user may not mount a disk of its own");
        return None;
    }
    let script = format!(
        "{mount} && mkdir full/in && \"$0\" \"$@\"; code=$?\n\
         ls -A full/in | sed 's/^/left: /'\n\
         for it in full/in/*.avi; do [ -e \"$it\" ] && \"$0\" inspect \"$it\" >&2 && \
         echo readable; done; exit $code"
    );
    let all = [&["-m", "sh", "-c", &script, PROGRAM], args].concat();
    Some(place.start_command(place.program("unshare", &all)))
}

fn left(run: &Finished) -> Vec<&str> {
    run.out.lines().filter_map(|line| line.strip_prefix("left: ")).collect()
}

/// A server of a movie of 5 s that is sent eight times as fast; the second is its address.
fn server(place: &Place) -> (Running, String) {
    place.movie("movie.avi", "5");
    place.write("movie.toml", movie_session("movie", "movie.avi"));
    let args = ["serve", "movie.toml", "--json", "--port", "0", "--speed", "8"];
    let server = start(place, &args, None);
    let addr = address(&server);
    (server, addr)
}

/// A server whose player could not save has let it go in order and serves the next one.
fn serves_on(place: &Place, server: Running, addr: &str) {
    assert!(wait_until(LONG, || !events(&server.out(), "left").is_empty()), "{}", server.err());
    let uri = format!("dacapo://{addr}/movie");
    let args = ["play", &uri, "--save", "next", "--json"];
    ledgers_close(&start(place, &args, None).wait(LONG).expect(0));
    let left = events(&server.out(), "left").remove(0);
    assert_eq!(left["error"], Value::Null, "{left}");
    for account in left["accounts"].as_array().unwrap() {
        assert!(account["closes"] == true && account["units_unknown"] == 0, "{account}");
    }
    server.signal("INT");
    server.wait(LONG).expect(130);
}

#[test]
fn a_player_whose_file_may_not_grow_says_so_and_what_it_has_is_readable() {
    let place = Place::new();
    let (server, addr) = server(&place);
    let uri = format!("dacapo://{addr}/movie");
    let run = limited(&place, 300, &["play", &uri, "--save", "out", "--json"]).wait(LONG);
    let run = run.expect(1);
    run.says(&["dacapo: play ", "out/movie.avi: ", "too large"]);
    let json = ledgers_close(&run);
    assert!(json["flows"][0]["account"]["units_dropped"].as_u64() > Some(0), "{json}");
    faulty::is_readable_or_nothing(&place, &place.path("out/movie.avi"));
    assert!(fs::metadata(place.path("out/movie.avi")).unwrap().len() > 100_000);
    serves_on(&place, server, &addr);
}

#[test]
fn a_player_on_a_full_disk_says_so_and_what_it_has_is_readable() {
    let place = Place::new();
    let (server, addr) = server(&place);
    let uri = format!("dacapo://{addr}/movie");
    let play = ["play", &uri, "--save", "full/in", "--quiet"];
    let Some(run) = on_small_disk(&place, 512, &play) else { return };
    let run = run.wait(LONG).expect(1);
    run.says(&["dacapo: play ", "full/in/movie.avi: ", "No space left"]);
    assert_eq!(left(&run), ["movie.avi"]);
    assert!(run.out.contains("readable"), "{}", run.all());
    serves_on(&place, server, &addr);
}

#[test]
fn a_receiver_whose_file_may_not_grow_keeps_what_came_and_the_sender_is_told() {
    let place = Place::new();
    place.write("a.bin", bytes(2_000_000));
    let recv = ["recv", "--port", "0", "--json", "--out", "in"];
    let receiver = limited(&place, 200, &recv);
    let addr = address(&receiver);
    let run = start(&place, &["send", &addr, "a.bin"], None).wait(LONG).expect(1);
    run.says(&["dacapo: send: ", "in/a.bin: ", "too large"]);
    let run = receiver.wait(LONG).expect(1);
    run.says(&["dacapo: recv: in/a.bin: ", "too large"]);
    assert_eq!(names(&place.path("in")), ["a.bin.incomplete"]);
    let kept = fs::read(place.path("in/a.bin.incomplete")).unwrap();
    assert!(kept.len() > 50_000 && bytes(2_000_000).starts_with(&kept), "{} bytes", kept.len());
}

#[test]
fn a_receiver_on_a_full_disk_keeps_what_came_and_the_sender_is_told() {
    let place = Place::new();
    place.write("a.bin", bytes(2_000_000));
    let recv = ["recv", "--port", "0", "--json", "--out", "full/in"];
    let Some(receiver) = on_small_disk(&place, 512, &recv) else { return };
    let addr = address(&receiver);
    let run = start(&place, &["send", &addr, "a.bin"], None).wait(LONG).expect(1);
    run.says(&["dacapo: send: ", "a.bin: ", "No space left"]);
    let run = receiver.wait(LONG).expect(1);
    run.says(&["dacapo: recv: full/in/a.bin: ", "No space left"]);
    assert_eq!(left(&run), ["a.bin.incomplete"]);
}

#[test]
fn a_receiver_that_keeps_listening_takes_what_fits_after_what_did_not() {
    let place = Place::new();
    place.write("large.bin", bytes(2_000_000));
    place.write("small.bin", bytes(1_000));
    let receiver =
        limited(&place, 200, &["recv", "--port", "0", "--json", "--out", "in", "--keep"]);
    let addr = address(&receiver);
    let run = start(&place, &["send", &addr, "large.bin"], None).wait(LONG);
    fails_typed(&run);
    assert!(wait_until(LONG, || events(&receiver.out(), "received").len() == 1));
    start(&place, &["send", &addr, "small.bin"], None).wait(LONG).expect(0);
    assert_eq!(fs::read(place.path("in/small.bin")).unwrap(), bytes(1_000));
    receiver.signal("INT");
    receiver.wait(LONG).expect(130);
}

#[test]
fn a_test_movie_that_does_not_fit_leaves_nothing_and_one_that_was_there_stays() {
    let place = Place::new();
    fs::create_dir(place.path("out")).unwrap();
    place.write("out/movie.avi", "mine");
    let args = ["testmovie", "out/movie.avi", "--duration", "5", "--size", "160x96", "--force"];
    let run = limited(&place, 50, &args).wait(LONG).expect(1);
    run.says(&["dacapo: write out/movie.avi: ", "too large"]);
    assert_eq!(names(&place.path("out")), ["movie.avi"]);
    assert_eq!(fs::read(place.path("out/movie.avi")).unwrap(), b"mine");
}

#[test]
fn an_identity_that_cannot_be_written_is_an_error_with_its_path_and_leaves_nothing() {
    let place = Place::new();
    place.write("a.bin", "a");
    // Not a byte of a file may be written; what is said goes to pipes.
    let args = ["-c", "ulimit -f 0; exec \"$0\" \"$@\"", PROGRAM, "ls", "127.0.0.1:9"];
    let run = place.program("sh", &args).output().unwrap();
    let err = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(1), "{err}");
    assert!(err.starts_with("dacapo: start: ") && err.contains("identity.key"), "{err}");
    assert_eq!(names(&place.path("state/dacapo")), [""; 0]);
    let again = start(&place, &["recv", "--port", "0", "--json", "--out", "in"], None);
    let addr = address(&again);
    start(&place, &["send", &addr, "a.bin"], None).wait(LONG).expect(0);
    again.wait(LONG).expect(0);
}

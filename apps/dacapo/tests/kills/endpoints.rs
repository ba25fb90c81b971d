//! Applications that are killed: a creator and a joiner as processes of their own.
//!
//! A process is this test program again with the name of a test that is a program; without being
//! told so such a test has nothing to do.

use crate::common::{LONG, Place, Running, wait_until};
use crate::faulty::{FAILPOINT, KILLED};
use crate::{Kill, Victim};
use dacapo::{Code, Error};
use dacapo_term::faults;

/// Says to a process which program it is, and what it is given.
const PROGRAM: &str = "DACAPO_TEST_PROGRAM";
const ARGUMENT: &str = "DACAPO_TEST_ARGUMENT";

const SESSION: &str = r#"
[session]
name = "notes"
title = "Notes"
give_up = "1s"

[[flow]]
name = "text"
from = "participant"
source = { raw = true }
graph = ["segment", "sequence", "checksum"]
transport = "udp"
bound = "200 Mbit/s"
"#;

/// Units that a joiner sends.
const UNITS: u32 = 20;

/// Whether this process is that program; then it can be killed.
fn is_program(name: &str) -> bool {
    let is_it = std::env::var(PROGRAM).is_ok_and(|program| program == name);
    if is_it {
        faults::arm(|name| std::env::var_os(name)).unwrap();
    }
    is_it
}

/// Serves until its standard input ends, or it is killed; a line for what happens.
#[test]
fn program_creator() {
    if !is_program("creator") {
        return;
    }
    let creator = dacapo::create(SESSION).unwrap();
    creator.listen(&format!("127.0.0.1:{}", std::env::var(ARGUMENT).unwrap())).unwrap();
    println!("uri {}.", creator.uri().unwrap());
    loop {
        let session = creator.accept().unwrap();
        let mut count = 0;
        let mut text = session.receiver("text").unwrap();
        let ended = loop {
            match text.recv() {
                Ok(Some(_)) => count += 1,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        println!("session: {count} units, {}.", word_of(ended.and(session.close().map(drop))));
    }
}

/// Sends some units and says how it went.
#[test]
fn program_joiner() {
    if is_program("joiner") {
        println!("ended: {}.", word_of(join(&std::env::var(ARGUMENT).unwrap())));
    }
}

fn join(uri: &str) -> Result<(), Error> {
    let session = dacapo::connect(uri)?;
    session.activate()?;
    let mut text = session.sender("text")?;
    for number in 0..UNITS {
        text.send(format!("unit {number}").as_bytes())?;
    }
    text.finish()?;
    session.close().map(drop)
}

fn word_of(result: Result<(), Error>) -> String {
    match result {
        Ok(()) => "in order".to_owned(),
        Err(error) if error.code == Code::Closed => "in order".to_owned(),
        Err(error) => format!("error {:?}: {error}", error.code),
    }
}

fn start(place: &Place, program: &str, argument: &str, fault: Option<&str>) -> Running {
    let test = format!("endpoints::program_{program}");
    let this = std::env::current_exe().unwrap();
    let args = [test.as_str(), "--exact", "--nocapture", "--test-threads=1"];
    let mut command = place.program(this.to_str().unwrap(), &args);
    command.env(PROGRAM, program).env(ARGUMENT, argument);
    command.envs(fault.map(|fault| (FAILPOINT, fault)));
    place.start_command(command)
}

fn uri_of(creator: &Running) -> String {
    let out = creator.wait_for_out("uri ", LONG);
    out.split("uri ")
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .trim_end_matches('.')
        .to_owned()
}

/// A joiner that nobody disturbs gets through, and the creator has all of it.
fn joins(place: &Place, creator: &Running, uri: &str) {
    let run = start(place, "joiner", uri, None).wait(LONG).expect(0);
    assert!(run.out.contains("ended: in order."), "{}", run.all());
    let all = format!("session: {UNITS} units, in order.");
    creator.wait_for_out(&all, LONG);
}

pub fn kill_joiner(kill: &Kill) {
    assert_eq!(kill.victim, Victim::Joiner);
    let (place, fault) = (Place::new(), kill.text());
    let creator = start(&place, "creator", "0", None);
    let uri = uri_of(&creator);
    let run = start(&place, "joiner", &uri, Some(&fault)).wait(LONG);
    assert!(run.code == KILLED || kill.is_random, "the point is not reached: {}", run.all());
    joins(&place, &creator, &uri);
    assert!(!creator.err().contains("panicked"), "{}", creator.err());
    creator.kill();
}

pub fn kill_creator(kill: &Kill) {
    assert_eq!(kill.victim, Victim::Creator);
    let (place, fault) = (Place::new(), kill.text());
    let port = crate::faulty::free_port().to_string();
    let mut creator = start(&place, "creator", &port, Some(&fault));
    let is_up = wait_until(LONG, || creator.out().contains("uri ") || !creator.is_running());
    assert!(is_up, "{}", creator.err());
    if creator.out().contains("uri ") {
        let run = start(&place, "joiner", &uri_of(&creator), None).wait(LONG).expect(0);
        let is_told = run.out.contains("ended: in order.") || run.out.contains("ended: error ");
        assert!(is_told && !run.err.contains("panicked"), "{}", run.all());
    }
    if kill.is_random && creator.is_running() {
        creator.kill();
    } else {
        let run = creator.wait(LONG);
        assert!(run.code == KILLED, "the point is not reached: {}", run.all());
    }
    let again = start(&place, "creator", &port, None);
    joins(&place, &again, &uri_of(&again));
    again.kill();
}

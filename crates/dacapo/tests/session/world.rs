//! Endpoints on loopback, sessions between them, and a watchdog.

use dacapo::host::Host;
use dacapo::{Creator, Endpoint, Session};
use dacapo_base::patience;
use dacapo_security::Identity;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A test takes seconds; a hang ends here. Time in which the test was stopped does not count.
const WATCHDOG: Duration = Duration::from_secs(120);

/// Units that may be underway before one is read: far fewer than queues and sockets take, so that
/// none is lost on loopback whatever the threads' turns.
pub const WINDOW: usize = 32;

/// A flow each way.
pub const TWO_WAY: &str = r#"
[session]
name = "two-way"
title = "Both ways"

[[flow]]
name = "there"
from = "creator"
source = { raw = true }
digest = true
graph = ["segment", "sequence", "checksum"]
transport = "udp"
bound = "200 Mbit/s"

[[flow]]
name = "back"
from = "participant"
source = { raw = true }
digest = true
graph = ["segment", "sequence", "checksum"]
transport = "udp"
bound = "200 Mbit/s"
"#;

/// An endpoint with an identity of its own.
pub fn endpoint() -> Endpoint {
    let identity = Identity::generate().unwrap();
    Endpoint::with_host(Host::with_identity(identity).unwrap()).unwrap()
}

/// A creator that listens on a port of the system's choice.
pub fn serve(session_file: &str) -> Creator {
    let creator = endpoint().create(session_file).unwrap();
    creator.listen("127.0.0.1:0").unwrap();
    creator
}

/// What to connect to.
pub fn uri(creator: &Creator) -> String {
    creator.uri().unwrap().to_string()
}

/// A session between two endpoints, not active: the creator's end and the participant's.
pub fn pair(session_file: &str) -> (Session, Session) {
    let creator = serve(session_file);
    let participant = endpoint().connect(&uri(&creator)).unwrap();
    (creator.accept().unwrap(), participant)
}

/// The same, active.
pub fn active_pair(session_file: &str) -> (Session, Session) {
    let (creator, participant) = pair(session_file);
    participant.activate().unwrap();
    creator.activate().unwrap();
    (creator, participant)
}

/// Runs a test; ends it when it hangs.
pub fn watched(test: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = tell.send(());
    });
    let over = patience::until(Instant::now, WATCHDOG, || {
        let told = told.recv_timeout(patience::STEP_MAX);
        (told != Err(mpsc::RecvTimeoutError::Timeout)).then_some(())
    });
    assert!(over.is_some(), "it hangs");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// The bytes of the unit with this number, of 0 to 3,000 bytes.
pub fn unit(number: usize) -> Vec<u8> {
    let mut unit = number.to_be_bytes().to_vec();
    unit.extend((0..number * 7919 % 2_993).map(|at| (number + at) as u8));
    unit
}

//! The far end: listens, and runs what others ask, one run after the other.
//!
//! ```text
//!   accept -> guest (a thread, 8 at most) --ask--> bounds? busy? graph? -> refused, and why
//!                                            -> published under a fresh name, named to who asked
//!                                            -> its session: run, close -> result
//! ```
//!
//! Of what is sent once for several it is told a session, and joins that.
//!
//! Invariants: while a run is under way no other thread drives the endpoint, or that would be
//! measured too: who comes then is looked for now and then; a guest that asks nothing for
//! [`IDLE_MAX`], or nonsense [`WRONG_MAX`] times, is let go; nothing that a guest does ends the far
//! end.

use super::ask::{Ask, CONTROL, Join, Run};
use super::figures::Report;
use super::run::{End, Party, Side};
use super::session::{Audience, control_file};
use crate::cli::{BenchNetArgs, net_word};
use crate::exit::{Exit, Failure};
use crate::output::{line, note};
use dacapo::Error;
use dacapo::Random;
use dacapo::{Deadline, Endpoint, Host, Received, Session};
use dacapo_sys::signal::{Signal, Signals};
use serde_json::{Value, json};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(100);

/// Guests at a time; others wait to be let in.
const GUESTS_MAX: usize = 8;

/// A guest asks within this time.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Who has asked joins within this time.
const JOIN_MAX: Duration = Duration::from_secs(10);

/// Questions of a guest that are none.
const WRONG_MAX: u32 = 8;

/// Listens until it is interrupted, or as its arguments say.
pub fn serve(args: &BenchNetArgs, at: SocketAddr) -> Result<Exit, Failure> {
    let failed = |error: &Error| Failure::core("bench net --listen", error);
    let signals = Signals::catch(&Signal::ALL);
    let mut signals = signals.map_err(|error| Failure::run_time("bench net: signals", error))?;
    let config = super::host_config(args)?;
    let endpoint = Host::configured(config).and_then(Endpoint::with_host);
    let endpoint = endpoint.map_err(|error| failed(&error))?;
    let control = endpoint.create(control_file()).map_err(|error| failed(&error))?;
    control.listen(&at.to_string()).map_err(|error| failed(&error))?;
    announce(args, &endpoint);
    let far = Arc::new(Far::new(endpoint, args.json)?);
    let input_ended = args.until_eof.then(watch_input);
    let mut guests: Vec<JoinHandle<()>> = Vec::new();
    let exit = loop {
        if let Some(signal) = signals.poll() {
            break Exit::Signal(signal);
        }
        let is_done = args.once && far.runs.load(Ordering::Acquire) > 0;
        guests.retain(|guest| !guest.is_finished());
        let is_deserted = input_ended.as_ref().is_some_and(|ended| ended.load(Ordering::Acquire));
        if is_deserted || (is_done && guests.is_empty()) {
            break Exit::Success;
        }
        if guests.len() >= GUESTS_MAX {
            std::thread::sleep(TICK);
            continue;
        }
        let guest = control.accept_timeout(far.yield_to_runs()).map_err(|error| failed(&error))?;
        if let Some(session) = guest {
            let far = Arc::clone(&far);
            guests.push(std::thread::spawn(move || far.attend(&session)));
        }
    };
    far.is_over.store(true, Ordering::Release);
    for guest in guests {
        // A panic has been printed.
        let _ = guest.join();
    }
    Ok(exit)
}

fn announce(args: &BenchNetArgs, endpoint: &Endpoint) {
    let addresses: Vec<String> = endpoint.listening().iter().map(ToString::to_string).collect();
    match args.json {
        true => line(json!({ "event": "listening", "addresses": addresses })),
        false => line(format_args!(
            "listening on {} (UDP and TCP); on the other host: dacapo bench net HOST",
            addresses.join(", ")
        )),
    }
}

/// Becomes true when standard input ends.
fn watch_input() -> Arc<AtomicBool> {
    let ended = Arc::<AtomicBool>::default();
    let its = Arc::clone(&ended);
    std::thread::spawn(move || {
        // What comes is of no interest, and an error is an end.
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        its.store(true, Ordering::Release);
    });
    ended
}

struct Far {
    endpoint: Endpoint,
    /// Names of sessions are drawn from it; who has it runs.
    names: Mutex<Random>,
    /// Runs that came to their end.
    runs: AtomicU64,
    /// A run is under way, or about to be.
    is_running: AtomicBool,
    /// Who lets guests in has seen that, and keeps still.
    is_quiet: AtomicBool,
    is_over: AtomicBool,
    json: bool,
}

impl Far {
    fn new(endpoint: Endpoint, json: bool) -> Result<Self, Failure> {
        let names = Mutex::new(super::random()?);
        let no = || AtomicBool::new(false);
        let (is_running, is_quiet, is_over) = (no(), no(), no());
        Ok(Self { endpoint, names, runs: 0.into(), is_running, is_quiet, is_over, json })
    }

    /// How long a guest is waited for: a thread that waits for one drives the endpoint, and wakes
    /// the one that is measured. During a run it sleeps instead, and then does not wait.
    fn yield_to_runs(&self) -> Duration {
        let is_running = self.is_running.load(Ordering::Acquire);
        self.is_quiet.store(is_running, Ordering::Release);
        if !is_running {
            return TICK;
        }
        std::thread::sleep(TICK);
        Duration::ZERO
    }

    /// Waits until nobody else drives the endpoint, as long as that can take.
    fn wait_for_quiet(&self) {
        // What was seen of an earlier run says nothing of this one.
        self.is_quiet.store(false, Ordering::Release);
        self.is_running.store(true, Ordering::Release);
        let began = Instant::now();
        while !self.is_quiet.load(Ordering::Acquire) && began.elapsed() < 5 * TICK {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Answers what a guest asks, until it leaves.
    fn attend(&self, session: &Session) {
        if let Err(error) = session.activate().and_then(|()| self.converse(session)) {
            self.tell("left", session, &json!({ "error": error.to_string() }));
        }
        // Who has left already needs no goodbye.
        let _ = session.close();
    }

    fn converse(&self, session: &Session) -> Result<(), Error> {
        let (mut wrong, mut idle) = (0, Instant::now());
        let (mut asked, mut answers) = (session.receiver("ask")?, session.sender("answer")?);
        while wrong < WRONG_MAX && idle.elapsed() < IDLE_MAX && !self.is_over() {
            let bytes = match asked.recv_by(Deadline::after(TICK))? {
                Received::Unit(bytes) => bytes,
                Received::Nothing => continue,
                Received::End => break,
            };
            let question: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let id = question.get("id").and_then(Value::as_u64);
            let outcome = match Ask::from_json(&question) {
                Ok(ask) => self.run(session, &ask),
                Err(text) => {
                    wrong += 1;
                    Err(Failure { exit: Exit::Failure, text })
                }
            };
            let answer = match outcome {
                Ok(result) => json!({ "id": id, "ok": true, "result": result }),
                Err(failure) => {
                    self.tell("refused", session, &json!({ "error": failure.text }));
                    let code = failure.exit.code();
                    json!({ "id": id, "ok": false, "code": code, "error": failure.text })
                }
            };
            answers.send(answer.to_string().as_bytes())?;
            idle = Instant::now();
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Runs what was asked, if nothing else runs.
    fn run(&self, guest: &Session, ask: &Ask) -> Result<Value, Failure> {
        let Ok(mut names) = self.names.try_lock() else {
            return Err(refused("another measurement is under way: try again when it is over"));
        };
        self.wait_for_quiet();
        let outcome = self.run_alone(guest, ask, &mut names);
        self.is_running.store(false, Ordering::Release);
        outcome
    }

    fn run_alone(&self, guest: &Session, ask: &Ask, names: &mut Random) -> Result<Value, Failure> {
        let session = match &ask.join {
            Some(join) => self.join(guest, join)?,
            None => self.let_join(guest, ask, names)?,
        };
        self.tell("runs", guest, &ask.to_json());
        let party = [Party { host: None, session }];
        let end = End::run(Side::Far, &party, ask, |_| match self.is_over() {
            true => Err(refused("the far end was interrupted")),
            false => Ok(()),
        });
        let report = Report::of(&end?).to_json();
        self.tell("has run", guest, &report);
        self.runs.fetch_add(1, Ordering::AcqRel);
        Ok(report)
    }

    /// The session of a run, which the guest is told of and joins.
    fn let_join(&self, guest: &Session, ask: &Ask, names: &mut Random) -> Result<Session, Failure> {
        let name = super::session_name(names);
        let text = ask.session_file(&name, &Audience::ONE);
        let text = text.map_err(|text| Failure { exit: Exit::Invalid, text })?;
        let failed = |error: Error| Failure::core("the far end", &error);
        let invalid = |error: Error| Failure { exit: Exit::Invalid, text: error.to_string() };
        let creator = self.endpoint.create(&text).map_err(invalid)?;
        let answer = json!({ "id": ask.id, "ok": true, "session": name });
        let sent = guest.sender("answer");
        sent.and_then(|mut it| it.send(answer.to_string().as_bytes())).map_err(failed)?;
        let began = Instant::now();
        // With the creator its name is gone: it has served.
        loop {
            if let Some(session) = creator.accept_timeout(TICK).map_err(failed)? {
                return Ok(session);
            }
            if began.elapsed() > JOIN_MAX || self.is_over() {
                return Err(refused("nobody joined the session of the measurement"));
            }
        }
    }

    /// The session of a run that the guest owns: at its address, wherever it would have us go.
    fn join(&self, guest: &Session, join: &Join) -> Result<Session, Failure> {
        let at = guest.remote().at_port(join.port);
        let uri = format!("dacapo://{at}/{}", join.session);
        let failed = |error: Error| Failure::core(&format!("cannot join {uri}"), &error);
        let session = self.endpoint.connect(&uri).map_err(failed)?;
        match session.flows().iter().find(|flow| !flow.is_usable) {
            // What is wrong with it is known to who reads it.
            Some(flow) => match session.activate().and_then(|()| session.receiver(&flow.name)) {
                Err(error) => Err(failed(error)),
                Ok(_) => Err(refused("the flow of the measurement cannot be received here")),
            },
            None => Ok(session),
        }
    }

    /// Tells who watches the far end.
    fn tell(&self, event: &str, guest: &Session, about: &Value) {
        let peer = guest.remote();
        if self.json {
            line(json!({ "event": event, "peer": peer.to_string(), "about": about }));
            return;
        }
        match (event, about.get("error").and_then(Value::as_str)) {
            ("runs", _) => line(format_args!("{peer}: {}", in_words(about))),
            (_, Some(error)) => note(format_args!("{peer} {event}: {error}")),
            _ => {}
        }
    }
}

fn refused(text: &str) -> Failure {
    Failure { exit: Exit::Failure, text: text.to_owned() }
}

fn in_words(question: &Value) -> String {
    let Ok(ask) = Ask::from_json(question) else { return String::new() };
    let transport = net_word(ask.transport);
    match ask.run {
        Run::Echo => format!("delays over {transport}"),
        Run::Bulk => format!(
            "{} flows {} over {transport}, units of {} bytes",
            ask.flows,
            net_word(ask.direction),
            ask.unit_len
        ),
    }
}

/// What the near end joins.
pub fn control_uri(host: &str) -> String {
    format!("dacapo://{host}/{CONTROL}")
}

//! [`TimedPublisher`]: a publisher whose access modules are measured while they work.
//!
//! ```text
//!   core --open, command, poll_unit--> [clock] --> the access module --> [clock]
//! ```

use super::series::Series;
use dacapo::Error;
use dacapo::MediaCommand;
use dacapo::Time;
use dacapo::offer::FlowOffer;
use dacapo::port::{
    CommandError, JoinRequest, Port, SessionProvider, Source, SourcePoll, UnitWriter,
};
use dacapo_sys::clock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was measured; copies share it.
#[derive(Clone, Default)]
pub struct Measured(Arc<Mutex<Times>>);

/// How long things took.
#[derive(Clone, Default)]
pub struct Times {
    /// Commands in the access module, by their word.
    pub commands: BTreeMap<&'static str, Series>,
    /// Pictures that were read and put into a unit, the first of each source apart.
    pub first_picture: Series,
    /// All others.
    pub pictures: Series,
}

impl Measured {
    /// What was measured.
    pub fn take(&self) -> Times {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The word of a command, as the tables have it.
pub fn word(command: MediaCommand) -> &'static str {
    match command {
        MediaCommand::Init => "init",
        MediaCommand::Open => "open",
        MediaCommand::StartTransmission => "start",
        MediaCommand::Play => "play",
        MediaCommand::Stop => "stop",
        MediaCommand::Ff => "ff",
        MediaCommand::Fr => "fr",
        MediaCommand::Fwd => "fwd",
        MediaCommand::Rwd => "rwd",
        MediaCommand::Fps(_) => "fps",
        MediaCommand::Status => "status",
    }
}

/// A publisher whose access modules are measured.
pub struct TimedPublisher {
    /// The publisher.
    pub inner: Box<dyn SessionProvider>,
    /// Where the times go.
    pub measured: Measured,
}

impl SessionProvider for TimedPublisher {
    fn offer(
        &mut self,
        joining: &JoinRequest,
        flows: &[FlowOffer],
    ) -> Result<Vec<FlowOffer>, Error> {
        self.inner.offer(joining, flows)
    }

    fn open(&mut self, flow: &FlowOffer, joining: &JoinRequest) -> Result<Port, String> {
        let before = clock::now();
        let port = self.inner.open(flow, joining)?;
        let taken = clock::now().since(before).as_nanos() as u64;
        // What OPEN did in 1998 is done here when somebody joins.
        self.measured.lock().commands.entry("open").or_default().push(taken);
        Ok(match port {
            Port::Source(inner) => {
                let measured = self.measured.clone();
                Port::Source(Box::new(TimedSource { inner, measured, has_sent: false }))
            }
            sink => sink,
        })
    }

    fn share(&mut self, flow: &FlowOffer, joining: &JoinRequest) {
        self.inner.share(flow, joining);
    }
}

struct TimedSource {
    inner: Box<dyn Source>,
    measured: Measured,
    has_sent: bool,
}

impl Source for TimedSource {
    fn start(&mut self, now: Time) {
        let before = clock::now();
        self.inner.start(now);
        let taken = clock::now().since(before).as_nanos() as u64;
        // START-TRANSMISSION is the activation of the session here.
        self.measured.lock().commands.entry("start").or_default().push(taken);
    }

    fn stop(&mut self, now: Time) {
        self.inner.stop(now);
    }

    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        let before = clock::now();
        let poll = self.inner.poll_unit(now, unit);
        let taken = clock::now().since(before).as_nanos() as u64;
        if poll == SourcePoll::Unit {
            let first = !std::mem::replace(&mut self.has_sent, true);
            let mut times = self.measured.lock();
            let series = if first { &mut times.first_picture } else { &mut times.pictures };
            series.push(taken);
        }
        poll
    }

    fn command(&mut self, now: Time, payload: &[u8]) -> Result<Vec<u8>, CommandError> {
        let before = clock::now();
        let answer = self.inner.command(now, payload);
        let taken = clock::now().since(before).as_nanos() as u64;
        // OPEN and START are counted where their work is done.
        if let Ok(command) = MediaCommand::decode(payload)
            && !matches!(command, MediaCommand::Open | MediaCommand::StartTransmission)
        {
            self.measured.lock().commands.entry(word(command)).or_default().push(taken);
        }
        answer
    }
}

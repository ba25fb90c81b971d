//! [`Near`]: the end that asks.
//!
//! ```text
//!   one far end     asked -> it names a session -> joined here -> run, close
//!   several         a session of ours (`stage`); each is asked to join -> run, close
//!                   <---- result of each far end
//! ```
//!
//! Invariants: no wait is without a bound, and a signal ends each; where a far end of several
//! fails, the run ends, and its name is said.

use super::ask::{Ask, CONTROL, Join};
use super::asked::{Asked, lost};
use super::figures::Report;
use super::flow::Pulse;
use super::run::{End, Party, Side};
use super::stage::Stage;
use crate::exit::Failure;
use dacapo::Error;
use dacapo::host::HostConfig;
use dacapo::{Creator, Endpoint, FlowInfo, Host, Session};
use dacapo_base::Address;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(100);

/// Who was asked to joins within this time: it looks for its turn, and dials for 10 s at most.
const JOIN_MAX: Duration = Duration::from_secs(15);

/// The end that asks.
pub struct Near {
    endpoint: Endpoint,
    asked: Vec<Asked>,
    /// Where it serves what is sent once for several.
    stage: Option<Stage>,
}

/// What a run was at both ends.
pub struct Ran {
    /// Here.
    pub end: End,
    /// What each far end says of itself.
    pub reports: Vec<Report>,
    /// The flows as they were agreed.
    pub flows: Vec<FlowInfo>,
}

impl Near {
    /// Connects to the far ends.
    ///
    /// # Errors
    /// Nothing answers there, or no far end.
    pub fn connect(
        hosts: &[String],
        config: HostConfig,
        wait: Option<Duration>,
    ) -> Result<Self, Failure> {
        let failed = |error: Error| Failure::core("bench net", &error);
        let endpoint = Host::configured(config).and_then(Endpoint::with_host).map_err(failed)?;
        let asked = hosts.iter().map(|host| Asked::connect(&endpoint, host, wait));
        let asked = asked.collect::<Result<Vec<Asked>, Failure>>()?;
        Ok(Self { endpoint, asked, stage: None })
    }

    /// From now on the far ends are sent to once for all, to this group if one was named.
    ///
    /// # Errors
    /// They are not reached from one address of this host.
    pub fn send_once(&mut self, ask: &Ask, group: Option<SocketAddr>) -> Result<(), Failure> {
        self.stage = Some(Stage::new(&self.asked, ask, group)?);
        Ok(())
    }

    /// The far ends: as they were named, and their addresses.
    pub fn far_ends(&self) -> Vec<(String, Address)> {
        self.asked.iter().map(|it| (it.host().to_owned(), it.remote())).collect()
    }

    /// Runs what is asked.
    ///
    /// # Errors
    /// It is refused, or ends before its end; what `watch` says.
    pub fn run(
        &mut self,
        ask: &Ask,
        mut watch: impl FnMut(&Pulse) -> Result<(), Failure>,
    ) -> Result<Ran, Failure> {
        let asked = self.asked.iter_mut();
        let parties: Result<Vec<Party>, Failure> = match &mut self.stage {
            None => asked.map(|it| join(&self.endpoint, it, ask, &mut watch)).collect(),
            Some(stage) => {
                // When all have joined its name has served.
                let (creator, session) = stage.serve(&self.endpoint, ask)?;
                let join = Some(Join { port: stage.port(), session });
                let ask = Ask { join, ..ask.clone() };
                asked.map(|it| let_join(&creator, it, &ask, &mut watch)).collect()
            }
        };
        let parties = parties?;
        let flows = parties.first().map(|it| it.session.flows()).unwrap_or_default();
        let end = End::run(Side::Near, &parties, ask, |pulse| {
            watch(pulse)?;
            self.asked.iter_mut().try_for_each(|it| it.look(ask))
        })?;
        let reports = self.asked.iter_mut().map(|it| {
            let answer = it.answer(ask, &mut watch)?;
            let report = answer.get("result").and_then(Report::from_json);
            report.ok_or_else(|| it.nonsense(&answer))
        });
        let reports = reports.collect::<Result<Vec<Report>, Failure>>()?;
        Ok(Ran { end, reports, flows })
    }

    /// Takes leave.
    pub fn leave(self) {
        self.asked.into_iter().for_each(Asked::leave);
    }
}

/// The session that a far end names for the run.
fn join(
    endpoint: &Endpoint,
    asked: &mut Asked,
    ask: &Ask,
    watch: &mut dyn FnMut(&Pulse) -> Result<(), Failure>,
) -> Result<Party, Failure> {
    asked.ask(ask)?;
    let answer = asked.answer(ask, watch)?;
    let name = answer.get("session").and_then(Value::as_str);
    let name = name.filter(|name| *name != CONTROL).ok_or_else(|| asked.nonsense(&answer))?;
    let uri = format!("dacapo://{}/{name}", asked.host());
    let session = endpoint.connect(&uri).map_err(|error| lost(asked.host(), &error))?;
    Ok(Party { host: Some(asked.host().to_owned()), session })
}

/// The session with a far end that is asked to join ours. They are asked one after the other, as
/// nothing else tells who is who among several of one host.
fn let_join(
    creator: &Creator,
    asked: &mut Asked,
    ask: &Ask,
    watch: &mut dyn FnMut(&Pulse) -> Result<(), Failure>,
) -> Result<Party, Failure> {
    asked.ask(ask)?;
    let (began, idle) = (Instant::now(), Pulse::default());
    while began.elapsed() < JOIN_MAX {
        let session: Option<Session> =
            creator.accept_timeout(TICK).map_err(|error| Failure::core("bench net", &error))?;
        if let Some(session) = session {
            return Ok(Party { host: Some(asked.host().to_owned()), session });
        }
        asked.look(ask)?;
        watch(&idle)?;
    }
    Err(asked.gone("it has not joined in time: does a firewall keep it from this host?"))
}
